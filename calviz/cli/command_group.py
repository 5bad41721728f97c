"""The group of commands, which turns errors into one sentence, and how commands write text and files."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import shlex
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

import click
from click.shell_completion import CompletionItem

from calviz.core import __version__, errors
from calviz.core.errors import CalvizError, InputError, OptionError, nearest, real_path
from calviz.core.words import shorten, terminal_text

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

#: The commands by the module that holds them, each as a function of its name, with a summary that fits beside it.
_COMMANDS = {
    "calviz.cli.audit": {"audit": "Measure the calibration of FILE, and say what was found."},
    "calviz.cli.compare_commands": {
        "arena": "Compare methods on many files: a leaderboard.",
        "compare": "Compare recalibrators of FILE on rows they did not see.",
        "compare-models": "Compare the models in FILE... on their common rows.",
        "folds": "Evaluate each fold of a cross-validation by itself.",
        "judge": "Correct a judge, such as a language model, by people.",
        "over-time": "Measure FILE from period to period.",
        "sites": "Evaluate each site, and expect an interval for a new one.",
        "slices": "Find the groups of rows whose scores are off.",
        "watch": "Look at new rows, and alarm when calibration is lost.",
    },
    "calviz.cli.recalibrate_commands": {
        "apply": "Apply a saved map to FILE, which needs no labels.",
        "expected": "Estimate the performance of FILE before labels come.",
        "recalibrate": "Fit a map on some rows of FILE, write all calibrated.",
        "sets": "Choose the threshold of prediction sets.",
        "threshold": "Choose a threshold whose risk is guaranteed.",
    },
    "calviz.cli.service_commands": {
        "app": "Open the dashboard.",
        "formats": "List file formats, repairs, and options of reading.",
        "merge": "Add profiles of different rows.",
        "methods": "List the recalibrators.",
        "metrics": "List the metrics.",
        "profile": "Sum files of any size into a profile.",
    },
}
#: The commands with their summaries, in alphabetical order.
_SUMMARIES = dict(sorted(row for rows in _COMMANDS.values() for row in rows.items()))
#: Exit codes: success; a --fail-on threshold is crossed; wrong input or arguments.
FINE, CROSSED, WRONG = 0, 1, 2
#: Exit codes that a shell reports after Ctrl-C, after a closed pipe, and for a program that was asked to end.
INTERRUPTED, PIPE_CLOSED, ENDED = 130, 141, 143
EXIT_CODES = (
    "Exit codes: 0 fine; 1 a --fail-on threshold is crossed, or watch alarms; 2 the file or the arguments are wrong; "
    "130 stopped by Ctrl-C; 143 stopped by SIGTERM; 141 the reader of the output has closed it."
)


class CommandGroup(click.Group):
    """A click group that imports a command only when it is called, so that the others cost no time."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the commands, in alphabetical order."""
        return list(_SUMMARIES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command; None if there is no such command."""
        for module, names in _COMMANDS.items():
            if cmd_name in names:
                return getattr(importlib.import_module(module), cmd_name.replace("-", "_"))
        return None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands with their summaries; none is imported."""
        with formatter.section("Commands"):
            formatter.write_dl(list(_SUMMARIES.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The commands that begin so, or options; no command is imported."""
        rows = _SUMMARIES.items()
        found = [CompletionItem(n, help=text) for n, text in rows if n.startswith(incomplete)]
        return found + click.Command.shell_complete(self, ctx, incomplete)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; an unknown one is answered with the nearest."""
        known = self.list_commands(ctx)
        if args[0] not in known and not args[0].startswith("-") and not ctx.resilient_parsing:
            near = nearest(args[0], known)
            raise click.UsageError(f"No such command '{args[0]}'{near and f'; {near}'}", ctx)
        return super().resolve_command(ctx, args)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep what was typed, for commands to run in its place."""
        self.typed = [*args]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; if the reader of its output has closed the pipe, return the exit code for that."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # click would exit with 1, the code of a crossed threshold
            return PIPE_CLOSED

    def main(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Run a command line and exit with its code; errors are one sentence, without a traceback."""
        for name in ("stdout", "stderr"):
            if getattr(sys, name) is None:  # closed by the caller, as by >&- in a shell
                setattr(sys, name, _nowhere())
        for stream in (sys.stdout, sys.stderr):
            # A class name that the console cannot encode must not stop the command.
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")
        kwargs["standalone_mode"] = False
        kwargs.setdefault("prog_name", "calviz")
        code = WRONG
        try:
            with _ending_orderly():
                code = super().main(*args, **kwargs) or FINE
                sys.stdout.flush()
        except (click.Abort, KeyboardInterrupt):
            say("interrupted; no output file is left incomplete.")
            code = INTERRUPTED
        except click.ClickException as error:
            say(_usage(error))
        except BrokenPipeError:
            code = PIPE_CLOSED
        except (CalvizError, OSError) as error:
            say(sentence(error), *ways_to_read(error))
        except MemoryError:
            say("there is not enough memory for this file.")
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else WRONG
            if code == ENDED:
                say("ended; no output file is left incomplete.")
        except Exception as error:
            if isinstance(error, ModuleNotFoundError) and error.name in errors.PURPOSES:
                say(str(errors.MissingPackage(error.name)))
                sys.exit(WRONG)
            if os.environ.get("CALVIZ_DEBUG"):
                raise
            say(
                f"this should not have happened ({type(error).__name__}: {error}); "
                "please report it, with what CALVIZ_DEBUG=1 shows."
            )
        if code in (PIPE_CLOSED, INTERRUPTED, ENDED):
            # Python flushes once more when it ends, and would complain about the closed pipe.
            with contextlib.suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(code)


@click.group(
    "calviz",
    cls=CommandGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=EXIT_CODES,
)
@click.version_option(__version__, prog_name="calviz", message="%(prog)s %(version)s")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Can I trust these probabilities? Calibration of any classifier, with its error bars."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@contextlib.contextmanager
def _ending_orderly() -> Iterator[None]:
    """Let the signal by which systems end programs (SIGTERM) remove incomplete files first; a second one ends at once."""

    def end(*_: object) -> NoReturn:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        raise SystemExit(ENDED)

    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGTERM) is end:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _nowhere() -> TextIO:
    return Path(os.devnull).open("w", encoding="utf-8")


def _usage(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    where = context.command_path if context is not None else "calviz"
    text = error.format_message().rstrip(".")
    if isinstance(error, click.MissingParameter) and error.param and error.param.name == "method":
        text += ": 'calviz compare FILE --methods suggested' recommends one"
    if isinstance(error, click.NoSuchOption) and context is not None:
        known = [name for option in context.command.params for name in option.opts]
        near = nearest(error.option_name, known)
        text = f"No such option '{error.option_name}'{near and f'; {near}'}"
    return f"{text}{'' if text.endswith('?') else ';'} see '{where} --help'."


# ---- Standard input

_STDIN = "calviz.stdin"


def standard_input() -> str:
    """Path of a temporary file with all of standard input, until the command ends: formats are read from several places."""
    context = click.get_current_context().find_root()
    if _STDIN not in context.meta:
        from calviz.data.format import Source, format_of

        path = Path(context.with_resource(tempfile.TemporaryDirectory(prefix="calviz-"))) / "stdin"
        if sys.stdin is None:  # closed by the caller
            raise OptionError("standard input is closed: pipe a file into it, or name one.")
        with path.open("wb") as stream:
            shutil.copyfileobj(sys.stdin.buffer, stream)
        # Files of any size are known by their endings.
        with contextlib.suppress(CalvizError):
            path = path.rename(path.with_suffix(format_of(Source(path)).suffixes[0]))
        context.meta[_STDIN] = str(path)
    return str(context.meta[_STDIN])


def as_given(file: str) -> str:
    """The path of a file as the user has given it; "stdin" for standard input."""
    context = click.get_current_context(silent=True)
    is_stdin = context is not None and context.find_root().meta.get(_STDIN) == file
    return "stdin" if is_stdin else file


# ---- Output files


#: Options for which ``-`` is standard output.
_TO_STDOUT = ("--json", "--markdown")


class OutputOption(click.Option):
    """An option whose value is the path of a file that the command writes."""


def check_output(option: str, path: str | None) -> None:
    """Raise OptionError if no file can be written to the path, or it would replace one that is read or another output; nothing is touched.

    None is fine, and ``-`` for the options that write to standard output.
    """
    _refuse_stdout(option, path)
    if path is not None and path != "-":
        errors.check_place(path, f"{option} {path}")
        target = real_path(path)
        if target in _paths_read():
            raise OptionError(f"{option} {path} would replace the file that is read; give another.")
        if target.exists() and not target.is_file():
            return  # a device such as /dev/null takes several outputs
        for other, other_path in _outputs():
            if other != option and real_path(other_path) == target:
                raise OptionError(f"{option} and {other} name the same file, {path}; give two.")


def check_folder(path: str) -> None:
    """Raise OptionError if the path of ``--out`` cannot be a folder of files, or be made; nothing is touched."""
    _refuse_stdout("--out", path)
    absolute = Path(path).absolute()
    there = next(place for place in (absolute, *absolute.parents) if place.exists())
    if not there.is_dir():
        where = "" if there == absolute else f"'{there.name}' "
        raise OptionError(f"--out {path} must be a folder, and {where}is a file.")
    if not os.access(there, os.W_OK):
        raise OptionError(f"--out {path} cannot be written to; give another folder.")


def _refuse_stdout(option: str, path: str | None) -> None:
    if path == "-" and option not in _TO_STDOUT:
        raise OptionError(
            f"{option} - is not a file; only {' and '.join(_TO_STDOUT)} write to standard output."
        )


def _outputs() -> list[tuple[str, str]]:
    """Options of the running command that write files, with their paths."""
    context = click.get_current_context(silent=True)
    if context is None:
        return []
    values = {
        option.opts[0]: context.params.get(option.name or "")
        for option in context.command.params
        if isinstance(option, OutputOption)
    }
    return [(option, path) for option, path in values.items() if path not in (None, "-")]


def _paths_read() -> set[Path]:
    """The files and folders that are arguments of the running command, and the files of ``--labels`` and ``--map``."""
    context = click.get_current_context(silent=True)
    if context is None:
        return set()
    read = (context.params.get(name) for name in ("labels", "map"))
    values: list[str] = [path for path in read if path]
    for argument in context.command.params:
        if isinstance(argument, click.Argument):
            value = context.params.get(argument.name or "") or ()
            values += [value] if isinstance(value, str) else value
    return {real_path(value) for value in values}


def write(content: str | bytes, path: str) -> None:
    """Write to a file or, for ``-``, to standard output."""
    if path == "-":
        click.echo(content, nl=False)
    else:
        errors.write_output(path, content)


# ---- Text for a terminal


#: Width of tables written to a file or a pipe, in characters.
WIDE = 240


def short_name(name: str) -> str:
    """Return a name for a table, shortened if it is very long."""
    return shorten(terminal_text(name), 60)


def sentence(error: CalvizError | OSError) -> str:
    """Describe an error in one sentence, with the option that would help."""
    if isinstance(error, InputError) and error.repairs and not error.further:
        repairs = " or ".join(f"--repair {repair.key}" for repair in error.repairs)
        return f"{str(error).rstrip('.')} ({repairs})."
    if isinstance(error, CalvizError):
        return str(error)
    unnamed = "the output: " if error.errno in errors.FULL else ""
    place = f"{os.fspath(error.filename)}: " if error.filename else unnamed
    reason = error.strerror or str(error) or type(error).__name__
    return f"{place}{reason[:1].lower()}{reason[1:]}."


def ways_to_read(error: CalvizError | OSError) -> list[str]:
    """The ways to read doubtful data, each with the options that choose it, or the whole command where they replace what was typed."""
    ways = error.ways if isinstance(error, InputError) else ()
    return [f"{reading.label}: {_in_place(reading)}" for reading in ways]


def _in_place(reading: errors.Reading) -> str:
    names = {*reading.options} - {"repair"}  # of which each adds to those before
    names |= {"scores", "models"} if names & {"scores", "models"} else set()
    flags = errors.Reading("", dict.fromkeys(names, "")).in_shell().split()
    own = [word.partition("=")[0] not in flags for word in main.typed]
    value = [False, *(word in flags for word in main.typed)]
    left = [w for w, a, b in zip(main.typed, own, value, strict=False) if a and not b]
    return f"{shlex.join(['calviz', *left])} " * (not all(own)) + reading.in_shell()


def sentence_on(error: CalvizError | OSError, file: str) -> str:
    """Describe an error about a file in one sentence, which names the file."""
    if isinstance(error, InputError):
        return sentence(error.in_file(Path(file).name))
    is_named = isinstance(error, OSError) or getattr(error, "file", None) is not None
    if is_named or str(error).startswith((file, Path(file).name)):
        return sentence(error)
    return f"{as_given(file)}: {sentence(error)}"


@contextlib.contextmanager
def naming(file: str, *, options: bool = True) -> Iterator[None]:
    """Name the file in errors about what it holds.

    Parameters
    ----------
    file : str
    options : bool
        Whether an `OptionError` is about what the file holds too: an option names something that is not in it. Options that are wrong for
        every file should be refused before it is read.
    """
    try:
        yield
    except InputError as error:
        raise error.in_file(Path(file).name) from error.__cause__
    except (OptionError, errors.NotAvailable) as error:
        if isinstance(error, OptionError) and not options:
            raise
        named = type(error)(sentence_on(error, file))
        if isinstance(named, OptionError):
            named.file = getattr(error, "file", None) or Path(file).name  # named once
        raise named from error.__cause__


def named_twice(files: Sequence[str]) -> str | None:
    """Return the first file that is the same as one before it."""
    paths = [real_path(file) for file in files]
    return next((file for i, file in enumerate(files) if paths[i] in paths[:i]), None)


def say(text: str, *more: str) -> None:
    """Write a line to standard error, and indented ones below it."""
    lines = (f"calviz: {terminal_text(text)}", *(f"  {terminal_text(line)}" for line in more))
    with contextlib.suppress(BrokenPipeError):
        click.echo("\n".join(lines), err=True)


def cell(value: Any, style: str = "") -> Text:
    """Make a table cell that shows its text literally (no markup, no control characters)."""
    from rich.text import Text

    return Text(terminal_text(str(value)), style=style)


def show(text: Any = "", style: str = "") -> None:
    """Write a line to standard output, literally; the terminal breaks it."""
    console().print(cell(text, style), soft_wrap=True)


def table_of(*titles: str, left: Sequence[str] = ()) -> Table:
    """Make a table without lines; the first column, and those in `left`, are left-aligned."""
    from rich.table import Table

    table = Table(box=None, header_style="dim", pad_edge=False)
    for number, title in enumerate(titles):
        table.add_column(
            title, justify="left" if title in left or not number else "right", no_wrap=True
        )
    return table


def console() -> Console:
    """Make a console on standard output; tables keep their full width if it is not a terminal."""
    from rich.console import Console

    class Literal(Console):
        def print(self, *objects: Any, **options: Any) -> None:
            with self.capture() as drawn:
                super().print(*objects, **options)
            lines = drawn.get().split("\n")
            try:
                sys.stdout.write("\n".join(map(str.rstrip, lines)))
                sys.stdout.flush()
            except BrokenPipeError:
                if not _outputs():
                    raise
                # The reader of the table has closed the pipe, but the files still have to be written.
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    width = None if sys.stdout.isatty() else WIDE
    return Literal(width=width, highlight=False, markup=False, emoji=False)


@contextlib.contextmanager
def showing_progress() -> Iterator[None]:
    """Show the current step on standard error while the context lasts, if that is a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    from calviz.core.blocks import watching

    def show(doing: str) -> None:
        if doing:
            click.echo(f"\r\x1b[K{terminal_text(doing)}", nl=False, err=True)

    try:
        with watching(show):
            yield
    finally:
        click.echo("\r\x1b[K", nl=False, err=True)
