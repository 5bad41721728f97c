"""Pin what the image installs, and check what is released.

    python scripts/release.py lock     # requirements.lock: the newest versions, with hashes
    python scripts/release.py check    # one line per step; exit code 1 if a step fails

The image installs `requirements.lock` (any platform, Python from 3.11 on). The lines of README.md, and `.ci/run`, which is one of
them, take the newest packages in the ranges of `requirements.txt`, as users do. `check` tries both.

Tools (uv, build, twine, cyclonedx-bom) and calviz itself are installed into environments of a temporary folder. What is released is
then in `dist`: the source, the wheel, and the list of what the image contains (SBOM, CycloneDX as JSON).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
#: What can be imported with each extra.
EXTRAS = {
    "report": ("pandas", "plotly", "jinja2", "latex2mathml", "pyarrow", "python_calamine"),
    "app": ("streamlit",),
    "llm": ("pyarrow",),
    "hdf5": ("h5py",),
    "scale": ("duckdb",),
    "spark": ("pyspark.sql",),
    "mlflow": ("mlflow", "alembic", "sqlalchemy", "calviz.integrations.mlflow"),
    "wandb": ("wandb", "calviz.integrations.wandb"),
}
#: Opens the app as a browser does, and waits for the verdict on the sample data; the port is its argument.
VISIT = """
import sys
from streamlit.proto.BackMsg_pb2 import BackMsg
from websockets.sync.client import connect

visit = BackMsg()
visit.rerun_script.query_string = ""
address = f"ws://127.0.0.1:{sys.argv[1]}/_stcore/stream"
with connect(address, subprotocols=["streamlit"], max_size=None) as server:
    server.send(visit.SerializeToString())
    while b"Overconfident by" not in server.recv(timeout=60):
        pass
"""


class Failed(Exception):
    """A step of the check failed; the text says why."""


def run(*command: object, folder: Path, given: str | None = None) -> str:
    """Return what a command prints in a folder; raises Failed with its error, or the last line of what it says."""
    outside = {k: v for k, v in os.environ.items() if k not in {"PYTHONPATH", "VIRTUAL_ENV"}}
    done = subprocess.run(
        list(map(str, command)), cwd=folder, env=outside, input=given, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        said = done.stderr.strip() or done.stdout.strip()
        error = re.search(r"^error\b.*", said, re.M | re.S | re.I)
        text = " ".join(error[0].split()) if error else said.rpartition("\n")[2]
        raise Failed(f"{Path(str(command[0])).name}: {text[:500]}")
    return done.stdout


def tools(folder: Path, *packages: str) -> Path:
    """Install packages into an environment for tools, and return its folder of commands."""
    programs = folder / "tools" / "bin"
    run(sys.executable, "-m", "venv", folder / "tools", folder=folder)
    run(programs / "pip", "install", "--quiet", *packages, folder=folder)
    return programs


def lock(folder: Path) -> None:
    """Write the lock: for any platform and Python from 3.11 on, without the address of an index.

    The image builds calviz without isolation, so that the lock holds the build backend too.
    """
    uv = tools(folder, "uv") / "uv"
    run(
        uv, "pip", "compile", "requirements.txt", "-", "--universal", "--python-version", "3.11", "--generate-hashes", "--upgrade",
        "--no-annotate", "--custom-compile-command", "python scripts/release.py lock", "--output-file", "requirements.lock",
        folder=ROOT, given="\n".join(project()["build-system"]["requires"]),
    )  # fmt: skip


def project() -> dict[str, dict[str, dict[str, list[str]]]]:
    """Return the content of `pyproject.toml`."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def version(root: Path = ROOT) -> str:
    """Return the version in the code."""
    text = (root / "calviz" / "core" / "__init__.py").read_text(encoding="utf-8")
    return re.findall(r'^__version__ = "(.+)"$', text, re.M)[0]


# ---- The steps of the check: each returns what it found, or raises Failed


