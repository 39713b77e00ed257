"""Activation patching: states of a run on one sentence put into a run on another, at every layer and every word.

A model translates CLEAN and OTHER, which differ in a word. In the run on OTHER, the state at a place (a layer and a
word) is replaced by that of the run on CLEAN; then the run continues. How far do the log-odds of two target words a and
b, after the same target prefix y, move from OTHER to CLEAN (Vig et al. 2020, arXiv 2004.12265; Meng et al. 2022, arXiv
2202.05262)?

    L(x) = log p(a | x, y) - log p(b | x, y)
    carried = (L(OTHER, patched) - L(OTHER)) / (L(CLEAN) - L(OTHER))

At 0 the run is like that on OTHER, at 1 like that on CLEAN. Shares need not sum to 1, because several places may carry
the same information.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from html import escape
from itertools import takewhile
from typing import Any, NamedTuple, TypeAlias

import torch
from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.style import Style
from rich.table import Table
from rich.text import Text
from torch import Tensor, nn

from bitext.cancellation import between_steps
from translucid.attention.points import Handler, handling, points_of, recording
from translucid.data.text_pipeline import TextPipeline
from translucid.data.tokenizing.pieces import SPACE
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.errors import UserError
from translucid.ground.iteration import batched
from translucid.ground.special import SPECIAL, SPELLINGS
from translucid.inspection.inspected import plain, rounded
from translucid.inspection.rendering.terminal import brightness_color
from translucid.inspection.words import MARKS, span_ranges, span_words, word_spans
from translucid.models.protocol import SequenceModel

Place: TypeAlias = Sequence[tuple[int, int]]
"""Positions whose states are replaced together, such as those of a word: (in the run on CLEAN, in that on OTHER)."""
ENCODER, CROSS, DECODER = "encoder states", "cross-attention outputs", "decoder states"
"""The kinds of states that are patched."""


class Runs(NamedTuple):
    """Two runs of a model, on CLEAN and on OTHER, with the same target prefix."""

    model: SequenceModel
    """The model, in evaluation mode."""
    clean: Tensor
    """The source [1, S] whose states are put into the run on the other."""
    other: Tensor
    """The other source [1, S']."""
    prefix: Tensor
    """The decoder's input [1, T]: the start token, then the target prefix."""
    pieces: tuple[int, int]
    """The ids of a and b, which may follow the prefix."""

    def log_odds(self, source: Tensor, rows: int = 1) -> Tensor:
        """Return log p(a) - log p(b) after the prefix [rows], on the CPU, for a batch of the same source."""
        memory = self.model.encode(source.expand(rows, *source.shape[1:]))
        features = self.model.features(memory, self.prefix.expand(rows, -1))[:, -1]
        # In float64 on the CPU: not every device has it. The softmax subtracts the same number from both logits.
        logits = self.model.output(features).cpu().double()
        a, b = self.pieces
        return logits[:, a] - logits[:, b]

    @torch.inference_mode()
    def patched(self, points: Sequence[str], places: Sequence[Place]) -> Tensor:
        """Return the log-odds of the run on OTHER with the states of CLEAN at each place [points, places].

        All places of a point are a batch. The states come from a batch of the same shape: in another one, they might
        differ in the last bits.
        """
        between_steps()
        with recording(self.model, points) as states:
            self.log_odds(self.clean, len(places))
        rows = []
        for point in points:
            between_steps()
            with handling(self.model, {point: replacing(states[point], places)}):
                rows.append(self.log_odds(self.other, len(places)))
        return torch.stack(rows)

    @torch.inference_mode()
    def carried(self, points: Sequence[str], places: Sequence[Place]) -> Tensor:
        """Return the share of the difference in log-odds that each place carries [points, places]."""
        between_steps()
        clean = self.log_odds(self.clean, len(places))
        between_steps()
        other = self.log_odds(self.other, len(places))
        return (self.patched(points, places) - other) / (clean - other)


def replacing(states: Tensor, places: Sequence[Place]) -> Handler:
    """Return a handler that replaces the states at place i in row i.

    Args:
        states: [places, T, D], of the run on CLEAN.
        places: a place for each row.
    """
    triples = []
    for row, place in enumerate(places):
        triples += [(row, clean, other) for clean, other in place]
    row, clean, other = torch.tensor(triples, device=states.device).reshape(-1, 3).T

    def handle(x: Tensor, first: int) -> Tensor:
        inside = (first <= other) & (other < first + x.size(-2))
        patched = x.clone()
        patched[row[inside], other[inside] - first] = states[row[inside], clean[inside]]
        return patched

    return handle


def points_by_kind(model: SequenceModel) -> dict[str, list[str]]:
    """Return the points that are patched, by kind of states and from the first layer to the last.

    Raises:
        UserError: the model has no points.
    """
    names = list(points_of(model))
    if not names:
        raise UserError("the model has no named points, at which its states could be replaced", fix="Take another run.")
    encoder = ["encoder.input", *_layers(names, "encoder", "output")]
    if len(encoder) == 1:  # a recurrent encoder
        encoder.append("encoder.output")
    points = {
        ENCODER: [name for name in encoder if name in names],
        CROSS: _layers(names, "decoder", "cross.output"),
        DECODER: _layers(names, "decoder", "output"),
    }
    return {kind: kind_points for kind, kind_points in points.items() if kind_points}


def _layers(names: Sequence[str], side: str, suffix: str) -> list[str]:
    """Return the points of all layers of a side, the first layer first."""
    layers: list[str] = []
    while (name := f"{side}.{len(layers)}.{suffix}") in names:
        layers.append(name)
    return layers


def notes_on(model: SequenceModel) -> list[str]:
    """Return a sentence on each kind of patching that does not apply to the model, or only in part."""
    names, notes = points_of(model), []
    if "decoder.0.cross.weights" not in names:
        notes.append("The model has no cross-attention.")
    elif "decoder.0.cross.output" not in names:
        notes.append("The outputs of cross-attention are the decoder's states.")
    if "encoder.0.output" not in names:
        # Only a mean of the encoder's outputs is patched with them.
        if getattr(model.options, "first_state", "") != "mean":
            notes.append(
                "The decoder's first state comes from the encoder's last one, and is patched by embeddings only."
            )
        notes.append("A decoder state is patched at its position only; the recurrence continues from the original.")
    return notes


@dataclass(frozen=True)
class PatchedStates:
    """The share that each layer's states at each word carry, for one kind of states."""

    kind: str
    """Encoder states, cross-attention outputs or decoder states."""
    points: list[str]
    """The points, from the first layer to the last: the rows."""
    words: list[str]
    """The words of OTHER, or those that the decoder reads: the columns."""
    clean_words: list[str]
    """The words of CLEAN whose states replace theirs."""
    carried: Tensor
    """[points, words], float64."""

    @property
    def layers(self) -> list[str]:
        """Short names of the rows."""
        return [_layer_name(point) for point in self.points]

    def to_json(self) -> dict[str, Any]:
        """Return plain values; shares are rounded to four decimals."""
        return {
            "kind": self.kind,
            "points": self.points,
            "layers": self.layers,
            "words": self.words,
            "clean_words": self.clean_words,
            "carried": plain(self.carried, 4),
        }


def _layer_name(point: str) -> str:
    layer = point.split(".")[1]
    if layer.isdecimal():
        return f"layer {layer}"
    return "embeddings" if layer == "input" else layer


@dataclass(frozen=True)
class Patching:
    """Which states carry the difference between two runs."""

    clean: str
    other: str
    words: tuple[str, str]
    """The target words a and b."""
    prefix: str
    """The text of the target prefix, after which the model chooses between them."""
    log_odds: tuple[float, float]
    """log p(a) - log p(b) for CLEAN and for OTHER, in nats."""
    parts: list[PatchedStates]
    """The shares by kind of states."""
    notes: list[str]
    """What does not apply to the model."""

    def to_json(self) -> dict[str, Any]:
        """Return plain values, as files and the server contain them."""
        return {
            "clean": self.clean,
            "other": self.other,
            "words": list(self.words),
            "prefix": self.prefix,
            "log_odds": dict(zip(("clean", "other"), rounded(self.log_odds, 4), strict=True)),
            "parts": [part.to_json() for part in self.parts],
            "notes": self.notes,
        }

    def _repr_html_(self) -> str:
        """Show itself in a notebook: a table for each kind of states."""
        return html_tables(self)


class WordChoice(NamedTuple):
    """Two words that may follow the same target prefix. They are told apart by their first different pieces.

    The prefix ends before these pieces, so that it includes those that both words begin with. The log-odds of the words
    are those of the two pieces, because the log-probabilities of common pieces cancel out.
    """

    words: tuple[str, str]
    prefix: list[int]
    """The ids of the target before the pieces, without the start token."""
    pieces: tuple[int, int]
    """The ids of the two pieces."""


def choices(tokenizer: Tokenizer, target: Sequence[int], words: tuple[str, str]) -> list[WordChoice]:
    """Return the choice between two words at each place where a translation has the first.

    Args:
        tokenizer: the tokenizer of the model.
        target: ids of the translation, end token included.
        words: a word of the translation, without a mark that follows it, and one or more words in its place.

    Raises:
        UserError: the translation lacks the first word, no piece tells the words apart, or the vocabulary lacks
            characters of the other.
    """
    word, replacement = words
    opening = len(tokenizer.target_opening)
    spans = word_spans(tokenizer.target_labels(target), opening)[opening:-1]
    (ids,) = tokenizer.encode_target([replacement])
    if SPECIAL.unknown in ids:
        raise UserError(f"the vocabulary lacks characters of {replacement!r}", fix="Choose another word.")
    word_choices = []
    for text, start, _ in spans:
        if word in (text, text.rstrip(MARKS)):
            word_choices.append(choice_between(words, target, [*target[:start], *ids[opening:]]))
    if not word_choices:
        translation = " ".join(text for text, _, _ in spans)
        raise UserError(f"the translation lacks the word {word!r}", fix=f"Choose a word of {translation!r}.")
    return word_choices


def first_difference(tokenizer: Tokenizer, target: Sequence[int], other: Sequence[int]) -> WordChoice:
    """Return the choice at the first difference of two translations: ids, end tokens included.

    Raises:
        UserError: the translations are the same.
    """
    if list(target) == list(other):
        raise UserError(
            "both sentences have the same translation",
            fix="Give two words: one of the translation, and one in its place.",
        )
    position = _common_length(target, other)
    opening = len(tokenizer.target_opening)
    words = []
    for ids in (target, other):
        spans = word_spans(tokenizer.target_labels(ids), opening)
        words += [text for text, start, end in spans if start <= position < end]
    return choice_between((words[0], words[1]), target, other)


def choice_between(words: tuple[str, str], target: Sequence[int], other: Sequence[int]) -> WordChoice:
    """Return the choice between two words at the first difference of two targets: ids.

    Raises:
        UserError: the first target begins with the other.
    """
    position = _common_length(target, other)
    if position == len(other):
        what = f"{words[0]!r} begins with the pieces of {words[1]!r}, so that no piece tells them apart"
        raise UserError(what, fix=f"Give the word that follows {words[1]!r} too.")
    return WordChoice(words, list(target[:position]), (target[position], other[position]))


def _common_length(target: Sequence[int], other: Sequence[int]) -> int:
    """Return the length of the common prefix of two sequences."""
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(target, other, strict=False)))


