"""Cached indices of corpora, and memories exported for other programs."""

import io
import os
from pathlib import Path

import pytest

from bitext.memory.translation_memory import TranslationMemory, write_tmx
from bitext.pair import Pair
from translucid.data.readers.corpus import read_pairs
from translucid.ground.errors import UserError
from translucid.memory.opening import open_memory


@pytest.fixture
def corpus_file(tmp_path):
    file = tmp_path / "pairs.tsv"
    file.write_text("one two three\tuno dos tres\nfour\tcuatro\n")
    return file


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "translucid" / "memory"


def test_a_corpus_is_indexed_once(corpus_file, cache):
    with open_memory(corpus_file) as memory:
        assert memory.exact("four").target == "cuatro"
    (cached,) = cache.iterdir()
    before = (cached / "index.memory").stat().st_mtime_ns
    with open_memory(corpus_file) as memory:
        assert memory.matches("one two four", 60)[0].entry.who == "pairs.tsv"
    assert [*cache.iterdir()] == [cached] and (cached / "index.memory").stat().st_mtime_ns == before


def test_another_text_is_indexed_anew(corpus_file, cache):
    open_memory(corpus_file).close()
    corpus_file.write_text("one two three\tuno dos tres\nfour\tCuatro\n")
    os.utime(corpus_file, ns=(1, 1))
    with open_memory(corpus_file) as memory:
        assert memory.exact("four").target == "Cuatro"


def test_a_damaged_index_is_made_anew(corpus_file, cache):
    open_memory(corpus_file).close()
    (index,) = cache.glob("*/index.memory")
    index.write_bytes(b"no index")
    with open_memory(corpus_file) as memory:
        assert memory.exact("four")


def test_an_interrupted_index_is_none(corpus_file, cache, monkeypatch):
    def interrupt(*arguments):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(TranslationMemory, "_add_pair", interrupt)
        with pytest.raises(KeyboardInterrupt):
            open_memory(corpus_file)
    assert not [*cache.iterdir()]
    with open_memory(corpus_file) as memory:
        assert len(memory) == 2


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.tsv", "", "empty"),
        ("a.tsv", "\t\n", "no sentence pairs"),
        ("a.docx", "x", "not read as sentence pairs"),
        ("a.memory", "x", "no memory"),
        ("missing.tmx", None, "can't be read"),
        ("missing.memory", None, "no such memory"),
    ],
)
def test_files_that_can_not_be_opened_are_reported(tmp_path, cache, name, content, message):
    file = tmp_path / name
    if content is not None:
        file.write_text(content)
    with pytest.raises(UserError, match=message):
        open_memory(file)


def test_a_memory_written_as_tmx_is_read_again(tmp_path):
    pairs = [Pair('a <b> & "c"', "ä ]]> €"), Pair("𝄞 x", "y"), Pair("bell \x07 x", "z")]
    with TranslationMemory.open(tmp_path / "m.memory", write=True) as memory:
        memory.add(pairs, "An & a")
        stream = io.BytesIO()
        write_tmx(memory, stream, ("en", "es"), lambda count: None, "1.0")
    file = Path(tmp_path / "m.tmx")
    file.write_bytes(stream.getvalue())
    assert [*read_pairs(file)] == pairs[:2]  # TMX can't contain a bell character, so the memory refused it
    assert b'changeid="An &amp; a"' in stream.getvalue()
