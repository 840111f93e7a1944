"""A pasted log → what failed first, and the articles about it: `Matcher(index).diagnose(text)`."""

from kbtools.matching.first import FirstFailure
from kbtools.matching.index import Index, IndexEntry, index_of, load, of_base
from kbtools.matching.matcher import Diagnosis, Matcher
from kbtools.matching.matches import Match
from kbtools.packaged import settings_of

__all__ = [
    "Diagnosis",
    "FirstFailure",
    "Index",
    "IndexEntry",
    "Match",
    "Matcher",
    "index_of",
    "load",
    "of_base",
    "settings_of",
]
