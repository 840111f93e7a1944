"""From a pasted log to an article: what is cleaned, what counts, what is sure."""

from __future__ import annotations

import msgspec
import pytest

from kbtools.articles.model import Signature
from kbtools.config import ToolchainForm
from kbtools.matching import Diagnosis, Index, IndexEntry, Matcher
from kbtools.matching.cleaning import HEAD, MAX_LINES, TAIL, Log, clean
from kbtools.matching.versions import VersionReader, version_patterns

TILE = IndexEntry(
    id="KB0001",
    title="tile too large",
    summary="Make it smaller.",
    severity="blocks",
    affected=({"triton": ">=2.2,<3.0"},),
    signatures=(Signature("the tile is too large", r"Error: the tile is too large \(\d+\)"),),
)
ALIKE = msgspec.structs.replace(
    TILE,
    id="KB0002",
    title="tile too large, on other machines",
    affected=(),
    signatures=(msgspec.structs.replace(TILE.signatures[0], near="sm_100"),),
)
WRAPPER = msgspec.structs.replace(
    TILE,
    id="KB0003",
    title="the compiler failed",
    affected=(),
    signatures=(Signature("CompilerFailed: backend", wraps=True),),
)
FAILURE = "TileError: the tile is too large (512)"


VERSIONS = version_patterns(
    TILE.affected,
    ToolchainForm(headline=("torch",), version_texts={"torch": ("PyTorch version: {version}",)}),
)


def diagnose(text: str, *entries: IndexEntry) -> Diagnosis:
    """What an index of these articles says to a text."""
    return Matcher(Index(1, "tiles", "", entries or (TILE,), versions=VERSIONS)).diagnose(text)


def ids(diagnosis: Diagnosis) -> list[str]:
    """The articles, best first."""
    return [match.id for match in diagnosis.matches]


@pytest.mark.parametrize(
    "line",
    [
        FAILURE,
        f"[rank0]: {FAILURE}",
        f"E   {FAILURE}",
        f"E               {FAILURE}",
        f"2026-11-21T10:00:00.1234567Z {FAILURE}",
        f"2026-11-21 10:00:00,123 - ERROR - {FAILURE}",
        f"(EngineCore_DP0 pid=4127) ERROR 11-21 10:00:00 [core.py:710] {FAILURE}",
        f"(RayWorkerWrapper pid=1, ip=10.0.0.1) {FAILURE}",
        f"[rank1]:[E1121 10:00:00.123456789 Group.cpp:616] {FAILURE}",
        f"E1121 10:00:00.123000 77 torch/elastic/api.py:881] {FAILURE}",
        f"trainer-1  | {FAILURE}",
        f"Nov 21 10:00:00 node01 trainer[9177]: {FAILURE}",
        f"##[error]{FAILURE}",
        f"#12 34.56 {FAILURE}",
        f"> {FAILURE}",
        f"  | {FAILURE}",
        f"\x1b[1;31m{FAILURE}\x1b[0m",
        "\x1b[31mTileError\x1b[0m: the \x1b[1mtile is too large\x1b[0m (\x1b[36m512\x1b[0m)",
        f"\\u001b[31m{FAILURE}\\u001b[0m",
        f"[0;31m{FAILURE}[0m",
        f"\x1b]8;;http://x\x07{FAILURE}",
        f"step 1\rstep 2\r{FAILURE}",
        f"{FAILURE}\r",
        f"\x00\ufeff{FAILURE}",
        f'File "tile.py", line 1, in f\n{FAILURE}',
    ],
)
def test_what_stands_around_a_line(line: str) -> None:
    """Colours, times, ranks, workers, quotes and carriage returns do not hide a failure."""
    text = f"starting\n{line}\nstopping\n"
    diagnosis = diagnose(text)
    assert ids(diagnosis) == ["KB0001"]
    assert Log(clean(line)).text.strip().endswith(FAILURE)


@pytest.mark.parametrize(
    "text",
    [
        "TileError: the tile is\ntoo large (512)",
        "TileError: the tile is to\no large (512)",
        "Tiler-X :   TileError: the tile is\nTiler-X :   too large (512)\nTiler-X : bye",
        "node7> TileError: the tile is to\nnode7> o large (512)\nnode7> bye",
    ],
    ids=["between words", "at the terminal's width", "below a prefix", "below another"],
)
def test_broken_lines(text: str) -> None:
    """A failure that a terminal broke over two lines is found, at its first line."""
    diagnosis = diagnose(f"starting\n{text}\nstopping")
    assert [(match.id, match.line) for match in diagnosis.matches] == [("KB0001", 2)]


def test_the_answer_explains_itself() -> None:
    """A match says which line, by which signature, and what would make it surer."""
    [match] = diagnose(f"Traceback\n{FAILURE}\n").matches
    assert (match.line, match.text) == (2, FAILURE)
    assert match.signature == TILE.signatures[0].regex
    assert match.affected == "unknown"
    assert "no version of triton" in match.reason
    assert match.confident
    assert match.hints == ("add the version of triton (the output of `pip list`, say)",)


