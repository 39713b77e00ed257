"""The seen-sentence index: which sentences of a test set were in the training text of a run.

    seen.bin           hashes of the sentences of the run's own training text
    seen-before/*.bin  the indexes of the runs from which its weights come, and of its teachers: a file each

Sentences are compared as `normalized_text` without case. A file has up to three sets of hashes for each pair of
languages: sources, targets and pairs. A set of n hashes modulo n 2^p is sorted and stored in n (2 + p) bits, as the
lowest p bits of each hash and the unary gaps between the others (Elias 1974, 10.1145/321812.321820; Fano 1971). So no
sentence is missed, and another one is found with a probability of at most 2^-p.

    8 bytes   TRLSEEN1
    4 bytes   length of the header, little-endian
    4 bytes   CRC-32 of all that follows
    header    JSON: the groups, and for each of their sets [buckets, hashes, p]
    sets      bits of the gaps, then those of the lowest bits, each padded to a byte
"""

from __future__ import annotations

import json
import unicodedata
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field, ValidationError

from bitext.languages import Languages, same_language
from bitext.pair import Pair
from translucid.data.sampler import mixed
from translucid.ground.atomic import write_atomically
from translucid.ground.errors import UserError

SEEN, SEEN_BEFORE = "seen.bin", "seen-before"
"""The file of a run, and the folder with those of earlier runs."""
FEW_PAIRS = 1_000_000
"""The number of pairs up to which an index has `BITS` for a distinct sentence, otherwise `FEWER_BITS`."""
BITS, FEWER_BITS = 24, 10
_LOW_BITS = 17
"""The lowest bits of the hash of a sentence: with 2 more for the gap, 5 of `BITS` are left for the pairs."""
_MOST_LOW_BITS = 32
_MAGIC = b"TRLSEEN1"
_LONGEST_HEADER = 1 << 24
_BLOCK = 1 << 17
"""The number of bytes of gaps, or of hashes, in memory at a time."""
_TEXTS = 4096
"""The number of texts that are hashed at a time."""
_ODD = np.uint64(0x9E3779B97F4A7C15)
_TABLE = 0x3001
"""The number of characters whose case is looked up in a table: all up to the last space, U+3000."""
_JAMO = range(0x1100, 0x1200)
"""The parts of Korean syllables."""
_SPACES = [character for character in map(chr, range(_TABLE)) if character.isspace() and character not in " \n"]
_FIX = "Take it from a backup, or delete it: then nothing is known about the training text."

Hashes = NDArray[np.uint64]


def hashes_of(texts: Sequence[str]) -> Hashes:
    """Return a hash of each text [n] that ignores case, repeated spaces and those at the ends; 0 for a blank text."""
    parts = [np.empty(0, np.uint64)]
    for first in range(0, len(texts), _TEXTS):
        parts.append(_hashes_of_lines(_normalized(texts[first : first + _TEXTS])))
    return np.concatenate(parts)


def pair_hashes(sources: Hashes, targets: Hashes) -> Hashes:
    """Return the hashes of pairs [n], given those of their sides."""
    return mixed(sources + mixed(targets + _ODD))


def _normalized(texts: Sequence[str]) -> bytes:
    """Return texts as lines in UTF-8, normalized; this is much faster for all at once."""
    joined = "\n".join(texts)
    lines, units = _folded_ascii(joined) if joined.isascii() else _folded(joined)
    is_end, is_space = units == ord("\n"), units == ord(" ")
    if np.count_nonzero(is_end) > len(texts):
        return _normalized([text.replace("\n", " ") for text in texts])
    # A space before or after another one, a line feed, or the beginning of the text.
    is_gap = is_end | is_space
    if is_space[0] or (is_space[1:] & is_gap[:-1]).any() or (is_space[:-1] & is_gap[1:]).any():
        while b"  " in lines:
            lines = lines.replace(b"  ", b" ")
        lines = lines.replace(b" \n", b"\n").replace(b"\n ", b"\n").removeprefix(b" ")
    return lines


