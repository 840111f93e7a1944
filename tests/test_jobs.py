"""A fleet's work: what a change makes worth running, and the jobs of a night."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest
from bases import Base, fence, git

HELPED = fence("python practice", "from kbtools.repro import compile_ahead\n")
TOOLCHAINS = """
[old]
python = "3.11"
packages = ["torch==2.5.1"]
size-gb = 5.5

[new]
python = "3.11"
packages = ["torch==2.8.0"]

[own]
python = "/usr/bin/python3"
"""


@pytest.fixture
def versioned(base: Base) -> Base:
    """A knowledge base in a repository, its articles on the branch main, on a branch of its own."""
    base.article(fence("python repro", "raise ValueError('the failure')"))
    base.article(fence("python fix", "assert True"), number=2)
    (base.root / "toolchains.toml").write_text(TOOLCHAINS)
    (base.root / ".gitignore").write_text("/.kbtools/\n/results.json\n")
    git(base, "init", "-q", "-b", "main")
    git(base, "add", ".")
    git(base, "commit", "-qm", "articles")
    git(base, "checkout", "-qb", "mine")
    return base


def edit(base: Base, number: int) -> None:
    """Changes a word of an article's prose."""
    file = base.root / "kb" / f"KB{number:04}-an-article.md"
    file.write_text(file.read_text("utf-8").replace("## Fix", "## Fix\n\nBe careful."), "utf-8")


def test_nothing_changed(versioned: Base) -> None:
    """With no change nothing is run, which is well; evidence and other files are no change."""
    (versioned.root / "evidence").mkdir()
    (versioned.root / "evidence" / "KB0001.jsonl").write_text("")
    (versioned.root / "README.md").write_text("hello\n")
    done = versioned.verify("--changed-since", "main")
    assert (done.code, done.verdicts) == (0, {})
    assert "no article and no toolchain changed since main" in done.err


@pytest.mark.parametrize("committed", [True, False])
def test_a_changed_article(versioned: Base, committed: bool) -> None:
    """An article that changed is run, and no other; whether it is committed yet or not."""
    edit(versioned, 2)
    versioned.article(fence("python fix", "x = 3"), number=3)
    if committed:
        git(versioned, "add", ".")
        git(versioned, "commit", "-qm", "an edit")
    done = versioned.verify("--changed-since", "main")
    assert (done.code, sorted(done.verdicts)) == (0, ["KB0002/fix1", "KB0003/fix1"])
    assert "kb/KB0002-an-article.md changed: KB0002" in done.err


def test_what_others_changed_meanwhile(versioned: Base) -> None:
    """What changed on the other branch since this one left it is none of our change."""
    git(versioned, "checkout", "-q", "main")
    edit(versioned, 1)
    git(versioned, "commit", "-qam", "meanwhile")
    git(versioned, "checkout", "-q", "mine")
    edit(versioned, 2)
    done = versioned.verify("--changed-since", "main")
    assert sorted(done.verdicts) == ["KB0002/fix1"]


def test_a_deleted_article(versioned: Base) -> None:
    """An article that is gone is nothing to run."""
    (versioned.root / "kb" / "KB0002-an-article.md").unlink()
    assert versioned.verify("--changed-since", "main").verdicts == {}


def test_how_snippets_run(versioned: Base) -> None:
    """A change of `[run]` is a reason to run everything, one of the site's colour is none."""
    file = versioned.root / "kbtools.toml"
    text = file.read_text("utf-8")
    file.write_text(text + '\n[site]\ncolour = "#112233"\n')
    assert versioned.verify("--changed-since", "main").verdicts == {}
    file.write_text(text.replace("[run]", "[run]\ntimeout = 50"))
    done = versioned.verify("--changed-since", "main")
    assert sorted(done.verdicts) == ["KB0001/repro1", "KB0002/fix1"]


def test_a_changed_toolchain(versioned: Base) -> None:
    """Everything is run on a toolchain whose declaration changed, and nothing on the others."""
    file = versioned.root / "toolchains.toml"
    python = shutil.which("python3")
    text = TOOLCHAINS.replace("/usr/bin/python3", str(python))
    file.write_text(text + f'\n[more]\npython = "{python}"\n')
    done = versioned.verify("--changed-since", "main", "--toolchain", "own,more")
    runs = {run["name"]: len(run["results"]) for run in done.json["runs"]}
    assert runs["more"] == 2
    assert "all on more: its declaration changed" in done.err
    assert "all on old" not in done.err


def test_a_changed_helper(versioned: Base) -> None:
    """Where kbtools itself is in the repository, its helper is a reason for those who import it."""
    from kbtools import config
    from kbtools.checks.base import load_base
    from kbtools.ci import changed

    versioned.article(HELPED, number=3)
    git(versioned, "add", ".")
    git(versioned, "commit", "-qm", "more")
    own = versioned.root / "kbtools"
    own.mkdir()
    (own / "repro.py").write_text("")
    settings = config.find(versioned.root)
    articles = load_base(settings).articles
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(changed, "REPRO", own / "repro.py")
        assert changed.changed_since("HEAD", articles, settings).articles == {"KB0003"}


@pytest.mark.parametrize("ref", ["nowhere", "--output=x", ""])
def test_no_such_reference(versioned: Base, ref: str) -> None:
    """A reference that git does not know is exit code 2, with the next step."""
    done = versioned.verify(f"--changed-since={ref}")
    assert (done.code, done.json) == (2, {})
    assert "Traceback" not in done.err
    assert not (versioned.root / "x").exists()


def test_no_repository(base: Base) -> None:
    """Outside a checkout it is exit code 2."""
    base.article(fence("python fix", "assert True"))
    done = base.verify("--changed-since", "main")
    assert done.code == 2
    assert "not a git repository" in done.err


