"""The words of headers: usual names of columns, and class names among them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

LABELS = (
    "label", "labels", "y", "y_true", "ytrue", "true_label", "true_labels", "truelabel", "target",
    "targets", "ground_truth", "groundtruth", "gt", "truth", "true", "true_class", "class",
    "actual", "outcome", "y_test", "y_label", "label_true", "labels_true", "true_y", "gold",
    "category", "class_label", "event", "observed",
)  # fmt: skip
#: Names of 0/1 columns after the event that they record, in credit and in medicine.
EVENTS = (
    "default", "defaulted", "default_flag", "is_default", "bad", "is_bad", "bad_flag", "fraud", "is_fraud",
    "churn", "churned", "died", "death", "dead", "mortality", "deceased", "disease", "diseased", "diagnosis",
    "readmitted", "readmission", "relapse", "recurrence", "case",
)  # fmt: skip
SPLITS = (
    "split", "splits", "subset", "partition", "data_split", "dataset_split", "set", "phase",
)  # fmt: skip
IDS = (
    "id", "ids", "index", "idx", "row", "row_id", "sample_id", "example_id", "image_id", "image",
    "filename", "file_name", "file", "path", "uid", "uuid", "guid", "key", "", "unnamed:_0",
    "record_id", "case_id", "patient_id", "subject_id", "user_id", "doc_id",
)  # fmt: skip
#: Names of columns that may define clusters of rows if their values repeat.
CLUSTERS = (*(name for name in IDS if name.endswith("id")), "cluster", "patient", "subject", "site",
            "user", "customer", "hospital", "household", "participant", "customer_id", "client_id",
            "site_id", "hospital_id", "participant_id", "account_id", "loan_id")  # fmt: skip
WEIGHTS = (
    "weight", "weights", "sample_weight", "sample_weights", "survey_weight", "w", "wt", "freq",
    "frequency", "n_rows",
)  # fmt: skip
TIMES = (
    "date", "time", "datetime", "timestamp", "date_time", "day", "month", "created_at", "event_time",
    "event_date", "game_date", "match_date", "forecast_date", "created", "period",
)  # fmt: skip
#: Words that mark other time columns, such as origination_date, and words that rule them out, such as date_of_birth.
TIME_WORDS, NO_TIME_WORDS = (
    frozenset({"date", "datetime", "timestamp"}),
    frozenset({"birth", "dob", "death"}),
)
CONFIDENCES = (
    "confidence", "confidences", "conf", "max_prob", "max_probability", "top1_prob", "top_prob",
    "top1_confidence", "pred_prob", "predicted_prob", "predicted_probability", "msp", "pred_conf",
)  # fmt: skip
CORRECTS = (
    "correct", "is_correct", "hit", "hits", "accuracy", "acc", "right", "correctness", "was_correct",
)  # fmt: skip
PREDICTED = (
    "pred_label", "pred", "prediction", "predicted", "predicted_label", "y_pred", "ypred", "y_hat",
    "yhat", "predicted_class", "pred_class", "top1", "label_pred", "preds", "predictions",
    "pred_labels", "predicted_labels", "argmax", "decision",
)  # fmt: skip
#: Arrays and list columns that hold the scores of all classes.
PROBABILITIES = (
    "probs", "probabilities", "predictions", "y_prob", "prob", "proba", "probas", "y_proba",
    "y_probs", "p", "probability", "softmax", "y_score", "y_scores", "scores", "preds", "p_hat",
    "phat", "predict_proba", "pred_probs", "pred_proba", "posteriors", "confidences", "outputs",
    "y_pred", "y_pred_proba", "score", "y_hat", "prob1", "p1", "p_1", "prob_1", "positive",
    "probability_1", "output", "prediction", "pred_prob", "forecast", "risk", "prob_positive",
    "p_positive", "test_probs", "arr_0", "probability_positive", "proba_1",
    "predicted_probability", "predicted_prob", "pd", "predicted_risk", "pred_risk", "estimated_risk", "default_probability", "probability_of_default",
)  # fmt: skip
LOGITS = (
    "logits", "logit", "y_logits", "pred_logits", "raw_scores", "log_odds", "logodds", "logprobs",
    "log_probs", "log_probabilities", "log_likelihoods", "loglikelihoods",
)  # fmt: skip
#: Names of columns with the log-probability of the answer.
LOG_CONFIDENCES = (
    "logprob", "log_prob", "log_probability", "answer_logprob", "sequence_logprob", "loglik", "log_likelihood",
)  # fmt: skip

#: Prefixes of the names of score columns, in order of preference, and the kind of score they mean.
PREFIXES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE | re.DOTALL), kind)
    for pattern, kind in (
        (r"(?:p|prob|proba|probs|probability|probabilities|y_prob|y_proba|softmax|predict_proba)"
         r"[_.: ](?P<name>.+)", "probabilities"),
        (r"(?:p|prob|proba|probability)\((?P<name>.+)\)", "probabilities"),
        (r"(?:p|prob|proba|softmax|probability)(?P<name>\d+)", "probabilities"),
        (r"(?:log_?probs?|log_?lik(?:elihood)?)[_.: ](?P<name>.+)", "logits"),
        (r"(?:(?:y_)?logits?(?:[_.: ]|(?=\d))|(?:y_)?logit)(?P<name>.+)", "logits"),
        (r"(?:score|scores|y_score|output)[_.: ](?P<name>.+)", ""),
        (r"prob(?P<name>[^_].*)", "probabilities"),
    )
)  # fmt: skip

#: What a column of one score is called, after its prefix, if it holds the probability of the event.
EVENT = ("1", "positive")
#: What it is called if it holds the probability that there is no event.
NO_EVENT = ("0", "false", "no", "neg", "negative")
#: Words before an event that turn it into its opposite, and words for outcomes without an event.
NEGATIONS = frozenset(("no", "non", "not", "without"))
#: Words that stand before the number of a class.
BEFORE_NUMBERS = frozenset(
    ("class", "y", "p", "prob", "proba", "probability", "label", "target", "is")
)
NO_EVENT_WORDS = frozenset((
    "survival", "survive", "survived", "surviving", "alive", "stay", "retention", "retained", "healthy", "benign", "good",
    "nonevent", "noevent", "repaid", "paid", "legit", "legitimate", "safe", "normal", "ham", "negative", "control", "minus", "free",
))  # fmt: skip

#: Ending of the outcomes of complementary forecasts: prob1, prob2, prob1_outcome, prob2_outcome.
OUTCOME = "_outcome"
#: Endings of the name of a column with the outcome of the score column whose name comes before.
OUTCOME_ENDINGS = (OUTCOME, "_label", "_true", "_actual", "_result", "_target")
#: Words of which one marks scores, or logits, wherever it stands in a header.
SCORE_WORDS = frozenset((
    "p", "pr", "pred", "prob", "probs", "proba", "probas", "probability", "probabilities", "score", "scores", "scored",
    "confidence", "conf", "softmax", "posterior", "likelihood", "prediction", "predictions", "predicted", "risk", "forecast",
))  # fmt: skip
LOGIT_WORDS = frozenset((
    "logit", "logits", "logodds", "logprob", "logprobs", "loglik", "log", "logp",
))  # fmt: skip
#: Words of which one marks the true class.
LABEL_WORDS = frozenset((
    "label", "target", "truth", "true", "actual", "observed", "obs", "gold", "response", "outcome", "class", "y", "orig", "result",
    "real", "étiquette", "etiquette", "classe", "réponse", "klasse", "wahr", "ziel", "ergebnis", "befund", "clase", "resultado",
))  # fmt: skip
#: Words of which one marks the predicted class.
PREDICTED_WORDS = frozenset((
    "pred", "predict", "predicted", "prediction", "predictions", "guess", "yhat", "argmax", "scored", "estimate",
))  # fmt: skip
#: Words that rule the true class out.
NO_LABEL_WORDS = PREDICTED_WORDS | frozenset((
    "hat", "decision", "has", "flag", "fold", "split", "id", "index", "row", "rank", "threshold", "count", "n", "correct",
    "previous", "last",
))  # fmt: skip

#: Words for a split at the beginning or the end of the key of an array.
SPLIT_WORDS = (
    "train", "training", "val", "valid", "validation", "cal", "calib", "calibration", "dev", "test",
    "eval", "evaluation", "holdout",
)  # fmt: skip


@lru_cache(maxsize=1 << 12)
def plain(name: str) -> str:
    """Normalise a name for comparison: lower case, words joined by underscores."""
    return re.sub(r"[\s\-.]+", "_", name.strip().lower())


def by_prefix(name: str) -> tuple[str, str]:
    """Return the class and the kind of score given by the name of a score column; empty if it has no known prefix."""
    for pattern, kind in PREFIXES:
        if match := pattern.fullmatch(name):
            return match["name"].strip(), kind
    return "", ""


def is_of_first_class(name: str, classes: tuple[str, ...]) -> bool:
    """Whether the only score column is that of the first of two classes: it has its name, or that of no event.

    >>> is_of_first_class("no", ("no", "yes")), is_of_first_class("no_event", ("0", "1"))
    (True, True)
    >>> is_of_first_class("yes", ("no", "yes")), is_of_first_class("0", ("1", "0"))
    (False, False)
    """
    word, (first, second) = name.casefold(), (c.casefold() for c in classes)
    parts = words(name)
    negated = len(parts) > 1 and parts[0] in NEGATIONS
    return word != second and (word == first or word in NO_EVENT or negated)


@lru_cache(maxsize=1 << 12)
def words(name: str) -> tuple[str, ...]:
    """The words of a name, in lower case: cut at signs, and before capital letters.

    >>> words("Scored.ProbabilityOf_cat")
    ('scored', 'probability', 'of', 'cat')
    """
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return tuple(word for word in re.split(r"[\W_]+", parted.lower()) if word)


_SCORE = re.compile(r"(?:p|prob|proba|probs|probability|logit|logits|score)_", re.IGNORECASE)


def count_scores(columns: Iterable[str]) -> int:
    """Count the names that begin like score columns; a quick check for very wide tables."""
    return sum(_SCORE.match(name) is not None for name in columns)


def is_score_name(name: str) -> bool:
    """Whether a name is usual for a column of scores, and not for one of predicted classes."""
    usual = {*PROBABILITIES, *LOGITS, *LOG_CONFIDENCES, *CONFIDENCES} - {*PREDICTED}
    return plain(name) in usual or bool(by_prefix(name)[1])
