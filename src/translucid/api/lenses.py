"""Lenses of translators and captioners: what each layer predicts, and what is written from each encoder layer.

A tuned lens is trained on sentence pairs and saved in the run folder. Pages show the lenses of a translation as plain
values.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from bitext.languages import Languages
from translucid.api.confidence_fitting import pairs_to_fit
from translucid.api.translation import call_options
from translucid.api.translator import Translator
from translucid.data.text_pipeline import EncodedPair
from translucid.engines.run_files import save_tuned_lens
from translucid.ground.console import Console, progress_bar
from translucid.ground.errors import UserError
from translucid.inspection.lens import (
    UPDATES,
    DecoderLens,
    Lens,
    divergences,
    learn_tuned_lens,
    read_lens,
    reading_layer,
    state_points,
)
from translucid.runs.run_folder import RunFolder

if TYPE_CHECKING:
    from translucid.api.translation import Translation
    from translucid.api.translator import Translator
    from translucid.captions.captioner import Captioner
    from translucid.captions.pixels import Picture
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
        raise UserError("the run has no tuned lens", file=translator.run, fix="Train one with `fit_lens`.")
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


FEWEST = 20
"""The least number of pairs for training and evaluation."""
HELD_OUT = 10
"""One pair in so many is held out."""
SENTENCES = 5000
"""The largest number of pairs."""


class FittedLens(NamedTuple):
    """The result of training a tuned lens."""

    pairs: int
    """The number of training pairs."""
    held_out: int
    """The number of pairs that were held out for evaluation."""
    layers: list[str]
    """The names of the layers but the last."""
    before: list[float]
    """The mean of KL(p_last || p_l) for each layer with the logit lens, on held-out pairs, in nats."""
    after: list[float]
    """The same with the tuned lens."""


def fit_lens(
    run: Path,
    *,
    console: Console,
    valid: Sequence[str] = (),
    sentences: int = SENTENCES,
    languages: Languages = (None, None),
    device: str = "auto",
) -> FittedLens:
    """Train a tuned lens for a run, and save it.

    Args:
        run: the run folder.
        console: shows the progress.
        valid: files of pairs; the run's own validation pairs by default.
        sentences: the largest number of pairs.
        languages: the codes of source and target, for a multilingual model; as the run says by default.
        device: auto, cpu, cuda, cuda:1 or mps.

    Raises:
        UserError: the run or a file is damaged, the model is no Transformer, or there are too few pairs.
    """
    t = Translator.load(run, device, "torch", source=languages[0], target=languages[1])
    *layers, _ = state_points(t.model, "decoder")
    folder = RunFolder(run)
    texts = pairs_to_fit(folder, t, valid)[:sentences]
    usable = [pair.ids for pair in t.pipeline.pairs(texts) if pair.longest <= t.longest]
    if len(usable) < FEWEST:
        raise UserError(f"there are {len(usable)} pairs to learn from", fix=f"Give {FEWEST} or more with `valid`.")
    # Those held out are spread over the files, whose parts may come from different texts.
    held_out = usable[::HELD_OUT]
    training_pairs = [pair for i, pair in enumerate(usable) if i % HELD_OUT]
    before = divergences(t.model, held_out, None, t.device)
    with progress_bar(console, "training the tuned lens", UPDATES) as advance:
        lens = learn_tuned_lens(t.model, training_pairs, t.device, advance)
    after = divergences(t.model, held_out, lens, t.device)
    save_tuned_lens(folder, lens, t.configuration.data.chosen_languages)
    return FittedLens(len(training_pairs), len(held_out), layers, before, after)


def page_details(
    translator: Translator, source: str, target: str, before: Sequence[Sequence[int]] = ()
) -> dict[str, Any]:
    """Return those details of a sentence and its translation that apply to the model, as `html.page` takes them.

    `before` are the sentences before it, for a run with document context (`Piece.before`).
    """
    details: dict[str, Any] = {}
    with suppress(UserError):  # recurrent models have no layers that a lens applies to
        details["layers"] = layers_details(translator, source, target, before)
    return details


def layers_details(
    translator: Translator, source: str, target: str, before: Sequence[Sequence[int]] = ()
) -> dict[str, Any]:
    """Return the predictions of each layer for a sentence and its translation.

    Raises:
        UserError: the model is no Transformer, or a text is too long.
    """
    record = layers_record(translator, source, target, before)
    (lens,) = record["pieces"]
    return {**lens, "encoder": record["encoder"]}
