"""The training loop: limits, weight averages, accumulated batches, and losses that are not finite."""

import io
import time
from contextlib import nullcontext

import pytest
import torch

from bitext.pair import Pair
from translucid.ground.errors import UserError
from translucid.ground.interruption import Interrupted
from translucid.kernels import linear, onednn, rounding
from translucid.runs.corpus_files import Corpora
from translucid.runs.run_folder import RunFolder
from translucid.runs.tensor_file import load_tensors
from translucid.training.hardware import precision
from translucid.training.objective import batch_loss
from translucid.training.optimizer import Adam
from translucid.training.trainer import Trainer
from translucid.training.validation import Validation, Validator


def weights(folder, prefix="model."):
    tensors, _ = load_tensors(folder / "state" / "checkpoint.safetensors")
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def test_metrics_have_rows_of_both_kinds(train, tmp_path):
    started = time.perf_counter()
    end = train(tmp_path / "run", "training.max_steps=16")
    elapsed = time.perf_counter() - started
    rows = RunFolder(tmp_path / "run").metrics()
    seconds = [row["seconds"] for row in rows]
    assert seconds == sorted(seconds) and seconds[0] > 0 and seconds[-1] < elapsed
    assert [row["step"] for row in rows if row["kind"] == "training"] == [3, 6, 9, 12, 15]
    assert [row["step"] for row in rows if row["kind"] == "validation"] == [7, 14, 16]
    assert end.step == 16
    assert end.epoch >= 1
    assert rows[-1]["loss"] < rows[1]["loss"] + 1


def test_limits_end_the_training(train, tmp_path):
    epochs = train(
        tmp_path / "epochs",
        "training.max_steps=null",
        "training.max_epochs=2",
        "training.accumulate=2",
        "training.validate_every=99",
    )
    assert (epochs.epoch, epochs.batch) == (1, epochs.step)  # the second epoch is complete; each update has two batches
    minutes = train(
        tmp_path / "minutes", "training.max_steps=null", "training.max_minutes=0.004", "training.patience=null"
    )
    assert minutes.seconds >= 0.24
    # With a tiny learning rate, BLEU does not change, and patience runs out.
    patient = "training.patience=2", "training.validate_every=2", "training.max_steps=90"
    stale = train(tmp_path / "stale", "training.learning_rate=1e-12", *patient)
    assert stale.step == 2 * 3


def test_sharded_by_a_process_alone_is_not_sharded(train, tmp_path):
    ends = [train(tmp_path / which, "training.max_steps=3", f"training.sharded={which}") for which in ("true", "false")]
    assert [end.step for end in ends] == [3, 3]
    sharded, unsharded = weights(tmp_path / "true"), weights(tmp_path / "false")
    assert all(torch.equal(sharded[name], unsharded[name]) for name in unsharded)


def test_the_saved_model_is_the_average_at_the_best_validation(train, tmp_path):
    end = train(tmp_path / "run", "training.max_steps=7", "training.averaging=0.9")
    assert end.best_step == 7
    best, facts = load_tensors(tmp_path / "run" / "model.safetensors")
    assert facts["step"] == 7
    average, last = weights(tmp_path / "run", "averaged."), weights(tmp_path / "run")
    assert all(torch.equal(best[name], average[name]) for name in best)
    assert not torch.equal(best["output.weight" if "output.weight" in best else "output.bias"], last["output.bias"])


def test_without_averaging_the_average_is_the_last_weights(train, tmp_path):
    train(tmp_path / "run", "training.max_steps=3", "training.averaging=0")
    average, last = weights(tmp_path / "run", "averaged."), weights(tmp_path / "run")
    for name in last:
        torch.testing.assert_close(average[name], last[name], rtol=0, atol=1e-7)


