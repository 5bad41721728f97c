"""Measure how often intervals of discrimination cover the truth where hits or misses are few.

    python benchmarks/few_events.py [--samples 500] [--jobs 2] [--seed 0] [--write]

Draws samples with a fixed number of events among `OTHERS` other rows, from `SHAPES` of scores, and counts: the AUROC, and its
difference between two models, with the interval of calviz and with percentiles; AUPRC, and FPR at 95 % TPR of few misses and of
few hits. The same seed gives the same samples. With ``--write`` the tables go to `benchmarks/results`; `docs/uncertainty.md` explains them.
"""

from __future__ import annotations

import argparse
import os
from concurrent.futures import ProcessPoolExecutor
from functools import cache

import numpy as np
from _harness import machine, write_section
from scipy.special import expit

import calviz
from calviz.comparison.paired_differences import pair
from calviz.core.predictions import ConfidencePredictions

EVENTS, OTHERS = (5, 10, 20, 50, 99, 100, 150), 500
#: Resamples per sample; in a difference, those without an event would leave no value.
RESAMPLES = 200
TRUTH_ROWS = 400_000


def normal(shift, spread=1.0):
    """Normal scores; those of events are shifted and spread."""
    return lambda rng, event: rng.normal(shift * event, 1 + (spread - 1) * event)


#: Score of each row from whether it is an event.
SHAPES = {
    "normal, area 0.76": normal(1.0),
    "normal, area 0.95": normal(2.3262),
    "no discrimination": normal(0.0),
    "events twice as spread": normal(1.5, 2.0),
    "events half as spread": normal(1.2, 0.5),
    "exponential": lambda rng, event: np.log(rng.exponential(1 + 3.0 * event)),
    "beta": lambda rng, event: 8 * rng.beta(1 + 3 * event, 4 - 2 * event) - 4,
    "half of the events far away": lambda rng, event: rng.normal(
        4 * event * (rng.random(event.size) < 0.5), 1
    ),
    "five grades": lambda rng, event: np.digitize(rng.normal(1.2 * event, 1), [-1, 0, 1, 2]) - 2.0,
    "Student, 2 degrees of freedom": lambda rng, event: rng.standard_t(2, event.size) + 1.5 * event,
}
#: Shifts of the events by two models, and the correlation of their normal scores.
PAIRS = {
    "equal, area 0.76, correlation 0.5": (1.0, 1.0, 0.5),
    "equal, area 0.95, correlation 0.5": (2.3262, 2.3262, 0.5),
    "equal, area 0.95, correlation 0.9": (2.3262, 2.3262, 0.9),
    "0.95 and 0.85": (2.3262, 1.4657, 0.5),
    "0.76 and 0.5": (1.0, 0.0, 0.3),
    "0.99 and 0.95": (3.29, 2.3262, 0.6),
}


@cache
def truth(shape, events):
    """Area, average precision of the events, and FPR at 95 % TPR if events are the misses and if they are the hits."""
    rng = np.random.default_rng(0)
    event, other = (np.sort(SHAPES[shape](rng, np.full(TRUTH_ROWS, k))) for k in (1, 0))
    below, upto = (np.searchsorted(other, event, side) / TRUTH_ROWS for side in ("left", "right"))
    above = events * (1 - np.searchsorted(event, event, "left") / TRUTH_ROWS)
    precision = (above / (above + OTHERS * (1 - below))).mean()
    keeps = int(0.05 * TRUTH_ROWS)
    of_misses = (event <= other[TRUTH_ROWS - 1 - keeps]).mean()
    of_hits = (other >= event[keeps]).mean()
    return float((below + upto).mean() / 2), float(precision), float(of_misses), float(of_hits)


def area_of(shift):
    """Area of two normal distributions of the same spread."""
    from scipy.stats import norm

    return float(norm.cdf(shift / np.sqrt(2)))


def predictions(score, correct):
    """Confidences in the order of the scores."""
    return ConfidencePredictions(confidence=expit(score / 2), correct=correct.astype(bool))


def measured(data, keys, **options):
    """Intervals of a sample."""
    results = calviz.evaluate(
        data, keys, ci=True, noise_floor=False, resamples=RESAMPLES, **options
    )
    return {key: results[key].interval for key in keys}


