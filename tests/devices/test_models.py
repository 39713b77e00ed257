"""A model of each kind on an emulated GPU gives the losses and hypotheses of the CPU, and mixes no devices."""

from functools import cache

import pytest
import torch

from bitext.pair import Pair
from tests.devices.emulated import DeviceTensor, Emulation, MixedDevicesError
from tests.devices.shrunk import CASES, SENTENCES, SHORT, VOCABULARY, build_case
from translucid.captions.captioner import decode_images
from translucid.captions.self_critical import SelfCritical
from translucid.data.text_pipeline import TextPipeline
from translucid.data.tokenizing.tokenizer import Tokenizer, TokenizerOptions
from translucid.decoding.decoding_options import DecodingOptions, SearchRequest
from translucid.decoding.search import TorchEngine, search
from translucid.inspection.explain import Case, integrated_gradients
from translucid.kernels.attention import fast_attention
from translucid.kernels.rounding import mixed_precision
from translucid.language.model import LanguageModel
from translucid.models.build import build_model
from translucid.models.protocol import SequenceModel
from translucid.runs.configuration import resolve
from translucid.training.hardware.ddp import Workers
from translucid.training.optimizer import Optimizer
from translucid.training.weights import Weights

ALIKE = {"demo", "student-demo", "small", "base", "student-base", "rnn-luong-dot"}
"""Presets that have the layers and sizes of others when they are small."""
ON_MPS = "tiny", "rnn-luong-local", "caption-hard", "lm-lstm", "lm-transformer"
"""Cases of which all operations are tried on Apple's GPUs; the others differ in options."""
WORD_STARTS = torch.ones(VOCABULARY, dtype=torch.bool)
CPU = torch.device("cpu")
SEARCHES = {
    "greedy": DecodingOptions(beam=1, **SHORT),
    "beam": DecodingOptions(beam=4, nbest=2, no_repeat_ngram=2, min_length=2, **SHORT),
    "sampling": DecodingOptions(sample=True, nbest=2, top_k=5, top_p=0.9, **SHORT),
}


def train(case, device, after):
    """Make two updates; return the losses and the `Weights`."""
    torch.manual_seed(2)
    weights = Weights(case.model, device, Workers())
    after("move")
    options = case.configuration.training.model_copy(update={"layer_decay": 1.0, "unfreeze": False})
    optimizer = Optimizer(options, case.model, weights.parameters, bfloat16=False)
    losses = []
    for _ in range(2):
        loss = weights.loss(weights.rows(case.batch), options.label_smoothing)
        (loss.smoothed / 30).backward()
        weights.clip_grad_norm(1.0)
        optimizer.step(0.001)
        weights.update_ema(0.5)
        losses.append(loss.smoothed.detach())
    return losses, weights


def token_lists(hypotheses):
    return [hypothesis.tokens for hypothesis in hypotheses]


def decode(case, model, options, device):
    """Return the ids of all hypotheses."""
    if isinstance(model, LanguageModel):
        results = search(model, case.source.to(device), options, WORD_STARTS)
    elif case.source.dim() == 4:
        results = decode_images(model, list(case.source.numpy()), options, word_starts=WORD_STARTS)
    else:
        results = TorchEngine(model, WORD_STARTS).decode(SearchRequest(SENTENCES, options))
    return list(map(token_lists, results))


def outcome(name, device, after=lambda stage: None):
    """Train a case and search with it; return its losses, the hypotheses of each search, and the `Weights`.

    Sampled hypotheses are left out, as a GPU draws other random numbers than a CPU. `after` is called after each stage.
    """
    case = build_case(name)
    losses, weights = train(case, device, after)
    after("update")
    hypotheses = {}
    if isinstance(case.model, SequenceModel):
        with weights.ema_model() as model:
            for search, options in SEARCHES.items():
                hypotheses[search] = decode(case, model, options, device)
                after(search)
        del hypotheses["sampling"]
    return [float(loss) for loss in losses], hypotheses, weights


@cache
def on_cpu(name):
    return outcome(name, CPU)[:2]


@pytest.mark.parametrize(
    ("name", "kind"), [*((name, "cuda") for name in CASES if name not in ALIKE), *((name, "mps") for name in ON_MPS)]
)
def test_updates_and_searches(name, kind, steps):
    """Results equal those of the CPU; on CUDA no update waits for the GPU, and a search waits once a step."""
    expected_losses, expected_hypotheses = on_cpu(name)
    steps.clear()
    with Emulation(kind) as emulation:

        def after(stage):
            waits = dict(emulation.synchronizations)
            # A search reads its hypotheses at the end; at the start it moves and counts sources of unknown length.
            allowed = 0 if stage == "update" else len(steps) + 3
            assert kind == "mps" or stage == "move" or sum(waits.values()) <= allowed, waits
            emulation.forget()
            steps.clear()

        losses, hypotheses, weights = outcome(name, emulation.device, after)
        assert losses == pytest.approx(expected_losses, rel=1e-4)
        assert all(isinstance(parameter, DeviceTensor) for parameter in weights.parameters)
        assert hypotheses == expected_hypotheses


