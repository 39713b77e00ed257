"""Adapters: the low-rank differences that a fine-tuning has learned, in a small file.

translucid train --init-from RUN --set training.adapter_rank=8 ..   writes OUT/adapter.safetensors
translucid translate RUN --adapter OUT                         or a file, or NAME of RUN/adapters/NAME.safetensors
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from bitext.reading import digest, refuse_unsafe
from translucid.ground.errors import UserError, nearest
from translucid.models.copying import shared_copy
from translucid.runs.run_folder import ADAPTER, RunFolder
from translucid.runs.tensor_file import load_arrays, load_tensors, read_header, save_tensors

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor, nn


AnyModel = TypeVar("AnyModel", bound="nn.Module")
_FIX = "Give the run that it was learned from, or an adapter of this one."


def save_adapter(
    run: RunFolder, differences: Mapping[str, tuple[Tensor, Tensor]], scale: float, base: str, facts: dict[str, Any]
) -> None:
    """Write the adapter that a run has learned.

    Args:
        run: the run folder.
        differences: the factors B and A of the difference of each matrix, by the name of the matrix.
        scale: the factor of the differences.
        base: the fingerprint of the model that was fine-tuned.
        facts: further metadata.
    """
    tensors = {}
    for name, (up, down) in differences.items():
        tensors[f"{name}.up"] = up
        tensors[f"{name}.down"] = down
    save_tensors(run.path / ADAPTER, tensors, {**facts, "base": base, "scale": scale})


class Adapter:
    """The file of an adapter."""

    def __init__(self, file: Path, run: RunFolder) -> None:
        """Read the header of the file, without PyTorch, and check that it fits the run's model.

        Raises:
            UserError: the file is damaged, or does not belong to the run's model.
        """
        self.file = file
        shapes, facts = read_header(file)
        scale = facts.get("scale")
        if not isinstance(scale, float) or "base" not in facts:
            raise UserError("is no adapter", file=file, fix="Give what training.adapter_rank has made.")
        self.scale = scale
        if facts["base"] != run.model_digest():
            raise UserError(f"belongs to another model than that of {run.path}", file=file, fix=_FIX)
        weights, _ = read_header(run.model_file)
        self.names = sorted({name.rpartition(".")[0] for name in shapes})
        for name in self.names:
            up, down = shapes.get(f"{name}.up", ()), shapes.get(f"{name}.down", ())
            # A difference is the product of two matrices [outputs, r] and [r, inputs].
            if not len(up) == len(down) == 2 or up[1] != down[0] or weights.get(name) != (up[0], down[1]):
                raise UserError(f"does not fit the model: {name}", file=file, fix=_FIX)
        self.fingerprint = digest(file)

    @classmethod
    def find(cls, adapter: str | Path, run: RunFolder) -> Adapter:
        """Return an adapter of a run by its file, by the run that learned it, or by its name.

        Raises:
            UserError: there is none, or it does not fit the run's model.
        """
        path, folder = Path(adapter), run.path / "adapters"
        if path.is_dir():
            path /= ADAPTER
        elif not path.exists() and path.name == str(adapter):
            path = folder / f"{adapter}.safetensors"
        if not path.exists():
            names = sorted(file.stem for file in folder.glob("*.safetensors"))
            fix = nearest(str(adapter), names) if names else f"Give its file, or put it into {folder}."
            raise UserError(f"there is no adapter {str(adapter)!r}", fix=fix)
        refuse_unsafe(path, path.parent, None)
        return cls(path, run)

    def differences(self) -> dict[str, tuple[Tensor, Tensor]]:
        """Read the factors B [outputs, r] and A [r, inputs] of each matrix, by the name of the matrix.

        Raises:
            UserError: the file is damaged.
        """
        tensors, _ = load_tensors(self.file)
        return {name: (tensors[f"{name}.up"], tensors[f"{name}.down"]) for name in self.names}

    def arrays(self) -> dict[str, tuple[NDArray[np.float32], NDArray[np.float32]]]:
        """Read what `differences` reads, with NumPy."""
        arrays, _ = load_arrays(self.file)
        return {name: (arrays[f"{name}.up"], arrays[f"{name}.down"]) for name in self.names}


def with_adapter(model: AnyModel, adapter: Adapter) -> AnyModel:
    """Return a copy of a model with W + s B A in place of each matrix W of an adapter.

    The copy shares all other weights with the model.

    Raises:
        UserError: the adapter's file is damaged.
    """
    differences = adapter.differences()
    adapted = shared_copy(model, unshared=differences)
    for name, (up, down) in differences.items():
        weight = adapted.get_parameter(name).data
        weight.addmm_(up.to(weight), down.to(weight), alpha=adapter.scale)
    return adapted
