"""Fine-tuning of translators: frozen parts, regularization towards the initial model, and selection of weights."""

import copy
import dataclasses
import io
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from bitext.pair import Pair
from tests.conftest import SETTINGS
from translucid.api.translator import Translator
from translucid.corpora.phrasebook import generate
from translucid.data.batching import Batch
from translucid.ground.console import Console
from translucid.ground.errors import UserError
from translucid.models.build import build_model
from translucid.models.ensemble import Ensemble
from translucid.models.model_options import RecurrentOptions, TransformerOptions
from translucid.runs.configuration import fixed_settings, resolve, resumed
from translucid.runs.corpus_files import Corpora
from translucid.runs.initialization import FINE_TUNING, settings_from
from translucid.runs.run_folder import RunFolder
from translucid.runs.tensor_file import load_tensors
from translucid.training.experiment import run_experiment
from translucid.training.extras.distillation import DistillationLoss
from translucid.training.extras.trained_weights import L2SP, freeze, parts
from translucid.training.objective import batch_loss
from translucid.training.post_training import show_gain
from translucid.training.trainer import Trainer
from translucid.training.validation import GENERAL, GuardedValidator

from .test_resume import assert_same_run
from .test_trainer import weights

SMALL = TransformerOptions(width=8, heads=2, feed_forward=12, encoder_layers=2, decoder_layers=1, dropout=0.0)
TUNING = ["training.max_steps=6", "training.validate_every=3", "training.learning_rate=0.01", "training.warmup=2"]
ENGINES = "torch", "ctranslate2"
KEEPING = [
    "training.l2_sp=0.1",
    "training.distillation_weight=0.3",
    "training.adapter_rank=2",
    "training.freeze=[encoder]",
]


