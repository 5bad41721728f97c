"""Findings about what the data can tell: too few rows, tied, saturated or impossible scores, one class, clusters, profiles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from calviz.core.entry_specs import CHECKS, Check, Told, check
from calviz.core.errors import Finding, NotAvailable
from calviz.core.words import counted, decimal, listed, percent
from calviz.sample.binning import FEW_ROWS
from calviz.sample.losses import clipped_words, negative_log_likelihood
from calviz.sample.sample import Sample, chosen_bins, event_sums
from calviz.verdicts.joint_tests import MIN_ROWS


@check("CAL004", "Too few rows", clusters=True, weights=True)
def few_rows(sample: Sample) -> Iterator[Told]:
    """Report fewer than `MIN_ROWS` rows."""
    n = sample.data.rows
    if n == 1:
        yield (
            "error",
            "n = 1: no estimate is meaningful, and there are no intervals; evaluate more rows.",
        )
    elif n < MIN_ROWS:
        yield (
            "warning",
            f"n = {n}: estimates are hardly meaningful with fewer than {MIN_ROWS} rows, and "
            "bootstrap intervals are too narrow; evaluate more rows.",
        )


#: It is a warning if at least this share of the non-empty bins has few rows.
MANY = 0.5


@check("CAL003", "Too few rows per bin", clusters=True)
def few_rows_per_bin(sample: Sample) -> Iterator[Told]:
    """Count the bins with few rows."""
    count = chosen_bins(sample).count
    filled = int(np.count_nonzero(count))
    sparse = (count > 0) & (count < FEW_ROWS)
    few = int(np.count_nonzero(sparse))
    if sample.data.rows < MIN_ROWS or few == 0:
        return
    rows = counted(int(count[sparse].sum()), "row")
    many = few >= MANY * filled
    remedy = "; use fewer bins, or bins of equal mass" if many and filled > 1 else ""
    yield (
        "warning" if many else "info",
        f"{few} of the {counted(filled, 'bin')} with rows {'has' if few == 1 else 'have'} fewer than "
        f"{FEW_ROWS} rows ({rows} in all): {'its' if few == 1 else 'their'} observed frequency "
        f"is uncertain{remedy}.",
    )


#: Scores are heavily tied if at least this many rows share a score on average.
ROWS_PER_SCORE = 10


@check("CAL009", "Heavily tied scores", clusters=True)
def ties(sample: Sample) -> Iterator[Told]:
    """Count distinct scores."""
    score = sample.events.ordered.score
    n = sample.events.n
    if n < MIN_ROWS:
        return
    distinct = 1 + int(np.count_nonzero(score[1:] != score[:-1]))
    rows = counted(n, "row")
    if distinct == 1:
        yield (
            "warning",
            f"All {rows} have the score {float(score[0]):.4g}: they cannot be ranked, and the "
            "diagram is a single bin.",
        )
    elif n >= ROWS_PER_SCORE * distinct:
        yield (
            "info",
            f"The scores of {rows} take only {distinct:,} different values: numbers by bin depend on "
            "which side of an edge a value falls, and bins of equal mass hold unequal numbers of rows.",
        )


@check("CAL005", "One class among the labels", clusters=True, weights=True)
def one_class(sample: Sample) -> Iterator[Told]:
    """Report data in which all labels are equal."""
    data = sample.data
    if data.labels is None or data.n < 2 or (data.labels != data.labels[0]).any():
        return
    label = int(data.labels[0])
    name = data.class_names[label] if data.class_names else str(label)
    yield (
        "warning",
        f"All {counted(data.rows, 'row')} have the label {listed([name])}: whether the model tells classes "
        "apart cannot be seen; numbers for other classes are undefined, and means over classes leave them out.",
    )


#: Why checks that cannot use sums of rows are not run.
SINGLE_ROWS = "they need single rows, and a profile holds only sums"


def not_asked(reasons: Mapping[str, str]) -> Iterator[Finding]:
    """List the checks that were not run, by title, with the reason for each."""
    titles: dict[str, list[str]] = {}
    for title, reason in reasons.items():
        titles.setdefault(reason, []).append(title.lower())
    if titles:
        texts = "; ".join(f"{', '.join(checks)} ({why})" for why, checks in titles.items())
        yield Finding("CAL025", "info", f"Not checked in a profile: {texts}.")


CHECKS.register(
    Check("CAL025", "What a profile does not show", lambda _: (), clusters=True, weights=True)
)


#: With fewer clusters than this, intervals are rough although they follow Student's t: they assume that the sums of clusters are normal.
FEW_CLUSTERS = 20


@check("CAL024", "Rows in clusters or with weights", clusters=True, weights=True)
def rows_not_alike(sample: Sample) -> Iterator[Told]:
    """Report the effective sample size of weighted or clustered rows."""
    data = sample.data
    if data.alike:
        return
    whole = sample.view(event_sums)
    assert whole.effective is not None
    information = f"as much information as about {float(whole.effective[0]):,.0f} independent rows"
    left_out = [c.title.lower() for c in CHECKS if not c.takes(data)]
    tests = f"; not checked in such rows: {', '.join(left_out)}" if left_out else ""
    few = False
    if data.clusters is None:
        head = f"The {counted(data.n, 'row')} have weights and carry {information} of equal weight"
        error_bars = "error bars follow the weights"
    else:
        clusters = len(data.clusters.levels)
        few = clusters < FEW_CLUSTERS
        size = decimal(float(np.mean(np.bincount(data.clusters.codes))), 1)
        both = ", with weights," if data.weights is not None else ""
        head = (
            f"The {counted(data.n, 'row')}{both} are in {counted(clusters, 'cluster')} of {size} rows on average, and "
            f"carry {information}"
        )
        error_bars = "intervals and p-values resample clusters"
        if few:
            error_bars += f"; with fewer than {FEW_CLUSTERS} clusters, intervals are only rough"
    yield ("warning" if few else "info", f"{head}; {error_bars}{tests}.")


#: Share of the rows from which saturated scores are reported; a single wrong one always is.
SHARE = 0.01


@check("CAL007", "Saturated scores", clusters=True)
def saturated(sample: Sample) -> Iterator[Told]:
    """Count scores of exactly 0 and 1, and how many of them are contradicted by their label."""
    score, hit = sample.events.score, sample.events.hit
    n = sample.events.n
    for value, wrong, event in ((1, ~hit, "did not happen"), (0, hit, "happened")):
        at = score == value
        rows = int(np.count_nonzero(at))
        refuted = int(np.count_nonzero(at & wrong))
        if not refuted and rows < SHARE * n:
            continue
        but = f", and {_refuted(refuted, event, sample)}" if refuted else ""
        yield (
            "warning" if refuted else "info",
            f"{counted(rows, 'score is', 'scores are')} exactly {value} ({percent(rows / n)} of the rows){but}.",
        )


def _refuted(rows: int, event: str, sample: Sample) -> str:
    if sample.reduction.kind == "top-label":
        return f"{rows:,} of them {'is' if rows == 1 else 'are'} wrong"
    return f"in {rows:,} of them the event {event}"


@check("CAL008", "Probability zero on the true class", clusters=True, weights=True)
def zero_probability(sample: Sample) -> Iterator[Told]:
    """Count the rows whose NLL was clipped."""
    try:
        # The view and words of the metric itself, so that both agree.
        statement = clipped_words(sample.view(negative_log_likelihood))
    except NotAvailable:
        return
    if statement:
        yield "warning", statement
