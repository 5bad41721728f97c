"""Imports point down only, and streamlit stays upstairs (the contracts are in pyproject.toml)."""

import ast
import re
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_the_import_contracts_hold():
    pytest.importorskip("importlinter")
    result = run(
        """
        import sys
        from importlinter.cli import lint_imports
        sys.exit(lint_imports(config_filename="pyproject.toml", no_cache=True))
        """
    )
    assert result.returncode == 0, result.stdout + result.stderr


def levels() -> dict[str, int]:
    """How far down each room is: 0 at the top."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = config["tool"]["importlinter"]["contracts"][0]["layers"]
    return {
        room.split(".")[1]: depth
        for depth, rooms in enumerate(layers)
        for room in rooms.split(" | ")
    }


def modules_named(code: str) -> list[tuple[int, str]]:
    """Line and room of every string that is the name of a module of calviz; docstrings are no such strings."""
    tree = ast.parse(code)
    documents = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    return [
        (node.lineno, match[1])
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if id(node) not in documents
        if (match := re.match(r"calviz\.(\w+)(\.\w*)*$", node.value))
    ]


@pytest.mark.slow
def test_no_file_names_a_module_of_a_room_above_it():
    """An import by name goes down like any other; `calviz/__init__.py`, above all rooms, may name them."""
    depth = levels()
    up = []
    for path in sorted((ROOT / "calviz").glob("*/**/*.py")):
        own = path.relative_to(ROOT / "calviz").parts[0].removesuffix(".py")
        for line, room in modules_named(path.read_text(encoding="utf-8")):
            if room != own and depth.get(room, len(depth)) <= depth[own]:
                up.append(f"{path.relative_to(ROOT)}:{line} names calviz.{room}")
    assert not up, "\n".join(up)


def test_a_name_in_a_string_is_seen():
    code = '"""calviz.app"""\nload("calviz.metrics.binned"); f"calviz.app.{page}"; "calviz.x y"'
    assert modules_named(code) == [(2, "metrics"), (2, "app")]


def test_importing_calviz_is_cheap():
    result = run(
        """
        import sys
        import calviz
        heavy = {"numpy", "pandas", "polars", "pyarrow", "plotly", "scipy", "sklearn", "streamlit"}
        print(sorted(heavy & set(sys.modules)))
        """
    )
    assert result.stdout.strip() == "[]", result.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments", [["--version"], ["metrics"], ["formats"], ["audit", "{file}", "--ci"]]
)
def test_the_command_line_leaves_the_screens_alone(arguments, tmp_path):
    file = tmp_path / "small.csv"
    file.write_text("label,p_a,p_b\n0,0.9,0.1\n1,0.2,0.8\n0,0.4,0.6\n")
    arguments = [a.format(file=file) for a in arguments]
    result = run(
        f"""
        import sys
        from calviz.cli import main
        try:
            main({arguments!r})
        except SystemExit as stop:
            assert not stop.code, stop.code
        heavy = {{"pandas", "plotly", "sklearn", "streamlit", "matplotlib"}}
        print(sorted(heavy & set(sys.modules)))
        """
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip().splitlines()[-1] == "[]"


@pytest.mark.slow
def test_library_command_line_and_figures_work_where_streamlit_does_not():
    """Tests that go through all of it once more, in a process in which streamlit cannot be imported."""
    parts = ["tests/contract/test_api.py", "tests/contract/test_cli_documents.py"]
    result = run(
        f"""
        import sys
        sys.modules["streamlit"] = None
        import pytest
        sys.exit(pytest.main([*{parts!r}, "-q", "-p", "no:cacheprovider", "-m", "not slow"]))
        """
    )
    assert result.returncode == 0, result.stdout[-4_000:] + result.stderr[-2_000:]


#: Imports for type checking that close a circle and stay: constructors of a class, traces of a figure.
WITHIN_A_METHOD = {
    ("calviz.core.registry", "calviz.core.predictions"),
    ("calviz.figures.reliability_traces", "calviz.figures.reliability"),
}


def imports_of(path: Path) -> set[str]:
    """Names that a module imports: when it is loaded, inside functions, and for type checking."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def circle_in(graph: dict[str, set[str]]) -> list[str]:
    """One circle of a graph; empty if it has none."""
    done: set[str] = set()
    for start in graph:
        path: list[str] = []
        pending = [(start, iter(sorted(graph[start])))] if start not in done else []
        while pending:
            name, followers = pending[-1]
            if name not in path:
                path.append(name)
            follower = next(followers, None)
            if follower is None:
                done.add(path.pop())
                pending.pop()
            elif follower in path:
                return [*path[path.index(follower) :], follower]
            elif follower not in done:
                pending.append((follower, iter(sorted(graph[follower]))))
    return []


def test_no_module_imports_itself_by_way_of_others():
    modules = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): path
        for path in (ROOT / "calviz").rglob("*.py")
        if path.name != "__init__.py"
    }
    graph = {name: imports_of(path) & modules.keys() - {name} for name, path in modules.items()}
    assert sum(map(len, graph.values())) > 1_000
    for module, other in WITHIN_A_METHOD:
        graph[module].remove(other)  # raises KeyError if there is no such import any more
    assert not circle_in(graph)


def test_a_circle_is_seen():
    assert circle_in({"a": {"b"}, "b": {"c", "d"}, "c": set(), "d": {"b"}}) == ["b", "d", "b"]
    assert circle_in({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []
