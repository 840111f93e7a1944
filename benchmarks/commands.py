"""What a `pip install` of an article changes where other packages are installed already.

    python benchmarks/commands.py                       # all articles and notices
    python benchmarks/commands.py KB0001 KBN0022        # some of them
    python benchmarks/commands.py --environment vllm vllm==0.33.0      # resolves one anew

Each file of `environments/` is what pip resolved on Python 3.11 on the day of its commit: each
package, its version, and what it requires. For each command such an environment is planted, with
metadata and no code, and uv says what the command would replace; nothing is installed. Then what
the untouched packages require is compared with what would stand beside them. As pip does without
`--upgrade-strategy eager`, only the packages that the command names are upgraded. Another index is
left out, so that a build for another CUDA counts as the release of PyPI; what has no wheel is not
resolved. Ends with 1 if a command replaces a package that another one pins; whether the article
says so is for its reader to see.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parent.parent
ENVIRONMENTS = Path(__file__).parent / "environments"
COMMAND = re.compile(r"`([^`]*\bpip3? install\b[^`]*)`|^((?:[\w./ -]*)pip3? install .*)$")
COMMENT = re.compile(r"\s#|\s&&\s|2>&1|\s\\$|\s\|\s")
ELSEWHERE = ("--target", "--no-index", "--no-deps", "-e", "-r", "-c", "-f", ".")
"""A command with one of these installs into another place, or what is not on an index."""
WITH_VALUE = ("--index-url", "--extra-index-url", "--only-binary")
UV = shutil.which("uv", path=str(Path(sys.executable).parent)) or "uv"
"""The one of the environment in which this runs, as `make kb` installs it."""
CHANGE = re.compile(r"^ [-+~] (\S+?)==(\S+)", re.MULTILINE)


@dataclass(frozen=True)
class Package:
    """An installed distribution: its version, and the requirements that hold here."""

    name: str
    version: str
    requires: tuple[Requirement, ...]


@dataclass(frozen=True)
class Command:
    """A `pip install` of an article: where it stands, and its arguments."""

    place: str
    text: str
    requirements: tuple[str, ...]
    upgrades: bool


def environment(name: str) -> dict[str, Package]:
    """The packages of a file of `environments/` by their normalised names."""
    content = json.loads((ENVIRONMENTS / f"{name}.json").read_text("utf-8"))
    return {
        canonicalize_name(title): Package(
            title, entry["version"], tuple(map(Requirement, entry["requires"]))
        )
        for title, entry in content.items()
    }


def resolve(name: str, requirements: list[str]) -> None:
    """Writes a file of `environments/` from what pip resolves for these requirements."""
    words = ["pip", "install", "--dry-run", "--ignore-installed", "--only-binary=:all:", "-q"]
    with tempfile.NamedTemporaryFile() as report:
        subprocess.run(
            [sys.executable, "-m", *words, "--report", report.name, *requirements], check=True
        )
        installed = json.loads(Path(report.name).read_text("utf-8"))["install"]
    content = {}
    for metadata in sorted(
        (entry["metadata"] for entry in installed), key=lambda each: each["name"]
    ):
        requires = [
            text
            for text in metadata.get("requires_dist", [])
            if not (marker := Requirement(text).marker) or marker.evaluate({"extra": ""})
        ]
        content[metadata["name"]] = {"version": metadata["version"], "requires": requires}
    text = json.dumps(content, indent=0)
    (ENVIRONMENTS / f"{name}.json").write_text(f"{text}\n", "utf-8")


def plant(packages: dict[str, Package], folder: Path) -> Path:
    """A Python environment that has these packages, if one asks for metadata; its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    libraries = next(folder.glob("lib/python3*/site-packages"))
    for package in packages.values():
        place = libraries / f"{package.name.replace('-', '_')}-{package.version}.dist-info"
        place.mkdir()
        lines = [f"Name: {package.name}", f"Version: {package.version}"]
        lines += [f"Requires-Dist: {requirement}" for requirement in package.requires]
        (place / "METADATA").write_text("\n".join(["Metadata-Version: 2.1", *lines, ""]), "utf-8")
        (place / "RECORD").write_text("", "utf-8")
    return folder / "bin" / "python"


