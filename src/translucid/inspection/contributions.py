"""Token contributions: how much each token contributes to the states of a translation, beyond attention weights.

`attention_terms.py` has the equations of a sublayer. This file combines sublayers and holds the results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from translucid.evaluation.alignment_error import Method
from translucid.ground.errors import UserError
from translucid.models.protocol import Maps

MAPS = ("head_norms", "norms", "residual_norms", "sublayers")
"""The maps of `Contributions`."""
COMPLETE = 0.999
"""A row that sums to less builds on a row without a positive term, and is undefined; the rest is rounding."""


@dataclass(frozen=True)
class Contributions:
    """The contributions in one sentence, or in a batch of N sentences, whose tensors begin with a dimension N.

    Rows t are the target pieces that are predicted. Their prefix is the decoder's input: the start token, then all
    target pieces but the last. Maps have the names of attentions, such as `encoder.0.self`.
    """

    head_norms: Maps
    """||alpha^h_ts (x_s W_V^h + b_V^h) W_O^h||_2, [H, T, S]."""
    norms: Maps
    """The norm of the sum over heads, [T, S]."""
    residual_norms: Maps
    """The same with residual connection and norm, in the shape of `sublayers`."""
    sublayers: Maps
    """ALTI's c_ts, [T, S]; in cross-attention [T, S + 1], and the last column is the residual connection.

    Each row sums to 1, or to 0 if it has no positive term.
    """
    source: Tensor
    """[T, S], the contributions of the source pieces through all layers (ALTI+).

    A row is NaN if it is undefined, because a row of a sublayer that it builds on has no positive term.
    """
    prefix: Tensor
    """[T, T], those of the target prefix; a row of both sums to 1."""

    @property
    def undefined(self) -> list[int]:
        """The target positions whose contributions are undefined, in one sentence."""
        return self.source_contribution.isnan().nonzero()[:, 0].tolist()

    @property
    def source_contribution(self) -> Tensor:
        """[T], the share of each target piece that comes from the source, from 0 to 1; NaN where it is undefined."""
        return self.source.sum(-1)

    def cross(self, names: Sequence[str], layer: int | None, head: int | None, method: Method) -> Tensor:
        """Return the contributions of source positions to target positions [T, S]; 0 in rows that are undefined.

        Args:
            names: the names of the cross-attentions of the layers.
            layer: a decoder layer. Without one, normalised norms are averaged over layers, and contributions are
                those through all layers.
            head: a head; all if not given.
            method: `norms` or `contributions`.

        Raises:
            UserError: contributions of one head are requested.
        """
        if method == "contributions":
            if head is not None:
                raise UserError("contributions belong to layers, not to heads", fix="Choose no head, or norms.")
            return self.source.nan_to_num(0) if layer is None else self.sublayers[names[0]][..., :-1]
        norms = []
        for name in names:
            norms.append(normalised(self.norms[name] if head is None else self.head_norms[name][head]))
        return torch.stack(norms).mean(0)

    def of_sentence(self, row: int, source: slice, target: int) -> Contributions:
        """Return the contributions of a sentence of a batch, without padding, on the CPU.

        Args:
            row: the row of the sentence.
            source: the source positions.
            target: the number of target positions.
        """

        def unpadded(maps: Maps) -> dict[str, Tensor]:
            sentence_maps = {}
            for name, values in maps.items():
                queries, keys = slice(target), source
                if name.startswith("encoder."):
                    queries = source
                elif name.endswith(".self"):
                    keys = slice(target)
                sentence = values[row, ..., queries, keys]
                if values.size(-1) > self.source.size(-1) and name.endswith(".cross"):  # with the residual connection
                    sentence = torch.cat([sentence, values[row, queries, -1:]], -1)
                sentence_maps[name] = sentence.cpu()
            return sentence_maps

        return Contributions(
            unpadded(self.head_norms),
            unpadded(self.norms),
            unpadded(self.residual_norms),
            unpadded(self.sublayers),
            self.source[row, :target, source].cpu(),
            self.prefix[row, :target, :target].cpu(),
        )

    def arrays(self) -> dict[str, Tensor]:
        """Return all tensors by name, such as `norms.decoder.0.cross`, `source` and `prefix`."""
        arrays = {}
        for kind in MAPS:
            for name, values in getattr(self, kind).items():
                arrays[f"{kind}.{name}"] = values
        return arrays | {"source": self.source, "prefix": self.prefix}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Tensor]) -> Contributions:
        """Return the contributions from the tensors of `arrays`."""
        maps: dict[str, dict[str, Tensor]] = {kind: {} for kind in MAPS}
        for key, values in arrays.items():
            kind, separator, name = key.partition(".")
            if separator:
                maps[kind][name] = values
        return cls(**maps, source=arrays["source"], prefix=arrays["prefix"])


def normalised(values: Tensor) -> Tensor:
    """Divide each row [.., S] of non-negative numbers by its sum; a row of zeros stays unchanged."""
    total = values.sum(-1, keepdim=True)
    return values / total.masked_fill(total == 0, 1)


def through_layers(sublayers: Maps) -> tuple[Tensor, Tensor]:
    """Combine the contributions of all sublayers (ALTI+).

    Returns:
        The contributions of source positions [N, T, S] and of the target prefix [N, T, T]. Rows of both sum to 1, or
        are NaN if they build on a row without a positive term.
    """
    encoder: Tensor | None = None
    source: Tensor | None = None
    prefix: Tensor | None = None
    for name, shares in sublayers.items():
        if name.startswith("encoder."):
            encoder = shares if encoder is None else shares @ encoder
        elif name.endswith(".self"):
            if source is not None:
                source = shares @ source
            prefix = shares if prefix is None else shares @ prefix
        else:
            assert prefix is not None
            cross, residual = shares[..., :-1], shares[..., -1:]
            from_source = cross if encoder is None else cross @ encoder
            source = from_source if source is None else from_source + residual * source
            prefix = residual * prefix
    assert source is not None and prefix is not None
    total = source.sum(-1, keepdim=True) + prefix.sum(-1, keepdim=True)
    total = total.masked_fill(total < COMPLETE, float("nan"))
    return source / total, prefix / total
