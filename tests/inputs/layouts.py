"""Predictions in the layouts of about 190 exports of other tools, each with what it must give."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass

import numpy as np

N = 240


@dataclass
class Layout:
    """A file, the classes, their probabilities of shape (n, K), the true ones, and what else must be found."""

    name: str
    content: bytes
    classes: tuple[str, ...]
    p: np.ndarray
    y: np.ndarray
    event: int | None = None
    suffix: str = ".csv"
    models: dict[str, np.ndarray] | None = None
    #: Confidences and whether the predictions were right, or None.
    confidence: tuple[np.ndarray, np.ndarray] | None = None
    asks: bool = False


def data(k: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of K classes, and which of them is true."""
    rng = np.random.default_rng(seed)
    p = np.round(rng.dirichlet(np.full(k, 0.7), N), 5)
    p[:, -1] = np.clip(np.round(1 - p[:, :-1].sum(axis=1), 5), 0, 1)
    below = p.cumsum(axis=1) / p.sum(axis=1, keepdims=True)
    return p, (rng.random((N, 1)) >= below).sum(axis=1)


def rows_csv(columns, sep=",", decimal=".", quote=csv.QUOTE_MINIMAL, bom=False):
    out = io.StringIO()
    w = csv.writer(out, delimiter=sep, quoting=quote, lineterminator="\n")
    w.writerow(columns)

    def cell(v):
        if isinstance(v, float):
            return f"{v:.6f}".rstrip("0").rstrip(".").replace(".", decimal)
        return v

    for row in zip(*columns.values(), strict=True):
        w.writerow([cell(v) for v in row])
    return (b"\xef\xbb\xbf" if bom else b"") + out.getvalue().encode()


def jsonl(columns):
    rows = zip(*columns.values(), strict=True)
    lines = [dict(zip(columns, row, strict=True)) for row in rows]
    return "\n".join(json.dumps(line, default=lambda v: v.item()) for line in lines).encode()


CASES: list[Layout] = []
PETS = ("cat", "dog", "fox")


def case(name, content, classes, p, y, **found):
    CASES.append(Layout(name, content, tuple(map(str, classes)), p, y, **found))


def block(
    name,
    classes,
    head,
    seed,
    label="label",
    *,
    texts=None,
    order=None,
    extra=None,
    before=False,
    event=1,
    logits=False,
    suffix=".csv",
    argmax=None,
    **dialect,
):
    """head: format of a column from the class; order: order of the columns; texts: how the label spells the classes; event: place of the positive one of two."""
    p, y = data(len(classes), seed)
    texts = texts or classes
    columns = dict(extra or {})
    truth = {label: [texts[j] for j in y]}
    if before:
        columns |= truth
    for j in order or range(len(classes)):
        columns[head.format(c=classes[j])] = np.log(p[:, j] + 1e-4) if logits else p[:, j]
    if argmax:
        columns[argmax] = [texts[j] for j in p.argmax(1)]
    if not before:
        columns |= truth
    if logits:
        p = (p + 1e-4) / (p + 1e-4).sum(1, keepdims=True)
    content = jsonl(columns) if suffix == ".jsonl" else rows_csv(columns, **dialect)
    event = event if len(classes) == 2 else None
    case(name, content, classes, p, y, event=event, suffix=suffix)


def single(name, score, label, texts, seed, *, of=1, known=True, **more):
    """One column, of class `of`; known: whether its name says which class that is."""
    event = 1 if known else None
    block(name, texts, score, seed, label, texts=texts, order=(of,), event=event, **more)


