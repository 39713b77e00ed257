"""`Translator`: one text, many texts, long texts and empty ones."""

import math
from html import escape
from itertools import product

import pytest
import torch

from bitext.pair import Pair
from bitext.words import linked_words
from tests.growth import assert_linear
from translucid import Translations, Translator, UserError
from translucid.corpora.phrasebook import generate
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding import pair_scores
from translucid.decoding.decoding_options import DecodingOptions
from translucid.inspection.alignment import read_alignment
from translucid.models.transformer import Transformer
from translucid.runs.configuration import resolve
from translucid.runs.run_folder import RunFolder


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
    """An untrained model, whose translations are meaningless but deterministic."""
    torch.manual_seed(1)
    shape = {"width": 16, "heads": 2, "feed_forward": 32, "encoder_layers": 1, "decoder_layers": 2}
    overrides = {"model": shape, "data.max_tokens": 20, "decoding.max_length_ratio": 1, "decoding.max_length_extra": 5}
    configuration = resolve(overrides={**overrides, "data.tokenizer.vocabulary": 200})
    pairs = [Pair(p.source, p.target) for p in generate(300, max_words=8)]
    tokenizer = Tokenizer.learn(pairs, configuration.data.tokenizer, seed=1)
    run = RunFolder(tmp_path_factory.mktemp("translator") / "run")
    run.begin(configuration, tokenizer)
    run.save_model(Transformer(tokenizer.source_size, tokenizer.target_size, configuration.model), tokenizer, {})
    return Translator.load(run.path, "cpu", "torch")


TEXTS = ["I like soccer.", "", "She works at the hospital", "Do you like sports?", "  ", "I like soccer."]


def test_one_and_many(translator):
    translations = translator.translate(TEXTS)
    assert [translation.source for translation in translations] == TEXTS
    assert translations[1].text == translations[4].text == ""
    assert translations[0].text == translations[5].text == translator.translate(TEXTS[0]).text != ""
    assert translator.translate([]) == []


@pytest.mark.parametrize("texts", [["I like soccer. She likes soccer. I like it.", "", "I like soccer."], ["", ""]])
def test_progress_counts_texts_not_sentences(translator, texts):
    counts = []
    list(translator.stream(texts, DecodingOptions(beam=1), on_done=counts.append))
    assert sum(counts) == len(texts) and min(counts) >= 0


def test_streams_are_read_window_by_window(translator, monkeypatch):
    monkeypatch.setattr("translucid.api.translator.WINDOW", 4)
    lines_read = []

    def lines():
        for i in range(10):
            lines_read.append(i)
            yield f"I like soccer {i}"

    stream = translator.stream(lines(), DecodingOptions(beam=1))
    next(stream)
    assert len(lines_read) == 4
    assert len(list(stream)) == 9


def test_long_texts_are_translated_in_pieces_that_cover_them(translator):
    text = "She likes soccer. " * 9 + "Werewolves" * 30
    translation = translator.translate(text)
    assert "in pieces" in translation.warnings[0]
    ids = [token for piece, _ in translation.parts for token in piece.ids if token != 3]
    assert translator.tokenizer.decode(ids).split() == text.split()
    assert all(len(piece.ids) <= 20 for piece, _ in translation.parts)


def test_cutting_a_text_takes_time_in_proportion_to_it(translator):
    ids = [5, 6, 7, 8] * 8_000
    assert [token for chunk in translator.pipeline.chunks(ids) for token in chunk] == ids
    assert_linear(lambda count: lambda: translator.pipeline.chunks(ids[:count]), 4_000, 32_000)


def test_sentences_are_translated_one_by_one_and_none_is_lost(translator):
    parts = ["I like soccer.", "Do you like sports?", "Mr. Smith works."]
    alone = [translator.translate(part).text for part in parts]
    joined = translator.translate("  ".join(parts))
    assert joined.text == "  ".join(alone).strip()
    assert joined.score == pytest.approx(sum(translator.translate(part).score for part in parts), abs=1e-3)
    unsplit = translator.translate("  ".join(parts), split=False)
    assert len(unsplit.parts) == 3  # the model takes at most 20 tokens
    assert any(warning.startswith("long: ") for warning in unsplit.warnings)
    short = translator.translate("I sing. You sing.", split=False)
    assert len(short.parts) == 1
    assert short.text != translator.translate("I sing. You sing.").text


