"""The JSON Schema of the front matter of an article, or of a notice."""

from __future__ import annotations

from typing import Any

import msgspec

from kbtools.articles.model import FrontMatter
from kbtools.articles.notices import NoticeMatter
from kbtools.config import Config


def front_matter_schema(config: Config, *, notice: bool = False) -> dict[str, Any]:
    """The schema, with the words that this knowledge base allows.

    Args:
        config: Of the knowledge base.
        notice: Whether it is that of a notice.
    """
    matter = NoticeMatter if notice else FrontMatter
    schema = msgspec.json.schema(matter)
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    form = schema["$defs"][matter.__name__]
    for definition in schema["$defs"].values():
        definition["additionalProperties"] = False
    properties = form["properties"]
    properties["id"]["pattern"] = f"^{config.id_pattern.pattern}$"
    properties["stage"]["enum"] = list(config.article.stages)
    properties["severity"]["enum"] = list(config.article.severities)
    if config.article.components:
        properties["components"]["items"]["enum"] = list(config.article.components)
    return schema
