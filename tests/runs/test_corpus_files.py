"""The corpus files of a run and the encoded corpus in its folder."""

import gzip
import io
import shutil
from collections import Counter

import pytest

from bitext.pair import Pair
from translucid.corpora.phrasebook import generate
from translucid.data.filtering import Filter
from translucid.data.readers.corpus import SyntheticPair, TargetText, read_pairs
from translucid.data.stores.store import CorpusStore
from translucid.ground.console import Console
from translucid.ground.errors import UserError
from translucid.runs.configuration import fixed_settings, resolve, resumed
from translucid.runs.corpus_files import read_corpora
from translucid.runs.run_folder import RunFolder
from translucid.training.dataset import _counted
from translucid.training.experiment import run_experiment

from ..conftest import SETTINGS

LINES = [f"{p.source}\t{p.target}" for p in generate(240, max_words=8)]


@pytest.fixture
def file(tmp_path):
    return write(tmp_path / "pairs.tsv", LINES)


def write(path, lines):
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def train(folder, *files, steps=6, resume=False, settings=()):
    output = io.StringIO()
    files = [str(file) for file in files]
    configuration = resolve(
        assignments=[*SETTINGS, "data.subword_dropout=0", f"training.max_steps={steps}", *settings],
        overrides={"data.train": files},
    )
    run_experiment(configuration, folder, resume=resume, device="cpu", console=Console(file=output, width=1000))
    return output.getvalue()


@pytest.fixture(scope="module")
def first_run(tmp_path_factory):
    """A run after six updates; tests must not change it."""
    folder = tmp_path_factory.mktemp("first") / "run"
    output = train(folder, write(folder.with_name("pairs.tsv"), LINES))
    assert "no validation files: 4 training pairs are held out" in output
    return folder


@pytest.fixture
def run(first_run, tmp_path):
    """A copy of that run."""
    return shutil.copytree(first_run, tmp_path / "run")


def options(*files, **overrides):
    return resolve(overrides={"data.train": [str(file) for file in files], **overrides}).data


def test_pairs_are_held_out_when_no_validation_file_is_given(file):
    corpora = read_corpora(options(write(file, LINES + LINES[:40])), seed=1)
    assert corpora.held_out and len(corpora.valid) == 5
    training = list(corpora.filtered(options(file).filter))
    assert not {pair.source for pair in corpora.valid} & {pair.source for pair in training}
    assert 274 - 5 <= len(training) <= 275


def test_a_resumed_run_has_the_same_held_out_pairs_and_encodes_nothing_again(file, run, monkeypatch):
    held_out = RunFolder(run).held_out()
    assert len(held_out) == 4
    monkeypatch.delattr(CorpusStore, "build")
    output = train(run, file, steps=9, resume=True)
    assert "held out" not in output and "resumed at step 6" in output
    assert "training on 236 pairs; none skipped" in output
    assert RunFolder(run).held_out() == held_out


def test_a_damaged_corpus_is_rebuilt_and_reported(file, run):
    ids = run / "state" / "corpus" / "target.ids"
    content = bytearray(ids.read_bytes())
    content[100] ^= 1
    ids.write_bytes(content)
    output = train(run, file, steps=9, resume=True)
    assert "target.ids: is damaged or cut short. `resume=True` builds it again" in output
    assert "resumed at step 6" in output


def test_a_lost_corpus_is_made_again(file, run):
    shutil.rmtree(run / "state" / "corpus")
    assert "resumed at step 6" in train(run, file, steps=9, resume=True)


def test_moved_and_packed_files_are_the_same_text_and_changed_ones_are_not(file, run, tmp_path):
    compressed = tmp_path / "elsewhere.tsv.gz"
    compressed.write_bytes(gzip.compress(file.read_bytes()))
    assert "resumed at step 6" in train(run, compressed, steps=9, resume=True)
    write(file, [*LINES[:-1], "another\tsentence"])
    with pytest.raises(UserError, match="the training text has changed"):
        train(run, file, steps=12, resume=True)


def test_corpora_are_mixed_by_weight(tmp_path, file):
    from translucid.training.trainer import Trainer

    rare = write(tmp_path / "rare.tsv", ["zzz\tzzz"] * 3)
    counts = Counter()
    with pytest.MonkeyPatch.context() as patch:
        update = Trainer._update

        def counting_update(self, batches, *rest):
            decode = self.validator.tokenizer.decode
            counts.update("zzz" in decode(row.tolist()) for batch in batches for row in batch.rows.labels)
            return update(self, batches, *rest)

        patch.setattr(Trainer, "_update", counting_update)
        limits = ["training.max_steps=null", "training.max_epochs=1", "data.weights=[1, 1]"]
        train(tmp_path / "run", file, rare, settings=limits)
    assert counts[True] == pytest.approx(counts[False], abs=1)


