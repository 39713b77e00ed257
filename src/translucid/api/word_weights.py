"""The attention between words from which alignments are read, by PyTorch or, without it, by NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from translucid.evaluation.alignment_error import AlignmentOptions
from translucid.inspection.word_weights import Floats, WordWeights
from translucid.inspection.words import word_spans
from translucid.kernels.pytorch import has_pytorch

if TYPE_CHECKING:
    from translucid.api.examiner import Examiner
    from translucid.data.placeholders import Masked
    from translucid.data.tokenizing.tokenizer import Tokenizer


def word_weights(
    examiner: Examiner,
    pairs: Sequence[tuple[list[int], list[int]]],
    masked: Sequence[Masked] = (),
    before: Sequence[list[int]] = (),
    options: AlignmentOptions | None = None,
) -> list[WordWeights]:
    """Return the weights between the words of each pair, by forced decoding.

    Args:
        examiner: a translator.
        pairs: ids of sources and targets, end tokens included.
        masked: the masked sources, for the text of their words.
        before: the ids that the model reads before each source (`TextPipeline.context_ids`).
        options: how to read the attention; as the run says by default.

    Raises:
        UserError: without PyTorch, a text has more tokens than positions, or the model is not a Transformer.
    """
    options = options or examiner.configuration.alignment
    if has_pytorch():
        return _by_pytorch(examiner, pairs, masked, before, options)
    loaded = examiner.loaded
    transformer, layer = loaded.numpy_transformer, None
    if options.learned:
        layer = loaded.alignment_arrays(examiner.languages)
    results = []
    for i, (source, target) in enumerate(pairs):
        context = before[i] if before else []
        pair = transformer.forced([*context, *source], target)
        weights = transformer.weights(pair, options) if layer is None else transformer.aligned(pair, target, layer)
        masked_source = masked[i] if masked else None
        results.append(_merge_pieces(examiner.tokenizer, source, target, weights[:, len(context) :], masked_source))
    return results


def _by_pytorch(
    examiner: Examiner,
    pairs: Sequence[tuple[list[int], list[int]]],
    masked: Sequence[Masked],
    before: Sequence[list[int]],
    options: AlignmentOptions,
) -> list[WordWeights]:
    from translucid.inspection.alignment import weights_of
    from translucid.inspection.forced_decoding import forced_decoding

    layer = examiner.alignment_layer if options.learned else None
    inspected = forced_decoding(
        examiner.model,
        examiner.tokenizer,
        pairs,
        examiner.device,
        layer=layer,
        masked=masked,
        with_contributions=options.reads_contributions(layer is not None) and examiner.has_contributions,
        before=before,
    )
    return [weights_of(result, options) for result in inspected]


def _merge_pieces(
    tokenizer: Tokenizer, source: list[int], target: list[int], weights: Floats, masked: Masked | None
) -> WordWeights:
    """Merge weights [T, S] between pieces: summed over a source word's pieces, averaged over a target word's."""
    opening = len(tokenizer.source_opening), len(tokenizer.target_opening)
    source_pieces, target_pieces = tokenizer.source_pieces(source), tokenizer.target_pieces(target)
    if masked is not None:
        source_pieces = masked.unmask_pieces(tokenizer.source_pieces(source, masked.text or None))
        target_pieces = masked.unmask_pieces(target_pieces)
    columns = word_spans(source_pieces, opening[0])[opening[0] : -1]
    rows = word_spans(target_pieces, opening[1])[opening[1] : -1]
    merged = np.zeros((len(rows), len(columns)), np.float32)
    for row, (_, row_start, row_end) in enumerate(rows):
        for column, (_, start, end) in enumerate(columns):
            merged[row, column] = weights[row_start:row_end, start:end].sum(1).mean()
    return WordWeights(columns, rows, merged)
