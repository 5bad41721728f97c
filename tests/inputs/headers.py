"""Files of class probabilities with the headers that tools and people write, and whether a reading of one is right.

A file is a style of header, a set of classes, an order of the columns and a seed, which draws the rest: how the label is written, where it
stands, and what other columns there are. Labels are drawn from the probabilities, whose top class is right in about four of five rows.
"""

from __future__ import annotations

import csv
import io
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from tests.inputs.simulated import draw_labels

ROWS = 150


@dataclass(frozen=True)
class Style:
    """How a tool names its columns.

    In `pattern` and in the names of the label and of the prediction, {c} is the class as it is written in the label, {l} in lower and {u} in
    upper case, {s} with underscores, {d} with dots, {C} and {k} in camelCase (with and without a capital at its beginning); {t} is the target,
    and {m} the model.
    """

    tool: str
    pattern: str
    label: str = "label"
    prediction: str = "prediction"


STYLES: tuple[Style, ...] = tuple(
    Style(*line)
    for line in (
        # Prefixes.
        ("prefix p_", "p_{c}"),
        ("prefix prob_", "prob_{c}", "y_true", "y_pred"),
        ("Dataiku", "proba_{c}", "{t}"),
        ("Spark, unpacked", "probability_{c}"),
        ("NannyML", "y_pred_proba_{c}", "y_true", "y_pred"),
        ("Keras", "softmax_{c}", "true_class", "pred_class"),
        ("MATLAB", "score_{c}", "trueLabel", "predictLabel"),
        ("Weights & Biases", "score_{c}", "truth", "guess"),
        ("Alteryx", "Score_{s}", "{t}", "Prediction"),
        ("DataRobot, classes", "class_{c}", "target", "predicted_class"),
        ("PyCaret", "prediction_score_{c}", "{t}", "prediction_label"),
        ("LightAutoML", "prediction_{c}", "{t}", "pred"),
        ("SageMaker", "probabilities_{c}", "{t}", "predicted_label"),
        ("Salford", "PROB_{u}", "RESPONSE", "PREDICTION"),
        ("Snowflake", "PREDICT_PROBA_{u}", "TARGET", "PREDICT"),
        ("LightGBM", "lgb_{c}", "target", "lgb_pred"),
        ("XGBoost", "xgb_prob_{c}", "y_test", "xgb_class"),
        ("statsmodels", "yhat_{c}", "endog", "fitted"),
        ("ranger", "predictions.{d}", "obs"),
        ("randomForest", "votes.{d}", "observed", "predicted"),
        ("mlr3", "prob.{c}", "truth", "response"),
        ("OpenML", "confidence.{c}", "correct"),
        ("tidymodels", ".pred_{c}", "{t}", ".pred_class"),
        ("SAS, procedures", "IP_{c}", "_FROM_", "_INTO_"),
        ("SPSS Modeler", "$RP-{c}", "{t}", "$R-{t}"),
        ("SPSS, networks", "MLP_PseudoProbability_{s}", "{t}", "MLP_PredictedValue"),
        ("Stata", "pr_{s}", "{t}", "yhat"),
        ("Weka, filter", "distribution_{c}", "{t}", "classification"),
        ("model with a number", "model1_prob_{c}", "label", "model1_pred"),
        ("out of fold", "oof_{c}", "target", "oof_pred"),
        ("calibrated", "cal_{c}", "label", "cal_class"),
        ("hyphen", "prob-{c}", "true-label", "pred-label"),
        ("blank", "prob {c}", "true label", "predicted label"),
        ("words", "Probability of {c}", "Truth", "Predicted as"),
        ("TensorBoard", "scores/{c}", "labels/true", "labels/pred"),
        ("bar", "prob|{c}", "label", "argmax"),
        ("equals sign", "class={c}", "actual", "predicted"),
        ("Vowpal Wabbit", "vw:{c}", "label", "vw"),
        # Glued to the prefix.
        ("H2O", "p{d}", "{t}", "predict"),
        ("SAS Enterprise Miner", "P_{t}{s}", "F_{t}", "I_{t}"),
        ("camelCase", "prob{C}", "trueLabel", "predictedLabel"),
        ("camelCase of a method", "predictProba{C}", "yTrue", "yPred"),
        ("PascalCase", "Score{C}", "Label", "PredictedLabel"),
        # With the name of the target.
        ("Kaggle", "{t}_{c}", "{t}", "{t}_pred"),
        ("H2O Driverless AI", "{t}.{c}", "{t}", "{t}_predicted"),
        ("Ludwig", "{t}_probabilities_{c}", "{t}", "{t}_predictions"),
        ("BigQuery", "predicted_{t}_probs_{s}", "{t}", "predicted_{t}"),
        ("SAP", "gb_prob_{t}_{c}", "{t}", "gb_decision_{t}"),
        ("DataRobot", "{t}_{c}_PREDICTION", "{t}", "{t}_PREDICTION"),
        ("Vertex AI", "{t}_{c}_scores", "{t}", "{t}_classes"),
        ("KNIME", "P ({t}={c})", "{t}", "Prediction ({t})"),
        ("conditional", "P({t}={c}|x)", "{t}", "yhat"),
        ("sentence with the target", "probability that {t} is {c}", "{t}", "prediction of {t}"),
        # Brackets and quotes.
        ("RapidMiner", "confidence({c})", "{t}", "prediction({t})"),
        ("Orange", "{m} ({c})", "{t}", "{m}"),
        ("Julia", "pdf({c})", "y", "mode"),
        ("brackets P()", "P({c})", "Y", "Yhat"),
        ("JMP", "Prob[{c}]", "{t}", "Most Likely {t}"),
        ("fastai", "preds[{c}]", "targs", "decoded"),
        ("braces", "p{{{c}}}", "label", "pred"),
        ("angle brackets", "prob<{c}>", "label", "pred"),
        ("index of a frame", "probs['{c}']", "label", "pred"),
        ("tuples", "('proba', '{c}')", "('label', '')", "('pred', '')"),
        ("Azure ML designer", 'Scored Probabilities for Class "{c}"', "{t}", "Scored Labels"),
        ("quoted names", '"{c}"', "label", "pred"),
        ("CatBoost", "Probability:Class={c}", "Label", "Class"),
        ("CatBoost, raw name", "Class={c}", "Label", "Class"),
        # Suffixes.
        ("BigML", "{c} probability", "{t}", "prediction"),
        ("Azure AutoML", "{c}_predicted_proba", "{t}_orig", "{t}_predicted"),
        ("suffix _prob", "{c}_prob", "label", "pred_label"),
        ("suffix _score", "{c}_score", "gold", "system"),
        ("suffix .p", "{c}.p", "y", "y.hat"),
        ("suffix in brackets", "{c} (prob)", "label", "label (pred)"),
        ("suffix -conf", "{c}-conf", "annotation", "output"),
        ("camelCase suffix", "{k}Prob", "actualClass", "predictedClass"),
        ("suffix of the model", "{c}_{m}", "label", "pred_{m}"),
        # Both.
        ("both", "prob_{c}_calibrated", "label", "class_calibrated"),
        ("both, with numbers", "test1_prob_{c}_v2", "label", "test1_class_v2"),
        ("both, blank and bracket", "score of {c} [0-1]", "class", "decision"),
        ("both, with the model", "{m}.prob.{c}.test", "obs", "{m}.class.test"),
        ("dunder", "__{c}__", "label", "pred"),
        # Bare names.
        ("caret", "{c}", "obs", "pred"),
        ("caret, names of R", "{d}", "obs", "pred"),
        ("AutoGluon", "{c}", "{t}", "{t}_pred"),
        ("AutoML benchmark", "{c}", "truth", "predictions"),
        ("Evidently", "{c}", "target", "prediction"),
        ("upper case", "{u}", "LABEL", "PREDICTION"),
    )
)  # fmt: skip


