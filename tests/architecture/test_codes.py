"""Every code of a finding or a notice is declared in one place: in `CHECKS` by its check, or in `Notice`."""

import ast
import re
from collections import Counter
from pathlib import Path

from calviz.core.entry_specs import CHECKS
from calviz.data.loaded import Notice

ROOT = Path(__file__).parents[2]
CODE = re.compile(r"(CAL|DATA)\d{3}")


def codes_in(path: Path) -> Counter[str]:
    """Codes among the strings of a file; docstrings hold more than a code."""
    return Counter(
        node.value
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and CODE.fullmatch(str(node.value))
    )


def declared_by(path: Path) -> list[str]:
    """Codes that a file registers with ``check("...", ...)`` or ``Check("...", ...)``."""
    return [
        node.args[0].value
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "").lower() == "check"
        if isinstance(node.args[0], ast.Constant)
    ]


def test_every_code_is_declared_in_the_file_that_yields_it():
    folder = ROOT / "calviz/verdicts"
    declared = {path.name: declared_by(path) for path in folder.glob("*.py")}
    assert sorted(code for codes in declared.values() for code in codes) == list(CHECKS.keys())
    for name, codes in declared.items():
        assert set(codes_in(folder / name)) == set(codes), (
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
    assert elsewhere == {"calviz/data/loaded.py": {notice.value for notice in Notice}}


def test_every_kind_of_notice_is_used():
    used = {
        node.attr
        for path in (ROOT / "calviz/data").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "Notice"
    }
    assert used == {notice.name for notice in Notice}
    assert len({notice.title for notice in Notice}) == len(Notice)
