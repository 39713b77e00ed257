"""Messages of the library name parameters, which the command line turns into its flags."""

import ast
import re
from dataclasses import fields
from functools import cache
from pathlib import Path

import pytest

from tests.cli.named_options import options_of
from tests.cli.test_option_groups import leaves
from tests.jobs.test_identity import KINDS
from translucid.cli.combinations import CONFLICTS, NEEDS, UNSUITABLE
from translucid.cli.flags import FLAGS, REFERENCE, with_flags
from translucid.cli.main import tree
from translucid.cli.option import Interventions
from translucid.ground.console import Console
from translucid.ground.errors import UserError

SOURCE = Path(__file__).resolve().parents[2] / "src"
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
EXEMPT = {
    "bitext/protected_spans.py": "examples of switches, which are protected as any text",
    "translucid/interop/huggingface_export.py": "the card of an exported model names the command that wrote it",
    "translucid/serving/learning.py": "the command that it starts",
    "translucid/serving/mcp_server.py": "for whoever starts the server",
    "translucid/serving/routes/inspection.py": "for whoever starts the server",
    "translucid/serving/edge/middleware.py": "for whoever starts the server, whose answers the command line never sees",
}
"""Files outside `cli/` whose strings may name flags of ours."""
ORDINARY = {
    "case",
    "features",
    "heads",  # a key of a description
    "select",
    "keys",
    "forward",
    "advance",
    "attention_maps",
    "stream",
    "compare",
    "import",
    "soccer_ball",
}
"""What is in backticks in messages and is neither a parameter nor a function that a flag stands for."""


def text_of(node):
    """Return a string of the source, with {} for what it interpolates; None for other nodes."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
    return None


@cache
def strings():
    """Return the strings outside of commands that are no docstrings, as pairs of a file and a text."""
    found = []
    for file in sorted(SOURCE.rglob("*.py")):
        name = file.relative_to(SOURCE).as_posix()
        content = file.read_text(encoding="utf-8")
        if name.startswith("translucid/cli/") or "from translucid.cli" in content:  # the commands of an extension
            continue
        documentation = set()
        for node in ast.walk(ast.parse(content)):  # a node comes before its parts
            if isinstance(node, ast.Expr):
                documentation.add(id(node.value))
            elif (text := text_of(node)) and id(node) not in documentation:
                found.append((name, text))
    return found


@cache
def all_flags():
    flags = options_of([])
    for command in leaves(tree()):
        for parameter in command.params:
            flags |= {*parameter.opts, *parameter.secondary_opts}
    return flags


def test_no_message_of_the_library_names_a_flag():
    naming = {}
    for name, text in strings():
        # Options of other programs, and colors of pages such as var(--text), are none of ours.
        flags = set(FLAG.findall(re.sub(r"(var\(|ray start |converter )--[a-z]+|--background:", "", text)))
        if flags & all_flags():
            naming.setdefault(name, set()).update(flags)
    assert naming.keys() == EXEMPT.keys(), naming


def test_each_parameter_in_a_message_has_a_flag_and_each_flag_exists():
    used, unknown = set(), []
    for name, text in strings():
        for reference in re.findall(r"`[^`\n]+`", text):
            if match := REFERENCE.fullmatch(reference):
                used.add(match["name"])
            elif re.fullmatch(r"`[a-z_]+(=.*)?`", reference) and reference.strip("`") not in ORDINARY:
                unknown.append((name, reference))
    assert not unknown
    assert {flag for text in FLAGS.values() for flag in FLAG.findall(text)} <= all_flags()
    table = {name for row in CONFLICTS for name in row[:2]} | NEEDS.keys() | {*NEEDS.values()}
    for cases in UNSUITABLE.values():
        table.update(*cases.values())
    assert {flag for text in table for flag in FLAG.findall(text)} <= all_flags()
    for kind in KINDS:  # an interrupted job names its fields
        used |= {field.name for field in fields(kind)}
    used.update(Interventions._fields)  # so does one with interventions
    assert FLAGS.keys() - used == set()


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ('Use `engine="torch"`, or `export_onnx()`.', "Use --engine torch, or export it --to onnx."),
        ("Give `pairs=FILES`, `text=FILES` or both.", "Give --pairs FILES, --text FILES or both."),
        ("it has `forward`, `features` and `translucid tune`", "it has `forward`, `features` and `translucid tune`"),
        (
            "Resume it with `train(resume=True, out=runs/a (1))`.",
            "Resume it with translucid train --resume --out runs/a (1).",
        ),
        ("its weights (`begin_from=runs/a(1)`)", "its weights (--init-from runs/a(1))"),
        ("If you trust it, `allow_code(a.py)`.", "If you trust it, write translucid --code a.py before the command."),
        ("`keys()` lists all keys.", "`translucid models --keys` lists all keys."),
        ("`settings` 'a' has no value. Write `key=value`.", "--set 'a' has no value. Write --set key=value."),
    ],
)
def test_a_parameter_becomes_a_flag(message, expected):
    assert with_flags(message) == expected


def test_a_program_reads_parameters_and_a_user_of_the_command_line_flags(call, tmp_path, capfd):
    from translucid.runs.run_folder import RunFolder

    with pytest.raises(UserError, match=r"Give the folder given to `train\(out\)`\."):
        RunFolder(tmp_path).configuration()
    assert "Give the folder given to train --out" in call("score", tmp_path, "x.tsv").err
    Console(stderr=True).print('`form="jsonl"` shows them')
    assert capfd.readouterr().err == '`form="jsonl"` shows them\n'
