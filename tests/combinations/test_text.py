"""All that feeds text to a model masks placeholders and restores them, as `translate` does."""

import json
import shutil
from dataclasses import replace

import pytest

from bitext.documents.tagged_text import Mark, Side, TaggedText
from bitext.memory.translation_memory import Recall, TranslationMemory
from bitext.pair import Pair
from tests.cli.conftest import call  # noqa: F401 - a fixture
from translucid import Translator
from translucid.api.segment_translator import SegmentTranslator
from translucid.decoding.hypothesis import Hypothesis, total_score
from translucid.engines.noisy_channel import NoisyChannel
from translucid.ground.special import SPECIAL
from translucid.inspection.explain import Case
from translucid.inspection.forced_decoding import forced_decoding

HEAD = "decoder.0.cross.head.1"
SOURCE, TARGET = "Ana likes %s and {{ a b }}.", "A Ana le gusta %s y {{ a b }}."


@pytest.fixture(scope="module")
def translator(runs):
    return Translator.load(runs / "main", "cpu", "torch")


def test_a_score_and_a_perplexity_have_no_unknown_tokens(translator):
    assert SPECIAL.unknown not in translator.inspector.score(SOURCE, TARGET).tokens
    masked = translator.inspector.score("Ana likes ⟦1⟧ and ⟦2⟧.", "A Ana le gusta ⟦1⟧ y ⟦2⟧.")
    assert translator.inspector.score(SOURCE, TARGET).log_probability == pytest.approx(masked.log_probability, abs=1e-6)
    forced, _ = translator.inspector.forced_scores([(SOURCE, TARGET)])
    assert forced.perplexity == pytest.approx(masked.perplexity, rel=1e-5)


def test_forced_decoding_reads_masks_and_links_the_words_of_the_texts(translator):
    (inspected,) = translator.inspector.inspect([(SOURCE, TARGET)])
    assert "<unk>" not in inspected.source and "<unk>" not in inspected.target
    assert [" ".join(words) for words in inspected.text_words] == [SOURCE, TARGET]


@pytest.mark.parametrize("command", ["align", "score", "look", "explain"])
def test_commands_read_placeholders(call, runs, tmp_path, command):  # noqa: F811 - a fixture
    file = tmp_path / "pairs.tsv"
    file.write_text(f"{SOURCE}\t{TARGET}\n", encoding="utf-8")
    main = runs / "main"
    arguments = {
        "align": ["--pairs", file, "--one-side"],
        "score": [file, "--tokens", "--format", "jsonl"],
        "look": [SOURCE, "--target", TARGET],
        "explain": [SOURCE, "--target", TARGET, "--json"],
    }
    result = call(command, main, *arguments[command])
    assert result.code == 0, result.err
    assert "<unk>" not in result.out and "⁇" not in result.out
    if command == "align":
        links = [tuple(map(int, link.split("-"))) for link in result.out.split()]
        assert max(t for _, t in links) == len(TARGET.split()) - 1


def test_an_explanation_has_the_words_of_the_texts(translator):
    case = Case(translator.model, translator.pipeline, SOURCE, TARGET)
    assert SPECIAL.unknown not in [*case.source_ids, *case.target_ids]
    assert "%s" in case.source_words and "{{ a b }}." in case.source_words and "%s" in case.target_words


def test_continuations_of_a_text_have_its_placeholders(runs):
    pytest.importorskip("fastapi")
    from fastapi.testclient import TestClient

    from translucid.serving.app import create_app
    from translucid.serving.catalog import load
    from translucid.serving.server_options import ServerOptions

    options = ServerOptions(hosts=("testserver",))
    with TestClient(create_app(load([str(runs / "main")], "cpu", options), options)) as client:
        request = {"q": SOURCE, "source": "en", "target": "es"}
        tokens = Translator.load(runs / "main", "cpu", "torch").tokenizer.encode_target(["A Ana ⟦1⟧"])[0]
        answers = client.post("/continue", json={**request, "prefix": tokens}).json()
        assert len(answers) > 1 and all(answer["text"].startswith("A Ana %s") for answer in answers)