def test_texts_without_words_are_unchanged(translator):
    for text in ("https://example.com/a?b=1", "%s: {name}", "42", "...", "me@example.org"):
        translation = translator.translate(text)
        assert translation.text == text
        assert translation.parts == translation.warnings == []
        assert translation.alignment == [(i, i) for i in range(len(text.split()))]
        assert translator.translate(text, split=False).text != text
    mixed = translator.translate("She sings. {name} 42! You sing.")
    assert " {name} 42! " in mixed.text
    before = len(translator.translate("She sings.").text.split())
    assert {(2, before), (3, before + 1)} <= set(mixed.alignment)
    assert max(source for source, _ in mixed.alignment) == 5


def scores(candidates):
    return [candidate.score for candidate in candidates]


def test_the_best_of_several_sentences_are_the_best_sums(translator):
    parts = ["I like soccer.", "Do you like sports?", "You sing."]
    options = DecodingOptions(beam=3, nbest=3)
    alone = [translator.translate(part, options).nbest for part in parts]
    joined = translator.translate(" ".join(parts), options)
    sums = sorted(map(sum, product(*map(scores, alone))), reverse=True)
    assert scores(joined.nbest) == pytest.approx(sums[:3], abs=1e-3)
    assert joined.alternatives[0] == joined.text == " ".join(nbest[0].text for nbest in alone)
    assert len(set(joined.alternatives)) == 3


def test_token_log_probabilities_are_those_of_each_translation(translator):
    translation = translator.translate("I like soccer. %s You sing.", beam=2, nbest=2)
    rows = translation.token_log_probabilities
    assert len(rows) == 2
    for row, candidate in zip(rows, translation.nbest, strict=True):
        assert sum(value for _, value in row) == pytest.approx(
            sum(hypothesis.log_probability for hypothesis in candidate.hypotheses), abs=1e-4
        )
        assert [piece for piece, _ in row].count("</s>") == 2
    assert translator.translate("").token_log_probabilities == [[]]


def test_options_can_be_keywords(translator):
    settings = translator.configuration.decoding.model_dump()
    options = DecodingOptions(**{**settings, "beam": 3, "nbest": 3})
    expected = translator.translate("She likes soccer", options)
    assert len(expected.nbest) == 3
    assert translator.translate("She likes soccer", beam=3, nbest=3) == expected
    assert translator.translate("She likes soccer", options, nbest=2).nbest == expected.nbest[:2]
    with pytest.raises(UserError, match=r"beem.*beam"):
        translator.translate("She likes soccer", beem=3)
    with pytest.raises(UserError, match="beam"):
        translator.translate("She likes soccer", beam=0)


@pytest.mark.parametrize(
    ("value", "type_name"),
    [(None, "NoneType"), (b"I sing.", "bytes"), (3, "int"), (["x", None], "text 1"), ({}, "dict")],
)
def test_inputs_that_are_not_text_are_refused(translator, value, type_name):
    with pytest.raises(TypeError, match=type_name):
        translator.translate(value)


def test_sampling_draws_anew_with_each_call_line_and_window(translator, monkeypatch):
    def draw(count=1, **options):
        return [
            translation.text
            for translation in translator.translate(["She likes soccer"] * count, sample=True, **options)
        ]

    assert len(set(draw(6))) > 3
    calls = [tuple(draw()) for _ in range(6)]
    assert len(set(calls)) > 3
    assert draw(6, seed=5) == draw(6, seed=5) != draw(6, seed=6)
    texts = draw(6, seed=5)
    monkeypatch.setattr("translucid.api.translator.WINDOW", 2)
    assert draw(6, seed=5) == texts


