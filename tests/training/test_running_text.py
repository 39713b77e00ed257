"""Training of language models: validation, exact resumption and training text."""

import io
import json
import os
import shutil
import signal

import numpy as np
import pytest
import torch
import yaml

from bitext.pair import Pair
from tests.probes.forked import forked_group
from translucid.cli.main import run
from translucid.corpora.phrasebook import generate
from translucid.data.stores.store import EncodedTexts, Size, TextStore
from translucid.data.tokenizing.tokenizer import Tokenizer, TokenizerOptions
from translucid.ground.console import Console
from translucid.ground.errors import UserError
from translucid.ground.interruption import Interrupted
from translucid.language.running_text import StreamDataLoader, StreamValidator, state_of_process
from translucid.language.scores import Stream
from translucid.runs.configuration import fixed_settings, resolve, resumed
from translucid.runs.run_folder import RunFolder
from translucid.training.experiment import prepared, run_experiment
from translucid.training.hardware.ddp import Workers

from .test_resume import assert_same_run

SETTINGS = {
    "model": {"kind": "language-lstm", "width": 12, "hidden": 16, "layers": 2},
    "data": {"tokenizer": {"vocabulary": 200}},
    "training": {
        "optimizer": "muon",
        "learning_rate": 0.01,
        "averaging": 0.9,
        "batch_tokens": 120,
        "window": 20,
        "cooldown": 0,
        "label_smoothing": 0.0,
        "validate_every": 6,
        "log_every": 1,
        "max_steps": 18,
        "warmup": 5,
    },
}
SENTENCES = [p.target for p in generate(160, max_words=8)]


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    for name, lines in (("train.txt", SENTENCES[:130]), ("valid.txt", SENTENCES[130:])):
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    (folder / "settings.yaml").write_text(yaml.safe_dump(SETTINGS))
    return folder


def configured(texts, *settings):
    files = {"data.train": [str(texts / "train.txt")], "data.valid": [str(texts / "valid.txt")]}
    return resolve(texts / "settings.yaml", assignments=settings, overrides=files)


def train(texts, folder, *settings, resume=False):
    output = io.StringIO()
    console = Console(file=output, width=1000)
    run_experiment(configured(texts, *settings), folder, resume=resume, device="cpu", console=console)
    return output.getvalue()


