"""What each layer of a decoder would predict: the logit lens and the tuned lens; and the DecoderLens of an encoder.

    p_l = softmax(E N(h_l) + b)                logit lens (nostalgebraist 2020)
    p_l = softmax(E N(A_l h_l + c_l) + b)      tuned lens (Belrose et al. 2023, arXiv 2303.08112, section 3)

h_l is the decoder's state after layer l, N the final norm of a pre-norm model (otherwise the identity), E and b the
output projection. At the last layer p_l is the model's own distribution. The DecoderLens (Langedijk et al. 2023, arXiv
2310.03686) is the translation that the whole decoder writes if it reads N(h_l) of encoder layer l.

Then come the training of a tuned lens, and views: tables for the terminal, notebooks and pages, and files.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from typing import Any, Literal, NamedTuple

import torch
import torch.nn.functional as F
from rich.style import Style
from rich.table import Table
from rich.text import Text
from torch import Tensor, nn
from torch.optim.lr_scheduler import LambdaLR

from translucid.attention.points import handling, points_of, recording
from translucid.data.batching import padded
from translucid.data.placeholders import Masked
from translucid.data.tokenizing.pieces import without_space
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.hypothesis import percent
from translucid.decoding.maps import forced_features
from translucid.decoding.pair_scores import paired_batches
from translucid.evaluation.confidence import UNSURE
from translucid.ground.console import table_of
from translucid.ground.errors import UserError
from translucid.inspection.words import word_spans
from translucid.models.ensemble import Ensemble
from translucid.models.protocol import SequenceModel

TOP = 5
"""The number of predictions to keep for each layer."""
Side = Literal["encoder", "decoder"]


def state_points(model: SequenceModel, side: Side) -> dict[str, str]:
    """Return the points of a side's states by layer: `input`, the embeddings, then `0`, `1` and so on.

    Raises:
        UserError: the model has no layers that a lens applies to.
    """
    if isinstance(model, Ensemble):
        raise UserError("a lens shows one model, not an average of several", fix="Load a single run.")
    if not model.has_layer_states:
        what = "a lens is for Transformers: this model does not predict from the states of its layers"
        raise UserError(what, fix="Show its attention instead.")
    names = points_of(model)
    points = {"input": f"{side}.input"}
    if points["input"] not in names:
        raise UserError("a language model has no encoder", fix="Show the layers of its decoder.")
    for name in names:
        match name.split("."):
            case [point_side, layer, "output"] if point_side == side:
                points[layer] = name
    return points


def final_norm(model: SequenceModel, side: Side) -> nn.Module:
    """Return N, the norm after the last layer of a side; the identity if the model has none."""
    norm = getattr(model, f"{side}_norm", None)
    return nn.Identity() if norm is None else norm


class TunedLens(nn.Module):
    """Maps A_l h + c_l of the decoder's states to those of its last layer; those of a new lens are the identity."""

    def __init__(self, layers: int, width: int) -> None:
        """`layers`: the number of states before the last layer's, the embeddings included; `width`: D, their width."""
        super().__init__()
        maps = [nn.Linear(width, width) for _ in range(layers)]
        for linear in maps:
            nn.init.eye_(linear.weight)
            nn.init.zeros_(linear.bias)
        self.maps = nn.ModuleList(maps)

    def forward(self, state: Tensor, layer: int) -> Tensor:
        """Map the states [.., D] of a layer; 0 is the input. Those of the last layer stay the same."""
        return self.maps[layer](state) if layer < len(self.maps) else state


def new_tuned_lens(model: SequenceModel) -> TunedLens:
    """Return a lens for a model, on its device, whose maps are the identity.

    Raises:
        UserError: the model has no layers that a lens applies to.
    """
    lens = TunedLens(len(state_points(model, "decoder")) - 1, model.output.in_features)
    return lens.to(model.output.weight)


def decoder_states(model: SequenceModel, source: Tensor, target: Tensor) -> list[Tensor]:
    """Return the states [B, T, D] of the input and of each layer from which target tokens are predicted.

    Args:
        model: the model, in evaluation mode.
        source: the input of `model.encode`, such as ids [B, S], end token included.
        target: ids [B, T], end token included.
    """
    points = state_points(model, "decoder")
    with recording(model, list(points.values())) as record:
        forced_features(model, model.encode(source), target)
    return [record[point] for point in points.values()]


def lens_log_probs(model: SequenceModel, state: Tensor, layer: int, tuned: TunedLens | None = None) -> Tensor:
    """Return log p_l [.., V] of the states [.., D] of a layer; 0 is the input."""
    if tuned is not None:
        state = tuned(state, layer)
    return model.output(final_norm(model, "decoder")(state)).log_softmax(-1)


