"""Docstrings of the public names, and the help of the commands, as Markdown."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from types import FunctionType
from typing import Any

#: Modules whose public names are written down, and what they are for.
MODULES = {
    "calviz": "The library",
    "calviz.figures": "Figures",
    "calviz.integrations.mlflow": "MLflow",
    "calviz.integrations.wandb": "Weights & Biases",
    "calviz.integrations.pytest_plugin": "pytest",
}
#: Longest line of a signature.
LINE = 88
_SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}\n", re.MULTILINE)


def python_pages() -> str:
    """Every public name: signature and docstring."""
    return "\n\n".join(["# Python", *_modules()]) + "\n"


def public(module: Any) -> dict[str, Any]:
    """Names that are in ``__all__``, else what the module itself defines without an underscore."""
    names = getattr(module, "__all__", None) or [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__
    ]
    found = {name: getattr(module, name) for name in names if not name.startswith("_")}
    return {
        name: value for name, value in found.items() if inspect.getdoc(value) and callable(value)
    }


def _modules() -> Iterator[str]:
    for name, title in MODULES.items():
        module = importlib.import_module(name)
        yield f"## {title}: `{name}`"
        for key, value in public(module).items():
            yield _entry(f"{name}.{key}", value)


def _entry(name: str, value: Any) -> str:
    parts = [
        f"### {name.rpartition('.')[2]}",
        f"```python\n{name}{_signature(value, name=name)}\n```",
    ]
    parts.append(markdown(inspect.getdoc(value) or ""))
    if inspect.isclass(value):
        for key, member in vars(value).items():
            bound = getattr(value, key, None)
            if key.startswith("_") or not isinstance(member, FunctionType | classmethod):
                continue
            first = (inspect.getdoc(member) or "").split("\n\n")[0].replace("\n", " ")
            parts.append(f"- `{key}{_signature(bound)}` {first}")
    return "\n\n".join(parts)


def _signature(value: Any, *, name: str = "") -> str:
    """The parameters with their defaults, one a line where they are long; kinds are in the docstring."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return "(...)"
    bare = [p.replace(annotation=p.empty) for p in found.parameters.values() if p.name != "self"]
    text = str(found.replace(parameters=bare, return_annotation=found.empty))
    if len(name) + len(text) <= LINE or not name:
        return text
    lines = [f"    {part}," for part in _parts(bare)]
    return "\n".join(["(", *lines, ")"])


def _parts(parameters: list[inspect.Parameter]) -> Iterator[str]:
    """The parameters as they are written, with the star before those that have to be named."""
    starred = False
    for p in parameters:
        if p.kind is p.KEYWORD_ONLY and not starred:
            yield "*"
        starred |= p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)
        yield str(p)


def markdown(docstring: str) -> str:
    r"""A numpydoc docstring as Markdown: sections in bold, entries as a list, examples as code.

    >>> print(markdown("Add.\n\nParameters\n----------\nx : int\n    A number."))
    Add.
    <BLANKLINE>
    **Parameters**
    <BLANKLINE>
    - **x** : int: A number.
    """
    head, *rest = _SECTION.split(docstring)
    parts = [head.strip()]
    for title, body in zip(rest[::2], rest[1::2], strict=True):
        parts.append(f"**{title}**")
        parts.append(_body(title, body.rstrip()))
    # One backtick is code in Markdown, two are in numpydoc; three are a block.
    return re.sub(r"(?<!`)``(?!`)", "`", "\n\n".join(part for part in parts if part))


def _body(title: str, body: str) -> str:
    if title == "Examples":
        return f"```python\n{body}\n```"
    if title in ("Notes", "References"):
        return body
    items: list[str] = []
    for line in body.splitlines():
        if line.startswith(" ") and items:
            text = line.strip()
            items[-1] += (": " if items[-1].endswith("\n") else " ") + text if text else ""
            items[-1] = items[-1].replace("\n: ", ": ")
        elif line.strip():
            name, colon, kind = line.partition(" : ")
            starred = name.replace("*", r"\*")
            items.append(f"- **{starred}**{colon}{kind}\n")
    return "\n".join(item.rstrip("\n") for item in items)


def command_pages() -> str:
    """The help of every command."""
    import click

    from calviz.cli.group import main

    parts = ["# Command line", (main.help or "").strip()]
    context = click.Context(main, info_name="calviz")
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        assert command is not None
        inner = click.Context(command, info_name=name, parent=context, terminal_width=100)
        parts += [f"## {name}", f"```text\n{command.get_help(inner)}\n```"]
    return "\n\n".join(parts) + "\n"
