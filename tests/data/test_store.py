"""A corpus on disk equals the one in memory, even if writing was interrupted."""

import json

import numpy as np
import pytest

from bitext.pair import Pair
from bitext.readers.lines import BadLine
from translucid.corpora.phrasebook import generate
from translucid.data.filtering import Filter
from translucid.data.readers.corpus import BadLines
from translucid.data.stores import encoded
from translucid.data.stores.chunked import INDEX
from translucid.data.stores.encoded import EncodedCorpus
from translucid.data.stores.store import FILES, CorpusStore
from translucid.data.tokenizing.tokenizer import Tokenizer, TokenizerOptions
from translucid.ground.errors import UserError

PAIRS = [Pair(p.source, p.target) for p in generate(400, max_words=10)] + [Pair("", "vacío")]
CORPORA = [PAIRS[:250], PAIRS[250:]]


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.learn(PAIRS, TokenizerOptions(vocabulary=200), seed=1)


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch):
    monkeypatch.setattr(encoded, "CHUNK", 60)


def build(folder, tokenizer, *, corpora=CORPORA, identity="this", max_tokens=30, processes=1):
    store = CorpusStore(folder)
    store.build(
        corpora, [tokenizer] * len(corpora), Filter(), identity=identity, max_tokens=max_tokens, processes=processes
    )
    return store.open(identity)


def same(stored, other):
    arrays = "source_ids", "source_offsets", "target_ids", "target_offsets"
    return all(np.array_equal(getattr(stored.pairs, a), getattr(other, a)) for a in arrays)


def test_on_disk_as_in_memory(tokenizer, tmp_path):
    stored = build(tmp_path / "corpus", tokenizer)
    memory = EncodedCorpus.encode(PAIRS[:400], tokenizer, max_tokens=30)
    assert same(stored, memory)
    assert stored.pairs.source_ids.dtype == np.uint16
    assert 0 < 400 - len(memory) == stored.skipped.reasons["too long"]
    assert (stored.skipped.kept, stored.skipped.reasons["empty"]) == (len(memory), 1)
    assert sum(stored.sizes) == len(memory) and stored.sizes[0] == len(
        EncodedCorpus.encode(CORPORA[0], tokenizer, max_tokens=30)
    )


def test_any_number_of_processes_writes_the_same_bytes(tokenizer, forked_workers, tmp_path):
    single, double = (build(tmp_path / str(n), tokenizer, processes=n) for n in (1, 2))
    for name in (*FILES, INDEX):
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()
    assert single.fingerprint == double.fingerprint


@pytest.mark.parametrize("cut", range(8))
def test_an_interrupted_store_resumes_after_any_chunk(tokenizer, tmp_path, cut):
    folder = tmp_path / "corpus"
    complete = build(tmp_path / "whole", tokenizer)
    build(folder, tokenizer)
    lines = (folder / INDEX).read_text().split("\n")[:-1]
    assert len(lines) == 1 + 5 + 3 + 1  # the head, the chunks of two corpora, the totals
    # Cut off while the next line was written.
    (folder / INDEX).write_text("\n".join(lines[: 1 + cut]) + "\n" + lines[1 + cut][:9])
    for name in FILES:
        with (folder / name).open("ab") as file:
            file.write(b"half a chunk")
    chunks = []
    encode = encoded.EncodedCorpus.encode

    def counting_encode(pairs, *args, **kwargs):
        chunks.append(len(pairs))
        return encode(pairs, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoded.EncodedCorpus, "encode", counting_encode)
        resumed = build(folder, tokenizer)
    assert len(chunks) == 8 - cut, "what is there is not encoded again"
    assert same(resumed, complete.pairs)
    assert (resumed.fingerprint, resumed.sizes) == (complete.fingerprint, complete.sizes)
    assert (resumed.skipped.kept, resumed.skipped.reasons) == (complete.skipped.kept, complete.skipped.reasons)


def test_a_finished_corpus_is_not_built_for_another_identity(tokenizer, tmp_path):
    build(tmp_path / "corpus", tokenizer)
    assert CorpusStore(tmp_path / "corpus").open("another") is None
    fewer = build(tmp_path / "corpus", tokenizer, corpora=[PAIRS[:10]], identity="another")
    assert len(fewer.pairs) == 9


def test_nothing_and_half_a_corpus_are_no_corpus(tokenizer, tmp_path):
    assert CorpusStore(tmp_path / "none").open("this") is None
    build(tmp_path / "corpus", tokenizer)
    lines = (tmp_path / "corpus" / INDEX).read_text().split("\n")
    (tmp_path / "corpus" / INDEX).write_text("\n".join(lines[:3]) + "\n")
    assert CorpusStore(tmp_path / "corpus").open("this") is None


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("damage", ["a flipped bit", "cut short", "missing", "empty"])
def test_damage_is_found(tokenizer, tmp_path, name, damage):
    build(tmp_path / "corpus", tokenizer)
    file = tmp_path / "corpus" / name
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 8
    if damage == "missing":
        file.unlink()
    else:
        file.write_bytes({"a flipped bit": content, "cut short": content[:-8], "empty": b""}[damage])
    with pytest.raises(UserError, match=rf"{name}: is (damaged|missing) or cut short"):
        CorpusStore(tmp_path / "corpus").open("this")
    assert len(build(tmp_path / "corpus", tokenizer).pairs) > 300, "it can be made again"


