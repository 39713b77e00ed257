"""Token contributions: how much each token contributes to the states of a translation, beyond attention weights.

An attention sublayer with its residual connection and its norm is a sum of transformed inputs, its terms:

    y_t = sum_s T_t(x_s) + bias,    T_t(x_s) = sum_h alpha^h_ts (x_s W_V^h + b_V^h) W_O^h

The residual connection adds x_t to the term s = t of a self-attention. In cross-attention it is a term of its own, the
target side. A pre-norm layer norms x_s first. A post-norm layer norms the sum, which is linear for the mean and the
deviation of that sum: L_t(z) = (z - mean(z)) / deviation_t * gain.

    norm-based attention    ||T_t(x_s)||_2, without residual and norm (Kobayashi et al. 2020, arXiv 2004.10102), or with
                            both (2021, arXiv 2109.07152)
    ALTI                    c_ts = max(0, ||y_t||_1 - ||y_t - T_t(x_s)||_1), each row normalized; the matrices of the
                            encoder's layers are multiplied (Ferrando et al. 2022, arXiv 2203.04212)
    ALTI+                   R_l = [C_cross C_enc, 0] + c_res C_self R_(l-1), R_0 = [0, I] (arXiv 2205.11631): the share
                            of each source piece and each piece of the target prefix in each decoder position

Feed-forward sublayers are left out. In an attention-only model, which has neither matrices nor residual connections,
the contributions are the weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from translucid.attention.multi_head import MultiHeadAttention
from translucid.attention.points import Record, recording
from translucid.decoding.maps import forced_features
from translucid.ground.errors import UserError
from translucid.layers.residual import Residual
from translucid.layers.variants import Method
from translucid.models.attention_only import AttentionOnly
from translucid.models.protocol import Maps, SequenceModel
from translucid.models.transformer import BlockStacks, DecoderBlock, EncoderBlock

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
            layer: a decoder layer. Without one, normalized norms are averaged over layers, and contributions are
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
            norms.append(normalized(self.norms[name] if head is None else self.head_norms[name][head]))
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


def normalized(values: Tensor) -> Tensor:
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


CHUNK = 1 << 21
"""The maximum number of elements of a tensor [N, S, t, D]; more target positions are computed in several chunks."""


class Terms(NamedTuple):
    """The terms of an attention sublayer."""

    weights: Tensor
    """alpha [N, H, T, S]."""
    inputs: Tensor
    """(x_s W_V^h + b_V^h) W_O^h [N, H, S, D]."""
    residual: Tensor
    """x_t [N, T, D]."""
    output: Tensor
    """y_t [N, T, D]."""

    def linearized(self, norm: nn.LayerNorm, total: Tensor) -> Terms:
        """Return the terms after the norm of a post-norm layer; `total` [N, T, D] is the sum that it norms."""
        gain = norm.weight
        deviation = (total.var(-1, unbiased=False, keepdim=True) + norm.eps).sqrt()  # [N, T, 1]
        centered = (self.inputs - self.inputs.mean(-1, keepdim=True)) * gain
        residual = (self.residual - self.residual.mean(-1, keepdim=True)) / deviation * gain
        # The deviation belongs to the position t, so it divides the weights.
        return Terms(self.weights / deviation[:, None], centered, residual, self.output)

    def diagonal_term(self) -> Tensor:
        """Return the term s = t of a self-attention with the residual connection [N, T, D]."""
        weights = self.weights.diagonal(dim1=-2, dim2=-1)  # [N, H, T]
        return (weights[..., None] * self.inputs).sum(1) + self.residual

    def head_norms(self) -> Tensor:
        """Return the norm of each term by head [N, H, T, S]."""
        return self.weights * self.inputs.norm(dim=-1)[:, :, None]

    def norms(self) -> Tensor:
        """Return the norm of each term, without the residual connection [N, T, S]."""
        # ||sum_h a_h u_h||^2 = sum_hk a_h a_k u_h u_k: the products of inputs are the same for all positions t.
        products = torch.einsum("nhsd,nksd->nshk", self.inputs, self.inputs)
        weights = self.weights.permute(0, 3, 2, 1)  # [N, S, T, H]
        squares = (weights @ products * weights).sum(-1)  # [N, S, T]
        return squares.clamp(min=0).sqrt().transpose(1, 2)

    def differences(self) -> Tensor:
        """Return ||y_t||_1 - ||y_t - T_t(x_s)||_1, without the residual connection [N, T, S]."""
        weights = self.weights.permute(0, 3, 2, 1)  # [N, S, T, H]
        inputs = self.inputs.transpose(1, 2)  # [N, S, H, D]
        rows = max(1, CHUNK // (inputs.numel() // inputs.size(2)))
        distances = []
        for chunk, output in zip(weights.split(rows, 2), self.output.split(rows, 1), strict=True):
            remainder = output[:, None] - chunk @ inputs  # [N, S, t, D]
            distances.append(remainder.norm(p=1, dim=-1))
        differences = self.output.norm(p=1, dim=-1)[:, None] - torch.cat(distances, -1)  # [N, S, T]
        # Padding and the future contribute exactly nothing, whatever the rounding of the two sums.
        return (differences * weights.any(-1)).transpose(1, 2)

    def difference(self, term: Tensor) -> Tensor:
        """Return ||y_t||_1 - ||y_t - term_t||_1 for one term [N, T, D] of each position [N, T]."""
        return self.output.norm(p=1, dim=-1) - (self.output - term).norm(p=1, dim=-1)


class _Sublayer(NamedTuple):
    """An attention sublayer, its residual connection, and the points of its input and its output."""

    name: str
    attention: MultiHeadAttention
    connection: Residual
    input_point: str
    output_point: str

    @property
    def points(self) -> list[str]:
        """The points whose tensors are needed."""
        terms = [f"{self.name}.{term}" for term in ("weights", "values", "heads", "output")]
        return [*terms, self.input_point, self.output_point]

    def terms(self, record: Record) -> Terms:
        """Return the terms without the linearized norm of a post-norm layer."""
        attention = self.attention
        weights, values = record[f"{self.name}.weights"], record[f"{self.name}.values"]  # values [N, H, S, d]
        # A head whose output was replaced, such as a head that is off, adds nothing of its values.
        computed = weights @ values
        replaced = (record[f"{self.name}.heads"] - computed).norm(dim=-1) > 0.01 * computed.norm(dim=-1)
        weights = weights.masked_fill(replaced[..., None], 0)
        output = attention.output.weight.unflatten(1, (attention.heads, -1))  # W_O^T [D, H, d]
        inputs = values @ output.permute(1, 2, 0)  # [N, H, S, D]
        return Terms(weights, inputs, record[self.input_point], record[self.output_point])

    def linearized(self, terms: Terms, record: Record) -> Terms:
        """Return the terms after the norm of a post-norm layer; those of a pre-norm layer stay as they are."""
        if self.connection.pre:
            return terms
        return terms.linearized(self.connection.norm, terms.residual + record[f"{self.name}.output"])


def _sublayers(model: BlockStacks) -> list[_Sublayer]:
    """Return the attention sublayers from the source to the last layer of the decoder."""
    sublayers = []
    input_point = "encoder.input"
    for i, block in enumerate(model.encoder):
        assert isinstance(block, EncoderBlock)
        name, connection = f"encoder.{i}", block.residuals[0]
        assert isinstance(connection, Residual)
        sublayers.append(_Sublayer(f"{name}.self", block.self_attention, connection, input_point, f"{name}.after_self"))
        input_point = f"{name}.output"
    input_point = "decoder.input"
    for i, block in enumerate(model.decoder):
        assert isinstance(block, DecoderBlock) and block.self_attention
        name, (connection, cross_connection, _) = f"decoder.{i}", block.residuals
        assert isinstance(connection, Residual) and isinstance(cross_connection, Residual)
        after_self = f"{name}.after_self"
        sublayers.append(_Sublayer(f"{name}.self", block.self_attention, connection, input_point, after_self))
        after_cross = f"{name}.after_cross"
        sublayers.append(_Sublayer(f"{name}.cross", block.cross_attention, cross_connection, after_self, after_cross))
        input_point = f"{name}.output"
    return sublayers


def has_contributions(model: nn.Module) -> bool:
    """Whether the sublayers of a model are sums of transformed inputs."""
    if isinstance(model, BlockStacks):
        return model.options.decoder == "self-attention"
    return isinstance(model, AttentionOnly)


def refuse_without_terms(model: nn.Module) -> None:
    """Check that a model has contributions.

    Raises:
        UserError: its sublayers are not sums of transformed inputs.
    """
    if not has_contributions(model):
        what = "contributions and norms exist only where attention and residual connections add up, in a Transformer"
        if isinstance(model, BlockStacks):
            what = "contributions and norms do not exist for model.decoder=ssru, whose relu is no sum of its inputs"
        raise UserError(what, fix="Show the attention weights instead.")


@contextmanager
def recording_terms(model: SequenceModel) -> Iterator[Record]:
    """Record what `contributions` needs of a teacher-forced pass.

    Raises:
        UserError: the model is of another kind.
    """
    refuse_without_terms(model)
    names = _attention_only_points(model) if isinstance(model, AttentionOnly) else _points(model)
    with recording(model, names) as record:
        yield record


def _points(model: SequenceModel) -> list[str]:
    assert isinstance(model, BlockStacks)
    names: dict[str, None] = {}  # an ordered set
    for sublayer in _sublayers(model):
        names.update(dict.fromkeys(sublayer.points))
    return [*names]


def contributions(model: SequenceModel, record: Record) -> Contributions:
    """Return the contributions in a batch, from what `recording_terms` has recorded.

    Raises:
        UserError: the model is of another kind.
    """
    refuse_without_terms(model)
    if isinstance(model, AttentionOnly):
        return _attention_only_contributions(model, record)
    assert isinstance(model, BlockStacks)
    head_norms, norms, residual_norms, shares = {}, {}, {}, {}
    for sublayer in _sublayers(model):
        name, plain = sublayer.name, sublayer.terms(record)
        terms = sublayer.linearized(plain, record)
        head_norms[name], norms[name] = plain.head_norms(), plain.norms()
        differences = terms.differences()
        # Pre-norm terms are not linearized, so their norms are the same.
        with_norm = norms[name].clone() if terms is plain else terms.norms()
        if name.endswith(".self"):
            diagonal = terms.diagonal_term()
            differences.diagonal(dim1=1, dim2=2).copy_(terms.difference(diagonal))
            with_norm.diagonal(dim1=1, dim2=2).copy_(diagonal.norm(dim=-1))
        else:
            residual = terms.residual
            differences = torch.cat([differences, terms.difference(residual)[..., None]], -1)
            with_norm = torch.cat([with_norm, residual.norm(dim=-1)[..., None]], -1)
        residual_norms[name], shares[name] = with_norm, normalized(differences.clamp(min=0))
    return Contributions(head_norms, norms, residual_norms, shares, *through_layers(shares))


def forced_contributions(model: SequenceModel, source: Tensor, target: Tensor) -> Contributions:
    """Return the contributions of a batch of given targets, by forced decoding.

    Args:
        model: the model, in evaluation mode.
        source: the input of `model.encode`, such as ids [N, S], end token included.
        target: ids [N, T], end token included.

    Raises:
        UserError: the model is of another kind.
    """
    with torch.inference_mode(), recording_terms(model) as record:
        forced_features(model, model.encode(source), target)
        return contributions(model, record)


def _attention_only_points(model: AttentionOnly) -> list[str]:
    names = ["encoder.input", "encoder.output", "decoder.input"]
    for i in range(len(model.encoder)):
        names += [f"encoder.{i}.self.weights", f"encoder.{i}.output"]
    for i in range(len(model.decoder_self)):
        names += [f"decoder.{i}.self.weights", f"decoder.{i}.cross.weights", f"decoder.{i}.output"]
    return names


def _attention_only_contributions(model: AttentionOnly, record: Record) -> Contributions:
    """Return the contributions in an attention-only model: y_t = sum_s alpha_ts x_s, without any residual."""
    head_norms, norms, shares = {}, {}, {}
    inputs = {"encoder": "encoder.input", "decoder": "decoder.input"}
    for name in record:
        attention, separator, _ = name.rpartition(".weights")
        if not separator:
            continue
        side, layer, kind = attention.split(".")
        states = record["encoder.output" if kind == "cross" else inputs[side]]
        head_norms[attention] = record[name] * states.norm(dim=-1)[:, None, None]  # [N, 1, T, S]
        norms[attention], shares[attention] = head_norms[attention][:, 0], normalized(record[name][:, 0])
        if kind == "cross":
            shares[attention] = torch.cat([shares[attention], torch.zeros_like(shares[attention][..., :1])], -1)
        inputs[side] = f"{side}.{layer}.output"
    residual_norms = dict(norms)
    for name in norms:
        if name.endswith(".cross"):
            residual_norms[name] = torch.cat([norms[name], torch.zeros_like(norms[name][..., :1])], -1)
    return Contributions(head_norms, norms, residual_norms, shares, *through_layers(shares))
