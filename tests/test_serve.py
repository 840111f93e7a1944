"""`kbtools serve`, in a real process: what is saved is built at once, and open pages reload."""

from __future__ import annotations

import json
import os
import queue
import re
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from bases import Base, fence
from test_site import prepared

pytest.importorskip("material")

FAILS = fence("python repro id=r1", 'raise RuntimeError("the failure")')
PATIENCE = 60.0
"""Seconds: of a machine that is busy with other things; how long it took is asserted apart."""


class Browser:
    """One open page, as far as the server knows: it fetches pages and listens for events."""

    def __init__(self, base: Base) -> None:
        self.base = base
        self.process = base.start("serve", "--port", "0")
        assert self.process.stdout
        self.url = self.process.stdout.readline().split()[0]
        self.said: list[str] = []
        threading.Thread(target=self._read, daemon=True).start()
        self.until(lambda: any(line.startswith("built in") for line in self.said))

    def _read(self) -> None:
        assert self.process.stdout
        self.said += iter(self.process.stdout.readline, "")

    def until(self, holds: Callable[[], object]) -> float:
        """Waits for something to be so; the seconds that it took."""
        began = time.monotonic()
        while not holds():
            assert time.monotonic() - began < PATIENCE, self.said
            time.sleep(0.02)
        return time.monotonic() - began

    def get(self, path: str) -> str:
        """A page; of one that is not there the text of the answer."""
        try:
            with urllib.request.urlopen(self.url + path, timeout=PATIENCE) as answer:
                return str(answer.read().decode())
        except urllib.error.HTTPError as error:
            return f"{error.code} {error.read().decode()}"

    def listen(self, path: str) -> queue.Queue[dict[str, Any]]:
        """The events that a page gets, from now on."""
        news: queue.Queue[dict[str, Any]] = queue.Queue()
        stream = urllib.request.urlopen(f"{self.url}.kbtools/events?/{path}", timeout=PATIENCE)

        def read() -> None:
            for line in stream:
                if line.startswith(b"data: "):
                    news.put(json.loads(line[6:]))

        threading.Thread(target=read, daemon=True).start()
        return news

    def processor(self) -> float:
        """Seconds of processor time that the server and its builders have taken."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> int:
        """Ends it as Ctrl-C does; its exit code."""
        os.killpg(self.process.pid, signal.SIGINT)
        try:
            return self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise


@pytest.fixture(scope="module")
def browser(new_base: Callable[..., Base]) -> Iterator[Browser]:
    """A server of three articles, of which one has evidence."""
    base = prepared(new_base())
    for number in (1, 2, 3):
        base.article(FAILS, number=number)
    assert base.verify("KB0001", "--record").code == 0
    opened = Browser(base)
    yield opened
    assert opened.stop() == 130


def edited(browser: Browser, number: int, word: str) -> Path:
    """Saves an article with another word in it; the file."""
    file = next((browser.base.root / "kb").glob(f"KB000{number}*"))
    text = re.sub(r"## Root cause\n(\nword\w+\n)?", f"## Root cause\n\n{word}\n", file.read_text())
    file.write_text(text, "utf-8")
    return file


def test_a_saved_article_is_there_within_two_seconds(browser: Browser) -> None:
    """From saving to the event that reloads the page it takes two seconds of processor at most."""
    took = []
    for round_ in range(3):
        news = browser.listen("KB0001/")
        time.sleep(0.3)
        before = browser.processor()
        edited(browser, 1, f"word{round_}")
        event = news.get(timeout=PATIENCE)
        took.append(browser.processor() - before)
        assert event == {"reload": True, "problem": ""}
        assert f"word{round_}" in browser.get("KB0001/")
    assert min(took) < 2.0, took


def test_only_pages_that_changed_reload(browser: Browser) -> None:
    """Another article's page stays as it is."""
    other, own = browser.listen("KB0002/"), browser.listen("KB0003/")
    time.sleep(0.3)
    edited(browser, 3, "wordx")
    assert own.get(timeout=PATIENCE)["reload"]
    time.sleep(0.5)
    assert other.empty()


def test_lists_follow(browser: Browser) -> None:
    """A new title is in the list of all a moment later, and in the JSON."""
    file = next((browser.base.root / "kb").glob("KB0002*"))
    file.write_text(file.read_text("utf-8").replace('"article 2"', '"another title"'), "utf-8")
    browser.until(lambda: "another title" in browser.get("articles/"))
    browser.until(lambda: "another title" in browser.get("api/v1/index.json"))


def test_articles_come_and_go(browser: Browser) -> None:
    """A new article gets its page; that of a deleted one is gone."""
    file = browser.base.article(FAILS, number=7)
    browser.until(lambda: "article 7" in browser.get("KB0007/"))
    browser.until(lambda: "KB0007" in browser.get("articles/"))
    file.unlink()
    browser.until(lambda: browser.get("KB0007/").startswith("404"))
    browser.until(lambda: "KB0007" not in browser.get("articles/"))


def test_what_is_wrong_is_shown(browser: Browser) -> None:
    """An article that cannot be read leaves its page alone and says why, there and in the shell."""
    news = browser.listen("KB0001/")
    file = next((browser.base.root / "kb").glob("KB0001*"))
    good = file.read_text("utf-8")
    page = browser.get("KB0001/")
    file.write_text(good.replace("severity:", "severty:"), "utf-8")
    event = news.get(timeout=PATIENCE)
    assert "severty" in event["problem"]
    assert any("severty" in line for line in browser.said)
    assert browser.get("KB0001/") == page
    file.write_text(good, "utf-8")
    while news.get(timeout=PATIENCE)["problem"]:
        pass


def test_the_configuration_is_read_again(browser: Browser) -> None:
    """A new tagline is on the first page."""
    file = browser.base.root / "kbtools.toml"
    file.write_text(file.read_text("utf-8") + '\n[site]\ntagline = "a new tagline"\n', "utf-8")
    browser.until(lambda: "a new tagline" in browser.get(""))


def test_search_comes_when_nothing_is_saved(browser: Browser) -> None:
    """The search index is made after a while without changes."""
    browser.until(lambda: not browser.get("pagefind/pagefind.js").startswith("404"))


def test_what_is_not_there(browser: Browser) -> None:
    """It gets the page for that, with a way to reload; nothing outside of the site is served."""
    assert browser.get("nowhere/").startswith("404")
    assert "EventSource" in browser.get("nowhere/")
    for path in ("../../kbtools.toml", "%2e%2e/%2e%2e/kbtools.toml", "..%2f..%2fkbtools.toml"):
        assert "knowledge-base" not in browser.get(path)