def _folded_ascii(text: str) -> tuple[bytes, NDArray[np.uint8]]:
    """Return ASCII text without case, with a line feed, and its characters."""
    lines = f"{text}\n".encode().translate(_folded_units()[:256].astype(np.uint8).tobytes())
    return lines, np.frombuffer(lines, np.uint8)


def _folded(text: str) -> tuple[bytes, NDArray[np.uint16]]:
    """Return text in NFC without case, with a line feed, in UTF-8, and its UTF-16 units."""
    text += "\n"
    table = _folded_units()
    units = table.take(_units(text), mode="clip")
    if not units.all():
        # The one letter of a large language that becomes two.
        text = unicodedata.normalize("NFC", text).replace("ß", "ss")
        units = table.take(_units(text), mode="clip")
    if units.all():
        text = units.tobytes().decode("utf-16-le")
    else:
        text = text.casefold()
        for space in _SPACES:
            if space in text:
                text = text.replace(space, " ")
        units = _units(text)
    # Texts from JSON may have halves of surrogate pairs.
    return text.encode("utf-8", "replace"), units


@cache
def _folded_units() -> NDArray[np.uint16]:
    """Return what each UTF-16 unit of a text in NFC becomes: one without case, or a space.

    It is 0 for a character that becomes several or may be part of a sequence that NFC changes, and after the last one.
    """
    units = np.zeros(_TABLE + 1, "<u2")
    for code, character in enumerate(map(chr, range(_TABLE))):
        folded = " " if character in _SPACES else character.casefold()
        may_compose = unicodedata.category(character)[0] == "M" or code in _JAMO
        if len(folded) == 1 and not may_compose and unicodedata.is_normalized("NFC", character):
            units[code] = ord(folded)
    return units


def _units(text: str) -> NDArray[np.uint16]:
    return np.frombuffer(text.encode("utf-16-le", "surrogatepass"), "<u2")


def _hashes_of_lines(lines: bytes) -> Hashes:
    """Return a hash of each line: the mixed sum of its mixed words of eight bytes, each with its position."""
    ends = np.flatnonzero(np.frombuffer(lines, np.uint8) == ord("\n"))
    starts = np.append(0, ends[:-1] + 1)
    lengths = ends - starts
    counts = lengths // 8 + 1
    firsts = np.cumsum(counts) - counts
    positions = np.arange(counts.sum()) - np.repeat(firsts, counts)
    padded = lines + bytes(8)
    at_each_byte = np.ndarray((len(lines) + 1,), "<u8", padded, strides=(1,))
    words = at_each_byte.take(np.repeat(starts, counts) + 8 * positions).astype(np.uint64, copy=False)
    # The last word of a line, which may be empty, has only the bytes before the line feed.
    words[firsts + counts - 1] &= (np.uint64(1) << (8 * (lengths % 8)).astype(np.uint64)) - np.uint64(1)
    words += (positions.astype(np.uint64) + np.uint64(1)) * _ODD
    sums = np.add.reduceat(mixed(words), firsts)
    hashes = mixed(sums + lengths.astype(np.uint64) * _ODD)
    return np.where(lengths > 0, hashes, np.uint64(0))


class _Size(NamedTuple):
    """The size of a set."""

    buckets: int
    """n: hashes are stored modulo n 2^p."""
    hashes: int
    low_bits: int
    """p."""

    @property
    def gap_bytes(self) -> int:
        return (self.buckets + self.hashes + 7) // 8

    @property
    def low_bytes(self) -> int:
        return (self.hashes * self.low_bits + 7) // 8


