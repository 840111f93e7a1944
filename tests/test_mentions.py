"""Text that speaks of an error is not the error: what is quoted, and what only looks quoted."""

from __future__ import annotations

import pytest

from kbtools.articles.model import Signature
from kbtools.matching import Index, IndexEntry, Matcher

TEXT = "CUDA error: the tile is too large"
TILE = IndexEntry(
    id="KB0001",
    title="tile too large",
    summary="Make it smaller.",
    severity="blocks",
    signatures=(Signature("the tile is too large"),),
)
NAMED = IndexEntry(
    id="KB0002",
    title="a key that is missing",
    summary="Take the prefix off.",
    severity="blocks",
    signatures=(Signature("_orig_tile.", r'Missing key\(s\): "[^"\n]*_orig_tile\.'),),
)


def ids(text: str) -> list[str]:
    """The articles that a text is said to be about."""
    return [match.id for match in Matcher(Index(1, "", "", (TILE, NAMED))).diagnose(text).matches]


@pytest.mark.parametrize(
    "line",
    [
        f'  --retry-on TEXT   default: "{TEXT}"',
        f"  --retry-on TEXT   the text of a log after which to start again (default: '{TEXT}')",
        f"checking job.log for '{TEXT}': 0 matches",
        f"searching for error '{TEXT}': 0 matches in 3 files",
        f"+ grep -c '{TEXT}' job.log",
        f"$ grep -rn '{TEXT}' .",
        f"retry_on: ['{TEXT}', 'timeout']",
        f'RETRY = ("{TEXT}",)',
        f'    "{TEXT}",',
        f'{{"retry_on": ["{TEXT}"], "limit": 3}}',
        f"test_policy.py::test_knows[{TEXT}] PASSED     [ 20%]",
        f"test_policy.py::test_knows[{TEXT}]",
        f"FAILED test_policy.py::test_knows[{TEXT}] - AssertionError: assert 1 == 2",
        f"test_it (t.T.test_it) Knows that it prints {TEXT}. ... ok",
        f"______________ test_knows[{TEXT}] ______________",
        f"- Fixed: `{TEXT}` on small GPUs.",
        f"the loader knows `{TEXT}` and starts again",
        f"    return fail(f'RuntimeError: {TEXT}')",
        f"# RuntimeError: {TEXT}",
        f"    # once: RuntimeError: {TEXT}",
        f"- Fixed: {TEXT} no longer stops the loader.",
        f"* Fix {TEXT} when the last batch is odd (#1234)",
        f"1a2b3c4d Handle {TEXT}",
        f"* [kernels] Avoid {TEXT} on sm_90",
        f"fix(kernels): {TEXT} (#77)",
        f"Known issues: {TEXT} on drivers before 550",
        f"If you see {TEXT}, lower BLOCK_M.",
        f"Errors such as {TEXT} are retried.",
        f"  x = 1  # {TEXT}",
        f"  int x = 1;  // {TEXT}",
        f'+    """Whether it is lost: e.g. {TEXT}."""',
        f"+{TEXT}",
        f"-{TEXT}",
        f"docs/faq.md:12:{TEXT}",
        f'src/tile.py:12:    raise TileError("{TEXT}")',
        f"src/tile.cu-12-  // {TEXT}",
        "the tile is too large         =      701,",
        "too_large     = the tile is too large,",
        f"src/tile.py:12:        {TEXT},",
        f'src/tile.py:12:    message = f"{TEXT} {{size}}\\n"',
        f'   12     raise TileError("{TEXT}")',
        f"2026-11-21 10:00:00,000 INFO [probe:17] not supported: {TEXT}",
        f'{{"level": "info", "message": "skipped a size: {TEXT}"}}',
        f'{{"level": "ERROR", "message": "no job given; known: \'{TEXT}\'"}}',
        f"I1121 10:00:00.000000 77 probe.py:17] not supported: {TEXT}",
        f"ts=1 level=info msg=probe {TEXT}",
        f"WARNING batch of 64: {TEXT}, retrying with 32",
        f"{TEXT}; recovered, going on with 32",
        f"did not happen: {TEXT} (expected)",
        f"simulating {TEXT}",
        f"ok 3 - recovers from {TEXT}",
        f"XFAIL test_tile.py::test_it - RuntimeError: {TEXT}",
        f"test_it ... ok (RuntimeError: {TEXT})",
        f"caught the expected RuntimeError: {TEXT}",
        f"See https://example.org/1 ({TEXT})",
        f"filterwarnings = ignore:.*{TEXT}",
    ],
)
def test_mentions(line: str) -> None:
    """Help, searches, names of tests, change logs, source, comments, and what was dealt with."""
    assert ids(f"starting\n{line}\nstopping\n") == []