@pytest.mark.parametrize(
    ("averaging", "decays"), [(0.999, [1 / 10, 2 / 11, 3 / 12, 4 / 13]), (0.2, [1 / 10, 2 / 11, 0.2, 0.2])]
)
def test_the_average_has_less_memory_in_the_first_updates(train, tmp_path, monkeypatch, averaging, decays):
    """The decay is (1 + n) / (10 + n) after n updates, up to the configured decay."""
    snapshots, update = [], Trainer._update

    def copy(self):
        return {name: weight.detach().clone() for name, weight in self.weights.model.named_parameters()}

    def recording_update(self, *rest):
        snapshots.extend([] if snapshots else [copy(self)])
        update(self, *rest)
        snapshots.append(copy(self))

    monkeypatch.setattr(Trainer, "_update", recording_update)
    long_steps = "training.learning_rate=0.1", "training.warmup=1"
    train(tmp_path / "run", "training.max_steps=4", f"training.averaging={averaging}", *long_steps)
    expected = snapshots.pop(0)
    for decay, snapshot in zip(decays, snapshots, strict=True):
        expected = {name: decay * expected[name] + (1 - decay) * snapshot[name] for name in snapshot}
    averages = weights(tmp_path / "run", "averaged.")
    assert averages.keys() == expected.keys()
    for name, average in averages.items():
        torch.testing.assert_close(average, expected[name], rtol=0, atol=1e-5)


FOUR_UPDATES = ["training.max_steps=4", "training.precision=float32"]


@pytest.fixture(scope="module")
def usual_weights(train, tmp_path_factory):
    """Return the weights after four updates with the usual options."""
    folder = tmp_path_factory.mktemp("usual") / "run"
    train(folder, *FOUR_UPDATES)
    return weights(folder)


@pytest.mark.parametrize(
    "setting",
    [
        "training.optimizer=nadam",
        "training.optimizer=muon",
        "training.learning_rate=0.01",
        "training.warmup=2",
        "training.cooldown=0.9",
        "training.label_smoothing=0",
        "training.clip_norm=0.01",
        "training.batch_tokens=100",
        "training.accumulate=2",
        "training.precision=bfloat16",
        "data.subword_dropout=0.1",
        "data.max_tokens=18",
        "model.dropout=0",
    ],
)
def test_every_option_changes_the_weights(train, usual_weights, tmp_path, setting):
    train(tmp_path / "run", *FOUR_UPDATES, setting)
    changed = weights(tmp_path / "run")
    assert any(not torch.equal(usual_weights[name], changed[name]) for name in usual_weights)


def test_accumulated_batches_weigh_as_their_tokens(train, tmp_path, monkeypatch):
    """Two batches in one update give the gradient of both together."""
    from translucid.training.objective import batch_loss

    captured = {}

    def spy(self, batches, *rest):
        captured["trainer"], captured["batches"] = self, batches
        self.weights.model.eval()  # without dropout, the two sums are comparable
        return update(self, batches, *rest)

    update = Trainer._update
    monkeypatch.setattr(Trainer, "_update", spy)
    monkeypatch.setattr(Adam, "zero_grad", lambda self, set_to_none=True: None)
    exact = ("training.precision=float32", "training.clip_norm=1e9", "data.subword_dropout=0")
    train(tmp_path / "run", "training.max_steps=1", "training.accumulate=2", *exact)
    trainer, batches = captured["trainer"], captured["batches"]
    assert len(batches) == 2
    accumulated = [parameter.grad.clone() for parameter in trainer.weights.parameters]
    with torch.no_grad():  # rebuild the initial weights, which the update has changed
        from translucid.models.build import build_model

        torch.manual_seed(1)
        vocabulary = trainer.validator.tokenizer.target_size
        fresh = build_model(RunFolder(tmp_path / "run").configuration().model, vocabulary, vocabulary).eval()
    total = sum(batch.target_tokens for batch in batches)
    loss = sum(batch_loss(fresh, batch.rows, 0.1).smoothed for batch in batches) / total
    loss.backward()
    for parameter, gradient in zip(fresh.parameters(), accumulated, strict=True):
        torch.testing.assert_close(parameter.grad, gradient, rtol=1e-4, atol=1e-6)


