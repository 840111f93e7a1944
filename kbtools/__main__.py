"""`python -m kbtools`."""

from kbtools.cli import main

main(prog_name="kbtools")