class LensPass(NamedTuple):
    """The predictions of L + 1 states, the input first."""

    top: Tensor
    """[L + 1, B, T, k], the ids of the most probable tokens."""
    top_log_probs: Tensor
    """[L + 1, B, T, k]"""
    log_probs: Tensor
    """[L + 1, B, T], of each target token."""
    ranks: Tensor
    """[L + 1, B, T], of each target token; 1 is the most probable."""


@torch.inference_mode()
def lens_pass(model: SequenceModel, source: Tensor, target: Tensor, tuned: TunedLens | None = None) -> LensPass:
    """Compute the predictions of all layers by forced decoding; arguments as for `decoder_states`."""
    layers = []
    # One layer at a time: the distributions of all layers over a large vocabulary could fill the memory.
    for layer, state in enumerate(decoder_states(model, source, target)):
        log_probs = lens_log_probs(model, state, layer, tuned)  # [B, T, V]
        target_log_probs = log_probs.gather(-1, target[..., None])  # [B, T, 1]
        ranks = 1 + (log_probs > target_log_probs).sum(-1)
        best = log_probs.topk(min(TOP, log_probs.size(-1)))
        layers.append((best.indices, best.values, target_log_probs[..., 0], ranks))
    return LensPass(*(torch.stack(values) for values in zip(*layers, strict=True)))


class LensWord(NamedTuple):
    """The predictions of all layers for one word. Its pieces are predicted one by one, each after those written."""

    word: str
    top: list[str]
    """The prediction of each layer: the word itself, or the most probable piece in the place of each of its pieces,
    separated by `·`."""
    top_probabilities: list[float]
    """The probability of `top`, the product over pieces."""
    probabilities: list[float]
    """The probability of the written word in each layer, the product over its pieces."""
    ranks: list[int]
    """The rank of the written word in each layer, the greatest of its pieces; 1 is the most probable."""

    @property
    def decided(self) -> int | None:
        """The first layer from which on the word has rank 1, counted from 0, the input; None if it never has."""
        return deciding_layer(self.ranks)


def deciding_layer(ranks: Sequence[int]) -> int | None:
    """Return the first layer from which on all ranks are 1; None if the last one is not.

    >>> deciding_layer([1, 7, 1, 1])
    2
    """
    decided = None
    for layer in reversed(range(len(ranks))):
        if ranks[layer] > 1:
            break
        decided = layer
    return decided


@dataclass(frozen=True)
class Lens:
    """What each layer predicts for each piece of one translation. The end token comes last."""

    layers: list[str]
    """The names of the layers: `input`, `0`, `1` and so on."""
    target: list[str]
    """T pieces of words."""
    top: list[list[list[str]]]
    """The most probable pieces, [L + 1][T][k]."""
    top_log_probs: Tensor
    """[L + 1, T, k], in nats."""
    log_probs: Tensor
    """[L + 1, T], of the written pieces, in nats."""
    ranks: Tensor
    """[L + 1, T], of the written pieces; 1 is the most probable."""
    opening: int = 0
    """The number of leading pieces that are no words, such as a language token."""
    tuned: bool = False
    """Whether this is a tuned lens."""

    @property
    def spans(self) -> list[tuple[str, int, int]]:
        """The words as `word_spans` returns them, without the opening; the end token comes last."""
        return word_spans(self.target, self.opening)[self.opening :]

    @property
    def words(self) -> list[LensWord]:
        """The predictions for the words, without the opening; the end token comes last."""
        words = []
        for word, start, end in self.spans:
            pieces = slice(start, end)
            names = []
            for layer_top in self.top:
                best = [choices[0] for choices in layer_top[pieces]]
                # Other pieces need not make up a word: each follows the pieces that were written, not those before it.
                piece_texts = [without_space(piece) for piece in best]
                names.append(word if best == self.target[pieces] else "·".join(piece_texts))
            best_log_probs = self.top_log_probs[:, pieces, 0].sum(1)
            probabilities = self.log_probs[:, pieces].sum(1).exp().tolist()
            ranks = self.ranks[:, pieces].amax(1).tolist()
            words.append(LensWord(word, names, best_log_probs.exp().tolist(), probabilities, ranks))
        return words

    def to_json(self) -> dict[str, Any]:
        """Return plain values: words and pieces, each with a list over layers; `decided` is an index into `layers`."""
        words = []
        for word in self.words:
            cells = []
            for top, top_probability, probability, rank in zip(*word[1:], strict=True):
                probabilities = {"top_probability": round(top_probability, 5), "probability": round(probability, 5)}
                cells.append({"top": top, **probabilities, "rank": rank})
            words.append({"word": word.word, "decided": word.decided, "layers": cells})
        pieces = [self._piece(position) for position in range(self.opening, len(self.target))]
        kind = "tuned" if self.tuned else "logit"
        return {"lens": kind, "layers": self.layers, "words": words, "pieces": pieces}

    def _piece(self, position: int) -> dict[str, Any]:
        ranks = self.ranks[:, position].tolist()
        cells = []
        for layer, rank in enumerate(ranks):
            values = self.top_log_probs[layer, position].exp().tolist()
            top = [[name, round(value, 5)] for name, value in zip(self.top[layer][position], values, strict=True)]
            probability = round(self.log_probs[layer, position].exp().item(), 5)
            cells.append({"top": top, "probability": probability, "rank": rank})
        return {"piece": self.target[position], "decided": deciding_layer(ranks), "layers": cells}

    def _repr_html_(self) -> str:
        """Show a table of words and layers in a notebook."""
        return html_table(self)


