"""What an interpreter holds, and whether a claim about versions is about it."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Sequence
from fnmatch import fnmatch
from functools import cached_property, lru_cache
from pathlib import Path

import msgspec
from packaging.specifiers import InvalidSpecifier, Specifier, SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from kbtools.articles.model import ABSENT, Affected
from kbtools.config import Unreadable

DESCRIBE = Path(__file__).parent.parent / "running" / "describe.py"
MACHINE = ("python", "cuda", "driver", "sm", "gpus")
"""Names in `affected` that are no distribution."""


class Gpu(msgspec.Struct, frozen=True):
    """A GPU: its product name, and its compute capability as in `9.0`."""

    name: str
    sm: str


class Ptxas(msgspec.Struct, frozen=True):
    """The assembler that Triton would use, and where it comes from (`triton` or `PATH`)."""

    version: str
    source: str


class Toolchain(msgspec.Struct, frozen=True, omit_defaults=True, dict=True):
    """What is installed, and which GPU is there, as read off an interpreter."""

    python: str
    packages: dict[str, str]
    """Canonical distribution name → version, local part included."""
    platform: str = ""
    """As in `linux-x86_64`."""
    libc: str = ""
    compiler: str = ""
    """First line of `c++ --version`."""
    kernel: str = ""
    cuda: str | None = None
    """Version of the nvcc on the PATH, as in `13.0.88`."""
    driver: str | None = None
    gpus: tuple[Gpu, ...] = ()
    ptxas: Ptxas | None = None

    @property
    def sm(self) -> str | None:
        """Compute capability of the first GPU, as in `9.0`."""
        return self.gpus[0].sm if self.gpus else None

    @cached_property
    def identity(self) -> str:
        """Equal for two toolchains on which a run means the same.

        The kernel's release and the number of GPUs are left out: they change from one machine of
        a kind to the next, and a snippet gets only the GPUs that it asks for.
        """
        gpu = self.gpus[0] if self.gpus else None
        known = (self.python, self.packages, self.platform, self.libc, self.compiler, self.cuda)
        return _identity(msgspec.msgpack.encode((*known, self.driver, gpu, self.ptxas)))

    @property
    def brief(self) -> str:
        """The packages that matter most, or the Python where there are none of them."""
        names = ("torch", "triton", "flashinfer-python", "xformers", "bitsandbytes")
        shown = [f"{name} {self.packages[name]}" for name in names if name in self.packages]
        return ", ".join(shown) or f"Python {self.python}"

    @property
    def software(self) -> str:
        """A line for a person: the Python, the packages that matter most, nvcc."""
        shown = [] if self.brief.startswith("Python") else [self.brief]
        if self.cuda:
            shown.append(f"nvcc {self.cuda}")
        return ", ".join([f"Python {self.python}", *shown])

    @property
    def label(self) -> str:
        """The software, and the GPU."""
        return f"{self.software}, {self.gpus[0].name if self.gpus else 'no GPU'}"

    def version(self, name: str) -> str | None:
        """Version of a distribution or of a part of the machine; None where it is not there."""
        if name == "gpus":
            return str(len(self.gpus))
        if name in MACHINE:
            found = getattr(self, name)
            return str(found) if found else None
        return self.packages.get(canonicalize_name(name))


@lru_cache(10_000)
def _identity(known: bytes) -> str:
    """The digest of what a toolchain is, worked out once: thousands of rows are of the same."""
    both = msgspec.msgpack.decode(known)
    return hashlib.sha256(json.dumps(both, sort_keys=True).encode()).hexdigest()


class Missing(msgspec.Struct, frozen=True):
    """What an `affected` speaks of is not on the toolchain."""

    name: str


class Undecided(msgspec.Struct, frozen=True):
    """Whether an `affected` holds cannot be told."""

    reason: str


def describe(python: str, packages: Sequence[str], environment: dict[str, str]) -> Toolchain:
    """Reads a toolchain off its interpreter.

    `packages` are shell patterns of the distributions that count; none means all.

    Raises:
        Unreadable: the interpreter cannot be run or says nothing that can be read.
    """
    try:
        done = subprocess.run(
            [python, "-I", str(DESCRIBE)],
            capture_output=True,
            text=True,
            timeout=120,
            env=environment,
            check=True,
        )
        toolchain = msgspec.json.decode(done.stdout, type=Toolchain)
    except (OSError, subprocess.SubprocessError, msgspec.MsgspecError) as error:
        said = getattr(error, "stderr", "") or ""
        raise Unreadable(f"{python} is no Python that can be asked: {error}\n{said}") from error
    kept = {
        name: version
        for name, version in sorted(toolchain.packages.items())
        if not packages or any(fnmatch(name, pattern) for pattern in packages)
    }
    return msgspec.structs.replace(toolchain, packages=kept)


def within(specifiers: SpecifierSet, version: Version) -> bool | None:
    """Whether a version lies in a range; None where a pre-release makes that a guess.

    Compared on the release, the local part stripped. A development or vendor pre-release whose
    release is the very boundary of the range could be on either side of it: it was cut before
    the release, with or without the change that the boundary speaks of. So could the build of a
    commit (`3.3.0+git96316ce5`, as in PyTorch's nightlies), although PEP 440 calls it final.
    """
    release = Version(version.base_version)
    answer: bool | None = True
    for clause in specifiers:
        if not (version.is_prerelease or _of_commit(version)):
            holds: bool | None = clause.contains(version.public, prereleases=True)
        elif _names_prerelease(clause):
            on_boundary = release == Version(Version(_bound(clause)).base_version)
            holds = clause.contains(version.public, prereleases=True)
            holds = None if on_boundary and _undated(version) else holds
        elif _on_boundary(clause, release):
            holds = None
        else:
            holds = clause.contains(release.public, prereleases=True)
        if holds is False:
            return False
        answer = answer if holds else None
    return answer


def _bound(clause: Specifier) -> str:
    return clause.version.removesuffix(".*")


def _names_prerelease(clause: Specifier) -> bool:
    return Version(_bound(clause)).is_prerelease


def _undated(version: Version) -> bool:
    """A build from source, by a vendor or of a commit: `a0`, `dev0` and `+git…` are no dates."""
    if version.local is None:
        return False
    return version.pre == ("a", 0) or version.dev == 0 or _of_commit(version)


def _of_commit(version: Version) -> bool:
    return (version.local or "").startswith("git")


def _on_boundary(clause: Specifier, release: Version) -> bool:
    bound = Version(_bound(clause))
    if clause.version.endswith(".*") or clause.operator == "~=":
        stem = bound.release if clause.operator != "~=" else bound.release[:-1]
        after = Version(".".join(map(str, (*stem[:-1], stem[-1] + 1))))
        return release in (bound, after)
    return release == bound


def specifiers(text: str) -> SpecifierSet:
    """A PEP 440 range, as in `>=2.2,<3.0`.

    Raises:
        ValueError: it is none, or one that cannot be compared on the release.
    """
    try:
        found = SpecifierSet(text)
    except InvalidSpecifier as error:
        raise ValueError(str(error)) from error
    for clause in found:
        if clause.operator == "===" or "+" in clause.version:
            raise ValueError(f"`{clause}`: compared is the release, no text and no local part")
    return found


def is_affected(affected: Affected, toolchain: Toolchain) -> bool | Missing | Undecided:
    """Whether any alternative of `affected` holds on a toolchain."""
    missing: Missing | None = None
    undecided: Undecided | None = None
    for alternative in affected:
        answer = _alternative(alternative, toolchain)
        if answer is True:
            return True
        if isinstance(answer, Missing):
            missing = missing or answer
        elif isinstance(answer, Undecided):
            undecided = undecided or answer
    return undecided or missing or False


def _alternative(alternative: dict[str, str], toolchain: Toolchain) -> bool | Missing | Undecided:
    answers = [_condition(name, text, toolchain) for name, text in alternative.items()]
    for answer in answers:
        # without a package that it speaks of a snippet cannot be run, whatever the rest says
        if isinstance(answer, Missing) and answer.name not in MACHINE:
            return answer
    if False in answers:
        return False
    return next((answer for answer in answers if answer is not True), True)


def _condition(name: str, text: str, toolchain: Toolchain) -> bool | Missing | Undecided:
    found = toolchain.version(name)
    if text == ABSENT:
        return found is None
    if found is None:
        return Missing(name)
    try:
        answer = within(specifiers(text), Version(found))
    except InvalidVersion:
        return Undecided(f"{name} {found} is not a version that compares")
    if answer is None:
        return Undecided(f"{name} {found} is a pre-release on the boundary of {text}")
    return answer
