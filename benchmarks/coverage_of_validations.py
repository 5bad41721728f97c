"""Measure coverage for metrics of validation studies, cross-fitted parts, and errors added later.

    python benchmarks/coverage_of_validations.py [--minutes 12] [--jobs 1] [--samples FILE] [--write]

Cases, sizes and counts are those of `coverage.py`.
"""

from __future__ import annotations

from functools import partial

from _harness import run_study, write_section
from coverage import CASES, draw_turn, results, truth_of

ALL_CLASSES = ("nll_calibration_all", "brier_calibration_all")
KEYS = (
    *("calibration_slope", "calibration_intercept", "calibration_in_the_large", "oe_ratio"),
    *("unreliability", "nagelkerke_r2", "ici", "e50", "e90", "emax", "eci"),
    *("auroc", "auprc", "net_benefit", "nll_miscalibration", "kuiper", "atb", "tcal"),
    *("nll_calibration", "nll_refinement", "brier_calibration", "ce_l1_unbiased"),
    *ALL_CLASSES,
)
#: Rows to compute the truth of metrics of all 100 classes.
ROWS_OF_HUNDRED = 200_000


def keys_of(case):
    """Keys of the metrics that are measured in a case; T-Cal has a true value for calibrated models only."""
    if case == "100 classes":
        return ALL_CLASSES
    left_out = ALL_CLASSES if case.startswith("calibrated") else (*ALL_CLASSES, "tcal")
    return tuple(key for key in KEYS if key not in left_out)


def main() -> None:
    rows, write = run_study(__doc__, partial(draw_turn, keys_of=keys_of), minutes=12)
    truth = {case: truth_of(case, keys_of) for case in CASES if case != "100 classes"}
    truth["100 classes"] = truth_of("100 classes", keys_of, ROWS_OF_HUNDRED)
    _, text = results(rows, truth, keys_of, KEYS, "coverage_of_validations.py")
    print(text)
    if write:
        write_section("Coverage of measures of validations", text)


if __name__ == "__main__":
    main()
