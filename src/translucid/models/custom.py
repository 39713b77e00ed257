"""The base of models in Python files of users, and the contract that such a model is checked against."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import torch
from torch import Tensor

from translucid.attention.points import recording_weights
from translucid.ground.errors import UserError
from translucid.ground.option_group import OptionGroup
from translucid.models.protocol import SequenceModel

TOLERANCE = 1e-4
"""How far logits, computed in two ways, may differ: float32 adds up in another order."""


class CustomModel(SequenceModel[Any]):
    """The base class of your own translation model; docs/extending.md has an example.

    Implement `read`, `features`, `start` and `advance`. `__init__` takes the sizes of both vocabularies and the
    options, and sets `source_embedding` and `output`.
    """

    Options: ClassVar[type[OptionGroup]] = OptionGroup
    """The options of the model, which `--set model.options.NAME=VALUE` sets; a class with a field for each."""

    @classmethod
    def attention_maps(cls, options: Any) -> dict[str, int]:
        """Return the attention maps by name, such as `decoder.0.cross`, with the number of heads of each.

        `options`: an instance of `Options`. Without a map between source and target there are no alignments.
        """
        return {}


def check_contract(model: SequenceModel, name: str, declared_maps: dict[str, int]) -> None:
    """Check on a few tokens that training, search and inspection may rely on a model.

    Args:
        model: a model on the CPU; its weights and PyTorch's random state stay unchanged.
        name: the name of the model, for messages.
        declared_maps: the number of heads of each attention map, by name.

    Raises:
        UserError: the model breaks a promise; the message says which.
    """
    training = model.training
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        model.eval()
        broken = next(_broken_promises(model, declared_maps), None)
        model.train(training)
    if broken:
        raise UserError(f"{name} {broken}", fix="docs/extending.md describes what each method promises.")


def _broken_promises(model: SequenceModel, declared_maps: dict[str, int]) -> Iterator[str]:
    """Yield what a model does wrong, the most basic errors first."""
    # Special tokens are in every vocabulary; these three sources have 4, 2 and 1 tokens before the end token.
    start, end, pad, unknown = model.bos, model.eos, model.pad, model.special.unknown
    source = torch.tensor(
        [
            [unknown, start, unknown, unknown, end],
            [start, unknown, end, pad, pad],
            [unknown, end, pad, pad, pad],
        ]
    )
    targets = torch.tensor([[start, unknown, end, unknown], [start, end, end, unknown], [start, unknown, unknown, end]])
    logits = model(source, targets)
    vocabulary = model.output.out_features
    if logits.shape != (3, 4, vocabulary):
        yield f"returns logits of the shape {list(logits.shape)} instead of [3, 4, {vocabulary}]"
        return
    yield from _depends_on_padding(model, source, targets, logits)
    yield from _sees_the_future(model, source, targets, logits)
    yield from _steps_differ(model, source, targets, logits)
    yield from _maps_are_wrong(model, source, targets, logits, declared_maps)


def _depends_on_padding(model: SequenceModel, source: Tensor, targets: Tensor, logits: Tensor) -> Iterator[str]:
    for row in range(len(source)):
        length = int((source[row] != model.pad).sum())
        row_logits = model(source[row : row + 1, :length], targets[row : row + 1])
        if not _close(row_logits[0], logits[row]):
            yield "translates a sentence differently in a batch: padding, where the mask is False, changes its logits"
            return


def _sees_the_future(model: SequenceModel, source: Tensor, targets: Tensor, logits: Tensor) -> Iterator[str]:
    changed_targets = targets.clone()
    changed_targets[:, 2:] = model.bos
    if not _close(model(source, changed_targets)[:, :2], logits[:, :2]):
        yield "sees the future: `features` at a position depend on later target tokens"


def _steps_differ(model: SequenceModel, source: Tensor, targets: Tensor, logits: Tensor) -> Iterator[str]:
    state = model.start(model.encode(source))
    states = [state]
    for position in range(targets.size(1)):
        step_logits, state = model.step(targets[:, position], state)
        states.append(state)
        if not _close(step_logits, logits[:, position]):
            yield f"computes other logits step by step: `advance` and `features` differ at position {position}"
            return
    repeated, _ = model.step(targets[:, 1], states[1])
    if not _close(repeated, logits[:, 1]):
        yield "changes a state in `advance`; it has to return a new one"
    rows = torch.tensor([2, 0, 0])
    reordered, _ = model.step(targets[rows, 1], states[1].select(rows))
    if not _close(reordered, logits[rows, 1]):
        yield "has a state whose `select` does not reorder all parts of a hypothesis's state"


def _maps_are_wrong(
    model: SequenceModel, source: Tensor, targets: Tensor, logits: Tensor, declared: dict[str, int]
) -> Iterator[str]:
    with recording_weights(model) as maps:
        recorded_logits = model.decode(model.encode(source), targets)
    if not _close(recorded_logits, logits):
        yield "computes other logits when attention maps are recorded"
    heads = {name: weights.size(1) for name, weights in maps.items()}
    if heads != declared:
        yield f"has points for the weights of attentions (with heads) {heads}, and `attention_maps` declares {declared}"
        return
    for name, weights in maps.items():
        if not name.endswith(".cross"):
            continue
        if weights.shape != (3, heads[name], 4, 5):
            shape = list(weights.shape)
            yield f"has attention weights {name} of the shape {shape} instead of [batch, heads, target, source]"
        elif weights.masked_select((source == model.pad)[:, None, None]).any():
            yield f"attends to padding in {name}"


def _close(logits: Tensor, expected: Tensor) -> bool:
    return logits.shape == expected.shape and torch.allclose(logits, expected, rtol=TOLERANCE, atol=TOLERANCE)
