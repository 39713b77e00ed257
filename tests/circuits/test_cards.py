"""Contexts and cards, against each pair alone and against the model itself."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from tests.circuits.models import SHAPES, random_transcoders, transformer
from tests.cli.conftest import call  # noqa: F401 - a fixture
from tests.inspection.conftest import untrained  # noqa: F401 - a fixture
from translucid import Translator, UserError
from translucid.attention.points import handling, recording
from translucid.circuits.cards import card_of, card_page, direct_effects
from translucid.circuits.contexts import CONTEXTS, Contexts, find_contexts
from translucid.circuits.dictionary import FeatureName
from translucid.circuits.labels import Meaning, Meanings, Unit
from translucid.circuits.linear import _with_held_norms
from translucid.decoding.maps import forced_features
from translucid.ground.console import Console

WORDS = ["soccer", "book", "like", "reads", "She", "I"]
PAIRS = [(f"{a} {b}.", f"Me {b} {a}") for a in WORDS for b in WORDS if a != b][:24]


@pytest.fixture
def translator(run):
    return Translator.load(run, "cpu", "torch")


@pytest.fixture
def contexts(translator, dictionary):
    return find_contexts(translator, dictionary, PAIRS, console=Console(stderr=True))


def test_contexts_are_the_pairs_with_the_largest_values(translator, dictionary, contexts):
    model = translator.model
    values = {name: [] for name in dictionary.sublayers}
    for pair in translator.pipeline.pairs(PAIRS):
        source, target = pair.ids
        with torch.no_grad(), recording(model, [f"{name}.feed_forward_input" for name in values]) as record:
            forced_features(model, model.encode(torch.tensor([source])), torch.tensor([target]))
        for name, rows in values.items():
            f = dictionary.transcoders[name].features(record[f"{name}.feed_forward_input"][0])
            rows.append((f, source, target))
    for name, rows in values.items():
        for number in range(0, dictionary.width, 5):
            feature = FeatureName(name, number)
            strongest = contexts.of(feature)
            alone = sorted((float(f[:, number].max()) for f, _, _ in rows), reverse=True)
            expected = [value for value in alone[:CONTEXTS] if value > 0]
            assert [context.value for context in strongest] == pytest.approx(expected, abs=1e-5)
            for context in strongest:
                (f,) = (f for f, source, target in rows if (source, target) == (context.source, context.target))
                assert float(f[context.position, number]) == pytest.approx(context.value, abs=1e-5)
            active = sum(int((f[:, number] > 0).sum()) for f, _, _ in rows)
            assert contexts.share(feature) == pytest.approx(active / sum(len(f) for f, _, _ in rows), abs=1e-5)


def test_contexts_belong_to_a_dictionary(run, dictionary, contexts):
    assert Contexts.load(run, dictionary) is None
    contexts.save(run)
    loaded = Contexts.load(run, dictionary)
    assert all(torch.equal(loaded.tensors[name], tensor) for name, tensor in contexts.tensors.items())
    file = run / "circuits" / "contexts.safetensors"
    content = file.read_bytes()
    file.write_bytes(content[:-9])
    with pytest.raises(UserError, match=r"contexts\.safetensors"):
        Contexts.load(run, dictionary)
    file.write_bytes(content)
    dictionary.transcoders["encoder.0"].encoder_bias[0] += 1
    dictionary.__dict__.pop("digest", None)
    assert Contexts.load(run, dictionary) is None


@pytest.mark.parametrize("shape", ["pre-norm", "post-norm", "post-final", "one layer"])
def test_direct_effects_are_changes_of_the_logits_without_deviations(shape):
    """A feature is added to the output of the last sublayer, while the norms keep their deviations."""
    model = transformer(**SHAPES[shape])
    transcoders = random_transcoders(model)
    pieces = SimpleNamespace(target_pieces=lambda ids: [str(i) for i in ids])
    translator = SimpleNamespace(model=model, tokenizer=pieces, device="cpu")
    last = len(model.decoder) - 1
    feature = FeatureName(f"decoder.{last}", 7)
    effects = direct_effects(translator, SimpleNamespace(transcoders=transcoders), feature)
    held = _with_held_norms(model)
    source, prefix = torch.tensor([[5, 6, 3]]), torch.tensor([[2, 13]])
    with torch.no_grad():
        before = held(source, prefix)[0, -1]
        w = transcoders[feature.sublayer].decoder_weight[7]
        with handling(held, {f"{feature.sublayer}.feed_forward": lambda x, first: x + w}):
            after = held(source, prefix)[0, -1]
    norms = [] if held.decoder[last].residuals[-1].pre else [held.decoder[last].residuals[-1].norm]
    norms += [held.decoder_norm] if shape not in ("post-norm", "one layer") else []
    deviation = torch.stack([norm.deviation[0, -1, 0] for norm in norms]).prod()
    change = (after - before) * deviation
    change = change - change.mean()
    for sign, listed in zip((1, -1), effects, strict=True):
        assert [int(effect.token) for effect in listed] == (sign * change).argsort(descending=True)[:8].tolist()
        for effect in listed:
            assert effect.effect == pytest.approx(float(change[int(effect.token)]), abs=1e-3)


def test_a_card_shows_contexts_effects_links_and_the_label(run, translator, dictionary, contexts):
    contexts.save(run)
    unit = Unit("decoder.0.feature.5", 1, 0.5, 0.9, 64)
    meaning = Meaning("written", "topic", "sports", 60, 200, 0.46, {"feature": unit})
    Meanings(dictionary.digest, [], {unit.name: meaning}).save(run)
    names = [f"decoder.0.feature.{i}" for i in range(64) if contexts.of(FeatureName("decoder.0", i))]
    for name in (names[0], "decoder.0.feature.5"):
        card = card_of(translator, dictionary, name)
        for context in card.contexts:
            (marked,) = context.target_marked
            assert context.token.replace("▁", "").strip() in context.target[marked]
            assert len(context.source_marked) <= 1
        assert len(card.promotes) == len(card.suppresses) == 8
        assert card.promotes[0].effect > 0 > card.suppresses[0].effect
    assert card.label == "topic: sports, of the word written (F1 0.90, always 0.46)"
    assert card.to_json()["meaning"]["f1"] == 0.9 and json.dumps(card.to_json())
    name = next(f"encoder.0.feature.{i}" for i in range(64) if contexts.of(FeatureName("encoder.0", i)))
    card = card_of(translator, dictionary, name)
    assert not card.promotes and not card.suppresses and card.label == ""
    assert all(len(context.source_marked) == 1 for context in card.contexts)
    with pytest.raises(UserError, match="Choose a number from 0 to 63"):
        card_of(translator, dictionary, "encoder.0.feature.64")


def test_a_feature_that_was_never_active(translator, dictionary):
    transcoder = dictionary.transcoders["decoder.0"]
    transcoder.encoder_bias[9] = -1e6
    contexts = find_contexts(translator, dictionary, PAIRS, console=Console(stderr=True))
    card = card_of(translator, dictionary, "decoder.0.feature.9", contexts=contexts)
    assert card.facts == "never active in the text" and card.contexts == []
    assert "never active" in card_page(card)


def test_the_command(call, run, tmp_path):  # noqa: F811
    """The text has sources only."""
    (tmp_path / "text.txt").write_text("".join(f"{source}\n" for source, _ in PAIRS[:12]), encoding="utf-8")
    options = ("--expansion", 4, "--active", 4, "--updates", 2)
    learned = call("features", run, "--text", tmp_path / "text.txt", *options)
    assert learned.code == 0, learned.err
    assert (run / "circuits" / "contexts.safetensors").exists()
    name = "encoder.0.feature.3"
    page = tmp_path / "card.html"
    shown = call("features", run, "--card", name, "--save", page)
    assert shown.code == 0 and name in shown.out, shown.err
    html = page.read_text(encoding="utf-8")
    assert name in html and "http" not in html.replace("http://www.w3.org/2000/svg", "")
    record = json.loads(call("features", run, "--card", name, "--format", "jsonl").out)
    assert record["name"] == name and record["meaning"] is None
    (run / "circuits" / "contexts.safetensors").unlink()  # as if the dictionary had been learned in Python
    assert json.loads(call("features", run, "--card", name, "--format", "jsonl").out)["name"] == name
    file = tmp_path / "labeled.jsonl"
    lines = []
    for i in range(220):
        source, target = PAIRS[i % 7]
        labels = [{"gender": "feminine" if word[0] in "sS" else "masculine"} for word in source.split()]
        record = {"source": source, "target": target, "source_labels": labels, "target_labels": [{}] * 3}
        lines.append(json.dumps(record))
    file.write_text("\n".join(lines), encoding="utf-8")
    measured = call("features", run, "--labels", file)
    assert measured.code == 0 and "gender" in measured.out, measured.err
    assert (run / "circuits" / "labels.json").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--card", "decoder.0.feature.99"], "Choose a number"),
        (["--card", "decoder.0.feature.1"], "has no contexts"),
        (["a text", "--card", "decoder.0.feature.1"], "nothing to do, or too much"),
        (["a text", "--save", "x.html"], "--save is for cards"),
        (["--labels", "none.jsonl"], "can't be read"),
    ],
)
def test_what_the_command_rejects(call, run, dictionary, arguments, message):  # noqa: F811
    replace(dictionary, configuration=replace(dictionary.configuration, text=())).save(run)
    result = call("features", run, *arguments)
    assert result.code == 2 and message in result.err, result.err
