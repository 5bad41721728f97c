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


def rows_csv(columns, sep=",", decimal=".", quote=csv.QUOTE_MINIMAL, bom=False, enc="utf-8"):
    out = io.StringIO()
    w = csv.writer(out, delimiter=sep, quoting=quote, lineterminator="\n")
    w.writerow(columns)

    def cell(v):
        if isinstance(v, (float, np.floating)):
            return (
                (f"{v:.6f}").rstrip("0").rstrip(".").replace(".", decimal)
                if not np.isnan(v)
                else ""
            )
        if isinstance(v, (bool, np.bool_)):
            return str(bool(v))
        return v

    for row in zip(*columns.values(), strict=False):
        w.writerow([cell(v) for v in row])
    return (b"\xef\xbb\xbf" if bom else b"") + out.getvalue().encode(enc)


def jsonl(columns):
    def c(v):
        if isinstance(v, np.generic):
            return v.item()
        return v

    return "\n".join(
        json.dumps({k: c(v) for k, v in zip(columns, row, strict=False)})
        for row in zip(*columns.values(), strict=False)
    ).encode()


CASES: list[Layout] = []


def case(name, content, classes, p, y, event=None, suffix=".csv", models=None, conf=None):
    asks = conf == "ask" if isinstance(conf, str) else False
    CASES.append(
        Layout(
            name,
            content,
            tuple(map(str, classes)),
            p,
            y,
            event,
            suffix,
            models,
            None if asks else conf,
            asks,
        )
    )


def block(
    name,
    classes,
    head,
    seed,
    *,
    label="label",
    texts=None,
    order=None,
    extra=None,
    before=False,
    kw=None,
    event=None,
    wrap=rows_csv,
    logits=False,
    suffix=".csv",
    argmax=None,
    scale=1,
):
    """head: format of a column from the class; order: order of the columns; texts: how the label spells the classes."""
    p, y = data(len(classes), seed)
    texts = texts or classes
    order = order or range(len(classes))
    cols = {}
    if extra:
        cols |= extra(p, y, classes)
    lab = [texts[j] for j in y]
    if before:
        cols[label] = lab
    for j in order:
        v = p[:, j]
        if logits:
            v = np.log(v + 1e-4)
        cols[head.format(c=classes[j], j=j, j1=j + 1, f=classes[j][0] if classes[j] else "")] = (
            v * scale
        )
    if argmax:
        cols[argmax] = [texts[j] for j in p.argmax(1)]
    if not before:
        cols[label] = lab
    q = p
    if logits:
        q = p + 1e-4
        q = q / q.sum(1, keepdims=True)
    case(name, wrap(cols, **(kw or {})), classes, q, y, event=event, suffix=suffix)


def single(
    name,
    score,
    label,
    texts,
    seed,
    event=1,
    extra=None,
    before=False,
    kw=None,
    of=1,
    known=True,
    wrap=rows_csv,
    suffix=".csv",
    pred=None,
):
    p, y = data(2, seed)
    cols = dict(extra(p, y) if extra else {})
    lab = [texts[j] for j in y]
    if before:
        cols[label] = lab
    cols[score] = p[:, of]
    if pred:
        cols[pred] = [texts[j] for j in (p[:, 1] >= 0.5).astype(int)]
    if not before:
        cols[label] = lab
    case(
        name,
        wrap(cols, **(kw or {})),
        tuple(str(t) for t in texts),
        p,
        y,
        event=1 if known else None,
        suffix=suffix,
    )


def ids(p, y, c=None):
    return {"id": list(range(1000, 1000 + len(y)))}


def feat(p, y, c=None):
    return {
        "age": np.random.default_rng(3).integers(18, 90, len(y)),
        "income": np.round(np.random.default_rng(4).lognormal(10, 1, len(y)), 2),
        "sex": np.random.default_rng(5).choice(["m", "f"], len(y)),
    }


def rown(p, y, c=None):
    return {"": list(range(1, len(y) + 1))}


