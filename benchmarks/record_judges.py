"""Record what ppi-python, truescore, scikit-learn and statsmodels say of a judge with human labels.

    python -P benchmarks/record_judges.py

Needs ppi-python 0.2, truescore 0.7, scikit-learn and statsmodels, but not calviz. Writes ``tests/reference/recorded_judges.json`` with the versions.
The inputs come from `case` and `repeated`, which the tests also call. truescore has the rate of Rogan and Gladen (1978)
and PPI++ of questions that are asked again. evalstats 0.3 is no peer: it shrinks the factor of PPI++ towards a target of its own.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from pathlib import Path

import numpy as np

RECORDED = Path(__file__).parents[1] / "tests" / "reference" / "recorded_judges.json"
#: Rows, labels, and noise of the judge's score; None for a judge that says yes or no.
CASES = {
    "verdicts": (2_000, 150, None),
    "few labels": (500, 30, None),
    "scores": (1_000, 200, 0.2),
    "useless scores": (400, 100, 40.0),
}


def case(name: str) -> tuple[np.ndarray, np.ndarray]:
    """What a judge says, and what people say, nan without a label."""
    rows, labels, noise = CASES[name]
    random = np.random.RandomState(len(name))  # its stream never changes
    people = (random.random_sample(rows) < 0.4).astype(np.float64)
    if noise is None:
        says = np.where(random.random_sample(rows) < 0.8, people, 1 - people)
    else:
        says = (0.3 + 0.4 * people + noise * random.standard_normal(rows)).clip(0, 1).round(6)
    return says, np.where(random.permutation(rows) < labels, people, np.nan)


def repeated() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What a judge says, what people say, and the question, of 200 questions asked 5 times; people look at all answers to 40 of them."""
    random = np.random.RandomState(7)
    question = np.repeat(np.arange(200), 5)
    hard = random.random_sample(200)[question]
    people = (random.random_sample(1_000) < hard).astype(np.float64)
    says = np.where(random.random_sample(1_000) < 0.8, people, 1 - people)
    seen = (random.permutation(200) < 40)[question]
    return says, np.where(seen, people, np.nan), question


def main() -> None:
    """Record PPI++, kappa, its standard error."""
    import truescore
    from ppi_py import ppi_mean_ci, ppi_mean_pointestimate
    from sklearn.metrics import cohen_kappa_score, confusion_matrix
    from statsmodels.stats.inter_rater import cohens_kappa

    values = {}
    for name in CASES:
        says, people = case(name)
        at = ~np.isnan(people)
        y, f, others = people[at], says[at], says[~at]
        verdict = (f >= 0.5).astype(int)
        low, high = ppi_mean_ci(y, f, others, alpha=0.05)
        values[name] = {
            "ppi": float(np.squeeze(ppi_mean_pointestimate(y, f, others))),
            "ppi interval": [float(np.squeeze(low)), float(np.squeeze(high))],
            "kappa": float(cohen_kappa_score(y.astype(int), verdict)),
            "kappa error": float(cohens_kappa(confusion_matrix(y.astype(int), verdict)).std_kappa),
        }
        if np.isin(says, (0, 1)).all():
            rate = truescore.rogan_gladen_estimate(says, y, np.flatnonzero(at))
            values[name]["rogan-gladen"] = float(rate.point)
    says, people, question = repeated()
    at = ~np.isnan(people)
    found = truescore.ppi_estimate(says, people[at], np.flatnonzero(at), clusters=question)
    values["repeated"] = {"ppi": float(found.point), "ppi error": float(found.standard_error)}
    packages = ("ppi-python", "truescore", "scikit-learn", "statsmodels", "numpy")
    versions = {package: version(package) for package in packages}
    RECORDED.write_text(json.dumps({"versions": versions, "values": values}, indent=1) + "\n")


if __name__ == "__main__":
    main()
