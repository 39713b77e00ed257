"""Confidence estimation: `tune confidence`, and what is reported with each translation."""

import json
import math
import re
import shutil

import pytest

from bitext.documents.tagged_text import TaggedText
from translucid import Translator
from translucid.api.loaded_run import LoadedRun
from translucid.api.segment_translator import SegmentTranslator
from translucid.corpora.phrasebook import generate

TEXTS = ["I like soccer.", "I like soccer. She works at the hospital.", "", "https://example.com"]


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """A file of 200 sentence pairs."""
    file = tmp_path_factory.mktemp("pairs") / "pairs.tsv"
    lines = [f"{p.source}\t{p.target}\n" for p in generate(200, split="test", max_words=8)]
    file.write_text("".join(lines), encoding="utf-8")
    return file


@pytest.fixture(autouse=True)
def _quality(monkeypatch):
    """Let the length of the reference decide the quality, as all translations of the untrained model are bad."""
    chrf = "translucid.api.fitting.confidence_fitting.sentence_chrf"
    monkeypatch.setattr(chrf, lambda texts, references: [10.0 * (len(text) % 10) for text in references])


@pytest.fixture(scope="module")
def fits():
    """The fitted runs and what `tune` printed, by its options."""
    return {}


@pytest.fixture
def fitted(small_run, pairs, tmp_path, call, fits, tmp_path_factory):
    """Fit a run's confidence: fitted("--features", "tokens") returns the run and the result of `tune`.

    A run that was fitted with the same options before is copied; a run that the test already has is fitted again.
    """

    def fit(*options):
        run = tmp_path / "run"
        exists = run.exists()
        if options in fits and not exists:
            fitted_run, result = fits[options]
            return shutil.copytree(fitted_run, run), result
        if not exists:
            shutil.copytree(small_run, run)
        result = call("tune", "confidence", run, "--valid", pairs, *options)
        assert result.code == 0, result.err
        if not exists:
            fits[options] = shutil.copytree(run, tmp_path_factory.mktemp("fitted") / "run"), result
        return run, result

    return fit


def rows(result):
    assert result.code == 0, result.err
    return [json.loads(line) for line in result.out.splitlines()]


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
@pytest.mark.parametrize("kind", ["search", "tokens", "attention"])
def test_confidence_is_reported_for_each_kind_of_features(fitted, call, kind, engine):
    run, result = fitted("--features", kind)
    assert kind in result.out and "← chosen" in result.out
    records = rows(call("translate", run, "--format", "jsonl", "--engine", engine, *TEXTS))
    first, two_sentences, empty, address = (row["confidence"] for row in records)
    assert 0 < first < 1 and empty is None and address is None
    # The lowest confidence of several sentences counts.
    second = rows(call("translate", run, "--format", "jsonl", "--engine", engine, "She works at the hospital."))
    assert two_sentences == pytest.approx(min(first, second[0]["confidence"]), abs=2e-4)


def test_both_engines_and_all_ways_to_ask_say_the_same(fitted):
    run, _ = fitted("--features", "tokens")
    torch_translator, ctranslate2_translator = (
        Translator.load(run, "cpu", engine) for engine in ("torch", "ctranslate2")
    )
    for text in TEXTS[:2]:
        first, second = torch_translator.translate(text), ctranslate2_translator.translate(text)
        assert first.text == second.text
        assert first.confidence == pytest.approx(second.confidence, abs=1e-3)
        assert [word for word, _ in first.word_probabilities] == [word for word, _ in second.word_probabilities]
        assert dict(first.word_probabilities) == pytest.approx(dict(second.word_probabilities), abs=1e-3)
    translations = torch_translator.translate(TEXTS)
    assert torch_translator.quality.confidences(translations) == [
        pytest.approx(translation.confidence, abs=1e-5) for translation in translations
    ]
    (segment,) = SegmentTranslator(torch_translator).stream([TaggedText(TEXTS[0])])
    assert segment.confidence == pytest.approx(translations[0].confidence, abs=1e-5)


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_a_word_has_the_product_of_its_pieces(small_run, pairs, engine):
    translator = Translator.load(small_run, "cpu", engine)
    sources = [line.split("\t")[0] for line in pairs.read_text().splitlines()[:40]]
    translations = translator.translate([*sources, f"{sources[0]} https://example.com"])
    compared = 0
    for translation in translations:
        *tokens, _ = translation.token_log_probabilities[0]
        if len(translation.parts) == 1 and len(translation.pieces) == 1:
            compared += 1
            words = [[value for _, value in tokens[:1]]]
            for piece, value in tokens[1:]:
                words += [[]] * piece.startswith("▁")
                words[-1] = [*words[-1], value]
            assert [word for word, _ in translation.word_probabilities] == translation.text.split()
            expected = [math.exp(sum(values)) for values in words]
            assert [p for _, p in translation.word_probabilities] == pytest.approx(expected, rel=1e-2)
    assert compared
    assert max(len(translation.word_probabilities) for translation in translations) > 3
    assert translator.translate("https://example.com").word_probabilities == [("https://example.com", 1.0)]


def test_words_go_with_token_scores(fitted, call):
    run, _ = fitted("--features", "search")
    records = rows(call("translate", run, "--format", "jsonl-tokens", *TEXTS))
    for record in records:
        assert [word for word, _ in record["word_probabilities"]] == record["translation"].split()
        assert all(0 <= p <= 1 for _, p in record["word_probabilities"])