@pytest.fixture(scope="module")
def uninterrupted_run(texts, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "whole"
    train(texts, folder)
    return folder


@pytest.fixture(scope="module")
def interrupted_run(texts, tmp_path_factory):
    """Train for 6 updates; tests copy the run."""
    folder = tmp_path_factory.mktemp("begun") / "run"
    train(texts, folder, "training.max_steps=6")
    return folder


# Validation.


def test_the_figures_do_not_depend_on_the_window(uninterrupted_run, texts):
    folder = RunFolder(uninterrupted_run)
    tokenizer, configuration = folder.tokenizer(), folder.configuration()
    model = folder.load_model(configuration, tokenizer)
    encoded = EncodedTexts.encode((texts / "valid.txt").read_text().splitlines(), tokenizer)
    validations = [
        StreamValidator(encoded, tokenizer, window=w).measure(model, torch.device("cpu")) for w in (3, 20, 1000)
    ]
    for validation in validations[1:]:
        assert validation.loss == pytest.approx(validations[0].loss, rel=1e-5)


def test_the_shorter_a_window_the_smaller_its_step():
    stream = Stream(EncodedTexts(np.arange(10, 3000, dtype=np.int32), Size(1, 1, 1)), 3, 20)
    epochs = StreamDataLoader(stream, seed=1)
    lengths = stream.random_windows(1, 0).lengths
    assert lengths.min() < 12 and lengths.max() > 21
    batches = list(epochs.batches(0))
    assert [batch.rate for batch in batches] == pytest.approx([min(1, length / 20) for length in lengths])
    assert [batch.rows.labels.size(1) for batch in batches] == lengths.tolist()
    assert sum(batch.target_tokens for batch in batches) == 2990
    assert epochs.size(0) == len(batches) and (epochs.done(0, 0), epochs.done(0, len(batches))) == (0, 1)
    later = list(epochs.batches(0, 7))
    assert torch.equal(later[0].rows.labels, batches[7].rows.labels) and len(later) == len(batches) - 7


def test_the_optimizer_is_given_the_rate_of_the_window(texts, tmp_path, monkeypatch):
    from translucid.training.optimizer import Optimizer
    from translucid.training.schedule import learning_rate

    rates, step = [], Optimizer.step
    monkeypatch.setattr(Optimizer, "step", lambda self, rate: rates.append(rate) or step(self, rate))
    with prepared(configured(texts), tmp_path / "run", device="cpu", console=Console(quiet=True)) as (trainer, display):
        trainer.fit(display)
        lengths = trainer.epochs.stream.random_windows(1, 0).lengths
        expected = [
            learning_rate(trainer.options, i + 1, i / 18) * min(1, lengths[i] / 20)
            for i in range(min(18, len(lengths)))
        ]
        assert min(lengths[:18]) < 18
        assert rates[: len(expected)] == pytest.approx(expected, rel=1e-9)


def test_rows_of_processes_are_those_of_one():
    stream = Stream(EncodedTexts(np.arange(10, 500, dtype=np.int32), Size(1, 1, 1)), 5, 20)
    batches = list(StreamDataLoader(stream, seed=1).batches(0))
    process_batches = [list(StreamDataLoader(stream, seed=1, workers=Workers(rank, 7)).batches(0)) for rank in range(7)]
    for number, batch in enumerate(batches):
        shares = [rank_batches[number] for rank_batches in process_batches]
        assert {share.target_tokens for share in shares} == {batch.target_tokens}
        assert [share.rows is None for share in shares] == [False] * 5 + [True] * 2
        assert torch.equal(torch.cat([share.rows.labels for share in shares[:5]]), batch.rows.labels)


# Interruptions.


def test_the_same_seed_gives_the_same_run_and_another_another(texts, uninterrupted_run, tmp_path):
    train(texts, tmp_path / "again")
    assert_same_run(tmp_path / "again", uninterrupted_run)
    train(texts, tmp_path / "other", "training.seed=2")
    with pytest.raises(AssertionError):
        assert_same_run(tmp_path / "other", uninterrupted_run)


@pytest.mark.parametrize("stops", [[1, 7, 8], [11, 17]])
def test_stopped_in_the_middle_of_an_epoch_and_resumed(texts, uninterrupted_run, tmp_path, stops, monkeypatch):
    from translucid.training.trainer import Trainer

    update, folder = Trainer._update, tmp_path / "stopped"

    def interrupted(self, batches, *rest):
        update(self, batches, *rest)
        if self.progress.step + 1 in stops:
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(Trainer, "_update", interrupted)
    for _ in stops:
        with pytest.raises(Interrupted):
            train(texts, folder, resume=True)
    monkeypatch.setattr(Trainer, "_update", update)
    tensors, facts = RunFolder(folder).load_state()
    assert facts["place"]["step"] == stops[-1]
    carried = {name: tensor for name, tensor in tensors.items() if "carried" in name}
    assert [tuple(carried[f"process.0.carried.{i}"].shape) for i in range(4)] == [(6, 16), (6, 16), (6, 12), (6, 12)]
    assert all(tensor.any() for tensor in carried.values())
    train(texts, folder, resume=True)
    assert_same_run(folder, uninterrupted_run)


def test_a_run_without_the_carried_state_differs(texts, uninterrupted_run, interrupted_run, tmp_path, monkeypatch):
    shutil.copytree(interrupted_run, tmp_path / "run")
    monkeypatch.setattr("translucid.language.running_text.state_of_process", lambda *rest: {})
    train(texts, tmp_path / "run", resume=True)
    with pytest.raises(AssertionError):
        assert_same_run(tmp_path / "run", uninterrupted_run)


def test_a_model_that_carries_nothing_goes_on_exactly_too(texts, tmp_path):
    (tmp_path / "train.txt").write_text((texts / "train.txt").read_text())
    (tmp_path / "valid.txt").write_text((texts / "valid.txt").read_text())
    shape = {"kind": "language-transformer", "width": 12, "heads": 2, "feed_forward": 16, "layers": 1, "context": 16}
    (tmp_path / "settings.yaml").write_text(yaml.safe_dump({**SETTINGS, "model": shape}))
    train(tmp_path, tmp_path / "whole")
    train(tmp_path, tmp_path / "run", "training.max_steps=6")
    assert not any("carried" in name for name in RunFolder(tmp_path / "run").load_state()[0])
    train(tmp_path, tmp_path / "run", resume=True)
    assert_same_run(tmp_path / "run", tmp_path / "whole")


def test_a_carried_state_is_shared_out_anew():
    rows = torch.arange(14).view(7, 2)

    def checkpoint(count):
        state = {f"process.{rank}.carried.0": rows[rank::count] for rank in range(min(count, 7))}
        return {**state, **{f"process.{rank}.cpu": torch.zeros(1) for rank in range(count)}, "model.x": rows}

    for old_count in (1, 2, 3, 9):
        for new_count in (1, 2, 5, 8):
            for rank in range(new_count):
                carried = state_of_process(rank, new_count, checkpoint(old_count))
                if rank < 7:
                    assert torch.equal(carried["0"], rows[rank::new_count])
                else:
                    assert carried == {}
    assert state_of_process(0, 1, {"process.0.cpu": torch.zeros(1)}) == {}


@pytest.mark.parametrize("setting", ["training.window=10", "training.batch_tokens=60", "model.backwards=true"])
def test_settings_of_the_rows_can_not_change(texts, uninterrupted_run, setting):
    key = setting.split("=")[0].replace("model.backwards", "model")
    with pytest.raises(UserError, match=f"{key} can't change in a resumed run"):
        resumed(RunFolder(uninterrupted_run).configuration(), [setting], {})
    assert run(["train", "--resume", "--out", str(uninterrupted_run), "--set", setting]) == 2


def test_a_window_has_no_effect_on_sentence_pairs():
    assert "window" not in fixed_settings(resolve()) and "window" in fixed_settings(resolve(preset="lm-lstm"))


def in_two_processes(texts, out, *settings):
    job = forked_group(*arguments(texts, out, *settings))
    output, _ = job.communicate()
    assert job.returncode == 0, output


def losses_of(folder):
    rows = RunFolder(folder).metrics()
    return [row["loss"] for row in rows if row["kind"] == "training" or row["step"] == 18]


NO_DROPOUT = [f"model.{name}=0" for name in ("dropout", "hidden_dropout", "input_dropout", "embedding_dropout")]


def arguments(texts, out, *settings):
    files = ["--train", str(texts / "train.txt"), "--valid", str(texts / "valid.txt"), "--out", str(out)]
    no_dropout = [*NO_DROPOUT, "model.weight_dropout=0"]
    return ["train", str(texts / "settings.yaml"), *files, "--resume", "--set", *no_dropout, *settings]


def test_two_processes_learn_what_one_learns_and_another_number_goes_on(texts, tmp_path):
    assert run(arguments(texts, tmp_path / "alone")) == 0
    in_two_processes(texts, tmp_path / "two")
    assert run(arguments(texts, tmp_path / "mixed", "training.max_steps=5")) == 0
    in_two_processes(texts, tmp_path / "mixed", "training.max_steps=11")
    assert run(arguments(texts, tmp_path / "mixed", "training.max_steps=18")) == 0
    losses = [losses_of(tmp_path / name) for name in ("alone", "two", "mixed")]
    assert len(losses[0]) == 19  # 18 updates and the last validation
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)
    assert losses[2] == pytest.approx(losses[0], rel=1e-3)


