"""Contrastive evaluation of a translator: which of two translations it prefers, and which words that depends on."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Sequence
from typing import NamedTuple

from bitext.pair import Pair
from translucid.api.inspector import INSPECTED
from translucid.api.translator import Translator
from translucid.data.document_context import preceding
from translucid.data.text_pipeline import EncodedPair
from translucid.data.tokenizing.pieces import SEPARATOR
from translucid.decoding.pair_scores import pair_scores
from translucid.evaluation.contrast import Contrast, Preference, first_difference, is_among_top
from translucid.ground.iteration import batched
from translucid.inspection.inspected import Inspected


class _Choice(NamedTuple):
    """A contrast with the ids of both translations."""

    contrast: Contrast
    right: EncodedPair
    wrong: EncodedPair
    texts: list[str]
    """The sources before the sentence in its document."""

    @property
    def alone(self) -> _Choice:
        """The choice without its context."""
        return self._replace(right=self.right._replace(context=()), wrong=self.wrong._replace(context=()))


def preferences(
    translator: Translator,
    pairs: Sequence[Pair],
    contrasts: Sequence[Contrast],
    on_done: Callable[[int], None] | None = None,
) -> list[Preference]:
    """Return what a translator prefers, by log-probabilities of forced decoding.

    A run with document context also reads the sentences before. If the model has contributions, they show whether the
    choice depends on the antecedent (`inspection.contributions`).

    Args:
        translator: the translator.
        pairs: all pairs of a file, with their documents.
        contrasts: the contrasts of the file.
        on_done: called with numbers of scored translations, of which each contrast has two, or four with context.

    Raises:
        UserError: a text is too long for the model.
    """
    choices = _choices(translator, pairs, contrasts)
    alone = _prefers_right(translator, [choice.alone for choice in choices], on_done)
    if not translator.pipeline.context:
        return [Preference(contrast, right) for contrast, right in zip(contrasts, alone, strict=True)]
    in_context = _prefers_right(translator, choices, on_done)
    antecedents_found: list[bool | None] = [None] * len(choices)
    if translator.inspector.has_contributions:
        antecedents_found = _found_antecedents(translator, choices)
    return [Preference(*row) for row in zip(contrasts, alone, in_context, antecedents_found, strict=True)]


def _choices(translator: Translator, pairs: Sequence[Pair], contrasts: Sequence[Contrast]) -> list[_Choice]:
    encoded = translator.pipeline.document_pairs(pairs)
    preceding_counts = preceding(pair.document for pair in pairs)
    wrong_pairs = translator.pipeline.pairs(
        [(pairs[contrast.number].source, contrast.contrast) for contrast in contrasts]
    )
    choices = []
    for contrast, wrong_pair in zip(contrasts, wrong_pairs, strict=True):
        number = contrast.number
        texts = [pair.source for pair in pairs[number - preceding_counts[number] : number]]
        right = encoded[number]
        choices.append(_Choice(contrast, right, wrong_pair._replace(context=right.context), texts))
    for choice in choices:
        translator.inspector.refuse_too_long([choice.right, choice.wrong], choice.contrast.number + 1)
    return choices


def _prefers_right(
    translator: Translator, choices: Sequence[_Choice], on_done: Callable[[int], None] | None
) -> list[bool]:
    """Return for each choice whether the right translation is more probable than the wrong one."""
    pairs = []
    for choice in choices:
        pairs += [choice.right.input_ids, choice.wrong.input_ids]
    prefix_length = len(translator.tokenizer.target_opening)
    scores = pair_scores(translator.model, pairs, translator.device, on_batch=on_done, prefix_length=prefix_length)
    values = [score.log_probability for score in scores]
    return [right > wrong for right, wrong in zip(values[::2], values[1::2], strict=True)]


def _found_antecedents(translator: Translator, choices: Sequence[_Choice]) -> list[bool | None]:
    """Return for each choice whether the antecedent is among the most contributing words of the context."""
    antecedents_found: list[bool | None] = [None] * len(choices)
    with_antecedent = [number for number, choice in enumerate(choices) if choice.contrast.antecedent]
    for batch in batched(with_antecedent, INSPECTED):
        pairs = [choices[number].right for number in batch]
        results = translator.inspector.forced_decoding(pairs, contributions=True, with_context=True)
        for number, inspected in zip(batch, results, strict=True):
            choice = choices[number]
            position = first_difference(choice.right.target, choice.wrong.target)
            if position is not None:
                shares = inspected.with_contributions.source[position].nan_to_num(0).tolist()
                antecedents_found[number] = _is_found(choice, inspected, shares)
    return antecedents_found


def _is_found(choice: _Choice, inspected: Inspected, shares: Sequence[float]) -> bool:
    """Return whether the antecedent is among the most contributing words, given the shares of the source tokens."""
    contributions: list[float] = []
    gold: set[int] = set()
    for sentence, word, start, end in _context_words(choice, inspected):
        if (sentence, word) in choice.contrast.antecedent:
            gold.add(len(contributions))
        contributions.append(sum(shares[start:end]))
    return is_among_top(contributions, gold)


def _context_words(choice: _Choice, inspected: Inspected) -> list[tuple[int, int, int, int]]:
    """Return the words of a context: sentence of the document, word, first token and the token after the last."""
    ends = [position for position, piece in enumerate(inspected.source[: inspected.context]) if piece == SEPARATOR]
    by_sentence: list[list[tuple[int, int]]] = [[] for _ in ends]
    for _, start, end in inspected.context_spans:
        by_sentence[bisect(ends, start)].append((start, end))
    words = []
    for sentence, spans in enumerate(by_sentence, len(choice.texts) - len(ends)):
        # Words are counted from the end, because a context that is too long for the model is cut off at the front.
        missing = len(choice.texts[sentence].split()) - len(spans)
        for word, (start, end) in enumerate(spans, missing):
            words.append((sentence, word, start, end))
    return words
