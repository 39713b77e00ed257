"""Stored values of memory files: a changed hash, band or mark would make users' existing memories useless."""

import io
import itertools
import sqlite3
from types import SimpleNamespace

import numpy as np
import pytest

from bitext.memory import database, translation_memory
from bitext.memory.database import _band, _most_frequent
from bitext.memory.match import Entry, Folded, Match, _character, variable_spans
from bitext.memory.translation_memory import TranslationMemory, _checked, _digest, write_tmx, write_tsv
from bitext.pair import Pair
from translucid import __version__
from translucid.data.tokenizing.pieces import MATCH
from translucid.memory import augmenting

TEXT = "Save 3 files, {x} of 足球"
KEY = [0x734CD, 0x18484, 0xB3B15, 0x794, 0xA47BE, 0x1FB45, 0x49759]
"""The keys of Save, a number, files, a placeholder, of, and two characters; BLAKE2b is the same on all machines."""
HASHES = [7930, 32492, 61003, 83317, 83821, 119623, 119881, 128745]


WORDS = [f"{left}{right}" for left in "abcdefgh" for right in "abcdefghijklmnopqrstuvwxy"]


@pytest.fixture
def memory(tmp_path, monkeypatch):
    clock = itertools.count(1_700_000_000)
    # Only this module's clock: background threads of other packages read the real one.
    monkeypatch.setattr(translation_memory, "time", SimpleNamespace(time=lambda: next(clock)))
    with TranslationMemory.open(tmp_path / "m.memory", write=True) as new_memory:
        yield new_memory


def rows_of(memory, table):
    return memory._database.execute(f"SELECT * FROM {table} ORDER BY 1").fetchall()


def test_the_keys_of_words_and_the_hashes_of_their_pairs():
    assert [ord(character) for character in Folded(TEXT).key] == KEY
    assert sorted(Folded(TEXT).pairs) == HASHES
    # The last character below the surrogates, and the first one above them.
    assert (_character("w907228"), _character("w89807")) == ("\ud7ff", "\ue000")


def test_the_tables_of_a_memory(memory):
    memory.add([Pair(TEXT, "Guarde 3"), Pair("of", "de")], "Ana")
    key, of_key = "".join(map(chr, KEY)), chr(KEY[4])
    assert rows_of(memory, "segments") == [
        (1, _digest(TEXT), key, TEXT, "Guarde 3", "Ana", 1_700_000_000, 1),
        (2, _digest("of"), of_key, "of", "de", "Ana", 1_700_000_000, 2),
    ]
    # A text of seven words is in band 5 of 64, as 2 log2(7) = 5.6, and a text of one word is in band 0.
    expected = {(64 * pair + 5, 1, 1) for pair in HASHES} | {(64 * pair, 1, 2) for pair in Folded("of").pairs}
    stored = {(bucket, size, int.from_bytes(ids, "little")) for _, bucket, size, ids in rows_of(memory, "postings")}
    assert stored == expected


def test_bands_of_lengths():
    """Each band starts at a power of the square root of two (1, 1.4, 2, 2.8, 4 words, …); the last one is unbounded."""
    assert [_band(words) for words in (0, 1, 2, 3, 4, 5, 6, 8, 1 << 31, 1 << 40)] == [0, 0, 2, 3, 4, 4, 5, 6, 62, 63]


@pytest.mark.parametrize("length", [8, 16])
@pytest.mark.parametrize("edit", ["replaced", "added", "removed"])
def test_a_match_of_exactly_the_requested_percentage_is_found(memory, length, edit):
    """A similarity of 87.5 % rounds to 88 %: words, bands and missing pairs are exactly at their limits."""
    words = WORDS[:length]
    edits = length // 8
    stored_words = {
        "replaced": [*words],
        "added": [*words],
        "removed": [word for i, word in enumerate(words) if i % 8 != 3],
    }[edit]
    if edit == "replaced":
        stored_words[3::8] = ["other"] * edits
    memory.add([Pair(" ".join(stored_words), "x")], "Ana")
    query_words = words
    if edit == "added":
        query_words = [word for i, word in enumerate(words) if i % 8 != 3]
    assert [match.percent for match in memory.matches(" ".join(query_words), 88)] == [88]
    assert memory.matches(" ".join(query_words), 89) == []


