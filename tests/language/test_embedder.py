"""Contextual word embeddings."""

import numpy as np
import pytest
import torch

from translucid import Embedder, UserError
from translucid.ground.special import SPECIAL
from translucid.language.embedder import TOGETHER, bare
from translucid.language.lstm import Mix

TEXTS = [
    "I like soccer",
    "",
    "She likes the beach and the zzyxq 漢字 , too",
    "   ",
    "soccer",
    "I like soccer!",
    "I \u200b like",
]


@pytest.fixture(scope="module", params=["embeddings", "characters"])
def embedder(request, language_run):
    settings = ["model.characters=true", "model.filters=[8, 8]"] if request.param == "characters" else []
    return Embedder.load(language_run("lm-bilstm", *settings), "cpu")


def test_each_word_gets_one_vector(embedder):
    for layers, shape in (("mix", (32,)), ("all", (3, 32)), (0, (32,)), (2, (32,)), (Mix(3), (32,))):
        arrays = embedder.embed(TEXTS, layers)
        assert [array.shape for array in arrays] == [(len(text.split()), *shape) for text in TEXTS]
        assert all(np.isfinite(array).all() and array.dtype == np.float32 for array in arrays)
    assert embedder.embed([]) == []
    several, none = embedder._pieces(["the zzyxq", "\u200b"])
    assert len(several.ids) > 2, "no word of several pieces is tested"
    assert none.ids == [SPECIAL.unknown]


def test_layers_are_those_of_all(embedder):
    all_layers = embedder.embed(TEXTS, "all")
    mix = Mix(3)
    with torch.no_grad():
        mix.s.copy_(torch.tensor([0.0, 2.0, 1.0]))
    weights = mix.s.softmax(0).detach().numpy()
    for layers, expected in [
        (0, [vectors[:, 0] for vectors in all_layers]),
        (1, [vectors[:, 1] for vectors in all_layers]),
        (2, [vectors[:, 2] for vectors in all_layers]),
        ("mix", [vectors.mean(1) for vectors in all_layers]),
        (mix, [(vectors * weights[:, None]).sum(1) for vectors in all_layers]),
    ]:
        for vectors, expected_vectors in zip(embedder.embed(TEXTS, layers), expected, strict=True):
            np.testing.assert_allclose(vectors, expected_vectors, atol=1e-5)


@torch.no_grad()
def test_a_vector_joins_the_states_of_both_directions(embedder):
    """Compare with the forward state after a word's last piece and the backward state after its first."""
    text = "She likes the beaches"
    pieces = [embedder.tokenizer.encode_target([word])[0] for word in text.split()]
    ids = [piece for word in pieces for piece in word]
    assert ids == embedder.tokenizer.encode_target([text])[0], "the words cut one by one are not the text"
    assert any(len(word) > 1 for word in pieces)
    model = embedder.model
    inputs = torch.tensor([[[SPECIAL.start, *ids], [SPECIAL.start, *reversed(ids)]]])
    layers = model.read_on(inputs, model.begin(1, inputs.device))[0].layers
    vectors = embedder.embed([text], "all")[0]
    end = 0
    for number, word in enumerate(pieces):
        start, end = end, end + len(word)
        for layer in range(3):
            forward_states, backward_states = layers[layer][0]
            # The start token precedes both.
            expected = torch.cat([forward_states[end], backward_states[len(ids) - start]])
            np.testing.assert_allclose(vectors[number, layer], expected, atol=1e-5)
            if not layer:
                embeddings = model.embedding(torch.tensor([word]))[0]
                np.testing.assert_allclose(vectors[number, 0], torch.cat([embeddings[-1], embeddings[0]]), atol=1e-5)


def test_a_word_has_another_vector_in_another_place_but_the_same_embedding(embedder):
    (first, second) = embedder.embed(["I like soccer and the beach", "the beach likes soccer"], "all")
    np.testing.assert_allclose(first[2, 0], second[3, 0], atol=1e-5)
    for layer in (1, 2):
        for half in (slice(16), slice(16, 32)):
            assert np.abs(first[2, layer, half] - second[3, layer, half]).max() > 1e-3