@pytest.mark.parametrize(
    "line",
    [
        TEXT,
        f"RuntimeError: {TEXT}",
        f"  RuntimeError: {TEXT}",
        f"RuntimeError('{TEXT}')",
        f"<Task finished name='Task-1' exception=RuntimeError('{TEXT}')>",
        f"RuntimeError: ('{TEXT}', 3)",
        f"Worker failed with error '{TEXT}', please check the stack trace above",
        f'{{"level": "error", "message": "{TEXT}"}}',
        f'{{"level": "error", "msg":"job 3 failed: {TEXT}"}}',
        f'"evalue": "{TEXT}",',
        f'{{"log":"RuntimeError: {TEXT}\\n","stream":"stderr"}}',
        f'{{"exc_info": "Traceback\\n  File \\"x.py\\", line 2\\n    f(\\"!\\")\\nE: {TEXT}"}}',
        f'level=error msg="request failed" err="{TEXT}"',
        f'what():  "{TEXT}"',
        f"FAILED test_tile.py::test_it - RuntimeError: {TEXT}",
        f"FAILED test_tile.py::test_it[float16-64] - RuntimeError: {TEXT}",
        f"ERROR test_tile.py - RuntimeError: {TEXT}",
        f"test_tile.py:12: RuntimeError: {TEXT}",
        f"2026-11-21 10:00:00,000 INFO [launcher] stderr: RuntimeError: {TEXT}",
        f"2026-11-21 10:00:00,000 INFO RuntimeError: {TEXT}",
        f"INFO: kernels.cu(3): error: {TEXT}",
        f"x.cu(12): error: {TEXT}",
        f"[rank0]: - {TEXT}",
        f"  | RuntimeError: {TEXT}",
        f"`RuntimeError: {TEXT}`",
        f'The error message showed: "{TEXT}"',
        f"'RuntimeError: {TEXT}' occurs.",
        f'on the second call the error, "{TEXT}", occurred',
        f"1. `RuntimeError: {TEXT}`",
        f"**`{TEXT}`**",
        f"it fails with this error: `{TEXT}`",
        f"When I start it I get the following error `RuntimeError: {TEXT}` on every GPU.",
        f"    return F.conv3d(torch.TileError: {TEXT}",
        f"    return self._call_impl(*args, **kwargs) RuntimeError: {TEXT}",
        f"    return table['x'](y)RuntimeError: {TEXT}",
        f"  + Exception Group: {TEXT}",
        f"train.log:12:RuntimeError: {TEXT}",
        f"> RuntimeError: {TEXT}",
        f"It didn't work, can't go on: {TEXT}, that's all",
        f"the 'tile' kernel of \"attention\" stopped: {TEXT} in 'run'",
        f"Error at step #3: {TEXT}",
        f"https://example.org/#x {TEXT}",
        'Missing key(s): "a._orig_tile.weight", "b"',
    ],
)
def test_reports(line: str) -> None:
    """What records, exceptions and other programs quote has happened, and has its own quotes."""
    assert len(ids(f"starting\n{line}\nstopping\n")) == 1


def test_a_title_is_no_comment() -> None:
    """In Markdown the first line is a title; the same further below may be a comment."""
    assert ids(f"# RuntimeError: {TEXT}\n\nWhat can I do?\n") == ["KB0001"]
    assert ids(f"x = 1\n# RuntimeError: {TEXT}\n") == []


