"""The command that serves the knowledge base to coding agents."""

from __future__ import annotations

from pathlib import Path

import click

from kbtools.cli.group import INDEX


@click.command(short_help="Serve the knowledge base to coding agents.")
@INDEX
@click.pass_context
def mcp(ctx: click.Context, index: Path | str | None) -> None:
    """Serve `diagnose`, `explain` and `search` to coding agents, over MCP on standard input/output.

    It needs the extra `mcp` of kbtools. Nothing leaves this machine.
    """
    from kbtools.integrations import mcp_server

    mcp_server.server(Path(ctx.obj), index).run()
