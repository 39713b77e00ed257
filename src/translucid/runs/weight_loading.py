"""Loading of weights into a model, after checking names, shapes, and the options with which they were trained."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from translucid.ground.errors import UserError
from translucid.models.model_options import ModelOptions
from translucid.runs.tensor_file import refuse_not_finite

if TYPE_CHECKING:
    from torch import Tensor

    from translucid.models.protocol import Model

_MISFIT = "The file does not belong to the config.yaml beside it."


def unshared(model: Model) -> dict[str, Tensor]:
    """Return the weights by name; shared weights have only their first name."""
    return {name: parameter.data for name, parameter in model.named_parameters()}


def shapes(tensors: Mapping[str, Tensor]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of tensors by name."""
    return {name: tensor.shape for name, tensor in tensors.items()}


def load_weights(model: Model, tensors: dict[str, Tensor], file: Path) -> None:
    """Copy weights by name into a model.

    Raises:
        UserError: names are missing or unknown, or a shape differs.
    """
    _refuse_strange(model, tensors, file)
    for name, tensor in unshared(model).items():
        tensor.copy_(tensors[name])


def fill(model: Model, tensors: dict[str, Tensor], file: Path) -> None:
    """Put tensors into a hollow model as its weights, by name, in float32; shared weights stay shared.

    Raises:
        UserError: names are missing or unknown, or a shape differs.
    """
    from torch import float32, nn

    _refuse_strange(model, tensors, file)
    filled = {id(hollow): nn.Parameter(tensors[name].to(float32)) for name, hollow in model.named_parameters()}
    for module in model.modules():
        # A list, because the loop changes what it iterates over.
        for name, hollow in list(module.named_parameters(recurse=False, remove_duplicate=False)):
            setattr(module, name, filled[id(hollow)])


def _refuse_strange(model: Model, tensors: dict[str, Tensor], file: Path) -> None:
    refuse_misfits(shapes(unshared(model)), shapes(tensors), file)
    for name, tensor in tensors.items():
        if not tensor.is_floating_point():
            raise UserError(f"does not fit the model: {name} is {tensor.dtype}", file=file, fix=_MISFIT)
    refuse_not_finite(tensors, file)


def refuse_misfits(wanted: Mapping[str, tuple[int, ...]], found: Mapping[str, tuple[int, ...]], file: Path) -> None:
    """Compare the shapes of weights by name.

    Raises:
        UserError: names are missing or unknown, or a shape differs.
    """
    problems = [f"{name} is missing" for name in sorted(wanted.keys() - found.keys())]
    problems += [f"{name} is unknown" for name in sorted(found.keys() - wanted.keys())]
    if problems:
        raise UserError(f"does not fit the model: {', '.join(problems[:3])}", file=file, fix=_MISFIT)
    for name, shape in wanted.items():
        if shape != found[name]:
            what = f"does not fit the model: {name} is {list(found[name])}, not {list(shape)}"
            raise UserError(what, file=file, fix=_MISFIT)


def refuse_other_options(trained: Any, now: ModelOptions, file: Path) -> None:
    """Compare the options of a model with those of its training; not all, such as the number of heads, change shapes.

    Args:
        trained: the options that the file of the weights contains; older files contain none.
        now: the options of the configuration.
        file: the file of the configuration.

    Raises:
        UserError: an option differs.
    """
    before = trained if isinstance(trained, dict) else {}
    for name, value in now.model_dump(mode="json").items():
        if name in before and before[name] != value:
            what = f"says model.{name}={value}, but the weights were trained with {before[name]}"
            raise UserError(what, file=file, fix="Put back what was there.")
