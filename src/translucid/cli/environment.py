"""Environment variables: every option of every command has one."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup, TyperOption

PREFIX = "TRANSLUCID"
SHARED = ("--device", "--engine")
"""Options with the same meaning in all commands; `TRANSLUCID_DEVICE` sets one for all commands."""


def apply_environment(command: Any, path: str = PREFIX) -> None:
    """Name a variable for each option of a command and its subcommands, and say so in the help.

    `TRANSLUCID_DATA_STATS_SKIP_BAD=1` is `translucid data stats --skip-bad`. Options in the command line take
    precedence. Options that name their own variable, such as those of `serve`, keep it.

    Args:
        command: a command of Typer, or a group of commands.
        path: the prefix of its variables.
    """
    if isinstance(command, TyperGroup):
        for name, subcommand in command.commands.items():
            apply_environment(subcommand, f"{path}_{_upper(name)}")
        return
    options = [option for option in command.params if isinstance(option, TyperOption) and not option.envvar]
    # The longest name of an option is its long form.
    for option in options:
        flag = max(option.opts, key=len)
        option.envvar = [f"{path}_{_upper(flag)}"]
        if flag in SHARED:
            option.envvar.append(f"{PREFIX}_{_upper(flag)}")
        option.show_envvar = False
    if options:
        flag = max(options[0].opts, key=len)
        command.epilog = f"Every option can stand in the environment: `{flag}` as `{path}_{_upper(flag)}`."


def _upper(name: str) -> str:
    return name.strip("-").replace("-", "_").upper()
