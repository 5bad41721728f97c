"""CSV that no spreadsheet takes for a program."""

import csv
import io

import numpy as np
import pandas as pd
import pytest

from calviz.core.words import csv_bytes, latex_table, markdown_table, spreadsheet_text


def _read(data: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(data.decode())))


@pytest.mark.parametrize(
    "text", ["=1+1", "+cmd", "-x", "@SUM(A1)", "\tx", "\rx", " =1", "\u200a@x", "\uff1d1"]
)
def test_formula_signs_are_neutralised_in_cells_and_headers(text):
    frame = pd.DataFrame({text: [text, "plain"]})
    header, first, second = _read(csv_bytes(frame))
    assert header == ["'" + text]
    assert first == [spreadsheet_text(text)] == ["'" + text]
    assert second == ["plain"]


def test_markdown_cells_are_neutralised_and_signed_numbers_are_not():
    frame = pd.DataFrame({"=A1": ["=1+1", "+cmd|x", "+1.5 (0.2 to 3)", "-2"]})
    cells = [line.strip("| ") for line in markdown_table(frame).splitlines()]
    assert cells == ["'=A1", "---", "'=1+1", r"'+cmd\|x", r"+1.5 \(0.2 to 3\)", "-2"]


def test_numbers_stay_numbers_and_quotes_survive():
    frame = pd.DataFrame({"n": np.array([-1, 2]), "x": [0.1, -0.25], "t": ['a "b", c', None]})
    assert _read(csv_bytes(frame)) == [
        ["n", "x", "t"],
        ["-1", "0.1", 'a "b", c'],
        ["2", "-0.25", ""],
    ]


def test_markdown_and_latex_show_texts_as_they_are():
    frame = pd.DataFrame({"a_b": ["x|y", "50 %"], "v": ["1", "\u22122"]})
    markdown = markdown_table(frame, caption="<b>", right=["v"])
    assert markdown.splitlines()[:3] == ["| a\\_b | v |", "| --- | ---: |", "| x\\|y | 1 |"]
    assert "\\<b\\>" in markdown
    latex = latex_table(frame, caption="50 % & more", right=["v"])
    assert r"\begin{tabular}{lr}" in latex
    assert r"50 \% & $-$2 \\" in latex
    assert r"\caption{50 \% \& more}" in latex