def jobs(base: Base, *words: str) -> list[dict[str, Any]]:
    """What `ci-matrix` prints, as a workflow reads it."""
    done = base.kbtools("ci-matrix", *words)
    assert done.code == 0, done.err
    assert done.out.count("\n") == 1, "it is one line, for GITHUB_OUTPUT"
    return list(json.loads(done.out)["include"])


@pytest.fixture
def mixed(versioned: Base) -> Base:
    """A knowledge base with snippets for machines without a GPU, with one and with two."""
    versioned.article(
        fence("python repro requires=gpu", "raise ValueError('the failure')"),
        fence("python fix requires=gpus:2", "x = 1"),
        fence("cuda practice", "int main() { return 0; }"),
        fence("python control toolchain=old", "x = 1"),
        number=4,
    )
    return versioned


def test_jobs(mixed: Base) -> None:
    """A job for each toolchain that can be built; on GPUs only where a runner is configured."""
    planned = jobs(mixed)
    assert [(job["toolchain"], job["needs"], job["snippets"]) for job in planned] == [
        ("old", "cpu", 3),
        ("new", "cpu", 2),
    ]
    assert planned[0]["runs-on"] == ["ubuntu-latest"]
    assert (planned[0]["shard"], planned[0]["gigabytes"]) == ("1/1", 5.5)
    with (mixed.root / "kbtools.toml").open("a") as file:
        file.write('\n[ci.runners]\ngpu = ["self-hosted", "gpu"]\n"gpus:2" = ["two"]\n')
    planned = jobs(mixed, "old")
    assert [(job["needs"], job["runs-on"], job["snippets"]) for job in planned] == [
        ("gpu", ["self-hosted", "gpu"], 2),
        ("gpus:2", ["two"], 1),
    ]
    assert jobs(mixed, "--needs", "cpu") == []


def test_a_gpu_to_itself_is_one_gpu(versioned: Base) -> None:
    """A snippet that wants a GPU alone goes to the machines with one, with those that share it."""
    versioned.article(
        fence("python repro requires=gpu", "raise ValueError('the failure')"),
        fence("python fix requires=gpus:1", "x = 1"),
        number=4,
    )
    with (versioned.root / "kbtools.toml").open("a") as file:
        file.write('\n[ci.runners]\ngpu = ["one"]\n"gpus:2" = ["two"]\n')
    assert [(job["needs"], job["snippets"]) for job in jobs(versioned, "old")] == [("gpu", 2)]


def test_jobs_are_shards(mixed: Base) -> None:
    """Parts are cut by recorded seconds, never into empty ones; together they run everything."""
    planned = jobs(mixed, "old", "--shards", "8")
    assert [job["shard"] for job in planned] == ["1/3", "2/3", "3/3"]
    assert sum(job["snippets"] for job in planned) == 3
    with (mixed.root / "kbtools.toml").open("a") as file:
        file.write("\n[ci]\nshard-seconds = 4\n")  # of 2 s each, when nothing is recorded
    assert [job["shard"] for job in jobs(mixed, "old")] == ["1/2", "2/2"]
    names: list[str] = []
    for job in jobs(mixed, "new", "--shards", "2"):
        done = mixed.verify("--shard", job["shard"], "--needs", job["needs"])
        names += done.verdicts
    assert sorted(names) == ["KB0001/repro1", "KB0002/fix1", "KB0004/control1"]


def test_a_toolchain_for_one_article(mixed: Base) -> None:
    """Only the articles that a toolchain is made for give it jobs."""
    file = mixed.root / "toolchains.toml"
    before = jobs(mixed, "new")
    file.write_text(file.read_text().replace("[own]", 'articles = ["KB0999"]\n\n[own]'))
    assert before and jobs(mixed, "new") == []


def test_jobs_by_what_was_seen(mixed: Base) -> None:
    """What evidence tells of an environment decides what can run there: no job for nothing."""
    for number in (1, 2):
        mixed.article(
            fence("python repro", "import triton\nraise ValueError('the failure')"),
            number=number,
            matter="affected: [{triton: '>=3'}]",
        )
    assert {job["toolchain"] for job in jobs(mixed)} == {"old", "new"}
    assert mixed.verify("KB0004", "--record", "--needs", "gpu").code == 3
    mixed.article(fence("python fix", "x = 5"), number=5)
    assert mixed.verify("KB0005", "--record").code == 0
    [row] = mixed.rows(5)
    row["toolchain"] |= {"python": "3.11.7", "packages": {"torch": "2.8.0"}}
    (mixed.root / "evidence" / "KB0005.jsonl").write_text(json.dumps(row) + "\n")
    counts = {job["toolchain"]: job["snippets"] for job in jobs(mixed)}
    assert counts == {"old": 4, "new": 1}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("ci-matrix", "nothing"), "no toolchain `nothing`"),
        (("ci-matrix", "--shards", "0"), "0 is not in the range"),
        (("verify", "--needs", "tpu"), "`tpu` is not cpu, gpu or gpus:2"),
    ],
)
def test_unknown_words(mixed: Base, words: tuple[str, ...], message: str) -> None:
    """What names nothing is exit code 2."""
    done = mixed.kbtools(*words)
    assert done.code == 2
    assert message in done.err


def test_more_jobs_than_github_takes(mixed: Base) -> None:
    """More jobs than one matrix may have are refused here, and not by GitHub at night."""
    mixed.article(*(fence("python fix", f"x = {n}") for n in range(150)), number=6)
    done = mixed.kbtools("ci-matrix", "--shards", "150")
    assert done.code == 2
    assert "300 jobs, and GitHub takes 256" in done.err
