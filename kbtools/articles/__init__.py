"""Articles: Markdown files parsed, decoded into values, linked, translated, started."""
