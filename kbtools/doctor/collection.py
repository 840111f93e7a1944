"""The probes of a knowledge base: the Python files of a folder, as one package."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import sys
from typing import Dict, List

from kbtools.doctor.probe import Probe

PACKAGE = "kb_probes"
"""The name by which the files of a folder of probes import each other."""


class ProbeError(Exception):
    """A file of probes cannot be imported, or two probes have the same id."""


def load(folder: str = "") -> List[Probe]:
    """The probes of a folder, by the names of its files and then as they stand there.

    Args:
        folder: of the files; empty if the package is on the path already, as in `doctor.pyz`.

    Raises:
        ProbeError: a file cannot be imported, or two probes have the same id.
    """
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # looking changes nothing
    try:
        package = _package(folder) if folder else importlib.import_module(PACKAGE)
        names = sorted(entry.name for entry in pkgutil.iter_modules(package.__path__))
        modules = [importlib.import_module(f"{PACKAGE}.{name}") for name in names]
    except Exception as error:  # whatever a file of probes raises
        raise ProbeError(f"{folder or PACKAGE}: {type(error).__name__}: {error}") from error
    finally:
        sys.dont_write_bytecode = writes
    probes: Dict[str, Probe] = {}
    for module in modules:
        for value in vars(module).values():
            if isinstance(value, Probe) and probes.setdefault(value.id, value) is not value:
                raise ProbeError(f"{module.__file__}: there is another probe `{value.id}`")
    return list(probes.values())


def _package(folder: str):  # type: ignore[no-untyped-def]
    """Imports a folder as the package of probes, in place of one that was imported before."""
    for name in [name for name in sys.modules if name.partition(".")[0] == PACKAGE]:
        del sys.modules[name]
    spec = importlib.util.spec_from_file_location(
        PACKAGE, f"{folder}/__init__.py", submodule_search_locations=[folder]
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"no package in {folder}")
    package = importlib.util.module_from_spec(spec)
    sys.modules[PACKAGE] = package
    spec.loader.exec_module(package)
    return package
