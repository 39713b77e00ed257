"""A few of the hostile inputs of `python -m tests.probes.hostile`, and that it can fail at all."""

import importlib
import mmap
import time

import pytest

from translucid.ground.errors import UserError

COUNTS = {
    "corpora": 200,
    "documents": 45,
    "texts": 75,
    "settings": 75,
    "vocabularies": 60,
    "images": 120,
    "run_folders": 30,
    "searches": 20,
    "lines": 9,
}


def module(name):
    return importlib.import_module(f"tests.probes.hostile.{name}")


@pytest.mark.parametrize("target", COUNTS)
def test_bad_input_is_one_clear_line_or_right(target):
    memory_ceiling = module("memory").memory_ceiling
    with memory_ceiling(4 << 30):
        tally = module(target).fuzz(COUNTS[target], seed=7)
    assert not tally.failures, tally.failures[0]
    assert tally.tried == COUNTS[target] == tally.refused + tally.accepted
    assert tally.accepted > 0
    assert tally.refused > 0 or target == "texts"  # any text is valid input


def test_every_target_has_a_share():
    assert module("runner").SHARES.keys() == COUNTS.keys()
    assert sum(module("runner").SHARES.values()) == pytest.approx(1)


def raising(error):
    def act():
        raise error

    return act


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (raising(ValueError("oh")), "ValueError: oh"),
        (raising(MemoryError()), "MemoryError"),
        (raising(UserError("")), "not one clear line"),
        (lambda: time.sleep(5), "took more than 0.1 seconds"),
    ],
)
def test_anything_but_one_clear_line_is_a_failure(act, message, monkeypatch):
    monkeypatch.setattr(module("tally"), "PATIENCE", 2)
    tally = module("tally").Tally("x")
    tally.attempt("the input", act, seconds=0.1)
    assert (tally.tried, tally.refused, tally.accepted) == (1, 0, 0)
    assert "the input" in tally.failures[0] and message in tally.failures[0]


def test_the_ceiling_of_memory_holds():
    # Pages of its own: a bytearray may get what was freed before.
    with module("memory").memory_ceiling(100 << 20), pytest.raises(OSError, match="allocate memory"):
        mmap.mmap(-1, 1 << 30)
    mmap.mmap(-1, 200 << 20).close()


def test_a_vocabulary_that_kills_its_process_is_a_failure_and_the_next_is_tried(monkeypatch):
    vocabularies = module("vocabularies")
    worker = vocabularies._Worker()
    worker.process.kill()
    verdict, problem = worker.show(b"x")
    assert verdict == b"" and ("died" in problem or "dead" in problem)
    assert vocabularies._Worker().show(b"x")[0] == vocabularies.REFUSED


def test_a_target_that_dies_is_a_failure():
    tally = module("runner").run_apart("no_such_target", 1, 1)
    assert "died" in tally.failures[0]
