"""Environment variables: every option of every command has one, and an unknown one is an error."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from typer.core import TyperGroup, TyperOption

from translucid.cli.renamed import renamed_variable, variable_part
from translucid.ground.errors import UPGRADING, UserError, nearest

PREFIX = "TRANSLUCID"
SERVER = "serve"
SHARED = ("--device", "--engine")
"""Options with the same meaning in all commands; `TRANSLUCID_DEVICE` sets one for all commands."""

OTHERS = {
    "TRANSLUCID_CODE": "files that runs may execute",
    "TRANSLUCID_DATA": "the folder of corpora that tests and benchmarks read",
    "TRANSLUCID_LEARN_RUNS": "the runs of lessons and notebooks",
    "TRANSLUCID_WHEELS": "wheels with catalogs that the tests read",
}
"""Variables that are not options."""
_SERVICE_LINK = re.compile(
    r"TRANSLUCID_(\w+_)?(SERVICE_(HOST|PORT)(_\w+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)"
)
"""Variables with which Kubernetes tells containers about a Service named *translucid*, or *translucid-…*."""
_SERVICE_PORT = re.compile(r"(tcp|udp|sctp)://\S+:\d+")
"""The value that Kubernetes gives the variable TRANSLUCID_PORT of such a Service."""


def apply_environment(command: Any, path: str = PREFIX) -> None:
    """Name a variable for each option of a command and its subcommands, and say so in the help.

    `TRANSLUCID_DATA_STATS_SKIP_BAD=1` is `translucid data stats --skip-bad`; only the variables of `serve` do not name
    their command, and its help shows them. Options in the command line take precedence. Options that name their own
    variable keep it.

    Args:
        command: a command of Typer, or a group of commands.
        path: the prefix of its variables.
    """
    if isinstance(command, TyperGroup):
        for name, subcommand in command.commands.items():
            apply_environment(subcommand, path if name == SERVER else f"{path}_{variable_part(name)}")
        return
    options = [option for option in command.params if isinstance(option, TyperOption) and not option.envvar]
    # The longest name of an option is its long form.
    for option in options:
        flag = max(option.opts, key=len)
        option.envvar = [f"{path}_{variable_part(flag)}"]
        if flag in SHARED and path != PREFIX:
            option.envvar.append(f"{PREFIX}_{variable_part(flag)}")
        option.show_envvar = path == PREFIX
    if options and path != PREFIX:
        flag = max(options[0].opts, key=len)
        command.epilog = f"Every option can stand in the environment: `{flag}` as `{path}_{variable_part(flag)}`."


def check_environment(commands: TyperGroup, called: Any, environment: Mapping[str, str]) -> None:
    """Check that each variable with our prefix is known and not empty; those that Kubernetes adds are ignored.

    A misspelt `TRANSLUCID_API_KEY` would leave a server open to everybody.

    Args:
        commands: the tree of all commands, after `apply_environment`.
        called: the command that runs.
        environment: the variables and their values.

    Raises:
        UserError: a variable is unknown or empty, or Kubernetes has replaced the port of the command.
    """
    known = {*OTHERS, *_variables(commands)}
    for name, value in sorted(environment.items()):
        if not name.startswith(f"{PREFIX}_") or _SERVICE_LINK.fullmatch(name):
            continue
        if name.endswith("_PORT") and _SERVICE_PORT.fullmatch(value):
            if name in _variables(called):
                service = name.removesuffix("_PORT").replace("_", "-").lower()
                what = f"Kubernetes has set {name}={value} for the Service named {service}"
                raise UserError(what, fix="Set enableServiceLinks: false in the pod, or rename the Service.")
        elif name not in known:
            if current := renamed_variable(name, known, PREFIX):
                raise UserError(f"the environment variable {name} is now {current}", fix=UPGRADING)
            raise UserError(f"there is no environment variable {name}", fix=nearest(name, known))
        elif not value.strip():
            raise UserError(f"the environment variable {name} is empty", fix="Give it a value, or unset it.")


def _variables(command: Any) -> set[str]:
    """Return the variables of all options and arguments of a command and its subcommands."""
    names: set[str] = set()
    for parameter in command.params:
        variables = parameter.envvar or ()
        names.update([variables] if isinstance(variables, str) else variables)
    for subcommand in getattr(command, "commands", {}).values():
        names |= _variables(subcommand)
    return names
