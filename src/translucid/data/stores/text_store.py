"""Running text as token ids on disk, of any size: one flat array in a folder of `data.stores.chunked`.

Each text stands between a start token and an end token, one text after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from translucid.data.filtering import Skipped
from translucid.data.readers.bad_lines import BadLines
from translucid.data.readers.corpus import Pair
from translucid.data.readers.texts import keep_texts
from translucid.data.stores.chunked import ChunkedFiles, checksum
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL

FILES = ("texts.ids",)
CHUNK = 10_000
"""Texts that are encoded at a time, on all cores."""


class Size(NamedTuple):
    """How much text there is, in units that do not depend on the vocabulary."""

    texts: int
    words: int
    """What stands between spaces, and one for the end of each text."""
    characters: int
    """With one for the end of each text."""


@dataclass(frozen=True)
class EncodedTexts:
    """Texts as one sequence of ids, <s> .. </s> <s> .. </s>."""

    ids: NDArray[np.integer]
    """All of them, possibly mapped from a file."""
    size: Size

    @classmethod
    def encode(cls, texts: Sequence[str], tokenizer: Tokenizer, *, backwards: bool = False) -> EncodedTexts:
        """Encode texts; `backwards`: each from its last token to its first."""
        found = tokenizer.encode_target(list(texts))
        order = -1 if backwards else 1
        every = chain.from_iterable((SPECIAL.start, *ids[::order], SPECIAL.end) for ids in found)
        words = sum(len(text.split()) for text in texts) + len(texts)
        size = Size(len(texts), words, sum(map(len, texts)) + len(texts))
        return cls(np.fromiter(every, np.int32), size)


@dataclass(frozen=True)
class StoredTexts:
    """A whole corpus of running text on disk, opened."""

    texts: EncodedTexts
    fingerprint: str
    """Another text, or another tokenizer, gives another one."""
    skipped: Skipped
    """What was left out."""


class TextStore:
    """A folder with encoded text, or with the beginning of it."""

    def __init__(self, folder: Path) -> None:
        """`folder`: need not exist yet."""
        self.files = ChunkedFiles(folder, FILES, lambda width: [np.dtype(np.uint16 if width == 2 else np.int32)])

    def open(self, identity: str) -> StoredTexts | None:
        """Return the text, or None if there is none of this identity, or not all of it.

        Raises:
            UserError: the file is missing, or does not match its checksum.
        """
        if (found := self.files.open(identity)) is None:
            return None
        (ids,), chunks, totals = found
        size = _added(chunks)
        skipped = Skipped("text")
        skipped.kept = size.texts
        skipped.reasons.update(totals["reasons"])
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
        """Encode corpora, one after the other; go on where an earlier attempt was cut off.

        Args:
            corpora: the texts, read twice if it is resumed.
            tokenizer: for all of them.
            identity: of text and tokenizer; what was begun under another one is thrown away.
            backwards: see `EncodedTexts.encode`.
            on_texts: called with the number of texts done since.
            bad: counts the lines that are skipped while the corpora are read, if any are.

        Raises:
            UserError: the text can't be read, there is none, or the disk is full.
        """
        done = self.files.begin(identity)
        kind = self.files.types(2 if tokenizer.target_size <= 1 << 16 else 4)[0]
        read, skipped = _added(done).texts, Skipped("text")
        coming = keep_texts(chain.from_iterable(corpora), skipped)
        for _ in islice(coming, read):
            pass
        on_texts(read)
        while chunk := [text.source for text in islice(coming, CHUNK)]:
            found = EncodedTexts.encode(chunk, tokenizer, backwards=backwards)
            self.files.append([found.ids.astype(kind)], {"size": found.size})
            on_texts(len(chunk))
        if bad and bad.count:
            skipped.reasons["no texts"] += bad.count
        if not skipped.kept:
            raise UserError(f"no texts are left ({skipped.summary()})", fix="Check data.train.")
        self.files.end({"sizes": [skipped.kept], "reasons": dict(skipped.reasons)})

    def remove(self) -> None:
        """Throw the folder away, if it is there."""
        self.files.remove()


def _added(chunks: list[dict[str, Any]]) -> Size:
    return (
        Size(*(sum(column) for column in zip(*(chunk["size"] for chunk in chunks), strict=True)))
        if chunks
        else Size(0, 0, 0)
    )
