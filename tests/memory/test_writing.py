"""Writing to a memory: atomically, and by several processes at once; and files that are not memories."""

import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time

import pytest

from bitext.memory.database import MemoryBusyError
from bitext.memory.translation_memory import Added, TranslationMemory, write_tmx, write_tsv
from bitext.pair import Pair
from translucid.data.readers.corpus import read_pairs
from translucid.ground.errors import UserError


@pytest.fixture
def file(tmp_path):
    return tmp_path / "m.memory"


def test_the_newest_stays(file):
    with TranslationMemory.open(file, write=True) as memory:
        assert memory.add([Pair("one", "uno"), Pair("two", "dos"), Pair("", "x"), Pair("x", " ")], "a.tmx") == Added(
            new=2, skipped=2
        )
        before = memory.change
        assert memory.add([Pair(" one ", "Uno"), Pair("two", "dos")], "Ana") == Added(changed=1, same=1)
    with TranslationMemory.open(file) as memory:
        entry = memory.exact("one").entry
        assert (entry.target, entry.who) == ("Uno", "Ana")
        assert abs(entry.when - time.time()) < 60
        assert [*memory.pairs()] == [Pair("two", "dos"), Pair("one", "Uno")]
        assert [*memory.pairs(before)] == [Pair("one", "Uno")]
        assert len(memory) == 2
        assert {row[:2] for row in memory.by_origin()} == {("a.tmx", 1), ("Ana", 1)}


def test_texts_that_tmx_can_not_contain_are_skipped_but_older_memories_export_them(file, tmp_path):
    invalid_texts = ["a\0b", "a\x01b", "a\x0eb", "a\ufffeb", "a\uffffb"]
    with TranslationMemory.open(file, write=True) as memory:
        pairs = [Pair(text, "x") for text in invalid_texts] + [
            Pair(f"{i}", text) for i, text in enumerate(invalid_texts)
        ]
        assert memory.add([*pairs, Pair("a\tb\x0bc", "d\x85e")], "who") == Added(new=1, skipped=len(pairs))
        assert memory.exact("a b c").target == "d e"
        memory._database.execute(
            "UPDATE segments SET target = ?", ("d\0e\x01f",)
        )  # earlier versions accepted such texts
        for ending in ("tmx", "tsv"):
            out = tmp_path / f"out.{ending}"
            with out.open("wb") as stream:
                if ending == "tmx":
                    write_tmx(memory, stream, ("en", "es"), lambda _: None, "1.0")
                else:
                    write_tsv(memory, stream, lambda _: None)
            assert [*read_pairs(str(out))] == [Pair("a b c", "d\ufffde\ufffdf")]