def test_tags_of_a_memorys_translation_are_placed_by_what_the_model_reads(translator, tmp_path, monkeypatch):
    """The model reads the placeholder as a mask, not as unknown characters."""
    file = tmp_path / "one.tm"
    with TranslationMemory.open(file, write=True) as memory:
        memory.add([Pair(SOURCE, TARGET)], "")
    decoded = []
    module = "translucid.inspection.forced_decoding.forced_decoding"
    monkeypatch.setattr(module, lambda *args, **kwargs: decoded.extend(args[2]) or forced_decoding(*args, **kwargs))
    marks = Mark(0, "<b>", Side.opens, 0), Mark(3, "</b>", Side.closes, 0)
    with TranslationMemory.open(file) as memory:
        (target,) = SegmentTranslator(translator, recall=Recall(memory)).stream([TaggedText(SOURCE, marks)])
    assert target.origin == "memory" and target.marked.text == TARGET
    assert decoded and not any(SPECIAL.unknown in ids for pair in decoded for ids in pair.ids)


def channel(runs, translator):
    return NoisyChannel.load(runs / "reverse", translator.configuration, translator.pipeline, "cpu")


def test_another_direction_reads_placeholders_as_its_own_run_does(runs, translator):
    """p(x | y) is that run's score of the texts."""
    reverse = Translator.load(runs / "reverse", "cpu", "torch")
    ((piece,),) = translator.pipeline.pieces([SOURCE], split=False)
    (tokens,) = translator.tokenizer.encode_target(["A Ana ⟦1⟧ y ⟦2⟧"])
    hypothesis = Hypothesis(tokens, -1.0, -1.0)
    ((log_probability,),) = channel(runs, translator).reverse_log_probs([piece], [[hypothesis]])
    assert log_probability == pytest.approx(
        reverse.inspector.score("A Ana %s y {{ a b }}", SOURCE).log_probability, abs=1e-3
    )


def test_texts_that_differ_in_placeholders_alone_are_ranked_each_for_itself(runs, translator):
    texts = ["Ana likes %s.", "Ana likes {{ a b }}."]
    ranked = replace(translator, ranking=channel(runs, translator))
    batched = ranked.translate(texts, beam=4)
    assert len({translation.score for translation in batched}) == 2
    assert [translation.score for translation in batched] == pytest.approx(
        [ranked.translate(text, beam=4).score for text in texts]
    )
    assert {translation.nbest[0].unit for translation in batched} == {"noisy channel"}


def test_scores_of_different_units_are_not_added():
    hypothesis = Hypothesis([4], -1.0, -0.5)
    assert total_score([hypothesis, hypothesis]) == (-1.0, "log-probability") and total_score([])[0] == 0
    with pytest.raises(ValueError, match="expected chrF, log-probability"):
        total_score([hypothesis, hypothesis.scored(88.0, "expected chrF")])


def test_another_direction_reads_the_source_without_the_marks_of_terms(call, runs, tmp_path):  # noqa: F811
    (tmp_path / "terms.tsv").write_text("soccer\tfútbol\n", encoding="utf-8")
    text, main = "I like soccer.", shutil.copytree(runs / "main", tmp_path / "main")
    weights = ("--reverse-weight", 1, "--length-weight", 0)
    assert call("tune", "ranking", main, "--reverse", runs / "reverse", *weights).code == 0
    options = ["--rerank-with", runs / "reverse", "--terms", tmp_path / "terms.tsv", "--terms-mode", "annotate"]
    result = call("translate", main, "--engine", "torch", *options, "--format", "jsonl-tokens", text)
    row = json.loads(result.out)
    reverse = Translator.load(runs / "reverse", "cpu", "torch")
    from_source = row["score"] - reverse.inspector.score(row["translation"], text).log_probability
    constrained = Translator.load(runs / "main", "cpu", "torch").with_terms([("soccer", "fútbol")], mode="annotate")
    alone = constrained.translate(text, beam=5, nbest=5)
    known = {candidate.text: candidate.hypotheses[0].log_probability for candidate in alone.nbest}
    assert from_source == pytest.approx(known[row["translation"]], abs=1e-3)


