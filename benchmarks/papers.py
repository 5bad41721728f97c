"""Repeat results of the papers, on real predictions if they are beside the checkout, else on the sample data.

    python benchmarks/papers.py [--repeats 5] [--write]

Zhang et al. 2020, figure 6: how many rows each recalibrator needs. Gupta et al. 2021, table 1: KS of the top label before
and after the spline. Ao et al. 2023, section 5: classes that stay underconfident after temperature scaling. With
``--write`` the figures go to ``docs/images`` and the numbers to ``benchmarks/results``; docs/papers.md discusses them.
"""

from __future__ import annotations

import argparse

import numpy as np
from _harness import ROOT, write_section
from _svg import Panel, write

import calviz
from calviz.comparison.fitting import Division, fit_and_apply
from calviz.comparison.learning_curves import learning_curve
from calviz.core.entry_specs import RECALIBRATORS
from calviz.core.predictions import Predictions
from calviz.verdicts.analysis import evaluate

DATA = ROOT.parent / "shared" / "data"
NAMES = {
    "identity": "uncalibrated",
    "temperature": "TS",
    "ets": "ETS",
    "irm": "IRM",
    "isotonic": "IROvA",
    "temperature+isotonic": "IROvA-TS",
    "spline": "spline",
    "cwmcs-ts": "cwMCS-TS",
}
CURVES = ("identity", "temperature", "ets", "irm", "isotonic", "temperature+isotonic")


def datasets() -> dict[str, Predictions]:
    """Load the real files if there are any, else the sample data."""
    files = [
        *sorted((DATA / "netcal_cifar").glob("*.npz")),
        *sorted((DATA / "verified_calibration").glob("*.npz")),
    ]
    data_sets = {f.stem: calviz.load(f) for f in files}
    if not data_sets:
        folder = ROOT / "sample_data"
        data_sets = {n: calviz.load(folder / f"{n}.parquet") for n in ("simulated_100_classes",)}
    return {name: data for name, data in data_sets.items() if isinstance(data, Predictions)}


def zhang(name: str, data: Predictions, repeats: int) -> tuple[str, list[Panel]]:
    """Figure 6: calibration error and accuracy against the number of calibration rows."""
    pool = data.n // 2
    sizes = [round(float(s)) for s in np.geomspace(max(100, 2 * data.n_classes), pool, 5)]
    curve = learning_curve(
        data,
        CURVES,
        sizes=sizes,
        repeats=repeats,
        fit_fraction=0.5,
        metrics=("kde_ece", "nll", "accuracy"),
        reduction="top-label",
    )
    at = {(p.method, p.metric, p.rows): p for p in curve.points}
    panels = []
    for metric, title in (("kde_ece", "KDE-ECE, points"), ("accuracy", "accuracy, %")):
        methods = [m for m in CURVES if (m, metric, sizes[-1]) in at]
        points = {m: [at[m, metric, s] for s in sizes] for m in methods}
        panels.append(
            Panel(
                name,
                "calibration rows",
                title,
                {NAMES[m]: (sizes, [100 * p.mean for p in points[m]]) for m in methods},
                log_x=True,
                bands={
                    NAMES[m]: ([100 * p.low for p in points[m]], [100 * p.high for p in points[m]])
                    for m in methods
                    if m != "identity"
                },
            )
        )
    lines = ["| method | " + " | ".join(f"{s:,} rows" for s in sizes) + " |"]
    lines.append("| --- |" + " --- |" * len(sizes))
    for m in CURVES:
        cells = [
            f"{100 * at[m, 'kde_ece', s].mean:.2f} / {at[m, 'nll', s].mean:.3f} / "
            f"{100 * at[m, 'accuracy', s].mean:.1f}"
            for s in sizes
        ]
        lines.append(f"| {NAMES[m]} | " + " | ".join(cells) + " |")
    return f"{name}: KDE-ECE in points / NLL / accuracy in %\n\n" + "\n".join(lines), panels