@dataclass(frozen=True)
class ClassSet:
    """Names of classes as labels write them; `numbers` are those that may also be written as 1.0 or True."""

    key: str
    names: tuple[str, ...]

    @property
    def numeric(self) -> bool:
        return all(re.fullmatch(r"-?\d+(\.0)?", name) for name in self.names)

    @property
    def logical(self) -> bool:
        return {*self.names} == {"False", "True"}


CLASS_SETS: tuple[ClassSet, ...] = tuple(
    ClassSet(key, tuple(names.split("/")))
    for key, names in (
        ("words", "cat/dog/fox"),
        ("two words", "ham/spam"),
        ("yes and no", "no/yes"),
        ("booleans", "False/True"),
        ("from 0, two", "0/1"),
        ("from 1, two", "1/2"),
        ("minus one and one", "-1/1"),
        ("from 0", "0/1/2"),
        ("from 1", "1/2/3/4/5"),
        ("with gaps", "2/5/9"),
        ("codes", "200/404/500"),
        ("twelve numbers", "0/1/2/3/4/5/6/7/8/9/10/11"),
        ("floats", "0.0/1.0"),
        ("floats from 1", "1.0/2.0/3.0"),
        ("blanks", "surely not/not sure/sure"),
        ("hyphens", "smoker/ex-smoker/non-smoker"),
        ("a shared ending", "low_risk/medium_risk/high_risk"),
        ("a shared beginning", "virginica/versicolor"),
        ("iris", "setosa/versicolor/virginica"),
        ("dots", "II/I.b/I.a"),
        ("letters", "A/B/C/D/E"),
        ("one in another", "a/ab/abc"),
        ("ages", "0-17/18-64/65+"),
        ("class_1", "class_1/class_2/class_3"),
        ("ordinals", "1st/2nd/3rd"),
        ("accents", "café/thé/eau"),
        ("other scripts", "да/нет/猫"),
        ("sentiment", "negative/neutral/positive"),
        ("events", "alive/dead"),
        ("words of readers", "score/label/pred/class_1"),
        ("more words of readers", "target/prob"),
        ("twelve words", "jan/feb/mar/apr/may/jun/jul/aug/sep/oct/nov/dec"),
    )
)  # fmt: skip

