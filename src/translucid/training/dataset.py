"""The training data in the form that the trainer needs, and the interfaces of datasets and of their steps."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from bitext.pair import Pair
from translucid.data.batching import BatchedCorpus, VariedBatches
from translucid.data.filtering import Skipped
from translucid.data.stores.encoded import EncodedCorpus
from translucid.data.stores.store import StoredCorpus
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.console import Console, progress_bar
from translucid.ground.errors import UserError
from translucid.models.protocol import Model
from translucid.runs.configuration import Configuration
from translucid.runs.corpus_files import Corpora
from translucid.runs.run_folder import RunFolder
from translucid.training.data_loader import DataLoader
from translucid.training.extras.training_step import TrainingStep
from translucid.training.hardware.ddp import Workers
from translucid.training.validation import Validator

Stored = TypeVar("Stored")
VALIDATION, GENERAL_PAIRS = "the validation text", "the general validation text (data.valid_general)"
"""The names of their fingerprints in a checkpoint."""


@dataclass(frozen=True)
class TrainingData:
    """The prepared data of a training."""

    epochs: DataLoader
    validator: Validator
    fingerprints: dict[str, str]
    """Fingerprints, by name, of the data that must not change when the training is resumed."""
    skipped: Skipped
    validated_on: Mapping[str, str]
    """Fingerprints, by name, of the validation data: validation scores are compared only if these are the same."""
    steps: Sequence[TrainingStep] = ()
    """The steps of this kind of model, after those of `training/steps.py`."""


@dataclass(frozen=True)
class Initialization:
    """The state of a run when its training begins or is resumed."""

    run: RunFolder
    tokenizer: Tokenizer
    model: Model
    """The model on its device; parts of it that are frozen may compute what is stored."""
    workers: Workers
    console: Console
    """The console for progress."""
    checkpoint_fingerprints: Mapping[str, str] | None
    """The fingerprints in the checkpoint, if there is one."""

    def reopened(self, reopen: Callable[[], Stored | None]) -> Stored | None:
        """Return a store if there is one that can be used; show the error if it is damaged."""
        try:
            return reopen()
        except UserError as error:
            self.console.print(f"{error}", soft_wrap=True)
            return None

    def stored(self, make: Callable[[], Stored | None], reopen: Callable[[], Stored | None]) -> Stored:
        """Return a store of the run folder. The first process creates it if necessary, then the others open it.

        Args:
            make: opens or creates the store.
            reopen: opens the store.
        """
        stored = make() if self.workers.leads else None
        self.workers.wait()
        if stored is None:
            stored = reopen()
        assert stored is not None
        return stored


class Dataset(Protocol):
    """A corpus, and its preparation for training."""

    configuration: Configuration
    """The user's configuration, completed with facts about the corpus, such as its labels and the vocabulary size."""
    corpora: Corpora
    """The corpora in files."""

    def learn(self, console: Console) -> Tokenizer:
        """Learn the vocabulary of a new run.

        Raises:
            UserError: no training data is left after filtering.
        """

    def training_data(self, start: Initialization) -> TrainingData:
        """Prepare the corpus in the run folder, unless that has been done before, and open it.

        Raises:
            UserError: the corpus can't be read, or differs from that of the checkpoint.
        """


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
    encode_again: Callable[[], Iterator[tuple[int, EncodedCorpus]]]
    """Yields the number of each corpus with a chunk of it and the hashes of its sentences."""


class DatasetStep:
    """An extra of a translator's corpus; each method does nothing unless an extra overrides it."""

    hashes = False
    """Whether the chunks of the corpus have hashes of their sentences."""

    def __init__(self, configuration: Configuration) -> None:
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

    def texts(self, pairs: Iterable[Pair], corpora: Corpora, number: int) -> Iterable[Pair]:
        """Return the training pairs of a corpus, `corpora.train[number]`, as the model reads them."""
        return pairs

    def validation_texts(self, pairs: Sequence[Pair]) -> Sequence[Pair]:
        """Return validation pairs as the model reads them."""
        return pairs

    def learn_chunk(self, corpora: Corpora, number: int, chunk: EncodedCorpus) -> None:
        """Learn from newly encoded pairs of a corpus."""

    def encoded(self, corpus: TrainingCorpus, start: Initialization) -> None:
        """Change the encoded corpus.

        Raises:
            UserError: it lacks what the step needs.
        """


def learn_vocabulary(
    pairs: Iterable[Pair],
    configuration: Configuration,
    console: Console,
    *,
    tagged: bool = False,
    reserved: Sequence[str] = (),
) -> tuple[Tokenizer, Configuration]:
    """Learn a vocabulary; return the tokenizer, and the configuration with the size of its vocabulary.

    Args:
        pairs: the text.
        configuration: the settings of the tokenizer.
        console: the console for notes, for instance on a vocabulary that is smaller than requested.
        tagged: whether the source vocabulary has a piece for the tag of synthetic pairs.
        reserved: pieces that are no words, such as placeholders.

    Raises:
        UserError: the text is too small for the requested vocabulary.
    """
    notes: list[str] = []
    with progress_bar(console, "learning the vocabulary", None) as advance:
        tokenizer = Tokenizer.learn(
            _counted(pairs, advance),
            configuration.data.tokenizer,
            seed=configuration.training.seed,
            tagged=tagged,
            reserved=reserved,
            flexible=not configuration.vocabulary_given,
            tell=notes.append,
        )
        for note in notes:
            console.print(note, soft_wrap=True)
    return tokenizer, configuration.with_vocabulary(max(tokenizer.source_size, tokenizer.target_size))


def _counted(pairs: Iterable[Pair], advance: Callable[[int], None]) -> Iterator[Pair]:
    """Yield pairs, and report every thousand to `advance`."""
    for number, pair in enumerate(pairs, 1):
        if number % 1000 == 0:
            advance(1000)
        yield pair


def report_held_out(corpora: Corpora, unit: str, console: Console) -> None:
    """Say how many training pairs or other rows are held out, if there are no validation files."""
    if corpora.held_out:
        console.print(f"no validation files: {len(corpora.valid):,} training {unit} are held out")


def sha256(text: str) -> str:
    """Return the SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()
