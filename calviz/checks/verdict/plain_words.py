"""The verdict for readers who do not know the terms: five sentences without symbols."""

from __future__ import annotations

from calviz.checks.verdict.evidence import MIN_ROWS
from calviz.checks.verdict.sentence import rows_words
from calviz.core.reduction import Reduction
from calviz.results.slices import Slice
from calviz.results.verdict import Verdict
from calviz.sample.sample import Sample
from calviz.sample.slices import usual_slices
from calviz.text.gaps import SLIGHT, share_decimals
from calviz.text.words import SINGLE_ROW, counted, decimal, points_decimals, range_ends, shorten

#: Shares are given per hundred rows, as people understand them best.
HUNDRED = 100


def explained(sample: Sample, verdict: Verdict) -> tuple[str, ...]:
    """Explain a verdict: what was seen, what follows, where it is worst, an example, and what to do.

    The numbers are those of the verdict, with its digits.

    Parameters
    ----------
    sample : Sample
        The rows that were judged.
    verdict : Verdict
        The verdict on these rows.

    Returns
    -------
    tuple of str
        Five sentences.
    """
    reduction = Reduction.of(verdict.reduction)
    groups = usual_slices(sample) if verdict.direction == "off" and verdict.slices_off else None
    off = groups.off if groups else ()
    sentences = _Sentences(
        verdict, reduction, _class_words(sample, reduction), off[0] if off else None
    )
    return (
        sentences.seen(rows_words(sample)),
        sentences.follows(),
        sentences.where(),
        sentences.example(),
        sentences.to_do(),
    )


def _class_words(sample: Sample, reduction: Reduction) -> str:
    names = sample.data.class_names
    if reduction.kind == "positive" and len(names) > 1:
        return f"'{shorten(names[1], 30)}'"
    return f"'{shorten(reduction.class_name, 30)}'"


