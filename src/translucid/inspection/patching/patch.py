"""Patching of two texts: every layer at every word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch

from bitext.cancellation import between_steps
from translucid.data.text_pipeline import TextPipeline
from translucid.ground.errors import UserError
from translucid.ground.iteration import batched
from translucid.ground.special import SPELLINGS
from translucid.inspection.patching.result import PatchedStates, Patching
from translucid.inspection.patching.runs import ENCODER, Runs, notes_on, points_by_kind
from translucid.inspection.patching.word_choice import WordChoice, choices, first_difference
from translucid.inspection.patching.word_pairs import pair_pieces, pair_words
from translucid.inspection.words import span_ranges, span_words, word_spans
from translucid.models.protocol import SequenceModel

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
    ((_, target, _),) = pipeline.pairs([(sources[0], translations[0])])
    if words is not None:
        word_choices = choices(tokenizer, target, words)
    else:
        ((_, other_target, _),) = pipeline.pairs([(sources[1], translations[1] or "")])
        word_choices = [first_difference(tokenizer, target, other_target)]
    _refuse_long(model, max(len(clean.ids), len(other.ids), len(word_choices[-1].prefix) + 1))
    runs, log_odds, choice = _where_runs_differ_most(model, (clean.ids, other.ids), word_choices, device)
    positions = _paired(clean, other, pairs, len(tokenizer.source_opening))
    prefix_pieces = [SPELLINGS.start, *tokenizer.target_pieces(choice.prefix)]
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
    pieces = piece.masked.unmask_pieces(tokenizer.source_pieces(piece.ids, piece.masked.text or None))
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
