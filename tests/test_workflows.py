"""The workflows: what they may do, that they only call scripts, and that the scripts do it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from bases import KBTOOLS, Base, fence, git

ROOT = Path(__file__).parent.parent
FLEET = ROOT / "fleet"
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
BIN = Path(sys.executable).parent
EACH = pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.stem)


def read(file: Path) -> dict[str, Any]:
    """A workflow; YAML 1.1 takes the key `on` for true."""
    document = yaml.safe_load(file.read_text("utf-8"))
    return {"on" if key is True else key: value for key, value in document.items()}


def steps(workflow: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The steps of all jobs."""
    for job in workflow["jobs"].values():
        yield from job.get("steps", ())


@EACH
def test_schema(file: Path) -> None:
    """A workflow keeps the schema of GitHub's workflows."""
    words = [f"{BIN}/check-jsonschema", "--builtin-schema", "vendor.github-workflows", str(file)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("schema", "name"),
    [
        ("dependabot", "dependabot.yml"),
        ("github-issue-config", "ISSUE_TEMPLATE/config.yml"),
        *(("github-issue-forms", f"ISSUE_TEMPLATE/{n}.yml") for n in ("bug", "failure", "wrong")),
    ],
)
def test_schema_of_what_github_reads(schema: str, name: str) -> None:
    """Forms for issues and the settings of dependabot keep the schemas of GitHub."""
    words = [f"{BIN}/check-jsonschema", "--builtin-schema", f"vendor.{schema}"]
    words += [str(ROOT / ".github" / name)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_as_an_attacker_sees_them() -> None:
    """An audit finds no injection, no token left about, no trigger that hands out secrets."""
    words = [f"{BIN}/zizmor", "--offline", "--no-progress", "--min-severity", "medium"]
    words += ["--config", str(ROOT / ".github" / "zizmor.yml"), *map(str, WORKFLOWS)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@EACH
def test_steps_only_call_scripts(file: Path) -> None:
    """`run` calls a script of fleet/ or make, with words that no shell can be talked into."""
    for step in steps(read(file)):
        if "run" in step:
            assert re.fullmatch(
                r'(make|fleet/[\w.-]+\.sh)( [\w./=-]+| [A-Z]+="\$[A-Z]+"| "\$[A-Z]+")*', step["run"]
            ), step["run"]
            script = step["run"].split()[0]
            assert script == "make" or os.access(ROOT / script, os.X_OK)
            assert "${{" not in step["run"]


@EACH
def test_actions_are_pinned(file: Path) -> None:
    """GitHub's own actions by their major version, any other by the SHA of a commit."""
    workflow = read(file)
    used = [step["uses"] for step in steps(workflow) if "uses" in step]
    used += [job["uses"] for job in workflow["jobs"].values() if "uses" in job]
    for action in used:
        assert re.fullmatch(
            r"actions/[\w-]+@v\d+|[\w.-]+/[\w./-]+@[0-9a-f]{40}|\./\.github/.*", action
        )


@EACH
def test_least_permissions(file: Path) -> None:
    """A workflow may read; a job that may write says so, and runs no snippet."""
    workflow = read(file)
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        may_write = "write" in job.get("permissions", {}).values()
        runs = " ".join(step.get("run", "") for step in job.get("steps", ()))
        assert not (may_write and re.search(r"shard|pull-request|gpu|radar|make kb", runs))
        for step in job.get("steps", ()):
            if str(step.get("uses")).startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] is False


def test_strangers_meet_no_secret_and_no_gpu() -> None:
    """Nothing that a stranger may change runs where a secret or, unapproved, a GPU is."""
    workflows = {file.stem: read(file) for file in WORKFLOWS}
    for name, workflow in workflows.items():
        text = (ROOT / ".github" / "workflows" / f"{name}.yml").read_text("utf-8")
        assert "secrets." not in text
        assert "pull_request_target" not in workflow["on"]
        if "pull_request" in workflow["on"]:
            assert {job["runs-on"] for job in workflow["jobs"].values()} == {"ubuntu-latest"}
            assert not re.search(r"(?m)^ *(uses|key):.*cache", text)
    gpu = workflows["gpu"]
    assert list(gpu["on"]) == ["workflow_run"]
    assert gpu["on"]["workflow_run"]["workflows"] == [workflows["pull-request"]["name"]]
    [job] = gpu["jobs"].values()
    assert job["environment"] == "gpu"
    [checkout] = [s for s in steps(gpu) if "checkout" in s.get("uses", "")]
    assert checkout["with"]["ref"] == "main"
    for name in ("pull-request", "gpu", "shard"):
        assert "--require-sandbox" in (FLEET / f"{name}.sh").read_text("utf-8")


class Checkout:
    """A knowledge base with our scripts, in a repository, and one that it is pushed to."""

    def __init__(self, base: Base, folder: Path) -> None:
        self.base, self.origin, self.bin = base, folder / "origin.git", folder / "bin"
        shutil.copytree(FLEET, base.root / "fleet")
        self.bin.mkdir()
        kbtools = self.bin / "kbtools"
        kbtools.write_text(f'#!/bin/sh\nexec {" ".join(KBTOOLS)} "$@"\n')
        kbtools.chmod(0o755)
        for title in ("one", "two"):
            assert base.kbtools("new", f"an error of article {title}").code == 0
        for article in (base.root / "kb").iterdir():  # a skeleton is not recorded
            words = article.read_text("utf-8")
            article.write_text(words.replace("division by zero in", "no division in"), "utf-8")
        toolchain = f'[here]\npython = "{sys.executable}"\n\n[built]\npython = "3.11"\n'
        (base.root / "toolchains.toml").write_text(f'{toolchain}packages = ["torch==2.8.0"]\n')
        (base.root / ".gitignore").write_text("/.kbtools/\n/build/\n/results.json\n")
        git(base, "init", "-q", "-b", "main")
        git(base, "add", ".")
        git(base, "commit", "-qm", "all of it")
        git(base, "clone", "-q", "--bare", ".", str(self.origin))
        git(base, "remote", "add", "origin", str(self.origin))

    def edit(self, number: int, old: str, new: str) -> str:
        """Changes an article; its path."""
        [file] = (self.base.root / "kb").glob(f"KB{number:04}-*.md")
        text = file.read_text("utf-8")
        assert old in text
        file.write_text(text.replace(old, new), "utf-8")
        return file.relative_to(self.base.root).as_posix()

    def run(self, script: str, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Runs a script of fleet/ as a runner does."""
        environment = self.base.environment(PATH=f"{self.bin}:{os.environ['PATH']}", **more)
        return subprocess.run(
            [str(self.base.root / "fleet" / script), *words],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def commit(self, message: str) -> str:
        """Commits everything; the commit."""
        git(self.base, "add", ".")
        git(self.base, "commit", "-qm", message)
        return git(self.base, "rev-parse", "HEAD").strip()


@pytest.fixture
def checkout(base: Base, tmp_path: Path) -> Checkout:
    """A checkout as a workflow has it."""
    return Checkout(base, tmp_path)


@pytest.fixture
def sandboxed(base: Base) -> None:
    """Skips where snippets cannot be shut in: the scripts demand it."""
    base.article(fence("python fix", "x = 0"), number=9)
    done = base.kbtools("verify", "KB0009", "--require-sandbox")
    (base.root / "kb" / "KB0009-an-article.md").unlink()
    if done.code:
        pytest.skip(f"no sandbox here: {done.err.strip()[-200:]}")


def test_pull_request(sandboxed: None, checkout: Checkout) -> None:
    """Only what changed is run; a red claim is an annotation at its line, and exit code 1."""
    before = git(checkout.base, "rev-parse", "HEAD").strip()
    done = checkout.run("pull-request.sh", BASE=before)
    assert done.returncode == 0, done.stderr
    path = checkout.edit(2, "assert 1 / 1 == 1", "x = 1\nassert x == 2")
    checkout.commit("a bad idea")
    done = checkout.run("pull-request.sh", BASE=before, GITHUB_ACTIONS="true", TOOLCHAIN="here")
    assert done.returncode == 1, done.stderr
    text = (checkout.base.root / path).read_text("utf-8").splitlines()
    line = text.index("assert x == 2") + 1
    assert f"::error file={path},line={line},title=broken KB0002/f1 (fix) on here::" in done.stdout
    assert "KB0001/" not in done.stdout, "its snippets were run"
    reports = checkout.base.root / "build" / "reports"
    assert {file.name for file in reports.iterdir()} == {
        "check.sarif",
        "verify.sarif",
        "verify.xml",
    }


def test_pull_request_for_a_gpu(sandboxed: None, checkout: Checkout) -> None:
    """What only a GPU can run needs evidence: an article that ran nowhere is not merged."""
    before = git(checkout.base, "rev-parse", "HEAD").strip()
    checkout.edit(2, "repro id=r1", "repro id=r1 requires=gpus:9")
    checkout.edit(2, "fix id=f1", "fix id=f1 requires=gpus:9")
    done = checkout.run("pull-request.sh", BASE=before)
    assert done.returncode == 1, done.stderr
    assert "  KB0002  skipped: needs 9 GPUs, none here" in done.stderr
    checkout.edit(2, "python fix", "python fxi")
    assert checkout.run("pull-request.sh", BASE=before).returncode == 2


def test_gpu_takes_articles_only(sandboxed: None, checkout: Checkout) -> None:
    """Of an approved commit only what it changes in kb/ is taken: no script, no configuration."""
    git(checkout.base, "checkout", "-qb", "stranger")
    checkout.base.article(fence("python fix requires=gpus:2", "x = 1"), number=3)
    (checkout.base.root / "fleet" / "gpu.sh").write_text("#!/bin/sh\necho owned\n")
    (checkout.base.root / "kbtools.toml").write_text("broken")
    head = checkout.commit("mine")
    git(checkout.base, "push", "-q", "origin", "stranger")
    git(checkout.base, "checkout", "-q", "main")
    checkout.edit(2, "assert 1 / 1 == 1", "assert 1 + 1 == 2")
    checkout.commit("meanwhile")
    git(checkout.base, "branch", "-qD", "stranger")
    done = checkout.run("gpu.sh", HEAD_SHA=head)
    assert done.returncode in (0, 3), done.stderr  # as there are GPUs here, or not
    assert "KB0003/fix1" in done.stdout or "1 skipped: needs 2 GPUs" in done.stdout
    assert "owned" not in done.stdout
    assert "KB0002" not in done.stdout, "main's own newer articles stay"
    changed = set(git(checkout.base, "status", "--porcelain").split()[1::2])
    assert changed == {"kb/KB0003-an-article.md"}


def test_gpu_lends_no_network(checkout: Checkout) -> None:
    """An article that asks for the network of a machine of ours is not run there."""
    git(checkout.base, "checkout", "-qb", "stranger")
    checkout.base.article(fence("python fix net=yes requires=gpu", "x = 1"), number=3)
    head = checkout.commit("mine")
    git(checkout.base, "push", "-q", "origin", "stranger")
    git(checkout.base, "checkout", "-q", "main")
    done = checkout.run("gpu.sh", HEAD_SHA=head)
    assert done.returncode == 2
    assert "asks for the network" in done.stderr
    assert "KB0003/fix1" not in done.stdout


@pytest.mark.parametrize("kind", ["link", "attributes", "name"])
def test_gpu_takes_plain_files_only(checkout: Checkout, kind: str) -> None:
    """A link would show a file of the machine, attributes have git write what it does not show."""
    git(checkout.base, "checkout", "-qb", "stranger")
    folder = checkout.base.root / "kb"
    if kind == "link":
        (folder / "KB0003-x.md").symlink_to("/etc/passwd")
    else:
        name = ".gitattributes" if kind == "attributes" else "KB0003-x.md --force.md"
        (folder / name).write_text("*.md binary\n")
    head = checkout.commit("mine")
    git(checkout.base, "push", "-q", "origin", "stranger")
    git(checkout.base, "checkout", "-q", "main")
    done = checkout.run("gpu.sh", HEAD_SHA=head)
    assert done.returncode == 2
    assert "plain Markdown files only" in done.stderr
    assert git(checkout.base, "status", "--porcelain") == ""
    assert checkout.run("gpu.sh", HEAD_SHA="main; id").returncode == 2


def test_a_night(sandboxed: None, checkout: Checkout, tmp_path: Path) -> None:
    """Plan, shards, merge, record: the evidence of every shard ends up on the branch."""
    output = tmp_path / "output"
    assert checkout.run("plan.sh", GITHUB_OUTPUT=str(output)).returncode == 0
    outputs = dict(line.split("=", 1) for line in output.read_text().splitlines())
    assert outputs["jobs"] == "1"
    [job] = json.loads(outputs["matrix"])["include"]
    assert (job["toolchain"], job["runs-on"]) == ("built", ["ubuntu-latest"])
    machines = tmp_path / "machines"
    for number in (1, 2):
        more = {"TOOLCHAIN": "here", "NEEDS": "cpu", "SHARD": f"{number}/2"}
        done = checkout.run("shard.sh", **more)
        assert done.returncode == 0, done.stderr
        shutil.move(checkout.base.root / "evidence", machines / f"evidence-{number}")
    forged = machines / "evidence-3" / "KB0002.jsonl"
    forged.parent.mkdir()
    forged.write_text('{"verdict": "holds"}\n')
    done = checkout.run("merge.sh", str(machines), RECORD="main", AUTHOR="a", EMAIL="a@b")
    assert done.returncode == 1, "a forged file is told"
    assert "the whole file is refused" in done.stderr
    pushed = git(checkout.base, "--git-dir", str(checkout.origin), "ls-tree", "-r", "main")
    assert re.findall(r"evidence/\S+", pushed) == ["evidence/KB0001.jsonl", "evidence/KB0002.jsonl"]
    done = checkout.run("record.sh", "main")
    assert (done.returncode, done.stdout) == (0, "no new evidence\n")


def test_a_night_whose_issues_fail_is_not_recorded(checkout: Checkout, tmp_path: Path) -> None:
    """Where an issue cannot be opened nothing is recorded, so that the next night opens it."""
    checkout.edit(2, "assert 1 / 1 == 1", "assert False")
    checkout.commit("not well")
    assert checkout.base.verify("KB0002", "--record").code == 1
    shutil.move(checkout.base.root / "evidence", tmp_path / "machine")
    (checkout.bin / "gh").write_text("#!/bin/sh\necho no rights >&2\nexit 1\n")
    (checkout.bin / "gh").chmod(0o755)
    done = checkout.run("merge.sh", str(tmp_path / "machine"), RECORD="main", ISSUES="yes")
    assert done.returncode == 2
    assert "gh label create: no rights" in done.stderr
    assert git(checkout.base, "status", "--porcelain").split() == ["??", "evidence/"]


def test_slurm(sandboxed: None, checkout: Checkout, tmp_path: Path) -> None:
    """Every task of an array leaves the evidence of its shard; merged they are the whole."""
    results = tmp_path / "results"
    results.mkdir()
    for task in ("1", "2"):
        done = checkout.run(
            "slurm.sbatch",
            KB=str(checkout.base.root),
            RESULTS=str(results),
            TOOLCHAIN="here",
            SLURM_ARRAY_TASK_ID=task,
            SLURM_ARRAY_TASK_COUNT="2",
        )
        assert done.returncode == 0, done.stderr
    assert {file.name for file in results.glob("*/*")} == {"KB0001.jsonl", "KB0002.jsonl"}
    assert checkout.run("merge.sh", *map(str, results.iterdir())).returncode == 0
    assert len(checkout.base.rows(1)) == len(checkout.base.rows(2)) == 2


def test_cron(sandboxed: None, checkout: Checkout, tmp_path: Path) -> None:
    """A night on one machine leaves evidence and metrics; a red claim is its exit code."""
    metrics = tmp_path / "kbtools.prom"
    done = checkout.run("night.sh", TOOLCHAIN="here", METRICS=str(metrics))
    assert done.returncode == 0, done.stderr
    assert 'kbtools_articles{state="reproduced"} 2' in metrics.read_text()
    checkout.edit(2, "assert 1 / 1 == 1", "assert False")
    done = checkout.run("night.sh", TOOLCHAIN="here", METRICS=str(metrics))
    assert done.returncode == 1
    assert 'kbtools_article_contradicted{article="KB0002"} 1' in metrics.read_text()


def test_a_release_is_tried_on_every_python() -> None:
    """The wheel is tried on the Pythons that pyproject.toml names, before anything is published."""
    workflow = read(ROOT / ".github" / "workflows" / "release.yml")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    prefix = "Programming Language :: Python :: 3."
    named = [f"3.{c.removeprefix(prefix)}" for c in project["classifiers"] if c.startswith(prefix)]
    assert workflow["jobs"]["build"]["strategy"]["matrix"]["python"] == named
    publish = workflow["jobs"]["publish"]
    assert publish["needs"] == "build"
    assert {"id-token", "attestations"} <= {*publish["permissions"]}


@pytest.mark.parametrize("index", ["", "https://index.example/legacy/"])
def test_a_release_is_published(index: str, tmp_path: Path) -> None:
    """The release has its part of the change log; an index gets files that are signed before."""
    calls = tmp_path / "calls"
    for name in ("gh", "uv", "python3"):
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        show = '[ "$1" != release ] || eval "cat \\${$#}"'
        program.write_text(f'#!/bin/sh\necho {name} "$@" >> {calls}\n{show}\n')
        program.chmod(0o755)
    shutil.copytree(FLEET, tmp_path / "fleet")
    (tmp_path / "CHANGELOG.md").write_text("## 1.2.3 (2026-01-01)\n\nnew\n\n## 1.2.2\n\nold\n")
    (tmp_path / "dist").mkdir()
    for name in ("k.whl", "k.tar.gz"):
        (tmp_path / "dist" / name).touch()
    variables = {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}", "INDEX": index}
    done = subprocess.run(
        [tmp_path / "fleet" / "publish.sh"],
        env={**os.environ, **variables, "GITHUB_REF_NAME": "v1.2.3"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["new"]
    release, *rest = calls.read_text().splitlines()
    assert release.startswith("gh release create v1.2.3 dist/k.tar.gz dist/k.whl --verify-tag ")
    assert [line.partition(" dist/")[0] for line in rest] == [
        "python3 -m pip install --quiet uv pypi-attestations",
        "python3 -m pypi_attestations sign",
        f"uv publish --trusted-publishing always --publish-url {index}",
    ] * bool(index)
