"""`pytest --diagnose`: the article is part of a failing test's report."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

TITLE = "kbtools"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    call: pytest.CallInfo[None],
) -> Iterator[None]:
    """Adds a section to the report of what failed with a known failure."""
    report: pytest.TestReport = yield  # type: ignore[assignment]
    if report.failed and call.excinfo is not None:
        said = _article(call.excinfo.value, report.capstderr, report.capstdout, report.caplog)
        section = getattr(report.longrepr, "addsection", None)
        if said and section:
            section(TITLE, said)  # shown and written to JUnit XML whatever is captured
        elif said:
            report.sections.append((TITLE, said))
    return report  # type: ignore[return-value]


def _article(error: BaseException, *captured: str) -> str:
    import traceback

    from kbtools.integrations import footnote

    try:
        text = "".join(traceback.format_exception(error))
        return footnote.of(text, *captured, versions=footnote.here())
    except Exception as fault:
        return f"no article was looked for: {' '.join(str(fault).split())}"
