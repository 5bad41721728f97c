"""Which metric answers which question, and the limits of all of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MetricQuestion:
    """A question, the metrics that answer it, and advice on reading them.

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


#: Questions and the metrics that answer them: advice, written by hand.
QUESTIONS = (
    MetricQuestion(
        "Is the model over- or underconfident, and by how much?",
        ("mcs", "ks_signed"),
        "MCS is mean confidence minus accuracy, whatever the bins. It can be 0 while some scores are "
        "too high and others too low; KS is then well above it.",
    ),
    MetricQuestion(
        "How far are the probabilities off?",
        ("ece", "ce_l1_unbiased", "ks", "smece", "kde_ece"),
        "Report the ECE, the most widely used calibration error, with its bins and its noise floor; beside it KS and smECE, "
        "which need no choice of bins. The cross-fitted mean gap is not biased upwards. If they disagree, look at the diagram.",
    ),
    MetricQuestion(
        "Is it miscalibrated at all, or is this noise?",
        ("ks", "kuiper", "atb", "tcal", "spiegelhalter_z", "ece_debiased", "skce"),
        "Read the verdict: it combines several tests and adjusts for their number; the p-value of a single metric does not. "
        "With 200 rows a perfect model shows an ECE of several points. The debiased ECE² is near 0 for a "
        "calibrated model at any number of rows.",
    ),
    MetricQuestion(
        "Where is the worst gap?",
        ("mce",),
        "The largest gap of any bin: noisy, as it may rest on few rows. Check the number of rows in that bin.",
    ),
    MetricQuestion(
        "Are all classes' probabilities right, not only the top one?",
        ("classwise_ece", "tace", "ks_classwise", "brier", "nll"),
        "With many classes most probabilities are near 0 and pull the mean down; TACE leaves them out.",
    ),
    MetricQuestion(
        "For which classes is it too sure, or not sure enough?",
        ("wsmcs", "over_mcs", "under_mcs", "over_share", "under_share"),
        "These condition on the true class, so even a perfect model shows over- and underconfident classes: they count signs, "
        "whether beyond noise or not. The Class-wise page and the findings report a class only if it lies outside "
        "the range of a calibrated model; base actions on the view by predicted class.",
    ),
    MetricQuestion(
        "Which of two models has the better probabilities?",
        ("nll", "brier"),
        "Proper scores: no model gains by reporting anything but its true belief. Use the paired "
        "difference, and ECE only to explain it.",
    ),
    MetricQuestion(
        "Would recalibration help, and how much?",
        (
            "brier_miscalibration",
            "nll_miscalibration",
            "nll_calibration",
            "nll_calibration_all",
            "calibration_slope",
            "calibration_intercept",
        ),
        "The miscalibration part of a proper score is the gain of the best monotone map on these rows, and the "
        "calibration part the gain of a smooth map on rows that it was not fitted to. A slope "
        "below 1 means that scores are too extreme: temperature scaling is the usual remedy.",
    ),
    MetricQuestion(
        "Can I let it decide the clear cases, and refer the rest?",
        ("aurc", "accuracy_at_90_coverage", "auroc_failure"),
        "These depend only on the ranking of the rows. A model can be badly calibrated and still rank well.",
    ),
    MetricQuestion(
        "On which tasks can I trust a language model, and above which confidence?",
        ("mcs", "ece", "accuracy", "coverage_at_risk"),
        "Open its logs (lm-evaluation-harness, Inspect) together. The page Slices shows which tasks are off, adjusted for their number: one "
        "temperature seldom fits all. The page Risk-coverage gives, for each task, the confidence above which the model is right often enough. "
        "On the command line: calviz audit LOGS --by task --risk 0.1.",
    ),
    MetricQuestion(
        "What do medical reviewers ask for?",
        (
            "auroc",
            "oe_ratio",
            "calibration_in_the_large",
            "calibration_slope",
            "ici",
            "net_benefit",
        ),
        "AUROC, a calibration plot with a flexible curve, net benefit and the probabilities by outcome, which Van Calster et al. "
        "call essential: the report preset clinical. Hosmer-Lemeshow is still asked for, but with enough rows it rejects "
        "every model.",
    ),
    MetricQuestion(
        "What does a validation of credit ratings ask for?",
        ("somers_d", "oe_ratio", "brier", "spiegelhalter_z"),
        "The accuracy ratio (Somers' Dxy, Gini), and for each rating grade whether there are more defaults than its probability explains: "
        "the report preset credit, with the column of grades as a group.",
    ),
)

LIMITS = (
    "Calibration is a property of a model on a population. On other data, or later, it may be lost: "
    "measure again.",
    "A model may be calibrated overall and miscalibrated for a group. Look at slices.",
    "Error bars take rows as independent unless clusters are given. Rows of one patient or one video are not independent: "
    "without clusters, the true uncertainty is larger.",
    "No top-label metric shows whether the other probabilities of a row are right.",
    "Non-negative errors are never 0 in a sample. Read them against their noise floor.",
    "Among many tests, some p-values are small by chance. Decide beforehand what to test.",
    "Labels are taken as true. Wrong labels look like overconfidence.",
    "Values are exact up to rounding, except those computed on a grid: KDE-ECE within 0.00001, smECE within 0.0000001, cross-fitted parts "
    "within 0.0003. E90 is the distance of one row, not a mean of two neighbours. Scores that differ by at most 1e-12 of their size, "
    "such as 0.07 and 1 - 0.93, are one score.",
)
