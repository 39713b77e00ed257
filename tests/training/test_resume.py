"""A resumed training ends with the same weights, bit for bit, as an uninterrupted one."""

import io
import json
import os
import shutil
import signal
from functools import partial
from itertools import chain

import pytest
import torch

from tests.probes.common import metrics_without_times
from translucid.ground.errors import UserError
from translucid.ground.interruption import Interrupted
from translucid.kernels.dropout import Dropout
from translucid.models.build import build_model
from translucid.runs.corpus_files import Corpora
from translucid.runs.run_folder import RunFolder
from translucid.runs.tensor_file import load_tensors
from translucid.training import experiment
from translucid.training.weights import Weights, with_prefix


@pytest.fixture(scope="module")
def train(train):
    """Train with two batches in each update, and words that are split anew in each epoch."""
    return partial(train_accumulating, train)


def train_accumulating(train, folder, *settings, **options):
    return train(folder, "training.accumulate=2", "data.subword_dropout=0.1", *settings, **options)


def assert_same_run(first, second):
    """Compare checkpoints, best models and metrics; only times may differ."""
    for name in ("model.safetensors", "state/checkpoint.safetensors"):
        (tensors, facts), (second_tensors, second_facts) = load_tensors(first / name), load_tensors(second / name)
        assert tensors.keys() == second_tensors.keys()
        for key in tensors:
            assert torch.equal(tensors[key], second_tensors[key]), f"{name}: {key}"
        for record in (facts, second_facts):
            record.get("place", {}).pop("seconds", None)
            record["recent"] = [row[:3] for row in record.get("recent", [])]
        assert facts == second_facts
    assert metrics_without_times(first) == metrics_without_times(second)


@pytest.fixture(scope="module")
def uninterrupted_run(train, tmp_path_factory):
    """Train without interruption; tests must not change the run."""
    folder = tmp_path_factory.mktemp("runs") / "whole"
    train(folder)
    return folder


@pytest.fixture(scope="module")
def part_of_run(train, tmp_path_factory):
    """Copy the run as it was after 7 updates, or after 7 and then 14: part_of_run(7, folder)."""
    first = tmp_path_factory.mktemp("parts") / "7"
    train(first, "training.max_steps=7")
    second = first.with_name("14")
    shutil.copytree(first, second)
    train(second, "training.max_steps=14", resume=True)
    return lambda steps, folder: shutil.copytree({7: first, 14: second}[steps], folder)


def test_a_setting_that_can_not_change_is_named(train, part_of_run, tmp_path):
    run = part_of_run(7, tmp_path / "run")
    with pytest.raises(UserError, match=r"training.seed can't change in a resumed run, from \d+ to 99. Leave it as"):
        train(run, "training.seed=99", resume=True)


def test_a_training_of_another_version_is_refused_with_that_reason(train, part_of_run, tmp_path, monkeypatch):
    """Nothing was changed, but the settings of this version have another fingerprint."""
    run = part_of_run(7, tmp_path / "run")
    rows = (run / "provenance.jsonl").read_text().splitlines()
    rows[0] = json.dumps(json.loads(rows[0]) | {"translucid": "0.0.7"})
    (run / "provenance.jsonl").write_text("\n".join([*rows, ""]))
    monkeypatch.setattr(experiment, "fixed_settings", lambda configuration: f"{configuration} in another version")
    with pytest.raises(
        UserError, match=r"begun by translucid 0\.0\.7.*Begin a new run from its weights \(`begin_from="
    ):
        train(run, resume=True)


@pytest.mark.parametrize("seed", [1, 2])
def test_the_seed_decides_the_first_weights(train, tmp_path, seed):
    torch.manual_seed(99)  # the random state before the training has no influence
    train(tmp_path / "run", f"training.seed={seed}", "training.max_steps=1", "training.learning_rate=1e-12")
    run = RunFolder(tmp_path / "run")
    torch.manual_seed(seed)
    fresh = build_model(run.configuration().model, run.tokenizer().source_size, run.tokenizer().target_size)
    tensors = with_prefix("model.", run.load_state()[0])
    assert len(tensors) > 20
    for name, tensor in tensors.items():
        torch.testing.assert_close(tensor, fresh.get_parameter(name).detach(), rtol=0, atol=1e-9)


