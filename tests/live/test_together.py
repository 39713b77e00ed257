"""Live translation with what translators have otherwise: other models, languages, placeholders, terms, context."""

import random

import pytest
import torch

from bitext.memory.translation_memory import Recall, TranslationMemory
from bitext.pair import Pair
from tests.live.test_session import translate_together
from tests.probes.untrained import untrained_translator
from translucid import PivotTranslator, Translator
from translucid.api.segment_translator import shown_matches
from translucid.data.tokenizing.pieces import TERM
from translucid.ground.errors import UserError
from translucid.runs.adapters import save_adapter
from translucid.runs.run_folder import RunFolder

TEXT = "I like soccer and the big dog."
RECURRENT = {"kind": "recurrent", "width": 16}
MODELS = {
    "Bahdanau": RECURRENT | {"attention": "bahdanau"},
    "Luong": RECURRENT | {"attention": "luong-general", "input_feeding": True},
    "local-p": RECURRENT | {"attention": "luong-general", "window": 1},
    "SSRU": {
        "kind": "transformer",
        "width": 16,
        "heads": 2,
        "encoder_layers": 1,
        "decoder_layers": 1,
        "decoder": "ssru",
    },
    "attention only": {"kind": "attention-only", "width": 16, "encoder_layers": 1, "decoder_layers": 1},
    "no attention": RECURRENT | {"attention": "none"},
}


def live(translator, text, policy="alignatt", **options):
    session = translator.live(policy, **options)
    written = [session.read(character) for character in text]
    assert "".join([*written, session.finish()]) == session.text
    assert session.delays == sorted(session.delays)
    assert len(session.delays) == sum(len(sentence["target"]) for sentence in session.record["sentences"])
    return session


def assert_ordinary(translator, text, policy, **options):
    """With a lag of the sentence, the translation is the ordinary one."""
    assert live(translator, text, policy, lag=50, **options).text == translator.translate(text, beam=1).text


def assert_together(translator, **options):
    """Sessions that are translated together write what they write alone."""
    sessions = [translator.live(lag=lag, **options) for lag in (1, 2, 4)]
    translate_together(sessions, TEXT, random.Random(1))
    for session in sessions:
        alone = live(translator, TEXT, lag=session.policy.lag, **options)
        assert session.text == alone.text and session.delays == alone.delays


@pytest.mark.parametrize("name", MODELS)
def test_models(tmp_path, name):
    translator = untrained_translator(tmp_path, MODELS[name])
    attentive = name != "no attention"
    for policy in ("alignatt", "agreement"):
        assert_ordinary(translator, TEXT, policy)
    assert_together(translator)
    session = live(translator, TEXT, "alignatt" if attentive else "wait-k", lag=1)
    (sentence,) = session.record["sentences"]
    for part in sentence["written"]:
        assert len(part["row"]) == part["heard"]
        if name == "local-p":  # three positions at most
            assert all(sum(value > 0 for value in piece["row"]) <= 3 for piece in part["pieces"])


def test_heads_off_ensembles_and_languages(small_run, multilingual_run):
    translator = Translator.load(small_run, engine="torch")
    ablated = translator.ablated("decoder.0.cross.head.0")
    assert_ordinary(ablated, TEXT, "edatt", attention="decoder.0.cross.head.1")
    ensemble = Translator.load(small_run, others=[small_run])
    assert_ordinary(ensemble, TEXT, "alignatt")
    assert_together(ensemble)
    reverse = Translator.load(multilingual_run, engine="torch", source="es", target="en")
    assert_ordinary(reverse, "Me gusta el perro grande.", "alignatt")
    session = live(reverse, "Me gusta el perro grande.", lag=1)
    assert session.record["languages"] == ["es", "en"]
    assert session.record["sentences"][0]["heard"]["2"]["words"][-1] == 1


def test_through_a_pivot_language(pivot_runs):
    first, second = (Translator.load(pivot_runs / name, engine="torch") for name in ("es-en", "en-fr"))
    pivot = PivotTranslator(first, second)
    text = "Me gusta el perro grande"
    whole = live(pivot, text, "whole")
    assert whole.text == pivot.translate(text, beam=1).text
    assert set(whole.delays) == {5}
    session = live(pivot, text, "wait-k", lag=1)
    assert all(a >= b for a, b in zip(session.delays, session.first.delays, strict=False))
    assert session.record["pivot"] == session.first.record
    text += ". Ella canta. Me gusta el perro"
    expected, session, delays = live(pivot, text, "wait-k", lag=1), pivot.live("wait-k", lag=1), []
    for part in [*text, None]:
        known = len(session.delays)
        session.read(part) if part else session.finish()
        delays += session.delays[known:]
        session.forget()
    assert (session.text, delays) == (expected.text, expected.delays)