def test_expected_chrf_is_of_what_a_reader_sees(runs, call):  # noqa: F811 - a fixture
    """Two candidates that differ only in an unused mask are one text."""
    result = call("translate", runs / "main", "--rerank-with", "mbr:4", "--nbest", 4, "--format", "jsonl", SOURCE)
    row = json.loads(result.out)
    assert "⟦" not in "".join(row["alternatives"]) and len({*row["alternatives"]}) == len(row["alternatives"])


def test_a_memory_is_asked_for_the_text_and_not_for_the_marks_of_its_terms(runs, files, tmp_path, monkeypatch, call):  # noqa: F811
    queries = []
    matches = TranslationMemory.matches
    monkeypatch.setattr(
        TranslationMemory,
        "matches",
        lambda memory, text, *args, **kwargs: queries.append(text) or matches(memory, text, *args, **kwargs),
    )
    options = ["--memory", files / "memory.tsv", "--terms", files / "terms.tsv", "I like soccer."]
    assert call("translate", runs / "main", *options).code == 0
    assert queries and {*queries} == {"I like soccer."}


@pytest.mark.parametrize("mode", ["annotate", "constrain"])
@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_the_first_of_several_is_the_one_that_comes_alone(runs, engine, mode):
    constrained = Translator.load(runs / "main", "cpu", engine).with_terms([("soccer", "fútbol")], mode=mode)
    for text in ("I like soccer.", "soccer", "We like the beach and soccer."):
        alone, several = constrained.translate(text, beam=4), constrained.translate(text, beam=4, nbest=4)
        assert several.alternatives[0] == alone.text
        scores = [candidate.score for candidate in several.nbest]
        assert scores == sorted(scores, reverse=True) and len({*several.alternatives}) == len(scores)


def test_heads_stay_off_with_another_adapter(runs, translator):
    combined = translator.ablated(HEAD).with_adapter("mine")
    other_order = translator.with_adapter("mine").ablated(HEAD)
    score = combined.translate("I like soccer.").score
    assert score == other_order.translate("I like soccer.").score
    assert score != pytest.approx(translator.with_adapter("mine").translate("I like soccer.").score, abs=1e-5)
    # This adapter is too weak to change a score.
    assert combined.loaded.adapter and combined.loaded.interventions
    heads_only = combined.with_adapter(None).translate("I like soccer.")
    assert heads_only.score == translator.ablated(HEAD).translate("I like soccer.").score


def test_what_can_not_be_combined_is_named(call, runs, files):  # noqa: F811 - a fixture
    main = runs / "main"
    terms = ["--terms", files / "terms.tsv", "--terms-mode", "constrain"]
    for options, names in (
        (["--top-p", 0.5, *terms], ("sampling", "--terms")),
        (["--engine", "ctranslate2", "--ensemble", runs / "other"], ("--engine", "--ensemble")),
        (["--beam", 1, "--rerank-with", runs / "reverse"], ("--beam", "--rerank-with")),
        (["--adapter", "mine", "--ensemble", runs / "other"], ("--adapter", "--ensemble")),
        (["--ablate", HEAD, "--ensemble", runs / "other"], ("--ablate", "--ensemble")),
        (["--ablate", HEAD, "--engine", "ctranslate2"], ("--ablate", "--engine ctranslate2")),
        (["--ablate", "decoder.0.cross.head.7"], ("decoder.0.cross.head.7", "Did you mean")),
        (["--temperature", 1, "--rerank-with", runs / "reverse"], ("--temperature", "--rerank-with")),
        (["--lines", "wrapped", "--nbest", 2], ("--lines wrapped", "--nbest")),
        (["--lines", "wrapped", "--alignments"], ("--lines wrapped", "--alignments")),
    ):
        result = call("translate", main, *options, "I like soccer.")
        assert result.code == 2 and not result.out, options
        assert all(name in result.err.splitlines()[-1] for name in names), result.err
