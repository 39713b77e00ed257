"""`translate` and `evaluate` with --pivot: another run or a language of a multilingual run takes the first step."""

import json

import pytest

from tests.probes.foreign import many_languages_folder
from translucid import PivotTranslator, Translator
from translucid.interop.importing import import_model

TEXTS = ["I like soccer.", "", "She works. Do you sing?"]


@pytest.fixture(scope="module")
def runs(pivot_runs):
    return pivot_runs / "en-fr", pivot_runs / "es-en"


@pytest.fixture(scope="module")
def pivot(runs):
    return PivotTranslator(Translator.load(runs[1], "cpu"), Translator.load(runs[0], "cpu"))


@pytest.fixture(scope="module")
def multilingual(tmp_path_factory):
    folder = tmp_path_factory.mktemp("many")
    many_languages_folder(folder / "theirs", codes=("en", "es", "fr"))
    import_model(folder / "theirs", folder / "many")
    return folder / "many"


def test_each_line_is_translated_by_both_runs(call, runs, pivot):
    stdin = "".join(f"{text}\n" for text in TEXTS).encode()
    result = call("translate", runs[0], "--pivot", runs[1], "--lines", "whole", stdin=stdin)
    expected = [translation.text for translation in pivot.translate(TEXTS, split=False)]
    assert result.code == 0 and result.out.splitlines() == expected
    options = ["--format", "jsonl-tokens", "--nbest", 2, "--alignments"]
    result = call("translate", runs[0], "--pivot", runs[1], *options, stdin=stdin)
    for row, translation in zip(map(json.loads, result.out.splitlines()), pivot.translate(TEXTS, nbest=2), strict=True):
        assert row["pivot"]["text"] == translation.first.text
        assert row["pivot"]["score"] == pytest.approx(translation.first.score, abs=1e-4)
        assert row["alternatives"] == translation.alternatives
        assert [tuple(link) for link in row["alignment"]] == translation.alignment
        assert row["score"] == pytest.approx(translation.score, abs=1e-4)
        total = sum(value for _, value in row["token_log_probabilities"][0])
        log_probability = sum(hypothesis.log_probability for hypothesis in translation.nbest[0].hypotheses)
        assert total == pytest.approx(log_probability, abs=1e-3)


def test_another_pivot_is_another_job(call, runs, pivot_runs, tmp_path):
    (tmp_path / "in.txt").write_text("I sing.\n")
    translate = ["translate", runs[0], "--input", tmp_path / "in.txt", "--output", tmp_path / "out.txt"]
    assert call(*translate, "--pivot", runs[1]).code == 0
    pivoted = (tmp_path / "out.txt").read_text()
    assert call(*translate, "--overwrite").code == 0
    assert (tmp_path / "out.txt").read_text() != pivoted


def test_a_multilingual_run_does_both_steps(call, multilingual):
    translator = Translator.load(multilingual, "cpu", source="es", target="fr")
    languages = ["--source-language", "es", "--target-language", "fr"]
    result = call("translate", multilingual, *languages, "--pivot", "en", TEXTS[0])
    assert result.out.rstrip("\n") == PivotTranslator.through(translator, "en").translate(TEXTS[0]).text
    result = call("translate", multilingual, *languages, "--pivot", "es", TEXTS[0])
    assert result.code == 2 and "es is the source or the target language itself" in result.err


def test_runs_of_one_pair_and_of_several(call, multilingual, runs):
    result = call("translate", multilingual, "--target-language", "fr", "--pivot", runs[1], TEXTS[0])
    english = Translator.load(runs[1], "cpu").translate(TEXTS[0]).text
    french = Translator.load(multilingual, "cpu", source="en", target="fr").translate(english, split=False).text
    assert result.out.rstrip("\n") == french
    result = call("translate", runs[0], "--pivot", multilingual, "--source-language", "es", TEXTS[0])
    english = Translator.load(multilingual, "cpu", source="es", target="en").translate(TEXTS[0]).text
    assert result.out.rstrip("\n") == Translator.load(runs[0], "cpu").translate(english, split=False).text


@pytest.mark.parametrize("pivot", ["nowhere", "xx"])
def test_a_pivot_is_a_run_or_a_language(call, runs, multilingual, pivot):
    for run in (runs[0], multilingual):
        result = call("translate", run, "--pivot", pivot, TEXTS[0])
        assert result.code == 2 and f"{pivot} is neither a run nor a language of {run}" in result.err


def test_runs_whose_languages_do_not_meet(call, runs):
    result = call("translate", runs[0], "--pivot", runs[0], TEXTS[0])
    assert result.code == 2 and "translates into fr, and" in result.err


def test_evaluation_goes_from_the_first_source_to_the_last_target(call, runs, pivot, tmp_path):
    references = [pivot.translate(text, split=False).text for text in TEXTS[::2]]
    lines = [f"{text}\t{reference}\n" for text, reference in zip(TEXTS[::2], references, strict=True)]
    (tmp_path / "test.tsv").write_text("".join(lines))
    evaluate = ["evaluate", runs[0], "--pivot", runs[1], "--lines", "whole", "--test", tmp_path / "test.tsv"]
    scores = json.loads(call(*evaluate, "--json").out)
    assert scores["chrF"]["value"] == pytest.approx(100), scores
    assert "perplexity" not in scores
    swapped = ["\t".join(line.rstrip("\n").split("\t")[::-1]) + "\n" for line in lines]
    (tmp_path / "turned.tsv").write_text("".join(swapped))
    swapped_scores = json.loads(call(*evaluate[:-1], f"{tmp_path}/turned.tsv:fr-es", "--json").out)
    assert swapped_scores["chrF"] == scores["chrF"]
    result = call(*evaluate[:-1], "sacrebleu:mtedx/test/fr-es")
    assert result.code == 2 and "mtedx/test/fr-es: has no pairs from es to fr. Give a test set of this" in result.err
    (tmp_path / "terms.tsv").write_text("a\tb\n")
    result = call(*evaluate, "--terms", tmp_path / "terms.tsv")
    assert result.code == 2 and "--terms is for one model, and --pivot takes two steps" in result.err


def test_only_translators_have_a_pivot(call, runs, language_run):
    result = call("evaluate", language_run("lm-lstm"), "--pivot", runs[1], "--test", "x.jsonl")
    assert result.code == 2 and not result.out
