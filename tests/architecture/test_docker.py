"""The container: not root, watched, and with everything that the package is built from."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
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
    needed |= {"calviz", "pyproject.toml", "requirements.txt", project["project"]["readme"]}
    assert needed <= COPIED
    assert not COPIED & set(IGNORED)


@pytest.mark.parametrize("name", sorted(COPIED))
def test_what_is_copied_is_there(name):
    assert (ROOT / name).exists()


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