@dataclass(frozen=True)
class _HashSet:
    """A set of hashes in a file."""

    size: _Size
    content: NDArray[np.uint8]
    """The bits of the gaps, and then the lowest bits."""

    @classmethod
    def of(cls, hashes: Hashes, low_bits: int) -> _HashSet:
        """Store different hashes."""
        buckets = len(hashes)
        values = _distinct(hashes % np.uint64(max(buckets, 1) << low_bits))
        size = _Size(buckets, len(values), low_bits)
        gaps = np.zeros(8 * size.gap_bytes, np.uint8)
        np.put(gaps, (values >> np.uint64(low_bits)).astype(np.int64) + np.arange(len(values)), 1)
        low = _packed(values, low_bits)[: size.low_bytes]
        return cls(size, np.concatenate([np.packbits(gaps, bitorder="little"), low]))

    @property
    def rate(self) -> float:
        """The probability that the set seems to contain another hash."""
        return self.size.hashes / ((self.size.buckets or 1) << self.size.low_bits)

    def contains(self, hashes: Hashes) -> NDArray[np.bool_]:
        found = np.zeros(len(hashes), np.bool_)
        if not self.size.hashes:
            return found
        queries, inverse = np.unique(hashes % np.uint64(self.size.buckets << self.size.low_bits), return_inverse=True)
        found_queries = np.zeros(len(queries), np.bool_)
        for values in self._blocks():
            indices = np.searchsorted(values, queries)
            found_queries |= values[np.minimum(indices, len(values) - 1)] == queries
        return found_queries[inverse] & (hashes != 0)

    def _blocks(self) -> Iterator[Hashes]:
        """Yield the values in order, in parts of at most 8 `_BLOCK`."""
        size, done = self.size, 0
        lows = np.concatenate([self.content[size.gap_bytes :], np.zeros(8, np.uint8)])
        at_each_byte = np.ndarray((max(len(lows) - 7, 0),), "<u8", lows, strides=(1,))
        for first in range(0, size.gap_bytes, _BLOCK):
            gaps = np.unpackbits(self.content[first : min(first + _BLOCK, size.gap_bytes)], bitorder="little")
            ones = np.flatnonzero(gaps)[: size.hashes - done]
            if not len(ones):
                continue
            numbers = np.arange(done, done + len(ones))
            done += len(ones)
            bits = numbers * size.low_bits
            low = at_each_byte[bits >> 3] >> (bits & 7).astype(np.uint64)
            low &= np.uint64((1 << size.low_bits) - 1)
            yield ((ones + 8 * first - numbers).astype(np.uint64) << np.uint64(size.low_bits)) | low


def _distinct(numbers: Hashes) -> Hashes:
    """Return different numbers in order; `numpy.unique` takes several times as long."""
    in_order = np.sort(numbers)
    return in_order[np.append(True, in_order[1:] != in_order[:-1])[: len(in_order)]]


