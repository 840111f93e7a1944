"""The verdict table: role × expectation × outcome, and what counts as the documented failure."""

from __future__ import annotations

import itertools
import typing

import pytest

from kbtools.articles.model import (
    ALWAYS,
    Article,
    FrontMatter,
    Keys,
    Place,
    Role,
    Signature,
    Snippet,
)
from kbtools.articles.signatures import recognises
from kbtools.evidence.verdicts import (
    GREEN,
    RED,
    Expectation,
    VerdictName,
    documented_failure,
    expect,
    fails_as_documented,
    judge,
)
from kbtools.outcome import Outcome, Status
from kbtools.toolchains.model import Gpu, Toolchain

CPU = Toolchain(python="3.11.7", packages={"torch": "2.13.0+cpu", "triton": "3.7.1"})
GPU = Toolchain("3.11.7", CPU.packages, cuda="13.0.88", gpus=(Gpu("NVIDIA H200", "9.0"),) * 2)

PASSED = Outcome("passed", exit=0)
DOCUMENTED = Outcome("failed", exit=1, exceptions=("ValueError",), output="error: it fails\n")
OTHERWISE = Outcome("failed", exit=1, exceptions=("KeyError",), output="KeyError: 'x'\n")
STOPPED = Outcome("stopped", exit=0, output="error: it fails\n")
KILLED = Outcome("signal", signal="SIGSEGV")
ABORTED = Outcome("signal", signal="SIGABRT", output="error: it fails\n")
LATE = Outcome("timeout", message="time limit of 60 s")
LATE_BUT_SHOWN = Outcome("timeout", message="time limit of 60 s", output="error: it fails\n")
LIMIT = Outcome("limit", message="memory")
LOST = Outcome("lost", message="the zygote died")
ASSERTED = Outcome("failed", exit=1, exceptions=("AssertionError",), output="AssertionError\n")
FAILED = (DOCUMENTED, ASSERTED, OTHERWISE)
OUTCOMES = (
    PASSED,
    *FAILED,
    STOPPED,
    KILLED,
    ABORTED,
    LATE,
    LATE_BUT_SHOWN,
    LIMIT,
)


def article(*signatures: Signature) -> Article:
    """An article with these signatures."""
    matter = FrontMatter(
        id="KB0001",
        title="a",
        summary="a",
        components=("a",),
        stage="runtime",
        severity="crash",
        signatures=signatures or (Signature("it fails"),),
    )
    return Article(matter, "kb/KB0001-a.md", "en", (), "")


def snippet(role: Role = Role.REPRO, language: str = "python", **keys: str) -> Snippet:
    """A snippet with these keys."""
    place = Place("kb/KB0001-a.md", 7)
    return Snippet("KB0001", "r1", role, language, "x\n", place, Keys(**keys), ALWAYS)  # type: ignore[arg-type]


def verdict(role: Role, what: str, outcome: Outcome, **keys: str) -> VerdictName:
    """The name of the verdict."""
    expected = Expectation(what, "because")  # type: ignore[arg-type]
    return judge(article(), snippet(role, **keys), expected, outcome).name


SHOWN = (DOCUMENTED, ABORTED, LATE_BUT_SHOWN)
NOT_SHOWN = (OTHERWISE, STOPPED, KILLED, LATE, LIMIT)
ROWS = (
    # expected, what came, and the verdict on a repro, a dead end, a fix (or practice, or control),
    # and on a fact; ASSERTED is what shows that a fact does not hold
    ("fails", SHOWN, "reproduced", "no-help", None, "other-failure"),
    ("fails", NOT_SHOWN, "other-failure", "other-failure", None, "other-failure"),
    ("fails", (ASSERTED,), "other-failure", "other-failure", None, "holds-not"),
    ("fails", (PASSED,), "not-reproduced", "not-reproduced", None, "too-narrow"),
    ("passes", SHOWN, "regressed", "regressed", "broken", "other-failure"),
    ("passes", NOT_SHOWN, "other-failure", "other-failure", "broken", "other-failure"),
    ("passes", (ASSERTED,), "other-failure", "other-failure", "broken", "untrue"),
    ("passes", (PASSED,), "resolved", "resolved", "holds", "holds"),
)
TABLE = [
    (role, what, outcome, VerdictName(name))
    for what, outcomes, repro, deadend, passing, fact in ROWS
    for outcome in outcomes
    for role, name in {
        Role.REPRO: repro,
        Role.FIX: passing,
        Role.PRACTICE: passing,
        Role.CONTROL: passing,
        Role.DEADEND: deadend,
        Role.FACT: fact,
    }.items()
    if name  # nothing but to pass is ever expected of the three
]