def commands(ids: list[str]) -> Iterator[Command]:
    """Each command of these articles and notices that names releases of an index."""
    for file in sorted([*ROOT.glob("kb/KB*.md"), *ROOT.glob("kb/notices/*.md")]):
        article = file.name.partition("-")[0]
        if file.name.endswith(".zh.md") or (ids and article not in ids):
            continue
        for number, line in enumerate(file.read_text("utf-8").splitlines(), 1):
            for match in COMMAND.finditer(line):
                if command := parsed(f"{article}:{number}", match[1] or match[2]):
                    yield command


def parsed(place: str, text: str) -> Command | None:
    """A command with its requirements, or nothing if it names none."""
    installed = re.sub(r"^.*?pip3? install", "", COMMENT.split(text.replace('\\"', '"'))[0])
    try:
        words = shlex.split(installed)
    except ValueError:
        return None
    if any(word in ELSEWHERE for word in words):
        return None
    for option in WITH_VALUE:
        while option in words:
            del words[words.index(option) : words.index(option) + 2]
    named = [word for word in words if not word.startswith("-")]
    try:
        requirements = [Requirement(re.sub(r"\+\w+$", "", word)) for word in named]
    except InvalidRequirement:
        return None
    if not requirements:
        return None
    upgrades = bool({"-U", "--upgrade"} & set(words))
    return Command(place, text.strip(), tuple(map(str, requirements)), upgrades)


def replaced(command: Command, python: Path) -> dict[str, str] | None:
    """Normalised name → the version that the command would install; nothing if it has no wheel."""
    upgrades = []
    if command.upgrades:
        for requirement in command.requirements:
            upgrades += ["--upgrade-package", Requirement(requirement).name]
    words = [UV, "pip", "install", "--dry-run", "--no-build", "--python", str(python)]
    run = subprocess.run(
        [*words, *upgrades, *command.requirements], capture_output=True, text=True, timeout=300
    )
    if run.returncode:
        return None
    added = (match for match in CHANGE.finditer(run.stderr) if match[0].startswith(" +"))
    return {canonicalize_name(match[1]): match[2] for match in added}


def refusals(packages: dict[str, Package], after: dict[str, str]) -> Iterator[str]:
    """What the packages that stay require, where the command would install another version."""
    for name, package in packages.items():
        if name in after:
            continue
        for requirement in package.requires:
            version = after.get(canonicalize_name(requirement.name))
            if version and not requirement.specifier.contains(version, prereleases=True):
                yield f"{package.name} {package.version} requires {requirement}"


def main() -> int:
    """Prints a line for each command and environment; 1 if a pinned package would be replaced."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "words", nargs="*", metavar="ID", help="articles and notices; all without one"
    )
    parser.add_argument("--environment", metavar="NAME", help="resolve it anew from requirements")
    arguments = parser.parse_args()
    if arguments.environment:
        resolve(arguments.environment, arguments.words)
        return 0
    refused = 0
    todo = list(commands(arguments.words))
    for file in sorted(ENVIRONMENTS.glob("*.json")):
        packages = environment(file.stem)
        with tempfile.TemporaryDirectory() as folder:
            python = plant(packages, Path(folder) / "env")
            for command in todo:
                after = replaced(command, python)
                row = {"place": command.place, "environment": file.stem, "command": command.text}
                if after is None:
                    print(json.dumps({**row, "resolved": False}), flush=True)
                    continue
                changes = {
                    name: [packages[name].version, version]
                    for name, version in sorted(after.items())
                    if name in packages and packages[name].version != version
                }
                pins = sorted(refusals(packages, after))
                refused += bool(pins)
                print(json.dumps({**row, "changes": changes, "pins": pins}), flush=True)
    return int(refused > 0)


if __name__ == "__main__":
    sys.exit(main())
