"""`toolchains.toml`: what may stand in it, and which interpreter a name stands for."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from kbtools import config
from kbtools.config import Config, KbtoolsError
from kbtools.toolchains import declared, environments
from kbtools.toolchains.declared import Declaration
from kbtools.toolchains.environments import BuildRecord


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Config:
    """The configuration of a knowledge base with its own folder of toolchains."""
    monkeypatch.delenv(environments.FOLDER, raising=False)
    return config.decode('[knowledge-base]\nname = "a test"\nprefix = "KB"\n', tmp_path)


def declare(base: Config, text: str) -> None:
    """Writes `toolchains.toml`."""
    (base.root / declared.FILE).write_text(text, "utf-8")


def refusal(base: Config, word: str = "x") -> str:
    """The message when a toolchain cannot be found."""
    with pytest.raises(KbtoolsError) as caught:
        environments.find_environment(base, word)
    return str(caught.value)


def pretend(base: Config, name: str, recipe: str, python: str = sys.executable) -> Path:
    """Makes a folder that looks like a complete environment."""
    place = environments.environments_folder(base) / name
    (place / "bin").mkdir(parents=True)
    (place / "bin" / "python").symlink_to(python)
    text = f'{{"recipe": "{recipe}", "installer": "", "size": 1, "shared": 0, "seconds": 1}}'
    (place / BuildRecord.FILE).write_text(text, "utf-8")
    return place


def test_without_a_file_nothing_is_declared(base: Config) -> None:
    """A knowledge base need not declare toolchains; the interpreter at hand is always there."""
    assert declared.read_declarations(base) == {}
    assert environments.find_environment(base, None).python == sys.executable


def test_every_problem_is_named_at_once(base: Config) -> None:
    """Problems of all tables come together, each with file, line and place in its table."""
    declare(
        base,
        '[one]\npython = "3.11"\npakages = []\n\n[two]\npackages = ["numpy"]\n\n'
        '[three]\npython = "3.11"\npackages = ["numpy==2", "torch=2.5"]\n'
        'before = ["???"]\npath = ["../bin"]\n\n[four]\npython = 3.11\n',
    )
    problems = refusal(base).splitlines()
    file = base.root / declared.FILE
    assert problems[0].startswith(f"{file}:1: one: unknown key `pakages`; the keys are: articles, ")
    assert problems[1] == f"{file}:5: two: missing required field `python`"
    assert problems[2].startswith(f"{file}:8: three.packages[1]: invalid requirement `torch=2.5`: ")
    assert problems[3].startswith(f"{file}:8: three.before[0]: invalid requirement `???`: ")
    assert (
        problems[4]
        == f"{file}:8: three: `../bin` is not below the folder of the installed packages"
    )
    assert problems[5] == f"{file}:14: four: Expected `str`, got `float` - at `python`"
    assert len(problems) == 6


def test_a_name_with_a_dot_needs_quotes(base: Config) -> None:
    """`[triton-2.3]` means something else in TOML; the message says what to write instead."""
    declare(base, '[triton-2.3]\npython = "3.11"\n')
    assert 'put a name with a dot in quotes: ["triton-2.3"]' in refusal(base)
    declare(base, '["triton-2.3"]\npython = "3.11"\n')
    assert set(declared.read_declarations(base)) == {"triton-2.3"}


@pytest.mark.parametrize("name", ["../up", ".hidden", "a/b", "", "a b"])
def test_a_name_is_no_path(base: Config, name: str) -> None:
    """A name can lead nowhere but into the folder of toolchains."""
    declare(base, f'["{name}"]\npython = "3.11"\n')
    assert f"invalid name `{name}`" in refusal(base)


def test_not_toml(base: Config) -> None:
    """A file that is not TOML, or not text, is named with what is wrong."""
    declare(base, "[one\n")
    assert str(base.root / declared.FILE) in refusal(base)
    (base.root / declared.FILE).write_bytes(b"\xff\xfe")
    assert str(base.root / declared.FILE) in refusal(base)


def test_not_synced(base: Config) -> None:
    """A declared environment that is not here says the command that builds it, and its size."""
    declare(base, '[x]\npython = "3.11"\npackages = ["numpy"]\nsize-gb = 5.2\n')
    assert "kbtools toolchain sync x (about 5.2 GB)" in refusal(base)


def test_a_changed_declaration_makes_stale(base: Config) -> None:
    """What was built from other packages is not used; purpose and size may change."""
    declaration = Declaration("3.11", packages=("numpy",))
    pretend(base, "x", declaration.recipe)
    declare(base, '[x]\npython = "3.11"\npackages = ["numpy"]\npurpose = "new"\nsize-gb = 1\n')
    assert environments.find_environment(base, "x").python.endswith("x/bin/python")
    declare(base, '[x]\npython = "3.11"\npackages = ["numpy==2.0.0"]\n')
    assert "was built from another declaration than toolchains.toml has now" in refusal(base)
    assert environments.state_of(base, "x", declared.read_declarations(base)["x"]) == "stale"


def test_variables_make_another_environment(base: Config) -> None:
    """The variables of the installation are a part of what was built, whatever their order."""
    plain = Declaration("3.11", packages=("numpy",))
    first = Declaration("3.11", packages=("numpy",), environment={"A": "1", "B": "2"})
    second = Declaration("3.11", packages=("numpy",), environment={"B": "2", "A": "1"})
    assert first.recipe == second.recipe != plain.recipe
    pretend(base, "x", plain.recipe)
    declare(base, '[x]\npython = "3.11"\npackages = ["numpy"]\nenvironment = {A = "1"}\n')
    assert "was built from another declaration" in refusal(base)


def test_variables_that_are_refused(base: Config) -> None:
    """A toolchain sets no variable that decides which programs run or where files go."""
    names = ("PATH", "PYTHONPATH", "UV_CACHE_DIR", "LD_PRELOAD", "tmpdir", "A=B", "")
    table = ", ".join(f'"{name}" = "x"' for name in names)
    declare(base, f'[x]\npython = "3.11"\nenvironment = {{{table}, LDFLAGS = "-s"}}\n')
    problems = [line.partition(" ")[2] for line in refusal(base).splitlines()]
    assert problems == [
        *(f"x.environment: a toolchain must not set `{name}`" for name in names[:5]),
        *(f"x.environment: `{name}` is not the name of a variable" for name in names[5:]),
    ]
    declare(base, '[x]\npython = "3.11"\nenvironment = {MAX_JOBS = 1}\n')
    assert "x: Expected `str`, got `int` - at `environment[...]`" in refusal(base)
    declare(base, '[x]\npython = "3.11"\nenvironment = {MAX_JOBS = "\\u0000"}\n')
    assert "the value of `MAX_JOBS` has a NUL character" in refusal(base)


def test_a_python_that_was_removed(base: Config) -> None:
    """An environment whose base interpreter was removed is broken, and says so."""
    pretend(base, "x", Declaration("3.11").recipe, python=str(base.root / "gone"))
    declare(base, '[x]\npython = "3.11"\n')
    assert "has lost the Python that it was built from" in refusal(base)


def test_half_built_is_not_ready(base: Config) -> None:
    """Without its mark, or with one cut short, a folder is no environment."""
    place = pretend(base, "x", Declaration("3.11").recipe)
    declare(base, '[x]\npython = "3.11"\n')
    assert environments.find_environment(base, "x").name == "x"
    (place / BuildRecord.FILE).write_text('{"recipe": "', "utf-8")
    assert "is not on this machine yet" in refusal(base)


def test_an_interpreter_of_your_own(base: Config) -> None:
    """A path without packages is used as it is, relative to the knowledge base."""
    (base.root / "mine").symlink_to(sys.executable)
    declare(base, '[x]\npython = "mine"\n\n[y]\npython = "nothing"\n')
    assert environments.find_environment(base, "x").python == str(base.root / "mine")
    assert "nothing is not an interpreter that can be run" in refusal(base, "y")


def test_an_unknown_name(base: Config) -> None:
    """A word that is neither declared nor an interpreter says what is declared."""
    declare(base, '[one]\npython = "3.11"\n[two]\npython = "3.11"\n')
    assert "no toolchain `x`: neither in toolchains.toml (one, two)" in refusal(base)


def test_the_shared_folder(base: Config, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A variable names the folder of toolchains; empty, it counts as not set."""
    monkeypatch.setenv(environments.FOLDER, "")
    assert environments.environments_folder(base) == base.root / ".kbtools" / "toolchains"
    monkeypatch.setenv(environments.FOLDER, str(tmp_path / "shared"))
    assert environments.environments_folder(base) == tmp_path / "shared"


def test_our_own_file() -> None:
    """The toolchains of this repository are as they should be, each with a purpose and a size."""
    declarations = declared.read_declarations(config.find(Path(__file__).parent))
    assert declarations
    assert all(
        declaration.purpose and declaration.size_gb
        for declaration in declarations.values()
        if declaration.is_built
    )
