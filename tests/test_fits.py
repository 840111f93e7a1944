"""Which versions go together: a search among rows, why no newer ones, and what nobody knows."""

from __future__ import annotations

import datetime
import json
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from commands import run_command

from kbtools import config
from kbtools.reports import fits as printer
from kbtools.tables import store
from kbtools.tables.answers import Fit, WantError
from kbtools.tables.declared import Tables
from kbtools.tables.explaining import fit
from kbtools.tables.machines import Machine, MachineError, runs_on
from kbtools.tables.model import Origin, Release, Statement

ROOT = Path(__file__).parent.parent
QUESTIONS = tomllib.loads((Path(__file__).parent / "fits_questions.toml").read_text())["question"]
DAY = datetime.date(2026, 1, 31)
MACHINE = Machine("3.12", "linux-x86_64")


def release(package: str, version: str, *requires: str, **more: Any) -> Release:
    """A row; as if a wheel for Python 3.12 on Linux said so."""
    values = {"platform": "linux-x86_64", "tags": ("cp312-cp312",), "requires": requires} | more
    source = Origin(f"{package}-{version}.whl")
    return Release(package=package, version=version, source=source, date=DAY, **values)


def base(*rows: Release | Statement) -> store.Base:
    """Tables of these rows, new to old."""
    releases: dict[str, tuple[Release, ...]] = {}
    for row in rows:
        if isinstance(row, Release):
            releases[row.package] = (*releases.get(row.package, ()), row)
    statements = tuple(row for row in rows if isinstance(row, Statement))
    return store.Base(Tables(default=("engine",)), releases, {"said": statements})


ENGINES = (
    release("engine", "3.0", facts={"cuda": ("13.0",), "architectures": ("sm_75", "sm_120")}),
    release("engine", "2.0", facts={"cuda": ("12.8",), "architectures": ("sm_70", "sm_120")}),
    release("engine", "1.0", facts={"cuda": ("12.1",), "architectures": ("sm_70", "sm_90")}),
)
DRIVER = Statement(
    about={"cuda": ">=13,<14"},
    source=Origin("https://example.org"),
    date=DAY,
    basis="reported",
    needs={"driver": ">=580"},
)


def reasons(answer: Fit) -> dict[str, str]:
    """Package and version → why it was passed over."""
    return {f"{r.package} {r.version}": r.reason.text for r in answer.refusals}


@pytest.mark.parametrize(
    ("sm", "targets", "runs"),
    [
        ("8.9", ["sm_86"], True),
        ("8.0", ["sm_86"], False),
        ("9.0", ["sm_80"], False),
        ("12.1", ["sm_120"], True),
        ("10.3", ["sm_100a"], False),
        ("10.0", ["sm_100a"], True),
        ("10.3", ["sm_100f"], True),
        ("12.0", ["compute_90"], True),
        ("8.9", ["compute_90"], False),
        ("8.9", ["what"], False),
    ],
)
def test_which_code_runs(sm: str, targets: list[str], runs: bool) -> None:
    """Machine code runs within its major version, PTX on all that is newer."""
    assert runs_on(sm, targets) is runs


def test_the_newest_for_a_gpu_and_a_driver() -> None:
    """A GPU and a driver each pass over what is not for them, and the row is named."""
    rows = base(*ENGINES, DRIVER)
    assert fit(rows, MACHINE, ()).versions == {"engine": "3.0"}
    volta = fit(rows, Machine("3.12", "linux-x86_64", sm="7.0"), ["engine"])
    assert volta.versions == {"engine": "2.0"}
    assert reasons(volta) == {
        "engine 3.0": "engine 3.0 for linux-x86_64 has code for sm_75 sm_120, none for 7.0"
    }
    old = fit(rows, Machine("3.12", "linux-x86_64", driver="550.54"), ["engine"])
    assert old.line == ("engine==2.0",)
    [refusal] = old.refusals
    assert refusal.reason.text == "cuda 13.0 needs driver >=580; yours is 550.54"
    assert refusal.reason.basis == "reported"