def test_weights_that_do_not_match_the_corpora_are_refused(file, tmp_path):
    with pytest.raises(UserError, match=r"data\.weights has 2 numbers for 1 corpora"):
        read_corpora(options(file, **{"data.weights": [1, 2]}), seed=1)
    with pytest.raises(UserError, match="give one of them"):
        options(file, **{"data.weights": [1], "data.temperature": 2})


def test_synthetic_pairs_come_after_real_ones_are_never_held_out_or_turned(file, tmp_path):
    synthetic_file = write(tmp_path / "made.tsv", ["a source\tun destino"] * 3)
    for reverse in (False, True):
        overrides = {"data.synthetic": [str(synthetic_file)], "data.reverse": reverse}
        corpora = read_corpora(options(file, **overrides), seed=1)
        real, synthetic = map(list, corpora.train)
        pairs = [Pair(*line.split("\t")) for line in LINES]
        expected = {pair.swapped for pair in pairs} if reverse else set(pairs)
        assert {*real, *corpora.valid} == expected
        assert synthetic == [SyntheticPair("a source", "un destino")] * 3
        assert all(isinstance(pair, SyntheticPair) for pair in synthetic)
        assert not any(isinstance(pair, SyntheticPair) for pair in real)
        target = corpora.valid[0].target
        write(synthetic_file, ["a source\tun destino", f"a source\t{target}"] * 2)
        assert len(list(read_corpora(options(file, **overrides), seed=1).train[1])) == 2
        write(synthetic_file, ["a source\tun destino"] * 3)


def test_target_text_comes_last_from_nothing_and_is_never_held_out(file, tmp_path):
    held_out = read_corpora(options(file), seed=1).valid[0].target
    text = write(tmp_path / "text.txt", ["una frase", held_out, "", "otra\tfrase"])
    synthetic_file = write(tmp_path / "made.tsv", ["a source\tun destino"])
    overrides = {"data.synthetic": [str(synthetic_file)], "data.target_text": [str(text)], "data.weights": [1, 2, 3]}
    corpora = read_corpora(options(file, **overrides), seed=1)
    _, synthetic, texts = map(list, corpora.train)
    assert synthetic == [SyntheticPair("a source", "un destino")]
    assert texts == [TargetText("", "una frase"), TargetText("", ""), TargetText("", "otra\tfrase")]
    assert all(isinstance(text, TargetText) for text in texts)
    kept_pairs = list(corpora.filtered(Filter()))
    assert [pair.target for pair in kept_pairs[-2:]] == ["una frase", "otra\tfrase"]
    with pytest.raises(UserError, match=r"data\.weights has 2 numbers for 3 corpora"):
        read_corpora(options(file, **{**overrides, "data.weights": [1, 2]}), seed=1)


def test_each_way_to_read_the_same_files_is_another_text(file, tmp_path):
    other_file = write(tmp_path / "other.tsv", LINES[:100])
    configurations = [options(file, other_file), options(file, other_file, **{"data.reverse": True})]
    configurations += [options(file, **{f"data.{name}": [str(other_file)]}) for name in ("synthetic", "target_text")]
    assert len({read_corpora(configuration, seed=1, held_out=[]).digest for configuration in configurations}) == 4


def test_weights_are_of_real_and_then_of_synthetic_corpora(file, tmp_path):
    overrides = {"data.synthetic": [str(file)]}
    read_corpora(options(file, **overrides, **{"data.weights": [1, 3]}), seed=1)
    with pytest.raises(UserError, match=r"data\.weights has 1 numbers for 2 corpora"):
        read_corpora(options(file, **overrides, **{"data.weights": [1]}), seed=1)


def test_languages_are_those_of_the_files():
    languages = {"data.source_language": "en", "data.target_language": "es"}
    assert options(**languages).languages == ("en", "es")
    assert options(**languages, **{"data.reverse": True}).languages == ("es", "en")


def test_checkpoints_from_before_data_reverse_can_be_resumed():
    assert "reverse" not in fixed_settings(resolve())
    assert "reverse" in fixed_settings(resolve(assignments=["data.reverse=true"]))


