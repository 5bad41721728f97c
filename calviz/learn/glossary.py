"""The words that the pages use, each in plain sentences."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Term:
    """A word and what it means here."""

    word: str
    meaning: str


GLOSSARY = tuple(
    Term(word, meaning)
    for word, meaning in (
        (
            "Accuracy-preserving",
            "A recalibrator that is accuracy-preserving never changes which class is predicted, only how sure the "
            "model says it is.",
        ),
        (
            "Bin",
            "An interval of scores whose rows are looked at together. Bins of equal width cut 0 to 1 "
            "evenly; bins of equal mass hold about the same number of rows each. Bins are closed on the right.",
        ),
        (
            "Bootstrap",
            "The rows are drawn again with replacement, a thousand times, and the number is computed "
            "each time; its variation gives the error bar. calviz resamples sums instead of rows, which gives "
            "the same answer in milliseconds.",
        ),
        (
            "Calibrated",
            "Of all rows with a score of 0.8, 80 % are right, and likewise for every other score. Being calibrated "
            "says nothing about how often the model is right: always giving the base rate is calibrated.",
        ),
        (
            "Calibration map",
            "The function that a recalibrator has learnt, from old scores to new ones.",
        ),
        (
            "Calibration rows",
            "Rows that a recalibrator is fitted on. They must differ from the rows that the model was "
            "trained on and from those that the result is judged on.",
        ),
        (
            "Class-wise, one against the rest",
            "For class k the score is its probability, and a hit is a row whose label is k. A "
            "calibrated model has no error here.",
        ),
        (
            "Class-wise, by predicted class",
            "The rows on which the model says k: their mean confidence against their accuracy (top-label "
            "calibration). A calibrated model has no error here, and it is what can be acted on: the "
            "prediction is known when a decision is due.",
        ),
        (
            "Class-wise, by true class",
            "The rows whose label is k, scored by the model's confidence. Even a calibrated model's "
            "confidence is above its accuracy on hard classes and below it on easy ones, because the label is "
            "known; so a class is compared with the range that a calibrated model would show, not with 0.",
        ),
        (
            "Confidence",
            "The largest probability of a row: how sure the model says it is of its prediction.",
        ),
        (
            "Consistency band",
            "Where a perfectly calibrated model with the same number of rows would lie 95 times in 100. A point "
            "inside it is no evidence of miscalibration.",
        ),
        (
            "Coverage",
            "The share of rows that the model decides by itself; the others are referred to an expert.",
        ),
        (
            "Evaluation rows",
            "Rows that numbers are computed on; never those that a map was fitted on, unless the result is marked in-sample.",
        ),
        ("Hit", "Whether the event happened whose probability the score is: 1 or 0."),
        (
            "Interval",
            "The true values that are compatible with the rows, at 95 %: found by resampling them, and for errors "
            "corrected for the part that noise adds.",
        ),
        (
            "Logit",
            "The score before the softmax. Where a file has only probabilities, their logarithm is "
            "taken instead.",
        ),
        (
            "Floor (of zeros)",
            "What a probability of exactly 0 counts as before its logarithm: half of the smallest positive one of the calibration "
            "rows, at most 0.01 (floor=auto). Forests, votes, neighbours and rounded files have such zeros. Where the smallest "
            "one is an underflow and true classes have zeros, it is chosen by cross-validation. A smaller positive probability "
            "counts as the floor too; where no calibration row has a 0, nothing but zeros is changed.",
        ),
        (
            "Cap (of maps)",
            "How certain a map may be: a piece of m calibration rows without a hit is 1 / (2 (m + 1)), one without a miss 1 minus that, "
            "where isotonic regression, IRM and histograms say 0 and 1 by definition and a single wrong row then costs a loss of 35. "
            "Splines are held 1 / (2 (n + 1)) from 0 and 1 for n calibration rows, class-wise 1 / (K (n + 1)). cap=False gives the form of the papers.",
        ),
        (
            "Net benefit",
            "What acting on scores above a cutoff is worth, in hits found per row: hits acted on, less false alarms times t / (1 - t). "
            "A cutoff of 0.2 says that one missed hit is as bad as four false alarms. Acting on nobody has a net benefit of 0.",
        ),
        (
            "Noise floor",
            "What a metric would show if the model were perfectly calibrated, because the number of rows is "
            "limited. An ECE below the noise floor's 95 % quantile is no evidence of anything.",
        ),
        (
            "Overconfident, underconfident",
            "Confidence above accuracy, or below it. MCS is the difference, with its sign.",
        ),
        (
            "Paired difference",
            "Two models or methods on the same rows, which are resampled for both together. Of errors that noise makes larger, "
            "such as the ECE, it is the difference of the errors without that noise, and not that of the two values shown. "
            "Better and worse are said at 95 % for all comparisons together; otherwise the two are tied.",
        ),
        ("Point", "A percentage point: from 80 % to 83 % is 3 points."),
        (
            "Prediction set",
            "The classes that are plausible for a row, chosen so that the true class is among them in, say, 90 % of new rows. The "
            "threshold comes from calibration rows; the promise holds on average, not for every class.",
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
            "Where a calibrated model's error of a class would fall, adjusted for the number of classes: all of "
            "them are inside together in all but a few of a thousand files. What is within it is drawn grey and is no "
            "evidence of an error.",
        ),
        (
            "Recalibrator",
            "A map that is fitted after training, on other rows, and turns scores into better calibrated "
            "ones.",
        ),
        (
            "Reduction",
            "How a problem of many classes is turned into a score and a hit per row: top-label (the "
            "confidence, and whether the prediction is right), top-r, within-top-r, one class against "
            "the rest, or the positive class. With two classes it is the positive class where nothing else is "
            "said: the top label folds its score at 1/2, where errors above and below it cancel.",
        ),
        (
            "Reliability diagram",
            "The share of hits against the mean score, bin by bin. On the diagonal the model is "
            "calibrated; below it, overconfident.",
        ),
        (
            "Arena",
            "Every recalibrator on many data sets: fitted on calibration rows, judged on other rows by the Brier score and NLL, "
            "and ranked over all of them, as in CalArena (2026, arXiv 2605.30188).",
        ),
        (
            "Winrate",
            "In an arena, the share of the other methods with a strictly larger score, averaged over the experiments and then over "
            "the benchmarks. 0.5 is the middle of the field; 0.8 says that a method beats four of five others, not by how "
            "much. A method that failed beats nobody, and gives nobody a win.",
        ),
        (
            "Elo",
            "Strengths whose differences are the odds that one method beats another (Bradley & Terry 1952): 400 points are a factor "
            "of ten, and the methods of an arena average 1,000.",
        ),
        (
            "Critical difference",
            "How far apart the mean ranks of two methods have to be to tell them apart at 5 % (Nemenyi's test after Friedman's; "
            "Demšar 2006). Models of one data set are ranked together, as their results are not independent.",
        ),
        ("Risk", "The share of wrong predictions among those that the model decides."),
        (
            "Sharpness, discrimination",
            "How far apart the scores of hits and misses are. Calibration can be repaired afterwards; "
            "discrimination cannot.",
        ),
        (
            "Questions with choices",
            "What a benchmark asks of a language model. The softmax of the log-likelihoods of the choices is their probabilities; divided "
            'by the bytes of each choice first, longer ones are not punished, and accuracy is what harnesses call acc_norm. "B" is '
            "another answer in each question, so it is the top choice that is judged, or each choice by itself: of choices that get 0.2, one in "
            "five should be the right one. Questions are then the clusters. Large models are often well calibrated in this form (Kadavath "
            "et al. 2022).",
        ),
        (
            "Stated confidence",
            "What a language model says when it is asked how sure it is, 0 to 100 or in words. It is mostly a few round numbers, and often too "
            "high, but may be better than the probabilities of its tokens after fine-tuning (Tian et al. 2023). It is read as the "
            "confidence of the answer, beside whether that was right.",
        ),
        (
            "Split",
            "Which part of the data a row belongs to, such as calibration and test.",
        ),
        (
            "Temperature",
            "A number T by which all logits are divided. T above 1 makes the model less sure; the "
            "predicted class never changes.",
        ),
        (
            "Ties",
            "Rows with the same score. They count as one step, so that no number depends on the order "
            "of the rows.",
        ),
    )
)
