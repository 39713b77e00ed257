"""Runs with data.placeholders: what they learn from, translate, and pass to later runs."""

import re
import shutil
from collections import defaultdict
from types import SimpleNamespace

import pytest

from bitext.documents.tagged_text import Mark, Side, TaggedText
from bitext.pair import Pair
from bitext.protected_spans import PLACEHOLDERS, PlaceholderSyntax
from tests.training.test_resume import assert_same_run
from translucid import Translator, UserError
from translucid.api.segment_translator import SegmentTranslator
from translucid.data.placeholders import masked_pairs
from translucid.decoding.decoding_options import DecodingOptions
from translucid.engines.tuning import find_fastest
from translucid.ground.console import Console
from translucid.runs.configuration import resolve
from translucid.runs.corpus_files import Corpora
from translucid.runs.initialization import settings_from
from translucid.runs.run_folder import RunFolder
from translucid.training.text import TextDataset

TEXTS = ["Ana likes %s.", "I see {{ a b }} and <b>books</b> 👋. Do you like a@b.org?", "plain", "%s", ""]


@pytest.fixture(scope="module")
def run(train, tmp_path_factory):
    """A barely trained model whose vocabulary has the pieces."""
    folder = tmp_path_factory.mktemp("runs") / "placeholders"
    train(folder, "data.placeholders=0.5", "training.max_steps=30")
    return folder


def test_the_configuration_and_the_tokenizer_record_placeholders(run):
    folder = RunFolder(run)
    assert folder.configuration().data.placeholders == 0.5
    assert folder.tokenizer().has_placeholders
    assert not {*PLACEHOLDERS} & {*RunFolder(run).tokenizer().source_segmenter.ranks()}


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_the_model_reads_pieces_that_outputs_never_show(run, engine):
    translator = Translator.load(run, device="cpu", engine=engine)
    translations = translator.translate(TEXTS, beam=2)
    source_text = " ".join(
        piece
        for translation in translations
        for part in translation.pieces
        for piece in translator.tokenizer.source_pieces(part.ids)
    )
    assert (
        {*re.findall(r"⟦\d+⟧", source_text)} == {"⟦1⟧", "⟦2⟧", "⟦3⟧", "⟦4⟧"}
        and "%" not in source_text
        and "@" not in source_text
    )
    assert not any("⟦" in translation.text for translation in translations)
    assert [translation.text for translation in translations] == [
        translator.translate(text, beam=2).text for text in TEXTS
    ]
    assert translations[3].text == "%s"


def test_both_engines_find_the_same(run):
    def texts(engine):
        translations = Translator.load(run, device="cpu", engine=engine).translate(TEXTS, beam=1)
        return [translation.text for translation in translations]

    assert texts("torch") == texts("ctranslate2")


def test_links_are_between_the_words_of_the_texts(run, monkeypatch):
    translator = Translator.load(run, device="cpu", engine="torch")
    (ids,) = translator.tokenizer.encode_target(["Veo ⟦1⟧ y"])
    decode = translator.engine.decode

    def decode_fixed(request):
        return [[hypotheses[0].__class__(**{**vars(hypotheses[0]), "tokens": ids})] for hypotheses in decode(request)]

    monkeypatch.setattr(translator.engine, "decode", decode_fixed)
    translation = translator.translate("I see {{ a b }} too.")
    assert translation.text == "Veo {{ a b }} y"
    assert [word for word, _ in translator.quality.word_probabilities([translation])[0]] == translation.text.split()
    sources, targets = {s for s, _ in translation.alignment}, {t for _, t in translation.alignment}
    assert max(sources) <= 6 and max(targets) == 5
    assert sum(weight for _, target, weight in translation.word_weights if target == 5) == pytest.approx(1, abs=0.1)
    sources_of_word = defaultdict(set)
    for source, target, _ in translation.word_weights:
        sources_of_word[target].add(source)
    # Words 1 to 4 are the parts of the placeholder.
    assert sources_of_word[1] == sources_of_word[2] == sources_of_word[3] == sources_of_word[4]