#: The score columns in the order of the classes, sorted as text (0, 1, 10, 11, 2), in reverse, and shuffled.
ORDERS = ("classes", "text", "reversed", "shuffled")

TARGETS = ("Status", "species", "quality", "final_result")
MODELS = ("rf", "Random Forest", "xgb2")


def _camel(name: str) -> str:
    parts = [part for part in re.split(r"[^\w+]|_", name) if part]
    return "".join(part[:1].upper() + part[1:] for part in parts)


def spellings(name: str) -> dict[str, str]:
    """The name of a class by the letter of a pattern; numbers are only ever written in one way."""
    if re.fullmatch(r"-?\d+(\.0)?", name):
        return dict.fromkeys("clusdCk", name)
    camel = _camel(name)
    return {
        "c": name,
        "l": name.lower(),
        "u": re.sub(r"[^\w+]", "_", name).upper(),
        "s": re.sub(r"[^\w+]", "_", name),
        "d": re.sub(r"[^\w+]", ".", name),
        "C": camel,
        "k": camel[:1].lower() + camel[1:],
    }


@dataclass(frozen=True, eq=False)
class HeaderCase:
    """A file and what it must give.

    Attributes
    ----------
    names, codes : tuple of str
        The classes as their names, and as the label column writes them.
    encoding : str
        How: "as named", "upper", "float", "integer", "logical", or "position": the place among the sorted names, which no header tells.
    probs : ndarray, shape (n, K)
        In the order of `names`.
    labels : ndarray, shape (n,)
        Indices into `names`.
    """

    style: Style
    classes: ClassSet
    order: str
    encoding: str
    header: tuple[str, ...]
    content: bytes
    codes: tuple[str, ...]
    probs: np.ndarray
    labels: np.ndarray

    @property
    def names(self) -> tuple[str, ...]:
        return self.classes.names

    def __str__(self) -> str:
        return f"{self.style.tool} x {self.classes.key} x {self.order} ({self.encoding}): {','.join(self.header)}"


