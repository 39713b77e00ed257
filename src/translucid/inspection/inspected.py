"""The inspection of one translation: its attention, probabilities and contributions. It can be saved and loaded.

Words of previous sentences that contribute to a word of the translation are named too.

Where the attention of each head goes is measured: start and end token, punctuation, language tokens, the query's own
position. A head that has nothing to do puts its weight where it does no harm, on tokens without content: their values
are small (Kobayashi et al. 2020, arXiv 2004.10102, section 4). A map of such weights shows little about the
translation.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

import torch
from torch import Tensor

from translucid.data.tokenizing.pieces import SEPARATOR
from translucid.decoding.hypothesis import percent
from translucid.decoding.maps import chosen_maps, rollout
from translucid.ground.atomic import write_output
from translucid.ground.errors import UserError
from translucid.ground.special import SPELLINGS
from translucid.inspection.contributions import Contributions, normalized
from translucid.inspection.rendering.bundling import WEB, bundle
from translucid.inspection.rendering.html import document, notebook_table, quoted, web_file
from translucid.inspection.words import (
    WordMap,
    content_pieces,
    span_ranges,
    span_words,
    split_at_spaces,
    sum_ranges,
    word_map,
    word_spans,
)
from translucid.layers.variants import Method
from translucid.models.protocol import Maps

if TYPE_CHECKING:
    from rich.table import Table


def rounded(values: Iterable[float], digits: int) -> list[float]:
    """Round numbers to this many decimals."""
    return [round(value, digits) for value in values]


def rounded_probability(log_prob: float) -> float:
    """Return the probability of a log-probability, rounded to six decimals."""
    return round(min(1.0, math.exp(log_prob)), 6)  # a rounding error may make a log-probability positive


def plain(tensor: Tensor, digits: int = 4) -> Any:
    """Round a tensor of any shape to this many decimals, as nested lists."""
    # In float64, because JSON would write the float32 nearest to 0.12345 as 0.12345000356435776.
    return (tensor.cpu().double() * 10**digits).round().div(10**digits).tolist()


def title_of(layer: int | None, head: int | None, method: Method = "weights") -> str:
    """Return a title for the attention of a layer and a head; None stands for the average of all."""
    layers = "all layers" if layer is None else f"layer {layer}"
    if method == "contributions":
        return f"contributions, {layers}"
    heads = "all heads" if head is None else f"head {head}"
    prefix = {"norms": "norms, ", "content": "content words only, "}.get(method, "")
    return f"{prefix}{layers}, {heads}"


@dataclass(frozen=True)
class Inspected:
    """The attention and the probabilities of a model that wrote a target for a source. The end tokens come last."""

    source: list[str]
    """Pieces of words."""
    target: list[str]
    """Pieces of words."""
    maps: Maps
    """Attention weights by name, [H, T, S] each."""
    log_probs: list[float]
    """The log-probability of each target piece, given those before, in nats."""
    opening: tuple[int, int] = (0, 0)
    """The numbers of leading pieces of the source and of the target that are no words, such as a language token.

    Those of the source come after the context.
    """
    links: Tensor | None = field(default=None, compare=False)
    """[T, S], the weights of the run's alignment layer, if it has one."""
    run: str = field(default="", compare=False)
    """The run folder of the model, if it has one, for the lines of code on a page."""
    unknown: tuple[int, ...] = ()
    """The positions of source pieces that are not in the vocabulary."""
    contributions: Contributions | None = field(default=None, compare=False)
    """The contributions of source and target prefix, and the norms of attention, if they were computed."""
    context: int = 0
    """The number of leading source pieces of previous sentences, each of which its separator follows."""
    words_read: tuple[list[int], list[int]] | None = field(default=None, compare=False)
    """How many words the tokenizer reads in each word of both texts (`Tokenizer.words_read`), if texts are given."""

    @property
    def heads(self) -> dict[str, int]:
        """The number of heads of each map."""
        return {name: len(weights) for name, weights in self.maps.items()}

    def _repr_html_(self) -> str:
        """Show itself in a notebook: the attention of each word, or only the words if the model has no attention."""
        if self.layers:
            return notebook_view([self])
        return f"<p>{escape(' '.join(self.target_words[:-1]))}</p>"

    @cached_property
    def _source_entries(self) -> list[tuple[str, int, int]]:
        return word_spans(self.source, self.opening[0], self.context)

    @property
    def source_spans(self) -> list[tuple[str, int, int]]:
        """The words of the sentence as `word_spans` returns them, without the opening; the end token comes last."""
        sentence_start = self.context + self.opening[0]
        return [span for span in self._source_entries if span[1] >= sentence_start]

    @property
    def context_spans(self) -> list[tuple[str, int, int]]:
        """The words of previous sentences as `word_spans` returns them, without language tokens and separators."""
        non_words = {SEPARATOR, *self.source[self.context : self.context + self.opening[0]]}
        spans = []
        for span in self._source_entries:
            if span[1] < self.context and self.source[span[1]] not in non_words:
                spans.append(span)
        return spans

    @property
    def target_spans(self) -> list[tuple[str, int, int]]:
        """The words of the target as `word_spans` returns them, without the opening; the end token comes last."""
        return word_spans(self.target, self.opening[1])[self.opening[1] :]

    @property
    def word_positions(self) -> list[int]:
        """The positions, among the source words of `words`, of the words of the context and of the sentence."""
        starts = {start for _, start, _ in (*self.context_spans, *self.source_spans[:-1])}
        return [position for position, (_, start, _) in enumerate(self._source_entries) if start in starts]

    @property
    def source_words(self) -> list[str]:
        """The words of the sentence without the opening; the end token comes last."""
        return span_words(self.source_spans)

    @property
    def target_words(self) -> list[str]:
        """The words of the target without the opening; the end token comes last."""
        return span_words(self.target_spans)

    @property
    def unknown_words(self) -> list[int]:
        """The positions, among the source words of `words`, of words with an unknown piece."""
        positions = []
        for position, (_, start, end) in enumerate(self._source_entries):
            if not set(range(start, end)).isdisjoint(self.unknown):
                positions.append(position)
        return positions

    @property
    def text_words(self) -> tuple[list[str], list[str]]:
        """The words of both texts, separated by spaces: `{{ a b }}` is one word of the model, but four here."""
        return split_at_spaces(self.source_words[:-1]), split_at_spaces(self.target_words[:-1])

    @cached_property
    def layers(self) -> list[int]:
        """The decoder layers with cross-attention."""
        return sorted(int(name.split(".")[1]) for name in self.maps if name.endswith(".cross"))

    def cross(
        self,
        layer: int | None = None,
        head: int | None = None,
        *,
        shift: bool = False,
        method: Method = "weights",
    ) -> Tensor:
        """Return the cross-attention [T, S] of a layer and a head, or averaged over all layers or heads.

        Args:
            layer: a decoder layer, from 0; all if not given.
            head: from 0; all if not given.
            method: `norms` or `contributions` instead of the weights, see `Contributions.cross`; or `content`, the
                weights on the content of the source (`content_pieces`), normalized. A source without content keeps all.
            shift: take a piece's row from the step at which it is the decoder's *input*, one later than the step that
                predicts it (SHIFT-ATT, Chen et al. 2020, arXiv 2004.14837, section 3.2). The last piece is never an
                input, and keeps its row.

        Raises:
            UserError: the model has no attention, no such layer or no such head, or a head has no contributions.
        """
        names = chosen_maps(self.heads, "cross", layer, head)
        if method == "weights":
            maps = torch.stack([self.maps[name].float() for name in names])  # [layers, H, T, S]
            if head is not None:
                maps = maps[:, head : head + 1]
            weights = maps.mean((0, 1))
        elif method == "content":
            weights = normalized(self.cross(layer, head) * self.content)
        else:
            weights = self.with_contributions.cross(names, layer, head, method).float()
        if shift:
            return torch.cat([weights[1:], weights[-1:]])
        return weights

    @cached_property
    def content(self) -> Tensor:
        """[S], 1 for each source piece with content (`content_pieces`), otherwise 0; all 1 if none has any."""
        content = torch.tensor(content_pieces(self.source, self.opening[0], self.context), dtype=torch.float32)
        return content if content.any() else torch.ones_like(content)

    @property
    def content_words(self) -> list[int]:
        """The positions, among the source words of `words`, of words with content."""
        content = sum_ranges(self.content, span_ranges(self._source_entries))
        return [position for position, pieces in enumerate(content.tolist()) if pieces]

    def cross_words(self, layer: int | None = None, head: int | None = None, method: Method = "weights") -> WordMap:
        """Return the map between words of `cross`, for people: that of content words has no other columns."""
        words = self.words(self.cross(layer, head, method=method))
        return words.columns(self.content_words) if method == "content" else words

    @property
    def with_contributions(self) -> Contributions:
        """The contributions.

        Raises:
            ValueError: they were not computed.
        """
        if self.contributions is None:
            raise ValueError("no contributions were computed: inspect the pair with contributions=True")
        return self.contributions

    def prefix_words(self) -> WordMap:
        """Return the contributions of the target prefix between words: the start token, then all words but the last.

        Together with `words(cross(method="contributions"))`, the row of each target word sums to 1.

        Raises:
            ValueError: they were not computed.
        """
        return self._over_prefix(self.with_contributions.prefix.nan_to_num(0).float())

    def source_contributions(self) -> list[float]:
        """Return the share of each target word that comes from the source, not from the target prefix, from 0 to 1.

        It is the mean over the pieces of a word, and NaN if it is undefined for one of them.

        Raises:
            ValueError: contributions were not computed.
        """
        shares = self.with_contributions.source_contribution
        return [shares[start:end].mean().item() for _, start, end in self.target_spans]

    def rollout(self) -> Tensor:
        """Return the attention from target to source pieces accumulated through all layers [T, S]."""
        return rollout(self.maps)

    def words(self, weights: Tensor | None = None) -> WordMap:
        """Merge weights [T, S] between pieces to words; by default the average of all cross-attention.

        The source's opening and context have columns, because the model attends to them as to words. The target's
        opening has no rows, because the model does not choose it.
        """
        source, target = self.opening
        if weights is None:
            weights = self.cross()
        return word_map(self.source, self.target[target:], weights[target:], (source, 0), (self.context, 0))

    def word_map(self, name: str, head: int | None = None) -> WordMap:
        """Return a map between words, of one head or averaged over all: queries are rows, keys are columns.

        The keys of a decoder's self-attention are its inputs: the start token, then all words but the last. As in
        `words`, the target's opening has no rows.
        """
        side, _, kind = name.split(".")
        source, context = self.opening[0], self.context
        weights = self.maps[name].float()
        weights = weights.mean(0) if head is None else weights[head]
        if side == "encoder":
            return word_map(self.source, self.source, weights, (source, source), (context, context))
        if kind == "self":
            return self._over_prefix(weights)
        return self.words(weights)

    def _over_prefix(self, weights: Tensor) -> WordMap:
        """Merge weights [T, T] over the decoder's inputs to words."""
        opening = self.opening[1]
        inputs = [SPELLINGS.start, *self.target[:-1]]
        return word_map(inputs, self.target[opening:], weights[opening:], (opening + 1, 0))

    def word_maps(self, name: str) -> list[WordMap]:
        """Return the map between words of each head."""
        return [self.word_map(name, head) for head in range(len(self.maps[name]))]

    def word_log_probs(self) -> list[float]:
        """Return the log-probability of each target word: the sum over its pieces."""
        return [sum(self.log_probs[start:end]) for _, start, end in self.target_spans]

    def word_probabilities(self) -> list[tuple[str, float]]:
        """Return the target words without the end token, each with its probability."""
        probabilities = map(math.exp, self.word_log_probs())
        return [*zip(self.target_words, probabilities, strict=True)][:-1]

    def to_json(self) -> dict[str, Any]:
        """Return plain values: pieces, words, weights rounded to five decimals, log-probabilities.

        With contributions, also `contributions` with the tensors of `Contributions.arrays`, null where they are
        undefined, and `source_contributions` of each target word.
        """
        record: dict[str, Any] = {}
        if self.contributions is not None:
            arrays = self.contributions.arrays().items()
            record["contributions"] = {name: null_for_nan(plain(values, 5)) for name, values in arrays}
            record["source_contributions"] = null_for_nan(rounded(self.source_contributions(), 5))
        return record | {
            "source": self.source,
            "target": self.target,
            "opening": list(self.opening),
            "context": self.context,
            "unknown": list(self.unknown),
            "source_words": self.source_words,
            "target_words": self.target_words,
            "log_probs": rounded(self.log_probs, 5),
            "attention": {name: plain(weights, 5) for name, weights in self.maps.items()},
        }

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> Inspected:
        """Return the record whose `to_json` returned these values."""
        maps = {name: torch.tensor(weights) for name, weights in record["attention"].items()}
        # Files of older versions have no opening, no context and no unknown pieces.
        source, target = record.get("opening", (0, 0))
        context = int(record.get("context", 0))
        unknown = tuple(map(int, record.get("unknown", ())))
        opening = int(source), int(target)
        pieces = record["source"], record["target"]
        inspected = cls(*pieces, maps, record["log_probs"], opening, unknown=unknown, context=context)
        if "contributions" not in record:
            return inspected
        arrays = {}
        for name, values in record["contributions"].items():
            arrays[name] = torch.tensor(_nan_for_null(values))
        return replace(inspected, contributions=Contributions.from_arrays(arrays))

    def save(self, file: Path) -> None:
        """Write the record as JSON."""
        write_output(file, json.dumps(self.to_json(), ensure_ascii=False).encode())

    @classmethod
    def load(cls, file: Path) -> Inspected:
        """Read a record that `save` wrote.

        Raises:
            UserError: the file holds no such record.
        """
        try:
            return cls.from_json(json.loads(file.read_text(encoding="utf-8")))
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            fix = "Give a file that was saved as .json."
            raise UserError("holds no saved attention", file=file, fix=fix) from error


