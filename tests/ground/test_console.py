"""Text can't send control sequences to the terminal."""

import ast
import io
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.table import Table
from rich.text import Text

import translucid
from translucid.ground.console import Console, progress_bar, unbroken

SOURCE = Path(translucid.__file__).parents[1]
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
    exceptions = {SOURCE / "translucid" / "ground" / "console.py"}
    for file in set(SOURCE.rglob("*.py")) - exceptions:
        source = file.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(source)) if "Console" in source else ():
            names = [alias.name for alias in node.names] if isinstance(node, ast.ImportFrom) else []
            assert "Console" not in names or node.module == "translucid.ground.console", file


def test_progress_in_a_pipe_is_a_line_at_intervals(monkeypatch):
    times = iter([0, 3, 21, 21, 30, 42, 42])
    monkeypatch.setattr("translucid.ground.console.time", SimpleNamespace(monotonic=lambda: next(times)))
    file = io.StringIO()
    with progress_bar(Console(file=file, width=20), "translating the test set", 10_000) as advance:
        for _ in range(4):
            advance(1250)
    assert file.getvalue().splitlines() == [
        "translating the test set: 2,500 of 10,000 (25%), 1:03 left",
        "translating the test set: 5,000 of 10,000 (50%), 0:42 left",
    ]


def test_short_or_hidden_progress_writes_nothing_in_a_pipe(monkeypatch):
    file = io.StringIO()
    with progress_bar(Console(file=file), "reading", None) as advance:
        advance(5)
    monkeypatch.setattr("translucid.ground.console.PIPE_INTERVAL", 0)
    with progress_bar(Console(file=file), "reading", None, hidden=True) as advance:
        advance(5)
    with progress_bar(Console(file=file, quiet=True), "reading", None) as advance:
        advance(5)
    assert file.getvalue() == ""
    with progress_bar(Console(file=file), "reading", None) as advance:
        advance(5)
    assert file.getvalue() == "reading: 5\n"


def test_a_text_that_is_to_be_copied_is_not_broken():
    file = io.StringIO()
    Console(file=file, width=20).print(unbroken("nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp"))
    assert file.getvalue() == "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp\n"


@pytest.mark.parametrize("quiet", [False, True])
def test_long_work_without_progress_is_one_line_in_a_pipe(quiet):
    file = io.StringIO()
    console = Console(file=file, width=20, quiet=quiet)
    with console.status("2 of 7, translating: reading the corpora", is_long=True), console.status("reading"):
        pass
    assert file.getvalue() == ("" if quiet else "2 of 7, translating: reading the corpora\n")
