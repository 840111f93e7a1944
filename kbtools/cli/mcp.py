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

    It needs an extra: pip install 'kbtools[mcp]'. Nothing leaves this machine.
    """
    try:
        from kbtools.integrations import mcp_server
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "mcp":
            raise
        from kbtools.cli.errors import MissingExtraError

        message = "`kbtools mcp` needs the MCP SDK: pip install 'kbtools[mcp]'"
        raise MissingExtraError(message) from error
    mcp_server.server(Path(ctx.obj), index).run()