ids = {"id": range(1000, 1000 + N)}
row_names = {"": range(1, N + 1)}
row_ids = {"row_ids": range(1, N + 1)}
features = {
    "age": np.random.default_rng(3).integers(18, 90, N),
    "income": np.round(np.random.default_rng(4).lognormal(10, 1, N), 2),
    "sex": np.random.default_rng(5).choice(["m", "f"], N),
}
three = ("setosa", "versicolor", "virginica")
# --- scikit-learn
block("sk_frame", ("0", "1", "2"), "{c}", 1, "y_true")
block("sk_frame_shuffled", ("0", "1", "2"), "{c}", 2, "y_true", order=(2, 0, 1))
block("sk_index", three, "{c}", 3, "species", extra=row_names)
block("sk_proba_", three, "proba_{c}", 4, "species", order=(1, 2, 0))
block("sk_numeric_label_alphabet", three, "proba_{c}", 5, "y", texts=(0, 1, 2))
block("sk_class_n", ("0", "1", "2", "3"), "class_{c}", 6, "target", order=(3, 1, 0, 2))
block("sk_proba_class", ("0", "1"), "proba_class_{c}", 7, "y_test")
block("sk_proba_class_rev", ("0", "1"), "proba_class_{c}", 8, "y_test", order=(1, 0))
block("sk_p1_p0", ("0", "1"), "p{c}", 9, "y", order=(1, 0))
block("sk_bool", ("False", "True"), "p_{c}", 10, "y", order=(1, 0), texts=(False, True))
block("sk_tf_lower", ("false", "true"), "prob_{c}", 11, "target", order=(1, 0), texts=(0, 1))
block("sk_float_label", ("0", "1", "2"), "prob_{c}", 12, "y", texts=("0.0", "1.0", "2.0"))
block("sk_float_head", ("0", "1", "2"), "prob_{c}.0", 13, "y", texts=(0, 1, 2), order=(1, 2, 0))
block("sk_from1", ("1", "2", "3"), "p_{c}", 14, "y", order=(2, 1, 0))
block("sk_eleven", tuple(map(str, range(12))), "prob_{c}", 15, order=sorted(range(12), key=str))
block(
    "sk_eleven_idx1",
    tuple(map(str, range(1, 13))),
    "P({c})",
    16,
    order=sorted(range(12), key=lambda j: str(j + 1)),
)
block("sk_tuple", three, "('prob', '{c}')", 17, "species")
block("sk_npstr", three, "p[{c}]", 18, "target", order=(2, 1, 0))
# --- R
block("caret", ("No", "Yes"), "{c}", 19, "obs", argmax="pred", extra=row_names)
block("caret_rev", ("No", "Yes"), "{c}", 20, "obs", argmax="pred", order=(1, 0))
block(
    "caret_resample",
    ("neg", "pos"),
    "{c}",
    21,
    "obs",
    argmax="pred",
    extra={"rowIndex": range(1, N + 1), "Resample": ["Fold" + str(i % 5 + 1) for i in range(N)]},
)
block("tidymodels", three, ".pred_{c}", 22, "Species", argmax=".pred_class", order=(0, 2, 1))
block("tidymodels_bin", ("Yes", "No"), ".pred_{c}", 23, "Attrition", argmax=".pred_class", event=0)
block(
    "tidymodels_row",
    ("good", "bad"),
    ".pred_{c}",
    24,
    "Status",
    argmax=".pred_class",
    extra={"id": ["train/test split"] * N, ".row": range(1, N + 1)},
)
block("mlr3", three, "prob.{c}", 25, "truth", argmax="response", extra=row_ids, before=True)
block(
    "mlr3_bin",
    ("M", "R"),
    "prob.{c}",
    26,
    "truth",
    argmax="response",
    extra=row_ids,
    before=True,
    order=(1, 0),
    event=None,
)
block("mlr_old", ("neg", "pos"), "prob.{c}", 27, "truth", argmax="response", before=True)
block("ranger", three, "{c}", 28, "Species", before=True)
block(
    "ranger_dots",
    ("low.risk", "high.risk"),
    "{c}",
    29,
    "outcome",
    texts=("low risk", "high risk"),
    event=None,
)
block("r_X_names", ("1", "2", "3"), "X{c}", 30, "class")
block("r_semicolon", three, "{c}", 31, "Species", sep=";", decimal=",")
block(
    "r_posterior_lda",
    three,
    "posterior.{c}",
    32,
    "Species",
    argmax="class",
    extra={
        "x.LD1": np.random.default_rng(1).normal(size=N),
        "x.LD2": np.random.default_rng(2).normal(size=N),
    },
)
block("r_nnet_quoted", ("a b", "a", "a b c"), "{c}", 33, "y", quote=csv.QUOTE_NONNUMERIC)
single("glm_fitted", "fitted", "admit", (0, 1), 34, before=True)
single("glm_response", "prob", "default", ("No", "Yes"), 35, before=True)
single("rpart", "Yes", "Survived", ("No", "Yes"), 36)
# --- SAS
block("sas_p_ip", ("0", "1"), "P_BAD{c}", 37, "BAD", order=(1, 0), before=True)
block("sas_ip", three, "IP_{c}", 38, "_FROM_", argmax="_INTO_", before=True)
p, y = data(2, 39)
block(
    "sas_P_Target",
    ("N", "Y"),
    "P_churn{c}",
    39,
    "churn",
    order=(1, 0),
    extra={
        "_WARN_": [""] * N,
        "I_churn": [("N", "Y")[j] for j in p.argmax(1)],
        "EM_PROBABILITY": p.max(1),
    },
)
block("sas_em", ("GOOD", "BAD"), "P_Status{c}", 40, "Status")
single("sas_phat", "phat", "remiss", (0, 1), 41)
single("sas_logistic_LEVEL", "_P_", "event", (0, 1), 42)
# --- SPSS
single("spss_PRE_1", "PRE_1", "default", (0, 1), 43, argmax="PGR_1")
block("spss_dis", ("1", "2", "3"), "Dis1_{c}", 44, "region", argmax="Dis_1")
block(
    "spss_tree",
    ("1", "2"),
    "PredictedProbability_{c}",
    45,
    "buyer",
    argmax="PredictedValue",
    texts=("1", "2"),
    event=None,
)
block("spss_est", ("1", "2", "3"), "EST{c}_1", 46, "choice", argmax="PRE_1")
block("spss_modeler", ("F", "T"), "$RP-{c}", 47, "churn")
# --- Weka, Orange, KNIME, RapidMiner
block(
    "orange",
    ("Iris-setosa", "Iris-versicolor", "Iris-virginica"),
    "Random Forest ({c})",
    48,
    "iris",
    argmax="Random Forest",
)
block(
    "orange_lr",
    ("no", "yes"),
    "Logistic Regression ({c})",
    49,
    "survived",
    argmax="Logistic Regression",
    order=(1, 0),
)
block("knime", three, "P (Species={c})", 50, "Species", argmax="Prediction (Species)")
block(
    "knime_bin",
    ("no", "yes"),
    "P (churn={c})",
    51,
    "churn",
    argmax="Prediction (churn)",
    order=(1, 0),
)
block("knime_dup", ("0", "1"), "P (Churn={c}) (#1)", 52, "Churn", order=(1, 0))
block("rapidminer", three, "confidence({c})", 53, argmax="prediction(label)")
block(
    "rapidminer_yes",
    ("no", "yes"),
    "confidence({c})",
    54,
    "Future Customer",
    argmax="prediction(Future Customer)",
    order=(1, 0),
)


