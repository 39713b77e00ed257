"""The preparation of running text for the training of a language model."""

from __future__ import annotations

import json
from itertools import chain

import torch

from bitext.pair import Pair
from translucid.data.filtering import Skipped
from translucid.data.readers.corpus import sources_of
from translucid.data.readers.texts import keep_texts
from translucid.data.stores.store import EncodedTexts, StoredTexts, TextStore
from translucid.data.stream import stream_of
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.evaluation.language import TextScores, directions, mean_scores, score_texts
from translucid.ground.console import Console, progress_bar
from translucid.models.language.model import LanguageModel
from translucid.models.language_options import LanguageShape
from translucid.models.protocol import Model
from translucid.runs.configuration import Configuration
from translucid.runs.corpus_files import Corpora
from translucid.training.dataset import (
    VALIDATION,
    Initialization,
    TrainingData,
    learn_vocabulary,
    report_held_out,
    sha256,
)
from translucid.training.stream_epochs import StreamEpochs
from translucid.training.validation import Validation, Validator
from translucid.training.workers import Workers

DIRECTIONS = ("forwards", "backwards")
TEXT = "the training text"
"""The name of its fingerprint in a checkpoint."""


class RunningTextDataset:
    """The corpora of a language model."""

    def __init__(self, configuration: Configuration, corpora: Corpora) -> None:
        """Store the arguments; nothing is read yet."""
        self.configuration, self.corpora = configuration, corpora
        assert isinstance(configuration.model, LanguageShape)
        self.backwards, self.directions = configuration.model.backwards, configuration.model.directions

    def learn(self, console: Console) -> Tokenizer:
        """Learn the vocabulary of the texts that are not too long."""
        report_held_out(self.corpora, "texts", console)
        texts = keep_texts(chain.from_iterable(self.corpora.train), Skipped("text"))
        pairs = (Pair("", text.source) for text in texts)  # on the target side, as a language model generates text
        # The tag is for translators that use this vocabulary for their sources.
        tokenizer, self.configuration = learn_vocabulary(pairs, self.configuration, console, tagged=True)
        return tokenizer

    def training_data(self, start: Initialization) -> TrainingData:
        """Encode the texts as a stream in rows."""
        options = self.configuration.training
        identity = sha256(json.dumps((self.corpora.digest, start.tokenizer.fingerprint, self.backwards)))
        if start.checkpoint_fingerprints is not None:
            start.run.refuse_changes(start.checkpoint_fingerprints, {TEXT: identity})
        store = TextStore(start.run.texts_folder)
        stored = start.stored(lambda: self._encoded(start, store, identity), lambda: store.open(identity))
        rows = max(1, options.batch_tokens // options.window // self.directions)
        stream = stream_of(self.directions)(stored.texts, rows, options.window)
        epochs = StreamEpochs(stream, seed=options.seed, workers=start.workers)
        valid = sources_of(self.corpora.valid)
        encoded = EncodedTexts.encode(valid, start.tokenizer, backwards=self.backwards)
        validator = StreamValidator(encoded, start.tokenizer, window=options.window)
        return TrainingData(
            epochs, validator, {TEXT: identity}, stored.skipped, {VALIDATION: sha256(json.dumps(valid))}
        )

    def _encoded(self, start: Initialization, store: TextStore, identity: str) -> StoredTexts | None:
        """Open the encoded text, or encode it if the store is missing, damaged, or made from other files."""
        corpora = self.corpora
        if stored := start.reopened(lambda: store.open(identity)):
            return stored
        bad_lines = corpora.writing_bad_lines(start.run.bad_lines_file)
        with bad_lines, progress_bar(start.console, "encoding the text", None) as advance:
            store.build(
                corpora.train,
                start.tokenizer,
                identity=identity,
                backwards=self.backwards,
                on_texts=advance,
                bad=corpora.bad,
            )
        return store.open(identity)


class StreamValidator(Validator):
    """Measures a language model on consecutive texts, without resetting its state between them."""

    def __init__(self, texts: EncodedTexts, tokenizer: Tokenizer, *, window: int) -> None:
        """Measure on texts, `window` tokens of a row at a time."""
        self.texts, self.tokenizer, self.window = texts, tokenizer, window

    def measure(self, model: Model, device: torch.device, workers: Workers | None = None) -> Validation:
        """Measure in the first process, because the state of a stream cannot be distributed."""
        workers = workers or Workers()
        assert isinstance(model, LanguageModel)
        size = self.texts.size
        scores = [TextScores(0, 0, 0, size)] * directions(model)
        if workers.leads:
            scores = score_texts(model, self.texts, self.window, device)
        for number, score in enumerate(scores):
            nats, correct, tokens = workers.sum(score.nats, score.correct, score.tokens)
            scores[number] = TextScores(nats, int(correct), int(tokens), size)
        mean = mean_scores(scores)
        measures = {"perplexity_word": mean.perplexity_word, "bits_per_character": mean.bits_per_character}
        if len(scores) == 2:
            for name, score in zip(DIRECTIONS, scores, strict=True):
                measures[f"perplexity_word_{name}"] = score.perplexity_word
        loss = mean.nats / max(mean.tokens, 1)
        return Validation(loss, mean.perplexity, mean.accuracy, measures, -mean.perplexity_word, [])

    def describe(self, score: float) -> str:
        """Return the score as perplexity, of which it is the negative."""
        return f"perplexity {-score:.2f} a word"