def test_a_vector_does_not_depend_on_the_batch(embedder):
    texts = ["I like soccer and also going to the beach", *TEXTS] * (TOGETHER // 4)
    batched = embedder.embed(texts)
    for number in (0, 1, 3, 5, len(texts) - 1):
        np.testing.assert_allclose(batched[number], embedder.embed([texts[number]])[0], atol=1e-5)


def test_the_forward_state_does_not_depend_on_punctuation_after_a_word(embedder):
    """The forward state is that after the last letter, whatever mark follows."""
    (plain, marked) = embedder.embed(["I like soccer", "I like soccer!!"], 2)
    np.testing.assert_allclose(plain[2, :16], marked[2, :16], atol=1e-5)
    assert np.abs(plain[2, 16:] - marked[2, 16:]).max() > 1e-4, "the backward model has read them"
    assert [bare(word) for word in ("Queen,", "«queen»", "don't", "--", "")] == ["queen", "queen", "don't", "--", ""]


def test_the_same_sentence_is_the_nearest(embedder):
    candidates = ["the beach is nice", "I like soccer", "She likes soccer and the beach"] * 200
    for layer in ("mix", 0, 1, 2):
        matches = embedder.nearest("I like soccer", "soccer", candidates, layer=layer, top=5)
        assert len(matches) == 5
        assert matches[0].similarity == pytest.approx(1, abs=1e-5)
        assert [match.similarity for match in matches] == sorted((match.similarity for match in matches), reverse=True)
        assert all(match.words == candidates[match.text].split() for match in matches)
    assert {(match.text % 3, match.place) for match in matches} == {(1, 2)}


def test_the_nearest_are_those_of_all_in_order(embedder):
    """Compare with all cosines at once."""
    candidates = [
        "the beach is nice",
        "I like soccer, too",
        "",
        "She likes the Soccer of the beach",
        "a nice beach",
    ] * 100
    query = embedder.embed(["They like soccer"], 1)[0][2]
    counts = [0]
    matches = embedder.nearest(
        "They like soccer", "soccer", candidates, layer=1, top=150, same=True, on_done=lambda n: counts.append(n)
    )
    assert sum(counts) == len(candidates)
    expected = []
    for number, vectors in enumerate(embedder.embed(candidates, 1)):
        for position, word in enumerate(candidates[number].split()):
            if bare(word) == "soccer":
                cosine = vectors[position] @ query / np.linalg.norm(vectors[position]) / np.linalg.norm(query)
                expected.append((cosine, number, position))
    expected.sort(key=lambda match: -match[0])
    np.testing.assert_allclose(
        [match.similarity for match in matches], [match[0] for match in expected[:150]], atol=1e-5
    )
    assert {bare(match.words[match.place]) for match in matches} == {"soccer"}
    assert all(match.words == candidates[match.text].split() for match in matches)
    all_matches = embedder.nearest("They like soccer", "soccer", candidates, layer=1, top=300)
    assert {bare(match.words[match.place]) for match in all_matches} > {"soccer"}


def test_missing_layers_and_words_are_refused(embedder):
    for layer in (3, -1):
        with pytest.raises(UserError, match="there is no layer"):
            embedder.embed(["I"], layer)
    with pytest.raises(UserError, match=r"'tennis' is not in the sentence\. Choose one of: I like soccer"):
        embedder.nearest("I like soccer", "tennis", ["x"])
    with pytest.raises(UserError, match="one vector is wanted"):
        embedder.nearest("I like soccer", "soccer", ["x"], layer="all")


@pytest.mark.parametrize("backwards", [False, True])
def test_a_model_of_one_direction_gives_its_states(language_run, backwards):
    embedder = Embedder.load(language_run("lm-lstm", f"model.backwards={str(backwards).lower()}"), "cpu")
    model, text = embedder.model, "She likes the beaches"
    pieces = [embedder.tokenizer.encode_target([word])[0] for word in text.split()]
    ids = [piece for word in pieces for piece in word]
    inputs = torch.tensor([[SPECIAL.start, *(reversed(ids) if backwards else ids)]])
    with torch.no_grad():
        layers = model.read_on(inputs, model.begin(1, inputs.device))[0].layers
    end = 0
    layer_vectors = [embedder.embed([text], layer)[0] for layer in range(3)]
    assert [vectors.shape for vectors in layer_vectors] == [(4, 16), (4, 24), (4, 16)]
    for number, word in enumerate(pieces):
        start, end = end, end + len(word)
        for layer in range(3):
            expected = layers[layer][0, len(ids) - start if backwards else end]
            np.testing.assert_allclose(layer_vectors[layer][number], expected, atol=1e-5)
    for combination in ("mix", "all"):
        with pytest.raises(UserError, match=r"different widths \(16, 24, 16\) can't be put together\. Choose one"):
            embedder.embed([text], combination)


def test_other_models_are_refused(small_run):
    with pytest.raises(UserError, match="translates text"):
        Embedder.load(small_run)
