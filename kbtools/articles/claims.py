"""Which sentences of an article are claims, and what stands behind each.

A claim states a version, a date, a limit, a default or a wording, or says never, always or only:
what a reader relies on and cannot see in the snippets. English and Chinese are understood. The
choice is made by words alone, so it can be wrong; it leads to a notice and never to a problem.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import StrEnum

import msgspec

from kbtools.articles.model import Place
from kbtools.articles.parsing import Page
from kbtools.articles.receipt_grammar import Kind
from kbtools.articles.receipts import Receipt
from kbtools.articles.sentences import CODE, Sentence, sentences
from kbtools.config import Config

UNIT = (
    r"(?:\s?(?:ms|µs|us|ns|s|seconds?|minutes?|hours?|%|[KMGT]i?B|[kKMGT]i?b|bytes?|times|x|×|GHz|"
    r"million|billion|W|秒|毫秒|分钟|倍|字节|微秒)(?![a-z]))"
)
NUMBER = r"(?:\d[\d,.]*|two|three|four|eight|sixteen)"

PATTERNS: dict[str, tuple[str, ...]] = {
    "version": (
        rf"(?<![\w.×x*/])v?(?!0\.\d{{3,}})\d+\.\d+(?:\.\d+|\.x)*(?!\w|{UNIT}|[eE]-?\d)",
        r"\b(?!(?:[Ss]tep|[Tt]able|[Pp]art|[Cc]ase|[Ll]ine|[Rr]ank|[Tt]he|[Ii]n|[Oo]f|[Ww]ith|[Aa]nd|[Oo]n"
        r"|[Ff]or|[Aa]|[Ff]rom|[Tt]o|[Bb]y|[Ii]f|[Oo]nly|[Hh]ere|[Aa]fter|[Ee]xit|[Ee]rror)\b)"
        r"[A-Z][A-Za-z+]+ \d{1,3}(?: (?:and|or) (?:newer|later|older|earlier)|\+)",
        r"\b(?i:newer|older|later|earlier|recent|current)"
        r" (?:versions?|releases?|toolkits?|drivers?)\b",
        r"(?:新版|旧版|老版|以上版本|及更高版本|及更新|更早的版本|之后的版本)",
    ),
    "date": (
        r"\b(?:January|February|March|April|May|June|July|August|September|October|November|December)"
        r" (?:\d{1,2}, )?20\d\d\b",
        r"(?<![\w.-])20[012]\d(?:-\d\d)?(?:-\d\d)?(?![\w.]*\d)",
        r"20\d\d ?年",
    ),
    "limit": (
        rf"\b(?:at most|at least|up to|no more than|no fewer than|more than|less than|fewer than|"
        rf"larger than|smaller than|maximum of|minimum of|limited to|limit of|limit is|exceeds?)"
        rf" (?:about |[a-z]+ )?{NUMBER}\b",
        rf"{NUMBER}{UNIT}? (?:is the (?:limit|maximum|minimum)|at (?:most|least)|or (?:more|less))",
        rf"(?:最多|至少|至多|不超过|不低于|不少于|上限|下限|超过)[^，。；]{{0,8}}{NUMBER}",
    ),
    "default": (r"\bdefaults?\b(?! stream)", r"默认"),
    "wording": (
        rf"\b(?:is|was|were|are|been) (?:called|named|spelled|renamed|worded) (?:to )?[{CODE}“\"]",
        rf"\bcall(?:s|ed)? (?:it|them|this) (?:an? )?[{CODE}“\"]|\breworded\b",
        r"(?<!as the )(?<!as its )\b"
        r"(?:message|text|warning|error|hint|traceback|log)s?\b[^.;:]{0,24}"
        r"\b(?:says?|said|reads)\b",
        rf"\b(?:says|said|reads|prints|printed|raises|raised) (?:instead )?[{CODE}“\"]",
        r"(?:信息|报错|警告|提示|日志)[^，。；]{0,12}(?:说|写的是|写着|是|里写)",
        r"(?:叫做|改名|改叫|里叫|打印的是)",
    ),
    "absolute": (
        r"(?<!-)\b(?:never|always|only(?! to\b))\b",
        r"从不|从来不|从未|永远|总是|始终|一律|只有|仅|只在|只会|只对|只能|只支持",
    ),
}
"""Kind of a claim → what in a sentence makes it one."""
_CLAIMS = {
    kind: re.compile("|".join(patterns), re.NOFLAG if kind == "version" else re.IGNORECASE)
    for kind, patterns in PATTERNS.items()
}
"""A version stands beside a name, and names begin with a capital letter; others ignore case."""

CONDITION = re.compile(
    r"(?:^|[,;(] ?|\b(?:and|or|but|that) )"
    r"(?:[Ii]f|[Uu]nless|[Ww]here|[Ww]hen|[Ww]hether|[Aa]s long as)\b[^,;:.]*"
    r"|(?:如果|若|假如|当)[^，。；：]*"
)
"""A condition: `only` in it is about the reader's case."""
QUOTED = re.compile(r"\"[^\"]{1,80}\"|“[^”]{1,80}”")
"""The words of a message: what is absolute in them, the article does not state."""
ADVICE = re.compile(
    r"^(?:[-*\s]*)(?:Never|Always|Do not|Don't)\b|^(?:永远|始终|总是)?(?:不要|别|请)"
)
"""How a sentence begins that tells what to do, and states nothing."""


