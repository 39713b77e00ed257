"""Encoded corpora on disk, of any size: memory-mapped arrays with checksums, resumed after a crash.

The folder of a corpus of pairs contains the token ids of each side, one sentence after the other (`source.ids`,
`target.ids`; two bytes each, or four for a large vocabulary), the offset of each sentence (`source.offsets`,
`target.offsets`; eight bytes each), and the `index.jsonl` of `data.stores.chunked`; further files contain word links
(`links.words`, `links.offsets`) and the numbers of documents (`documents`), if they are needed. That of running text
contains one flat array: the texts follow each other, each between a start token and an end token.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bitext.pair import Pair
from translucid.data.filtering import Filter, Skipped, keep
from translucid.data.readers.corpus import BadLines, sources_of
from translucid.data.readers.texts import keep_texts
from translucid.data.stores.chunked import ChunkedFiles, Chunks, checksum
from translucid.data.stores.encoded import EncodedCorpus, EncodedLinks, WordStarts, encode_chunks
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.atomic import replace_folder
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL

FILES = "source.ids", "source.offsets", "target.ids", "target.offsets"
LINK_FILES = "links.words", "links.offsets"
"""Further files, if the word links of pairs are stored."""
DOCUMENTS = "documents"
"""A further file, if the documents of pairs are stored."""
TEXT_FILES = ("texts.ids",)
LINK_TYPES: list[np.dtype[Any]] = [np.dtype(np.uint16), np.dtype(np.int64)]
TEXT_CHUNK = 10_000
"""The number of texts that are encoded at a time, on all cores."""


@dataclass(frozen=True)
class StoredCorpus:
    """A complete corpus on disk."""

    pairs: EncodedCorpus
    """The memory-mapped ids: what is not in use takes no memory."""
    sizes: list[int]
    """The number of pairs from each corpus, in order."""
    fingerprint: str
    """A string that differs for other texts and other tokenizers."""
    skipped: Skipped
    """The counts of the pairs that were kept and skipped."""


class CorpusStore:
    """A folder with an encoded corpus, complete or not."""

    def __init__(
        self, folder: Path, starts: WordStarts | None = None, *, documents: bool = False, hashes: bool = False
    ) -> None:
        """Describe a folder, which need not exist; read and write nothing yet.

        Args:
            folder: the folder.
            starts: the pieces that begin words, if the store has the word links of the pairs.
            documents: whether the store has the documents of the pairs.
            hashes: whether new chunks have hashes of the sentences, which are not stored.
        """
        self.starts, self.documents, self.hashes = starts, documents, hashes
        names, types = [*FILES], []
        if starts:
            names += LINK_FILES
            types += LINK_TYPES
        if documents:
            names.append(DOCUMENTS)
            types.append(np.dtype(np.int64))
        self.files = ChunkedFiles(folder, names, lambda width: _types(width) + types)

    def open(self, identity: str) -> StoredCorpus | None:
        """Return the corpus, or None if the folder is incomplete or of another identity.

        Raises:
            UserError: a file is missing, or does not match its checksum.
        """
        opened = self.files.open(identity)
        if opened is None:
            return None
        (source, source_offsets, target, target_offsets, *extra_arrays), chunks, totals = opened
        links = EncodedLinks(extra_arrays[0], extra_arrays[1], self.starts) if self.starts else None
        documents = extra_arrays[-1] if self.documents else None
        pairs = EncodedCorpus(source, source_offsets, target, target_offsets, links, documents)
        skipped = Skipped(kept=totals["kept"], reasons=Counter(totals["reasons"]))
        fingerprint = f"{len(pairs)} pairs, crc32 {checksum(chunks)}"
        return StoredCorpus(pairs, totals["sizes"], fingerprint, skipped)

    def build(
        self,
        corpora: Sequence[Iterable[Pair]],
        tokenizers: Sequence[Tokenizer],
        pair_filter: Filter,
        *,
        identity: str,
        max_tokens: int,
        processes: int | None = None,
        on_pairs: Callable[[int], None] = lambda _: None,
        on_chunk: Callable[[int, EncodedCorpus], None] = lambda *_: None,
        bad: BadLines | None = None,
    ) -> None:
        """Encode corpora, one after the other; resume an earlier, incomplete attempt.

        Args:
            corpora: the text; to resume, it is read again from the beginning.
            tokenizers: the tokenizer of each corpus; they differ only in the pieces of languages.
            pair_filter: the filter for pairs.
            identity: the identity of the text, the tokenizers and the limits; chunks of another one are deleted.
            max_tokens: a pair with more tokens on either side, end token included, is skipped.
            processes: the number of processes; by default the number of cores.
            on_pairs: called with the number of pairs done since the last call.
            on_chunk: called with the number of a corpus and each new chunk of it.
            bad: counts the bad lines that are skipped while the corpora are read.

        Raises:
            UserError: the text can't be read, no pairs are left, or the disk is full.
        """
        chunks = self.files.begin(identity)
        largest_vocabulary = max(tokenizers[0].source_size, tokenizers[0].target_size)
        types = self.files.types(2 if largest_vocabulary <= 1 << 16 else 4)
        ends = _ends(chunks)
        sizes, skipped = [], Skipped()
        for number, (corpus, tokenizer) in enumerate(zip(corpora, tokenizers, strict=True)):
            read_count = size = 0
            for row in chunks:
                if row["corpus"] == number:
                    read_count += row["pairs"]
                    size += row["kept"]
            pairs = keep(corpus, pair_filter, skipped)
            for _ in islice(pairs, read_count):  # encoded already; reading them counts what the filter skips
                pass
            on_pairs(read_count)
            for count, chunk in encode_chunks(
                pairs, tokenizer, max_tokens, processes, self.starts, self.documents, self.hashes
            ):
                on_chunk(number, chunk)
                arrays = _with_offsets(chunk, ends, types)
                self.files.append(arrays, {"corpus": number, "pairs": count, "kept": len(chunk)})
                previous_ends = ends or [0] * len(arrays[::2])
                ends = [end + array.size for end, array in zip(previous_ends, arrays[::2], strict=True)]
                size += len(chunk)
                read_count += count
                on_pairs(count)
            sizes.append(size)
            if read_count > size:
                skipped.add("too long", read_count - size)
        if bad and bad.count:
            skipped.reasons["no pairs"] += bad.count
        if not sum(sizes):
            fix = "See `translucid data stats`, or raise data.max_tokens."
            raise UserError(f"no training pairs are left ({skipped.summary()})", fix=fix)
        self.files.end({"sizes": sizes, "kept": skipped.kept, "reasons": dict(skipped.reasons)})

    def replace(self, other: CorpusStore) -> None:
        """Take the place of another store; neither may be open.

        Raises:
            UserError: another program has the other store open; Windows does not move open files.
        """
        try:
            replace_folder(self.files.folder, other.files.folder)
        except OSError as error:
            fix = "Close the program that has it open, and give the same command again."
            raise UserError(f"can't be replaced ({error.strerror})", file=other.files.folder, fix=fix) from error

    def remove(self) -> None:
        """Delete the folder, if it exists."""
        self.files.remove()


def _types(width: int) -> list[np.dtype[Any]]:
    """Return the types of `FILES`, for ids of two or four bytes."""
    ids, offsets = np.dtype(np.uint16 if width == 2 else np.int32), np.dtype(np.int64)
    return [ids, offsets, ids, offsets]


def _ends(chunks: Chunks) -> list[int] | None:
    """Return the numbers of source ids, of target ids, of words of links and of documents; None without chunks."""
    if not chunks:
        return None
    ends: list[int] = np.sum([chunk["counts"] for chunk in chunks], axis=0)[::2].tolist()
    return ends


def _with_offsets(chunk: EncodedCorpus, ends: Sequence[int] | None, types: list[np.dtype[Any]]) -> list[NDArray[Any]]:
    """Return the arrays of a chunk in the types of the files, with the offsets moved to the ends of the files."""
    arrays: list[NDArray[Any]] = [chunk.source_ids, chunk.source_offsets, chunk.target_ids, chunk.target_offsets]
    if chunk.links:
        arrays += [chunk.links.words, chunk.links.offsets]
    if ends is not None:  # the first offset is the last one of the chunk before
        for i in range(len(arrays) // 2):
            arrays[2 * i + 1] = arrays[2 * i + 1][1:] + ends[i]
    if chunk.documents is not None:
        arrays.append(chunk.documents)
    return [array.astype(kind) for array, kind in zip(arrays, types, strict=True)]


class Size(NamedTuple):
    """The amount of text, in units that do not depend on the vocabulary."""

    texts: int
    words: int
    """The number of words between spaces, and one for the end of each text."""
    characters: int
    """The number of characters, and one for the end of each text."""


@dataclass(frozen=True)
class EncodedTexts:
    """Texts as one sequence of ids, <s> .. </s> <s> .. </s>."""

    ids: NDArray[np.integer]
    """The ids of all texts, in memory or memory-mapped."""
    size: Size

    @classmethod
    def encode(cls, texts: Sequence[str], tokenizer: Tokenizer, *, backwards: bool = False) -> EncodedTexts:
        """Encode texts; with `backwards`, reverse the tokens of each."""
        order = -1 if backwards else 1
        rows = []
        for ids in tokenizer.encode_target(list(texts)):
            rows.append((SPECIAL.start, *ids[::order], SPECIAL.end))
        words = sum(map(len, map(str.split, texts)))
        characters = sum(map(len, texts))
        size = Size(len(texts), words + len(texts), characters + len(texts))
        return cls(np.fromiter(chain.from_iterable(rows), np.int32), size)


@dataclass(frozen=True)
class StoredTexts:
    """A complete corpus of running text on disk."""

    texts: EncodedTexts
    fingerprint: str
    """A string that differs for other texts and other tokenizers."""
    skipped: Skipped
    """The counts of the texts that were kept and skipped."""


class TextStore:
    """A folder with encoded texts, complete or not."""

    def __init__(self, folder: Path) -> None:
        """Describe a folder, which need not exist; read and write nothing yet."""
        self.files = ChunkedFiles(folder, TEXT_FILES, lambda width: _types(width)[:1])

    def open(self, identity: str) -> StoredTexts | None:
        """Return the texts, or None if the folder is incomplete or of another identity.

        Raises:
            UserError: the file is missing, or does not match its checksum.
        """
        opened = self.files.open(identity)
        if opened is None:
            return None
        (ids,), chunks, totals = opened
        size = _total_size(chunks)
        skipped = Skipped("text", size.texts, Counter(totals["reasons"]))
        return StoredTexts(EncodedTexts(ids, size), f"{size.texts} texts, crc32 {checksum(chunks)}", skipped)

    def build(
        self,
        corpora: Sequence[Iterable[Pair]],
        tokenizer: Tokenizer,
        *,
        identity: str,
        backwards: bool = False,
        on_texts: Callable[[int], None] = lambda _: None,
        bad: BadLines | None = None,
    ) -> None:
        """Encode corpora, one after the other; resume an earlier, incomplete attempt.

        Args:
            corpora: the texts; to resume, they are read again from the beginning.
            tokenizer: the tokenizer of all texts.
            identity: the identity of the texts and the tokenizer; chunks of another one are deleted.
            backwards: whether to reverse the tokens of each text.
            on_texts: called with the number of texts done since the last call.
            bad: counts the bad lines that are skipped while the corpora are read.

        Raises:
            UserError: the text can't be read, there is none, or the disk is full.
        """
        chunks = self.files.begin(identity)
        (kind,) = self.files.types(2 if tokenizer.target_size <= 1 << 16 else 4)
        read_count, skipped = _total_size(chunks).texts, Skipped("text")
        remaining = keep_texts(chain.from_iterable(corpora), skipped)
        for _ in islice(remaining, read_count):  # encoded already
            pass
        on_texts(read_count)
        while chunk := sources_of(islice(remaining, TEXT_CHUNK)):
            encoded = EncodedTexts.encode(chunk, tokenizer, backwards=backwards)
            self.files.append([encoded.ids.astype(kind)], {"size": encoded.size})
            on_texts(len(chunk))
        if bad and bad.count:
            skipped.reasons["no texts"] += bad.count
        if not skipped.kept:
            raise UserError(f"no texts are left ({skipped.summary()})", fix="Check data.train.")
        self.files.end({"sizes": [skipped.kept], "reasons": dict(skipped.reasons)})


def _total_size(chunks: Chunks) -> Size:
    sizes = map(itemgetter("size"), chunks)
    return Size(*map(sum, zip((0, 0, 0), *sizes, strict=True)))
