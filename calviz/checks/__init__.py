"""Checks, one file each; each registers itself and yields findings in plain words.

``find`` runs them all, ``verdict`` says in one sentence whether the probabilities can be trusted,
"""

from calviz.checks.finding import find
from calviz.checks.verdict import verdict
from calviz.core.verdict import Verdict

__all__ = ["Verdict", "find", "verdict"]
