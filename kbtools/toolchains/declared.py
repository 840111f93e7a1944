"""Which interpreter a name stands for: `toolchains.toml`, a path, or the one at hand."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import msgspec
from packaging.requirements import InvalidRequirement, Requirement

from kbtools.config import Config, KbtoolsError
from kbtools.running.environment import base_environment
from kbtools.running.executor import ZYGOTE
from kbtools.toolchains.model import Toolchain
from kbtools.toolchains.model import describe as read_off

FILE = "toolchains.toml"
FOLDER = "KBTOOLS_TOOLCHAINS"
"""Variable that names the folder of the environments, so that several checkouts share them."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
VERSION = re.compile(r"\d+\.\d+(\.\d+)?")
LAYOUT = 1
"""Raised when environments are built in another way, so that those there are become stale."""

State = Literal["ready", "stale", "not synced", "broken", "own"]
"""`own` is an interpreter that is used as it is; `broken` has lost its base interpreter."""


class Declared(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A table of `toolchains.toml`."""

    python: str
    """A version, as in `3.11`; or the path of an interpreter, relative to the knowledge base."""
    packages: tuple[str, ...] = ()
    """Requirements, as pip reads them."""
    before: tuple[str, ...] = ()
    """Requirements to be there first, as for a source archive built without isolation."""
    options: tuple[str, ...] = ()
    """Options of pip for `packages`, not for `before`, as in `--no-deps`."""
    constraints: tuple[str, ...] = ()
    """Bounds on whatever else these bring with them."""
    path: tuple[str, ...] = ()
    """Folders of installed packages whose programs belong on the PATH, as in `nvidia/cu13/bin`."""
    links: dict[str, str] = {}
    """Links to make among the installed packages → what each points to, seen from its folder."""
    purpose: str = ""
    articles: tuple[str, ...] = ()
    """Ids of those that it is made for: unless others are named, no other is run on it."""
    size_gb: float = 0.0
    """Unpacked size in 10⁹ bytes, about; 0: unknown."""

    @property
    def is_built(self) -> bool:
        """Whether `kbtools toolchain sync` makes it, and not somebody else."""
        return bool(self.packages or self.before or VERSION.fullmatch(self.python))

    @property
    def recipe(self) -> str:
        """Equal for two declarations that build the same environment."""
        steps = (self.python, self.before, self.packages, self.options, self.constraints)
        whole = json.dumps([LAYOUT, steps, self.path, sorted(self.links.items())])
        return hashlib.sha256(whole.encode()).hexdigest()[:16]

    @property
    def about(self) -> str:
        """Its size for a person, in brackets; nothing where it is unknown."""
        return f" (about {self.size_gb:g} GB)" if self.size_gb else ""


class Built(msgspec.Struct, frozen=True):
    """What is written into an environment once it is whole."""

    recipe: str
    """Of the declaration that it was built from."""
    installer: str
    """As in `uv 0.9.1` or `pip 25.0`."""
    size: int
    """Bytes on the disk, those shared with other environments included."""
    shared: int
    """Bytes that it has in common with other environments, saved by hard links of ours."""
    seconds: float
    """What building it took."""

    FILE = "kbtools-toolchain.json"


class Environment(msgspec.Struct, frozen=True):
    """An interpreter, and the name it is declared under."""

    config: Config
    python: str
    name: str | None = None

    @property
    def title(self) -> str | None:
        """What a report calls it."""
        return self.name


def declared(config: Config) -> dict[str, Declared]:
    """What `toolchains.toml` declares; nothing where there is none.

    Raises:
        KbtoolsError: it is not TOML or tables are not as they should be; all of them are named.
    """
    file = config.root / FILE
    try:
        text = file.read_text("utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise KbtoolsError(f"{file}: {error}") from error
    return decoded(text, str(file))


def decoded(text: str, file: str) -> dict[str, Declared]:
    """What the text of a `toolchains.toml` declares; `file` is its name in messages.

    Raises:
        KbtoolsError: it is not TOML or tables are not as they should be; all of them are named.
    """
    try:
        tables = msgspec.toml.decode(text, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise KbtoolsError(f"{file}: {error}") from error
    found: dict[str, Declared] = {}
    problems: list[str] = []
    for name, table in tables.items():
        problems += [f"{file}:{line_of(name, text)}: {p}" for p in amiss(name, table)]
        if not problems:
            found[name] = msgspec.convert(table, Declared)
    if problems:
        raise KbtoolsError("\n".join(problems))
    return found


def known(config: Config, word: str) -> Declared | None:
    """What a name stands for: a declared toolchain, or one derived from it; None for neither.

    `triton-2.3@triton==2.3.0` is the declared `triton-2.3` with another version of one package.
    """
    tables = declared(config)
    if word in tables:
        return tables[word]
    like, _, text = word.partition("@")
    try:
        wanted = Requirement(text)
    except InvalidRequirement:
        return None
    if like not in tables or wanted.name not in pinned(tables[like]):
        return None
    packages = [
        str(wanted) if Requirement(one).name == wanted.name else one
        for one in tables[like].packages
    ]
    purpose = f"{like} with {wanted}"
    return msgspec.structs.replace(tables[like], packages=tuple(packages), purpose=purpose)


def pinned(one: Declared) -> tuple[str, ...]:
    """The packages that a toolchain is about."""
    return tuple(Requirement(text).name for text in one.packages)


def amiss(name: str, table: Any) -> Iterator[str]:
    """What is wrong with a table of `toolchains.toml`."""
    if not NAME.fullmatch(name):
        yield f"`{name}` is no name: letters, digits, and `.`, `-`, `_` between them"
    if not isinstance(table, dict):
        yield f"`{name}` is no table; a toolchain begins with: [{name}]"
        return
    for key, value in table.items():
        if isinstance(value, dict) and key != "links":
            yield f'[{name}.{key}]: a name with a dot stands in quotes: ["{name}.{key}"]'
            return
    fields = set(Declared.__struct_encode_fields__)
    for key in sorted(set(table) - fields):
        yield f"{name}: unknown key `{key}`; there are: {', '.join(sorted(fields))}"
    try:
        one = msgspec.convert({k: v for k, v in table.items() if k in fields}, Declared)
    except msgspec.ValidationError as error:
        yield f"{name}: {error}".replace("`$.", "`").replace("Object missing", "missing")
        return
    for key in ("packages", "before", "constraints"):
        for i, text in enumerate(getattr(one, key)):
            try:
                Requirement(text)
            except InvalidRequirement as error:
                why = str(error).splitlines()[0]
                yield f"{name}.{key}[{i}]: `{text}` is no requirement: {why}"
    for inside in (*one.path, *one.links):
        if PurePosixPath(inside).is_absolute() or ".." in PurePosixPath(inside).parts:
            yield f"{name}: `{inside}` is not below the folder of the installed packages"


def line_of(name: str, text: str) -> int:
    """Line on which a table begins; 1 where it is written in a way we do not look for."""
    header = re.compile(rf"\s*\[\s*[\"']?{re.escape(name)}\b")
    lines = enumerate(text.splitlines(), 1)
    return next((number for number, line in lines if header.match(line)), 1)


def folder(config: Config) -> Path:
    """Where the environments are; each is a link to a build that never moves."""
    given = os.environ.get(FOLDER)
    return Path(given).absolute() if given else config.root / ".kbtools" / "toolchains"


def built(place: Path) -> Built | None:
    """What a whole environment says of itself; None where there is none."""
    try:
        return msgspec.json.decode((place / Built.FILE).read_bytes(), type=Built)
    except (OSError, msgspec.MsgspecError):
        return None


def state(config: Config, name: str, one: Declared) -> State:
    """How a declared toolchain stands on this machine."""
    if not one.is_built:
        return "own"
    place = folder(config) / name
    there = built(place)
    if there is None:
        return "not synced"
    if there.recipe != one.recipe:
        return "stale"
    return "ready" if os.access(place / "bin" / "python", os.X_OK) else "broken"


def find(config: Config, word: str | None) -> Environment:
    """The environment that a word names; without one, the interpreter that runs kbtools.

    Raises:
        KbtoolsError: it names none, or one that is not as declared on this machine.
    """
    if word is None:
        return Environment(config, sys.executable)
    if one := known(config, word):
        return Environment(config, _interpreter(config, word, one), word)
    if os.access(word, os.X_OK) and Path(word).is_file():
        return Environment(config, str(Path(word).absolute()))
    names = ", ".join(declared(config)) or "none"
    raise KbtoolsError(f"no toolchain `{word}`: neither in {FILE} ({names}) nor an interpreter")


def _interpreter(config: Config, name: str, one: Declared) -> str:
    why = {
        "not synced": "is not on this machine yet",
        "stale": f"is not as {FILE} declares it now",
        "broken": "has lost the Python that it was built from",
    }.get(state(config, name, one))
    if why:
        step = f"kbtools toolchain sync {name}{one.about}"
        raise KbtoolsError(f"toolchain {name} {why}; build it: {step}")
    python = folder(config) / name / "bin" / "python"
    if not one.is_built:
        python = config.root / one.python
        if not (python.is_file() and os.access(python, os.X_OK)):
            raise KbtoolsError(f"toolchain {name}: {python} is not an interpreter that can be run")
    return str(python)


def describe(environment: Environment) -> Toolchain:
    """Reads the toolchain off an environment's interpreter, as evidence records it."""
    config = environment.config
    variables = base_environment(environment.python, config.run.environment)
    return read_off(environment.python, config.toolchain.packages, variables)


def sandbox(environment: Environment) -> dict[str, object]:
    """What this kernel allows of the sandbox, as a zygote finds it."""
    variables = base_environment(environment.python, environment.config.run.environment)
    done = subprocess.run(
        [environment.python, str(ZYGOTE), ""],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=variables,
        check=False,
    )
    try:
        return dict(json.loads(done.stdout.splitlines()[0])["sandbox"])
    except (IndexError, ValueError, KeyError):
        return {"state": done.stderr.decode("utf-8", "replace")[-300:]}


def made_for(config: Config, name: str | None) -> frozenset[str]:
    """Ids of the articles that a declared toolchain is made for; none where it is for all."""
    one = declared(config).get(name or "")
    return frozenset(one.articles if one else ())


def several(config: Config, words: str | None) -> tuple[list[Environment], list[str]]:
    """The environments that a comma-separated list names, and the declared ones that are not here.

    `all` is every declared toolchain that is built on this machine.

    Raises:
        KbtoolsError: a word names none, or names one that is not built.
    """
    if words != "all":
        parts = [part.strip() for part in (words or "").split(",") if part.strip()]
        return [find(config, part) for part in parts] or [find(config, None)], []
    here, missing = [], []
    for name, one in declared(config).items():
        if state(config, name, one) in ("ready", "own"):
            here.append(find(config, name))
        else:
            missing.append(name)
    if not here:
        raise KbtoolsError("no toolchain is built here; see: kbtools toolchain list")
    return here, missing
