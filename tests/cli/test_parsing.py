"""How a command line is parsed before its command runs."""

from pathlib import Path

import pytest

from translucid.cli.arguments import pair_up
from translucid.cli.environment import RENAMED_OPTIONS
from translucid.cli.main import several, tree
from translucid.ground.errors import UserError


def spread(line):
    return several(line.split(), tree())


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("tune --pairs 5000 RUN", "tune --pairs 5000 RUN"),  # a number in `tune`, files in other commands
        ("align RUN --pairs a.en a.es", "align RUN --pairs a.en --pairs a.es"),
        ("learn --train x", "learn --train x"),
        ("tune RUN --train a.tsv b.tsv --pairs 5", "tune RUN --train a.tsv --train b.tsv --pairs 5"),
        ("train --valid-general a.en a.es --out r", "train --valid-general a.en --valid-general a.es --out r"),
        ("data clean x --without numbers length", "data clean x --without numbers --without length"),
        ("evaluate RUN --ensemble A B", "evaluate RUN --ensemble A B"),  # one value each: B is the test set
        ("train --train=a.tsv b.tsv", "train --train=a.tsv --train b.tsv"),
        ("--debug data stats --train a b", "--debug data stats --train a --train b"),
        ("translate RUN -- --tune-on a b", "translate RUN -- --tune-on a b"),
    ],
)
def test_an_option_takes_several_values_where_its_command_says_so(line, expected):
    assert spread(line) == expected.split()


@pytest.mark.parametrize("command", ["", "draw", "data", "memory"])
def test_a_group_without_a_command_shows_its_help_and_no_error(call, command):
    result = call(*command.split())
    assert result.code == 2
    assert "Usage: translucid" in result.out and "--help" in result.out
    assert "error" not in result.err


def test_a_command_without_its_argument_says_which(call):
    result = call("tune")
    assert result.code == 2 and result.err == "error: Missing argument 'RUN'. See translucid tune --help.\n"


def test_the_two_sides_of_a_corpus_are_joined_whatever_the_case_of_endings():
    files = ["A.TSV.GZ", "x.en.GZ", "x.ES.GZ", "-", "b.{en,es}", "C.Tmx", "y.en", "y.es"]
    joined = ["A.TSV.GZ", "x.{en,ES}.GZ", "-", "b.{en,es}", "C.Tmx", "y.{en,es}"]
    assert pair_up(files) == joined
    for paths in (["x.en"], ["x.en", "z.es"], ["x.en", "x.es.gz"], ["x.en", "a.tsv"]):
        with pytest.raises(UserError, match=r"x\.en: is one side of a corpus, its partner is missing"):
            pair_up(paths)


def _commands(node):
    for command in getattr(node, "commands", {}).values():
        yield command
        yield from _commands(command)


@pytest.mark.parametrize(
    ("line", "current"),
    [
        ("translate RUN text --with OTHER", "--ensemble"),
        ("train --from runs/es --train a.tsv --out r", "--init-from"),
        ("translate RUN a.txt --again --output b.txt", "--retranslate"),
        ("memory learn m --again", "--relearn"),
        ("generate RUN text --considered 3", "--top-candidates"),
    ],
)
def test_a_former_option_is_refused_with_its_current_name(call, line, current):
    former = next(word for word in line.split() if word in RENAMED_OPTIONS)
    result = call(*line.split())
    assert result.code == 2
    assert f"The option {former} is now {current}. docs/install.md#upgrading" in result.err


@pytest.mark.parametrize(
    ("former", "current"),
    [
        ("TRANSLUCID_TRANSLATE_WITH", "TRANSLUCID_TRANSLATE_ENSEMBLE"),
        ("TRANSLUCID_TRAIN_FROM", "TRANSLUCID_TRAIN_INIT_FROM"),
        ("TRANSLUCID_MEMORY_LEARN_AGAIN", "TRANSLUCID_MEMORY_LEARN_RELEARN"),
    ],
)
def test_the_variable_of_a_former_option_is_refused_with_its_current_name(call, monkeypatch, former, current):
    monkeypatch.setenv(former, "1")
    result = call("models")
    assert result.code == 2
    assert f"the environment variable {former} is now {current}" in result.err


def test_former_options_are_documented_and_their_current_names_exist():
    names = set()
    for command in _commands(tree()):
        for parameter in command.params:
            names.update(parameter.opts)
    page = (Path(__file__).parents[2] / "docs/install.md").read_text(encoding="utf-8")
    upgrading = page.split("## Upgrading")[1].split("\n## ")[0]
    for former, current in RENAMED_OPTIONS.items():
        assert names >= set(current) and former not in names
        assert all(f"`{name}`" in upgrading for name in (former, *current))
