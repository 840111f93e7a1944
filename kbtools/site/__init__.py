"""The pages: generate plain Markdown, build it with MkDocs. Runs no snippet."""
