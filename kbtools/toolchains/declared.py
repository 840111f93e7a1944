"""Read `toolchains.toml`: which toolchains a knowledge base declares, and what each consists of."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import PurePosixPath

import msgspec
from packaging.requirements import InvalidRequirement, Requirement

from kbtools.config import Config, KbtoolsError

FILE = "toolchains.toml"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
VERSION = re.compile(r"\d+\.\d+(\.\d+)?")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
NOT_ITS_OWN = re.compile(r"PATH|HOME|TMPDIR|VIRTUAL_ENV|PYTHON\w*|(CONDA|LD|PIP|UV|XDG)_\w+")
"""Variables that a toolchain must not set: they decide which programs run, and where files go."""
TABLES = ("links", "environment")
"""Keys whose values are tables."""
LAYOUT = 1
"""Increase it when environments are built in another way: those that exist then become stale."""


class DeclarationError(KbtoolsError):
    """`toolchains.toml` cannot be read, or a table of it is wrong."""


class Declaration(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A table of `toolchains.toml`."""

    python: str
    """A version, as in `3.11`; or the path of an interpreter, relative to the knowledge base."""
    packages: tuple[str, ...] = ()
    """Requirements, as pip reads them."""
    before: tuple[str, ...] = ()
    """Requirements to install first, as for a source archive that is built without isolation."""
    options: tuple[str, ...] = ()
    """Options of the installer for `packages`, not for `before`, as in `--no-deps`."""
    environment: dict[str, str] = {}
    """Variables of the installer → value, for `packages`, not for `before`, nor for snippets."""
    constraints: tuple[str, ...] = ()
    """Bounds on the dependencies of these requirements."""
    path: tuple[str, ...] = ()
    """Folders of installed packages whose programs belong on the PATH, as in `nvidia/cu13/bin`."""
    links: dict[str, str] = {}
    """Symbolic links to make among the installed packages → the target of each, relative to it."""
    purpose: str = ""
    articles: tuple[str, ...] = ()
    """Ids of the articles that it is made for: `verify` runs no other article on it by default."""
    size_gb: float = 0.0
    """Unpacked size in 10⁹ bytes, approximately; 0: unknown."""

    @property
    def is_built(self) -> bool:
        """Whether `kbtools toolchain sync` builds it; if not, it is an interpreter of the user."""
        return bool(self.packages or self.before or VERSION.fullmatch(self.python))

    @property
    def recipe(self) -> str:
        """A digest that is equal for two declarations that build the same environment."""
        steps = (self.python, self.before, self.packages, self.options, self.constraints)
        parts = [LAYOUT, steps, self.path, sorted(self.links.items())]
        if self.environment:  # left out if empty: so digests from before this key still hold
            parts.append(sorted(self.environment.items()))
        text = json.dumps(parts)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def size_note(self) -> str:
        """Its size for a person, in brackets; empty if it is unknown."""
        return f" (about {self.size_gb:g} GB)" if self.size_gb else ""


def read_declarations(config: Config) -> dict[str, Declaration]:
    """The declarations of `toolchains.toml` by name; empty if there is no such file.

    Raises:
        DeclarationError: it cannot be read, or tables of it are wrong; all problems are listed.
    """
    file = config.root / FILE
    try:
        text = file.read_text("utf-8")
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise DeclarationError(f"{file}: {error}") from error
    return parse_declarations(text, str(file))


def parse_declarations(text: str, file: str) -> dict[str, Declaration]:
    """The declarations in the text of a `toolchains.toml`; `file` is its name in messages.

    Raises:
        DeclarationError: it is not TOML, or tables of it are wrong; all problems are listed.
    """
    try:
        tables = msgspec.toml.decode(text, type=dict[str, object])
    except msgspec.MsgspecError as error:
        raise DeclarationError(f"{file}: {error}") from error
    declarations: dict[str, Declaration] = {}
    problems: list[str] = []
    for name, table in tables.items():
        place = f"{file}:{line_of(name, text)}"
        problems += [f"{place}: {problem}" for problem in problems_in_table(name, table)]
        if not problems:
            declarations[name] = msgspec.convert(table, Declaration)
    if problems:
        raise DeclarationError("\n".join(problems))
    return declarations


