"""kbtools: knowledge bases whose every claim is executed.

This module imports nothing, so that a toolchain without the dependencies of kbtools can still
import `kbtools.repro`.
"""

__version__ = "0.1.0"
