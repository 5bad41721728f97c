"""Maximum and range of a Brownian motion on [0, 1]: the limiting distributions of cumulative gaps of calibrated models."""

from __future__ import annotations

import math

#: Above this, the series in normal tail probabilities need fewer terms than the others.
_TURN = 1.5
#: Up to this, the probability of exceeding rounds to 1.
_CERTAIN = 0.05
#: Terms of a series: the omitted ones are below 1e-17 on their side of `_TURN`.
_TERMS = 12


def _beyond(x: float) -> float:
    """P(Z > x) of a standard normal variable."""
    return math.erfc(x / math.sqrt(2)) / 2


def maximum_exceeds(x: float) -> float:
    """P(max |B| > x).

    Below the turn ``1 - (4 / pi) sum_k (-1)^k / (2 k + 1) exp(-(2 k + 1)^2 pi^2 / (8 x^2))``, above it the same by reflection.

    References
    ----------
    Arrieta-Ibarra et al. 2022 (the distribution of ECCE-MAD); Feller 1971.
    """
    if x <= _CERTAIN:
        return 1.0
    if x > _TURN:
        return 4 * math.fsum((-1) ** k * _beyond((2 * k + 1) * x) for k in range(_TERMS))
    terms = (
        (-1) ** k / (2 * k + 1) * math.exp(-(((2 * k + 1) * math.pi / x) ** 2) / 8)
        for k in range(_TERMS)
    )
    return 1 - 4 / math.pi * math.fsum(terms)


def range_exceeds(x: float) -> float:
    """P(max B - min B > x), for a path that starts at 0.

    Below the turn ``1 - sum_k (8 / x^2 + 2 / c) exp(-2 c / x^2)`` with ``c = (k + 1/2)^2 pi^2``, above it the same by reflection,
    ``8 sum_k (-1)^(k - 1) k P(Z > k x)``.

    References
    ----------
    Feller 1951; Arrieta-Ibarra et al. 2022 (the distribution of ECCE-R).
    """
    if x <= _CERTAIN:
        return 1.0
    if x > _TURN:
        return 8 * math.fsum((-1) ** (k - 1) * k * _beyond(k * x) for k in range(1, _TERMS))
    squares = [((k + 0.5) * math.pi) ** 2 for k in range(_TERMS)]
    return 1 - math.fsum((8 / x**2 + 2 / c) * math.exp(-2 * c / x**2) for c in squares)
