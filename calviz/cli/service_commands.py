"""The dashboard (``app``), profiles (``profile``, ``merge``), and what there is (``formats``, ``methods``, ``metrics``)."""

from __future__ import annotations

import os
import runpy
import shutil
import signal
import socket
import sys
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import click

from calviz.cli import command_group
from calviz.cli.command_group import cell, check_output, console, short_name, show
from calviz.cli.options import Names, Outputs, RequiredPath, command, reading_options
from calviz.core.errors import REPORT, InputError, OptionError, needs, picked, real_path
from calviz.core.words import counted, listed

if TYPE_CHECKING:
    from calviz.cli.options import ReadingOptions
    from calviz.core.entry_specs import Metric, RecalibratorSpec
    from calviz.core.profile import Profile


#: Environment variables with the file that the app opens first, and the folder of kept comparisons.
OPEN_VARIABLE, CACHE_VARIABLE = "CALVIZ_OPEN", "CALVIZ_CACHE"
#: Names of this machine in its own browser.
OWN_NAMES = ("127.0.0.1", "localhost", "::1")
#: Addresses that stand for all of this machine.
ALL_ADDRESSES = ("0.0.0.0", "::")
#: Ports tried in this order if none is given.
PORTS = range(8501, 8601)


@command
def app(
    file: str | None = None,
    *,
    port: Annotated[int | None, {"type": click.IntRange(1, 65_535)}] = None,
    host: str = "127.0.0.1",
    allow_host: tuple[str, ...] = (),
    cache: Annotated[str | None, {"type": click.Path(file_okay=False)}] = None,
    no_browser: bool = False,
) -> None:
    """Open the dashboard, with FILE (or a folder of logs of language models) or with sample data.

    It listens on this machine only, unless --host says otherwise; opened files stay on this machine.

    Parameters
    ----------
    file
    port
        Port; a free one by default.
    host
        Address to listen on; anyone who can reach it can use the app (0.0.0.0: all addresses).
    allow_host : NAME
        Name under which it is reached besides --host (repeat; *.example.com); with --host 0.0.0.0 any name, unless one is given.
    cache : DIR
        Keep comparisons of recalibrators in DIR (500 MB), so that a link shows one without fitting again;
        everyone who uses this server shares them.
    no_browser
        Do not open a browser window.
    """
    from calviz.data.reading import project_root

    needs("streamlit", "pyarrow", *REPORT)
    root = project_root()
    if not (root / "app.py").is_file():
        raise InputError("the dashboard is not part of this installation", file="app.py")
    port = _free_port(host, port)
    opened = None if file is None else _readable(Path(file))
    for name, path in ((OPEN_VARIABLE, opened), (CACHE_VARIABLE, cache)):
        os.environ.pop(name, None)
        if path is not None:
            os.environ[name] = str(Path(path).resolve())
    flags = _flags(root, host, port, no_browser, allow_host)
    sys.argv = ["streamlit", "run", str(root / "app.py"), *flags]
    click.echo(f"calviz: open {_url(host, port)} in a browser; Ctrl+C ends it.")
    # Once its folder is gone, the server sends itself the signal that has ended it: that is no failure.
    signals = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, lambda *_: sys.exit(0)) for number in signals]
    try:
        # In this process, so that Ctrl-C stops it and no child process is left behind.
        runpy.run_module("streamlit", run_name="__main__", alter_sys=True)
    finally:
        for number, handler in zip(signals, before, strict=True):
            signal.signal(number, handler)


