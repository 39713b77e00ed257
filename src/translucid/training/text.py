"""The preparation of sentence pairs for the training of a translator."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import chain, islice

from translucid.data.filtering import Skipped, keep
from translucid.data.placeholders import masked_pairs
from translucid.data.readers.corpus import Pair
from translucid.data.sampler import by_temperature, mixed_in
from translucid.data.stores.encoded import EncodedCorpus, chunks
from translucid.data.stores.encoded_links import WordStarts
from translucid.data.stores.store import CorpusStore, StoredCorpus
from translucid.data.tokenizing.subword_dropout import VariedCorpus
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.decoding_options import DecodingOptions
from translucid.ground.console import Console, counting
from translucid.ground.errors import UserError
from translucid.runs.configuration import Configuration
from translucid.runs.corpus_files import Corpora
from translucid.runs.guided_alignment import taught_reading
from translucid.runs.settings import with_original_names
from translucid.terminology.lemmas import Lemmas
from translucid.terminology.mining import Lexicon
from translucid.terminology.teaching import with_terms
from translucid.training.dataset import (
    GENERAL_PAIRS,
    VALIDATION,
    Initialization,
    TrainingData,
    learn_vocabulary,
    report_held_out,
    sha256,
)
from translucid.training.epochs import PairEpochs
from translucid.training.guided_alignment import taught_head
from translucid.training.regression_guard import GuardedValidator
from translucid.training.soft_targets import with_soft_targets
from translucid.training.validation import TextValidator, Validator

TEXT = "the training text"
"""The name of its fingerprint in a checkpoint."""


class TextDataset:
    """The corpora of a translator."""

    def __init__(self, configuration: Configuration, corpora: Corpora) -> None:
        """Store the arguments; nothing is read yet.

        Raises:
            UserError: the model should learn terms, and there is no dictionary of the target language.
        """
        if configuration.training.guided_alignment:
            # The run keeps both: the layer is taught and read also if a later version has another default.
            reading = taught_reading(configuration)
            training = configuration.training.model_copy(update={"guided_layer": reading.layer})
            configuration = configuration.model_copy(update={"alignment": reading, "training": training})
        self.configuration, self.corpora = configuration, corpora
        self._lemmas = Lemmas(configuration.data.languages[1]) if configuration.data.terms else None

    def learn(self, console: Console) -> Tokenizer:
        """Learn the vocabulary of the pairs that pass the filter."""
        data, corpora = self.configuration.data, self.corpora
        report_held_out(corpora, "pairs", console)
        skipped = Skipped()
        pairs = corpora.kept(data.filter, skipped)
        first = list(islice(pairs, 1))
        if not first:
            file = next(iter(data.train), None)
            fix = "See `translucid data stats`."
            raise UserError(f"no sentence pairs are left ({skipped.summary()})", file=file, fix=fix)
        tokenizer, self.configuration = learn_vocabulary(
            chain(first, pairs), self.configuration, console, tagged=bool(data.synthetic), reserved=data.reserved
        )
        # Encode until a chunk contains a pair that is short enough: usually only the first chunk.
        for chunk in chunks(corpora.kept(data.filter)):
            if len(EncodedCorpus.encode(chunk, tokenizer, max_tokens=self.configuration.longest)):
                return tokenizer
        skipped.reasons["too long"] += skipped.kept
        skipped.kept = 0
        fix = "See `translucid data stats`, or raise data.max_tokens."
        raise UserError(f"no training pairs are left ({skipped.summary()})", fix=fix)

    def training_data(self, start: Initialization) -> TrainingData:
        """Encode the pairs in the run folder; with subword dropout, pairs in memory are encoded anew in each epoch."""
        data, options, longest = self.configuration.data, self.configuration.training, self.configuration.longest
        tokenizer, identity = start.tokenizer, self._identity(start.tokenizer)
        starts = self._word_starts(tokenizer)
        store = CorpusStore(start.run.corpus_folder, starts)
        stored = start.stored(lambda: self._encoded(start, store, identity), lambda: store.open(identity))
        if stored.pairs.links and not len(stored.pairs.links.words):
            what = "no training pair has word links between words that the tokenizer separates"
            raise UserError(what, fix="Set training.guided_alignment=0, or give links with --train-alignments.")
        pairs: EncodedCorpus | VariedCorpus = stored.pairs
        if options.soft_targets:
            pairs = with_soft_targets(stored.pairs, stored.fingerprint, start, options)
        sizes = stored.sizes
        if data.subword_dropout:
            texts = [list(keep(corpus, data.filter, Skipped())) for corpus in self._train]
            sizes = list(map(len, texts))
            pairs = VariedCorpus(list(chain(*texts)), tokenizer, data.subword_dropout, options.seed, starts)
        shares, count = self._mixture(sizes)
        epochs = PairEpochs(
            pairs,
            sizes,
            shares=shares,
            count=count,
            max_tokens=longest,
            batch_tokens=options.batch_tokens,
            seed=options.seed,
            workers=start.workers,
        )
        validator: Validator = self._validator(self.corpora.valid, start)
        assert isinstance(validator, TextValidator)
        validation: list[object] = [*self.corpora.valid, options.validate_sentences]
        # The default options are left out, as in the checkpoints of runs that were saved without any.
        if validator.decoding != DecodingOptions(beam=1):
            validation.append(validator.decoding.model_dump(mode="json"))
        validated_on = {VALIDATION: sha256(json.dumps(validation))}
        if self.corpora.general:
            general = self._validator(self.corpora.general, start)
            validator = GuardedValidator(validator, general, options.max_regression)
            validated_on |= {GENERAL_PAIRS: sha256(json.dumps(self.corpora.general))}
            validated_on |= with_original_names({"training.max_regression": str(options.max_regression)})
        return TrainingData(epochs, validator, {TEXT: stored.fingerprint}, stored.skipped, validated_on)

    def _validator(self, pairs: Sequence[Pair], start: Initialization) -> TextValidator:
        """Return a validator for pairs, and say how many of them are too long for the loss.

        Raises:
            UserError: all are too long.
        """
        data, options, longest = self.configuration.data, self.configuration.training, self.configuration.longest
        validator = TextValidator(
            self._masked(pairs),
            start.tokenizer,
            decoding=self.configuration.decoding,
            max_tokens=longest,
            batch_tokens=options.batch_tokens,
            sentences=options.validate_sentences,
            language=data.languages[1],
            starts=self._word_starts(start.tokenizer),
            # General pairs have no links.
            taught=taught_head(self.configuration) if pairs is self.corpora.valid else None,
        )
        files = data.valid if pairs is self.corpora.valid else data.valid_general
        file = next(iter(files), "the held-out part")
        report_too_long("pairs", len(pairs), len(validator.corpus), longest, file, start.console)
        return validator

    @property
    def _train(self) -> list[Iterable[Pair]]:
        """The training corpora, with masked placeholders and annotated terms if the configuration asks for them."""
        data, seed = self.configuration.data, self.configuration.training.seed
        corpora: list[Iterable[Pair]] = list(self.corpora.train)
        if data.placeholders:
            corpora = [masked_pairs(corpus, data.placeholders, seed) for corpus in corpora]
        if self._lemmas:
            corpora = [with_terms(corpus, self._lexicon, self._lemmas, data.terms, seed) for corpus in corpora]
        return corpora

    def _word_starts(self, tokenizer: Tokenizer) -> WordStarts | None:
        """Return the pieces that begin words, if guided alignment needs the words of pairs."""
        return WordStarts.of(tokenizer) if self.configuration.training.guided_alignment else None

    @cached_property
    def _lexicon(self) -> Lexicon:
        return Lexicon.learn(self.corpora.kept(self.configuration.data.filter))

    def _masked(self, pairs: Sequence[Pair]) -> Sequence[Pair]:
        """Return validation pairs with masked placeholders, if the model translates with them."""
        if not self.configuration.data.placeholders:
            return pairs
        return list(masked_pairs(pairs, 0, self.configuration.training.seed))

    def _mixture(self, sizes: Sequence[int]) -> tuple[Sequence[float] | None, int | None]:
        """Return the share of each corpus in an epoch and the number of pairs in an epoch, or None for the defaults."""
        data = self.configuration.data
        mixed = list(data.mix.values())
        shares = data.weights
        if data.temperature != 1:
            shares = by_temperature(sizes[: len(sizes) - len(mixed)], data.temperature)
        if not mixed:
            return shares, None
        return mixed_in(sizes, shares, mixed)

    def _encoded(self, start: Initialization, store: CorpusStore, identity: str) -> StoredCorpus | None:
        """Open the encoded corpus, or encode it if the store is missing, damaged, or made from other files.

        If there is a checkpoint, the corpus is encoded beside the old one, and replaces it if the text is the same.
        """
        corpora, beside = self.corpora, CorpusStore(start.run.next_corpus_folder, store.starts)
        if stored := start.reopened(lambda: store.open(identity)):
            return stored
        target = store if start.before is None else beside
        if self._lemmas:
            with start.console.status("learning which words translate each other"):
                _ = self._lexicon  # computed and cached
        try:
            with corpora.writing_bad_lines(start.run.bad_lines_file):
                with counting(start.console, "encoding the corpus", None) as advance:
                    target.build(
                        self._train,
                        start.tokenizer,
                        self.configuration.data.filter,
                        identity=identity,
                        max_tokens=self.configuration.longest,
                        on_pairs=advance,
                        bad=corpora.bad,
                    )
                if start.before is not None:
                    built = beside.open(identity)
                    assert built is not None
                    fingerprint = built.fingerprint
                    del built  # Windows cannot move a file that is mapped into memory
                    start.run.refuse_changes(start.before, {TEXT: fingerprint})
                    beside.replace(store)
        except UserError:
            beside.remove()
            raise
        return store.open(identity)

    def _identity(self, tokenizer: Tokenizer) -> str:
        """Return a fingerprint of everything that the encoded corpus depends on."""
        data, seed = self.configuration.data, self.configuration.training.seed
        wanted, longest = data.filter.model_dump(), self.configuration.longest
        identity = [self.corpora.digest, tokenizer.fingerprint, wanted, longest]
        if data.placeholders:
            identity += [data.placeholders, seed]
        if data.terms:
            identity += ["terms", data.terms, seed]
        if self.configuration.training.guided_alignment:
            identity.append("word links")
        return sha256(json.dumps(identity))


def report_too_long(unit: str, total: int, fit: int, longest: int, file: str, console: Console) -> None:
    """Say how many of the validation pairs or captions are too long for the loss.

    Raises:
        UserError: all are too long.
    """
    limit = f"more than {longest} tokens (data.max_tokens, or what the model takes)"
    if not fit:
        fix = "Give shorter ones with --valid, or raise data.max_tokens."
        raise UserError(f"all {total:,} validation {unit} have {limit}", file=file, fix=fix)
    if fit < total:
        what = f"{total - fit:,} of {total:,} validation {unit} have {limit}: the loss leaves them out"
        console.print(f"{file}: {what}", soft_wrap=True)