def test_a_loss_that_is_no_number_ends_with_advice_and_harms_nothing(train, tmp_path, monkeypatch):
    train(tmp_path / "run", "training.max_steps=7")
    before = {file: file.read_bytes() for file in tmp_path.rglob("*.safetensors")}
    start = Trainer.resume

    def poisoned(self, *rest):
        result = start(self, *rest)
        with torch.no_grad():
            self.weights.parameters[0].fill_(torch.nan)
        return result

    monkeypatch.setattr(Trainer, "resume", poisoned)
    with pytest.raises(UserError, match=r"the loss is nan at step 12.*5th time in a row.*learning_rate.*`resume=True`"):
        train(tmp_path / "run", resume=True)
    assert {file: file.read_bytes() for file in tmp_path.rglob("*.safetensors")} == before


def test_a_bad_update_is_skipped_and_counted(train, tmp_path, monkeypatch):
    update = Trainer._update

    def poisoned(self, batches, *rest):
        weight = self.weights.parameters[0].detach().clone()
        bad = self.progress.step in (0, 3)
        if bad:
            self.weights.parameters[0].data.fill_(torch.nan)
        update(self, batches, *rest)
        if bad:
            self.weights.parameters[0].data.copy_(weight)

    monkeypatch.setattr(Trainer, "_update", poisoned)
    output = io.StringIO()
    assert train(tmp_path / "run", "training.max_steps=7", output=output).skipped == 2
    tensors, _ = load_tensors(tmp_path / "run" / "model.safetensors")
    assert all(tensor.isfinite().all() for tensor in tensors.values())
    rows = [row for row in RunFolder(tmp_path / "run").metrics() if row["kind"] == "training"]
    assert rows[-1]["skipped"] == 2
    assert "this update is skipped (2 so far)" in output.getvalue()


def test_an_interruption_before_the_first_validation_leaves_a_usable_model(train, tmp_path, monkeypatch):
    import os
    import signal

    update = Trainer._update

    def interrupted(self, batches, *rest):
        os.kill(os.getpid(), signal.SIGINT)
        return update(self, batches, *rest)

    monkeypatch.setattr(Trainer, "_update", interrupted)
    with pytest.raises(Interrupted):
        train(tmp_path / "run")
    assert RunFolder(tmp_path / "run").load_state()[1]["place"]["step"] == 1
    assert (tmp_path / "run" / "model.safetensors").exists()


def test_a_corpus_of_nothing_but_long_pairs_is_refused(train, tmp_path):
    with pytest.raises(UserError, match=r"no training pairs are left.*100 too long.*data\.max_tokens"):
        train(tmp_path / "run", "data.max_tokens=2")


def test_the_faster_products_give_the_same_loss_curve(train, tmp_path, monkeypatch):
    monkeypatch.setattr(linear, "LARGE", 0)
    if not onednn.onednn_is_better():
        monkeypatch.setattr(onednn, "_onednn", nullcontext)
    curves = []
    for fast, dtype in ((False, "float32"), (True, "float32"), (True, "bfloat16")):
        for module in (linear, onednn):
            monkeypatch.setattr(module, "onednn_is_better", lambda fast=fast: fast)
        folder = tmp_path / f"{fast} {dtype}"
        limits = "training.max_steps=6", "training.validate_every=6"
        train(folder, *limits, "training.log_every=1", f"training.precision={dtype}")
        curves.append([row["loss"] for row in RunFolder(folder).metrics() if row["kind"] == "training"])
    plain, fast, rounded = curves
    assert len(plain) == 6
    assert fast == pytest.approx(plain, abs=1e-4)
    assert rounded == pytest.approx(plain, abs=2e-2)
    assert rounded != pytest.approx(plain, abs=1e-5)


