"""The preparation of sentence pairs for the training of a translator."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice

from bitext.languages import Languages
from bitext.pair import Pair
from translucid.data.document_context import ContextOptions
from translucid.data.filtering import Skipped, keep
from translucid.data.sampler import by_temperature, directions_by_temperature, mixed_in
from translucid.data.stores.encoded import EncodedCorpus, encode_chunks
from translucid.data.stores.store import CorpusStore, StoredCorpus
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.decoding_options import DecodingOptions
from translucid.ground.console import Console, progress_bar
from translucid.ground.errors import UserError
from translucid.ground.iteration import batched
from translucid.runs.configuration import Configuration
from translucid.runs.corpus_files import Corpora
from translucid.runs.settings import with_original_names
from translucid.training.data_loader import PairDataLoader
from translucid.training.dataset import (
    GENERAL_PAIRS,
    VALIDATION,
    Initialization,
    TrainingCorpus,
    TrainingData,
    learn_vocabulary,
    report_held_out,
    sha256,
)
from translucid.training.extras.guided_alignment import guided_head, word_starts
from translucid.training.steps import dataset_steps
from translucid.training.validation import (
    DirectionsValidator,
    GuardedValidator,
    TextValidator,
    Validator,
    validation_options,
)

TEXT = "the training text"
"""The name of its fingerprint in a checkpoint."""


class TextDataset:
    """The corpora of a translator."""

    def __init__(self, configuration: Configuration, corpora: Corpora) -> None:
        """Store the arguments; nothing is read yet.

        Raises:
            UserError: the model should learn terms, and there is no dictionary of the target language.
        """
        self.steps, self.corpora = dataset_steps(configuration), corpora
        for step in self.steps:
            configuration = step.configured(configuration)
        self.configuration = configuration

    def learn(self, console: Console) -> Tokenizer:
        """Learn the vocabulary of the pairs that pass the filter."""
        data, corpora = self.configuration.data, self.corpora
        report_held_out(corpora, "pairs", console)
        skipped = Skipped()
        pairs = corpora.filtered(data.filter, skipped)
        first_pair = list(islice(pairs, 1))
        if not first_pair:
            file = next(iter(data.train), None)
            fix = "See `translucid data stats`."
            raise UserError(f"no sentence pairs are left ({skipped.summary()})", file=file, fix=fix)
        texts: Iterable[Pair] = chain(first_pair, pairs)
        for step in self.steps:
            texts = step.vocabulary_texts(texts, corpora)
        tokenizer, self.configuration = learn_vocabulary(
            texts, self.configuration, console, tagged=bool(data.synthetic), reserved=data.reserved
        )
        # Encode until there is a pair that is short enough: usually the first one.
        for few_pairs in batched(corpora.filtered(data.filter), 100):
            if len(EncodedCorpus.encode(few_pairs, tokenizer, max_tokens=self.configuration.longest)):
                return tokenizer
        skipped.reasons["too long"] += skipped.kept
        skipped.kept = 0
        fix = "See `translucid data stats`, or raise data.max_tokens."
        raise UserError(f"no training pairs are left ({skipped.summary()})", fix=fix)

    def training_data(self, start: Initialization) -> TrainingData:
        """Encode the pairs in the run folder, and let the steps change them."""
        options, identity = self.configuration.training, self._identity(start.tokenizer)
        starts, documents = word_starts(self.configuration, start.tokenizer), bool(self.configuration.data.context)
        hashes = any(step.hashes for step in self.steps)
        store = CorpusStore(start.run.corpus_folder, starts, documents=documents, hashes=hashes)
        stored = start.stored(lambda: self._encoded(start, store, identity), lambda: store.open(identity))
        corpus = TrainingCorpus(
            stored.pairs, stored.sizes, stored, self.corpora, self._texts, partial(self._hashed_chunks, start)
        )
        for step in self.steps:
            step.encoded(corpus, start)
        shares, count = self._mixture(corpus.sizes)
        epochs = PairDataLoader(
            corpus.pairs,
            corpus.sizes,
            shares=shares,
            count=count,
            max_tokens=self.configuration.longest,
            batch_tokens=options.batch_tokens,
            seed=options.seed,
            workers=start.workers,
            packed=options.packed,
        )
        return TrainingData(
            epochs, self._guarded_validator(start), {TEXT: stored.fingerprint}, stored.skipped, self._validated_on()
        )

    def _guarded_validator(self, start: Initialization) -> Validator:
        """Return the validator, with a guard of each direction of general text if there is any."""
        validator = self._unguarded_validator(start)
        if not self.corpora.general:
            return validator
        general = {}
        for direction, pairs in self.corpora.general.items():
            general[direction] = self._validator(pairs, start, direction, general=True)
        return GuardedValidator(validator, general, self.configuration.training.max_regression)

    def _unguarded_validator(self, start: Initialization) -> TextValidator | DirectionsValidator:
        """Return a validator of all validation pairs."""
        data = self.configuration.data
        if not data.is_multilingual:
            return self._validator(self.corpora.valid, start, data.languages)
        validators = {}
        for direction, pairs in self.corpora.valid_by_direction.items():
            validators[direction] = self._validator(pairs, start, direction)
        return DirectionsValidator(validators, self.configuration.training.select_by)

    def _validated_on(self) -> dict[str, str]:
        """Return fingerprints, by name, of the validation data."""
        options = self.configuration.training
        validation: list[object] = [*self.corpora.valid, options.validate_sentences, "spread evenly"]
        # The default options are left out, as in the checkpoints of runs that were saved without any.
        decoding = validation_options(self.configuration.decoding)
        if decoding != DecodingOptions(beam=1):
            validation.append(decoding.model_dump(mode="json"))
        if self.configuration.data.is_multilingual:
            validation += [list(self.corpora.valid_by_direction), options.select_by]
        validated_on = {VALIDATION: sha256(json.dumps(validation))}
        if self.corpora.general:
            general: list[object] = list(chain.from_iterable(self.corpora.general.values()))
            if len(self.corpora.general) > 1:
                general += [[direction, len(pairs)] for direction, pairs in self.corpora.general.items()]
            validated_on |= {GENERAL_PAIRS: sha256(json.dumps(general))}
            validated_on |= with_original_names({"training.max_regression": str(options.max_regression)})
        return validated_on

    def _validator(
        self, pairs: Sequence[Pair], start: Initialization, direction: Languages, *, general: bool = False
    ) -> TextValidator:
        """Return a validator for pairs of one direction, and say how many of them are too long for the loss.

        Raises:
            UserError: all are too long.
        """
        data, options, longest = self.configuration.data, self.configuration.training, self.configuration.longest
        texts: Sequence[Pair] = pairs
        for step in self.steps:
            texts = step.validation_texts(texts)
        starts = word_starts(self.configuration, start.tokenizer) if options.guided_alignment else None
        validator = TextValidator(
            texts,
            start.tokenizer.between(*direction, data.tokenizer),
            decoding=self.configuration.decoding,
            max_tokens=longest,
            batch_tokens=options.batch_tokens,
            sentences=options.validate_sentences,
            language=direction[1],
            starts=starts,
            context=ContextOptions.of(data.context, start.tokenizer, longest),
            # General pairs have no links.
            guided_head=None if general else guided_head(self.configuration),
        )
        files = data.valid_general if general else data.valid
        file = next(iter(files), "the held-out part")
        report_too_long("pairs", len(pairs), len(validator.corpus), longest, file, start.console)
        return validator

    def _texts(self) -> list[Iterable[Pair]]:
        """Return the training corpora as the model reads them."""
        texts: list[Iterable[Pair]] = list(self.corpora.train)
        for step in self.steps:
            texts = [step.texts(pairs, self.corpora, number) for number, pairs in enumerate(texts)]
        return texts

    def _tokenizers(self, tokenizer: Tokenizer) -> list[Tokenizer]:
        """Return the tokenizer of each training corpus, with the piece of its language."""
        data = self.configuration.data
        if not data.is_multilingual:
            return [tokenizer] * len(self.corpora.train)
        return [tokenizer.between(*direction, data.tokenizer) for direction in self.corpora.directions]

    def _mixture(self, sizes: Sequence[int]) -> tuple[Sequence[float] | None, int | None]:
        """Return the share of each corpus in an epoch and the number of pairs in an epoch, or None for the defaults."""
        data = self.configuration.data
        mixed_shares = data.mixed_shares
        shares = data.corpus_weights
        if data.temperature != 1:
            other_sizes = sizes[: len(sizes) - len(mixed_shares)]
            shares = by_temperature(other_sizes, data.temperature)
            if data.is_multilingual:
                directions = self.corpora.directions[: len(other_sizes)]
                shares = directions_by_temperature(other_sizes, directions, data.temperature)
        if not mixed_shares:
            return shares, None
        return mixed_in(sizes, shares, mixed_shares)

    def _encoded(self, start: Initialization, store: CorpusStore, identity: str) -> StoredCorpus | None:
        """Open the encoded corpus, or encode it if the store is missing, damaged, or made from other files.

        If there is a checkpoint, the new corpus replaces the old one only if the text is the same.
        """
        corpora = self.corpora
        next_store = CorpusStore(
            start.run.next_corpus_folder, store.starts, documents=store.documents, hashes=store.hashes
        )
        if stored := start.reopened(lambda: store.open(identity)):
            return stored
        target = store if start.checkpoint_fingerprints is None else next_store
        for step in self.steps:
            step.learn(corpora, start.console)
        try:
            with corpora.writing_bad_lines(start.run.bad_lines_file):
                with progress_bar(start.console, "encoding the corpus", None) as advance:
                    target.build(
                        self._texts(),
                        self._tokenizers(start.tokenizer),
                        self.configuration.data.filter,
                        identity=identity,
                        max_tokens=self.configuration.longest,
                        on_pairs=advance,
                        on_chunk=self._learn_chunk,
                        bad=corpora.bad,
                    )
                if start.checkpoint_fingerprints is not None:
                    encoded = next_store.open(identity)
                    assert encoded is not None
                    fingerprint = encoded.fingerprint
                    del encoded  # Windows cannot move a file that is mapped into memory
                    start.run.refuse_changes(start.checkpoint_fingerprints, {TEXT: fingerprint})
                    next_store.replace(store)
        except UserError:
            next_store.remove()
            raise
        return store.open(identity)

    def _learn_chunk(self, number: int, chunk: EncodedCorpus) -> None:
        for step in self.steps:
            step.learn_chunk(self.corpora, number, chunk)

    def _hashed_chunks(self, start: Initialization) -> Iterator[tuple[int, EncodedCorpus]]:
        """Encode the corpora again."""
        data, longest = self.configuration.data, self.configuration.longest
        with progress_bar(start.console, "hashing the corpus", None) as advance:
            for number, (text, tokenizer) in enumerate(
                zip(self._texts(), self._tokenizers(start.tokenizer), strict=True)
            ):
                pairs = keep(text, data.filter, Skipped())
                for count, chunk in encode_chunks(pairs, tokenizer, longest, hashes=True):
                    advance(count)
                    yield number, chunk

    def _identity(self, tokenizer: Tokenizer) -> str:
        """Return a fingerprint of everything that the encoded corpus depends on."""
        filter_settings, longest = self.configuration.data.filter.model_dump(), self.configuration.longest
        identity = [self.corpora.digest, tokenizer.fingerprint, filter_settings, longest]
        for step in self.steps:
            identity += step.identity()
        return sha256(json.dumps(identity))


def report_too_long(unit: str, total: int, fit: int, longest: int, file: str, console: Console) -> None:
    """Say how many of the validation pairs are too long for the loss.

    Raises:
        UserError: all are too long.
    """
    limit = f"more than {longest} tokens (data.max_tokens, or what the model takes)"
    if not fit:
        fix = "Give shorter ones with `valid`, or raise data.max_tokens."
        raise UserError(f"all {total:,} validation {unit} have {limit}", file=file, fix=fix)
    if fit < total:
        what = f"{total - fit:,} of {total:,} validation {unit} have {limit}: the loss leaves them out"
        console.print(f"{file}: {what}", soft_wrap=True)