def test_attention_and_alignment_come_with_the_translation(translator):
    translation = translator.translate("She likes soccer", DecodingOptions(beam=2, nbest=2))
    assert translation.attention["decoder.1.cross"].shape[:2] == (1, 2)
    assert translator.translate("").attention == {}
    in_pieces = translator.translate("She likes soccer. " * 20)
    assert len(in_pieces.attention_by_piece) > 1
    with pytest.raises(ValueError, match="pieces"):
        assert in_pieces.attention
    (words,) = translation.words
    assert words.source == ["She", "likes", "soccer", "</s>"]
    assert words.target[:-1] == translation.text.split()
    assert [target for _, target in sorted(translation.alignment, key=lambda link: link[1])] == list(
        range(len(words.target) - 1)
    )
    assert translation.alternatives[0] == translation.text
    assert len(translation.alternatives) == 2


@pytest.mark.parametrize("character", "\u200b\u200e\u200f\ufeff\u000b\u001f\ufffd\u00a0\u202f\u00ad")
def test_alignments_count_words_between_spaces(translator, character):
    source, target = "The house, the car and the dog", "La casa, el coche y el perro"
    marked = source.replace("house", f"house{character}").replace("dog", f"{character} dog{character}")
    words = len(linked_words(marked))
    assert words == 8
    translation = translator.translate(marked)
    (inspected,) = translator.inspector.inspect([(marked, target)])
    read = read_alignment(inspected, translator.configuration.alignment)
    linked = [translator.inspector.align(marked, target), read]
    assert linked[0] == linked[1] and max(s for s, _ in read) < words and max(t for _, t in read) < 7
    assert max(s for s, _ in translation.alignment) < words
    assert max(t for _, t in translation.alignment) < len(linked_words(translation.text))


@pytest.mark.parametrize("text", ["“{}”", "• {}", "☞ {} —", "“{} ”"])
def test_signs_that_the_vocabulary_lacks_stay_at_the_ends(translator, text):
    plain = translator.translate("She likes soccer.")
    translation = translator.translate(text.format("She likes soccer."))
    assert translation.text == text.format(plain.text) and translation.warnings == plain.warnings
    moved = int(text.split("{")[0].endswith(" "))
    links = [(source - moved, target - moved) for source, target in translation.alignment]
    assert set(plain.alignment) <= set(links)
    assert max(target for _, target in translation.alignment) == len(linked_words(translation.text)) - 1
    (confidences,) = translator.quality.word_probabilities([translation])
    assert [word for word, _ in confidences] == translation.text.split()


def test_parts_of_a_word_have_more_pieces_than_the_word(translator):
    assert translator.tokenizer.joins("t", "he") and not translator.tokenizer.joins("the", "the")


def test_reading_the_attention_changes_no_translation(translator):
    before = translator.translate("She likes soccer")
    assert before.attention
    assert translator.translate("She likes soccer").text == before.text


def test_perplexity_is_that_of_the_cross_entropy_in_float64(translator):
    pairs = [(p.source, p.target) for p in generate(30, split="test", max_words=7)] + [("I sing " * 30, "Canto")]
    forced, too_long = translator.inspector.forced_scores(pairs)
    total, correct, count = 0.0, 0, 0
    short = [pair.ids for pair in translator.pipeline.pairs(pairs) if pair.longest <= translator.pipeline.longest]
    for source, target in short:
        logits = translator.model(torch.tensor([source]), torch.tensor([[2, *target[:-1]]]))[0].double()
        total += torch.nn.functional.cross_entropy(logits, torch.tensor(target), reduction="sum").item()
        correct += int((logits.argmax(-1) == torch.tensor(target)).sum())
        count += len(target)
    assert too_long == 31 - len(short) >= 1
    assert forced.tokens == count > 50
    assert forced.perplexity == pytest.approx(math.exp(total / count), rel=1e-5)
    assert forced.accuracy == pytest.approx(correct / count)


