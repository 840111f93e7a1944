"""`kbtools doctor` and `doctor.pyz`: what they see, what they say, and what they do not say."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import msgspec
import pytest
from packaging.specifiers import SpecifierSet

from kbtools import config
from kbtools.doctor import bundle, elf, planting
from kbtools.doctor.loader import Loader
from kbtools.doctor.machine import Machine, Unanswered, interpreter_of
from kbtools.doctor.planted_elf import LibrarySpec, content_of
from kbtools.doctor.planting import MachineSpec, plant
from kbtools.doctor.probe import Finding, Probe, examine
from kbtools.doctor.ranges import within
from kbtools.doctor.redaction import redacted
from kbtools.evidence.board import Board
from kbtools.site.data import doctor_file
from kbtools.site.model import SiteModel
from kbtools.site.pages.probes import probe_pages

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The `doctor.pyz` of this knowledge base."""
    settings = config.find(ROOT)
    file = tmp_path_factory.mktemp("doctor") / bundle.FILE
    file.write_bytes(bundle.build(settings, bundle.probes_of(settings)))
    return file


def pythons() -> list[str]:
    """The Python of the tests, and one of 3.9 if there is one."""
    oldest = shutil.which("python3.9")
    works = oldest and not subprocess.run([oldest, "-c", ""], capture_output=True).returncode
    folders = sorted(Path.home().glob(".pyenv/versions/3.9*/bin/python"))
    return [sys.executable, *([str(oldest)] if works else map(str, folders[:1]))]