# --- H2O
def h2o(name, classes, head, seed):
    p, _ = data(len(classes), seed)
    predicted = {"predict": [classes[j] for j in p.argmax(1)]}
    block(name, classes, head, seed, "actual", extra=predicted)


h2o("h2o_bin", ("0", "1"), "p{c}", 55)
h2o("h2o_multi", PETS, "{c}", 56)
h2o("h2o_digits", tuple("0123456789"), "p{c}", 57)
p, y = data(2, 58)
columns = {
    "predict": p.argmax(1),
    "p0": p[:, 0],
    "p1": p[:, 1],
    "cal_p0": np.clip(p[:, 0] ** 1.3, 0, 1),
    "cal_p1": 1 - np.clip(p[:, 0] ** 1.3, 0, 1),
    "IsDepDelayed": y,
}
both = {"model": columns["p1"], "cal": columns["cal_p1"]}
case("h2o_cal", rows_csv(columns), ("0", "1"), p, y, models=both)
# --- DataRobot
block(
    "datarobot",
    ("False", "True"),
    "readmitted_{c}_PREDICTION",
    59,
    "readmitted",
    order=(1, 0),
    extra={
        "row_id": range(N),
        "DEPLOYMENT_APPROVAL_STATUS": ["APPROVED"] * N,
        "THRESHOLD": [0.5] * N,
        "POSITIVE_CLASS": ["True"] * N,
    },
)
block("datarobot_1_0", ("0.0", "1.0"), "Prediction {c}", 60, "is_bad", texts=(0, 1), order=(1, 0))
block("datarobot_class", ("0", "1"), "Class_{c}", 61, "y", order=(1, 0))
block(
    "datarobot_multi",
    ("Very Low", "Low", "High"),
    "risk_{c}_PREDICTION",
    62,
    "risk",
    order=(2, 0, 1),
)
# --- AutoGluon, PyCaret, FLAML, fastai
block("autogluon", (" <=50K", " >50K"), "{c}", 63, "class", event=None)
block("autogluon_bin", ("0", "1"), "{c}", 64, "target")
block("autogluon_bin_rev", ("0", "1"), "{c}", 65, "target", order=(1, 0))
p, y = data(2, 66)
columns = {
    "AGE": np.arange(N),
    "Purchase": [("CH", "MM")[j] for j in y],
    "prediction_label": [("CH", "MM")[j] for j in p.argmax(1)],
    "prediction_score": p.max(1),
}
case("pycaret", rows_csv(columns), ("CH", "MM"), p, y, confidence=(p.max(1), p.argmax(1) == y))
block(
    "pycaret_raw",
    ("CH", "MM"),
    "prediction_score_{c}",
    67,
    "Purchase",
    argmax="prediction_label",
    before=True,
    event=None,
)
block(
    "pycaret_raw01",
    ("0", "1"),
    "prediction_score_{c}",
    68,
    "default",
    argmax="prediction_label",
    before=True,
)
p, y = data(3, 69)
columns = {
    "species": [three[j] for j in y],
    "Label": [three[j] for j in p.argmax(1)],
    "Score": p.max(1),
}
case("pycaret_old", rows_csv(columns), three, p, y, confidence=(p.max(1), p.argmax(1) == y))
block("fastai", ("3", "7"), "{c}_prob", 70, "targ", event=None)
# --- Vertex, BigQuery
block("vertex", three, "species_{c}_scores", 71, "species")
p, y = data(2, 72)
columns = {
    "income": [("no", "yes")[j] for j in y],
    "predicted_income_scores": [[float(a) for a in r] for r in p],
    "predicted_income_classes": [["no", "yes"]] * N,
}
case("vertex_arrays", jsonl(columns), ("no", "yes"), p, y, event=1, suffix=".jsonl")
columns = {
    "income": [("no", "yes")[j] for j in y],
    "predicted_income": [
        {"classes": ["yes", "no"], "scores": [float(a) for a in r[::-1]]} for r in p
    ],
}
case("vertex_arrays_rev", jsonl(columns), ("no", "yes"), p, y, event=1, suffix=".jsonl")
columns = {
    "predicted_label": [int(j) for j in p.argmax(1)],
    "predicted_label_probs": [
        [{"label": 1, "prob": float(r[1])}, {"label": 0, "prob": float(r[0])}] for r in p
    ],
    "label": [int(j) for j in y],
}
case("bqml", jsonl(columns), ("0", "1"), p, y, event=1, suffix=".jsonl")
columns = {
    "predicted_churn": [["no", "yes"][j] for j in p.argmax(1)],
    "predicted_churn_probs": [
        sorted(
            [{"label": "yes", "prob": float(r[1])}, {"label": "no", "prob": float(r[0])}],
            key=lambda d: -d["prob"],
        )
        for r in p
    ],
    "churn": [["no", "yes"][j] for j in y],
}
case("bqml_sorted", jsonl(columns), ("no", "yes"), p, y, event=1, suffix=".jsonl")
block("bq_flat", ("0", "1"), "prob_{c}", 73, order=(1, 0), suffix=".jsonl")
# --- Spark
p, y = data(3, 74)
columns = {
    "label": y.astype(float),
    "prediction": p.argmax(1).astype(float),
    "probability": ["[" + ",".join(f"{a:.5f}" for a in r) + "]" for r in p],
}
case("spark_vec", rows_csv(columns), ("0", "1", "2"), p, y)
columns = {
    "label": y.astype(float),
    "probability": [{"type": 1, "values": [float(a) for a in r]} for r in p],
    "prediction": p.argmax(1).astype(float),
}
case("spark_vec_json", jsonl(columns), ("0", "1", "2"), p, y, suffix=".jsonl")
p, y = data(2, 75)
columns = {
    "label": y.astype(float),
    "rawPrediction": [f"[{-a:.4f},{a:.4f}]" for a in np.log((p[:, 1] + 1e-4) / (p[:, 0] + 1e-4))],
    "probability": ["[" + ",".join(f"{a:.5f}" for a in r) + "]" for r in p],
    "prediction": p.argmax(1).astype(float),
}
case("spark_bin_raw", rows_csv(columns), ("0", "1"), p, y, event=1)
columns = {
    "label": y,
    "probability": ["DenseVector([" + ", ".join(f"{a:.5f}" for a in r) + "])" for r in p],
}
case("spark_ml_sparse", rows_csv(columns), ("0", "1"), p, y, event=1)
# --- W&B
p, y = data(3, 76)
content = json.dumps(
    {
        "columns": ["id", "guess", "truth", "score_cat", "score_dog", "score_fox"],
        "data": [
            [i, PETS[r.argmax()], PETS[t], *map(float, r)]
            for i, (r, t) in enumerate(zip(p, y, strict=False))
        ],
    }
).encode()
case("wandb", content, PETS, p, y, suffix=".table.json")
# --- Excel style (semicolon, decimal comma, percent, bom)
block(
    "excel_de",
    ("nein", "ja"),
    "P({c})",
    77,
    "Ergebnis",
    sep=";",
    decimal=",",
    bom=True,
    order=(1, 0),
    event=None,
)
block(
    "excel_de_klasse",
    ("gut", "mittel", "schlecht"),
    "Wahrscheinlichkeit {c}",
    78,
    "Klasse",
    sep=";",
    decimal=",",
    bom=True,
)
block(
    "excel_fr", ("non", "oui"), "Probabilité {c}", 79, "Réponse", sep=";", decimal=",", event=None
)
block("excel_es", ("bajo", "medio", "alto"), "prob_{c}", 80, "Clase", sep=";")
single("fr_single", "probabilité", "décès", (0, 1), 81, sep=";", decimal=",")
single("de_single", "Wahrscheinlichkeit", "Ausfall", (0, 1), 82, sep=";", decimal=",")
single("de_ja_nein", "Wahrscheinlichkeit", "Ausfall", ("nein", "ja"), 83, sep=";", decimal=",")
single("es_single", "probabilidad", "muerte", ("no", "sí"), 84)
p, y = data(2, 85)
columns = {
    "name": [f"n{i}" for i in range(N)],
    "risk": [f"{100 * a:.1f}%" for a in p[:, 1]],
    "outcome": y,
}
case("percent_text", rows_csv(columns), ("0", "1"), np.round(p, 3), y, event=1)
columns = {
    "Nr": range(N),
    "P(ja)": [f"{100 * a:.2f} %".replace(".", ",") for a in p[:, 1]],
    "P(nein)": [f"{100 * a:.2f} %".replace(".", ",") for a in p[:, 0]],
    "Ergebnis": [("nein", "ja")[j] for j in y],
}
case("percent_comma", rows_csv(columns, sep=";"), ("nein", "ja"), np.round(p, 4), y)
columns = {
    "probabilità_sì": p[:, 1],
    "probabilità_no": p[:, 0],
    "esito": [("no", "sì")[j] for j in y],
}
case("it", rows_csv(columns), ("no", "sì"), p, y)
# --- class names that are awkward
block("prefixes", ("cat", "category", "cat_dog"), "prob_{c}", 90, "truth", order=(2, 0, 1))
block("prefixes_suffix", ("a", "aa", "ba"), "{c}_prob", 91, "truth", order=(2, 0, 1))
block("digits_in", ("t1", "t10", "t2"), "p_{c}", 92, "stage", order=(1, 0, 2))
block("spaces", ("New York", "York", "New"), "score: {c}", 93, "city", order=(1, 2, 0))
block("spaces_underscored", ("New York", "Old Town", "Bay"), "prob_{c}", 94, "city")
p, y = data(3, 95)
columns = {
    "prob.New.York": p[:, 1],
    "prob.Bay.Area": p[:, 0],
    "prob.St..Ives": p[:, 2],
    "city": [("Bay Area", "New York", "St. Ives")[j] for j in y],
}
case("r_mangled", rows_csv(columns), ("Bay Area", "New York", "St. Ives"), p, y)
block("underscored", ("class_a", "class_b", "a"), "p_{c}", 96, "y_true", order=(2, 1, 0))
block("none_class", ("none", "mild", "severe"), "p_{c}", 97, "grade", order=(2, 1, 0))
block("na_class", ("NA", "EU", "AS"), "p_{c}", 98, "region")
block("unicode", ("größer", "gleich", "kleiner"), "p_{c}", 99, "Klasse")
block("years", ("2019", "2020", "2021"), "p_{c}", 100, "year", order=(2, 0, 1))
block("years_bare", ("2019", "2020", "2021"), "{c}", 101, "year", order=(2, 0, 1))
block("grades", ("1.5", "2.0", "2.5"), "p_{c}", 102, "grade", order=(2, 0, 1))
block("negatives", ("-1", "0", "1"), "p_{c}", 103, "sentiment", order=(2, 0, 1))
block("neg_two", ("-1", "1"), "p_{c}", 104, "y", order=(1, 0))
block("gaps", ("1", "3", "7"), "proba_{c}", 105, "digit", order=(2, 0, 1))
block("upper", ("CAT", "DOG", "FOX"), "prob_{c}", 106, "true_label", texts=PETS, order=(1, 2, 0))
block(
    "classnames_in_words", ("no risk", "risk", "high risk"), "p({c})", 107, "level", order=(2, 1, 0)
)
block("event_nonevent", ("event", "no event"), "p_{c}", 108, "outcome", event=0)
block("score_suffix", ("A", "B", "C"), "{c}.score", 109, "gold", argmax="pred")
block("model_class", ("A", "B", "C"), "xgb_{c}", 110, "gold", argmax="pred", order=(2, 0, 1))
block("camel", ("Cat", "Dog", "Fox"), "prob{c}", 111, "trueLabel", order=(2, 0, 1))
block("camel_p", ("Cat", "Dog", "Fox"), "p{c}", 112, "animal", order=(2, 0, 1))
block("label_idx_named_cols", PETS, "p_{c}", 113, texts=(0, 1, 2))
block("label_idx_named_cols_shuffled", PETS, "p_{c}", 114, texts=(0, 1, 2), order=(2, 0, 1))
block("label_idx1_named", PETS, "p_{c}", 115, texts=(1, 2, 3))
block("bool_named", ("legit", "fraud"), "p_{c}", 116, "is_fraud", texts=(False, True), order=(1, 0))
block("bool01_named", ("legit", "fraud"), "p_{c}", 117, "is_fraud", texts=(0, 1), order=(1, 0))
block("churn_cols", ("stay", "churn"), "{c}", 118, "churned", texts=(0, 1), order=(1, 0))
block("pos_neg", ("negative", "positive"), "{c}", 119, "sentiment", order=(1, 0))
block("pn_labels01", ("negative", "positive"), "p_{c}", 120, "y", texts=(0, 1), order=(1, 0))
block("yes_no_frame", ("No", "Yes"), "class_{c}", 121, "y", order=(1, 0))
block("yes_no_lower", ("No", "Yes"), "Probability of {c}", 122, "Response", order=(1, 0))
block("logits_named", PETS, "logit_{c}", 123, order=(2, 0, 1), logits=True)
block("logits_num", ("0", "1", "2"), "logits_{c}", 124, "y", logits=True)
block("logp", PETS, "logprob_{c}", 125, order=(2, 0, 1), logits=True)
# --- confidences
p, y = data(4, 126)
names4 = ("a", "b", "c", "d")
columns = {
    "file": [f"i{i}.png" for i in range(N)],
    "true": [names4[j] for j in y],
    "predicted": [names4[j] for j in p.argmax(1)],
    "confidence": p.max(1),
}
case("conf3", rows_csv(columns), names4, p, y, confidence=(p.max(1), p.argmax(1) == y))
columns = {
    "question": range(N),
    "confidence": p.max(1),
    "correct": [bool(v) for v in p.argmax(1) == y],
}
case("conf_correct", rows_csv(columns), names4, p, y, confidence=(p.max(1), p.argmax(1) == y))
columns = {
    "question": range(N),
    "confidence": np.round(100 * p.max(1)).astype(int),
    "is_correct": (p.argmax(1) == y).astype(int),
}
stated = np.round(100 * p.max(1)) / 100
case("conf_pct", rows_csv(columns), names4, p, y, confidence=(stated, p.argmax(1) == y))
columns = {
    "image": [f"i{i}.png" for i in range(N)],
    "cls_true": [names4[j] for j in y],
    "cls_pred": [names4[j] for j in p.argmax(1)],
    "conf": p.max(1),
}
case("yolo", rows_csv(columns), names4, p, y, confidence=(p.max(1), p.argmax(1) == y))
# K > 2, confidence beside label that is of the event class? P of the true class
columns = {
    "true_label": [names4[j] for j in y],
    "pred_label": [names4[j] for j in p.argmax(1)],
    "prob": p[np.arange(N), y],
}
case("p_true_class", rows_csv(columns), names4, p, y, asks=True)
# --- models
p, y = data(2, 130)


