"""Tables written in the format that the suffix of a file names."""

import gzip
from pathlib import Path

import polars as pl


def write_table(frame: pl.DataFrame, path: Path) -> None:
    """Write a table as CSV (also .gz), TSV, Parquet, Arrow or JSON Lines (.jsonl)."""
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(frame.write_csv().encode()))
        return
    {
        ".csv": frame.write_csv,
        ".tsv": lambda target: frame.write_csv(target, separator="\t"),
        ".parquet": frame.write_parquet,
        ".arrow": frame.write_ipc,
        ".jsonl": frame.write_ndjson,
    }[path.suffix](path)
