"""Tables are read off wheels and sources, stay as they were read, and say where."""

from __future__ import annotations

import datetime
import hashlib
import http.server
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import run_command
from wheels import Shelf

from kbtools import config
from kbtools.tables import archives, store
from kbtools.tables.declared import TablesError, read_tables
from kbtools.tables.files import pairs_of, parse, pythons_of
from kbtools.toolchains.pip_settings import PipSettings

TABLES = """
requires = ["engine", "wheelset"]

[distributions.engine]
releases = ">=2"
[distributions.engine.facts]
cuda = { member = "engine/version.py", pattern = "cuda = '([0-9.]+)'" }
architectures = { member = "engine/_C.so", pattern = '(?:sm_\\d+ ?)+', split = true }
libraries = { pattern = 'engine/lib(\\d+)\\.so' }

[distributions.server]

[programs.kernels]
script = "tables/kernels.py"

[reported.drivers]
source = "https://example.org/drivers"
read = "2026-01-31"
statements = [{ about = { cuda = ">=13,<14" }, needs = { driver = ">=580" } }]
"""
LINUX = "cp312-cp312-manylinux_2_28_x86_64"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A knowledge base with a `tables.toml`."""
    base = tmp_path / "base"
    (base / "kb").mkdir(parents=True)
    (base / "kbtools.toml").write_text('[knowledge-base]\nname = "a test"\nprefix = "KB"\n')
    (base / "tables.toml").write_text(TABLES)
    return base


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    """The index that pip is configured with."""
    shelf = Shelf(tmp_path / "index")
    for name in ("PIP_EXTRA_INDEX_URL", "PIP_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_INDEX_URL", shelf.url)
    engine = {"engine/version.py": "cuda = '13.0'\n", "engine/_C.so": "x\0sm_80 sm_90\0y"}
    shelf.wheel("engine", "1.0", tag=LINUX)
    shelf.wheel(
        "engine", "2.0", "wheelset==2; python_version>'3'", "other", tag=LINUX, files=engine
    )
    shelf.wheel("engine", "2.0", tag=LINUX.replace("312", "311"), files=engine)
    shelf.wheel("engine", "2.1rc1", tag=LINUX)
    shelf.wheel("engine", "2.0", tag="cp312-cp312-win_amd64")
    shelf.wheel("server", "0.5", "engine==2.0", python=">=3.9")
    shelf.source("server", "0.5")
    shelf.source("server", "0.6", "engine>=2")
    return shelf


def test_what_a_file_name_says() -> None:
    """Platform, tags and glibc of a wheel; a source archive has none; other files are none."""
    wheel = parse("engine-2.0-3-cp312-abi3-manylinux2014_x86_64.manylinux_2_17_x86_64.whl")
    assert wheel is not None
    assert (wheel.platform, wheel.tags, wheel.glibc) == ("linux-x86_64", ("cp312-abi3",), "2.17")
    assert wheel.build == 3
    source = parse("engine-2.0.tar.gz")
    assert source is not None
    assert (source.platform, source.tags) == ("source", ())
    assert parse("engine-2.0.exe") is None
    names = {
        "macosx_11_0_arm64": "macos-arm64",
        "win_amd64": "win-amd64",
        "any": "any",
        "musllinux_1_2_x86_64": "musllinux-x86_64",
        "manylinux_2_28_aarch64": "linux-aarch64",
    }
    for platform, name in names.items():
        named = parse(f"engine-2.0-py3-none-{platform}.whl")
        assert named is not None
        assert named.platform == name


def test_which_pythons_take_a_tag() -> None:
    """A stable ABI is for newer Pythons, too, but not for those without the global lock."""
    pythons = ("3.11", "3.12", "3.13", "3.13t")
    assert pythons_of(["cp312-abi3"], pythons) == ("3.12", "3.13")
    assert pythons_of(["cp313-cp313t"], pythons) == ("3.13t",)
    assert pythons_of(["py3-none"], pythons) == pythons
    assert "cp312-cp312" not in pairs_of("3.13")


def test_sync(root: Path, shelf: Shelf) -> None:
    """A row for each release and platform: tags, requirements, facts, and where it was read."""
    result = run_command(root, "tables", "sync")
    assert result.exit_code == 0, result.output
    base = store.read(config.find(root))
    [engine] = base.releases["engine"]
    assert (engine.version, engine.platform) == ("2.0", "linux-x86_64")
    assert engine.tags == ("cp311-cp311", "cp312-cp312")
    assert engine.requires == ('wheelset==2; python_version > "3"',)
    assert engine.facts == {
        "cuda": ("13.0",),
        "architectures": ("sm_80", "sm_90"),
        "libraries": (),
    }
    assert engine.source.file == f"engine-2.0-{LINUX}.whl"
    assert engine.date == datetime.datetime.now(datetime.UTC).date()
    versions = [(r.version, r.platform, r.requires) for r in base.releases["server"]]
    assert versions == [("0.6", "source", ("engine>=2",)), ("0.5", "any", ("engine==2.0",))]
    assert base.releases["server"][1].requires_python == ">=3.9"
    [driver] = base.statements["drivers"]
    assert (driver.basis, driver.source.file) == ("reported", "https://example.org/drivers")
    assert base.statements["kernels"] == ()


def test_rows_stay_as_they_were_read(root: Path, shelf: Shelf) -> None:
    """A second sync reads only what is new; --again reads everything."""
    assert run_command(root, "tables", "sync", "engine", "server").exit_code == 0
    file = root / "tables" / "server.jsonl"
    old = file.read_text().replace(str(datetime.datetime.now(datetime.UTC).date()), "2025-01-01")
    file.write_text(old)
    result = run_command(root, "tables", "sync", "server")
    assert "server: 2 rows, as it was" in result.output
    shelf.wheel("server", "0.7")
    result = run_command(root, "tables", "sync", "server")
    assert "server: 3 rows, written" in result.output
    assert file.read_text().endswith(old)
    result = run_command(root, "tables", "sync", "server", "--again")
    assert "2025-01-01" not in file.read_text()


def test_an_index_without_the_distribution(root: Path, shelf: Shelf) -> None:
    """The other tables are written; the exit code says that one is not."""
    (root / "tables.toml").write_text(TABLES + "[distributions.missing]\n")
    result = run_command(root, "tables", "sync")
    assert result.exit_code == 2
    assert "no index has a release of missing" in result.output
    assert (root / "tables" / "engine.jsonl").is_file()


def test_a_broken_wheel(root: Path, shelf: Shelf) -> None:
    """It is named, and the table stays as it was."""
    shelf.wheel("server", "0.8").write_bytes(b"no archive")
    result = run_command(root, "tables", "sync", "server")
    assert result.exit_code == 2
    assert "server-0.8-py3-none-any.whl" in result.output
    assert not (root / "tables" / "server.jsonl").exists()


def test_a_program(root: Path) -> None:
    """What a script prints about the toolchain that runs it is measured; a failure is an error."""
    script = root / "tables" / "kernels.py"
    script.parent.mkdir()
    line = {"about": {"engine": "==2.0", "sm": "==9.0"}, "works": True, "note": "a cubin"}
    script.write_text(f"import kbtools.repro\nprint({json.dumps(json.dumps(line))})\n")
    result = run_command(root, "tables", "sync", "kernels")
    assert result.exit_code == 0, result.output
    [row] = store.read(config.find(root)).statements["kernels"]
    assert (row.about, row.works, row.basis) == (line["about"], True, "measured")
    assert row.source.file == "tables/kernels.py"
    script.write_text("raise SystemExit('no compiler')")
    result = run_command(root, "tables", "sync", "kernels")
    assert result.exit_code == 2
    assert "no compiler" in result.output


def test_a_program_finds_the_programs_of_its_toolchain(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those beside its interpreter come before others of the same name."""
    monkeypatch.setenv("PATH", "/elsewhere" + os.pathsep + os.environ["PATH"])
    script = root / "tables" / "kernels.py"
    script.parent.mkdir()
    script.write_text(
        "import json, os, sys\n"
        "first = os.environ['PATH'].split(os.pathsep)[0]\n"
        "note = 'first' if first == os.path.dirname(sys.executable) else first\n"
        "print(json.dumps({'about': {'engine': '==2.0'}, 'works': True, 'note': note}))\n"
    )
    result = run_command(root, "tables", "sync", "kernels")
    assert result.exit_code == 0, result.output
    [row] = store.read(config.find(root)).statements["kernels"]
    assert row.note == "first"


