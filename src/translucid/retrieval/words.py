"""The earlier sentences that decided a word: what each similar pair adds to the probability of the words written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import torch

from bitext.documents.document import RetrievedWord
from bitext.pair import Pair
from translucid.data.text_pipeline import Piece, TextPipeline
from translucid.decoding.maps import forced_features
from translucid.engines.stages import Part
from translucid.inspection.words import word_spans
from translucid.retrieval.model import reading_queries

if TYPE_CHECKING:
    from translucid.decoding.hypothesis import Hypothesis
    from translucid.retrieval.engine import RetrievalEngine

SHOWN = 0.05
"""The smallest share of a word that was supported but not changed."""


class Support(NamedTuple):
    """What similar pairs add to each token of a target."""

    shares: list[list[float]]
    """[T, pairs] λ p_kNN(y) / p(y), by pairs."""
    changed: list[bool]
    """[T], whether the model alone would have preferred another token after the same ones."""


def retrieved_words(
    engine: RetrievalEngine, pipeline: TextPipeline, pieces: Sequence[Piece], parts: Sequence[Part]
) -> list[RetrievedWord]:
    """Return the words of a translation that retrieval has changed, or supported with a share of at least 5 %.

    The share of a word is the mean over its pieces of λ p_kNN(y) / p(y), for the pair that has most of it.

    Args:
        engine: the engine with retrieval.
        pipeline: the pipeline between the texts and the model.
        pieces: the pieces of the text.
        parts: those of them that the model has translated, with their translations.
    """
    words: list[RetrievedWord] = []
    remaining, position, continues = iter(parts), 0, False
    for piece in pieces:
        if not piece.ids:
            texts: list[tuple[str, RetrievedWord | None]] = [(word, None) for word in piece.text.split()]
        else:
            texts = list(_words(engine, pipeline, *next(remaining)))
        # Without white space between two pieces, their adjacent words are one.
        position -= continues and bool(texts) and position > 0
        for number, (_, retrieved) in enumerate(texts, position):
            if retrieved:
                words.append(retrieved._replace(position=number))
        position += len(texts)
        continues = not piece.after
    return words


def _words(
    engine: RetrievalEngine, pipeline: TextPipeline, piece: Piece, hypothesis: Hypothesis
) -> list[tuple[str, RetrievedWord | None]]:
    """Return the words of the translation of a piece, with what retrieval did to each."""
    pairs, opening = hypothesis.judged.retrieved, len(pipeline.tokenizer.target_opening)
    support = None
    if pairs:
        (ids,) = pipeline.inputs([piece])
        support = support_of(engine, ids, hypothesis.with_end, pairs)
    words: list[tuple[str, RetrievedWord | None]] = []
    for text, start, end in word_spans(pipeline.tokenizer.target_labels(hypothesis.tokens[opening:])):
        retrieved = None
        if support:
            span = slice(opening + start, opening + end)
            shares = [sum(column) / (end - start) for column in zip(*support.shares[span], strict=True)]
            best, changed = max(range(len(pairs)), key=shares.__getitem__), any(support.changed[span])
            if shares[best] >= SHOWN or (changed and shares[best] > 0):
                retrieved = RetrievedWord(text, 0, shares[best], changed, *pairs[best][:2])
        # A placeholder may stand for several words.
        for word in pipeline.written(piece, text).split():
            words.append((word, retrieved and retrieved._replace(word=word)))
    return words


@torch.inference_mode()
def support_of(engine: RetrievalEngine, source: Sequence[int], target: Sequence[int], pairs: Sequence[Pair]) -> Support:
    """Return what pairs add to the tokens of a target by forced decoding; both sides have their end tokens."""
    retrieving, device = engine.model, engine.torch_engine.device
    datastore = engine.datastore([pairs])
    if datastore is None:
        return Support([[0.0] * len(pairs)] * len(target), [False] * len(target))
    ids = torch.tensor([list(target)], device=device)
    with reading_queries(retrieving.point) as queries:
        memory = retrieving.model.encode(torch.tensor([list(source)], device=device))
        features = forced_features(retrieving.model, memory, ids)[0]  # [T, D]
    first = torch.zeros_like(ids[0])
    shares = retrieving.shares(queries[-1][0] if queries else features, first, datastore)  # [T, n]
    logits = retrieving.model.output(features)
    log_probs = retrieving.mixture.log_probs(logits, shares, datastore.tokens[first]).log_softmax(-1)
    matching = shares * (datastore.tokens == ids[0, :, None])  # of the keys whose token was written
    by_pair = shares.new_zeros(len(shares), len(pairs)).index_add_(1, datastore.pair[0], matching)
    changed = logits.argmax(-1) != ids[0]
    return Support((by_pair / log_probs.gather(1, ids[0, :, None]).exp()).tolist(), changed.tolist())