def test_mixing_can_not_change_in_a_resumed_run(first_run):
    with pytest.raises(UserError, match=r"data\.temperature can't change"):
        resumed(RunFolder(first_run).configuration(), ["data.temperature=2"], {})


def test_too_few_pairs_to_hold_some_out_are_refused(tmp_path):
    with pytest.raises(UserError, match="20 lines are too few to hold some out"):
        read_corpora(options(write(tmp_path / "few.tsv", LINES[:20])), seed=1)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(UserError, match=r"none\.tsv: can't be read"):
        read_corpora(options(tmp_path / "none.tsv"), seed=1)


def test_progress_is_reported_every_thousand_pairs():
    counts, pairs = [], [Pair("a", "b")] * 2500
    assert list(_counted(pairs, counts.append)) == pairs
    assert counts == [1000, 1000]


def test_mixed_in_corpora_come_last_and_are_part_of_the_digest(file, tmp_path):
    general_file = write(tmp_path / "general.tsv", LINES[:30])
    corpora = read_corpora(options(file, **{"data.mix": {str(general_file): 0.5}}), seed=1)
    assert len(corpora.train) == 2
    assert set(corpora.train[1]) <= set(corpora.train[0])
    assert not {pair.source for pair in corpora.valid} & {pair.source for pair in corpora.train[1]}  # held out of both
    assert corpora.digest != read_corpora(options(file, general_file), seed=1).digest
    assert str(general_file) in corpora.files
    reversed_corpora = read_corpora(
        options(file, **{"data.mix": {str(general_file): 0.5}, "data.reverse": True}), seed=1
    )
    assert {pair.swapped for pair in reversed_corpora.train[1]} <= set(read_pairs(str(general_file)))


def test_the_general_validation_pairs_are_read_beside_the_others(file, tmp_path):
    general_file = write(tmp_path / "general.tsv", LINES[:30])
    data_options = options(file, **{"data.valid_general": [str(general_file)], "training.begin_from": "runs/first"})
    corpora = read_corpora(data_options, seed=1)
    assert sum(map(len, corpora.general.values())) == 30 and corpora.held_out
    write(general_file, ["nothing\t"])
    with pytest.raises(UserError, match="no sentence pairs are left"):
        read_corpora(data_options, seed=1)


def test_pairs_with_the_same_source_are_held_out_together(tmp_path):
    """Pairs with the same source, such as captions of an image, are all used for training or all for validation."""
    rows = [f"source {i % 200}\ttarget {i}" for i in range(1000)]
    corpora = read_corpora(options(write(tmp_path / "pairs.tsv", rows)), seed=1)
    training = list(corpora.filtered(options(tmp_path / "pairs.tsv").filter))
    assert len(corpora.valid) == 20 and len(training) == 980
    assert not {pair.source for pair in corpora.valid} & {pair.source for pair in training}
    assert set(Counter(pair.source for pair in corpora.valid).values()) == {5}


def test_a_source_that_stands_everywhere_is_learned_from(tmp_path):
    rows = [f"source {i}\ttarget {i}" for i in range(1000)]
    rows[1::2] = [f"Yes.\tSí {i}" for i in range(1, 1000, 2)]
    corpora = read_corpora(options(write(tmp_path / "pairs.tsv", rows)), seed=1)
    assert len(corpora.valid) == 20 and "Yes." not in {pair.source for pair in corpora.valid}


def test_groups_that_are_all_larger_than_the_share_that_is_held_out(tmp_path):
    rows = [f"source {i % 20}\ttarget {i}" for i in range(200)]
    corpora = read_corpora(options(write(tmp_path / "pairs.tsv", rows)), seed=1)
    assert len(corpora.valid) == 10  # one group, though that is more than 2 %
    same = write(tmp_path / "same.tsv", [f"source\ttarget {i}" for i in range(200)])
    with pytest.raises(UserError, match="200 lines are too much alike to hold some out"):
        read_corpora(options(same), seed=1)


def test_the_last_text_of_a_label_is_not_held_out(tmp_path):
    labels = [*range(60), *["many"] * 140]
    rows = [f'{{"text": "text {i}", "label": "{label}"}}' for i, label in enumerate(labels)]
    corpora = read_corpora(options(write(tmp_path / "texts.jsonl", rows)), seed=1, texts=True)
    assert [text.target for text in corpora.valid] == ["many"] * 4
