"""An encoded corpus on disk, of any size: flat files mapped into memory, checksummed, continued after a crash.

The folder holds the token ids of each side one sentence after the other (`source.ids`, `target.ids`; two bytes each, or
four for a large vocabulary), where each sentence begins (`source.offsets`, `target.offsets`; eight bytes each), and
`index.jsonl`: what was encoded; a line for each chunk, with its checksums, written when the chunk is safely on disk;
and the totals.
"""

from __future__ import annotations

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
from translucid.data.stores.chunked import ChunkedFiles, checksum
from translucid.data.stores.encoded import EncodedCorpus, encode_chunks
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.errors import UserError
from translucid.ground.paths import replace_folder

FILES = "source.ids", "source.offsets", "target.ids", "target.offsets"


@dataclass(frozen=True)
class StoredCorpus:
    """A whole corpus on disk, opened."""

    pairs: EncodedCorpus
    """Mapped into memory: what is not in use takes none."""
    sizes: list[int]
    """Pairs that came from each of the corpora that were put together."""
    fingerprint: str
    """Another text, or another tokenizer, gives another one."""
    skipped: Skipped
    """What was left out."""


class CorpusStore:
    """A folder with an encoded corpus, or with the beginning of one."""

    def __init__(self, folder: Path) -> None:
        """`folder`: need not exist yet."""
        self.files = ChunkedFiles(folder, FILES, _types)

    def open(self, identity: str) -> StoredCorpus | None:
        """Return the corpus, or None if there is none of this identity, or not all of it.

        Raises:
            UserError: a file is missing, or does not match its checksum.
        """
        if (found := self.files.open(identity)) is None:
            return None
        arrays, chunks, totals = found
        skipped = Skipped()
        skipped.kept = totals["kept"]
        skipped.reasons.update(totals["reasons"])
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
        on_pairs: Callable[[int], None] | None = None,
        bad: BadLines | None = None,
    ) -> None:
        """Encode corpora, one after the other; go on where an earlier attempt was cut off.

        Args:
            corpora: the text, read twice if it is resumed.
            tokenizer: for both sides.
            wanted: which pairs are kept.
            identity: of text, tokenizer and limits; what was begun under another one is thrown away.
            max_tokens: a pair with more tokens on either side, end token included, is left out.
            processes: see `encode_chunks`.
            on_pairs: called with the number of pairs done since.
            bad: counts the lines that are skipped while the corpora are read, if any are.

        Raises:
            UserError: the text can't be read, or the disk is full.
        """
        done = self.files.begin(identity)
        types = _types(2 if max(tokenizer.source_size, tokenizer.target_size) <= 1 << 16 else 4)
        ends = [sum(chunk["counts"][i] for chunk in done) for i in (0, 2)]
        sizes, skipped, begun = [], Skipped(), bool(done)
        for number, corpus in enumerate(corpora):
            of_this = [chunk for chunk in done if chunk["corpus"] == number]
            read = sum(chunk["pairs"] for chunk in of_this)
            size = sum(chunk["kept"] for chunk in of_this)
            kept = keep(corpus, wanted, skipped)
            for _ in islice(kept, read):
                pass
            if on_pairs:
                on_pairs(read)
            for count, chunk in encode_chunks(kept, tokenizer, max_tokens, processes):
                arrays = [a.astype(kind) for a, kind in zip(_continued(chunk, ends, begun), types, strict=True)]
                self.files.append(arrays, {"corpus": number, "pairs": count, "kept": len(chunk)})
                ends = [ends[0] + len(chunk.source_ids), ends[1] + len(chunk.target_ids)]
                size, read, begun = size + len(chunk), read + count, True
                if on_pairs:
                    on_pairs(count)
            sizes.append(size)
            for _ in range(read - size):
                skipped.add("too long")
        if bad and bad.count:
            skipped.reasons["no pairs"] += bad.count
        if not sum(sizes):
            left = skipped.summary()
            raise UserError(
                f"no training pairs are left ({left})", fix="See `translucid data stats`, or raise data.max_tokens."
            )
        self.files.end({"sizes": sizes, "kept": skipped.kept, "reasons": dict(skipped.reasons)})

    def replace(self, other: CorpusStore) -> None:
        """Take the place of another store; neither may be open.

        Raises:
            UserError: a program has the other one open, and Windows does not move it.
        """
        try:
            replace_folder(self.files.folder, other.files.folder)
        except OSError as error:
            fix = "Close the program that has it open, and give the same command again."
            raise UserError(f"can't be replaced ({error.strerror})", file=other.files.folder, fix=fix) from error

    def remove(self) -> None:
        """Throw the folder away, if it is there."""
        self.files.remove()


def _types(width: int) -> list[np.dtype[Any]]:
    """Return the types of `FILES`, for ids of two or four bytes."""
    ids, offsets = np.dtype(np.uint16 if width == 2 else np.int32), np.dtype(np.int64)
    return [ids, offsets, ids, offsets]


def _continued(chunk: EncodedCorpus, ends: Sequence[int], begun: bool) -> list[NDArray[Any]]:
    """Return a chunk's arrays with offsets that go on from `ends`; only the first chunk has the offset 0."""
    source, target = chunk.source_offsets[begun:] + ends[0], chunk.target_offsets[begun:] + ends[1]
    return [chunk.source_ids, source, chunk.target_ids, target]
