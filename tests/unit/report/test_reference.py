"""Everything that can be measured, fitted or found has an entry, and every entry its sources."""

from pathlib import Path

import pytest

from calviz.core.entry_specs import CHECKS, METRICS, RECALIBRATORS
from calviz.core.errors import OptionError
from calviz.report import reference as document
from calviz.report.reference import GLOSSARY, QUESTIONS, SOURCES, entries, entry, sources_in

DOCUMENT = Path(__file__).parents[3] / "docs" / "reference.md"


def test_all_registries_are_there_once():
    keys = [e.key for e in entries()]
    assert keys == [*METRICS.keys(), *RECALIBRATORS.keys(), *CHECKS.keys()]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize("e", [e for e in entries() if e.kind != "finding"], ids=lambda e: e.key)
def test_an_entry_says_what_how_and_who(e):
    assert e.summary.endswith(".")
    assert e.formula
    assert sources_in(e.reference), f"{e.reference!r} names no publication of SOURCES"


def test_every_publication_is_named_by_an_entry_or_a_word():
    texts = [e.reference for e in entries()] + [*GLOSSARY.values()]
    named = {source for text in texts for source in sources_in(text)}
    assert named == set(SOURCES)


def test_questions_name_metrics_that_there_are():
    assert {key for q in QUESTIONS for key in q.metrics} <= set(METRICS.keys())


def test_words_are_explained_once():
    words = [word.lower() for word in GLOSSARY]
    assert len(set(words)) == len(words)


def test_an_entry_that_there_is_not():
    with pytest.raises(OptionError, match="no metric, recalibrator or finding 'ecce'"):
        entry("ecce")


def test_the_document_is_made_of_what_there_is():
    assert DOCUMENT.read_text(encoding="utf-8") == document.markdown(), (
        "run: python -m calviz.report.reference > docs/reference.md"
    )