@pytest.mark.parametrize(("gain", "setting", "is_rounded"), [
    (2.0, "auto", True), (0.2, "auto", False), (2.0, "float32", False), (0.2, "bfloat16", True)
])  # fmt: skip
def test_products_are_rounded_where_that_is_faster_or_requested(
    train, tmp_path, monkeypatch, gain, setting, is_rounded
):
    rounded = []

    def spy(model, rows, smoothing):
        rounded.append(rounding.factor(torch.zeros(1)).dtype == torch.bfloat16)
        return batch_loss(model, rows, smoothing)

    monkeypatch.setattr("translucid.training.weights.batch_loss", spy)
    monkeypatch.setattr(precision, "gain_of_rounding", lambda device: gain)
    train(tmp_path / "run", "training.max_steps=1", f"training.precision={setting}")
    assert set(rounded) == {is_rounded}


class FixedValidator(Validator):
    """A validator that returns prepared results in turn."""

    def __init__(self, rows, tokenizer):
        self.rows, self.tokenizer = (
            [Validation(loss, 1.0, 0.0, {"bleu": score}, score, []) for score, loss in rows],
            tokenizer,
        )

    def measure(self, model, device, workers=None):
        return self.rows.pop(0)

    def describe(self, score):
        return f"{score}"

    def comparable(self, score):
        return score if score >= 1 else 0.0


@pytest.mark.parametrize(
    ("rows", "best"),
    [
        ([(0.0, 4.0), (0.0, 3.0), (0.0, 2.0), (0.0, 1.0)], 4),  # all scores are 0: the lowest loss decides
        ([(0.0, 4.0), (0.0, 2.0), (0.0, 2.0), (0.0, 3.0)], 2),
        ([(0.4, 4.0), (0.0, 3.0), (0.3, 2.0), (0.1, 3.0)], 3),  # scores below 1 are not compared either
        ([(5.0, 4.0), (7.0, 4.5), (6.0, 1.0), (7.0, 4.4)], 4),  # the score decides; among equal scores, the loss
        ([(5.0, 4.0), (4.0, 1.0), (5.0, 4.0), (5.0, 3.9999)], 1),  # a loss difference below the threshold is ignored
    ],
)
def test_the_loss_decides_where_the_score_does_not(train, tmp_path, monkeypatch, rows, best):
    """With a BLEU of 0 throughout, the lowest loss decides which weights are kept."""
    original_init = Trainer.__init__

    def init_with_scores(self, model, epochs, validator, *arguments, **options):
        original_init(self, model, epochs, FixedValidator(rows, validator.tokenizer), *arguments, **options)

    monkeypatch.setattr(Trainer, "__init__", init_with_scores)
    settings = ["training.validate_every=1", "training.max_steps=4", "training.patience=3"]
    end = train(tmp_path / "run", *settings)
    assert (end.best_step, end.step) == (best, 4)
    assert load_tensors(tmp_path / "run" / "model.safetensors")[1]["step"] == best
    place = load_tensors(tmp_path / "run" / "state" / "checkpoint.safetensors", finite=False)[1]["place"]
    assert place["best_loss"] == rows[best - 1][1]


def test_a_validator_of_short_targets_judges_by_chrf(train, tmp_path):
    """With targets of one word, BLEU is 0 even for correct translations."""
    words = ["uno", "dos", "tres", "cuatro", "cinco", "seis"]
    pairs = [Pair(f"the number {i % 6}", words[i % 6]) for i in range(200)]
    end = train(
        tmp_path / "run",
        *("training.max_steps=14", "training.validate_every=7", "data.tokenizer.vocabulary=45"),
        data=Corpora.of(pairs, pairs[:12]),
    )
    rows = [row for row in RunFolder(tmp_path / "run").metrics() if row["kind"] == "validation"]
    assert all(row["bleu"] == 0 and "chrf" in row for row in rows)
    assert end.best_score == pytest.approx(rows[[7, 14].index(end.best_step)]["chrf"], rel=1e-4)