def test_no_mark_or_placeholder_is_lost_by_a_model_that_knows_nothing(run):
    texts = ["I see %s and {n} 👋.", "Ana likes 25 &nbsp; books", "_File"]
    marks = Mark(2, "<b>", Side.opens, 0), Mark(5, "<br/>"), Mark(5, "</b>", Side.closes, 0)
    segments = list(
        SegmentTranslator(Translator.load(run, device="cpu")).stream(TaggedText(text, marks) for text in texts)
    )
    for target, parts in zip(segments, [["%s", "{n}", "👋"], ["25", "&nbsp;"], ["_"]], strict=True):
        assert all(target.marked.full_text.count(part) == 1 for part in [*parts, "<b>", "<br/>", "</b>"])
        assert "⟦" not in target.marked.full_text


def test_patterns_of_a_user_are_kept_like_placeholders(run, tmp_path):
    """By texts with pieces, by segments of documents, and by the checks; those that could hang are refused."""
    copy = tmp_path / "run"
    shutil.copytree(run, copy)
    configuration = copy / "config.yaml"
    text = configuration.read_text(encoding="utf-8")
    assert "  protected: []\n" in text
    configuration.write_text(text.replace("  protected: []\n", "  protected: ['ACME-[A-Z]+']\n"), encoding="utf-8")
    translator = Translator.load(copy, device="cpu")
    (piece,) = translator.pipeline.pieces(["I like ACME-XY."], split=True)[0]
    assert piece.masked.parts == {"⟦1⟧": "ACME-XY"}
    assert translator.translate("ACME-XY").text == "ACME-XY"
    (target,) = SegmentTranslator(translator).stream([TaggedText("I like ACME-XY.")])
    assert target.marked.text.count("ACME-XY") == 1
    assert translator.quality.checks.protected == ("ACME-[A-Z]+",)
    pairs = [Pair("Buy ACME-X", "Compra ACME-X")]
    assert "⟦" in next(iter(masked_pairs(pairs, 0, 1, ["ACME-[A-Z]+"]))).source
    with pytest.raises(UserError, match="could take very long"):
        resolve(assignments=['data.protected=["(a+)+b"]'])


def test_what_touches_letters_tags_or_others_comes_through_any_run(run):
    texts = ["I see %1$s%2$s.", "Ana likes {a}{b} books", "{{a}}Ana{{/a}} sees {n}cats", "Ana has 10kg", "%sand Ana"]
    marks = Mark(2, "<b>", Side.opens, 0), Mark(5, "</b>", Side.closes, 0)
    sources = [TaggedText(text, marks, PlaceholderSyntax.message) for text in texts]
    segments = list(SegmentTranslator(Translator.load(run, device="cpu")).stream(sources))
    parts = [["%1$s", "%2$s"], ["{a}", "{b}"], ["{{a}}", "{{/a}}", "{n}"], ["10"], ["%s"]]
    for target, expected in zip(segments, parts, strict=True):
        assert all(target.marked.text.count(part) == 1 for part in expected)
        assert not any(doubt.startswith(("lost", "invented")) for doubt in target.doubts)


def test_doubts_name_the_placeholders_and_not_their_pieces(run, monkeypatch):
    translator = Translator.load(run, device="cpu", engine="torch")
    decode = translator.engine.decode

    def decode_fixed(request):
        """Return a translation with a number of its own."""
        (ids,) = translator.tokenizer.encode_target(["Tom y 47"])
        return [[hypotheses[0].__class__(**{**vars(hypotheses[0]), "tokens": ids})] for hypotheses in decode(request)]

    monkeypatch.setattr(translator.engine, "decode", decode_fixed)
    (target,) = SegmentTranslator(translator).stream([TaggedText("Ana has 10kg of {a}{b}")])
    assert target.marked.text.count("{a}{b}") == 1 and "10kg" in target.marked.text
    assert not any("47" in doubt and "10" not in doubt for doubt in target.doubts)


