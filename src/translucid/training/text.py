"""Sentence pairs made ready to be learned from."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from functools import cached_property
from itertools import chain, islice

from translucid.data.filtering import Skipped, keep
from translucid.data.placeholders import masked_pairs
from translucid.data.readers.corpus import Pair
from translucid.data.sampler import by_temperature, mixed_in
from translucid.data.stores.encoded import EncodedCorpus, chunks
from translucid.data.stores.store import CorpusStore, StoredCorpus
from translucid.data.tokenizing.subword_dropout import VariedCorpus
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.console import Console, counting
from translucid.ground.errors import UserError
from translucid.runs.configuration import Configuration
from translucid.runs.corpus_files import Corpora
from translucid.runs.renamed_settings import with_original_names
from translucid.terminology.lemmas import Lemmas
from translucid.terminology.mining import Lexicon
from translucid.terminology.teaching import with_terms
from translucid.training.dataset import (
    GENERAL_PAIRS,
    VALIDATION,
    Initialization,
    TrainingData,
    learn_vocabulary,
    sha256,
)
from translucid.training.epochs import PairEpochs
from translucid.training.regression_guard import GuardedValidator
from translucid.training.validation import TextValidator, Validator

TEXT = "the training text"
"""What its fingerprint is called in a checkpoint."""


class TextDataset:
    """The corpora of a translator."""

    def __init__(self, configuration: Configuration, corpora: Corpora) -> None:
        """Nothing is read yet.

        Raises:
            UserError: terms are to be learned, and there is no dictionary of the target language.
        """
        self.configuration, self.corpora = configuration, corpora
        self._lemmas = Lemmas(configuration.data.languages[1]) if configuration.data.terms else None

    def learn(self, console: Console) -> Tokenizer:
        """See `Dataset`."""
        data, corpora = self.configuration.data, self.corpora
        if corpora.held_out:
            console.print(f"no validation files: {len(corpora.valid):,} training pairs are held out")
        skipped = Skipped()
        with counting(console, "learning the vocabulary", None) as advance:
            pairs = corpora.kept(data.filter, skipped)
            if not (first := list(islice(pairs, 1))):
                where = data.train[0] if data.train else None
                fix = "See `translucid data stats`."
                raise UserError(f"no sentence pairs are left ({skipped.summary()})", file=where, fix=fix)
            every = chain(first, counted(pairs, advance))
            tokenizer, self.configuration = learn_vocabulary(
                every, self.configuration, console, tagged=bool(data.synthetic), reserved=data.reserved
            )
        kept = (
            EncodedCorpus.encode(part, tokenizer, max_tokens=self.configuration.longest)
            for part in chunks(corpora.kept(data.filter))
        )
        if not any(map(len, kept)):
            skipped.reasons["too long"] += skipped.kept
            skipped.kept = 0
            fix = "See `translucid data stats`, or raise data.max_tokens."
            raise UserError(f"no training pairs are left ({skipped.summary()})", fix=fix)
        return tokenizer

    def lessons(self, at: Initialization) -> TrainingData:
        """See `Dataset`."""
        data, options, longest = self.configuration.data, self.configuration.training, self.configuration.longest
        tokenizer, identity = at.tokenizer, self._identity(at.tokenizer)
        store = CorpusStore(at.run.corpus_folder)
        stored = at.stored(lambda: self._encoded(at, store, identity), lambda: store.open(identity))
        pairs: EncodedCorpus | VariedCorpus = stored.pairs
        sizes = stored.sizes
        if data.subword_dropout:
            texts = [list(keep(corpus, data.filter, Skipped())) for corpus in self._train]
            sizes = [len(text) for text in texts]
            pairs = VariedCorpus(list(chain(*texts)), tokenizer, data.subword_dropout, options.seed)
        shares, count = self._mixture(sizes)
        epochs = PairEpochs(
            pairs,
            sizes,
            shares=shares,
            count=count,
            max_tokens=longest,
            batch_tokens=options.batch_tokens,
            seed=options.seed,
            workers=at.workers,
        )
        validator: Validator = self._validator(self.corpora.valid, at)
        validated_on = {VALIDATION: sha256(json.dumps([*self.corpora.valid, options.validate_sentences]))}
        if self.corpora.general:
            assert isinstance(validator, TextValidator)
            general = self._validator(self.corpora.general, at)
            validator = GuardedValidator(validator, general, options.max_regression)
            validated_on |= {GENERAL_PAIRS: sha256(json.dumps(self.corpora.general))}
            validated_on |= with_original_names({"training.max_regression": str(options.max_regression)})
        return TrainingData(epochs, validator, {TEXT: stored.fingerprint}, stored.skipped, validated_on)

    def _validator(self, pairs: Sequence[Pair], at: Initialization) -> TextValidator:
        """Return what measures a model on pairs, and say how many of them the loss leaves out.

        Raises:
            UserError: they are all too long.
        """
        data, options, longest = self.configuration.data, self.configuration.training, self.configuration.longest
        validator = TextValidator(
            self._masked(pairs),
            at.tokenizer,
            max_tokens=longest,
            batch_tokens=options.batch_tokens,
            sentences=options.validate_sentences,
            language=data.languages[1],
        )
        file = next(iter(data.valid if pairs is self.corpora.valid else data.valid_general), "the held-out part")
        tell_of_too_long("pairs", len(pairs), len(validator.corpus), longest, file, at.console)
        return validator

    @property
    def _train(self) -> list[Iterable[Pair]]:
        """The training corpora, with pieces in the place of placeholders and terms pointed out, if that is wanted."""
        share, seed = self.configuration.data.placeholders, self.configuration.training.seed
        every = [masked_pairs(corpus, share, seed) if share else corpus for corpus in self.corpora.train]
        if not self._lemmas:
            return every
        given = self._lexicon, self._lemmas, self.configuration.data.terms, seed
        return [with_terms(corpus, *given) for corpus in every]

    @cached_property
    def _lexicon(self) -> Lexicon:
        return Lexicon.learn(self.corpora.kept(self.configuration.data.filter))

    def _masked(self, pairs: Sequence[Pair]) -> Sequence[Pair]:
        """Return pairs to validate with as the model is to translate them."""
        seed = self.configuration.training.seed
        return list(masked_pairs(pairs, 0, seed)) if self.configuration.data.placeholders else pairs

    def _mixture(self, sizes: Sequence[int]) -> tuple[Sequence[float] | None, int | None]:
        """Return what part of an epoch each corpus is, and how many pairs an epoch has, if not as they are."""
        data, further = self.configuration.data, [*self.configuration.data.mix.values()]
        shares = data.weights
        if data.temperature != 1:
            shares = by_temperature(sizes[: len(sizes) - len(further)], data.temperature)
        return mixed_in(sizes, shares, further) if further else (shares, None)

    def _encoded(self, at: Initialization, store: CorpusStore, identity: str) -> StoredCorpus | None:
        """Open the encoded corpus; one that is not there, damaged, or of other files is encoded anew.

        If there is a checkpoint, a corpus that does not match it is encoded beside the one that is there, and takes its
        place only if it is the same text.
        """
        corpora, beside = self.corpora, CorpusStore(at.run.next_corpus_folder)
        try:
            if stored := store.open(identity):
                return stored
        except UserError as error:
            at.console.print(f"{error}", soft_wrap=True)
        place = store if at.before is None else beside
        if self._lemmas:
            with at.console.status("learning which words translate each other"):
                _ = self._lexicon
        try:
            with corpora.bad.written_to(at.run.bad_lines_file) if corpora.bad else nullcontext():
                with counting(at.console, "encoding the corpus", None) as advance:
                    place.build(
                        self._train,
                        at.tokenizer,
                        self.configuration.data.filter,
                        identity=identity,
                        max_tokens=self.configuration.longest,
                        on_pairs=advance,
                        bad=corpora.bad,
                    )
                if at.before is not None:
                    built = beside.open(identity)
                    assert built is not None
                    fingerprint = built.fingerprint
                    del built  # Windows moves no file that is mapped into memory
                    at.run.refuse_changes(at.before, {TEXT: fingerprint})
                    beside.replace(store)
        except UserError:
            beside.remove()
            raise
        return store.open(identity)

    def _identity(self, tokenizer: Tokenizer) -> str:
        wanted = self.configuration.data.filter.model_dump()
        identity = [self.corpora.digest, tokenizer.fingerprint, wanted, self.configuration.longest]
        if self.configuration.data.placeholders:
            identity += [self.configuration.data.placeholders, self.configuration.training.seed]
        if terms := self.configuration.data.terms:
            identity += ["terms", terms, self.configuration.training.seed]
        return sha256(json.dumps(identity))


def tell_of_too_long(unit: str, given: int, fit: int, longest: int, file: str, console: Console) -> None:
    """Say how many of the validation pairs, or captions, are too long for the loss.

    Raises:
        UserError: all are.
    """
    limit = f"more than {longest} tokens (data.max_tokens, or what the model takes)"
    if not fit:
        fix = "Give shorter ones with --valid, or raise data.max_tokens."
        raise UserError(f"all {given:,} validation {unit} have {limit}", file=file, fix=fix)
    if fit < given:
        what = f"{given - fit:,} of {given:,} validation {unit} have {limit}: the loss leaves them out"
        console.print(f"{file}: {what}", soft_wrap=True)


def counted(pairs: Iterable[Pair], advance: Callable[[int], None]) -> Iterator[Pair]:
    """Yield pairs, and tell of each thousand."""
    for number, pair in enumerate(pairs, 1):
        if number % 1000 == 0:
            advance(1000)
        yield pair
