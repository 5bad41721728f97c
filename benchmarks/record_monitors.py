"""Record when other monitors find a shift, and what NannyML expects of rows without labels.

    python -P benchmarks/record_monitors.py probcal|confseq|glide|nannyml
    python -m benchmarks.record_monitors

Each peer needs an environment of its own: probcal 0.4; confseq 0.0.11 with NumPy below 2 (its build needs Boost and pybind11); glide-py
0.11, whose monitors also run from its folder under Python 3.11; NannyML 0.13. calviz is not needed. Writes the peer's part of
``tests/reference/recorded_monitors.json``. The inputs come from `stream` and `rows`, which the tests call too. Without a peer, calviz
watches the same streams, and the results are written beside those of the peers.
"""

from __future__ import annotations

import json
import os
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

RECORDED = Path(__file__).parents[1] / "tests" / "reference" / "recorded_monitors.json"
#: Looks before the shift, all looks, rows of a look, mean logit, shift of the logits, streams; and streams of a slow peer.
STREAMS = {
    "0.3 logits up from look 1 on": (0, 30, 200, 0.0, 0.3, 200, 200),
    "0.3 logits down from look 1 on": (0, 30, 200, 0.0, -0.3, 200, 200),
    "0.3 logits up from look 60 on": (59, 95, 200, 0.0, 0.3, 200, 25),
    "0.3 logits down from look 60 on": (59, 95, 200, 0.0, -0.3, 200, 25),
    "no shift, 60 looks": (60, 60, 200, 0.0, 0.0, 200, 50),
    "no shift, 100 looks of 50 rows, 2 % events": (100, 100, 50, -5.0, 0.0, 200, 50),
}
#: Rows with labels and without, slope and shift of the true logits, and how much higher the scores of the latter are.
FILES = {
    "calibrated": (4_000, 3_000, 1.0, 0.0, 0.5),
    "overconfident": (4_000, 3_000, 0.5, -0.4, 0.5),
    "few labels": (300, 1_000, 0.7, 0.3, -1.0),
}
LIBRARIES = {"probcal": "probcal", "confseq": "confseq", "glide": "glide-py", "nannyml": "nannyml"}


