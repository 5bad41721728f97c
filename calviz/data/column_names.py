"""The words of headers and of classes: usual names of columns, which class is the event, and columns that are named after classes."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
    "split", "splits", "subset", "partition", "data_split", "dataset_split", "set", "phase", "aufteilung",
)  # fmt: skip
IDS = (
    "id", "ids", "index", "idx", "row", "row_id", "sample_id", "example_id", "image_id", "image",
    "filename", "file_name", "file", "path", "uid", "uuid", "guid", "key", "", "unnamed:_0",
    "record_id", "case", "case_id", "patient_id", "subject_id", "user_id", "doc_id",
)  # fmt: skip
#: Words of which one marks identifiers, as in "ID Patient#", and words that rule them out.
ID_WORDS = frozenset(("id", "ids", "uid", "uuid", "guid", "identifier", "nr", "nummer", "mrn"))
#: Names of columns that name the model of each row.
MODELS = (
    "model", "model_name", "model_id", "modell", "modelo", "modello", "modèle", "modele", "classifier", "clf", "klassifikator", "method",
    "methode", "méthode", "system", "network", "netzwerk", "netz", "checkpoint", "provider", "vendor", "engine", "llm", "backbone", "architecture", "epoch", "seed",
    "judge", "judge_name", "judge_id", "judge_model", "judged_by", "llm_judge", "autorater", "grader", "grader_name", "grader_model", "evaluator", "evaluator_name", "evaluator_model",
    "rater", "scorer", "annotator", "run", "run_id", "model_version", "model_tag", "model_variant", "modellversion",
    "source", "quelle", "forecaster", "forecast_source", "forecast_system", "forecast_model", "member", "ensemble_member", "algorithm", "algorithmus",
)  # fmt: skip
#: Words for what several rows may belong to, and words for its number: together they name columns that may define clusters.
CLUSTER_WORDS = frozenset((
    "cluster", "patient", "patienten", "patiente", "paciente", "paziente", "subject", "participant", "user", "customer", "client",
    "cliente", "kunde", "kunden", "account", "loan", "household", "site", "hospital",
    "contract", "policy", "vertrag", "vertrags", "policen", "contrat", "police", "contrato", "contratto", "póliza", "poliza", "polizza",
))  # fmt: skip
_NUMBER_WORDS = ID_WORDS | {"n", "no", "num", "number", "numéro", "numero", "número"}
WEIGHTS = (
    "weight", "weights", "sample_weight", "sample_weights", "sampling_weight", "sampling_weights", "survey_weight", "survey_weights", "case_weight",
    "case_weights", "row_weight", "obs_weight", "observation_weight", "design_weight", "class_weight", "w", "wt", "wts", "wgt", "sample_wt", "survey_wt", "freq", "frequency", "n_rows", "gewicht", "gewichte", "stichprobengewicht", "fallgewicht", "gewichtung", "gewichtungsfaktor", "poids", "pondération", "ponderation",
    "peso", "pesos", "ponderación", "ponderacion", "pesi", "ponderazione", "gewichten", "weging", "wegingsfactor",
)  # fmt: skip
#: Names of weights that hold fractions: with whole numbers, they may be anything.
EXPOSURES = ("exposure", "exposures", "exposition", "exposición", "exposicion", "esposizione")
TIMES = (
    "date", "time", "datetime", "timestamp", "date_time", "day", "month", "created_at", "event_time",
    "event_date", "game_date", "match_date", "forecast_date", "study_date", "studydate", "created", "period", "stichtag", "zeitpunkt", "zeit", "tag", "monat",
    "zeitstempel", "periode", "jour", "mois", "date_heure", "heure", "horodatage", "temps", "période", "fecha", "fecha_hora", "hora",
    "tiempo", "periodo", "período", "día", "dia", "mes", "data", "data_ora", "ora", "tempo", "giorno", "mese", "dag", "maand", "tijd", "tijdstip",
)  # fmt: skip
#: Words that mark other time columns, such as origination_date or, without one, valid_time or judged_at; and words that rule them out, such as date_of_birth.
TIME_WORDS, NO_TIME_WORDS = (
    (frozenset({"date", "datetime", "timestamp", "ts", "fecha", "data"}), frozenset({"time", "zeit"}), frozenset({"at"})),
    frozenset((
        "birth", "birthdate", "birthday", "born", "dob", "death", "geb", "geburt", "geburts", "geburtstag", "geboren", "geburtsdatum",
        "sterbedatum", "todesdatum", "naissance", "né", "née", "décès", "deces", "nacimiento",
        "fallecimiento", "defunción", "nascita", "decesso", "morte", "geboortedatum", "overlijdensdatum",
    )),
)  # fmt: skip
CONFIDENCES = (
    "confidence", "confidences", "conf", "max_prob", "max_probability", "top1_prob", "top_prob",
    "top1_confidence", "certainty", "konfidenz", "confiance", "pred_prob", "predicted_prob", "predicted_probability", "msp", "pred_conf",
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
#: The confidence of the prediction in ``$L-churn``, as SPSS Modeler names it: ``$LP-churn``.
MODELER = re.compile(r"\$([A-Z]+)[CP]-(.+)")
#: Words for what a model gives before it is turned into a probability.
RAW = frozenset(("raw", "margin", "margins", "decision"))
#: Words of which one marks what is said of the rows, afterwards, and for people who say it.
VERDICTS = frozenset(("verdict", "judgement", "judgment", "decision", "grade", "rating", "assessment"))  # fmt: skip
PEOPLE = frozenset(("human", "humans", "expert", "experts", "annotator", "annotators", "rater", "reader", "nurse", "doctor", "physician"))  # fmt: skip
#: Words for what is a label only if nothing else can be.
SEX = frozenset(("sex", "gender", "geschlecht", "sexe", "sexo"))
#: Words for how sure a model or a judge is of what it says.
SURE = frozenset(("confidence", "conf", "certainty"))
#: Names of columns with the log-probability of the answer.
LOG_CONFIDENCES = (
    "logprob", "log_prob", "log_probability", "answer_logprob", "sequence_logprob", "loglik", "log_likelihood",
)  # fmt: skip
LOG_WORDS = frozenset(("logprob", "logprobs", "loglik", "logp"))

#: Prefixes of the names of score columns, in order of preference, and the kind of score they mean.
PREFIXES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE | re.DOTALL), kind)
    for pattern, kind in (
        (r"(?:p|prob|proba|probs|probability|probabilities|y_prob|y_proba|softmax|predict_proba)"
         r"[_.: /](?P<name>.+)", "probabilities"),
        (r"(?:p|prob|proba|probability)\((?P<name>.+)\)", "probabilities"),
        (r"(?:p|prob|proba|softmax|probability)(?P<name>\d+)", "probabilities"),
        (r"(?:log_?probs?|log_?lik(?:elihood)?)[_.: ](?P<name>.+)", "logits"),
        (r"(?:(?:y_)?logits?(?:[_.: ]|(?=\d))|(?:y_)?logit)(?P<name>.+)", "logits"),
        (r"(?:(?:score|scores|y_score|output)[_.: ]|(?-i:LABEL_)(?=\d+\Z))(?P<name>.+)", ""),
        (r"prob(?!abilit|as?\W|s\W)(?P<name>[^_].*)", "probabilities"),
    )
)  # fmt: skip

#: What a column of one score is called, after its prefix, if it holds the probability of the event.
EVENT = ("1", "positive")
#: What it is called if it holds the probability that there is no event.
NO_EVENT = ("0", "false", "no", "neg", "negative")
#: Words before an event that turn it into its opposite, and words for outcomes without an event.
NEGATIONS = frozenset(("no", "non", "not", "without"))
#: Words that stand before the number of a class.
BEFORE_NUMBERS = frozenset("class y p prob proba probability label target is".split())
NO_EVENT_WORDS = frozenset((
    "survival", "survive", "survived", "surviving", "alive", "stay", "retention", "retained", "healthy", "benign", "good",
    "nonevent", "noevent", "repaid", "repay", "repayment", "approval", "approved", "paid", "legit", "legitimate", "safe", "normal", "ham", "negative", "control", "minus", "free",
))  # fmt: skip

#: Ending of the outcomes of complementary forecasts: prob1, prob2, prob1_outcome, prob2_outcome.
OUTCOME = "_outcome"
#: Endings of the name of a column with the outcome of the score column whose name comes before.
OUTCOME_ENDINGS = (OUTCOME, "_label", "_true", "_actual", "_result", "_target")
#: Words of which one marks scores, or logits, wherever it stands in a header.
SCORE_WORDS = frozenset((
    "p", "pr", "pred", "prob", "probs", "proba", "probas", "probability", "probabilities", "score", "scores", "scored",
    "confidence", "conf", "softmax", "posterior", "likelihood", "prediction", "predictions", "predicted", "risk", "forecast",
    "wahrscheinlichkeit", "probabilité", "probabilite", "probabilidad", "probabilidade", "probabilità", "eventprobability", "propensity",
))  # fmt: skip
#: Words that say percent in a header, as the sign does.
PERCENT = frozenset((
    "percent", "percentage", "percentages", "pct", "prozent", "pourcent", "pourcentage", "porcentaje", "percentuale", "procent",
))  # fmt: skip
_PERCENT = rf"(?:%|{'|'.join(sorted(PERCENT))})"
#: The sign or a word for percent at the end of the name of a class; after a number without brackets, the sign belongs to the class ("< 50 %").
_IN_PERCENT = re.compile(rf"(?<=\S)\s*[\[(]{_PERCENT}[\])]$|(?<=[^\W\d])[\s_.]+{_PERCENT}$", re.IGNORECASE)  # fmt: skip
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
#: Words for another time than that of the label.
FORMER_WORDS = frozenset(("previous", "prev", "last", "lag"))
#: Words that rule the true class out.
NO_LABEL_WORDS = PREDICTED_WORDS | frozenset((
    "hat", "decision", "has", "flag", "fold", "split", "id", "index", "row", "rank", "threshold", "count", "n", "correct",
)) | FORMER_WORDS  # fmt: skip

NO_ID_WORDS = LABEL_WORDS | PREDICTED_WORDS | SCORE_WORDS | LOGIT_WORDS

#: Words for a split at the beginning or the end of the key of an array.
SPLIT_WORDS = (
    "train", "training", "val", "valid", "validation", "cal", "calib", "calibration", "dev", "test",
    "eval", "evaluation", "holdout",
)  # fmt: skip
#: Values of a column of splits, without spaces, hyphens and underscores: those of rows that something was fitted on, and all.
_FITTED_ON = frozenset((
    "train", "training", "insample", "calibration", "calib", "cal", "kalibrierung", "val", "valid", "validation", "validierung",
    "derivation", "dérivation", "development",
))  # fmt: skip
_SPLIT_VALUES = _FITTED_ON | {
    "test", "testing", "holdout", "heldout", "eval", "evaluation", "dev", "oot", "outoftime", "oos", "outofsample",
}  # fmt: skip


def number_of(text: str) -> float | None:
    """The number that text stands for; None if it is none."""
    try:
        return float(text)
    except ValueError:
        return None


def are_splits(values: Iterable[object]) -> bool:
    """Whether all values are usual names of splits, at least two, one of them of rows that something was fitted on.

    >>> are_splits(["TRAIN", "Hold-out", "TRAIN"]), are_splits(["train", "bus"]), are_splits(["dev", "test"])
    (True, False, False)
    """
    names = {plain(str(value)).replace("_", "") for value in values}
    return len(names) > 1 and bool(names & _FITTED_ON) and names <= _SPLIT_VALUES


@lru_cache(maxsize=1 << 12)
def plain(name: str) -> str:
    """Normalise a name for comparison: lower case, words joined by underscores."""
    return re.sub(r"[\s\-.]+", "_", name.strip().lower())


def by_prefix(name: str) -> tuple[str, str]:
    """Return the class and the kind of score given by the name of a score column; empty if it has no known prefix."""
    for pattern, kind in PREFIXES:
        if match := pattern.fullmatch(name):
            return without_percent(match["name"]), kind
    return "", ""


def without_percent(name: str) -> str:
    """The name of a class from a header, without a sign or a word for percent.

    >>> without_percent("Water (%)"), without_percent("urban_pct"), without_percent("< 50 %")
    ('Water', 'urban', '< 50 %')
    """
    return _IN_PERCENT.sub("", name.strip())


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
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", name)
    return tuple(word for word in re.split(r"[\W_]+", parted.lower()) if word)


def is_identifier(name: str) -> bool:
    """Whether a name has a word for identifiers, and none for classes or scores.

    >>> is_identifier("ID Patient#"), is_identifier("class_id"), is_identifier("width")
    (True, False, False)
    """
    # What one of `ID_WORDS` is in, which few columns of a wide table have.
    own = set(words(name)) if re.search("id|nr|nummer|mrn", name.lower()) else set[str]()
    # In German, words are joined: Fallnummer.
    named = own & ID_WORDS or any(word.endswith("nummer") for word in own)
    return bool(named) and not own & NO_ID_WORDS


def is_numbered(name: str) -> bool:
    """Whether a name ends in a word for a number, as that of what has one does, and has none for classes or scores, or begins so before what rows belong to.

    >>> is_numbered("Claim No."), is_numbered("N° contrat"), is_numbered("number of visits"), is_numbered("pred_no")
    (True, True, False, False)
    """
    first, *rest = words(name) or ("",)
    of_cluster = first in _NUMBER_WORDS and CLUSTER_WORDS.issuperset(rest)
    named = (
        rest and rest[-1] in _NUMBER_WORDS - {"n"} and NO_ID_WORDS.isdisjoint((first, *rest[:-1]))
    )
    return bool(rest) and (of_cluster or bool(named))


def may_be_cluster(name: str) -> bool:
    """Whether a name is that of an identifier, or of what several rows may belong to.

    >>> may_be_cluster("N° patient"), may_be_cluster("Kundennummer"), may_be_cluster("customer type")
    (True, True, False)
    """
    own = set(words(name))
    return is_identifier(name) or (
        bool(own & CLUSTER_WORDS) and own <= CLUSTER_WORDS | _NUMBER_WORDS
    )


def may_be_time(name: str) -> bool:
    """Whether a name has a word for times, also where the values are numbers.

    >>> may_be_time("month"), may_be_time("Order date"), may_be_time("width")
    (True, True, False)
    """
    return not set(words(name)).isdisjoint(TIMES)


_SCORE = re.compile(r"(?:p|prob|proba|probs|probability|logit|logits|score)_", re.IGNORECASE)


def count_scores(columns: Iterable[str]) -> int:
    """Count the names that begin like score columns; a quick check for very wide tables."""
    return sum(_SCORE.match(name) is not None for name in columns)


def is_score_name(name: str) -> bool:
    """Whether a name is usual for a column of scores, and not for one of predicted classes."""
    usual = {*PROBABILITIES, *LOGITS, *LOG_CONFIDENCES, *CONFIDENCES} - {*PREDICTED}
    return plain(name) in usual or bool(by_prefix(name)[1])


# ---- Words for classes

#: Pairs of words for two classes; the second is the event.
PAIRS = (
    ("false", "true"), ("no", "yes"), ("n", "y"), ("f", "t"), ("neg", "pos"), ("-", "+"),
    ("negative", "positive"), ("absent", "present"), ("control", "case"), ("off", "on"),
    ("fail", "pass"), ("healthy", "sick"), ("benign", "malignant"), ("ham", "spam"),
    ("loss", "win"), ("wrong", "right"), ("incorrect", "correct"), ("alive", "dead"), ("good", "bad"),
    ("gesund", "krank"), ("gesund", "erkrankt"), ("survived", "died"), ("nein", "ja"), ("non", "oui"), ("não", "sim"), ("nao", "sim"), ("no", "sí"), ("no", "si"),
    ("falsch", "wahr"), ("faux", "vrai"), ("falso", "vero"), ("falso", "verdadero"), ("falso", "verdadeiro"), ("onwaar", "waar"), ("0", "1"), ("-1", "1"), ("1", "2"),
)  # fmt: skip


#: Words for what a risk model predicts: the event, whatever the other class is called.
EVENT_WORDS = frozenset((
    "died", "dead", "death", "deceased", "bad", "default", "defaulted", "fraud", "fraudulent", "churn", "churned",
    "relapse", "relapsed", "recurrence", "readmitted", "malignant", "diseased", "sick", "spam", "toxic", "attack",
    "positive", "yes", "true", "event", "case",
))  # fmt: skip


#: A share of the rows that may be taken for mistakes.
FEW = 0.1
#: Cells that mean a missing number; a label that is "-" or "." may be a class.
MISSING_WORDS = ("", "NA", "N/A", "n/a", "na", "null", "NULL", "None", "none", "-", "--", "?", ".", "#N/A")  # fmt: skip
#: Words for a missing label, in lower case, unless a class has that name.
MISSING_LABELS = ("", "nan", "na", "n/a", "none", "null", "<na>")


#: At most 18 digits: longer numbers are not class indices, and Python refuses very long ones.
_WHOLE = re.compile(r"([+-]?\d{1,18})(?:\.0*)?", re.ASCII)


def class_key(text: str) -> str:
    """Spell a class so that labels and names of columns can be compared: whole numbers as such, words without case.

    >>> class_key(" 1.0"), class_key("True"), class_key("Low risk")
    ('1', 'true', 'low risk')
    """
    text = text.strip()
    return text.casefold() if (number := whole(text)) is None else str(number)


def alike(names: Sequence[str], others: Sequence[str]) -> bool:
    """Whether classes are the same in the same order, but for case, for what stands between words and for a sign of percent at the end.

    Names that only differ by these among themselves are those of different classes.

    >>> alike(["old_cat", "dog"], ["Old cat", "dog"]), alike(["a_b", "a b"], ["a b", "a_b"])
    (True, False)
    """
    keys = ([class_key(without_percent(n)) for n in some] for some in (names, others))
    one, other = ([re.sub(r"[\s_-]+", " ", key) for key in some] for some in keys)
    return tuple(names) == tuple(others) or (one == other and len({*one}) == len(one))


def event_of(classes: Iterable[str]) -> str | None:
    """Return the event of two classes, as `class_key` spells them, or of one that could be; None if no word says which it is.

    >>> event_of({"no", "yes"}), event_of({"alive", "dead"}), event_of({"m", "b"})
    ('yes', 'dead', None)
    """
    words = {*classes}
    if not 1 <= len(words) <= 2:
        return None
    if (pair := next((p for p in PAIRS if words <= {*p}), None)) is not None:
        return pair[1]
    known = words & EVENT_WORDS
    return known.pop() if len(words) == 2 and len(known) == 1 else None


def pairs_of(counts: Mapping[str, int]) -> list[tuple[str, str]]:
    """Return the pairs of classes, the most frequent first, beside which few rows have another; only those with a known event if there are any.

    >>> pairs_of({"paid": 90, "lost": 9, "open": 1}), pairs_of({"open": 5, "no": 60, "yes": 40}), pairs_of({"a": 4, "b": 3, "c": 3})
    ([('paid', 'lost'), ('paid', 'open')], [('no', 'yes')], [])
    """
    most, *others = sorted(counts, key=lambda name: (-counts[name], name)) or ("",)
    least = (1 - FEW) * sum(counts.values())
    pairs = [(most, other) for other in others if counts[most] + counts[other] >= least]
    return [pair for pair in pairs if event_of(pair)] or pairs


def most(rows: Mapping[str, int], k: int) -> list[str]:
    """Return the `k` most frequent classes, or all if there are fewer; none if others have more than few rows.

    >>> most({"H": 50, "D": 20, "A": 29, "Postponed": 1}, 3), most({"a": 5, "b": 4, "c": 3}, 2)
    (['H', 'A', 'D'], [])
    """
    often = sorted(rows, key=lambda name: (-rows[name], name))
    return often[:k] if sum(rows[n] for n in often[k:]) <= FEW * sum(rows.values()) else []


def no_event_of(classes: Iterable[str]) -> str | None:
    """Return the class beside the event, as `class_key` spells it; None if no word says which it is.

    >>> no_event_of({"yes"}), no_event_of({"paid", "default"})
    ('no', 'paid')
    """
    words = {*classes}
    happened = event_of(words)
    pair = next((p for p in PAIRS if words <= {*p}), ())
    return next((w for w in (*(words - {happened or ""}), *pair) if w != happened), None)


def is_event_first(classes: Sequence[str]) -> bool:
    """Whether the first of two classes is the event, which comes last as the positive class.

    >>> is_event_first(["Yes", "No"]), is_event_first(["no", "yes"]), is_event_first(["b", "a"])
    (True, False, False)
    """
    spelled = [class_key(name) for name in classes]
    return len(spelled) == len({*spelled}) == 2 and event_of(spelled) == spelled[0]


def told_apart(names: Sequence[str]) -> list[str]:
    """Spell two names as `class_key` does, by the words that they do not share if only these say which is the event.

    >>> told_apart(["No", "Yes"]), told_apart(["correct | text", "incorrect | text"])
    (['no', 'yes'], ['correct', 'incorrect'])
    """
    keys = [class_key(name) for name in names]
    if len(keys) != 2 or event_of(keys) is not None:
        return keys
    one, two = map(words, names)
    return [" ".join(w for w in own if w not in other) for own, other in ((one, two), (two, one))]


#: Words that turn the meaning of those beside them.
_NOT = frozenset(("no", "not", "non", "never", "without", "kein", "keine", "nicht", "ohne", "pas", "sans", "sin", "senza"))  # fmt: skip


def paired(rows: Mapping[str, int], names: Sequence[str]) -> dict[str, str] | None:
    """Return the name that each label, of so many rows, goes with: the equal one, else the only one with a word of the same stem; None if some have none, or one name has two.

    Few rows may have labels that are like no name, if each name has a label without them.

    >>> paired({"Paid": 5, "Under review": 5, "Rejected": 5}, ["pay", "review", "reject"])
    {'Paid': 'pay', 'Under review': 'review', 'Rejected': 'reject'}
    >>> paired({"Home win": 60, "Draw": 39, "Postponed": 1}, ["Home", "Draw"])
    {'Home win': 'Home', 'Draw': 'Draw'}
    >>> paired({"not approved": 5, "not rejected": 5}, ["approved", "rejected"]) is None
    True
    """
    equal = {class_key(name): [name] for name in names}
    alike = {label: [name for name in names if _are_alike(label, name)] for label in rows}
    fits = {label: own for label in rows if (own := equal.get(class_key(label), alike[label]))}
    found = {label: own[0] for label, own in fits.items() if len(own) == 1}
    left = sum(rows[label] for label in rows if label not in fits)
    if left > FEW * sum(rows.values()) or (left and len(found) < len(names)):
        return None
    return found if found and len(found) == len({*found.values()}) == len(fits) else None


def _are_alike(one: str, two: str) -> bool:
    """Whether one name is the first letter of the other, or both have a word of one stem, such as pay and paid, and none or both a word like "not"."""
    letter, word = sorted(map(class_key, (one, two)), key=len)
    if len(letter) == 1:
        return word[:3].isalpha() and word.startswith(letter)
    own, other = ({re.sub("y$", "i", w) for w in words(name)} for name in (one, two))
    if bool(own & _NOT) != bool(other & _NOT):
        return False
    pairs = [sorted((a, b), key=len) for a in own - _NOT for b in other - _NOT]
    pairs = [pair for pair in pairs if len(pair[0]) > 2]
    # Alike but for the last letter of the shorter one.
    return any(a[: max(3, len(a) - 1)] == b[: max(3, len(a) - 1)] for a, b in pairs)


def whole(level: str) -> int | None:
    """Parse a whole number ("3", "3.0", "3.0e+00"); None if the text is not one."""
    if match := _WHOLE.fullmatch(level):
        return int(match[1])
    try:
        value = float(level) if "_" not in level else math.nan
    except ValueError:
        return None
    return int(value) if value.is_integer() and abs(value) < 2**53 else None


def is_missing(level: str) -> bool:
    """Whether a label means "missing", unless a class has that name."""
    return level.casefold() in MISSING_LABELS


# ---- Columns that are named after classes

#: Labels with more distinct values than this are not looked for in the header.
_MOST_LEVELS = 5_000


@dataclass(frozen=True)
class ClassBlock:
    """Columns of which each is named after a class, all with the same words around it.

    Attributes
    ----------
    columns : tuple of str
        In the order of the file.
    classes : tuple of str
        The name of the class of each column.
    labels : tuple of str
        How the labels spell these classes; of classes that no label has, the name.
    around : tuple of (str, str)
        What stands before and after the name of the class.
    spell : callable
        How the names were spelled to find this.
    """

    columns: tuple[str, ...]
    classes: tuple[str, ...]
    labels: tuple[str, ...]
    around: tuple[str, str]
    spell: Callable[[str], str] = str


def blocks_named_by(
    levels: Iterable[str], columns: Sequence[str], least: int = 2
) -> list[ClassBlock]:
    """Find the columns that are named after all labels, of which there are `least` or more, with the same words around the name; the plainest spelling first.

    >>> [b.classes for b in blocks_named_by(["no", "yes"], ["id", "P(yes)", "P(no)"])]
    [('yes', 'no')]
    >>> [b.labels for b in blocks_named_by(["False", "True"], ["prob no", "prob yes"])]
    [('False', 'True')]
    """
    levels = sorted({*levels})
    blocks: dict[tuple[str, ...], ClassBlock] = {}
    if not least <= len(levels) <= _MOST_LEVELS:
        return []
    for spell in (str, str.casefold, _words, _letters):
        if blocks and spell is _letters:
            break
        spellings = [spell(column) for column in columns]
        alike = {key for key, count in Counter(spellings).items() if count > 1}
        names = {k: c for k, c in zip(spellings, columns, strict=True) if k not in alike}
        for words in _spellings(levels):
            spelled = {spell(pair[0]): pair for pair in zip(words, levels, strict=True)}
            if len(spelled) == len(levels) and "" not in spelled:
                # Of many ways to find the labels in the header, such as 3 and 7 in x3, x7, x13, x17 ..., the plainest are looked at.
                for around in sorted(_around(spelled, names), key=lambda a: len(a[0] + a[1]))[:12]:
                    block = _block(around, spelled, names, spell)
                    blocks.setdefault(block.columns, block)
    held = None if blocks else _each_holds_one(levels, columns)
    return [held] if held is not None else list(blocks.values())


def _each_holds_one(levels: Sequence[str], columns: Sequence[str]) -> ClassBlock | None:
    """Columns of which each holds another label as words of its name, whatever else differs (``0: cat``, ``1: dog``)."""
    spelled = {f"_{_words(level).strip('_')}_": level for level in levels}
    # Pairs of a label and a column that are compared at most.
    if len(spelled) < len(levels) or "__" in spelled or len(levels) * len(columns) > 200_000:
        return None
    if all(whole(level) is not None for level in levels):
        return None  # numbers stand in headers for other reasons too
    names = {column: f"_{_words(column).strip('_')}_" for column in columns}
    found: dict[str, str] = {}
    for key, level in spelled.items():
        holding = [column for column, name in names.items() if key in name]
        longer = [other for other in spelled if other != key and key in other]
        holding = [c for c in holding if not any(other in names[c] for other in longer)]
        if len(holding) != 1 or holding[0] in found:
            return None
        found[holding[0]] = level
    in_order = tuple(column for column in columns if column in found)
    classes = tuple(found[column] for column in in_order)
    return ClassBlock(in_order, classes, classes, ("", ""))


def _words(text: str) -> str:
    """Spell a name as R, SQL and spreadsheets would: words joined by underscores."""
    return re.sub(r"[\W_]+", "_", text.casefold())


def _letters(text: str) -> str:
    """Spell a name as camelCase would, without what stands between its words; numbers stay as they are."""
    return text if whole(text) is not None else re.sub(r"[\W_]+", "", text.casefold())


def _spellings(levels: Sequence[str]) -> Iterator[Sequence[str]]:
    """The ways to write the labels: as they are, as whole numbers, and two classes by other words for the event and no event."""
    yield levels
    numbers = [whole(level) for level in levels]
    if None not in numbers:
        yield [str(number) for number in numbers]
        yield [f"{number}.0" for number in numbers]
        yield [f"{number:02d}" for number in numbers]
    event = event_of({class_key(level) for level in levels})
    # Numbers are matched with words where the labels follow the scores (`with_labels`).
    if len(levels) == 2 and event is not None and None in numbers:
        happened = [class_key(level) == event for level in levels]
        # Columns called 1 and 2 may be anything.
        yield from (
            [pair[h] for h in happened] for pair in PAIRS if "2" not in pair and "-1" not in pair
        )


def _around(spelled: Iterable[str], names: dict[str, str]) -> list[tuple[str, str]]:
    """What stands before and after the labels, in as many ways as there are columns for all of them."""
    labels = sorted(spelled, key=len)
    longest = labels.pop()
    found: dict[tuple[str, str], None] = {}
    for name in names:
        at = name.find(longest)
        while at >= 0:
            before, after = name[:at], name[at + len(longest) :]
            if all(f"{before}{label}{after}" in names for label in labels):
                found[before, after] = None
            at = name.find(longest, at + 1)
    return list(found)


def _block(
    around: tuple[str, str],
    spelled: dict[str, tuple[str, str]],
    names: dict[str, str],
    spell: Callable[[str], str],
) -> ClassBlock:
    before, after = around
    of_column = {names[f"{before}{key}{after}"]: pair for key, pair in spelled.items()}
    found = [column for column in names.values() if column in of_column]
    classes = []
    for column in found:
        word, _ = of_column[column]
        written = _inner(column, around, spell)
        classes.append(written if class_key(written) == class_key(word) else word)
    labels = tuple(of_column[column][1] for column in found)
    return ClassBlock(tuple(found), tuple(classes), labels, around, spell)


def _inner(column: str, around: tuple[str, str], spell: Callable[[str], str]) -> str:
    """What stands between the words around, as the header writes it where the spelling keeps its length."""
    spelled = spell(column)
    part = slice(len(around[0]), len(spelled) - len(around[1]))
    return (column if len(spelled) == len(column) else spelled)[part]


def further_classes(block: ClassBlock, columns: Sequence[str]) -> ClassBlock:
    """Return the block with all columns that have the same words around something else: classes that no label has."""
    before, after = block.around
    known = dict(zip(block.columns, zip(block.classes, block.labels, strict=True), strict=True))
    found: list[tuple[str, str, str]] = []
    for column in columns:
        name = block.spell(column)
        if column in known:
            found.append((column, *known[column]))
        elif len(name) > len(before + after) and name.startswith(before) and name.endswith(after):
            inner = _inner(column, block.around, block.spell)
            found.append((column, inner, inner))
    names, classes, labels = zip(*found, strict=True)
    return replace(block, columns=names, classes=classes, labels=labels)


def without_common_words(columns: Sequence[str], *, of_models: bool = False) -> tuple[str, ...]:
    """What differs between names: the names without the words that all begin and end with, cut where words do.

    Names of models are not cut before a digit, nor to one letter after a word of their own.

    >>> without_common_words(["target_cat_prob", "target_cow_prob"])
    ('cat', 'cow')
    >>> without_common_words(["score_v1", "score_v2"], of_models=True)
    ('v1', 'v2')
    >>> without_common_words(["p_v3.1", "p_v3.2"], of_models=True)
    ('v3.1', 'v3.2')
    >>> without_common_words(["EuroSCORE_I", "EuroSCORE_II"], of_models=True)
    ('EuroSCORE_I', 'EuroSCORE_II')
    """
    # Backwards, a word ends with its capital letter.
    backwards = [name[::-1].swapcase() for name in columns]
    before = _common(columns, digits=not of_models)
    after = _common(backwards, digits=not of_models)[::-1].swapcase()
    if of_models and re.search(r"\d\.$", before):
        before = re.sub(r"[A-Za-z]*[\d.]+$", "", before)  # a version is not cut
    if len(before) + len(after) >= min(map(len, columns)):
        after = ""
    inner = tuple(name[len(before) : len(name) - len(after)] for name in columns)
    of_own = of_models and not _GENERIC.issuperset(words(before))
    if of_own and re.fullmatch("[A-Za-z]", min(inner, key=len)):
        inner = tuple(name[: len(name) - len(after)] for name in columns)
    return inner if all(inner) and len({*inner}) == len(inner) else tuple(columns)


#: Words before a letter that may name a model alone.
_GENERIC = SCORE_WORDS | {"model", "pd"}


def _common(columns: Sequence[str], *, digits: bool) -> str:
    """The beginning that all names share, shortened to where a word ends in all: at a sign, a digit if `digits`, or a capital letter."""
    common, last = min(columns), max(columns)
    while common and not (last.startswith(common) and _ends_word(common, columns, digits)):
        common = common[:-1]
    return common


def _ends_word(common: str, columns: Sequence[str], digits: bool) -> bool:
    last = common[-1]
    if not last.isalnum():
        return True
    rest = [name[len(common)] for name in columns if len(name) > len(common)]
    if len(rest) < len(columns) or last.isdigit():
        return False
    return all(
        (c.isdigit() and digits) or not c.isalnum() or (c.isupper() and last.islower())
        for c in rest
    )
