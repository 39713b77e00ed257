"""Activation patching against PyTorch's hooks, and properties that follow from its definition."""

import json
from importlib import import_module
from itertools import pairwise, product
from types import SimpleNamespace

import pytest
import torch
from torch.testing import assert_close

from bitext.cancellation import call_between_steps
from bitext.pair import Pair
from tests.probes.foreign import many_languages_folder, marian_folder
from translucid import Translator
from translucid.api.inspector import Inspector
from translucid.data.text_pipeline import EncodedPair
from translucid.data.tokenizing.tokenizer import Tokenizer, TokenizerOptions
from translucid.ground.errors import UserError
from translucid.inspection.patching import (
    CROSS,
    DECODER,
    ENCODER,
    Runs,
    choices,
    first_difference,
    notes_on,
    pair_pieces,
    pair_words,
    points_by_kind,
    read_pairs,
)
from translucid.models.attention_only import AttentionOnly
from translucid.models.model_options import AttentionOnlyOptions, RecurrentOptions, TransformerOptions
from translucid.models.recurrent import RecurrentModel
from translucid.models.transformer import Transformer

V, A, B = 30, 11, 12
CLEAN, OTHER = torch.tensor([[5, 6, 7, 8, 3]]), torch.tensor([[5, 9, 10, 8, 3]])
PREFIX = torch.tensor([[2, 13, 14, 15]])
LAYERS = {"width": 16, "encoder_layers": 2, "decoder_layers": 2}
KINDS = {
    "pre-norm": (Transformer, TransformerOptions(**LAYERS, heads=4, feed_forward=24)),
    "post-norm": (Transformer, TransformerOptions(**LAYERS, heads=2, feed_forward=24, norm="post")),
    "ssru": (Transformer, TransformerOptions(**LAYERS, heads=2, feed_forward=24, decoder="ssru")),
    "attention-only": (AttentionOnly, AttentionOnlyOptions(**LAYERS)),
    "bahdanau": (RecurrentModel, RecurrentOptions(width=16, attention="bahdanau")),
    "input feeding": (RecurrentModel, RecurrentOptions(width=16, attention="luong-dot", input_feeding=True)),
    "no attention": (RecurrentModel, RecurrentOptions(width=16, attention="none")),
}
SOURCE_POSITIONS = [[(i, i)] for i in range(5)]
TARGET_POSITIONS = [[(t, t)] for t in range(4)]


def build_runs(name, clean=CLEAN, other=OTHER, dtype=torch.float32):
    torch.manual_seed(1)
    model_class, options = KINDS[name]
    model = model_class(V, V, options).eval().to(dtype)
    for parameter in model.parameters():  # also biases, which are initialized to zero
        parameter.data.normal_(std=0.4)
    return Runs(model, clean, other, PREFIX, (A, B))


def positions_of(kind):
    return SOURCE_POSITIONS if kind == ENCODER else TARGET_POSITIONS


@pytest.mark.parametrize("name", KINDS)
@torch.inference_mode()
def test_a_runs_own_states_change_nothing(name):
    runs = build_runs(name, OTHER, OTHER)
    for kind, points in points_by_kind(runs.model).items():
        positions = positions_of(kind)
        patched = runs.patched(points, positions)
        assert torch.equal(patched, runs.log_odds(OTHER, len(positions)).expand_as(patched))


@pytest.mark.parametrize("name", KINDS)
def test_all_positions_of_a_layer_of_the_encoder_make_it_the_other_run(name):
    runs = build_runs(name)
    points = points_by_kind(runs.model)[ENCODER]
    everywhere = [[(i, i) for i in range(5)]]
    carried = runs.carried(points, everywhere)[:, 0]
    expected = torch.ones_like(carried)
    if name in ("bahdanau", "input feeding", "no attention"):
        # The decoder also starts with the encoder's last state, which only the embeddings change.
        assert abs(carried[-1] - 1) > 1e-3
        carried, expected = carried[:1], expected[:1]
    assert_close(carried, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["pre-norm", "post-norm"])
