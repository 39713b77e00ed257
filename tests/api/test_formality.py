"""`with_formality` in Python, in jobs and in training."""

import json
from dataclasses import replace

import pytest

from bitext.pair import Pair
from tests.cli.conftest import call  # noqa: F401 - a fixture
from translucid import Translator, UserError
from translucid.ground.console import Console
from translucid.runs.configuration import resolve
from translucid.runs.corpus_files import Corpora
from translucid.training.extras.formality import Formality

TEXTS = ["Do you like sports?", "Where do you live? It rains."]
LANGUAGES = "data.source_language=en", "data.target_language=es"


@pytest.fixture(scope="module")
def translator(formality_run):
    return Translator.load(formality_run, "cpu", "torch")


def test_a_translator_reads_the_token_and_keeps_its_terms_and_interventions(translator):
    formal = translator.with_formality("formal")
    assert (translator.formality, formal.formality, formal.has_formality) == (None, "formal", True)
    assert formal.with_formality("formal") is formal
    results = {name: [t.text for t in formal.with_formality(name).translate(TEXTS)] for name in ("formal", "informal")}
    assert results["formal"] != results["informal"]  # the rows of the tokens are random
    back = formal.with_formality(None)
    assert [t.text for t in back.translate(TEXTS)] == [t.text for t in translator.translate(TEXTS)]
    inspected = formal.inspector.inspect([(TEXTS[0], "¿Te gusta?")])[0]
    assert inspected.source[0] == "<formal>" and inspected.text_words[0][0] == "Do"
    both = translator.with_terms([("sports", "deporte")], mode="constrain").with_formality("formal")
    assert "deporte" in both.translate(TEXTS[0]).text.lower() and both.formality == "formal"
    with pytest.raises(UserError, match="no formality 'polite'"):
        translator.with_formality("polite")


def test_runs_without_the_token_say_how_to_add_it(call, pivot_runs, formality_run):  # noqa: F811 - a fixture
    result = call("translate", pivot_runs / "en-fr", "--pivot", pivot_runs / "es-en", "Hola", "--formality", "formal")
    assert result.code == 2 and result.err.count("\n") == 1
    assert "trained without data.formality" in result.err and "Leave --formality out, or fine-tune it" in result.err
    assert "en-fr" in result.err
    through = call("translate", formality_run, "--pivot", pivot_runs / "es-en", "Hola", "--formality", "formal")
    assert through.code == 0, through.err


def test_multilingual_runs_have_it_for_languages_with_rules(formality_run):
    settings = resolve(assignments=["data.tokenizer.languages={es: <2es>, it: <2it>}", *LANGUAGES])
    run = Translator.load(formality_run, "cpu", "torch")
    for code, knows in (("es", True), ("it", False)):
        data = settings.data.model_copy(update={"target_language": code})
        translator = replace(run, configuration=settings.model_copy(update={"data": data}))
        assert translator.has_formality is knows
    with pytest.raises(UserError, match="has not learned the formality of it"):
        translator.with_formality("formal")


def test_jobs_do_not_use_other_matches(call, formality_run, tmp_path):  # noqa: F811 - a fixture
    memory, document = tmp_path / "memory.tsv", tmp_path / "text.po"
    memory.write_text("Where do you live?\t¿Dónde vives?\nIt rains.\tLlueve.\n", encoding="utf-8")
    lines = b"Where do you live?\nIt rains.\n"
    document.write_text('msgid ""\nmsgstr ""\n\nmsgid "Where do you live?"\nmsgstr ""\n', encoding="utf-8")
    for formality, is_used in (("formal", False), ("informal", True)):
        options = "--memory", memory, "--formality", formality
        result = call("translate", formality_run, *options, "--format", "jsonl", stdin=lines)
        origins = [json.loads(line)["origin"] for line in result.out.splitlines()]
        assert origins == ["memory" if is_used else "model", "memory"]
        out = tmp_path / f"{formality}.po"
        assert call("translate", formality_run, document, "--output", out, *options).code == 0
        assert ("¿Dónde vives?" in out.read_text(encoding="utf-8")) is is_used


@pytest.mark.parametrize(("targets", "is_enough"), [(["Vives aquí.", "Llueve."], False), (["Vives.", "Usted."], True)])
def test_a_corpus_needs_both_forms_of_address(targets, is_enough):
    configuration = resolve(assignments=["data.formality=0.5", *LANGUAGES])
    corpora = Corpora.of([Pair("a b", target) for target in targets], [])
    if is_enough:
        Formality(configuration).learn(corpora, Console(quiet=True))
        return
    with pytest.raises(UserError, match="of 2 training targets, 0 formal, 1 informal, so there is no choice to learn"):
        Formality(configuration).learn(corpora, Console(quiet=True))