def run(*command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs a command with more variables."""
    environment = {**os.environ, **variables}
    return subprocess.run(command, capture_output=True, text=True, env=environment, check=False)


@pytest.mark.parametrize("python", pythons())
def test_one_file_runs_alone(archive: Path, tmp_path: Path, python: str) -> None:
    """With the standard library alone, in a folder that stays empty, in under three seconds."""
    process = run(python, "-I", str(archive), "--json", HOME=str(tmp_path), PWD=str(tmp_path))
    assert process.stderr == ""
    record = json.loads(process.stdout)
    assert record["schema"] == 1
    assert record["probes"] >= 5
    assert record["seconds"] < 3
    assert process.returncode == any(finding["level"] == "fault" for finding in record["findings"])
    assert list(tmp_path.iterdir()) == []
    assert list(archive.parent.iterdir()) == [archive]


def test_one_file_is_always_the_same(archive: Path) -> None:
    """Equal content makes equal bytes; nothing in it is compressed, and no member has a date."""
    settings = config.find(ROOT)
    assert bundle.build(settings, bundle.probes_of(settings)) == archive.read_bytes()
    with zipfile.ZipFile(archive) as members:
        entries = members.infolist()
    assert {entry.date_time[0] for entry in entries} == {1980}
    assert {entry.compress_type for entry in entries} == {zipfile.ZIP_STORED}


def test_another_interpreter(archive: Path, tmp_path: Path) -> None:
    """`--python` looks at the packages of another one, and says so if it cannot be run."""
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    python.chmod(0o755)
    process = run(sys.executable, str(archive), "--json", "--python", str(python))
    assert json.loads(process.stdout)["versions"] == {}
    process = run(sys.executable, str(archive), "--python", str(tmp_path / "none"))
    assert (process.returncode, process.stdout) == (2, "")
    assert "did not start" in process.stderr
    assert run(sys.executable, str(archive), "--colour").returncode == 2


def test_the_command_says_the_same(archive: Path) -> None:
    """`kbtools doctor` and the file find the same, of a cache that no other test fills."""
    cache = str(archive.parent / "inductor")
    answers = [
        run(sys.executable, *command, "--json", TORCHINDUCTOR_CACHE_DIR=cache)
        for command in ((str(archive),), ("-m", "kbtools", "-C", str(ROOT), "doctor"))
    ]
    first, second = (json.loads(answer.stdout) for answer in answers)
    assert [f["probe"] for f in first["findings"]] == [f["probe"] for f in second["findings"]]
    assert first["versions"] == second["versions"]
    assert answers[0].returncode == answers[1].returncode


def test_a_base_without_probes(tmp_path: Path) -> None:
    """It has nothing to look for, and says so."""
    (tmp_path / "kbtools.toml").write_text('[knowledge-base]\nname = "Practice"\nprefix = "TRY"\n')
    process = run(sys.executable, "-m", "kbtools", "-C", str(tmp_path), "doctor", "--lang", "en")
    assert process.returncode == 0
    assert "0 probes" in process.stdout
    assert "Practice has no probes, so nothing was looked for" in process.stderr


def test_the_interpreter_of_kbtools_is_not_that_of_the_user(tmp_path: Path) -> None:
    """Where kbtools has an environment of its own, its packages say nothing of the user's."""
    base = (
        '[knowledge-base]\nname = "Practice"\nprefix = "TRY"\n[toolchain]\nheadline = ["absent"]\n'
    )
    (tmp_path / "kbtools.toml").write_text(base)
    command = (sys.executable, "-m", "kbtools", "-C", str(tmp_path), "doctor")
    assert "has no absent; to look at yours: kbtools doctor --python" in run(*command).stderr
    assert "to look at yours" not in run(*command, "--python", sys.executable).stderr


ENVIRONMENT = {"HOME": "/home/ada", "USER": "ada", "HOSTNAME": "node17.lab.example"}


@pytest.mark.parametrize(
    ("text", "public"),
    [
        ("/home/ada/.cache/torch_extensions", "~/.cache/torch_extensions"),
        ("/home/grace/venv/bin/python", "/home/USER/venv/bin/python"),
        ("/scratch/ada/venv", "/scratch/USER/venv"),
        ("on node17.lab.example and node17", "on HOST and HOST"),
        ("http_proxy=http://ada:secret@proxy.corp.example:3128", "http_proxy=http://HOST:3128"),
        ("https://pypi.corp.example/simple", "https://HOST/simple"),
        ("HF_TOKEN=hf_abcdefghijklmnop", "HF_TOKEN=TOKEN"),
        ("ghp_0123456789abcdefghij0123456789abcdef", "TOKEN"),
        ("MASTER_ADDR=10.1.2.3", "MASTER_ADDR=ADDRESS"),
        ("torch 2.8.0+cu128, driver 570.133.20", "torch 2.8.0+cu128, driver 570.133.20"),
        ("nvidia-cudnn-cu12 9.10.2.21", "nvidia-cudnn-cu12 9.10.2.21"),
        ("https://download.pytorch.org/whl/cu128", "https://download.pytorch.org/whl/cu128"),
        ("Canada", "Canada"),
    ],
)
def test_redaction(text: str, public: str) -> None:
    """An issue learns no name, no host and no token, and keeps what helps."""
    assert redacted(text, ENVIRONMENT) == public


@pytest.mark.parametrize(
    "version", ["2.8.0", "2.8", "2.8.1", "2.9.0+cu128", "3.0", "2.10.0", "2.7.1", "0.0.29.post3"]
)
@pytest.mark.parametrize(
    "specifier",
    ["==2.8.0", "==2.8.*", "!=2.8.*", ">=2.8,<2.10", "~=2.8.0", "~=2.8", "<=2.8", "==0.0.29.post3"],
)
def test_ranges_are_those_of_pep_440(version: str, specifier: str) -> None:
    """A release is in a range when `packaging` says so."""
    assert within(version, specifier) == SpecifierSet(specifier).contains(version)


def test_a_prerelease_on_a_bound_is_unknown() -> None:
    """A nightly of 2.8.0 may have what 2.8.0 has, or not."""
    assert within("2.8.0.dev20250401", "<2.8") is None
    assert within("2.8.0.dev20250401", "<2.9") is True


def test_headers_of_a_real_library(tmp_path: Path) -> None:
    """What gcc writes is read as it was meant."""
    if not shutil.which("gcc"):
        pytest.skip("no gcc")
    (tmp_path / "a.c").write_text("int other(void); int own(void) { return other(); }\n")
    (tmp_path / "v.map").write_text("A_1 { global: own; local: *; };\n")
    flags = (
        "-shared -fPIC a.c -nostdlib -Wl,-soname,liba.so.1,--hash-style=gnu,--version-script,v.map"
    )
    rpath = "-Wl,-rpath,$ORIGIN/lib,--enable-new-dtags"
    command = ["gcc", *flags.split(), rpath, "-o", "liba.so.1"]
    subprocess.run(command, cwd=tmp_path, check=True)
    library = elf.Library(str(tmp_path / "liba.so.1"))
    assert library.soname == "liba.so.1"
    assert (library.rpath, library.runpath) == ([], ["$ORIGIN/lib"])
    assert library.defines("own") is True
    assert library.defines("other") is False
    assert [symbol.name for symbol in library.undefined() if not symbol.weak] == ["other"]
    assert "A_1" in library.defined_versions()
    library.close()


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"\x7fELF\x02\x01" + b"\xff" * 200, b"no"])
def test_a_broken_library_is_an_error(tmp_path: Path, content: bytes) -> None:
    """Not a crash: an interrupted download is what one looks for."""
    file = tmp_path / "x.so"
    file.write_bytes(content)
    with pytest.raises(ValueError, match=r".*"):
        elf.Library(str(file))


