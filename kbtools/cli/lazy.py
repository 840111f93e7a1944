"""A click group that imports the module of a command when the command is called.

It is the `LazyGroup` of click's documentation with the commands in sections.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

Sections = Mapping[str, Mapping[str, str]]
"""Heading → name of a command → where its object is, as in `kbtools.cli.articles.check`."""


class LazyGroup(click.Group):
    """A group whose commands are imported one by one, as they are needed.

    `kbtools run` is wrapped around programs of a second: it cannot wait for what `verify` imports.
    """

    def __init__(self, *args: Any, sections: Sections, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.sections = sections
        self.imports = {
            name: path for section in sections.values() for name, path in section.items()
        }

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the commands in the order of the sections."""
        return [*self.imports]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, imported now; None for an unknown name."""
        # click proposes similar names out of `self.commands` when a name is misspelt
        for name in [cmd_name] if cmd_name in self.imports else self.imports:
            if name not in self.commands:
                self.add_command(self._import(name), name)
        return super().get_command(ctx, cmd_name)

    def _import(self, name: str) -> click.Command:
        module, _, attribute = self.imports[name].rpartition(".")
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command), f"{self.imports[name]} is not a command"
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes each section as a list of its commands, all texts below one another."""
        width = max(map(len, self.imports))
        limit = formatter.width - 6 - width
        for heading, names in self.sections.items():
            commands = {name: self.get_command(ctx, name) for name in names}
            rows = [
                (name.ljust(width), command.get_short_help_str(limit))
                for name, command in commands.items()
                if command and not command.hidden
            ]
            with formatter.section(heading):
                formatter.write_dl(rows)
