"""How often intervals cover the truth, and whether p-values of calibrated models are uniform.

    python benchmarks/coverage.py [--minutes 20] [--write]

Draws samples whose truth is known, as many as fit into the time, and counts. With ``--write`` the tables go
to `RESULTS.md` and the figure to `docs/images/coverage.svg`; `docs/uncertainty.md` says what they mean.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
from _coverage_figure import draw_coverage
from _harness import ROOT, machine, write_section

sys.path.insert(0, str(ROOT / "sample_data"))

import calviz
from calviz.core.metric import METRICS
from calviz.core.predictions import Predictions

SIZES = (200, 1_000, 10_000)
#: So many samples of each size for one of the largest.
TURNS = {200: 6, 1_000: 4, 10_000: 1}
RESAMPLES = 200
TRUTH_ROWS = 400_000
LINEAR = ("accuracy", "brier", "mcs", "calibration_slope")
#: Metrics whose true value is ``E |s - pi(s)|``, and ``E (s - pi(s))^2``.
ABSOLUTE = ("ece", "ece_equal_mass", "kde_ece", "smece")
SQUARED = ("ece_l2", "ece_debiased", "brier_miscalibration")
KEYS = (*LINEAR, *ABSOLUTE, *SQUARED, "mce", "ks")
#: What has no closed form for the 100 classes.
UNKNOWN = ("brier", "calibration_slope", "mce")
TRUTH = json.loads((ROOT / "sample_data" / "manifest.json").read_text())


def synthetic(beta0, beta1, n, rng):
    """Zhang et al. 2020, appendix E (eq. 13); calibrated for (0, -2)."""
    x = np.where(rng.random(n) < 0.5, -1.0, 1.0) + rng.standard_normal(n)
    p = 1 / (1 + np.exp(-beta0 - beta1 * x))
    return Predictions(probs=p, labels=rng.random(n) < 1 / (1 + np.exp(2 * x)))


def hundred(n, rng):
    """The simulated 100 classes of the sample data."""
    from make import make_simulated_100_classes

    made = make_simulated_100_classes(int(rng.integers(1 << 31)), n)
    labels = np.array([int(label[1:]) for label in made.columns["label"]])
    return Predictions(probs=made.models["sharpened"], labels=labels)


CASES = {
    "calibrated": (partial(synthetic, 0.0, -2.0), "positive"),
    "appendix E, case 2": (partial(synthetic, 0.2, -1.9), "positive"),
    "appendix E, case 1": (partial(synthetic, 0.5, -1.5), "positive"),
    "100 classes": (hundred, "top-label"),
}


def keys_of(case):
    """What is measured."""
    return tuple(k for k in KEYS if case != "100 classes" or k not in UNKNOWN)


def truth_of(case):
    """True values: in closed form where there is one, on very many rows otherwise."""
    draw, reduction = CASES[case]
    models = TRUTH["simulated_binary"]["truth"]
    hundred_classes = TRUTH["simulated_100_classes"]["truth"]["sharpened"]["top-label"]
    closed = {
        "calibrated": {"ece_l1": 0.0, "ece_l2": 0.0, "mcs": 0.0, "mce": 0.0, "ks": 0.0},
        "appendix E, case 1": models["less calibrated"]["positive"],
        "appendix E, case 2": models["better calibrated"]["positive"],
        # Over-confident everywhere, so that cumulative gaps only grow.
        "100 classes": {**hundred_classes, "ks": hundred_classes["mcs"]},
    }[case]
    truth = dict.fromkeys(ABSOLUTE, closed["ece_l1"]) | dict.fromkeys(SQUARED, closed["ece_l2"])
    truth |= {key: closed[key] for key in keys_of(case) if key in closed}
    if unknown := [key for key in keys_of(case) if key not in truth]:
        many = draw(TRUTH_ROWS, np.random.default_rng(99))
        truth |= {r.key: r.value for r in calviz.evaluate(many, unknown, reduction=reduction)}
    return truth


def one(case, n, run):
    """Value, own interval, percentile interval and p-value per metric, of one sample."""
    draw, reduction = CASES[case]
    data = draw(n, np.random.default_rng([run, n, list(CASES).index(case)]))
    same = {"reduction": reduction, "ci": True, "resamples": RESAMPLES, "seed": run}
    keys = keys_of(case)
    own = calviz.evaluate(data, keys, **same)
    others = [k for k in keys if METRICS[k].interval != "percentile"]
    plain = calviz.evaluate(data, others, interval="percentile", noise_floor=False, **same)
    return {
        k: (
            own[k].value,
            own[k].interval,
            (plain if k in others else own)[k].interval,
            own[k].noise_floor.p_value,
        )
        for k in keys
        if own[k].interval and own[k].noise_floor
    }


def work(job, jobs, until):
    """Samples of all cases and sizes in turns, every `jobs`-th run, until the time is over."""
    found = defaultdict(list)
    run = job
    while time.time() < until:
        for case in CASES:
            for n, turns in TURNS.items():
                for turn in range(turns):
                    found[case, n].append(one(case, n, run * max(TURNS.values()) + turn))
        run += jobs
    return dict(found)


def summary(rows, truth, key):
    """What the table says about one metric: shares in per cent."""
    rows = [row[key] for row in rows if key in row]
    values = np.array([row[0] for row in rows])
    own, plain = (np.array([row[i] for row in rows]) for i in (1, 2))

    def covers(intervals, at):
        inside = (intervals[:, 0] <= at + 1e-12) & (at - 1e-12 <= intervals[:, 1])
        return 100 * inside.mean()

    p = np.array([row[3] for row in rows])
    return {
        "runs": len(rows),
        "truth": truth,
        "mean": values.mean(),
        "method": METRICS[key].interval,
        "plain": covers(plain, truth),
        "own": covers(own, truth),
        "expected": covers(own, values.mean()),
        "width": np.mean(own[:, 1] - own[:, 0]) / np.mean(plain[:, 1] - plain[:, 0]),
        "p05": 100 * np.mean(p <= 0.05),
        "p50": 100 * np.mean(p <= 0.5),
    }


def tables(found):
    """One table of coverage per case and size, and one of p-values."""
    for case in CASES:
        for n in SIZES:
            lines = found[case, n]
            runs = next(iter(lines.values()))["runs"]
            error = 100 * np.sqrt(0.95 * 0.05 / runs)
            yield f"### {case}, n = {n:,}\n\n{runs} samples; standard error of 95 %: {error:.1f}.\n"
            yield (
                "| metric | method | truth | mean estimate | truth covered by percentiles | "
                "by its own method | mean estimate covered | width |"
            )
            yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
            for key, s in lines.items():
                yield (
                    f"| {key} | {s['method']} | {s['truth']:.4g} | {s['mean']:.4g} | {s['plain']:.0f} % | "
                    f"{s['own']:.0f} % | {s['expected']:.0f} % | {s['width']:.2f} |"
                )
            yield ""
    yield "### p-values of the calibrated model\n"
    yield "| metric | " + " | ".join(f"p <= 0.05 and 0.5, n = {n:,}" for n in SIZES) + " |"
    yield "| --- |" + " --- |" * len(SIZES)
    for key in KEYS:
        cells = [found["calibrated", n][key] for n in SIZES]
        shares = " | ".join(f"{s['p05']:.1f} %, {s['p50']:.0f} %" for s in cells)
        yield f"| {key} | {shares} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    truth = {case: truth_of(case) for case in CASES}
    until = time.time() + 60 * options.minutes
    with ProcessPoolExecutor(options.jobs) as pool:
        parts = list(
            pool.map(
                work, range(options.jobs), [options.jobs] * options.jobs, [until] * options.jobs
            )
        )
    found = {
        (case, n): {
            key: summary([row for part in parts for row in part[case, n]], truth[case][key], key)
            for key in keys_of(case)
        }
        for case in CASES
        for n in SIZES
    }
    head = (
        f"`python benchmarks/coverage.py --write` on {machine()}. 95 % intervals of {RESAMPLES} resamples. "
        "Truth: the true calibration error in closed form for the errors, the value on very many rows for the "
        "others. Width: of its own intervals, in widths of percentile intervals. `docs/uncertainty.md` "
        "explains.\n"
    )
    text = "\n".join([head, *tables(found)])
    print(text)
    if options.write:
        write_section("Coverage", text)
        labels = {key: METRICS[key].label for key in KEYS}
        draw_coverage(found, list(CASES), SIZES, labels, ROOT / "docs" / "images" / "coverage.svg")


if __name__ == "__main__":
    main()