def calibrated(data: Predictions, method: str) -> Predictions:
    """Second half of the rows, calibrated by a map fitted on the first half (stratified, seed 0)."""
    rows = Division(fit_fraction=0.5, seed=0).rows(data)
    result = fit_and_apply(data, RECALIBRATORS[method], rows, {}).calibrated
    assert isinstance(result, Predictions)
    return result


def gupta(data_sets: dict[str, Predictions]) -> str:
    """Table 1: KS of the top label."""
    methods = ("identity", "temperature", "spline")
    lines = ["| file | " + " | ".join(NAMES[m] for m in methods) + " |", "| --- |" + " --- |" * 3]
    for name, data in data_sets.items():
        values = [
            evaluate(calibrated(data, m), ["ks"], reduction="top-label").metrics["ks"].value
            for m in methods
        ]
        lines.append(f"| {name} | " + " | ".join(f"{100 * v:.2f}" for v in values) + " |")
    return "KS error of the top label on the test half, in points\n\n" + "\n".join(lines)


def class_scores(data: Predictions) -> np.ndarray:
    """MCS of every true class: mean confidence minus accuracy (Ao 2023, eq. 5)."""
    gap = data.probs.max(axis=1) - (data.probs.argmax(axis=1) == data.labels)
    return np.bincount(data.labels, gap, data.n_classes) / np.bincount(
        data.labels, minlength=data.n_classes
    )


def ao(data_sets: dict[str, Predictions]) -> tuple[str, list[Panel]]:
    """Share of underconfident classes, before and after recalibration."""
    methods = ("identity", "temperature", "cwmcs-ts")
    lines = ["| file | " + " | ".join(NAMES[m] for m in methods) + " |", "| --- |" + " --- |" * 3]
    panels = []
    for name, data in data_sets.items():
        scores = {m: class_scores(calibrated(data, m)) for m in methods}
        cells = [
            f"{100 * (s < 0).mean():.0f} %, {100 * np.abs(s).mean():.2f}" for s in scores.values()
        ]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
        share = 100 * (np.arange(data.n_classes) + 0.5) / data.n_classes
        curves = {NAMES[m]: (share, 100 * np.sort(s)) for m, s in scores.items()}
        panels.append(Panel(name, "classes, %, by their score", "MCS of the class, points", curves))
    text = (
        "Share of underconfident classes, and the mean size of the scores of all classes in points"
    )
    return f"{text}\n\n" + "\n".join(lines), panels


def main() -> None:
    """Compute and print the results and, with ``--write``, write them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    data_sets = datasets()
    chosen = [
        n for n in ("wideresnet-16-4-cifar-10", "wideresnet-16-4-cifar-100") if n in data_sets
    ]
    chosen = chosen or list(data_sets)[:1]
    parts, panels = ["### Number of rows needed (Zhang et al. 2020, figure 6)"], []
    for name in chosen:
        text, curves = zhang(name, data_sets[name], options.repeats)
        parts.append(text)
        panels += curves
        print(text, flush=True)
    parts += ["### Splines (Gupta et al. 2021, table 1)", gupta(data_sets)]
    print(parts[-1], flush=True)
    text, by_class = ao({name: data_sets[name] for name in data_sets})
    parts += ["### Underconfident classes (Ao et al. 2023)", text]
    print(text, flush=True)
    if options.write:
        images = ROOT / "docs" / "images"
        write(images / "papers-learning.svg", "Calibration error by number of rows", panels[:2])
        if len(panels) > 2:
            write(images / "papers-learning-100.svg", "The same with 100 classes", panels[2:4])
        chosen_panels = [p for p in by_class if p.title in chosen]
        write(images / "papers-classes.svg", "Scores of the true classes", chosen_panels)
        data_used = "real predictions" if DATA.exists() else "sample data"
        write_section(
            "Papers",
            f"`python benchmarks/papers.py --write` on {data_used}.\n\n" + "\n\n".join(parts),
        )


if __name__ == "__main__":
    main()
