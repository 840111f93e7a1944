"""What git says of the repository that a knowledge base is in."""

from __future__ import annotations

import datetime
import subprocess
from pathlib import PurePosixPath

from kbtools.config import Config, KbtoolsError
from kbtools.evidence.rows import Row, decode_rows
from kbtools.tables import store
from kbtools.tables.declared import Tables
from kbtools.tables.model import Release, Statement


class GitError(KbtoolsError):
    """git is not installed, or it refused a command: no repository, or an unknown commit."""


def output(config: Config, *arguments: str, reference: str = "") -> str:
    """What a git command prints, run in the folder of the knowledge base.

    `reference` is the commit or branch of a user that the command depends on. If the command
    fails, the message says how to fetch it.

    Raises:
        GitError: git cannot be run, or the command failed.
    """
    if reference.startswith("-"):
        raise GitError(f"`{reference}` is not a commit")
    try:
        process = subprocess.run(
            # without this, git quotes paths that are not ASCII
            ["git", "-c", "core.quotePath=false", *arguments],
            cwd=config.root,
            capture_output=True,
            check=False,
        )
    except OSError as error:
        raise GitError(f"git cannot be run: {error}") from error
    if process.returncode:
        errors = process.stderr.decode("utf-8", "replace").strip().splitlines()
        message = f"git {arguments[0]}: {errors[-1] if errors else 'found nothing'}"
        if reference:
            message += "; a shallow checkout has no other branch: git fetch origin " + reference
        raise GitError(message)
    # paths may be any bytes
    return process.stdout.decode("utf-8", "surrogateescape")


def file_at(commit: str, path: str, config: Config) -> str:
    """The text of a file as it was at a commit; `path` is relative to the knowledge base.

    Raises:
        GitError: the commit has no such file.
    """
    return output(config, "show", f"{commit}:./{path}")


def evidence_at(commit: str, config: Config) -> dict[str, tuple[Row, ...]]:
    """Id of an article → its rows of evidence, as they were at a commit.

    Raises:
        GitError: git does not know the commit.
        EvidenceError: a line is not a row.
    """
    folder = config.evidence.name
    listing = output(
        config, "ls-tree", "--name-only", "-z", commit, f"./{folder}/", reference=commit
    )
    rows = {}
    for name in listing.split("\0"):
        if name.endswith(".jsonl"):
            content = file_at(commit, name, config).encode("utf-8", "surrogateescape")
            rows[PurePosixPath(name).stem] = decode_rows(content, f"{commit}:{name}")
    return rows


def tables_at(
    commit: str, tables: Tables, config: Config
) -> dict[str, tuple[Release | Statement, ...]]:
    """Name of a table → its rows as they were at a commit; a table that was not there has none.

    Raises:
        GitError: git does not know the commit.
        TablesError: a line is not a row.
    """
    listing = output(config, "ls-tree", "--name-only", "-z", commit, "./tables/", reference=commit)
    files = {PurePosixPath(name).name for name in listing.split("\0")}
    rows: dict[str, tuple[Release | Statement, ...]] = {}
    for name in tables.names:
        if f"{name}.jsonl" not in files:
            continue
        content, place = (
            file_at(commit, f"tables/{name}.jsonl", config).encode(),
            f"{commit}:{name}",
        )
        if name in tables.distributions:
            rows[name] = store.decoded(content, place, Release)
        else:
            rows[name] = store.decoded(content, place, Statement)
    return rows


def day_of(commit: str, config: Config) -> datetime.date:
    """The day on which a commit was made.

    Raises:
        GitError: git does not know the commit.
    """
    text = output(config, "show", "--no-patch", "--format=%cs", commit, "--", reference=commit)
    return datetime.date.fromisoformat(text.strip())
