"""Files in the run folder that `translucid tune` and validation have fitted to the model; they hold for no other model.

They are the confidence estimator of `translucid tune confidence`, the scores of the run on its validation sentences,
the alignment layer of `translucid tune alignments`, the tuned lens of `translucid tune lens`, and the weights of
`translucid tune ranking`. A multilingual model has a folder with such files for each direction.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, model_validator

from bitext.languages import Languages
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.engines.noisy_channel import WEIGHTS, ChannelWeights
from translucid.engines.tuned import ResultFile
from translucid.evaluation.confidence import Estimator
from translucid.evaluation.out_of_domain import ValidationScores
from translucid.ground.errors import UserError
from translucid.kernels.machine import has_pytorch
from translucid.runs.configuration import checked
from translucid.runs.run_folder import ALIGNMENT, CONFIDENCE, DIRECTIONS, LENS, RANKING, VALIDATION, RunFolder
from translucid.runs.tensor_file import load_arrays, load_tensors, save_tensors

if TYPE_CHECKING:
    from torch import Tensor

    from translucid.decoding.maps import AlignmentLayer
    from translucid.inspection.lens import TunedLens
    from translucid.models.protocol import SequenceModel

Fitted = TypeVar("Fitted")
LARGEST_SCORES = 1 << 24
"""The largest size of the file of validation scores, in bytes: room for two million words."""
NEED_PYTORCH = "attention", "dropout"
"""The kinds of features of a confidence estimator that only PyTorch computes."""
_FIX = "Delete it, or run %s again."


class _Fitted(ResultFile):
    """A result for one model."""

    model: str
    """The fingerprint of the model's file."""
    tokenizer: str
    """The fingerprint of the tokenizer."""
    languages: Languages | None = None
    """The languages of the sentences that it was fitted to, for a multilingual model."""

    @staticmethod
    def identity(run: RunFolder, tokenizer: Tokenizer, languages: Languages | None) -> dict[str, Any]:
        """Return the fields that say what a result is fitted to."""
        return {"model": run.model_digest(), "tokenizer": tokenizer.fingerprint, "languages": languages}

    def is_of(self, run: RunFolder, tokenizer: Tokenizer) -> bool:
        """Whether it was fitted to this model with this tokenizer."""
        return (self.model, self.tokenizer) == (run.model_digest(), tokenizer.fingerprint)

    def is_for(self, run: RunFolder, tokenizer: Tokenizer, languages: Languages) -> bool:
        """Whether it was also fitted to sentences of these languages."""
        return self.is_of(run, tokenizer) and self.languages in (None, languages)


class _ConfidenceFile(_Fitted):
    estimator: Estimator

    @model_validator(mode="after")
    def _has_all_features(self) -> Self:
        if not self.estimator.is_complete():
            raise ValueError("features of the estimator are missing")
        return self


class _ValidationFile(_Fitted):
    scores: ValidationScores

    @model_validator(mode="after")
    def _has_whole_words(self) -> Self:
        self.scores.training_words()  # raises ValueError if its words are damaged
        return self


