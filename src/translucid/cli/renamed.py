"""Former commands, options and variables, which are refused with their current form."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Sequence
from typing import Any

from typer.core import TyperGroup
from typer.exceptions import TyperException

FORMER_OPTIONS = {
    "--with": "--ensemble",
    "--from": "--init-from",
    "--considered": "--top-candidates",
    "--split-sentences": "--lines sentences",
    "--no-split-sentences": "--lines whole",
    "--sample": "--temperature 1",
    "--no-sample": "--beam 1",
    "--inflect-terms": "--terms-mode inflect",
    "--terms-mode auto": "the default; leave it out",
    "train --init-encoder": "--init-from encoder=RUN",
    "train --init-decoder": "--init-from decoder=RUN",
    "translate --again": "--retranslate",
    "translate --output-dir": "--output FOLDER/",
    "translate --wrapped": "--lines wrapped",
    "translate --separate-lines": "--context none",
    "translate --token-scores": "--format jsonl-tokens",
    "translate --mbr": "--rerank-with mbr:N",
    "translate --memory-from": "--memory FILE:PERCENT",
    "translate --ray": "--workers ray:ADDRESS",
    "translate --tune-on": "translucid tune ranking RUN --reverse RUN --pairs FILES",
    "translate --reverse-weight": "translucid tune ranking RUN --reverse RUN --reverse-weight WEIGHT",
    "translate --length-weight": "translucid tune ranking RUN --reverse RUN --length-weight WEIGHT",
    "memory learn --again": "--relearn",
    "evaluate --separate-lines": "--lines separate",
    "evaluate --context": "--lines separate",
    "evaluate --alignments": "--gold",
    "evaluate --keep-best": "translucid tune reading RUN LINKS",
    "serve --per-minute": "--rate-limit N/minute",
    "serve --per-day": "--rate-limit N/day",
    "distill --nbest": "--choose nearest:N",
    "distill --filter-worst": "--reverse RUN:SHARE",
    "distill --size": "--limit 10MB",
    "distill --latency": "--limit 5ms",
    "distill --preset": "--student NAME",
    "distill --config": "--student FILE",
    "distill --word-level": "--vocabulary teacher:SHARE",
    "distill --no-align": "--skip align",
    "distill --no-report": "--skip report",
    "distill --align": "the default of translucid distill",
    "distill --report": "the default of translucid distill",
}
"""The current form of each former option of a command; without one, of all commands that have the current option."""
FORMER_COMMANDS = {
    "draw heads": "draw attention",
    "embed": "embed write",
    "nearest": "embed nearest",
    "tune": "tune speed",
}
"""The current names of former commands. One that is a group of commands now is meant where none of these follows."""
PURPOSES = ("--confidence", "--alignments", "--lens", "--shortlists")
"""The former options of `tune` that are commands of it now."""
_WRONG_VALUE = re.compile(r"'(?P<value>[^']*)' is not one of ")


def refused_option(error: TyperException) -> tuple[str, str] | None:
    """Return the former option or value that the parser has refused, and its current form; None for all others."""
    context: Any = getattr(error, "ctx", None)
    former = getattr(error, "option_name", None)
    parameter = getattr(error, "param", None)
    if parameter and (wrong := _WRONG_VALUE.search(error.format_message())):
        former = f"{parameter.opts[0]} {wrong['value']}"
    if not context or not former:
        return None
    current = renamed_option(former, context.command_path.removeprefix("translucid "), context.command)
    return (former, current) if current else None


def renamed_option(former: str, path: str, command: Any) -> str | None:
    """Return the current form of a former option of the command of this path; None if it had no such option."""
    current = FORMER_OPTIONS.get(f"{path} {former}", FORMER_OPTIONS.get(former))
    if current and current.startswith("--") and current.split()[0] not in option_names(command):
        return None
    return current


def option_names(command: Any) -> set[str]:
    """Return the names of all options of a command."""
    names: set[str] = set()
    for parameter in command.params:
        names.update(parameter.opts)
    return names


def current_command(arguments: Sequence[str], commands: TyperGroup) -> str | None:
    """Return the current form of a command line, if its command has another name now.

    >>> from translucid.cli.main import tree
    >>> current_command(["tune", "runs/es", "--lens", "--valid", "dev.tsv"], tree())
    'translucid tune lens runs/es --valid dev.tsv'
    """
    start = next((i for i, argument in enumerate(arguments) if not argument.startswith("-")), len(arguments))
    if "--help" in arguments:
        return None
    for former, current in FORMER_COMMANDS.items():
        names = former.split()
        end = start + len(names)
        rest = list(arguments[end:])
        if list(arguments[start:end]) != names or not rest or not _is_former(names, rest, commands):
            continue
        words = current.split()
        if former == "tune":
            words, rest = _current_tune(rest)
        return shlex.join(["translucid", *arguments[:start], *words, *rest])
    return None


def _is_former(names: Sequence[str], rest: Sequence[str], commands: TyperGroup) -> bool:
    """Whether a command of these names is the former one, by what follows it, if they name a group of commands now."""
    command: Any = commands
    for name in names:
        command = command.commands.get(name)
    if not isinstance(command, TyperGroup):
        return command is None
    if rest[0] in command.commands:
        return False
    # `tune` had one argument: with two, the first is a misspelt command.
    return names != ["tune"] or rest[0].startswith("-") or len(rest) == 1 or rest[1].startswith("-")


def _current_tune(rest: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the command of `tune` for its former options, and what follows it."""
    purpose, gold = "speed", []
    remaining: list[str] = []
    words = iter(rest)
    for word in words:
        if word in PURPOSES:
            purpose = word.removeprefix("--")
        elif word.partition("=")[0] == "--links":
            gold = [word.partition("=")[2] or next(words, "LINKS")]
        else:
            remaining.append(word)
    if gold:
        run = next((i for i, word in enumerate(remaining) if not word.startswith("-")), -1)
        remaining[run + 1 : run + 1] = gold
        purpose = "links"
    return ["tune", purpose], remaining


def renamed_variable(former: str, known: Collection[str], prefix: str) -> str | None:
    """Return the current variable of a former option or command; None if there was no such option.

    Args:
        former: the name of the variable.
        known: the variables that there are.
        prefix: the beginning of all of them.
    """
    for name, current in FORMER_OPTIONS.items():
        path, _, option = name.rpartition("--")
        ending = variable_part(option)
        if not former.endswith(f"_{ending}"):
            continue
        beginning = former.removesuffix(ending)
        is_of_command = beginning == _beginning(prefix, path)
        if is_of_command and not current.startswith("--"):
            return current
        current_option, _, value = current.partition(" ")
        variable = beginning + variable_part(current_option)
        if variable in known and (is_of_command or not path):
            return f"{variable}={value}" if value else variable
    for name, current in FORMER_COMMANDS.items():
        former_beginning = _beginning(prefix, name)
        if former.startswith(former_beginning):
            # Each command of a group may have the option that the former command of its name had.
            beginning = former_beginning if current.startswith(f"{name} ") else _beginning(prefix, current)
            ending = "_" + former.removeprefix(former_beginning)
            names = sorted(name for name in known if name.startswith(beginning) and name.endswith(ending))
            return " or ".join(names) or None
    return None


def _beginning(prefix: str, path: str) -> str:
    """Return the beginning of the variables of a command; those of `serve` do not name it."""
    names = [name for name in path.split() if name != "serve"]
    return "_".join([prefix, *map(variable_part, names), ""])


def variable_part(name: str) -> str:
    """Return the part of a variable's name that stands for a command or an option."""
    return name.strip("-").replace("-", "_").upper()
