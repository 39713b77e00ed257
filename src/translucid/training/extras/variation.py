"""Corpora that differ in each epoch: `data.subword_dropout` and `data.context`."""

from __future__ import annotations

from itertools import chain
from typing import Any

from translucid.data.document_context import ContextOptions
from translucid.data.filtering import Skipped, keep
from translucid.data.stores.context import VariedContext
from translucid.data.stores.encoded import EncodedCorpus
from translucid.data.tokenizing.subword_dropout import VariedCorpus
from translucid.ground.errors import UserError
from translucid.training.dataset import Initialization
from translucid.training.extras.dataset_step import DatasetStep, TrainingCorpus
from translucid.training.extras.guided_alignment import word_starts


class SubwordDropout(DatasetStep):
    """Encodes the pairs, in memory, anew in each epoch."""

    def encoded(self, corpus: TrainingCorpus, start: Initialization) -> None:
        """Replace the encoded pairs by their texts."""
        texts = [list(keep(text, self.data.filter, Skipped())) for text in corpus.texts()]
        corpus.sizes = list(map(len, texts))
        corpus.pairs = VariedCorpus(
            list(chain(*texts)),
            start.tokenizer,
            self.data.subword_dropout,
            self.configuration.training.seed,
            word_starts(self.configuration, start.tokenizer),
            documents=bool(self.data.context),
        )


class DocumentContext(DatasetStep):
    """Puts sentences of the same document before each source, a random number of them in each epoch."""

    def identity(self) -> list[Any]:
        """Return that the store has the numbers of documents."""
        return ["documents"]

    def encoded(self, corpus: TrainingCorpus, start: Initialization) -> None:
        """Join the pairs with those before them.

        Raises:
            UserError: no pair has a sentence before it.
        """
        options = ContextOptions.of(self.data.context, start.tokenizer, self.configuration.longest)
        assert options and isinstance(corpus.pairs, EncodedCorpus | VariedCorpus)
        context = VariedContext(corpus.pairs, corpus.sizes, options)
        if not context.has_context():
            what = "data.context: no training pair has a sentence before it in its document"
            raise UserError(what, fix="See in docs/context.md how a corpus says where documents begin.")
        corpus.pairs = context
