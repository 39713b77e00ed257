"""The seen-sentence index of a training, `data/seen_sentences.py`: hashes of the pairs that it encodes."""

from __future__ import annotations

from bitext.languages import Languages
from translucid.data.seen_sentences import SeenSentencesBuilder, inherit, text_of_index
from translucid.data.stores.encoded import EncodedCorpus
from translucid.runs.configuration import Configuration
from translucid.runs.corpus_files import Corpora
from translucid.training.dataset import DatasetStep, Initialization, TrainingCorpus


class SeenIndex(DatasetStep):
    """Writes the index of a new run; a resumed run keeps it."""

    hashes = True

    def __init__(self, configuration: Configuration) -> None:
        super().__init__(configuration)
        self.builder, self.count = SeenSentencesBuilder(), 0

    def learn_chunk(self, corpora: Corpora, number: int, chunk: EncodedCorpus) -> None:
        """Remember the hashes of pairs of a corpus."""
        assert chunk.hashes is not None
        self.count += len(chunk)
        if reading := readings(corpora)[number]:
            languages, both = reading
            sources, targets = chunk.hashes
            self.builder.add(sources, targets, languages, both=both)

    def encoded(self, corpus: TrainingCorpus, start: Initialization) -> None:
        """Write the index, in the first process, unless the run has it."""
        run, corpora = start.run.path, corpus.corpora
        if not start.workers.leads or text_of_index(run) == corpora.digest:
            return
        # Chunks that an earlier process has encoded have no hashes.
        if self.count < len(corpus.stored.pairs):
            self.builder, self.count = SeenSentencesBuilder(), 0
            for number, chunk in corpus.encode_again():
                self.learn_chunk(corpora, number, chunk)
        complete = inherit(run, self.configuration.training.other_runs)
        self.builder.write(run, corpora.digest, complete=complete)
        self.builder = SeenSentencesBuilder()  # the hashes take memory


def readings(corpora: Corpora) -> list[tuple[Languages, bool] | None]:
    """Return the direction of each corpus, and whether it is read in the other direction, too.

    None for the second reading of a file, whose sentences are those of the first one.
    """
    directions = corpora.directions or [(None, None)] * len(corpora.train)
    names = corpora.names or range(len(directions))
    by_name: dict[object, list[Languages]] = {}
    for name, direction in zip(names, directions, strict=True):
        by_name.setdefault(name, []).append(direction)
    results: list[tuple[Languages, bool] | None] = []
    for name, direction in zip(names, directions, strict=True):
        first, both = by_name[name][0], direction != direction[::-1] and direction[::-1] in by_name[name]
        results.append(None if both and direction != first else (direction, both))
    return results
