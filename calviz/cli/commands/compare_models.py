"""``calviz compare-models``: compare models on the same rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from calviz.cli.command_group import FINE
from calviz.cli.output_options import check_output, json_option, write_json
from calviz.cli.reading import reading_options
from calviz.cli.report_options import Documents, document_options, only_one_output
from calviz.cli.sample_options import bins_option, reduction_option, resamples_option, seed_option
from calviz.cli.text import named_twice, naming, say
from calviz.core.errors import NotAvailable, OptionError

if TYPE_CHECKING:
    from calviz.core.reduction import Reduction
    from calviz.data import Loaded, ReadingOptions
    from calviz.report.subject import Origin, Subject
    from calviz.results.model_comparison import Alignment, ModelComparison
    from calviz.sample.sample import Sample


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--split", metavar="NAME", help="Only the rows of this split, in files that have it.")
@reduction_option
@bins_option
@seed_option
@resamples_option
@click.option(
    "--model",
    "chosen",
    multiple=True,
    metavar="NAME",
    help="Only this model (repeatable), by its name in the table; all by default.",
)
@json_option
@document_options
@reading_options
def command(
    files: tuple[str, ...],
    split: str | None,
    reduction: Reduction | None,
    bins: int,
    seed: int,
    resamples: int,
    chosen: tuple[str, ...],
    json_path: str | None,
    html_path: str | None,
    pdf_path: str | None,
    markdown_path: str | None,
    reading: ReadingOptions,
) -> int:
    """Compare the models in FILE... on the rows that they have in common.

    Rows are matched by identifier, or by their order where all true labels agree.
    """
    from calviz.cli.models_text import print_models
    from calviz.comparison import compare_models, named_models, same_rows
    from calviz.core.reduction import Reduction

    check_output("--json", json_path)
    documents = Documents(html_path, markdown_path, pdf_path)
    documents.check()
    quiet = only_one_output(json_path, documents)
    if (twice := named_twice(files)) is not None:
        say(f"{twice} is named twice, so its models are compared with themselves.")
    loaded = _read_all(files, reading, quiet=quiet)
    models = named_models([(source.file, source.models) for source in loaded])
    unknown = [name for name in chosen if name not in models]
    if unknown:
        raise OptionError(f"there is no model '{unknown[0]}'; known: {', '.join(models)}.")
    aligned = same_rows({name: models[name] for name in chosen} if chosen else models, split=split)
    how = Reduction.of(reduction, *aligned.models.values())
    samples = _samples(aligned, how, bins=bins, seed=seed, resamples=resamples, split=split)
    comparison = compare_models(
        aligned,
        "all" if json_path is not None else None,
        split=split,
        samples=samples,
        reduction=how,
        bins=bins,
        seed=seed,
        resamples=resamples,
    )
    if not quiet:
        print_models(comparison)
    if json_path is not None:
        from calviz.report.models_json import models_record

        write_json(models_record(comparison, files=[source.file for source in loaded]), json_path)
    if documents:
        from calviz.report.document import compose
        from calviz.report.section import brief

        origins = _origins(models, loaded, reading)
        documents.write(compose(_subjects(comparison, samples, origins), sections=brief()))
    return FINE


def _read_all(files: tuple[str, ...], reading: ReadingOptions, *, quiet: bool) -> list[Loaded]:
    """Read the files, and print what was recognised in each."""
    from calviz.cli.audit_text import print_recognition
    from calviz.data import read

    loaded: list[Loaded] = []
    for file in files:
        with naming(file):
            source = read(file, options=reading)
        loaded.append(source)
        if not quiet:
            print_recognition(file, source)
    return loaded


def _samples(aligned: Alignment, reduction: Reduction, **settings: Any) -> dict[str, Sample]:
    """Make the sample of each model; a model without this reduction has none, and the comparison says why."""
    from calviz.sample.sample import Sample

    samples: dict[str, Sample] = {}
    for name, data in aligned.models.items():
        with suppress(NotAvailable):
            samples[name] = Sample(data, reduction, **settings)
    return samples


def _origins(
    names: Iterable[str], loaded: Sequence[Loaded], reading: ReadingOptions
) -> dict[str, Origin]:
    """Return the origin of each model; the names are in the order of the files and of the models in them."""
    from calviz.report.subject import Origin

    files_of = [source for source in loaded for _ in source.models]
    return {name: Origin.of(source, reading) for name, source in zip(names, files_of, strict=True)}


def _subjects(
    comparison: ModelComparison, samples: dict[str, Sample], origins: dict[str, Origin]
) -> Iterator[Subject]:
    """Each model on the rows that all models have; the comparison is shown once, with the first."""
    from calviz.report.subject import Subject

    for number, (name, sample) in enumerate(samples.items()):
        models = comparison if number == 0 else None
        yield Subject(sample, title=name, origin=origins[name], models=models)
        sample.let_go()  # free memory for the next model
