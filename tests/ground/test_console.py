"""Whatever stands in a text, the terminal is not commanded by it."""

import ast
import io
from pathlib import Path

import pytest
from rich.table import Table
from rich.text import Text

import translucid
from translucid.ground.console import Console

HOUSE = Path(translucid.__file__).parent
EVIL = "a\x1b[2J\x9b31m\x7f\u202eb\u2028c\ud800d"
SHOWN = r"a\x1b[2J\x9b31m\x7f\u202eb\u2028c\ud800d"


def shown(*things, **options):
    file = io.StringIO()
    Console(file=file, width=200).print(*things, **options)
    return file.getvalue()


def table(text):
    table = Table(title=text)
    table.add_column(text)
    table.add_row(Text(text, "bold"))
    return table


@pytest.mark.parametrize("thing", [EVIL, Text(EVIL), Text.assemble(("x", "red"), EVIL), table(EVIL)], ids=type)
@pytest.mark.parametrize("options", [{}, {"soft_wrap": True}, {"style": "bold"}], ids=str)
def test_control_characters_are_written_as_escapes(thing, options):
    said = shown(thing, **options)
    assert SHOWN in said
    assert all(character.isprintable() or character == "\n" for character in said)


@pytest.mark.parametrize("length", range(10, 40))
def test_nothing_is_cut_off_that_escapes_push_over_the_edge(length):
    file = io.StringIO()
    Console(file=file, width=30).print("kept in " + "x" * length + "\x1b[2J")
    assert file.getvalue().replace("\n", "").replace(" ", "") == "keptin" + "x" * length + r"\x1b[2J"


@pytest.mark.parametrize("text", ["o[/b]", "[red]x[/]", ":smile:", "[link=x]", "[a", r"\[a]", "ñ \u200d نص 足球"])
def test_nothing_is_markup(text):
    assert shown(text) == f"{text}\n"


def test_style_still_is(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    assert "\x1b[1mBLEU" in shown(Text("BLEU", "bold"))


def test_nobody_has_a_console_of_another_kind():
    excepted = {HOUSE / "ground" / "console.py"}
    for file in set(HOUSE.rglob("*.py")) - excepted:
        for node in ast.walk(ast.parse(file.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.ImportFrom) else []
            assert "Console" not in names or node.module == "translucid.ground.console", file