@pytest.mark.parametrize(("role", "what", "outcome", "name"), TABLE)
def test_table(role: Role, what: str, outcome: Outcome, name: VerdictName) -> None:
    """A repro and a dead end are held to their failure, a fact to both sides, others to passing."""
    assert verdict(role, what, outcome) == name


def test_table_is_whole() -> None:
    """The table has every outcome for both expectations, and every status that there is."""
    rows = {(what, outcome) for _, what, outcome, _ in TABLE}
    assert rows == set(itertools.product(("fails", "passes"), OUTCOMES))
    assert {outcome.status for outcome in (*OUTCOMES, LOST)} == set(typing.get_args(Status))


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("outcome", [*OUTCOMES, LOST])
def test_grey_stays_grey(role: Role, outcome: Outcome) -> None:
    """What was not expected to be run, or was lost, is neither green nor red whatever came."""
    assert verdict(role, "skip", outcome) == VerdictName.SKIPPED
    assert verdict(role, "unknown", outcome) == VerdictName.UNKNOWN
    for what in ("fails", "passes"):
        assert verdict(role, what, LOST) == VerdictName.INCONCLUSIVE


def test_colours() -> None:
    """Each verdict has one colour, and only three are grey."""
    assert not set(GREEN) & set(RED)
    assert set(VerdictName) - {*GREEN, *RED} == {
        VerdictName.SKIPPED,
        VerdictName.UNKNOWN,
        VerdictName.INCONCLUSIVE,
    }


@pytest.mark.parametrize(
    ("fails", "documented"),
    [
        ("signature", (DOCUMENTED, ABORTED, LATE_BUT_SHOWN)),
        ("ValueError", (DOCUMENTED,)),
        ("timeout", (LATE, LATE_BUT_SHOWN)),
        ("SIGSEGV", (KILLED,)),
        ("SIGABRT", (ABORTED,)),
        ("exit:1", (DOCUMENTED, ASSERTED, OTHERWISE)),
        ("exit:2", ()),
        ("exit:0", ()),
        ("Error", ()),
    ],
)
def test_fails(fails: str, documented: tuple[Outcome, ...]) -> None:
    """`fails=` says what the failure is: nothing else is it, and what ended early never is."""
    repro = snippet(fails=fails)
    counted = {o for o in (*OUTCOMES, LOST) if fails_as_documented(article(), repro, o)}
    assert counted == {*documented}


def test_fails_with_a_base_class() -> None:
    """`fails=RuntimeError` holds for an exception derived from it."""
    outcome = Outcome(
        "failed", exit=1, exceptions=("OutOfMemoryError", "RuntimeError", "Exception")
    )
    for fails, documented in {
        "RuntimeError": True,
        "OutOfMemoryError": True,
        "OSError": False,
    }.items():
        assert fails_as_documented(article(), snippet(fails=fails), outcome) is documented


def test_any_signature_will_do() -> None:
    """One signature of several in the output is enough, and what is documented names them all."""
    two = article(Signature("it falls"), Signature("it fails", regex="it f[a-z]+s$"))
    assert fails_as_documented(two, snippet(), DOCUMENTED)
    assert documented_failure(two, snippet()) == "`it falls` or `it f[a-z]+s$`"
    assert documented_failure(two, snippet(fails="timeout")) == "timeout"


