"""Training with `data.terms`: words are annotated with the dictionary forms of their translations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bitext.pair import Pair
from translucid.ground.console import Console
from translucid.runs.configuration import Configuration
from translucid.runs.corpus_files import Corpora
from translucid.terminology.marking import with_terms
from translucid.terminology.matching import Lemmas
from translucid.terminology.mining import Lexicon
from translucid.training.extras.dataset_step import DatasetStep


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

    def texts(self, pairs: Iterable[Pair], corpora: Corpora) -> Iterable[Pair]:
        """Annotate terms."""
        if self.lexicon is None:
            self.lexicon = Lexicon.learn(corpora.filtered(self.data.filter))
        return with_terms(pairs, self.lexicon, self.lemmas, self.data.terms, self.configuration.training.seed)