def noisy(s):
    z = np.log((p[:, 1] + 1e-3) / (p[:, 0] + 1e-3))
    return np.round(1 / (1 + np.exp(-(z + np.random.default_rng(s).normal(0, 0.7, N)))), 5)


for heads, lab, words in [
    ("mlp,forest", "label", (0, 1)),
    ("mlp,forest", "label", ("no", "yes")),
    ("LightGBM,CatBoost,TabNet", "y", (0, 1)),
    ("baseline,candidate", "churned", (0, 1)),
    ("gpt-4o,claude", "correct_answer", ("no", "yes")),
    ("logreg_p,forest_p", "target", (0, 1)),
    ("nb,svm", "diagnosis", ("benign", "malignant")),
    ("nb,svm", "diagnosis", ("B", "M")),
    ("p_old,p_new", "y", (0, 1)),
    ("clinician,model", "died", (0, 1)),
    ("uncalibrated,isotonic", "y_true", (0, 1)),
    ("m1,m2", "label", ("neg", "pos")),
]:
    scores = dict(zip(heads.split(","), map(noisy, (1, 2, 3)), strict=False))
    columns = {"id": range(N)} | scores | {lab: [words[j] for j in y]}
    case(f"models[{heads}|{lab}|{words}]", rows_csv(columns), words, p, y, models=scores)