def test_placeholders_stay_whole(tmp_path):
    """An untrained model writes placeholders at random: each is copied whole, and the frontier counts source words."""
    translator = untrained_translator(tmp_path, placeholders=0.5)
    text = "Dear {{ a b }}, write to a@b.org or %s now."
    session = live(translator, text, lag=1)
    (sentence,) = session.record["sentences"]
    reading = sentence["heard"][str(len(text.split()) - 1)]
    by_piece = dict(zip(reading["pieces"], reading["words"], strict=True))
    assert by_piece["a@b.org"] == 7 and by_piece["%s"] == 9
    assert_ordinary(translator, text, "alignatt")
    # Nothing is decided within a placeholder or a tag that has spaces.
    text = 'Dear {{ a. b }}, see <a href="x y">the dog</a> if 1 < 2 now.'
    (sentence,) = live(translator, text, lag=0).record["sentences"]
    assert [int(heard) for heard in sentence["heard"]] == [1, 5, 6, 9, 10, 11, 12, 13, 14, 15]
    assert not any(part["text"].count("{{") != part["text"].count("}}") for part in sentence["written"])


def test_terms_are_annotated_or_refused(tmp_path, small_run):
    languages = {"source_language": "en", "target_language": "es"}
    terms = [("soccer", "balompié")]
    translator = untrained_translator(tmp_path, terms=0.5, **languages).with_terms(terms, mode="annotate")
    assert_ordinary(translator, TEXT, "alignatt")
    (sentence,) = live(translator, TEXT, lag=1).record["sentences"]
    reading = sentence["heard"]["4"]
    start, end = (reading["pieces"].index(mark) for mark in (TERM.source, TERM.end))
    assert set(reading["words"][start : end + 1]) == {2}  # the annotation belongs to its word
    assert reading["words"][-1] == 3
    constrained = Translator.load(small_run, engine="torch").with_terms(terms)
    with pytest.raises(UserError, match="constrained `terms`"):
        constrained.live()


def test_an_adapter_decides_with_its_own_attention(tmp_path):
    translator = untrained_translator(tmp_path / "run")
    run, tuned = RunFolder(tmp_path / "run"), RunFolder(tmp_path / "tuned")
    tuned.path.mkdir()
    differences = {}
    for name, weight in translator.model.named_parameters():
        if weight.dim() == 2 and "attention" in name:
            differences[name] = torch.randn(len(weight), 1), torch.randn(1, weight.size(1))
    save_adapter(tuned, differences, 1.0, run.model_digest(), {})
    adapted = translator.with_adapter(tuned.path)
    assert_ordinary(adapted, TEXT, "alignatt")
    session, base = live(adapted, TEXT, lag=1), live(translator, TEXT, lag=1)
    assert session.record["sentences"] != base.record["sentences"]
    assert live(translator.with_adapter(None), TEXT, lag=1).record == base.record


def test_near_matches_are_read_and_are_no_part_of_what_was_heard(tmp_path):
    TranslationMemory.make(tmp_path / "m.memory", [Pair("I like the big dog.", "Me gusta el perro grande.")], "")
    with TranslationMemory.open(tmp_path / "m.memory", immutable=True) as memory:
        plain = untrained_translator(tmp_path / "run", fuzzy_matches=60)
        translator = shown_matches(plain, Recall(memory, 100))
        text = "I like the small dog."
        assert translator.translate(text, beam=1).text != plain.translate(text, beam=1).text  # the model reads it
        assert_ordinary(translator, text, "alignatt")
        for lag in (0, 1):
            (sentence,) = live(translator, text, lag=lag).record["sentences"]
            (same,) = live(plain, text, lag=lag).record["sentences"]
            assert sentence["heard"] == same["heard"]  # pieces and words are those of the source
            for part in sentence["written"]:
                assert len(part["row"]) == part["heard"] and 0 < sum(part["row"]) < 1


def test_the_last_sentences_are_context(tmp_path):
    translator = untrained_translator(tmp_path, context=1)
    text = "The dog eats. I like soccer."
    session = live(translator, text, "whole")
    assert session.text == translator.translate(text, beam=1).text
    assert session.sentences[1].before == (session.sentences[0].source_ids,)
    forgetful = translator.live("whole")
    forgetful.read("The dog eats. ")
    forgetful.forget()
    forgetful.read("I like soccer. ")
    assert forgetful.sentences[0].before == session.sentences[1].before
    assert forgetful.text == session.text


def test_characters_are_words_without_spaces(tmp_path):
    pairs = [Pair(text, text) for text in ("我爱足球。", "他看大狗。", "我们去海边！", "狗爱我。", "大海。")] * 4
    translator = untrained_translator(tmp_path, pairs=pairs, source_language="zh", target_language="zh")
    session = live(translator, "我爱大狗。狗看海", lag=1)
    assert [[*sentence["source"]] for sentence in session.record["sentences"]] == [[*"我爱大狗。"], [*"狗看海"]]
    for sentence in session.record["sentences"]:
        assert "".join(sentence["target"]) == sentence["text"].replace(" ", "")


def test_engines_that_return_no_attention_are_refused(small_run):
    with pytest.raises(UserError, match="returns no attention"):
        Translator.load(small_run, engine="ctranslate2").live()
