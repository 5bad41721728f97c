"""Findings, one file each, and the verdict: what the numbers of a sample mean, in plain sentences.

`find` collects the findings; `verdict` states in one sentence whether the probabilities can be trusted. A check registers
itself in `calviz.specs.check.CHECKS`; its numbers come from `calviz.metrics` or `calviz.sample`, its level from
`calviz.sample.false_alarm_levels`. Files that begin with an underscore serve several checks; `verdict.py`, `classes_off.py`,
`other_view.py` and `explained.py` write the verdict's sentences. Advice on recalibrators is not a check: it is in `calviz.comparison`.
"""

from calviz.checks.run_checks import find
from calviz.checks.verdict import verdict
from calviz.results.verdict import Verdict

__all__ = ["Verdict", "find", "verdict"]
