"""A step of a dataset: what an extra adds to the corpus of a training."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from bitext.pair import Pair
from translucid.data.batching import BatchedCorpus, VariedBatches
from translucid.data.stores.store import StoredCorpus
from translucid.ground.console import Console
from translucid.runs.configuration import Configuration
from translucid.runs.corpus_files import Corpora
from translucid.training.dataset import Initialization


@dataclass
class TrainingCorpus:
    """The encoded pairs of a translator, which steps change."""

    pairs: BatchedCorpus | VariedBatches
    sizes: list[int]
    """The number of pairs from each of the concatenated corpora."""
    stored: StoredCorpus
    """The corpus in the run folder."""
    corpora: Corpora
    texts: Callable[[], list[Iterable[Pair]]]
    """Returns the text of each corpus, as the model reads it."""


class DatasetStep:
    """An extra of a translator's corpus; each method does nothing unless an extra overrides it."""

    def __init__(self, configuration: Configuration) -> None:
        """Store the configuration; nothing is read yet."""
        self.configuration, self.data = configuration, configuration.data

    def corpora(self, corpora: Corpora, console: Console) -> Corpora:
        """Return the corpora with what is added to their pairs before anything else."""
        return corpora

    def configured(self, configuration: Configuration) -> Configuration:
        """Return the configuration with what the run should remember.

        Raises:
            UserError: the step can't be done.
        """
        return configuration

    def vocabulary_texts(self, pairs: Iterable[Pair], corpora: Corpora) -> Iterable[Pair]:
        """Return the filtered pairs from which the vocabulary is learned."""
        return pairs

    def identity(self) -> list[Any]:
        """Return what else the encoded corpus depends on."""
        return []

    def learn(self, corpora: Corpora, console: Console) -> None:
        """Learn what `texts` needs, before the corpus is encoded."""

    def texts(self, pairs: Iterable[Pair], corpora: Corpora) -> Iterable[Pair]:
        """Return training pairs as the model reads them."""
        return pairs

    def validation_texts(self, pairs: Sequence[Pair]) -> Sequence[Pair]:
        """Return validation pairs as the model reads them."""
        return pairs

    def encoded(self, corpus: TrainingCorpus, start: Initialization) -> None:
        """Change the encoded corpus.

        Raises:
            UserError: it lacks what the step needs.
        """
