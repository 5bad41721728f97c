"""Every kind of sentence that draws a conclusion says what it selects and how it is adjusted, and has a simulation."""

import ast
import re
from pathlib import Path

import pytest

from benchmarks.claims import MAKERS, every_claim, every_simulation
from calviz.core.entry_specs import CHECKS
from calviz.core.errors import MADE_BY, OptionError, claim

ROOT = Path(__file__).parents[2]
#: Words that only a conclusion contains.
CONCLUDES = re.compile(
    r"beyond (noise|chance)|clear of chance|% confidence|are enough for|told apart|hardly tell|in reverse|"
    r"better than (everybody|nobody)|expect (about|between)|not for every class|than the probabilities say"
)
#: Functions whose words only explain the sentence or the picture beside them.
EXPLAINS = {
    "calviz.comparison.advice",
    "calviz.comparison.comparison_results",
    "calviz.figures.arena_ranks._bars",
    "calviz.figures.metric_over_time._traces",
    "calviz.verdicts.evaluation.alone",
}
#: Checks that report a fact about the rows, which needs no test.
FACTS = {
    "CAL003": "rows per bin",
    "CAL004": "number of rows",
    "CAL005": "one class",
    "CAL006": "classes without rows",
    "CAL007": "saturated scores",
    "CAL008": "probability zero on the true class",
    "CAL009": "ties",
    "CAL011": "shared rows",
    "CAL024": "weights and clusters",
    "CAL025": "what was not checked",
    "CAL027": "rows of several models",
    "CAL029": "repeated rows",
}


@pytest.fixture(scope="module")
def declared():
    return every_claim()


def concluding(path):
    """Names of the functions of a file whose strings, docstrings apart, contain words of a conclusion."""
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts)

    def walk(node, names):
        for child in ast.iter_child_nodes(node):
            own = isinstance(child, ast.FunctionDef | ast.ClassDef)
            if own or not isinstance(child, ast.Expr | ast.Constant):
                yield from walk(child, [*names, child.name] if own else names)
            elif isinstance(child, ast.Expr) and not isinstance(child.value, ast.Constant):
                yield from walk(child, names)
            elif isinstance(child, ast.Constant) and CONCLUDES.search(str(child.value)):
                yield ".".join([module, *names])

    yield from walk(ast.parse(path.read_text(encoding="utf-8")), [])


@pytest.mark.slow
def test_every_function_that_concludes_declares_the_kind_of_its_sentence(declared):
    made = {name for names in MADE_BY.values() for name in names} | EXPLAINS
    files = [path for room in MAKERS for path in (ROOT / "calviz" / room).rglob("*.py")]
    found = {name for path in files for name in concluding(path)}
    assert len(found) > 10
    undeclared = {
        name
        for name in found
        if not any(name == known or name.startswith(f"{known}.") for known in made)
    }
    assert not undeclared
    assert found >= EXPLAINS, "no longer needed"


def test_every_check_is_of_a_declared_kind_or_reports_a_fact(declared):
    made = {name for names in MADE_BY.values() for name in names}
    undeclared = {
        check.key
        for check in CHECKS
        if f"{check.run.__module__}.{check.run.__qualname__}" not in made
    }
    assert undeclared == set(FACTS)


def test_every_kind_of_sentence_has_a_simulation_with_a_requirement(declared):
    every = every_simulation()
    assert {one.claim for one in every} == set(declared)
    required = {one.claim for one in every if one.required}
    assert required == set(declared)
    assert set(MADE_BY) == set(declared)


def test_the_documents_have_the_rate_of_every_kind(declared):
    text = (ROOT / "docs/uncertainty.md").read_text(encoding="utf-8")
    for kind in declared.values():
        lines = [line for line in text.splitlines() if line.startswith(f"| {kind.says} |")]
        assert len(lines) == 1, kind.key
        assert re.search(r"\d %", lines[0].split("|")[-2]), f"{kind.key} has no rate"


def test_the_measured_rates_are_those_required():
    text = (ROOT / "benchmarks/results/sentences.md").read_text(encoding="utf-8")
    assert "| missed |" not in text.split("\n## ", 1)[1]


def test_a_kind_is_declared_once_and_whole():
    with pytest.raises(OptionError, match="twice"):
        claim("miscalibration", says="a", chosen="b", adjusted="c")
    with pytest.raises(OptionError, match="does not say"):
        claim("new", says="a")
