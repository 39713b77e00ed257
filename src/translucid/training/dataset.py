"""What a training learns from, as the trainer meets it; `text.py` and `images.py` make it ready."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from translucid.data.filtering import Skipped
from translucid.data.readers.corpus import Pair
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.console import Console
from translucid.models.protocol import Model
from translucid.runs.configuration import Configuration
from translucid.runs.corpus_files import Corpora
from translucid.runs.run_folder import RunFolder
from translucid.training.epochs import Epochs
from translucid.training.self_critical import Reward
from translucid.training.validation import Validator
from translucid.training.workers import Workers

Stored = TypeVar("Stored")
VALIDATION, GENERAL_PAIRS = "the validation text", "the general validation text (data.valid_general)"
"""What their fingerprints are called in a checkpoint."""


@dataclass(frozen=True)
class TrainingData:
    """What is ready to be learned from."""

    epochs: Epochs
    validator: Validator
    fingerprints: dict[str, str]
    """By name: what must be the same when the training goes on."""
    skipped: Skipped
    validated_on: Mapping[str, str]
    """Fingerprints, by name, of what it is validated on: scores are compared as long as these are the same."""
    reward: Reward | None = None
    """What captions of the model's own are worth, if it is to learn from them."""


@dataclass(frozen=True)
class Initialization:
    """What there is when a training begins or goes on."""

    run: RunFolder
    tokenizer: Tokenizer
    model: Model
    """On its device; a frozen network of it is asked what it makes of images."""
    workers: Workers
    console: Console
    """Where progress is shown."""
    before: Mapping[str, str] | None
    """Fingerprints of what a checkpoint was made with, if there is one."""

    def stored(self, make: Callable[[], Stored | None], opened: Callable[[], Stored | None]) -> Stored:
        """Return what is kept in the run folder: the first process sees that it is there, then the others open it.

        Args:
            make: opens what there is, or makes it.
            opened: opens it.
        """
        stored = make() if self.workers.leads else None
        self.workers.wait()
        if stored is None:
            stored = opened()
        assert stored is not None
        return stored


class Dataset(Protocol):
    """A corpus that is being made ready."""

    configuration: Configuration
    """As it was given, with what only the corpus knows, such as its labels and the size of its vocabulary."""
    corpora: Corpora
    """Of text, or of names of images and captions."""

    def learn(self, console: Console) -> Tokenizer:
        """Learn the vocabulary of a new run.

        Raises:
            UserError: the corpus leaves nothing to train on.
        """

    def lessons(self, at: Initialization) -> TrainingData:
        """Write what the training reads into the run folder, as far as it is not there, and open it.

        Raises:
            UserError: the corpus can't be read, or is another than that of the checkpoint.
        """


def learn_vocabulary(
    pairs: Iterable[Pair],
    configuration: Configuration,
    console: Console,
    *,
    tagged: bool = False,
    reserved: Sequence[str] = (),
) -> tuple[Tokenizer, Configuration]:
    """Learn a vocabulary; return it, and the configuration with the size that it has.

    Args:
        pairs: the text; see `Tokenizer.learn`, as for the others.
        configuration: says how.
        console: where it is said what the text has changed.
        tagged: whether the source vocabulary gets a tag.
        reserved: pieces for what is no word.

    Raises:
        UserError: see `Tokenizer.learn`.
    """
    notes: list[str] = []
    tokenizer = Tokenizer.learn(
        pairs,
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


def sha256(text: str) -> str:
    """Return the SHA-256 of a text."""
    return hashlib.sha256(text.encode()).hexdigest()
