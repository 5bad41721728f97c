"""All findings about a sample."""

from __future__ import annotations

from calviz.core.check import CHECKS
from calviz.core.notes import Finding
from calviz.numerics.binning import Scheme
from calviz.numerics.sample import Sample


def find(
    sample: Sample,
    *,
    bins: int = 15,
    scheme: Scheme = "equal-width",
    seed: int = 0,
    resamples: int = 1_000,
) -> tuple[Finding, ...]:
    """Run every check, in the order of their codes.

    Parameters
    ----------
    sample : Sample
    bins, scheme
        The bins that those checks look at which look at bins.
    seed, resamples : int
        Of those that compare with noise.
    """
    options = {"bins": bins, "scheme": scheme, "seed": seed, "resamples": resamples}
    checks = sorted(CHECKS, key=lambda check: check.key)
    return tuple(found for check in checks for found in check.look(sample, **options))
