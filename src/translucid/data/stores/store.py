"""An encoded corpus on disk, of any size: memory-mapped arrays with checksums, resumed after a crash.

The folder contains the token ids of each side, one sentence after the other (`source.ids`, `target.ids`; two bytes
each, or four for a large vocabulary), the offset of each sentence (`source.offsets`, `target.offsets`; eight bytes
each), and the `index.jsonl` of `data.stores.chunked`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from translucid.data.filtering import Filter, Skipped, keep
from translucid.data.readers.bad_lines import BadLines
from translucid.data.readers.corpus import Pair
from translucid.data.stores.chunked import ChunkedFiles, Chunks, checksum
from translucid.data.stores.encoded import EncodedCorpus, encode_chunks
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.atomic import replace_folder
from translucid.ground.errors import UserError

FILES = "source.ids", "source.offsets", "target.ids", "target.offsets"


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

    def __init__(self, folder: Path) -> None:
        """Describe a folder, which need not exist; read and write nothing yet."""
        self.files = ChunkedFiles(folder, FILES, _types)

    def open(self, identity: str) -> StoredCorpus | None:
        """Return the corpus, or None if the folder is incomplete or of another identity.

        Raises:
            UserError: a file is missing, or does not match its checksum.
        """
        opened = self.files.open(identity)
        if opened is None:
            return None
        arrays, chunks, totals = opened
        skipped = Skipped(kept=totals["kept"], reasons=Counter(totals["reasons"]))
        fingerprint = f"{len(arrays[1]) - 1} pairs, crc32 {checksum(chunks)}"
        return StoredCorpus(EncodedCorpus(*arrays), totals["sizes"], fingerprint, skipped)

    def build(
        self,
        corpora: Sequence[Iterable[Pair]],
        tokenizer: Tokenizer,
        wanted: Filter,
        *,
        identity: str,
        max_tokens: int,
        processes: int | None = None,
        on_pairs: Callable[[int], None] = lambda _: None,
        bad: BadLines | None = None,
    ) -> None:
        """Encode corpora, one after the other; resume an earlier, incomplete attempt.

        Args:
            corpora: the text; to resume, it is read again from the beginning.
            tokenizer: the tokenizer of both sides.
            wanted: the filter for pairs.
            identity: the identity of the text, the tokenizer and the limits; chunks of another one are deleted.
            max_tokens: a pair with more tokens on either side, end token included, is skipped.
            processes: the number of processes; by default the number of cores.
            on_pairs: called with the number of pairs done since the last call.
            bad: counts the bad lines that are skipped while the corpora are read.

        Raises:
            UserError: the text can't be read, no pairs are left, or the disk is full.
        """
        done = self.files.begin(identity)
        types = _types(2 if max(tokenizer.source_size, tokenizer.target_size) <= 1 << 16 else 4)
        ends = _ends(done)
        sizes, skipped = [], Skipped()
        for number, corpus in enumerate(corpora):
            read = size = 0
            for row in done:
                if row["corpus"] == number:
                    read += row["pairs"]
                    size += row["kept"]
            kept = keep(corpus, wanted, skipped)
            for _ in islice(kept, read):  # encoded already; reading them counts what the filter skips
                pass
            on_pairs(read)
            for count, chunk in encode_chunks(kept, tokenizer, max_tokens, processes):
                arrays = _continued(chunk, ends, types)
                self.files.append(arrays, {"corpus": number, "pairs": count, "kept": len(chunk)})
                source_end, target_end = ends or (0, 0)
                ends = source_end + len(chunk.source_ids), target_end + len(chunk.target_ids)
                size += len(chunk)
                read += count
                on_pairs(count)
            sizes.append(size)
            for _ in range(read - size):
                skipped.add("too long")
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


def _ends(done: Chunks) -> tuple[int, int] | None:
    """Return the numbers of source and of target ids in the files, None if there are no chunks yet."""
    if not done:
        return None
    source, _, target, _ = np.sum([chunk["counts"] for chunk in done], axis=0).tolist()
    return source, target


def _continued(chunk: EncodedCorpus, ends: tuple[int, int] | None, types: list[np.dtype[Any]]) -> list[NDArray[Any]]:
    """Return the arrays of a chunk in the types of the files, with the offsets moved to the ends of the files."""
    source, target = chunk.source_offsets, chunk.target_offsets
    if ends is not None:  # the first offset is the last one of the chunk before
        source, target = source[1:] + ends[0], target[1:] + ends[1]
    arrays = (chunk.source_ids, source, chunk.target_ids, target)
    return [array.astype(kind) for array, kind in zip(arrays, types, strict=True)]
