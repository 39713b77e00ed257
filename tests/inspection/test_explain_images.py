"""Explanations of captioners: a toy that reads known cells, and small real captioners."""

import json
import re

import numpy as np
import pytest
import torch
from torch import nn

from bitext.pair import Pair
from translucid.attention.points import Point
from translucid.captions.image_cases import (
    GREY,
    CellCase,
    SuperpixelCase,
    overlay_of,
    part_positions,
    superpixels,
)
from translucid.captions.kinds import PACKAGES
from translucid.captions.model import CaptioningLSTM, CaptioningTransformer
from translucid.captions.options import CaptionerOptions, CaptioningTransformerOptions
from translucid.data.tokenizing.tokenizer import Tokenizer, TokenizerOptions
from translucid.decoding.maps import forced_log_probs
from translucid.ground.errors import UserError
from translucid.inspection import explain as explanation
from translucid.inspection.explain import (
    Explanation,
    explain,
    faithfulness,
    integrated_gradients,
    part_count,
    record,
    refuse_method,
)
from translucid.models.protocol import Memory, SequenceModel

SIDE, CELL = 64, 16
GRID = (SIDE // CELL, SIDE // CELL)
CELLS = GRID[0] * GRID[1]
READS = {"uno": 1, "dos": 6, "tres": 11}
"""The cell that each word depends on."""
ATTENDED = 13
"""The cell that the toy attends to for every word: in the last row, the second column."""


class Points(nn.Module):
    """The gray level, 0 .. 1, of the middle pixel of each cell, on the diagonal of a matrix [B, S, S]."""

    def forward(self, pixels):
        middles = pixels[:, CELL // 2 :: CELL, CELL // 2 :: CELL].float().mean(-1).flatten(1) / 255
        return torch.diag_embed(middles)


class Reader(SequenceModel):
    """A captioner in which a word's logit is 8 times the level of one pixel; other tokens have logits of 0."""

    def __init__(self, tokenizer):
        super().__init__()
        self.source_embedding = Points()
        self.output = nn.Linear(CELLS, tokenizer.target_size)
        self.weights = Point("decoder.0.cross.weights")
        nn.init.zeros_(self.output.weight)
        nn.init.zeros_(self.output.bias)
        for word, cell in READS.items():
            self.output.weight.data[tokenizer.encode_target([word])[0][0], cell] = 8

    def source_mask(self, source):
        return torch.ones(len(source), CELLS, dtype=torch.bool)

    def read(self, embedded, mask):
        return Memory(embedded, mask)

    def features(self, memory, targets_in):
        weights = torch.zeros(len(targets_in), 1, targets_in.size(1), CELLS)
        weights[..., ATTENDED] = 1
        self.weights(weights)
        return (memory.states * memory.mask[..., None]).sum(1, keepdim=True).expand(-1, targets_in.size(1), -1)

    def start(self, memory):
        raise NotImplementedError

    def advance(self, tokens, state):
        raise NotImplementedError


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.learn([Pair("x", " ".join(READS))] * 20, TokenizerOptions(vocabulary=30), seed=1)


@pytest.fixture(scope="module")
def pixels():
    """Return noise darker than gray, with a bright point in the middle of each cell, unlike a superpixel's mean."""
    noise = np.random.default_rng(1).integers(40, 80, (SIDE, SIDE, 3)).astype(np.uint8)
    noise[CELL // 2 :: CELL, CELL // 2 :: CELL] = 250
    return noise


@pytest.fixture(scope="module")
def toy(tokenizer, pixels):
    return Reader(tokenizer).eval(), tokenizer, pixels, "tres uno dos", GRID


def build_captioner(kind, tokenizer):
    torch.manual_seed(2)
    image_encoder = {"size": SIDE, "stride": CELL, "channels": 4}
    if kind == "lstm":
        return CaptioningLSTM(tokenizer.target_size, CaptionerOptions(width=8, image_encoder=image_encoder)).eval()
    options = CaptioningTransformerOptions(
        width=8, heads=2, feed_forward=8, encoder_layers=1, image_encoder=image_encoder
    )
    return CaptioningTransformer(tokenizer.target_size, options).eval()


@pytest.mark.parametrize("method", ["erasure", "gradients"])
def test_a_word_depends_on_the_cell_that_it_reads(method, toy):
    result = explain(CellCase(*toy), method)
    assert result.target == ["tres", "uno", "dos"]
    assert result.importance.shape == (3, CELLS)
    assert result.importance.argmax(1).tolist() == [READS[word] for word in result.target]
    assert [result.source[i] for i in result.importance.argmax(1)] == ["2,3", "0,1", "1,2"]


def test_lime_finds_the_superpixel_that_a_word_reads(toy):
    case = SuperpixelCase(*toy)
    result = explain(case, "lime", samples=300)
    rows, columns = np.divmod([READS[word] for word in result.target], GRID[1])
    expected = case.regions[rows * CELL + CELL // 2, columns * CELL + CELL // 2]
    assert len(set(expected)) == 3
    assert result.importance.argmax(1).tolist() == expected.tolist()
    assert min(result.fit) > 0.3
    largest = result.importance.max(1).values
    assert (result.importance.topk(2).values[:, 1] < largest / 3).all()


def test_erasing_a_cell_is_computing_without_it(toy, pixels):
    """The expected drops are computed by hand in float64, from logits without the cell."""
    case = CellCase(*toy)
    levels = pixels[CELL // 2 :: CELL, CELL // 2 :: CELL].astype(float).mean(-1).ravel() / 255
    weights = case.model.output.weight.detach().double().numpy()

    def log_probs(levels):
        logits = weights @ levels
        return logits[case.target_ids[:-1]] - np.log(np.exp(logits).sum())

    drops = [log_probs(levels) - log_probs(np.where(np.arange(CELLS) == i, 0, levels)) for i in range(CELLS)]
    np.testing.assert_allclose(explain(case, "erasure").importance.numpy(), np.transpose(drops), atol=1e-5)


@pytest.mark.parametrize("kind", ["lstm", "transformer"])
def test_erasing_cells_of_a_real_captioner_one_by_one(kind, tokenizer, pixels):
    case = CellCase(build_captioner(kind, tokenizer), tokenizer, pixels, "tres uno", GRID)
    target, importance = torch.tensor([case.target_ids]), explain(case, "erasure").importance
    with torch.no_grad():
        cells = case.model.source_embedding(torch.from_numpy(pixels)[None])
        complete = case.by_word(
            forced_log_probs(case.model, case.model.encode(torch.from_numpy(pixels)[None]), target)
        )[0]
        for i in range(CELLS):
            mask = torch.ones(1, CELLS, dtype=torch.bool)
            mask[0, i] = False
            erased = case.by_word(forced_log_probs(case.model, case.model.read(cells, mask), target))[0]
            assert (complete - erased).abs().max() > 1e-6
            torch.testing.assert_close(importance[:, i], complete - erased, atol=2e-5, rtol=1e-3)


def test_log_probabilities_without_any_cell_are_finite(tokenizer, pixels):
    for kind in ("lstm", "transformer"):
        case = CellCase(build_captioner(kind, tokenizer), tokenizer, pixels, "tres uno", GRID)
        assert case.log_probs(torch.zeros(1, CELLS, dtype=torch.bool)).isfinite().all()


@pytest.mark.parametrize("case_class", [CellCase, SuperpixelCase])
@pytest.mark.parametrize("kind", ["lstm", "transformer"])
def test_gradients_add_up(kind, case_class, tokenizer, pixels):
    """Completeness: the shares sum to the gain in log-probability from a gray image to this one."""
    case = case_class(build_captioner(kind, tokenizer), tokenizer, pixels, "tres uno", GRID)

    @torch.no_grad()
    def log_probs(image):
        memory = case.model.encode(torch.from_numpy(image)[None])
        return case.by_word(forced_log_probs(case.model, memory, torch.tensor([case.target_ids])))[0]

    gain = log_probs(pixels) - log_probs(np.full_like(pixels, GREY))
    assert gain.abs().max() > 0.01
    shares = integrated_gradients(case, 100)
    assert shares.shape == (2, len(case.source_words))
    torch.testing.assert_close(shares.sum(1), gain, rtol=0.02, atol=0.005)


def test_a_superpixel_left_out_is_painted_over_with_its_mean(toy, pixels):
    case, batches = SuperpixelCase(*toy), []
    case.model.source_embedding.register_forward_hook(lambda module, inputs, out: batches.append(inputs[0]))
    keep = torch.ones(1, len(case.source_words), dtype=torch.bool)
    keep[0, 5] = False
    case.log_probs(keep)
    (images,) = batches
    inside = case.regions == 5
    np.testing.assert_array_equal(images[0].numpy()[~inside], pixels[~inside])
    mean = pixels[inside].astype(float).mean(0).round()
    np.testing.assert_array_equal(images[0].numpy()[inside], np.broadcast_to(mean, (inside.sum(), 3)))


def test_superpixels_cover_the_image_and_follow_its_colors():
    image = np.zeros((60, 60, 3), np.uint8)
    image[:, 30:] = (250, 40, 40)
    regions = superpixels(image)
    assert set(np.unique(regions)) == set(range(regions.max() + 1))
    assert 10 < regions.max() < 100
    mixed = [number for number in range(regions.max() + 1) if len(np.unique(image[regions == number], axis=0)) > 1]
    assert not mixed
    assert superpixels(np.full((20, 20, 3), 7, np.uint8)).min() == 0


def test_attention_is_shared_out_over_superpixels(toy):
    """All attention is on one cell, so each superpixel gets the share of that cell's pixels that it contains."""
    case = SuperpixelCase(*toy)
    importance = explain(case, "attention").importance
    cell = case.regions[-CELL:, CELL : 2 * CELL]
    expected = np.bincount(cell.ravel(), minlength=len(case.source_words)) / CELL**2
    torch.testing.assert_close(importance, torch.from_numpy(expected).float().expand(3, -1))
    assert explain(CellCase(*toy), "attention").importance.argmax(1).tolist() == [ATTENDED] * 3


def test_faithfulness_distinguishes_erasure_from_attention(toy):
    case = CellCase(*toy)
    true, false = (faithfulness(case, explain(case, method), 1) for method in ("erasure", "attention"))
    assert true.comprehensiveness > 2 > 0.1 > false.comprehensiveness
    assert true.sufficiency < 0 < 1 < false.sufficiency
    assert [part_count(0.1, parts) for parts in (144, 44, 3)] == [14, 4, 1]


def test_images_are_read_a_few_at_a_time_and_work_can_be_ended(toy, monkeypatch):
    from bitext.cancellation import Cancelled, call_between_steps

    monkeypatch.setattr("translucid.captions.image_cases.PIXELS", 3 * SIDE * SIDE)
    case, sizes = SuperpixelCase(*toy), []
    case.model.source_embedding.register_forward_hook(lambda module, inputs, out: sizes.append(len(out)))
    keep = torch.rand(8, len(case.source_words)) < 0.5
    batched = case.log_probs(keep)
    assert sizes == [3, 3, 2]
    for mask, expected in zip(keep, batched, strict=True):
        torch.testing.assert_close(case.log_probs(mask[None])[0], expected)

    def stop():
        raise Cancelled

    with call_between_steps(stop), pytest.raises(Cancelled):
        case.log_probs(keep)


def test_overlays_of_explanations(toy, tmp_path):
    from translucid.inspection.rendering.saving import save_view

    case = CellCase(*toy)
    erasure = explain(case, "erasure")
    overlay = overlay_of(case, erasure)
    assert overlay.words == erasure.target
    assert [overlay.places(i, 1)[0][0] for i in range(3)] == ["right", "top", "middle"]
    against = Explanation("erasure", erasure.source, erasure.target, -torch.ones_like(erasure.importance))
    assert not overlay_of(case, against).weights.any()
    superpixel_case = SuperpixelCase(*toy)
    lime = explain(superpixel_case, "lime", samples=50)
    assert all(re.fullmatch(r"\S+%, R² \d\.\d\d", note) for note in overlay_of(superpixel_case, lime).notes)
    assert overlay_of(superpixel_case, lime).weights.shape == (3, SIDE, SIDE)
    saved_record = {**record(lime, {"lime": faithfulness(superpixel_case, lime)}), **part_positions(superpixel_case)}
    save_view(tmp_path / "a.json", str, saved_record)
    saved = json.loads((tmp_path / "a.json").read_text())
    assert np.array(saved["regions"]).shape == (SIDE, SIDE)
    assert len(saved["importance"][0]) == np.max(saved["regions"]) + 1
    assert part_positions(case) == {"grid": [4, 4]}


def test_missing_words_and_missing_packages_are_reported(toy, monkeypatch):
    model, tokenizer, pixels, _, grid = toy
    with pytest.raises(UserError, match="no words"):
        CellCase(model, tokenizer, pixels, " ", grid)
    find_spec = explanation.find_spec
    monkeypatch.setattr(explanation, "find_spec", lambda name: None if name == "skimage" else find_spec(name))
    refuse_method("lime")
    refuse_method("gradients", PACKAGES)
    with pytest.raises(UserError, match="scikit-image"):
        refuse_method("lime", PACKAGES)
    assert "lime" in explanation.available_methods() and "lime" not in explanation.available_methods(PACKAGES)
