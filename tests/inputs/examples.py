"""One small table in the many forms in which people bring it, and the ways in which files are broken.

The names are those of the example files that may lie in a folder `shared` beside the checkout, of which the same is expected.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import pickle
import zipfile
from collections.abc import Iterable
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from tests.inputs.bombs import npy_header, zipped
from tests.inputs.relatives import Bad, npy, npz, parquet
from tests.inputs.table_files import sheet, workbook

N, CLASSES = 24, ("cat", "dog", "fox")
_rng = np.random.default_rng(24)
LABELS = _rng.permutation(np.repeat([0, 1, 2], [9, 6, 9]))
_scores = _rng.dirichlet([1.2, 1.2, 1.2], N) + 0.4 * np.eye(3)[LABELS]
PROBS = np.round(_scores / _scores.sum(axis=1, keepdims=True), 6)
PROBS[:, 2] = np.round(1 - PROBS[:, 0] - PROBS[:, 1], 6)
NAMES = [CLASSES[y] for y in LABELS]

#: The same for two classes: the probability of the second, and whether it came.
POSITIVE = np.round(_rng.uniform(0.03, 0.97, N), 6)
HAPPENED = (_rng.random(N) < 0.5).astype(int)

#: Read to the numbers of the table; part of the sentence that says what was recognised.
LOADED_AS_BASE = {
    "01_plain.csv": "CSV, comma-separated",
    "02_bom_crlf.csv": "CSV, comma-separated",
    "03_semicolon.csv": "CSV, semicolon-separated",
    "05_tab.tsv": "CSV, tab-separated",
    "06_latin1_header.csv": "classes (été, automne, hiver)",
    "07_labels_as_class_names.csv": "label 'label' (class name)",
    "09_class_names_with_commas.csv": 'classes (cat, tabby, dog, "mutt", fox)',
    "10_prob_columns_out_of_order.csv": "classes (fox, cat, dog)",
    "11_extra_id_split_group.csv": "split 'split' (cal 12, test 12), identifiers 'id', groups hospital",
    "12_logits.csv": "logits in logit_cat … logit_fox (their softmax is taken)",
    "23_blank_lines_and_comment.csv": "3 classes (cat, dog, fox)",
    "25_sci_notation_and_spaces.csv": "3 classes (cat, dog, fox)",
    "30_gzip.csv.gz": "CSV, comma-separated",
    "31_jsonl.jsonl": "JSON Lines: 24 rows, 3 classes (cat, dog, fox)",
    "32_jsonl_list_probs.jsonl": "JSON Lines: 24 rows, 3 classes (0, 1, 2)",
    "33_table.parquet": "Parquet: 24 rows, 3 classes (cat, dog, fox)",
    "35_probs_labels.npz": "NPZ: 24 rows, 3 classes (0, 1, 2), probabilities in probs",
    "36_y_true_y_prob.npz": "probabilities in y_prob, label 'y_true'",
    "39_val_and_test.npz": "(val 12, test 12)",
    "40_label_last_column.npy": "NPY: 24 rows, 3 classes",
    "73_table.xlsx": "Excel, sheet 'Sheet1': 24 rows, 3 classes (cat, dog, fox)",
    "90_formula_injection_class_names.csv": "classes (=cmd|' /C calc'!A0, +1+1, @SUM(1+1))",
    "91_html_script_class_names.csv": '(<script>alert(1)</script>, <img src=x onerror=alert(2)>, "><svg',
    "93_very_long_class_name.csv": "3 classes (aaaa",
}

#: Read, but not to the numbers of the table in all their digits.
LOADED_OTHERWISE = {
    "14_rows_sum_0.999.csv": 24, "17_binary_one_column.csv": 24, "18_binary_labels_minus1_plus1.csv": 24,
    "19_confidence_correct.csv": 24, "20_top1_pred_label.csv": 24, "28_one_row.csv": 1, "29_one_class_only.csv": 24,
    "37_logits_targets.npz": 24,
}  # fmt: skip

#: Refused, with these words.
REFUSED = {
    "50_empty.csv": ["empty"],
    "51_header_only.csv": ["header", "no rows"],
    "52_rows_sum_1.2.csv": ["24 of 24 rows sum to 1.2", "not probabilities"],
    "53_nan_and_empty_cells.csv": ["row 5", "'p_dog' is NaN", "row 10", "'p_cat' is empty", "2 of 24 rows"],
    "54_inf.csv": ["row 5", "'p_dog' is infinite"],
    "56_label_out_of_range.csv": ["row 8", "label 3 but there are 3 classes (0..2)"],
    "57_unknown_class_name.csv": ["row 8", "'wolf'", "none of the classes cat, dog, fox"],
    "59_ragged_rows.csv": ["line 7 has 3", "line 13 has 5", "expected 4"],
    "60_non_numeric_cells.csv": ["row 4", "'p_dog' = 'n/a?'", "row 9", "'p_cat' = '0.2O1'", "not numbers"],
    "61_no_label_column.csv": ["no label column", "3 probability columns found"],
    "62_labels_only.csv": ["no probability columns"],
    "65_object_dtype.npz": ["probs", "Python objects", "refused"],
    "66_pickle_payload.npz": ["probs", "Python objects", "refused"],
    "67_pickle_payload.pkl": ["pickle"],
    "68_declared_1e12_rows.npz": ["1,000,000,000,000 x 3 float64", "21.8 TiB", "80 bytes"],
    "69_zip_bomb_400MB.npz": ["limit", "CALVIZ_MAX_EXPANSION"],
    "71_truncated.parquet": ["damaged or incomplete"],
    "72_truncated.npz": ["damaged or incomplete"],
    "75_wide_200k_columns.csv": ["200,000", "limit of 20,000 classes", "CALVIZ_MAX_CLASSES"],
    "77_nul_bytes.csv": ["line 6", "NUL bytes", "not a text file"],
    "78_length_mismatch.npz": ["24 rows of probabilities", "23 labels"],
    "80_3d_probs.npz": ["probs", "(4, 6, 3)", "2-D"],
    "82_path_traversal.zip": ["zip archives are not supported"],
    "15_percent_0_100.csv": ["percentages", "sum to 100"],
}  # fmt: skip

Cells = Iterable[Iterable[object]]


def _written(header: Iterable[object], rows: Cells, *, separator: str = ",") -> str:
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter=separator, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return stream.getvalue()


def _table(
    labels: Iterable[object] = LABELS,
    probs: Cells = PROBS,
    names: Iterable[str] = CLASSES,
    **options: Any,
) -> str:
    rows = ((y, *(f"{v:.6f}" if isinstance(v, float) else v for v in p)) for y, p in zip(labels, probs, strict=True))  # fmt: skip
    return _written(["label", *(f"p_{name}" for name in names)], rows, **options)


def _named(names: tuple[str, ...]) -> bytes:
    """The table with other names of its classes."""
    return _table([names[y] for y in LABELS], names=names).encode()


def _with(*cells: tuple[int, int, object]) -> bytes:
    """The table with other cells: row from 1, column (0 is the label), what is there instead."""
    rows: list[list[object]] = [[y, *p] for y, p in zip(LABELS.tolist(), PROBS.tolist(), strict=True)]  # fmt: skip
    for row, column, value in cells:
        rows[row - 1][column] = value
    return _table([r[0] for r in rows], [r[1:] for r in rows]).encode()


def _ragged() -> bytes:
    lines = _table().splitlines()
    lines[6] = lines[6].rsplit(",", 1)[0]
    lines[12] += ",0.5"
    return ("\n".join(lines) + "\n").encode()


def _commented() -> bytes:
    lines = _table().splitlines()
    return "\n".join(["# produced by eval.py", lines[0], "", *lines[1:], "", ""]).encode()


def _spaced() -> bytes:
    rows = [[y, *(f"{v:.6e}" for v in p)] for y, p in zip(LABELS, PROBS, strict=True)]
    table = [["label", "p_cat", "p_dog", "p_fox"], *rows]
    return "\n".join(" " + " , ".join(map(str, row)) + " " for row in table).encode()


def _more_columns() -> bytes:
    rows = (
        (f"img_{i:05}", "cal" if i % 2 == 0 else "test", "AB"[i % 3 == 0], 1.2, NAMES[i], *PROBS[i])
        for i in range(N)
    )
    names = [f"p_{c}" for c in CLASSES]
    return _written(["id", "split", "hospital", "score_version", "label", *names], rows).encode()


def _top(**columns: Iterable[object]) -> bytes:
    return _written(columns, zip(*columns.values(), strict=True)).encode()


def _objects() -> bytes:
    lines = (
        {"id": i, "label": NAMES[i], "probs": dict(zip(CLASSES, PROBS[i].tolist(), strict=True))}
        for i in range(N)
    )
    return "\n".join(map(json.dumps, lines)).encode()


def _bomb() -> bytes:
    """An array of 400 MB that takes 0.4 MB: zeros, a few at a time."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        with archive.open("probs.npy", "w") as member:
            member.write(npy_header((50_000_000, 1)))
            for _ in range(400):
                member.write(bytes(1_000_000))
        archive.writestr("labels.npy", npy(LABELS))
    return stream.getvalue()


