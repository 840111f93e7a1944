"""Probes: small programs that say before a failure whether an article applies to this machine.

What a probe looks for belongs to the knowledge base, in its folder `kb/probes/`; this package runs
probes, plants the environments that they are tried in, and packs both into one file.
The modules that `bundle.PORTABLE` names are part of that file: they work on Python 3.9 and newer
and import nothing but the standard library.
"""
