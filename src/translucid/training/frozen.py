"""Parts of a model that training leaves as they are, by names that people use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from torch import nn

from translucid.ground.errors import UserError, nearest
from translucid.models.protocol import Model


def freeze(model: Model, names: Sequence[str]) -> None:
    """Let the parts of a model that have these names stay as they are, all that they share with others included.

    Raises:
        UserError: it has no such part, or nothing is left to learn.
    """
    for name in names:
        part = [*_part(model, name)]
        if not part:
            raise UserError(f"training.freeze: the model has no part {name!r}", fix=nearest(name, parts(model)))
        for parameter in part:
            parameter.requires_grad_(False)
    if names and not any(parameter.requires_grad for parameter in model.parameters()):
        raise UserError(f"training.freeze={','.join(names)} leaves nothing to learn", fix="Name fewer parts.")


def parts(model: Model) -> list[str]:
    """Return the parts that can be named: the embeddings, and all that has a name in the model, from the outside."""
    named = {name.rpartition(".")[0] for name, _ in model.named_parameters(remove_duplicate=False)}
    within = {".".join(name.split(".")[:depth]) for name in named for depth in range(1, name.count(".") + 2)}
    return ["embeddings", *sorted(within - {""}, key=lambda name: (name.count("."), name))]


def _part(model: Model, name: str) -> Iterable[nn.Parameter]:
    """Yield the weights of a part; the norm that ends a stack of blocks belongs to it."""
    if name == "embeddings":
        for module in model.modules():
            if isinstance(module, nn.Embedding):
                yield from module.parameters()
    for found, parameter in model.named_parameters(remove_duplicate=False):
        if found.startswith((f"{name}.", f"{name}_norm.")) or found == name:
            yield parameter