def _nul() -> bytes:
    return "\n".join(_table().splitlines()[:5]).encode() + b"\n\0\0\0\0\n"


def _wide() -> bytes:
    k = 200_000
    head = ",".join(f"p_{j}" for j in range(k))
    return f"label,{head}\n0,{','.join(['0.000005'] * k)}\n".encode()


@cache
def contents() -> dict[str, bytes]:
    """All of them, by the name of the file."""
    plain = _table()
    of_names = _table(NAMES)
    p, y = PROBS, LABELS.astype(np.int64)
    logits = np.log(p) + np.linspace(-3, 2, N)[:, None]
    top, predicted = p.max(axis=1), p.argmax(axis=1)
    columns = {f"p_{c}": p[:, j] for j, c in enumerate(CLASSES)} | {"label": NAMES}
    whole = parquet(pa.table(columns))
    arrays = npz(probs=p, labels=y)
    objects = np.empty(p.shape, dtype=object)
    objects[:] = p.tolist()
    unread = np.empty(1, dtype=object)
    unread[0] = Bad()
    return {
        "01_plain.csv": plain.encode(),
        "02_bom_crlf.csv": plain.replace("\n", "\r\n").encode("utf-8-sig"),
        "03_semicolon.csv": _table(separator=";").encode(),
        "05_tab.tsv": _table(separator="\t").encode(),
        "06_latin1_header.csv": _table(names=("été", "automne", "hiver")).replace("label", "étiquette").encode("latin-1"),
        "07_labels_as_class_names.csv": of_names.encode(),
        "09_class_names_with_commas.csv": _named(("cat, tabby", 'dog, "mutt"', "fox")),
        "10_prob_columns_out_of_order.csv": _written(
            ["p_fox", "label", "p_cat", "p_dog"], ((q[2], name, q[0], q[1]) for name, q in zip(NAMES, p, strict=True))
        ).encode(),
        "11_extra_id_split_group.csv": _more_columns(),
        "12_logits.csv": _written(
            ["label", *(f"logit_{c}" for c in CLASSES)], ((n, *z) for n, z in zip(NAMES, logits.round(6), strict=True))
        ).encode(),
        "14_rows_sum_0.999.csv": _table(probs=0.999 * p).encode(),
        "15_percent_0_100.csv": _table(probs=[[f"{100 * v:.4f}" for v in q] for q in p]).encode(),
        "17_binary_one_column.csv": _top(y_true=HAPPENED, y_prob=POSITIVE),
        "18_binary_labels_minus1_plus1.csv": _top(target=2 * HAPPENED - 1, score=POSITIVE),
        "19_confidence_correct.csv": _top(confidence=top, correct=predicted == LABELS),
        "20_top1_pred_label.csv": _top(true_label=NAMES, pred_label=[CLASSES[k] for k in predicted], confidence=top),
        "23_blank_lines_and_comment.csv": _commented(),
        "25_sci_notation_and_spaces.csv": _spaced(),
        "28_one_row.csv": "\n".join(plain.splitlines()[:2]).encode(),
        "29_one_class_only.csv": _table(np.zeros(N, dtype=int)).encode(),
        "30_gzip.csv.gz": gzip.compress(plain.encode()),
        "31_jsonl.jsonl": _objects(),
        "32_jsonl_list_probs.jsonl": "\n".join(
            json.dumps({"label": int(k), "probs": q}) for k, q in zip(y, p.tolist(), strict=True)
        ).encode(),
        "33_table.parquet": whole,
        "35_probs_labels.npz": npz(probs=p.astype(np.float32), labels=y),
        "36_y_true_y_prob.npz": npz(True, y_true=y[:, None].astype(np.uint8), y_prob=p),
        "37_logits_targets.npz": npz(logits=logits.astype(np.float16), targets=y.astype(np.int16)),
        "39_val_and_test.npz": npz(probs_val=p[:12], labels_val=y[:12], probs_test=p[12:], labels_test=y[12:]),
        "40_label_last_column.npy": npy(np.column_stack([p, y])),
        "50_empty.csv": b"",
        "51_header_only.csv": plain.splitlines(keepends=True)[0].encode(),
        "52_rows_sum_1.2.csv": _table(probs=1.2 * p).encode(),
        "53_nan_and_empty_cells.csv": _with((5, 2, "NaN"), (10, 1, "")),
        "54_inf.csv": _with((5, 2, "inf")),
        "56_label_out_of_range.csv": _with((8, 0, 3)),
        "57_unknown_class_name.csv": _table([*NAMES[:7], "wolf", *NAMES[8:]]).encode(),
        "59_ragged_rows.csv": _ragged(),
        "60_non_numeric_cells.csv": _with((4, 2, "n/a?"), (9, 1, "0.2O1")),
        "61_no_label_column.csv": _written([f"p_{c}" for c in CLASSES], p).encode(),
        "62_labels_only.csv": _top(label=LABELS),
        "65_object_dtype.npz": npz(probs=objects, labels=y),
        "66_pickle_payload.npz": npz(probs=unread, labels=y[:3]),
        "67_pickle_payload.pkl": pickle.dumps(Bad()),
        "68_declared_1e12_rows.npz": zipped(
            {"probs.npy": npy_header((10**12, 3)) + bytes(80), "labels.npy": npy(y)}, zipfile.ZIP_DEFLATED
        ),
        "69_zip_bomb_400MB.npz": _bomb(),
        "71_truncated.parquet": whole[: len(whole) // 2],
        "72_truncated.npz": arrays[: 2 * len(arrays) // 3],
        "73_table.xlsx": workbook(
            sheet([["label", *(f"p_{c}" for c in CLASSES)], *([int(k), *q] for k, q in zip(y, p.tolist(), strict=True))])
        ),
        "75_wide_200k_columns.csv": _wide(),
        "77_nul_bytes.csv": _nul(),
        "78_length_mismatch.npz": npz(probs=p, labels=y[:-1]),
        "80_3d_probs.npz": npz(probs=p.reshape(4, 6, 3), labels=y),
        "82_path_traversal.zip": zipped({"../../calviz_traversal.csv": plain.encode()}),
        "90_formula_injection_class_names.csv": _named(("=cmd|' /C calc'!A0", "+1+1", "@SUM(1+1)")),
        "91_html_script_class_names.csv": _named(
            ("<script>alert(1)</script>", "<img src=x onerror=alert(2)>", '"><svg/onload=alert(3)>')
        ),
        "93_very_long_class_name.csv": _named(("a" * 5_000, "dog", "fox")),
    }  # fmt: skip


#: Logs of language models that are refused, with these words.
REFUSED_LOGS = {
    "generated.jsonl": ["line 1", "generated text without log-likelihoods", "multiple-choice"],
    "one_choice.jsonl": ["line 1", "one log-likelihood, of a task without choices"],
    "other_version.jsonl": ["line 1", "no 'filtered_resps'", "version 0.4"],
    "no_such_choice.jsonl": ["line 2", "target '7' is none of the 2 choices"],
    "two_targets.jsonl": ["line 2", "target [0, 1] is none of the 2 choices"],
    "not_finite.jsonl": ["line 2", "not a finite number"],
    "broken_line.jsonl": ["line 2", "not a JSON object"],
    "inspect_version_9.json": ["version 9", "version 2 is read", "inspect log convert"],
    "inspect_empty.json": ["no samples"],
    "inspect_not_scored.json": ["no sample", "was scored"],
    "inspect_partly_right.json": ["row 1", "'judge'", "neither a hit nor a miss"],
    "inspect_no_confidence.json": ["row 1", "neither a stated confidence nor the log-probability"],
    "inspect_empty.eval": ["version None", "inspect log convert"],
}


def _harness(*changes: dict[str, Any]) -> bytes:
    """Rows as lm-evaluation-harness writes them, the last ones changed."""
    row = {
        "doc_id": 0,
        "doc": {"question": "?"},
        "target": "0",
        "arguments": [["q", " yes"], ["q", " no"]],
    }
    row |= {"filtered_resps": [["-0.5", "True"], ["-1.5", "False"]], "filter": "none", "acc": 1.0}
    rows = [
        row,
        *({k: v for k, v in (row | change).items() if v is not None} for change in changes),
    ]
    return "\n".join(json.dumps(one) for one in (rows if len(changes) < 2 else rows[1:])).encode()


def _inspect(samples: list[dict[str, Any]], version: int = 2) -> bytes:
    log = {
        "version": version,
        "status": "success",
        "eval": {"task": "t", "model": "m"},
        "samples": samples,
    }
    return json.dumps(log, indent=1).encode()


@cache
def logs() -> dict[str, bytes]:
    """Logs of language models, whole and broken, by the name of the file."""
    text = {"filtered_resps": ["forty-two"]}
    one = {"filtered_resps": [["-3.5", "True"]]}
    old = {"filtered_resps": None, "logit_0": -1.5}
    judged = {
        "id": 1,
        "target": "A",
        "choices": ["x", "y"],
        "scores": {"judge": {"value": "C", "answer": "A"}},
    }
    stated = judged | {"metadata": {"confidence": 0.75, "subject": "law"}}
    return {
        "harness.jsonl": _harness({"doc_id": 1}),
        "generated.jsonl": _harness(text, text),
        "one_choice.jsonl": _harness(one, one),
        "other_version.jsonl": _harness(old, old),
        "no_such_choice.jsonl": _harness({"target": "7"}),
        "two_targets.jsonl": _harness({"target": [0, 1]}),
        "not_finite.jsonl": _harness({"filtered_resps": [["nan", "True"], ["-1", "False"]]}),
        "broken_line.jsonl": _harness({"doc_id": 1})[:-9],
        "inspect.json": _inspect([stated, stated | {"id": 2, "scores": {"judge": {"value": "I"}}}]),
        "inspect_version_9.json": _inspect([stated], version=9),
        "inspect_empty.json": _inspect([]),
        "inspect_not_scored.json": _inspect([{"id": 1, "scores": {}}]),
        "inspect_partly_right.json": _inspect([stated | {"scores": {"judge": {"value": "P"}}}]),
        "inspect_no_confidence.json": _inspect([judged]),
        "inspect_empty.eval": zipped({"_journal/start.json": b"{}", "header.json": b"{}"}),
    }  # fmt: skip