def _flags(
    root: Path, host: str, port: int, no_browser: bool, names: tuple[str, ...] = ()
) -> Iterator[str]:
    config = tomllib.loads((root / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
    settings = {
        f"{section}.{key}": value
        for section, entries in config.items()
        if section != "theme"  # streamlit reads it from its file; lists cannot be flags
        for key, value in entries.items()
        if not isinstance(value, list | dict)
    }
    settings["server.address"] = host
    settings["browser.gatherUsageStats"] = False
    settings["server.headless"] = no_browser
    settings["server.showEmailPrompt"] = False
    settings["server.port"] = port
    # The welcome message advertises (in the app by a card over the verdict) and asks a remote server for this machine's address.
    settings["logger.hideWelcomeMessage"] = True
    for key, value in settings.items():
        yield f"--{key}={str(value).lower() if isinstance(value, bool) else value}"
    # A page of another name that leads here could otherwise read what is open (DNS rebinding).
    if host not in ALL_ADDRESSES:
        names = (host, *names)
    for name in dict.fromkeys((*OWN_NAMES, *names) if names else ()):
        yield f"--server.allowedHosts={name}"


def _readable(file: Path) -> Path:
    if file.is_dir():
        from calviz.data.reading import Logs

        Logs.of_folder(file)  # raises if the folder holds no logs
        return file.resolve()
    if not file.is_file():
        raise InputError("there is no such file", file=str(file))
    with file.open("rb"):  # raises an OSError if unreadable, which the command line reports
        return file.resolve()


def _url(host: str, port: int) -> str:
    """Address of the app for a browser on this machine."""
    name = "localhost" if host in ALL_ADDRESSES else f"[{host}]" if ":" in host else host
    return f"http://{name}:{port}"


def _free_port(host: str, port: int | None) -> int:
    """Return `port`, or by default the first free one of `PORTS`; raises OptionError if it is, or all are, taken."""
    if port is not None:
        _check_free(host, port)
        return port
    _check_free(host, 0)  # raises for an address that does not exist
    for tried in PORTS:
        try:
            _check_free(host, tried)
        except OptionError:
            continue
        return tried
    raise OptionError(
        f"no port of {host} from {PORTS[0]} to {PORTS[-1]} is free; choose another one with --port."
    )


def _check_free(host: str, port: int) -> None:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        socket.create_server((host, port), family=family).close()
    except socket.gaierror:
        raise OptionError(f"there is no address {host!r}; leave --host out, or name one.") from None
    except OSError:
        raise OptionError(
            f"port {port} of {host} is not free, or not of this machine; choose another one."
        ) from None


# ---- Profiles


@command
def profile(
    sources: tuple[str, ...],
    *,
    out: RequiredPath,
    by: Names = None,
    engine: Literal["auto", "polars", "duckdb"] = "auto",
    memory: str | None = None,
    model: str | None = None,
    skip_broken: bool = False,
    true_class: bool = False,
    each_class: bool = False,
    json_only: Outputs,
    reading: ReadingOptions,
) -> None:
    """Sum the predictions of SOURCE (files, folders, patterns, hive-partitioned tables) out of core into a profile.

    Everything that takes a file of predictions takes a profile. Times are grouped in buckets: --time date:month. A stopped
    run continues when it is started again: finished parts are kept beside --out until it is written.

    Parameters
    ----------
    sources : SOURCE...
    out : FILE
        The profile, a .parquet file.
    by : COL,COL
        Columns to slice by.
    engine
        The library that sums the rows.
    memory : SIZE
        Memory limit of DuckDB, such as 1GB.
    model : NAME
        The model to use, if the files hold several.
    skip_broken
        Leave out and name files that cannot be read.
    true_class
        With more than two classes, also divide the cells by true class.
    each_class
        With more than two classes, add cells of each class against the rest, for class-wise errors.
    """
    from calviz.core.profile import check_target, write_profile
    from calviz.data.any_size.profiling import options_and_time, profile

    check_target(out)
    parts = Path(f"{out}.parts")
    _check_apart(sources, Path(out), parts)
    options, time, every = options_and_time(reading)
    with command_group.showing_progress():
        summed = profile(
            list(sources),
            by=by or reading.groups or (),
            time=time,
            every=every,
            engine=engine,
            memory=memory,
            model=model,
            skip_broken=skip_broken,
            true_class=true_class,
            each_class=each_class,
            parts=parts,
            **options,
        )
    write_profile(summed, out)
    shutil.rmtree(parts, ignore_errors=True)
    _say_profile(summed, out, json_only)


def _check_apart(sources: tuple[str, ...], out: Path, parts: Path) -> None:
    """Raise OptionError if the profile, or its finished parts, would be summed too."""
    from calviz.data.any_size.file_sources import find

    target, folder = real_path(out), real_path(parts)
    inside = any(Path(s).is_dir() and target.is_relative_to(real_path(s)) for s in sources)
    paths = () if inside else map(real_path, find(sources).paths)
    if inside or any(path == target or path.is_relative_to(folder) for path in paths):
        raise OptionError(
            f"--out {out} lies among the files that are summed, where it would be read as data; choose another folder."
        )


@command
def merge(profiles: tuple[str, ...], *, out: RequiredPath, json_only: Outputs) -> None:
    """Add profiles of different rows, such as the days of a month or several sites.

    Rows that are in two profiles are counted twice; the same file twice is refused.

    Parameters
    ----------
    profiles : PROFILE...
    out : FILE
        The merged profile, a .parquet file.
    """
    from calviz.core.profile import check_target, write_profile
    from calviz.data.reading import merge_files

    check_target(out)
    check_output("--out", out)
    if (twice := command_group.named_twice(profiles)) is not None:
        raise OptionError(f"{twice} is named twice: its rows would be counted twice.")
    merged = merge_files(profiles)
    write_profile(merged, out)
    _say_profile(merged, out, json_only)


def _say_profile(profile: Profile, path: str, json_only: Outputs) -> None:
    """Say what a profile holds, and which files were left out."""
    facts = profile.facts
    about = picked(facts, "name reduction groups every")
    rows = {"out": path, "rows": profile.n, "cells": profile.cells.height}
    classes = {"classes": len(facts.class_names), "class_names": facts.class_names}
    json_only.write_json({**rows, **about, **classes, "skipped": facts.skipped})
    if json_only.quiet:
        return
    show(f"{short_name(path)}: {profile.sentence()}")
    if facts.skipped:
        names = listed([short_name(name) for name in facts.skipped])
        text = f"  left out {counted(len(facts.skipped), 'file')} that cannot be read: {names}"
        show(text, "yellow")


# ---- Lists


@command
def formats(*, json_only: Outputs) -> None:
    """List the file formats that can be read, the repairs that can be requested, and the options that say how a file is read."""
    from calviz.data import FORMATS, REPAIRS

    read = [
        {"key": f.key, "name": f.label, "suffixes": f.suffixes, "holds": f.summary} for f in FORMATS
    ]
    repairs = [{"key": repair.key, "does": repair.label} for repair in REPAIRS.values()]
    json_only.write_json({"formats": read, "repairs": repairs})
    if json_only.quiet:
        return
    rows = ((f.label, " ".join(f.suffixes), f.summary) for f in FORMATS)
    _list(("format", "files", "holds"), rows)
    show()
    offered = ((f"--repair {repair.key}", repair.label) for repair in REPAIRS.values())
    _list(("repair (only if asked for)", "does"), offered)
    show()
    records = (p.get_help_record(click.get_current_context()) for p in reading_options())
    _list(("how a file is read, if not as recognised", "says"), filter(None, records))


@command
def methods(*, json_only: Outputs) -> None:
    """List the recalibrators, with their parameters and references."""
    from calviz.core.entry_specs import RECALIBRATORS

    json_only.write_json(
        {"methods": [_entry(r, keeps_predictions=r.accuracy_preserving) for r in RECALIBRATORS]}
    )
    if json_only.quiet:
        return
    titles = ("key", "name", "family", "keeps predictions", "parameters", "reference")
    rows = (
        (r.key, r.label, r.family, "yes" if r.accuracy_preserving else "no", _named(r), r.reference)
        for r in RECALIBRATORS
    )
    _list(titles, rows, unbroken="key")
    show("A parametric and a non-parametric method can be composed: first+second.", "dim")


@command
def metrics(*, json_only: Outputs) -> None:
    """List the metrics, with their parameters and references."""
    from calviz.core.entry_specs import DIRECTION_WORDS, METRICS

    json_only.write_json(
        {"metrics": [_entry(m, better=DIRECTION_WORDS[m.direction]) for m in METRICS]}
    )
    if json_only.quiet:
        return
    rows = (
        (m.key, m.label, m.family, DIRECTION_WORDS[m.direction], _named(m), m.reference)
        for m in METRICS
    )
    _list(("key", "name", "family", "better", "parameters", "reference"), rows)


def _entry(spec: Metric | RecalibratorSpec, **more: Any) -> dict[str, Any]:
    parameters = {p.name: p.default for p in spec.parameters}
    about = {"key": spec.key, "name": spec.label, "family": spec.family, **more}
    return about | {"parameters": parameters, "reference": spec.reference}


def _named(spec: Metric | RecalibratorSpec) -> str:
    return ", ".join(f"{p.name}={p.default}" for p in spec.parameters)


def _list(titles: Sequence[str], rows: Iterable[Sequence[str]], unbroken: str = "") -> None:
    """Print a table whose cells may break, except in the column `unbroken`."""
    from rich.table import Table

    table = Table(box=None, header_style="bold", pad_edge=False)
    for title in titles:
        table.add_column(title, overflow="fold", no_wrap=title == unbroken)
    for row in rows:
        table.add_row(*map(cell, row))
    console().print(table)
