"""Is a toolchain affected? Ranges, local parts, pre-releases, and what is not there."""

from __future__ import annotations

import itertools

import pytest
from packaging.version import Version

from kbtools.articles.model import ALWAYS
from kbtools.toolchains.affected import (
    MissingVersion,
    UndecidedVersion,
    is_affected,
    parse_range,
    range_holds,
)
from kbtools.toolchains.model import Gpu, Toolchain

NIGHTLY = "2.8.0.dev20250410+cu126"
VENDOR = "2.6.0a0+df5bbc09d1.nv24.12"
COMMIT = "3.3.0+git96316ce5"

RELEASES = [
    ("2.13.0+cpu", ">=2.2,<3.0", True),
    ("2.13.0+cpu", "<2.13", False),
    ("2.13.0+cpu", "==2.13.0", True),
    ("2.13.0+cpu", "!=2.13.0", False),
    ("2.13.0+cpu", "<=2.13", True),
    ("2.13.0+cpu", ">2.13", False),
    ("2.6.0+cu124", ">2.6.0", False),
    ("2.6.0+cu124", "<=2.6.0", True),
    ("2.6.0+cu124", "==2.6.*", True),
    ("2.6.0+cu124.post1", "==2.6.0", True),
    ("2.7.1", "==2.7.*", True),
    ("2.8.0", "==2.7.*", False),
    ("2.70.0", "==2.7.*", False),
    ("2.7.1", "!=2.7.*", False),
    ("2.8.0", "!=2.7.*", True),
    ("2.9.1", "~=2.7", True),
    ("3.0.0", "~=2.7", False),
    ("2.6.9", "~=2.7", False),
    ("2.7.9", "~=2.7.1", True),
    ("2.8.0", "~=2.7.1", False),
    ("2.7.4.post1", ">=2.7.4", True),
    ("2.7.4.post1", "==2.7.4.post1", True),
    ("2.10.0", ">2.9", True),
    ("2.8.0", "", True),
    ("2.8.0", ">=2.8.0.dev20250401", True),
    ("2.8.0", "<2.8.0rc1", False),
    ("1!1.0", ">=2.0", True),
]
AT_A_BOUNDARY = [
    (NIGHTLY, "<2.8"),
    (NIGHTLY, "<2.8.0"),
    (NIGHTLY, ">=2.8"),
    (NIGHTLY, ">2.8.0"),
    (NIGHTLY, "<=2.8"),
    (NIGHTLY, "==2.8.0"),
    (NIGHTLY, "!=2.8.0"),
    (NIGHTLY, "==2.8.*"),
    (NIGHTLY, "==2.7.*"),
    (NIGHTLY, "!=2.7.*"),
    (NIGHTLY, "~=2.8"),
    (NIGHTLY, "~=2.7.1"),
    (NIGHTLY, ">=2.5,<2.8"),
    ("3.0.0.dev20250410", "~=2.7"),
    ("2.8.0rc3", "<2.8"),
    ("2.8.0rc3", ">=2.8.0,<2.9"),
    ("2.8.0b1", "<2.8.0"),
    ("3.13.0rc1", ">=3.13"),
    (VENDOR, "<2.6"),
    (VENDOR, ">=2.6.0,<2.7"),
    # what names a pre-release decides for dated builds, not for those of some commit
    (VENDOR, ">=2.6.0.dev20241101"),
    (VENDOR, "<2.6.0rc1"),
    ("2.6.0.dev0+gitabc", "<2.6.0.dev20241101"),
    (COMMIT, "<3.3"),
    (COMMIT, ">=3.3.0"),
    (COMMIT, ">=3.3.0.dev20250101"),
]
AWAY_FROM_IT = [
    (NIGHTLY, ">=2.7", True),
    (NIGHTLY, "<2.7", False),
    (NIGHTLY, ">=2.2,<3.0", True),
    (NIGHTLY, "==2.6.*", False),
    (NIGHTLY, "!=2.6.*", True),
    (NIGHTLY, "~=2.6", True),
    (NIGHTLY, "<2.8.1", True),
    (NIGHTLY, ">=2.9,<2.8", False),
    ("2.8.1.dev20250410", "<2.8.1,>=2.9", False),
    ("2.7.1.dev20250410", "<2.8", True),
    ("2.7.1.dev20250410", "==2.7.*", True),
    (VENDOR, "<2.7", True),
    (VENDOR, ">=2.5,<2.5.2", False),
    (VENDOR, ">=2.7.0.dev20250101", False),
    ("2.8.0rc3", ">=2.7,<2.9", True),
    (COMMIT, ">=3.2,<3.4", True),
    (COMMIT, "<3.2", False),
]
NAMED = [
    (NIGHTLY, ">=2.8.0.dev20250401,<2.8.0.dev20250501", True),
    (NIGHTLY, ">=2.8.0.dev20250411", False),
    (NIGHTLY, "<2.8.0.dev20250410", False),
    (NIGHTLY, "<=2.8.0.dev20250410", True),
    (NIGHTLY, "==2.8.0.dev20250410", True),
    (NIGHTLY, "<2.8.0rc1", True),
    ("2.8.0rc2", ">=2.8.0rc1,<2.8.0rc3", True),
    ("2.8.0rc2+cu128", "<2.8.0rc2", False),
    ("2.8.0", "<2.8.0.dev20250501", False),
    ("2.9.0.dev20250701+cu128", ">=2.8.0.dev20250401", True),
]


