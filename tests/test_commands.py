"""Every command but `check`, `verify` and `build`: what it prints and how it exits."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from bases import KBTOOLS, Base, fence
from click.testing import Result
from commands import output_of, run_command
from examples import lay_out, record_failure

from kbtools import config
from kbtools.articles import scaffold
from kbtools.articles.parsing import read_page
from kbtools.checks.rules import RULES
from kbtools.toolchains.model import Toolchain

ROOT = Path(__file__).parent.parent


def init(folder: Path, prefix: str = "B") -> Result:
    """Runs `init` without questions."""
    return run_command(None, "init", str(folder), "--name", "B", "--prefix", prefix)


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A knowledge base as `init` starts it, with the prefix ABC."""
    root = tmp_path / "a base"
    result = run_command(None, "init", str(root), "--name", 'The "A\\B" 库', "--prefix", "ABC")
    assert result.exit_code == 0, result.output
    return root


def test_init_writes_a_base_that_verifies(base: Path) -> None:
    """What init wrote is valid, names and prefix included, and its article holds."""
    assert config.find(base).knowledge_base.name == 'The "A\\B" 库'
    assert output_of(base, "check") == "1 file checked, no problems\n"
    process = subprocess.run([*KBTOOLS, "-C", str(base), "verify"], capture_output=True, text=True)
    assert process.returncode == 0
    assert "ABC0001/r1" in process.stdout
    assert "1 reproduced, 3 holds" in process.stdout


def test_init_overwrites_nothing(base: Path, tmp_path: Path) -> None:
    """In a folder that holds a knowledge base init does nothing; other files it leaves alone."""
    before = {file: file.read_bytes() for file in base.rglob("*") if file.is_file()}
    assert init(base).exit_code == 2
    assert {file: file.read_bytes() for file in base.rglob("*") if file.is_file()} == before
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / ".gitignore").write_text("mine\n")
    assert init(tmp_path / "other").exit_code == 0
    assert (tmp_path / "other" / ".gitignore").read_text() == "mine\n"


@pytest.mark.parametrize("prefix", ["", "kb", "K1", "KB ", "../K", "ABCDEFGHIJK", "-K"])
def test_init_refuses_a_prefix(prefix: str, tmp_path: Path) -> None:
    """A prefix is one to ten capital letters; nothing is written with another."""
    assert (
        run_command(None, "init", str(tmp_path / "b"), "--name", "B", "--prefix", prefix).exit_code
        == 2
    )
    assert not (tmp_path / "b").exists()


def test_another_form(base: Path) -> None:
    """With other sections, stages and components, new articles keep them, check out and hold."""
    file = base / "kbtools.toml"
    text = file.read_text("utf-8")
    text = text.replace('"Symptom", "Root cause"', '"Symptom", "症状", "Who is affected"')
    text = text.replace('"Fix", ', "").replace('stages = ["build"', 'stages = ["before dawn"')
    file.write_text(text.replace("[run]", '\ncomponents = ["left", "right"]\n\n[run]'), "utf-8")
    (base / "kb" / "ABC0001-division-by-zero.md").unlink()
    printed = output_of(base, "new", "another").split("\n")[0]
    page = read_page(base / printed, config.find(base))
    assert [heading.text for heading in page.headings] == [
        *("Symptom", "症状", "Who is affected", "Best practice")
    ]
    assert (page.matter["stage"], page.matter["components"]) == ("before dawn", ["left"])
    assert "no problems" in output_of(base, "check")
    process = subprocess.run([*KBTOOLS, "-C", str(base), "verify"], capture_output=True, text=True)
    assert process.returncode == 0, process.stdout + process.stderr
    assert "1 reproduced, 1 holds" in process.stdout


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ('a "quoted" title', "a-quoted-title"),
        ("error: C:\\temp\\new", "error-c-temp-new"),
        ("编译失败", "article"),
        ("Überlauf in Größe", "uberlauf-in-groe"),
        ("it's: {a} [b] #c & *d | > % @e `f`", "it-s-a-b-c-d-e-f"),
        ("@BODY@ @ID@ @TITLE@", "body-id-title"),
        ("two\nlines\tand \x07 a bell", "two-lines-and-a-bell"),
        ("../../etc/passwd", "etc-passwd"),
        ("- a list", "a-list"),
        ("--- ...", "article"),
        ("very " * 300, "-".join(["very"] * 10)),
        ("x" * 49 + " y", "x" * 49),
        ("z" * 300, "article"),
    ],
    ids=lambda text: repr(text)[:30],
)
def test_new(title: str, name: str, base: Path) -> None:
    """Of any title, new makes an article that check accepts, with that very title."""
    printed = output_of(base, "new", "--", title).split("\n")[0]
    assert printed == f"kb/ABC0002-{name}.md"
    assert "no problems" in output_of(base, "check")
    [_, article] = json.loads(output_of(base, "list", "--json"))
    assert article["title"] == " ".join(title.replace("\x07", " ").split())


