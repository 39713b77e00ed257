"""Activation patching by a translator, which writes the translations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import nn

from translucid.data.tokenizing.pieces import SPACE
from translucid.ground.errors import UserError
from translucid.inspection import patching
from translucid.inspection.patching import MARKS

if TYPE_CHECKING:
    from translucid.api.translator import Translator

NEIGHBORS = 40
"""The number of pieces that are considered for each word, those whose embeddings are nearest."""
PER_WORD = 3
"""The maximum number of replacements for each word."""
CANDIDATES = 8
"""The maximum number of sentences that are translated to find one with another translation."""
MIN_LETTERS = 4
"""The minimum length of a replacement: shorter pieces are often only beginnings of words."""


def patch(
    translator: Translator,
    clean: str,
    other: str,
    words: tuple[str, str] | None = None,
    *,
    target: str | None = None,
    pairs: Sequence[tuple[int, int]] | None = None,
) -> patching.Patching:
    """Return the share of the difference between two runs that each state carries, layer by layer and word by word.

    Args:
        translator: the translator.
        clean: a sentence, CLEAN.
        other: a sentence, OTHER, which differs from CLEAN in what is examined.
        words: a word of the translation of CLEAN, and a word in its place, such as `("el", "la")`; by default, the
            first difference of both translations.
        target: a translation of CLEAN; the model's own by default.
        pairs: pairs of words (of CLEAN, of OTHER), counted from 0; by default, those of `pair_words`.

    Raises:
        UserError: the translation of CLEAN lacks the first word, words have no pair, or nothing differs.
    """
    if target is None:
        target = translator.translate(clean, split=False).text
    other_target = None
    if words is None:
        other_target = translator.translate(other, split=False).text
    return patching.patch(translator.model, translator.pipeline, (clean, other), (target, other_target), words, pairs)


def contrasting_sentence(translator: Translator, clean: str, target: str) -> str:
    """Return a sentence to compare with CLEAN: it differs in one word, and so does its translation, if possible.

    The new word is one that the model reads alike: their embeddings are near each other.

    Args:
        translator: the translator.
        clean: a sentence, CLEAN.
        target: its translation.

    Raises:
        UserError: the model has no such sentence.
    """
    sentences = _similar_sentences(translator, clean)
    translations = translator.translate(sentences, split=False, beam=1)
    words = target.split()
    best, best_rank = "", (2, 0)
    for sentence, translation in zip(sentences, translations, strict=True):
        other_words = translation.text.split()
        if other_words == words:
            continue
        differing = sum(first != second for first, second in zip(words, other_words, strict=False))
        rank = int(len(other_words) != len(words)), differing
        if rank < best_rank:
            best, best_rank = sentence, rank
    if not best:
        raise UserError(
            "no similar sentence with another translation was found", fix="Give one that differs in a word."
        )
    return best


@torch.inference_mode()
def _similar_sentences(translator: Translator, text: str) -> list[str]:
    """Return copies of a sentence with another word in place of one, those with the most similar word first."""
    tokens = getattr(translator.model.source_embedding, "tokens", None)
    if not isinstance(tokens, nn.Embedding):  # an ensemble, or a model that adds ELMo's vectors
        return []
    tokenizer, opening = translator.tokenizer, len(translator.tokenizer.source_opening)
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
