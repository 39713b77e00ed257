"""The features of a translation, and the command."""

import json

import pytest
import torch

from tests.cli.conftest import call  # noqa: F401 - a fixture
from tests.inspection.conftest import untrained  # noqa: F401 - a fixture
from translucid import Translator
from translucid.attention.points import recording
from translucid.circuits.contexts import find_contexts
from translucid.circuits.dictionary import Dictionary, FeatureName
from translucid.circuits.features import features_of
from translucid.decoding.maps import forced_features
from translucid.ground.console import Console

TEXT = "I like soccer."


def test_the_strongest_features_of_each_token(run, dictionary):
    translator = Translator.load(run, "cpu", "torch")
    shown = features_of(translator, TEXT, strongest=2)
    assert shown.target == translator.translate(TEXT).text
    (pair,) = translator.translate(TEXT).encoded
    source, target = (torch.tensor([side]) for side in pair.input_ids)
    points = [f"{name}.feed_forward_input" for name in dictionary.sublayers]
    with recording(translator.model, points) as record:
        forced_features(translator.model, translator.model.encode(source), target)
    for side, name, length in (("source", "encoder.0", source.size(1)), ("target", "decoder.0", target.size(1))):
        tokens = [token for token in shown.tokens if token.side == side]
        assert [token.position for token in tokens] == list(range(length)) and tokens[-1].token == "</s>"
        values = dictionary.transcoders[name].features(record[f"{name}.feed_forward_input"])[0]
        for token, row in zip(tokens, values, strict=True):
            order = [i for i in row.argsort(descending=True).tolist() if row[i] > 0][:2]
            assert [feature.number for feature, _ in token.strongest[name]] == order
            assert [value for _, value in token.strongest[name]] == pytest.approx(row[order].tolist())


def test_an_end_token_that_a_model_does_not_read_has_no_features(run, dictionary):
    """OpenNMT's models have none: a mask hides it."""
    translator = Translator.load(run, "cpu", "torch")
    model = translator.model
    model.options = model.options.model_copy(update={"source_end": False})
    tokens = [token for token in features_of(translator, TEXT, "Me gusta").tokens if token.side == "source"]
    assert len(tokens) == len(translator.tokenizer.encode_source([TEXT])[0]) and tokens[-1].token != "</s>"
    contexts = find_contexts(translator, dictionary, [(TEXT, "Me gusta")], console=Console(quiet=True))
    found = [context for i in range(64) for context in contexts.of(FeatureName("encoder.0", i))]
    assert {context.position for context in found} == set(range(len(tokens)))


def test_the_command_learns_measures_and_shows(call, run, tmp_path):  # noqa: F811
    pairs = [f"I like {word}.\tMe gusta {word}.\n" for word in "abcdefghijklmnopqrst"]
    (tmp_path / "pairs.tsv").write_text("".join(pairs), encoding="utf-8")
    options = ("--expansion", 4, "--active", 4, "--updates", 5)
    learned = call("features", run, "--text", tmp_path / "pairs.tsv", *options)
    assert learned.code == 0, learned.err
    assert all(word in learned.out for word in ("decoder.0", "random dictionary", "unexplained", "BLEU greedy"))
    dictionary = Dictionary.load(run)
    configuration = dictionary.configuration
    assert (configuration.pairs, configuration.updates, configuration.active) == (18, 5, 4)
    assert dictionary.quality["pairs"] == 2
    stored = json.loads((run / "circuits" / "dictionary.json").read_text(encoding="utf-8"))
    assert stored["quality"] == dictionary.quality and stored["configuration"]["seed"] == 1
    card = (run / "circuits" / "card.md").read_text(encoding="utf-8")
    assert "| dictionary |" in card and "pairs.tsv" in card
    shown = call("features", run, TEXT)
    assert shown.code == 0 and "decoder.0" in shown.out
    lines = [json.loads(line) for line in call("features", run, TEXT, "--format", "jsonl").out.splitlines()]
    assert {line["side"] for line in lines} == {"source", "target"}
    name = lines[-1]["features"]["decoder.0"][0]["feature"]
    steered = call("translate", run, TEXT, "--feature", f"{name}=0", "--format", "jsonl")
    plain = call("translate", run, TEXT, "--engine", "torch", "--format", "jsonl")
    assert json.loads(steered.out)["score"] != json.loads(plain.out)["score"]
    assert call("look", run, TEXT, "--feature", f"{name}=0").code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "there is nothing to do"),
        ((TEXT, "--text", "pairs.tsv"), "nothing to do, or too much"),
        ((TEXT, "--format", "xml"), "xml"),
        ((TEXT, "--updates", 5), "--updates is for learning"),
    ],
)
def test_what_the_command_rejects(call, run, arguments, message):  # noqa: F811
    result = call("features", run, *arguments)
    assert result.code == 2 and message in result.err and not result.out


def test_options_that_exclude_each_other(call, run, untrained):  # noqa: F811
    feature = "--feature", "decoder.0.feature.3=0"
    for arguments, names in (
        ((*feature, "--engine", "ctranslate2"), ("--feature", "--engine ctranslate2")),
        ((*feature, "--ensemble", run), ("--feature", "--ensemble")),
        (("--feature", "decoder.0.feature.99=0"), ("decoder.0.feature.99", "0 to 63")),
    ):
        result = call("translate", run, TEXT, *arguments)
        assert result.code == 2 and not result.out and all(name in result.err for name in names), result.err
    result = call("translate", untrained("transformer"), TEXT, *feature)
    assert result.code == 2 and "has no dictionary" in result.err and "features RUN --text FILES" in result.err
    result = call("features", untrained("bahdanau"), "--text", "pairs.tsv")
    assert result.code == 2 and "no feed-forward sublayers" in result.err