def read_lens(
    model: SequenceModel,
    tokenizer: Tokenizer,
    source: Tensor,
    target: Sequence[int],
    masked: Masked | None = None,
    tuned: TunedLens | None = None,
) -> Lens:
    """Return what each layer predicts for each piece of one translation, by forced decoding.

    Args:
        model: the model, in evaluation mode.
        tokenizer: the tokenizer of the model.
        source: the input of `model.encode` for one source, such as ids [1, S], end token included.
        target: ids, end token included.
        masked: the source, to show its text in place of placeholders.
        tuned: the tuned lens of the model; a logit lens without one.

    Raises:
        UserError: the model has no layers that a lens applies to.
    """
    result = lens_pass(model, source, torch.tensor([target], device=source.device), tuned)

    def pieces(ids: Sequence[int]) -> list[str]:
        names = tokenizer.target_labels(ids)
        return names if masked is None else masked.unmask_pieces(names)

    top = []
    for layer_ids in result.top[:, 0].tolist():
        top.append([pieces(ids) for ids in layer_ids])
    return Lens(
        list(state_points(model, "decoder")),
        pieces(target),
        top,
        result.top_log_probs[:, 0].cpu(),
        result.log_probs[:, 0].cpu(),
        result.ranks[:, 0].cpu(),
        len(tokenizer.target_opening),
        tuned is not None,
    )


@contextmanager
def reading_layer(model: SequenceModel, layer: str) -> Iterator[None]:
    """Let the decoder read the encoder's states after a layer, normalized by the final norm (DecoderLens).

    This applies to forced decoding and to every search. `layer` is a name that `state_points` returns.

    Raises:
        UserError: the model's encoder has no such layer.
    """
    points = state_points(model, "encoder")
    if layer not in points:
        raise UserError(f"the encoder has no layer {layer!r}", fix=f"It has {', '.join(points)}.")
    norm = final_norm(model, "encoder")
    name = points[layer]
    with recording(model, [name]) as record, handling(model, {"encoder.output": lambda x, first: norm(record[name])}):
        yield


@dataclass(frozen=True)
class DecoderLens:
    """The translations that the whole decoder writes from each layer of the encoder."""

    source: str
    layers: list[str]
    """The names of the layers: `input`, `0`, `1` and so on."""
    translations: list[str]
    """One for each layer; the last is the ordinary translation."""

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {"source": self.source, "layers": self.layers, "translations": self.translations}

    def _repr_html_(self) -> str:
        """Show a table in a notebook."""
        return html_translations(self)


UPDATES, BATCH = 400, 32
"""The number of updates, and the number of pairs, drawn at random, in each."""
RATE, WARMUP = 0.001, 50
"""Adam's highest learning rate, and the updates of warm-up before it; then it decreases linearly to 0."""
SEED = 1
BATCH_TOKENS = 1024
"""The number of tokens in a batch of the evaluation, padding included."""
Ids = tuple[list[int], list[int]]
"""The ids of a source and of a target, end tokens included."""


def learn_tuned_lens(
    model: SequenceModel,
    pairs: Sequence[Ids],
    device: torch.device | str = "cpu",
    on_update: Callable[[int], None] | None = None,
) -> TunedLens:
    """Train a tuned lens for a model, which does not change.

    The loss of layer l is KL(p_last || p_l), averaged over target tokens.

    Args:
        model: the model, in evaluation mode.
        pairs: the training data.
        device: the device of the model.
        on_update: called with 1 after each of `UPDATES` updates.

    Raises:
        UserError: the model has no layers that a lens applies to.
    """
    lens, rng = new_tuned_lens(model), random.Random(SEED)
    optimizer = torch.optim.Adam(lens.parameters(), RATE)
    schedule = LambdaLR(optimizer, lambda done: min(1.0, (done + 1) / WARMUP) * (1 - done / UPDATES))
    for _ in range(UPDATES):
        sources, targets = zip(*rng.sample(pairs, min(BATCH, len(pairs))), strict=True)
        source, target = padded(sources, model.pad).to(device), padded(targets, model.pad).to(device)
        states, reference = _states(model, source, target)
        for layer, state in enumerate(states):
            parameters = list(lens.maps[layer].parameters())
            loss = _divergence(model, state, layer, lens, reference)
            # `loss.backward()` would also accumulate gradients in the model.
            for parameter, gradient in zip(parameters, torch.autograd.grad(loss, parameters), strict=True):
                parameter.grad = gradient
        optimizer.step()
        schedule.step()
        if on_update:
            on_update(1)
    return lens.eval().requires_grad_(False)