@pytest.fixture(scope="module")
def base(train, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "base"
    train(folder, "training.max_steps=20", "training.validate_every=20", "training.learning_rate=0.02")
    return folder


@pytest.fixture(scope="module")
def domain():
    """Return pairs of another domain for training and validation, with general validation pairs."""
    pairs = [Pair(p.source, p.target) for p in generate(60, split="test", max_words=8)]
    corpora = Corpora.of(pairs[:40], pairs[40:50])
    return Corpora(corpora.train, corpora.valid, corpora.digest, general={(None, None): pairs[50:]})


@pytest.fixture(scope="module")
def tune(base, domain):
    """Fine-tune: tune(folder, "training.l2_sp=1", resume=True)."""

    def tuning(folder, *settings, begin_from=base, resume=False, corpora=domain):
        assignments = [*SETTINGS, *TUNING, *settings]
        configuration = resolve(assignments=assignments, initial_settings=settings_from(begin_from, None))
        console = Console(file=io.StringIO(), width=1000)
        run_experiment(configuration, folder, corpora=corpora, resume=resume, device="cpu", console=console)
        return console.file.getvalue()

    return tuning


@pytest.fixture(scope="module")
def uninterrupted_run(tune, tmp_path_factory):
    """Return a function that fine-tunes without interruption; tests must not change the runs."""

    @cache
    def tuning(*settings):
        folder = tmp_path_factory.mktemp("whole") / "run"
        tune(folder, *settings)
        return folder

    return tuning


def batch_of(vocabulary=20):
    source = torch.randint(4, vocabulary, (3, 5))
    target = torch.randint(4, vocabulary, (3, 4))
    target[1, 2:] = 0
    return Batch(source, torch.cat([torch.full((3, 1), 2), target[:, :-1]], 1), target)


def test_given_settings_override_the_defaults_of_fine_tuning(base):
    initial_settings = settings_from(base, None)
    configuration = resolve(assignments=["training.warmup=7"], initial_settings=initial_settings)
    assert configuration.training.warmup == 7
    assert configuration.training.learning_rate == FINE_TUNING["learning_rate"]
    assert configuration.training.begin_from == str(base)
    assert configuration.model == RunFolder(base).configuration().model


def test_words_of_the_domain_get_rows_that_begin_as_the_mean_of_their_parts(base, tune, domain, tmp_path):
    pairs = [Pair(f"Open Wagtail {pair.source}", f"Abre Wagtail {pair.target}") for pair in domain.train[0]]
    corpora = dataclasses.replace(domain, train=[pairs])
    settings = ["data.tokenizer.added=2", "training.learning_rate=1e-9", "training.max_steps=3"]
    settings.append("training.validate_sentences=10")  # all pairs, so the first part selects no weights at its end
    tune(tmp_path / "run", *settings, corpora=corpora)
    before, after = RunFolder(base).tokenizer(), RunFolder(tmp_path / "run").tokenizer()
    assert after.source_pieces([before.source_size])[0] == "▁Wagtail"
    initial, trained = load_tensors(base / "model.safetensors")[0], weights(tmp_path / "run")
    (parts,) = before.encode_source(["Wagtail"])
    for name in ("source_embedding.tokens.weight", "output.bias"):
        assert len(trained[name]) == after.source_size
        torch.testing.assert_close(trained[name][: before.source_size], initial[name], rtol=1e-4, atol=1e-6)
        torch.testing.assert_close(
            trained[name][before.source_size], initial[name][parts].mean(0), rtol=1e-4, atol=1e-6
        )
    translations = [
        Translator.load(tmp_path / "run", "cpu", engine).translate("I like Wagtail.").text for engine in ENGINES
    ]
    assert translations[0] == translations[1]
    tune(tmp_path / "run", *settings, "training.max_steps=6", corpora=corpora, resume=True)
    tune(tmp_path / "whole", *settings, "training.max_steps=6", corpora=corpora)
    assert_same_run(tmp_path / "run", tmp_path / "whole")
    assert resolve(initial_settings=settings_from(tmp_path / "run", None)).data.tokenizer.added == 0


def test_a_fine_tuned_run_keeps_the_direction_of_the_base_run(train, tmp_path):
    train(tmp_path / "reverse", "training.max_steps=1", "data.reverse=true", "data.source_language=en")
    data = resolve(initial_settings=settings_from(tmp_path / "reverse", None)).data
    assert data.reverse and data.source_language == "en"


@pytest.mark.parametrize("setting", [*KEEPING, "training.adapter_rank=0"])
def test_every_option_changes_the_weights(base, tune, uninterrupted_run, tmp_path, setting):
    tune(tmp_path / "run", "training.max_steps=4", setting)
    initial, _ = load_tensors(base / "model.safetensors")
    changed, baseline = weights(tmp_path / "run"), weights(uninterrupted_run("training.max_steps=4"))
    assert any(not torch.equal(baseline[name], initial[name]) for name in baseline)
    is_unchanged = changed.keys() == baseline.keys() and all(
        torch.equal(changed[name], baseline[name]) for name in changed
    )
    assert is_unchanged is (setting == "training.adapter_rank=0")


def test_frozen_parts_stay_bit_for_bit(base, tune, tmp_path):
    tune(tmp_path / "run", "training.freeze=[encoder,decoder.0.feed_forward]")
    initial, trained = load_tensors(base / "model.safetensors")[0], weights(tmp_path / "run")
    for name, tensor in trained.items():
        frozen = name.startswith(("encoder.", "encoder_norm.", "decoder.0.feed_forward."))
        assert torch.equal(tensor, initial[name]) is frozen, name
    best = load_tensors(tmp_path / "run" / "model.safetensors")[0]
    assert all(torch.equal(best[name], initial[name]) for name in best if name.startswith("encoder."))


def test_a_part_has_a_name_that_people_use():
    torch.manual_seed(1)
    model = build_model(SMALL.model_copy(update={"norm": "pre"}), 20, 20)

    def frozen(*names, model=model):
        fresh = copy.deepcopy(model)
        freeze(fresh, names)
        return {name for name, parameter in fresh.named_parameters() if not parameter.requires_grad}

    assert frozen() == set()
    all_names = {name for name, _ in model.named_parameters()}
    assert frozen("encoder") == {name for name in all_names if name.startswith(("encoder.", "encoder_norm."))}
    assert frozen("encoder.1") == {name for name in all_names if name.startswith("encoder.1.")}
    assert frozen("embeddings") == {"source_embedding.tokens.weight"}
    assert frozen("output") == {"source_embedding.tokens.weight", "output.bias"}  # the matrix is shared
    assert "decoder.0.cross_attention" in parts(model) and "encoder.1" in parts(model)
    with pytest.raises(UserError, match=r"no part 'encodr'\. Did you mean 'encoder'"):
        frozen("encodr")
    with pytest.raises(UserError, match="nothing to learn"):
        frozen("encoder", "decoder", "output", "embeddings")
    recurrent = build_model(RecurrentOptions(width=8), 20, 20)
    assert any(name.startswith("decoder.recurrence") for name in frozen("decoder", model=recurrent))


def test_a_wrong_name_is_said_before_anything_is_written(tune, tmp_path):
    with pytest.raises(UserError, match="no part 'middle'"):
        tune(tmp_path / "run", "training.freeze=[middle]")
    assert not (tmp_path / "run").exists()


def test_l2_sp_is_the_derivative_of_the_distance():
    parameters = [
        torch.nn.Parameter(torch.randn(3, 2)),
        torch.nn.Parameter(torch.randn(4)),
        torch.nn.Parameter(torch.ones(1)),
    ]
    anchor = L2SP(parameters, 0.7)
    initial = [parameter.detach().double().numpy().copy() for parameter in parameters]
    gradients = [torch.randn(3, 2), torch.randn(4)]
    for parameter, gradient in zip(parameters, gradients, strict=False):
        parameter.data += torch.randn(parameter.shape)
        parameter.grad = gradient.clone()
    anchor.pull()
    for parameter, gradient, start in zip(parameters, gradients, initial, strict=False):
        expected = gradient.double().numpy() + 0.7 * (parameter.detach().double().numpy() - start)
        np.testing.assert_allclose(parameter.grad.numpy(), expected, rtol=1e-5)
    assert parameters[2].grad is None


def test_distillation_is_a_cross_entropy_between_two_models():
    torch.manual_seed(3)
    model = build_model(SMALL.model_copy(update={"dropout": 0.5}), 20, 20).double()
    distillation = DistillationLoss(model, 0.3)
    teacher = copy.deepcopy(model).eval()
    for parameter in model.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    batch = batch_of()
    model.eval()  # without dropout, both computations are deterministic
    loss = distillation(batch, 0.1)
    logits, teacher_logits = (m(batch.source, batch.targets_in).detach().numpy() for m in (model, teacher))
    expected = 0.0
    for row, labels in enumerate(batch.labels.tolist()):
        for position, label in enumerate(labels):
            if label:
                log_p = logits[row, position] - np.log(np.exp(logits[row, position]).sum())
                teacher_p = np.exp(teacher_logits[row, position]) / np.exp(teacher_logits[row, position]).sum()
                cross_entropy = -0.9 * log_p[label] - 0.1 * log_p.mean()
                expected += 0.7 * cross_entropy - 0.3 * (teacher_p * log_p).sum()
    assert loss.smoothed.item() == pytest.approx(expected, rel=1e-6)
    for figure, expected in zip(loss.figures(), batch_loss(model, batch, 0.1).figures(), strict=True):
        assert float(figure) == pytest.approx(float(expected))
    gradients = torch.autograd.grad(loss.smoothed, [*model.parameters()], allow_unused=True)
    assert any(gradient.abs().sum() > 0 for gradient in gradients if gradient is not None)


def test_a_teacher_of_another_shape_and_an_ensemble_give_their_own_distribution():
    torch.manual_seed(4)
    model = build_model(SMALL.model_copy(update={"dropout": 0.0}), 20, 20).double().eval()
    teachers = []
    for width in (8, 16):
        shape = SMALL.model_copy(update={"dropout": 0.0, "width": width, "decoder_layers": 1})
        teachers.append(build_model(shape, 20, 20).double().eval())
    batch = batch_of()
    logits, *teacher_logits = (m(batch.source, batch.targets_in).detach().numpy() for m in (model, *teachers))
    expected = 0.0
    for row, labels in enumerate(batch.labels.tolist()):
        for position, label in enumerate(labels):
            if label:
                log_p = logits[row, position] - np.log(np.exp(logits[row, position]).sum())
                p = np.mean([np.exp(o[row, position]) / np.exp(o[row, position]).sum() for o in teacher_logits], 0)
                expected += -0.4 * log_p[label] - 0.6 * (p * log_p).sum()
    loss = DistillationLoss(model, 0.6, Ensemble(teachers))(batch)
    assert loss.smoothed.item() == pytest.approx(expected, rel=1e-6)


def test_distillation_without_weight_is_the_usual_loss():
    model = build_model(SMALL, 20, 20)
    batch = batch_of()
    torch.testing.assert_close(
        DistillationLoss(model, 0.0)(batch, 0.1).smoothed, batch_loss(model, batch, 0.1).smoothed
    )


@pytest.mark.parametrize(
    ("general", "score", "description"),
    [(30.0, 50.0, "BLEU 50.0"), (29.5, 50.0, "BLEU 50.0"), (26.75, -2.25, "forgot 2.2 BLEU more than it may")],
)
def test_weights_that_have_forgotten_too_much_are_not_the_best(general, score, description):
    def validator(bleu):
        validation = SimpleNamespace(score=bleu, measures={"bleu": bleu})
        validation._replace = lambda **changes: SimpleNamespace(**changes)
        return SimpleNamespace(
            measure=lambda *_: validation, describe=lambda s: f"BLEU {s:.1f}", tokenizer=None, metric="BLEU"
        )

    guarded = GuardedValidator(validator(50.0), {(None, None): validator(general)}, 1.0)
    assert guarded.measure(None, None).score == 50.0  # no validation before fine-tuning is known
    guarded.initial_measures = {"bleu": 20.0, GENERAL: 30.0}
    validation = guarded.measure(None, None)
    assert (validation.score, validation.measures) == (score, {"bleu": 50.0, GENERAL: general})
    assert guarded.describe(validation.score) == description


def test_metrics_before_fine_tuning_are_shown_beside_the_current_ones(tune, tmp_path):
    output = tune(tmp_path / "run")
    assert "validation at step 0:" in output
    rows = [row for row in RunFolder(tmp_path / "run").metrics() if row["kind"] == "validation"]
    assert [row["step"] for row in rows] == [0, 3, 6]
    place = load_tensors(tmp_path / "run" / "state" / "checkpoint.safetensors")[1]["place"]
    assert place["before"].keys() == place["kept"].keys() == {"bleu", GENERAL}
    assert place["before"][GENERAL] == pytest.approx(rows[0][GENERAL], rel=1e-4)
    progress = SimpleNamespace(before={"bleu": 10.0, GENERAL: 40.0}, kept={"bleu": 30.5, GENERAL: 39.5}, best_step=4)
    console = Console(file=io.StringIO(), width=100)
    show_gain(SimpleNamespace(progress=progress, workers=SimpleNamespace(leads=True)), console)
    lines = console.file.getvalue().splitlines()
    assert lines[1].split()[-3:] == ["10.0", "30.5", "+20.5"] and lines[2].split()[-3:] == ["40.0", "39.5", "-0.5"]


def test_without_improvement_the_initial_weights_are_kept(base, tune, tmp_path):
    tune(tmp_path / "run", "training.learning_rate=1e-12")
    best, facts = load_tensors(tmp_path / "run" / "model.safetensors")
    initial, _ = load_tensors(base / "model.safetensors")
    assert facts["step"] == 0
    assert all(torch.equal(best[name], initial[name]) for name in initial)


@pytest.mark.parametrize("settings", [KEEPING[:2], KEEPING[1:]])
def test_an_interrupted_fine_tuning_gives_the_same_weights(tune, uninterrupted_run, tmp_path, settings):
    tune(tmp_path / "cut", *settings, "training.max_steps=2")
    tune(tmp_path / "cut", *settings, resume=True)
    runs = tmp_path / "cut", uninterrupted_run(*settings)
    resumed_state, uninterrupted_state = (load_tensors(run / "state" / "checkpoint.safetensors")[0] for run in runs)
    assert resumed_state.keys() == uninterrupted_state.keys() and all(
        torch.equal(resumed_state[name], uninterrupted_state[name]) for name in resumed_state
    )


def test_an_interruption_right_after_the_first_validation(tune, uninterrupted_run, tmp_path, monkeypatch):
    save = Trainer.save

    def interrupted_save(self):
        save(self)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Trainer, "save", interrupted_save)
        with pytest.raises(KeyboardInterrupt):
            tune(tmp_path / "cut", *KEEPING[1:])
    tune(tmp_path / "cut", *KEEPING[1:], resume=True)
    assert_same_run(tmp_path / "cut", uninterrupted_run(*KEEPING[1:]))