three = ("setosa", "versicolor", "virginica")
# --- scikit-learn
block("sk_frame", ("0", "1", "2"), "{c}", 1, label="y_true")
block("sk_frame_shuffled", ("0", "1", "2"), "{c}", 2, label="y_true", order=(2, 0, 1))
block("sk_index", three, "{c}", 3, label="species", extra=rown)
block("sk_proba_", three, "proba_{c}", 4, label="species", order=(1, 2, 0))
block("sk_numeric_label_alphabet", three, "proba_{c}", 5, label="y", texts=(0, 1, 2))
block("sk_class_n", ("0", "1", "2", "3"), "class_{c}", 6, label="target", order=(3, 1, 0, 2))
block("sk_proba_class", ("0", "1"), "proba_class_{c}", 7, label="y_test", event=1)
block("sk_proba_class_rev", ("0", "1"), "proba_class_{c}", 8, label="y_test", order=(1, 0), event=1)
block("sk_p1_p0", ("0", "1"), "p{c}", 9, label="y", order=(1, 0), event=1)
block(
    "sk_bool", ("False", "True"), "p_{c}", 10, label="y", order=(1, 0), event=1, texts=(False, True)
)
block(
    "sk_tf_lower",
    ("false", "true"),
    "prob_{c}",
    11,
    label="target",
    order=(1, 0),
    event=1,
    texts=(0, 1),
)
block("sk_float_label", ("0", "1", "2"), "prob_{c}", 12, label="y", texts=("0.0", "1.0", "2.0"))
block(
    "sk_float_head", ("0", "1", "2"), "prob_{c}.0", 13, label="y", texts=(0, 1, 2), order=(1, 2, 0)
)
block("sk_from1", ("1", "2", "3"), "p_{c}", 14, label="y", order=(2, 1, 0))
block(
    "sk_eleven",
    tuple(str(j) for j in range(12)),
    "prob_{c}",
    15,
    label="label",
    order=sorted(range(12), key=str),
)
block(
    "sk_eleven_idx1",
    tuple(str(j) for j in range(1, 13)),
    "P({c})",
    16,
    label="label",
    order=sorted(range(12), key=lambda j: str(j + 1)),
)
block("sk_tuple", three, "('prob', '{c}')", 17, label="species")
block("sk_npstr", three, "p[{c}]", 18, label="target", order=(2, 1, 0))
# --- R
block("caret", ("No", "Yes"), "{c}", 19, label="obs", argmax="pred", extra=rown, event=1)
block("caret_rev", ("No", "Yes"), "{c}", 20, label="obs", argmax="pred", order=(1, 0), event=1)
block(
    "caret_resample",
    ("neg", "pos"),
    "{c}",
    21,
    label="obs",
    argmax="pred",
    event=1,
    extra=lambda p, y, c: {
        "rowIndex": list(range(1, len(y) + 1)),
        "Resample": ["Fold" + str(i % 5 + 1) for i in range(len(y))],
    },
)
block("tidymodels", three, ".pred_{c}", 22, label="Species", argmax=".pred_class", order=(0, 2, 1))
block(
    "tidymodels_bin",
    ("Yes", "No"),
    ".pred_{c}",
    23,
    label="Attrition",
    argmax=".pred_class",
    event=0,
)
block(
    "tidymodels_row",
    ("good", "bad"),
    ".pred_{c}",
    24,
    label="Status",
    argmax=".pred_class",
    event=1,
    extra=lambda p, y, c: {"id": ["train/test split"] * len(y), ".row": list(range(1, len(y) + 1))},
)
block(
    "mlr3",
    three,
    "prob.{c}",
    25,
    label="truth",
    argmax="response",
    extra=lambda p, y, c: {"row_ids": list(range(1, len(y) + 1))},
    before=True,
)
block(
    "mlr3_bin",
    ("M", "R"),
    "prob.{c}",
    26,
    label="truth",
    argmax="response",
    extra=lambda p, y, c: {"row_ids": list(range(1, len(y) + 1))},
    before=True,
    order=(1, 0),
)
block(
    "mlr_old",
    ("neg", "pos"),
    "prob.{c}",
    27,
    label="truth",
    argmax="response",
    before=True,
    event=1,
)
block("ranger", three, "{c}", 28, label="Species", before=True)
block(
    "ranger_dots",
    ("low.risk", "high.risk"),
    "{c}",
    29,
    label="outcome",
    texts=("low risk", "high risk"),
)
block("r_X_names", ("1", "2", "3"), "X{c}", 30, label="class")
block("r_semicolon", three, "{c}", 31, label="Species", kw={"sep": ";", "decimal": ","})
block(
    "r_posterior_lda",
    three,
    "posterior.{c}",
    32,
    label="Species",
    argmax="class",
    extra=lambda p, y, c: {
        "x.LD1": np.random.default_rng(1).normal(size=len(y)),
        "x.LD2": np.random.default_rng(2).normal(size=len(y)),
    },
)
block(
    "r_nnet_quoted", ("a b", "a", "a b c"), "{c}", 33, label="y", kw={"quote": csv.QUOTE_NONNUMERIC}
)
single("glm_fitted", "fitted", "admit", (0, 1), 34, before=True)
single("glm_response", "prob", "default", ("No", "Yes"), 35, before=True)
single("rpart", "Yes", "Survived", ("No", "Yes"), 36)
# --- SAS
block("sas_p_ip", ("0", "1"), "P_BAD{c}", 37, label="BAD", order=(1, 0), event=1, before=True)
block("sas_ip", three, "IP_{c}", 38, label="_FROM_", argmax="_INTO_", before=True)
block(
    "sas_P_Target",
    ("N", "Y"),
    "P_churn{c}",
    39,
    label="churn",
    order=(1, 0),
    event=1,
    extra=lambda p, y, c: {
        "_WARN_": [""] * len(y),
        "I_churn": [("N", "Y")[j] for j in p.argmax(1)],
        "EM_PROBABILITY": p.max(1),
    },
)
block("sas_em", ("GOOD", "BAD"), "P_Status{c}", 40, label="Status", event=1)
single("sas_phat", "phat", "remiss", (0, 1), 41)
single("sas_logistic_LEVEL", "_P_", "event", (0, 1), 42)
# --- SPSS
single("spss_PRE_1", "PRE_1", "default", (0, 1), 43, pred="PGR_1")
block("spss_dis", ("1", "2", "3"), "Dis1_{c}", 44, label="region", argmax="Dis_1")
block(
    "spss_tree",
    ("1", "2"),
    "PredictedProbability_{c}",
    45,
    label="buyer",
    argmax="PredictedValue",
    texts=("1", "2"),
)
block("spss_est", ("1", "2", "3"), "EST{c}_1", 46, label="choice", argmax="PRE_1")
block("spss_modeler", ("F", "T"), "$RP-{c}", 47, label="churn", event=1)
# --- Weka, Orange, KNIME, RapidMiner
block(
    "orange",
    ("Iris-setosa", "Iris-versicolor", "Iris-virginica"),
    "Random Forest ({c})",
    48,
    label="iris",
    argmax="Random Forest",
)
block(
    "orange_lr",
    ("no", "yes"),
    "Logistic Regression ({c})",
    49,
    label="survived",
    argmax="Logistic Regression",
    order=(1, 0),
    event=1,
)
block("knime", three, "P (Species={c})", 50, label="Species", argmax="Prediction (Species)")
block(
    "knime_bin",
    ("no", "yes"),
    "P (churn={c})",
    51,
    label="churn",
    argmax="Prediction (churn)",
    order=(1, 0),
    event=1,
)
block("knime_dup", ("0", "1"), "P (Churn={c}) (#1)", 52, label="Churn", event=1, order=(1, 0))
block("rapidminer", three, "confidence({c})", 53, label="label", argmax="prediction(label)")
block(
    "rapidminer_yes",
    ("no", "yes"),
    "confidence({c})",
    54,
    label="Future Customer",
    argmax="prediction(Future Customer)",
    order=(1, 0),
    event=1,
)


