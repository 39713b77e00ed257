"""The server's translation memory in isolation."""

import threading
from types import SimpleNamespace

import pytest

from bitext.memory.database import MemoryBusyError
from bitext.memory.translation_memory import TranslationMemory
from bitext.pair import Pair
from translucid.ground.errors import UserError
from translucid.serving import memory as module
from translucid.serving.edge.failures import ServerError
from translucid.serving.memory import ServerMemory

from .refusals import refusal_of

PAIR = Pair("You sing.", "Cantas.")


@pytest.fixture
def memory(memory_file):
    memory_routes = ServerMemory.open(memory_file, ("en", "es"), grows=True)
    yield memory_routes
    memory_routes.close()


def add_pairs(memory, *pairs):
    return memory.add("en", "es", pairs or [PAIR], "who").result(10)


def test_a_memory_that_names_no_languages_gets_those_of_the_server(memory, memory_file):
    assert memory.languages == ("en", "es") and memory.grows
    with TranslationMemory.open(memory_file) as stored:
        assert stored.languages == ("en", "es")
    reopened = ServerMemory.open(memory_file, ("de", "fr"), grows=False)
    assert reopened.languages == ("en", "es") and not reopened.grows
    reopened.close()


@pytest.mark.parametrize(("languages", "notes"), [((None, "es"), {"target language": "es"}), ((None, None), {})])
def test_languages_that_nobody_knows_are_not_stored(memory_file, languages, notes):
    memory_routes = ServerMemory.open(memory_file, languages, grows=True)
    assert memory_routes.languages == languages
    assert memory_routes.is_between("xx", "es-MX") and memory_routes.is_between("xx", "yy") is not bool(notes)
    memory_routes.close()
    with TranslationMemory.open(memory_file) as stored:
        assert stored.languages == languages


def test_any_corpus_can_be_looked_up_but_not_added_to(tmp_path):
    corpus = tmp_path / "pairs.tsv"
    corpus.write_text("I sing.\tCanto.\n")
    memory_routes = ServerMemory.open(corpus, ("en", "es"), grows=False)
    assert memory_routes.recall.replacement("I sing.").target == "Canto."
    assert refusal_of(memory_routes.add, "en", "es", [PAIR], "who") == (
        403,
        "Suggestions are disabled on this server.",
        None,
    )
    memory_routes.close()
    with pytest.raises(UserError) as error:
        ServerMemory.open(corpus, ("en", "es"), grows=True)
    assert str(error.value) == f"{corpus}: can't be added to. Name a memory to add to: mine.memory."


def test_a_memory_is_of_its_languages(memory):
    for pair, is_known in (
        (("en-GB", "es"), True),
        (("es", "en"), False),
        (("en", "fr"), False),
        (("de", "es"), False),
    ):
        assert memory.is_between(*pair) is is_known
        if not is_known:
            message = "Invalid request: suggestions are taken from en to es"
            assert refusal_of(memory.add, *pair, [PAIR], "who") == (400, message, None)


def test_characters_that_no_file_can_hold(memory):
    message = "Invalid request: a suggestion has the character U+0001, which no file can hold"
    assert (
        refusal_of(add_pairs, memory, Pair("a\x01", "b"))
        == refusal_of(add_pairs, memory, Pair("a", "\x01b"))
        == (400, message, None)
    )
    add_pairs(memory, Pair("a\x01", "b"), PAIR)  # other pairs of the same suggestion are stored
    assert memory.recall.replacement("You sing.").target == "Cantas."
    assert memory.recall.replacement("a") is None


def test_pairs_that_are_too_long(memory):
    too_long = "Invalid request: a suggestion has two texts of some thousand characters at most"
    assert refusal_of(add_pairs, memory, Pair("a" * 100_000, "b")) == (400, too_long, None)
    add_pairs(memory, Pair("a" * 100_000, "b"), PAIR)


def test_a_full_memory(memory, monkeypatch):
    monkeypatch.setattr(module, "MOST", 2)
    add_pairs(memory)
    message = "No more suggestions are taken: the memory is full"
    assert refusal_of(add_pairs, memory, Pair("We sing.", "Cantamos.")) == (403, message, None)


def test_errors_of_the_file(memory, monkeypatch, caplog):
    def fail(*_):
        raise next(errors)

    errors = iter([MemoryBusyError("is locked"), UserError("is damaged")])
    monkeypatch.setattr(TranslationMemory, "add", fail)
    busy = "Another program is writing to the translation memory, please come again"
    assert refusal_of(add_pairs, memory) == (503, busy, 30)
    assert caplog.messages == ["a suggestion was not taken: is locked."]
    with pytest.raises(ServerError, match="is damaged"):
        add_pairs(memory)


def test_additions_that_wait_are_limited(memory, monkeypatch):
    go = threading.Event()
    memory._pending = threading.BoundedSemaphore(2)
    monkeypatch.setattr(ServerMemory, "_add", lambda *_: go.wait(10))
    waiting = [memory.add("en", "es", [PAIR], "who") for _ in range(2)]
    busy = "Too many suggestions are waiting, please come again"
    assert refusal_of(memory.add, "en", "es", [PAIR], "who") == (503, busy, 10)
    go.set()
    assert all(future.result(10) for future in waiting)
    memory.add("en", "es", [PAIR], "who").result(10)


def test_a_memory_that_cannot_be_read_is_left_alone_for_a_while(memory, monkeypatch, caplog):
    clock = SimpleNamespace(now=50.0)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock.now))
    calls = []

    def fail(self, text, *arguments):
        calls.append(text)
        raise UserError("is locked")

    with monkeypatch.context() as patch:
        for name in ("exact", "matches"):
            patch.setattr(TranslationMemory, name, fail)
        assert memory.memory.exact("I like soccer.") is None
        clock.now = 59.5
        assert memory.memory.matches("I like soccer.") == []
        assert calls == ["I like soccer."]
        clock.now = 60
        assert memory.memory.matches("again") == [] and calls == ["I like soccer.", "again"]
    warning = "texts are translated without the memory for 10 seconds: is locked."
    assert caplog.messages == [warning] * 2
    clock.now = 70
    assert memory.memory.exact("I like soccer.").target == "Me encanta."
    assert [match.percent for match in memory.memory.matches("I like soccer.")] == [100]
    assert memory.memory.matches("I like soccer too.", 80) == []
    assert len(memory.memory.matches("I like soccer too.", 70)) == 1
    assert memory.memory.matches("I like soccer too.", 70, 0) == []
