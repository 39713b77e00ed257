"""How a command line is parsed before its command runs."""

import shlex
from pathlib import Path

import pytest

from translucid.cli.arguments import pair_up
from translucid.cli.main import several, tree
from translucid.cli.renamed import MOVED_OPTIONS, RENAMED_OPTIONS, current_command
from translucid.ground.errors import UserError


def spread(line):
    return several(line.split(), tree())


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        # A number in `tune shortlists`, files in other commands.
        ("tune shortlists RUN --pairs 5", "tune shortlists RUN --pairs 5"),
        ("align RUN --pairs a.en a.es", "align RUN --pairs a.en --pairs a.es"),
        ("learn --train x", "learn --train x"),
        ("tune speed RUN --train a b --allow 5", "tune speed RUN --train a --train b --allow 5"),
        ("train --valid-general a.en a.es --out r", "train --valid-general a.en --valid-general a.es --out r"),
        ("data clean x --without numbers length", "data clean x --without numbers --without length"),
        ("evaluate RUN --ensemble A B", "evaluate RUN --ensemble A B"),  # one value each: B is the test set
        ("train --train=a.tsv b.tsv", "train --train=a.tsv --train b.tsv"),
        ("--debug data stats --train a b", "--debug data stats --train a --train b"),
        ("translate RUN -- --train a b", "translate RUN -- --train a b"),
    ],
)
def test_an_option_takes_several_values_where_its_command_says_so(line, expected):
    assert spread(line) == expected.split()


@pytest.mark.parametrize("command", ["", "draw", "data", "memory", "tune", "embed"])
def test_a_group_without_a_command_shows_its_help_and_no_error(call, command):
    result = call(*command.split())
    assert result.code == 2
    assert "Usage: translucid" in result.out and "--help" in result.out
    assert "error" not in result.err


def test_a_command_without_its_argument_says_which(call):
    result = call("tune", "speed")
    assert result.code == 2 and result.err == "error: Missing argument 'RUN'. See translucid tune speed --help.\n"


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
        ("distill RUN --out r --size 3MB", "--limit 10MB"),
        ("distill RUN --no-align --out r", "--skip align"),
    ],
)
def test_a_former_option_is_refused_with_its_current_name(call, line, current):
    former = next(word for word in line.split() if word in RENAMED_OPTIONS or (line.split()[0], word) in MOVED_OPTIONS)
    result = call(*line.split())
    assert result.code == 2
    assert f"The option {former} is now {current}. docs/install.md#upgrading" in result.err


@pytest.mark.parametrize(
    ("former", "current"),
    [
        ("TRANSLUCID_TRANSLATE_WITH", "TRANSLUCID_TRANSLATE_ENSEMBLE"),
        ("TRANSLUCID_TRAIN_FROM", "TRANSLUCID_TRAIN_INIT_FROM"),
        ("TRANSLUCID_PER_DAY", "TRANSLUCID_RATE_LIMIT=N/day"),
        ("TRANSLUCID_TRANSLATE_WRAPPED", "TRANSLUCID_TRANSLATE_LINES=wrapped"),
        ("TRANSLUCID_EVALUATE_ALIGNMENTS", "TRANSLUCID_EVALUATE_GOLD"),
        ("TRANSLUCID_DISTILL_LATENCY", "TRANSLUCID_DISTILL_LIMIT=5ms"),
        ("TRANSLUCID_DISTILL_REPORT", "the default of translucid distill"),
        ("TRANSLUCID_NEAREST_TOP", "TRANSLUCID_EMBED_NEAREST_TOP"),
        ("TRANSLUCID_TUNE_DIAGRAM", "TRANSLUCID_TUNE_CONFIDENCE_DIAGRAM"),
        ("TRANSLUCID_TRANSLATE_TUNE_ON", "translucid tune ranking RUN --reverse RUN --pairs FILES"),
        ("TRANSLUCID_MEMORY_LEARN_AGAIN", "TRANSLUCID_MEMORY_LEARN_RELEARN"),
    ],
)
def test_the_variable_of_a_former_option_is_refused_with_its_current_name(call, monkeypatch, former, current):
    monkeypatch.setenv(former, "1")
    result = call("models")
    assert result.code == 2
    assert f"the environment variable {former} is now {current}" in result.err


@pytest.mark.parametrize(
    ("line", "current"),
    [
        ("tune runs/a", "tune speed runs/a"),
        ("--debug tune runs/a --valid a.tsv b.tsv", "--debug tune speed runs/a --valid a.tsv b.tsv"),
        ("tune --lens runs/a", "tune lens runs/a"),
        ("tune runs/a --shortlists --pairs 7", "tune shortlists runs/a --pairs 7"),
        ("tune runs/a --train b.tsv --links c.txt --alignments", "tune links runs/a c.txt --train b.tsv"),
        ("tune 'my run' --alignments --links=c.txt", "tune links 'my run' c.txt"),
        ("draw heads runs/a x --out a.png", "draw attention runs/a x --out a.png"),
        ("nearest runs/a 'x y' --word x", "embed nearest runs/a 'x y' --word x"),
        ("embed runs/a b.txt --out c.npz", "embed write runs/a b.txt --out c.npz"),
        ("tune", None),
        ("tune --help", None),
        ("tune sped runs/a", None),
        ("tune speed runs/a", None),
        ("embed nearest runs/a x", None),
        ("draw beam runs/a heads", None),
        ("heads runs/a", None),
    ],
)
def test_a_former_command_is_refused_with_the_whole_current_line(call, line, current):
    words = shlex.split(line)
    assert current_command(words, tree()) == (current and f"translucid {current}")
    if current and "--debug" not in words:
        result = call(*words)
        assert result.code == 2
        assert f"the command is now translucid {current}. docs/install.md#upgrading" in result.err


def test_former_options_are_documented_and_their_current_names_exist():
    names = set()
    for command in _commands(tree()):
        for parameter in command.params:
            names.update(parameter.opts)
    page = (Path(__file__).parents[2] / "docs/install.md").read_text(encoding="utf-8")
    upgrading = page.split("## Upgrading")[1].split("\n## ")[0]
    for former, forms in RENAMED_OPTIONS.items():
        assert names >= {form.split()[0] for form in forms} and former not in names
        assert f"`{former}" in upgrading or f" {former} " in upgrading, former
        assert all(form.split()[0] in upgrading for form in forms)
    for _, former in MOVED_OPTIONS:
        assert f"{former}" in upgrading
