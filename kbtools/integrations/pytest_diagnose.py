"""`pytest --diagnose`: the report of a failed test has the article about the failure."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

TITLE = "kbtools"
"""Heading of the section in a report."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    call: pytest.CallInfo[None],
) -> Iterator[None]:
    """Adds the article about the failure to the report of a failed test."""
    report: pytest.TestReport = yield  # type: ignore[assignment]
    if report.failed and call.excinfo is not None:
        outputs = (report.capstderr, report.capstdout, report.caplog)
        article = _brief_article(call.excinfo.value, *outputs)
        add_section = getattr(report.longrepr, "addsection", None)
        if article and add_section:
            add_section(TITLE, article)  # is shown and written to JUnit XML whatever is captured
        elif article:
            report.sections.append((TITLE, article))
    return report  # type: ignore[return-value]


def _brief_article(error: BaseException, *outputs: str) -> str:
    import traceback

    from kbtools.integrations import footnote

    try:
        text = "".join(traceback.format_exception(error))
        return footnote.brief_article(text, *outputs, is_own_process=True)
    except Exception as fault:
        return f"no article was looked for: {' '.join(str(fault).split())}"