def null_for_nan(values: Any) -> Any:
    """Replace NaN, which JSON does not have, in nested lists of numbers."""
    if isinstance(values, list):
        return [null_for_nan(value) for value in values]
    return None if math.isnan(values) else values


def _nan_for_null(values: Any) -> Any:
    if isinstance(values, list):
        return [_nan_for_null(value) for value in values]
    return math.nan if values is None else values


LARGE = 0.15
"""The smallest share of a target word for which a word of a previous sentence is named."""


class WordContribution(NamedTuple):
    """The contribution of a source word to a target word."""

    source: str
    target: str
    share: float
    """From 0 to 1; NaN if it is undefined."""

    def __str__(self) -> str:
        return f"“{self.source}” of a previous sentence contributes {percent(self.share)} to “{self.target}”"


def word_contributions(inspected: Inspected, word: int) -> list[WordContribution]:
    """Return the contribution of each source word to a target word: context words first, then the sentence's.

    Shares are summed over the pieces of a source word, and averaged over those of the target word. They sum to less
    than 1: the rest comes from the target prefix, separators, language tokens and the end token.

    Args:
        inspected: an inspection with contributions; `Translation.inspect(contributions=True, with_context=True)`.
        word: the position of the target word, from 0.

    Raises:
        ValueError: contributions were not computed.
        IndexError: there is no such word.
    """
    target, start, end = inspected.target_spans[word]
    spans = [*inspected.context_spans, *inspected.source_spans[:-1]]
    shares = sum_ranges(inspected.with_contributions.source[start:end], span_ranges(spans)).mean(0)
    contributions = []
    for source, share in zip(span_words(spans), shares.tolist(), strict=True):
        contributions.append(WordContribution(source, target, share))
    return contributions


