"""What `kbtools verify` was asked for."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from kbtools.articles.model import Role
from kbtools.cli.reporting import ReportOptions
from kbtools.outcome import Isolation

if TYPE_CHECKING:
    from kbtools.running.executor import Sandbox
    from kbtools.verification.model import RunOptions


class VerifyOptions(msgspec.Struct, frozen=True):
    """The options of `kbtools verify`, as they are given."""

    report: ReportOptions
    roles: tuple[Role, ...]
    needs: tuple[str, ...]
    jobs: int | None
    timeout: float | None
    toolchain: str | None
    shard: str | None
    changed_since: str | None
    on: str | None
    isolation: Isolation
    quick: bool
    rerun_remembered: bool
    fail_fast: bool
    record: bool
    keep: bool
    quiet: bool
    verbose: bool
    no_sandbox: bool
    require_sandbox: bool
    require_run: bool

    def __post_init__(self) -> None:
        if self.no_sandbox and self.require_sandbox:
            raise click.UsageError("--no-sandbox or --require-sandbox, not both")
        if self.keep and self.on:
            raise click.UsageError("--keep or --on, not both: folders are kept on this machine")

    @property
    def needs_outcomes(self) -> bool:
        """Whether the outcomes of remembered runs are asked for, and not only their verdicts."""
        return self.rerun_remembered or self.record or self.report != ReportOptions()

    @property
    def sandbox(self) -> Sandbox:
        """How snippets are to be shut in."""
        if self.no_sandbox:
            return "none"
        return "required" if self.require_sandbox else "where allowed"

    def run_options(self, keep: Path) -> RunOptions:
        """How the snippets of a toolchain are run; `keep`: where scratch folders are kept."""
        from kbtools.verification.model import RunOptions

        return RunOptions(
            jobs=self.jobs or (None if self.on else os.cpu_count()),
            rerun_remembered=self.rerun_remembered,
            record=self.record,
            spawn=self.isolation == "spawn",
            timeout=self.timeout,
            fail_fast=self.fail_fast,
            sandbox=self.sandbox,
            keep=keep if self.keep else None,
        )
