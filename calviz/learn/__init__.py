"""What terms and numbers mean: the content of the page Learn, the report's appendix and docs/reference.md.

Entries on metrics, recalibrators and findings come from the registries; the text of an entry is where it is
registered. The glossary, the guide and the list of publications are written here by hand.
"""

from calviz.learn.entries import EntryKind, LearnEntry, entries, entry
from calviz.learn.glossary import GLOSSARY, GlossaryTerm
from calviz.learn.guide import LIMITS, QUESTIONS, MetricQuestion
from calviz.learn.publications import SOURCES, Publication, sources_in

__all__ = [
    "GLOSSARY",
    "LIMITS",
    "QUESTIONS",
    "SOURCES",
    "EntryKind",
    "GlossaryTerm",
    "LearnEntry",
    "MetricQuestion",
    "Publication",
    "entries",
    "entry",
    "sources_in",
]