@pytest.mark.parametrize("title", ["", "  ", "\n", "\x07"])
def test_new_without_a_title(title: str, base: Path) -> None:
    """A title that says nothing is refused, and nothing is written."""
    assert run_command(base, "new", title).exit_code == 2
    assert len(list((base / "kb").iterdir())) == 1


def test_new_says_how_to_go_on(tmp_path: Path) -> None:
    """The command that new proposes names the article, whatever its prefix looks like."""
    assert init(tmp_path, "A-B").exit_code == 0
    assert output_of(tmp_path, "new", "a title").endswith("kbtools verify A-B0002\n")


def test_ids_are_never_reused(base: Path) -> None:
    """The id of a deleted article whose evidence is there, or of a translation, is not free."""
    (base / "evidence").mkdir()
    (base / "evidence" / "ABC0007.jsonl").touch()
    assert output_of(base, "new", "a").startswith("kb/ABC0008-a.md")
    (base / "kb" / "ABC0011-b.zh.md").touch()
    assert output_of(base, "new", "a").startswith("kb/ABC0012-a.md")


def test_two_new_at_once(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Articles that are made at the same moment have ids of their own."""
    skeleton = scaffold.skeleton

    def slowly(*arguments: Any) -> str:
        time.sleep(0.05)  # long enough for the others to look for a free id, too
        return skeleton(*arguments)

    monkeypatch.setattr(scaffold, "skeleton", slowly)
    settings = config.find(base)
    with ThreadPoolExecutor(4) as pool:
        files = pool.map(lambda title: scaffold.new_article(settings, title), ("a", "b", "a", "b"))
    assert sorted(file.name[:7] for file in files) == [f"ABC000{i}" for i in range(2, 6)]


def test_list(tmp_path: Path) -> None:
    """List shows each article once, with its computed state; as JSON, with its claims as well."""
    root = lay_out("sound-translation", tmp_path).root
    assert output_of(root, "list") == "KB0001  not run      error: it fails\n"
    record_failure(config.find(root), "KB0001", "r1", "it fails\n")
    assert output_of(root, "list") == "KB0001  reproduced   error: it fails\n"
    [article] = json.loads(output_of(root, "list", "--json"))
    assert (article["id"], article["path"]) == ("KB0001", "kb/KB0001-it-fails.md")
    assert article["signatures"] == [{"literal": "it fails"}]
    assert article["state"] == {
        "word": "reproduced",
        "green": 1,
        "red": 0,
        "not_run": 1,
        "toolchains": 1,
    }


def test_list_of_nothing(base: Path) -> None:
    """An empty knowledge base is a list without lines."""
    (base / "kb" / "ABC0001-division-by-zero.md").unlink()
    assert output_of(base, "list") == ""
    assert json.loads(output_of(base, "list", "--json")) == []


@pytest.mark.parametrize("words", [["list"], ["list", "--json"]])
def test_list_with_a_broken_article(words: list[str], tmp_path: Path) -> None:
    """Articles that cannot be read are reported, not silently left out, and the exit code is 2."""
    result = run_command(lay_out("several-files", tmp_path).root, *words)
    assert result.exit_code == 2
    assert "KB0001-broken.md:4: KB003" in result.stderr
    assert "KB0004" in result.stdout


@pytest.mark.parametrize("word", ["KB0001", "kb/KB0001-it-fails.md"])
def test_explain(word: str, tmp_path: Path) -> None:
    """Explain shows an article, by id or path, with its text and its evidence."""
    root = lay_out("sound-translation", tmp_path).root
    record_failure(config.find(root), "KB0001", "r1", "it fails\n")
    text = output_of(root, "explain", word)
    assert text.startswith("# KB0001: error: it fails\n\n**Upgrade.**\n\n- State: reproduced;")
    assert 'raise SystemExit("it fails")' in text
    assert "| r1 (repro) | reproduced | Python 3.11.7, triton 2.3.0 | 2026-01-31 |" in text


def test_explain_counts_runs(tmp_path: Path) -> None:
    """Runs with one verdict are a row, and --runs shows each: the fix is not scrolled away."""
    root = lay_out("sound-translation", tmp_path).root
    for triton in ("2.2.0", "2.3.0"):
        record_failure(config.find(root), "KB0001", "r1", "it fails\n", triton=triton)
    summary, listing = (
        run_command(root, "explain", "KB0001", *words) for words in ((), ("--runs",))
    )
    assert summary.stdout.count("| r1 (repro) | reproduced |") == 1
    assert "; and 1 more |" in summary.stdout
    assert summary.stderr == "every run: kbtools explain KB0001 --runs\n"
    assert listing.stdout.count("| r1 (repro) | reproduced |") == 2
    assert (listing.stderr, "more |" in listing.stdout) == ("", False)


@pytest.fixture
def empty(new_base: Callable[..., Base]) -> Base:
    """A knowledge base with no article yet."""
    return new_base()


def fix_of(base: Base, *fences: str) -> Result:
    """What `explain --fix` prints of an article whose fixes, in its section *Fix*, are these."""
    file = base.article(
        fence("python repro id=r1", "x = 1\ny = 2\nraise ValueError('the failure')")
    )
    text = file.read_text("utf-8").replace("## Fix\n", "## Fix\n\n" + "\n".join(fences))
    file.write_text(text, "utf-8")
    return run_command(base.root, "explain", "--fix", "kb1")


def test_only_the_fix_is_a_command(empty: Base) -> None:
    """A command is all that a pipe gets; what helps and how to read on are on standard error."""
    result = fix_of(empty, fence("sh", "pip install -U it"), fence("python fix", "x = 1"))
    assert (result.exit_code, result.stdout) == (0, "pip install -U it\n")
    assert result.stderr.startswith("Do it right.\n")
    end = "for the shell; other fixes: fix1; all of it: kbtools explain KB0001\n"
    assert result.stderr.endswith(end)


def test_only_the_fix_is_a_difference(empty: Base) -> None:
    """A fix that is like its repro is shown as the lines that change."""
    result = fix_of(empty, fence("python fix id=f1", "x = 1\ny = 2\nprint(x)"))
    assert result.stdout == " y = 2\n-raise ValueError('the failure')\n+print(x)\n"
    assert "- is in KB0001/r1, which fails; + in KB0001/f1; all of it" in result.stderr


def test_only_the_fix_is_a_program(empty: Base) -> None:
    """A fix that has nothing of its repro is shown whole."""
    result = fix_of(empty, fence("python fix id=f1", "pass"))
    assert result.stdout == "pass\n"
    assert "the program KB0001/f1; all of it" in result.stderr


def test_only_the_fix_of_none(empty: Base) -> None:
    """Where no snippet is a fix, standard output is empty and the exit code is 3."""
    result = fix_of(empty)
    assert (result.exit_code, result.stdout) == (3, "")
    assert "no snippet shows the fix; all of it: kbtools explain KB0001" in result.stderr


@pytest.mark.parametrize("word", ["kb0001", "KB1", "kb01"])
def test_ids_in_any_case(word: str, tmp_path: Path) -> None:
    """An id may be typed in lower case and without its zeros, wherever an article is named."""
    root = lay_out("sound", tmp_path).root
    assert output_of(root, "explain", word) == output_of(root, "explain", "KB0001")
    assert output_of(root, "link", word) == output_of(root, "link", "KB0001")
    assert "1 file checked" in output_of(root, "check", word)
    result = run_command(root, "verify", f"{word}/nonesuch")
    assert "the article has KB0001/r1" in result.stderr
    result = run_command(root, "verify", f"{word}/r1", "--role", "fix")
    assert (result.exit_code, "0 snippets" in result.stdout) == (3, True)


def test_explain_beside_a_translation(tmp_path: Path) -> None:
    """An id names the original, in whatever order the files are; a translation's path works too."""
    root = lay_out("sound-translation", tmp_path).root
    (root / "kb" / "KB0001-it-fails.zh.md").rename(root / "kb" / "KB0001-an.zh.md")
    assert "error: it fails" in output_of(root, "explain", "KB0001")
    assert "KB0001" in output_of(root, "explain", "kb/KB0001-an.zh.md")


@pytest.mark.parametrize("word", ["KB0404", "kb/none.md", "", "KB0001-it-fails", "/"])
def test_explain_an_unknown_article(word: str, tmp_path: Path) -> None:
    """An unknown article is named in the error, with the next step, and the exit code is 2."""
    result = run_command(lay_out("sound", tmp_path).root, "explain", word)
    assert result.exit_code == 2
    assert f"no article `{word}`; see: kbtools list" in result.stderr


def test_env(base: Path) -> None:
    """Env shows the interpreter, its packages and what the sandbox can do."""
    text = output_of(base, "env")
    for word in (
        "interpreter",
        "python",
        "msgspec",
        "platform",
        "nvcc",
        "driver",
        "GPU",
        "sandbox",
    ):
        assert word in text


def test_env_as_json(base: Path) -> None:
    """As JSON, env is the toolchain as evidence records it."""
    toolchain = msgspec.json.decode(output_of(base, "env", "--json"), type=Toolchain)
    assert toolchain.packages["msgspec"] == msgspec.__version__
    assert toolchain.platform.startswith("linux-")


@pytest.mark.parametrize("name", ["none-such", "/dev/null", "kbtools.toml"])
def test_env_of_nothing(name: str, base: Path) -> None:
    """A toolchain that is not declared, or no interpreter, is named, and the exit code is 2."""
    result = run_command(base, "env", "--toolchain", name)
    assert result.exit_code == 2
    assert name in result.stderr


def test_rules() -> None:
    """Rules prints the page of every rule, and needs no knowledge base."""
    result = run_command(None, "rules")
    assert result.exit_code == 0
    for rule in RULES:
        assert f"{rule.code} {rule.name}\n" in result.stdout
        assert rule.page.split("\n")[0] in result.stdout


def matter_of(file: Path, root: Path) -> Any:
    """The front matter of a file as JSON would hold it."""
    return json.loads(json.dumps(read_page(file, config.find(root)).matter, default=str))


@pytest.mark.parametrize(("words", "folder"), [((), "kb"), (("--notice",), "kb/notices")])
def test_schema_of_this_knowledge_base(words: tuple[str, ...], folder: str) -> None:
    """The schemas are JSON Schemas, which the articles and the notices keep."""
    schema = json.loads(output_of(ROOT, "schema", *words))
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    files = [file for file in (ROOT / folder).glob("*.md") if file.name.count(".") == 1]
    assert files
    for file in files:
        validator.validate(matter_of(file, ROOT))


@pytest.mark.parametrize(
    ("name", "valid"),
    [
        ("sound", True),
        ("sound-keys", True),
        ("sound-exempt", True),
        ("kb002-malformed-id", False),
        ("kb003-unknown-key", False),
        ("kb003-unknown-key-nested", False),
        ("kb004-missing-key", False),
        ("kb005-wrong-type", False),
        ("kb005-unknown-word", False),
        ("kb005-upstream", False),
        ("kb005-incomplete", False),
        ("kb101-no-repro", True),
    ],
)
def test_schema_finds_what_check_finds(name: str, valid: bool, tmp_path: Path) -> None:
    """An editor that knows the schema marks the front matter that check would refuse."""
    root = lay_out(name, tmp_path).root
    validator = jsonschema.Draft202012Validator(json.loads(output_of(root, "schema")))
    matter = matter_of(root / "kb" / f"KB0001-{name}.md", root)
    assert validator.is_valid(matter) is valid