@pytest.mark.parametrize(
    ("version", "affected", "sure"),
    [
        ("2.3.1", "affected", True),
        ("3.0.0", "not affected", False),
        ("3.0.0.dev1", "unknown", True),
    ],
)
def test_the_reader_s_own_versions(version: str, affected: str, sure: bool) -> None:
    """What the log shows of its versions decides whether the claim is about it."""
    [match] = diagnose(f"triton=={version}\n{FAILURE}\n").matches
    assert (match.affected, match.confident) == (affected, sure)


def test_versions_rule_out() -> None:
    """Of two that print the same text, the one that the versions rule out comes last."""
    assert ids(diagnose(FAILURE, TILE, ALIKE)) == ["KB0001", "KB0002"]
    assert ids(diagnose(f"triton 3.1.0\n{FAILURE}", TILE, ALIKE)) == ["KB0002", "KB0001"]


def test_what_is_near() -> None:
    """Of two that print the same line, the one whose context is in the log comes first."""
    diagnosis = diagnose(f"compiling for sm_100\n{FAILURE}", TILE, ALIKE)
    assert ids(diagnosis) == ["KB0002", "KB0001"]
    assert diagnosis.matches[0].confident
    assert not diagnose(FAILURE, TILE, ALIKE).matches[1].confident


def test_a_tie_is_said() -> None:
    """Where nothing in the log decides between two articles, both are named, neither is sure."""
    twin = msgspec.structs.replace(TILE, id="KB0009", affected=())
    rival = msgspec.structs.replace(TILE, id="KB0003", affected=())
    matches = diagnose(FAILURE, twin, rival).matches
    assert [(match.id, match.tied) for match in matches] == [
        ("KB0003", ("KB0009",)),
        ("KB0009", ("KB0003",)),
    ]
    assert not matches[0].confident
    assert "a tie with KB0009" in matches[0].hints[0]


def test_more_of_its_texts_decide() -> None:
    """Of two that print the same line, the one of which the log has other texts, too, is first."""
    fuller = msgspec.structs.replace(
        TILE,
        id="KB0009",
        affected=(),
        signatures=(*TILE.signatures, Signature("tile pool is full")),
    )
    rival = msgspec.structs.replace(TILE, id="KB0003", affected=())
    assert ids(diagnose(f"{FAILURE}\ntile pool is full", rival, fuller)) == ["KB0009", "KB0003"]
    assert diagnose(f"{FAILURE}\ntile pool is full", rival, fuller).matches[0].tied == ()


def test_a_wrapper_ranks_below_what_it_wraps() -> None:
    """What is printed around other failures is the answer only where nothing else is."""
    wrapped = f"CompilerFailed: backend='x' raised:\n{FAILURE}"
    assert ids(diagnose(wrapped, WRAPPER, TILE)) == ["KB0001", "KB0003"]
    alone = diagnose("CompilerFailed: backend='x' raised:\nOops", WRAPPER, TILE)
    assert ids(alone) == ["KB0003"]
    assert not alone.matches[0].confident


def test_a_text_of_many_causes_is_no_answer_without_its_context() -> None:
    """With `shared`, a signature counts only where its `near` is, and is never sure without one."""
    shared = msgspec.structs.replace(
        ALIKE, signatures=(msgspec.structs.replace(ALIKE.signatures[0], shared=True),)
    )
    assert ids(diagnose(FAILURE, shared)) == []
    assert diagnose(f"compiling for sm_100\n{FAILURE}", shared).matches[0].confident
    alone = msgspec.structs.replace(
        ALIKE, signatures=(msgspec.structs.replace(TILE.signatures[0], shared=True),)
    )
    [match] = diagnose(FAILURE, alone).matches
    assert not match.confident
    assert "other failures print this text, too" in match.hints[0]


def test_what_stands_at_the_begin_of_a_line_is_seen_in_broken_lines() -> None:
    """Where lines had to be joined to find a text, its context is looked for in the lines, too."""
    signature = msgspec.structs.replace(TILE.signatures[0], unless="^other: ")
    entry = msgspec.structs.replace(ALIKE, signatures=(signature,))
    broken = "TileError: the tile is\ntoo large (512)"
    assert ids(diagnose(f"start\n{broken}", entry)) == ["KB0002"]
    assert ids(diagnose(f"start\nother: x\n{broken}", entry)) == []


def test_what_a_log_must_not_show() -> None:
    """With `unless`, a log of another cause is not answered."""
    entry = msgspec.structs.replace(
        ALIKE, signatures=(msgspec.structs.replace(TILE.signatures[0], unless="rocm\\d"),)
    )
    assert ids(diagnose(FAILURE, entry)) == ["KB0002"]
    assert ids(diagnose(f"torch 2.8.0+rocm6.4\n{FAILURE}", entry)) == []