def _packed(values: Hashes, bits: int) -> NDArray[np.uint8]:
    """Return the lowest bits of values, one after the other, as bytes."""
    padded = np.zeros(-(-len(values) // 64) * 64, np.uint64)
    padded[: len(values)] = values & np.uint64((1 << bits) - 1)
    rows = padded.reshape(-1, 64)
    # 64 values take as many words as a value has bits.
    words = np.zeros((len(rows), bits), np.uint64)
    for column in range(64):
        word, shift = divmod(column * bits, 64)
        words[:, word] |= rows[:, column] << np.uint64(shift)
        if shift + bits > 64:
            words[:, word + 1] |= rows[:, column] >> np.uint64(64 - shift)
    return words.astype("<u8", copy=False).reshape(-1).view(np.uint8)


class _Header(BaseModel, extra="forbid"):
    """The header of a file."""

    class Group(BaseModel, extra="forbid"):
        """The training text of one direction, or of both directions between two languages."""

        languages: Languages
        both: bool
        """Whether it was read in the other direction, too."""
        sets: list[_Size | None] = Field(min_length=3, max_length=3)
        """Those of sources, targets and pairs; None for pairs that would need too much room."""

    text: str
    """A digest of the training text."""
    complete: bool
    """Whether the text of all runs from which the weights come is in the index."""
    groups: list[Group]


class _Group(NamedTuple):
    """The sentences of one direction, or of both directions between two languages."""

    languages: Languages
    both: bool
    sources: _HashSet
    targets: _HashSet
    pairs: _HashSet | None

    def oriented(self, direction: Languages) -> tuple[_HashSet, _HashSet, bool] | None:
        """Return the sets of a direction's sources and targets, and whether they are exchanged; None if it has none."""
        if _same(self.languages, direction):
            return self.sources, self.targets, False
        if self.both and _same(self.languages[::-1], direction):
            return self.targets, self.sources, True
        return None

    def of_language(self, language: str | None) -> list[_HashSet]:
        sides = zip(self.languages, (self.sources, self.targets), strict=True)
        return [sentences for code, sentences in sides if code and language and same_language(code, language)]


def _same(first: Languages, second: Languages) -> bool:
    """Whether two directions are the same; an unknown language is the same as any."""
    for code, other in zip(first, second, strict=True):
        if code and other and not same_language(code, other):
            return False
    return True


class SeenSentencesBuilder:
    """Collects the hashes of training pairs, 16 bytes for each."""

    def __init__(self) -> None:
        self._hashes: dict[tuple[Languages, bool], list[tuple[Hashes, Hashes]]] = {}

    def add(self, sources: Hashes, targets: Hashes, languages: Languages = (None, None), *, both: bool = False) -> None:
        """Add pairs, by the hashes of their sides.

        Args:
            sources: those of the sources [n]; 0 for a pair without a source.
            targets: those of the targets [n].
            languages: of the sources and of the targets.
            both: whether the model also learns to translate the targets into the sources.
        """
        self._hashes.setdefault((languages, both), []).append((sources, targets))

    def write(self, run: Path, text: str, *, complete: bool = True) -> None:
        """Write the index of a run.

        Args:
            run: its folder.
            text: a digest of the training text.
            complete: whether all runs from which the weights come have an index.

        Raises:
            UserError: it can't be written.
        """
        few = sum(len(sources) for parts in self._hashes.values() for sources, _ in parts) <= FEW_PAIRS
        groups, contents = [], []
        for (languages, both), parts in self._hashes.items():
            sets = _sets_of(*(np.concatenate(side) for side in zip(*parts, strict=True)), few=few)
            sizes = [hash_set.size if hash_set else None for hash_set in sets]
            groups.append({"languages": languages, "both": both, "sets": sizes})
            contents += [hash_set.content.tobytes() for hash_set in sets if hash_set]
        _write(run, {"text": text, "complete": complete, "groups": groups}, b"".join(contents))


def _write(run: Path, header: dict[str, Any], sets: bytes) -> None:
    encoded = json.dumps(header, separators=(",", ":")).encode()
    content = encoded + sets
    start = _MAGIC + len(encoded).to_bytes(4, "little") + zlib.crc32(content).to_bytes(4, "little")
    write_atomically(run / SEEN, start + content)


def _sets_of(sources: Hashes, targets: Hashes, *, few: bool) -> list[_HashSet | None]:
    """Return the sets of sources, targets and pairs; pairs have the bits that are left."""
    full = (sources != 0) & (targets != 0)
    distinct = [_distinct(sources[sources != 0]), _distinct(targets[targets != 0])]
    if not few:
        return [*(_HashSet.of(hashes, FEWER_BITS - 2) for hashes in distinct), None]
    pairs = _distinct(pair_hashes(sources[full], targets[full]))
    left = (BITS - _LOW_BITS - 2) * sum(map(len, distinct))
    low_bits = min(left // max(len(pairs), 1) - 2, _MOST_LOW_BITS)
    sets: list[_HashSet | None] = [_HashSet.of(hashes, _LOW_BITS) for hashes in distinct]
    return [*sets, _HashSet.of(pairs, low_bits) if low_bits > 0 else None]


@dataclass(frozen=True)
class _Index:
    """One file."""

    text: str
    complete: bool
    groups: list[_Group]

    @classmethod
    def read(cls, file: Path) -> _Index:
        """Read a file.

        Raises:
            UserError: it is damaged, or of another kind.
        """
        try:
            content = np.memmap(file, np.uint8, "r")
        except (OSError, ValueError) as error:
            raise UserError("can't be read as an index of seen sentences", file=file, fix=_FIX) from error
        start = len(_MAGIC) + 8
        if content[: len(_MAGIC)].tobytes() != _MAGIC:
            raise UserError("is not an index of seen sentences", file=file, fix=_FIX)
        length, checksum = (int.from_bytes(content[i : i + 4].tobytes(), "little") for i in (start - 8, start - 4))
        header = None
        if length <= _LONGEST_HEADER:
            with suppress(ValidationError):
                header = _Header.model_validate_json(content[start : start + length].tobytes())
        sizes = [size for group in header.groups for size in group.sets if size] if header else []
        total = start + length + sum(size.gap_bytes + size.low_bytes for size in sizes)
        plausible = all(
            0 <= size.hashes <= size.buckets < 1 << 40 and 0 < size.low_bits <= _MOST_LOW_BITS for size in sizes
        )
        # The checksum is last, as it takes long for a large file.
        if header is None or not plausible or total != len(content) or zlib.crc32(content[start:].data) != checksum:
            raise UserError("is damaged or cut short", file=file, fix=_FIX)
        groups, offset = [], start + length
        for group in header.groups:
            sets: list[Any] = []
            for size in group.sets:
                end = offset + size.gap_bytes + size.low_bytes if size else offset
                sets.append(_HashSet(size, content[offset:end]) if size else None)
                offset = end
            if sets[0] is None or sets[1] is None:
                raise UserError("is damaged or cut short", file=file, fix=_FIX)
            groups.append(_Group(group.languages, group.both, *sets))
        return cls(header.text, header.complete, groups)


class Sides(NamedTuple):
    """What of one pair was in the training text."""

    source: bool
    reference: bool
    pair: bool
    """Whether both sides were there; in an index of up to a million pairs, together."""
    other_source: bool
    """Whether the source was only there in another direction of a multilingual model."""
    other_reference: bool

    @property
    def none(self) -> bool:
        """Whether no side was there."""
        return not any(self)


@dataclass
class SeenPairs:
    """What of the pairs of a test set was in the training text."""

    rates: tuple[float, float]
    """The probabilities of a false report of an unseen source and of an unseen reference."""
    complete: bool
    """Whether nothing else was in the training text."""
    sides: list[Sides] = field(default_factory=list)

    def lines(self) -> dict[str, list[int]]:
        """Return the numbers of the pairs, from 1, by what of them was there: `source`, `reference` and so on."""
        columns = zip(*self.sides, strict=True) if self.sides else ((),) * len(Sides._fields)
        numbers = {}
        for name, flags in zip(Sides._fields, columns, strict=True):
            numbers[name] = [number for number, flag in enumerate(flags, 1) if flag]
        return numbers

    def false_reports(self, sources: int, references: int) -> float:
        """Return how many false reports are expected, given the numbers of sources and references not reported."""
        expected = 0.0
        for count, rate in zip((sources, references), self.rates, strict=True):
            # Of u unseen ones, (1 - rate) u are not reported.
            expected += count * rate / (1 - rate)
        return expected


@dataclass(frozen=True)
class SeenSentences:
    """The sentences of the training text of a run, of the runs from which its weights come, and of its teachers.

    Several files are asked together.
    """

    indexes: Sequence[_Index]
    complete: bool
    """Whether nothing else was in the training text; some of it may be unknown."""

    @classmethod
    def of_run(cls, run: str | Path) -> SeenSentences | None:
        """Return those of a run; None if it has no index, so that nothing is known.

        Raises:
            UserError: a file is damaged.
        """
        folder = Path(run)
        files = index_files(folder)
        if not files:
            return None
        indexes = list(map(_Index.read, files))
        own = files[0] == folder / SEEN
        return cls(indexes, own and all(index.complete for index in indexes))

    @classmethod
    def of_runs(cls, runs: Iterable[str | Path]) -> SeenSentences | None:
        """Return those of several runs together; None if none of them has an index."""
        known = [cls.of_run(run) for run in runs]
        indexes = [index for seen in known if seen for index in seen.indexes]
        if not indexes:
            return None
        return cls(indexes, all(seen is not None and seen.complete for seen in known))

    def look_up(
        self,
        pairs: Sequence[Pair] | Sequence[tuple[str, str]],
        direction: Languages = (None, None),
        *,
        references: Sequence[Sequence[str | None]] = (),
    ) -> SeenPairs:
        """Return which sentences of a test set were in the training text.

        Args:
            pairs: the test set.
            direction: its languages, for a multilingual model.
            references: further references of each source, of which any counts.
        """
        sources = hashes_of([source for source, _ in pairs])
        all_targets = [hashes_of([target for _, target in pairs])]
        for texts in references:
            all_targets.append(hashes_of([text or "" for text in texts]))
        seen_sources, seen_targets, seen_pairs, other_sources, other_targets = np.zeros((5, len(pairs)), np.bool_)
        unseen_rates = [1.0, 1.0]
        for group in (group for index in self.indexes for group in index.groups):
            oriented = group.oriented(direction)
            if oriented is None:
                for sentences in group.of_language(direction[0]):
                    other_sources |= sentences.contains(sources)
                for sentences, targets in product(group.of_language(direction[1]), all_targets):
                    other_targets |= sentences.contains(targets)
                continue
            source_set, target_set, exchanged = oriented
            has_source = source_set.contains(sources)
            seen_sources |= has_source
            for targets in all_targets:
                has_target = target_set.contains(targets)
                seen_targets |= has_target
                has_both = has_source & has_target
                if group.pairs:
                    sides = (targets, sources) if exchanged else (sources, targets)
                    has_both = has_both & group.pairs.contains(pair_hashes(*sides))
                seen_pairs |= has_both
            unseen_rates[0] *= 1 - source_set.rate
            unseen_rates[1] *= (1 - target_set.rate) ** len(all_targets)
        rates = 1 - unseen_rates[0], 1 - unseen_rates[1]
        other_sources &= ~seen_sources
        other_targets &= ~seen_targets
        columns = np.stack([seen_sources, seen_targets, seen_pairs, other_sources, other_targets], axis=1)
        return SeenPairs(rates, self.complete, [Sides(*row) for row in columns.tolist()])


def index_files(run: Path) -> list[Path]:
    """Return the files of the index of a run, its own first."""
    return [file for file in (run / SEEN, *sorted((run / SEEN_BEFORE).glob("*.bin"))) if file.is_file()]


def text_of_index(run: Path) -> str | None:
    """Return the digest of the training text of a run's index; None if there is no index, or it is damaged."""
    try:
        return _Index.read(run / SEEN).text
    except UserError:
        return None


def inherit(run: Path, sources: Iterable[Path]) -> bool:
    """Copy the indexes of runs from which another one gets its weights; return whether nothing is missing.

    Raises:
        UserError: a file is damaged, or can't be written.
    """
    complete = True
    for source in sources:
        seen = SeenSentences.of_run(source)
        complete = complete and seen is not None and seen.complete
        for file in index_files(source):
            content = file.read_bytes()
            (run / SEEN_BEFORE).mkdir(exist_ok=True)
            # The same index may come from two of the runs.
            write_atomically(run / SEEN_BEFORE / f"{sha256(content).hexdigest()[:16]}.bin", content)
    return complete


def learn_from_teachers(run: Path, teachers: Iterable[Path]) -> None:
    """Add to the index of a student, if it has one, those of its teachers, whose training text its own depends on.

    Raises:
        UserError: a file is damaged, or can't be written.
    """
    if not (run / SEEN).is_file() or inherit(run, teachers):
        return
    _Index.read(run / SEEN)
    content = (run / SEEN).read_bytes()
    start = len(_MAGIC) + 8
    end = start + int.from_bytes(content[start - 8 : start - 4], "little")
    _write(run, json.loads(content[start:end]) | {"complete": False}, content[end:])