# --- H2O
def h2o(name, classes, seed, event=None, rev=False):
    p, y = data(len(classes), seed)
    cols = {"predict": [classes[j] for j in p.argmax(1)]} | {
        ("p" + c if c.isdigit() else c): p[:, j] for j, c in enumerate(classes)
    }
    cols["actual"] = [classes[j] for j in y]
    case(name, rows_csv(cols), classes, p, y, event=event)


h2o("h2o_bin", ("0", "1"), 55, event=1)
h2o("h2o_multi", ("cat", "dog", "fox"), 56)
h2o("h2o_digits", tuple("0123456789"), 57)
p, y = data(2, 58)
case(
    "h2o_cal",
    rows_csv(
        {
            "predict": p.argmax(1),
            "p0": p[:, 0],
            "p1": p[:, 1],
            "cal_p0": np.clip(p[:, 0] ** 1.3, 0, 1),
            "cal_p1": 1 - np.clip(p[:, 0] ** 1.3, 0, 1),
            "IsDepDelayed": y,
        }
    ),
    ("0", "1"),
    p,
    y,
    event=1,
)
# --- DataRobot
block(
    "datarobot",
    ("False", "True"),
    "readmitted_{c}_PREDICTION",
    59,
    label="readmitted",
    order=(1, 0),
    event=1,
    extra=lambda p, y, c: {
        "row_id": list(range(len(y))),
        "DEPLOYMENT_APPROVAL_STATUS": ["APPROVED"] * len(y),
        "THRESHOLD": [0.5] * len(y),
        "POSITIVE_CLASS": ["True"] * len(y),
    },
)
block(
    "datarobot_1_0",
    ("0.0", "1.0"),
    "Prediction {c}",
    60,
    label="is_bad",
    texts=(0, 1),
    order=(1, 0),
    event=1,
)
block("datarobot_class", ("0", "1"), "Class_{c}", 61, label="y", event=1, order=(1, 0))
block(
    "datarobot_multi",
    ("Very Low", "Low", "High"),
    "risk_{c}_PREDICTION",
    62,
    label="risk",
    order=(2, 0, 1),
)
# --- AutoGluon, PyCaret, FLAML, fastai
block("autogluon", (" <=50K", " >50K"), "{c}", 63, label="class")
block("autogluon_bin", ("0", "1"), "{c}", 64, label="target", event=1)
block("autogluon_bin_rev", ("0", "1"), "{c}", 65, label="target", event=1, order=(1, 0))
p, y = data(2, 66)
case(
    "pycaret",
    rows_csv(
        {
            "AGE": np.arange(N),
            "Purchase": [("CH", "MM")[j] for j in y],
            "prediction_label": [("CH", "MM")[j] for j in p.argmax(1)],
            "prediction_score": p.max(1),
        }
    ),
    ("CH", "MM"),
    p,
    y,
    conf=(p.max(1), p.argmax(1) == y),
)
block(
    "pycaret_raw",
    ("CH", "MM"),
    "prediction_score_{c}",
    67,
    label="Purchase",
    argmax="prediction_label",
    before=True,
)
block(
    "pycaret_raw01",
    ("0", "1"),
    "prediction_score_{c}",
    68,
    label="default",
    argmax="prediction_label",
    before=True,
    event=1,
)
p, y = data(3, 69)
case(
    "pycaret_old",
    rows_csv(
        {
            "species": [three[j] for j in y],
            "Label": [three[j] for j in p.argmax(1)],
            "Score": p.max(1),
        }
    ),
    three,
    p,
    y,
    conf=(p.max(1), p.argmax(1) == y),
)
block("fastai", ("3", "7"), "{c}_prob", 70, label="targ")
# --- Vertex, BigQuery
block("vertex", three, "species_{c}_scores", 71, label="species")
p, y = data(2, 72)
case(
    "vertex_arrays",
    jsonl(
        {
            "income": [("no", "yes")[j] for j in y],
            "predicted_income_scores": [[float(a) for a in r] for r in p],
            "predicted_income_classes": [["no", "yes"]] * N,
        }
    ),
    ("no", "yes"),
    p,
    y,
    event=1,
    suffix=".jsonl",
)
case(
    "vertex_arrays_rev",
    jsonl(
        {
            "income": [("no", "yes")[j] for j in y],
            "predicted_income": [
                {"classes": ["yes", "no"], "scores": [float(a) for a in r[::-1]]} for r in p
            ],
        }
    ),
    ("no", "yes"),
    p,
    y,
    event=1,
    suffix=".jsonl",
)
case(
    "bqml",
    jsonl(
        {
            "predicted_label": [int(j) for j in p.argmax(1)],
            "predicted_label_probs": [
                [{"label": 1, "prob": float(r[1])}, {"label": 0, "prob": float(r[0])}] for r in p
            ],
            "label": [int(j) for j in y],
        }
    ),
    ("0", "1"),
    p,
    y,
    event=1,
    suffix=".jsonl",
)
case(
    "bqml_sorted",
    jsonl(
        {
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
    ),
    ("no", "yes"),
    p,
    y,
    event=1,
    suffix=".jsonl",
)
block(
    "bq_flat",
    ("0", "1"),
    "prob_{c}",
    73,
    label="label",
    order=(1, 0),
    event=1,
    wrap=lambda c, **k: jsonl(c),
    suffix=".jsonl",
)
# --- Spark
p, y = data(3, 74)
case(
    "spark_vec",
    rows_csv(
        {
            "label": y.astype(float),
            "prediction": p.argmax(1).astype(float),
            "probability": ["[" + ",".join(f"{a:.5f}" for a in r) + "]" for r in p],
        }
    ),
    ("0", "1", "2"),
    p,
    y,
)
case(
    "spark_vec_json",
    jsonl(
        {
            "label": y.astype(float),
            "probability": [{"type": 1, "values": [float(a) for a in r]} for r in p],
            "prediction": p.argmax(1).astype(float),
        }
    ),
    ("0", "1", "2"),
    p,
    y,
    suffix=".jsonl",
)
p, y = data(2, 75)
case(
    "spark_bin_raw",
    rows_csv(
        {
            "label": y.astype(float),
            "rawPrediction": [
                f"[{-a:.4f},{a:.4f}]" for a in np.log((p[:, 1] + 1e-4) / (p[:, 0] + 1e-4))
            ],
            "probability": ["[" + ",".join(f"{a:.5f}" for a in r) + "]" for r in p],
            "prediction": p.argmax(1).astype(float),
        }
    ),
    ("0", "1"),
    p,
    y,
    event=1,
)
case(
    "spark_ml_sparse",
    rows_csv(
        {
            "label": y,
            "probability": ["DenseVector([" + ", ".join(f"{a:.5f}" for a in r) + "])" for r in p],
        }
    ),
    ("0", "1"),
    p,
    y,
    event=1,
)
# --- W&B
p, y = data(3, 76)
case(
    "wandb",
    json.dumps(
        {
            "columns": ["id", "guess", "truth", "score_cat", "score_dog", "score_fox"],
            "data": [
                [i, ["cat", "dog", "fox"][r.argmax()], ["cat", "dog", "fox"][t], *map(float, r)]
                for i, (r, t) in enumerate(zip(p, y, strict=False))
            ],
        }
    ).encode(),
    ("cat", "dog", "fox"),
    p,
    y,
    suffix=".table.json",
)
# --- Excel style (semicolon, decimal comma, percent, bom)
block(
    "excel_de",
    ("nein", "ja"),
    "P({c})",
    77,
    label="Ergebnis",
    kw={"sep": ";", "decimal": ",", "bom": True},
    order=(1, 0),
)
block(
    "excel_de_klasse",
    ("gut", "mittel", "schlecht"),
    "Wahrscheinlichkeit {c}",
    78,
    label="Klasse",
    kw={"sep": ";", "decimal": ",", "bom": True},
)
block(
    "excel_fr",
    ("non", "oui"),
    "Probabilité {c}",
    79,
    label="Réponse",
    kw={"sep": ";", "decimal": ","},
)
block("excel_es", ("bajo", "medio", "alto"), "prob_{c}", 80, label="Clase", kw={"sep": ";"})
single("fr_single", "probabilité", "décès", (0, 1), 81, kw={"sep": ";", "decimal": ","})
single("de_single", "Wahrscheinlichkeit", "Ausfall", (0, 1), 82, kw={"sep": ";", "decimal": ","})
single(
    "de_ja_nein",
    "Wahrscheinlichkeit",
    "Ausfall",
    ("nein", "ja"),
    83,
    kw={"sep": ";", "decimal": ","},
)
single("es_single", "probabilidad", "muerte", ("no", "sí"), 84)
p, y = data(2, 85)
case(
    "percent_text",
    rows_csv(
        {
            "name": [f"n{i}" for i in range(N)],
            "risk": [f"{100 * a:.1f}%" for a in p[:, 1]],
            "outcome": y,
        }
    ),
    ("0", "1"),
    np.round(p, 3),
    y,
    event=1,
)
case(
    "percent_comma",
    rows_csv(
        {
            "Nr": list(range(N)),
            "P(ja)": [f"{100 * a:.2f} %".replace(".", ",") for a in p[:, 1]],
            "P(nein)": [f"{100 * a:.2f} %".replace(".", ",") for a in p[:, 0]],
            "Ergebnis": [("nein", "ja")[j] for j in y],
        },
        sep=";",
    ),
    ("nein", "ja"),
    np.round(p, 4),
    y,
)
case(
    "it",
    rows_csv(
        {
            "probabilità_sì": p[:, 1],
            "probabilità_no": p[:, 0],
            "esito": [("no", "sì")[j] for j in y],
        }
    ),
    ("no", "sì"),
    p,
    y,
)
# --- class names that are awkward
block("prefixes", ("cat", "category", "cat_dog"), "prob_{c}", 90, label="truth", order=(2, 0, 1))
block("prefixes_suffix", ("a", "aa", "ba"), "{c}_prob", 91, label="truth", order=(2, 0, 1))
block("digits_in", ("t1", "t10", "t2"), "p_{c}", 92, label="stage", order=(1, 0, 2))
block("spaces", ("New York", "York", "New"), "score: {c}", 93, label="city", order=(1, 2, 0))
block("spaces_underscored", ("New York", "Old Town", "Bay"), "prob_{c}", 94, label="city")
p, y = data(3, 95)
case(
    "r_mangled",
    rows_csv(
        {
            "prob.New.York": p[:, 1],
            "prob.Bay.Area": p[:, 0],
            "prob.St..Ives": p[:, 2],
            "city": [("Bay Area", "New York", "St. Ives")[j] for j in y],
        }
    ),
    ("Bay Area", "New York", "St. Ives"),
    p,
    y,
)
block("underscored", ("class_a", "class_b", "a"), "p_{c}", 96, label="y_true", order=(2, 1, 0))
block("none_class", ("none", "mild", "severe"), "p_{c}", 97, label="grade", order=(2, 1, 0))
block("na_class", ("NA", "EU", "AS"), "p_{c}", 98, label="region")
block("unicode", ("größer", "gleich", "kleiner"), "p_{c}", 99, label="Klasse")
block("years", ("2019", "2020", "2021"), "p_{c}", 100, label="year", order=(2, 0, 1))
block("years_bare", ("2019", "2020", "2021"), "{c}", 101, label="year", order=(2, 0, 1))
block("grades", ("1.5", "2.0", "2.5"), "p_{c}", 102, label="grade", order=(2, 0, 1))
block("negatives", ("-1", "0", "1"), "p_{c}", 103, label="sentiment", order=(2, 0, 1))
block("neg_two", ("-1", "1"), "p_{c}", 104, label="y", order=(1, 0), event=1)
block("gaps", ("1", "3", "7"), "proba_{c}", 105, label="digit", order=(2, 0, 1))
block(
    "upper",
    ("CAT", "DOG", "FOX"),
    "prob_{c}",
    106,
    label="true_label",
    texts=("cat", "dog", "fox"),
    order=(1, 2, 0),
)
block(
    "classnames_in_words",
    ("no risk", "risk", "high risk"),
    "p({c})",
    107,
    label="level",
    order=(2, 1, 0),
)
block("event_nonevent", ("event", "no event"), "p_{c}", 108, label="outcome", event=0)
block("score_suffix", ("A", "B", "C"), "{c}.score", 109, label="gold", argmax="pred")
block("model_class", ("A", "B", "C"), "xgb_{c}", 110, label="gold", argmax="pred", order=(2, 0, 1))
block("camel", ("Cat", "Dog", "Fox"), "prob{c}", 111, label="trueLabel", order=(2, 0, 1))
block("camel_p", ("Cat", "Dog", "Fox"), "p{c}", 112, label="animal", order=(2, 0, 1))
block("label_idx_named_cols", ("cat", "dog", "fox"), "p_{c}", 113, label="label", texts=(0, 1, 2))
block(
    "label_idx_named_cols_shuffled",
    ("cat", "dog", "fox"),
    "p_{c}",
    114,
    label="label",
    texts=(0, 1, 2),
    order=(2, 0, 1),
)
block("label_idx1_named", ("cat", "dog", "fox"), "p_{c}", 115, label="label", texts=(1, 2, 3))
block(
    "bool_named",
    ("legit", "fraud"),
    "p_{c}",
    116,
    label="is_fraud",
    texts=(False, True),
    order=(1, 0),
    event=1,
)
block(
    "bool01_named",
    ("legit", "fraud"),
    "p_{c}",
    117,
    label="is_fraud",
    texts=(0, 1),
    order=(1, 0),
    event=1,
)
block(
    "churn_cols",
    ("stay", "churn"),
    "{c}",
    118,
    label="churned",
    texts=(0, 1),
    order=(1, 0),
    event=1,
)
block("pos_neg", ("negative", "positive"), "{c}", 119, label="sentiment", order=(1, 0), event=1)
block(
    "pn_labels01",
    ("negative", "positive"),
    "p_{c}",
    120,
    label="y",
    texts=(0, 1),
    order=(1, 0),
    event=1,
)
block("yes_no_frame", ("No", "Yes"), "class_{c}", 121, label="y", order=(1, 0), event=1)
block(
    "yes_no_lower",
    ("No", "Yes"),
    "Probability of {c}",
    122,
    label="Response",
    order=(1, 0),
    event=1,
)
block(
    "logits_named",
    ("cat", "dog", "fox"),
    "logit_{c}",
    123,
    label="label",
    order=(2, 0, 1),
    logits=True,
)
block("logits_num", ("0", "1", "2"), "logits_{c}", 124, label="y", logits=True)
block(
    "logp", ("cat", "dog", "fox"), "logprob_{c}", 125, label="label", order=(2, 0, 1), logits=True
)
# --- confidences
p, y = data(4, 126)
names4 = ("a", "b", "c", "d")
case(
    "conf3",
    rows_csv(
        {
            "file": [f"i{i}.png" for i in range(N)],
            "true": [names4[j] for j in y],
            "predicted": [names4[j] for j in p.argmax(1)],
            "confidence": p.max(1),
        }
    ),
    names4,
    p,
    y,
    conf=(p.max(1), p.argmax(1) == y),
)
case(
    "conf_correct",
    rows_csv(
        {
            "question": list(range(N)),
            "confidence": p.max(1),
            "correct": [bool(v) for v in p.argmax(1) == y],
        }
    ),
    names4,
    p,
    y,
    conf=(p.max(1), p.argmax(1) == y),
)
case(
    "conf_pct",
    rows_csv(
        {
            "question": list(range(N)),
            "confidence": np.round(100 * p.max(1)).astype(int),
            "is_correct": (p.argmax(1) == y).astype(int),
        }
    ),
    names4,
    p,
    y,
    conf=(np.round(100 * p.max(1)) / 100, p.argmax(1) == y),
)
case(
    "yolo",
    rows_csv(
        {
            "image": [f"i{i}.png" for i in range(N)],
            "cls_true": [names4[j] for j in y],
            "cls_pred": [names4[j] for j in p.argmax(1)],
            "conf": p.max(1),
        }
    ),
    names4,
    p,
    y,
    conf=(p.max(1), p.argmax(1) == y),
)
# K > 2, confidence beside label that is of the event class? P of the true class
pt = p[np.arange(N), y]
case(
    "p_true_class",
    rows_csv(
        {
            "true_label": [names4[j] for j in y],
            "pred_label": [names4[j] for j in p.argmax(1)],
            "prob": pt,
        }
    ),
    names4,
    p,
    y,
    conf="ask",
)
# --- models
rng = np.random.default_rng(9)
p, y = data(2, 130)


def noisy(s):
    z = np.log((p[:, 1] + 1e-3) / (p[:, 0] + 1e-3))
    return np.round(1 / (1 + np.exp(-(z + np.random.default_rng(s).normal(0, 0.7, N)))), 5)


a, b, c = noisy(1), noisy(2), noisy(3)
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
    cols = {"id": list(range(N))}
    hs = heads.split(",")
    sc = dict(zip(hs, (a, b, c), strict=False))
    cols |= sc
    cols[lab] = [words[j] for j in y]
    case(f"models[{heads}|{lab}|{words}]", rows_csv(cols), tuple(map(str, words)), p, y, models=sc)
# --- single
single("single_id", "score", "label", (0, 1), 140, extra=lambda p, y: ids(p, y))
single("single_feat", "probability", "purchased", (0, 1), 141, extra=lambda p, y: feat(p, y))
single(
    "single_feat_text",
    "pred_proba",
    "churn",
    ("No", "Yes"),
    142,
    extra=lambda p, y: feat(p, y),
    before=True,
)
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
single("single_kaggle", "Predicted", "Actual", (0, 1), 154, extra=lambda p, y: ids(p, y))
single("single_yhat", "y_hat", "y", (0, 1), 155)
single("single_pred", "pred", "target", (0, 1), 156)
single("single_pd", "PD", "default_flag", (0, 1), 157, extra=lambda p, y: feat(p, y))
single("single_thr", "prob", "actual", (0, 1), 158, pred="predicted")
single("single_text01", "proba", "label", ("0", "1"), 159, kw={"quote": csv.QUOTE_ALL})
single("single_benign", "p_malignant", "truth", ("benign", "malignant"), 160)
single("single_benign_rev", "p_benign", "truth", ("benign", "malignant"), 161, of=0, known=False)
single("single_tab", "probability", "label", ("ham", "spam"), 162, kw={"sep": "\t"})
single("single_win", "win_prob", "won", (0, 1), 163)
single("single_rain", "forecast", "rain", (0, 1), 164)
single("single_rain_txt", "pop", "rained", ("dry", "wet"), 165, known=False)
# complement in other order with unknown words
block("two_unknown", ("B", "M"), "p_{c}", 170, label="diagnosis", order=(1, 0))
block("two_unknown_idx", ("B", "M"), "p_{c}", 171, label="diagnosis", texts=(0, 1))
block(
    "two_unknown_idx_rev", ("B", "M"), "p_{c}", 172, label="diagnosis", texts=(0, 1), order=(1, 0)
)
block("abc_none", ("0", "1", "2"), "{c}", 173, label="label", kw={}, order=(1, 0, 2))
p, y = data(3, 174)
case(
    "position_abc",
    rows_csv({"x": p[:, 0], "y": p[:, 1], "z": p[:, 2], "label": y}),
    ("x", "y", "z"),
    p,
    y,
)
case(
    "noheader",
    "\n".join(
        ",".join([*(f"{v:.5f}" for v in r), str(t)]) for r, t in zip(p, y, strict=False)
    ).encode(),
    ("0", "1", "2"),
    p,
    y,
)
case(
    "onehot",
    rows_csv(
        {f"p_{c}": p[:, j] for j, c in enumerate("xyz")}
        | {f"true_{c}": (y == j).astype(int) for j, c in ((2, "z"), (0, "x"), (1, "y"))}
    ),
    ("x", "y", "z"),
    p,
    y,
)
case(
    "onehot_shuffled",
    rows_csv(
        {f"y_{c}": (y == j).astype(int) for j, c in enumerate(("cat", "dog", "fox"))}
        | {f"prob_{c}": p[:, j] for j, c in ((1, "dog"), (2, "fox"), (0, "cat"))}
    ),
    ("cat", "dog", "fox"),
    p,
    y,
)
case(
    "long",
    rows_csv(
        {
            "id": np.repeat(np.arange(N), 3),
            "class": ["cat", "dog", "fox"] * N,
            "prob": p.ravel(),
            "is_true": (np.eye(3)[y]).astype(int).ravel(),
        }
    ),
    ("cat", "dog", "fox"),
    p,
    y,
)
case(
    "groupfolds",
    rows_csv(
        {
            "fold": [i % 5 for i in range(N)],
            "y_true": [("cat", "dog", "fox")[j] for j in y],
            "y_pred": [("cat", "dog", "fox")[j] for j in p.argmax(1)],
            "proba_dog": p[:, 1],
            "proba_cat": p[:, 0],
            "proba_fox": p[:, 2],
        }
    ),
    ("cat", "dog", "fox"),
    p,
    y,
)
case(
    "azureml",
    rows_csv(
        {
            "survived": [("no", "maybe", "yes")[j] for j in y],
            'Scored Probabilities for Class "no"': p[:, 0],
            'Scored Probabilities for Class "yes"': p[:, 2],
            'Scored Probabilities for Class "maybe"': p[:, 1],
            "Scored Labels": [("no", "maybe", "yes")[j] for j in p.argmax(1)],
        }
    ),
    ("no", "maybe", "yes"),
    p,
    y,
)
case(
    "hf_topk",
    jsonl(
        {
            "text": ["t"] * N,
            "gold": [("cat", "dog", "fox")[j] for j in y],
            "scores": [
                [
                    {"label": c, "score": float(r[j])}
                    for j, c in sorted(enumerate(("cat", "dog", "fox")), key=lambda t: -r[t[0]])
                ]
                for r in p
            ],
        }
    ),
    ("cat", "dog", "fox"),
    p,
    y,
    suffix=".jsonl",
)
case(
    "nested_dict",
    jsonl(
        {
            "label": [("cat", "dog", "fox")[j] for j in y],
            "probs": [
                dict(
                    zip(
                        ("dog", "fox", "cat"), (float(r[1]), float(r[2]), float(r[0])), strict=False
                    )
                )
                for r in p
            ],
        }
    ),
    ("cat", "dog", "fox"),
    p,
    y,
    suffix=".jsonl",
)
case(
    "missing_class",
    rows_csv(
        {"p_" + c: p[:, j] for j, c in enumerate(("cat", "dog", "fox"))}
        | {"label": [("cat", "dog", "dog")[j] for j in y]}
    ),
    ("cat", "dog", "fox"),
    p,
    np.where(y == 2, 1, y),
)
case(
    "prev_true",
    rows_csv(
        {
            "previous_class": [
                ("cat", "dog", "fox")[j] for j in np.random.default_rng(1).integers(0, 3, N)
            ],
            "class": [("cat", "dog", "fox")[j] for j in y],
        }
        | {"p_" + c: p[:, j] for j, c in enumerate(("cat", "dog", "fox"))}
    ),
    ("cat", "dog", "fox"),
    p,
    y,
)
case(
    "two_annotators",
    rows_csv(
        {
            "rater1": [("cat", "dog", "fox")[j] for j in y],
            "rater2": [("cat", "dog", "fox")[j if i % 5 else (j + 1) % 3] for i, j in enumerate(y)],
        }
        | {"p_" + c: p[:, j] for j, c in enumerate(("cat", "dog", "fox"))}
    ),
    ("cat", "dog", "fox"),
    p,
    y,
)
