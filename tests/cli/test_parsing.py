"""How a command line is parsed before its command runs."""

import shlex
from pathlib import Path

import pytest

from translucid.cli.arguments import name_and_number, pair_up
from translucid.cli.main import several, tree
from translucid.cli.renamed import FORMER_OPTIONS, current_command, renamed_option
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
    official = ["d/eng_Latn.devtest", "d/spa_Latn.devtest", "newstest2019-src.eng.txt", "newstest2019-ref.spa.txt"]
    flores, ntrex = "d/{eng_Latn,spa_Latn}.devtest", "newstest2019-{src.eng,ref.spa}.txt"
    assert pair_up(official) == pair_up([flores, ntrex]) == [flores, ntrex]
    for paths in (["x.en"], ["x.en", "z.es"], ["x.en", "x.es.gz"], ["x.en", "a.tsv"]):
        with pytest.raises(UserError, match=r"x\.en: is one side of a corpus, its partner is missing"):
            pair_up(paths)


def test_a_number_after_a_name_is_divided_from_it_unless_a_path_has_this_name(tmp_path):
    file, folder = f"{tmp_path}/old.tmx:85", f"{tmp_path}/run:5"
    assert name_and_number(file, is_path=True) == (f"{tmp_path}/old.tmx", "85")
    assert name_and_number(folder, is_path=True) == (f"{tmp_path}/run", "5")
    Path(file).touch()
    Path(folder).mkdir()
    assert name_and_number(file, is_path=True) == (file, None)
    assert name_and_number(folder, is_path=True) == (folder, None)
    assert name_and_number("mbr:٣") == ("mbr:٣", None) and name_and_number(f"mbr:{'9' * 5000}")[1] is None


def _commands(node, path=()):
    """Yield the path of each command, the command, and its options by name."""
    for name, command in getattr(node, "commands", {}).items():
        options = {}
        for parameter in command.params:
            options |= dict.fromkeys(parameter.opts, parameter)
        yield " ".join([*path, name]), command, options
        yield from _commands(command, (*path, name))


@pytest.mark.parametrize(
    ("line", "former", "current"),
    [
        ("translate RUN text --with OTHER", "--with", "--ensemble"),
        ("train --from runs/es --train a.tsv --out r", "--from", "--init-from"),
        ("train --init-encoder lm --train a.tsv --out r", "--init-encoder", "--init-from encoder=RUN"),
        ("translate RUN a.txt --again --output b.txt", "--again", "--retranslate"),
        ("memory learn m --again", "--again", "--relearn"),
        ("generate RUN text --considered 3", "--considered", "--top-candidates"),
        ("distill RUN --out r --size 3MB", "--size", "--limit 10MB"),
        ("distill RUN --no-align --out r", "--no-align", "--skip align"),
        ("translate RUN text --terms-mode auto", "--terms-mode auto", "the default; leave it out"),
        ("evaluate RUN --terms-mode=auto", "--terms-mode auto", "the default; leave it out"),
    ],
)
def test_a_former_option_is_refused_with_its_current_name(call, line, former, current):
    result = call(*line.split())
    assert result.code == 2
    assert f"The option {former} is now {current}. docs/install.md#upgrading" in result.err


@pytest.mark.parametrize(
    "line",
    [
        "compare t.tsv A --wrapped",
        "caption RUN a.png --ray local",
        "generate RUN x --token-scores",
        "look RUN x --separate-lines",
        "serve RUN --memory-from 80",
        "align RUN --output-dir d",
        "translate RUN x --terms-mode none",
    ],
)
def test_what_a_command_never_had_gets_no_current_form(call, line):
    result = call(*line.split())
    assert result.code == 2 and "is now" not in result.err


@pytest.mark.parametrize(
    ("former", "current"),
    [
        ("TRANSLUCID_TRANSLATE_WITH", "TRANSLUCID_TRANSLATE_ENSEMBLE"),
        ("TRANSLUCID_TRAIN_FROM", "TRANSLUCID_TRAIN_INIT_FROM"),
        ("TRANSLUCID_TRAIN_INIT_DECODER", "TRANSLUCID_TRAIN_INIT_FROM=decoder=RUN"),
        ("TRANSLUCID_PER_DAY", "TRANSLUCID_RATE_LIMIT=N/day"),
        ("TRANSLUCID_DRAW_HEADS_OUT", "TRANSLUCID_DRAW_ATTENTION_OUT."),
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


def test_former_options_are_documented_with_their_current_forms():
    page = (Path(__file__).parents[2] / "docs/install.md").read_text(encoding="utf-8")
    upgrading = page.split("## Upgrading")[1].split("\n## ")[0]
    for name, current in FORMER_OPTIONS.items():
        former = name[name.index("--") :]
        assert f"`{former}" in upgrading or f" {former} " in upgrading or f"{name}`" in upgrading, name
        if current.startswith("--"):
            assert current.split()[0] in upgrading


@pytest.mark.parametrize("name", [name for name, current in FORMER_OPTIONS.items() if current.startswith("--")])
def test_the_commands_of_a_former_option_lack_it_and_accept_its_current_form(call, name):
    command_of_option, _, former = name.rpartition(" ")
    current = FORMER_OPTIONS[name]
    accepting = []
    for path, command, options in _commands(tree()):
        if renamed_option(former, path, command) == current:
            accepting.append(path)
            assert former not in options
            assert "Invalid value" not in call(*path.split(), *current.split(), "1").err
    assert accepting and command_of_option in ["", *accepting]
