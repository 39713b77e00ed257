"""Freezing of parts of a model, which `training.freeze` names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torch import nn

from translucid.ground.errors import UserError, nearest
from translucid.models.protocol import Model


def freeze(model: Model, names: Sequence[str]) -> None:
    """Freeze the parts of a model with these names, including weights that they share with other parts.

    Raises:
        UserError: the model has no such part, or nothing is left to learn.
    """
    for name in names:
        weights = list(_weights_of(model, name))
        if not weights:
            raise UserError(f"training.freeze: the model has no part {name!r}", fix=nearest(name, parts(model)))
        for weight in weights:
            weight.requires_grad_(False)
    if names and not trainable(model):
        raise UserError(f"training.freeze={','.join(names)} leaves nothing to learn", fix="Name fewer parts.")


def trainable(model: nn.Module) -> list[nn.Parameter]:
    """Return the weights that training updates: all that are not frozen."""
    return [weight for weight in model.parameters() if weight.requires_grad]


def sizes(model: nn.Module) -> tuple[int, int]:
    """Return the numbers of trainable and of frozen weights."""
    total = sum(weight.numel() for weight in model.parameters())
    learned = sum(weight.numel() for weight in trainable(model))
    return learned, total - learned


def parts(model: Model) -> list[str]:
    """Return the names of all parts: `embeddings`, and all modules with weights, the outer ones first."""
    modules = set[str]()
    for name, _ in model.named_parameters(remove_duplicate=False):
        # `encoder.0.norm.weight` belongs to `encoder.0.norm`, `encoder.0` and `encoder`.
        while name := name.rpartition(".")[0]:
            modules.add(name)
    return ["embeddings", *sorted(modules, key=lambda name: (name.count("."), name))]


def _weights_of(model: Model, part: str) -> Iterator[nn.Parameter]:
    """Yield the weights of a part; the norm after a stack of blocks belongs to the stack."""
    if part == "embeddings":
        for module in model.modules():
            if isinstance(module, nn.Embedding):
                yield from module.parameters()
    for name, weight in model.named_parameters(remove_duplicate=False):
        if name == part or name.startswith((f"{part}.", f"{part}_norm.")):
            yield weight
