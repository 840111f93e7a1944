"""The page of a notice: what is reported, by whom, and that nobody here ran it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from kbtools.articles import links
from kbtools.articles.notices import Notice
from kbtools.articles.receipt_grammar import label, split, url
from kbtools.articles.reported import ReportedBound
from kbtools.articles.translations import is_outdated
from kbtools.evidence.bounds import key_of, name_of
from kbtools.site.model import ArticleView, NoticeView
from kbtools.site.pages import article, prose
from kbtools.site.pages.frame import Frame
from kbtools.site.rendering import LONG, cut
from kbtools.toolchains.affected import parse_range


class Cited(msgspec.Struct, frozen=True):
    """A statement with what stands behind it."""

    words: str
    receipts: tuple[tuple[str, str], ...]
    """What each is called, and its address."""
    why: str = ""
    """More words: the reason, or what runs say."""


def notice_page(frame: Frame, notice: NoticeView, head: str = "") -> tuple[str, bytes]:
    """The page of a notice.

    Args:
        frame: of the page, with its language.
        notice: the notice.
        head: HTML to add to the page's `<head>`.
    """
    view = notice.view
    text = view.text(frame.language)
    parts = [
        fold(frame, notice),
        f"\n## {frame.words('notice.about')} {{#about}}\n",
        prose.body(frame, text.page, {}, article.snippets(frame, view, text.page)),
    ]
    if view.article.snippets:
        parts.append(article.section(frame, "evidence", article.evidence(frame, view)))
    day = str(notice.notice.matter.looked_up)
    parts += [
        article.texts(frame, view),
        article.section(frame, "upstream", threads(frame, notice.notice)),
        article.section(frame, "link", article.link(frame, view, day)),
    ]
    searched = text.language == frame.language
    title = f"{view.id}: {text.title}"
    about = f"{frame.words('state.' + view.state.word)}. {text.summary}"
    return frame.page(title, "\n".join(parts), about=about, head=head, searched=searched)


def fold(frame: Frame, notice: NoticeView) -> str:
    """The first card: what it is, what helps, the window with its receipts, what does not help."""
    view, matter = notice.view, notice.notice.matter
    text = view.text(frame.language)
    remedies, no_help, hardware = words_of(notice, frame.language)
    return frame.html(
        "notice.html",
        view=view,
        matter=matter,
        text=text,
        title=cut(text.title),
        summary=cut(text.summary, LONG),
        behind=text is not view.original and is_outdated(text.page, view.original.page),
        word=view.state.word,
        remedies=remedies,
        no_help=no_help,
        hardware=hardware,
        bounds=[Cited(b.bound, named(b.receipt), runs(frame, view, b)) for b in matter.bounds],
        is_open=not any(has_end(alternative) for alternative in matter.affected),
        is_endless=not any(has_beginning(alternative) for alternative in matter.affected),
        claim=article.claim(frame, view),
        you=you(frame, view),
        grown=frame.model.by_id.get(matter.article or ""),
        confusable=[frame.model.linked[i] for i in matter.confusable if i in frame.model.linked],
    )


def runs(frame: Frame, view: ArticleView, entry: ReportedBound) -> str:
    """What runs say of a bound, as in `measured: 2.7.0 | 2.7.1`; empty if none stand behind it."""
    return frame.words("site.comma").join(
        frame.words("bounds.step", below=step.below, above=step.above)
        for bound in view.bounds
        if not bound.snippet and (name_of(bound), bound.clause) == key_of(entry)
        for step in bound.steps
    )


def words_of(notice: NoticeView, language: str) -> tuple[list[Cited], list[Cited], Cited | None]:
    """What helps, what does not, and on which hardware it was reported, in a language.

    The words are the translation's where it has them, the receipts always the original's.
    """
    matter, text = notice.notice.matter, notice.view.text(language)
    own = text.page.matter if text is not notice.view.original else {}
    remedies = _texts(own.get("remedies"), len(matter.remedies))
    no_help = own.get("not")
    dead = no_help if isinstance(no_help, list) and len(no_help) == len(matter.no_help) else None
    hardware = matter.hardware
    names = str(own.get("hardware") or (hardware.words if hardware else None) or "")
    return (
        [
            Cited(cut(remedies[i] if remedies else r.do, LONG), named(r.receipt))
            for i, r in enumerate(matter.remedies)
        ],
        [
            Cited(
                cut(dead[i]["do"] if dead else d.do, LONG),
                named(d.receipt),
                cut(dead[i]["why"] if dead else d.why, LONG),
            )
            for i, d in enumerate(matter.no_help)
        ],
        Cited(cut(names), named(hardware.receipt)) if hardware else None,
    )


def _texts(value: object, count: int) -> Sequence[str]:
    """A list of so many texts; empty if the value is none."""
    return [str(v) for v in value] if isinstance(value, list) and len(value) == count else []


def named(receipts: str) -> tuple[tuple[str, str], ...]:
    """What each receipt is called on a page, and its address."""
    return tuple((label(receipt), url(receipt)) for receipt in split(receipts))


def has_end(alternative: dict[str, str]) -> bool:
    """Whether a range of an alternative ends somewhere."""
    return any(end in ("<", "<=", "==", "~=") for end in _operators(alternative))


def has_beginning(alternative: dict[str, str]) -> bool:
    """Whether a range of an alternative begins somewhere."""
    return any(end in (">", ">=", "==", "~=") for end in _operators(alternative))


def _operators(alternative: dict[str, str]) -> Iterator[str]:
    for text in alternative.values():
        for clause in parse_range(text):
            yield clause.operator


def you(frame: Frame, view: ArticleView) -> dict[str, object]:
    """What the box "is this you?" needs; its answers are about a report, not about runs."""
    box = article.you(frame, view)
    words = dict(frame.words.part("you"))
    words |= {
        "affected": frame.words("notice.inside"),
        "not-affected": frame.words("notice.outside"),
    }
    return box | {"words": words}


def threads(frame: Frame, notice: Notice) -> str:
    """The threads that were read, each with the page about it."""
    references = [
        (reference, links.upstream_url(reference), frame.in_language(path))
        for reference in notice.matter.threads
        for path in [links.thread_path(reference)]
    ]
    return frame.html("threads.html", threads=references, day=notice.matter.looked_up)
