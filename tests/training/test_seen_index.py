"""The seen-sentence index that a training writes."""

from dataclasses import replace

import pytest

from bitext.pair import Pair
from tests.training.test_trainer import weights
from translucid.corpora.phrasebook import generate
from translucid.data.readers.corpus import SyntheticPair, TargetText
from translucid.data.seen_sentences import SEEN, SEEN_BEFORE, SeenSentences
from translucid.runs.corpus_files import Corpora

SHORT = "training.max_steps=2"


def counts(run, pairs):
    return {name: len(lines) for name, lines in SeenSentences.of_run(run).look_up(pairs).lines().items()}


@pytest.fixture(scope="module")
def run(train, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "run"
    train(folder, SHORT)
    return folder


def test_all_sentences_that_are_learned_are_in_it(run, train, corpora, tmp_path):
    pairs = corpora.train[0]
    distinct = len({p.source.casefold() for p in pairs}) + len({p.target.casefold() for p in pairs})
    assert (run / SEEN).stat().st_size <= 3 * distinct + 300
    assert counts(run, pairs)["pair"] == len(pairs)
    assert counts(run, corpora.valid)["source"] == 0
    train(tmp_path / "without", SHORT, "data.seen_index=false")
    assert not (tmp_path / "without" / SEEN).exists()
    for name, weight in weights(run).items():
        assert weight.equal(weights(tmp_path / "without")[name])


def test_the_unit_is_a_sentence_as_it_was_read(train, tmp_path):
    """Placeholders and fuzzy matches, synthetic pairs and text of the target language; pairs that are skipped."""
    pairs = [Pair(f"Call {p.source}", f"Llama {p.target}") for p in generate(60, max_words=6)]
    named = [Pair(f"Anna saw 17 {i}.", f"Anna vio 17 {i}.") for i in range(20)]
    skipped = [Pair("", "Nada"), Pair("a " * 1500, "b " * 1500), Pair("c " * 300, "d " * 300)]
    synthetic = [SyntheticPair("written by a model", "escrito"), TargetText.of("sin fuente")]
    data = Corpora([[*pairs, *named, *skipped], synthetic], pairs[:4], "digest")
    settings = ["data.placeholders=0.9", "data.subword_dropout=0", "data.fuzzy_matches=50", "data.max_tokens=80"]
    train(tmp_path / "run", SHORT, *settings, "data.synthetic=[none.tsv]", "data.train=[none.tsv]", data=data)
    found = counts(tmp_path / "run", [*pairs, *named, *synthetic])
    assert found["pair"] == found["source"] == len(pairs) + len(named) + 1
    assert found["reference"] == found["source"] + 1
    assert not any(counts(tmp_path / "run", skipped).values())


def test_a_resumed_run_keeps_its_index(run, train, corpora, tmp_path, monkeypatch):
    content = (run / SEEN).read_bytes()
    modified = (run / SEEN).stat().st_mtime_ns
    train(run, "training.max_steps=3", resume=True)
    assert (run / SEEN).stat().st_mtime_ns == modified
    for damaged in (b"", content[:-1]):  # as after a crash between the corpus and the index
        (run / SEEN).write_bytes(damaged)
        train(run, "training.max_steps=3", resume=True)
        assert (run / SEEN).read_bytes() == content


def test_the_index_of_an_initial_run_stays_a_file_of_its_own(run, train, corpora, tmp_path):
    new = [Pair(f"New {p.source}", f"Nuevo {p.target}") for p in corpora.train[0][:30]]
    data = replace(Corpora.of(new, corpora.valid))
    settings = ["training.learning_rate=0.01", "data.tokenizer.vocabulary=200"]
    first, second = tmp_path / "first", tmp_path / "second"
    train(first, SHORT, *settings, f"training.begin_from={run}", data=data)
    assert [file.read_bytes() for file in (first / SEEN_BEFORE).iterdir()] == [(run / SEEN).read_bytes()]
    (first / SEEN).unlink()
    train(second, SHORT, *settings, f"training.begin_from={first}", data=data)
    for folder in (second,):
        assert counts(folder, [*new, *corpora.train[0]])["pair"] == len(new) + len(corpora.train[0])
        assert not SeenSentences.of_run(folder).complete  # the first one has lost its own index
    train(second, "training.max_steps=3", *settings, f"training.begin_from={first}", data=data, resume=True)
    assert len(list((second / SEEN_BEFORE).iterdir())) == 1
