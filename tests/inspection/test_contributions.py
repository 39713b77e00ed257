"""Token contributions: properties that hold in every model, and models without contributions."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from translucid import Translator
from translucid.attention.points import handling, recording
from translucid.captions.model import CaptioningTransformer
from translucid.captions.options import CaptioningTransformerOptions, ImageEncoderOptions
from translucid.evaluation.alignment_error import AlignmentOptions, Gold
from translucid.ground.errors import UserError
from translucid.inspection.alignment import candidates, choose, read_alignment
from translucid.inspection.contributions import CHUNK, Contributions, forced_contributions, through_layers
from translucid.inspection.inspected import Inspected, viewer_record
from translucid.inspection.rendering.saving import save_maps
from translucid.models.attention_only import AttentionOnly
from translucid.models.model_options import AttentionOnlyOptions, RecurrentOptions, TransformerOptions
from translucid.models.recurrent import RecurrentModel
from translucid.models.transformer import Transformer

V = 30
SOURCE = torch.tensor([[5, 6, 7, 8, 3], [9, 10, 3, 0, 0]])
TARGET = torch.tensor([[11, 12, 13, 3], [14, 15, 3, 0]])


@pytest.fixture(params=["pre", "post"])
def model(request):
    torch.manual_seed(1)
    options = TransformerOptions(
        width=16, heads=4, feed_forward=24, encoder_layers=2, decoder_layers=2, norm=request.param
    )
    model = Transformer(V, V, options).eval()
    for name, parameter in model.named_parameters():  # biases stay zero
        if parameter.dim() > 1:
            parameter.data.normal_(std=0.3)
        elif name.endswith("norm.weight"):
            parameter.data.normal_(1, std=0.2)
    return model.requires_grad_(False)


def test_rows_sum_to_1_and_padding_and_the_future_contribute_nothing(model):
    batch = forced_contributions(model, SOURCE, TARGET)
    assert_close(batch.source.sum(-1) + batch.prefix.sum(-1), torch.ones(2, 4))
    for shares in batch.sublayers.values():
        assert_close(shares.sum(-1), torch.ones(shares.shape[:-1]))
    assert not batch.source[1, :, 3:].any()
    assert not batch.prefix.triu(1).any()
    assert 0 < batch.source_contribution.min() < batch.source_contribution.max() <= 1
    second = batch.of_sentence(1, slice(3), 3)
    alone = forced_contributions(model, SOURCE[1:, :3], TARGET[1:, :3])
    assert_close(second.source, alone.source[0])
    assert_close(second.sublayers["decoder.1.cross"], alone.sublayers["decoder.1.cross"][0])
    assert_close(second.head_norms["encoder.1.self"], alone.head_norms["encoder.1.self"][0])


def test_without_cross_attention_nothing_comes_from_the_source(model):
    silent = {f"decoder.{i}.cross.values": lambda x, first: 0 * x for i in range(2)}
    with handling(model, silent):
        batch = forced_contributions(model, SOURCE, TARGET)
    assert not batch.source.any()
    assert_close(batch.prefix.sum(-1), torch.ones(2, 4))


def test_without_the_last_residual_connection_all_comes_from_the_source(model):
    # The cross-attention keeps its queries, so only its residual connection is removed.
    with recording(model, ["decoder.1.cross.queries"]) as record:
        forced_contributions(model, SOURCE, TARGET)
    handlers = {
        "decoder.1.after_self": lambda x, first: 0 * x,
        "decoder.1.cross.queries": lambda x, first: record["decoder.1.cross.queries"],
    }
    with handling(model, handlers):
        batch = forced_contributions(model, SOURCE, TARGET)
    assert_close(batch.source_contribution, torch.ones(2, 4))
    assert not batch.prefix.any()


def test_norms_are_those_of_the_products_of_each_head(model):
    attention = model.decoder[1].cross_attention
    with torch.inference_mode(), recording(model, ["decoder.1.cross.weights", "encoder.output"]) as record:
        batch = forced_contributions(model, SOURCE, TARGET)
    value_matrix = attention.key_value.weight[16:]  # after W^K
    terms = torch.zeros(2, 4, 5, 16)
    for head in range(4):
        span = slice(4 * head, 4 * head + 4)
        values = record["encoder.output"] @ value_matrix[span].T @ attention.output.weight[:, span].T  # [2, 5, 16]
        head_terms = record["decoder.1.cross.weights"][:, head, :, :, None] * values[:, None]
        assert_close(batch.head_norms["decoder.1.cross"][:, head], head_terms.norm(dim=-1), rtol=1e-4, atol=1e-6)
        terms += head_terms
    assert_close(batch.norms["decoder.1.cross"], terms.norm(dim=-1), rtol=1e-4, atol=1e-5)


def test_a_head_that_is_off_adds_nothing(model):
    with handling(model, {"decoder.1.cross.head.2": lambda x, first: 0 * x}):
        ablated = forced_contributions(model, SOURCE, TARGET)
    model.decoder[1].cross_attention.output.weight[:, 8:12] = 0
    without = forced_contributions(model, SOURCE, TARGET)
    assert_close(ablated.source, without.source)
    assert_close(ablated.head_norms["decoder.1.cross"], without.head_norms["decoder.1.cross"])
    assert ablated.head_norms["decoder.1.cross"][:, 1].any()


def test_chunks_of_target_positions_change_nothing(model, monkeypatch):
    in_one_chunk = forced_contributions(model, SOURCE, TARGET)
    assert CHUNK > 1
    monkeypatch.setattr("translucid.inspection.contributions.CHUNK", 1)
    assert_close(forced_contributions(model, SOURCE, TARGET).source, in_one_chunk.source)


def test_a_row_without_a_positive_term_is_undefined_and_so_is_what_builds_on_it():
    shares = torch.tensor([[[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.5, 0.5, 0.0]]])
    cross = torch.tensor([[[0.5, 0.5], [0.5, 0.5], [1.0, 0.0]]])
    source, prefix = through_layers({"decoder.0.self": shares, "decoder.0.cross": cross})
    assert_close(source[0, 0], torch.tensor([0.5]))
    assert_close(prefix[0, 0], torch.tensor([0.5, 0.0, 0.0]))
    assert source[0, 1].isnan().all()
    assert prefix[0, 1].isnan().all()
    assert_close(source[0, 2], torch.tensor([1.0]))  # it does not read the undefined row


def test_contributions_of_an_attention_only_model_are_products_of_weights():
    model = AttentionOnly(V, V, AttentionOnlyOptions(width=16, encoder_layers=2, decoder_layers=2)).eval()
    with recording(
        model, [f"{name}.weights" for name in ("encoder.0.self", "encoder.1.self", "decoder.1.cross")]
    ) as record:
        batch = forced_contributions(model, SOURCE, TARGET)
    first, second, cross = (weights[:, 0] for weights in record.values())
    assert_close(batch.source, cross @ second @ first)
    assert not batch.prefix.any()  # without residual connections, the last layer reads the source alone


def test_a_captioning_transformer_has_contributions_of_its_cells():
    image_encoder = ImageEncoderOptions(size=32, stride=16, channels=4)
    options = CaptioningTransformerOptions(
        width=8, heads=2, feed_forward=8, encoder_layers=0, decoder_layers=2, image_encoder=image_encoder
    )
    model = CaptioningTransformer(V, options).eval()
    batch = forced_contributions(model, torch.randn(2, 4, 32), TARGET)
    assert batch.source.shape == (2, 4, 4)
    assert_close(batch.source.sum(-1) + batch.prefix.sum(-1), torch.ones(2, 4))


def test_a_recurrent_model_has_none():
    model = RecurrentModel(V, V, RecurrentOptions(width=16, attention="bahdanau")).eval()
    with pytest.raises(UserError, match="in a Transformer"):
        forced_contributions(model, SOURCE, TARGET)


def inspected_pair(undefined=False):
    """Return a pair with two target words, the second of two pieces, whose contributions can be checked by hand."""
    source = torch.tensor([[0.5, 0.2], [0.1, 0.1], [0.2, 0.2], [0.0, 0.6]])
    prefix = torch.tensor([[0.3, 0, 0, 0], [0.4, 0.4, 0, 0], [0.2, 0.2, 0.2, 0], [0.1, 0.1, 0.1, 0.1]])
    if undefined:
        source[2], prefix[2] = float("nan"), float("nan")
    weights = torch.eye(4, 2)[None]
    shares = torch.cat([source, 1 - source.sum(1, keepdim=True)], 1)
    contributions = Contributions(
        {"decoder.0.cross": 2 * weights},
        {"decoder.0.cross": 4 * source},
        {},
        {"decoder.0.cross": shares},
        source,
        prefix,
    )
    maps = {"decoder.0.cross": weights}
    return Inspected(["▁a", "</s>"], ["▁x", "▁y", "z", "</s>"], maps, [-1.0] * 4, contributions=contributions)


def test_contributions_and_norms_between_words():
    inspected = inspected_pair()
    total = inspected.words(inspected.cross(method="contributions"))
    assert_close(total.weights, torch.tensor([[0.5, 0.2], [0.15, 0.15], [0.0, 0.6]]))
    prefix = inspected.prefix_words()
    assert prefix.source == ["<s>", "x", "yz"]
    assert_close(prefix.weights, torch.tensor([[0.3, 0, 0], [0.3, 0.3, 0.1], [0.1, 0.1, 0.2]]))
    assert inspected.source_contributions() == pytest.approx([0.7, 0.3, 0.6])
    assert_close(inspected.cross(0, method="norms"), torch.tensor([[5 / 7, 2 / 7], [0.5, 0.5], [0.5, 0.5], [0, 1]]))
    assert_close(inspected.cross(0, 0, method="norms"), torch.eye(4, 2))
    assert_close(inspected.cross(0, method="contributions", shift=True)[1], torch.tensor([0.2, 0.2]))
    with pytest.raises(UserError, match="not to heads"):
        inspected.cross(0, 0, method="contributions")
    with pytest.raises(ValueError, match="contributions=True"):
        replace(inspected, contributions=None).cross(method="norms")


def test_alignments_are_read_from_norms_and_contributions():
    inspected = inspected_pair()
    contributions = inspected.contributions
    # Each method links x to another word.
    contributions.source[:3] = torch.tensor([[0.5, 0.2], [0.1, 0.4], [0.1, 0.4]])
    contributions.norms["decoder.0.cross"][:3] = torch.tensor([[0.1, 0.2], [0.4, 0.1], [0.4, 0.1]])
    inspected = replace(
        inspected,
        source=["▁a", "▁b", "</s>"],
        maps={"decoder.0.cross": torch.tensor([[0.1, 0.9, 0], [0.1, 0.9, 0], [0.1, 0.9, 0], [0, 0, 1]])[None]},
        contributions=Contributions.from_arrays(
            {name: add_end_column(x) for name, x in contributions.arrays().items()}
        ),
    )
    links = {}
    for method in ("weights", "norms", "contributions"):
        options = AlignmentOptions(learned=False, method=method, both=False)
        links[method] = read_alignment(inspected, options)
    assert links == {"weights": [(1, 0), (1, 1)], "norms": [(0, 1), (1, 0)], "contributions": [(0, 0), (1, 1)]}
    best = next(iter(choose([inspected], [Gold(*[frozenset([(0, 1), (1, 0)])] * 2)])))
    assert best.method == "norms"
    # An ensemble has no contributions: its attention is read.
    without = replace(inspected, contributions=None)
    assert read_alignment(without, AlignmentOptions(learned=False, method="norms", both=False)) == links["weights"]
    assert {options.method for options in candidates(without)} == {"weights", "content"}


def add_end_column(values):
    """Add a column of zeros for the source's end token to a map over the source, which is before the residual."""
    if values.size(-1) == 4:  # the target prefix
        return values
    return torch.cat([values[..., :2], torch.zeros_like(values[..., :1]), values[..., 2:]], -1)