@pytest.mark.parametrize("side", ["source_size", "target_size"])
@pytest.mark.parametrize(("size", "kind"), [(1 << 16, np.uint16), ((1 << 16) + 1, np.int32)])
def test_a_vocabulary_too_large_for_two_bytes_takes_four(tokenizer, tmp_path, monkeypatch, side, size, kind):
    monkeypatch.setattr(tokenizer, side, size)
    stored = build(tmp_path / "corpus", tokenizer, corpora=[PAIRS[:70]])
    assert stored.pairs.source_ids.dtype == stored.pairs.target_ids.dtype == kind
    assert stored.pairs.source_offsets.dtype == stored.pairs.target_offsets.dtype == np.int64
    assert same(stored, EncodedCorpus.encode(PAIRS[:70], tokenizer, max_tokens=30))


def test_text_without_a_usable_pair_is_refused(tokenizer, tmp_path):
    with pytest.raises(UserError, match=r"no training pairs are left \(0 pairs; skipped 2: 1 empty, 1 too long\)"):
        build(tmp_path / "corpus", tokenizer, corpora=[[PAIRS[0], PAIRS[-1]]], max_tokens=2)


def test_the_index_is_read_by_eye(tokenizer, tmp_path):
    build(tmp_path / "corpus", tokenizer)
    rows = [json.loads(line) for line in (tmp_path / "corpus" / INDEX).read_text().splitlines()]
    assert rows[1].keys() == {"corpus", "pairs", "kept", "width", "counts", "crc32", "check"}
    assert rows[-1].keys() == {"sizes", "kept", "reasons", "check"}


def test_a_flipped_bit_anywhere_in_the_index_is_found(tokenizer, tmp_path):
    folder, complete = tmp_path / "corpus", build(tmp_path / "corpus", tokenizer)
    content = (folder / INDEX).read_bytes()
    for position in range(0, len(content), 41):
        damaged = bytearray(content)
        damaged[position] ^= 1
        (folder / INDEX).write_bytes(damaged)
        assert CorpusStore(folder).open("this") is None
    assert same(build(folder, tokenizer), complete.pairs)


def test_progress_and_bad_lines_are_counted(tokenizer, tmp_path):
    counts, bad = [], BadLines()
    store = CorpusStore(tmp_path / "corpus")
    options = {"identity": "this", "max_tokens": 30, "processes": 1}

    def corpus():
        yield from PAIRS[:70]
        bad(BadLine("a.tsv", 71, "what", "text"))

    store.build([corpus(), PAIRS[390:]], [tokenizer] * 2, Filter(), on_pairs=counts.append, bad=bad, **options)
    assert counts == [0, 60, 10, 0, 10]
    reasons = store.open("this").skipped.reasons
    assert (reasons["no pairs"], reasons["empty"]) == (1, 1)
    rows = (tmp_path / "corpus" / INDEX).read_text().splitlines(keepends=True)
    (tmp_path / "corpus" / INDEX).write_text("".join(rows[:-2]))
    resumed_counts = []
    store.build([PAIRS[:70], PAIRS[390:]], [tokenizer] * 2, Filter(), on_pairs=resumed_counts.append, **options)
    assert resumed_counts == [70, 0, 10]
    assert store.open("this").skipped.reasons["no pairs"] == 0


def test_a_corpus_without_a_pair_among_others(tokenizer, tmp_path):
    stored = build(tmp_path / "corpus", tokenizer, corpora=[[PAIRS[-1]], PAIRS[:5], []])
    assert stored.sizes == [0, 4, 0] and len(stored.pairs) == 4


def test_a_store_takes_the_place_of_another(tokenizer, tmp_path):
    new, old = CorpusStore(tmp_path / "new"), CorpusStore(tmp_path / "old")
    build(tmp_path / "new", tokenizer, corpora=[PAIRS[:5]], identity="new")
    build(tmp_path / "old", tokenizer, corpora=[PAIRS[:9]], identity="old")
    new.replace(old)
    assert len(old.open("new").pairs) == 4 and not (tmp_path / "new").exists()
    old.remove()
    assert not (tmp_path / "old").exists()
    old.remove()


def test_an_unwritable_folder_is_reported_in_one_line(tokenizer, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match=r"can't be made \(.*Choose another folder"):
        build(tmp_path / "file" / "corpus", tokenizer)
    for rows in (0, 1):
        calls = []

        def fail(descriptor, rows=rows, calls=calls):
            calls.append(descriptor)
            if len(calls) > 1 + rows * len(FILES):  # the first call belongs to the head of the index
                raise OSError(28, "No space left on device")

        monkeypatch.setattr("os.fsync", fail)
        with pytest.raises(UserError, match=r"can't be written .No space left.*give the same command again"):
            build(tmp_path / f"corpus{rows}", tokenizer)
    monkeypatch.undo()
    assert len(build(tmp_path / "corpus0", tokenizer).pairs) > 300
