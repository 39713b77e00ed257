"""What the README, the recipes and the help texts promise exists."""

import re
import shlex
from pathlib import Path

import pytest
import typer
from typer.main import get_command

from translucid.cli.main import app, several
from translucid.training.configuration import resolve
from translucid.training.presets import PRESETS

ROOT = Path(__file__).resolve().parents[2]
RECIPES = sorted((ROOT / "recipes").glob("*.yaml"))
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")), *RECIPES]


def commands_in(text: str) -> list[str]:
    """Return the lines that call `translucid`, continued ones joined."""
    text = re.sub(r"\\\n(#\s*)?\s*", "", text)
    lines = re.findall(r"^[#$>\s]*(?:[^|`\n]*\| )?(?:\.venv/bin/)?(translucid [^`\n|>]*)", text, flags=re.MULTILINE)
    return [line.split("  #")[0].strip() for line in lines]


def check(command: str) -> None:
    """Let the command line be parsed, without running it."""
    node: typer.core.TyperGroup = get_command(app)  # type: ignore[assignment]
    arguments = several(shlex.split(command)[1:])
    context = typer.Context(node, info_name="translucid")
    while hasattr(node, "commands"):
        name = next((argument for argument in arguments if not argument.startswith("-")), None)
        if name is None:
            return
        assert name in node.commands, f"{command!r}: there is no command {name!r}"
        node = node.commands[name]
        arguments = arguments[arguments.index(name) + 1 :]
    if "--help" not in arguments:
        context = node.make_context(node.name, list(arguments), parent=context, resilient_parsing=False)
        assert context is not None


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda file: file.name)
def test_commands_in_documents_parse(document):
    for command in commands_in(document.read_text()):
        check(command)


def test_there_are_commands_to_check():
    assert len(commands_in((ROOT / "README.md").read_text())) >= 8


def test_a_wrong_command_would_be_seen():
    with pytest.raises(Exception, match="nonsense"):
        check("translucid translate runs/demo --nonsense 3")
    with pytest.raises(AssertionError, match="no command"):
        check("translucid trnslate runs/demo")


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda file: file.name)
def test_recipes_resolve(recipe):
    assert resolve(recipe).preset in PRESETS


def test_every_command_has_examples():
    def commands(node, path):
        for name, command in getattr(node, "commands", {}).items():
            if hasattr(command, "commands"):
                yield from commands(command, f"{path} {name}")
            else:
                yield f"{path} {name}", command

    for path, command in commands(get_command(app), "translucid"):
        assert f"{path} " in (command.help or "") or f"{path}\n" in (command.help or ""), f"{path} --help: no example"
