"""Running text on disk equals the one in memory, even if writing was interrupted."""

import tracemalloc

import numpy as np
import pytest

from bitext.pair import Pair
from bitext.readers.lines import BadLine
from translucid.corpora.phrasebook import generate
from translucid.data.readers.corpus import BadLines
from translucid.data.stores import store as stores
from translucid.data.stores.chunked import INDEX
from translucid.data.stores.store import EncodedTexts, Size, TextStore
from translucid.data.tokenizing.tokenizer import Tokenizer, TokenizerOptions
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL
from translucid.language.scores import Stream

TEXTS = [Pair(p.target, "label") for p in generate(230, max_words=10)] + [Pair(" ", "")]
CORPORA = [TEXTS[:100], TEXTS[100:]]


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.learn([Pair("", text.source) for text in TEXTS], TokenizerOptions(vocabulary=200), seed=1)


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch):
    monkeypatch.setattr(stores, "TEXT_CHUNK", 50)


def build(folder, tokenizer, *, corpora=CORPORA, identity="this", backwards=False):
    store = TextStore(folder)
    store.build(corpora, tokenizer, identity=identity, backwards=backwards)
    return store.open(identity)


def in_memory(tokenizer, **options):
    return EncodedTexts.encode([text.source for text in TEXTS[:-1]], tokenizer, **options)


@pytest.mark.parametrize("backwards", [False, True])
def test_on_disk_as_in_memory(tokenizer, tmp_path, backwards):
    stored, memory = (
        build(tmp_path / "texts", tokenizer, backwards=backwards),
        in_memory(tokenizer, backwards=backwards),
    )
    assert np.array_equal(stored.texts.ids, memory.ids)
    assert stored.texts.size == memory.size
    assert stored.texts.ids.dtype == np.uint16
    assert (stored.skipped.kept, stored.skipped.reasons, stored.skipped.unit) == (230, {"empty": 1}, "text")


def test_a_text_stands_between_start_and_end_and_is_counted_in_words_and_characters(tokenizer):
    encoded = EncodedTexts.encode(["uno dos", "tres"], tokenizer)
    first, second = tokenizer.encode_target(["uno dos", "tres"])
    assert encoded.ids.tolist() == [SPECIAL.start, *first, SPECIAL.end, SPECIAL.start, *second, SPECIAL.end]
    assert encoded.size == Size(texts=2, words=2 + 1 + 2, characters=7 + 4 + 2)
    backwards = EncodedTexts.encode(["uno dos", "tres"], tokenizer, backwards=True)
    assert backwards.ids.tolist() == [
        SPECIAL.start,
        *first[::-1],
        SPECIAL.end,
        SPECIAL.start,
        *second[::-1],
        SPECIAL.end,
    ]
    assert backwards.size == encoded.size


def test_the_text_is_memory_mapped(tokenizer, tmp_path):
    ids = build(tmp_path / "texts", tokenizer).texts.ids
    while ids.base is not None and not isinstance(ids, np.memmap):
        ids = ids.base
    assert isinstance(ids, np.memmap)


@pytest.mark.parametrize("cut", range(5))
def test_an_interrupted_store_resumes_after_any_chunk(tokenizer, tmp_path, cut, monkeypatch):
    folder, complete = tmp_path / "texts", build(tmp_path / "whole", tokenizer)
    build(folder, tokenizer)
    lines = (folder / INDEX).read_text().split("\n")[:-1]
    assert len(lines) == 1 + 5 + 1  # the head, the chunks, the totals
    (folder / INDEX).write_text("\n".join(lines[: 1 + cut]) + "\n" + lines[1 + cut][:9])
    with (folder / "texts.ids").open("ab") as file:
        file.write(b"half a chunk")
    assert TextStore(folder).open("this") is None
    chunks, encode = [], EncodedTexts.encode
    monkeypatch.setattr(
        EncodedTexts,
        "encode",
        lambda texts, *args, **kwargs: chunks.append(len(texts)) or encode(texts, *args, **kwargs),
    )
    resumed = build(folder, tokenizer)
    assert len(chunks) == 5 - cut, "what is there is not encoded again"
    assert np.array_equal(resumed.texts.ids, complete.texts.ids)
    assert (resumed.fingerprint, resumed.texts.size, resumed.skipped.kept) == (
        complete.fingerprint,
        complete.texts.size,
        230,
    )


def test_another_identity_is_encoded_anew(tokenizer, tmp_path):
    build(tmp_path / "texts", tokenizer)
    assert TextStore(tmp_path / "texts").open("another") is None
    assert build(tmp_path / "texts", tokenizer, corpora=[TEXTS[:10]], identity="another").texts.size.texts == 10


