"""A knowledge base whose author and whose logs mean harm: all that they write is text."""

from __future__ import annotations

import json
from pathlib import Path

from bases import Base

BELL = "window.rang=1"
"""What a text does that is not text: a browser that did it can be asked."""
TAGS = (
    f"<script>{BELL}</script>",
    f"<img src=x onerror={BELL}>",
    f'"><svg onload={BELL}>',
    f"</title></textarea></pre></code><script>{BELL}</script>",
    f"<!-- --><style>*{{display:none}}</style><iframe srcdoc='<script>parent.{BELL}</script>'>",
    f"&lt;script&gt;{BELL}&lt;/script&gt;",
    f"&lt;/title&gt;&lt;img src=x onerror={BELL}&gt;",
)
MARKDOWN = (
    f"[a](javascript:{BELL})",
    f"[b](<javascript:{BELL}>)",
    f"[c](java\tscript:{BELL})",
    f"[d](&#106;avascript:{BELL})",
    f"[e](data:text/html,<script>{BELL}</script>)",
    f"[f][g]\n\n[g]: javascript:{BELL}",
    f"<javascript:{BELL}>",
    f"![h](x)  ![i](https://example.org/i.png){{ onload={BELL} }}",
    f"*j*{{: onclick={BELL} style=position:fixed }}",
    f"`` <script>{BELL}</script> ` ``",
    f"`k\n<script>{BELL}</script>\nk`",
    f"a `unclosed <script>{BELL}</script>",
    f'<div markdown="1">\n\n[l](javascript:{BELL})\n\n</div>',
    f"- m\n\n    <script>{BELL}</script>\n",
    f"> n\n> <script>{BELL}</script>",
    f"| o | p |\n| --- | --- |\n| <script>{BELL}</script> | `\\|<b>` |",
    "::: kbtools.config",
    "{{ config.site_name }} {% raw %} ${x}",
    '--8<-- "kbtools.toml"',
    f"\\<script>{BELL}\\</script>",
    f"\u202e\x02wzxhzdk:0\x03 \x1b[31m<script>{BELL}</script>",
)
CODE = f"</code></pre><script>{BELL}</script>\n{{: onclick={BELL} }}\n``\n<!--\n\x0c\x1b]0;x\x07"


def everything() -> str:
    """All of it as prose."""
    return "\n\n".join((*TAGS, *MARKDOWN))


def base_of(base: Base, *, long: int = 0) -> Base:
    """Writes a hostile article; each of its fields has `long` characters more."""
    text = everything()
    tail = " <b>" * (long // 4)
    base.article(
        f'```python repro id=r1\nraise RuntimeError("the failure")\n{code(CODE)}\n```\n',
        "```python fix id=f1\nassert True\n```\n",
        f"```html onclick={BELL}\n{CODE}\n```\n",
        text,
        tail,
        matter="upstream: [{report: a.b/c-d#12}, {fix: a.b/c-d@0123abc, basis: inferred}]\n",
    )
    file = next((base.root / "kb").glob("*.md"))
    article = file.read_text("utf-8")
    mean = " ".join(TAGS) + tail
    for key in ("title", "summary", "components", "stage", "severity"):
        value = [mean] if key == "components" else mean
        lines = [
            f"{key}: {json.dumps(value)}" if line.startswith(f"{key}: ") else line
            for line in article.split("\n")
        ]
        article = "\n".join(lines)
    file.write_text(article, "utf-8")
    settings = base.root / "kbtools.toml"
    words = json.dumps([mean], ensure_ascii=False)
    settings.write_text(
        f"[knowledge-base]\nname = {json.dumps('a ' + TAGS[0] + TAGS[5] + '{{ 1 }}{% raw %}')}\n"
        f'prefix = "KB"\nlanguages = ["en", "zh"]\n\n[article]\nstages = {words}\n'
        f"severities = {words}\n\n[site]\ntagline = {json.dumps(TAGS[1])}\n",
        "utf-8",
    )
    return base


def code(text: str) -> str:
    """A text as comments of Python."""
    return "\n".join(f"# {line}" for line in text.split("\n"))


def poison(rows: Path, long: int = 0) -> None:
    """Puts hostile text into every field of recorded evidence that is text."""
    mean = " ".join(TAGS) + "\n\x00\x1b[31m\u2028" + "<b>x\n" * (long // 5)
    lines = []
    for line in rows.read_text("utf-8").splitlines():
        row = json.loads(line)
        row["outcome"] |= {"output": f"{row['outcome'].get('output', '')}\nthe failure\n{mean}"}
        row["outcome"] |= {"message": mean, "targets": [TAGS[0]]}
        row["toolchain"] |= {"libc": mean, "compiler": mean, "kernel": mean, "platform": mean}
        row["toolchain"]["packages"] = {"torch": "2.7.1", TAGS[0]: TAGS[1]}
        row["toolchain"]["gpus"] = [{"name": TAGS[0], "sm": TAGS[1]}]
        row["kbtools"] = TAGS[0]
        lines.append(json.dumps(row))
    rows.write_text("\n".join(lines) + "\n", "utf-8")
