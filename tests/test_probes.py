"""The probes of this knowledge base: each is tried on machines that are planted for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kbtools import config
from kbtools.doctor import bundle, planting, trying
from kbtools.doctor.probe import Probe
from kbtools.doctor.report import in_language

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def probes() -> list[Probe]:
    """The probes of this knowledge base."""
    return bundle.probes_of(config.find(ROOT))


def test_every_probe_finds_and_is_quiet(probes: list[Probe]) -> None:
    """Each finds what was planted, is quiet beside it, and all are quiet on sound machines."""
    trials = list(trying.try_all(probes, planting.read(ROOT / "kb" / "probes")))
    assert [trial for trial in trials if trial.problem] == []
    assert len(trials) > 10 * len(probes)


def test_every_probe_is_about_an_article(probes: list[Probe]) -> None:
    """The article or notice exists, with a title in both languages."""
    about = bundle.about(config.find(ROOT), probes)
    assert {probe.article for probe in probes} == about.titles.keys()
    assert all(len(titles) == 2 and all(titles) for titles in about.titles.values())


def test_every_probe_speaks_both_languages(probes: list[Probe]) -> None:
    """The summary is one sentence, in English and in Chinese."""
    for probe in probes:
        assert in_language(probe.summary, "en").endswith("."), probe.id
        assert in_language(probe.summary, "zh").endswith("。"), probe.id
        assert probe.level == "fault" or in_language(probe.when, "en"), (
            f"{probe.id}: a risk of what?"
        )


def test_forty_environments() -> None:
    """All probes together find thirty breakages by their articles, and nothing on ten sound."""
    command = [sys.executable, str(ROOT / "benchmarks" / "doctors.py")]
    process = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert process.stdout.endswith("- kbtools doctor: reports 30 of 30 broken, 0 of 10 sound\n")
    assert process.returncode == 0