class Standing(StrEnum):
    """What stands behind a claim."""

    SOURCED = "sourced"
    INFERRED = "inferred"
    BARE = "bare"


class Claim(msgspec.Struct, frozen=True):
    """A sentence that states what a reader relies on, with what stands behind it."""

    article: str
    place: Place
    section: str
    """As the page's heading has it."""
    text: str
    kinds: tuple[str, ...]
    """As in `version` and `default`."""
    receipts: tuple[Receipt, ...]

    @property
    def standing(self) -> Standing:
        """Bare without a receipt; inferred if it has none but that."""
        kinds = {receipt.kind for receipt in self.receipts} - {Kind.MALFORMED}
        if kinds - {Kind.INFERRED}:
            return Standing.SOURCED
        return Standing.INFERRED if kinds else Standing.BARE


class Share(msgspec.Struct, frozen=True):
    """How many claims have a receipt."""

    claims: int
    sourced: int
    inferred: int

    @property
    def bare(self) -> int:
        """Claims behind which nothing stands."""
        return self.claims - self.sourced - self.inferred

    @property
    def percent(self) -> int:
        """Claims with a receipt, of 100, rounded down; 100 where there is no claim."""
        return 100 * self.sourced // self.claims if self.claims else 100


def kinds_of(sentence: Sentence) -> tuple[str, ...]:
    """What makes a sentence a claim; empty if it is none."""
    words = sentence.words
    if words.rstrip("*_ ").endswith(("?", "？")):
        return ()
    unconditional = CONDITION.sub(" ", QUOTED.sub(" ", words))
    kinds = []
    for kind, pattern in _CLAIMS.items():
        text = unconditional if kind == "absolute" else words
        if pattern.search(text) and not (kind == "absolute" and ADVICE.search(words)):
            kinds.append(kind)
    return tuple(kinds)


def claims(page: Page, config: Config, read: Iterable[Sentence] = ()) -> Iterator[Claim]:
    """The claims of a page, in order: in the sections that are held to it, and in all tables.

    Args:
        page: An article's.
        config: Says which sections those are.
        read: The sentences of the page, where they were read already.
    """
    headings = [heading.text for heading in page.headings]
    sections = claim_sections(config)
    for sentence in read or sentences(page):
        is_below = 0 <= sentence.section < len(headings)
        heading = headings[sentence.section] if is_below else ""
        if not (sentence.is_row or heading in sections):
            continue
        if kinds := kinds_of(sentence):
            yield Claim(
                article=str(page.matter.get("id")),
                place=page.place(sentence.line),
                section=heading,
                text=sentence.text,
                kinds=kinds,
                receipts=sentence.receipts,
            )


def claim_sections(config: Config) -> frozenset[str]:
    """The sections whose claims need receipts; all but the first where nothing is configured."""
    form = config.article
    return frozenset(form.claim_sections or (*form.sections[1:], *form.optional_sections))


def share(claims: Iterable[Claim]) -> Share:
    """How many of these claims have a receipt."""
    standings = [claim.standing for claim in claims]
    return Share(
        len(standings), standings.count(Standing.SOURCED), standings.count(Standing.INFERRED)
    )