def probabilities(k: int, seed: int = 0, rows: int = ROWS) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities with six digits that sum to 1, shape (rows, k), and labels drawn from them; the classes are not equally frequent."""
    rng = np.random.default_rng(seed)
    weights = 0.9 / k * np.linspace(0.6, 1.4, k)
    probs = np.round(rng.dirichlet(weights, size=rows), 6)
    top = probs.argmax(axis=1)
    probs[np.arange(rows), top] = np.round(probs[np.arange(rows), top] + 1 - probs.sum(axis=1), 6)
    return probs, draw_labels(probs, rng)


def csv_bytes(columns: Mapping[str, Sequence[object]]) -> bytes:
    """The columns as text separated by commas; only the header needs quotes."""
    stream = io.StringIO()
    csv.writer(stream, lineterminator="\n").writerow(columns)
    rows = zip(*(map(str, values) for values in columns.values()), strict=True)
    return (stream.getvalue() + "\n".join(map(",".join, rows)) + "\n").encode()


@cache
def _drawn(k: int, seed: int) -> tuple[np.ndarray, np.ndarray, tuple[tuple[str, ...], ...]]:
    """Probabilities, labels, and the probabilities as texts, column by column."""
    probs, labels = probabilities(k, seed)
    return probs, labels, tuple(tuple(map(str, column)) for column in probs.T.tolist())


def encodings(classes: ClassSet) -> dict[str, tuple[str, ...]]:
    """The ways in which a column of labels may write these classes."""
    names = classes.names
    ways = {"as named": names}
    if classes.logical:
        return ways | {
            "upper": ("FALSE", "TRUE"), "lower": ("false", "true"), "integer": ("0", "1"), "float": ("0.0", "1.0"),
        }  # fmt: skip
    if classes.numeric:
        ways["float"] = tuple(f"{float(name):.1f}" for name in names)
        ways["integer"] = tuple(f"{float(name):.0f}" for name in names)
        if {float(name) for name in names} == {0, 1}:
            ways["logical"] = ("False", "True")
        return ways
    places = sorted(names)
    ways["upper"] = tuple(name.upper() for name in names)
    ways["position"] = tuple(str(places.index(name)) for name in names)
    return ways


def _ordered(names: Sequence[str], order: str, rng: np.random.Generator) -> list[int]:
    k = len(names)
    match order:
        case "classes":
            return list(range(k))
        case "reversed":
            return list(range(k))[::-1]
        case "text":
            return sorted(range(k), key=lambda j: names[j])
    return rng.permutation(k).tolist()


def _free(name: str, taken: set[str]) -> str:
    """The name, or another one if a class already has it."""
    others = ("given_class", "model_class", "model_output", "decision_made")
    folded = {t.casefold() for t in taken}
    found = next(n for n in (name, *others) if n.casefold() not in folded)
    taken.add(found)
    return found


def header_case(
    style: Style, classes: ClassSet, order: str, *, encoding: str | None = None, seed: int = 0
) -> HeaderCase:
    """Write one file; what is not given is drawn."""
    rng = np.random.default_rng(zlib.crc32(f"{style.tool}/{classes.key}/{order}/{seed}".encode()))
    names, k = classes.names, len(classes.names)
    ways = encodings(classes)
    if encoding is None:
        # Positions are rare: no header says what they mean.
        weights = np.array([1.0 if way == "as named" else 0.2 if way == "position" else 0.5 for way in ways])  # fmt: skip
        encoding = str(rng.choice(list(ways), p=weights / weights.sum()))
    codes = ways[encoding]
    probs, labels, cells = _drawn(k, int(rng.integers(3)))
    words = {"t": str(rng.choice(TARGETS)), "m": str(rng.choice(MODELS))}
    scores = [
        (style.pattern.format(**spellings(names[j]), **words), cells[j])
        for j in _ordered(names, order, rng)
    ]
    taken = {name for name, _ in scores}
    assert len(taken) == k, (style, classes)
    label = (_free(style.label.format(**words), taken), [codes[y] for y in labels])
    before: list[tuple[str, Sequence[str]]] = []
    after: list[tuple[str, Sequence[str]]] = []
    if rng.random() < 0.4:
        name = _free(style.prediction.format(**words), taken)
        chosen = [codes[y] for y in probs.argmax(axis=1)]
        (before if rng.random() < 0.5 else after).append((name, chosen))
    if rng.random() < 0.4:
        start = int(rng.integers(2))
        name = _free(str(rng.choice(["id", "row_id", "sample", ""])), taken)
        before.insert(0, (name, [str(i + start) for i in range(ROWS)]))
    if rng.random() < 0.25:
        name = _free(str(rng.choice(["split", "partition", "set"])), taken)
        (before if rng.random() < 0.5 else after).append((name, rng.choice(["cal", "test"], ROWS).tolist()))  # fmt: skip
    if rng.random() < 0.35:
        before.append((_free("age", taken), rng.integers(18, 90, ROWS).astype(str).tolist()))
        after.append((_free("ratio", taken), np.round(rng.random(ROWS), 3).astype(str).tolist()))
    middle = [label, *scores] if rng.random() < 0.5 else [*scores, label]
    columns = [*before, *middle, *after]
    return HeaderCase(
        style=style,
        classes=classes,
        order=order,
        encoding=encoding,
        header=tuple(name for name, _ in columns),
        content=csv_bytes(dict(columns)),
        codes=codes,
        probs=probs,
        labels=labels,
    )


def orders(classes: ClassSet) -> tuple[str, ...]:
    """The orders that differ: two of two classes, three of more."""
    if len(classes.names) == 2:
        return ("classes", "reversed")
    sorted_as_text = classes.names == tuple(sorted(classes.names))
    return ("classes", "reversed" if sorted_as_text else "text", "shuffled")


def combinations() -> list[tuple[Style, ClassSet, str]]:
    """Every style with every set of classes, in every order of the columns."""
    return [
        (style, classes, order)
        for style in STYLES
        for classes in CLASS_SETS
        for order in orders(classes)
    ]


def cases(chosen: Sequence[tuple[Style, ClassSet, str]], seed: int = 0) -> Iterator[HeaderCase]:
    """The files of some combinations."""
    return (header_case(*one, seed=seed) for one in chosen)


# ---- Is a reading right?


def folded(name: str) -> str:
    """A name without regard to case, separators, quotes, and whether a number is written as 1, 1.0 or True."""
    text = {"false": "0", "true": "1"}.get(name.strip().casefold(), name.strip().casefold())
    if re.fullmatch(r"-?\d+(\.\d+)?", text):
        return f"{float(text):g}"
    return re.sub(r"[\W_]+", "", text) or text


def fault(
    data: Any,
    names: Sequence[str],
    probs: np.ndarray,
    labels: np.ndarray,
    codes: Sequence[str] = (),
) -> str:
    """What is wrong with predictions that were read; empty if each score and each label belongs to the class of its name.

    Parameters
    ----------
    data : Predictions or ConfidencePredictions
    names, codes : sequence of str
        The names of the classes, and how labels write them, if in another way.
    probs : ndarray, shape (n, K)
    labels : ndarray, shape (n,)
    """
    k = len(names)
    found = getattr(data, "probs", None)
    if found is None:
        return "read as confidences, not as the probabilities of the classes"
    if found.shape != probs.shape:
        return f"scores of shape {found.shape}, not {probs.shape}"
    place = [int(np.abs(probs - found[:, [j]]).max(axis=0).argmin()) for j in range(k)]
    if np.abs(found - probs[:, place]).max() > 1e-4:
        return "the scores are other numbers"
    if sorted(place) != list(range(k)):
        return "a column was read twice"
    read = np.array(place)[data.labels]
    if not np.array_equal(read, labels):
        share = float((read == labels).mean())
        accuracy = float((found.argmax(axis=1) == data.labels).mean())
        return f"labels and scores do not belong together ({share:.0%} of the labels; accuracy {accuracy:.2f})"
    own = [{folded(names[j]), *(folded(code) for code in codes[j : j + 1])} for j in range(k)]
    for name, j in zip(data.class_names, place, strict=True):
        swapped = any(folded(name) in own[i] for i in range(k) if i != j)
        if swapped and folded(name) not in own[j]:
            return f"class '{names[j]}' is called '{name}'"
    return ""


def untidy(data: Any, case: HeaderCase) -> bool:
    """Whether a right reading shows class names that are neither those of the labels nor those of the header."""
    known = {folded(text) for name in case.names for text in spellings(name).values()}
    known |= {folded(code) for code in case.codes}
    return any(folded(name) not in known for name in data.class_names)