def count_single(job):
    """Shares of intervals that hold the truth, of one shape and number of events."""
    shape, events, samples, seed = job
    rng = np.random.default_rng([seed, events, list(SHAPES).index(shape)])
    event = np.arange(events + OTHERS) < events
    area, precision, of_misses, of_hits = truth(shape, events)
    held = dict.fromkeys(
        ("area", "area, percentiles", "AUPRC", "FPR95, few misses", "FPR95, few hits"), 0
    )
    for _ in range(samples):
        score = SHAPES[shape](rng, event.astype(int)).astype(float)
        hits = predictions(score, event)
        # The metrics of errors take the events as errors, with the scores turned around.
        errors = predictions(-score, ~event)
        intervals = {
            "area": (measured(hits, ["auroc_failure"])["auroc_failure"], area),
            "area, percentiles": (
                measured(hits, ["auroc_failure"], interval="percentile")["auroc_failure"],
                area,
            ),
            "FPR95, few hits": (measured(hits, ["fpr95"])["fpr95"], of_hits),
        }
        of_errors = measured(errors, ["aupr_error", "fpr95"])
        intervals |= {
            "AUPRC": (of_errors["aupr_error"], precision),
            "FPR95, few misses": (of_errors["fpr95"], of_misses),
        }
        for key, (ends, true) in intervals.items():
            held[key] += ends is not None and ends[0] - 1e-9 <= true <= ends[1] + 1e-9
    return "single", shape, events, {key: count / samples for key, count in held.items()}


def count_pair(job):
    """Shares of intervals of a difference that hold the truth, among the samples that have one."""
    name, events, samples, seed = job
    rng = np.random.default_rng([seed, events, list(PAIRS).index(name), 1])
    first, second, r = PAIRS[name]
    event = np.arange(events + OTHERS) < events
    true = area_of(first) - area_of(second)
    held, counted = {"difference": 0, "difference, percentiles": 0}, 0
    for _ in range(samples):
        z = rng.standard_normal((2, event.size))
        noise = z[0], r * z[0] + np.sqrt(1 - r * r) * z[1]
        sets = {
            key: predictions(shift * event + part, event)
            for key, shift, part in zip("ab", (first, second), noise, strict=True)
        }
        paired = pair(sets, ["auroc_failure"], reduction="top-label", resamples=RESAMPLES, rng=rng)
        if not paired.metrics:
            continue  # a resample without an event
        counted += 1
        drawn = paired.metrics["auroc_failure"].drawn
        both = {
            "difference": paired.metrics["auroc_failure"].difference("a", "b").interval,
            "difference, percentiles": np.quantile(drawn["a"] - drawn["b"], [0.025, 0.975]),
        }
        for key, (low, high) in both.items():
            held[key] += low - 1e-9 <= true <= high + 1e-9
    return "pair", name, events, {key: count / max(counted, 1) for key, count in held.items()}


def table(rows, of):
    """Markdown table: the range of the shares over all shapes or pairs, by number of events."""
    kinds = list(next(shares for kind, _, _, shares in rows if kind == of))
    lines = ["| events | " + " | ".join(kinds) + " |", "| --- |" + " --- |" * len(kinds)]
    for events in EVENTS:
        some = [shares for kind, _, m, shares in rows if (kind, m) == (of, events)]
        cells = [[100 * s[key] for s in some] for key in kinds]
        shown = [f"{min(c):.0f} to {max(c):.0f} % (mean {np.mean(c):.0f})" for c in cells]
        lines.append(f"| {events} | " + " | ".join(shown) + " |")
    return "\n".join(lines)


def main():
    """Count, and print or write the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--samples", type=int, default=500)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    more = (options.samples, options.seed)
    with ProcessPoolExecutor(options.jobs) as pool:
        single = pool.map(count_single, [(s, m, *more) for m in EVENTS for s in SHAPES])
        pairs = pool.map(count_pair, [(p, m, *more) for m in EVENTS for p in PAIRS])
        rows = [*single, *pairs]
    text = (
        f"Share of 95 % intervals that hold the truth: range and mean over {len(SHAPES)} shapes of scores, {options.samples:,} "
        f"samples each, events among {OTHERS} other rows ({machine()}).\n\n{table(rows, 'single')}\n\n"
        f"Differences of AUROC between two models of the same rows, over {len(PAIRS)} pairs; with 5 events, of the samples in which "
        f"every resample has one.\n\n{table(rows, 'pair')}\n"
    )
    print(text)
    if options.write:
        write_section("Few events", text)


if __name__ == "__main__":
    main()
