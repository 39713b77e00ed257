"""An encoded corpus on disk, of any size: flat files mapped into memory, checksummed, continued after a crash.

The folder holds the token ids of each side one sentence after the other (`source.ids`, `target.ids`; two bytes each, or
four for a large vocabulary), where each sentence begins (`source.offsets`, `target.offsets`; eight bytes each), and
`index.jsonl`: what was encoded; a line for each chunk, with its checksums, written when the chunk is safely on disk;
and the totals.
"""

from __future__ import annotations

import json
import os
import shutil
import zlib
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from translucid.data.bad_lines import BadLines
from translucid.data.corpus import Pair
from translucid.data.encoded import EncodedCorpus, encode_chunks
from translucid.data.filtering import Filter, Skipped, keep
from translucid.data.tokenizer import Tokenizer
from translucid.ground.atomic import write_atomically
from translucid.ground.errors import UserError

FILES = "source.ids", "source.offsets", "target.ids", "target.offsets"
INDEX = "index.jsonl"
_AGAIN = "It is made again from the text by --resume."


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
        self.folder = folder

    def open(self, identity: str) -> StoredCorpus | None:
        """Return the corpus, or None if there is none of this identity, or not all of it.

        Raises:
            UserError: a file is missing, or does not match its checksum.
        """
        header, chunks, totals = self._index()
        if header != {"identity": identity} or totals is None:
            return None
        arrays = [self._mapped(name, kind) for name, kind in zip(FILES, _types(chunks[0]["width"]), strict=True)]
        for i, (name, array) in enumerate(zip(FILES, arrays, strict=True)):
            start = 0
            for chunk in chunks:
                end = start + chunk["counts"][i]
                if len(array) < end or zlib.crc32(array[start:end].data) != chunk["crc32"][i]:
                    raise UserError("is damaged or cut short", file=self.folder / name, fix=_AGAIN)
                start = end
            arrays[i] = array[:start]
        skipped = Skipped()
        skipped.kept = totals["kept"]
        skipped.reasons.update(totals["reasons"])
        checksum = zlib.crc32(json.dumps([chunk["crc32"] for chunk in chunks]).encode())
        fingerprint = f"{len(arrays[1]) - 1} pairs, crc32 {checksum:08x}"
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
            corpora: the text, read twice if it is gone on with.
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
        header, done, totals = self._index()
        if header != {"identity": identity} or totals is not None or not self._cut(done):
            self.remove()
            self._made()
            done = []
        write_atomically(self.folder / INDEX, "".join(map(_line, [{"identity": identity}, *done])).encode())
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
                self._append(arrays, {"corpus": number, "pairs": count, "kept": len(chunk)})
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
        self._write_index({"sizes": sizes, "kept": skipped.kept, "reasons": dict(skipped.reasons)})

    def replace(self, other: CorpusStore) -> None:
        """Take the place of another store."""
        other.remove()
        self.folder.rename(other.folder)

    def remove(self) -> None:
        """Throw the folder away, if it is there."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _index(self) -> tuple[dict[str, Any] | None, list[dict[str, Any]], dict[str, Any] | None]:
        """Return the header, the chunks and, if the corpus is whole, the totals."""
        rows: list[dict[str, Any]] = []
        try:
            for line in (self.folder / INDEX).read_text(encoding="utf-8").split("\n")[:-1]:
                rows.append(_row(line))
        except (OSError, ValueError, TypeError, KeyError):
            pass  # cut off or damaged: what stands before it is good
        totals = rows[-1] if rows and "sizes" in rows[-1] else None
        return rows[0] if rows else None, [row for row in rows if "crc32" in row], totals

    def _cut(self, done: list[dict[str, Any]]) -> bool:
        """Cut the files back to the chunks that are complete; False if that can't be done."""
        try:
            for i, name in enumerate(FILES):
                width = 8 if name.endswith("offsets") else done[0]["width"]
                size = width * sum(chunk["counts"][i] for chunk in done)
                file = self.folder / name
                if file.stat().st_size < size:
                    return False
                os.truncate(file, size)
        except (OSError, IndexError):
            return False
        return True

    def _made(self) -> None:
        try:
            self.folder.mkdir(parents=True)
        except OSError as error:
            raise UserError(
                f"can't be made ({error.strerror})", file=self.folder, fix="Choose another --out."
            ) from error

    def _append(self, arrays: Sequence[NDArray[Any]], facts: dict[str, int]) -> None:
        """Write a chunk, and say in the index that it is there once it is."""
        try:
            with ExitStack() as stack:
                for name, array in zip(FILES, arrays, strict=True):
                    file = stack.enter_context((self.folder / name).open("ab"))
                    file.write(array.data)
                    file.flush()
                    os.fsync(file.fileno())
        except OSError as error:
            self._failed(error)
        self._write_index(
            {
                **facts,
                "width": arrays[0].itemsize,
                "counts": [len(array) for array in arrays],
                "crc32": [zlib.crc32(array.data) for array in arrays],
            }
        )

    def _write_index(self, row: dict[str, Any]) -> None:
        try:
            with (self.folder / INDEX).open("a", encoding="utf-8") as file:
                file.write(_line(row))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            self._failed(error)

    def _failed(self, error: OSError) -> None:
        fix = "Make room; --resume goes on from there."
        raise UserError(f"can't be written ({error.strerror})", file=self.folder, fix=fix) from error

    def _mapped(self, name: str, kind: np.dtype[Any]) -> NDArray[Any]:
        file = self.folder / name
        try:
            return np.asarray(np.memmap(file, kind, mode="r"))
        except (OSError, ValueError) as error:
            raise UserError("is missing or cut short", file=file, fix=_AGAIN) from error


def _types(width: int) -> list[np.dtype[Any]]:
    """Return the types of `FILES`, for ids of two or four bytes."""
    ids, offsets = np.dtype(np.uint16 if width == 2 else np.int32), np.dtype(np.int64)
    return [ids, offsets, ids, offsets]


def _line(row: dict[str, Any]) -> str:
    """Return a line of the index, with a checksum of its own."""
    return json.dumps({**row, "check": zlib.crc32(json.dumps(row).encode())}) + "\n"


def _row(line: str) -> dict[str, Any]:
    row: dict[str, Any] = json.loads(line)
    check = row.pop("check")
    if zlib.crc32(json.dumps(row).encode()) != check:
        raise ValueError("the checksum is another")
    return row


def _continued(chunk: EncodedCorpus, ends: Sequence[int], begun: bool) -> list[NDArray[Any]]:
    """Return a chunk's arrays with offsets that go on from `ends`; only the first chunk has the offset 0."""
    source, target = chunk.source_offsets[begun:] + ends[0], chunk.target_offsets[begun:] + ends[1]
    return [chunk.source_ids, source, chunk.target_ids, target]
