"""A corpus as token ids in four flat arrays, in memory or memory-mapped, encoded chunk by chunk on all cores.

A corpus may have soft targets, the most probable tokens of teachers, and word links, the weights that attention should
have. Links are stored between words, because subword dropout cuts the words of a pair differently in each epoch. A
piece that begins with `▁` begins a word; the pieces before the first of them, such as a tag or a language, belong to no
word.
"""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, chain, compress, islice, product
from multiprocessing import get_context
from typing import NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray

from bitext.pair import Pair
from bitext.words import linked_words
from translucid.data.batching import Batch, LinkedPieces, padded_rows, shifted
from translucid.data.filtering import Skipped
from translucid.data.linked_pairs import LinkedPair
from translucid.data.readers.corpus import SyntheticPair, sources_of, targets_of
from translucid.data.seen_sentences import hashes_of
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.errors import UserError
from translucid.ground.iteration import batched
from translucid.ground.special import SPECIAL
from translucid.kernels import machine
from translucid.kernels.loss import SoftTargets


@dataclass(frozen=True, eq=False)
class StoredSoftTargets:
    """The soft targets of all target tokens, in the order of `EncodedCorpus.target_ids`."""

    tokens: NDArray[np.integer]
    """The tokens, the most probable one first, [tokens, K]."""
    probabilities: NDArray[np.float16]
    """Their probabilities, [tokens, K]."""

    def of(self, rows: NDArray[np.int64], offsets: NDArray[np.int64]) -> SoftTargets:
        """Return the soft targets of some pairs, at `Batch.positions`.

        Args:
            rows: the numbers of the pairs [B].
            offsets: the offset of each target sentence [pairs + 1].
        """
        spans = [np.arange(offsets[row], offsets[row + 1]) for row in rows]
        positions = np.concatenate(spans)
        probabilities = self.probabilities[positions].astype(np.float32)
        # Sixteen bits do not keep the sum of exactly 1.
        probabilities /= probabilities.sum(1, keepdims=True)
        return SoftTargets(torch.from_numpy(self.tokens[positions].astype(np.int64)), torch.from_numpy(probabilities))


class WordStarts(NamedTuple):
    """For each id of a vocabulary, whether its piece begins a word: [V] boolean."""

    source: NDArray[np.bool_]
    target: NDArray[np.bool_]

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> WordStarts:
        """Return the word starts of a tokenizer's vocabularies."""
        return cls(np.array(tokenizer.source_word_starts()), np.array(tokenizer.target_word_starts()))


