"""Checks rows of the tables another way: pip's own reader of wheels, and what uv resolves.

    python benchmarks/table_rows.py rows 20 --seed 1    # rows drawn by chance
    python benchmarks/table_rows.py uv                  # the questions of tests/fits_questions.toml

`rows` draws releases with wheels, and for each another wheel than the one that the row was read in,
if there is one: of another Python. pip reads its metadata; a wheel of less than `WHOLE` bytes is
downloaded, its digest compared, and unpacked. `uv` resolves the same requirements on the package
index, which it does without a GPU and a driver.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
import re
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from kbtools import config  # noqa: E402
from kbtools.tables import archives, store  # noqa: E402
from kbtools.tables.explaining import fit  # noqa: E402
from kbtools.tables.files import parse  # noqa: E402
from kbtools.tables.machines import Machine  # noqa: E402
from kbtools.tables.model import Release  # noqa: E402
from kbtools.toolchains.package_index import files_of  # noqa: E402
from kbtools.toolchains.pip_settings import DEFAULT_INDEX, PipSettings  # noqa: E402

WHOLE = 60_000_000


def pip_metadata(url: str) -> str:
    """The METADATA of a wheel as pip reads it, in parts."""
    from pip._internal.network.lazy_wheel import dist_from_wheel_url
    from pip._internal.network.session import PipSession

    name = url.rpartition("/")[2].split("-")[0]
    distribution = dist_from_wheel_url(name, url, PipSession())
    return distribution.read_text("METADATA")


def whole_metadata(url: str, digest: str) -> str:
    """The METADATA of a wheel that is downloaded whole, unpacked, and has that digest."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / url.rpartition("/")[2]
        subprocess.run(["curl", "-sSfo", file, url], check=True)
        assert hashlib.sha256(file.read_bytes()).hexdigest() == digest, "digest"
        with zipfile.ZipFile(file) as archive:
            return archives.metadata_of(archive)


def problems(row: Release, patterns: tuple[str, ...], chance: random.Random) -> Iterator[str]:
    """What another wheel of the row's release says against the row."""
    from kbtools.tables.sync import requirements

    page = f"{DEFAULT_INDEX}/{row.package}/"
    files = {
        file.filename: file
        for file in files_of(page, PipSettings())
        if (named := parse(file.filename))
        and (str(named.version), named.platform) == (row.version, row.platform)
        and not file.yanked
    }
    tags = {tag for name in files for tag in parse(name).tags}
    if tags != set(row.tags):
        yield f"tags {sorted(tags ^ set(row.tags))}"
    if files[row.source.file].hashes["sha256"] != row.source.sha256:
        yield "digest"
    others = sorted(set(files) - {row.source.file}) or [row.source.file]
    file = files[chance.choice(others)]
    is_whole = 0 < file.size < WHOLE
    text = whole_metadata(file.url, file.hashes["sha256"]) if is_whole else pip_metadata(file.url)
    print(f"    {'unzip' if is_whole else 'pip'}: {file.filename}")
    fields = archives.headers(text)
    wanted = tuple(requirements(fields.get("requires-dist", ()), patterns))
    if wanted != row.requires:
        yield f"requirements {sorted(set(wanted) ^ set(row.requires or ()))}"
    if fields.get("requires-python", [""])[0] != row.requires_python:
        yield f"Requires-Python {fields.get('requires-python')}"
    if fields["version"] != [row.version]:
        yield f"version {fields['version']}"


def check_rows(number: int, seed: int) -> int:
    """Draws rows and prints what is against each; how many have something against them."""
    base = store.read(config.find(ROOT))
    chance = random.Random(seed)
    rows = [r for releases in base.releases.values() for r in releases if r.platform != "source"]
    bad = 0
    for row in chance.sample(rows, number):
        print(f"{row.package} {row.version} {row.platform}")
        against = list(problems(row, base.tables.requires, chance))
        bad += bool(against)
        print(f"    {'; '.join(against) or 'as the row says'}")
    print(f"{number - bad} of {number} rows are as read another way")
    return bad


def check_uv() -> int:
    """Compares answers without a GPU and a driver with what uv resolves."""
    base = store.read(config.find(ROOT))
    questions = tomllib.loads((ROOT / "tests" / "fits_questions.toml").read_text())["question"]
    bad = 0
    for question in questions:
        python, platform = question["python"], question.get("platform", "linux-x86_64")
        ours = fit(base, Machine(python, platform), question["wants"]).versions
        target = {"linux-x86_64": "x86_64-manylinux_2_40", "win-amd64": "x86_64-pc-windows-msvc"}
        command = ["uv", "pip", "compile", "-", "-q", "--no-header", "--no-annotate", "--no-config"]
        command += ["--python-version", python, "--python-platform", target[platform]]
        command += ["--only-binary", ":all:", "--index-url", DEFAULT_INDEX]
        text = "\n".join(question["wants"])
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=300)
        pins = dict(re.findall(r"^([\w.-]+)==(\S+)", done.stdout, re.MULTILINE))
        asked = {Requirement(want).name for want in question["wants"]}
        theirs = {name: version for name, version in pins.items() if name in ours or name in asked}
        differ = {
            n: (ours.get(n), theirs.get(n)) for n in ours | theirs if ours.get(n) != theirs.get(n)
        }
        if not differ and done.returncode and not ours:
            verdict = "neither finds any"
        else:
            verdict = f"differ (ours, uv): {json.dumps(differ)}" if differ else "the same"
        bad += bool(differ)
        print(f"{python} {' '.join(question['wants'])}: {verdict}")
        if done.returncode and ours:
            print(f"    uv: {done.stderr.strip().splitlines()[-1][:300]}")
    print(f"{len(questions) - bad} of {len(questions)} agree with uv")
    return bad


def main() -> int:
    """Runs one of the checks; its exit code is 1 if anything differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("check", choices=["rows", "uv"])
    parser.add_argument("number", nargs="?", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.check == "uv":
        return int(check_uv() > 0)
    return int(check_rows(arguments.number, arguments.seed) > 0)


if __name__ == "__main__":
    sys.exit(main())
