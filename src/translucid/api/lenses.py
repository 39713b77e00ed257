"""Lenses of translators and captioners: what each layer predicts, and what is written from each encoder layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from translucid.api.translation import call_options
from translucid.data.text_pipeline import EncodedPair
from translucid.ground.errors import UserError
from translucid.inspection.lens import DecoderLens, Lens, read_lens, reading_layer, state_points

if TYPE_CHECKING:
    from translucid.api.captioner import Captioner
    from translucid.api.translation import Translation
    from translucid.api.translator import Translator
    from translucid.data.images.pixels import Picture
    from translucid.decoding.decoding_options import DecodingOptions


def lens(
    translator: Translator,
    source: str,
    target: str | None = None,
    *,
    tuned: bool | None = None,
    before: Sequence[Sequence[int]] = (),
) -> list[Lens]:
    """Return what each decoder layer predicts; see `Translator.lens`."""
    tuned_lens = None if tuned is False else translator.tuned_lens
    if tuned and tuned_lens is None:
        raise UserError("the run has no tuned lens", file=translator.run, fix="Train one with translucid tune --lens.")
    pairs, contexts = [], []
    if target is None:
        translation = _translate_after(translator, source, before)
        for piece, hypothesis in translation.parts:
            pairs.append(EncodedPair(piece.ids, hypothesis.with_end, piece.masked))
        contexts = translation.contexts
    else:
        pairs = translator.pipeline.pairs([(source, target)])
        translator.refuse_too_long(pairs)
        contexts = [translator.pipeline.joined(before, len(pairs[0].source))]
    lenses = []
    for pair, context in zip(pairs, contexts, strict=True):
        ids = torch.tensor([[*context, *pair.source]], device=translator.device)
        lenses.append(read_lens(translator.model, translator.tokenizer, ids, pair.target, pair.masked, tuned_lens))
    return lenses


def decoder_lens(
    translator: Translator,
    text: str,
    options: DecodingOptions | None = None,
    *,
    split: bool = True,
    before: Sequence[Sequence[int]] = (),
    **changes: Any,
) -> DecoderLens:
    """Return what the decoder writes from each layer of the encoder; see `Translator.decoder_lens`."""
    model = translator.model
    # Other engines have no attention points, which `reading_layer` needs.
    torch_translator = replace(translator, engine=translator.torch_engine)
    layers = list(state_points(model, "encoder"))
    options, first = call_options(translator.configuration, options, changes)
    translations = []
    for layer in layers:
        with reading_layer(model, layer):
            translations.append(_translate_after(torch_translator, text, before, options, first, split=split).text)
    return DecoderLens(text, layers, translations)


def _translate_after(
    translator: Translator,
    text: str,
    before: Sequence[Sequence[int]],
    options: DecodingOptions | None = None,
    first: int | None = None,
    *,
    split: bool = True,
) -> Translation:
    """Translate a text after other sentences."""
    (pieces,) = translator.pipeline.pieces([text], split=split)
    sentences = tuple(map(tuple, before))
    pieces = [replace(piece, before=(*sentences, *piece.before)) for piece in pieces]
    return next(translator.translate_pieces([text], [pieces], options, first=first))


def caption_lens(captioner: Captioner, picture: Picture, text: str | None = None) -> Lens:
    """Return what each decoder layer predicts for a caption; see `Captioner.lens`."""
    if text is None:
        tokens = captioner.caption(picture).nbest[0].hypothesis.tokens
    else:
        (tokens,) = captioner.tokenizer.encode_target([text])
    model = captioner.model
    return read_lens(model, captioner.tokenizer, captioner.source(picture), [*tokens, model.eos])


def caption_decoder_lens(captioner: Captioner, picture: Picture, options: DecodingOptions | None = None) -> DecoderLens:
    """Return what the decoder writes from each layer of the encoder; see `Captioner.decoder_lens`."""
    layers = list(state_points(captioner.model, "encoder"))
    captions = []
    for layer in layers:
        with reading_layer(captioner.model, layer):
            captions.append(captioner.caption(picture, options).text)
    return DecoderLens(picture.name, layers, captions)


def layers_record(
    translator: Translator, source: str, target: str | None = None, before: Sequence[Sequence[int]] = ()
) -> dict[str, Any]:
    """Return both lenses of a text as plain values, for pages.

    `pieces` has for each piece of the text what `Lens.to_json` returns, `encoder` what `DecoderLens.to_json` returns.
    """
    lenses = [piece_lens.to_json() for piece_lens in lens(translator, source, target, before=before)]
    return {"pieces": lenses, "encoder": decoder_lens(translator, source, before=before).to_json()}
