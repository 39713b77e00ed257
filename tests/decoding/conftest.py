"""A model small enough to enumerate every output: a table of logits by source and last two tokens, with three words."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product

import pytest
import torch
from torch import Tensor, nn

from translucid.decoding.decoding_options import DecodingOptions
from translucid.ground.special import SPECIAL
from translucid.models.protocol import Memory, SequenceModel

PAD, UNK, BOS, EOS = SPECIAL
WORDS = (4, 5, 6)
V = 7


@dataclass(frozen=True)
class TableState:
    """The last token but one, and the table that each row uses."""

    before: Tensor
    table: Tensor

    def select(self, rows: Tensor) -> TableState:
        return TableState(self.before[rows], self.table[rows])


class TableModel(SequenceModel[TableState]):
    """p(next | last two tokens, source) from a table; the source chooses one of five tables."""

    def __init__(self, logits: Tensor) -> None:
        super().__init__()
        self.logits = logits  # [5, V, V, V]
        self.source_embedding = self.output = nn.Identity()
        self.rows_seen: list[int] = []

    def read(self, embedded: Tensor, mask: Tensor) -> Memory:
        positions = torch.arange(1, embedded.size(1) + 1)
        return Memory((embedded * positions)[:, :, None].float(), mask)

    def features(self, memory: Memory, targets_in: Tensor) -> Tensor:
        raise NotImplementedError

    def start(self, memory: Memory) -> TableState:
        table = memory.states[:, :, 0].sum(1).long() % 5
        return TableState(torch.full_like(table, PAD), table)

    def advance(self, tokens: Tensor, state: TableState) -> tuple[Tensor, TableState]:
        self.rows_seen.append(len(tokens))
        return self.logits[state.table, state.before, tokens], replace(state, before=tokens)

    def log_probs(self, source: list[int], history: list[int]) -> list[float]:
        """Compute the log-probability of each token after `history`, step by step in plain Python."""
        table = sum(position * token for position, token in enumerate(source, start=1)) % 5
        before, last = [PAD, BOS, *history][-2:]
        logits = [float(x) for x in self.logits[table, before, last]]
        total = math.log(sum(math.exp(x) for x in logits))
        return [x - total for x in logits]


@dataclass(frozen=True)
class Output:
    """An output found by brute force."""

    tokens: list[int]
    log_probability: float
    score: float


def score(log_probability: float, length: int, alpha: float) -> float:
    """Return the score of equation 14 of Wu et al. 2016; `length` includes the end token."""
    return log_probability / ((5 + length) / 6) ** alpha


def every_output(model: TableModel, source: list[int], options: DecodingOptions) -> list[Output]:
    """Return all outputs within the length limits, best first."""
    limit = math.floor(options.max_length_ratio * (len(source) - 1)) + options.max_length_extra
    outputs = []
    for length in range(options.min_length, limit + 1):
        for words in product(WORDS, repeat=length):
            tokens = [*words, EOS]
            log_p = sum(model.log_probs(source, tokens[:t])[token] for t, token in enumerate(tokens))
            outputs.append(Output(list(words), log_p, score(log_p, len(tokens), options.length_penalty)))
    return sorted(outputs, key=lambda output: -output.score)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def table_model() -> Callable[..., TableModel]:
    """table_model(seed, eos=0.0): a random table; `eos` is added to the end token's logits."""

    def build(seed: int = 0, eos: float = 0.0) -> TableModel:
        logits = 2 * torch.randn(5, V, V, V, generator=torch.Generator().manual_seed(seed))
        logits[..., EOS] += eos
        return TableModel(logits)

    return build


@pytest.fixture
def brute_force() -> Callable[[TableModel, list[int], DecodingOptions], list[Output]]:
    return every_output


@pytest.fixture
def source_batch() -> Callable[[list[list[int]]], Tensor]:
    """source_batch(sentences): ids [B, S], padded on the right."""

    def build(sentences: list[list[int]]) -> Tensor:
        longest = max(map(len, sentences))
        return torch.tensor([sentence + [PAD] * (longest - len(sentence)) for sentence in sentences])

    return build


SENTENCES = [[4, EOS], [5, 6, EOS], [6, EOS], [4, 4, 5, EOS], [5, 6, 4, EOS], [6, 6, EOS]]


@pytest.fixture
def sentences() -> list[list[int]]:
    """Six sources of 1 to 3 words; the tables that they choose are not all the same."""
    return [list(sentence) for sentence in SENTENCES]
