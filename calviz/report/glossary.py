"""The terms used on the pages, which metric answers which question, and the limits of all of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class GlossaryTerm:
    """A term and its meaning in this project."""

    word: str
    meaning: str


GLOSSARY = tuple(
    GlossaryTerm(word, meaning)
    for word, meaning in (
        (
            "Accuracy-preserving",
            "A recalibrator that is accuracy-preserving never changes the predicted class, only the probabilities "
            "given to it.",
        ),
        (
            "Bin",
            "An interval of scores whose rows are summarised together. Bins of equal width divide 0 to 1 "
            "evenly; bins of equal mass hold about the same number of rows each. Bins are closed on the right.",
        ),
        (
            "Bootstrap",
            "The rows are drawn again with replacement, a thousand times, and the number is computed "
            "each time; its variation gives the error bar. calviz resamples sums instead of rows, which gives "
            "the same result in milliseconds.",
        ),
        (
            "Calibrated",
            "Of all rows with a score of 0.8, 80 % are right, and the same holds for every other score. Being calibrated "
            "says nothing about how often the model is right: a model that always gives the base rate is calibrated.",
        ),
        (
            "Calibration map",
            "The function from old scores to new ones that a recalibrator has learnt.",
        ),
        (
            "Calibration rows",
            "Rows on which a recalibrator is fitted. They must differ from the rows on which the model was "
            "trained, and from those on which the result is judged.",
        ),
        (
            "Class-wise, one against the rest",
            "For class k the score is its probability, and a hit is a row whose label is k. A "
            "calibrated model has no error here.",
        ),
        (
            "Class-wise, by predicted class",
            "The rows for which the model predicts k: their mean confidence against their accuracy (top-label "
            "calibration). A calibrated model has no error here. This view can be acted on, as the "
            "prediction is known when a decision is due.",
        ),
        (
            "Class-wise, by true class",
            "The rows whose label is k, scored by the model's confidence. Even a calibrated model's "
            "confidence is above its accuracy on hard classes and below it on easy ones, because rows are chosen by "
            "their label; so a class is compared with the range that a calibrated model would show, not with 0.",
        ),
        (
            "Confidence",
            "The largest probability of a row: the probability that the model gives to its prediction.",
        ),
        (
            "Consistency band",
            "Where a perfectly calibrated model with the same number of rows would lie 95 times in 100. A point "
            "inside it is no evidence of miscalibration.",
        ),
        (
            "Coverage",
            "The share of rows that the model decides on its own; the others are referred to an expert.",
        ),
        (
            "Evaluation rows",
            "Rows on which numbers are computed; never those on which a map was fitted, unless the result is marked in-sample.",
        ),
        ("Hit", "1 if the event whose probability is the score happened, 0 if not (a miss)."),
        (
            "Interval",
            "The true values that are compatible with the rows, at 95 %: found by resampling the rows and, for errors, "
            "corrected for the part that noise adds.",
        ),
        (
            "Logit",
            "The score before the softmax. If a file has only probabilities, their logarithms are "
            "used instead.",
        ),
        (
            "Floor (of zeros)",
            "The probability that replaces an exact 0 before its logarithm is taken: half of the smallest positive probability of the calibration "
            "rows, at most 0.01 (floor=auto). Forests, votes, nearest neighbours and rounded files produce such zeros. If that smallest "
            "probability is an underflow and true classes have zeros, the floor is chosen by cross-validation. Smaller positive probabilities "
            "are raised to the floor too; if no calibration row has a 0, only zeros are changed.",
        ),
        (
            "Cap (of maps)",
            "The limit on how certain a map may be: a piece of m calibration rows without a hit gets 1 / (2 (m + 1)), one without a miss 1 minus that. "
            "By definition isotonic regression, IRM and histograms would give 0 and 1, and a single wrong row would then cost a log loss of 34.5. "
            "Splines are kept 1 / (2 (n + 1)) away from 0 and 1 for n calibration rows, class-wise 1 / (K (n + 1)). cap=False gives the form of the papers.",
        ),
        (
            "Net benefit",
            "The value of acting on scores above a cutoff t, in hits found per row: hits acted on, less false alarms times t / (1 - t). "
            "A cutoff of 0.2 means that one missed hit is as bad as four false alarms. Acting on nobody has a net benefit of 0.",
        ),
        (
            "Noise floor",
            "What a metric would show if the model were perfectly calibrated, because the number of rows is "
            "limited. An ECE below the noise floor's 95 % quantile is no evidence of miscalibration.",
        ),
        (
            "Overconfident, underconfident",
            "Confidence above accuracy, or below it. MCS is the difference, with its sign.",
        ),
        (
            "Paired difference",
            "The difference between two models or methods on the same rows, which are resampled for both together. For errors that noise "
            "makes larger, such as the ECE, it is the difference of the errors without that noise, not that of the two values shown. "
            "One is called better or worse only at 95 % for all comparisons together; otherwise the two are tied.",
        ),
        ("Point", "A percentage point: from 80 % to 83 % is 3 points."),
        (
            "Prediction set",
            "The plausible classes of a row, chosen so that the true class is among them in, say, 90 % of new rows. The "
            "threshold comes from calibration rows; the guarantee holds on average, not for every class.",
        ),
        (
            "Proper score",
            "A loss that is smallest on average for the true probabilities, such as NLL and the Brier "
            "score. It rewards calibration and discrimination together.",
        ),
        (
            "p-value",
            "How often a perfectly calibrated model with the same number of rows would show a value at least this "
            "extreme.",
        ),
        (
            "Range if calibrated",
            "The range in which a calibrated model's error of a class would fall, adjusted for the number of classes: in all but "
            "a few of a thousand files, all classes are inside their ranges. A class inside its range is drawn grey and is no "
            "evidence of an error.",
        ),
        (
            "Recalibrator",
            "A method that fits a map after training, on other rows, which turns scores into better calibrated "
            "ones.",
        ),
        (
            "Reduction",
            "How a problem with many classes is turned into one score and one hit per row: top-label (the "
            "confidence, and whether the prediction is right), top-r, within-top-r, one class against "
            "the rest, or the positive class. With two classes the default is the positive class: the top label folds its "
            "score at 1/2, so that errors above and below 1/2 cancel.",
        ),
        (
            "Reliability diagram",
            "The share of hits against the mean score, bin by bin. On the diagonal the model is "
            "calibrated; below it, it is overconfident.",
        ),
        (
            "Arena",
            "Every recalibrator on many data sets: fitted on calibration rows, judged on other rows by the Brier score and NLL, "
            "and ranked over all of them, as in CalArena (2026, arXiv 2605.30188).",
        ),
        (
            "Winrate",
            "In an arena, the share of the other methods with a strictly larger (worse) score, averaged over the experiments and then over "
            "the benchmarks. 0.5 is the middle of the field; 0.8 means that a method beats four of five others, by whatever "
            "margin. A method that failed beats no other, and counts as a win for none.",
        ),
        (
            "Elo",
            "Ratings whose differences give the odds that one method beats another (Bradley & Terry 1952): 400 points are a factor "
            "of ten in the odds, and the methods of an arena average 1,000.",
        ),
        (
            "Critical difference",
            "The difference between the mean ranks of two methods that is needed to tell them apart at 5 % (Nemenyi's test after Friedman's; "
            "Demšar 2006). Models of one data set are ranked together, as their results are not independent.",
        ),
        ("Risk", "The share of wrong predictions among the rows that the model decides."),
        (
            "Discrimination",
            "How far apart the scores of hits and misses are. Calibration can be repaired afterwards; "
            "discrimination cannot.",
        ),
        (
            "Sharpness",
            "How close the probabilities are to 0 and 1, whether they are right or not.",
        ),
        (
            "Questions with choices",
            "The multiple-choice questions of benchmarks for language models. The probabilities of the choices are the softmax of their "
            "log-likelihoods; if these are first divided by the bytes of each choice, longer choices are not penalised, and the accuracy is "
            'what harnesses call acc_norm. "B" is a different answer in each question, so the top choice is judged, or each choice by '
            "itself: of choices with a probability of 0.2, one in five should be right. Questions are then the clusters. Large models are "
            "often well calibrated on such questions (Kadavath et al. 2022).",
        ),
        (
            "Stated confidence",
            "The answer of a language model when asked how sure it is, from 0 to 100 or in words. It mostly takes a few round values, often too "
            "high, but may be better than the probabilities of the model's tokens after fine-tuning (Tian et al. 2023). It is read as the "
            "confidence of the answer, beside whether the answer was right.",
        ),
        (
            "Split",
            "The part of the data that a row belongs to, such as calibration or test.",
        ),
        (
            "Temperature",
            "A number T by which all logits are divided. T above 1 makes the model less confident; the "
            "predicted class never changes.",
        ),
        (
            "Ties",
            "Rows with the same score. They are treated as one step, so that no number depends on the order "
            "of the rows.",
        ),
    )
)


# ---- Questions


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
        "whether beyond noise or not. The tab Classes (MCS) and the findings report a class only if it lies outside "
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
        "Open its logs (lm-evaluation-harness, Inspect) together. The tab Groups shows which tasks are off, adjusted for their number: one "
        "temperature seldom fits all. The tab Risk-coverage gives, for each task, the confidence above which the model is right often enough. "
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
