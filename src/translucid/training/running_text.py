"""Running text made ready to be learned from by a language model."""

from __future__ import annotations

import json
from contextlib import nullcontext
from itertools import chain

import torch

from translucid.data.filtering import Skipped
from translucid.data.readers.corpus import Pair
from translucid.data.readers.texts import keep_texts
from translucid.data.stores.text_store import EncodedTexts, StoredTexts, TextStore
from translucid.data.stream import stream_of
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.evaluation.language import TextScores, directions, measured, together
from translucid.ground.console import Console, counting
from translucid.ground.errors import UserError
from translucid.models.language.model import LanguageModel
from translucid.models.language_options import LanguageShape
from translucid.models.protocol import Model
from translucid.runs.configuration import Configuration
from translucid.runs.corpus_files import Corpora
from translucid.training.dataset import VALIDATION, Initialization, TrainingData, learn_vocabulary, sha256
from translucid.training.stream_epochs import StreamEpochs
from translucid.training.text import counted
from translucid.training.validation import Validation, Validator
from translucid.training.workers import Workers

WAYS = ("forwards", "backwards")
TEXT = "the training text"
"""What its fingerprint is called in a checkpoint."""


class RunningTextDataset:
    """The corpora of a language model."""

    def __init__(self, configuration: Configuration, corpora: Corpora) -> None:
        """Nothing is read yet."""
        self.configuration, self.corpora = configuration, corpora
        assert isinstance(configuration.model, LanguageShape)
        self.backwards, self.directions = configuration.model.backwards, configuration.model.directions

    def learn(self, console: Console) -> Tokenizer:
        """See `Dataset`."""
        corpora, skipped = self.corpora, Skipped("text")
        if corpora.held_out:
            console.print(f"no validation files: {len(corpora.valid):,} training texts are held out")
        with counting(console, "learning the vocabulary", None) as advance:
            texts = (Pair("", text.source) for text in keep_texts(chain.from_iterable(corpora.train), skipped))
            # With a tag, in case it becomes the vocabulary of a translator's sources.
            every = counted(texts, advance)
            tokenizer, self.configuration = learn_vocabulary(every, self.configuration, console, tagged=True)
        return tokenizer

    def lessons(self, at: Initialization) -> TrainingData:
        """See `Dataset`."""
        options = self.configuration.training
        identity = sha256(json.dumps((self.corpora.digest, at.tokenizer.fingerprint, self.backwards)))
        if at.before is not None:
            at.run.refuse_changes(at.before, {TEXT: identity})
        store = TextStore(at.run.texts_folder)
        stored = at.stored(lambda: self._encoded(at, store, identity), lambda: store.open(identity))
        rows = max(1, options.batch_tokens // options.window // self.directions)
        stream = stream_of(self.directions)(stored.texts, rows, options.window)
        epochs = StreamEpochs(stream, seed=options.seed, workers=at.workers)
        valid = [text.source for text in self.corpora.valid]
        encoded = EncodedTexts.encode(valid, at.tokenizer, backwards=self.backwards)
        validator = StreamValidator(encoded, at.tokenizer, window=options.window)
        return TrainingData(
            epochs, validator, {TEXT: identity}, stored.skipped, {VALIDATION: sha256(json.dumps(valid))}
        )

    def _encoded(self, at: Initialization, store: TextStore, identity: str) -> StoredTexts | None:
        """Open the encoded text; what is not there, damaged, or of other files is encoded anew."""
        corpora = self.corpora
        try:
            if stored := store.open(identity):
                return stored
        except UserError as error:
            at.console.print(f"{error}", soft_wrap=True)
        listed = corpora.bad.written_to(at.run.bad_lines_file) if corpora.bad else nullcontext()
        with listed, counting(at.console, "encoding the text", None) as advance:
            store.build(
                corpora.train,
                at.tokenizer,
                identity=identity,
                backwards=self.backwards,
                on_texts=advance,
                bad=corpora.bad,
            )
        return store.open(identity)


class StreamValidator(Validator):
    """Measures a language model on texts read one after the other, its state carried on."""

    def __init__(self, texts: EncodedTexts, tokenizer: Tokenizer, *, window: int) -> None:
        """`window`: tokens of a row that are read at a time."""
        self.texts, self.tokenizer, self.window = texts, tokenizer, window

    def measure(self, model: Model, device: torch.device, workers: Workers | None = None) -> Validation:
        """See `Validator`; the first process measures, as a state can't be shared out."""
        workers = workers or Workers()
        assert isinstance(model, LanguageModel)
        size, nothing = self.texts.size, [TextScores(0, 0, 0, self.texts.size)] * directions(model)
        ways = measured(model, self.texts, self.window, device) if workers.leads else nothing
        sums = [workers.sum(one.nats, one.correct, one.tokens) for one in ways]
        ways = [TextScores(nats, int(correct), int(tokens), size) for nats, correct, tokens in sums]
        found = together(ways)
        measures = {"perplexity_word": found.perplexity_word, "bits_per_character": found.bits_per_character}
        if len(ways) == 2:
            measures |= {f"perplexity_word_{name}": one.perplexity_word for name, one in zip(WAYS, ways, strict=True)}
        mean = found.nats / max(found.tokens, 1)
        return Validation(mean, found.perplexity, found.accuracy, measures, -found.perplexity_word, [])

    def told(self, score: float) -> str:
        """See `Validator`."""
        return f"perplexity {-score:.2f} a word"
