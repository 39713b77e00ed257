"""Retrieval in the decoder, against the equation in NumPy; what it changes, and what stays."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from bitext.memory.translation_memory import TranslationMemory
from bitext.pair import Pair
from tests.inspection.conftest import untrained  # noqa: F401 - a fixture
from translucid import Translator, UserError
from translucid.attention.points import recording
from translucid.decoding.maps import forced_features, forced_log_probs

PAIRS = [Pair("I like a book.", "Me gusta el libro."), Pair("She reads a book.", "Ella lee el fútbol.")]
WORDS = [first + second for first in "abcd" for second in "efgh"]
SOURCE, UNRELATED = "She reads a soccer book.", "Xyz qqq"
FAR_AND_WIDE = {"bandwidth": 1.5, "reach": 4, "weight": 0.7}
"""So that an untrained model retrieves at every position."""
SHAPES = "transformer", "bahdanau", "no attention"


@pytest.fixture
def memory(tmp_path):
    with TranslationMemory.open(tmp_path / "my.memory", write=True) as memory:
        memory.add(PAIRS, "Ana")
        yield memory


@pytest.fixture
def translator(untrained):  # noqa: F811
    return Translator.load(untrained("transformer"), "cpu")


def ids_of(translator, source, target=""):
    """Return source ids and target ids with their end tokens, [1, S] and [1, T]."""
    (pair,) = translator.pipeline.pairs([(source, target)])
    return torch.tensor([pair.source]), torch.tensor([pair.target])


@pytest.mark.parametrize("shape", ["transformer", "bahdanau"])
def test_the_probabilities_are_those_of_the_equation(untrained, memory, shape):  # noqa: F811
    translator = Translator.load(untrained(shape), "cpu", "torch")
    engine = translator.with_knn(memory, **FAR_AND_WIDE).retrieval_engine
    assert set(engine.similar(ids_of(translator, SOURCE)[0][0].tolist())) == set(PAIRS)
    model = translator.model
    point = {"transformer": "decoder.0.feed_forward_input", "bahdanau": "decoder.output"}[shape]

    def states_and_logits(source, target):
        with recording(model, [point]) as record:
            features = forced_features(model, model.encode(source), target)
        return record[point][0].detach().double().numpy(), model.output(features)[0].detach().double().numpy()

    keys, tokens = [], []
    for pair in PAIRS:
        source, target = ids_of(translator, *pair)
        keys += [key / np.linalg.norm(key) for key in states_and_logits(source, target)[0]]
        tokens += target[0].tolist()
    source, target = ids_of(translator, SOURCE, "Ella lee")
    queries, logits = states_and_logits(source, target)
    expected = []
    for query, row in zip(queries, logits, strict=True):
        distances = [((query / np.linalg.norm(query) - key) ** 2).sum() for key in keys]
        weights = [np.exp(-distance / 1.5) for distance in distances]
        factor = 0.7 * max(0, 1 - min(distances) / 4)
        probabilities = np.exp(row - row.max()) / np.exp(row - row.max()).sum() * (1 - factor)
        for weight, token in zip(weights, tokens, strict=True):
            probabilities[token] += factor * weight / sum(weights)
        expected.append(np.log(probabilities))
    with torch.no_grad():
        computed = forced_features(engine.model, engine.model.encode(source), target)[0]
    assert_close(computed.double(), torch.tensor(np.array(expected)), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("beam", [1, 3])
def test_the_search_adds_up_what_forced_decoding_computes(untrained, memory, shape, beam):  # noqa: F811
    translator = Translator.load(untrained(shape), "cpu", "torch")
    retrieving = translator.with_knn(memory, **FAR_AND_WIDE)
    sources = [SOURCE, "I like a soccer book."]
    for text in retrieving.translate(sources, beam=beam):
        ((piece, hypothesis),) = text.parts
        source, target = torch.tensor([piece.ids]), torch.tensor([hypothesis.with_end])
        model = retrieving.retrieval_engine.model
        with torch.inference_mode():
            forced = forced_log_probs(model, model.encode(source), target)[0]
            plain = forced_log_probs(translator.model, translator.model.encode(source), target)[0]
        assert_close(torch.tensor(hypothesis.token_log_probabilities), forced, rtol=1e-4, atol=1e-4)
        assert not torch.allclose(forced, plain, atol=1e-2)


def test_segments_of_the_other_form_of_address_are_not_retrieved(formality_run, tmp_path):
    pairs = [Pair("Do you live?", "¿Vives?"), Pair("Do you live here?", "¿Vive usted aquí?"), Pair("Live.", "Vivir.")]
    translator = Translator.load(formality_run, "cpu", "torch")
    with TranslationMemory.open(tmp_path / "my.memory", write=True) as memory:
        memory.add(pairs, "Ana")
        for form, missing in ((None, None), ("formal", pairs[0]), ("informal", pairs[1])):
            choosing = translator.with_formality(form).with_knn(memory, **FAR_AND_WIDE)
            ids = ids_of(choosing, "Do you live?")[0][0].tolist()
            assert set(choosing.retrieval_engine.similar(ids)) == {*pairs} - {missing}
        # Many segments of the other form do not hide a less similar one.
        formal = Pair("Do you live in the red house?", "¿Vive usted en la casa roja?")
        memory.remove([pair.source for pair in pairs])
        memory.add([formal, *(Pair(f"Do you live {word}?", "¿Vives?") for word in WORDS)], "Ana")
        assert choosing.with_formality("formal").with_knn(memory).retrieval_engine.similar(ids) == (formal,)


def test_a_batch_changes_no_translation(translator, memory):
    retrieving = translator.with_knn(memory, **FAR_AND_WIDE)
    sources = [SOURCE, UNRELATED, "I like a soccer book.", f"{SOURCE} {UNRELATED} I like it.", "I like a book."]
    together = retrieving.translate(sources)
    for source, translation in zip(sources, together, strict=True):
        alone = translator.with_knn(memory, **FAR_AND_WIDE).translate(source)
        assert (alone.text, [word[:2] for word in alone.retrieved]) == (
            translation.text,
            [word[:2] for word in translation.retrieved],
        )
        assert alone.score == pytest.approx(translation.score, rel=1e-4)


@pytest.mark.parametrize("beam", [1, 5])
def test_the_same_source_makes_the_model_write_its_translation(translator, memory, beam):
    retrieving = translator.with_knn(memory, weight=0.99)
    for source, target in PAIRS:
        assert translator.translate(source, beam=beam).text != target
        translation = retrieving.translate(source, beam=beam)
        assert translation.text == target
        words = translation.retrieved
        assert [word.word for word in words] == target.split() and [word.position for word in words] == [0, 1, 2, 3]
        assert {word.source for word in words} == {source} and any(word.changed for word in words)
        assert all(0.9 < word.share <= 1.0001 for word in words if word.changed)


def test_changes_of_the_memory_apply_at_once_and_other_memories_have_no_influence(translator, memory, tmp_path):
    source = PAIRS[0].source
    plain = translator.translate(source)
    retrieving = translator.with_knn(memory, weight=0.99)
    with TranslationMemory.open(tmp_path / "other.memory", write=True) as other:
        other.add([Pair(source, "Ella lee.")], "Eva")
        assert translator.with_knn(other, weight=0.99).translate(source).text == "Ella lee."
        assert retrieving.translate(source).text == PAIRS[0].target
    with TranslationMemory.open(memory.file, write=True) as writer:  # as another program does
        writer.edit(source, "El libro", "Eva")
        assert retrieving.translate(source).text == "El libro"
        writer.remove([PAIRS[1].source, source])
        assert retrieving.translate(source) == plain == translator.translate(source)


def test_what_is_not_similar_stays_bit_identical(translator, memory, monkeypatch):
    for retrieving in (translator.with_knn(memory), Translator.load(translator.run, "cpu", "torch").with_knn(memory)):
        engine = retrieving.retrieval_engine
        translation = retrieving.translate(UNRELATED)
        assert "torch_engine" not in vars(engine) and translation.retrieved == []
        assert translation.nbest == replace_nothing(retrieving, UNRELATED).nbest
    # Similar segments, whose states are too far away.
    near = Translator.load(translator.run, "cpu", "torch")
    far = near.with_knn(memory, reach=1e-6)
    assert far.translate(SOURCE).nbest == near.translate(SOURCE).nbest
    assert far.translate(SOURCE).parts[0][1].retrieved and far.translate(SOURCE).retrieved == []


def replace_nothing(retrieving, text):
    """Translate with the same engine without the memory."""
    return Translator.load(retrieving.run, "cpu", retrieving.loaded.engine_name).translate(text)


def test_heads_stay_off_and_the_model_of_an_intervention_makes_the_keys(translator, memory):
    retrieving = translator.with_knn(memory, **FAR_AND_WIDE)
    head = "decoder.0.cross.head.1"
    both, other_order = retrieving.ablated(head), translator.ablated(head).with_knn(memory, **FAR_AND_WIDE)
    score = both.translate(SOURCE).score
    assert score == other_order.translate(SOURCE).score
    assert score not in (retrieving.translate(SOURCE).score, translator.ablated(head).translate(SOURCE).score)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"bandwidth": 0}, "Give a bandwidth"), ({"reach": 0}, "a reach above 0"), ({"weight": 1}, "between 0 and 1")],
)
def test_options_out_of_range(translator, memory, options, message):
    with pytest.raises(UserError, match=message):
        translator.with_knn(memory, **options)


def test_pairs_that_are_too_long_for_the_model_change_nothing(translator, memory):
    """Such a pair has no keys, alone and beside pairs that have some."""
    long = Pair("She reads a soccer books.", "Ella lee." + " Ella lee." * 200)
    with_both = translator.with_knn(memory, **FAR_AND_WIDE)
    expected = with_both.translate(SOURCE)
    memory.add([long], "Ana")
    assert long in with_both.retrieval_engine.similar(ids_of(translator, SOURCE)[0][0].tolist())
    result = with_both.translate(SOURCE)
    assert result.text == expected.text and result.retrieved == expected.retrieved != []
    memory.remove(pair.source for pair in PAIRS)
    alone = with_both.translate(SOURCE)
    assert alone.text == translator.translate(SOURCE).text and alone.retrieved == []


def test_a_change_in_the_middle_of_a_search_does_not_reach_it(translator, memory, monkeypatch):
    retrieving, source = translator.with_knn(memory, weight=0.99), PAIRS[0].source
    engine = retrieving.retrieval_engine
    decode = engine.torch_engine.decode

    def change_and_decode(request):
        memory.edit(source, "El libro", "Eva")
        return decode(request)

    monkeypatch.setattr(engine.torch_engine, "decode", change_and_decode)
    translation = retrieving.translate(source)
    assert translation.text == PAIRS[0].target and {word.target for word in translation.retrieved} == {PAIRS[0].target}
    monkeypatch.setattr(engine.torch_engine, "decode", decode)
    assert retrieving.translate(source).text == "El libro"
