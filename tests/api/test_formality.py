"""`with_formality` in Python, in jobs and in training."""

import json
from dataclasses import replace

import pytest

from bitext.pair import Pair
from tests.cli.conftest import call  # noqa: F401 - a fixture
from translucid import Translator, UserError
from translucid.data.formality import FORMALITIES
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


@pytest.mark.parametrize("engine", ["ctranslate2", "onnx"])
def test_all_engines_and_imported_exports_read_the_token(
    call,  # noqa: F811 - a fixture
    translator,
    formality_run,
    tmp_path,
    monkeypatch,
    engine,
):
    options = translator.configuration.decoding_with({"beam": 1})
    loaded = [translator, Translator.load(formality_run, "cpu", engine)]
    if engine == "ctranslate2":
        exported, run = tmp_path / "exported", tmp_path / "run"
        assert call("export", formality_run, exported).code == 0
        languages = "--source-language", "en", "--target-language", "es"
        assert call("import", exported, run, *languages).code == 0
        loaded.append(Translator.load(run, "cpu", "torch"))
    texts = []
    for choosing in loaded:
        texts.append([choosing.with_formality(form).translate(TEXTS[0], options).text for form in FORMALITIES])
    assert all(forms == texts[0] for forms in texts)
    # If the rules refuse that text, every engine finds another one, whatever else is in the batch.
    monkeypatch.setattr("translucid.api.translator.address_loss", lambda *arguments: 2 * (arguments[-1] == texts[0][0]))
    others = set()
    for choosing in loaded:
        formal = choosing.with_formality("formal")
        others.add(formal.translate(TEXTS[0], options).text)
        others.add(formal.translate([TEXTS[1], TEXTS[0]], options)[1].text)
    assert len(others) == 1 and texts[0][0] not in others


def test_a_translation_with_the_other_form_of_address_has_a_warning(translator):
    warnings = {}
    for form in (None, "formal", "informal"):
        forced = translator.with_formality(form).with_terms([("sports", "vives")], mode="constrain")
        translation = forced.translate("It rains. Do you like sports?")
        assert "vives" in translation.text
        warnings[form] = [warning for warning in translation.warnings if warning.startswith("form of address")]
    assert warnings == {None: [], "formal": ["form of address: informal, not formal"], "informal": []}


def test_live_translation_warns_when_a_sentence_has_ended(translator, monkeypatch):
    monkeypatch.setattr("translucid.live.session.formality_warnings", lambda *arguments: [arguments])
    session = translator.with_formality("formal").live("whole")
    session.read("Do you like sports? It rains")
    (first,) = session.messages
    session.finish()
    (_, second) = session.messages
    texts = [sentence.text for sentence in session.sentences]
    assert first == ("formal", ("en", "es"), TEXTS[0], texts[0]) and second[2:] == ("It rains", texts[1])


def test_other_commands_take_it(call, formality_run, tmp_path):  # noqa: F811 - a fixture
    pairs, said = tmp_path / "pairs.tsv", {}
    pairs.write_text(f"{TEXTS[0]}\tTe gusta.\n", encoding="utf-8")
    for form in ("formal", "informal"):
        choice, file = ("--formality", form), tmp_path / f"{form}.txt"
        result = call("evaluate", formality_run, "--test", pairs, *choice, "--hypotheses", file, "--no-perplexity")
        assert result.code == 0, result.err
        compared = call("compare", formality_run, file, "--test", pairs, *choice, "--no-significance", "--json")
        assert json.loads(compared.out)["equal"] == 1
        score = call("score", formality_run, pairs, *choice)
        live = call("live", formality_run, *choice, stdin=TEXTS[0].encode())
        look = call("look", formality_run, TEXTS[0], *choice)
        assert (score.code, live.code, look.code) == (0, 0, 0), score.err + live.err + look.err
        said[form] = file.read_text(encoding="utf-8"), score.out, live.out, look.out
    for formal, informal in zip(*said.values(), strict=True):
        assert formal != informal
    expected = Translator.load(formality_run, "cpu").with_formality("formal").translate(TEXTS[0])
    assert said["formal"][0] == f"{expected.text}\n"


@pytest.mark.parametrize(("targets", "is_enough"), [(["Vives aquí.", "Llueve."], False), (["Vives.", "Usted."], True)])
def test_a_corpus_needs_both_forms_of_address(targets, is_enough):
    configuration = resolve(assignments=["data.formality=0.5", *LANGUAGES])
    corpora = Corpora.of([Pair("a b", target) for target in targets], [])
    if is_enough:
        Formality(configuration).learn(corpora, Console(quiet=True))
        return
    with pytest.raises(UserError, match="of 2 training targets, 0 formal, 1 informal, so there is no choice to learn"):
        Formality(configuration).learn(corpora, Console(quiet=True))
