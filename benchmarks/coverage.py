"""Measure how often intervals cover the truth, and whether p-values of calibrated models are uniform.

    python benchmarks/coverage.py [--minutes 20] [--jobs 1] [--samples FILE] [--write]

`coverage_of_validations.py` does the same for the metrics of validation studies.

Draws as many samples with known truth as the time allows, and counts. With ``--samples`` each sample is written as a
line of a file; samples already in the file also count, so that a study may be interrupted, and ``--minutes 0`` only
counts. With ``--write`` the tables go to `benchmarks/results` and the figure to `docs/images/coverage.svg`;
`docs/uncertainty.md` explains them.
"""

from __future__ import annotations

import json
import sys
from functools import partial

import numpy as np
from _coverage_figure import draw_coverage
from _harness import ROOT, machine, run_study, write_section

sys.path.insert(0, str(ROOT / "sample_data"))

import calviz
from calviz.core.entry_specs import METRICS
from calviz.core.predictions import Predictions

SIZES = (200, 1_000, 10_000)
#: Number of samples of each size per sample of the largest size.
TURNS = {200: 3, 1_000: 2, 10_000: 1}
RESAMPLES = 200
#: Metrics of all classes cost the most; they are computed only every so many turns.
CLASSWISE_EVERY = 3
LINEAR = ("accuracy", "brier", "mcs", "calibration_slope")
#: Metrics whose true value is ``E |s - pi(s)|``, and ``E (s - pi(s))^2``.
ABSOLUTE = ("ece", "ece_equal_mass", "kde_ece", "smece", "ce_l1_unbiased")
SQUARED = ("ece_l2", "ece_debiased", "brier_miscalibration", "brier_calibration")
ONE_VS_REST = ("classwise_ece", "tace", "ks_classwise")
TRUE_CLASS = (
    "wsece",
    "msece",
    "cece",
    "wsmcs_over",
    "wsmcs_under",
    "wsmcs",
    "over_mcs",
    "under_mcs",
)
CLASSWISE = (*ONE_VS_REST, *TRUE_CLASS)
KEYS = (
    *LINEAR,
    *(key for key in ABSOLUTE + SQUARED if key not in ("ce_l1_unbiased", "brier_calibration")),
    "mce",
    "ks",
    "skce",
    *CLASSWISE,
)
#: Metrics without a closed form for the 100 classes, or without a true value (a mean over no class).
WITHOUT_TRUTH = {
    "100 classes": ("brier", "calibration_slope", "mce", "under_mcs"),
    "calibrated": ("over_mcs", "under_mcs"),
}
TRUTH = json.loads((ROOT / "sample_data" / "manifest.json").read_text())
#: Rows to compute a truth without a closed form; for the 100 classes, with all entries as one column.
TRUTH_ROWS, TRUTH_ROWS_OF_HUNDRED = 4_000_000, 40_000
#: SKCE is unbiased: the mean of this many estimates serves as its truth.
SKCE_ESTIMATES = 500


def synthetic(beta0, beta1, n, rng):
    """Zhang et al. 2020, appendix E (eq. 13); calibrated for (0, -2)."""
    x = np.where(rng.random(n) < 0.5, -1.0, 1.0) + rng.standard_normal(n)
    p = 1 / (1 + np.exp(-beta0 - beta1 * x))
    return Predictions(probs=p, labels=rng.random(n) < 1 / (1 + np.exp(2 * x)))


def rare(n, rng):
    """A calibrated model with a class that holds one row in ten."""
    labels = rng.random(n) < 0.1
    x = rng.standard_normal(n) + 2 * labels
    return Predictions(probs=1 / (1 + 9 * np.exp(2 - 2 * x)), labels=labels)


def hundred(n, rng):
    """The simulated 100 classes, as in the sample data."""
    from make import make_simulated_100_classes

    data_set = make_simulated_100_classes(int(rng.integers(1 << 31)), n)
    labels = np.array([int(label[1:]) for label in data_set.columns["label"]])
    return Predictions(probs=data_set.models["sharpened"], labels=labels)