def test_alternatives_have_the_placeholders(run):
    options = DecodingOptions(beam=4, nbest=4)
    sources = [TaggedText("I see %s{n}."), TaggedText("I see.")]
    first, second = SegmentTranslator(Translator.load(run, device="cpu"), options).stream(sources)
    assert second.alternatives
    assert all(version.full_text.count("%s{n}") == 1 for version in (first.marked, *first.alternatives))


def test_placeholders_placed_by_their_neighbors_are_reported(run, monkeypatch):
    translator = Translator.load(run, device="cpu", engine="torch")
    decode = translator.engine.decode

    def decode_fixed(request):
        """Return translations without any placeholder."""
        (ids,) = translator.tokenizer.encode_target(["Veo y"])
        return [[hypotheses[0].__class__(**{**vars(hypotheses[0]), "tokens": ids})] for hypotheses in decode(request)]

    monkeypatch.setattr(translator.engine, "decode", decode_fixed)
    lost, plain = SegmentTranslator(translator).stream([TaggedText("I see %s and {n}."), TaggedText("I see.")])
    assert "placed: %s {n}" in lost.doubts and sorted(lost.marked.text.split()) == ["%s", "Veo", "y", "{n}"]
    assert not any(doubt.startswith("placed") for doubt in plain.doubts)


def test_tuned_candidates_include_the_pieces(run, corpus, monkeypatch):
    """Choose a configuration with a list of candidates, whichever is the fastest on this machine."""

    def with_candidates(results, allowed):
        return next(trial for trial in results if trial.tuned.considered == "seen pieces")

    monkeypatch.setattr("translucid.engines.tuning.fastest", with_candidates)
    find_fastest(
        run,
        train=[str(corpus / "train.tsv")],
        valid=[str(corpus / "test.tsv")],
        sentences=4,
        console=Console(quiet=True),
    )
    candidates = (run / "shortlist.tsv").read_text(encoding="utf-8").split()
    assert {*PLACEHOLDERS, "▁"} <= {*candidates}


def test_a_fine_tuned_run_keeps_placeholders(run, train, tmp_path):
    assert settings_from(run, None)["data"]["placeholders"] == 0.5
    train(tmp_path / "other", "training.max_steps=2", f"training.begin_from={run}", "data.placeholders=0.5")


def test_validation_reads_the_pieces(run):
    folder, pair = RunFolder(run), Pair("Open {x} now", "Abra {x} ya")
    start = SimpleNamespace(tokenizer=folder.tokenizer(), console=Console(quiet=True))
    dataset = TextDataset(folder.configuration(), Corpora([[pair]], [pair], ""))
    batch = dataset._validator([pair], start, (None, None)).corpus.batch([0])
    assert {*PLACEHOLDERS} & {*start.tokenizer.source_pieces(batch.source[0].tolist())}


def test_training_with_placeholders_differs_and_resumes_exactly(run, train, tmp_path):
    settings = ["data.placeholders=0.5", "data.subword_dropout=0"]
    train(tmp_path / "a", *settings, "training.max_steps=7")
    train(tmp_path / "a", *settings, "training.max_steps=14", resume=True)
    train(tmp_path / "b", *settings, "training.max_steps=14")
    train(tmp_path / "c", "data.placeholders=0.01", "data.subword_dropout=0", "training.max_steps=14")
    assert_same_run(tmp_path / "a", tmp_path / "b")
    with pytest.raises(AssertionError):
        assert_same_run(tmp_path / "b", tmp_path / "c")


def test_language_models_refuse_placeholders():
    with pytest.raises(UserError, match=r"data\.placeholders is for sentence pairs"):
        resolve(preset="lm-lstm", assignments=["data.placeholders=0.1"])
