"""Every rule of a knowledge base, as values. A rule is a function named for its code.

`kb0…` look at a page before it is decoded, `kb1…` at an article, `kb2…` at its signatures,
`kb3…` at all of them together, `kb4…` at a notice. The docstring of the function is the rule's
page.
"""

from __future__ import annotations

from kbtools.checks import (
    articles,
    bounds,
    exemptions,
    fences,
    mentions,
    names,
    notices,
    pages,
    receipts,
    recorded,
    signatures,
    together,
)
from kbtools.checks.model import rules_of

PAGE_RULES = (*rules_of(pages), *rules_of(fences))
ARTICLE_RULES = (*rules_of(articles), *rules_of(exemptions))
SIGNATURE_RULES = rules_of(signatures)
BASE_RULES = (
    *rules_of(together),
    *rules_of(mentions),
    *rules_of(names),
    *rules_of(bounds),
    *rules_of(receipts),
    *rules_of(recorded),
)
NOTICE_RULES = rules_of(notices)
SHARED_RULES = tuple(rule for rule in ARTICLE_RULES if rule.code in ("KB103", "KB104", "KB106"))
"""Those about an article that a notice must keep, too."""
RULES = tuple(
    sorted(
        (*PAGE_RULES, *ARTICLE_RULES, *SIGNATURE_RULES, *BASE_RULES, *NOTICE_RULES),
        key=lambda rule: rule.code,
    )
)