class _Sentences:
    """The sentences about one verdict."""

    def __init__(
        self, verdict: Verdict, reduction: Reduction, name: str, group: Slice | None
    ) -> None:
        self.verdict = verdict
        self.reduction = reduction
        self.name = name
        self.group = group
        digits = verdict.share_decimals
        self.mean_score, self.hit_share = (
            _share(x, digits) for x in (verdict.score, verdict.observed)
        )

    @property
    def few(self) -> bool:
        return self.verdict.rows < MIN_ROWS

    def seen(self, rows: str) -> str:
        """Sentence on what the model said, and what happened."""
        r = self.reduction
        if self.verdict.rows == 1:
            if r.kind == "top-label":
                outcome = "right" if self.verdict.observed else "wrong"
                return f"On {rows}, the model was {self.mean_score} sure of its answer, and the answer was {outcome}."
            outcome = "came true" if self.verdict.observed else "did not come true"
            return f"On {rows}, the model gave the outcome in question a probability of {self.mean_score}, and that {outcome}."
        if r.kind == "top-label":
            text = f"the model was {self.mean_score} sure of its answer on average, and its answer was right in {self.hit_share} of the cases"
        elif r.kind == "top-r":
            text = (
                f"the model gave its choice number {r.r} a probability of {self.mean_score} on average, and that choice was "
                f"right in {self.hit_share} of the cases"
            )
        elif r.kind == "within-top-r":
            text = (
                f"the model gave its {r.r} best choices a probability of {self.mean_score} together on average, and one of them was "
                f"right in {self.hit_share} of the cases"
            )
        else:
            text = (
                f"the model gave {self.name} a probability of {self.mean_score} on average, and {self.name} came true in "
                f"{self.hit_share} of the cases"
            )
        return f"On {rows}, {text}."

    def follows(self) -> str:
        """Sentence on whether that is an error, and how large it is."""
        v = self.verdict
        if v.rows == 1:
            return SINGLE_ROW
        if self.few:
            return (
                f"{v.rows} rows are too few to say whether these probabilities can be trusted, which takes {MIN_ROWS} "
                "at least."
            )
        if v.direction in ("over", "under"):
            slightly = "slightly " if abs(v.mcs) < SLIGHT else ""
            much = "too much" if v.direction == "over" else "too little"
            return (
                f"So it promises {slightly}{much}, by {_points(abs(v.mcs), v.mcs_decimals)} on average, which chance does not "
                "explain."
            )
        if v.direction == "mixed":
            return "So it promises too much in some places and too little in others, which chance does not explain."
        if v.beyond_noise:
            return "On average that is near enough, but in detail its probabilities are further off than chance explains."
        if v.direction == "off":
            off = list(v.classes_off)
            if v.slices_off:
                one = v.slices_off == 1
                off.append(
                    f"{v.slices_off:,} of {counted(v.slices, 'group')} of rows {'is' if one else 'are'} off"
                )
            return f"As a whole its probabilities hold, but {' and '.join(off)}."
        below = f"below {_points(v.ece_below, points_decimals(v.ece))}"
        if v.direction == "calibrated":
            return f"No fault was found in its probabilities: if they are wrong, then by an error {below}."
        return f"No fault was found in its probabilities, but there are so few rows that only an error {below} can be promised."

    def where(self) -> str:
        """Sentence on where it is worst, or that no place stands out."""
        v, worst = self.verdict, self.verdict.worst
        gap = _points(abs(v.mcs), v.mcs_decimals)
        if worst is not None:
            low, high = (
                _ends_percent(end) for end in range_ends(worst.low, worst.high, tolerance=0.06)
            )
            return (
                f"It is worst where it says between {low} and {high} percent: on these {counted(worst.rows, 'row')} it said "
                f"{_share(worst.mean_score, worst.share_decimals)} on average, and {_share(worst.observed, worst.share_decimals)} came true."
            )
        if v.beyond_noise:
            return "No single range of its probabilities stands out: the fault is spread over many."
        if self.few:
            return f"What it said and what happened differ by {gap}, and with so few rows that says little."
        if (group := self.group) is not None:
            which = " and ".join(f"{shorten(c, 40)} is {shorten(v, 60)}" for c, v in group.where)
            digits = share_decimals(group.score, group.hits)
            return (
                f"Most surely off are the rows whose {which}: on these {counted(group.rows, 'row')} it said "
                f"{_share(group.score, digits)} on average, and {_share(group.hits, digits)} came true."
            )
        return (
            f"What it said and what happened differ by {gap} on average, which chance can explain."
        )

    def example(self) -> str:
        """Sentence on what it means for a hundred rows."""
        v, worst = self.verdict, self.verdict.worst
        if not v.tells_apart:
            return "Its probabilities hardly tell the classes apart, so decisions gain little from them either way."
        if self.few:
            return "Until there are more, nothing should depend on them."
        mean_score, hit_share = (
            (v.score, v.observed) if worst is None else (worst.mean_score, worst.observed)
        )
        promised, kept = _of_hundred(mean_score), _of_hundred(hit_share)
        if v.beyond_noise and promised != kept:
            return f"Of {HUNDRED} such rows, where it promises {promised}, expect {_about(kept)} to come true."
        if v.beyond_noise:
            return f"On average {_about(kept)} of {HUNDRED} rows come true, but a single promise may be far off."
        return f"Where it promises that {promised} of {HUNDRED} come true, expect about that many."

    def to_do(self) -> str:
        """Sentence on what to do about it."""
        v = self.verdict
        if v.beyond_noise:
            return (
                "Before anybody acts on these probabilities, correct them with rows whose outcome is known; the model "
                "itself stays as it is."
            )
        if v.direction == "off":
            return "Look at these groups before anybody acts on their probabilities; for the others nothing was found."
        if v.direction == "calibrated":
            return "They can be used as they are, for as long as new rows are like these."
        return "Collect more rows whose outcome is known, and look again."


def _of_hundred(share: float) -> str:
    """Number per hundred; a share that rounds to 0 or 100 without being either is "fewer than 1" or "more than 99"."""
    if 0 < share < 0.5 / HUNDRED:
        return "fewer than 1"
    if 1 - 0.5 / HUNDRED < share < 1:
        return f"more than {HUNDRED - 1}"
    return str(round(HUNDRED * share))


def _about(number: str) -> str:
    return f"about {number}" if number.isdigit() else number


def _share(value: float, digits: int) -> str:
    """Format a share without a percent sign: "91.5 percent", with the same digits as on all pages."""
    return f"{decimal(HUNDRED * value, digits)} percent"


def _points(value: float, decimals: int) -> str:
    return f"{decimal(HUNDRED * value, decimals)} percentage points"


def _ends_percent(end: str) -> str:
    """Format an end of a range, as it is written elsewhere, in percent: "0.87" is "87"."""
    return f"{HUNDRED * float(end):.10g}"
