"""Former commands, options and variables, which are refused with their current form."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
from typing import Any

from typer.core import TyperGroup

RENAMED_OPTIONS = {
    "--with": ("--ensemble",),
    "--from": ("--init-from",),
    "--again": ("--retranslate", "--relearn"),
    "--considered": ("--top-candidates",),
    "--output-dir": ("--output FOLDER/",),
    "--split-sentences": ("--lines sentences",),
    "--no-split-sentences": ("--lines whole",),
    "--wrapped": ("--lines wrapped",),
    "--separate-lines": ("--context none",),
    "--sample": ("--temperature 1",),
    "--no-sample": ("--beam 1",),
    "--token-scores": ("--format jsonl-tokens",),
    "--mbr": ("--rerank-with mbr:N",),
    "--inflect-terms": ("--terms-mode inflect",),
    "--memory-from": ("--memory FILE:PERCENT",),
    "--ray": ("--workers ray:ADDRESS",),
}
"""The current forms of each former option; a command has at most one of them."""
MOVED_OPTIONS = {
    ("translate", "--reverse-weight"): "translucid tune ranking RUN --reverse RUN --reverse-weight WEIGHT",
    ("translate", "--length-weight"): "translucid tune ranking RUN --reverse RUN --length-weight WEIGHT",
    ("evaluate", "--alignments"): "--gold",
    ("evaluate", "--keep-best"): "translucid tune reading RUN LINKS",
    ("serve", "--per-minute"): "--rate-limit N/minute",
    ("serve", "--per-day"): "--rate-limit N/day",
    ("translate", "--tune-on"): "translucid tune ranking RUN --reverse RUN --pairs FILES",
    ("distill", "--nbest"): "--choose nearest:N",
    ("distill", "--filter-worst"): "--reverse RUN:SHARE",
    ("distill", "--size"): "--limit 10MB",
    ("distill", "--latency"): "--limit 5ms",
    ("distill", "--preset"): "--student NAME",
    ("distill", "--config"): "--student FILE",
    ("distill", "--word-level"): "--vocabulary teacher:SHARE",
    ("distill", "--no-align"): "--skip align",
    ("distill", "--no-report"): "--skip report",
    ("distill", "--align"): "the default of translucid distill",
    ("distill", "--report"): "the default of translucid distill",
}
"""The current forms of options that other commands still have, or that are commands now."""
RENAMED_COMMANDS = {
    ("draw", "heads"): ("draw", "attention"),
    ("embed",): ("embed", "write"),
    ("nearest",): ("embed", "nearest"),
    ("tune",): ("tune", "speed"),
}
"""The current names of former commands. One that is a group of commands now is meant where none of these follows."""
RENAMED_VARIABLES = {
    "TRANSLUCID_PER_MINUTE": "TRANSLUCID_RATE_LIMIT=N/minute",
    "TRANSLUCID_PER_DAY": "TRANSLUCID_RATE_LIMIT=N/day",
}
"""The current forms of variables that are not named after a command."""
PURPOSES = {
    "--confidence": "confidence",
    "--alignments": "alignments",
    "--lens": "lens",
    "--shortlists": "shortlists",
}
"""The commands of `tune` that its former options of these names have become."""


def renamed_option(former: str, command: Any) -> str | None:
    """Return the current form of a former option of a command; None if it had no such option."""
    names: set[str] = set()
    for parameter in command.params:
        names.update(parameter.opts)
    current = (current for current in RENAMED_OPTIONS.get(former, ()) if current.split()[0] in names)
    return next(current, MOVED_OPTIONS.get((command.name, former)))


def current_command(arguments: Sequence[str], commands: TyperGroup) -> str | None:
    """Return the current form of a command line, if its command has another name now.

    >>> from translucid.cli.main import tree
    >>> current_command(["tune", "runs/es", "--lens", "--valid", "dev.tsv"], tree())
    'translucid tune lens runs/es --valid dev.tsv'
    """
    start = next((i for i, argument in enumerate(arguments) if not argument.startswith("-")), len(arguments))
    if "--help" in arguments:
        return None
    for former, current in RENAMED_COMMANDS.items():
        end = start + len(former)
        rest = list(arguments[end:])
        if tuple(arguments[start:end]) != former or not rest:
            continue
        group = commands.commands.get(former[0]) if len(former) == 1 else None
        if group and not (isinstance(group, TyperGroup) and _is_former(former[0], rest, group)):
            continue
        if former == ("tune",):
            current, rest = _current_tune(rest)
        return shlex.join(["translucid", *arguments[:start], *current, *rest])
    return None


def _is_former(name: str, rest: Sequence[str], group: TyperGroup) -> bool:
    """Whether what follows the name of a group is no command of it, but what a single command of that name took."""
    if rest[0] in group.commands:
        return False
    # `tune` had one argument: with two, the first is a misspelt command.
    return name != "tune" or rest[0].startswith("-") or len(rest) == 1 or rest[1].startswith("-")


def _current_tune(rest: Sequence[str]) -> tuple[tuple[str, str], list[str]]:
    """Return the command of `tune` for its former options, and what follows it."""
    purpose, gold = "speed", []
    remaining: list[str] = []
    words = iter(rest)
    for word in words:
        if word in PURPOSES:
            purpose = PURPOSES[word]
        elif word.partition("=")[0] == "--links":
            gold = [word.partition("=")[2] or next(words, "LINKS")]
        else:
            remaining.append(word)
    if gold:
        run = next((i for i, word in enumerate(remaining) if not word.startswith("-")), -1)
        remaining[run + 1 : run + 1] = gold
        purpose = "links"
    return ("tune", purpose), remaining


def renamed_variable(former: str, known: Collection[str], prefix: str) -> str | None:
    """Return the current variable of a former option or command; None if there was no such option.

    Args:
        former: the name of the variable.
        known: the variables that there are.
        prefix: the beginning of all of them.
    """
    for option, forms in RENAMED_OPTIONS.items():
        for form in forms:
            current, _, value = form.partition(" ")
            command = former.removesuffix(f"_{variable_part(option)}")
            variable = f"{command}_{variable_part(current)}"
            if command != former and variable in known:
                return f"{variable}={value}" if value else variable
    if former in RENAMED_VARIABLES:
        return RENAMED_VARIABLES[former]
    for (name, option), moved in MOVED_OPTIONS.items():
        command = f"{prefix}_{variable_part(name)}"
        if former == f"{command}_{variable_part(option)}":
            if not moved.startswith("--"):
                return moved
            current, _, value = moved.partition(" ")
            variable = f"{command}_{variable_part(current)}"
            return f"{variable}={value}" if value else variable
    for command_path, names in RENAMED_COMMANDS.items():
        beginning = "_".join([prefix, *map(variable_part, command_path)])
        if former.startswith(f"{beginning}_"):
            group = "_".join([prefix, *map(variable_part, names[:-1])])
            ending = former.removeprefix(beginning)
            current_names = sorted(name for name in known if name.startswith(f"{group}_") and name.endswith(ending))
            if current_names:
                return " or ".join(current_names)
    return None


def variable_part(name: str) -> str:
    """Return the part of a variable's name that stands for a command or an option."""
    return name.strip("-").replace("-", "_").upper()