def find_declaration(config: Config, name: str) -> Declaration | None:
    """The declaration of a name, which may be derived from another one; None if there is none.

    `triton-2.3@triton==2.3.0` is the declared `triton-2.3` with another version of one package.

    Raises:
        DeclarationError: `toolchains.toml` is wrong.
    """
    declarations = read_declarations(config)
    if name in declarations:
        return declarations[name]
    base_name, _, text = name.partition("@")
    try:
        replacement = Requirement(text)
    except InvalidRequirement:
        return None
    base = declarations.get(base_name)
    if base is None or replacement.name not in pinned_packages(base):
        return None
    packages = tuple(
        str(replacement) if Requirement(package).name == replacement.name else package
        for package in base.packages
    )
    purpose = f"{base_name} with {replacement}"
    return msgspec.structs.replace(base, packages=packages, purpose=purpose)


def pinned_packages(declaration: Declaration) -> tuple[str, ...]:
    """Names of the packages that a toolchain is about, without those installed `before`."""
    return tuple(Requirement(text).name for text in declaration.packages)


def dedicated_articles(config: Config, name: str | None) -> frozenset[str]:
    """Ids of the articles that a toolchain is made for, or one that it is derived from.

    Empty if it is for all.

    Raises:
        DeclarationError: `toolchains.toml` is wrong.
    """
    declaration = find_declaration(config, name or "")
    return frozenset(declaration.articles if declaration else ())


def problems_in_table(name: str, table: object) -> Iterator[str]:
    """The problems of a table of `toolchains.toml`, each as a message."""
    if not NAME.fullmatch(name):
        yield f"invalid name `{name}`: use letters and digits, with `.`, `-`, `_` between them"
    if not isinstance(table, dict):
        yield f"`{name}` is not a table; a toolchain begins with: [{name}]"
        return
    for key, value in table.items():
        if isinstance(value, dict) and key not in TABLES:
            yield f'[{name}.{key}]: put a name with a dot in quotes: ["{name}.{key}"]'
            return
    fields = set(Declaration.__struct_encode_fields__)
    for key in sorted(set(table) - fields):
        yield f"{name}: unknown key `{key}`; the keys are: {', '.join(sorted(fields))}"
    try:
        declaration = msgspec.convert({k: v for k, v in table.items() if k in fields}, Declaration)
    except msgspec.ValidationError as error:
        yield f"{name}: {error}".replace("`$.", "`").replace("Object missing", "missing")
        return
    for key in ("packages", "before", "constraints"):
        for i, text in enumerate(getattr(declaration, key)):
            try:
                Requirement(text)
            except InvalidRequirement as error:
                reason = str(error).splitlines()[0]
                yield f"{name}.{key}[{i}]: invalid requirement `{text}`: {reason}"
    for path in (*declaration.path, *declaration.links):
        if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
            yield f"{name}: `{path}` is not below the folder of the installed packages"
    yield from problems_in_environment(name, declaration.environment)


def problems_in_environment(name: str, variables: dict[str, str]) -> Iterator[str]:
    """The problems of the `environment` of a table, each as a message."""
    for variable, value in variables.items():
        if not VARIABLE.fullmatch(variable):
            yield f"{name}.environment: `{variable}` is not the name of a variable"
        elif NOT_ITS_OWN.fullmatch(variable.upper()):
            yield f"{name}.environment: a toolchain must not set `{variable}`"
        elif "\0" in value:
            yield f"{name}.environment: the value of `{variable}` has a NUL character"


def line_of(name: str, text: str) -> int:
    """Number of the line on which a table begins; 1 if its header is written in a rare way."""
    header = re.compile(rf"\s*\[\s*[\"']?{re.escape(name)}\b")
    lines = enumerate(text.splitlines(), 1)
    return next((number for number, line in lines if header.match(line)), 1)