def test_an_existing_memory_is_opened_while_another_program_writes(file):
    TranslationMemory.open(file, write=True).close()
    connection = sqlite3.connect(file, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    with TranslationMemory.open(file, write=True, wait=0.05) as memory:
        assert memory.exact("a") is None
        with pytest.raises(MemoryBusyError, match="locked"):
            memory.add([Pair("a", "b")], "who")
    connection.close()


def test_an_error_leaves_what_was_there(file):
    def pairs():
        yield Pair("new text", "x")
        yield Pair("old text", "changed")
        raise UserError("broken")

    with TranslationMemory.open(file, write=True) as memory:
        memory.add([Pair("old text", "y")], "a")
        with pytest.raises(UserError):
            memory.add(pairs(), "b")
        assert memory.exact("new text") is None and memory.exact("old text").target == "y"
        memory.add([Pair("third text", "z")], "c")
        assert {match.entry.source for match in memory.matches("text", 50)} == {"old text", "third text"}
        # The lists contain nothing of the other texts: three pairs for each stored one, ends included.
        assert memory._database.execute("SELECT sum(size) FROM postings").fetchone()[0] == 2 * 3


def test_a_killed_import_leaves_what_was_there(file):
    with TranslationMemory.open(file, write=True) as memory:
        memory.add([Pair("old text", "y")], "a")
    program = f"""
from pathlib import Path
from bitext.pair import Pair
from bitext.memory import translation_memory
translation_memory.FLUSH_SIZE = 100
def pairs():
    for i in range(10**9):
        if i == 5000:
            print("far", flush=True)
        yield Pair(f"new text {{i}}", "x")
with translation_memory.TranslationMemory.open(Path({str(file)!r}), write=True) as memory:
    memory.add(pairs(), "b")
"""
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"far\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    with TranslationMemory.open(file, write=True) as memory:
        assert len(memory) == 1 and memory.matches("old text")[0].percent == 100
        assert not memory._database.execute("SELECT 1 FROM postings WHERE size > 1").fetchall()
        assert memory.add([Pair("new text 1", "x")], "c").new == 1


def add_many(file, name, count):
    with TranslationMemory.open(file, write=True) as memory:
        for i in range(count):
            memory.add([Pair(f"common words and {name} {i}", f"{name} {i}")], name)


def test_two_processes_that_add_at_once_lose_nothing(file):
    context = multiprocessing.get_context("spawn")
    # They also race to create the file.
    processes = [context.Process(target=add_many, args=(file, name, 60)) for name in ("left", "right")]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    with TranslationMemory.open(file) as memory:
        assert len(memory) == 120
        assert memory.change == 120
        for name in ("left", "right"):
            for i in range(60):
                # This looks up the index, because the key does not contain the number.
                assert memory.exact(f"common words and {name} {i}").target == f"{name} {i}"
        assert len(memory.matches("common words and left 0", 70, limit=1000)) == 120
        ids_in_lists = memory._database.execute("SELECT sum(size) FROM postings").fetchone()[0]
        assert ids_in_lists == 120 * 6


def test_creating_a_memory_waits_for_another_process_that_creates_it(file):
    connection = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
    connection.execute("BEGIN IMMEDIATE")  # the lock that a change of the journal takes first
    unlocking = threading.Timer(0.1, connection.execute, ["COMMIT"])
    unlocking.start()
    with TranslationMemory.open(file, write=True) as memory:
        assert not unlocking.is_alive()
        assert memory.add([Pair("a", "b")], "a").new == 1
    unlocking.join()
    connection.close()


def test_reading_continues_while_another_process_writes(file):
    with TranslationMemory.open(file, write=True) as writer, TranslationMemory.open(file) as reader:
        writer.add([Pair("old", "x")], "a")

        def pairs():
            yield Pair("new", "y")
            assert reader.exact("old") and reader.exact("new") is None

        writer.add(pairs(), "b")
        assert reader.exact("new").target == "y"


def run_sql(file, *statements):
    database = sqlite3.connect(file)
    for statement in statements:
        database.execute(statement)
    database.commit()
    database.close()


def test_files_that_are_not_memories_are_refused(file, tmp_path):
    with pytest.raises(UserError, match="there is no such memory"):
        TranslationMemory.open(file)
    assert not file.exists()
    file.write_text("source\ttarget\n" * 1000)
    for write in (True, False):
        with pytest.raises(UserError, match="no memory"):
            TranslationMemory.open(file, write=write)
    file.unlink()
    run_sql(file, "CREATE TABLE segments (id INTEGER)")
    for write in (True, False):
        with pytest.raises(UserError, match="no memory of ours"):
            TranslationMemory.open(file, write=write)
    file.unlink()
    file.symlink_to("/etc/passwd")
    with pytest.raises(UserError, match="leads out"):
        TranslationMemory.open(file)
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(UserError, match="not a file"):
        TranslationMemory.open(file)


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TRIGGER strange AFTER INSERT ON segments BEGIN DELETE FROM segments; END",
        "CREATE VIEW strange AS SELECT * FROM segments",
        "PRAGMA user_version = 99",
    ],
)
def test_a_memory_with_unknown_tables_is_refused(file, statement):
    with TranslationMemory.open(file, write=True) as memory:
        memory.add([Pair("a", "b")], "a")
    run_sql(file, statement)
    for write in (True, False):
        with pytest.raises(UserError, match=r"other tables|of version 99"):
            TranslationMemory.open(file, write=write)


def read_all(file):
    with TranslationMemory.open(file) as memory:
        memory.matches("some text")
        return [*memory.entries(), *memory.by_origin()]


def test_a_damaged_memory_is_reported_in_one_line(file):
    with TranslationMemory.open(file, write=True) as memory:
        memory.add([Pair(f"some text {i}", "x" * 100) for i in range(2000)], "a")
    content = bytearray(file.read_bytes())
    content[8192:-4096] = bytes([0xA5]) * (len(content) - 12288)
    file.write_bytes(content)
    with pytest.raises(UserError, match="damaged"):
        read_all(file)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE postings SET ids = x'FFFFFFFF'",
        "UPDATE postings SET ids = x'FFFFFF'",
        "UPDATE postings SET ids = 'text'",
        "UPDATE segments SET key = x'00'",
        "UPDATE segments SET target = x'FF'",
        "UPDATE segments SET at = 9000000000000000",
        "UPDATE segments SET at = 'never'",
        "UPDATE segments SET source = CAST(x'FF' AS TEXT)",
    ],
)
def test_invalid_values_are_reported_in_one_line(file, statement):
    with TranslationMemory.open(file, write=True) as memory:
        memory.add([Pair("some text", "x"), Pair("some more text", "y")], "a")
    run_sql(file, statement)
    with pytest.raises(UserError, match=r"damaged|not there|decode"):
        read_all(file)


@pytest.mark.parametrize("listing", [TranslationMemory.entries, TranslationMemory.pairs, TranslationMemory.by_origin])
def test_a_damaged_entry_is_reported_in_every_listing(file, listing):
    with TranslationMemory.open(file, write=True) as memory:
        memory.add([Pair("some text", "x")], "a")
    run_sql(file, "UPDATE segments SET at = 'never'")
    with TranslationMemory.open(file) as memory, pytest.raises(UserError, match="damaged"):
        list(listing(memory))


def test_languages_are_noted_and_compared(file):
    with TranslationMemory.open(file, write=True) as memory:
        assert memory.languages == (None, None)
        memory.note({"source language": "en", "target language": "es"})
        memory.refuse_other_languages(("en-US", "es"))
        memory.refuse_other_languages((None, None))
        with pytest.raises(UserError, match="target language es, not fr"):
            memory.refuse_other_languages(("en", "fr"))
