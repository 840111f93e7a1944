"""What all pages have: an address, a language, its counterparts, and a way to write links."""

from __future__ import annotations

import hashlib
import re

import msgspec
from markupsafe import escape

from kbtools.site import words
from kbtools.site.model import SiteModel, prefix
from kbtools.site.rendering import LONG, cut, render

SLUG = 60
"""Characters of a word that an address keeps."""


class Frame(msgspec.Struct, frozen=True):
    """The address and language of a page, and the links that it can write."""

    model: SiteModel
    language: str
    path: str
    """Below its language's root, as in `KB0002/`; empty for the home page."""

    @property
    def words(self) -> words.Words:
        """The site's words in its language."""
        return words.of(self.language)

    @property
    def address(self) -> str:
        """Relative to the root of the site, as in `zh/KB0002/`."""
        return prefix(self.model, self.language) + self.path

    @property
    def file(self) -> str:
        """The path of its Markdown in the tree of pages."""
        return (
            f"{self.address.removesuffix('/') or 'index'}.md"
            if self.path
            else f"{self.address}index.md"
        )

    def to(self, target: str) -> str:
        """The relative URL of an address that is relative to the root of the site."""
        return "../" * self.address.count("/") + target or "./"

    def in_language(self, target: str) -> str:
        """The relative URL of an address below the root of the page's language."""
        return self.to(prefix(self.model, self.language) + target)

    def name_of(self, language: str) -> str:
        """A language's own name for itself."""
        return words.of(language)("name") if language in words.KNOWN else language

    def counterpart(self, language: str) -> str:
        """The relative URL of the same page in another language."""
        return self.to(prefix(self.model, language) + self.path)

    @staticmethod
    def slug(value: str) -> str:
        """A word of the knowledge base as part of an address; a long word is cut, with a digest."""
        plain = re.sub(r"[^\w.-]+", "-", value[:SLUG].lower()).strip(".-") or "-"
        if len(value) <= SLUG:
            return plain
        return f"{plain}-{hashlib.sha256(value.encode()).hexdigest()[:10]}"

    def page(
        self, title: str, body: str, *, about: str = "", head: str = "", searched: bool = True
    ) -> tuple[str, bytes]:
        """The page's file: front matter that the theme reads, and the body.

        Args:
            title: of the page.
            body: Markdown.
            about: a description for search engines; none if empty.
            head: HTML to add to the page's `<head>`.
            searched: whether the search index has the page.
        """
        name = self.model.config.knowledge_base.name
        page_title = f"{cut(title)} · {name}" if self.path else name
        described = f'<meta name="description" content="{escape(cut(about, LONG))}">'
        matter = {
            "title": str(escape(cut(title))),
            "kb_language": self.language,
            "kb_path": self.path,
            "kb_title": str(escape(page_title)),
            "kb_unsearched": not searched,
            "kb_head": (described if about else "") + head,
        }
        lines = [f"{key}: {msgspec.json.encode(value).decode()}" for key, value in matter.items()]
        return self.file, "\n".join(["---", *lines, "---", "", body]).encode()

    def html(self, template: str, /, **values: object) -> str:
        """A template in the page's language; the frame is its variable `frame`."""
        return render(self.language, template, frame=self, **values)

    def plain(
        self, template: str, title: str, about: str = "", /, **values: object
    ) -> tuple[str, bytes]:
        """A page that is one template, which the search index leaves out.

        Args:
            template: its file name.
            title: of the page.
            about: a description for search engines, which the template shows, too.
            values: of the template.
        """
        html = self.html(template, title=title, about=about, **values)
        return self.page(
            title, f'<div class="kb-page" data-pagefind-ignore="all">{html}</div>\n', about=about
        )