def test_show_and_list(root: Path, shelf: Shelf) -> None:
    """A row says what it is, and where it was read."""
    run_command(root, "tables", "sync", "engine", "drivers")
    text = run_command(root, "tables", "show", "engine", "2.0").output
    assert "architectures: sm_80 sm_90" in text
    assert f"engine-2.0-{LINUX}.whl" in text
    drivers = run_command(root, "tables", "show", "drivers").output
    assert "needs driver >=580" in drivers
    assert "reported, read 2026-01-31" in drivers
    listed = json.loads(run_command(root, "tables", "list", "--json").output)
    assert {row["name"]: row["rows"] for row in listed} == {
        "engine": 1,
        "server": 0,
        "kernels": 0,
        "drivers": 1,
    }
    assert run_command(root, "tables", "show", "nothing").exit_code == 2


def test_a_document_is_matched(root: Path, shelf: Shelf, tmp_path: Path) -> None:
    """A statement for each number; it names the address, and the digest of what was read."""
    with (root / "tables.toml").open("a") as file:
        file.write(
            '[reported.errors]\nsource = "https://localhost:9/errors.h"\nread = "2026-01-31"\n'
            "about = 'number'\npattern = '#define (?P<name>[A-Z_]+) (?P<number>[0-9]+)'\n"
        )
    header = tmp_path / "errors.h"
    header.write_text("#define LOST 79\n#define GONE 79\n#define BUS 80\n#define TEXT (81)\n")

    unreachable = run_command(root, "tables", "sync", "errors")
    assert unreachable.exit_code == 2 and "--copy FILE" in unreachable.output
    assert run_command(root, "tables", "sync", "errors", "--copy", str(header)).exit_code == 0
    lost, bus = store.read(config.find(root)).statements["errors"]
    assert lost.about == {"number": "==79"} and lost.facts == {"name": ("LOST", "GONE")}
    assert bus.about == {"number": "==80"} and bus.basis == "reported"
    assert bus.source.file == "https://localhost:9/errors.h"
    assert bus.source.sha256 == hashlib.sha256(header.read_bytes()).hexdigest()

    again = run_command(root, "tables", "sync", "errors")
    assert again.exit_code == 0 and "2 rows, as it was" in again.output
    header.write_text("nothing of the kind")
    empty = run_command(root, "tables", "sync", "errors", "--copy", str(header))
    assert empty.exit_code == 2 and "matches nothing" in empty.output
    assert run_command(root, "tables", "sync", "--copy", str(header)).exit_code == 2


