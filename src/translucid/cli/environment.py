"""Settings from the environment: every option of every command can stand there."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup, TyperOption

PREFIX = "TRANSLUCID"
SHARED = ("--device", "--engine")
"""Options that mean the same in all commands, and may be set for all of them at once, as `TRANSLUCID_DEVICE`."""


def apply_environment(command: Any, path: str = PREFIX) -> None:
    """Let each option of a command, and of those below it, be given as a variable; its help says how they are named.

    `translucid data stats --max-words 9` is `TRANSLUCID_DATA_STATS_MAX_WORDS=9`. What is given in the command counts
    before it. Options that name their variable themselves, as those of `serve` do, keep it.

    Args:
        command: of Typer, or a group of such.
        path: what the names of its variables begin with.
    """
    if isinstance(command, TyperGroup):
        for name, below in command.commands.items():
            apply_environment(below, f"{path}_{_upper(name)}")
        return
    options = [option for option in command.params if isinstance(option, TyperOption) and not option.envvar]
    for option in options:
        flag = max(option.opts, key=len)
        option.envvar = [f"{path}_{_upper(flag)}", *([f"{PREFIX}_{_upper(flag)}"] if flag in SHARED else [])]
        option.show_envvar = False
    if options:
        flag = max(options[0].opts, key=len)
        command.epilog = f"Every option can stand in the environment: `{flag}` as `{path}_{_upper(flag)}`."


def _upper(name: str) -> str:
    return name.strip("-").replace("-", "_").upper()
