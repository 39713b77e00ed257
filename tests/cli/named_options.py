"""The options that a message names, and whether the command that printed it has them."""

import re
from collections.abc import Iterator

from typer.core import TyperGroup

from translucid.cli.main import called_command, tree

_OPTION = re.compile(r"(?<![\w'\"/.-])--([a-z][a-z0-9-]*)")
_MESSAGE = re.compile(r"^(?:error|warning):\s", re.MULTILINE)


def options_of(words: list[str]) -> set[str]:
    """Return all options of the command that some arguments call, and those of `translucid` itself."""
    names = {"--help", "--log-format", "--debug", "--code", "--version"}
    for parameter in called_command(words, tree()).params:
        names.update([*parameter.opts, *parameter.secondary_opts])
    return names


def _sentences(err: str) -> Iterator[str]:
    """Yield the sentences of errors and warnings; what is quoted from the user's files is no advice."""
    for line in err.splitlines():
        if _MESSAGE.match(line):
            yield from re.split(r"(?<=[.;:(])\s|`", line)


def unknown_options(arguments: list[str], err: str) -> list[str]:
    """Return the options that errors and warnings advise, but that the command lacks.

    A sentence may name another command before the option: `translucid train --resume`, or `tune confidence`.
    """
    own = options_of(arguments)
    given = {argument.partition("=")[0] for argument in arguments}
    groups = {name for name, command in tree().commands.items() if isinstance(command, TyperGroup)}
    unknown = []
    for sentence in _sentences(err):
        words = re.findall(r"[a-z-]+", sentence)
        named = set()
        for i, word in enumerate(words):
            if word in tree().commands:
                named |= options_of(words[i : i + 2] if word in groups else [word])
        for match in _OPTION.finditer(sentence):
            option = match[0]
            if option not in own | named and option not in given:
                unknown.append(f"{option} in {sentence!r}")
    return unknown