@pytest.mark.parametrize(
    "text",
    [
        "[distributions.'A B']",
        "[distributions.a]\n[programs.a]\nscript='a.py'",
        "unknown = 1",
        "[reported.a]\nsource='https://a'\nread='2026-01-31'\npattern='(?P<b>.)'",
        "[reported.a]\nsource='https://a'\nread='2026-01-31'\npattern='('",
    ],
)
def test_a_wrong_declaration(root: Path, text: str) -> None:
    """It is an error that names the file."""
    (root / "tables.toml").write_text(text)
    with pytest.raises(TablesError, match=r"tables\.toml"):
        read_tables(config.find(root))


class Parts(http.server.SimpleHTTPRequestHandler):
    """Serves parts of files."""

    def do_GET(self) -> None:
        """Answers with the part that is asked for."""
        content = Path(self.translate_path(self.path)).read_bytes()
        first, _, last = self.headers["Range"].removeprefix("bytes=").partition("-")
        part = content[int(first) : int(last) + 1]
        self.send_response(206)
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        self.wfile.write(part)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """The address of a server of the files in a folder."""

    def handler(*arguments: object) -> Parts:
        return Parts(*arguments, directory=str(tmp_path))  # type: ignore[arg-type]

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as listening:
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{listening.server_port}"
        listening.shutdown()


def test_a_wheel_is_read_in_parts(tmp_path: Path, server: str) -> None:
    """Its metadata comes from the server without the wheel."""
    file = Shelf(tmp_path).wheel("engine", "3.0", "wheelset>=1", files={"big.so": "x" * 10**6})
    with archives.wheel(f"{server}/engine/{file.name}", PipSettings()) as archive:
        fields = archives.headers(archives.metadata_of(archive))
    assert fields["requires-dist"] == ["wheelset>=1"]