@pytest.mark.parametrize(
    ("signature", "text", "recognised"),
    [
        (Signature("it fails"), "error: it fails.", True),
        (Signature("it fails"), "error: It fails.", False),
        (Signature("a.c"), "abc", False),
        (Signature("it fails", regex=r"#\d+"), "it fails: operand #1", True),
        (Signature("it fails", regex=r"#\d+"), "it fails: operand #x", False),
        (Signature("it fails", regex=r"#\d+"), "operand #1", False),
        (Signature("fails", regex=r"^it fails$"), "first\nit fails\nlast", True),
        (Signature("fails", regex=r"^it fails$"), "first: it fails\nlast", False),
        (Signature("fails", regex=r"it .*\n.*fails"), "it\nfails", False),
        (Signature("fails", regex=r"it.fails"), "it\nfails", False),
        (Signature("fails", near="never there"), "it fails", True),
        (Signature("失败"), "错误：失败", True),
        (Signature("fails", regex=r"a|b fails"), "b fails", True),
    ],
)
def test_recognises(signature: Signature, text: str, recognised: bool) -> None:
    """A signature is found by its literal and its expression, which is asked line by line."""
    assert recognises(signature, text) is recognised


def test_recognises_in_linear_time() -> None:
    """A nested repeat does not stop the match of a long log."""
    assert not recognises(Signature("aaaa", regex="(a+)+$b"), "a" * 20_000)


@pytest.mark.parametrize(
    ("keys", "language", "on_cpu", "on_gpu"),
    [
        ({}, "cuda", "needs nvcc, none on the PATH", ""),
        ({}, "python", "", ""),
        ({"requires": "gpu"}, "python", "needs 1 GPU, none here", ""),
        ({"requires": "gpus:1"}, "python", "needs 1 GPU, none here", ""),
        ({"requires": "gpus:2"}, "python", "needs 2 GPUs, none here", ""),
        ({"requires": "gpus:4"}, "python", "needs 4 GPUs, none here", "needs 4 GPUs, 2 here"),
        ({"requires": "nvcc"}, "bash", "needs nvcc, none on the PATH", ""),
        ({"requires": "nvcc"}, "cuda", "needs nvcc, none on the PATH", ""),
        ({"requires": "gpu"}, "cuda", "needs 1 GPU, none here", ""),
        ({"requires": "compile"}, "python", "", ""),
        ({"sm": ">=9.0"}, "python", "needs a GPU of compute capability >=9.0, none here", ""),
        (
            {"sm": ">=10.0"},
            "python",
            "needs a GPU of compute capability >=10.0, none here",
            "needs a GPU of compute capability >=10.0, this one has 9.0",
        ),
        ({"toolchain": "old"}, "python", *["only on the toolchain old"] * 2),
    ],
)
def test_needs(keys: dict[str, str], language: str, on_cpu: str, on_gpu: str) -> None:
    """A snippet whose needs a toolchain lacks is skipped, and says what it lacks."""
    for toolchain, reason in ((CPU, on_cpu), (GPU, on_gpu)):
        expected = expect(snippet(Role.REPRO, language, **keys), toolchain)
        assert (expected.what, expected.reason if expected.what == "skip" else "") == (
            ("skip", reason) if reason else ("fails", "")
        )


def test_named_toolchain() -> None:
    """A snippet for one toolchain is run where that is the name, not elsewhere."""
    assert expect(snippet(toolchain="old"), CPU, "old").what == "fails"
    assert expect(snippet(toolchain="old"), CPU, "new").what == "skip"


@pytest.mark.parametrize(
    ("version", "repro", "fix"),
    [
        ("2.3.1", "fails", "passes"),
        ("3.7.1", "passes", "passes"),
        ("3.0.0rc1", "unknown", "passes"),
        ("", "skip", "skip"),
    ],
)
def test_expectation(version: str, repro: str, fix: str) -> None:
    """A repro fails where affected, else passes; a fix passes; both need the package."""
    toolchain = Toolchain("3.11.7", {"triton": version} if version else {})
    for role, what in ((Role.REPRO, repro), (Role.DEADEND, repro), (Role.FIX, fix)):
        place = Place("kb/KB0001-a.md", 7)
        affected = ({"triton": ">=2.2,<3.0"},)
        tested = Snippet("KB0001", "r1", role, "python", "x\n", place, Keys(), affected)
        expected = expect(tested, toolchain)
        assert expected.what == what
        assert expected.reason
