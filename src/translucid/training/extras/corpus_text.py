"""What the model reads of the pairs of a corpus.

data.placeholders       pieces stand for the parts that both sides of a pair have
data.terms              words are annotated with the dictionary forms of their translations
data.subword_dropout    words are cut into other pieces in each epoch
data.context            sentences of the same document are before the source, a random number in each epoch
training.prefixes       sources are cut, and targets to what is aligned to the rest, others in each epoch
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

from bitext.pair import Pair
from translucid.data.document_context import ContextOptions
from translucid.data.filtering import Skipped, keep
from translucid.data.placeholders import masked_pairs
from translucid.data.stores.context import VariedContext
from translucid.data.stores.encoded import EncodedCorpus
from translucid.data.stores.prefixes import VariedPrefixes
from translucid.data.tokenizing.pieces import MATCH, TERM
from translucid.data.tokenizing.subword_dropout import VariedCorpus
from translucid.ground.console import Console
from translucid.ground.errors import UserError
from translucid.runs.configuration import Configuration
from translucid.runs.corpus_files import Corpora
from translucid.terminology.marking import with_terms
from translucid.terminology.matching import Lemmas
from translucid.terminology.mining import Lexicon
from translucid.training.dataset import DatasetStep, Initialization, TrainingCorpus
from translucid.training.extras.guided_alignment import word_starts


class Placeholders(DatasetStep):
    """Masks placeholders, and with `data.placeholders` also a share of names and numbers."""

    def identity(self) -> list[Any]:
        """Return the share and the seed."""
        return [self.data.placeholders, self.configuration.training.seed]

    def texts(self, pairs: Iterable[Pair], corpora: Corpora, number: int) -> Iterable[Pair]:
        """Mask training pairs."""
        return masked_pairs(pairs, self.data.placeholders, self.configuration.training.seed, self.data.protected)

    def validation_texts(self, pairs: Sequence[Pair]) -> Sequence[Pair]:
        """Mask only placeholders."""
        return list(masked_pairs(pairs, 0, self.configuration.training.seed, self.data.protected))


class Terms(DatasetStep):
    """Annotates terms in a share of the pairs."""

    lemmas: Lemmas
    lexicon: Lexicon | None = None

    def configured(self, configuration: Configuration) -> Configuration:
        """Find the dictionary of the target language.

        Raises:
            UserError: there is none.
        """
        self.lemmas = Lemmas(configuration.data.languages[1])
        return configuration

    def identity(self) -> list[Any]:
        """Return the share and the seed."""
        return ["terms", self.data.terms, self.configuration.training.seed]

    def learn(self, corpora: Corpora, console: Console) -> None:
        """Learn the translations of words."""
        with console.status("learning which words translate each other", is_long=True):
            self.lexicon = Lexicon.learn(corpora.filtered(self.data.filter))

    def texts(self, pairs: Iterable[Pair], corpora: Corpora, number: int) -> Iterable[Pair]:
        """Annotate terms."""
        if self.lexicon is None:
            self.lexicon = Lexicon.learn(corpora.filtered(self.data.filter))
        return with_terms(pairs, self.lexicon, self.lemmas, self.data.terms, self.configuration.training.seed)


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


class Prefixes(DatasetStep):
    """Cuts a share of the pairs, other ones and at other places in each epoch; needs the links of `WordLinks`."""

    def encoded(self, corpus: TrainingCorpus, start: Initialization) -> None:
        """Cut pairs; those with an annotated term or a fuzzy match stay whole."""
        pairs, tokenizer = corpus.pairs, start.tokenizer
        assert isinstance(pairs, EncodedCorpus | VariedCorpus | VariedContext)
        options = self.configuration.training
        indivisible = [tokenizer.source_id(piece) for piece in (*TERM, MATCH) if piece in self.data.reserved]
        corpus.pairs = VariedPrefixes(pairs, options.prefixes, indivisible, with_links=bool(options.guided_alignment))
