"""Errors of the command line itself.

A module of its own, imported when an error is raised: `kbtools run` does not wait for `config`.
"""

from __future__ import annotations

from kbtools.config import KbtoolsError


class UnknownArticleError(KbtoolsError):
    """An argument names an article that does not exist."""


class UnknownSnippetError(KbtoolsError):
    """An argument names a snippet that its article does not have."""


class ReportError(KbtoolsError):
    """A report could not be written."""
