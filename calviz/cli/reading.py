"""Options of all commands that read a file."""

from __future__ import annotations

import csv
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from calviz.data import ReadingOptions


def split_names(
    ctx: click.Context, param: click.Parameter, value: str | None
) -> tuple[str, ...] | None:
    """Split a list of names at commas; a name that contains a comma is in double quotes."""
    if value is None:
        return None
    names = tuple(name.strip() for name in next(csv.reader([value], skipinitialspace=True), []))
    if not names or not all(names):
        raise click.BadParameter(f"'{value}' holds an empty name.", ctx, param)
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise click.BadParameter(f"'{value}' names '{twice}' twice.", ctx, param)
    return names


_OPTIONS = (
    click.option("--label", metavar="COL", help="Column or array with the true class."),
    click.option(
        "--scores",
        callback=split_names,
        metavar="COL,COL|PREFIX*",
        help="Score columns, by name or by prefix; for NPZ files, the name of the array.",
    ),
    click.option(
        "--kind",
        type=click.Choice(["probabilities", "logits"]),
        help="What the scores are.",
    ),
    click.option(
        "--split-column", metavar="COL", help="Column with the split; '' if there is none."
    ),
    click.option(
        "--group",
        "groups",
        multiple=True,
        metavar="COL",
        help="Column to slice by (repeatable); '' if there is none.",
    ),
    click.option(
        "--id",
        "id_column",
        metavar="COL",
        help="Column that identifies the rows; '' if there is none.",
    ),
    click.option(
        "--cluster",
        "cluster_column",
        metavar="COL",
        help="Column with the cluster of each row, such as the patient: intervals and p-values resample clusters.",
    ),
    click.option(
        "--weight",
        "weight_column",
        metavar="COL",
        help="Column with the weight of each row.",
    ),
    click.option(
        "--weight-kind",
        type=click.Choice(["importance", "frequency"]),
        default="importance",
        show_default=True,
        help="Whether the weights are importance weights, or counts of aggregated rows.",
    ),
    click.option(
        "--time",
        "time_column",
        metavar="COL",
        help="Column with the time of each row; '' if there is none.",
    ),
    click.option(
        "--class-names",
        callback=split_names,
        metavar="NAME,NAME",
        help="Names of the classes, in the order of the scores.",
    ),
    click.option(
        "--label-base",
        type=click.Choice(["0", "1"]),
        help="Whether numeric labels count the classes from 0 or from 1.",
    ),
    click.option(
        "--choices",
        metavar="top|each|N",
        help="For questions with choices (logs of language models): judge the top choice, each choice by itself, "
        "or only the questions with N choices.",
    ),
    click.option(
        "--repair",
        multiple=True,
        metavar="REPAIR",
        help="A repair that calviz offered for this file (repeatable), such as renormalise.",
    ),
)


def reading_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the reading options to a command, which receives them as one `ReadingOptions`."""

    @functools.wraps(command)
    def with_reading(
        *args: Any,
        label: str | None,
        scores: tuple[str, ...] | None,
        kind: Any,
        split_column: str | None,
        groups: tuple[str, ...],
        id_column: str | None,
        cluster_column: str | None,
        weight_column: str | None,
        weight_kind: Any,
        time_column: str | None,
        class_names: tuple[str, ...] | None,
        label_base: str | None,
        choices: str | None,
        repair: tuple[str, ...],
        **kwargs: Any,
    ) -> Any:
        from calviz.data import ReadingOptions

        reading: ReadingOptions = ReadingOptions(
            label=label,
            scores=scores,
            kind=kind,
            split_column=split_column,
            groups=tuple(g for g in groups if g) if groups else None,
            id_column=id_column,
            cluster_column=cluster_column,
            weight_column=weight_column,
            weight_kind=weight_kind,
            time_column=time_column,
            class_names=class_names,
            label_base=None if label_base is None else 1 if label_base == "1" else 0,
            choices=choices,
            repair=repair,
        )
        return command(*args, reading=reading, **kwargs)

    for option in reversed(_OPTIONS):
        with_reading = option(with_reading)
    return with_reading


def label_file_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add ``--labels`` and ``--on`` to a command, which receives them as one `LabelFile`, or None."""

    @click.option(
        "--labels",
        "label_file",
        metavar="FILE",
        help="Another file that holds the labels of the same rows.",
    )
    @click.option(
        "--on", metavar="COL", help="Column that identifies the rows in both files (with --labels)."
    )
    @functools.wraps(command)
    def with_labels(*args: Any, label_file: str | None, on: str | None, **kwargs: Any) -> Any:
        from calviz.core.errors import OptionError
        from calviz.data import LabelFile

        if on is not None and label_file is None:
            raise OptionError(
                "--on names the identifier of two files: give the other one by --labels."
            )
        labels = None if label_file is None else LabelFile(label_file, on)
        return command(*args, labels=labels, **kwargs)

    return with_labels
