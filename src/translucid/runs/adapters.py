"""Adapters of a run: what a fine-tuning has learned, as differences of low rank in a small file of its own.

translucid train --init-from RUN --set training.adapter_rank=8 ..   writes OUT/adapter.safetensors
translucid translate RUN --adapter OUT                         or a file, or NAME of RUN/adapters/NAME.safetensors
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from translucid.ground.errors import UserError, nearest
from translucid.ground.reading import digest, refuse_strange
from translucid.runs.run_folder import ADAPTER, RunFolder
from translucid.runs.tensor_file import load_tensors, read_header, save_tensors

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor, nn

    from translucid.layers.low_rank import Difference

AnyModel = TypeVar("AnyModel", bound="nn.Module")
_FIX = "Give the run that it was learned from, or an adapter of this one."


def save_adapter(
    run: RunFolder, found: Mapping[str, Difference], scale: float, base: str, facts: dict[str, Any]
) -> None:
    """Write the adapter that a run has learned.

    Args:
        run: where.
        found: what is added to each matrix, by its name.
        scale: by what it is multiplied first.
        base: the fingerprint of the model that it belongs to.
        facts: what else is to be known of it.
    """
    tensors = {f"{name}.{side}": tensor for name, both in found.items() for side, tensor in both._asdict().items()}
    save_tensors(run.path / ADAPTER, tensors, {**facts, "base": base, "scale": scale})


class Adapter:
    """One in a file."""

    def __init__(self, file: Path, run: RunFolder) -> None:
        """Read who it belongs to, and without PyTorch.

        Raises:
            UserError: it is damaged, or does not belong to the run's model.
        """
        self.file = file
        shapes, facts = read_header(file)
        scale = facts.get("scale")
        if not isinstance(scale, float) or "base" not in facts:
            raise UserError("is no adapter", file=file, fix="Give what training.adapter_rank has made.")
        self.scale = scale
        if facts["base"] != run.model_digest():
            raise UserError(f"belongs to another model than that of {run.path}", file=file, fix=_FIX)
        weights, self.names = read_header(run.model_file)[0], sorted({name.rpartition(".")[0] for name in shapes})
        for name in self.names:
            up, down = (shapes.get(f"{name}.{side}", ()) for side in ("up", "down"))
            if not len(up) == len(down) == 2 or up[1] != down[0] or weights.get(name) != (up[0], down[1]):
                raise UserError(f"does not fit the model: {name}", file=file, fix=_FIX)
        self.fingerprint = digest(file)

    @classmethod
    def find(cls, given: str | Path, run: RunFolder) -> Adapter:
        """Return the adapter of a run that is meant: by its file, by the run that learned it, or by its name.

        Raises:
            UserError: there is none, or see `Adapter`.
        """
        path, kept = Path(given), run.path / "adapters"
        if path.is_dir():
            path /= ADAPTER
        elif not path.exists() and path.name == str(given):
            path = kept / f"{given}.safetensors"
        if not path.exists():
            there = sorted(file.stem for file in kept.glob("*.safetensors"))
            fix = nearest(str(given), there) if there else f"Give its file, or put it into {kept}."
            raise UserError(f"there is no adapter {str(given)!r}", fix=fix)
        refuse_strange(path, path.parent, None)
        return cls(path, run)

    def differences(self) -> dict[str, tuple[Tensor, Tensor]]:
        """Read B [outputs, r] and A [r, inputs] of each matrix, by its name.

        Raises:
            UserError: the file is damaged.
        """
        tensors = load_tensors(self.file)[0]
        return {name: (tensors[f"{name}.up"], tensors[f"{name}.down"]) for name in self.names}


def with_adapter(model: AnyModel, adapter: Adapter) -> AnyModel:
    """Return a model with W + s B A in the place of each matrix W of an adapter; the given model stays as it is.

    Both share all other weights.

    Raises:
        UserError: the adapter's file is damaged.
    """
    differences = adapter.differences()
    own = {id(model.get_parameter(name)) for name in differences}
    # `deepcopy` does not copy what its memo lists as copied.
    shared: dict[int, object] = {id(tensor): tensor for tensor in (*model.parameters(), *model.buffers())}
    adapted = copy.deepcopy(model, {key: tensor for key, tensor in shared.items() if key not in own})
    for name, (up, down) in differences.items():
        weight = adapted.get_parameter(name).data
        weight.addmm_(up.to(weight), down.to(weight), alpha=adapter.scale)
    return adapted
