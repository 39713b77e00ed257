"""Training in several directions: a vocabulary for all languages, and the pieces that each target language uses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, cycle, islice
from pathlib import Path

from bitext.pair import Pair
from translucid.data.filtering import Filter, Skipped, keep, reservoir_sample
from translucid.data.sampler import by_temperature, quotas
from translucid.engines.target_pieces import copy_target_pieces, save_target_pieces
from translucid.runs.corpus_files import Corpora
from translucid.runs.run_folder import RunFolder
from translucid.training.dataset import DatasetStep, Initialization, TrainingCorpus

VOCABULARY_TEMPERATURE = 5.0
"""T for the text from which the vocabulary is learned (Arivazhagan et al. 2019, section 4): rare languages need pieces
of their own more than frequent ones."""


class Directions(DatasetStep):
    """Balances the text for the vocabulary, and saves the pieces of the target languages for faster searches."""

    def vocabulary_texts(self, pairs: Iterable[Pair], corpora: Corpora) -> Iterable[Pair]:
        """Return more pairs of languages with little text."""
        if not self.data.is_multilingual:
            return pairs
        return balanced(corpora, self.data.filter, self.data.tokenizer.sample, self.configuration.training.seed)

    def encoded(self, corpus: TrainingCorpus, start: Initialization) -> None:
        """Save the pieces of the target languages, in the first process."""
        directions, stored = corpus.corpora.directions, corpus.stored
        if not directions or not start.workers.leads:
            return
        begin_from = self.configuration.training.begin_from
        initial_run = RunFolder(Path(begin_from)) if begin_from else None
        if initial_run:
            copy_target_pieces(initial_run, start.run)
        targets = [direction[1] for direction in directions]
        save_target_pieces(start.run, stored.pairs, stored.sizes, targets, start.tokenizer, initial_run)


def balanced(corpora: Corpora, pair_filter: Filter, max_pairs: int, seed: int) -> Iterator[Pair]:
    """Yield training pairs for a vocabulary; languages with little text have more of them than their share.

    Args:
        corpora: the corpora. Two directions between the same languages count as one, as they have the same text.
        pair_filter: the filter for pairs.
        max_pairs: the maximum number of pairs.
        seed: determines the sample.
    """
    by_languages = corpora.texts

    def pairs(indices: list[int], skipped: Skipped) -> Iterator[Pair]:
        return keep(chain.from_iterable(corpora.train[index] for index in indices), pair_filter, skipped)

    sizes = []
    for indices in by_languages.values():
        skipped = Skipped()
        for _ in pairs(indices, skipped):
            pass
        sizes.append(skipped.kept)
    counts = quotas(sizes, by_temperature(sizes, VOCABULARY_TEMPERATURE), min(max_pairs, sum(sizes)))
    for indices, count in zip(by_languages.values(), counts, strict=True):
        sample = reservoir_sample(pairs(indices, Skipped()), count, seed)
        yield from islice(cycle(sample), count)
