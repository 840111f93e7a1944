"""What fits what: tables read off wheels, sources and toolchains, and the answers that follow.

`tables.toml` of a knowledge base declares what is read; `kbtools tables sync` writes `tables/`.
"""