@pytest.mark.parametrize("name", ["tiny", "rnn-bahdanau", "gru, one direction", "lm-lstm", "caption-soft"])
def test_updates_in_bfloat16(name):
    """Products are in bfloat16, except in recurrent layers, where the emulated GPU refuses autocast."""
    losses = []
    for device in (CPU, torch.device("cuda")):
        with Emulation("cuda"):
            case = build_case(name)
            weights = Weights(case.model, device, Workers())
            torch.manual_seed(2)
            with mixed_precision(device, enabled=device.type == "cuda"):
                loss = weights.loss(weights.rows(case.batch), 0.1)
            loss.smoothed.backward()
            losses.append(float(loss.smoothed.detach()))
    assert losses[1] != losses[0]
    assert losses[1] == pytest.approx(losses[0], rel=0.03)
    assert all(p.grad is None or (p.grad.dtype, p.grad.isfinite().all()) == (p.dtype, True) for p in weights.parameters)


CAPTIONERS = [name for name, (preset, _) in CASES.items() if preset.startswith("caption")]


@pytest.mark.parametrize(("name", "kind"), [*((name, "cuda") for name in CAPTIONERS), ("caption-hard", "mps")])
def test_self_critical_updates(name, kind):
    case = build_case(name)
    with Emulation(kind) as emulation:
        weights = Weights(case.model, emulation.device, Workers())
        critical = SelfCritical(weights.model, lambda samples, batch: [float(len(ids)) for ids in samples])
        rows = weights.rows(case.batch)
        emulation.forget()
        loss = critical(rows, 0.0)
        (loss.smoothed / 3).backward()
        # One wait for each sampled token, and one for the references that the reward compares with.
        sampled = sum(
            count for source_line, count in emulation.synchronizations.items() if "self_critical" in source_line
        )
        assert kind == "mps" or sum(emulation.synchronizations.values()) == sampled <= 2 * case.batch.labels.size(1) + 1
        assert all(
            isinstance(parameter.grad, DeviceTensor) for parameter in weights.parameters if parameter.grad is not None
        )


@pytest.mark.parametrize("name", ["lm-transformer", "lm-lstm"])
def test_a_language_model_reads_on_after_earlier_tokens(name):
    def features(device):
        model, ids = build_case(name).model.eval().to(device), torch.tensor([[5, 6, 7, 8, 9]], device=device)
        _, state = model.read_on(ids[:, :2], model.begin(1, device))
        return model.read_on(ids[:, 2:], state)[0].features.tolist()

    with Emulation("cuda") as emulation:
        actual = features(emulation.device)
    torch.testing.assert_close(torch.tensor(actual), torch.tensor(features(CPU)), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["rnn-bahdanau", "rnn-none"])
def test_gradients_explain_recurrent_layers_in_evaluation_mode(name):
    """cuDNN and the emulated GPU refuse their backward pass in this mode; see `Recurrence._run_for_gradients`."""
    words = ["uno", "dos", "tres", "cuatro"]
    tokenizer = Tokenizer.learn(
        [Pair(" ".join(words), " ".join(words[::-1]))] * 20, TokenizerOptions(vocabulary=40), seed=1
    )
    options = resolve(preset=name, assignments=["model.width=16"]).model

    def shares(device):
        torch.manual_seed(3)
        model = build_model(options, tokenizer.target_size, tokenizer.target_size).eval().to(device)
        return integrated_gradients(
            Case(model, TextPipeline(tokenizer, 99), "uno dos tres", "tres dos uno"), 4
        ).tolist()

    with Emulation("cuda") as emulation:
        actual = shares(emulation.device)
    torch.testing.assert_close(torch.tensor(actual), torch.tensor(shares("cpu")), rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("kind", ["masked", "whole"])
def test_attention_on_a_gpu_is_never_that_of_cudnn(kind, monkeypatch):
    allowed = []

    def attention(query, key, value, **options):
        allowed.append(torch.backends.cuda.cudnn_sdp_enabled())
        return query

    monkeypatch.setattr("torch.nn.functional.scaled_dot_product_attention", attention)
    before = torch.backends.cuda.cudnn_sdp_enabled()
    with Emulation("cuda") as emulation:
        query = torch.ones(1, 2, 3, 4, device=emulation.device)
        mask = torch.ones(1, 1, 3, 3, dtype=torch.bool, device=emulation.device) if kind == "masked" else None
        fast_attention(query, query, query, mask)
    assert (allowed, torch.backends.cuda.cudnn_sdp_enabled()) == ([False], before)


def test_mixed_devices_are_seen():
    with Emulation("cuda"), pytest.raises(MixedDevicesError, match="add"):
        torch.ones(2, device="cuda") + torch.ones(2)


def test_masks_are_made_once_a_batch():
    case = build_case("muon")  # a Transformer with two layers on each side
    with Emulation("cuda") as emulation:
        weights = Weights(case.model, emulation.device, Workers())
        rows = weights.rows(case.batch)
        emulation.forget()
        weights.loss(rows, 0.1)
    # The source mask: once for the two encoder blocks and once for the two decoder blocks.
    assert (emulation.kernels["any"], emulation.kernels["where"]) == (2, 2)
