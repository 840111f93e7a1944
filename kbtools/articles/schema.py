"""The JSON Schema of an article's front matter."""

from __future__ import annotations

from typing import Any

import msgspec

from kbtools.articles.model import FrontMatter
from kbtools.config import Config


def front_matter_schema(config: Config) -> dict[str, Any]:
    """The schema, with the words that this knowledge base allows."""
    schema = msgspec.json.schema(FrontMatter)
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    form = schema["$defs"]["FrontMatter"]
    for definition in schema["$defs"].values():
        definition["additionalProperties"] = False
    properties = form["properties"]
    properties["id"]["pattern"] = f"^{config.id_pattern.pattern}$"
    properties["stage"]["enum"] = list(config.article.stages)
    properties["severity"]["enum"] = list(config.article.severities)
    if config.article.components:
        properties["components"]["items"]["enum"] = list(config.article.components)
    return schema
