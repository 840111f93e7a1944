"""Probes: what in an environment leads to a failure that an article or a notice is about.

Each file has the probes of one subject, and beside it, in TOML, the machines on which they must
find something and those on which they must not. docs/format.md says how to write one.
"""
