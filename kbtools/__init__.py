"""kbtools: knowledge bases of failures whose every snippet is run.

This module imports nothing, so that a toolchain without the dependencies of kbtools can still
import `kbtools.repro`.
"""

__version__ = "0.1.0"


def load_ipython_extension(shell: object) -> None:
    """`%load_ext kbtools`: shows the article below the traceback of a cell.

    `shell` is that of IPython.
    """
    from kbtools.integrations import notebook

    notebook.load(shell)


def unload_ipython_extension(shell: object) -> None:
    """`%unload_ext kbtools`. `shell` is that of IPython."""
    from kbtools.integrations import notebook

    notebook.unload(shell)
