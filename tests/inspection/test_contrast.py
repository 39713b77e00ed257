"""Contrastive explanations, for a model with known log-odds and for a small random Transformer."""

import pytest
import torch

from bitext.pair import Pair
from translucid.data.text_pipeline import TextPipeline
from translucid.data.tokenizing.tokenizer import Tokenizer, TokenizerOptions
from translucid.ground.errors import UserError
from translucid.inspection.explain import Case, contrast, explain, faithfulness, integrated_gradients
from translucid.models.build import build_model
from translucid.runs.configuration import resolve

from .test_explain import case as counter  # noqa: F401

SOURCE, TARGET = "the old man sees the sea", "el viejo mira el mar"
OTHER = "vieja"


@pytest.fixture(scope="module")
def case():
    """Return the case of a translation by a small random Transformer, whose words have several pieces."""
    pairs = [Pair(SOURCE, TARGET), Pair("the old woman looks", "la vieja ve")] * 10
    tokenizer = Tokenizer.learn(pairs, TokenizerOptions(vocabulary=40), seed=1)
    shape = ["model.width=16", "model.heads=2", "model.feed_forward=16", "model.encoder_layers=1"]
    settings = resolve(assignments=[*shape, "model.decoder_layers=1"])
    torch.manual_seed(1)
    model = build_model(settings.model, tokenizer.source_size, tokenizer.target_size).eval()
    for name, weight in model.named_parameters():
        if name.startswith("output"):
            weight.data *= 4  # makes the predictions less uniform
    return Case(model, TextPipeline(tokenizer, 99), SOURCE, TARGET)


def log_prob(case, source, prefix, word):
    """Return the summed log-probability of a word's pieces after a prefix, from single decoder steps."""
    state = case.model.start(case.model.encode(torch.tensor([source])))
    total = 0.0
    targets = [*prefix, *word]
    for i, (previous, token) in enumerate(zip([case.model.bos, *targets[:-1]], targets, strict=True)):
        logits, state = case.model.step(torch.tensor([previous]), state)
        if i >= len(prefix):
            total += logits[0].double().log_softmax(-1)[token].item()
    return total


def contrasted_ids(case, word):
    """Return the prefix of a target word, its ids and the ids of the other word."""
    start, end = case.target_spans[word]
    (other_ids,) = case.tokenizer.encode_target([OTHER])
    assert len(other_ids) > 1
    return case.target_ids[:start], case.target_ids[start:end], other_ids


def source_ids_without(case, word):
    """Return the ids of the source without a word."""
    start, end = case.source_spans[word]
    return case.source_ids[:start] + case.source_ids[end:]


def test_sources_that_both_words_need_cancel(counter):  # noqa: F811
    """Each occurrence in the source adds 8 to a word's logit, so the log-odds of two source words are 0."""
    contrasted = contrast(counter, "dos", 0)
    assert (contrasted.label, contrasted.log_odds) == ("tres instead of dos", pytest.approx(0, abs=1e-5))
    for method in ("erasure", "gradients"):
        explanation = explain(contrasted, method)
        assert explanation.source == ["uno", "dos", "tres", "cuatro"]
        torch.testing.assert_close(explanation.importance, torch.tensor([[0.0, -8, 8, 0]]), rtol=0, atol=1e-3)
    assert faithfulness(contrasted, explain(contrasted, "erasure")) == pytest.approx((8, -8), abs=1e-4)
    without_dos = torch.tensor([[True, False, True, True]])
    torch.testing.assert_close(contrasted.probabilities(without_dos), torch.tensor([[8.0]]).sigmoid())
    importance = explain(contrasted, "lime").importance[0]
    assert importance[2] > 0.2 > -0.2 > importance[1]


def test_erasure_is_the_difference_of_two_erasures(case):
    prefix, word, other_ids = contrasted_ids(case, 1)
    expected = []
    for i in range(len(case.source_words)):
        full = [log_prob(case, case.source_ids, prefix, ids) for ids in (word, other_ids)]
        erased = [log_prob(case, source_ids_without(case, i), prefix, ids) for ids in (word, other_ids)]
        expected.append((full[0] - erased[0]) - (full[1] - erased[1]))
    importance = explain(contrast(case, OTHER, 1), "erasure").importance
    assert importance.abs().max() > 0.01
    torch.testing.assert_close(importance, torch.tensor([expected]), rtol=0, atol=1e-4)


def test_the_gradient_is_the_difference_of_two_gradients_and_that_of_finite_differences(case):
    contrasted = contrast(case, OTHER, 1)
    _, source = case.interpolation_path()
    span = contrasted.target_spans[0]
    gradients = []
    for explained, bounds in (
        (contrasted, span),
        (contrasted.case, span),
        (contrasted.other, contrasted.other.target_spans[0]),
    ):
        embedded = source.clone().requires_grad_()
        explained.embedded_log_probs(embedded, *bounds).sum().backward()
        gradients.append(embedded.grad)
    assert gradients[0].abs().max() > 0.01
    torch.testing.assert_close(gradients[0], gradients[1] - gradients[2], rtol=0, atol=1e-5)
    step = 0.01
    offset = torch.zeros_like(source)
    offset[0, 2, 3] = step
    with torch.no_grad():
        above = contrasted.embedded_log_probs(source + offset, *span)
        rise = above - contrasted.embedded_log_probs(source - offset, *span)
    assert gradients[0][0, 2, 3].item() == pytest.approx(rise.item() / (2 * step), abs=1e-3)


def test_integrated_gradients_are_a_difference_too_and_add_up(case):
    pytest.importorskip("captum")
    contrasted = contrast(case, OTHER, 1)
    importance = integrated_gradients(contrasted)
    difference = integrated_gradients(contrasted.case) - integrated_gradients(contrasted.other)
    torch.testing.assert_close(importance, difference, rtol=0, atol=1e-4)


def test_by_default_the_place_is_where_the_model_came_closest_to_the_other_word(case):
    log_odds = []
    for word in range(len(case.target_words)):
        prefix, word_ids, other_ids = contrasted_ids(case, word)
        log_odds.append(
            log_prob(case, case.source_ids, prefix, word_ids) - log_prob(case, case.source_ids, prefix, other_ids)
        )
    contrasted = contrast(case, OTHER)
    assert contrasted.word == min(range(len(log_odds)), key=log_odds.__getitem__)
    assert contrasted.log_odds == pytest.approx(min(log_odds), abs=1e-4)
    assert contrasted.to_json() == {
        "word": contrasted.word,
        "instead_of": OTHER,
        "log_odds": round(contrasted.log_odds, 4),
    }


@pytest.mark.parametrize(
    ("other", "word", "message"),
    [
        ("viejo", 1, "'viejo' is the word itself"),
        (" ", 1, "no word to contrast with"),
        ("ж", 1, "does not know all characters of 'ж'"),
        (OTHER, 5, "no word 5: Choose one of 0 to 4"),
        (OTHER, -1, "no word -1"),
    ],
)
def test_invalid_contrasts_are_refused_in_one_line(case, other, word, message):
    with pytest.raises(UserError) as error:
        contrast(case, other, word)
    assert message.split(":")[0] in str(error.value) and "\n" not in str(error.value)


def test_attention_explains_no_contrast(case):
    with pytest.raises(UserError, match="can't tell two words apart"):
        explain(contrast(case, OTHER, 1), "attention")


def test_a_word_is_never_contrasted_with_itself_where_another_place_is_meant(case):
    """The target has the word twice, so only the other positions are compared."""
    assert case.target_words[contrast(case, "el").word] != "el"
