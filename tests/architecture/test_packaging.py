"""What is shipped: files, packages, the container."""

import importlib
import re
import subprocess
import tomllib
import zipfile
from collections import defaultdict
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import calviz
from calviz.core.errors import PURPOSES, MissingPackage
from scripts.release import EXTRAS, Failed, versions_agree

# ---- What may stand in the files of the project


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
TEXT = {".py", ".md", ".toml", ".txt", ".yml", ".yaml", ".cff", ".cfg", ".json", ".lock", ".sh", ""}


def project_files() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    if listed.returncode != 0:
        pytest.skip("not a git checkout: there is no list of the project's files")
    return [ROOT / name for name in listed.stdout.split("\0") if name]


def test_nothing_names_a_registry_or_a_machine():
    values = [
        f"{path.relative_to(ROOT)}:{text.count(chr(10), 0, found.start()) + 1} holds {what}"
        for path in project_files()
        if path.suffix in TEXT and path.is_file()
        for text in [path.read_text(encoding="utf-8")]
        for what, pattern in FORBIDDEN.items()
        for found in pattern.finditer(text)
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


# ---- Links in the documents, which GitHub and the site both show


def anchors(document: Path) -> set[str]:
    """What a link may name after #: the headings of a page, as GitHub and the site write them both."""
    text = re.sub(r"^```.*?^```$", "", document.read_text(encoding="utf-8"), flags=re.M | re.S)
    headings = re.findall(r"^#+ (.+)$", text, re.M)
    words = [re.sub(r"[^\w\s-]", "", heading.lower()).strip() for heading in headings]
    return {re.sub(r"\s", "-", w) for w in words} & {re.sub(r"[\s-]+", "-", w) for w in words}


def broken_links(document: Path, root: Path = ROOT) -> list[str]:
    """Links to a file or a heading that is not in the repository."""
    broken = []
    text = document.read_text(encoding="utf-8")
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        name, _, anchor = link.partition("#")
        target = (document.parent / name).resolve() if name else document
        if "://" not in link and not (
            target.is_relative_to(root)
            and target.exists()
            and (not anchor or anchor in anchors(target))
        ):
            broken.append(link)
    return broken


def test_links_in_the_documents_lead_somewhere():
    documents = [path for path in project_files() if path.suffix == ".md"]
    assert len(documents) > 30
    broken = {path.name: links for path in documents if (links := broken_links(path))}
    assert not broken


def test_a_link_that_leads_nowhere_is_seen(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# One two\n## `a`, b & c\n```sh\n# No heading\n```\n[a](#one-two) [b](page.md#one-two) [c](https://example.com/#x) "
        "[d](none.md) [e](#no-heading) [f](page.md#three) [g](../page.md) [h](#a-b--c)"
    )
    broken = ["none.md", "#no-heading", "page.md#three", "../page.md", "#a-b--c"]
    assert broken_links(page, tmp_path) == broken


# ---- What is installed is what is in the repository, with the app inside


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def requirements(name: str) -> list[str]:
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    return sorted(line for line in map(str.strip, lines) if line and not line.startswith("#"))


def with_extra(name: str) -> set[str]:
    """What an extra brings, through the extras that it names."""
    values = set(PROJECT["project"]["dependencies"])
    for line in PROJECT["project"]["optional-dependencies"][name]:
        inner = re.fullmatch(r"calviz\[(\w+)\]", line)
        values |= with_extra(inner[1]) if inner else {line}
    return values


def test_requirements_are_the_package_and_what_the_app_needs():
    assert requirements("requirements.txt") == sorted(with_extra("app"))


def test_the_core_is_light():
    names = {re.split(r"[<>=]", line)[0] for line in PROJECT["project"]["dependencies"]}
    light = {"click", "numpy", "polars", "rich", "scikit-learn", "scipy"}
    assert names == light | {"narwhals", "threadpoolctl"}  # which scikit-learn brings


@pytest.mark.parametrize("package", sorted(PURPOSES))
def test_what_is_named_as_missing_is_an_extra(package):
    extras = {
        line for name in PROJECT["project"]["optional-dependencies"] for line in with_extra(name)
    }
    name = package.replace("_", "-")
    assert any(re.match(rf"{name}\b", line) for line in extras)


def test_what_mlflow_brings_holds_its_default_store():
    names = {re.split(r"[<>=]", line)[0] for line in with_extra("mlflow")}
    assert names >= {
        "mlflow-skinny",
        "sqlalchemy",
        "alembic",
    }  # else sqlite:///mlflow.db is refused


def test_each_extra_is_tried_before_a_release():
    assert EXTRAS.keys() == PROJECT["project"]["optional-dependencies"].keys()


def test_the_entry_points_lead_somewhere():
    for group, entries in PROJECT["project"]["entry-points"].items():
        for target in entries.values():
            module, _, name = target.partition(":")
            loaded_module = importlib.import_module(module)
            assert not name or hasattr(loaded_module, name), f"{group}: {target}"


def test_the_development_requirements_start_from_them():
    assert "-r requirements.txt" in requirements("requirements-dev.txt")


def test_the_lock_pins_what_is_required_by_hashes():
    """`python scripts/release.py lock` makes it; a range that was changed asks for a new one."""
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    lines = re.sub(r" \\\n +", " ", text).splitlines()
    pins = defaultdict(list)
    for line in lines:
        if not line.startswith("#"):
            pinned, *hashes = line.split(" --hash=sha256:")
            requirement = Requirement(pinned)
            (version,) = requirement.specifier
            assert version.operator == "=="
            assert hashes
            assert all(re.fullmatch(r"[0-9a-f]{64}", digest) for digest in hashes)
            pins[canonicalize_name(requirement.name)].append(version.version)
    needed = [*PROJECT["build-system"]["requires"], *requirements("requirements.txt")]
    assert len(needed) >= 14
    for line in needed:
        requirement = Requirement(line)
        versions = pins[canonicalize_name(requirement.name)]
        assert versions, line
        assert all(map(requirement.specifier.contains, versions)), f"{line}: {versions}"


def test_what_travels_in_the_wheel_is_there():
    wheel = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
    for source, target in wheel["force-include"].items():
        assert (ROOT / source).exists(), source
        assert target == f"calviz/_app/{source}"


def test_the_version_is_the_version():
    assert re.fullmatch(r"\d+\.\d+\.\d+", calviz.__version__)
    assert PROJECT["tool"]["hatch"]["version"]["path"] == "calviz/core/__init__.py"
    cited = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    date = re.search(r"^date-released: (\S+)$", cited, re.M)[1]
    assert f"\nversion: {calviz.__version__}\n" in cited
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"\n## [{calviz.__version__}] - {date}\n" in changes


CHANGES = "# Changelog\n\n## [Unreleased]\n{}\n## [1.2.3] - 2030-12-31\n\n- One.\n"
CITED = "version: 1.2.3\ndate-released: 2030-12-31\n"


@pytest.mark.parametrize(
    ("changes", "cited", "said"),
    [
        (CHANGES.format(""), CITED, None),
        (CHANGES.format("\n- Two.\n"), CITED, r"under \[Unreleased\]"),
        (CHANGES.format("").replace("1.2.3", "1.2.4"), CITED, "CHANGELOG.md says 1.2.4 of"),
        (CHANGES.format("").replace("- 2030", "2030"), CITED, "no section such as"),
        (CHANGES.format("").split("## [1")[0], CITED, "no section such as"),
        (CHANGES.format(""), "version: 1.2.3\n", "1.2.3 of None"),
    ],
)
def test_a_release_has_one_version_and_one_date(tmp_path, changes, cited, said):
    (tmp_path / "calviz" / "core").mkdir(parents=True)
    (tmp_path / "calviz" / "core" / "__init__.py").write_text('__version__ = "1.2.3"\n')
    (tmp_path / "CHANGELOG.md").write_text(changes)
    (tmp_path / "CITATION.cff").write_text(cited)
    if said is None:
        assert versions_agree(tmp_path, tmp_path) == "1.2.3 of 2030-12-31"
    else:
        with pytest.raises(Failed, match=said):
            versions_agree(tmp_path, tmp_path)


def test_a_wheel_holds_the_app(tmp_path, monkeypatch):
    build = pytest.importorskip("hatchling.build", reason="hatchling is not installed")
    monkeypatch.chdir(ROOT)
    name = build.build_wheel(str(tmp_path))
    with zipfile.ZipFile(tmp_path / name) as wheel:
        held = set(wheel.namelist())
    expected = {"calviz/py.typed", "calviz/_app/app.py", "calviz/_app/.streamlit/config.toml"}
    expected |= {f"calviz/_app/pages/{p.name}" for p in (ROOT / "pages").glob("*.py")}
    expected |= {
        str("calviz/_app" / p.relative_to(ROOT))
        for p in (ROOT / "sample_data").rglob("*")
        if p.is_file() and "__pycache__" not in p.parts
    }
    assert expected <= held
    assert not [n for n in held if n.endswith((".pyc", ".local.json"))]
    assert not [n for n in held if n.startswith("tests/")]


# ---- The container: not root, watched, and with everything that the package is built from


DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
IGNORED = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
COPIED = {
    name for line in re.findall(r"^COPY (.+)$", DOCKERFILE, re.M) for name in line.split()[:-1]
}


def test_what_the_wheel_is_built_from_is_copied_and_not_ignored():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    needed = {
        Path(name).parts[0]
        for name in project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    }
    needed |= {"calviz", "pyproject.toml", "requirements.lock", project["project"]["readme"]}
    assert needed <= COPIED
    assert not COPIED & set(IGNORED)


@pytest.mark.parametrize("name", sorted(COPIED))
def test_what_is_copied_is_there(name):
    assert (ROOT / name).exists()


def test_what_it_installs_is_fixed():
    base, installs = (
        re.findall(r"^FROM (.+)$", DOCKERFILE, re.M),
        re.findall(r"^RUN pip (.+)$", DOCKERFILE, re.M),
    )
    assert all(re.fullmatch(r"python:[\w.-]+@sha256:[0-9a-f]{64}", image) for image in base)
    assert [
        "--require-hashes" in line or {"--no-deps", "--no-build-isolation"} <= set(line.split())
        for line in installs
    ] == [True, True]


def test_it_does_not_run_as_root_and_is_watched():
    instructions = re.findall(r"^([A-Z]+) (.*)$", DOCKERFILE, re.M)
    users = [text for word, text in instructions if word == "USER"]
    assert users
    assert users[-1] not in {"root", "0"}
    assert [word for word, _ in instructions].count("HEALTHCHECK") == 1
    last, command = instructions[-1]
    assert last == "CMD"
    assert command.startswith('["calviz", "app"')


def test_a_space_finds_the_container():
    """The front matter of README.md, as Hugging Face Spaces read it; their containers run as user 1000."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    head, rest = text.removeprefix("---\n").split("---\n", 1)
    space = dict(line.split(": ", 1) for line in head.splitlines())
    colours = {"red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray"}
    assert space["sdk"] == "docker"
    assert re.search(rf"^EXPOSE {space['app_port']}$", DOCKERFILE, re.M)
    assert f'"--port", "{space["app_port"]}"' in DOCKERFILE
    assert "useradd --create-home --uid 1000 " in DOCKERFILE
    assert {space["colorFrom"], space["colorTo"]} <= colours
    assert len(space["short_description"]) <= 60
    assert rest.startswith("\n# calviz\n")


def test_the_extra_that_an_error_names_installs_what_is_missing():
    """Each extra, with those that it holds, against the packages of `MissingPackage`; distributions have other names than modules."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    for module in PURPOSES:
        [named] = re.findall(r"pip install 'calviz\[(\w+)\]'", str(MissingPackage(module)))
        lines = [*extras[named], *(extras["report"] if "calviz[report]" in extras[named] else [])]
        names = [re.split(r"[^\w-]", line)[0] for line in lines]
        assert {"mlflow": "mlflow-skinny"}.get(module, module.replace("_", "-")) in names, module
