"""Docstrings of the public names, and the help of the commands, as Markdown."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from types import FunctionType
from typing import Any

#: Documented modules, and their titles.
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
    """Page with signature and docstring of every public name."""
    return "\n\n".join(["# Python", *_modules()]) + "\n"


def public(module: Any) -> dict[str, Any]:
    """Documented callables of ``__all__``, or without it the public names that the module itself defines."""
    names = getattr(module, "__all__", None) or [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__
    ]
    members = {name: getattr(module, name) for name in names if not name.startswith("_")}
    return {
        name: value for name, value in members.items() if inspect.getdoc(value) and callable(value)
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
    """Format the parameters with defaults and without types, one per line if they are long."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return "(...)"
    bare = [
        p.replace(annotation=p.empty) for p in signature.parameters.values() if p.name != "self"
    ]
    text = str(signature.replace(parameters=bare, return_annotation=signature.empty))
    if len(name) + len(text) <= LINE or not name:
        return text
    lines = [f"    {part}," for part in _parts(bare)]
    return "\n".join(["(", *lines, ")"])


def _parts(parameters: list[inspect.Parameter]) -> Iterator[str]:
    """Parameters as texts, with a star before the keyword-only ones."""
    starred = False
    for p in parameters:
        if p.kind is p.KEYWORD_ONLY and not starred:
            yield "*"
        starred |= p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)
        yield str(p)


def markdown(docstring: str) -> str:
    r"""Convert a numpydoc docstring to Markdown: sections in bold, entries as a list, examples as code.

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
    # Code has one backtick in Markdown and two in numpydoc; three begin a block.
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
    """Page with the help of every command."""
    import click

    from calviz.cli.command_group import main

    parts = ["# Command line", (main.help or "").strip()]
    # click keeps the option of help of a command as it was first asked for.
    context = click.Context(main, info_name="calviz", **main.context_settings)
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        assert command is not None
        inner = click.Context(command, info_name=name, parent=context, terminal_width=100)
        parts += [f"## {name}", f"```text\n{command.get_help(inner)}\n```"]
    return "\n\n".join(parts) + "\n"
