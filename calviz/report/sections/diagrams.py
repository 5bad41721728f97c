"""Where the probabilities are off: by score, by class, without bins, and by group."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from calviz.core import errors, words
from calviz.core.words import counted, decimal, points, share_cell, shorten, signed_points, whole
from calviz.figures import calibration_map, corp
from calviz.figures.bin_sensitivity import BinSensitivity
from calviz.figures.class_bars import TITLES, ClassBars, Mode
from calviz.figures.cumulative_plot import Cumulative
from calviz.figures.hundred_squares import Bullet
from calviz.figures.net_benefit import DecisionLoss
from calviz.figures.reliability import DRAWN, Reliability, ReliabilityOverlay
from calviz.figures.slice_gaps import FeatureGap, SliceGaps, features_drawn
from calviz.report import content
from calviz.report.content import Block, Note, Subject, Text, caption, chart, section, spread
from calviz.sample.multicalibration import multicalibration_words
from calviz.sample.slice_results import Slices
from calviz.sample.slices import usual_slices


@section("reliability", "Reliability and choice of bins", 30, brief=True, earlier="Reliability")
def make_reliability(subject: Subject) -> Iterator[Block]:
    """The diagram, its bins, and the ECE by number of bins."""
    yield from make_diagram(subject)
    strip = subject.sample.once(BinSensitivity.compute)
    formats: content.Formats = {"bins": ("bins", whole)}
    for key, how in (("equal_width", "equal width"), ("equal_mass", "equal mass")):
        formats[f"ece_{key}"] = (f"ECE, {how} (points)", lambda v: points(v, 2))
        if strip.floor:
            formats[f"floor_high_{key}"] = (f"noise 95 %, {how} (points)", lambda v: points(v, 2))
    yield chart(
        strip,
        key="ece-by-bins",
        title="ECE by number of bins",
        caption=caption(subject),
        formats=formats,
        rows=[row for row, bins in enumerate(strip.counts.tolist()) if bins <= 20 or bins % 5 == 0],
    )


@section("diagram", "Reliability diagram", 12, on_request=True)
def make_diagram(subject: Subject) -> Iterator[Block]:
    """The reliability diagram alone."""
    diagram = subject.sample.once(Reliability.compute, curves=())
    yield chart(
        diagram,
        beside=ReliabilityOverlay.of_headline(subject.sample, diagram.sums, subject.verdict),
        key="reliability",
        title="Reliability diagram",
        caption=caption(subject, diagram.caption()[-1]),
        formats=content.BIN_COLUMNS,
    )
    if diagram.worst is not None:
        yield Note(f"On new rows: {DRAWN}.")


@section("calibration-curve", "Calibration curve", 35)
def make_calibration_curve(subject: Subject) -> Iterator[Block]:
    """Observed frequency as a smooth function of the score."""
    figure = subject.sample.view(calibration_map.CalibrationCurve.compute)
    yield Text(figure.reading())
    yield chart(
        figure,
        key="calibration-curve",
        title="Flexible calibration curve",
        caption=caption(subject, figure.caption()[-1]),
        formats={
            "score": ("score", decimal),
            "probability": ("observed", decimal),
            "low": ("95 % band from", decimal),
            "high": ("to", decimal),
        },
        # So many rows on the page, the rest in the file.
        rows=spread(figure.band.score.size, 21),
    )


_CLASS_KEYS: dict[Mode, str] = {
    "predicted-class": "classes-predicted",
    "one-vs-rest": "classes-one-vs-rest",
    "true-class": "classes",
}
_CLASS_COLUMNS: content.Formats = {
    "class": ("class", lambda name: shorten(name, 60)),
    "rows": ("rows", whole),
    "value": ("error (points)", signed_points),
    "ci_low": ("95 % CI from", signed_points),
    "ci_high": ("to", signed_points),
    "band_low": ("calibrated from", signed_points),
    "band_high": ("to ", signed_points),
    "beyond": ("beyond it", signed_points),
}


@section("classwise", "Classes (MCS)", 50, earlier="Classes")
def make_classwise(subject: Subject) -> Iterator[Block]:
    """The error of each class against its noise.

    Yield the error of each class by predicted class, one-vs-rest, and by true class; of two classes only the first, which is what to act on,
    or the second of a rare one; nothing for a single row.
    """
    views, reason, top = {}, "", subject.sample.top_label
    if top.data.rows == 1:
        return
    two: tuple[Mode, ...] = ("one-vs-rest" if subject.of_rare_event else "predicted-class",)
    for mode in two if len(top.data.class_names) == 2 else _CLASS_KEYS:
        try:
            views[mode] = top.view(ClassBars.compute, mode=mode, **top.quick_redrawing)
        except errors.NotAvailable as error:
            reason = str(error)
    if not views:
        raise errors.NotAvailable(reason)
    for mode, bars in views.items():
        yield Text(bars.shares())
        yield chart(
            bars,
            key=_CLASS_KEYS[mode],
            title=TITLES[mode],
            caption=caption(subject, TITLES[mode]),
            formats=_CLASS_COLUMNS,
        )
    ranges = [b.band[0] for b in views.values() if b.band is not None]
    if not any(np.isfinite(low).any() for low in ranges):
        return
    yield Note(
        "Grey: the range of a perfectly calibrated model. By chance, some class leaves it in at most 5 of 1,000 files."
        + " By true class it is not centred at 0, as the rows of one true class hold more wrong predictions than the rows that the "
        "model gave to it." * ("true-class" in views)
    )


#: Number of table rows on the page.
CUMULATIVE_ROWS = 40


@section("cumulative", "Cumulative (KS)", 40, earlier="Cumulative & KS")
def make_cumulative(subject: Subject) -> Iterator[Block]:
    """The bin-free panels, the KS error, and the isotonic curve.

    Yield the four panels of Gupta et al., the isotonic curve, and the decision loss.
    """
    figure = subject.sample.view(Cumulative.compute, estimate="smooth", seed=subject.sample.seed)
    yield Text(figure.reading(subject.verdict))
    yield chart(
        figure,
        key="cumulative",
        title="Cumulative score and hits",
        caption=caption(subject),
        formats={
            "fractile": ("share of rows", decimal),
            "score": ("score up to", decimal),
            "cumulative_score": ("cumulative score", decimal),
            "cumulative_hits": ("cumulative hits", decimal),
            "gap": ("gap (points)", signed_points),
            "probability": ("probability of a hit", decimal),
        },
        rows=spread(figure.score.size, CUMULATIVE_ROWS, int(figure.maximum)),
    )
    yield Note(
        "Rows are sorted by score; from the lowest score upwards, the scores and the hits are summed up. For a calibrated "
        "model the two sums stay together: the KS error is where they are furthest apart."
    )
    yield from _isotonic(subject)
    yield from _decisions(subject)


def _isotonic(subject: Subject) -> Iterator[Block]:
    """Yield the probability of a hit as an isotonic curve, with both bands."""
    figure = subject.sample.view(corp.CorpDiagram.compute, seed=subject.sample.seed)
    yield chart(
        figure,
        key="corp",
        title="Isotonic probability of a hit",
        caption=caption(subject),
        formats={
            "score": ("score", decimal),
            "probability": ("probability of a hit", decimal),
            "consistency_low": ("if calibrated from", decimal),
            "consistency_high": ("if calibrated to", decimal),
            "confidence_low": ("confidence band from", decimal),
            "confidence_high": ("confidence band to", decimal),
        },
        rows=spread(figure.score.size, CUMULATIVE_ROWS),
    )
    yield Note(figure.reading())


def _decisions(subject: Subject) -> Iterator[Block]:
    """Yield the cost of miscalibration at every cutoff."""
    figure = subject.sample.view(DecisionLoss.compute, seed=subject.sample.seed)
    yield chart(
        figure,
        key="decision-loss",
        title="Decision loss",
        caption=caption(subject),
        formats={
            "cutoff": ("cutoff", decimal),
            "loss": ("loss, of the stake", lambda v: words.percent(v, 2)),
            "calibrated_mean": ("mean if calibrated", lambda v: words.percent(v, 2)),
            "calibrated_high": ("at most if calibrated", lambda v: words.percent(v, 2)),
        },
        rows=spread(figure.cutoff.size, CUMULATIVE_ROWS),
    )
    yield Note(figure.reading())


_SLICE_COLUMNS: content.Formats = {
    "slice": ("slice", lambda name: shorten(name, 80)),
    "rows": ("rows", whole),
    "score": ("mean score", share_cell),
    "hits": ("hits", share_cell),
    "gap": ("gap (points)", signed_points),
    "low": ("95 % on these rows, from", signed_points),
    "high": ("to", signed_points),
    "expected_gap": ("on new rows (points)", signed_points),
    "p_value": ("p-value", words.p_number),
    "adjusted_p_value": ("adjusted", words.p_number),
    "off": ("off", str),
    "ece": ("ECE (points)", points),
    "ece_noise": ("noise (points)", points),
}
_DRAWN_OF_SLICES = {key: _SLICE_COLUMNS[key] for key in ("slice", "rows", "gap", "low", "high")}


@section("slices", "Groups", 55, shows_result="slices", earlier="Slices")
def make_slices(subject: Subject) -> Iterator[Block]:
    """For whom it is wrong, group by group.

    Yield the slices with the strongest evidence of an error, and the table of all.
    """
    slices = subject.slices or usual_slices(subject.sample)
    if slices is None:
        return
    figure = SliceGaps.compute(slices, subject.verdict)
    yield Text(f"{figure.answer()} {slices.remark}".rstrip())
    over_all = multicalibration_words(
        subject.sample, tuple(dict.fromkeys(c for s in slices.slices for c, _ in s.where))
    )
    if any(over_all):
        yield Text(" ".join(over_all).strip())
    if slices.slices:
        yield chart(
            figure,
            key="slices-drawn",
            title="The slices with the strongest evidence",
            caption=caption(subject),
            formats=_DRAWN_OF_SLICES,
        )
        # The gap is drawn along so many numbers at most.
        for number, name in enumerate(features_drawn(slices)[:3], start=1):
            yield chart(
                FeatureGap.compute(slices, name),
                key=f"slices-along-{number}",
                title=f"Along {shorten(name, 40)}",
                caption=caption(subject),
                formats=_DRAWN_OF_SLICES,
            )
        yield _all_slices(figure.result)
    yield Note(f"{_slicing_words(slices)} {figure.unmeasured()}".rstrip())


def _all_slices(slices: Slices) -> content.TableBlock:
    frame = slices.frame()
    off = [slices.word(one) for one in slices.slices]
    new = [slices.on_new_rows(one) for one in slices.slices]
    shown = content.formatted(frame.assign(off=off, expected_gap=new), _SLICE_COLUMNS)
    right = [h for name, (h, _) in _SLICE_COLUMNS.items() if name not in ("slice", "off")]
    title = f"All {counted(len(frame), 'slice')}"
    bullets = [Bullet(s.gap, s.interval) for s in slices.slices]
    return content.TableBlock("slices", title, shown, frame, right, folded=True, bullets=bullets)


def _slicing_words(slices: Slices) -> str:
    what = "what a calibrated model shows" if slices.against == "calibrated" else "the other rows"
    pairs = ", and pairs of them" * any(len(s.where) > 1 and not s.of_score for s in slices.slices)
    if any(s.difference != s.gap for s in slices.slices):
        pairs += " (of a predicted class, against its other rows, too)"
    if any(s.of_score for s in slices.slices):
        pairs += ", and their rows above one score, over which half of the expected events lie"
    numbers = any(cut.kept is None for cut in slices.cuts.values())
    cut = ", numbers and dates cut at their deciles" if numbers else ""
    return (
        f"Groups with at least {counted(slices.min_rows, 'row')}{pairs}{cut}, each tested against "
        f"{what}; on new rows: less what the selection of a slice that is off makes of noise; adjusted p-values for all slices together (Benjamini and "
        f"Hochberg, at most {100 * slices.rate:g} % false discoveries)."
    )
