"""Options of the sample (reduction, bins, seed, resamples), shared by all commands that measure."""

from __future__ import annotations

import click

from calviz.core.bins import DEFAULT_BINS
from calviz.core.reduction import Reduction
from calviz.numerics.bin_edges import check_bins
from calviz.sample.error_bars import RESAMPLES


def _read(
    _context: click.Context, _parameter: click.Parameter, text: str | None
) -> Reduction | None:
    return None if text is None else Reduction.of(text)


def _checked_bins(_context: click.Context, _parameter: click.Parameter, bins: int) -> int:
    check_bins(bins)
    return bins


#: None if not given: the default reduction of the data.
reduction_option = click.option(
    "--reduction",
    metavar="R",
    callback=_read,
    help="Which probability is judged: positive (the second of two classes, the default with two), "
    "top-label (the largest, the default otherwise), top-2 ..., within-top-2 ... or class:NAME.",
)
bins_option = click.option(
    "--bins",
    default=DEFAULT_BINS,
    show_default=True,
    type=click.IntRange(min=1),
    callback=_checked_bins,
    help="Number of bins of binned metrics.",
)
seed_option = click.option(
    "--seed",
    default=0,
    show_default=True,
    type=click.IntRange(min=0),
    help="Seed of everything that is drawn at random.",
)
resamples_option = click.option(
    "--resamples",
    default=RESAMPLES,
    show_default=True,
    type=click.IntRange(min=1, max=100_000),
    help="Number of resamples for each interval and each noise floor.",
)
