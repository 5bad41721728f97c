"""What the code may look like: its size, its layers, its names and docstrings."""

import ast
import re
import subprocess
import sys
import textwrap
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from benchmarks.code_size import ROOT, Size, measured, parsed, statements
from calviz.core.entry_specs import CHECKS
from calviz.data.format import Notice

# ---- The counts of `python -m benchmarks.code_size` may only fall; whoever raises a limit writes the reason beside it


#: At most so many. Reasons for the code lines, the newest last: added, taken off elsewhere, for what.
#:
#: 58,300         the merge of 700 files by subject into 226, with 1,930 imports between them
#: +12,000        columns that can be read in several ways 2,600; statements that hold for what they select 1,400; promises for
#:                tomorrow's rows 2,700; judges, logs of language models, answers that are samples 2,400; numeric features, segments,
#:                folds and sites 2,600; the shape of JSON and a screen of text 300
#:         -9,100 what is declared once, drawn by marks and printed by one writer; with it 170 imports
#: +320           models below each other 60, shares refused before a file is read 40, words and grades of a judge that are asked about
#:                110, headers that come again 45, a reload that keeps the files 35, reports of several models in short 30
#: +270    -245   found wrong by strangers: values outside the range, ragged lines, rows of the file, spellings; names of classes, slices
#:                and changes; classes and scores that calibrated files lost; lost bins
#: +430    -190   rows that the model was trained on 115, a slice within a slice that carries the fault 140, what a file leaves open 105,
#:                rare events 45, splits by their values 20
#: +280    -220   slices that differ from the rest, with sizes, also of clustered rows 120; labels left out, percentages of one model of
#:                several 60; one event 20; where scores stay off after a map 40
#: +340    -230   titles above a header 65, columns and names of classes that a map is applied by 60, roles shown as read 35, where more
#:                of the kept are wrong 80, slices that hold most of the error or alone are right, changes among patients 100
#: +1,400  -210   models compared after a map 250, told dialects and questions in place of failures 230, thresholds of predicted classes 190,
#:                changes within slices 180, segments that are advised 115, calibrated files as they were read 110, the slice of a headline
#:                drawn 100, counts over all models and other finds of a bank 55, sizes and months of changes 45, rare events 30, links and maps
#:                that say what they are of 60; with it 8 imports, and 5 lines of the largest file
#: +1,310 -240   maps that leave the rows outside their slice alone 310, files without labels 180, labels asked about with pairs 165, predicted
#:                classes as slices, a second fault, changes with weights and clusters 150, links of several files and limits named above
#:                headlines 150, axes and numbers of rare events 95, numbers with thresholds, starts of tests, logits within 0 to 1 70;
#:                weights that are seen as such, and rows of weighted files that are counted 50; with it 21 imports
#: +860    -420   found wrong by strangers: faults that ended or came back, with their days 70; slices above a score, alerts and events of rare
#:                events 85; where two models have another order 160; weights asked about with their effect, counts that are rows 110; thresholds
#:                that keep exactly what they promise, by pairs 75; days as conditions of rows and maps 60; sizes centred given the selection 45;
#:                a 0 that decides a comparison, a second map on a file, a second judge 75; with it 4 imports, 25 lines of the largest file
#: +760    -550   hours and weekdays as slices 90 net; maps of slices that move a class, dates of programs, words for missing numbers, what a map
#:                leaves 125; earlier rows fit, later judge 40; the day of a change by its likelihood 35; a slice that makes the order of two
#:                models 25; bins of clusters without events, labels still to come, days shaded 45; the rest is paid for where it stands
#: +220   -115    found wrong by strangers: pairs of values that are off only together, changes in them, intervals of few hits, numbers of one row
#:                each 50; second models and dates with gaps in one click 15; what leads a headline 25; names of rooms as addresses, one legend
#:                of several diagrams, the AUROC first of rare events 20; which class a score is of by its fit, empty cells of models 70, for which 55
#:                are taken off where files are read; with it 4 imports
#: +129         outcomes by another name, which were sliced and corrected by, 52; labels matched with classes beside rare ones 35; of amounts,
#:                more than 0 as the event 29; groups that may be models 13
#: +590         verdicts of several judges as models 130; classes of clustered rows, sites, days and ages as DICOM writes them 60; thresholds of
#:                clustered and weighted rows, events that are missed, what the other model says 60; class means against the rest, columns that
#:                say the same 75; changes in slices that are off 35; open cases in the file taken home, formats of dates 85; the slope in a
#:                headline, sizes beside those to expect 25; choices on Groups in the address, quarters 65; columns of the file in any table
#:                55; with it 12 imports, 9 lines of the largest file
#: +58    -185   slices of clusters tested as classes are 9, times with an offset said to be in UTC 4; several slices lead as one does, the rows of
#:                all counted once, and what changed is said where its slice is shown 45; with it 1 import
#: +125   -80    edges of a slice as the fitting rows tell them 42; a map of all rows before that of a slice, and what a map does to its slice 22; these
#:                rows drawn 18; lists that are cut off 15; classes by numbers beside their names 28; with it 3 imports
#: +50    -30    a predicted class within a slice that carries what differs, and slices that are off as their class is 30; words 20
#: +290   -110   a map of a slice with one of the other rows 70; models below each other with gaps, a judge that names them, confidences by their name, a
#:                map of one model applied to its rows 80; sizes of changes with intervals, pairs of both signs, what lies within a slice 60; what is
#:                promised of alerts 20, rows without a date 10, verdicts that are known afterwards 15, squares of a changed slice 15, words 20; with it 1 import
#: +65           a class that is off in a slice is named
#: +280   -35    months as slices, and what returns every year is no change 75; rows of one day that depend on each other 40; keys of several columns,
#:                fill values, several wide models 78; nested columns in a calibrated file, long numbers, intervals of slopes 46; lists of labels,
#:                titles above sheets 25; two values where all rows are off, words 16; with them 2 imports
#: +63    -20    where the best model is off 27, the map of a slice by a key with its options 12, sets that are not resampled again 6; the Brier skill
#:                score 13
#: +375   -280   cases with two labels, roles of all rows, fields matched by name, models read block by block 95; pairs of NPY files, the question
#:                what says whether it was right, quarters, the answered file again 100; days as clusters in one place 0, slices tested without the
#:                rows of those before 0, thresholds whose search is refuted 3; with it 1 import
#: +343   -209   scores beside a list of their classes, confidences of SPSS, first classes in ranks, raw scores 117; labels of items that several judges share
#:                38; models below each other without labels, each one's headline, the class that holds the rest 40; codes that repeat, flags beside
#:                blanks, points 37; panels of sites 21; a change outside the slice that is off 12; with it 4 imports
#: +198   -205   one of several judges, and a section on the judge in a report 49; columns that name the class of the score beside them, clusters of one
#:                row of each model, scores that are models after all, the event named first 38; a slice of the rows of a bin, slices that are off
#:                all the time 24; forecasts in percent, units, a score that tells the label 26; progress, plain words 9; an address
#:                that reads an open file in another way 10, files whose splits differ 12, what is wrong where in a promise 16; with it 4 imports
#: +150   -154   a class within a slice that is off alone 55, what a map leaves off 12, names of models and few rows 20, looks 35, a file that is not
#:                compared 5; imports of what is used once 70, before and after a map beside the pin 10
#: +144         models of several columns by their sums, without labels 60, by their names 35, and by a role 25; labels that count the classes of
#:              all models alike 15, other models that are no groups, tab-separated files 9
#: +61          what is off all the time beside a slice that changed 30; a class searched in slices beside any other error, in one way 19;
#:              a slice above a score where few others have such scores 12
#: +138         answers of language models: two confidences, log-probabilities, what was right by its words, roles in any order 55; thresholds by
#:              group that are chosen on a half 10; the bend of the worst bin 8, a second slice by name, those off only by rows of the first 24,
#:              a snippet for one score 4, decimal points beside commas 4; what is expected after a change 7, a threshold that says that there was one 6 (2 imports), the furthest bin 6,
#:              rows that are not in a split 2, the title of Time 1
LIMITS = {
    "files": 212,
    "code lines": 69_251,
    "code lines per file, most": 593,
    "imports between files": 1_874,
    "rooms": 12,
    "floors": 8,
    "recurring file names": 0,
}