@pytest.mark.parametrize("kind", [ENCODER, CROSS, DECODER])
def test_patching_equals_replacing_the_outputs_of_modules(name, kind):
    """In float64, each position alone, by PyTorch's hooks instead of points."""
    runs = build_runs(name, dtype=torch.float64)
    model, positions = runs.model, positions_of(kind)
    modules = {
        ENCODER: [model.source_embedding, *model.encoder],
        CROSS: [block.cross_attention.output for block in model.decoder],
        DECODER: list(model.decoder),
    }[kind]
    carried = runs.carried(points_by_kind(model)[kind], positions)
    shares = [share_by_hooks(runs, module, position) for module, position in product(modules, positions)]
    expected = torch.tensor(shares, dtype=torch.float64).view(len(modules), len(positions))
    assert_close(carried, expected, rtol=1e-7, atol=1e-7)


def share_by_hooks(runs, module, position):
    states = []

    def states_of(output):
        return output[0] if isinstance(output, tuple) else output

    def record(module, inputs, output):
        states.append(states_of(output))

    def replace(module, inputs, output):
        x = states_of(output).clone()
        for clean, other in position:
            x[:, other] = states[0][:, clean]
        return (x, *output[1:]) if isinstance(output, tuple) else x

    def log_odds(source):
        log_probs = runs.model(source, PREFIX)[0, -1].log_softmax(-1)
        return (log_probs[A] - log_probs[B]).item()

    with torch.inference_mode():
        handle = module.register_forward_hook(record)
        clean = log_odds(CLEAN)
        handle.remove()
        other = log_odds(OTHER)
        handle = module.register_forward_hook(replace)
        patched = log_odds(OTHER)
        handle.remove()
    return (patched - other) / (clean - other)


@pytest.mark.parametrize("name", KINDS)
def test_the_last_state_of_the_decoder_is_all_that_the_choice_depends_on(name):
    runs = build_runs(name)
    points = points_by_kind(runs.model)[DECODER]
    carried = runs.carried(points, TARGET_POSITIONS)
    if name != "input feeding":  # input feeding carries earlier states over
        assert_close(carried[-1, :-1], torch.zeros(3, dtype=torch.float64), rtol=0, atol=1e-5)
    if name in ("pre-norm", "post-norm", "attention-only", "no attention"):
        assert carried[-1, -1].item() == pytest.approx(1, abs=1e-6)


def test_an_earlier_state_acts_through_self_attention():
    carried = build_runs("pre-norm").carried(["decoder.0.output"], TARGET_POSITIONS)
    assert carried[0].abs().min() > 1e-4


def test_states_of_a_longer_sentence():
    """Position 3 of the clean sentence replaces position 1 of the other, by hand for the embeddings."""
    runs = build_runs("attention-only", torch.tensor([[5, 6, 7, 8, 9, 3]]), torch.tensor([[5, 10, 3]]))
    model = runs.model
    x = model.source_embedding(runs.other).clone()
    x[:, 1] = model.source_embedding(runs.clean)[:, 3]
    logits = model.decode(model.read(x, runs.other > 0), PREFIX)[0, -1]
    patched = runs.patched(["encoder.input"], [[(3, 1)]])
    assert patched.item() == pytest.approx((logits[A] - logits[B]).item(), abs=1e-5)


def test_patching_points_of_each_kind_of_model():
    kinds = {name: list(points_by_kind(build_runs(name).model)) for name in KINDS}
    assert kinds["pre-norm"] == kinds["ssru"] == kinds["bahdanau"] == [ENCODER, CROSS, DECODER]
    assert kinds["attention-only"] == kinds["no attention"] == [ENCODER, DECODER]
    notes = {name: " ".join(notes_on(build_runs(name).model)) for name in KINDS}
    assert notes["pre-norm"] == ""
    assert notes["attention-only"] == "The outputs of cross-attention are the decoder's states."
    assert "no cross-attention" in notes["no attention"] and "first state" in notes["bahdanau"]
    mean = RecurrentModel(9, 9, RecurrentOptions(width=4, first_state="mean"))
    assert "first state" not in " ".join(notes_on(mean))