def test_long_texts_at_the_limit_of_missing_pairs(memory):
    """(100.5 - p) % of 200 words are replaced, never two adjacent ones: p % of them are equal, rounded up."""
    words = WORDS
    memory.add([Pair(" ".join(words), "x")], "Ana")
    for percent in range(60, 98, 2):
        count = 201 - 2 * percent
        query_words = list(words)
        for i in range(1, 2 * count, 2):
            query_words[i] = f"x{words[i]}"
        assert [match.percent for match in memory.matches(" ".join(query_words), percent)] == [percent]


def test_a_segment_in_256_lists_is_counted(monkeypatch):
    lists = [np.array([1], "<u4")] * 256
    assert _most_frequent(lists, 256, 2).tolist() == [1]
    assert _most_frequent(lists[:255], 255, 2).tolist() == [1]
    with pytest.raises(sqlite3.DatabaseError, match="not there"):
        _most_frequent([np.array([2], "<u4")], 1, 2)
    monkeypatch.setattr(database, "MOST", 2)
    lists = [np.array(numbers, "<u4") for numbers in ([0, 1, 2, 3], [1, 3], [2], [3])]
    assert sorted(_most_frequent(lists, 1, 4).tolist()) == [2, 3]  # of 1 and 2, the higher number
    assert sorted(_most_frequent(lists, 3, 4).tolist()) == [3]


def test_of_equally_good_matches_the_newest_comes_first_and_five_are_shown(memory):
    for word in "abcdefg":
        memory.add([Pair(f"page {word} two three", word)], "Ana")
    assert [match.target for match in memory.matches("page x two three", 75)] == ["g", "f", "e", "d", "c"]
    assert [match.target for match in memory.matches("page b two three", 100)] == ["b"]
    for text, threshold, limit in (("page b two three", 101, 5), ("page b two three", 70, 0), ("", 70, 5)):
        assert memory.matches(text, threshold, limit) == []


def test_texts_up_to_the_limit_are_stored(memory, monkeypatch):
    monkeypatch.setattr(translation_memory, "LONGEST", 5)
    pairs = [Pair("12345", "1"), Pair("123456", "1"), Pair("1", "12345"), Pair("2", "123456"), Pair("3", "")]
    assert memory.add(pairs, "Ana") == (2, 0, 0, 3)
    assert [*memory.pairs()] == [pairs[0], pairs[2]]
    assert memory.matches("12345")[0].percent == 100 and memory.matches("123456", 1) == []


def test_the_date_of_an_entry_is_within_the_limits():
    assert _checked(("a", "b", "c", 0)) == Entry("a", "b", "c", 0)
    assert _checked(("a", "b", "c", (1 << 37) - 1)).when == (1 << 37) - 1
    for when in (-1, 1 << 37, 1.0):
        with pytest.raises(sqlite3.DatabaseError, match="damaged"):
            _checked(("a", "b", "c", when))


def test_changes_are_numbered_one_by_one(memory):
    memory.add([Pair("a", "b"), Pair("c", "d")], "Ana")
    memory.add([Pair("a", "b")], "Ana")  # unchanged: no entry gets its change number
    assert memory.change == 2
    memory.remove(["a"])
    assert memory.change == 3
    memory.edit("c", "e", "Ben")
    assert (memory.change, memory.state.split()[:2]) == (4, ["1", "4"])


def test_authors_come_with_their_numbers_and_latest_dates(memory):
    memory.add([Pair("a", "b")], "Ana")
    memory.add([Pair("c", "d"), Pair("e", "f")], "Ben")
    memory.add([Pair("g", "h")], "Ben")
    assert memory.by_origin() == [("Ben", 3, 1_700_000_002), ("Ana", 1, 1_700_000_000)]


