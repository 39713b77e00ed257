"""Text can't send control sequences to the terminal."""

import ast
import io
from pathlib import Path

import pytest
from rich.table import Table
from rich.text import Text

import translucid
from translucid.ground.console import Console

PACKAGE = Path(translucid.__file__).parent
MALICIOUS = "a\x1b[2J\x9b31m\x7f\u202eb\u2028c\ud800d"
ESCAPED = r"a\x1b[2J\x9b31m\x7f\u202eb\u2028c\ud800d"


def printed(*renderables, **options):
    file = io.StringIO()
    Console(file=file, width=200).print(*renderables, **options)
    return file.getvalue()


def table(text):
    table = Table(title=text)
    table.add_column(text)
    table.add_row(Text(text, "bold"))
    return table


@pytest.mark.parametrize(
    "renderable", [MALICIOUS, Text(MALICIOUS), Text.assemble(("x", "red"), MALICIOUS), table(MALICIOUS)], ids=type
)
@pytest.mark.parametrize("options", [{}, {"soft_wrap": True}, {"style": "bold"}], ids=str)
def test_control_characters_are_written_as_escapes(renderable, options):
    output = printed(renderable, **options)
    assert ESCAPED in output
    assert all(character.isprintable() or character == "\n" for character in output)


@pytest.mark.parametrize("length", range(10, 40))
def test_nothing_is_cut_off_that_escapes_push_over_the_edge(length):
    file = io.StringIO()
    Console(file=file, width=30).print("kept in " + "x" * length + "\x1b[2J")
    assert file.getvalue().replace("\n", "").replace(" ", "") == "keptin" + "x" * length + r"\x1b[2J"


@pytest.mark.parametrize("text", ["o[/b]", "[red]x[/]", ":smile:", "[link=x]", "[a", r"\[a]", "ñ \u200d نص 足球"])
def test_text_is_not_parsed_as_markup(text):
    assert printed(text) == f"{text}\n"


def test_styles_are_applied(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    assert "\x1b[1mBLEU" in printed(Text("BLEU", "bold"))


def test_no_module_uses_another_console_class():
    exceptions = {PACKAGE / "ground" / "console.py"}
    for file in set(PACKAGE.rglob("*.py")) - exceptions:
        for node in ast.walk(ast.parse(file.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.ImportFrom) else []
            assert "Console" not in names or node.module == "translucid.ground.console", file