@pytest.fixture(scope="module")
def tokenizer():
    """Return a tokenizer whose words are single pieces, except niño and niños."""
    texts = [Pair("el la", "el niño come"), Pair("el la", "la niña come"), Pair("el la", "los niños comen el pan.")]
    return Tokenizer.learn(texts * 3, TokenizerOptions(vocabulary=30), seed=1, flexible=True)


def target_of(tokenizer, text):
    return [*tokenizer.encode_target([text])[0], 3]


def choice_pieces(tokenizer, choice):
    """Return the joined pieces of the prefix and the two pieces to choose from."""
    return "".join(tokenizer.target_pieces(choice.prefix)), *tokenizer.target_pieces(choice.pieces)


def test_a_choice_is_at_the_first_different_piece(tokenizer):
    target = target_of(tokenizer, "el niño come el pan.")
    first, second = choices(tokenizer, target, ("el", "la"))
    assert choice_pieces(tokenizer, first)[0] == "" and second.prefix == target[: len(second.prefix)]
    assert tokenizer.decode(second.prefix) == "el niño come"
    encodings = [tokenizer.encode_target([word])[0] for word in ("el", "la")]
    position = 0
    while encodings[0][position] == encodings[1][position]:
        position += 1
    assert second.pieces == (encodings[0][position], encodings[1][position])
    # The full stop does not belong to the word.
    (last,) = choices(tokenizer, target, ("pan", "niño"))
    assert tokenizer.decode(last.prefix).startswith("el niño come el")


def test_words_that_begin_alike_differ_in_a_later_piece(tokenizer):
    target = target_of(tokenizer, "el niño come")
    (choice,) = choices(tokenizer, target, ("niño", "niña"))
    text, a, b = choice_pieces(tokenizer, choice)
    word = text + a
    assert ("▁el▁niño▁come").startswith(word) and a != b
    (longer,) = choices(tokenizer, target, ("niño", "niños"))
    assert longer.pieces[0] != longer.pieces[1]
    with pytest.raises(UserError, match="begins with the pieces of 'el'"):
        choices(tokenizer, target_of(tokenizer, "el el"), ("el", "el"))


def test_a_word_that_the_translation_lacks(tokenizer):
    target = target_of(tokenizer, "el niño come")
    with pytest.raises(UserError, match=r"lacks the word 'la'\. Choose a word of 'el niño come'"):
        choices(tokenizer, target, ("la", "el"))
    with pytest.raises(UserError, match="lacks characters of '漢'"):
        choices(tokenizer, target, ("el", "漢"))


def test_the_first_difference_of_two_translations(tokenizer):
    target, other = target_of(tokenizer, "el niño come"), target_of(tokenizer, "el pan come")
    choice = first_difference(tokenizer, target, other)
    assert choice.words == ("niño", "pan")
    index = len(choice.prefix)
    assert target[:index] == other[:index] == choice.prefix and choice.pieces == (target[index], other[index])
    with pytest.raises(UserError, match="same translation"):
        first_difference(tokenizer, target, target)
    assert first_difference(tokenizer, target, target_of(tokenizer, "el niño")).words[1] == "</s>"


def test_pairs_of_words():
    assert pair_words("abc", "cba") == [(0, 0), (1, 1), (2, 2)]
    old_dog, cat = ["the", "old", "dog", "is", "big", "</s>"], ["the", "cat", "is", "big", "</s>"]
    with pytest.raises(UserError, match="different numbers of words: 'old dog' is to be paired with 'cat'"):
        pair_words(old_dog, cat)
    # A word without a counterpart has no pair.
    dog = ["the", "dog", "was", "big", "</s>"]
    assert pair_words(dog, old_dog) == [(0, 0), (1, 2), (2, 3), (3, 4), (4, 5)]
    assert pair_words(old_dog, dog) == [(0, 0), (2, 1), (3, 2), (4, 3), (5, 4)]
    assert read_pairs("0-0 12-3") == [(0, 0), (12, 3)]
    for text in ("0", "a-b", "0-0,1-1"):
        with pytest.raises(UserError, match="is no pair of words"):
            read_pairs(text)


