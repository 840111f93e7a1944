"""Toolchains: what is installed, which are declared and built, and what a version range means."""
