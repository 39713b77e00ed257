"""Ablated heads, against models without the heads' columns in the output projection."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch.testing import assert_close

from tests.probes.foreign import SHORT, marian_folder
from translucid import Translator, UserError
from translucid.attention.points import handling, recording
from translucid.decoding.decoding_options import DecodingOptions, SearchRequest
from translucid.decoding.maps import forced_features
from translucid.decoding.search import TorchEngine
from translucid.inspection.ablation import Ablation, gate_point, head_names, mean_outputs
from translucid.inspection.contributions import forced_contributions
from translucid.models.attention_only import AttentionOnly
from translucid.models.copying import with_handlers
from translucid.models.model_options import AttentionOnlyOptions, RecurrentOptions, TransformerOptions
from translucid.models.recurrent import RecurrentModel
from translucid.models.transformer import Transformer

V = 30
SENTENCES = [[5, 6, 7, 8, 3], [9, 10, 3], [11, 12, 13, 3]]
PAIRS = [([5, 6, 7, 8, 3], [11, 12, 3]), ([9, 10, 3], [14, 15, 16, 17, 3])]
OFF = ("encoder.1.self.head.2", "decoder.0.self.head.0", "decoder.1.cross.head.3", "decoder.1.cross.head.1")
BEAM = DecodingOptions(beam=3, nbest=3)


@pytest.fixture(params=["pre", "post"])
def transformer(request):
    torch.manual_seed(1)
    options = TransformerOptions(
        width=16, heads=4, feed_forward=24, encoder_layers=2, decoder_layers=2, norm=request.param
    )
    return randomize(Transformer(V, V, options))


def randomize(model):
    """Randomize all weights, including biases."""
    for parameter in model.parameters():
        parameter.data.normal_(std=0.4)
    return model.eval()


def without_columns(model, heads):
    """Zero the columns of the output projections that read the heads, in place."""
    for name in heads:
        side, layer, kind, _, head = name.split(".")
        attention = getattr(
            getattr(model, side)[int(layer)], {"self": "self_attention", "cross": "cross_attention"}[kind]
        )
        width = attention.output.in_features // attention.heads
        attention.output.weight.data[:, int(head) * width : (int(head) + 1) * width] = 0


def results(model):
    """Return the tokens of the hypotheses of a beam search, their scores, and the log-probabilities of given pairs."""
    engine = TorchEngine(model)
    hypotheses = [hypothesis for nbest in engine.decode(SearchRequest(SENTENCES, BEAM)) for hypothesis in nbest]
    tokens = [hypothesis.tokens for hypothesis in hypotheses]
    scores = [hypothesis.log_probability for hypothesis in hypotheses]
    return tokens, scores, [value for pair in engine.forced(PAIRS) for value in pair]


def test_a_gate_of_one_changes_no_bit(transformer):
    gates = {f"{name}.heads": lambda x, first: 1 * x for name in transformer.options.maps}
    assert results(with_handlers(transformer, gates)) == results(transformer)


def test_a_head_that_is_off_is_one_without_its_columns(transformer):
    ablated = results(Ablation(OFF).applied(transformer))
    before = results(transformer)
    without_columns(transformer, OFF)
    tokens, scores, forced_log_probs = results(transformer)
    assert ablated[0] == tokens != before[0]
    assert ablated[1] == pytest.approx(scores, abs=1e-4)
    assert ablated[2] == pytest.approx(forced_log_probs, abs=1e-4)


def test_the_model_itself_does_not_change_and_weights_are_shared(transformer):
    before = results(transformer)
    ablated = Ablation(OFF).applied(transformer)
    assert results(ablated) != before == results(transformer)
    for parameter, original in zip(ablated.parameters(), transformer.parameters(), strict=True):
        assert parameter.data_ptr() == original.data_ptr()


def test_heads_are_off_in_every_thread_and_in_compiled_graphs(transformer, monkeypatch):
    ablated = Ablation(OFF).applied(transformer)
    expected = results(ablated)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(results, ablated).result() == expected
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    assert results(ablated) == expected


def test_handlers_get_states_after_the_ablation(transformer):
    ablated = Ablation(("decoder.1.cross.head.1",)).applied(transformer)
    source, target = torch.tensor(SENTENCES[:1]), torch.tensor([[11, 12, 3]])
    point = "decoder.1.cross.heads"
    with recording(ablated, [point]) as record:
        forced_features(ablated, ablated.encode(source), target)
    assert not record[point][:, 1].any() and record[point][:, 2].all()
    with handling(ablated, {point: lambda x, first: x + 1}), recording(ablated, [point]) as record:
        forced_features(ablated, ablated.encode(source), target)
    assert (record[point][:, 1] == 1).all()


def test_means_are_those_of_all_positions_without_padding(transformer):
    heads = ("encoder.0.self.head.1", "decoder.1.cross.head.0")
    means = mean_outputs(transformer, heads, PAIRS, "cpu")
    for name in heads:
        attention, _, number = name.rpartition(".head.")
        rows = []
        for source, target in PAIRS:
            with recording(transformer, [f"{attention}.heads"]) as record:
                forced_features(transformer, transformer.encode(torch.tensor([source])), torch.tensor([target]))
            rows.append(record[f"{attention}.heads"][0, int(number)])
        assert_close(means[name], torch.cat(rows).mean(0), rtol=1e-4, atol=1e-5)
    ablated = Ablation(heads, means).applied(transformer)
    with recording(ablated, ["encoder.0.self.heads"]) as record:
        ablated.encode(torch.tensor(SENTENCES[:1]))
    assert_close(record["encoder.0.self.heads"][0, 1], means[heads[0]].expand(5, -1))


@pytest.mark.parametrize("mean", [False, True])
def test_a_head_that_is_off_contributes_nothing(transformer, mean):
    source, target = torch.tensor(SENTENCES[:1]), torch.tensor([[11, 12, 3]])
    means = mean_outputs(transformer, OFF, PAIRS, "cpu") if mean else {}
    ablated = forced_contributions(Ablation(OFF, means).applied(transformer), source, target)
    assert not ablated.head_norms["decoder.1.cross"][:, [1, 3]].any()
    assert ablated.head_norms["decoder.1.cross"][:, [0, 2]].all()
    if not mean:
        without_columns(transformer, OFF)
        assert_close(ablated.source, forced_contributions(transformer, source, target).source, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("attention", ["bahdanau", "luong-general"])
def test_the_attention_of_a_recurrent_model_is_one_head(attention):
    model = randomize(RecurrentModel(V, V, RecurrentOptions(width=16, attention=attention)))
    ablated = results(Ablation(("decoder.0.cross.head.0",)).applied(model))
    without = {"decoder.0.cross.output": lambda x, first: 0 * x}
    with handling(model, without):
        assert ablated == results(model)
    assert ablated != results(model)
    with pytest.raises(UserError, match=r"no mean output. Replace them by 0"):
        mean_outputs(model, ["decoder.0.cross.head.0"], PAIRS, "cpu")


def test_attention_without_projections_has_one_head():
    model = randomize(AttentionOnly(V, V, AttentionOnlyOptions(width=16, encoder_layers=2, decoder_layers=1)))
    assert gate_point(model, "encoder.1.self") == "encoder.1.self.weights"
    ablated = Ablation(("encoder.1.self.head.0",)).applied(model)
    assert not ablated.encode(torch.tensor(SENTENCES[:1])).states.any()


@pytest.fixture(scope="module")
def translator(untrained):
    return Translator.load(untrained("transformer"), "cpu", "torch")


TEXT = "I like soccer."


def test_a_translator_translates_scores_and_inspects_with_heads_off(translator):
    heads = "encoder.0.self.head.1", "decoder.0.cross.head.0"
    ablated = translator.ablated(*heads)
    reference = Translator.load(translator.run, "cpu", "torch")
    without_columns(reference.model, heads)
    before = translator.translate(TEXT)
    after, expected = ablated.translate(TEXT), reference.translate(TEXT)
    assert after.text == expected.text and after.score == pytest.approx(expected.score, abs=1e-3)
    assert after.score != pytest.approx(before.score, abs=1e-2)
    assert ablated.inspector.score(TEXT, "un libro").log_probability == pytest.approx(
        reference.inspector.score(TEXT, "un libro").log_probability, abs=1e-3
    )
    (inspected,), (reference_inspected,) = (
        ablated.inspector.inspect([(TEXT, "un libro")]),
        reference.inspector.inspect([(TEXT, "un libro")]),
    )
    assert_close(inspected.cross(), reference_inspected.cross(), rtol=1e-3, atol=1e-4)
    assert ablated.ablated().translate(TEXT) == translator.translate(TEXT) == before


def test_other_heads_replace_those_that_were_off(translator):
    first, second = "encoder.0.self.head.1", "decoder.0.self.head.0"
    assert translator.ablated(first).ablated(second).loaded.interventions == (Ablation((second,)),)


def test_the_mean_of_a_head_replaces_its_output(translator):
    head = "decoder.0.cross.head.1"
    pairs = [(TEXT, "Me gusta el fútbol."), ("She reads a book.", "Ella lee un libro.")]
    loaded = translator.ablated(head, mean=pairs).loaded
    ids = [pair.ids for pair in translator.pipeline.pairs(pairs)]
    assert_close(loaded.interventions[0].means[head], mean_outputs(translator.model, [head], ids, "cpu")[head])
    with pytest.raises(UserError, match="no pairs"):
        mean_outputs(translator.model, [head], [], "cpu")


def test_names_of_heads_are_checked_and_the_nearest_is_named(translator):
    assert head_names(translator.inspector.heads)[:3] == [
        "encoder.0.self.head.0",
        "encoder.0.self.head.1",
        "decoder.0.self.head.0",
    ]
    with pytest.raises(UserError, match=r"no head 'decoder.0.cros.head.1'. Did you mean 'decoder.0.cross.head.1'"):
        translator.ablated("decoder.0.cros.head.1")
    with pytest.raises(UserError, match=r"no head 'encoder.0.self.heads'"):
        translator.ablated("encoder.0.self.heads")


def test_a_marian_folder_is_opened_in_place(tmp_path):
    marian_folder(tmp_path / "marian", end=1.0)
    heads = "encoder.1.self.head.2", "decoder.0.cross.head.0"
    translator = Translator.load(tmp_path / "marian", "cpu", "torch")
    reference = Translator.load(tmp_path / "marian", "cpu", "torch")
    without_columns(reference.model, heads)
    ablated, expected = translator.ablated(*heads).translate(TEXT, **SHORT), reference.translate(TEXT, **SHORT)
    assert ablated.text == expected.text != translator.translate(TEXT, **SHORT).text
    assert ablated.score == pytest.approx(expected.score, abs=1e-3)
