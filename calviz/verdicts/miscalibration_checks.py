"""Findings about miscalibration: of the sample, of bins, slices and splits, and metrics that disagree."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
from scipy.special import ndtr

from calviz.core import words
from calviz.core.entry_specs import CHECKS, Told, check
from calviz.core.errors import Finding, claim
from calviz.sample.error_bars import FILE
from calviz.sample.sample import MIN_ROWS, Sample
from calviz.sample.slice_results import Slices
from calviz.sample.slices import judging, slices, usual_slices
from calviz.verdicts.data_checks import one_vs_rest, to_act_on
from calviz.verdicts.evaluation import Evaluation
from calviz.verdicts.joint_tests import Evidence, as_bin, collect_evidence
from calviz.verdicts.sentence import nothing_found, strongest


@check("CAL001", "Miscalibration beyond noise", clusters=True, weights=True)
@claim("miscalibration")
def miscalibration(sample: Sample) -> Iterator[Told]:
    """Compare the sample as a whole with what a calibrated model would show."""
    evidence = sample.once(collect_evidence)
    if evidence.rows < MIN_ROWS:
        return
    if not evidence.beyond_noise:
        yield ("info", f"{nothing_found(evidence, sample)}; {_numbers(evidence)}.")
        return
    high, low = words.too_high(evidence.reduction)
    way = {"over": high, "under": low, "mixed": f"{high} in places, {low.lower()} in others"}.get(
        evidence.direction,
        "Off in places" if evidence.shows_itself else "Probabilities of all classes off",
    )
    about = ""
    if evidence.reduction != sample.reduction:
        about = f" (seen from the {evidence.reduction.label})"
    more = "" if evidence.shows("mcs") or evidence.shows("ece") else f"; {strongest(evidence)}"
    slight = max(abs(evidence.mcs), evidence.ece) < words.SLIGHT
    yield (
        "info" if slight else "warning",
        f"{way}{about}, beyond noise: {_numbers(evidence)}{more}.",
    )


def _numbers(evidence: Evidence) -> str:
    score, hit = words.score_and_hit(evidence.reduction)
    decimals = evidence.share_decimals
    written = words.points_decimals(evidence.ece)
    p = {
        key: "" if (t := evidence.test(key)) is None else words.p_value(t.adjusted)
        for key in ("mcs", "ece")
    }
    return (
        f"{score} {words.percent(evidence.score, decimals)} against {hit} {words.percent(evidence.observed, decimals)} "
        f"({p['mcs']}); ECE {words.points(evidence.ece, written)} points where a calibrated "
        f"model would show {words.points(evidence.noise_floor.mean, written)} on average "
        f"({p['ece']}; both adjusted for {words.counted(len(evidence.tests), 'test')})"
    )


@check("CAL012", "Metrics that disagree")
@claim("classes")
@claim("miscalibration")
def disagreement(sample: Sample) -> Iterator[Told]:
    """Compare the ECE with KS and the errors of the classes, each against its noise."""
    evidence = sample.once(collect_evidence)
    if evidence.rows < MIN_ROWS:
        return
    yield from _without_bins(evidence, sample.but(reduction=evidence.reduction).bins_words)
    yield from _classes_hide(evidence, sample)


def _without_bins(evidence: Evidence, bins: str) -> Iterator[Told]:
    ks, ece = evidence.test("ks"), evidence.test("ece")
    if ks is None or ece is None:
        return
    sizes = (
        f"KS {words.points(ks.value, words.points_decimals(ks.value))} points ({words.p_value(ks.adjusted)}), "
        f"ECE of {bins} {words.points(ece.value, words.points_decimals(ece.value))} points ({words.p_value(ece.adjusted)}), adjusted for all tests"
    )
    # p-values between the two levels are not clear enough to call a disagreement.
    if evidence.shows("ks") and ece.p_value > 2 * FILE:
        yield (
            "info",
            f"KS sees an error that the ECE does not, {sizes}: it is small and spread over many scores, "
            "and binning drowns it in noise.",
        )
    elif evidence.shows("ece") and ks.p_value > 2 * FILE:
        yield (
            "info",
            f"The ECE sees an error that KS does not, {sizes}: errors that alternate along the scores "
            "cancel in cumulative sums.",
        )


def _classes_hide(evidence: Evidence, sample: Sample) -> Iterator[Told]:
    if sample.reduction.kind != "top-label" or evidence.shows_itself:
        return
    classes = sample.once(one_vs_rest)
    # What is off on average has a finding of its own.
    if classes is not None and classes.words:
        yield (
            "warning",
            "The confidence of the top label shows no miscalibration, but the probabilities of all classes do: "
            f"{classes.words}.",
            "The top label shows no miscalibration, but the probabilities of all classes do",
        )


@check("CAL002", "Worst bin", clusters=True, weights=True, about="bins")
@claim("worst-bin")
def worst_bin(sample: Sample) -> Iterator[Told]:
    """Report the bin with the largest gap to expect of those whose mean score lies outside the interval of their share of hits.

    That interval is simultaneous at 95 % for all bins, and is quoted in the sentence. The gap to expect is smaller than the gap, as
    the largest of many gaps is too large on average (`calviz.sample.binning.expected_share`).
    """
    evidence = sample.once(collect_evidence)
    worst = evidence.worst
    if evidence.rows < MIN_ROWS or not evidence.beyond_noise or worst is None:
        return
    score, hit = words.score_and_hit(evidence.reduction)
    decimals = worst.share_decimals
    low, high = words.ends_beside(worst.mean_score, worst.interval, decimals)
    # Counts of weighted or clustered rows are scaled to their effective number.
    exact = "exact " if sample.data.alike else ""
    together = f" of {worst.bins} bins together" if worst.bins > 1 else ""
    way = 1 if worst.gap > 0 else -1
    ends = sorted(way * (worst.mean_score - end) for end in worst.expected_interval)
    written = words.gap_decimals(worst.expected_gap)
    yield (
        "info" if worst.slight else "warning",
        f"Furthest off on new rows {worst.where} ({worst.row_words}): {score} "
        f"{words.percent(worst.mean_score, decimals)} but {hit} {words.percent(worst.observed, decimals)} ({exact}95 % CI{together} "
        f"{low} to {high}); allowing for the choice of the bin, {words.expected_gap(worst.expected_gap)} (95 % CI {words.points(ends[0], written)} to "
        f"{words.points(ends[1], written)}).",
        f"Furthest off on new rows {worst.place}: {words.expected_gap(worst.expected_gap)}",
    )


# Before the bins and classes that may be off by what these slices are.
@check(
    "CAL017", "Slices that are off", clusters=True, weights=True, about="slices", before="CAL002"
)
@claim("slices")
def slices_off(sample: Sample) -> Iterator[Told]:
    """Count the slices that are off, and name the one with the strongest evidence."""
    if sample.data.rows < MIN_ROWS:
        return
    slices = usual_slices(sample)
    if slices is None or not slices.off:
        return
    worst = slices.off[0]
    columns = tuple(dict.fromkeys(c for s in slices.slices for c, _ in s.where))
    score, hit = words.score_and_hit(judging(sample, worst.of_class).reduction)
    # What all rows carry is for the verdict to say.
    gaps = [s.gap for s in slices.named] or [slices.gap] * bool(slices.differ)
    slight = max(map(abs, gaps), default=0.0) < words.SLIGHT
    decimals = words.share_decimals(worst.score, worst.hits)
    headline, place = slices.headline, slices.furthest[1]
    size = f"on new ones {place}"
    # One size for the same rows: both are adjusted for a choice of their own.
    if not worst.of_class and (of_bin := as_bin(sample, worst.where)):
        headline, size = headline.replace(place, f"the rows {of_bin}", 1), f"those {of_bin}"
    verb = "is" if len(slices.off) == 1 else "are"
    of = f"{words.counted(len(slices.slices), 'slice')} by {words.listed(columns)}"
    rate = f"false discovery rate {100 * slices.rate:g} %"
    head = f"{len(slices.off):,} of {of} {verb} off beyond chance ({rate}), most clearly"
    if slices.rest:
        head = f"{headline} ({of}, {rate}). Most surely off"
    also = f"also off: {slices.also}" * bool(slices.also and not slices.rest)
    yield (
        "info" if slight else "warning",
        f"{head} {slices.furthest[0]}: {score} "
        f"{words.percent(worst.score, decimals)} but {hit} {words.percent(worst.hits, decimals)} on "
        f"{words.counted(worst.rows, 'row')}, {size}. {also and words.capitalised(also) + '. '}{slices.remark}".rstrip(),
        "; ".join(filter(None, (headline, also))),
    )


#: Adjusted p-value up to which the nearest slice is told: what many take for the level of the test.
NEAR = 0.05


@claim("slices")
def nearest(slices: Slices) -> str:
    """Name the slice that is nearest to being called off, and how often chance alone brings one as near; "" if one is off or changed."""
    if not slices.slices or slices.off or slices.changed:
        return ""
    first, p = slices.place(slices.slices[0])[0], slices.slices[0].adjusted
    files = "calibrated files" if slices.against == "calibrated" else "files where none differs"
    return f"Nearest to being called off: {first}, as near by chance in up to {words.percent(p, int(p < 0.01))} of {files} (adjusted {words.p_value(p)}; off at {slices.rate:g} or less)."


@check("CAL030", "Nearest slice", clusters=True, weights=True, about="slices", before="CAL002")
@claim("slices")
def nearest_slice(sample: Sample) -> Iterator[Told]:
    """Name the slice that is nearest to being called off, if chance brings one as near in at most 5 % of calibrated files; beside a finding about all rows, if its gap differs from that of the others."""
    found = usual_slices(sample)
    near = nearest(found) if found and found.slices and found.slices[0].adjusted <= NEAR else ""
    if found and near and sample.once(collect_evidence).beyond_noise:
        one, of_near = found.slices[0], near.rpartition(" (adjusted ")[2]
        others = slices(judging(sample, one.of_class), [c for c, _ in one.where], against="rest")
        near = f"Not clear that all rows are off alike: {found.place(one)[0]} is nearest to being off by itself (adjusted {of_near}"
        near *= any(s.where == one.where and s.p_value <= NEAR for s in others.slices)
    if near:
        yield "info", near, near.rpartition(" (adjusted ")[0]


def where_to_look(evaluation: Evaluation) -> list[Finding]:
    """Return the findings to act on, without what the sentence of the verdict says."""
    verdict = evaluation.verdict
    assert verdict is not None  # findings come with it
    said: set[object] = {miscalibration}
    if verdict.names_worst:
        said.add(worst_bin)
    named = verdict.off_where in (verdict.changed_where, verdict.named_where)
    # The headline has named one of several.
    if verdict.others_off or (named and verdict.slices_off == 1):
        said.update(c.run for c in CHECKS if c.about == "slices")
    if verdict.off_alone:
        # On the other rows nothing is found, so that bins, classes and slices are off by these rows.
        said.update(c.run for c in CHECKS if c.about not in ("certainty", "times"))
    acted_on = unrepeated(evaluation, to_act_on(evaluation.findings))
    found = [f for f in acted_on if CHECKS[f.code].run not in said]
    if not named:
        return found
    return [replace(f, short=re.sub("^.*; also off: ", "Also off: ", f.short)) for f in found]


def unrepeated(evaluation: Evaluation, findings: Iterable[Finding]) -> list[Finding]:
    """Return these findings without those that repeat the verdict."""
    verdict = evaluation.verdict
    assert verdict is not None  # findings come with it
    mixed, rare = verdict.direction == "mixed", verdict.observed <= 0.1
    same = mixed or verdict.direction in ("over", "under")

    def repeats(f: Finding) -> bool:
        if verdict.reduction != "positive" or CHECKS[f.code].about != "predicted-class":
            return f.short == verdict.headline
        # Where the event is rare, nearly all rows have forecasts up to 0.5; where both sides are off as the verdict says, that is all there is.
        both = mixed or "both sides" in f.short
        return (same and both) or (rare and "above" not in f.short)

    return [f for f in findings if not repeats(f)]


#: Smallest difference that is reported, however significant; and the level of the test.
DIFFERENCE, ALPHA = 0.02, 0.01


@check("CAL010", "Splits that differ in accuracy")
@claim(
    "splits-differ",
    says="Accuracy differs between splits beyond noise, a 92 % against b 85 %",
    chosen="the best and the worst split",
    adjusted="Bonferroni over all pairs of splits at 1 %",
)
def split_accuracy(sample: Sample) -> Iterator[Told]:
    """Compare the best split with the worst one."""
    splits = sample.data.splits
    if splits is None:
        return
    rows = np.bincount(splits.codes, minlength=len(splits.levels))
    right = np.bincount(splits.codes, sample.top_events.hit, minlength=len(splits.levels))
    large = np.flatnonzero(rows >= MIN_ROWS)
    if large.size < 2:
        return
    accuracy = right[large] / rows[large]
    best, worst = (int(large[i]) for i in (accuracy.argmax(), accuracy.argmin()))
    difference = float(accuracy.max() - accuracy.min())
    pooled = float(right[[best, worst]].sum() / rows[[best, worst]].sum())
    sd = (pooled * (1 - pooled) * (1 / rows[best] + 1 / rows[worst])) ** 0.5
    pairs = large.size * (large.size - 1) / 2
    if difference < DIFFERENCE or 2 * ndtr(-difference / sd) * pairs > ALPHA:
        return
    high, low = (
        f"{words.listed([splits.levels[s]])} {words.percent(right[s] / rows[s])} ({words.counted(int(rows[s]), 'row')})"
        for s in (best, worst)
    )
    yield (
        "warning",
        f"Accuracy differs between splits beyond noise, {high} against {low}: they are not samples of the "
        "same population, so look at each by itself.",
    )