class _Weights(BaseModel):
    """The weights of a ranking."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    reverse: float = Field(ge=0, le=1000, allow_inf_nan=False)
    length: float = Field(ge=-1000, le=1000, allow_inf_nan=False)


class _RankingFile(_Fitted):
    weights: dict[str, _Weights]
    """The weights by the fingerprint of the model of the other direction."""


def fitted_file(run: RunFolder, name: str, languages: Languages) -> Path:
    """Return the file with a result for two languages: that of a multilingual model, or else the only one."""
    file = _file_of_direction(run, name, languages)
    return file if file.exists() else run.path / name


def _file_of_direction(run: RunFolder, name: str, languages: Languages | None) -> Path:
    """Return the file of a result for a direction of a multilingual model; without languages, for another model."""
    if languages is None:
        return run.path / name
    return run.path / DIRECTIONS / "-".join(code or "und" for code in languages) / name


def _new_file(run: RunFolder, name: str, languages: Languages | None) -> Path:
    """Return the file to which a result is written, in a folder that exists."""
    file = _file_of_direction(run, name, languages)
    file.parent.mkdir(parents=True, exist_ok=True)
    return file


def load_confidence(run: RunFolder, tokenizer: Tokenizer, languages: Languages) -> tuple[Estimator | None, str]:
    """Read the estimator of a run; without one, None and the reason why a file is ignored, or "".

    Raises:
        UserError: the file is damaged.
    """
    file = fitted_file(run, CONFIDENCE, languages)
    content = _ConfidenceFile.read(file, function="`fit_confidence`")
    if content is None:
        return None, ""
    message = f"{file} was fitted to %s and is ignored; run `fit_confidence` again"
    if not content.is_of(run, tokenizer):
        return None, message % "another model"
    if content.languages and content.languages != languages:
        return None, message % f"translations from {content.languages[0]} to {content.languages[1]}"
    kind = content.estimator.kind
    if kind in NEED_PYTORCH and not has_pytorch():
        return None, f"{file} reads {kind}, which needs PyTorch: translations have no confidence"
    return content.estimator, ""


def confidence_note(run: RunFolder, languages: Languages) -> str:
    """Return the reason why the estimator of a run is ignored; "" if it is used or there is none."""
    if not fitted_file(run, CONFIDENCE, languages).exists():
        return ""
    _, reason = load_confidence(run, run.tokenizer(), languages)
    return reason


def save_confidence(run: RunFolder, tokenizer: Tokenizer, languages: Languages | None, estimator: Estimator) -> None:
    """Save an estimator in the run folder."""
    identity = _Fitted.identity(run, tokenizer, languages)
    _ConfidenceFile(**identity, estimator=estimator).write(_new_file(run, CONFIDENCE, languages))


def _ranking_file(run: RunFolder, tokenizer: Tokenizer, languages: Languages) -> _RankingFile | None:
    """Read the weights of a run; None without any, or if they belong to another model or other languages.

    Raises:
        UserError: the file is damaged.
    """
    content = _RankingFile.read(fitted_file(run, RANKING, languages), function="`fit_ranking`")
    return content if content and content.is_for(run, tokenizer, languages) else None


def load_channel_weights(run: RunFolder, languages: Languages, reverse: RunFolder) -> ChannelWeights:
    """Read the weights with which a run of the other direction ranks the hypotheses of a run; the defaults without any.

    Raises:
        UserError: the file is damaged, or a run has no model.
    """
    content = _ranking_file(run, run.tokenizer(), languages)
    stored = content.weights.get(reverse.model_digest()) if content else None
    return ChannelWeights(stored.reverse, stored.length) if stored else WEIGHTS


def save_channel_weights(
    run: RunFolder, tokenizer: Tokenizer, languages: Languages | None, reverse: RunFolder, weights: ChannelWeights
) -> None:
    """Save the weights for a run of the other direction, beside those for other such runs.

    Raises:
        UserError: a weight is out of range.
    """
    content = _ranking_file(run, tokenizer, languages or (None, None))
    stored = {**(content.weights if content else {}), reverse.model_digest(): checked(_Weights, weights._asdict())}
    identity = _Fitted.identity(run, tokenizer, languages)
    _RankingFile(**identity, weights=stored).write(_new_file(run, RANKING, languages))


def load_validation_scores(run: RunFolder, tokenizer: Tokenizer, languages: Languages) -> ValidationScores | None:
    """Read the validation scores of a run; None without any, or if they belong to another model or other languages.

    Raises:
        UserError: the file is damaged.
    """
    content = _ValidationFile.read(fitted_file(run, VALIDATION, languages), LARGEST_SCORES)
    return content.scores if content and content.is_for(run, tokenizer, languages) else None


def save_validation_scores(
    run: RunFolder, tokenizer: Tokenizer, languages: Languages | None, scores: ValidationScores
) -> None:
    """Save validation scores; `languages`: those of the sentences, for a multilingual model."""
    identity = _Fitted.identity(run, tokenizer, languages)
    _ValidationFile(**identity, scores=scores).write(_new_file(run, VALIDATION, languages), indent=None)


def load_alignment_layer(run: RunFolder, languages: Languages, model: SequenceModel) -> AlignmentLayer | None:
    """Read the alignment layer of a run onto the device of its model; None without one for these languages.

    Raises:
        UserError: the file is damaged, or belongs to another model.
    """
    import torch

    from translucid.decoding.maps import AlignmentLayer, forced_pass

    tensors = _fitted(run, ALIGNMENT, languages, "`fit_alignment`", load_tensors)
    if tensors is None:
        return None
    device = model.output.weight.device
    try:
        feature_width = len(tensors["feature_norm.weight"])
        state_width = len(tensors["state_norm.weight"])
        layer = AlignmentLayer(feature_width, state_width)
        layer.load_state_dict(tensors)
        layer = layer.to(device).eval().requires_grad_(False)
        # One pass over an empty pair shows whether the widths are those of the model.
        end_token = torch.tensor([[model.eos]], device=device)
        forced_pass(model, end_token, end_token, with_attention=False, layer=layer)
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        file = fitted_file(run, ALIGNMENT, languages)
        raise UserError("does not fit the model", file=file, fix=_FIX % "`fit_alignment`") from error
    return layer


def load_tuned_lens(run: RunFolder, languages: Languages, model: SequenceModel) -> TunedLens | None:
    """Read the tuned lens of a run onto the device of its model; None without one for these languages.

    Raises:
        UserError: the file is damaged, or belongs to another model.
    """
    from translucid.inspection.lens import new_tuned_lens

    tensors = _fitted(run, LENS, languages, "`fit_lens`", load_tensors)
    if tensors is None:
        return None
    try:
        lens = new_tuned_lens(model)
        lens.load_state_dict(tensors)
    except (UserError, RuntimeError) as error:
        file = fitted_file(run, LENS, languages)
        raise UserError("does not fit the model", file=file, fix=_FIX % "`fit_lens`") from error
    return lens.eval().requires_grad_(False)


def _fitted(
    run: RunFolder,
    name: str,
    languages: Languages,
    function: str,
    load: Callable[[Path], tuple[Fitted, dict[str, Any]]],
) -> Fitted | None:
    """Read, with `load`, what was fitted to the model of a run; None without it for these languages.

    Raises:
        UserError: the file is damaged, or belongs to another model.
    """
    file = fitted_file(run, name, languages)
    if not file.exists():
        return None
    fitted, facts = load(file)
    if facts.get("model") != run.model_digest():
        raise UserError("belongs to another model", file=file, fix=_FIX % function)
    return fitted if facts.get("languages") in (None, list(languages)) else None


def load_alignment_arrays(run: RunFolder, languages: Languages) -> dict[str, NDArray[np.float32]] | None:
    """Read the weights of the alignment layer of a run with NumPy; None without one for these languages.

    Raises:
        UserError: the file is damaged, or belongs to another model.
    """
    return _fitted(run, ALIGNMENT, languages, "`fit_alignment`", load_arrays)


def save_alignment_layer(run: RunFolder, layer: AlignmentLayer, languages: Languages | None) -> None:
    """Save an alignment layer; `languages`: those of the training pairs, for a multilingual model."""
    _save_fitted(run, ALIGNMENT, layer.state_dict(), languages)


def save_tuned_lens(run: RunFolder, lens: TunedLens, languages: Languages | None) -> None:
    """Save a tuned lens; `languages`: those of the training pairs, for a multilingual model."""
    _save_fitted(run, LENS, lens.state_dict(), languages)


def _save_fitted(run: RunFolder, name: str, tensors: dict[str, Tensor], languages: Languages | None) -> None:
    facts = {"model": run.model_digest(), "languages": list(languages) if languages else None}
    save_tensors(_new_file(run, name, languages), tensors, facts)