# --- single
single("single_id", "score", "label", (0, 1), 140, extra=ids)
single("single_feat", "probability", "purchased", (0, 1), 141, extra=features)
single("single_feat_text", "pred_proba", "churn", ("No", "Yes"), 142, extra=features, before=True)
single("single_p_yes", "p_yes", "y", ("no", "yes"), 143)
single("single_p_no", "p_no", "y", ("no", "yes"), 144, of=0, known=False)
single("single_prob_1", "prob_1", "y", (0, 1), 145)
single("single_prob_0", "prob_0", "y", (0, 1), 146, of=0, known=False)
single("single_minus", "score", "y", (-1, 1), 147)
single("single_12", "probability", "class", (1, 2), 148, known=False)
single("single_risk", "risk_score", "readmit_30d", (0, 1), 149)
single("single_tf", "fraud_probability", "isFraud", (False, True), 150)
single("single_dead", "p_death", "status", ("alive", "dead"), 151)
single("single_survival", "survival_prob", "died", (0, 1), 152, of=0, known=False)
single("single_mb", "prob", "diagnosis", ("B", "M"), 153, known=False)
single("single_kaggle", "Predicted", "Actual", (0, 1), 154, extra=ids)
single("single_yhat", "y_hat", "y", (0, 1), 155)
single("single_pred", "pred", "target", (0, 1), 156)
single("single_pd", "PD", "default_flag", (0, 1), 157, extra=features)
single("single_thr", "prob", "actual", (0, 1), 158, argmax="predicted")
single("single_text01", "proba", "label", ("0", "1"), 159, quote=csv.QUOTE_ALL)
single("single_benign", "p_malignant", "truth", ("benign", "malignant"), 160)
single("single_benign_rev", "p_benign", "truth", ("benign", "malignant"), 161, of=0, known=False)
single("single_tab", "probability", "label", ("ham", "spam"), 162, sep="\t")
single("single_win", "win_prob", "won", (0, 1), 163)
single("single_rain", "forecast", "rain", (0, 1), 164)
single("single_rain_txt", "pop", "rained", ("dry", "wet"), 165, known=False)
# complement in other order with unknown words
block("two_unknown", ("B", "M"), "p_{c}", 170, "diagnosis", order=(1, 0), event=None)
block("two_unknown_idx", ("B", "M"), "p_{c}", 171, "diagnosis", texts=(0, 1), event=None)
block(
    "two_unknown_idx_rev",
    ("B", "M"),
    "p_{c}",
    172,
    "diagnosis",
    texts=(0, 1),
    order=(1, 0),
    event=None,
)
block("abc_none", ("0", "1", "2"), "{c}", 173, order=(1, 0, 2))
p, y = data(3, 174)
columns = {"x": p[:, 0], "y": p[:, 1], "z": p[:, 2], "label": y}
case("position_abc", rows_csv(columns), ("x", "y", "z"), p, y)
content = "\n".join(
    ",".join([*(f"{v:.5f}" for v in r), str(t)]) for r, t in zip(p, y, strict=False)
).encode()
case("noheader", content, ("0", "1", "2"), p, y)
columns = {f"p_{c}": p[:, j] for j, c in enumerate("xyz")} | {
    f"true_{c}": (y == j).astype(int) for j, c in ((2, "z"), (0, "x"), (1, "y"))
}
case("onehot", rows_csv(columns), ("x", "y", "z"), p, y)
columns = {f"y_{c}": (y == j).astype(int) for j, c in enumerate(PETS)} | {
    f"prob_{c}": p[:, j] for j, c in ((1, "dog"), (2, "fox"), (0, "cat"))
}
case("onehot_shuffled", rows_csv(columns), PETS, p, y)
columns = {
    "id": np.repeat(np.arange(N), 3),
    "class": PETS * N,
    "prob": p.ravel(),
    "is_true": (np.eye(3)[y]).astype(int).ravel(),
}
case("long", rows_csv(columns), PETS, p, y)
columns = {
    "fold": [i % 5 for i in range(N)],
    "y_true": [PETS[j] for j in y],
    "y_pred": [PETS[j] for j in p.argmax(1)],
    "proba_dog": p[:, 1],
    "proba_cat": p[:, 0],
    "proba_fox": p[:, 2],
}
case("groupfolds", rows_csv(columns), PETS, p, y)
columns = {
    "survived": [("no", "maybe", "yes")[j] for j in y],
    'Scored Probabilities for Class "no"': p[:, 0],
    'Scored Probabilities for Class "yes"': p[:, 2],
    'Scored Probabilities for Class "maybe"': p[:, 1],
    "Scored Labels": [("no", "maybe", "yes")[j] for j in p.argmax(1)],
}
case("azureml", rows_csv(columns), ("no", "maybe", "yes"), p, y)
columns = {
    "text": ["t"] * N,
    "gold": [PETS[j] for j in y],
    "scores": [
        [
            {"label": c, "score": float(r[j])}
            for j, c in sorted(enumerate(PETS), key=lambda t: -r[t[0]])
        ]
        for r in p
    ],
}
case("hf_topk", jsonl(columns), PETS, p, y, suffix=".jsonl")
columns = {
    "label": [PETS[j] for j in y],
    "probs": [{PETS[j]: float(r[j]) for j in (1, 2, 0)} for r in p],
}
case("nested_dict", jsonl(columns), PETS, p, y, suffix=".jsonl")
columns = {"p_" + c: p[:, j] for j, c in enumerate(PETS)} | {
    "label": [("cat", "dog", "dog")[j] for j in y]
}
case("missing_class", rows_csv(columns), PETS, p, np.where(y == 2, 1, y))
columns = {
    "previous_class": [PETS[j] for j in np.random.default_rng(1).integers(0, 3, N)],
    "class": [PETS[j] for j in y],
} | {"p_" + c: p[:, j] for j, c in enumerate(PETS)}
case("prev_true", rows_csv(columns), PETS, p, y)
columns = {
    "rater1": [PETS[j] for j in y],
    "rater2": [PETS[j if i % 5 else (j + 1) % 3] for i, j in enumerate(y)],
} | {"p_" + c: p[:, j] for j, c in enumerate(PETS)}
case("two_annotators", rows_csv(columns), PETS, p, y)