@torch.no_grad()
def divergences(
    model: SequenceModel,
    pairs: Sequence[Ids],
    lens: TunedLens | None = None,
    device: torch.device | str = "cpu",
) -> list[float]:
    """Return the mean of KL(p_last || p_l) over target tokens, in nats, of each layer but the last, the input first.

    Arguments as for `learn_tuned_lens`; the logit lens if there is no `lens`.
    """
    sums: list[float] = []
    tokens = 0
    for _, source, target in paired_batches(pairs, model.pad, device, BATCH_TOKENS):
        states, reference = _states(model, source, target)
        sums = sums or [0.0] * len(states)
        tokens += len(reference)
        for layer, state in enumerate(states):
            sums[layer] += _divergence(model, state, layer, lens, reference).item() * len(reference)
    return [total / tokens for total in sums]


@torch.no_grad()
def _states(model: SequenceModel, source: Tensor, target: Tensor) -> tuple[list[Tensor], Tensor]:
    """Return the states [n, D] of each layer but the last, and log p_last [n, V], for all tokens without padding."""
    real = target != model.pad
    *states, last_state = [state[real] for state in decoder_states(model, source, target)]
    return states, lens_log_probs(model, last_state, len(states))


def _divergence(model: SequenceModel, state: Tensor, layer: int, lens: TunedLens | None, reference: Tensor) -> Tensor:
    """Return the mean of KL(p_last || p_l) over states [n, D] of layer l, given log p_last [n, V]."""
    log_probs = lens_log_probs(model, state, layer, lens)
    return F.kl_div(log_probs, reference, reduction="batchmean", log_target=True)


NOTE = "In each cell: what the layer predicts, and its probability. ✓: from this layer on, it is the word written."


def terminal_table(lens: Lens) -> Table:
    """Return a table: words down, layers across; a check mark where a word is decided."""
    table = table_of("", *lens.layers)
    for word in lens.words:
        cells = []
        for layer, (top, probability) in enumerate(zip(word.top, word.top_probabilities, strict=True)):
            mark, style = "", Style(dim=probability < UNSURE)
            if layer == word.decided:
                mark, style = " ✓", Style(bold=True, color="cyan")
            cells.append(Text(f"{top} {percent(probability)}{mark}", style))
        table.add_row(Text(word.word, "bold"), *cells)
    return table


def terminal_translations(lens: DecoderLens) -> Table:
    """Return a table: the translation from each layer of the encoder."""
    table = table_of("layer", "translation", overflow="fold")
    for layer, translation in zip(lens.layers, lens.translations, strict=True):
        table.add_row(layer, Text(translation))
    return table


def html_table(lens: Lens) -> str:
    """Return a table with inline styles: words down, layers across, a frame where a word is decided."""
    header = "".join(f"<th>{escape(name)}</th>" for name in lens.layers)
    html = f"<table style='border-collapse:collapse'><tr><th></th>{header}</tr>"
    for word in lens.words:
        html += f"<tr><th style='text-align:right;padding:0 .4em'>{escape(word.word)}</th>"
        for layer, (top, probability) in enumerate(zip(word.top, word.top_probabilities, strict=True)):
            style = f"padding:.1em .4em;background:rgba(37,99,235,{0.6 * probability:.2f})"
            mark = ""
            if layer == word.decided:
                style += ";outline:2px solid currentColor;outline-offset:-2px"
                mark = " ✓"
            tooltip = f"{word.word} {percent(word.probabilities[layer])}, rank {word.ranks[layer]}"
            html += f"<td style='{style}' title='{escape(tooltip)}'>{escape(top)} {percent(probability)}{mark}</td>"
        html += "</tr>"
    return html + "</table>"


def html_translations(lens: DecoderLens) -> str:
    """Return a table with inline styles: the translation from each layer of the encoder."""
    html = "<table style='border-collapse:collapse'><tr><th>layer</th><th>translation</th></tr>"
    for layer, translation in zip(lens.layers, lens.translations, strict=True):
        html += (
            f"<tr><th style='text-align:right;padding:0 .4em'>{escape(layer)}</th><td>{escape(translation)}</td></tr>"
        )
    return html + "</table>"
