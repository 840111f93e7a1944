"""An index that is fetched: from where, and by which commands."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from bases import Base
from site_host import served, site

from kbtools import matching
from kbtools.matching.index import IndexFileError

FAILURE = "RuntimeError: the failure of the day"
TRACEBACK = f'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    g()\n{FAILURE}'


def test_an_index_comes_by_https(base: Base) -> None:
    """A site that leads on to an address which is not https:// is refused, unless it is ours."""
    base.article(literal=FAILURE)
    index = msgspec.json.encode(matching.load(base.root))
    with site(served(index)) as goal:
        for end, is_safe in ((goal, True), (goal.replace("127.0.0.1", "0.0.0.0"), False)):
            place = f"{end}/kb/api/v1/signatures.json".encode()
            with site(lambda _, place=place: (302, place)) as address:  # type: ignore[misc]
                if is_safe:
                    assert matching.load(base.root, f"{address}/").articles
                    continue
                with pytest.raises(IndexFileError, match="which is not https://"):
                    matching.load(base.root, f"{address}/")


def test_an_index_is_read_by_every_door(base: Base, tmp_path: Path) -> None:
    """`diagnose --index` and KBTOOLS_INDEX take the address of a site, too."""
    base.article(literal=FAILURE)
    (tmp_path / "log").write_text(TRACEBACK)
    with site(served(msgspec.json.encode(matching.load(base.root)))) as address:
        (base.root / "kbtools.toml").unlink()
        log = str(tmp_path / "log")
        assert "KB0001" in base.kbtools("diagnose", "--index", f"{address}/kb/", log).out
        failing = ("run", "--", "sh", "-c", f"cat {log} >&2; exit 3")
        done = base.kbtools(*failing, KBTOOLS_INDEX=f"{address}/kb/")
        assert (done.code, "kbtools: KB0001: Do it right." in done.err) == (3, True)
