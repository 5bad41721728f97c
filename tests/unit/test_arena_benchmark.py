"""What `benchmarks/arena.py` writes into docs/arena.md."""

import re
import sys
from pathlib import Path

import pytest

from calviz.comparison.arena_results import Experiment, MethodScore, ResultTable

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def scripts(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    yield
    for name in ("_harness", "_arena_tables"):
        sys.modules.pop(name, None)


def results(sets):
    """ "a" is first in the first two thirds of the data sets, "b" in the others; "none" is always last."""
    rows = []
    for i in range(sets):
        first, second = ("a", "b") if i < 2 * sets // 3 else ("b", "a")
        scores = {first: 0.1, second: 0.2, "none": 0.3}
        played = [MethodScore(m, {"brier": v, "nll": v}, 1.0) for m, v in scores.items()]
        rows.append((Experiment("files", f"set {i:02}", "m", 100 + i, 100, 2), played))
    return ResultTable.of(rows, baseline="none")


def test_marked_text_is_replaced_and_the_rest_stays(tmp_path):
    from _harness import write_between

    file = tmp_path / "page.md"
    file.write_text("before\n<!-- one -->\nold\n<!-- end of one -->\nafter\n")
    for _ in range(2):
        write_between("one", "new", file)
    assert file.read_text() == "before\n<!-- one -->\n\nnew\n\n<!-- end of one -->\nafter\n"
    with pytest.raises(ValueError, match="no place for 'two'"):
        write_between("two", "new", file)


def test_the_document_has_one_place_for_each_table():
    text = (ROOT / "docs" / "arena.md").read_text(encoding="utf-8")
    begun = re.findall(r"<!-- ((?!end of ).+?) -->", text)
    assert begun
    assert begun == re.findall(r"<!-- end of (.+?) -->", text)
    assert len(set(begun)) == len(begun)


def test_lead_by_hand():
    from _arena_tables import lead

    # Of two others, "a" beats two in 8 of 12 sets and one in 4: 10/12. "b": 8/12. They differ by 1/6.
    other, text = lead(results(12), "a", "brier")
    assert other == "b"
    assert text.startswith("+0.167 (")


def test_halves_are_every_other_data_set():
    from _arena_tables import halves

    values = {title: [e.dataset for e in part.experiments] for title, part in halves(results(5))}
    assert values == {"odd": ["set 00", "set 02", "set 04"], "even": ["set 01", "set 03"]}


def test_harm_by_hand():
    from _arena_tables import harm

    *_, line = harm(results(12), ["b"]).splitlines()
    # Never worse; better by 0.1 in 8 and by 0.2 in 4 experiments: the median gain is 10 points, the largest 20.
    assert [cell.strip() for cell in line.strip("|").split("|")] == [
        "`b`",
        "0",
        "",
        "",
        "12",
        "10.00",
        "20.00",
    ]
