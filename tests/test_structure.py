"""The rules of the house, held by reading the source: layers, sizes, docstrings, portability."""

from __future__ import annotations

import ast
import functools
import os
import re
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from kbtools import config
from kbtools.doctor import bundle
from kbtools.toolchains.model import MACHINE

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "kbtools"
SOURCES = sorted(PACKAGE.rglob("*.py"))
PYTHON_FILES = sorted(
    file for folder in ("kbtools", "tests", "benchmarks") for file in (ROOT / folder).rglob("*.py")
)

LAYERS = (
    {"config", "outcome", "files", "installation", "repro"},
    {"articles", "cache", "packaged", "running"},
    {"doctor", "toolchains"},
    {"evidence", "tables"},
    {"matching", "checks", "ci"},
    {"verification"},
    {"reports", "site"},
    {"integrations"},
    {"hook", "cli"},
)
"""The rooms of the package, row by row. A room imports from itself and from the rows above it."""

DOORS = (
    "hook.py",
    "repro.py",
    "integrations/notebook.py",
    "integrations/pytest_plugin.py",
    "integrations/wrapping.py",
    "doctor/main.py",
)
PRINTING = [*(PACKAGE / "cli").glob("*.py"), *(PACKAGE / name for name in DOORS)]
"""May print and exit, and so may what runs in a process of its own."""
ALONE = ("zygote.py", "keeper.py", "child.py", "sandbox.py", "filesystem_view.py", "describe.py")
PORTABLE = [
    PACKAGE / "repro.py",
    *(PACKAGE / "running" / name for name in ALONE),
    *(PACKAGE / "doctor" / f"{name}.py" for name in bundle.PORTABLE if name != "__init__"),
    *(file for file in (ROOT / "kb" / "probes").glob("*.py") if file.name != "__init__.py"),
]
"""Run by the toolchain's own interpreter: Python 3.9 or newer with nothing installed."""


RAY = "kbtools.verification.ray."
"""The package that knows Ray."""


def name_of(file: Path) -> str:
    """A file's path in the repository, for the names of tests."""
    return file.relative_to(ROOT).as_posix()


