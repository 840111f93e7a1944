"""Ways to run a program that defines main(): as a script, under pytest, in a worker, in a cell."""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path

MAIN = '\n\nif __name__ == "__main__":\n    main()\n'
"""What a program ends with that is run by itself."""


@dataclass(frozen=True)
class Run:
    """One way: the command, and the program that calls main(), if it is not called by itself."""

    command: str
    driver: str = ""
    file: str = "run.py"
    """The driver's."""
    tools: bool = False
    """Needs packages that toolchains lack: pytest, IPython and so on."""


def _load(file: Path) -> dict[str, Run]:
    """The ways by name."""
    return {name: Run(**table) for name, table in tomllib.loads(file.read_text("utf-8")).items()}


RUNS = _load(Path(__file__).with_suffix(".toml"))
"""Ways to run a Python program; a bash script is run by bash."""


def notebook(code: str) -> str:
    """A notebook of two cells: the program, and the call."""
    cells: list[dict[str, object]] = [
        {
            "cell_type": "code",
            "id": f"cell-{number}",
            "metadata": {},
            "execution_count": None,
            "outputs": [],
            "source": source,
        }
        for number, source in enumerate((code, "main()"))
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    whole = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole)