def test_what_is_not_known() -> None:
    """Without a driver the need of one is named; so is a package without a table."""
    answer = fit(base(*ENGINES, DRIVER), MACHINE, ["engine", "mystery>1"])
    assert "no table has mystery" in answer.unknown
    assert any("driver >=580" in text for text in answer.unknown)
    assert answer.line == ("engine==3.0", "mystery>1")
    too_new = fit(base(*ENGINES, DRIVER), MACHINE, ["engine>=99"])
    assert too_new.unknown[0] == "no row of engine is as you asked: they go from 1.0 to 3.0"


def test_a_row_of_another_python() -> None:
    """Where the row was read off the wheel of another Python, the answer says so."""
    source = Origin("engine-1.0-cp314-cp314-manylinux_2_28_x86_64.whl")
    row = release("engine", "1.0", tags=("cp312-cp312", "cp314-cp314"))
    rows = base(msgspec.structs.replace(row, source=source))
    answer = fit(rows, MACHINE, ["engine"])
    assert answer.versions == {"engine": "1.0"}
    assert any("wheels for Python 3.12 of engine 1.0" in text for text in answer.unknown)
    assert f"[1] {source.file}  (for another Python)" in printer.answer(answer, (), {})
    own = fit(rows, Machine("3.14", "linux-x86_64"), ["engine"])
    assert not any("wheels for" in text for text in own.unknown)
    assert f"[1] {source.file}" == printer.answer(own, (), {}).splitlines()[-1].strip()


def test_the_c_library() -> None:
    """A wheel for a newer glibc is passed over; without one given, its need is named."""
    rows = base(release("engine", "2.0", glibc="2.34"), release("engine", "1.0", glibc="2.17"))
    old = fit(rows, Machine("3.12", "linux-x86_64", glibc="2.28"), ["engine"])
    assert old.versions == {"engine": "1.0"}
    assert reasons(old) == {"engine 2.0": "the wheels of engine 2.0 need glibc 2.34"}
    assert any("glibc 2.34" in text for text in fit(rows, MACHINE, ["engine"]).unknown)


def test_what_needs_others_decides() -> None:
    """The newest server decides about its engine, and no old loose server is dug out."""
    servers = (
        release("server", "9.0", "engine==2.0", "other"),
        release("server", "8.0", "engine>=1"),
    )
    answer = fit(base(*ENGINES, *servers), MACHINE, ["engine", "server"])
    assert answer.versions == {"server": "9.0", "engine": "2.0"}
    assert reasons(answer)["engine 3.0"] == "server 9.0 requires engine==2.0"
    only = fit(base(*ENGINES, *servers), MACHINE, ["server"])
    assert only.line == ("server==9.0",)  # an installer takes engine 2.0 by itself
    old = Machine("3.12", "linux-x86_64", driver="550")
    loose = fit(base(*ENGINES, servers[1], DRIVER), old, ["server"])
    assert loose.line == ("server==8.0", "engine==2.0")  # it would take 3.0


def test_a_reason_behind_a_reason() -> None:
    """A server is passed over since the engine that it requires is not for the machine."""
    servers = (release("server", "9.0", "engine==3.0"), release("server", "8.0", "engine==2.0"))
    machine = Machine("3.12", "linux-x86_64", sm="7.0")
    answer = fit(base(*ENGINES, *servers), machine, ["server"])
    assert answer.versions == {"server": "8.0", "engine": "2.0"}
    assert "requires engine==3.0; engine 3.0 for" in reasons(answer)["server 9.0"]


def test_markers_and_extras() -> None:
    """A requirement counts where its marker holds: for an extra only if it is asked for."""
    server = release(
        "server",
        "9.0",
        "engine==1.0; extra == 'gpu'",
        "engine==2.0; sys_platform == 'win32'",
        platform="any",
        tags=("py3-none",),
    )
    rows = base(*ENGINES, server)
    assert fit(rows, MACHINE, ["server"]).versions == {"server": "9.0"}
    answer = fit(rows, MACHINE, ["server[gpu]"])
    assert answer.versions == {"server": "9.0", "engine": "1.0"}
    assert answer.line == ("server[gpu]==9.0",)