def test_pairs_of_pieces():
    assert pair_pieces((2, 4), (3, 5)) == [(2, 3), (3, 4)]
    assert pair_pieces((0, 1), (0, 3)) == [(0, 0), (0, 1), (0, 2)]
    assert pair_pieces((0, 3), (5, 6)) == [(2, 5)]
    assert pair_pieces((0, 5), (0, 3)) == [(0, 0), (2, 1), (4, 2)]


@pytest.fixture(scope="module")
def marian(tmp_path_factory):
    """Load a MarianMT folder with random weights in place."""
    folder = tmp_path_factory.mktemp("marian") / "theirs"
    marian_folder(folder)
    return Translator.load(folder, "cpu", "torch")


def test_a_marian_model_opened_in_place(marian):
    patching = marian.inspector.patch("I like soccer", "I like music", ("gusta", "hay"), target="me gusta el fútbol")
    encoder, cross, decoder = patching.parts
    assert encoder.words == ["I", "like", "music", "</s>"] and encoder.clean_words[2] == "soccer"
    assert encoder.layers == ["embeddings", "layer 0", "layer 1"]
    assert cross.words == decoder.words and decoder.words[0] == "<s>"
    assert patching.prefix.startswith("me")
    # The run's log-odds are those of forced decoding.
    ids = marian.pipeline.pairs([("I like soccer", "me gusta el fútbol")])[0]
    (choice,) = choices(marian.tokenizer, ids.target, ("gusta", "hay"))
    probabilities = []
    for piece in choice.pieces:
        (scored,) = marian.inspector.forced_decoding([EncodedPair(ids.source, [*choice.prefix, piece])])
        probabilities.append(scored.log_probs[-1])
    assert patching.log_odds[0] == pytest.approx(probabilities[0] - probabilities[1], abs=1e-4)
    # Words that are equal in both sentences have equal embeddings.
    assert_close(encoder.carried[0, :2], torch.zeros(2, dtype=torch.float64), rtol=0, atol=1e-4)
    assert decoder.carried[-1, -1] == pytest.approx(1)
    assert json.loads(json.dumps(patching.to_json()))["parts"][0]["words"] == encoder.words
    assert patching._repr_html_().count("<table") == 3


def test_language_tokens_are_places_of_their_own(tmp_path):
    many_languages_folder(tmp_path / "theirs", end=1.0)
    translator = Translator.load(tmp_path / "theirs", "cpu", "torch", source="en", target="es")
    patching = translator.inspector.patch(
        "I like soccer", "I like the music", ("gusta", "hay"), target="me gusta", pairs=[(2, 3)]
    )
    encoder, cross, _ = patching.parts
    assert encoder.words == ["__en__", "music", "</s>"] and encoder.clean_words == ["__en__", "soccer", "</s>"]
    assert cross.words[:3] == ["<s>", "__es__", "me"] and patching.prefix == "me"
    # The language token does not belong to the words.
    tokenizer = translator.tokenizer
    target = target_of(tokenizer, "me gusta")
    (choice,) = choices(tokenizer, target, ("gusta", "hay"))
    (whole,) = tokenizer.encode_target(["me hay"])
    assert [*choice.prefix, choice.pieces[1]] == whole[: len(choice.prefix) + 1]
    with pytest.raises(UserError, match="Choose a word of 'me gusta'"):
        choices(tokenizer, target, ("__es__", "me"))


def test_of_several_places_the_runs_differ_most_at_the_chosen_one(marian):
    sources = "I like soccer", "I like music"
    target = "me gusta el fútbol y el mar"
    ids = marian.pipeline.pairs([(sources[0], target)])[0].target
    differences = []
    for choice in choices(marian.tokenizer, ids, ("el", "la")):
        text = marian.tokenizer.decode(choice.prefix)
        encoded_sources = [marian.pipeline.pairs([(source, target)])[0].source for source in sources]
        log_odds = []
        for source in encoded_sources:
            logits = marian.model(torch.tensor([source]), torch.tensor([[marian.model.bos, *choice.prefix]]))[0, -1]
            log_odds.append((logits[choice.pieces[0]] - logits[choice.pieces[1]]).item())
        differences.append((abs(log_odds[0] - log_odds[1]), text))
    assert len(differences) == 2
    assert marian.inspector.patch(*sources, ("el", "la"), target=target).prefix == max(differences)[1]


