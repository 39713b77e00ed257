"""The file in the run folder with the alignment layer that `translucid tune --alignments` has trained."""

from __future__ import annotations

from typing import TYPE_CHECKING

from translucid.engines.confidence_file import Languages
from translucid.ground.errors import UserError
from translucid.runs.run_folder import ALIGNMENT, RunFolder
from translucid.runs.tensor_file import load_tensors, save_tensors

if TYPE_CHECKING:
    from translucid.decoding.alignment_layer import AlignmentLayer
    from translucid.models.protocol import SequenceModel

_FIX = "Delete it, or run translucid tune --alignments again."


def load_alignment_layer(run: RunFolder, languages: Languages, model: SequenceModel) -> AlignmentLayer | None:
    """Read the alignment layer of a run onto the device of its model; None without one for these languages.

    Raises:
        UserError: the file is damaged, or belongs to another model.
    """
    import torch

    from translucid.decoding.alignment_layer import AlignmentLayer
    from translucid.decoding.maps import forced_pass

    file = run.path / ALIGNMENT
    if not file.exists():
        return None
    tensors, facts = load_tensors(file)
    if facts.get("model") != run.model_digest():
        raise UserError("belongs to another model", file=file, fix=_FIX)
    if facts.get("languages") not in (None, list(languages)):
        return None
    device = model.output.weight.device
    try:
        feature_width = len(tensors["feature_norm.weight"])
        state_width = len(tensors["state_norm.weight"])
        layer = AlignmentLayer(feature_width, state_width)
        layer.load_state_dict(tensors)
        layer = layer.to(device).eval().requires_grad_(False)
        # One pass over an empty pair shows whether the widths are those of the model.
        nothing = torch.tensor([[model.eos]], device=device)
        forced_pass(model, nothing, nothing, look=False, layer=layer)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise UserError("does not fit the model", file=file, fix=_FIX) from error
    return layer


def save_alignment_layer(run: RunFolder, layer: AlignmentLayer, languages: Languages | None) -> None:
    """Save an alignment layer; `languages`: those of the training pairs, for a multilingual model."""
    facts = {"model": run.model_digest(), "languages": list(languages) if languages else None}
    save_tensors(run.path / ALIGNMENT, layer.state_dict(), facts)
