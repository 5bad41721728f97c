"""Which number answers which question, and what none of them can say."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Question:
    """A question, the metrics to look at, and what to mind.

    Attributes
    ----------
    text : str
    metrics : tuple of str
        Keys of metrics.
    advice : str
    """

    text: str
    metrics: tuple[str, ...]
    advice: str


#: Which metrics answer a question is advice, and written by hand.
QUESTIONS = (
    Question(
        "Is the model over- or underconfident, and by how much?",
        ("mcs", "ks_signed"),
        "MCS is mean confidence minus accuracy, whatever the bins. It can be 0 while some scores are "
        "too high and others too low: then KS is well above it.",
    ),
    Question(
        "How far are the probabilities off?",
        ("ece", "ce_l1_unbiased", "ks", "smece", "kde_ece"),
        "Quote ECE because everybody does, with its bins and its noise floor; KS and smECE beside it, "
        "which have no bins to choose. The cross-fitted mean gap is not biased upwards. When they disagree, look at the diagram.",
    ),
    Question(
        "Is it miscalibrated at all, or is this noise?",
        ("ks", "kuiper", "atb", "tcal", "spiegelhalter_z", "ece_debiased", "skce"),
        "Read the verdict: it makes several tests together and adjusts for that; a p-value stands alone. "
        "With 200 rows a perfect model shows an ECE of several points. The debiased ECE² is near 0 for a "
        "calibrated model at any number of rows.",
    ),
    Question(
        "Where is the worst gap?",
        ("mce",),
        "The largest gap of any bin: noisy, as it may rest on few rows. Read the rows per bin with it.",
    ),
    Question(
        "Are all classes' probabilities right, not only the top one?",
        ("classwise_ece", "tace", "ks_classwise", "brier", "nll"),
        "With many classes most probabilities are near 0 and pull the mean down: TACE leaves them out.",
    ),
    Question(
        "Which classes is it too sure or not sure enough of?",
        ("wsmcs", "over_mcs", "under_mcs", "over_share", "under_share"),
        "These condition on the true class, so even a perfect model shows both kinds: they count signs, "
        "not what is beyond noise. The Class-wise page and the findings call a class off only where it lies outside "
        "the range of a calibrated model; act on the classes as they are predicted.",
    ),
    Question(
        "Which of two models has the better probabilities?",
        ("nll", "brier"),
        "Proper scores: no model gains by saying anything but what it believes. Use the paired "
        "difference, and ECE only to say why.",
    ),
    Question(
        "Would recalibration help, and how much?",
        (
            "brier_miscalibration",
            "nll_miscalibration",
            "nll_calibration",
            "nll_calibration_all",
            "calibration_slope",
            "calibration_intercept",
        ),
        "The miscalibration part of a proper score is what the best monotone map would gain on these rows, and "
        "calibration what a smooth one gains on rows that it has not seen. A slope "
        "below 1 means scores that are too extreme: temperature scaling is the usual remedy.",
    ),
    Question(
        "May I let it decide, and refer the rest?",
        ("aurc", "accuracy_at_90_coverage", "auroc_failure"),
        "These depend on the ranking of rows only. A model can be badly calibrated and rank well.",
    ),
    Question(
        "On which task can I believe a language model, and from which confidence on?",
        ("mcs", "ece", "accuracy", "coverage_at_risk"),
        "Open its logs (lm-evaluation-harness, Inspect) together. The page Slices says which tasks are off, adjusted for all of them: one "
        "temperature seldom fits all. The page Risk-coverage has, for each task, the confidence from which on it is right often enough. On the "
        "command line: calviz audit LOGS --by task --risk 0.1.",
    ),
    Question(
        "What do medical reviewers ask for?",
        (
            "auroc",
            "oe_ratio",
            "calibration_in_the_large",
            "calibration_slope",
            "ici",
            "net_benefit",
        ),
        "AUROC, a calibration plot with a flexible curve, net benefit and the probabilities by outcome, as Van Calster et al. "
        "call essential: the report preset clinical. Hosmer-Lemeshow is still asked for; it rejects every model when there are "
        "enough rows.",
    ),
    Question(
        "What does a validation of credit ratings ask for?",
        ("somers_d", "oe_ratio", "brier", "spiegelhalter_z"),
        "The accuracy ratio (Somers' Dxy, Gini), and per rating grade whether defaults are more than its probability explains: "
        "the report preset credit, with the column of grades as a group.",
    ),
)

LIMITS = (
    "Calibration is a property of a model on a population. On other data, or later, it may be gone: "
    "measure again.",
    "A model may be calibrated on the whole and off for a group. Look at slices.",
    "Error bars take the rows as independent. Rows of one patient or one video are not: the true "
    "uncertainty is larger.",
    "No top-label number says whether the other probabilities of a row are right.",
    "Non-negative errors are never 0 in a sample. Read them against their noise floor.",
    "With many looks some p-values are small by chance. Decide beforehand what you look at.",
    "Labels are taken as true. Wrong labels look like overconfidence.",
    "Values are exact to rounding, but for those on a grid: KDE-ECE within 0.00001, smECE within 0.0000001, cross-fitted parts "
    "within 0.0003. E90 is the distance of one row, not a mean of two neighbours. Scores that differ by 1e-12 of their size, "
    "such as 0.07 and 1 - 0.93, are one score.",
)
