"""Rows of three classes as a file of any format, and a map that is fitted to them."""

import json
from pathlib import Path

import numpy as np
import polars as pl

import calviz
from tests.inputs.table_files import write_table

#: More rows than two of the smallest blocks.
N = 2_500
BAD = 1_200


def probabilities() -> np.ndarray:
    return np.random.default_rng(0).dirichlet([1, 1, 1], N)


def map_file(folder: Path, *, logits: bool = False) -> Path:
    p = probabilities()
    y = np.arange(N) % 3
    scaling = calviz.recalibrators.TemperatureScaling(input="logits" if logits else "probabilities")
    path = folder / "map.json"
    path.write_text(json.dumps(scaling.fit(np.log(p) if logits else p, y).to_dict()))
    return path


def write(folder: Path, suffix: str, scores: np.ndarray, name: str = "p") -> Path:
    path, y = folder / f"rows{suffix}", np.arange(N) % 3
    if suffix == ".npz":
        np.savez(path, **{"probs" if name == "p" else "logits": scores, "labels": y})
        return path
    if suffix == ".npy":
        np.save(path, np.column_stack([scores, y]))
        return path
    columns = {f"{name}_{k}": scores[:, k] for k in range(scores.shape[1])}
    frame = pl.DataFrame({"label": y, **columns})
    write_table(frame, path)
    return path