@dataclass(frozen=True, eq=False)
class EncodedLinks:
    """The links of pair `i` are `words[offsets[i] : offsets[i + 1]]`: source word, target word, source word and so on.

    Words are counted from 0.
    """

    words: NDArray[np.uint16]
    """The links of all pairs, one after the other."""
    offsets: NDArray[np.int64]
    """The offset of each pair, [pairs + 1]."""
    starts: WordStarts

    @classmethod
    def of(
        cls,
        pairs: Sequence[Pair],
        source_words: Sequence[int],
        target_words: Sequence[int],
        starts: WordStarts,
        tokenizer: Tokenizer,
    ) -> Self:
        """Store the links of pairs.

        A word in which the tokenizer reads several, as it does at no-break spaces, gives its links to all of them. If
        the tokenizer separates yet other words, the pair loses its links.

        Args:
            pairs: the pairs, with links or without.
            source_words: the number of words of each source, as the tokenizer separates them.
            target_words: the same for each target.
            starts: the pieces that begin words.
            tokenizer: the tokenizer.
        """
        flat: list[int] = []
        lengths = [0]
        for pair, *counts in zip(pairs, source_words, target_words, strict=True):
            start = len(flat)
            if isinstance(pair, LinkedPair):
                for link in _between_tokenizer_words(pair, counts, tokenizer):
                    flat += link
            lengths.append(len(flat) - start)
        return cls(np.array(flat, np.uint16), np.cumsum(lengths, dtype=np.int64), starts)

    @classmethod
    def joined(cls, parts: Sequence[EncodedLinks], starts: WordStarts) -> Self:
        """Return the links of several parts of a corpus."""
        words = np.concatenate([np.empty(0, np.uint16), *(part.words for part in parts)])
        lengths = [np.diff(part.offsets) for part in parts]
        return cls(words, np.cumsum(np.concatenate([np.zeros(1, np.int64), *lengths])), starts)

    def pieces(self, rows: NDArray[np.int64], source: NDArray[np.int64], target: NDArray[np.int64]) -> LinkedPieces:
        """Return the links between the pieces of a batch.

        The weights of a target piece are equal over all pieces of the source words that its word is linked to, and sum
        to 1 (Garg et al. 2019, arXiv 1909.02074, section 4.2).

        Args:
            rows: the numbers of its pairs [B].
            source: its source ids [B, S], right-padded.
            target: its target ids [B, T], right-padded.
        """
        source_words, target_words = word_indices(source, self.starts.source), word_indices(target, self.starts.target)
        linked = np.zeros((len(rows), target_words.max() + 2, source_words.max() + 2), bool)
        for row, pair in enumerate(rows):
            words = self.words[self.offsets[pair] : self.offsets[pair + 1]]
            linked[row, words[1::2], words[::2]] = True
        # The last row and the last column, at index -1, are those of pieces that belong to no word.
        batch = np.arange(len(rows))[:, None, None]
        weights = linked[batch, target_words[:, :, None], source_words[:, None, :]]  # [B, T, S]
        positions = np.flatnonzero(weights)
        shares = 1 / np.maximum(weights.sum(-1, dtype=np.float32), 1)  # [B, T]
        position_weights = shares.reshape(-1)[positions // source.shape[1]]
        return LinkedPieces(torch.from_numpy(positions), torch.from_numpy(position_weights))


def _between_tokenizer_words(pair: LinkedPair, counts: list[int], tokenizer: Tokenizer) -> list[tuple[int, int]]:
    """Return the links of a pair between the words that the tokenizer reads, given their numbers; none if it can't."""
    if [len(linked_words(text)) for text in pair] == counts:
        return sorted(pair.links)
    sources, targets = tokenizer.words_read(pair.source), tokenizer.words_read(pair.target, of_target=True)
    if [sum(sources), sum(targets)] != counts:
        return []
    source_starts, target_starts = list(accumulate(sources, initial=0)), list(accumulate(targets, initial=0))
    links: list[tuple[int, int]] = []
    for source, target in sorted(pair.links):
        source_range = range(source_starts[source], source_starts[source + 1])
        links += product(source_range, range(target_starts[target], target_starts[target + 1]))
    return links


def word_counts(sentences: Sequence[Sequence[int]], starts: NDArray[np.bool_]) -> list[int]:
    """Return the number of words of each sentence of ids."""
    return [int(starts[sentence].sum()) for sentence in map(np.asarray, sentences)]


def word_indices(ids: NDArray[np.int64], starts: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return for each piece [B, n] the index of its word; -1 for pieces that belong to none."""
    words = np.cumsum(starts[ids], 1) - 1
    words[(ids == SPECIAL.pad) | (ids == SPECIAL.end)] = -1
    return words


CHUNK = 50_000
"""The number of pairs that are encoded at a time, which takes about a second. Meanwhile, they are lists of Python
integers, which take ten times the memory."""
SERIAL_CHUNKS = 3
"""The number of chunks that this process encodes in the time in which other processes start."""


@dataclass(frozen=True, eq=False)
class EncodedCorpus:
    """Sentence pairs as ids. Sentence `i` of a side is `ids[offsets[i] : offsets[i + 1]]`, end token included."""

    source_ids: NDArray[np.integer]
    """The ids of all source sentences, one after the other."""
    source_offsets: NDArray[np.int64]
    """The offset of each source sentence, [pairs + 1]."""
    target_ids: NDArray[np.integer]
    """The ids of all target sentences, one after the other."""
    target_offsets: NDArray[np.int64]
    """The offset of each target sentence, [pairs + 1]."""
    links: EncodedLinks | None = None
    """The word links, for guided alignment."""
    documents: NDArray[np.int64] | None = None
    """The number of the document of each pair within its corpus, -1 for none, [pairs]; only with document context."""
    soft_targets: StoredSoftTargets | None = None
    """The most probable tokens of teachers, for distillation."""
    hashes: NDArray[np.uint64] | None = None
    """Hashes of the sources and the targets, [2, pairs], for the seen-sentence index; only of new chunks."""

    @classmethod
    def encode(
        cls,
        pairs: Iterable[Pair],
        tokenizer: Tokenizer,
        *,
        max_tokens: int,
        skipped: Skipped | None = None,
        starts: WordStarts | None = None,
        documents: bool = False,
        hashes: bool = False,
    ) -> Self:
        """Encode sentence pairs, put control tokens and the tag before sources, and append the end token to both sides.

        Args:
            pairs: the text.
            tokenizer: the tokenizer of both sides.
            max_tokens: a pair with more tokens on either side, end token included, is skipped.
            skipped: counts the skipped pairs as "too long".
            starts: the pieces of the tokenizer that begin words, if the word links of pairs are also stored.
            documents: whether the numbers of the documents of pairs are also stored.
            hashes: whether the sentences are hashed, as they were read.
        """
        sources, targets = _Side(), _Side()
        chunk_hashes = [np.empty((2, 0), np.uint64)]
        links: list[EncodedLinks] = []
        chunk_documents = [np.empty(0, np.int64)]
        for chunk in chunks(pairs):
            texts = sources_of(chunk), targets_of(chunk)
            source_ids = tokenizer.encode_source(texts[0])
            for i, pair in enumerate(chunk):
                if pair.control:
                    source_ids[i].insert(len(tokenizer.source_opening), tokenizer.source_id(pair.control))
            for i in synthetic(chunk):
                assert tokenizer.tag is not None  # `train` refuses other tokenizers
                source_ids[i].insert(0, tokenizer.tag)
            target_ids = tokenizer.encode_target(texts[1])
            lengths = zip(map(len, source_ids), map(len, target_ids), strict=True)
            fits = [source < max_tokens and target < max_tokens for source, target in lengths]
            if not all(fits):
                if skipped is not None:
                    skipped.add("too long", fits.count(False))
                chunk, source_ids = list(compress(chunk, fits)), list(compress(source_ids, fits))
                target_ids = list(compress(target_ids, fits))
            sources.append(source_ids)
            targets.append(target_ids)
            if starts:
                counts = word_counts(source_ids, starts.source), word_counts(target_ids, starts.target)
                links.append(EncodedLinks.of(chunk, *counts, starts, tokenizer))
            if documents:
                chunk_documents.append(document_numbers(chunk))
            if hashes:
                chunk_hashes.append(_original_hashes(chunk, texts))
        return cls(
            *sources.arrays(),
            *targets.arrays(),
            EncodedLinks.joined(links, starts) if starts else None,
            np.concatenate(chunk_documents) if documents else None,
            hashes=np.concatenate(chunk_hashes, axis=1) if hashes else None,
        )

    def __len__(self) -> int:
        return len(self.source_offsets) - 1

    def lengths_of(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the lengths of the source and the target sentences `rows` [n], end tokens included."""
        source = self.source_offsets[rows + 1] - self.source_offsets[rows]
        target = self.target_offsets[rows + 1] - self.target_offsets[rows]
        return source, target

    def target_tokens(self, rows: NDArray[np.int64]) -> int:
        """Return the number of tokens of the target sentences `rows` [n], end tokens included."""
        return int((self.target_offsets[rows + 1] - self.target_offsets[rows]).sum())

    def batch(self, rows: NDArray[np.integer] | Sequence[int]) -> Batch:
        """Put the sentence pairs `rows` [B] into one batch."""
        pair_rows = np.asarray(rows, np.int64)
        starts, ends = self.source_offsets[pair_rows], self.source_offsets[pair_rows + 1]
        source, _ = padded_rows(self.source_ids, starts, ends)
        targets_in, labels = shifted(self.target_ids, self.target_offsets, pair_rows)
        links = self.links.pieces(pair_rows, source, labels.numpy()) if self.links else None
        soft = self.soft_targets.of(pair_rows, self.target_offsets) if self.soft_targets else None
        return Batch(torch.from_numpy(source), targets_in, labels, links=links, soft_targets=soft)

    def source(self, i: int) -> NDArray[np.integer]:
        """Return the ids of source sentence `i`, end token included."""
        return self.source_ids[self.source_offsets[i] : self.source_offsets[i + 1]]

    def target(self, i: int) -> NDArray[np.integer]:
        """Return the ids of target sentence `i`, end token included."""
        return self.target_ids[self.target_offsets[i] : self.target_offsets[i + 1]]


class _Side:
    """The chunks of one language, before they are concatenated."""

    def __init__(self) -> None:
        self.ids = [np.empty(0, np.int32)]
        self.lengths = [np.zeros(1, np.int64)]

    def append(self, sentences: list[list[int]]) -> None:
        lengths = np.fromiter(map(len, sentences), np.int64, len(sentences))
        self.lengths.append(lengths + 1)
        ids = np.fromiter(chain.from_iterable(sentences), np.int32, int(lengths.sum()))
        self.ids.append(np.insert(ids, np.cumsum(lengths), SPECIAL.end))

    def arrays(self) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        return np.concatenate(self.ids), np.cumsum(np.concatenate(self.lengths))


def _original_hashes(pairs: Sequence[Pair], texts: tuple[list[str], list[str]]) -> NDArray[np.uint64]:
    """Return the hashes of the sources and the targets of pairs as they were read, [2, pairs].

    `texts`: the sources and the targets of these pairs, and maybe of others.
    """
    originals = [pair.original or pair for pair in pairs]
    if len(texts[0]) != len(pairs) or originals != pairs:
        texts = sources_of(originals), targets_of(originals)
    return np.stack([hashes_of(side) for side in texts])


def synthetic(pairs: Iterable[Pair]) -> list[int]:
    """Return the indices of the pairs whose source was written by a model."""
    return [i for i, pair in enumerate(pairs) if isinstance(pair, SyntheticPair)]


def document_numbers(pairs: Sequence[Pair]) -> NDArray[np.int64]:
    """Return the number of the document of each pair, -1 for pairs without one."""
    numbers = np.full(len(pairs), -1, np.int64)
    for i, pair in enumerate(pairs):
        if pair.document is not None:
            numbers[i] = pair.document
    return numbers


def chunks(pairs: Iterable[Pair]) -> Iterator[list[Pair]]:
    """Cut pairs into lists of `CHUNK`; the last one may be shorter."""
    return batched(pairs, CHUNK)


def encode_chunks(
    pairs: Iterable[Pair],
    tokenizer: Tokenizer,
    max_tokens: int,
    processes: int | None = None,
    starts: WordStarts | None = None,
    documents: bool = False,
    hashes: bool = False,
) -> Iterator[tuple[int, EncodedCorpus]]:
    """Yield for each chunk, in order, its number of pairs, and the encoded pairs that are not too long.

    The arguments are those of `EncodedCorpus.encode`, and the number of processes, by default that of cores. Few chunks
    are encoded by this process alone. The result does not depend on it.

    Raises:
        UserError: a process was killed.
    """
    remaining = chunks(pairs)
    encode = partial(
        EncodedCorpus.encode,
        tokenizer=tokenizer,
        max_tokens=max_tokens,
        starts=starts,
        documents=documents,
        hashes=hashes,
    )
    first_chunks = list(islice(remaining, SERIAL_CHUNKS + 1))
    processes = processes or machine.processes()
    if len(first_chunks) <= SERIAL_CHUNKS or processes == 1:
        for chunk in chain(first_chunks, remaining):
            yield len(chunk), encode(chunk)
        return
    # Spawned, not forked: PyTorch's threads do not survive a fork.
    pool = ProcessPoolExecutor(processes, get_context("spawn"), _start_worker, (encode, tokenizer))
    pending: deque[tuple[int, Future[EncodedCorpus]]] = deque()
    try:
        for chunk in chain(first_chunks, remaining):
            pending.append((len(chunk), pool.submit(_encode, chunk)))
            # Two chunks for each process keep all of them busy; more would only take memory.
            if len(pending) > 2 * processes:
                yield _next_result(pending)
        while pending:
            yield _next_result(pending)
    except BrokenProcessPool as error:
        fix = "Usually, the memory was full: close other programs, and continue with `resume=True`."
        raise UserError("a process that encodes the corpus was killed", fix=fix) from error
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _next_result(pending: deque[tuple[int, Future[EncodedCorpus]]]) -> tuple[int, EncodedCorpus]:
    count, future = pending.popleft()
    return count, future.result()


_encode_chunk: Callable[[list[Pair]], EncodedCorpus]
"""The work of a process of the pool; its arguments are sent once and not with each chunk."""


def _start_worker(encode: Callable[[list[Pair]], EncodedCorpus], tokenizer: Tokenizer) -> None:
    """Prepare a process of the pool; both arguments have the same tokenizer."""
    global _encode_chunk
    # Ctrl-C reaches all processes of the terminal; the parent process handles it and ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    tokenizer.threads = 1
    _encode_chunk = encode


def _encode(pairs: list[Pair]) -> EncodedCorpus:
    return _encode_chunk(pairs)
