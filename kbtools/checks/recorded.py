"""Rules for what was recorded of the articles of a knowledge base."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache

import ahocorasick_rs
import re2

from kbtools.articles.model import Article, Problem, Role, Signature
from kbtools.articles.signatures import pattern, recognises
from kbtools.checks.model import Base, fatal


def kb304_own_output(base: Base) -> Iterator[Problem]:
    """Where a repro was seen to fail as it should, a signature is found in what it printed.

    A failure that shows nothing (`fails=timeout`, an exit code) is not asked.
    """
    for failure in base.recorded.failures:
        article = failure.article
        if failure.snippet.role is Role.REPRO and not _claims(
            article.matter.signatures, failure.output, if_invalid=True
        ):
            page = base.page_of(article)
            yield page.problem(
                page.line_of("signatures"),
                f"no signature is found in the recorded output of {failure.snippet.name}"
                f" ({failure.toolchain}): {failure.ended}",
                "correct the signature, or record the repro again",
            )


def kb305_claims_another(base: Base) -> Iterator[Problem]:
    """A signature does not claim another article's recorded output.

    The same text can be another bug: then declare it `confusable`, and the Symptom section says
    how to tell them apart. Each article declares the other one whose output it claims, because a
    reader may come from either page.
    """
    claimants_of = _claimants(base.articles)
    reported: set[tuple[str, str]] = set()
    for failure in base.recorded.failures:
        owner = failure.article
        for claimant in claimants_of(failure.output):
            pair = (claimant.id, owner.id)
            if (
                claimant.id == owner.id
                or owner.id in claimant.matter.confusable
                or pair in reported
            ):
                continue
            reported.add(pair)
            page = base.page_of(claimant)
            yield page.problem(
                page.line_of("signatures"),
                f"a signature also claims the output of {failure.snippet.name}",
                f"make it narrower, or declare `confusable: [{owner.id}]` and tell them apart;"
                f" {owner.id} declares {claimant.id}, too, if its signature claims your output",
            )


@fatal
def kb306_unreadable_evidence(base: Base) -> Iterator[Problem]:
    """Evidence is JSON Lines, each a row that a run wrote."""
    for article, why in base.recorded.unreadable:
        message = why.replace(f"{base.config.root}/", "")
        yield base.page_of(article).problem(1, message, "restore the file from version control")


def _claimants(articles: Iterable[Article]) -> Callable[[str], tuple[Article, ...]]:
    """A function that returns the articles of which a signature is found in a text.

    To ask each signature about each output would take time quadratic in the number of articles:
    each brings signatures and outputs. One pass over an output finds the literals of all of them,
    and then few signatures are left to be asked. Many runs print the same output: it is looked at
    once.
    """
    by_literal: dict[str, list[tuple[int, Article, Signature]]] = {}
    for number, article in enumerate(articles):
        for signature in article.matter.signatures:
            if not signature.wraps:  # it is expected in the output of others, and ranks below them
                by_literal.setdefault(signature.literal, []).append((number, article, signature))
    literals = list(by_literal)
    automaton = ahocorasick_rs.AhoCorasick(literals)

    @cache
    def claimants(text: str) -> tuple[Article, ...]:
        matches = automaton.find_matches_as_indexes(text, overlapping=True)
        candidates: dict[int, tuple[Article, list[Signature]]] = {}
        for literal in {index for index, _, _ in matches}:
            for number, article, signature in by_literal[literals[literal]]:
                candidates.setdefault(number, (article, []))[1].append(signature)
        return tuple(
            article
            for _, (article, signatures) in sorted(candidates.items())
            if _claims(signatures, text, if_invalid=False)
        )

    return claimants


def _counts(signature: Signature, text: str) -> bool:
    """Whether the `unless` of a signature lets it count in a text, as in `diagnose`."""
    return signature.unless is None or pattern(signature.unless).search(text) is None


def _claims(signatures: Iterable[Signature], text: str, *, if_invalid: bool) -> bool:
    """Whether one of the signatures is found in a text; `if_invalid` where one is not RE2."""
    try:
        return any(
            recognises(signature, text) and _counts(signature, text) for signature in signatures
        )
    except re2.error:
        return if_invalid  # KB201 reports it