def pair_words(clean: Sequence[str], other: Sequence[str]) -> list[tuple[int, int]]:
    """Pair the words of two sentences, as positions (in `clean`, in `other`).

    Sentences of the same number of words are paired by position. Otherwise equal words are paired, and between them
    different words, if there are as many on both sides. Inserted and deleted words have no pair.

    Raises:
        UserError: different words are in the place of more or fewer words.
    """
    if len(clean) == len(other):
        return [(i, i) for i in range(len(clean))]
    pairs: list[tuple[int, int]] = []
    for change, start, end, other_start, other_end in SequenceMatcher(None, clean, other, False).get_opcodes():
        if change in ("insert", "delete"):
            continue
        if end - start != other_end - other_start:
            unpaired = " ".join(clean[start:end]), " ".join(other[other_start:other_end])
            what = (
                f"the sentences have different numbers of words: {unpaired[0]!r} is to be paired with {unpaired[1]!r}"
            )
            fix = "Give pairs of words as 0-0 1-2 with `pairs`, or sentences of as many words."
            raise UserError(what, fix=fix)
        pairs += zip(range(start, end), range(other_start, other_end), strict=True)
    return pairs


def read_pairs(text: str) -> list[tuple[int, int]]:
    """Read pairs of words, `0-0 1-2`, counted from 0.

    Raises:
        UserError: the text has another format.
    """
    pairs = []
    for pair in text.split():
        clean, _, other = pair.partition("-")
        if not (clean.isdecimal() and other.isdecimal()):
            raise UserError(f"{pair!r} is no pair of words", fix="Write 0-0 1-2, counted from 0, CLEAN's word first.")
        pairs.append((int(clean), int(other)))
    return pairs


