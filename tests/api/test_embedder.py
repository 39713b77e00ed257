"""Vectors of words in their context."""

import numpy as np
import pytest
import torch

from translucid import Embedder, UserError
from translucid.api.embedder import TOGETHER, bare
from translucid.ground.special import SPECIAL
from translucid.layers.mix import Mix

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
    more = ["model.characters=true", "model.filters=[8, 8]"] if request.param == "characters" else []
    return Embedder.load(language_run("lm-bilstm", *more), "cpu")


def test_each_word_gets_one_vector(embedder):
    for layers, shape in (("mix", (32,)), ("all", (3, 32)), (0, (32,)), (2, (32,)), (Mix(3), (32,))):
        found = embedder.embed(TEXTS, layers)
        assert [one.shape for one in found] == [(len(text.split()), *shape) for text in TEXTS]
        assert all(np.isfinite(one).all() and one.dtype == np.float32 for one in found)
    assert embedder.embed([]) == []
    several, none = embedder._pieces(["the zzyxq", "\u200b"])
    assert len(several.ids) > 2, "no word of several pieces is tested"
    assert none.ids == [SPECIAL.unknown]


def test_layers_are_those_of_all(embedder):
    every = embedder.embed(TEXTS, "all")
    mix = Mix(3)
    with torch.no_grad():
        mix.s.copy_(torch.tensor([0.0, 2.0, 1.0]))
    weights = mix.s.softmax(0).detach().numpy()
    for layers, expected in [
        *((number, [one[:, number] for one in every]) for number in range(3)),
        ("mix", [one.mean(1) for one in every]),
        (mix, [(one * weights[:, None]).sum(1) for one in every]),
    ]:
        for one, other in zip(embedder.embed(TEXTS, layers), expected, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-5)


@torch.no_grad()
def test_a_vector_is_what_both_models_know_at_a_word(embedder):
    """The forward state after its last piece and the backward state after its first, one text at a time, by hand."""
    text = "She likes the beaches"
    pieces = [embedder.tokenizer.encode_target([word])[0] for word in text.split()]
    ids = [piece for word in pieces for piece in word]
    assert ids == embedder.tokenizer.encode_target([text])[0], "the words cut one by one are not the text"
    assert any(len(word) > 1 for word in pieces)
    model = embedder.model
    read = torch.tensor([[[SPECIAL.start, *ids], [SPECIAL.start, *reversed(ids)]]])
    layers = model.read_on(read, model.begin(1, read.device))[0].layers
    found = embedder.embed([text], "all")[0]
    end = 0
    for number, word in enumerate(pieces):
        start, end = end, end + len(word)
        for layer in range(3):
            forth, back = layers[layer][0]
            expected = torch.cat([forth[end], back[len(ids) - start]])  # the start token stands before both
            np.testing.assert_allclose(found[number, layer], expected, atol=1e-5)
            if not layer:
                own = model.embedding(torch.tensor([word]))[0]
                np.testing.assert_allclose(found[number, 0], torch.cat([own[-1], own[0]]), atol=1e-5)


def test_a_word_has_another_vector_in_another_place_but_the_same_embedding(embedder):
    (one, other) = embedder.embed(["I like soccer and the beach", "the beach likes soccer"], "all")
    np.testing.assert_allclose(one[2, 0], other[3, 0], atol=1e-5)
    for layer in (1, 2):
        for half in (slice(16), slice(16, 32)):
            assert np.abs(one[2, layer, half] - other[3, layer, half]).max() > 1e-3


def test_a_vector_does_not_depend_on_the_company(embedder):
    many = ["I like soccer and also going to the beach", *TEXTS] * (TOGETHER // 4)
    together = embedder.embed(many)
    for number in (0, 1, 3, 5, len(many) - 1):
        np.testing.assert_allclose(together[number], embedder.embed([many[number]])[0], atol=1e-5)


def test_marks_on_a_word_are_not_waited_for(embedder):
    """The forward state is that after the last letter, whatever mark comes then."""
    (plain, marked) = embedder.embed(["I like soccer", "I like soccer!!"], 2)
    np.testing.assert_allclose(plain[2, :16], marked[2, :16], atol=1e-5)
    assert np.abs(plain[2, 16:] - marked[2, 16:]).max() > 1e-4, "the backward model has read them"
    assert [bare(word) for word in ("Queen,", "«queen»", "don't", "--", "")] == ["queen", "queen", "don't", "--", ""]


def test_the_same_sentence_is_the_nearest(embedder):
    among = ["the beach is nice", "I like soccer", "She likes soccer and the beach"] * 200
    for layer in ("mix", 0, 1, 2):
        found = embedder.nearest("I like soccer", "soccer", among, layer=layer, top=5)
        assert len(found) == 5
        assert found[0].similarity == pytest.approx(1, abs=1e-5)
        assert [one.similarity for one in found] == sorted((one.similarity for one in found), reverse=True)
        assert all(one.words == among[one.text].split() for one in found)
    assert {(one.text % 3, one.place) for one in found} == {(1, 2)}


def test_the_nearest_are_those_of_all_in_order(embedder):
    """Against all cosines at once."""
    among = ["the beach is nice", "I like soccer, too", "", "She likes the Soccer of the beach", "a nice beach"] * 100
    query = embedder.embed(["They like soccer"], 1)[0][2]
    read = [0]
    found = embedder.nearest(
        "They like soccer", "soccer", among, layer=1, top=150, same=True, on_done=lambda n: read.append(n)
    )
    assert sum(read) == len(among)
    expected = []
    for number, vectors in enumerate(embedder.embed(among, 1)):
        for place, word in enumerate(among[number].split()):
            if bare(word) == "soccer":
                cosine = vectors[place] @ query / np.linalg.norm(vectors[place]) / np.linalg.norm(query)
                expected.append((cosine, number, place))
    expected.sort(key=lambda one: -one[0])
    np.testing.assert_allclose([one.similarity for one in found], [one[0] for one in expected[:150]], atol=1e-5)
    assert {bare(one.words[one.place]) for one in found} == {"soccer"}
    assert all(one.words == among[one.text].split() for one in found)
    every = embedder.nearest("They like soccer", "soccer", among, layer=1, top=300)
    assert {bare(one.words[one.place]) for one in every} > {"soccer"}


def test_what_can_not_be_had_is_refused(embedder):
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
    read = torch.tensor([[SPECIAL.start, *(reversed(ids) if backwards else ids)]])
    with torch.no_grad():
        layers = model.read_on(read, model.begin(1, read.device))[0].layers
    end = 0
    found = [embedder.embed([text], layer)[0] for layer in range(3)]
    assert [one.shape for one in found] == [(4, 16), (4, 24), (4, 16)]
    for number, word in enumerate(pieces):
        start, end = end, end + len(word)
        for layer in range(3):
            expected = layers[layer][0, len(ids) - start if backwards else end]
            np.testing.assert_allclose(found[layer][number], expected, atol=1e-5)
    for together in ("mix", "all"):
        with pytest.raises(UserError, match=r"different widths \(16, 24, 16\) can't be put together\. Choose one"):
            embedder.embed([text], together)


def test_other_models_are_refused(small_run):
    with pytest.raises(UserError, match="translates text"):
        Embedder.load(small_run)