def test_the_record_of_the_page_has_the_source_and_the_prefix():
    record = viewer_record(inspected_pair(undefined=True), method="contributions")
    kinds = [(entry["kind"], entry["layer"]) for entry in record["maps"]]
    assert kinds == [("contributions", None), ("contributions", 0), ("cross", None), ("norms", None), ("norms", 0)]
    assert record["fed"] == ["<s>", "x", "yz"]
    assert record["prefix"][2] == [0.1, 0.1, 0.2]
    assert record["source_contributions"] == [0.7, None, 0.6]
    assert "prefix" not in viewer_record(replace(inspected_pair(), contributions=None))


def test_undefined_contributions_are_saved_as_null(tmp_path):
    inspected = inspected_pair(undefined=True)
    assert inspected.contributions.undefined == [2]
    inspected.save(tmp_path / "saved.json")
    record = json.loads((tmp_path / "saved.json").read_text(), parse_constant=pytest.fail)
    assert record["contributions"]["source"][2] == [None, None]
    assert record["source_contributions"] == [0.7, None, 0.6]
    loaded = Inspected.load(tmp_path / "saved.json")
    for name, values in inspected.contributions.arrays().items():
        assert_close(loaded.contributions.arrays()[name], values, equal_nan=True)
    assert_close(loaded.cross(method="contributions")[2], torch.zeros(2))
    save_maps([inspected], tmp_path / "saved.npz")
    with np.load(tmp_path / "saved.npz") as archive:
        np.testing.assert_array_equal(archive["0/contributions.source"], inspected.contributions.source)
        assert archive["0/contributions.norms.decoder.0.cross"].shape == (4, 2)


def test_a_translator_has_contributions_of_given_pairs_and_of_its_translations(small_run):
    translator = Translator.load(small_run)
    (inspected,) = translator.inspector.inspect([("I like soccer", "Me gusta el fútbol")], contributions=True)
    assert len(inspected.source_contributions()) == len(inspected.target_words)
    (translated,) = translator.translate("I like soccer").inspect(contributions=True)
    assert translated.contributions.source.shape == (len(translated.target), len(translated.source))