@pytest.mark.parametrize(("version", "text", "expected"), RELEASES)
def test_release(version: str, text: str, expected: bool) -> None:
    """A release is compared by PEP 440, without its local part."""
    assert range_holds(text, Version(version)) is expected


@pytest.mark.parametrize(("version", "text"), AT_A_BOUNDARY)
def test_pre_release_at_a_boundary(version: str, text: str) -> None:
    """A pre-release of the very release that a range begins or ends at could be on either side."""
    assert range_holds(text, Version(version)) is None


@pytest.mark.parametrize(("version", "text", "expected"), AWAY_FROM_IT)
def test_pre_release_away_from_it(version: str, text: str, expected: bool) -> None:
    """Any other pre-release counts as its release, and one clause that excludes it decides."""
    assert range_holds(text, Version(version)) is expected


@pytest.mark.parametrize(("version", "text", "expected"), NAMED)
def test_range_that_names_pre_releases(version: str, text: str, expected: bool) -> None:
    """Where the author names a pre-release, a dated one is compared with it."""
    assert range_holds(text, Version(version)) is expected


def test_never_guesses() -> None:
    """Whatever the range, a pre-release of a release it is bounded by is never said to be in it."""
    releases = ("2.6.0", "2.7.0", "2.7.1", "2.8.0", "3.0.0")
    marks = (".dev20250410", ".dev20250410+cu126", "a0+df5bbc0.nv25.1", "b2", "rc1", "rc1+cpu")
    clauses = [
        f"{operator}{release}"
        for operator, release in itertools.product(
            (">=", ">", "<=", "<", "==", "!=", "~="), releases
        )
    ]
    clauses += ["==2.7.*", "!=2.7.*", "==2.8.*"]
    pairs = 0
    for pair in itertools.product(clauses, repeat=2):
        text = ",".join(pair)
        for release, mark in itertools.product(releases, marks):
            if any(release in clause for clause in pair):
                answer = range_holds(text, Version(release + mark))
                assert answer is not True, f"{release + mark} in {text}"
                pairs += 1
    assert pairs > 10_000


@pytest.mark.parametrize("text", ["three", ">=2.x", "2.7", ">2.*", "~=2", "===2.7", "==2.7+cpu"])
def test_no_range(text: str) -> None:
    """A text that is not a range of releases is refused; so are `===` and local parts."""
    with pytest.raises(ValueError, match=r"2|three"):
        parse_range(text)


BOX = Toolchain(
    python="3.11.7",
    packages={"torch": "2.13.0+cu130", "triton": "3.7.1", "flash-attn": "2.7.4.post1"},
    cuda="13.0.88",
    driver="580.95.05",
    gpus=(Gpu("NVIDIA H200", "9.0"), Gpu("NVIDIA H200", "9.0")),
)
LAPTOP = Toolchain(python="3.14.0rc2", packages={"torch": NIGHTLY, "odd": "unknown"})


@pytest.mark.parametrize(
    ("affected", "expected"),
    [
        (ALWAYS, True),
        ((), False),
        (({"torch": ">=2.13"},), True),
        (({"torch": ">=2.13", "triton": "<3.7"},), False),
        (({"torch": "<2.0"}, {"triton": ">=3.7"}), True),
        (({"torch": "<2.0"}, {"triton": "<3.0"}), False),
        (({"Flash_Attn": "==2.7.4.post1"},), True),
        (({"python": ">=3.11,<3.12"},), True),
        (({"cuda": ">=13"},), True),
        (({"cuda": "==12.*"},), False),
        (({"driver": ">=575"},), True),
        (({"sm": "==9.0"},), True),
        (({"sm": ">=10.0"},), False),
        (({"gpus": ">=2"},), True),
        (({"gpus": ">2"},), False),
        (({"torch": ">=2", "sm": ">=9.0", "gpus": "==2", "python": ">=3.9"},), True),
        (({"Flash.Attn": "absent"},), False),
        (({"torch": ">=2.13", "xformers": "absent"},), True),
        (({"torch": "<2.0", "xformers": "absent"},), False),
    ],
)
def test_box(affected: tuple[dict[str, str], ...], expected: bool) -> None:
    """Of the alternatives any may hold, of the keys of one all must; names are those of PyPI."""
    assert is_affected(affected, BOX) is expected


