"""A server that notes what it writes, starts and connects to: ``python audited.py LOG app ...``."""

import json
import os
import runpy
import sys

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGES = ("os.mkdir", "os.rename", "os.link", "os.symlink", "os.truncate", "shutil.move")
OUTSIDE = ("socket.connect", "socket.getaddrinfo", "subprocess.Popen", "os.system", "os.exec")


def watch(log: str) -> None:
    """Write one line per event; what Python itself opens by number is not of interest."""
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(*what: object) -> None:
        os.write(out, (json.dumps([str(w) for w in what]) + "\n").encode())

    def hook(event: str, args: tuple[object, ...]) -> None:
        if event == "open" and isinstance(args[2], int) and args[2] & WRITING:
            if not isinstance(args[0], int):
                note("write", args[0], args[1])
        elif event in CHANGES:
            note("write", args[0], event)
        elif event in OUTSIDE:
            note("outside", event, args[1:] if event.startswith("socket") else args)

    sys.addaudithook(hook)


if __name__ == "__main__":
    watch(sys.argv[1])
    sys.argv = ["calviz", *sys.argv[2:]]
    runpy.run_module("calviz", run_name="__main__", alter_sys=True)