def test_progress_is_reported_for_every_so_many_pairs(memory, monkeypatch):
    for module in (augmenting, translation_memory):
        monkeypatch.setattr(module, "PROGRESS_STEP", 2)
    reports = []
    pairs = [Pair(f"page {word}", "x") for word in "abcde"]
    memory.add(pairs, "Ana", reports.append)
    list(augmenting.augmented(pairs, memory, 50, reports.append))
    write_tsv(memory, io.BytesIO(), reports.append)
    assert reports == [2, 2] * 3


def test_the_match_for_a_model_is_the_best_that_reaches_the_percentage(memory):
    memory.add([Pair("page a two three", "A"), Pair("page b", "B")], "Ana")
    assert augmenting.MatchAnnotation(memory, 75).apply("page x two three", "shown") == f"shown{MATCH} A"
    assert augmenting.MatchAnnotation(memory, 76).apply("page x two three", "shown") == "shown"


def test_an_exported_memory_byte_by_byte(memory):
    memory.add([Pair("a <b>", "x & y")], "An & a")
    memory.add([Pair("c", "d")], "")
    stream = io.BytesIO()
    write_tsv(memory, stream, lambda count: None)
    assert stream.getvalue() == b"a <b>\tx & y\nc\td\n"
    stream = io.BytesIO()
    write_tmx(memory, stream, ("en", "es"), lambda count: None, __version__)
    assert stream.getvalue().decode().splitlines() == [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<tmx version="1.4">',
        f'<header creationtool="translucid" creationtoolversion="{__version__}" segtype="sentence" o-tmf="translucid" '
        'adminlang="en" srclang="en" datatype="plaintext"/>',
        "<body>",
        '<tu changedate="20231114T221320Z" changeid="An &amp; a"><tuv xml:lang="en"><seg>a &lt;b&gt;</seg></tuv>'
        '<tuv xml:lang="es"><seg>x &amp; y</seg></tuv></tu>',
        '<tu changedate="20231114T221321Z"><tuv xml:lang="en"><seg>c</seg></tuv>'
        '<tuv xml:lang="es"><seg>d</seg></tuv></tu>',
        "</body>",
        "</tmx>",
    ]


def test_the_record_of_a_match():
    match = Match("Page 4 is new", Entry("Page 3 is old", "Página 3", "Ana", 1_700_000_000))
    assert match.record() == {
        "percent": 75,
        "source": "Page 3 is old",
        "target": "Página 4",
        "differing": [["4", "3"], ["new", "old"]],
        "who": "Ana",
        "when": "2023-11-14T22:13:20Z",
    }


def test_placeholders_that_come_again_have_their_own_places():
    text = "{a} 3 {a} b {a}"
    assert [token.text for token in Folded(text).all_tokens] == text.split()
    assert variable_spans(text) == [("{a}", 0), ("3", 4), ("{a}", 6), ("{a}", 12)]


@pytest.mark.parametrize(("enough", "too_many", "lists_read"), [(100, 100, 9), (0, 100, 3), (5, 100, 5), (0, 2, 2)])
def test_only_the_necessary_lists_are_read_if_they_are_long(memory, monkeypatch, enough, too_many, lists_read):
    """With eight words and 87.5 %, two pairs may be missing, so three lists are needed; each has one segment."""
    text = " ".join(WORDS[:8])
    memory.add([Pair(text, "x")], "Ana")
    monkeypatch.setattr(database, "ENOUGH", enough)
    monkeypatch.setattr(database, "TOO_MANY", too_many)
    lists, ids = [], memory._postings._ids
    monkeypatch.setattr(memory._postings, "_ids", lambda rows: lists.append(rows) or ids(rows))
    assert [match.percent for match in memory.matches(text, 88)] == [100]
    assert len(lists) == lists_read