CASES = {
    "calibrated": (partial(synthetic, 0.0, -2.0), "positive"),
    "calibrated, rare class": (rare, "positive"),
    "appendix E, case 2": (partial(synthetic, 0.2, -1.9), "positive"),
    "appendix E, case 1": (partial(synthetic, 0.5, -1.5), "positive"),
    "100 classes": (hundred, "top-label"),
}


def keys_of(case):
    """Keys of the metrics that are measured in a case."""
    return tuple(key for key in KEYS if key not in WITHOUT_TRUTH.get(case, ()))


def truth_of(case, keys_of=keys_of, rows=TRUTH_ROWS):
    """True values of the metrics: in closed form if there is one, otherwise from very many rows."""
    draw, reduction = CASES[case]
    models = TRUTH["simulated_binary"]["truth"]
    hundred_classes = TRUTH["simulated_100_classes"]["truth"]["sharpened"]["top-label"]
    none = dict.fromkeys(
        (
            "ece_l1",
            "ece_l2",
            "mcs",
            "nll_miscalibration",
            "nll_calibration",
            "mce",
            "ks",
            "kuiper",
            "atb",
            "skce",
            "tcal",
            "calibration_intercept",
            "calibration_in_the_large",
            "unreliability",
            *("ici", "e50", "e90", "emax", "eci"),
        ),
        0.0,
    ) | {"calibration_slope": 1.0, "oe_ratio": 1.0}
    closed = {
        # The two classes are symmetric, so that each is also calibrated by true class.
        "calibrated": none | dict.fromkeys(TRUE_CLASS, 0.0),
        "calibrated, rare class": none,
        "appendix E, case 1": models["less calibrated"]["positive"],
        "appendix E, case 2": models["better calibrated"]["positive"],
        # Overconfident everywhere, so that cumulative gaps only grow; and all classes are exchangeable.
        "100 classes": {
            **hundred_classes,
            **dict.fromkeys(("ks", "kuiper", *TRUE_CLASS), hundred_classes["mcs"]),
            "wsmcs_under": 0.0,
        },
    }[case]
    truth = dict.fromkeys(ABSOLUTE, closed["ece_l1"]) | dict.fromkeys(SQUARED, closed["ece_l2"])
    truth |= {key: closed[key] for key in keys_of(case) if key in closed}
    if case == "100 classes":
        truth |= truth_of_one_class() if "tace" in keys_of(case) else {}
    else:
        # Both columns have the same errors.
        truth |= {"classwise_ece": closed["ece_l1"], "tace": closed["ece_l1"]}
        if "ks" in closed:
            truth["ks_classwise"] = closed["ks"]
    if "skce" in keys_of(case) and "skce" not in truth:
        truth["skce"] = mean_skce(draw)
    if unknown := [key for key in keys_of(case) if key not in truth]:
        many = draw(rows, np.random.default_rng(99))
        truth |= {r.key: r.value for r in calviz.evaluate(many, unknown, reduction=reduction)}
    return truth


def truth_of_one_class():
    """True values shared by the 100 classes, from the entries of all classes as one long column."""
    data = hundred(TRUTH_ROWS_OF_HUNDRED, np.random.default_rng(99))
    score = data.probs.ravel()
    hit = (data.labels[:, None] == np.arange(data.n_classes)).ravel()
    column = Predictions(probs=score, labels=hit)
    ece, ks = calviz.evaluate(column, ["ece", "ks"], reduction="positive")
    above = score > 1e-3  # the threshold of TACE
    kept = Predictions(probs=score[above], labels=hit[above])
    (tace,) = calviz.evaluate(kept, ["ece_equal_mass"], reduction="positive")
    return {"classwise_ece": ece.value, "ks_classwise": ks.value, "tace": tace.value}


def mean_skce(draw):
    """Mean SKCE over many estimates."""
    rngs = (np.random.default_rng([98, i]) for i in range(SKCE_ESTIMATES))
    return np.mean([calviz.evaluate(draw(1_000, rng), ["skce"])["skce"].value for rng in rngs])


def method_of(key):
    """Interval method of a metric."""
    m = METRICS[key]
    return m.interval if m.closed_interval is None else "closed"


