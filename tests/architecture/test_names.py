"""A class name means one thing in the whole package."""

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_class_name_is_unique():
    homes = defaultdict(list)
    for path in sorted((ROOT / "calviz").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert len(homes) > 400
    assert {name: places for name, places in homes.items() if len(places) > 1} == {}