def versions_agree(_: Path, root: Path = ROOT) -> str:
    """Compare the code, CITATION.cff, and the newest section of CHANGELOG.md, above which nothing may be unreleased."""
    changes = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    unreleased, *sections = re.split(r"^## \[", changes, flags=re.M)[1:]
    if unreleased.partition("\n")[2].strip():
        raise Failed("CHANGELOG.md has entries under [Unreleased]")
    newest = re.match(r"(.+)\] - (\d{4}-\d\d-\d\d)\n", sections[0] if sections else "")
    if not newest:
        raise Failed("CHANGELOG.md has no section such as ## [1.2.3] - 2030-12-31")
    cited = dict(
        re.findall(r"^(version|date-released): (.+)$", (root / "CITATION.cff").read_text(), re.M)
    )
    named = {
        "calviz.__version__": version(root),
        "CITATION.cff": f"{cited.get('version')} of {cited.get('date-released')}",
        "CHANGELOG.md": f"{newest[1]} of {newest[2]}",
    }
    if named["CITATION.cff"] != named["CHANGELOG.md"] or newest[1] != version(root):
        raise Failed(", ".join(f"{name} says {said}" for name, said in named.items()))
    return named["CHANGELOG.md"]


def is_built(folder: Path) -> str:
    """Build the source, and the wheel from it."""
    shutil.rmtree(DIST, ignore_errors=True)
    programs = tools(folder, "build", "twine", "uv", "cyclonedx-bom")
    run(programs / "python", "-m", "build", "--outdir", DIST, ROOT, folder=folder)
    return ", ".join(f"{p.name} {p.stat().st_size / 1e6:.1f} MB" for p in sorted(DIST.iterdir()))


def is_described(folder: Path) -> str:
    """Check the metadata, and that the readme can be shown by an index."""
    run(folder / "tools/bin/twine", "check", "--strict", *DIST.iterdir(), folder=folder)
    return "twine check --strict"


def environment(folder: Path, name: str, *requirements: object) -> Path:
    """Install into a fresh environment, and return its folder of commands."""
    uv, home = folder / "tools/bin/uv", folder / name
    run(uv, "venv", "--quiet", "--python", sys.executable, home, folder=folder)
    if requirements:
        run(uv, "pip", "install", "--quiet", "--python", home, *requirements, folder=folder)
    return home / "bin"


def wheel() -> Path:
    """Return the path of the built wheel."""
    return next(DIST.glob("*.whl"))


def core_audits(folder: Path) -> str:
    """Install the wheel alone, with the newest packages that it allows, and audit a file."""
    programs = environment(folder, "core", wheel())
    rows = "\n".join(f"{i % 3 % 2},{i % 10 / 10},{1 - i % 10 / 10:.1f}" for i in range(300))
    (folder / "rain.csv").write_text(f"label,p_0,p_1\n{rows}\n")
    return run(programs / "calviz", "audit", "rain.csv", folder=folder).splitlines()[0]


def image_is_installed(folder: Path) -> str:
    """Install what the image holds: the lock by pip with its hashes, then calviz."""
    pip = (folder / "tools/bin/pip", "--python", environment(folder, "image") / "python")
    install = (*pip, "install", "--quiet", "--only-binary", ":all:")
    run(*install, "--require-hashes", "-r", ROOT / "requirements.lock", folder=folder)
    # By its name, as the path of a wheel would stand in the SBOM.
    found = ("--no-deps", "--no-index", "--find-links", DIST, f"calviz=={version()}")
    run(*install, *found, folder=folder)
    return run(*pip, "check", folder=folder).strip()


def a_file_is_audited(folder: Path) -> str:
    """Audit a file, with a report."""
    run(folder / "image/bin/calviz", "audit", "rain.csv", "--html", "report.html", folder=folder)
    return f"report.html {(folder / 'report.html').stat().st_size / 1e6:.1f} MB"


