"""The preparation of sentence pairs for the training of a translator."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, cycle, islice
from pathlib import Path

from bitext.languages import Languages
from bitext.pair import Pair
from translucid.data.document_context import ContextOptions
from translucid.data.filtering import Filter, Skipped, keep, reservoir_sample
from translucid.data.placeholders import masked_pairs
from translucid.data.sampler import by_temperature, directions_by_temperature, mixed_in, quotas
from translucid.data.stores.context import VariedContext
from translucid.data.stores.encoded import EncodedCorpus, WordStarts, chunks
from translucid.data.stores.store import CorpusStore, StoredCorpus
from translucid.data.tokenizing.subword_dropout import VariedCorpus
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.decoding_options import DecodingOptions
from translucid.engines.target_pieces import copy_target_pieces, save_target_pieces
from translucid.ground.console import Console, progress_bar
from translucid.ground.errors import UserError
from translucid.runs.configuration import Configuration
from translucid.runs.corpus_files import Corpora
from translucid.runs.guided_alignment import guided_reading
from translucid.runs.run_folder import RunFolder
from translucid.runs.settings import with_original_names
from translucid.terminology.marking import with_terms
from translucid.terminology.matching import Lemmas
from translucid.terminology.mining import Lexicon
from translucid.training.data_loader import PairDataLoader
from translucid.training.dataset import (
    GENERAL_PAIRS,
    VALIDATION,
    Initialization,
    TrainingData,
    learn_vocabulary,
    report_held_out,
    sha256,
)
from translucid.training.distillation import with_soft_targets
from translucid.training.guided_alignment import guided_head
from translucid.training.validation import (
    DirectionsValidator,
    GuardedValidator,
    TextValidator,
    Validator,
    validation_options,
)

TEXT = "the training text"
"""The name of its fingerprint in a checkpoint."""
VOCABULARY_TEMPERATURE = 5.0
"""T for the text from which the vocabulary is learned (Arivazhagan et al. 2019, section 4): rare languages need pieces
of their own more than frequent ones."""


class TextDataset:
    """The corpora of a translator."""

    def __init__(self, configuration: Configuration, corpora: Corpora) -> None:
        """Store the arguments; nothing is read yet.

        Raises:
            UserError: the model should learn terms, and there is no dictionary of the target language.
        """
        if configuration.training.guided_alignment:
            # Store both in the run, so that the same layer is trained and read if a later version has another default.
            reading = guided_reading(configuration)
            training = configuration.training.model_copy(update={"guided_layer": reading.layer})
            configuration = configuration.model_copy(update={"alignment": reading, "training": training})
        self.configuration, self.corpora = configuration, corpora
        self._lemmas = Lemmas(configuration.data.languages[1]) if configuration.data.terms else None

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
        if data.is_multilingual:
            texts = balanced(corpora, data.filter, data.tokenizer.sample, self.configuration.training.seed)
        tokenizer, self.configuration = learn_vocabulary(
            texts, self.configuration, console, tagged=bool(data.synthetic), reserved=data.reserved
        )
        # Encode until a chunk contains a pair that is short enough: usually only the first chunk.
        for chunk in chunks(corpora.filtered(data.filter)):
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
        starts, documents = self._word_starts(tokenizer), bool(data.context)
        store = CorpusStore(start.run.corpus_folder, starts, documents=documents)
        stored = start.stored(lambda: self._encoded(start, store, identity), lambda: store.open(identity))
        if stored.pairs.links and not len(stored.pairs.links.words):
            what = "no training pair has word links between words that the tokenizer separates"
            raise UserError(what, fix="Set training.guided_alignment=0, or give links with `train_alignments`.")
        pairs: EncodedCorpus | VariedCorpus = stored.pairs
        if data.tokenizer.languages and self.corpora.directions and start.workers.leads:
            initial_run = RunFolder(Path(options.begin_from)) if options.begin_from else None
            if initial_run:
                copy_target_pieces(initial_run, start.run)
            targets = [direction[1] for direction in self.corpora.directions]
            save_target_pieces(start.run, stored.pairs, stored.sizes, targets, tokenizer, initial_run)
        if options.soft_targets:
            pairs = with_soft_targets(stored.pairs, stored.fingerprint, start, options)
        sizes = stored.sizes
        if data.subword_dropout:
            texts = [list(keep(corpus, data.filter, Skipped())) for corpus in self._train]
            sizes = list(map(len, texts))
            all_pairs = list(chain(*texts))
            pairs = VariedCorpus(all_pairs, tokenizer, data.subword_dropout, options.seed, starts, documents=documents)
        shares, count = self._mixture(sizes)
        context = ContextOptions.of(data.context, tokenizer, longest)
        epochs = PairDataLoader(
            _with_context(pairs, sizes, context) if context else pairs,
            sizes,
            shares=shares,
            count=count,
            max_tokens=longest,
            batch_tokens=options.batch_tokens,
            seed=options.seed,
            workers=start.workers,
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
        validator = TextValidator(
            self._masked(pairs),
            start.tokenizer.between(*direction, data.tokenizer),
            decoding=self.configuration.decoding,
            max_tokens=longest,
            batch_tokens=options.batch_tokens,
            sentences=options.validate_sentences,
            language=direction[1],
            starts=self._word_starts(start.tokenizer),
            context=ContextOptions.of(data.context, start.tokenizer, longest),
            # General pairs have no links.
            guided_head=None if general else guided_head(self.configuration),
        )
        files = data.valid_general if general else data.valid
        file = next(iter(files), "the held-out part")
        report_too_long("pairs", len(pairs), len(validator.corpus), longest, file, start.console)
        return validator

    @property
    def _train(self) -> list[Iterable[Pair]]:
        """The training corpora, with masked placeholders and annotated terms if the configuration asks for them."""
        data, seed = self.configuration.data, self.configuration.training.seed
        corpora: list[Iterable[Pair]] = list(self.corpora.train)
        if data.placeholders:
            corpora = [masked_pairs(corpus, data.placeholders, seed, data.protected) for corpus in corpora]
        if self._lemmas:
            corpora = [with_terms(corpus, self._lexicon, self._lemmas, data.terms, seed) for corpus in corpora]
        return corpora

    def _tokenizers(self, tokenizer: Tokenizer) -> list[Tokenizer]:
        """Return the tokenizer of each training corpus, with the piece of its language."""
        data = self.configuration.data
        if not data.is_multilingual:
            return [tokenizer] * len(self.corpora.train)
        return [tokenizer.between(*direction, data.tokenizer) for direction in self.corpora.directions]

    def _word_starts(self, tokenizer: Tokenizer) -> WordStarts | None:
        """Return the pieces that begin words, if guided alignment needs the words of pairs."""
        return WordStarts.of(tokenizer) if self.configuration.training.guided_alignment else None

    @cached_property
    def _lexicon(self) -> Lexicon:
        return Lexicon.learn(self.corpora.filtered(self.configuration.data.filter))

    def _masked(self, pairs: Sequence[Pair]) -> Sequence[Pair]:
        """Return validation pairs with masked placeholders, if the model translates with them."""
        if not self.configuration.data.placeholders:
            return pairs
        configuration = self.configuration
        return list(masked_pairs(pairs, 0, configuration.training.seed, configuration.data.protected))

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
        next_store = CorpusStore(start.run.next_corpus_folder, store.starts, documents=store.documents)
        if stored := start.reopened(lambda: store.open(identity)):
            return stored
        target = store if start.checkpoint_fingerprints is None else next_store
        if self._lemmas:
            with start.console.status("learning which words translate each other", is_long=True):
                _ = self._lexicon  # computed and cached
        try:
            with corpora.writing_bad_lines(start.run.bad_lines_file):
                with progress_bar(start.console, "encoding the corpus", None) as advance:
                    target.build(
                        self._train,
                        self._tokenizers(start.tokenizer),
                        self.configuration.data.filter,
                        identity=identity,
                        max_tokens=self.configuration.longest,
                        on_pairs=advance,
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

    def _identity(self, tokenizer: Tokenizer) -> str:
        """Return a fingerprint of everything that the encoded corpus depends on."""
        data, seed = self.configuration.data, self.configuration.training.seed
        filter_settings, longest = data.filter.model_dump(), self.configuration.longest
        identity = [self.corpora.digest, tokenizer.fingerprint, filter_settings, longest]
        if data.placeholders:
            identity += [data.placeholders, seed]
        if data.terms:
            identity += ["terms", data.terms, seed]
        if self.configuration.training.guided_alignment:
            identity.append("word links")
        if data.context:
            identity.append("documents")
        return sha256(json.dumps(identity))


def _with_context(pairs: EncodedCorpus | VariedCorpus, sizes: Sequence[int], options: ContextOptions) -> VariedContext:
    """Return pairs that follow the sentences before them in their documents.

    Raises:
        UserError: no pair has a sentence before it.
    """
    context = VariedContext(pairs, sizes, options)
    if not context.has_context():
        what = "data.context: no training pair has a sentence before it in its document"
        raise UserError(what, fix="See in docs/context.md how a corpus says where documents begin.")
    return context


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