def record_epoch(train, folder, monkeypatch, *settings):
    """Train one epoch; return the rows of each batch and the first hundred values of each dropout mask."""
    batches, dropped = [], []
    original_rows, original_forward = Weights.rows, Dropout.forward

    def spy_on_rows(self, rows):
        batches.append(
            [
                (tuple(s[s != 0].tolist()), tuple(t[t != 0].tolist()))
                for s, t in zip(rows.source, rows.targets_in, strict=True)
            ]
        )
        return original_rows(self, rows)

    def spy_on_drop(self, x):
        if self.training and self.p:
            dropped.append((original_forward(self, torch.ones(100)) == 0).tolist())
        return original_forward(self, x)

    with monkeypatch.context() as patched:
        patched.setattr(Weights, "rows", spy_on_rows)
        patched.setattr(Dropout, "forward", spy_on_drop)
        train(folder, "training.max_steps=null", "training.max_epochs=1", "training.validate_every=1000", *settings)
    assert len(batches) >= 10
    return batches, dropped


def test_the_seed_decides_the_order_the_pieces_and_every_dropout(train, tmp_path, monkeypatch):
    def record(name, *settings):
        return record_epoch(train, tmp_path / name, monkeypatch, *settings)

    whole_words, dropped = record("one", "data.subword_dropout=0")
    other_words, other_dropped = record("other", "data.subword_dropout=0", "training.seed=2")
    assert whole_words != other_words
    assert sorted(chain(*whole_words)) == sorted(chain(*other_words)), "another order is not one of other sentences"
    assert not any(first == second for first, second in zip(dropped, other_dropped, strict=False))
    pieces, _ = record("pieces", "data.subword_dropout=0.5")
    other_pieces, _ = record("other pieces", "data.subword_dropout=0.5", "training.seed=2")
    assert sorted(chain(*pieces)) != sorted(chain(*other_pieces))


def test_operations_in_a_fixed_order_give_the_same_run_on_a_cpu(train, uninterrupted_run, tmp_path):
    train(tmp_path / "fixed", "training.deterministic=true")
    assert_same_run(tmp_path / "fixed", uninterrupted_run)
    assert not torch.are_deterministic_algorithms_enabled()


def test_stopped_at_any_update_and_resumed(train, uninterrupted_run, tmp_path, monkeypatch):
    from translucid.training.trainer import Trainer

    stops = [1, 7, 8, 15, 16]
    update = Trainer._update

    def interrupted(self, batches, *rest):
        figures = update(self, batches, *rest)
        if self.progress.step + 1 in stops:
            os.kill(os.getpid(), signal.SIGINT)
        return figures

    monkeypatch.setattr(Trainer, "_update", interrupted)
    for _ in stops:
        with pytest.raises(Interrupted) as error:
            train(tmp_path / "stopped", resume=True)
        assert error.value.exit_code == 130
    monkeypatch.setattr(Trainer, "_update", update)
    assert RunFolder(tmp_path / "stopped").load_state()[1]["place"]["step"] == stops[-1]
    train(tmp_path / "stopped", resume=True)
    assert_same_run(tmp_path / "stopped", uninterrupted_run)


def test_a_longer_limit_goes_on_where_a_shorter_one_ended(train, uninterrupted_run, part_of_run, tmp_path):
    part_of_run(7, tmp_path / "short")
    train(tmp_path / "short", resume=True)
    assert_same_run(tmp_path / "short", uninterrupted_run)


def test_other_data_is_refused(train, uninterrupted_run, corpora):
    changed = Corpora.of(corpora.train[0][:-1], corpora.valid)
    with pytest.raises(UserError, match="the training text has changed"):
        train(uninterrupted_run, data=changed, resume=True)


def test_a_cooldown_over_epochs_resumes_exactly(train, tmp_path, monkeypatch):
    from translucid.training.trainer import Trainer

    limits = ["training.max_steps=null", "training.max_epochs=2", "training.cooldown=0.9"]
    train(tmp_path / "whole", *limits)
    update = Trainer._update

    def interrupted(self, batches, *rest):
        figures = update(self, batches, *rest)
        if self.progress.step + 1 == 9:
            os.kill(os.getpid(), signal.SIGINT)
        return figures

    monkeypatch.setattr(Trainer, "_update", interrupted)
    with pytest.raises(Interrupted):
        train(tmp_path / "stopped", *limits)
    monkeypatch.setattr(Trainer, "_update", update)
    train(tmp_path / "stopped", *limits, resume=True)
    assert_same_run(tmp_path / "stopped", tmp_path / "whole")