def pair_pieces(clean: tuple[int, int], other: tuple[int, int]) -> list[tuple[int, int]]:
    """Pair the pieces of two words: a position in `clean` for each position in `other`.

    If the words have different numbers of pieces, their first and last pieces are paired, and those between in
    proportion. For a word of one piece, it is the last piece of the other word, which the encoder has read as a whole.

    Args:
        clean: the first piece of a word, and the piece after its last.
        other: the same for the word that gets its states.

    >>> pair_pieces((0, 3), (5, 7)), pair_pieces((0, 3), (5, 6))
    ([(0, 5), (2, 6)], [(2, 5)])
    """
    (start, end), (other_start, other_end) = clean, other
    steps = other_end - other_start - 1
    if not steps:
        return [(end - 1, other_start)]
    return [(start + round(i * (end - start - 1) / steps), other_start + i) for i in range(steps + 1)]


PLACES = 64
"""The maximum number of places in a batch."""
TOKENS = 2048
"""The maximum number of tokens in a batch: other work waits until it ends."""
MIN_DIFFERENCE = 1e-3
"""The minimum difference in log-odds, in nats, of which shares are measured."""


class _Sentence(NamedTuple):
    """A source sentence as the model reads it."""

    ids: list[int]
    words: list[str]
    """The words, those of the opening and the end token included."""
    ranges: list[tuple[int, int]]
    """The first piece of each word, and the piece after its last."""