def test_long_translations_are_patched_in_steps_of_a_limited_size(marian, monkeypatch):
    """Each step has few tokens, so that other work waits for a short time."""
    sizes, steps, log_odds = [], [], Runs.log_odds

    def counted(runs, source, rows=1):
        sizes.append(rows * max(source.size(1), runs.prefix.size(1)))
        return log_odds(runs, source, rows)

    monkeypatch.setattr(Runs, "log_odds", counted)
    monkeypatch.setattr(import_module("translucid.inspection.patching"), "TOKENS", 64)
    target = "el fútbol me gusta y " * 3
    with call_between_steps(lambda: steps.append(len(sizes))):
        marian.inspector.patch("I like soccer", "I like music", ("gusta", "hay"), target=target)
    assert len(sizes) > 50 and max(sizes) <= 64
    calls_per_step = [after - before for before, after in pairwise([0, *steps, len(sizes)])]
    assert max(calls_per_step) <= 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("I like soccer", "I like soccer"), "are the same for both sentences"),
        (("I like soccer", "I like playing the piano"), "different numbers of words: 'soccer' is to be paired"),
        (("", "I like soccer"), "no words"),
    ],
)
def test_inputs_that_can_not_be_patched(marian, arguments, message):
    with pytest.raises(UserError, match=message):
        marian.inspector.patch(*arguments, ("gusta", "hay"), target="me gusta")
    with pytest.raises(UserError, match="no pair of words 2-3: the sentences have 3 and 3"):
        marian.inspector.patch("I like soccer", "I like music", ("gusta", "hay"), target="me gusta", pairs=[(2, 3)])


EMBEDDINGS = {"▁cat": (1, 0), "▁cats": (1, 0.1), "▁fox": (1, 0.2), "bird": (1, 0.3), "▁horse": (1, 0.4)}
EMBEDDINGS |= {"▁Horse": (1, 0.5), "▁Cat": (1, 0), "▁table": (1, 0.9), "▁sleeps": (0, 1), "▁snores": (0.1, 1)}


@pytest.mark.parametrize(
    ("translations", "offered"),
    [
        ({"the cats sleeps.": "B2 C.", "the horse sleeps.": "D C."}, "the cats sleeps."),
        ({"the cats sleeps.": "B C.", "the horse sleeps.": "D C."}, "the horse sleeps."),  # the first has the same one
        ({"the cats sleeps.": "B C F.", "the cat snores.": "B E."}, "the cat snores."),  # the first has more words
        ({"the cats sleeps.": "X Y.", "the cat snores.": "B E."}, "the cat snores."),  # two words differ
        ({"the cats sleeps.": "B C F."}, "the cats sleeps."),
        ({}, None),
    ],
)
def test_the_offered_sentence_differs_in_one_word_and_so_does_its_translation(translations, offered):
    """The vocabulary lacks `the`; `fox` is too short, `bird` begins no word, `Horse` has another case."""
    pieces = list(EMBEDDINGS)
    tokens = torch.nn.Embedding.from_pretrained(torch.tensor(list(EMBEDDINGS.values()), dtype=torch.float))
    tokenizer = SimpleNamespace(
        source_opening=[7],
        encode_source=lambda texts: [[7, pieces.index(f"▁{texts[0]}")] if f"▁{texts[0]}" in pieces else [7, 0, 1]],
        source_pieces=lambda ids: [pieces[i] for i in ids],
    )

    def translate(texts, *, split, beam):
        similar = ["the cats sleeps.", "the cat snores.", "the horse sleeps.", "the table sleeps."]
        assert texts == [*similar, "the cat table.", "the cat horse."]
        return [SimpleNamespace(text=translations.get(text, "B C.")) for text in texts]

    model = SimpleNamespace(source_embedding=SimpleNamespace(tokens=tokens))
    translator = SimpleNamespace(tokenizer=tokenizer, model=model, translate=translate)
    if offered:
        assert Inspector(translator).contrasting_sentence("the cat sleeps.", "B C.") == offered
    else:
        with pytest.raises(UserError, match="no similar sentence"):
            Inspector(translator).contrasting_sentence("the cat sleeps.", "B C.")
