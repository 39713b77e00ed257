"""Packed batches: the loss and the gradients of padded ones, for every option of a Transformer."""

from functools import partial
from itertools import pairwise
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor

from tests.devices.emulated import Emulation
from tests.devices.test_counts import update
from translucid.attention.attend import attend, attend_fused
from translucid.attention.points import recording_weights
from translucid.data.batching import Batch, LinkedPieces
from translucid.data.packing import PackedShape, pack
from translucid.ground.errors import UserError
from translucid.kernels import loss as kernel
from translucid.kernels.attention import PackedMask, mask_of_keys
from translucid.kernels.loss import SoftTargets
from translucid.kernels.packing import Sentences
from translucid.kernels.rounding import mixed_precision
from translucid.models.build import build_model
from translucid.runs.configuration import resolve
from translucid.training.extras.distillation import DistillationLoss, SoftTargetLoss
from translucid.training.extras.guided_alignment import GuidedHead, GuidedLoss
from translucid.training.hardware.ddp import Workers
from translucid.training.objective import batch_loss, encoded
from translucid.training.optimizer import Optimizer
from translucid.training.weights import Weights

VOCABULARY, PAD, START, END = 20, 0, 2, 3
SHAPE = PackedShape(9, 44, 49, 12)
SMALL = [
    *("model.width=8", "model.heads=2", "model.feed_forward=12", "model.encoder_layers=1", "model.decoder_layers=2"),
    "model.dropout=0",
]
UNTIED = ["model.tie_output=false", "model.share_embeddings=false", "data.tokenizer.joint=false"]
OPTIONS = {
    "pre-norm, sinusoids, tied": [],
    "post-norm, learned positions, untied": ["model.norm=post", "model.positions=learned", *UNTIED],
    "final norm, no positions": ["model.norm=post-final", "model.positions=none", "model.nonlinearity=gelu"],
    "halved sinusoids, no start": ["model.positions=sinusoidal-halves", "model.zero_start=true"],
    "later sinusoids": ["model.positions=sinusoidal-tensor2tensor", "model.first_position=2", "model.head_width=3"],
    "ssru": ["model.decoder=ssru", "model.scale_embeddings=false"],
}
LOSSES = {
    "cross-entropy": batch_loss,
    "guided": lambda model, *args: GuidedLoss(model, partial(batch_loss, model), HEAD, 0.5)(*args),
    "soft": lambda model, *args: SoftTargetLoss(model, 0.4)(*args),
    "distilled": lambda model, *args: DistillationLoss(model, 0.4)(*args),
    "exact": lambda model, *args: with_weights(model, *args),
}
HEAD = GuidedHead(SimpleNamespace(layer=1, head=1))


def with_weights(model, *args):
    """Return the loss with attention by the equation, as recorded weights require."""
    with recording_weights(model):
        return batch_loss(model, *args)


def built(*settings):
    torch.manual_seed(1)
    model = build_model(resolve(assignments=[*SMALL, *settings]).model, VOCABULARY, VOCABULARY).double().train()
    for weight in model.parameters():
        weight.data.add_(0.1 * torch.randn_like(weight))
    return model


def padded_batch(lengths=((4, 6), (9, 2), (1, 11), (5, 5), (6, 1))):
    """Return sources and targets of these lengths, with word links and soft targets; 4 separates context."""
    generator = torch.Generator().manual_seed(2)
    longest = [max(side) for side in zip(*lengths, strict=True)]
    source, labels = (torch.zeros(len(lengths), length, dtype=torch.long) for length in longest)
    targets_in, links = labels.clone(), []
    for row, (n, m) in enumerate(lengths):
        source[row, :n] = torch.randint(4, VOCABULARY, (n,), generator=generator)
        labels[row, :m] = torch.randint(4, VOCABULARY, (m,), generator=generator)
        source[row, n - 1] = labels[row, m - 1] = END
        targets_in[row, 0], targets_in[row, 1:m] = START, labels[row, : m - 1]
        links += [(row * longest[1] + t) * longest[0] + min(t, n - 1) for t in range(m)]
    tokens = int(labels.ne(PAD).sum())
    soft_tokens = torch.rand(tokens, VOCABULARY, generator=generator).topk(3).indices
    soft = SoftTargets(soft_tokens, torch.rand(tokens, 3, generator=generator, dtype=torch.double).softmax(-1))
    weights = torch.rand(len(links), generator=generator, dtype=torch.double)
    return Batch(source, targets_in, labels, links=LinkedPieces(torch.tensor(links), weights), soft_targets=soft)


