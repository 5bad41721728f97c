"""What is installed is what is in the repository, with the app inside."""

import importlib
import re
import tomllib
import zipfile
from pathlib import Path

import pytest

import calviz
from calviz.core.errors import PURPOSES

ROOT = Path(__file__).parents[2]
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
    assert any(re.match(rf"{package}\b", line) for line in extras)


def test_the_entry_points_lead_somewhere():
    for group, entries in PROJECT["project"]["entry-points"].items():
        for target in entries.values():
            module, _, name = target.partition(":")
            loaded_module = importlib.import_module(module)
            assert not name or hasattr(loaded_module, name), f"{group}: {target}"


def test_the_development_requirements_start_from_them():
    assert "-r requirements.txt" in requirements("requirements-dev.txt")


def test_what_travels_in_the_wheel_is_there():
    wheel = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
    for source, target in wheel["force-include"].items():
        assert (ROOT / source).exists(), source
        assert target == f"calviz/_app/{source}"


def test_the_version_is_the_version():
    assert re.fullmatch(r"\d+\.\d+\.\d+", calviz.__version__)
    assert PROJECT["tool"]["hatch"]["version"]["path"] == "calviz/core/__init__.py"


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
