"""Soft targets: stored distributions, the loss, and resumed trainings."""

import numpy as np
import pytest
import torch

from tests.conftest import SETTINGS as RUN
from tests.training.test_resume import assert_same_run
from translucid.ground.errors import UserError
from translucid.runs.configuration import resolve
from translucid.runs.run_folder import RunFolder
from translucid.runs.tensor_file import load_tensors
from translucid.training.experiment import prepared
from translucid.training.extras import distillation
from translucid.training.extras.distillation import DistillationLoss

SETTINGS = ["training.distillation_weight=0.6", "training.max_steps=9", "data.subword_dropout=0"]


def named(teachers):
    """Return the setting that names teachers."""
    return f"training.teachers=[{','.join(map(str, teachers))}]"


@pytest.fixture(scope="module")
def teachers(train, tmp_path_factory):
    """Train two runs with the same vocabulary."""
    folders = [tmp_path_factory.mktemp("teachers") / name for name in ("first", "second")]
    train(folders[0], "training.max_steps=5", "training.averaging=0")
    train(folders[1], f"training.teachers=[{folders[0]}]", "training.max_steps=5", "model.width=24")
    return folders


@pytest.fixture
def distilled(train, teachers):
    """Train with soft targets: distilled(folder, "training.soft_targets=3", resume=True)."""
    return lambda folder, *settings, **options: train(folder, named(teachers), *SETTINGS, *settings, **options)


@pytest.fixture
def trainer(teachers, corpora, tmp_path):
    """Prepare a training with soft targets: trainer(3, folder)."""

    def prepare(count):
        settings = [f"training.soft_targets={count}", "training.precision=float32", "model.dropout=0"]
        configuration = resolve(assignments=[*RUN, *SETTINGS, named(teachers), *settings])
        with prepared(configuration, tmp_path / str(count), corpora=corpora, device="cpu") as (prepared_trainer, _):
            prepared_trainer.interrupted = 0
            return prepared_trainer

    return prepare


def batch_of(trainer):
    return next(iter(trainer.epochs.batches(0))).rows


def test_they_are_the_most_probable_tokens_of_the_teachers(trainer, teachers):
    batch = batch_of(trainer(3))
    model = distillation.teachers_of(resolve(assignments=[named(teachers)]).training)
    with torch.no_grad():
        logits = model.decode(model.encode(batch.source), batch.targets_in)
    row = 0
    for logit, label in zip(logits.flatten(0, 1).double().numpy(), batch.labels.flatten().tolist(), strict=True):
        if label == model.pad:
            continue
        p = np.exp(logit) / np.exp(logit).sum()
        best = np.sort(p)[::-1][:3]
        tokens = batch.soft_targets.tokens[row].numpy()
        np.testing.assert_allclose(p[tokens], best, rtol=1e-5)
        np.testing.assert_allclose(batch.soft_targets.probabilities[row], best / best.sum(), rtol=2e-3)
        row += 1
    assert row == len(batch.soft_targets.tokens) == len(batch.positions)


def test_all_tokens_give_the_loss_and_the_gradients_of_whole_distributions(trainer, teachers):
    prepared_trainer = trainer(1024)
    model, batch = prepared_trainer.weights.model, batch_of(prepared_trainer)
    teacher = distillation.teachers_of(prepared_trainer.options)
    exact = DistillationLoss(model, 0.6, teacher)(batch, 0.1)
    loss = prepared_trainer.weights.loss(batch, 0.1)
    assert type(prepared_trainer.weights.loss) is not DistillationLoss
    assert loss.smoothed.item() == pytest.approx(exact.smoothed.item(), rel=1e-4)
    assert loss[2:] == exact[2:]
    parameters = [*model.parameters()]
    gradients = torch.autograd.grad(loss.smoothed, parameters)
    for actual, expected in zip(gradients, torch.autograd.grad(exact.smoothed, parameters), strict=True):
        torch.testing.assert_close(actual, expected, rtol=1e-2, atol=1e-2)


def test_an_interrupted_training_has_the_same_result(distilled, tmp_path):
    distilled(tmp_path / "whole", "training.soft_targets=3")
    distilled(tmp_path / "parts", "training.soft_targets=3", "training.max_steps=7")
    distilled(tmp_path / "parts", "training.soft_targets=3", resume=True)
    assert_same_run(tmp_path / "whole", tmp_path / "parts")
    with pytest.raises(UserError, match=r"training\.soft_targets|a setting"):
        distilled(tmp_path / "parts", "training.soft_targets=4", resume=True)


def test_they_are_computed_once_and_an_interrupted_computation_continues(distilled, tmp_path, monkeypatch):
    monkeypatch.setattr(distillation, "CHUNK", 30)
    computed = []
    original = distillation._soft_targets

    def interrupted_targets(teacher, pairs, rows, *rest):
        if rows[0] == 60 and 60 not in computed:
            computed.append(60)
            raise KeyboardInterrupt
        computed.append(int(rows[0]))
        return original(teacher, pairs, rows, *rest)

    monkeypatch.setattr(distillation, "_soft_targets", interrupted_targets)
    run = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        distilled(run, "training.soft_targets=3", "training.max_steps=2")
    distilled(run, "training.soft_targets=3", "training.max_steps=2", resume=True)
    assert computed == [0, 30, 60, 60, 90]
    distilled(run, "training.soft_targets=3", "training.max_steps=3", resume=True)
    assert computed == [0, 30, 60, 60, 90]
    file = RunFolder(run).soft_targets_folder / "probabilities"
    file.write_bytes(file.read_bytes()[:-2] + b"\0\0")
    distilled(run, "training.soft_targets=3", "training.max_steps=4", resume=True)
    assert computed[5:] == [0, 30, 60, 90]


def test_they_change_what_is_learned(distilled, tmp_path):
    for count in (0, 2):
        distilled(tmp_path / str(count), f"training.soft_targets={count}", "training.max_steps=2")
    without_targets, with_targets = (load_tensors(tmp_path / name / "model.safetensors")[0] for name in ("0", "2"))
    assert any(not torch.equal(without_targets[key], with_targets[key]) for key in without_targets)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["training.distillation_weight=0.5", "training.begin_from=a"], "are those of training.teachers"),
        (["training.teachers=[a]"], "are those of training.teachers"),
        (
            ["training.teachers=[a]", "training.distillation_weight=0.5", "data.subword_dropout=0.1"],
            "do not go together",
        ),
    ],
)
def test_incompatible_settings_are_refused(settings, message):
    with pytest.raises(UserError, match=message):
        resolve(assignments=[*settings, "training.soft_targets=4"])