def largest_context_contribution(inspected: Inspected) -> WordContribution | None:
    """Return the largest contribution of a word of a previous sentence, if it is large.

    Raises:
        ValueError: contributions were not computed.
    """
    count = len(inspected.context_spans)
    candidates = []
    for word in range(len(inspected.target_words) - 1):
        for contribution in word_contributions(inspected, word)[:count]:
            if contribution.share >= LARGE:  # False for NaN
                candidates.append(contribution)
    return max(candidates, key=lambda contribution: contribution.share, default=None)


SIDES = ("encoder", "decoder")
"""The sides whose self-attention can be shown."""


def page(
    pieces: Sequence[Inspected],
    source: str,
    translation: str,
    details: Sequence[Mapping[str, Any]] = (),
    method: Method = "weights",
) -> str:
    """Return a page without external resources: ribbons between words, all heads, and the given details.

    Args:
        pieces: the attention of each piece of the text.
        source: the text.
        translation: its translation.
        details: further views of each piece: `tree`, that of its beam search (`beam_record`); `explanations` by method
            (`explanation_record`); `layers`, the predictions of each layer (`Lens.to_json`), under `encoder` those of
            the encoder (`DecoderLens.to_json`).
        method: the kind of map that the ribbons show at first.
    """
    frame = "body { margin: 2rem auto; padding: 0 1rem; max-width: 70rem; background: var(--background); }\n"
    body = f"""<main id="pieces"></main>
<noscript><p>{escape(source)}</p><p>{escape(translation)}</p></noscript>
<script>
{_script('document.getElementById("pieces")', pieces, details, method)}</script>
"""
    return document(source, web_file("inspector.css") + frame, body)


