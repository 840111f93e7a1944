"""`/api/v1/`: the knowledge base as JSON, each kind of document with its JSON Schema beside it.

Addresses in the documents are relative to the root of the site. Within v1 fields may be added, none
is taken away or changes its meaning.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any, Literal

import msgspec

from kbtools import matching
from kbtools.articles import links
from kbtools.articles import receipts as receipts_of
from kbtools.articles.model import Affected, FrontMatter
from kbtools.evidence.state import Observation
from kbtools.evidence.tried import tried_ranges
from kbtools.evidence.verdicts import Colour
from kbtools.matching.tried import with_tried
from kbtools.site.data import osv
from kbtools.site.model import ArticleView, SiteModel, download_path, logs_path, page_path
from kbtools.toolchains.model import Toolchain

FOLDER = "api/v1"
Version = Literal[1]


class Words(msgspec.Struct, frozen=True):
    """An article's title and summary in one language, and the page in it."""

    title: str
    summary: str
    page: str


class Summary(msgspec.Struct, frozen=True):
    """An article in the list of all."""

    id: str
    title: str
    summary: str
    components: tuple[str, ...]
    stage: str
    severity: str
    state: str
    """`reproduced`, `resolved`, `holds`, `contradicted`, `not run` or `retired`; computed."""
    newest: datetime.datetime | None
    """When the newest of its evidence was seen."""
    page: str
    markdown: str
    document: str
    badge: str
    claims: int
    """Sentences that state a version, a limit, a default and the like."""
    sourced: int
    """Those of them that have a receipt."""
    osv: str | None
    """Where its OSV record is; null where there is nothing that OSV could say."""


class Index(msgspec.Struct, frozen=True):
    """`index.json`: all articles."""

    schema: Version
    name: str
    url: str
    """Of the site's root; empty where it has no address of its own."""
    languages: tuple[str, ...]
    articles: tuple[Summary, ...]


class Run(msgspec.Struct, frozen=True):
    """A snippet was run on a toolchain, and what follows from that today."""

    toolchain: str
    """Its id in `toolchains.json`."""
    verdict: str
    colour: Colour
    """`green`: the claim stands; `red`: it is contradicted; `grey`: neither."""
    reason: str
    status: str
    """What the run did: `passed`, `failed`, `stopped`, `signal`, `timeout`, `limit` or `lost`."""
    seconds: float
    compiled_for: tuple[str, ...]
    """Architectures it was compiled for there. Compiled for is not ran on."""
    when: datetime.datetime
    log: str


class Snippet(msgspec.Struct, frozen=True):
    """A snippet of an article, and its runs."""

    id: str
    role: str
    language: str
    requires: str
    affected: Affected
    """Where it is said to fail: any of these, each of which is all of its keys. For a fact, where
    it is said to hold."""
    needs: dict[str, str]
    """What must be there to run it: name of a distribution or `bin:program` → range. No claim."""
    code: str
    """SHA-256 of all that a run of it depends on."""
    download: str
    runs: tuple[Run, ...]


class State(msgspec.Struct, frozen=True):
    """What follows for an article from its evidence."""

    word: str
    green: int
    red: int
    not_run: int
    toolchains: int


class Receipt(msgspec.Struct, frozen=True):
    """What stands behind a claim."""

    kind: str
    """`snippet`, `thread`, `source`, `page` or `inferred`."""
    text: str
    """As in `KB0002/r1`, `owner/repo#12` or `owner/repo@tag path:line`."""
    url: str
    """Where it leads: for a snippet an address of this site; empty for an inference."""


class Claim(msgspec.Struct, frozen=True):
    """A sentence of the original that a reader relies on, and what stands behind it."""

    section: str
    line: int
    """Of the article's file."""
    text: str
    kinds: tuple[str, ...]
    """Why it is a claim: `version`, `date`, `limit`, `default`, `wording`, `absolute`."""
    receipts: tuple[Receipt, ...]


class Document(msgspec.Struct, frozen=True):
    """An article: what it claims and what was seen."""

    schema: Version
    id: str
    matter: FrontMatter
    state: State
    words: dict[str, Words]
    """Language → title, summary and page."""
    snippets: tuple[Snippet, ...]
    changes: tuple[Change, ...]
    claims: tuple[Claim, ...] = ()


class Change(msgspec.Struct, frozen=True):
    """From `day` on, in UTC, an article's state was another one, going by today's claims."""

    article: str
    before: str
    after: str
    day: datetime.date


class Changes(msgspec.Struct, frozen=True):
    """`changes.json`: every change of state, the newest first."""

    schema: Version
    changes: tuple[Change, ...]


class NamedToolchain(msgspec.Struct, frozen=True):
    """A toolchain on which anything was seen."""

    id: str
    label: str
    toolchain: Toolchain


class Toolchains(msgspec.Struct, frozen=True):
    """`toolchains.json`: every toolchain on which anything was seen."""

    schema: Version
    toolchains: tuple[NamedToolchain, ...]


class Thread(msgspec.Struct, frozen=True):
    """An upstream thread, and the articles that speak of it."""

    reference: str
    url: str
    articles: tuple[str, ...]


class Issues(msgspec.Struct, frozen=True):
    """`issues.json`: every upstream thread that an article speaks of."""

    schema: Version
    threads: tuple[Thread, ...]


KINDS: dict[str, type[msgspec.Struct]] = {
    "index": Index,
    "article": Document,
    "toolchains": Toolchains,
    "issues": Issues,
    "changes": Changes,
    "signatures": matching.Index,
}
"""Kind of document → its form; the schema of each is `schemas/KIND.json`."""


