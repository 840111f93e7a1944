"""A pasted log → the articles it speaks of: `Matcher(index).diagnose(text)`."""

from kbtools.matching.index import Index, IndexEntry, index_of, load, of_base, settings_of
from kbtools.matching.matcher import Diagnosis, Match, Matcher

__all__ = [
    "Diagnosis",
    "Index",
    "IndexEntry",
    "Match",
    "Matcher",
    "index_of",
    "load",
    "of_base",
    "settings_of",
]