@pytest.mark.parametrize(
    ("affected", "expected"),
    [
        (({"triton": "<3"},), MissingVersion("triton")),
        # a snippet about a package cannot be run without it, whatever the other keys say
        (({"torch": "<2.0", "triton": "<3"},), MissingVersion("triton")),
        (({"triton": "<3", "torch": "<2.8"},), MissingVersion("triton")),
        (({"torch": "<2.0"}, {"triton": "<3"}), MissingVersion("triton")),
        (({"triton": "<3"}, {"torch": ">=2.7"}), True),
        (({"sm": ">=9.0"},), MissingVersion("sm")),
        (({"cuda": ">=12"},), MissingVersion("cuda")),
        (({"driver": ">=500"},), MissingVersion("driver")),
        # but a machine without a GPU is surely not affected, if the version already is not
        (({"sm": ">=9.0", "torch": "<2.0"},), False),
        (({"gpus": ">=1"},), False),
        (({"gpus": "==0"},), True),
        (({"triton": "absent"},), True),
        (({"triton": "absent", "xformers": ">=0.0.28"},), MissingVersion("xformers")),
    ],
)
def test_missing_versions(affected: tuple[dict[str, str], ...], expected: object) -> None:
    """What an alternative speaks of and the toolchain lacks is named, unless another one holds."""
    assert is_affected(affected, LAPTOP) == expected


@pytest.mark.parametrize(
    ("affected", "named"),
    [
        (({"torch": "<2.8"},), NIGHTLY),
        (({"torch": "<2.8"}, {"torch": "<2.0"}), NIGHTLY),
        (({"torch": "<2.8"}, {"triton": "<3"}), NIGHTLY),
        (({"python": ">=3.14"},), "3.14.0rc2"),
        (({"odd": ">=1"},), "odd unknown"),
    ],
)
def test_undecided(affected: tuple[dict[str, str], ...], named: str) -> None:
    """What cannot be told is said to be so, with the version that it hangs on."""
    answer = is_affected(affected, LAPTOP)
    assert isinstance(answer, UndecidedVersion)
    assert named in answer.reason


def test_identity() -> None:
    """Two toolchains are one if they differ in the kernel or the number of GPUs, and only then."""
    same = [
        Toolchain(BOX.python, BOX.packages, cuda=BOX.cuda, driver=BOX.driver, gpus=BOX.gpus[:1]),
        Toolchain(
            BOX.python, BOX.packages, cuda=BOX.cuda, driver=BOX.driver, gpus=BOX.gpus, kernel="6.1"
        ),
    ]
    assert {toolchain.identity for toolchain in same} == {BOX.identity}
    different = [
        Toolchain("3.11.8", BOX.packages, cuda=BOX.cuda, driver=BOX.driver, gpus=BOX.gpus),
        Toolchain(BOX.python, {"torch": "2.13.0"}, cuda=BOX.cuda, driver=BOX.driver, gpus=BOX.gpus),
        Toolchain(BOX.python, BOX.packages, cuda="13.1", driver=BOX.driver, gpus=BOX.gpus),
        Toolchain(BOX.python, BOX.packages, cuda=BOX.cuda, driver="581", gpus=BOX.gpus),
        Toolchain(BOX.python, BOX.packages, cuda=BOX.cuda, driver=BOX.driver),
    ]
    assert len({toolchain.identity for toolchain in (BOX, *different)}) == 6


def test_label() -> None:
    """A toolchain is named by the packages of the headline, in its order; else by its Python."""
    assert BOX.brief(["triton", "torch", "numpy"]) == "triton 3.7.1, torch 2.13.0+cu130"
    assert BOX.brief(["numpy"]) == "Python 3.11.7"
    assert BOX.label([]) == "Python 3.11.7"
    assert BOX.label(["cuda", "gpus"]) == "Python 3.11.7, nvcc 13.0.88, NVIDIA H200"
    assert LAPTOP.label(["torch", "gpus"]) == f"Python 3.14.0rc2, torch {NIGHTLY}, no GPU"
