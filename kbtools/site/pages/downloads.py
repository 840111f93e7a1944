"""Snippets as files that run without kbtools."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

from kbtools.articles import links
from kbtools.articles.model import Snippet
from kbtools.site.model import SiteModel, data_file_path, download_path
from kbtools.site.rendering import visible


def download(model: SiteModel, snippet: Snippet) -> tuple[str, bytes]:
    """A snippet as a file that runs by itself, without kbtools."""
    return download_path(snippet), stand_alone(model, snippet).encode()


def stand_alone(model: SiteModel, snippet: Snippet) -> str:
    """The code of a snippet and of those that it continues, below a comment on how to run it."""
    sign = "//" if snippet.language == "cuda" else "#"
    name = Path(download_path(snippet)).name
    run = {"python": f"python {name}", "bash": f"bash {name}", "cuda": f"nvcc {name} -o a && ./a"}
    variables = "".join(f"{name}='{value}' " for name, value in snippet.env.items())
    command = (
        f"{variables}{snippet.keys.tool + ' ' if snippet.keys.tool else ''}{run[snippet.language]}"
    )
    page = links.url(snippet.article, model.config.knowledge_base.url)
    head = [
        f"{snippet.name}, a {snippet.role}: {page}",
        f"needs: {snippet.keys.requires}{', the network' if snippet.keys.net else ''}",
        f"run: {command}",
    ]
    if snippet.data_files:
        head.insert(2, f"beside it: {beside(model, snippet)}")
    code = "\n".join(part.code.rstrip("\n") for part in (*snippet.before, snippet))
    lines = [f"{sign} {visible(line).replace(chr(10), ' ')}" for line in head]
    future = re.findall(r"^from __future__ import .*$", code, re.MULTILINE)
    if snippet.language == "python" and snippet.uses_helper:
        for line in future:
            code = code.replace(line, "", 1)
        lines += [*dict.fromkeys(future), *bundled()]
    return "\n".join([*lines, "", code]) + "\n"


def beside(model: SiteModel, snippet: Snippet) -> str:
    """The command that fetches the data files of a snippet, or where they are."""
    site = model.config.knowledge_base.url.rstrip("/")
    addresses = [f"{site}/{data_file_path(name)}" for name in snippet.data_files]
    if site:
        return f"curl {' '.join(f'-O {address}' for address in addresses)}"
    return ", ".join(f"kb/files/{name}" for name in snippet.data_files)


def bundled() -> list[str]:
    """The lines that define `kbtools.repro` within a stand-alone file."""
    source = (resources.files("kbtools") / "repro.py").read_text("utf-8")  # not to be run here
    return [
        "",
        "# The module kbtools.repro, so that this file runs without kbtools.",
        "import sys as _sys, types as _types",
        '_kbtools, _repro = _types.ModuleType("kbtools"), _types.ModuleType("kbtools.repro")',
        f"exec(compile({source!r}, 'kbtools/repro.py', 'exec'), _repro.__dict__)",
        "_kbtools.repro = _repro",
        '_sys.modules.update({"kbtools": _kbtools, "kbtools.repro": _repro})',
    ]