def figures(model, loss_of, batch):
    """Return the loss, the figures and the gradients of a batch."""
    model.zero_grad()
    loss = loss_of(model, batch, 0.1)
    loss.smoothed.backward()
    gradients = {name: weight.grad.clone() for name, weight in model.named_parameters()}
    return {"smoothed": loss.smoothed.detach(), "nll": loss.cross_entropy, "tokens": int(loss.tokens), **gradients}


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("options", OPTIONS)
def test_packed_equals_padded(options, loss, monkeypatch):
    """Packed batches with filling and without; then with the loss of a GPU, which computes all positions."""
    model, batch = built(*OPTIONS[options]), padded_batch()
    expected = figures(model, LOSSES[loss], batch)
    for shape in (SHAPE, None) if loss == "cross-entropy" else (SHAPE,):
        packed = pack(batch, shape).prepared()
        torch.testing.assert_close(figures(model, LOSSES[loss], packed), expected, rtol=0, atol=1e-9)
    monkeypatch.setattr(kernel, "_sums", kernel._sums_on_gpu)
    monkeypatch.setattr(Tensor, "nonzero", None)
    torch.testing.assert_close(figures(model, LOSSES[loss], packed), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("loss", ["cross-entropy", "exact"])
@pytest.mark.parametrize("options", ["pre-norm, sinusoids, tied", "ssru"])
def test_no_sentence_sees_its_neighbor(options, loss):
    model, batch = built(*OPTIONS[options]), padded_batch()

    def features(batch):
        batch = pack(batch, SHAPE)
        with recording_weights(model) if loss == "exact" else torch.enable_grad():
            rows = model.features(encoded(model, batch), batch.targets_in)
        return batch.packing.target.padded(rows)

    before = features(batch)
    for row in range(len(batch.source)):
        source, targets_in = batch.source.clone(), batch.targets_in.clone()
        source[row, 0], targets_in[row, 0] = 7, 8
        changed = (features(batch._replace(source=source, targets_in=targets_in)) - before).abs().amax((1, 2))
        assert changed.argmax() == row and changed[row] > 1e-3
        changed[row] = 0
        assert changed.max() == 0


def reference_varlen(query, key, value, starts_q, starts_k, longest_q, longest_k, *, window_size):
    """Compute what PyTorch's kernel computes, sentence by sentence, and check its demands."""
    assert {x.dtype for x in (query, key, value)} == {torch.bfloat16}
    assert starts_q.dtype == starts_k.dtype == torch.int32 and type(longest_q) is type(longest_k) is int
    starts_q, starts_k = (getattr(starts, "host", starts).tolist() for starts in (starts_q, starts_k))
    assert len(starts_q) == len(starts_k) and starts_q[-1] == len(query) and starts_k[-1] == len(key)
    contexts = [query[:0]]
    for q, k in zip(pairwise(starts_q), pairwise(starts_k), strict=True):
        length = q[1] - q[0]
        assert length <= longest_q and k[1] - k[0] <= longest_k and (k[1] > k[0] or not length)
        if length:
            rows = [x[slice(*span)].transpose(0, 1).float() for x, span in ((query, q), (key, k), (value, k))]
            mask = None
            if window_size == (-1, 0):
                mask = torch.ones(length, length, device=query.device).tril() > 0
            contexts.append(attend(*rows, mask)[0].transpose(0, 1).to(query.dtype))
    return torch.cat(contexts)


@pytest.mark.parametrize("causal", [True, False])
def test_a_gpu_computes_attention_by_the_kernel_for_packed_batches(causal, monkeypatch):
    monkeypatch.setattr("torch.nn.attention.varlen.varlen_attn", reference_varlen)
    packing = pack(padded_batch(), SHAPE).packing
    queries, keys = packing.target, packing.target if causal else packing.source
    query, key, value = (torch.randn(1, 2, len(side.position), 8).bfloat16() for side in (queries, keys, keys))
    expected, _ = attend(query.float(), key.float(), value.float(), _whole(PackedMask(queries, keys), query, causal))
    with Emulation("cuda") as emulation:
        mask = PackedMask(*(side.prepared().to(emulation.device) for side in (queries, keys)))
        tensors = [x.to(emulation.device) for x in (query, key, value)]
        emulation.forget()
        context = attend_fused(*tensors, mask, causal=causal)
    assert not emulation.synchronizations
    torch.testing.assert_close(context.host.float(), expected, rtol=0.02, atol=0.02)


def _whole(mask, query, causal):
    allowed = mask.allowed
    return allowed.tril() if causal else allowed


@pytest.mark.parametrize(("options", "bfloat16"), [("post-norm, learned positions, untied", True), ("ssru", False)])
def test_an_update_on_a_gpu_never_waits(options, bfloat16, monkeypatch):
    calls = []
    monkeypatch.setattr(
        "torch.nn.attention.varlen.varlen_attn",
        lambda *args, **kwargs: calls.append(1) or reference_varlen(*args, **kwargs),
    )
    model, batch = built(*OPTIONS[options], "model.heads=1").float(), pack(padded_batch(), SHAPE)
    expected = batch_loss(model, batch, 0.1).smoothed.item()
    with Emulation("cuda") as emulation:
        weights = Weights(model, emulation.device, Workers())
        optimizer = Optimizer(resolve().training, model, weights.parameters, bfloat16=bfloat16)
        loss_of = weights.loss

        def loss_in_precision(*args):
            with mixed_precision(weights.device, enabled=bfloat16):
                return loss_of(*args)

        weights.loss = loss_in_precision
        actual = weights.loss(weights.rows(batch), 0.1).smoothed.detach().cpu().item()
        update(weights, optimizer, batch)  # creates the moments
        emulation.forget()
        update(weights, optimizer, batch)
    assert not emulation.synchronizations
    assert bool(calls) is bfloat16
    assert actual == pytest.approx(expected, rel=0.02 if bfloat16 else 1e-5)


def test_a_training_on_packed_batches_learns_and_resumes(train, tmp_path):
    settings = "training.packed=true", "training.accumulate=2", "training.validate_every=2", "training.cooldown=0"
    whole = train(tmp_path / "whole", *settings, "training.max_steps=4")
    train(tmp_path / "parts", *settings, "training.max_steps=2")
    resumed = train(tmp_path / "parts", *settings, "training.max_steps=4", resume=True)
    assert resumed.best_loss == whole.best_loss


@pytest.mark.parametrize(
    ("preset", "setting", "reason"),
    [
        ("rnn-bahdanau", "training.seed=2", "is for Transformers that translate"),
        ("attention-only", "training.seed=2", "is for Transformers that translate"),
        ("caption-transformer", "training.seed=2", "is for Transformers that translate"),
        ("lm-transformer", "training.seed=2", "is for Transformers that translate"),
        ("tiny", "model.source_end=false", "with model.source_end"),
    ],
)
def test_models_whose_batches_are_padded(preset, setting, reason):
    with pytest.raises(UserError, match=reason):
        resolve(preset=preset, assignments=["training.packed=true", setting])


def test_full_distributions_of_teachers_are_for_padded_batches():
    teachers = ["training.teachers=[a]", "training.distillation_weight=0.5"]
    with pytest.raises(UserError, match=r"needs training\.soft_targets"):
        resolve(assignments=["training.packed=true", *teachers])


def test_a_row_is_padded_and_packed_again():
    sentences = Sentences.of(torch.tensor([2, 0, 3, 0]), 5)
    row = torch.arange(1.0, 6)[None, :, None]
    padded = sentences.padded(row)
    assert padded[..., 0].tolist() == [[1, 2, 0], [0, 0, 0], [3, 4, 5]]
    assert torch.equal(sentences.packed(padded), row)
    assert sentences.offsets.tolist() == [0, 2, 2, 5, 5]
    visible = torch.ones(1, 5, dtype=torch.bool)
    allowed = mask_of_keys(visible, sentences, sentences).allowed
    assert allowed[0, 0].int().tolist() == [[1, 1, 0, 0, 0]] * 2 + [[0, 0, 1, 1, 1]] * 3
