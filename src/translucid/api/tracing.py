"""The tree of a beam search by a translator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from translucid.decoding.trace import BeamTrace
from translucid.ground.errors import UserError

if TYPE_CHECKING:
    from translucid.api.translator import Translator


def trace(translator: Translator, text: str, beam: int, before: Sequence[Sequence[int]]) -> BeamTrace:
    """Translate a text in one piece and return the tree of its beam search; see `Translator.trace`."""
    (pieces,) = translator.pipeline.pieces([text], split=False)
    if len(pieces) != 1:
        raise UserError("a beam search is drawn for one sentence only", fix="Give a text that fits in one piece.")
    options = translator.configuration.decoding.model_copy(update={"beam": beam, "nbest": 1, "sample": False})
    ids = [*translator.pipeline.joined(before, len(pieces[0].ids)), *pieces[0].ids]
    beam_trace, best = translator.torch_engine.traced(ids, options)
    masked = pieces[0].masked
    beam_trace.finish(best.with_end, lambda ids: masked.unmask_pieces(translator.tokenizer.target_pieces(ids)))
    return beam_trace
