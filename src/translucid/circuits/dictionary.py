"""A dictionary: the transcoders of all feed-forward sublayers of a run, and the names of their features.

Files in `RUN/circuits/`: `dictionary.safetensors` is the dictionary with its configuration; `dictionary.json` (its
configuration and quality) and `card.md` repeat it for other programs and for people.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from torch import Tensor, nn

from translucid.attention.points import points_of
from translucid.circuits.kinds import FILE
from translucid.circuits.transcoder import Transcoder
from translucid.ground.errors import UserError, nearest
from translucid.layers.feed_forward import FeedForward
from translucid.models.ensemble import Ensemble
from translucid.runs.run_folder import CIRCUITS, RunFolder
from translucid.runs.tensor_file import load_tensors, save_tensors

INPUT = ".feed_forward_input"
"""The end of the name of the point with the input of a sublayer; that of its output is `OUTPUT`."""
OUTPUT = ".feed_forward"
OTHER_MODELS = {"RecurrentModel": "recurrent", "AttentionOnly": "attention-only"}
"""What other models are, by the names of their classes."""
_MAKE = "`learn_features` makes one."


class FeatureName(NamedTuple):
    """The name of a feature, such as `decoder.1.feature.412`."""

    sublayer: str
    """The name of its sublayer, such as `decoder.1`."""
    number: int

    def __str__(self) -> str:
        return f"{self.sublayer}.feature.{self.number}"


@dataclass(frozen=True)
class DictionaryConfiguration:
    """How a dictionary was learned."""

    model: str
    """The fingerprint of the model's file."""
    expansion: int
    """The number of features for each dimension of the width, F / D."""
    active: int
    """k, the largest number of active features at a position."""
    updates: int
    seed: int
    text: tuple[str, ...]
    """The files of the training text."""
    pairs: int
    """The number of sentence pairs that were learned from."""


def sublayers_of(model: nn.Module) -> dict[str, FeedForward]:
    """Return the feed-forward sublayers of a model by the names of their layers, the encoder first.

    Raises:
        UserError: it has none, or it is an ensemble.
    """
    if isinstance(model, Ensemble):
        raise UserError("features belong to one model, and the model is an ensemble", fix="Load a single run.")
    names = [name.removesuffix(INPUT) for name in points_of(model) if name.endswith(INPUT)]
    if not names:
        kind = OTHER_MODELS.get(type(model).__name__, f"a {type(model).__name__}")
        what = f"the model is {kind}, and has no feed-forward sublayers, of which features are learned"
        raise UserError(what, fix="Take the run of a Transformer.")
    sublayers = {}
    for name in names:
        sublayer = model.get_submodule(name + OUTPUT)
        assert isinstance(sublayer, FeedForward)
        sublayers[name] = sublayer
    return sublayers


def circuits_folder(run: RunFolder | Path) -> Path:
    """Return the folder of a run's dictionary and of what belongs to it."""
    return (run.path if isinstance(run, RunFolder) else run) / CIRCUITS


@dataclass(frozen=True, eq=False)
class Dictionary:
    """The transcoders of a run."""

    transcoders: Mapping[str, Transcoder]
    """The transcoder of each sublayer by its name, in the order of the model: the encoder's, then the decoder's."""
    configuration: DictionaryConfiguration
    quality: Mapping[str, Any] = field(default_factory=dict)
    """The figures of `quality.measure` as plain values; empty before they are measured."""

    @property
    def sublayers(self) -> list[str]:
        """The names of the sublayers, such as `encoder.0`."""
        return [*self.transcoders]

    @property
    def width(self) -> int:
        """F, the number of features of each sublayer."""
        return next(iter(self.transcoders.values())).width

    @cached_property
    def digest(self) -> str:
        """A fingerprint of the weights, by which results that were computed with them are recognized."""
        sha = hashlib.sha256()
        for name, transcoder in self.transcoders.items():
            sha.update(f"{name} {transcoder.k}".encode())
            for parameter in transcoder.parameters():
                sha.update(parameter.detach().cpu().numpy().tobytes())
        return sha.hexdigest()

    def parse_feature(self, name: str) -> FeatureName:
        """Return the parts of the name of a feature, such as `decoder.1.feature.412`.

        Raises:
            UserError: there is no such feature.
        """
        match = re.fullmatch(r"(.+)\.feature\.(\d{1,9})", name, re.ASCII)
        if match and match[1] in self.transcoders:
            number = int(match[2])
            if number >= self.width:
                raise UserError(f"there is no feature {name!r}", fix=f"Choose a number from 0 to {self.width - 1}.")
            return FeatureName(match[1], number)
        suffix = match[2] if match else "0"
        known = [f"{sublayer}.feature.{suffix}" for sublayer in self.sublayers]
        raise UserError(f"there is no feature {name!r}", fix=nearest(name, known))

    def with_quality(self, quality: Mapping[str, Any]) -> Dictionary:
        """Return the dictionary with its figures."""
        return replace(self, quality=quality)

    def to(self, device: Any) -> Dictionary:
        """Return the dictionary after its weights have moved to a device."""
        for transcoder in self.transcoders.values():
            transcoder.to(device)
        return self

    @classmethod
    def load(cls, run: RunFolder | Path) -> Dictionary:
        """Read the dictionary of a run, on the CPU; its weights need no gradients.

        Raises:
            UserError: there is none, it is damaged, or it was learned from other weights than those of the run.
        """
        folder = circuits_folder(run)
        file = folder / FILE
        if not file.exists():
            raise UserError("has no dictionary of features", file=folder.parent, fix=_MAKE)
        tensors, facts = load_tensors(file)
        try:
            values = {**facts["configuration"], "text": tuple(facts["configuration"]["text"])}
            configuration = DictionaryConfiguration(**values)
            transcoders = {}
            for name in facts["sublayers"]:
                width, features = tensors[f"{name}.decoder_bias"].numel(), len(tensors[f"{name}.encoder_bias"])
                with_weights = Transcoder(width, features, configuration.active)
                prefix = f"{name}."
                state = {key.removeprefix(prefix): tensors[key] for key in tensors if key.startswith(prefix)}
                with_weights.load_state_dict(state)
                transcoders[name] = with_weights.requires_grad_(False).eval()
            dictionary = cls(transcoders, configuration, facts["quality"])
        except (KeyError, TypeError, ValueError, RuntimeError, AttributeError) as error:
            raise UserError("is damaged or not ours", file=file, fix=f"Delete it; {_MAKE}") from error
        if configuration.model != RunFolder(folder.parent).model_digest():
            raise UserError("was learned from other weights than those of the run", file=file, fix=_MAKE)
        return dictionary

    def save(self, run: RunFolder | Path) -> None:
        """Write `dictionary.safetensors` into the run.

        Raises:
            UserError: the folder can't be written to.
        """
        folder = circuits_folder(run)
        folder.mkdir(exist_ok=True)
        tensors: dict[str, Tensor] = {}
        for name, transcoder in self.transcoders.items():
            for key, parameter in transcoder.named_parameters():
                tensors[f"{name}.{key}"] = parameter
        facts = {"configuration": asdict(self.configuration), "sublayers": self.sublayers, "quality": self.quality}
        save_tensors(folder / FILE, tensors, facts)
