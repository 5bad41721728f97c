"""Options of the commands, made of signatures and docstrings; those that several commands share, and what is made of them.

Parameters
----------
split : NAME
    Only the rows of this split.
reduction : R
    Which probability is judged: positive (the second of two classes, the default with two),
    top-label (the largest, the default otherwise), top-2 ..., within-top-2 ... or class:NAME.
bins
    Number of bins of binned metrics, or cube_root: as many as the cube root of the number of rows.
scheme
    How bins are placed; sturges: equal width, with a number that follows from the number of rows. If left out: equal width, and for
    verdict, findings, diagrams and comparisons equal mass where the first bin of equal width would hold most rows of a rare event and few events are expected above 0.5.
prevalence : SHARE[,SHARE]
    Weight the rows so that class 1 of two has this share, or each class its own.
seed
    Seed of everything that is drawn at random.
resamples
    Number of resamples for each interval and each noise floor.
model : NAME
    The model to use, if the file holds several.
option : METHOD.PARAMETER=VALUE
    A parameter of a method (see 'calviz methods'), such as temperature.floor=0.001 or isotonic.cap=false.
sample : ROWS
    Number of rows drawn to fit on, from folders, patterns, and files that may not fit into memory.  [default: 100000]
judge_sample : ROWS
    Number of other rows drawn as evaluation rows.  [default: as --sample]
"""

from __future__ import annotations

import csv
import inspect
import json
import re
import sys
import textwrap
import typing
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import NoneType, SimpleNamespace, UnionType
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, get_args, get_origin

import click
from click.core import ParameterSource, augment_usage_errors
from click.shell_completion import CompletionItem

from calviz.cli import command_group
from calviz.cli.command_group import OutputOption, as_given, check_output, say, write
from calviz.core import __version__, events
from calviz.core.errors import DEFAULT_SAMPLE_ROWS, REPORT, OptionError, Reading, check_level, needs
from calviz.core.errors import RESAMPLES as RESAMPLES
from calviz.core.events import DEFAULT_BINS as DEFAULT_BINS
from calviz.core.events import Reduction as Reduction
from calviz.core.events import Scheme as Scheme

if TYPE_CHECKING:
    # Handed on, as most commands take them.
    from calviz.comparison.fitting import Division as Division
    from calviz.core.predictions import Dataset as Dataset
    from calviz.data import LabelFile as LabelFile
    from calviz.data import Loaded as Loaded
    from calviz.data import ReadingOptions as ReadingOptions
    from calviz.report.document import Report

# ---- From a signature to a command


#: Functions that make one value of several options, by name: a parameter of this name stands for these options.
_GROUPS: dict[str, Callable[..., Any]] = {}
Group = TypeVar("Group", bound=Callable[..., Any])
_SECTION = "\n\nParameters\n----------\n"
_ENTRY = re.compile(r"^(\w+)(?: : (.*))?(?:\n|$)((?:    .*(?:\n|$))*)", re.M)


def group(function: Group) -> Group:
    """Let parameters named as this function stand for its options; they get what it returns."""
    _GROUPS[function.__name__] = function
    return function


def command(function: Callable[..., Any]) -> click.Command:
    """Make a command of a function, or of a dataclass with a method `run`.

    Positional parameters are arguments, others are options, by their types and defaults. The text above the section *Parameters* of
    the docstring is the help. The section says what each option does, and in place of the type what its value is called. What it leaves
    out is described in the docstring of this module.
    """

    def run(**values: Any) -> Any:
        made = _called(function, values)
        return made.run() if inspect.isclass(function) else made

    return _Command(
        function.__name__.lower().replace("_", "-"),
        callback=run,
        params=list(_parameters(function)),
        help=inspect.cleandoc(function.__doc__ or "").partition(_SECTION)[0],
        epilog=command_group.EXIT_CODES,
    )