def notebook_view(pieces: Sequence[Inspected], details: Sequence[Mapping[str, Any]] = ()) -> str:
    """Return the view for a notebook; where no script runs, as in a notebook that is not trusted, it is a table.

    Args:
        pieces: the attention of each piece of one text.
        details: as for `page`.
    """
    name = f"translucid-{uuid4().hex}"  # unique, because all cells of a notebook are one document
    tables = ""
    for inspected in pieces:
        tables += notebook_table(inspected.words(), inspected.word_log_probs())
    # The view lies in a shadow root, so that its styles and those of the notebook do not affect each other.
    style = (web_file("tokens.css") + web_file("inspector.css")).replace(":root", ":host")
    style += ":host { display: block; background: var(--background); padding: 0 1em; }"
    container = f'modules["elements.js"].createShadowContainer(document.getElementById("{name}"), {quoted(style)})'
    return f'<div id="{name}">{tables}</div>\n<script>\n{_script(container, pieces, details)}</script>'


def _script(
    container: str, pieces: Sequence[Inspected], details: Sequence[Mapping[str, Any]], method: Method = "weights"
) -> str:
    """Return a script that shows pieces in a container, which is given as a JavaScript expression."""
    sentences: list[dict[str, Any]] = []
    for inspected in pieces:
        record = viewer_record(inspected, sides=SIDES, method=method)
        source = " ".join(record["source"][record["opening"] : -1])
        sentences.append({"source_text": source, "text": " ".join(record["target"][:-1]), "record": record})
    for sentence, piece_details in zip(sentences, details, strict=False):
        sentence.update(piece_details)
    content = quoted({"run": pieces[0].run or "RUN", "languages": None, "sentences": sentences})
    return bundle("inspector.js", [WEB], f'modules["inspector.js"].showInspector({container}, {content});\n')