def the_sample_is_there(folder: Path) -> str:
    """Read the sample data from the wheel."""
    code = "import calviz; print(calviz.verdict(calviz.sample('digits'), split='test').sentence)"
    return run(folder / "image/bin/python", "-c", code, folder=folder).strip()


def the_app_answers(folder: Path) -> str:
    """Start the app, ask for its health and its page, and wait for the verdict on the sample data."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    programs, address = folder / "image/bin", f"http://127.0.0.1:{port}"
    command = [programs / "calviz", "app", "--port", str(port), "--no-browser"]
    server = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        last = time.monotonic() + 60
        while time.monotonic() < last and server.poll() is None:
            with suppress(OSError), urllib.request.urlopen(f"{address}/_stcore/health", timeout=5):
                break
            time.sleep(0.2)
        else:
            raise Failed(f"no answer from {address}")
        with urllib.request.urlopen(address, timeout=5) as page:
            if b"<html" not in page.read():
                raise Failed(f"no page at {address}")
        run(programs / "python", "-c", VISIT, port, folder=folder)
    finally:
        server.terminate()
        server.wait(30)
    return address


def contents_are_listed(folder: Path) -> str:
    """Write the SBOM of the image's Python packages, and compare it with the lock."""
    target = DIST / f"calviz-{version()}.cdx.json"
    run(
        folder / "tools/bin/cyclonedx-py", "environment", folder / "image", "--pyproject", ROOT / "pyproject.toml",
        "--output-format", "JSON", "--output-reproducible", "--validate", "--output-file", target, folder=folder,
    )  # fmt: skip
    listed = json.loads(target.read_text(encoding="utf-8"))
    # pyproject.toml, from which the rest of the component is, reads it from the code.
    listed["metadata"]["component"]["version"] = version()
    target.write_text(json.dumps(listed, indent=2) + "\n", encoding="utf-8")
    found = {f"{p['name'].lower().replace('_', '-')}=={p['version']}" for p in listed["components"]}
    # Pins without a condition: those hold on any platform.
    pins = re.findall(r"^(\S+==\S+) \\$", (ROOT / "requirements.lock").read_text(), re.M)
    if missing := [pin for pin in pins if pin not in found]:
        raise Failed(f"{target.name} lacks {', '.join(missing)}")
    return f"{target.name}, {len(found)} packages"


def extras_import(folder: Path) -> str:
    """Install the wheel with each extra into an environment of its own, and import what it brings."""
    for extra, modules in EXTRAS.items():
        programs = environment(folder, extra, f"calviz[{extra}] @ {wheel().as_uri()}")
        run(programs / "python", "-c", f"import {', '.join(modules)}", folder=folder)
        shutil.rmtree(programs.parent)
    return ", ".join(EXTRAS)


#: What is said, the step, and whether the next ones need it.
STEPS: list[tuple[str, Callable[[Path], str], bool]] = [
    ("versions agree", versions_agree, False),
    ("source and wheel are built", is_built, True),
    ("metadata", is_described, False),
    ("the wheel alone audits", core_audits, True),
    ("what the image holds is installed", image_is_installed, True),
    ("audit with a report", a_file_is_audited, False),
    ("sample data", the_sample_is_there, False),
    ("the app answers", the_app_answers, False),
    ("SBOM", contents_are_listed, False),
    ("extras", extras_import, False),
]


def check(folder: Path) -> int:
    """Print a line per step; return 1 if one fails."""
    code = 0
    for what, step, is_needed in STEPS:
        try:
            print(f"ok      {what}: {step(folder)}", flush=True)
        except (Failed, OSError, subprocess.TimeoutExpired) as error:
            print(f"FAILED  {what}: {error}", flush=True)
            code = 1
            if is_needed:
                break
    return code


def main() -> int:
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("command", choices=["lock", "check"])
    command = parser.parse_args().command
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        return check(folder) if command == "check" else lock(folder) or 0


if __name__ == "__main__":
    sys.exit(main())