@pytest.fixture(scope="module", autouse=True)
def _no_trees_left_behind() -> Iterator[None]:
    yield
    parsed.cache_clear()


@pytest.fixture(scope="module")
def size() -> Size:
    return measured()


@pytest.mark.parametrize("count", LIMITS)
def test_the_code_does_not_grow(size, count):
    largest = sorted(size.lines.items(), key=lambda item: -item[1])[:3]
    found = size.counts()[count]
    assert found <= LIMITS[count], f"{found} {count}; {size.recurring}, largest {largest}"


def test_limits_follow_the_code_down(size):
    """A limit far above the count would let it grow unseen."""
    counts = size.counts()
    loose = {c: counts[c] for c, limit in LIMITS.items() if counts[c] < 0.95 * limit}
    assert not loose, f"lower the limits of {loose}"


def test_what_is_counted(tmp_path):
    files = {
        "calviz/__init__.py": '"""Text."""\nfrom calviz.core.a import f\n',
        "calviz/core/a.py": 'def f():\n    """Text\n    of two lines."""\n    # Why.\n\n    return """x\n    """\n',
        "calviz/core/b.py": "import calviz.core.a\ndef g():\n    from calviz.core import a, a as c\n",
        "pages/a.py": "from calviz import f\nimport calviz.core.missing\n",
        "app.py": "if TYPE_CHECKING:\n    from calviz.core.b import (\n        g,\n    )\n",
        "pyproject.toml": '[tool.importlinter]\ncontracts = [{type = "layers", layers = ["calviz.__main__", "calviz.core"]}]\n',
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    size = measured(tmp_path)
    assert size.lines == {
        "calviz/__init__.py": 1,
        "calviz/core/a.py": 3,
        "calviz/core/b.py": 3,
        "pages/a.py": 2,
        "app.py": 4,
    }
    assert size.imports == {
        ("calviz/__init__.py", "calviz/core/a.py"),
        ("calviz/core/b.py", "calviz/core/a.py"),
        ("pages/a.py", "calviz/__init__.py"),
        ("app.py", "calviz/core/b.py"),
    }
    assert (size.rooms, size.floors, size.recurring) == (["core"], 1, [])


def test_names_that_recur_are_seen():
    assert Size({"calviz/a/x.py": 1, "calviz/b/x.py": 1}, set(), 1).recurring == ["x.py"]


def test_the_table_in_architecture_is_today_s(size):
    """Within a twentieth, so that small changes need no new table."""
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    for name, count in size.counts().items():
        row = next(line for line in page.splitlines() if line.startswith(f"| {name} |"))
        written = float(row.strip("| ").split(" | ")[-1].replace(",", ""))
        assert abs(written - count) <= 0.05 * count, row


# ---- Every code of a finding or a notice is declared in one place: in `CHECKS` by its check, or in `Notice`


CODE = re.compile(r"(CAL|DATA)\d{3}")


@cache
def strings(code: str) -> list[tuple[int, str]]:
    """Line and text of every string; docstrings are no such strings."""
    tree = parsed(code)
    documents = {
        id(node.body[0].value)
        for node in (tree, *statements(tree))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    return [
        (node.lineno, node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if id(node) not in documents
    ]


def codes_in(path: Path) -> Counter[str]:
    """Codes among the strings of a file."""
    texts = strings(path.read_text(encoding="utf-8"))
    return Counter(text for _, text in texts if CODE.fullmatch(text))


def declared_by(path: Path) -> list[str]:
    """Codes that a file registers with ``check("...", ...)`` or ``Check("...", ...)``."""
    return [
        node.args[0].value
        for node in ast.walk(parsed(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "").lower() == "check"
        if isinstance(node.args[0], ast.Constant)
    ]


def test_every_code_is_declared_in_the_file_that_yields_it():
    folder = ROOT / "calviz/verdicts"
    declared = {path.name: declared_by(path) for path in folder.glob("*.py")}
    assert sorted(code for codes in declared.values() for code in codes) == list(CHECKS.keys())
    for name, codes in declared.items():
        before = {CHECKS[code].before for code in codes}.difference(codes)
        assert set(codes_in(folder / name)) - before == set(codes), (
            f"{name} yields the finding of another file"
        )


def test_no_other_file_writes_a_code_out():
    elsewhere = {
        str(path.relative_to(ROOT)): set(codes)
        for path in [
            ROOT / "app.py",
            *(ROOT / "pages").rglob("*.py"),
            *(ROOT / "calviz").rglob("*.py"),
        ]
        if path.parent != ROOT / "calviz/verdicts"
        if (codes := codes_in(path))
    }
    assert elsewhere == {"calviz/data/format.py": {notice.value for notice in Notice}}


def test_every_kind_of_notice_is_used():
    used = {
        node.attr
        for path in (ROOT / "calviz/data").rglob("*.py")
        for node in ast.walk(parsed(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "Notice"
    }
    assert used == {notice.name for notice in Notice}
    assert len({notice.title for notice in Notice}) == len(Notice)


# ---- Imports point down only, and streamlit stays upstairs (the contracts are in pyproject.toml)


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
    """Line and room of every string that is the name of a module of calviz."""
    return [
        (line, match[1])
        for line, text in strings(code)
        if (match := re.match(r"calviz\.(\w+)(\.\w*)*$", text))
    ]


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
    parts = ["tests/contract/test_package.py", "tests/contract/test_cli.py"]
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
    for node in statements(parsed(path.read_text(encoding="utf-8"))):
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


# ---- A name of a class, or of a type, means one thing in the whole package


def named_in(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Name and line of each class, and of each type that a module names, such as ``Scheme = Literal[...]``."""
    for node in statements(tree):
        if isinstance(node, ast.ClassDef):
            yield node.name, node.lineno
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            is_type_variable = "TypeVar(" in (value := ast.unparse(node.value)) or "Spec(" in value
            if name.lstrip("_")[:1].isupper() and not name.isupper() and not is_type_variable:
                yield name, node.lineno


def test_names_are_unique():
    homes = defaultdict(list)
    for path in sorted((ROOT / "calviz").rglob("*.py")):
        for name, line in named_in(parsed(path.read_text(encoding="utf-8"))):
            homes[name].append(f"{path.relative_to(ROOT)}:{line}")
    assert len(homes) > 500
    assert {name: places for name, places in homes.items() if len(places) > 1} == {}


def test_what_counts_as_a_name():
    code = "class A: ...\nSide = Literal['b']\nLIMIT = 3\nT = TypeVar('T')\nc = Side\ndef f():\n    class D: ..."
    assert sorted(name for name, _ in named_in(parsed(code))) == ["A", "D", "Side"]


# ---- What docstrings say: the shapes of arrays, and what belongs in a folder


PACKAGE = ROOT / "calviz"
ARRAYS = {"FloatArray", "IntArray", "BoolArray"}
#: "shape (n,)", "a sum of any shape", or the shape alone: "(n, K)".
SHAPE = re.compile(r"\bshapes?\b|\((\.\.\.|[A-Za-z]\w*),( [^)]*)?\)")


def array_functions(code: str) -> Iterator[tuple[str, str]]:
    """Name and docstring of each public function and method that takes or gives arrays."""
    bodies = [("", parsed(code).body)]
    for prefix, body in bodies:
        for node in body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                bodies.append((f"{node.name}.", node.body))
            if not isinstance(node, ast.FunctionDef) or node.name.startswith("_"):
                continue
            arguments = [a.annotation for a in (*node.args.args, *node.args.kwonlyargs)]
            named = {
                name.id
                for annotation in (*arguments, node.returns)
                if annotation is not None
                for name in ast.walk(annotation)
                if isinstance(name, ast.Name)
            }
            if named & ARRAYS:
                yield prefix + node.name, ast.get_docstring(node) or ""


@pytest.mark.parametrize("room", ["core", "sample", "metrics"])
def test_array_functions_name_shapes(room):
    seen, silent = 0, []
    for path in sorted((PACKAGE / room).rglob("*.py")):
        for name, text in array_functions(path.read_text(encoding="utf-8")):
            seen += 1
            if not SHAPE.search(text):
                silent.append(f"{path.relative_to(ROOT)}: {name}")
    assert seen > 20
    assert not silent, "\n".join(silent)


def test_a_function_without_a_shape_is_seen():
    code = 'class A:\n    def f(self, x: FloatArray | None) -> int:\n        """Rows (all of them)."""\n'
    ((name, text),) = array_functions(code)
    assert name == "A.f"
    assert not SHAPE.search(text)
    assert SHAPE.search("From (n, K) to a number.")
    assert SHAPE.search("Shape (...,), or a number of shape ().")


def test_no_name_is_given_twice_in_a_file():
    """The second constant would replace the first in the functions between them, too."""
    twice = []
    for path in sorted(PACKAGE.glob("**/*.py")):
        names = Counter(
            target.id
            for node in parsed(path.read_text(encoding="utf-8")).body
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        )
        twice += [f"{path.relative_to(PACKAGE)}: {name}" for name, n in names.items() if n > 1]
    assert not twice, "\n".join(twice)


def test_every_folder_says_what_belongs_in_it():
    """A paragraph."""
    short = []
    for path in sorted(PACKAGE.glob("**/__init__.py")):
        folder = path.parent.relative_to(PACKAGE)
        text = ast.get_docstring(parsed(path.read_text(encoding="utf-8"))) or ""
        if len(text) < 80:
            short.append(f"{folder}: {text}")
    assert not short, "\n".join(short)


# ---- The tools of the house, run by the tests so that one command tells everything


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["ruff", "check", "."], id="ruff-check"),
        pytest.param(["ruff", "format", "--check", "."], id="ruff-format"),
        pytest.param(["mypy"], id="mypy", marks=pytest.mark.slow),
    ],
)
def test_the_tool_has_nothing_to_say(arguments):
    pytest.importorskip(arguments[0], reason=f"{arguments[0]} is not installed")
    result = subprocess.run(
        [sys.executable, "-m", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