def stream(case: str, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Scores and hits of a stream, shape (looks, rows) each."""
    since, looks, rows, mean, shift, *_ = STREAMS[case]
    random = np.random.RandomState([number, *case.encode()])  # its stream never changes
    logits = mean + 1.5 * random.standard_normal((looks, rows))
    true = logits + shift * (np.arange(looks) >= since)[:, None]
    hits = random.random_sample(true.shape) < 1 / (1 + np.exp(-true))
    return 1 / (1 + np.exp(-logits)), hits.astype(np.int64)


def rows(case: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores and labels of the labelled rows, and scores of the others."""
    labelled, unlabelled, slope, shift, mean = FILES[case]
    random = np.random.RandomState(len(case))
    z = 1.5 * random.standard_normal(labelled)
    y = (random.random_sample(labelled) < 1 / (1 + np.exp(-slope * z - shift))).astype(np.int64)
    others = mean + 1.5 * random.standard_normal(unlabelled)
    return (1 / (1 + np.exp(-z))).round(6), y, (1 / (1 + np.exp(-others))).round(6)


def probcal(scores: np.ndarray, hits: np.ndarray) -> int | None:
    """The look of the alarm, from 1 on."""
    from probcal.monitor import CalibrationMonitor

    monitor = CalibrationMonitor(delta_ci_grid=(-1.0, 1.0, 2))  # of no interest here, and slow
    for t, (p, y) in enumerate(zip(scores, hits, strict=True), start=1):
        if monitor.update(y, p).alarm:
            return t
    return None


def confseq(scores: np.ndarray, hits: np.ndarray) -> int | None:
    """The look in which the betting confidence sequence of the mean of hit minus score excludes 0."""
    from confseq.betting import betting_mart

    wealth = betting_mart((hits - scores + 1).ravel() / 2, 0.5, convex_comb=True)
    over = np.flatnonzero(np.asarray(wealth) >= 20)
    return int(min(over[0], hits.size - 1) // hits.shape[1]) + 1 if over.size else None


def glide(scores: np.ndarray, hits: np.ndarray) -> int | None:
    """The look at which the asymptotic sequence of the mean of hit minus score excludes 0, on either side at 97.5 %."""
    from glide.monitors import AsymptoticClassicalRM

    gap = (hits - scores).ravel()
    look = np.repeat(np.arange(len(hits)), hits.shape[1])
    both = [
        AsymptoticClassicalRM().detect(gap, look, higher, 0.0, confidence_level=0.975)
        for higher in (False, True)
    ]
    found = [int(m.first_alarm_index) + 1 for m in both if m.first_alarm_index is not None]
    return min(found, default=None)


def nannyml(case: str) -> dict[str, float]:
    """What CBPE estimates of the rows without labels."""
    os.environ["NML_DISABLE_USAGE_LOGGING"] = "1"
    import pandas as pd
    from nannyml import CBPE

    p, y, q = rows(case)
    names = {"y_pred_proba": "p", "y_pred": "said", "y_true": "y"}
    cbpe = CBPE(
        **names,
        problem_type="classification_binary",
        metrics=["accuracy", "f1", "roc_auc", "confusion_matrix"],
        chunk_number=1,
    ).fit(pd.DataFrame({"p": p, "y": y, "said": (p > 0.5).astype(int)}))
    found = cbpe.estimate(pd.DataFrame({"p": q, "said": (q > 0.5).astype(int)}))
    table = found.filter(period="analysis").to_df()
    values = {name: float(table[name, "value"].iloc[0]) for name, what in table if what == "value"}
    return values | {"calibrates": float(cbpe.needs_calibration)}


def calviz(scores: np.ndarray, hits: np.ndarray) -> int | None:
    """The look of the alarm."""
    from calviz.core.predictions import Predictions
    from calviz.verdicts.watching import Watch

    day = np.repeat(np.arange(len(hits)), hits.shape[1]).astype("datetime64[D]")
    rows = Predictions(probs=scores.ravel(), labels=hits.ravel(), times=day)
    state = Watch().add(rows)
    return next((t for t, (_, e) in enumerate(state.path, 1) if e >= state.limit), None)


def found(case: str, alarms: list[int | None]) -> str:
    """The mean number of looks from the shift to the alarm, or the share of streams with a false alarm."""
    since, looks, _, _, shift, *_ = STREAMS[case]
    if not shift:
        share = np.mean([t is not None for t in alarms])
        error = np.sqrt(max(share * (1 - share), 0.25 / len(alarms)) / len(alarms))
        return f"{100 * share:.1f} % ± {100 * error:.1f} of {len(alarms)}"
    # A stream without an alarm counts as one at the end; false alarms before the shift are left out.
    late = [(t or looks) - since for t in alarms if t is None or t > since]
    missed = sum(t is None for t in alarms)
    text = f"{np.mean(late):.1f} ± {np.std(late) / np.sqrt(len(late)):.1f}"
    return text + (f" ({missed} of {len(alarms)} without)" if missed else "")


def write_table() -> None:
    """Watch the streams, and write when all monitors found the shifts."""
    from benchmarks._harness import machine, write_section

    record = json.loads(RECORDED.read_text())
    peers = [peer for peer in ("probcal", "confseq", "glide") if peer in record]
    head = ["calviz", *(f"{peer} {record[peer]['version']}" for peer in peers)]
    lines = [f"| streams | {' | '.join(head)} |", "| --- " * (len(head) + 1) + "|"]
    for case, how in STREAMS.items():
        ours = [calviz(*stream(case, k)) for k in range(how[5])]
        cells = [found(case, each) for each in (ours, *(record[p]["values"][case] for p in peers))]
        lines.append(f"| {case} | {' | '.join(cells)} |")
    text = (
        f"`python -m benchmarks.record_monitors`, on {machine()}; others as recorded. Streams of 200 rows a look (logits normal, SD 1.5) at "
        "alpha = 5 %. Mean number of looks from the shift to the alarm with its standard error, without streams that alarm before; or, "
        "without a shift, the share of streams that alarm at any look. confseq: its betting sequence of label minus score, row by row; GLIDE: "
        "its asymptotic sequence of that mean on both sides. The shares of calviz's bets were chosen by 600 other streams with this shift, where "
        "GLIDE took 3.8, probcal 3.9 and calviz 3.9 looks from the first look on.\n\n"
    )
    write_section("Monitors", text + "\n".join(lines))


def main() -> None:
    """Record one peer; what is recorded of the others stays."""
    if len(sys.argv) == 1:
        write_table()
        return
    peer = sys.argv[1]
    record = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    try:
        number = version(LIBRARIES[peer])
    except PackageNotFoundError:
        number = os.environ["VERSION"]
    if peer == "nannyml":
        values = {case: nannyml(case) for case in FILES}
    else:
        find = {"probcal": probcal, "confseq": confseq, "glide": glide}[peer]
        values = {
            case: [find(*stream(case, k)) for k in range(how[6 if peer == "probcal" else 5])]
            for case, how in STREAMS.items()
        }
    record[peer] = {"version": number, "numpy": np.__version__, "values": values}
    text = json.dumps(dict(sorted(record.items())))
    RECORDED.write_text(text.replace('"values": {', '"values": {\n').replace("], ", "],\n") + "\n")


if __name__ == "__main__":
    main()
