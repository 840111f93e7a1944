"""What is run: the nouns of this package."""

from __future__ import annotations

from pathlib import Path

import msgspec

from kbtools.outcome import Isolation


class Run(msgspec.Struct, frozen=True):
    """One run to be made."""

    source: str
    """The text of the file."""
    language: str
    shown: str
    """What its path is called in output, tracebacks and evidence: the article's."""
    suffix: str = ".py"
    timeout: float = 60.0
    env: dict[str, str] = {}
    tool: tuple[str, ...] = ()
    compile_only: bool = False
    spawn: bool = False
    """Asks for a new interpreter instead of a fork of the zygote; `isolation` says what it gets."""
    gpus: tuple[int, ...] = ()
    network: bool = False
    """Whether it may reach more than its own loopback."""
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
        needs_spawn = self.spawn or self.env or self.tool or "environ" in self.source
        return "spawn" if needs_spawn else "fork"

    @property
    def file_name(self) -> str:
        """The name of the snippet's file in the scratch folder."""
        return Path(self.shown).name.partition(".")[0] + self.suffix

    @property
    def nvcc_flags(self) -> list[str]:
        """Compile a CUDA program that is to be run for the GPU there is, unless `env` names one."""
        flags = self.env.get("NVCC_APPEND_FLAGS", "") + self.env.get("NVCC_PREPEND_FLAGS", "")
        names_architecture = "arch" in flags or "-gen" in flags
        native = self.gpus and not self.compile_only and not names_architecture
        return ["-arch=native"] if native else []
