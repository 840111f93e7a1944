"""What reading an article costs: typed values by three libraries, Markdown by fewer rules.

    python benchmarks/decoding.py [FOLDER]

msgspec, pydantic, and attrs with cattrs each fill the same forms with the front matter of the
articles in FOLDER (kb), in fresh processes that take turns. A library that is not installed is left
out. The figures are medians of one run on one machine: what counts is their ratios.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import statistics
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import yaml
from markdown_it import MarkdownIt

ROUNDS = 9
FORMS = {
    "Signature": """
        literal: Text
        regex: Text | None = None
        near: Text | None = None
    """,
    "Upstream": """
        report: Reference | None = None
        fix: Reference | None = None
        cause: Reference | None = None
        related: Reference | None = None
        basis: Literal["stated", "inferred"] = "stated"
    """,
    "FrontMatter": """
        id: Text
        title: Text
        summary: Text
        components: tuple[Text, ...]
        stage: str
        severity: str
        signatures: tuple[Signature, ...]
        affected: tuple[dict[str, str], ...] = ()
        upstream: tuple[Upstream, ...] = ()
        confusable: tuple[str, ...] = ()
    """,
}
START = r"""
from typing import Annotated, Literal, NewType
REFERENCE = r"^[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*(#[1-9]\d*|@[0-9a-f]{7,40})$"
"""
# What stands before the forms, how a class of them begins, and what stands after.
LIBRARIES = {
    "msgspec": (
        """
        import msgspec
        Text = Annotated[str, msgspec.Meta(min_length=1)]
        Reference = Annotated[str, msgspec.Meta(pattern=REFERENCE)]
        """,
        "class {}(msgspec.Struct, frozen=True):",
        "def decode(raw): return msgspec.convert(raw, FrontMatter)",
    ),
    "pydantic": (
        """
        from pydantic import BaseModel, StringConstraints
        Text = Annotated[str, StringConstraints(min_length=1)]
        Reference = Annotated[str, StringConstraints(pattern=REFERENCE)]
        """,
        "class {}(BaseModel, frozen=True):",
        "decode = FrontMatter.model_validate",
    ),
    "cattrs": (
        """
        import re, attrs, cattrs
        Text, Reference = NewType("Text", str), NewType("Reference", str)
        def text(value, kind):
            if not isinstance(value, str) or not value: raise ValueError(value)
            return value
        def reference(value, kind, matches=re.compile(REFERENCE).match):
            if not isinstance(value, str) or not matches(value): raise ValueError(value)
            return value
        converter = cattrs.Converter()
        converter.register_structure_hook(Text, text)
        converter.register_structure_hook(Reference, reference)
        """,
        "@attrs.frozen\nclass {}:",
        "def decode(raw): return converter.structure(raw, FrontMatter)",
    ),
}
TIMED = """
import json, sys, timeit
articles = json.load(sys.stdin)
decoded = [decode(raw) for raw in articles]
assert [article.signatures[0].literal for article in decoded] == \\
    [raw["signatures"][0]["literal"] for raw in articles]
try:
    decode({**articles[0], "upstream": [{"report": "no reference"}]})
except Exception:
    pass
else:
    raise SystemExit("a wrong value was accepted")