def test_a_heading_is_no_comment() -> None:
    """An exception in a heading of Markdown is pasted; a heading of other words may speak of it."""
    assert ids(f"It fails.\n\n## RuntimeError: {TEXT}\n\nWhat can I do?\n") == ["KB0001"]
    assert ids(f"It fails.\n### `RuntimeError: {TEXT}`\nWhat can I do?\n") == ["KB0001"]
    assert ids(f"It works.\n\n## What {TEXT} means\n\nNothing.\n") == []


def test_blanks_of_an_address() -> None:
    """A failure is read where an address has it, unless that is the address of a search."""
    text = f"RuntimeError: {TEXT}".replace(" ", "%20").replace("'", "%27")
    assert ids(f"It fails:\n{text}\n") == ["KB0001"]
    assert ids(f"It fails:\nhttps://example.org/issues?q={text}\n") == []


def test_a_line_that_is_a_quoted_exception() -> None:
    """An exception that fills a line between quotation marks is pasted, unlike one in a list."""
    assert ids(f'during training:\n"RuntimeError: {TEXT}. Good luck!"\nAny idea?\n') == ["KB0001"]
    assert ids(f'known = [\n    "RuntimeError: {TEXT}",\n]\n') == []


def test_a_mention_hides_nothing() -> None:
    """The failure is found on its own line, whatever speaks of it elsewhere."""
    log = f"retry on: '{TEXT}'\nRuntimeError: {TEXT}\nif you see {TEXT}, lower it\n"
    diagnosis = Matcher(Index(1, "", "", (TILE,))).diagnose(log)
    assert [(match.line, match.confident) for match in diagnosis.matches] == [(2, True)]


@pytest.mark.parametrize(
    ("above", "below", "is_sure"),
    [
        ("INFO starting", "Search the manual.", True),
        ("INFO starting", "INFO retrying with a smaller batch", False),
        ("WARNING step 3 failed, falling back to eager", "INFO step 4", False),
    ],
)
def test_what_a_program_dealt_with(above: str, below: str, is_sure: bool) -> None:
    """Of a traceback around which the program says that it goes on, nothing is sure."""
    frame = '  File "x.py", line 3, in f\n    run()'
    log = f"{above}\nTraceback (most recent call last):\n{frame}\nRuntimeError: {TEXT}\n{below}\n"
    [match] = Matcher(Index(1, "", "", (TILE,))).diagnose(log).matches
    assert (match.line, match.confident) == (5, is_sure)


@pytest.mark.parametrize(
    ("above", "is_source"),
    [
        ('  File "x.py", line 3, in f', True),
        ("x.py:12: FutureWarning: old", True),
        ("2026-11-21 10:00:00 INFO x.py:12 starting", False),
    ],
)
def test_what_stands_below_a_place(above: str, is_source: bool) -> None:
    """Source is further to the right than the place above it; the next line of a log is not."""
    begin = above[: above.find("x.py")] if "INFO" in above else "    "
    assert ids(f"{above}\n{begin}{TEXT}") == ([] if is_source else ["KB0001"])


@pytest.mark.parametrize(
    ("line", "articles"),
    [
        ("FAILED test_a.py::test_b - RuntimeError: the tile is too l...", ["KB0001"]),
        ("FAILED test_a.py::test_b[a b] - RuntimeError: the tile is too l...", ["KB0001"]),
        ("ERROR test_a.py - RuntimeError: the tile is too la...", ["KB0001"]),
        ("FAILED test_a.py::test_b - RuntimeError: the tile is...", []),
        ("FAILED test_a.py::test_b - RuntimeError: the tile is too narrow fo...", []),
        ("RuntimeError: the tile is too l...", []),
    ],
)
def test_a_summary_that_was_cut(line: str, articles: list[str]) -> None:
    """Sixteen characters of a literal at the end of a summary's line are enough, never sure."""
    matches = Matcher(Index(1, "", "", (TILE, NAMED))).diagnose(f"{line}\n1 failed\n").matches
    assert [match.id for match in matches] == articles
    assert not any(match.confident for match in matches)
    assert all("is cut" in match.hints[0] for match in matches)
