"""Claims and what stands behind them, as text for people and as JSON for programs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

import msgspec
from click import style

from kbtools.articles.claims import Claim, Share, Standing, share
from kbtools.articles.receipts import address_of, name_of

WHAT_TO_WRITE = (
    "end it with [r1] (a snippet), [owner/repo#12], [owner/repo@tag path], a link to documentation"
    " or [inferred], or soften it, or delete it"
)
WIDTH = 160
"""Characters shown of a sentence."""
FEW = 10
"""Notices of bare claims that `check` prints one by one; more than these are counted."""


class ReceiptRecord(msgspec.Struct, frozen=True):
    """A receipt of a claim: its kind, its text, and where it leads.

    The runs of a snippet are below the root of the site.
    """

    kind: str
    text: str
    url: str


class ClaimRecord(msgspec.Struct, frozen=True):
    """A claim as programs read it."""

    article: str
    path: str
    line: int
    section: str
    text: str
    kinds: tuple[str, ...]
    standing: str
    receipts: tuple[ReceiptRecord, ...]


def as_text(claims: Sequence[Claim], *, bare_only: bool = False) -> str:
    """The claims, article by article, each with what stands behind it, and the share.

    Args:
        claims: In the order of their articles and lines.
        bare_only: Whether to leave out those that have a receipt.
    """
    lines = []
    for article, group in groupby(claims, key=lambda claim: claim.article):
        of_article = list(group)
        shown = [c for c in of_article if not bare_only or c.standing is Standing.BARE]
        if shown or not bare_only:
            lines.append(f"{style(article, bold=True)}  {summary(share(of_article))}")
            lines += [line for claim in shown for line in _lines(claim)]
            lines.append("")
    articles = len({claim.article for claim in claims})
    lines.append(f"{articles} article{'s' * (articles != 1)}: {summary(share(claims))}")
    return "\n".join(lines)


def summary(share: Share) -> str:
    """A share in words."""
    inferred = f", {share.inferred} inferred" if share.inferred else ""
    bare = f", {share.bare} bare" if share.bare else ""
    of_all = f"{share.sourced} of {share.claims} claims have a receipt"
    return f"{of_all} ({share.percent} %){inferred}{bare}"


def _lines(claim: Claim) -> list[str]:
    text = claim.text if len(claim.text) <= WIDTH else f"{claim.text[: WIDTH - 1]}…"
    receipts = " ".join(f"[{receipt.text}]" for receipt in claim.receipts)
    behind = receipts or style("no receipt", fg="yellow")
    return [f"  {claim.place.line:>4}  {text}", f"        {', '.join(claim.kinds)}: {behind}"]


def as_json(claims: Sequence[Claim]) -> str:
    """The claims and the share as one JSON object."""
    total = share(claims)
    value: dict[str, Any] = {
        "schema": 1,
        "share": {
            "claims": total.claims,
            "sourced": total.sourced,
            "inferred": total.inferred,
            "bare": total.bare,
        },
        "claims": [record(claim) for claim in claims],
    }
    return msgspec.json.format(msgspec.json.encode(value)).decode()


def record(claim: Claim) -> ClaimRecord:
    """A claim as programs read it: its snippets have the names of their articles."""
    return ClaimRecord(
        article=claim.article,
        path=claim.place.path,
        line=claim.place.line,
        section=claim.section,
        text=claim.text,
        kinds=claim.kinds,
        standing=str(claim.standing),
        receipts=tuple(
            ReceiptRecord(
                kind=str(receipt.kind),
                text=name_of(receipt, claim.article),
                url=address_of(receipt, claim.article),
            )
            for receipt in claim.receipts
        ),
    )


def notices(bare: Sequence[Claim]) -> list[str]:
    """What `check` prints of claims without a receipt; a number, where they are many."""
    if len(bare) > FEW:
        articles = len({claim.article for claim in bare})
        return [
            f"{len(bare)} claims in {articles} article{'s' * (articles != 1)} have no receipt;"
            " see: kbtools claims --bare"
        ]
    return [f"{style(str(claim.place), bold=True)}: {notice(claim)}" for claim in bare]


def notice(claim: Claim) -> str:
    """What is wrong with a bare claim, and what to write."""
    text = claim.text if len(claim.text) <= WIDTH // 2 else f"{claim.text[: WIDTH // 2]}…"
    return f"no receipt ({', '.join(claim.kinds)}): “{text}” {WHAT_TO_WRITE}"


def bare_of(claims: Iterable[Claim]) -> list[Claim]:
    """The claims behind which nothing stands."""
    return [claim for claim in claims if claim.standing is Standing.BARE]
