"""`translucid memory learn`: which pairs a run learns, what they are mixed with, and what the next update learns."""

import pytest

from bitext.memory.translation_memory import TranslationMemory
from bitext.pair import Pair
from translucid.corpora.phrasebook import generate
from translucid.data.readers.corpus import read_pairs
from translucid.runs.run_folder import RunFolder
from translucid.training.memory_updates import last_learned_change

STEPS = ["--set", "training.max_steps=4", "training.validate_every=2", "training.validate_sentences=3"]


def pairs(count, seed):
    return [Pair(phrase.source, phrase.target) for phrase in generate(count, seed=seed, max_words=8)]


def numberless_sources(files):
    """Return the source sentences of corpus files without the numbers at their ends."""
    return {pair.source.rstrip("0123 ") for pair in read_pairs(*files)}


@pytest.fixture
def memory(tmp_path):
    file = tmp_path / "m.memory"
    with TranslationMemory.open(file, write=True) as translation_memory:
        translation_memory.add(pairs(60, seed=5), "Ana")
    return file


def test_new_pairs_are_learned_and_recorded(call, small_run, corpus, memory, tmp_path):
    result = call("memory", "learn", small_run, memory, "--out", tmp_path / "one", *STEPS)
    assert result.code == 0, result.err
    assert (
        "60 new pairs" in result.err
        and "on the rest (--valid-general)" in result.err
        and "before   after" in result.err
    )
    configuration = RunFolder(tmp_path / "one").configuration()
    assert configuration.data.mix == {str(corpus / "train.tsv"): 0.8} and configuration.data.valid_general == [
        str(corpus / "test.tsv")
    ]
    assert configuration.training.begin_from == str(small_run) and configuration.training.warmup == 20
    train, valid = ([*read_pairs(*files)] for files in (configuration.data.train, configuration.data.valid))
    assert sorted(map(str, (tmp_path / "one" / "pairs").iterdir())) == sorted(
        [*configuration.data.train, *configuration.data.valid]
    )
    assert {*train, *valid} == {*pairs(60, seed=5)} and 1 <= len(valid) <= 15

    # The new run has learned the pairs; the run that it started from has not.
    result = call("memory", "learn", tmp_path / "one", memory, "--out", tmp_path / "two", *STEPS)
    assert result.code == 2 and "has 0 pairs that are new to this run" in result.err and "--relearn" in result.err
    with TranslationMemory.open(memory, write=True) as translation_memory:
        assert (
            last_learned_change(tmp_path / "one", translation_memory),
            last_learned_change(small_run, translation_memory),
        ) == (60, 0)
        translation_memory.add([Pair(pair.source, "changed") for pair in pairs(25, seed=5)], "Eva")
    result = call("memory", "learn", tmp_path / "one", memory, "--out", tmp_path / "two", *STEPS)
    assert result.code == 0 and "25 new pairs" in result.err, result.err
    later_valid = [*read_pairs(*RunFolder(tmp_path / "two").configuration().data.valid)]
    assert {pair.source for pair in later_valid} <= {pair.source for pair in valid}
    assert RunFolder(tmp_path / "two").configuration().data.mix == configuration.data.mix
    assert "learned" not in call("memory", "stats", memory).out


def test_an_adapter_is_kept_with_the_run_by_its_name(call, small_run, memory, tmp_path):
    import shutil

    base = shutil.copytree(small_run, tmp_path / "base")
    result = call("memory", "learn", base, memory, "--adapter", "mine", "--mix", f"{memory.parent}/general.tsv=0.5")
    assert result.code == 2 and "general.tsv: can't be read" in result.err
    result = call("memory", "learn", base, memory, "--adapter", "mine", *STEPS)
    assert result.code == 0, result.err
    assert RunFolder(tmp_path / "base-mine").configuration().training.adapter_rank == 8
    assert call("translate", base, "--adapter", "mine", "I like soccer.").code == 0


def test_a_corpus_is_learned_like_a_memory(call, small_run, corpus, tmp_path):
    result = call("memory", "learn", small_run, corpus / "train.tsv", "--out", tmp_path / "one", *STEPS)
    assert result.code == 0 and "300 new pairs" in result.err, result.err


def test_invalid_commands_are_refused(call, small_run, memory, tmp_path):
    assert call("memory", "learn", small_run, memory).code == 2
    result = call("memory", "learn", small_run, memory, "--out", small_run, "--overwrite")
    assert result.code == 2 and "is the run to fine-tune" in result.err
    few = tmp_path / "few.memory"
    with TranslationMemory.open(few, write=True) as translation_memory:
        translation_memory.add(pairs(5, seed=1), "Ana")
    result = call("memory", "learn", small_run, few, "--out", tmp_path / "one")
    assert result.code == 2 and "few.memory: has 5 pairs. At least 20 are needed" in result.err
    assert not [*(tmp_path / "one").iterdir()]


def test_a_refused_training_leaves_the_run_to_be_replaced(call, small_run, memory, tmp_path):
    command = ["memory", "learn", small_run, memory, "--out", tmp_path / "one"]
    assert call(*command, *STEPS).code == 0

    def content():
        files = [file for file in (tmp_path / "one").rglob("*") if file.is_file() and file.name != ".lock"]
        return {file: file.read_bytes() for file in files}

    before = content()
    with TranslationMemory.open(memory, write=True) as translation_memory:
        translation_memory.add([Pair("one more", "otro más")], "Eva")
    assert call(*command, "--overwrite", *STEPS, "model.width=32").code == 2
    after = content()
    assert {file: after[file] for file in before} == before
    few = tmp_path / "few.memory"
    with TranslationMemory.open(few, write=True) as translation_memory:
        translation_memory.add(pairs(5, seed=1), "Ana")
    assert call("memory", "learn", small_run, few, "--out", tmp_path / "one", "--overwrite").code == 2
    assert {file: content()[file] for file in before} == before

    # The run that replaces it keeps none of its pairs.
    assert call(*command, "--overwrite", *STEPS).code == 0
    data = RunFolder(tmp_path / "one").configuration().data
    assert sorted(map(str, (tmp_path / "one" / "pairs").iterdir())) == sorted([*data.train, *data.valid])


def test_similar_entries_are_held_out_together(call, small_run, tmp_path, monkeypatch):
    monkeypatch.setattr("translucid.training.memory_updates.MAX_HELD_OUT", 3)
    rows = [Pair(f"{pair.source} {number}", pair.target) for number in range(4) for pair in pairs(60, seed=5)]
    (tmp_path / "pairs.tsv").write_text("".join(f"{pair.source}\t{pair.target}\n" for pair in rows), encoding="utf-8")
    result = call("memory", "learn", small_run, tmp_path / "pairs.tsv", "--out", tmp_path / "one", *STEPS)
    assert result.code == 0, result.err
    data = RunFolder(tmp_path / "one").configuration().data
    train, valid = numberless_sources(data.train), numberless_sources(data.valid)
    assert valid and not train & valid