def test_unfinished_files_of_another_identity_are_discarded(tokenizer, tmp_path):
    build(tmp_path / "texts", tokenizer)
    lines = (tmp_path / "texts" / INDEX).read_text().splitlines(keepends=True)
    (tmp_path / "texts" / INDEX).write_text("".join(lines[:3]))  # two chunks of five
    rebuilt = build(tmp_path / "texts", tokenizer, corpora=[TEXTS[200:]], identity="another")
    expected = EncodedTexts.encode([text.source for text in TEXTS[200:-1]], tokenizer)
    assert np.array_equal(rebuilt.texts.ids, expected.ids) and rebuilt.texts.size == expected.size


@pytest.mark.parametrize(("size", "kind"), [(1 << 16, np.uint16), ((1 << 16) + 1, np.int32)])
def test_a_vocabulary_too_large_for_two_bytes_takes_four(tokenizer, tmp_path, monkeypatch, size, kind):
    monkeypatch.setattr(tokenizer, "target_size", size)
    stored = build(tmp_path / "texts", tokenizer)
    assert stored.texts.ids.dtype == kind
    assert np.array_equal(stored.texts.ids, in_memory(tokenizer).ids)


@pytest.mark.parametrize("damage", ["a flipped bit", "cut short", "missing", "empty"])
def test_damage_is_found(tokenizer, tmp_path, damage):
    build(tmp_path / "texts", tokenizer)
    file = tmp_path / "texts" / "texts.ids"
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 8
    if damage == "missing":
        file.unlink()
    else:
        file.write_bytes({"a flipped bit": content, "cut short": content[:-8], "empty": b""}[damage])
    with pytest.raises(UserError, match=r"texts\.ids: is (damaged|missing) or cut short"):
        TextStore(tmp_path / "texts").open("this")
    assert build(tmp_path / "texts", tokenizer).texts.size.texts == 230, "it can be made again"


def test_writing_and_reading_hold_little_of_the_text(tokenizer, tmp_path):
    """Six more characters of text, encoded and read in windows, take at most one more byte of memory."""

    class Many:
        def __init__(self, count):
            self.count = count

        def __iter__(self):
            return (Pair(TEXTS[i % 200].source * 10, "") for i in range(self.count))

    def measure(count):
        tracemalloc.start()
        stored = build(tmp_path / str(count), tokenizer, corpora=[Many(count)])
        stream = Stream(stored.texts, 64, 70)
        windows = stream.random_windows(1, 0)
        for number in range(0, len(windows.ends), 100):
            stream.batch(windows, number)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return stored.texts.size.characters, peak

    (few, low), (many, high) = measure(2_000), measure(5_000)
    assert many - few > 700_000
    assert high < 3_000_000
    assert high - low < (many - few) / 6


def test_nothing_but_blank_lines_is_refused(tokenizer, tmp_path):
    with pytest.raises(UserError, match=r"no texts are left \(0 texts; skipped 2: 2 empty\)"):
        build(tmp_path / "texts", tokenizer, corpora=[[Pair("", ""), Pair(" ", "x")]])


def test_texts_are_encoded_in_chunks(tokenizer, tmp_path, monkeypatch):
    monkeypatch.undo()
    counts = []
    texts = [Pair("a", "")] * 10_001
    TextStore(tmp_path / "texts").build([texts], tokenizer, identity="this", on_texts=counts.append)
    assert counts == [0, 10_000, 1]


def test_progress_and_bad_lines_are_counted(tokenizer, tmp_path):
    counts, bad, store = [], BadLines(), TextStore(tmp_path / "texts")

    def corpus():
        yield from TEXTS[:70]
        bad(BadLine("a.txt", 71, "what", "text"))

    store.build([corpus(), TEXTS[225:]], tokenizer, identity="this", on_texts=counts.append, bad=bad)
    assert counts == [0, 50, 25]
    assert store.open("this").skipped.reasons == {"empty": 1, "no texts": 1}
    rows = (tmp_path / "texts" / INDEX).read_text().splitlines(keepends=True)
    (tmp_path / "texts" / INDEX).write_text("".join(rows[:2]))
    resumed_counts = []
    store.build([TEXTS[:70], TEXTS[225:]], tokenizer, identity="this", on_texts=resumed_counts.append)
    assert resumed_counts == [50, 25] and store.open("this").skipped.reasons == {"empty": 1}
    store.files.remove()
    assert store.open("this") is None and not (tmp_path / "texts").exists()
