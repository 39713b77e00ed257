"""Training with `data.placeholders`: pieces stand for the parts that both sides of a pair have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from bitext.pair import Pair
from translucid.data.placeholders import masked_pairs
from translucid.runs.corpus_files import Corpora
from translucid.training.extras.dataset_step import DatasetStep


class Placeholders(DatasetStep):
    """Masks placeholders, and with `data.placeholders` also a share of names and numbers."""

    def identity(self) -> list[Any]:
        """Return the share and the seed."""
        return [self.data.placeholders, self.configuration.training.seed]

    def texts(self, pairs: Iterable[Pair], corpora: Corpora) -> Iterable[Pair]:
        """Mask training pairs."""
        return masked_pairs(pairs, self.data.placeholders, self.configuration.training.seed, self.data.protected)

    def validation_texts(self, pairs: Sequence[Pair]) -> Sequence[Pair]:
        """Mask only placeholders."""
        return list(masked_pairs(pairs, 0, self.configuration.training.seed, self.data.protected))