def damage(file, how):
    content = bytearray(file.read_bytes())
    if how == "cut short":
        del content[len(content) // 2 :]
    elif how == "a flipped byte":
        content[-100] ^= 1
    if how == "missing":
        file.unlink()
    else:
        file.write_bytes(content)


@pytest.mark.parametrize("how", ["a flipped byte", "missing"])
def test_the_previous_checkpoint_replaces_a_damaged_one(train, uninterrupted_run, part_of_run, tmp_path, how):
    part_of_run(14, tmp_path / "run")
    damage(tmp_path / "run" / "state" / "checkpoint.safetensors", how)
    output = io.StringIO()
    train(tmp_path / "run", resume=True, output=output)
    assert "checkpoint.safetensors" in output.getvalue() and "The checkpoint before it is used." in output.getvalue()
    assert_same_run(tmp_path / "run", uninterrupted_run)


def test_a_complete_checkpoint_before_its_rename_is_used(train, uninterrupted_run, part_of_run, tmp_path):
    part_of_run(7, tmp_path / "run")
    state = RunFolder(tmp_path / "run").state_file
    state.rename(state.with_name("next.safetensors"))  # as after a kill between two renames
    output = io.StringIO()
    train(tmp_path / "run", resume=True, output=output)
    assert "resumed at step 7" in output.getvalue() and "missing" not in output.getvalue()
    assert_same_run(tmp_path / "run", uninterrupted_run)


def test_a_damaged_best_model_is_reported_in_one_line(train, part_of_run, tmp_path):
    part_of_run(7, tmp_path / "run")
    damage(tmp_path / "run" / "model.safetensors", "cut short")
    output = io.StringIO()
    train(tmp_path / "run", "training.max_steps=8", resume=True, output=output, width=30)
    (line,) = [line for line in output.getvalue().splitlines() if "model.safetensors" in line]
    assert line.startswith(str(tmp_path)) and line.endswith("The next validation writes another.")


def test_when_both_checkpoints_are_damaged_it_says_so(train, part_of_run, tmp_path):
    part_of_run(14, tmp_path / "run")
    for file in (tmp_path / "run" / "state").glob("*.safetensors"):
        damage(file, "cut short")
    with pytest.raises(UserError, match="damaged or cut short"):
        train(tmp_path / "run", resume=True)


def test_two_trainings_do_not_share_a_folder(train, part_of_run, tmp_path):
    part_of_run(7, tmp_path / "run")
    with (
        RunFolder(tmp_path / "run").locked(),
        pytest.raises(UserError, match="another training is at work in this folder"),
    ):
        train(tmp_path / "run", "training.max_steps=8", resume=True)
    train(tmp_path / "run", "training.max_steps=8", resume=True)


@pytest.mark.parametrize(
    "forge",
    [
        lambda tensors, facts: facts.pop("origin"),
        lambda tensors, facts: facts.update(place={"steps": 3}),
        lambda tensors, facts: facts.update(recent=7),
        lambda tensors, facts: tensors.update({"optimizer.first.step": torch.ones(1)}),
        lambda tensors, facts: tensors.update({"process.0.cpu": torch.ones(3)}),
    ],
)
def test_a_checkpoint_of_something_else_is_one_line(train, part_of_run, tmp_path, forge):
    from translucid.runs.tensor_file import save_tensors

    part_of_run(7, tmp_path / "run")
    file = RunFolder(tmp_path / "run").state_file
    tensors, facts = load_tensors(file)
    forge(tensors, facts)
    save_tensors(file, tensors, facts)
    with pytest.raises(UserError, match=r"checkpoint\.safetensors: is not a checkpoint of this run"):
        train(tmp_path / "run", resume=True)


def test_a_run_with_two_optimizers_resumes_exactly(train, tmp_path):
    settings = "training.optimizer=muon", "training.validate_every=3"
    train(tmp_path / "whole", *settings, "training.max_steps=6")
    train(tmp_path / "parts", *settings, "training.max_steps=3")
    train(tmp_path / "parts", *settings, "training.max_steps=6", resume=True)
    assert_same_run(tmp_path / "parts", tmp_path / "whole")