def test_a_planted_library_is_read_back(tmp_path: Path) -> None:
    """What cases plant is what probes read."""
    spec = LibrarySpec(
        soname="libx.so.1",
        needed=("liby.so.2", "libz.so"),
        rpath="/a:/b",
        defines=("f", "g", "h"),
        undefined=("u",),
        needs_versions={"libstdc++.so.6": ("GLIBCXX_3.4", "GLIBCXX_3.4.32"), "liby.so.2": ("Y_1",)},
        defines_versions=("X_1", "X_2"),
        text="sm_90",
    )
    file = tmp_path / "libx.so.1"
    file.write_bytes(content_of(spec))
    library = elf.Library(str(file))
    assert (library.soname, library.needed) == ("libx.so.1", ["liby.so.2", "libz.so"])
    assert library.rpath == ["/a", "/b"]
    assert [library.defines(name) for name in "fghu"] == [True, True, True, False]
    assert [symbol.name for symbol in library.undefined()] == ["u"]
    assert library.needed_versions() == {k: set(v) for k, v in spec.needs_versions.items()}
    assert library.defined_versions() == {"X_1", "X_2"}
    assert library.search(rb"sm_\d+") == b"sm_90"
    library.close()


@pytest.mark.parametrize(
    ("kind", "folder", "by"),
    [("rpath", "/wheel", "RPATH"), ("runpath", "/system", "LD_LIBRARY_PATH")],
)
def test_the_loader_prefers_as_glibc_does(tmp_path: Path, kind: str, folder: str, by: str) -> None:
    """`LD_LIBRARY_PATH` comes after an RPATH and before a RUNPATH."""
    asking = LibrarySpec(needed=("libb.so.1",))
    spec = MachineSpec(
        environment={"LD_LIBRARY_PATH": "/system"},
        libraries={
            "/app/liba.so": msgspec.structs.replace(asking, **{kind: "$ORIGIN/../wheel"}),
            "/wheel/libb.so.1": LibrarySpec(soname="libb.so.1", needed=("libc.so.9",)),
            "/system/libb.so.1": LibrarySpec(soname="libb.so.1"),
        },
    )
    loader = Loader(plant(spec, tmp_path))
    assert loader.load("/app/liba.so")
    assert loader.loaded["libb.so.1"][:2] == (f"{folder}/libb.so.1", by)
    assert [missing.name for missing in loader.missing] == ["libc.so.9"][: folder == "/wheel"]


def broken(machine: Machine) -> list[Finding]:
    """Raises what a mistake in a probe does."""
    raise KeyError("x")


def unsure(machine: Machine) -> list[Finding]:
    """Says that it cannot tell."""
    raise Unanswered("no nvidia-smi")


def test_a_probe_that_fails_stops_no_other(tmp_path: Path) -> None:
    """It is told as unanswered, with the reason."""
    probes = [
        Probe(function.__name__, "TRY0001", "x", "fault", "", False, function)
        for function in (broken, unsure)
    ]
    answers = list(examine(plant(MachineSpec(), tmp_path), probes))
    assert [answer.unanswered.partition(" (")[0] for answer in answers] == [
        "KeyError: 'x'",
        "no nvidia-smi",
    ]


def test_a_program_that_hangs_is_left_alone() -> None:
    """After the time that is left for all of them, none is started any more."""
    machine = Machine(interpreter_of(sys.executable, os.environ, 10), seconds=0.5)
    assert machine.python("import time; time.sleep(60)", 60) is None
    assert machine.run(["true"]) is None


def test_cases_that_cannot_be_read(tmp_path: Path) -> None:
    """An unknown key of a case is an error that names the folder."""
    (tmp_path / "pieces.toml").write_text("[pieces]\n")
    (tmp_path / "x.toml").write_text("[[a.finds]]\npackage = 1\n")
    with pytest.raises(planting.CaseError, match="package"):
        planting.read(tmp_path)


def test_the_site_offers_the_file(tmp_path: Path) -> None:
    """A page in each language names every probe and its article, and the file is the same."""
    settings = config.find(ROOT)
    model = SiteModel(settings, (), Board((), ()))
    files = dict(doctor_file(model))
    assert files == {bundle.FILE: bundle.build(settings, bundle.probes_of(settings))}
    for language in ("en", "zh"):
        ((path, content),) = probe_pages(model, language)
        assert b"doctor.pyz&#10;python3 doctor.pyz --python" in content  # a line for each command
        assert path == ("probes.md" if language == "en" else "zh/probes.md")
        for probe in bundle.probes_of(settings):
            assert f'id="{probe.id}"' in content.decode()
            assert f"{probe.article}/" in content.decode()
    empty = msgspec.structs.replace(model, config=msgspec.structs.replace(settings, root=tmp_path))
    assert list(doctor_file(empty)) == list(probe_pages(empty, "en")) == []