def files(model: SiteModel) -> Iterator[tuple[str, bytes]]:
    """Every document and every schema."""
    yield f"{FOLDER}/index.json", encoded(index(model))
    names = {id(toolchain): name_of(toolchain) for toolchain in model.toolchains}
    for view in model.views:
        yield document_path(view), encoded(document(model, view, names))
    yield f"{FOLDER}/toolchains.json", encoded(toolchains(model))
    yield f"{FOLDER}/issues.json", encoded(issues(model))
    yield f"{FOLDER}/signatures.json", encoded(signatures(model))
    changed = tuple(changes(view) for view in model.views)
    newest = sorted(
        (c for of_article in changed for c in of_article),
        key=lambda c: (-c.day.toordinal(), c.article),
    )
    yield f"{FOLDER}/changes.json", encoded(Changes(1, tuple(newest)))
    for kind, form in KINDS.items():
        yield f"{FOLDER}/schemas/{kind}.json", encoded(schema(form))


def signatures(model: SiteModel) -> matching.Index:
    """What a matcher needs, of all articles."""
    notices = [notice.notice for notice in model.notices]
    index = matching.index_of([v.article.matter for v in model.views], model.config, notices)
    return with_tried(index, {v.id: tried_ranges(v.article, v.bounds) for v in model.views})


def encoded(value: Any) -> bytes:
    """A document as it is published."""
    return msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n"


def schema(form: type[Any]) -> dict[str, Any]:
    """The JSON Schema of a kind of document."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **msgspec.json.schema(form)}


def document_path(view: ArticleView) -> str:
    """Of an article's document, as in `api/v1/KB0002.json`."""
    return f"{FOLDER}/{view.id}.json"


def name_of(toolchain: Toolchain) -> str:
    """The id of a toolchain, the same in every document, and in `kbtools matrix --json`."""
    return toolchain.identity[:12]


def index(model: SiteModel) -> Index:
    """All articles."""
    base = model.config.knowledge_base
    articles = tuple(summary(model, view) for view in model.views)
    return Index(1, base.name, base.url, base.languages, articles)


def summary(model: SiteModel, view: ArticleView) -> Summary:
    """An article in the list of all."""
    matter = view.article.matter
    return Summary(
        id=view.id,
        title=matter.title,
        summary=matter.summary,
        components=matter.components,
        stage=matter.stage,
        severity=matter.severity,
        state=view.state.word,
        newest=view.newest,
        page=page_path(model, view.id, model.languages[0]),
        markdown=f"{view.id}.md",
        document=document_path(view),
        badge=f"badges/{view.id}.svg",
        claims=view.share.claims,
        sourced=view.share.sourced,
        osv=osv.path(view) if osv.record(model, view) else None,
    )


def document(model: SiteModel, view: ArticleView, names: dict[int, str] | None = None) -> Document:
    """An article, what it claims and what was seen.

    Args:
        model: The site.
        view: The article with its evidence.
        names: Known ids of toolchains, by the identity of the object; None: computed anew.
    """
    state = view.state
    texts = {view.original.language: view.original, **view.translations}
    return Document(
        schema=1,
        id=view.id,
        matter=view.article.matter,
        state=State(state.word, state.green, state.red, state.not_run, state.toolchains),
        words={
            language: Words(text.title, text.summary, page_path(model, view.id, language))
            for language, text in texts.items()
        },
        snippets=tuple(
            Snippet(
                id=snippet.id,
                role=str(snippet.role),
                language=snippet.language,
                requires=snippet.keys.requires,
                affected=snippet.affected,
                needs=snippet.needs,
                code=snippet.digest,
                download=download_path(snippet),
                runs=tuple(
                    run(model, observation, names or {})
                    for observation in view.observations_of(snippet.id)
                ),
            )
            for snippet in view.article.snippets
        ),
        changes=changes(view),
        claims=tuple(claims(view)),
    )


def claims(view: ArticleView) -> Iterator[Claim]:
    """The claims of an article, each with where its receipts lead."""
    for claim in view.claims:
        receipts = tuple(
            Receipt(
                str(receipt.kind),
                receipts_of.name_of(receipt, view.id),
                receipts_of.address_of(receipt, view.id),
            )
            for receipt in claim.receipts
        )
        yield Claim(claim.section, claim.place.line, claim.text, claim.kinds, receipts)


def run(model: SiteModel, observation: Observation, names: dict[int, str]) -> Run:
    """A run of a snippet; `names` are known ids of toolchains, by the identity of the object.

    Args:
        model: The site.
        observation: The row, and the verdict that follows today.
        names: Known ids of toolchains, by the identity of the object.
    """
    outcome, toolchain = observation.row.outcome, observation.row.toolchain
    return Run(
        toolchain=names.get(id(toolchain)) or name_of(toolchain),
        verdict=str(observation.verdict.name),
        colour=observation.verdict.colour,
        reason=observation.verdict.reason,
        status=outcome.status,
        seconds=outcome.seconds,
        compiled_for=outcome.targets,
        when=observation.row.when,
        log=logs_path(model, observation, model.languages[0]),
    )


def changes(view: ArticleView) -> tuple[Change, ...]:
    """The changes of an article's state, the oldest first."""
    return tuple(
        Change(change.article, change.before, change.after, change.day) for change in view.changes
    )


def toolchains(model: SiteModel) -> Toolchains:
    """Every toolchain on which anything was seen, as the columns of the board stand."""
    return Toolchains(
        1,
        tuple(
            NamedToolchain(name_of(toolchain), toolchain.label(model.headline), toolchain)
            for toolchain in model.toolchains
        ),
    )


def issues(model: SiteModel) -> Issues:
    """Every upstream thread that an article speaks of."""
    return Issues(
        1,
        tuple(
            Thread(reference, links.upstream_url(reference), tuple(view.id for view in views))
            for reference, views in model.issues.items()
        ),
    )