class _Command(click.Command):
    """A command whose help only names the options that say how files are read; `calviz formats` explains them."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; an option without its value is an error of this command."""
        with augment_usage_errors(ctx):
            return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options."""
        reading = {p.name: p.opts[0] for p in reading_options()}
        if not reading.keys() <= {p.name for p in self.params}:
            super().format_options(ctx, formatter)
            return
        rows = (p.get_help_record(ctx) for p in self.get_params(ctx) if p.name not in reading)
        with formatter.section("Options"):
            formatter.write_dl([row for row in rows if row])
        with formatter.section("How FILE is read, if not as recognised (see 'calviz formats')"):
            names, width = ", ".join(reading.values()), formatter.width - formatter.current_indent
            lines = textwrap.fill(names, width, break_on_hyphens=False)
            lines = textwrap.indent(lines, " " * formatter.current_indent)
            formatter.write(f"{lines}\n")


def reading_options() -> list[click.Parameter]:
    """The options that say how files are read."""
    return list(_parameters(_GROUPS["reading"]))


def reading_given(but: Collection[str]) -> str:
    """The options of this command that say how its file is read and which model is used, as they were given, but for some."""
    context = click.get_current_context()
    options = {p.name: p for p in context.command.params if p.name not in but}
    wanted = [*(p.name for p in reading_options()), "model"]
    given = [
        Reading("", {p.name: context.params[p.name]}).in_shell()
        for p in (options[name] for name in wanted if name in options)
        if context.get_parameter_source(p.name) is ParameterSource.COMMANDLINE
    ]
    return "".join(f" {one}" for one in given)


def _called(function: Callable[..., Any], values: dict[str, Any]) -> Any:
    names = inspect.signature(function).parameters
    own = {n: _called(_GROUPS[n], values) if n in _GROUPS else values[n] for n in names}
    return function(**own)


def _parameters(function: Callable[..., Any]) -> Iterator[click.Parameter]:
    parameters = inspect.signature(function).parameters.values()
    documents = (sys.modules[__name__].__doc__ or "", inspect.cleandoc(function.__doc__ or ""))
    described = {e[0]: e[1:] for d in documents for e in _ENTRY.findall(d.partition(_SECTION)[2])}
    names_of_types = {p.name: p.annotation for p in parameters if p.name not in _GROUPS}
    module = vars(sys.modules[function.__module__])
    types = typing.get_type_hints(
        SimpleNamespace(__annotations__=names_of_types), module, include_extras=True
    )
    for p in parameters:
        if p.name in _GROUPS:
            yield from _parameters(_GROUPS[p.name])
            continue
        metavar, text = described.get(p.name, ("", ""))  # python -OO drops docstrings
        settings = _settings(types[p.name]) | {"metavar": metavar or None}
        settings["required"] = p.default is p.empty
        if p.kind is not p.KEYWORD_ONLY:
            multiple = settings.pop("multiple", False)
            settings["type"] = _FileToRead()
            yield click.Argument([p.name], nargs=-1 if multiple else 1, **settings)
            continue
        is_flag = isinstance(p.default, bool)
        if isinstance(p.default, str | int | float | tuple) and p.default != () and not is_flag:
            settings = {"default": p.default, "show_default": True} | settings
        flags = settings.pop("flags", (f"--{p.name.replace('_', '-')}",))
        kind = settings.pop("cls", click.Option)
        yield kind([*flags, p.name], help=" ".join(map(str.strip, text.splitlines())), **settings)


def _settings(hint: Any) -> dict[str, Any]:
    """Settings of click for a type; those of `Annotated` come last."""
    more = {}
    if get_origin(hint) is Annotated:
        hint, more = get_args(hint)
    if get_origin(hint) in (typing.Union, UnionType) and "type" not in more:
        (hint,) = (kind for kind in get_args(hint) if kind is not NoneType)
    if get_origin(hint) is Literal:
        return {"type": click.Choice(get_args(hint))} | more
    if get_origin(hint) is tuple and "callback" not in more:
        kind, *others = get_args(hint)
        many = {"multiple": True} if others == [...] else {"nargs": 1 + len(others)}
        return _settings(kind) | many | more
    return ({"is_flag": True} if hint is bool else {"type": hint}) | more


def split_names(
    ctx: click.Context, param: click.Parameter, values: tuple[str, ...]
) -> tuple[str, ...] | None:
    """Split lists of names at commas; a name that contains a comma is in double quotes."""
    rows, value = [*csv.reader(values, skipinitialspace=True)], ", ".join(values)
    names = tuple(name.strip() for row in rows for name in row)
    if not all(rows) or not all(names):
        raise click.BadParameter(f"'{value}' holds an empty name.", ctx, param)
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise click.BadParameter(f"'{value}' names '{twice}' twice.", ctx, param)
    return names or None


class _FileToRead(click.Path):
    """A file, folder or pattern, which shells complete; ``-`` is standard input."""

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        return (
            command_group.standard_input() if value == "-" else super().convert(value, param, ctx)
        )


class _Keys(click.types.StringParamType):
    """Keys of metrics or methods, of which shells complete the last one; each is checked when it is used."""

    def __init__(self, registry: str) -> None:
        self.registry = registry

    def shell_complete(self, ctx: Any, param: Any, incomplete: str) -> list[CompletionItem]:
        """The keys that begin with what stands after the last comma, or plus."""
        from calviz.core import entry_specs

        before = incomplete[: max(incomplete.rfind(","), incomplete.rfind("+")) + 1]
        entries = getattr(entry_specs, self.registry)
        begun = [e for e in entries if e.key.startswith(incomplete[len(before) :])]
        return [CompletionItem(before + e.key, help=e.label) for e in begun]


class _BinNumber(click.IntRange):
    name = "integer or cube_root"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        bins = value if value == events.CUBE_ROOT else super().convert(value, param, ctx)
        events.check_bins(bins)
        return bins


def _folds(_context: Any, _parameter: Any, text: str | None) -> int | str | None:
    is_number = text is not None and text.lstrip("-").isdigit()
    return int(text) if text is not None and is_number else text


def _level(_context: Any, parameter: click.Parameter, level: float | None) -> float | None:
    if level is not None:
        check_level(level, parameter.opts[0])
    return level


def _reduction(_context: Any, _parameter: Any, text: str | None) -> Reduction | None:
    return None if text is None else Reduction.of(text)


def _shares(_context: Any, _parameter: Any, text: str | None) -> tuple[float, ...] | None:
    try:
        return None if text is None else tuple(float(part) for part in text.split(","))
    except ValueError:
        raise OptionError(
            f"--prevalence '{text}' is not a number, or one for each class."
        ) from None


#: Types of options.
Names = Annotated[tuple[str, ...] | None, {"type": str, "callback": split_names, "multiple": True}]
METHOD, METRIC = {"type": _Keys("RECALIBRATORS")}, {"type": _Keys("METRICS")}
MetricKeys = Annotated[tuple[str, ...] | None, METRIC | {"callback": split_names, "multiple": True}]
InputPath = Annotated[str | None, {"type": click.Path()}]
OutputPath = Annotated[str | None, {"type": click.Path(), "cls": OutputOption}]
RequiredPath = Annotated[str, {"type": click.Path(), "cls": OutputOption}]
#: None if not given: the default reduction of the data.
HowJudged = Annotated[Reduction | None, {"type": str, "callback": _reduction}]
#: A level or another share, which is refused before a file is read; `Level[float | None]` may be left out.
_Share = TypeVar("_Share", float, float | None)
Level = Annotated[_Share, {"callback": _level}]
BinCount = Annotated[events.BinNumber, {"type": _BinNumber(min=1)}]
#: A number of folds, or the column that holds them.
CrossFit = Annotated[int | str | None, {"type": str, "callback": _folds}]
Prevalence = Annotated[tuple[float, ...] | None, {"type": str, "callback": _shares}]
Seed = Annotated[int, {"type": click.IntRange(min=0)}]
Resamples = Annotated[int, {"type": click.IntRange(min=1, max=100_000)}]
FittingRows = Annotated[int | None, {"type": click.IntRange(min=10)}]
JudgingRows = Annotated[int | None, {"type": click.IntRange(min=2)}]


# ---- Reading


@group
def reading(
    *,
    label: str | None = None,
    scores: Names = None,
    models: Names = None,
    model_column: str | None = None,
    kind: Literal["probabilities", "logits", "confidence"] | None = None,
    prediction_column: str | None = None,
    correct_column: str | None = None,
    split_column: str | None = None,
    group: tuple[str, ...] = (),
    id: str | None = None,
    cluster: str | None = None,
    weight: str | None = None,
    weight_kind: Literal["importance", "frequency"] = "importance",
    time: str | None = None,
    class_names: Names = None,
    label_base: Literal["0", "1"] | None = None,
    separator: str | None = None,
    decimal: Literal[".", ","] | None = None,
    header_line: Annotated[int | None, {"type": click.IntRange(min=0)}] = None,
    sheet: str | None = None,
    choices: str | None = None,
    confidence_pattern: str | None = None,
    answers: str | None = None,
    answer_pattern: str | None = None,
    same_answers: Literal["normalised", "exact"] = "normalised",
    repair: tuple[str, ...] = (),
) -> ReadingOptions:
    """How files are read.

    Parameters
    ----------
    label : COL
        Column or array with the true class.
    scores : COL,COL|PREFIX*
        Score columns, by name or by prefix; for NPZ files, the name of the array.
    models : COL,COL|PREFIX*|NAME,NAME
        Score columns of which each is the probability of the event by a model of its own; or the names of models with a column
        for each class: mlp,forest for mlp_cat, mlp_dog, forest_cat and forest_dog.
    model_column : COL
        Column that names the model of each row; '' if all rows are judged together.
    kind
        What the scores are.
    prediction_column : COL
        Column with the predicted class.
    correct_column : COL
        Column that says whether the prediction was right.
    split_column : COL
        Column with the split; '' if there is none.
    group : COL
        Column to slice by (repeatable); '' if there is none.
    id : COL
        Column that identifies the rows; '' if there is none.
    cluster : COL
        Column with the cluster of each row, such as the patient: intervals and p-values resample clusters; '' if there is none, not
        even the days.
    weight : COL
        Column with the weight of each row.
    weight_kind
        Whether the weights are importance weights, or counts of aggregated rows.
    time : COL
        Column with the time of each row; '' if there is none.
    class_names : NAME,NAME
        Names of the classes, in the order of the scores; for a judge, the words or grades for no and yes.
    label_base
        Whether numeric labels count the classes from 0 or from 1.
    separator : SIGN
        What stands between the cells of a text file: a character, tab or space.
    decimal
        Decimal sign of a text file.
    header_line : LINE
        Line of a text file that names the columns, counted from 1; 0 if none does.
    sheet : NAME
        Sheet of an Excel workbook.
    choices : top|each|N
        For questions with choices (logs of language models): judge the top choice, each choice by itself,
        or only the questions with N choices.
    confidence_pattern : REGEX
        How answers state their confidence: a regular expression with the number in parentheses. Without it, "Confidence: 85%",
        "I am 0.85 sure" and the like are understood in logs, and in a text column that --scores names.
    answers : COL
        Column with the answers, where each question (--cluster) has several: one row per question, with a model for each signal of
        confidence in its most frequent answer: agreement, entropy, stated, log-probability. In logs it is 'answer'.
    answer_pattern : REGEX
        How the answer is found in its text: a regular expression with the answer in parentheses.
    same_answers
        Whether answers are the same without case, outer punctuation and the form of numbers, or letter by letter.
    repair : REPAIR
        A repair that calviz offered for this file (repeatable), such as renormalise.
    """
    options: dict[str, Any] = dict(locals())
    from calviz.data import ReadingOptions

    for name in ("id", "cluster", "weight", "time"):
        options[f"{name}_column"] = options.pop(name)
    del options["group"]
    options["groups"] = tuple(g for g in group if g) if group else None
    options["label_base"] = None if label_base is None else int(label_base)
    return ReadingOptions(**options)


@group
def label_file(*, labels: InputPath = None, on: str | None = None) -> LabelFile | None:
    """Labels in another file.

    Parameters
    ----------
    labels : FILE
        Another file that holds the labels of the same rows.
    on : COL
        Column that identifies the rows in both files (with --labels).
    """
    from calviz.data import LabelFile

    if on is not None and labels is None:
        raise OptionError("--on names the identifier of two files: give the other one by --labels.")
    return None if labels is None else LabelFile(labels, on)


def read_file(file: str, reading: ReadingOptions, labels: LabelFile | None = None) -> Loaded:
    """Read a file; its name is in the errors."""
    from calviz.data import read

    with command_group.showing_progress(), command_group.naming(file):
        return read(file, options=reading, labels=labels)


def read_model(file: str, model: str | None, *how: Any) -> tuple[Loaded, Dataset]:
    """Read a file as `read_models` does, and choose a model of it."""
    return next(read_models(file, (model,), *how))


def read_models(
    file: str,
    models: tuple[str | None, ...],
    outputs: Outputs,
    reading: ReadingOptions,
    labels: LabelFile | None = None,
) -> Iterator[tuple[Loaded, Dataset]]:
    """Read a file, print what was recognised, and yield the models asked for, or all: of several, each below its name."""
    from calviz.cli.result_texts import print_recognition

    loaded = read_file(file, reading, labels)
    with command_group.naming(file):
        names = chosen_models(loaded, models)
    if not outputs.quiet:
        print_recognition(file, loaded)
    for name in names:
        if not outputs.quiet and len(names) > 1:
            command_group.show()
            command_group.show(command_group.short_name(name), "bold underline")
        yield loaded, loaded.models[name]


def chosen_models(loaded: Loaded, models: tuple[str | None, ...]) -> tuple[str, ...]:
    """Return the names of the models asked for, each once, or of all."""
    chosen = (chosen_model(loaded, name) for name in models)
    return tuple(dict.fromkeys(chosen)) or tuple(loaded.models)


def chosen_model(loaded: Loaded, name: str | None) -> str:
    """Return the name of the model to use; raises OptionError if the file holds several and none is named, or has none of that name."""
    first, *others = loaded.models
    if name is None and others:
        names = ", ".join(loaded.models)
        if loaded.recognition.model_column:
            names += "; all together: --model-column ''"
        raise OptionError(f"{loaded.file} holds several models; choose one with --model: {names}.")
    # A score column as asked about names its model, too.
    of_column = {columns: model for model, columns in loaded.own_scores.items()}
    chosen = first if name is None else of_column.get((name,), name)
    check_models([chosen], loaded.models)
    return chosen


def check_models(names: Iterable[str], known: Collection[str]) -> None:
    """Raise OptionError for a name that is not among the known ones."""
    if unknown := next((name for name in names if name not in known), None):
        only = " (the only one: leave out --model)" if len(known) == 1 else ""
        raise OptionError(f"there is no model '{unknown}'; known: {', '.join(known)}{only}.")


def summed(
    source: str, reading: ReadingOptions, *, models: Sequence[str], quiet: bool
) -> Loaded | None:
    """Load one model of several files, or of a file that does not fit into memory, as a profile; None for any other source."""
    from calviz.data.any_size.file_sources import why_out_of_core
    from calviz.data.reading import loaded_profile

    if not (why := why_out_of_core(source)):
        return None
    from calviz.data.any_size.profiling import options_and_time, profile

    if not quiet:
        say(f"{as_given(source)}: {why}, so it is summed part by part and judged from its profile.")
    options, time, every = options_and_time(reading)
    with command_group.showing_progress():
        one = models[0] if len(models) == 1 else None
        by = reading.groups or ()
        made = profile([source], by=by, time=time, every=every, model=one, name=one, **options)
    return loaded_profile(made, Path(source).name)


# ---- Fitting


@group
def fitting(
    *,
    fit_split: str | None = None,
    fit_fraction: float | None = None,
    cross_fit: CrossFit = None,
    seed: Seed = 0,
    by_time: bool = False,
) -> Division:
    """Which rows a map is fitted on.

    Parameters
    ----------
    fit_split : NAME
        The split to fit on.
    fit_fraction : SHARE
        Instead: fit on this share of the rows, stratified, such as 0.5.
    cross_fit : FOLDS|COL
        Instead: with this number of folds, or the folds of this column, calibrate every row by a map that never saw it.
    by_time
        With --fit-fraction: fit on the earliest rows, judge on the later ones.
    """
    chosen: dict[str, Any] = dict(locals())
    from calviz.comparison.fitting import Division

    division = Division(**chosen)
    division.check()
    return division


@group
def division(
    *, eval_split: str | None = None, in_sample: bool = False, fitting: Division
) -> Division:
    """Which rows a map is fitted on, and which it is judged on.

    Parameters
    ----------
    eval_split : NAME
        The split to evaluate on.
    in_sample
        Allow judging on the fitting rows; the result is labelled in-sample.
    """
    both = replace(fitting, eval_split=eval_split, in_sample=in_sample)
    both.check()
    return both


MethodParameters = dict[str, dict[str, Any]]


def parse_parameters(texts: Iterable[str], keys: Sequence[str] | None = None) -> MethodParameters:
    """Parse the texts of ``--option`` into parameters by method.

    Raises
    ------
    OptionError
        If a text has another form, or names an unknown method or parameter, or one that is not among `keys`.
    """
    from calviz.core.entry_specs import RECALIBRATORS

    parsed: MethodParameters = {}
    for text in texts:
        target, is_set, value = text.partition("=")
        method, dot, name = target.rpartition(".")
        if not (is_set and dot and method and name):
            raise OptionError(
                f"--option must be METHOD.PARAMETER=VALUE, such as temperature.floor=0.001; got '{text}'."
            )
        known = [p.name for p in RECALIBRATORS[method].parameters]
        if name not in known:
            have = f"it has {', '.join(known)}" if known else "it has none"
            raise OptionError(f"--option: '{method}' has no parameter '{name}'; {have}.")
        parsed.setdefault(method, {})[name] = _value(value)
    if keys is not None:
        RECALIBRATORS.check_options(parsed, keys, "--option")
    return parsed


def _value(text: str) -> Any:
    """Parse a JSON number (also .03), a list, true, false (also True, False) or null; anything else is text."""
    if text in ("True", "False"):
        return text == "True"
    try:
        return json.loads(re.sub(r"(^|[\[,\s-])\.(?=\d)", r"\g<1>0.", text))
    except json.JSONDecodeError:
        return text


def why_drawn(source: str, rows: int | None, labels: LabelFile | None) -> str:
    """Why a sample of rows is drawn; an empty text if all rows are read."""
    from calviz.data.any_size.file_sources import why_out_of_core

    if labels is not None:
        if rows is not None:
            raise OptionError("--sample cannot be combined with --labels.")
        return ""
    return "as asked" if rows is not None else why_out_of_core(source)


def draw_options(rows: int | None, reading: ReadingOptions, division: Division) -> dict[str, Any]:
    """Arguments of `calviz.sample_rows` for the options of a command; raises OptionError for options that need all rows."""
    from calviz.data.any_size.profiling import options_and_time

    for name in ("fit_fraction", "cross_fit", "in_sample"):
        if name in division.given:
            raise OptionError(
                f"--{name.replace('_', '-')} needs all rows in memory: give --sample ROWS instead."
            )
    drawn = {"rows": rows or DEFAULT_SAMPLE_ROWS, "seed": division.seed}
    return options_and_time(reading)[0] | drawn | {"fit_split": division.fit_split}


def say_drawn(source: str, why: str, which: str) -> None:
    """Write to standard error why rows were drawn, and which."""
    say(f"{as_given(source)}: {why}, so rows are drawn. {which}")


# ---- Results


@dataclass(frozen=True)
class Outputs:
    """Paths of what a command writes beside its text; no file is touched before its content is made."""

    json: str | None = None
    html: str | None = None
    pdf: str | None = None
    markdown: str | None = None

    @property
    def quiet(self) -> bool:
        """Whether JSON or a report goes to standard output, and nothing else does."""
        return "-" in (self.json, self.markdown)

    @property
    def reports(self) -> dict[str, str]:
        """Paths of reports, by their options."""
        paths = {"--html": self.html, "--markdown": self.markdown, "--pdf": self.pdf}
        return {name: path for name, path in paths.items() if path is not None}

    def check(self) -> None:
        """Check before the work starts that all can be written; raises OptionError."""
        check_output("--json", self.json)
        if self.reports:
            needs(*REPORT)
        for name, path in self.reports.items():
            if path == "-" and name == "--markdown":
                continue
            if path in ("", "-"):
                raise OptionError(f"{name} '{path}' is not a file; give the name of a file.")
            check_output(name, path)
        if self.pdf is not None:
            from calviz.report.document import why_no_pdf

            if reason := why_no_pdf():
                raise OptionError(f"--pdf: {reason}")
        if self.json == self.markdown == "-":
            raise OptionError(
                "--json - and --markdown - cannot share standard output; give one a file."
            )

    def tell(self, result: Any) -> None:
        """Print a result, unless only JSON is wanted, and write what it says of itself as JSON."""
        if not self.quiet:
            click.echo(f"\n{result}")
        self.write_json(result.to_dict())

    def write_json(self, record: Any) -> None:
        """Write a record, or a list of several, if JSON is asked for; each says its form and its command (`cli/schema.json`)."""
        if self.json is not None:
            from calviz.report.json_results import to_json

            first, *others = map(_stamped, record if isinstance(record, list) else [record])
            write(to_json([first, *others] if others else first), self.json)

    def write(self, report: Report) -> None:
        """Write the reports that are asked for, with the same bytes on every system."""
        if self.html is not None:
            write(report.html(), self.html)
        if self.pdf is not None:
            from calviz.report.document import to_pdf

            write(to_pdf(report.dated().html()), self.pdf)
        if self.markdown is not None:
            write(report.markdown(), self.markdown)


#: Version of the JSON of all commands: keys are added without a new one, never renamed or removed.
SCHEMA = 1


def _stamped(record: Mapping[str, Any]) -> dict[str, Any]:
    context = click.get_current_context()
    head: dict[str, Any] = {"schema": SCHEMA, "calviz": __version__}
    head["command"] = context.command.name
    argument = next((p for p in context.command.params if isinstance(p, click.Argument)), None)
    given = context.params.get(argument.name or "") if argument else None
    if isinstance(given, str):
        head["file"] = given
    elif given and "file" not in record:
        head["files"] = [as_given(file) for file in given]
    made = head | dict(record)
    return made | ({"file": as_given(made["file"])} if "file" in made else {})


@group
def json_only(*, json: OutputPath = None) -> Outputs:
    """Results for programs.

    Parameters
    ----------
    json : PATH
        Write JSON; with - it goes to standard output, and nothing else does.
    """
    outputs = Outputs(json)
    outputs.check()
    return outputs


@group
def outputs(
    *,
    json_only: Outputs,
    html: OutputPath = None,
    pdf: OutputPath = None,
    markdown: OutputPath = None,
) -> Outputs:
    """Results for programs and for people.

    Parameters
    ----------
    html : PATH
        Write a report as one HTML file that opens anywhere, offline.
    pdf : PATH
        Write the report as PDF; needs Chromium, Chrome or Edge on this machine.
    markdown : PATH
        Write the report as a model card; with - it goes to standard output, and nothing else does.
    """
    every = replace(json_only, html=html, pdf=pdf, markdown=markdown)
    every.check()
    return every