@functools.cache
def tree(file: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(file.read_text("utf-8"))


def imported(nodes: Iterator[ast.AST]) -> Iterator[str]:
    """The modules that these statements import."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kbtools"):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative import"
            yield node.module or ""


def room_of(module: str) -> str:
    """`checks` for `kbtools.checks.pages`; empty for a module that is not of kbtools."""
    words = module.split(".")
    return words[1] if words[0] == "kbtools" and len(words) > 1 else ""


@pytest.mark.parametrize("file", SOURCES, ids=name_of)
def test_imports_only_from_rows_above(file: Path) -> None:
    """A module imports from its own room and from the rows above it, within functions too."""
    rows = {name: number for number, layer in enumerate(LAYERS) for name in layer}
    room = file.relative_to(PACKAGE).parts[0].removesuffix(".py")
    if room == "__init__":  # `%load_ext kbtools` calls a function of the package itself
        assert not any(map(room_of, imported(iter(tree(file).body))))
        modules = set(filter(room_of, imported(ast.walk(tree(file)))))
        assert modules <= {"kbtools.integrations.notebook"}
        return
    if room == "__main__":  # `python -m kbtools` is the command line
        room = "cli"
    assert room in rows, f"say in LAYERS where {room} belongs"
    for module in imported(ast.walk(tree(file))):
        target = room_of(module)
        if target and target != room and not target.startswith("__"):
            assert rows[target] < rows[room], f"{room} must not import {module}"


def documented_layers(text: str) -> tuple[set[str], ...]:
    """The rooms of each row of the table in docs/architecture.md; remarks stand in parentheses."""
    rows = re.findall(r"^\| *\d+ *\|([^|]*)\|", text, re.MULTILINE)
    return tuple(set(re.findall(r"`(\w+)`", re.sub(r"\(.*?\)", "", row))) for row in rows)


def test_the_layers_are_documented() -> None:
    """The table in docs/architecture.md has the rows and rooms of LAYERS, in the same order."""
    page = ROOT / "docs" / "architecture.md"
    assert documented_layers(page.read_text("utf-8")) == LAYERS


def test_every_room_has_a_layer() -> None:
    """LAYERS names every module and package of `kbtools/`, and nothing else."""
    rooms = {file.relative_to(PACKAGE).parts[0].removesuffix(".py") for file in SOURCES}
    assert set.union(*LAYERS) == rooms - {"__init__", "__main__"}


def loaded_by(package: str) -> set[str]:
    """The modules in a fresh process that has imported every module of a package."""
    folder = PACKAGE / package
    names = [f"kbtools.{package}"]
    names += [f"{names[0]}.{file.stem}" for file in folder.glob("*.py") if file.name not in ALONE]
    names = [name for name in names if not name.endswith("__init__")]
    code = f"import sys, {', '.join(names)}; print(*sys.modules)"
    process = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    return set(process.stdout.split())


def test_the_site_runs_no_snippet() -> None:
    """Whatever importing the site imports in turn, nothing of it can run a snippet."""
    modules = loaded_by("site")
    assert "kbtools.site" in modules
    assert not [name for name in modules if room_of(name) in ("running", "verification")]


def test_running_knows_no_claims() -> None:
    """Importing what runs snippets imports neither torch nor anything that judges."""
    modules = loaded_by("running")
    assert "kbtools.running.executor" in modules
    assert {room_of(name) for name in modules} <= {"", "running", "config", "outcome"}
    assert not modules & {"torch", "triton", "numpy", "yaml", "markdown_it"}


@pytest.mark.parametrize("file", SOURCES, ids=name_of)
def test_only_verification_ray_knows_ray(file: Path) -> None:
    """Ray is imported by one package alone, and that by the command line when asked for."""
    if file.is_relative_to(PACKAGE / "verification" / "ray"):
        return
    modules = set(imported(ast.walk(tree(file))))
    assert "ray" not in {module.partition(".")[0] for module in modules}
    asking = {module for module in modules if f"{module}.".startswith(RAY)}
    assert not asking & set(imported(iter(tree(file).body)))
    assert not asking or name_of(file) == "kbtools/cli/verify.py"


@pytest.mark.parametrize("file", sorted({*SOURCES} - {*PRINTING, *PORTABLE}), ids=name_of)
def test_only_the_command_line_prints_or_exits(file: Path) -> None:
    """No other module calls print, click.echo or sys.exit, or raises SystemExit."""
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.Call):
            assert ast.unparse(node.func) not in {
                *("print", "input", "exit", "quit", "sys.exit", "os._exit", "click.echo"),
                *("sys.stdout.write", "sys.stderr.write", "click.secho", "SystemExit"),
            }, f"line {node.lineno}"
        if isinstance(node, ast.Raise) and node.exc:
            assert "SystemExit" not in ast.unparse(node.exc), f"line {node.lineno}"


@pytest.mark.parametrize("file", PYTHON_FILES, ids=name_of)
def test_size(file: Path) -> None:
    """No Python file has more than 400 lines: that is a design that has not been found yet."""
    assert len(file.read_text("utf-8").splitlines()) <= 400


@pytest.mark.parametrize("file", SOURCES, ids=name_of)
def test_errors_have_types(file: Path) -> None:
    """`KbtoolsError` is raised nowhere: an error has a type that is named for its cause."""
    for node in ast.walk(tree(file)):
        if isinstance(node, ast.Raise) and node.exc:
            raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            name = ast.unparse(raised).rpartition(".")[2]
            assert name not in ("KbtoolsError", "Exception", "BaseException"), f"line {node.lineno}"


def public(node: ast.Module | ast.ClassDef) -> Iterator[ast.FunctionDef | ast.ClassDef]:
    """The public functions, classes and methods."""
    for child in node.body:
        if isinstance(child, ast.FunctionDef | ast.ClassDef) and not child.name.startswith("_"):
            yield child
            if isinstance(child, ast.ClassDef):
                yield from public(child)


PRONOUNS = {
    *("one", "other", "found", "said", "told", "there", "here", "known", "made", "given", "shown"),
    *("seen", "asked", "meant", "wanted", "thing", "them", "those", "gone", "whole"),
}
"""They stand for a missing noun: `article`, `snippet`, `row`, `problem`, `version`, `path`."""
PRONOUNS_IN_1000_NAMES = 2
"""At most so many; only ever lowered."""


def names_in(file: Path) -> Iterator[str]:
    """Every name in the syntax tree: variables, arguments, functions and classes."""
    for node in ast.walk(tree(file)):
        match node:
            case ast.Name(id=name) | ast.arg(arg=name):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.ClassDef(name=name):
                yield name


def test_names_are_nouns() -> None:
    """A name is the noun of what it holds; few are a pronoun or a participle."""
    names = Counter(name for file in PYTHON_FILES for name in names_in(file))
    pronouns = Counter({name: count for name, count in names.items() if name in PRONOUNS})
    share = 1000 * pronouns.total() / names.total()
    assert share <= PRONOUNS_IN_1000_NAMES, pronouns.most_common(10)


@pytest.mark.parametrize("file", SOURCES, ids=name_of)
def test_docstrings(file: Path) -> None:
    """Every module, and every public function, class and method of it, says what it is."""
    module = tree(file)
    bare = [node.name for node in public(module) if not ast.get_docstring(node)]
    assert ast.get_docstring(module)
    assert bare == []


@pytest.mark.parametrize("file", PORTABLE, ids=name_of)
def test_portable(file: Path) -> None:
    """What a toolchain runs is Python 3.9 and, at the top level, standard library only."""
    module = ast.parse(file.read_text("utf-8"), feature_version=(3, 9))
    allowed = sys.stdlib_module_names - {"tomllib"}  # newer than 3.9
    allowed |= {name.removesuffix(".py") for name in ALONE}  # beside each other in one folder
    if file.parent.name in ("doctor", "probes"):  # doctor.pyz holds both
        allowed |= {"kbtools", "kb_probes"}
    assert {name.partition(".")[0] for name in imported(iter(module.body))} <= allowed
    future = [node.names[0].name for node in module.body if isinstance(node, ast.ImportFrom)]
    assert "annotations" in future, "3.9 cannot evaluate `int | None`"
    assert not any(isinstance(node, ast.Match) for node in ast.walk(module))


def texts(file: Path) -> Iterator[str]:
    """The strings of a module that are no docstrings; of another file, its text."""
    if file.suffix != ".py":
        yield file.read_text("utf-8")
        return
    nodes = list(ast.walk(tree(file)))
    bare = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in bare:
            yield node.value


KNOWS_A_PACKAGE = {
    "repro.py": "the helper that snippets about these packages import",
}
"""May name a package of `[toolchain] headline`, and why."""


def test_nothing_of_this_knowledge_base() -> None:
    """What is ours alone is configuration: the package knows no id, name, stage or component."""
    ours = config.find(ROOT)
    words = {*ours.article.stages, *ours.article.components}
    names = [re.escape(ours.knowledge_base.name), ours.id_pattern.pattern]
    names += [rf"(?<![\w.-]){word}(?![\w-])" for word in words if "-" in word]
    pattern = re.compile("|".join(names))
    templates = (PACKAGE / "articles" / "templates").rglob("*")
    files = [*SOURCES, *(file for file in templates if file.is_file())]
    assert pattern.search("see KB0002")
    assert [(name_of(f), text) for f in files for text in texts(f) if pattern.search(text)] == []


def test_no_package_by_name() -> None:
    """The packages that toolchains are named by are configuration; each exception has a reason."""
    headline = {*config.find(ROOT).toolchain.headline} - {*MACHINE}
    pattern = re.compile("|".join(rf"(?<![\w.-]){re.escape(name)}(?![\w-])" for name in headline))
    named = {
        file.relative_to(PACKAGE).as_posix()
        for file in SOURCES
        if any(pattern.search(text) for text in texts(file))
    }
    assert "torch" in headline
    assert named == set(KNOWS_A_PACKAGE)


def test_no_possessive_group() -> None:
    """Up to Python 3.11.4 it matches what it should not: python/cpython#106052."""
    possessive = re.compile(r"(?<!\\)\)(?:[*+?]|\{[\d,]*\})\+")
    matches = [
        f"{name_of(file)}:{node.lineno}"
        for file in SOURCES
        for node in ast.walk(ast.parse(file.read_bytes()))
        if isinstance(node, ast.Constant) and possessive.search(str(node.value))
    ]
    assert matches == []


def tracked() -> list[Path]:
    """Every file that git tracks and that is text."""
    process = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if process.returncode:
        pytest.skip("not a git checkout")
    files = [ROOT / name for name in process.stdout.decode().split("\0") if name]
    return [file for file in files if file.is_file() and b"\0" not in file.read_bytes()]


# in pieces, so that this file does not hold what it looks for
FOLDERS = ("work/", "root/", "tmp/" + "v/", "opt/" + "pypi", "opt/" + "wheels")
INDEXES = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "UV_INDEX_URL", "UV_DEFAULT_INDEX")


def test_nothing_of_a_machine() -> None:
    """No text file names a folder or a package index of the machine that it was written on."""
    names = [r"(?<![\w.>~*{}-])/" + re.escape(folder) for folder in FOLDERS]
    hosts = {socket.gethostname() if len(socket.gethostname()) > 7 else ""}
    for urls in filter(None, map(os.environ.get, INDEXES)):
        hosts |= {re.sub(r"^\w+://([^/@]*@)?([^/:]*).*", r"\2", url) for url in urls.split()}
    names += [re.escape(host) for host in hosts - {"", "pypi.org", "download.pytorch.org"}]
    forbidden = re.compile("|".join(names))
    matches = [
        f"{name_of(file)}:{number}: {line.strip()[:100]}"
        for file in tracked()
        for number, line in enumerate(file.read_text("utf-8", "replace").splitlines(), 1)
        if forbidden.search(line)
    ]
    assert matches == []
