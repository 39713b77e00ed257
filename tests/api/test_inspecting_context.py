"""Inspection of a tiny run that has learned what the previous sentence decides."""

import json

import pytest
import torch

from tests.api.test_document_context import call
from translucid import Translator
from translucid.data.text_pipeline import EncodedPair
from translucid.data.tokenizing.pieces import SEPARATOR
from translucid.ground.errors import UserError
from translucid.inspection.explain import Case, contrast, explain
from translucid.inspection.inspected import SIDES, viewer_record, word_contributions
from translucid.inspection.words import BOUNDARY

CONTEXT = "a red one"
WORDS = ["a", "red", "one"]


@pytest.fixture(scope="module")
def translator(context_run):
    return Translator.load(context_run, "cpu", "torch")


@pytest.fixture(scope="module")
def translation(translator):
    return translator.translate("it is so", context=CONTEXT)


def test_context_words_are_part_of_what_is_inspected(translator, translation):
    (inspected,) = translation.inspect(contributions=True, with_context=True)
    words = inspected.words()
    assert words.source == [*WORDS, BOUNDARY, "it", "is", "so", "</s>"]
    assert words.weights.sum(1) == pytest.approx(torch.ones(len(words.target)), abs=1e-5)
    assert inspected.contributions.source.shape == (len(inspected.target), len(inspected.source))
    (alone,) = translation.inspected
    assert torch.equal(alone.maps["decoder.0.cross"], inspected.maps["decoder.0.cross"][..., inspected.context :])
    (forced,) = translator.inspector.inspect([("it is so", translation.text)], context=CONTEXT)
    assert forced.source == inspected.source and forced.log_probs == pytest.approx(inspected.log_probs)
    (piece,) = translation.pieces
    record = viewer_record(inspected, sides=SIDES)
    assert (record["context"], record["opening"], record["words"]) == (4, 4, [0, 1, 2, 4, 5, 6])
    assert piece.before == translator.inspector.after(CONTEXT).before


def test_erasure_finds_the_word_that_decides(translator, translation):
    (sentence,) = translation.in_context
    case = Case(translator.model, translator.pipeline, *sentence)
    explanation = explain(contrast(case, "azul", 1), "erasure")
    assert explanation.source == [*WORDS, "it", "is", "so"] and explanation.context == 3
    best = explanation.importance[0].topk(2).indices.tolist()
    assert "red" in [explanation.source[position] for position in best]
    # The reference: the source without the pieces of that word.
    separator = translator.tokenizer.source_id(SEPARATOR)
    texts = translator.tokenizer.encode_source(["a one", "it is so"])
    ids = [*texts[0], separator, *texts[1], translator.model.eos]
    (erased,) = translator.inspector.forced_decoding([EncodedPair(ids, case.target_ids)])
    keep = torch.tensor([[word != "red" for word in case.source_words]])
    assert case.log_probs(keep)[0] == pytest.approx(torch.tensor(erased.word_log_probs()[:-1]), abs=1e-4)
    assert case.attention().shape == (2, 6)


def test_lenses_and_the_beam_search_read_the_context(translator):
    for color, expected in (("red", "rojo"), ("blue", "azul")):
        context = f"a {color} one"
        (lens,) = translator.inspector.lens("it is so", context=context)
        assert lens.top[-1][1][0].strip("▁") in expected
        assert translator.inspector.decoder_lens("it is so", context=context).translations[-1] == f"es {expected}"
        tree = translator.inspector.trace("it is so", 2, context)
        best = translator.tokenizer.decode(tree.tokens(tree.best))
        assert best == f"es {expected}"


def test_the_command_shows_the_context(context_run, tmp_path, capsys):
    command = ["look", context_run, "it is so", "--context", CONTEXT, "--device", "cpu"]
    code, out, err = call(capsys, *command, "--save", tmp_path / "a.html", "--why", "erasure")
    assert code == 0, err
    assert "es rojo" in out and f"{BOUNDARY}" in out and "(context)" in out
    page = (tmp_path / "a.html").read_text()
    assert '"context": 4' in page and SEPARATOR not in page
    for name in ("a.png", "a.json"):
        assert call(capsys, *command, "--save", tmp_path / name)[0] == 0
    assert json.loads((tmp_path / "a.json").read_text())["context"] > 0
    code, out, err = call(capsys, *command, "--target", "es azul")
    assert code == 0 and BOUNDARY in out, err
    code, out, _ = call(capsys, "look", context_run, "a green one. it is so.", "--device", "cpu")
    assert code == 0 and BOUNDARY in out, "the sentence before in the same text"
    assert "“green” of a previous sentence contributes" in out


def test_explain_names_the_word_of_the_context(context_run, capsys):
    command = ["explain", context_run, "it is so", "--context", CONTEXT, "--instead-of", "azul", "--word", "1"]
    code, out, err = call(capsys, *command)
    assert code == 0 and "red (context) +" in out, err
    record = json.loads(call(capsys, *command, "--json")[1])
    assert record["context"] == 3 and record["source"][:3] == WORDS


@pytest.mark.parametrize("command", ["look", "explain"])
def test_a_run_without_context_rejects_it(small_run, capsys, command):
    code, _, err = call(capsys, command, small_run, "a", "--context", "b")
    assert code == 2 and "was trained without document context" in err


def test_heads_that_read_the_language_piece_are_listed(multilingual_run, capsys):
    command = ["look", multilingual_run, "I like it", "--source-language", "en", "--target-language", "es"]
    code, out, err = call(capsys, *command, "--language-piece")
    assert code == 0, err
    heads = [f"{name}.head.{head}" for name in ("encoder.0.self", "decoder.0.cross") for head in (0, 1)]
    assert all(head in out for head in heads) and "decoder.0.self" not in out
    code, _, err = call(capsys, *command, "--language-piece", "--lens", "logit")
    assert code == 2 and "--language-piece does not go with --lens" in err


def test_a_run_of_two_languages_rejects_the_language_piece(small_run, capsys):
    code, _, err = call(capsys, "look", small_run, "I like it", "--language-piece")
    assert code == 2 and "has no language piece" in err


def test_contributions_are_those_of_the_whole_pass(translator, translation):
    (inspected,) = translation.inspect(contributions=True, with_context=True)
    shares = word_contributions(inspected, 1)
    assert [contribution.source for contribution in shares] == [*WORDS, "it", "is", "so"]
    context = translation.contexts[0]
    ((piece, hypothesis),) = translation.parts
    pair = EncodedPair([*context, *piece.ids], hypothesis.with_end)
    (full_pass,) = translator.inspector.forced_decoding([pair], contributions=True)
    assert torch.equal(full_pass.contributions.source, inspected.contributions.source)
    with pytest.raises(UserError, match="no layer"):
        inspected.cross(layer=9)
