"""Checks, one file each; each registers itself and yields findings in plain words.

``find`` runs them all, ``verdict`` says in one sentence whether the probabilities can be trusted,
``other_view`` what the other of the two views of two classes shows.
"""

from calviz.checks.finding import find
from calviz.checks.other_view import other_view
from calviz.checks.verdict import Verdict, verdict

__all__ = ["Verdict", "find", "other_view", "verdict"]
