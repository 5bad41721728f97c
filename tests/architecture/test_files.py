"""What may stand in the files of the project."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Put together here, so that this file does not hold what it looks for.
FORBIDDEN = {
    "a package registry's host": re.compile(
        "|".join(["py" + r"pi\.org", "python" + r"hosted\.org", "conda" + r"\.anaconda\.org"])
    ),
    "a path of somebody's machine": re.compile(
        r"(?<![\w.])/(" + "|".join(["ho" + "me", "ro" + "ot", "wo" + "rk", "Us" + "ers"]) + r")/\w"
    ),
    "a pickle that would be loaded": re.compile(
        r"allow_pickle\s*=\s*Tr" + r"ue|pickle\.lo" + r"ads?\("
    ),
}
TEXT = {".py", ".md", ".toml", ".txt", ".yml", ".yaml", ".cfg", ".json", ".sh", ""}


def project_files() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout: there is no list of the project's files")
    return [ROOT / name for name in listed.stdout.split("\0") if name]


def test_nothing_names_a_registry_or_a_machine():
    values = [
        f"{path.relative_to(ROOT)}:{number} holds {what}"
        for path in project_files()
        if path.suffix in TEXT and path.is_file()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        for what, pattern in FORBIDDEN.items()
        if pattern.search(line)
    ]
    assert not values, "\n".join(values)


def test_no_file_is_large():
    large = [p.name for p in project_files() if p.is_file() and p.stat().st_size > 5_000_000]
    assert not large


@pytest.mark.parametrize("page", ["ARCHITECTURE.md", "CONTRIBUTING.md"])
def test_the_documents_name_paths_that_exist(page):
    """Paths of files and folders are relative to the project or to the package; a file may be named alone."""
    files = {p.relative_to(ROOT).as_posix() for p in project_files()}
    known = files | {str(folder) for file in files for folder in Path(file).parents}
    alone = {Path(file).name for file in files}
    text = (ROOT / page).read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w/]+\.(?:py|md|toml|json|yml)|\w+(?:/\w+)+)/?`", text))
    assert len(named) > 20
    missing = {n for n in named - known - alone if f"calviz/{n}" not in known}
    assert not missing