# Training text.


def test_it_trains_on_the_mapped_file_and_says_texts(texts, tmp_path):
    output = io.StringIO()
    console = Console(file=output, width=1000)
    with prepared(configured(texts), tmp_path / "run", device="cpu", console=console) as (trainer, _):
        ids = trainer.epochs.stream.texts.ids
        while ids.base is not None and not isinstance(ids, np.memmap):
            ids = ids.base
        assert isinstance(ids, np.memmap)
    assert "training on 130 texts; none skipped" in output.getvalue()
    assert "pair" not in output.getvalue()


@pytest.mark.parametrize("how", ["a flipped byte", "cut off", "another tokenizer"])
def test_damaged_encoded_text_is_repaired(texts, uninterrupted_run, interrupted_run, tmp_path, how):
    shutil.copytree(interrupted_run, tmp_path / "run")
    folder = tmp_path / "run" / "state" / "texts"
    if how == "another tokenizer":
        store = TextStore(folder)
        tokenizer = Tokenizer.learn([Pair("", line) for line in SENTENCES], TokenizerOptions(vocabulary=150), seed=1)
        store.build([[Pair(line, "") for line in SENTENCES]], tokenizer, identity="another")
    elif how == "cut off":
        (folder / "index.jsonl").write_text((folder / "index.jsonl").read_text().split("\n")[0] + "\n")
    else:
        content = bytearray((folder / "texts.ids").read_bytes())
        content[99] ^= 4
        (folder / "texts.ids").write_bytes(content)
    output = train(texts, tmp_path / "run", resume=True)
    assert ("texts.ids: is damaged or cut short" in output) == (how == "a flipped byte")
    assert_same_run(tmp_path / "run", uninterrupted_run)