def measure_sample(case, n, run, keys):
    """Value, interval of calviz, percentile interval and p-value per metric, for one sample."""
    draw, reduction = CASES[case]
    data = draw(n, np.random.default_rng([run, n, list(CASES).index(case)]))
    same = {"reduction": reduction, "ci": True, "resamples": RESAMPLES, "seed": run}
    own = calviz.evaluate(data, keys, **same)
    others = [k for k in keys if method_of(k) != "percentile"]
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


def draw_turn(turn, keys_of=keys_of):
    """Draw samples of all cases and sizes."""
    for case in CASES:
        keys = keys_of(case)
        if turn % CLASSWISE_EVERY:
            keys = [key for key in keys if key not in CLASSWISE]
        for n, times in TURNS.items():
            for i in range(times):
                yield case, n, measure_sample(case, n, turn * max(TURNS.values()) + i, keys)


def summary(rows, truth, key):
    """Entries of the table for one metric: shares in per cent."""
    rows = [row[key] for row in rows if key in row]
    if not rows:
        return None
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
        "method": method_of(key),
        "plain": covers(plain, truth),
        "own": covers(own, truth),
        "expected": covers(own, values.mean()),
        "width": np.mean(own[:, 1] - own[:, 0]) / np.mean(plain[:, 1] - plain[:, 0]),
        "p05": 100 * np.mean(p <= 0.05),
        "p50": 100 * np.mean(p <= 0.5),
    }


def tables(by_case, keys=KEYS):
    """Tables of coverage, one per case and size, and one table of p-values."""
    for case in CASES:
        for n in SIZES:
            lines = by_case[case, n]
            yield f"### {case}, n = {n:,}\n"
            yield (
                "| metric | samples | method | truth | mean estimate | truth covered by percentiles | "
                "by the method of calviz | mean estimate covered | width |"
            )
            yield "|" + " --- |" * 9
            for key, s in lines.items():
                yield (
                    f"| {key} | {s['runs']} | {s['method']} | {s['truth']:.4g} | {s['mean']:.4g} | {s['plain']:.0f} % | "
                    f"{s['own']:.0f} % | {s['expected']:.0f} % | {s['width']:.2f} |"
                )
            yield ""
    yield "### p-values of the calibrated model\n"
    yield "| metric | " + " | ".join(f"p <= 0.05 and 0.5, n = {n:,}" for n in SIZES) + " |"
    yield "| --- |" + " --- |" * len(SIZES)
    for key in keys:
        cells = [by_case["calibrated", n].get(key) for n in SIZES]
        if all(cells):
            shares = " | ".join(f"{s['p05']:.1f} %, {s['p50']:.0f} %" for s in cells)
            yield f"| {key} | {shares} |"


def main() -> None:
    rows, write = run_study(__doc__, draw_turn, minutes=20)
    by_case, text = results(rows, {case: truth_of(case) for case in CASES}, keys_of, KEYS)
    print(text)
    if write:
        write_section("Coverage", text)
        labels = {key: METRICS[key].label for key in KEYS}
        draw_coverage(
            by_case, list(CASES), SIZES, labels, ROOT / "docs" / "images" / "coverage.svg"
        )


def results(rows, truth, keys_of, keys, script="coverage.py"):
    """Results by case and size, and the tables as text."""
    by_case = {
        (case, n): {
            key: cell
            for key in keys_of(case)
            if (cell := summary(rows[case, n], truth[case][key], key))
        }
        for case in CASES
        for n in SIZES
    }
    head = (
        f"`python benchmarks/{script} --write` on {machine()}. 95 % intervals of {RESAMPLES} resamples. "
        "Truth: the true calibration error in closed form for the errors, the value on very many rows for the "
        "others. Width: of the intervals of calviz, relative to percentile intervals. The standard error of 95 % is "
        "3.1 points with 50 samples, 1.5 with 200 and 0.7 with 1,000. `docs/uncertainty.md` explains.\n"
    )
    return by_case, "\n".join([head, *tables(by_case, keys)])


if __name__ == "__main__":
    main()