@pytest.mark.parametrize(
    ("text", "confident"),
    [
        (f"UserWarning: {FAILURE}", True),
        ("W1121 10:00:00.1 77 tile.py:3] the tile is too large", True),
        ("WARNING:tile:the tile is too large", True),
        ("the tile is too large", False),
        ("UserWarning: the tile is too large\nKeyError: 'x'", False),
        ("UserWarning: the tile is too large\nTraceback (most recent call last):\n", False),
        ("WARNING:tile:the tile is too large\nIgnore above if you have no tile.", False),
    ],
)
def test_a_warning_is_sure_where_nothing_else_failed(text: str, confident: bool) -> None:
    """A level does not decide; what failed beside it does, and what the program says of it."""
    entry = msgspec.structs.replace(ALIKE, signatures=(Signature("the tile is too large"),))
    [match] = diagnose(text, entry).matches
    assert match.confident == confident


def test_the_first_error_counts() -> None:
    """Of two failures the first is the answer: the second may be its consequence."""
    worker = msgspec.structs.replace(
        TILE, id="KB0004", affected=(), signatures=(Signature("worker died with exit code"),)
    )
    later = "The above exception was the direct cause\n\nError: worker died with exit code 1"
    assert ids(diagnose(f"{FAILURE}\n\n{later}", worker, TILE)) == ["KB0001", "KB0004"]
    warned = f"UserWarning: worker died with exit code 0\n{FAILURE}"
    assert ids(diagnose(warned, worker, TILE)) == ["KB0001", "KB0004"]


@pytest.mark.parametrize(
    "text",
    [
        'raise TileError("Error: the tile is too large (512)")',
        "size = 512\n# Error: the tile is too large (512)\nrun(size)",  # alone it is a title
        '  File "x.py", line 3, in f\n    check(x, "Error: the tile is too large (512)")',
        "with pytest.raises(TileError, match='Error: the tile is too large (512)'):",
        "the tile is too large",
        "ValueError: the tile is too narrow (512)",
        "",
    ],
)
def test_none(text: str) -> None:
    """Source code that holds the text, half of it, and nothing at all are no failure."""
    assert diagnose(text).matches == ()


def test_a_long_log_is_read_from_both_ends() -> None:
    """What is left out is the middle, and the lines keep their numbers."""
    noise = [f"step {i}" for i in range(3 * MAX_LINES)]
    assert [m.line for m in diagnose("\n".join([FAILURE, *noise])).matches] == [1]
    assert [m.line for m in diagnose("\n".join([*noise, FAILURE])).matches] == [3 * MAX_LINES + 1]
    middle = [*noise[: 2 * MAX_LINES], FAILURE, *noise[2 * MAX_LINES :], *noise]
    assert diagnose("\n".join(middle)).matches == ()
    long = "x" * (HEAD + 2 * TAIL)
    assert [m.line for m in diagnose(f"{FAILURE}\n{long}\n{long}").matches] == [1]
    assert [m.line for m in diagnose(f"{long}\n{long}\n{FAILURE}").matches] == [3]


@pytest.mark.parametrize(
    ("text", "versions"),
    [
        ("PyTorch version: 2.6.0+cu124\nPython version: 3.11.7 (main)", ["2.6.0+cu124", "3.11.7"]),
        ("torch                2.3.1\ntriton    2.3.1", ["2.3.1", None]),
        ("Successfully installed torch-2.3.1", ["2.3.1", None]),
        ("x/python3.12/site-packages/torch-2.5.1.dist-info", ["2.5.1", "3.12"]),
        ("collected torch==2.8.0.dev20250401", ["2.8.0.dev20250401", None]),
        ("libtorch 1.0 torchvision 0.2.1 mytorch 9.9.9", [None, None]),
    ],
)
def test_versions_in_a_log(text: str, versions: list[str | None]) -> None:
    """Versions are read from what pip, PyTorch and paths print, and from no other name."""
    reading = VersionReader(VERSIONS).read(text)
    assert [reading.get("torch"), reading.get("python")] == versions


def test_which_versions_are_read() -> None:
    """A log shows what articles and the configuration name, and of the machine what they all do."""
    form = ToolchainForm(
        packages=("numpy", "nvidia-*", "torch[a-z]*"),
        headline=("torch",),
        version_texts={"Flash_Infer": ("flashinfer {version}",)},
    )
    patterns = version_patterns([{"triton": ">=3", "sm": ">=9.0"}, {"numpy": "<2"}], form)
    names = ["flash-infer", "numpy", "torch", "triton", "python", "cuda", "driver"]
    assert [name for name, _ in patterns] == names
    text = (
        "flash_infer==0.1\nflashinfer   0.2.5\nnvidia-nccl 2.3\nNumPy 1.0\nx/numpy 1.1\n[numpy==1.2"
    )
    assert VersionReader(patterns).read(text) == {"flash-infer": "0.2.5"}
    assert VersionReader(patterns).read("flash_infer-0.1.3.dist-info") == {"flash-infer": "0.1.3"}