def viewer_record(inspected: Inspected, *, sides: Sequence[str] = (), method: Method = "weights") -> dict[str, Any]:
    """Return the words, their probabilities, and maps between them, for the modules in `web/`.

    Each map has a `name`, a `kind`, a `layer` and a `head` (null for an average over all) and its `weights`, a row for
    each query and a column for each key. The queries and keys are `target` and `source` words; both are `source` for
    the kind `encoder`; they are `target` and `fed` for `decoder`; `rollout` is attention through all layers. The first
    `opening` entries of `source` are no words of the text, of which the first `context` belong to previous sentences;
    `words` are the positions of the words of both; `content` are those with content, `unknown` those with unknown
    pieces; `sizes` are the numbers of pieces of the target words. With `sides`, there are also maps of the kind
    `content`, and `shares` by the names of heads (`attention_shares`). If contributions were computed, there are maps
    of the kinds `norms` and `contributions`, `prefix` are the contributions of `fed` words to target words, and
    `source_contributions` the shares of the source, null where they are undefined.

    Args:
        inspected: one sentence with attention.
        sides: those of `SIDES` whose self-attention is included, if the model has any.
        method: the kind of the first map, which is shown at first.
    """
    words = inspected.words()
    maps = [_map("all layers and heads", "cross", None, None, words), *_layers(inspected, "cross", "")]
    if len(inspected.maps) > 1:
        flow = inspected.words(inspected.rollout())
        maps.append(_map("flow through all layers (rollout)", "rollout", None, None, flow))
    contributed: dict[str, Any] = {}
    by_method = {"content": _content_maps(inspected, maps)} if sides else {}
    if inspected.contributions is not None:
        prefix = inspected.prefix_words()
        contributed = {
            "fed": prefix.source,
            "prefix": plain(prefix.weights),
            "source_contributions": null_for_nan(rounded(inspected.source_contributions(), 4)),
        }
        by_method |= {"norms": _by_method(inspected, "norms"), "contributions": _by_method(inspected, "contributions")}
    first_maps = by_method.pop(method, [])
    maps = [*first_maps, *maps, *chain.from_iterable(by_method.values())]
    record: dict[str, Any] = contributed | {
        "source": words.source,
        "target": words.target,
        "opening": words.opening,
        "context": words.context,
        "words": inspected.word_positions,
        "content": inspected.content_words,
        "unknown": inspected.unknown_words,
        "probabilities": rounded(map(math.exp, inspected.word_log_probs()), 4),
        "sizes": [end - start for _, start, end in inspected.target_spans],
    }
    for side in sides:
        names = [name for name in inspected.maps if name.startswith(f"{side}.") and name.endswith(".self")]
        if not names:  # a recurrent model
            continue
        maps += _layers(inspected, side, f"{side}, ")
        if side == "decoder":
            record["fed"] = inspected.word_map(names[0]).source
    if sides:
        record["shares"] = _shares(inspected)
    return record | {"maps": maps}


