"""The page of an article's logs: the output of each run, at an anchor of its own."""

from __future__ import annotations

from kbtools.evidence.state import Observation, where
from kbtools.site.model import ArticleView, anchor
from kbtools.site.pages import marks
from kbtools.site.pages.frame import Frame
from kbtools.site.rendering import cut
from kbtools.toolchains.model import Toolchain

ONE, ALL = 30_000, 400_000
"""Characters shown of a log, and of all logs of an article."""


def logs_page(frame: Frame, view: ArticleView) -> tuple[str, bytes]:
    """The logs of an article, by snippet; an output that several runs had is shown once."""
    first_with: dict[str, Observation] = {}
    remaining = ALL
    snippets = []
    for snippet in view.article.snippets:
        runs = []
        for observation in view.observations_of(snippet.id):
            output = observation.row.outcome.output.strip("\n")
            first = first_with.setdefault(output, observation) if len(output) > 200 else observation
            text = output[: min(ONE, remaining)] if first is observation else ""
            remaining -= len(text)
            brief = first.row.toolchain.brief(frame.model.headline)
            runs.append(
                {
                    "anchor": anchor(observation),
                    "mark": marks.of_run(frame, observation),
                    "observation": observation,
                    "where": cut(where(observation, frame.model.headline)),
                    "output": text,
                    "hidden": len(output) - len(text) if first is observation else 0,
                    "same": anchor(first) if first is not observation else "",
                    "same_as": f"{first.snippet.id}, {brief}",
                }
            )
        if runs:
            snippets.append({"snippet": snippet, "runs": runs})
    return frame.plain(
        "logs.html",
        frame.words("logs.title", id=view.id),
        view.text(frame.language).title,
        view=view,
        snippets=snippets,
        toolchains=toolchains_of(view),
    )


def toolchains_of(view: ArticleView) -> list[tuple[Toolchain, str]]:
    """The toolchains of an article's evidence, each with all that is installed in it."""
    toolchains = [observed[0].row.toolchain for observed in view.by_toolchain.values()]
    return [
        (toolchain, cut(", ".join(f"{n} {v}" for n, v in toolchain.packages.items()), ONE // 10))
        for toolchain in toolchains
    ]
