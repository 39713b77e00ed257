"""Control tokens before the sources of pairs whose targets are formal or informal (Sennrich et al. 2016)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from bitext.languages import Languages
from bitext.pair import Pair
from translucid.data.filtering import Skipped, keep
from translucid.data.formality import FORMALITIES, Labels, languages_with_rules
from translucid.ground.console import Console
from translucid.ground.errors import UserError
from translucid.runs.corpus_files import Corpora
from translucid.runs.initialization import lacks_pieces
from translucid.training.dataset import DatasetStep


class Formality(DatasetStep):
    """Puts the control token of their formality before a share of the labeled sources."""

    def identity(self) -> list[Any]:
        """Return the share and the seed."""
        return ["formality", self.data.formality, self.configuration.training.seed]

    def learn(self, corpora: Corpora, console: Console) -> None:
        """Count the labels.

        Raises:
            UserError: one of the tokens would not be learned.
        """
        counts = Counter[str]()
        with console.status("labeling formality", is_long=True):
            for number, corpus in enumerate(corpora.train):
                labels = self._labels(corpora, number)
                counts.update(map(labels.address, keep(corpus, self.data.filter, Skipped())))
        found = ", ".join(f"{counts[formality]:,} {formality}" for formality in FORMALITIES)
        console.print(f"formality of {counts.total():,} training targets: {found}", soft_wrap=True)
        is_new = not self.configuration.training.begin_from or lacks_pieces(self.configuration)
        if is_new and not all(counts[formality] for formality in FORMALITIES):
            codes = ", ".join(languages_with_rules())
            what = f"data.formality: of {counts.total():,} training targets, {found}, so there is no choice to learn"
            fix = f"The target language is one with rules ({codes}), or a .jsonl file has the key `formality`."
            raise UserError(what, fix=f"{fix} Or leave data.formality out.")

    def texts(self, pairs: Iterable[Pair], corpora: Corpora, number: int) -> Iterable[Pair]:
        """Mark training pairs."""
        return self._labels(corpora, number).with_tokens(pairs)

    def _labels(self, corpora: Corpora, number: int) -> Labels:
        """Return the labels of a corpus, in the languages of its direction."""
        languages: Languages = corpora.directions[number] if corpora.directions else self.data.languages
        return Labels(self.data.formality, self.configuration.training.seed, languages)