def test_perplexity_is_computed_in_chunks_independently_of_the_batch(translator, monkeypatch):
    pairs = [(p.source, p.target) for p in generate(25, split="test", max_words=7)]
    # Skip pairs that are too long for the model.
    pairs = [pair for pair in pairs if translator.inspector.forced_scores([pair])[0]]
    assert len(pairs) > 5
    at_once, _ = translator.inspector.forced_scores(pairs)
    shapes = []
    hook = translator.model.output.register_forward_hook(lambda module, inputs, logits: shapes.append(logits.shape))
    monkeypatch.setattr(pair_scores, "ROWS", 7)
    by_seven, _ = translator.inspector.forced_scores(pairs)
    hook.remove()
    assert max(shape.numel() // shape[-1] for shape in shapes) == 7
    alone, _ = zip(*(translator.inspector.forced_scores([pair]) for pair in pairs), strict=True)
    entropy = sum(math.log(scores.perplexity) * scores.tokens for scores in alone)
    assert sum(scores.tokens for scores in alone) == by_seven.tokens == at_once.tokens
    for perplexity in by_seven.perplexity, math.exp(entropy / at_once.tokens):
        assert perplexity == pytest.approx(at_once.perplexity, rel=1e-5)
    for accuracy in by_seven.accuracy, sum(scores.accuracy * scores.tokens for scores in alone) / at_once.tokens:
        assert accuracy == pytest.approx(at_once.accuracy)


def test_there_is_no_perplexity_of_nothing(translator):
    assert translator.inspector.forced_scores([("I sing " * 300, "Canto")]) == (None, 1)


def test_the_tree_of_a_search_is_that_of_the_translation(translator):
    trace = translator.inspector.trace("She likes soccer", 3)
    (hypothesis,) = translator.translate("She likes soccer", beam=3).nbest[0].hypotheses
    assert trace.tokens(trace.best) == hypothesis.with_end
    assert trace.nodes[trace.best].log_prob == pytest.approx(hypothesis.log_probability, abs=1e-4)
    names = dict(zip(hypothesis.with_end, translator.tokenizer.target_pieces(hypothesis.with_end), strict=True))
    assert {token: trace.name(token) for token in names} == names
    for text in ("She likes soccer " * 20, ""):
        with pytest.raises(UserError, match="for one sentence"):
            translator.inspector.trace(text, 3)


def test_texts_are_split_into_sentences_unless_they_are_not_to_be(translator):
    text, options = "She sings. I like soccer.", DecodingOptions(beam=1)
    assert [len(translator.translate(text, beam=1, split=split).parts) for split in (True, False)] == [2, 1]
    assert len(translator.translate(text).parts) == len(next(translator.stream([text], options)).parts) == 2
    assert len(next(translator.stream([text], options, split=False)).parts) == 1


def test_a_sample_depends_on_the_number_of_its_text(translator):
    options = DecodingOptions(sample=True, seed=5)
    texts = [translation.text for translation in translator.stream(["She likes soccer"] * 6, options, first=0)]
    later = [translation.text for translation in translator.stream(["She likes soccer"] * 2, options, first=4)]
    assert len(set(texts)) > 2 and later == texts[4:]
    assert [translation.text for translation in translator.translate(["She likes soccer"] * 6, options)] == texts


def test_copied_text_is_linked_word_by_word_and_certain(translator):
    translation = translator.translate("https://a.org/b https://c.org")
    assert translation.text == translation.source and translation.parts == []
    assert translation.word_weights == [(0, 0, 1.0), (1, 1, 1.0)] and translation.alignment == [(0, 0), (1, 1)]
    assert translation.word_probabilities == [("https://a.org/b", 1.0), ("https://c.org", 1.0)]
    assert translation.attention == {} and translation.inspected == []


def test_the_equation_is_of_the_last_layer_and_of_a_part_that_there_is(translator):
    translation = translator.translate("She sings. I like soccer.")
    last, first = translation.equation(part=1), translation.equation("decoder.0.cross")
    assert (last.name, first.name) == ("decoder.1.cross", "decoder.0.cross")
    for part in (-1, 2):
        with pytest.raises(UserError, match=f"there is no part {part}.* translated in 2"):
            translation.equation(part=part)
    with pytest.raises(ValueError, match="translated in 2 pieces"):
        _ = translation.attention


def test_several_translations_as_a_table(translator):
    translations = translator.translate(text for text in ["I like <b> 足", ""])
    assert isinstance(translations, Translations)
    good, _ = translations
    assert "unknown script: CJK" in good.warnings
    assert translations._repr_html_() == (
        "<table><tr><th>source</th><th>translation</th><th></th></tr>"
        f"<tr><td>I like &lt;b&gt; 足</td><td><b>{escape(good.text)}</b></td>"
        f"<td>{escape('; '.join(good.warnings))}</td></tr>"
        "<tr><td></td><td><b></b></td><td></td></tr></table>"
    )
