"""Commands and options in the README, the recipes and the help texts exist."""

import re
import shlex
from collections import Counter
from pathlib import Path

import pytest
import typer

from translucid.cli.main import several, tree, without_log_format
from translucid.runs.configuration import resolve
from translucid.runs.presets import all_presets

ROOT = Path(__file__).resolve().parents[2]
COMMAND = tree()
RECIPES = sorted((ROOT / "recipes").glob("*.yaml"))
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md")), *RECIPES]


def joined(text: str) -> str:
    """Return a text with its continuation lines joined."""
    return re.sub(r"\\\n(#\s*)?\s*", "", text)


def commands_in(text: str) -> list[str]:
    """Return the lines that call `translucid`."""
    pattern = (
        r"^[#$>\s]*(?:docker run [^|`\n]* |[^|`\n]*(?:\||-m) )?(?:ExecStart=)?(?:[\w./]*/bin/)?(translucid [^`\n|<>]*)"
    )
    lines = re.findall(pattern, joined(text), flags=re.MULTILINE)
    return [line.split("  #")[0].strip() for line in lines]


def mentions_in(text: str) -> list[str]:
    """Return the calls of `translucid` in backticks, which may be incomplete (`...`)."""
    spans = re.findall(r"`(translucid\s[^`|<>]*)", joined(text))
    return [" ".join(span.split()).removesuffix(" ...") for span in spans]


def after_group_options(arguments: list[str], group) -> list[str]:
    """Return the arguments after the options of a group that take a value, such as `--code FILE`."""
    with_value = {option for parameter in group.params if not parameter.is_flag for option in parameter.opts}
    while arguments and arguments[0] in with_value:
        arguments = arguments[2:]
    return arguments


def check(command: str, *, complete: bool = True) -> None:
    """Parse a command line without running it; one that is not `complete` may lack arguments."""
    node = COMMAND
    arguments = several(without_log_format(shlex.split(command)[1:])[0], node)
    context = typer.Context(node, info_name="translucid")
    while hasattr(node, "commands"):
        arguments = after_group_options(arguments, node)
        name = next((argument for argument in arguments if not argument.startswith("-")), None)
        if name is None:
            options = {option for parameter in node.params for option in parameter.opts} | {"--help"}
            assert set(arguments) <= options, f"{command!r}: there is no such option"
            assert arguments or not complete, f"{command!r}: no command"
            return
        assert name in node.commands, f"{command!r}: there is no command {name!r}"
        node = node.commands[name]
        arguments = arguments[arguments.index(name) + 1 :]
    if "--help" not in arguments:
        try:
            node.make_context(node.name, list(arguments), parent=context, resilient_parsing=False)
        except Exception as error:
            if complete or type(error).__name__ != "MissingParameter":
                raise


def offenders(find, *, complete: bool) -> list[str]:
    """Return the commands in documents that do not parse, each with its document and the error."""
    wrong = []
    for document in DOCUMENTS:
        for command in find(document.read_text()):
            try:
                check(command, complete=complete)
            except Exception as error:
                wrong.append(f"{document.name}: {command}: {error}")
    return wrong


def test_commands_in_documents_parse():
    assert not offenders(commands_in, complete=True)


def test_commands_mentioned_in_the_text_of_documents_parse():
    assert not offenders(mentions_in, complete=False)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda file: str(file.relative_to(ROOT)))
def test_no_command_in_a_document_goes_unchecked(document):
    """Each place where a command's name follows `translucid` is found by `commands_in` or `mentions_in`."""
    text = joined(document.read_text())
    names = set(COMMAND.commands)
    mentioned = Counter(word for word in re.findall(r"(?<!from )\btranslucid\s+([\w-]+)", text) if word in names)
    parsed = Counter(command.split()[1] for command in (*commands_in(text), *mentions_in(text)) if " " in command)
    assert mentioned == Counter({name: count for name, count in parsed.items() if name in names})


def test_there_are_commands_to_check():
    text = (ROOT / "README.md").read_text()
    assert len(commands_in(text)) >= 20
    assert len(mentions_in(text)) >= 5


def test_wrong_commands_are_detected():
    text = "See `translucid\nshow x ...`:\n\n    $ echo x | translucid translate \\\n  RUN --nonsense 3 > out\n"
    assert commands_in(text) == ["translucid translate RUN --nonsense 3"]
    assert mentions_in(text) == ["translucid show x"]
    for complete in (True, False):
        with pytest.raises(Exception, match="nonsense"):
            check("translucid translate runs/demo --nonsense 3", complete=complete)
        with pytest.raises(Exception, match="nonsense"):
            check("translucid translate --nonsense 3", complete=complete)
        with pytest.raises(AssertionError, match="no command"):
            check("translucid trnslate runs/demo", complete=complete)
        with pytest.raises(AssertionError, match="no such option"):
            check("translucid --nonsense", complete=complete)
    with pytest.raises(Exception, match="run"):
        check("translucid tune shortlists")
    check("translucid tune shortlists", complete=False)


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda file: file.name)
def test_recipes_resolve(recipe):
    assert resolve(recipe).preset in all_presets()


def test_every_command_has_examples():
    def commands(node, path):
        for name, command in getattr(node, "commands", {}).items():
            if hasattr(command, "commands"):
                yield from commands(command, f"{path} {name}")
            else:
                yield f"{path} {name}", command

    for path, command in commands(COMMAND, "translucid"):
        assert f"{path} " in (command.help or "") or f"{path}\n" in (command.help or ""), f"{path} --help: no example"
