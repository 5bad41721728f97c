"""The group of commands: finds them, and turns every error into one sentence."""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import pkgutil
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn, TextIO

import click

from calviz.cli import commands
from calviz.cli.text import say, sentence
from calviz.core.errors import CalvizError
from calviz.core.extra_packages import PURPOSES, MissingPackage
from calviz.core.version import __version__

#: Exit codes: success; a --fail-on threshold is crossed; wrong input or arguments.
FINE, CROSSED, WRONG = 0, 1, 2
#: Exit codes that a shell reports after Ctrl-C, after a closed pipe, and for a program that was asked to end.
INTERRUPTED, PIPE_CLOSED, ENDED = 130, 141, 143


class CommandGroup(click.Group):
    """A click group whose commands are the files of `calviz.cli.commands`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the commands, in alphabetical order."""
        return sorted(m.name.replace("_", "-") for m in pkgutil.iter_modules(commands.__path__))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command only when it is called, so that the others cost no time."""
        if cmd_name not in self.list_commands(ctx):
            return None
        command: click.Command = importlib.import_module(
            f"{commands.__name__}.{cmd_name.replace('-', '_')}"
        ).command
        return command

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
            say(sentence(error))
        except MemoryError:
            say("there is not enough memory for this file.")
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else WRONG
            if code == ENDED:
                say("ended; no output file is left incomplete.")
        except Exception as error:
            if isinstance(error, ModuleNotFoundError) and error.name in PURPOSES:
                say(str(MissingPackage(error.name)))
                sys.exit(WRONG)
            if os.environ.get("CALVIZ_DEBUG"):
                raise
            say(
                f"this should not have happened ({type(error).__name__}: {error}); "
                "please report it, with what CALVIZ_DEBUG=1 shows."
            )
        if code in (PIPE_CLOSED, INTERRUPTED, ENDED):
            _abandon_stdout()
        sys.exit(code)


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
    text = error.format_message().rstrip(".")
    context = getattr(error, "ctx", None)
    where = context.command_path if context is not None else "calviz"
    return f"{text}; see '{where} --help'."


def _abandon_stdout() -> None:
    # Python flushes once more when it ends, and would complain about the closed pipe.
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@click.group("calviz", cls=CommandGroup, invoke_without_command=True)
@click.version_option(__version__, prog_name="calviz", message="%(prog)s %(version)s")
@click.pass_context
def main(ctx: click.Context) -> None:
    """Can I trust these probabilities? Calibration of any classifier, with its error bars.

    Exit codes: 0 fine; 1 a --fail-on threshold is crossed; 2 the input or the arguments are wrong.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())
