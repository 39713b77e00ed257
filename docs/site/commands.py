"""A page for each command, from its help."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from typer.core import TyperGroup, TyperOption

from translucid.cli.main import tree


def write(staged: Path) -> None:
    """Write the pages and an index."""
    folder = staged / "commands"
    folder.mkdir()
    listed, names = [], []
    for path, command in leaves(tree()):
        name = "-".join(path)
        (folder / f"{name}.md").write_text(page(path, command), encoding="utf-8")
        listed.append(f"| [{' '.join(path)}]({name}.md) | {_cell(summary(command))} |")
        names.append(name)
    text = [
        "# Commands",
        "",
        "The output of `translucid COMMAND --help` for every command. Two options precede the command: `--debug` shows "
        "tracebacks, and `--log-format json` [writes machine-readable lines](../install.md#json-logs).",
        "",
        "| command | |",
        "| --- | --- |",
        *listed,
        "",
        *["```{toctree}", ":hidden:", "", *names, "```", ""],
    ]
    (folder / "index.md").write_text("\n".join(text), encoding="utf-8")


def leaves(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Return every command that is not a group, with its path."""
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            yield from leaves(command, (*path, name))
        else:
            yield (*path, name), command


def summary(command: Any) -> str:
    """Return the first paragraph of a command's help."""
    return " ".join(inspect.cleandoc(command.help or "").split("\n\n")[0].split())


def page(path: tuple[str, ...], command: Any) -> str:
    """Return the Markdown of a command."""
    arguments = [p for p in command.params if not isinstance(p, TyperOption)]
    options = [p for p in command.params if isinstance(p, TyperOption) and p.name != "help" and not p.hidden]
    called = " ".join(["translucid", *path, *(_metavar(a) for a in arguments), *(["[OPTIONS]"] if options else [])])
    lines = [f"# translucid {' '.join(path)}", "", "```text", called, "```", "", _help(command), ""]
    if any(a.help for a in arguments):
        lines += ["## Arguments", "", "| argument | |", "| --- | --- |"]
        lines += [f"| `{_metavar(a)}` | {_cell(a.help)} |" for a in arguments]
        lines.append("")
    if options:
        lines += ["## Options", "", "| option | default | |", "| --- | --- | --- |"]
        lines += [f"| {_flags(o)} | {_default(o)} | {_cell(o.help)} |" for o in options]
        lines += ["", "## In the environment", "", "| option | variable |", "| --- | --- |"]
        lines += [f"| `{max(o.opts, key=len)}` | {_variables(o)} |" for o in options if o.envvar]
        lines.append("")
    return "\n".join(lines)


def _help(command: Any) -> str:
    """Return the help, with its examples as blocks under a heading."""
    text = inspect.cleandoc(command.help or "").replace("**Examples**", "## Examples")
    return re.sub(r"(?:^ {4}.*\n?(?:\n(?= {4}))?)+", _fenced, text, flags=re.MULTILINE)


def _fenced(found: re.Match[str]) -> str:
    lines = [line[4:] for line in found[0].splitlines() if line.strip()]
    return "\n".join(["```text", *lines, "```", ""])


def _metavar(argument: Any) -> str:
    shown = argument.metavar or argument.name.upper()
    return shown if shown.startswith("[") or argument.required else f"[{shown}]"


def _flags(option: Any) -> str:
    value = "" if option.is_flag else f" {option.metavar or _kind(option)}"
    flags = [*option.opts, *option.secondary_opts]
    return "<br>".join(f"`{flag}{value}`".replace("|", "\\|") for flag in flags)


def _kind(option: Any) -> str:
    """Return the kind of an option's value, from the annotation of its parameter."""
    kind = option.type_descriptor.annotation
    if get_origin(kind) is list:
        (kind,) = get_args(kind)
    if get_origin(kind) is Literal:
        return "|".join(get_args(kind))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return "|".join(member.value for member in kind)
    return {int: "INTEGER", float: "NUMBER", Path: "FILE"}.get(kind, "TEXT")


def _default(option: Any) -> str:
    value = getattr(option.default, "value", option.default)
    return "" if value in (None, False, "", [], ()) or callable(value) else f"`{value}`"


def _variables(option: Any) -> str:
    names = [option.envvar] if isinstance(option.envvar, str) else option.envvar
    return ", ".join(f"`{name}`" for name in names)


def _cell(text: str | None) -> str:
    return " ".join((text or "").replace("|", "\\|").split())
