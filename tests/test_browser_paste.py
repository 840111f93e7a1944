"""The box for a traceback in a browser: what it answers, marks, translates and refuses."""

from __future__ import annotations

import json

from chromium import PAINTED, Reader


def test_a_traceback(reader: Reader) -> None:
    """A pasted log finds its article and shows the line that matched; another text finds none."""
    page = reader.open("paste/")
    page.fill("#kb-log", 'x\nloc("a.py":1:2): error: operand #1 does not dominate this use\ny')
    page.click(".kb-go")
    page.wait_for_selector(".kb-match a")
    assert page.locator(".kb-match a").first.get_attribute("href") == f"{reader.url}KB0002/"
    assert "operand #1" in page.locator(".kb-match-line").first.text_content()
    page.fill("#kb-log", "all went well")
    page.click(".kb-go")
    page.wait_for_selector(".kb-none")
    assert page.locator(".kb-first").count() == 0


def test_hints_in_the_language_of_the_page(reader: Reader) -> None:
    """What the matcher says in English is translated, with what it names."""
    page = reader.open("zh/paste/")
    page.fill("#kb-log", "RuntimeError: Engine core initialization failed. See root cause above.")
    page.click(".kb-go")
    page.wait_for_selector(".kb-surer li")
    hints = page.locator(".kb-surer li").all_text_contents()
    assert "其他故障也会打印这段文字：请在它上方找第一个报错" in hints
    assert page.locator(".kb-surer [lang]").count() == 0


def test_what_the_doctor_found(reader: Reader) -> None:
    """Its report beside a log says the cause at the article; "is this you?" takes versions."""
    record = {"schema": 1, "program": "kbtools 0.1.0", "knowledge_base": "x", "gpus": []}
    record |= {"python": {"version": "3.12.3"}, "versions": {"triton": "2.3.1"}}
    record["findings"] = [
        {"article": article, "level": "risk", "summary": f"The cause of {article}."}
        for article in ("KB0002", "KB0074")
    ]
    pasted = json.dumps(record, indent=1)
    page = reader.open("paste/")
    page.fill("#kb-log", f"error: operand #1 does not dominate this use\n{pasted}\n")
    page.click(".kb-go")
    page.wait_for_selector(".kb-match a")
    assert "The cause of KB0002." in page.locator(".kb-match .kb-doctor").text_content()
    assert page.locator("ul.kb-doctor").text_content() == "risk KB0074 The cause of KB0074."
    page = reader.open("KB0002/")
    page.fill("#kb-you-paste", pasted)
    assert page.locator(".kb-answer--affected").count() == 1
    assert "The cause of KB0002." in page.locator(".kb-doctor").text_content()


def test_what_failed_first(reader: Reader) -> None:
    """The line is marked among its neighbours, and selected in the field on demand."""
    page = reader.open("paste/")
    log = "[rank1]: ValueError: 41 tensors\nthen\nChildFailedError: rank 1 exited with code 1"
    page.fill("#kb-log", log)
    page.click(".kb-go")
    page.wait_for_selector(".kb-first")
    assert page.locator(".kb-first mark").text_content().strip() == f"1  {log.split(chr(10))[0]}"
    assert "rank1" in page.locator(".kb-first .kb-match-head").text_content()
    assert "3" in page.locator(".kb-first-note").first.text_content()
    page.click(".kb-first-line")
    selected = page.evaluate(
        "(({ value, selectionStart: a, selectionEnd: b }) => value.slice(a, b))"
        "(document.querySelector('#kb-log'))"
    )
    assert selected == log.split("\n")[0]
    assert page.locator(".kb-match").count() == 1, "what the launcher prints is known"


def test_a_text_is_answered_once(reader: Reader) -> None:
    """A second press of the button leaves the answer where it is, a changed text does not."""
    page = reader.open("paste/")
    page.fill("#kb-log", "RuntimeError: expected 4 tensors, got 41")
    page.click(".kb-go")
    page.wait_for_selector(".kb-first")
    page.evaluate("document.querySelector('.kb-first').dataset.seen = 'yes'")
    page.click(".kb-go")
    page.evaluate(PAINTED)
    assert page.locator(".kb-first[data-seen]").count() == 1
    page.fill("#kb-log", "RuntimeError: expected 5 tensors, got 41")
    page.click(".kb-go")
    page.wait_for_selector(".kb-first:not([data-seen])")


def test_the_text_of_what_failed_first(reader: Reader) -> None:
    """A long message is read to its end on a phone, and colours are no part of what is shown."""
    page = reader.open("paste/")
    page.set_viewport_size({"width": 390, "height": 844})
    message = f"ValueError: {'batch of the wrong size, ' * 8}41 tensors"
    worker = "\x1b[36m(Worker pid=7)\x1b[0m"
    page.fill("#kb-log", f"{worker} a\n{worker} {message}\nb")
    page.click(".kb-go")
    text = page.locator(".kb-first-text")
    assert text.text_content() == message
    box = text.bounding_box()
    assert box["x"] + box["width"] <= 390
    assert text.evaluate("element => element.scrollWidth <= element.clientWidth")
    excerpt = page.locator(".kb-first pre").text_content()
    assert "(Worker pid=7) a" in excerpt
    assert f"(Worker pid=7) {message}" in excerpt
    assert "\x1b" not in excerpt
    assert "36m" not in excerpt


def test_a_text_that_takes_too_long(reader: Reader) -> None:
    """After five seconds the matcher is ended, the page says so, and the next text is answered."""
    reader.page.add_init_script(
        """const Own = Worker; let first = true;
        globalThis.Worker = class extends Own { // one that never answers a text, then as it is
          constructor(url, options) { super(url, options); this.silent = first; first = false; }
          postMessage(data) { if (!this.silent || !data.text) super.postMessage(data); }
          terminate() { super.terminate(); globalThis.ended = (globalThis.ended || 0) + 1; }
        };"""
    )
    page = reader.open("paste/")
    page.fill("#kb-log", "error: operand #1 does not dominate this use")
    page.click(".kb-go")
    page.wait_for_selector(".kb-none")
    assert "longer than five seconds" in page.locator(".kb-none").text_content()
    assert page.evaluate("ended") == 1
    page.click(".kb-go")
    page.wait_for_selector(".kb-match a")
    assert page.evaluate("ended") == 1
