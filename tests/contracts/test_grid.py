"""A source need not be token ids: a toy captioner reads a grid of features through the same interfaces."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest
import torch
from torch import Tensor, nn

from translucid.attention.attend import attend
from translucid.attention.points import Point
from translucid.attention.scores import Dot
from translucid.data.batching import Batch
from translucid.decoding.decoding_options import DecodingOptions
from translucid.decoding.maps import cross_attention, forced_log_probs, forced_pass
from translucid.decoding.search import RestrictedVocabulary, continuations, search
from translucid.decoding.trace import BeamTrace
from translucid.models.protocol import Memory, SequenceModel
from translucid.training.objective import batch_loss

V, CELLS, FEATURES, WIDTH = 11, 6, 5, 8


@dataclass(frozen=True)
class GridState:
    """The sum of the word embeddings so far, and the cells."""

    total: Tensor
    """[N, D]."""
    cells: Memory

    def select(self, rows: Tensor) -> GridState:
        return GridState(self.total.index_select(0, rows), self.cells.select(rows))


class GridModel(SequenceModel[GridState]):
    """Attends to the cells with the sum of the words so far. A source is B grids [B, S, F] of image features."""

    def __init__(self) -> None:
        super().__init__()
        self.source_embedding = nn.Linear(FEATURES, WIDTH)
        self.words = nn.Embedding(V, WIDTH)
        self.score = Dot(scaled=True)
        self.weights = Point("decoder.0.cross.weights")
        self.output = nn.Linear(2 * WIDTH, V)

    def source_mask(self, source: Tensor) -> Tensor:
        return torch.ones(source.shape[:2], dtype=torch.bool, device=source.device)

    def read(self, embedded: Tensor, mask: Tensor) -> Memory:
        return Memory(torch.tanh(embedded), mask)

    def features(self, memory: Memory, targets_in: Tensor) -> Tensor:
        total = self.words(targets_in).cumsum(1)
        replacement = self.weights.replacement(0, single_head=True)
        mask = memory.mask[:, None]
        context, _ = attend(total, memory.states, mask=mask, score=self.score, replacement=replacement)
        return torch.cat([total, context], -1)

    def start(self, memory: Memory) -> GridState:
        return GridState(memory.states.new_zeros(len(memory.states), WIDTH), memory)

    def advance(self, tokens: Tensor, state: GridState) -> tuple[Tensor, GridState]:
        total = state.total + self.words(tokens)
        context, _ = attend(total[:, None], state.cells.states, mask=state.cells.mask[:, None], score=self.score)
        return torch.cat([total, context[:, 0]], -1), replace(state, total=total)


@pytest.fixture
def model() -> GridModel:
    torch.manual_seed(3)
    return GridModel().eval()


@pytest.fixture
def grids() -> Tensor:
    return torch.randn(3, CELLS, FEATURES, generator=torch.Generator().manual_seed(4))


LIMITS = {"max_length_ratio": 0, "max_length_extra": 5}


@pytest.mark.parametrize("options", [{"beam": 1}, {"beam": 4, "nbest": 4}, {"sample": True, "nbest": 3}])
def test_a_grid_is_searched_as_a_sentence_is(options, model, grids):
    results = search(model, grids, DecodingOptions(**options, **LIMITS))
    for grid, hypotheses in zip(grids, results, strict=True):
        for hypothesis in hypotheses:
            assert set(hypothesis.tokens) <= set(range(4, V))
            assert 1 <= len(hypothesis.tokens) <= 5
            targets = torch.tensor([[*hypothesis.tokens, model.eos]])
            log_probs = forced_log_probs(model, model.encode(grid[None]), targets)
            assert hypothesis.token_log_probabilities == pytest.approx(log_probs[0].tolist(), abs=1e-4)


@torch.no_grad()
def test_a_wide_beam_finds_the_best_caption(model, grids):
    """The beam has room for every output of up to two words."""
    options = DecodingOptions(beam=80, max_length_ratio=0, max_length_extra=2, length_penalty=0)
    (best,), *_ = search(model, grids, options)
    words = range(4, V)
    outputs = [[word] for word in words] + [[first, second] for first in words for second in words]
    scores = {
        tuple(output): float(forced_log_probs(model, model.encode(grids[:1]), torch.tensor([[*output, 3]])).sum())
        for output in outputs
    }
    assert tuple(best.tokens) == max(scores, key=scores.get)
    assert best.score == pytest.approx(max(scores.values()), abs=1e-4)


def test_it_can_be_traced_continued_and_narrowed(model, grids):
    options, trace = DecodingOptions(beam=3, **LIMITS), BeamTrace()
    assert search(model, grids[:1], options, trace=trace)
    assert len(trace.nodes) > 3
    assert {tuple(continuation.tokens[:1]) for continuation in continuations(model, grids[:1], [5], 3, options)} == {
        (5,)
    }
    all_pieces = torch.arange(V)
    assert search(RestrictedVocabulary(model, all_pieces), grids, options) == search(model, grids, options)


def test_its_maps_have_cells_for_a_source(model, grids):
    targets = torch.tensor([[5, 6, 3]]).expand(3, -1)
    maps, log_probs, _ = forced_pass(model, grids, targets)
    assert maps["decoder.0.cross"].shape == (3, 1, 3, CELLS)
    assert log_probs.shape == (3, 3)
    torch.testing.assert_close(cross_attention(model, grids, targets).sum(-1), torch.ones(3, 3))


def test_gradients_come_back_to_the_cells(model, grids):
    embedded = model.source_embedding(grids).detach().requires_grad_()
    memory = model.read(embedded, model.source_mask(grids))
    forced_log_probs(model, memory, torch.tensor([[5, 6, 3]]).expand(3, -1)).sum().backward()
    assert embedded.grad.abs().sum(-1).all()


def test_it_learns_from_a_batch(model, grids):
    targets_in, labels = torch.tensor([[2, 5], [2, 6], [2, 7]]), torch.tensor([[5, 3], [6, 3], [7, 3]])
    optimizer = torch.optim.Adam(model.parameters(), 0.05)
    for _ in range(60):
        loss = batch_loss(model, Batch(grids, targets_in, labels))
        optimizer.zero_grad()
        loss.smoothed.backward()
        optimizer.step()
    assert [best.tokens for best, *_ in search(model, grids, DecodingOptions(**LIMITS))] == [[5], [6], [7]]