def patch(
    model: SequenceModel,
    pipeline: TextPipeline,
    sources: tuple[str, str],
    translations: tuple[str, str | None],
    words: tuple[str, str] | None = None,
    pairs: Sequence[tuple[int, int]] | None = None,
) -> Patching:
    """Patch every layer at every word, for encoder states, cross-attention outputs and decoder states.

    Args:
        model: the model, in evaluation mode.
        pipeline: the text pipeline of the model.
        sources: CLEAN and OTHER.
        translations: a translation of CLEAN, and one of OTHER, which is only needed without `words`.
        words: a word a of the translation of CLEAN, and the word b that may be in its place; by default, the first
            difference of both translations. If a occurs several times in the translation, the occurrence at
            which the log-odds of the two runs differ most is chosen.
        pairs: pairs of words (of CLEAN, of OTHER), counted from 0; by default, those of `pair_words`.

    Raises:
        UserError: the words are not in the translation or do not differ, words have no pair, the model has no points,
            a sentence is too long, or the log-odds of the two runs are the same.
    """
    tokenizer, device = pipeline.tokenizer, next(model.parameters()).device
    clean, other = (_sentence(pipeline, source) for source in sources)
    target = pipeline.pairs([(sources[0], translations[0])])[0].target
    if words is not None:
        word_choices = choices(tokenizer, target, words)
    else:
        other_target = pipeline.pairs([(sources[1], translations[1] or "")])[0].target
        word_choices = [first_difference(tokenizer, target, other_target)]
    _refuse_long(model, max(len(clean.ids), len(other.ids), len(word_choices[-1].prefix) + 1))
    runs, log_odds, choice = _where_runs_differ_most(model, (clean.ids, other.ids), word_choices, device)
    positions = _paired(clean, other, pairs, len(tokenizer.source_opening))
    prefix_pieces = [SPELLINGS.start, *tokenizer.target_labels(choice.prefix)]
    prefix_spans = word_spans(prefix_pieces, len(tokenizer.target_opening) + 1)
    parts = []
    for kind, points in points_by_kind(model).items():
        if kind == ENCODER:
            other_words = [other.words[j] for _, j in positions]
            columns = other_words, [clean.words[i] for i, _ in positions]
            places = [pair_pieces(clean.ranges[i], other.ranges[j]) for i, j in positions]
        else:
            columns = span_words(prefix_spans), span_words(prefix_spans)
            places = [pair_pieces(span, span) for span in span_ranges(prefix_spans)]
        length = max(len(clean.ids), len(other.ids), len(choice.prefix) + 1)
        batch_size = max(1, min(PLACES, TOKENS // length))
        carried = torch.cat([runs.carried(points, batch) for batch in batched(places, batch_size)], 1)
        parts.append(PatchedStates(kind, points, *columns, carried))
    prefix = tokenizer.decode(choice.prefix[len(tokenizer.target_opening) :])
    return Patching(*sources, choice.words, prefix, log_odds, parts, notes_on(model))


def _sentence(pipeline: TextPipeline, text: str) -> _Sentence:
    piece, tokenizer = pipeline.encode(text), pipeline.tokenizer
    opening = len(tokenizer.source_opening)
    if len(piece.ids) == opening + 1:
        raise UserError("there are no words to patch", fix="Give two sentences with words in them.")
    pieces = piece.masked.unmask_pieces(tokenizer.source_labels(piece.ids, piece.masked.text or None))
    spans = word_spans(pieces, opening)
    return _Sentence(piece.ids, span_words(spans), span_ranges(spans))


def _refuse_long(model: SequenceModel, tokens: int) -> None:
    if model.max_length and tokens > model.max_length:
        what = f"a sentence has {tokens} tokens, the model takes {model.max_length}"
        raise UserError(what, fix="Give shorter sentences.")


@torch.inference_mode()
def _where_runs_differ_most(
    model: SequenceModel, sources: tuple[list[int], list[int]], word_choices: Sequence[WordChoice], device: torch.device
) -> tuple[Runs, tuple[float, float], WordChoice]:
    """Return the runs, their log-odds, and the choice at which the log-odds differ most.

    Raises:
        UserError: they differ nowhere.
    """
    clean, other = (torch.tensor([ids], device=device) for ids in sources)
    results = []
    for choice in word_choices:
        between_steps()
        prefix = torch.tensor([[model.bos, *choice.prefix]], device=device)
        runs = Runs(model, clean, other, prefix, choice.pieces)
        log_odds = runs.log_odds(clean).item(), runs.log_odds(other).item()
        results.append((runs, log_odds, choice))
    best = max(results, key=lambda result: abs(result[1][0] - result[1][1]))
    if abs(best[1][0] - best[1][1]) < MIN_DIFFERENCE:
        what = f"the log-odds of {best[2].words[0]!r} and {best[2].words[1]!r} are the same for both sentences"
        raise UserError(what, fix="Choose words whose probabilities differ.")
    return best


def _paired(
    clean: _Sentence, other: _Sentence, pairs: Sequence[tuple[int, int]] | None, opening: int
) -> list[tuple[int, int]]:
    """Return pairs of words as positions among all words, the opening and the end token included."""
    if pairs is None:
        return pair_words(clean.words, other.words)
    ends = len(clean.words) - 1, len(other.words) - 1
    positions = [(i, i) for i in range(opening)]
    for i, j in pairs:
        position = i + opening, j + opening
        if not (opening <= position[0] < ends[0] and opening <= position[1] < ends[1]):
            what = f"there is no pair of words {i}-{j}: the sentences have {ends[0] - opening} and {ends[1] - opening}"
            raise UserError(what, fix="Count words from 0, CLEAN's word first.")
        positions.append(position)
    return [*positions, ends]


NEIGHBORS = 40
"""The number of pieces that are considered for each word, those whose embeddings are nearest."""
PER_WORD = 3
"""The maximum number of replacements for each word."""
CANDIDATES = 8
"""The maximum number of sentences that are translated to find one with another translation."""
MIN_LETTERS = 4
"""The minimum length of a replacement: shorter pieces are often only beginnings of words."""


@torch.inference_mode()
def similar_sentences(model: SequenceModel, tokenizer: Tokenizer, text: str) -> list[str]:
    """Return copies of a sentence with another word in place of one, those with the most similar word first."""
    tokens = getattr(model.source_embedding, "tokens", None)
    if not isinstance(tokens, nn.Embedding):  # an ensemble, or a model that adds other vectors
        return []
    opening = len(tokenizer.source_opening)
    norms = tokens.weight.norm(dim=1).clamp_min(1e-9)
    words = text.split()
    sentences: list[tuple[float, str]] = []
    for i, word in enumerate(words):
        core = word.rstrip(MARKS)
        ids = tokenizer.encode_source([core])[0][opening:]
        if len(ids) != 1:
            continue
        vector = tokens.weight[ids[0]]
        similarity = tokens.weight @ vector / (norms * norms[ids[0]])
        nearest = similarity.topk(min(NEIGHBORS, len(similarity)))
        pieces = tokenizer.source_pieces(nearest.indices.tolist())
        replacements: list[tuple[float, str]] = []
        for piece, value in zip(pieces, nearest.values.tolist(), strict=True):
            other = piece.removeprefix(SPACE)
            if piece.startswith(SPACE) and _may_replace(core, other):
                marks = word[len(core) :]
                replacements.append((value, " ".join([*words[:i], other + marks, *words[i + 1 :]])))
        sentences += replacements[:PER_WORD]
    sentences.sort(reverse=True)
    return [sentence for _, sentence in sentences[:CANDIDATES]]


def _may_replace(word: str, other: str) -> bool:
    """Whether a piece may be a word in place of another: of letters only, of the same case, and not the same word."""
    if len(other) < MIN_LETTERS or not other.isalpha() or other.lower() == word.lower():
        return False
    return (other.islower(), other.istitle()) == (word.islower(), word.istitle())


def summary(patching: Patching) -> str:
    """Return the log-odds of both runs as a sentence."""
    a, b = patching.words
    context = f"after {patching.prefix!r}" if patching.prefix else "at the beginning of the translation"
    clean, other = patching.log_odds
    return f"log-odds of {a!r} against {b!r} {context}: {clean:+.2f} nats with CLEAN, {other:+.2f} with OTHER"


def column_names(part: PatchedStates) -> list[str]:
    """Return the words of the columns: `cat→dog` where the words of CLEAN and OTHER differ."""
    names = []
    for clean, other in zip(part.clean_words, part.words, strict=True):
        names.append(other if clean == other else f"{clean}→{other}")
    return names


def percents(part: PatchedStates) -> list[list[str]]:
    """Return the shares in per cent, as text."""
    rows = []
    for row in part.carried.tolist():
        rows.append([str(round(100 * share)) for share in row])
    return rows


def terminal_view(patching: Patching, width: int) -> RenderableType:
    """Return the shares as tables, layers down and words across; a wide one is continued below."""
    lines: list[RenderableType] = [
        Text.assemble("CLEAN  ", (patching.clean, "bold")),
        Text.assemble("OTHER  ", (patching.other, "bold")),
        Text(summary(patching)),
    ]
    for part in patching.parts:
        lines.append(Text(f"\n{part.kind}: % of the difference that each place carries"))
        lines += _tables(part, width)
    lines += [Text(note, "dim") for note in patching.notes]
    return Group(*lines)


def _tables(part: PatchedStates, width: int) -> Iterator[Table]:
    names, cells = column_names(part), percents(part)
    label = max(map(cell_len, part.layers)) + 2
    start = 0
    while start < len(names):
        end, used = start, label
        while end < len(names) and (end == start or used + _column_width(names[end]) <= width):
            used += _column_width(names[end])
            end += 1
        table = Table(box=None, pad_edge=False, padding=(0, 1))
        table.add_column(justify="right", no_wrap=True)
        for name in names[start:end]:
            table.add_column(Text(name), justify="center", no_wrap=True)
        for layer, shares, texts in zip(part.layers, part.carried.tolist(), cells, strict=True):
            row = [_cell(share, text) for share, text in zip(shares[start:end], texts[start:end], strict=True)]
            table.add_row(layer, *row)
        yield table
        start = end


def _column_width(name: str) -> int:
    return max(cell_len(name), 5) + 2  # a cell, and a space on both sides


def _cell(share: float, text: str) -> Text:
    """Return a number whose background is brighter the more a place carries."""
    weight = min(max(share, 0.0), 1.0)
    style = Style(color="black" if weight > 0.5 else "white", bgcolor=brightness_color(weight))
    return Text(f"{text:>4} ", style)


def html_tables(patching: Patching) -> str:
    """Return the shares as tables in HTML: blue for what is like CLEAN, orange for the opposite."""
    html = f"<p>CLEAN: <b>{escape(patching.clean)}</b><br>OTHER: <b>{escape(patching.other)}</b></p>"
    html += f"<p>{escape(summary(patching))}</p>"
    for part in patching.parts:
        title = f"{part.kind}: % of the difference that each place carries"
        html += f'<h2 style="font-size: 1em; margin-bottom: 0.3em">{title}</h2>'
        # A wide table scrolls; it takes the focus, so that the arrow keys move it.
        html += f'<div tabindex="0" role="region" aria-label="{part.kind}" style="overflow-x: auto">'
        html += "<table><tr><td></td>"
        html += "".join(f'<th scope="col">{escape(name)}</th>' for name in column_names(part)) + "</tr>"
        for layer, shares, texts in zip(part.layers, part.carried.tolist(), percents(part), strict=True):
            html += f'<tr><th scope="row">{layer}</th>'
            for share, text in zip(shares, texts, strict=True):
                color = "37, 99, 235" if share > 0 else "220, 80, 20"
                html += f'<td style="background: rgba({color}, {min(abs(share), 1) * 0.6:.2f})">{text}</td>'
            html += "</tr>"
        html += "</table></div>"
    return html + "".join(f"<p>{escape(note)}</p>" for note in patching.notes)