timer = timeit.Timer(lambda: [decode(raw) for raw in articles])
print(min(timer.repeat(5, 200)) / 200 / len(articles))
"""


def program(library: str) -> str:
    """The forms as that library has them, and `decode`."""
    before, begins, after = LIBRARIES[library]
    forms = [
        begins.format(name) + "\n" + textwrap.indent(textwrap.dedent(fields), "    ")
        for name, fields in FORMS.items()
    ]
    return "\n".join([START, textwrap.dedent(before), *forms, after])


def fresh(code: str, stdin: str = "") -> tuple[float, str]:
    """Seconds that a fresh interpreter takes with this code, and what it prints."""
    started = time.perf_counter()
    process = subprocess.run(
        [sys.executable, "-c", code], input=stdin, capture_output=True, text=True, check=False
    )
    seconds = time.perf_counter() - started
    if process.returncode:
        raise SystemExit(process.stderr)
    return seconds, process.stdout


def decoding(articles: list[dict[str, object]]) -> None:
    """Prints a row for each library: import and definition of the forms, decoding of an article."""
    libraries = [name for name in LIBRARIES if importlib.util.find_spec(name)]
    for name in LIBRARIES.keys() - set(libraries):
        print(f"{name} is not installed, and left out")
    encoded = json.dumps(articles, default=str)
    started: dict[str, list[float]] = {name: [] for name in libraries}
    decoded: dict[str, list[float]] = {name: [] for name in libraries}
    nothing = []
    for _ in range(ROUNDS):
        nothing.append(fresh(START)[0])
        for name in libraries:
            started[name].append(fresh(program(name))[0])
            decoded[name].append(float(fresh(program(name) + TIMED, encoded)[1]))
    bare = statistics.median(nothing)
    starts = {name: statistics.median(times) - bare for name, times in started.items()}
    decodes = {name: statistics.median(times) for name, times in decoded.items()}
    print(f"{'library':<10} {'start':>9} {'ratio':>6} {'decode':>10} {'ratio':>6}")
    for name in libraries:
        ratios = starts[name] / starts[libraries[0]], decodes[name] / decodes[libraries[0]]
        print(
            f"{name:<10} {starts[name] * 1e3:6.0f} ms {ratios[0]:6.1f} "
            f"{decodes[name] * 1e6:7.1f} µs {ratios[1]:6.1f}"
        )


def in_turn(*works: Callable[[], object]) -> list[float]:
    """Median seconds of each of these functions, which take turns."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(ROUNDS):
        for work, seconds in zip(works, times, strict=True):
            started = time.perf_counter()
            for _ in range(20):
                work()
            seconds.append((time.perf_counter() - started) / 20)
    return [statistics.median(seconds) for seconds in times]


def parsing(bodies: list[str], matters: list[str]) -> None:
    """Prints what Markdown costs with all rules and with those of blocks, and YAML beside it."""
    all_rules, blocks = MarkdownIt("commonmark"), MarkdownIt("commonmark")
    blocks.core.ruler.enableOnly(["normalize", "block"])
    for body in bodies:
        fences = [
            [(token.info, token.content, token.map) for token in parser.parse(body) if token.info]
            for parser in (all_rules, blocks)
        ]
        if fences[0] != fences[1]:
            raise SystemExit("block rules alone find other fences")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    slow, fast, plain = in_turn(
        lambda: [all_rules.parse(body) for body in bodies],
        lambda: [blocks.parse(body) for body in bodies],
        lambda: [yaml.load(text, Loader=loader) for text in matters],
    )
    each = 1e6 / len(bodies)
    print(f"Markdown, all rules    {slow * each:7.0f} µs {slow / fast:6.1f}")
    print(f"Markdown, block rules  {fast * each:7.0f} µs {1.0:6.1f}")
    print(f"front matter as YAML   {plain * each:7.0f} µs {plain / fast:6.1f}")


def main() -> None:
    """Prints both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=Path("kb"))
    files = sorted(parser.parse_args().folder.glob("KB????-*.md"))
    texts = [file.read_text("utf-8") for file in files if file.name.count(".") == 1]
    if not texts:
        raise SystemExit("no articles in this folder")
    parts = [text.split("\n---\n", 1) for text in texts]
    size = sum(map(len, texts)) // len(texts)
    print(f"{len(texts)} articles of {size} characters, Python {sys.version.split()[0]}")
    decoding([yaml.safe_load(head) for head, _ in parts])
    parsing([body for _, body in parts], [head for head, _ in parts])


if __name__ == "__main__":
    main()