def test_other_text_is_refused(texts, tmp_path):
    folder = tmp_path / "texts"
    folder.mkdir()
    for name in ("train.txt", "valid.txt", "settings.yaml"):
        (folder / name).write_text((texts / name).read_text())
    train(folder, tmp_path / "run", "training.max_steps=1")
    (folder / "train.txt").write_text("\n".join(SENTENCES[:129]))
    with pytest.raises(UserError, match="the training text has changed"):
        train(folder, tmp_path / "run", resume=True)


def cli(texts, tmp_path, *options):
    settings = ["training.max_steps=2", "training.validate_every=2"]
    return run(["train", str(texts / "settings.yaml"), "--out", str(tmp_path / "run"), *options, "--set", *settings])


def test_bad_lines_are_skipped_and_reported(texts, tmp_path, capfd):
    lines = [line.encode() for line in SENTENCES]
    (tmp_path / "bad.txt").write_bytes(b"\n".join([lines[0], b"N\0UL", *lines[1:9], b"\xff\xfe", b"", *lines[9:]]))
    (tmp_path / "valid.txt").write_bytes(b"\n".join([*lines[:5], b"\xff"]))
    files = ["--train", str(tmp_path / "bad.txt"), "--valid", str(tmp_path / "valid.txt")]
    assert cli(texts, tmp_path, *files) == 2
    assert "valid.txt:6: not UTF-8" in capfd.readouterr().err
    assert cli(texts, tmp_path, *files, "--skip-bad") == 0
    output = " ".join(capfd.readouterr().err.split())
    assert "training on 160 texts; skipped 3: 2 no texts, 1 empty" in output
    assert "of the validation files, 1 line is no text and skipped" in output
    assert "the lines that are no texts are in" in output and "pair" not in output
    rows = [json.loads(line) for line in (tmp_path / "run" / "bad-lines.jsonl").read_text().splitlines()]
    assert [(row["line"], row["what"].split(" (")[0]) for row in rows] == [
        (6, "not UTF-8"),
        (2, "holds NUL bytes"),
        (11, "not UTF-8"),
    ]


@pytest.mark.parametrize("skip", [[], ["--skip-bad"]])
def test_a_document_is_refused_in_one_line(texts, tmp_path, capfd, skip):
    (tmp_path / "book.docx").write_bytes(b"PK\3\4")
    assert cli(texts, tmp_path, "--train", str(tmp_path / "book.docx"), *skip) == 2
    output = capfd.readouterr().err
    assert "book.docx: is a document by its ending" in output and output.count("\n") == 1
    assert not (tmp_path / "run").exists()


def test_texts_are_held_out_when_no_validation_file_is_given(texts, tmp_path, capfd):
    assert cli(texts, tmp_path, "--train", str(texts / "train.txt")) == 0
    output = " ".join(capfd.readouterr().err.split())
    assert "no validation files: 2 training texts are held out" in output and "training on 128 texts" in output


@pytest.mark.parametrize("setting", ["data.temperature=2", "data.subword_dropout=0.1", "data.tokenizer.joint=false"])
def test_settings_for_pairs_are_refused(setting):
    with pytest.raises(UserError, match="running text"):
        resolve(preset="lm-lstm", assignments=[setting])


def test_the_best_model_is_kept_and_comes_back(texts, uninterrupted_run):
    folder = RunFolder(uninterrupted_run)
    tokenizer = folder.tokenizer()
    model = folder.load_model(folder.configuration(), tokenizer)
    encoded = EncodedTexts.encode(SENTENCES[130:], tokenizer)
    validation = StreamValidator(encoded, tokenizer, window=20).measure(model, torch.device("cpu"))
    validations = [row for row in folder.metrics() if row["kind"] == "validation"]
    best = min(validations, key=lambda row: row["perplexity_word"])
    assert validation.measures["perplexity_word"] == pytest.approx(best["perplexity_word"], rel=1e-5)
    assert validation.accuracy == pytest.approx(best["accuracy"], rel=1e-5)
