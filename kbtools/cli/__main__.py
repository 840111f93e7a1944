"""`python -m kbtools.cli`."""

from kbtools.cli import main

main(prog_name="kbtools")
