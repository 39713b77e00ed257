"""Running text as token ids on disk, of any size: one flat array of `data.stores.chunked`.

The texts follow each other, each between a start token and an end token.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from translucid.data.filtering import Skipped
from translucid.data.readers.bad_lines import BadLines
from translucid.data.readers.corpus import Pair, sources_of
from translucid.data.readers.texts import keep_texts
from translucid.data.stores.chunked import ChunkedFiles, Chunks, checksum
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL

FILES = ("texts.ids",)
CHUNK = 10_000
"""The number of texts that are encoded at a time, on all cores."""


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
        self.files = ChunkedFiles(folder, FILES, lambda width: [np.dtype(np.uint16 if width == 2 else np.int32)])

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
        done = self.files.begin(identity)
        (kind,) = self.files.types(2 if tokenizer.target_size <= 1 << 16 else 4)
        read, skipped = _total_size(done).texts, Skipped("text")
        remaining = keep_texts(chain.from_iterable(corpora), skipped)
        for _ in islice(remaining, read):  # encoded already
            pass
        on_texts(read)
        while chunk := sources_of(islice(remaining, CHUNK)):
            encoded = EncodedTexts.encode(chunk, tokenizer, backwards=backwards)
            self.files.append([encoded.ids.astype(kind)], {"size": encoded.size})
            on_texts(len(chunk))
        if bad and bad.count:
            skipped.reasons["no texts"] += bad.count
        if not skipped.kept:
            raise UserError(f"no texts are left ({skipped.summary()})", fix="Check data.train.")
        self.files.end({"sizes": [skipped.kept], "reasons": dict(skipped.reasons)})


def _total_size(chunks: Chunks) -> Size:
    sizes = [chunk["size"] for chunk in chunks]
    return Size(*map(sum, zip((0, 0, 0), *sizes, strict=True)))
