"""What is run: the noun of this package."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from kbtools.outcome import Isolation
from kbtools.running.variables import OF_EACH_RUN, changed_variables


class Run(msgspec.Struct, frozen=True):
    """One run of one snippet, as it is asked for."""

    source: str
    """The text of the file."""
    language: str
    """`python`, `bash` or `cuda`."""
    display_path: str
    """What its path is called in output, tracebacks and evidence: the article's."""
    suffix: str = ".py"
    """Of the file's name."""
    timeout: float = 60.0
    """Seconds of wall time."""
    env: dict[str, str] = {}
    """Environment variables of its own."""
    files: dict[str, bytes] = {}
    """Name → content of the data files that it finds in its working folder: copies, its own."""
    tool: tuple[str, ...] = ()
    """Words of a command that starts the program, as in `compute-sanitizer --tool memcheck`."""
    compile_only: bool = False
    """Whether a CUDA program is compiled and not run."""
    spawn: bool = False
    """Asks for a new interpreter instead of a fork of the zygote; `isolation` says what it gets."""
    gpus: tuple[int, ...] = ()
    """Indices of the GPUs that it may use."""
    network: bool = False
    """Whether it may reach more than its own loopback."""
    stored: bool = False
    """Whether it uses the toolchain's store, where there is one."""
    keep: Path | None = None
    """A folder to keep what it leaves in; what an earlier run left there is removed.

    `scratch` is its scratch folder: `output` in it is all that it printed, `work` where it ran,
    `cache` and `tmp` what it was given. Beside it are the snippet's file and `run.sh`, which
    repeats the run: `kept.repeat_command(folder)` is the command to show. A run of an
    executor that is closed meanwhile leaves nothing.
    """

    @property
    def isolation(self) -> Isolation | None:
        """How its process is made; None where it is no Python process.

        A run may get a new interpreter without asking for one. A variable may be read when a module
        is imported, and in a fork the preloaded modules have been imported already. A tool starts
        the interpreter itself.
        """
        if self.language != "python":
            return None
        by_code = changed_variables(self.source)
        can_fork = by_code is not None and by_code | set(self.env) <= OF_EACH_RUN
        return "fork" if can_fork and not (self.spawn or self.tool) else "spawn"

    @property
    def file_name(self) -> str:
        """The name of the snippet's file in the scratch folder."""
        return Path(self.display_path).name.partition(".")[0] + self.suffix

    def commands(self, python: str, file: str, program: str) -> list[list[str]]:
        """What runs it by hand, one command after another.

        python: the toolchain's interpreter; file: the snippet's; program: what nvcc is to make.
        """
        if self.language == "python":
            return [[*self.tool, python, file]]
        if self.language == "bash":
            return [["bash", "-euo", "pipefail", file]]
        if self.compile_only:
            return [["nvcc", "-c", file, "-o", program]]
        flags = self.env.get("NVCC_APPEND_FLAGS", "") + self.env.get("NVCC_PREPEND_FLAGS", "")
        # compiled for the GPU that there is, unless `env` names an architecture
        native = self.gpus and "arch" not in flags and "-gen" not in flags
        compile_it = ["nvcc", *(["-arch=native"] if native else []), file, "-o", program]
        return [compile_it, [*self.tool, program]]


def architectures(flags: str) -> list[str]:
    """The architectures that flags of nvcc name, as in `sm_90a`."""
    return re.findall(r"(?:arch|code)=(sm_\w+)", flags)