def test_without_an_estimator_no_confidence_is_reported(small_run, call):
    (row,) = rows(call("translate", small_run, "--format", "jsonl", "I like soccer."))
    assert "confidence" not in row and "word_probabilities" not in row
    assert Translator.load(small_run, "cpu").translate("I like soccer.").confidence is None


def test_dropout_features_do_not_depend_on_calls_or_batches(fitted):
    run, result = fitted("--features", "dropout", "--dropout-passes", 2)
    assert "dropout" in result.out
    translator = Translator.load(run, "cpu")
    assert translator.quality.estimator.passes == 2
    alone = translator.translate("I like soccer.").confidence
    beside_another = translator.translate(["She works.", "I like soccer."])[1].confidence
    assert alone == pytest.approx(beside_another, rel=1e-6)  # another seed changes it by 2e-4
    assert not translator.model.training


def test_an_estimator_of_another_model_is_reported_and_ignored(fitted, small_run, train, tmp_path, call):
    run, _ = fitted("--features", "search")
    other = tmp_path / "other"
    train(other, "training.max_steps=8")
    shutil.copy(run / "confidence.json", other)
    result = call("translate", other, "--format", "jsonl", "I like soccer.")
    assert "confidence" not in rows(result)[0]
    assert "another model" in result.err and len(result.err.splitlines()) <= 2
    record = json.loads((run / "confidence.json").read_text())
    (run / "confidence.json").write_text(json.dumps({**record, "languages": ["en", "fr"]}))
    assert "translations from en to fr" in Translator.load(run, "cpu").quality.estimator_note


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[: len(text) // 2],
        lambda text: text.replace('"mean": {', '"median": {', 1),
        lambda text: text.replace('"kind": "search"', '"kind": "tokens"'),
        lambda text: text.replace('"offset": ', '"offset": NaN, "x": ', 1),
        lambda text: text.replace('"offset": ', '"offset": 1e300, "slope": 1, "x": ', 1),
        lambda text: re.sub('"deviation": [^,]*', '"deviation": 0', text, count=1),
    ],
)
def test_a_damaged_file_is_one_line(fitted, call, damage):
    run, _ = fitted("--features", "search")
    file = run / "confidence.json"
    file.write_text(damage(file.read_text()))
    result = call("translate", run, "--format", "jsonl", "I like soccer.")
    assert result.code == 2
    assert "confidence.json: can't be read" in result.err and "tune confidence again" in result.err
    assert call("translate", run, "I like soccer.").code == 0


def test_an_ensemble_does_not_use_the_estimator_of_its_first_run(fitted):
    run, _ = fitted("--features", "search")
    assert Translator.load(run, "cpu", "torch").quality.estimator
    assert Translator.load(run, "cpu", "torch", others=[run]).quality.estimator is None


def test_a_diagram_is_drawn_and_not_overwritten(fitted, pairs, tmp_path, call):
    file = tmp_path / "reliability.svg"
    run, result = fitted("--diagram", file)
    assert f"saved: {file}" in result.out and b"<svg" in file.read_bytes()
    failure = call("tune", "confidence", run, "--valid", pairs, "--diagram", file)
    assert failure.code == 2 and "--overwrite" in failure.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--features", "dropout"], "go together"),
        (["--sentences", "30"], "too few to tell good from bad"),
        (["--threshold", "100"], "too few to tell good from bad"),
        (["--diagram", "x.txt"], "x.txt"),
    ],
)
def test_invalid_options_are_one_line(small_run, pairs, call, options, message):
    result = call("tune", "confidence", small_run, "--valid", pairs, *options)
    assert result.code == 2 and message in result.err and len(result.err.splitlines()) == 1
    assert not (small_run / "confidence.json").exists()


def test_a_new_model_forgets_what_was_fitted_to_the_old_one(fitted):
    run, _ = fitted("--features", "search")
    translator = Translator.load(run, "cpu")
    translator.loaded.folder.save_model(translator.model, translator.tokenizer, {})
    assert not (run / "confidence.json").exists()


def test_other_features_say_something_else(fitted):
    run, _ = fitted("--features", "search")
    before = Translator.load(run, "cpu").translate("She works at the hospital.").confidence
    fitted("--features", "tokens")
    assert before != Translator.load(run, "cpu").translate("She works at the hospital.").confidence


def test_warnings_are_the_same_whether_the_attention_was_read_or_not(fitted, monkeypatch):
    run, _ = fitted()
    translator = Translator.load(run, "cpu")
    limits = translator.quality.estimator.detached
    assert limits and not any("detached" in w for w in translator.translate("She works at the hospital.").warnings)
    low = translator.quality.estimator.model_copy(update={"detached": limits.model_copy(update={"limit": -9.0})})
    monkeypatch.setattr(LoadedRun, "confidence", lambda self, languages: (low, ""))
    unread, read = (translator.translate("She works at the hospital.") for _ in range(2))
    assert read.alignment and read.warnings == unread.warnings
    assert not any("detached" in warning for warning in read.warnings)
    for translation in (read, unread):
        assert [warning.partition(":")[0] for warning in translation.attention_warnings] == ["detached attention"]
