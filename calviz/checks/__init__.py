"""Checks, one file each, which yield findings; and the verdict: what the numbers of a sample mean, in plain sentences.

Every file in this folder is a check, named after what it reports, and registers itself in `calviz.specs.check.CHECKS`. Its numbers come
from `calviz.metrics` or `calviz.sample`, its level from `calviz.sample.false_alarm_levels`. What is no check is in a folder:
`verdict/` judges the sample in one sentence, `support/` runs the checks and holds what several of them share, `kernels/` computes
p-values from arrays. Advice on recalibrators is not a check: it is in `calviz.comparison`.
"""

from calviz.checks.support.run_checks import find

__all__ = ["find"]