def test_pythons_and_sources() -> None:
    """No wheel for a Python is a reason; a source archive fits, and says that it is built."""
    rows = base(
        release("engine", "3.0", tags=("cp313-cp313t",)),
        release("engine", "2.0", requires_python=">=3.13"),
        release("engine", "1.0", platform="source", tags=(), requires=None),
    )
    answer = fit(rows, MACHINE, ["engine"])
    assert answer.versions == {"engine": "1.0"}
    assert "no wheel for Python 3.12" in reasons(answer)["engine 3.0"]
    assert reasons(answer)["engine 2.0"] == "engine 2.0 needs Python >=3.13"
    assert any("built on your machine" in text for text in answer.unknown)
    assert any("its source archive does not say" in text for text in answer.unknown)


def test_a_run_decides() -> None:
    """What a run showed not to work together is passed over."""
    run = Statement(
        about={"engine": "==3.0", "sm": "==12.0"},
        source=Origin("run.py"),
        date=DAY,
        basis="measured",
        works=False,
        note="no such target",
    )
    answer = fit(base(*ENGINES, run), Machine("3.12", "linux-x86_64", sm="12.0"), ["engine"])
    assert answer.versions == {"engine": "2.0"}
    assert reasons(answer)["engine 3.0"].endswith("does not work: no such target")


def test_questions_that_cannot_be_read() -> None:
    """Each is an error that names the word."""
    for values in (("3", "linux-x86_64"), ("3.12", "amiga")):
        with pytest.raises(MachineError, match=values[0] if values[0] == "3" else "amiga"):
            Machine(*values)
    with pytest.raises(WantError, match="==broken"):
        fit(base(*ENGINES), MACHINE, ["==broken"])


@pytest.mark.parametrize("question", QUESTIONS, ids=[q["thread"] for q in QUESTIONS])
def test_questions_of_threads(question: dict[str, Any]) -> None:
    """Our tables answer as the thread ended."""
    machine = Machine(
        question["python"],
        question.get("platform", "linux-x86_64"),
        sm=question.get("sm", ""),
        driver=question.get("driver", ""),
    )
    answer = fit(store.read(config.find(ROOT)), machine, question["wants"])
    expected = question.get("expect", {})
    assert bool(answer.choices) == bool(expected)
    for package, version in expected.items():
        assert f"{answer.versions[package]}.".startswith(f"{version}.")
    if why := question.get("why"):
        assert any(why in refusal.reason.text for refusal in answer.refusals), answer.refusals


def test_a_base_without_tables(tmp_path: Path) -> None:
    """It cannot answer, and says so, not that nothing fits."""
    (tmp_path / "kbtools.toml").write_text('[knowledge-base]\nname = "Practice"\nprefix = "TRY"\n')
    result = run_command(tmp_path, "fits", "engine")
    assert (result.exit_code, result.stdout) == (3, "")
    assert "Practice has no tables of releases" in result.stderr


def test_the_command() -> None:
    """It prints the line to type, the rows, and what is not known; 3 if nothing fits."""
    words = ("fits", "torch", "--python", "3.13", "--platform", "linux-x86_64", "--gpu", "RTX 5090")
    result = run_command(ROOT, *words, "--driver", "570.86")
    assert result.exit_code == 0, result.output
    assert "  pip install torch==2.10.0\n" in result.output
    assert "needs driver >=580; yours is 570.86" in result.output
    assert "(reported)" in result.output
    answer = json.loads(run_command(ROOT, *words, "--json").stdout)
    assert answer["line"][0].startswith("torch==")
    assert {"choices", "refusals", "unknown", "failures"} <= answer.keys()
    refused = run_command(ROOT, "fits", "torch==2.4.*", "--python", "3.13")
    assert refused.exit_code == 3
    assert "no releases go together" in refused.output
    assert "no failure is known" not in refused.output, "no versions, no answer about them"
