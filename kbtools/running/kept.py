"""The scratch folder of a run, left for a person to look at, and a script that repeats the run."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from kbtools.config import KbtoolsError

SCRIPT = "run.sh"
HEAD = """\
#!/bin/sh
# Repeats the run of {article} by hand. Its folders are new, so that no cache hides a failure.
# Unlike in `kbtools verify`, there is no sandbox and no limit on time, memory and processes.
set -e
rm -rf {again}
mkdir -p {again}/work {again}/tmp
{copies}cd {again}/work
run() {{
  env -i \\
{variables}
    "$@"
}}
"""


class KeepError(KbtoolsError):
    """A scratch folder cannot be moved to the folder in which it is to be kept."""


def repeat_command(folder: Path) -> str:
    """The shell command that repeats the run whose scratch folder was kept as `folder`."""
    return f"sh {shlex.quote(str(folder / SCRIPT))}"


def keep(
    folder: Path,
    *,
    scratch: Path,
    modules: Path,
    file_name: str,
    source: str,
    files: Mapping[str, bytes],
    article: str,
    environment: Mapping[str, str],
    commands: Sequence[Sequence[str]],
) -> None:
    """Moves the scratch folder of a run that has ended, and writes a script that repeats the run.

    Nothing is written in what the run left: it may hold links to anywhere.

    folder: what is made; what an earlier run left there is removed.
    scratch: the folder of the run, which becomes `folder/scratch`.
    modules: what snippets have on their path, `kbtools.repro`; copied to `folder/path`.
    file_name, source: the snippet's file, written anew: the run may have changed it.
    files: its data files, by name; written to `folder/files`, and copied for each run.
    article: the path of the article, for the script's first lines.
    environment: every variable that the commands see; scratch folders are below `folder/again`.
    commands: the words of each command, one after another; the first that fails is the last.

    Raises:
        KeepError: the folder cannot be written.
    """
    again = shlex.quote(str(folder / "again"))
    script = HEAD.format(
        article=article.replace("\n", " "),
        again=again,
        copies="".join(
            f"cp {shlex.quote(str(folder / 'files' / name))} {again}/work\n" for name in files
        ),
        variables="\n".join(
            f"    {shlex.quote(f'{name}={value}')} \\" for name, value in environment.items()
        ),
    )
    script += "".join(f"run {shlex.join(words)}\n" for words in commands)
    try:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        with suppress(shutil.Error):  # no socket or named pipe is copied to another file system
            shutil.move(scratch, folder / "scratch")
        shutil.copytree(modules, folder / "path")
        (folder / file_name).write_text(source, "utf-8")
        for name, content in files.items():
            (folder / "files").mkdir(exist_ok=True)
            (folder / "files" / name).write_bytes(content)
        (folder / SCRIPT).write_text(script, "utf-8")
    except OSError as error:
        raise KeepError(f"the scratch folder could not be kept as {folder}: {error}") from error
