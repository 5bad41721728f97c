"""The example notebook runs from the first cell to the last."""

import json
from pathlib import Path

import pandas as pd
import plotly.graph_objects as go
import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOK = ROOT / "examples" / "audit.ipynb"


@pytest.mark.slow
def test_the_notebook_runs_and_holds_no_output(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    codes = [cell for cell in cells if cell["cell_type"] == "code"]
    assert not any(cell["outputs"] for cell in codes)
    names: dict[str, object] = {}
    shown = []
    for cell in codes:
        source = "".join(cell["source"])
        exec(compile(source, cell["id"], "exec"), names)
        last = source.splitlines()[-1]
        if last.endswith(("frame()", "plot()")):
            shown.append(eval(last, names))
    assert [type(s) for s in shown] == [pd.DataFrame, go.Figure, pd.DataFrame, pd.DataFrame]
    before, best, after = capsys.readouterr().out.strip().splitlines()
    assert before.startswith("Overconfident")
    assert best.split(": ")[1] in {"temperature", "ets", "isotonic", "irm"}
    assert after != before