def test_the_base_run_must_not_change(train, tune, tmp_path):
    train(tmp_path / "base", "training.max_steps=1")
    settings = "training.distillation_weight=0.5", "training.max_steps=1"
    tune(tmp_path / "run", *settings, begin_from=tmp_path / "base")
    train(tmp_path / "other", "training.max_steps=2")
    (tmp_path / "other" / "model.safetensors").replace(tmp_path / "base" / "model.safetensors")
    with pytest.raises(UserError, match=r"the model of training.begin_from has changed"):
        tune(tmp_path / "run", *settings, begin_from=tmp_path / "base", resume=True)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["training.l2_sp=1"], "l2_sp is for fine-tuning"),
        (["training.adapter_rank=4"], "adapter_rank is for fine-tuning"),
        (["data.tokenizer.added=9"], "added is for fine-tuning translators"),
        (
            ["training.begin_from=a", "data.tokenizer.added=9", "training.adapter_rank=4"],
            "for the vocabulary as it is",
        ),
        (
            ["training.begin_from=a", "training.distillation_weight=0.1", "training.sharded=true"],
            "distillation_weight needs whole matrices",
        ),
        (["training.begin_from=a", "training.l2_sp=1", "training.adapter_rank=4"], "leaves as they are anyway"),
        (
            ["training.begin_from=a", "training.adapter_rank=4", "model.kind=recurrent"],
            "adapter_rank is for Transformers",
        ),
        (
            ["training.begin_from=a", "training.distillation_weight=0.1", "model.kind=language-lstm"],
            "distillation_weight is for translators",
        ),
        (["training.teachers=[a]", "training.begin_from=b"], "both say which vocabulary"),
        (["training.teachers=[a]", "model.kind=language-lstm"], "training.teachers is for translators"),
        (["data.valid_general=[a.tsv]"], "valid_general is for fine-tuning"),
        (["data.mix={a.tsv: 0.6, b.tsv: 0.4}"], "leaves nothing of an epoch"),
        (["data.mix={a.tsv: 0.6}", "model.kind=language-lstm"], "data.mix is for sentence pairs"),
    ],
)
def test_incompatible_settings_are_refused(settings, message):
    with pytest.raises(UserError, match=message):
        resolve(assignments=settings)


def test_settings_that_determine_the_weights_can_not_change():
    configuration = resolve(assignments=["data.mix={a.tsv: 0.6}"])
    assert fixed_settings(configuration) == fixed_settings(
        resolve(assignments=["data.mix={b.tsv: 0.6}"])
    )  # files may be moved
    assert fixed_settings(configuration) != fixed_settings(resolve(assignments=["data.mix={a.tsv: 0.5}"]))
    assert "data.mix" not in fixed_settings(resolve())  # as in checkpoints without this key
    with pytest.raises(UserError, match=r"training.freeze can't change"):
        resumed(configuration, ["training.freeze=[encoder]"], {})
    adapted = resolve(assignments=["training.begin_from=runs/first", "training.adapter_rank=2"])
    with pytest.raises(UserError, match=r"training.adapter_scale can't change"):
        resumed(adapted, ["training.adapter_scale=3"], {})
