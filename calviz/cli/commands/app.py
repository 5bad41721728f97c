"""``calviz app``: the dashboard in a browser, served on this machine only."""

from __future__ import annotations

import os
import runpy
import socket
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click

from calviz.core.errors import InputError, OptionError
from calviz.core.extra_packages import REPORT, needs

#: Environment variable with the file that the app opens first.
OPEN_VARIABLE = "CALVIZ_OPEN"
HOST = "127.0.0.1"
#: Ports tried in this order if none is given.
PORTS = range(8501, 8601)


@click.command()
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--port", type=click.IntRange(1, 65_535), help="Port; a free one by default.")
@click.option(
    "--host",
    default=HOST,
    show_default=True,
    help="Address to listen on; anyone who can reach it can use the app (0.0.0.0: all addresses).",
)
@click.option("--no-browser", is_flag=True, help="Do not open a browser window.")
def command(file: Path | None, port: int | None, host: str, no_browser: bool) -> None:
    """Open the dashboard, with FILE (or a folder of logs of language models) or with sample data.

    It listens on this machine only, unless --host says otherwise; opened files stay on this machine.
    """
    from calviz.data.samples import project_root

    needs("streamlit", "pyarrow", *REPORT)
    root = project_root()
    if not (root / "app.py").is_file():
        raise InputError("the dashboard is not part of this installation", file="app.py")
    port = _free_port(host, port)
    os.environ.pop(OPEN_VARIABLE, None)
    if file is not None:
        os.environ[OPEN_VARIABLE] = str(_readable(file))
    sys.argv = ["streamlit", "run", str(root / "app.py"), *_flags(root, host, port, no_browser)]
    click.echo(f"calviz: open {_url(host, port)} in a browser; Ctrl+C ends it.")
    # In this process, so that Ctrl-C stops it and no child process is left behind.
    runpy.run_module("streamlit", run_name="__main__", alter_sys=True)


def _flags(root: Path, host: str, port: int, no_browser: bool) -> Iterator[str]:
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


def _readable(file: Path) -> Path:
    if file.is_dir():
        from calviz.data.folders import Logs

        Logs.of_folder(file)  # raises if the folder holds no logs
        return file.resolve()
    if not file.is_file():
        raise InputError("there is no such file", file=str(file))
    with file.open("rb"):  # raises an OSError if unreadable, which the command line reports
        return file.resolve()


def _url(host: str, port: int) -> str:
    """Address of the app for a browser on this machine."""
    name = "localhost" if host in ("0.0.0.0", "::") else f"[{host}]" if ":" in host else host
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
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except OSError:
        raise OptionError(f"there is no address {host!r}; leave --host out, or name one.") from None
    with socket.socket(family, kind) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(address)
        except OSError:
            raise OptionError(
                f"port {port} of {host} is not free, or not of this machine; choose another one."
            ) from None