def _shares(inspected: Inspected) -> dict[str, dict[str, float]]:
    """Return the shares of each head and of uniform attention, by name (`attention_shares`)."""
    rows = {}
    for name, shares in attention_shares([inspected]).items():
        rows[name] = {share: round(value, 4) for share, value in shares._asdict().items()}
    return rows


def _layers(inspected: Inspected, kind: str, prefix: str) -> list[dict[str, Any]]:
    """Return the average map of each layer, then that of each head, without maps that equal a wider average."""
    names = chosen_maps(inspected.heads, kind)
    averages, heads = [], []
    for name in names:
        layer, maps = int(name.split(".")[1]), inspected.word_maps(name)
        if len(names) > 1 or kind != "cross":
            averages.append(_map(prefix + title_of(layer, None), kind, layer, None, inspected.word_map(name)))
        if len(maps) > 1:
            for head, words in enumerate(maps):
                heads.append(_map(prefix + title_of(layer, head), kind, layer, head, words))
    return averages + heads


def _content_maps(inspected: Inspected, maps: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the maps of cross-attention again, on the content of the source only; other columns are 0."""
    content = []
    for shown in maps:
        if shown["kind"] == "cross":
            words = inspected.words(inspected.cross(shown["layer"], shown["head"], method="content"))
            content.append(_map(shown["name"], "content", shown["layer"], shown["head"], words))
    return content


def _by_method(inspected: Inspected, method: Method) -> list[dict[str, Any]]:
    """Return the map through all layers, then that of each layer."""
    maps = []
    for layer in [None, *inspected.layers]:
        words = inspected.words(inspected.cross(layer, method=method))
        maps.append(_map(title_of(layer, None, method), method, layer, None, words))
    return maps


def _map(name: str, kind: str, layer: int | None, head: int | None, words: WordMap) -> dict[str, Any]:
    weights = plain(words.weights, 4)
    return {"name": name, "kind": kind, "layer": layer, "head": head, "weights": weights}


class AttentionShares(NamedTuple):
    """The means over all queries of some sentences. Shares are from 0 to 1 and may overlap."""

    ends: float
    """The share of the end token and, in the self-attention of a decoder, of the start token."""
    punctuation: float
    """The share of pieces without a letter or a digit."""
    language: float
    """The share of language tokens, and of separators after previous sentences."""
    itself: float
    """In self-attention, the share of the query's own position."""
    entropy: float
    """In nats."""


def attention_shares(sentences: Iterable[Inspected]) -> dict[str, AttentionShares]:
    """Return the shares of each head and, under `encoder.self` and so on, those of uniform attention to the same keys.

    Args:
        sentences: inspections with attention; the rows of the target's opening are left out.
    """
    sums: dict[str, Tensor] = {}
    queries: dict[str, int] = {}
    for sentence in sentences:
        for attention, weights in sentence.maps.items():
            side, _, kind = attention.split(".")
            first = 0 if side == "encoder" else sentence.opening[1]
            seen = weights.sum(0) > 0
            uniform = seen / seen.sum(-1, keepdim=True).clamp(min=1)
            rows = torch.cat([weights.double(), uniform.double()[None]])[:, first:]  # [H + 1, T, S]
            names = [*(f"{attention}.head.{head}" for head in range(len(weights))), f"{side}.{kind}"]
            for name, total in zip(names, _summed(rows, _key_kinds(sentence, side, kind), first, kind), strict=True):
                sums[name] = sums.get(name, torch.zeros_like(total)) + total
                queries[name] = queries.get(name, 0) + rows.size(1)
    return {name: AttentionShares(*(total / queries[name]).tolist()) for name, total in sums.items()}


def _summed(rows: Tensor, keys: Tensor, first: int, kind: str) -> Tensor:
    """Return the sums over queries [H, 5], in the order of `AttentionShares`.

    Args:
        rows: weights [H, T, S].
        keys: 1 for each kind of keys [3, S].
        first: the position of the first query.
        kind: `self` or `cross`.
    """
    itself = rows.new_zeros(len(rows))
    if kind == "self":
        itself = rows.diagonal(first, 1, 2).sum(-1)
    entropy = -torch.special.xlogy(rows, rows).sum((1, 2))
    return torch.cat([torch.einsum("hts,ks->hk", rows, keys), itself[:, None], entropy[:, None]], 1)


def _key_kinds(sentence: Inspected, side: str, kind: str) -> Tensor:
    """Return whether each key is start or end token, punctuation, or a language token [3, S]."""
    pieces, (opening, _), context = sentence.source, sentence.opening, sentence.context
    if (side, kind) == ("decoder", "self"):
        pieces, opening, context = [SPELLINGS.start, *sentence.target[:-1]], sentence.opening[1], 1
    ends, language = {SPELLINGS.start, SPELLINGS.end}, {SEPARATOR, *pieces[context : context + opening]}
    is_end = [piece in ends for piece in pieces]
    is_language = [piece in language for piece in pieces]
    has_content = content_pieces(pieces, opening, context)
    is_punctuation = [not any(kinds) for kinds in zip(is_end, is_language, has_content, strict=True)]
    return torch.tensor([is_end, is_punctuation, is_language], dtype=torch.float64)


MAX_HEADS = 10
"""The maximum number of heads in a table."""


class Reader(NamedTuple):
    """An attention head and its weight on the language piece."""

    head: str
    """Its name, such as `encoder.0.self.head.1`."""
    piece: str
    weight: float
    """The mean attention weight, from 0 to 1."""


def language_readers(inspected: Inspected) -> list[Reader]:
    """Return all heads that can read the language piece of a sentence, those with the largest weight first.

    The weight is the mean over the words that attend: those of the sentence in the encoder, those of the translation in
    the decoder, end tokens included. Cross-attention and the encoder read the piece before the source. The decoder's
    self-attention reads the piece before the target, if the model has one.

    Raises:
        UserError: the model has no language piece.
    """
    source_opening, target_opening = inspected.opening
    if not source_opening and not target_opening:
        fix = "Leave out `language_piece`, which is for multilingual models."
        raise UserError("the model has no language piece", file=inspected.run or None, fix=fix)
    readers = []
    for name, weights in inspected.maps.items():
        side, _, kind = name.split(".")
        pieces, first, count = inspected.source, inspected.context, source_opening
        queries = weights[:, target_opening:]  # [H, T, S]
        if side == "encoder":
            queries = weights[:, first + count :]
        elif kind == "self":
            # The decoder reads a start token before the target.
            pieces, first, count = ["", *inspected.target], 1, target_opening
        for position in range(first, first + count):
            for head, weight in enumerate(queries[..., position].float().mean(1).tolist()):
                readers.append(Reader(f"{name}.head.{head}", pieces[position], weight))
    return sorted(readers, key=lambda reader: -reader.weight)


def readers_table(inspected: Inspected) -> Table:
    """Return a table of the heads with the largest weights on the language piece.

    Raises:
        UserError: the model has no language piece.
    """
    from translucid.ground.console import table_of  # it imports Rich, which changes Python's random state

    table = table_of("head", "language piece", figures=("mean weight",))
    for head, piece, weight in language_readers(inspected)[:MAX_HEADS]:
        table.add_row(head, piece, percent(weight))
    return table
