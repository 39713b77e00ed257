"""The API of captioners: captions of images, the attention of each word, and continuations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fastapi.responses import Response

from bitext.cancellation import between_steps
from translucid.captions.fields import CaptionFields, CaptionPictureFields
from translucid.captions.image_cases import image_case, saliency_record
from translucid.captions.saliency_overlay import AttentionResult
from translucid.decoding.decoding_options import length_penalty
from translucid.inspection.inspected import plain, rounded_probability
from translucid.serving.edge.failures import ApiError
from translucid.serving.edge.rendering import rendered
from translucid.serving.requests import Call, Handlers, at_most
from translucid.serving.routes.inspection import beam_of, beam_tree, first_word, pdf_response

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from translucid.captions.captioner import AlternativeCaption, Captioner
    from translucid.captions.pixels import Picture
    from translucid.decoding.decoding_options import DecodingOptions

BEAM = 10
"""The widest beam of a request, unless the run itself has a wider one."""


class CaptionRoutes(Handlers):
    """The handlers; `routing.py` binds them to their paths."""

    async def caption(self, call: Call[CaptionFields]) -> Response:
        """Write a caption for an image, and return the attention of each word over the image."""
        fields = call.fields
        served = self.context.catalog.other("images", fields.model or None)
        options = self._options(fields, served.model.configuration.decoding)

        def answer() -> Response:
            picture = served.model.picture(fields.file, "image")
            between_steps()
            (encoded,) = served.model.seen([picture])
            between_steps()
            return rendered({"model": served.name, **_answer(served.model, encoded, fields, options)})

        return await call.task.run(answer)

    def _options(self, fields: CaptionFields, decoding: DecodingOptions) -> DecodingOptions:
        """Return the decoding options of a run with those of a request.

        Raises:
            ApiError: 400, a number is too large.
        """
        nbest = at_most("nbest", fields.nbest, self.context.options.alternatives + 1)
        beam = at_most("beam", fields.beam or decoding.beam, max(BEAM, decoding.beam))
        return decoding.model_copy(update={"nbest": nbest, "beam": max(beam, nbest)})

    async def picture(self, call: Call[CaptionPictureFields]) -> Response:
        """Draw a figure of an image and its caption."""
        fields = call.fields
        captioner = self.context.catalog.other("images", fields.model or None).model
        draw = _draw_explanation if fields.view == "why" else _draw_caption
        return await pdf_response(call.task, lambda: draw(captioner, captioner.picture(fields.file, "image"), fields))


def _answer(captioner: Captioner, picture: Picture, request: CaptionFields, options: DecodingOptions) -> dict[str, Any]:
    """Return a caption with its words and everything else that is requested."""
    alpha = options.length_penalty
    prefix = _ids(captioner, request.prefix, "prefix")
    caption_ids = _ids(captioner, request.caption, "caption")
    continuations: list[AlternativeCaption] = []
    if request.ways or prefix:
        count = max(request.ways, options.nbest) if prefix else request.ways
        continuations = captioner.continued(picture, request.prefix, count, options)
    alternatives: Sequence[AlternativeCaption] = []
    if caption_ids:
        text, tokens = captioner.tokenizer.decode(caption_ids), caption_ids
    else:
        if prefix:
            best, *alternatives = continuations[: options.nbest]
        else:
            best, *alternatives = captioner.caption(picture, options).nbest
        text, tokens = best.text, best.hypothesis.tokens
    between_steps()
    attention = captioner.look(picture, tokens)
    answer: dict[str, Any] = {
        "caption": text,
        "score": _score(attention.inspected.log_probs, alpha),
        "alternatives": [],
    }
    for alternative in alternatives:
        score = _score(alternative.hypothesis.token_log_probabilities, alpha)
        answer["alternatives"].append({"caption": alternative.text, "score": score})
    answer |= {"words": _words(attention), "grid": None, "heads": 0, "size": captioner.size}
    if attention.has_attention:
        answer |= {"grid": list(attention.grid), "heads": len(attention.layers_and_heads())}
    if request.maps:
        answer["maps"] = _maps(attention)
    if request.tree:
        between_steps()
        answer["tree"] = beam_tree(captioner, captioner.trace, picture)
    if request.explain and attention.words:
        between_steps()
        model, text = (captioner.model, captioner.tokenizer), " ".join(attention.words)
        case = image_case(request.explain, *model, picture.pixels, text, captioner.grid)
        answer["explanation"] = saliency_record(case, request.explain, request.contrast(case))
    if request.ways:
        answer["ways"] = [_continuation(captioner, caption, len(prefix)) for caption in continuations[: request.ways]]
    return answer


def _ids(captioner: Captioner, text: str, name: str) -> list[int]:
    """Return the token ids of words of a caption.

    Raises:
        ApiError: 400, the words have characters that are not in the vocabulary.
    """
    ids = captioner.tokenizer.encode_target([text])[0] if text else []
    if captioner.model.special.unknown in ids:
        raise ApiError(400, f"Invalid request: {name} has characters that this model does not know")
    return ids


def _words(attention: AttentionResult) -> list[dict[str, Any]]:
    """Return each word with its probability and its attention."""
    rows: list[dict[str, Any]] = []
    for (word, start, end), log_prob in zip(attention.inspected.target_spans[:-1], attention.log_probs, strict=True):
        rows.append({"word": word, "probability": rounded_probability(log_prob), "pieces": end - start})
    if attention.has_attention:
        for row, weights in zip(rows, plain(attention.weights(), 4), strict=True):
            row["weights"] = weights
    return rows


def _maps(attention: AttentionResult) -> list[dict[str, Any]]:
    """Return the attention of each word averaged over all layers and heads, of each layer, and of each head."""
    rows: list[dict[str, Any]] = []
    if attention.has_attention:
        for name, (layer, head) in attention.layers_and_heads().items():
            rows.append(
                {"name": name, "layer": layer, "head": head, "weights": plain(attention.weights(layer, head), 4)}
            )
    return rows


def _continuation(captioner: Captioner, caption: AlternativeCaption, prefix: int) -> dict[str, Any]:
    """Return a continuation of a prefix of this many tokens."""
    pieces = captioner.tokenizer.target_pieces(caption.hypothesis.tokens)
    probability = rounded_probability(caption.hypothesis.token_log_probabilities[prefix])
    return {"next": first_word(pieces[prefix:]), "probability": probability, "caption": caption.text}


def _score(log_probs: Sequence[float], alpha: float) -> float:
    """Return the log-probability of tokens, the end token included, after the length penalty."""
    return round(sum(log_probs) / length_penalty(len(log_probs), alpha), 4)


def _draw_caption(captioner: Captioner, picture: Picture, fields: CaptionPictureFields) -> Figure:
    from translucid.captions.saliency_overlay import SaliencyOverlay, draw_saliency, draw_saliency_rows, sections_of
    from translucid.inspection.plots import draw_beam

    if fields.view == "beam":
        return draw_beam(captioner.trace(picture, beam_of(captioner)))
    attention = captioner.inspect(picture, fields.caption)
    if fields.view == "heads":
        return draw_saliency_rows(sections_of(attention))
    return draw_saliency(SaliencyOverlay.of(attention, fields.layer, fields.head))


def _draw_explanation(captioner: Captioner, picture: Picture, fields: CaptionPictureFields) -> Figure:
    from translucid.captions.image_cases import overlay_of
    from translucid.captions.saliency_overlay import draw_saliency
    from translucid.inspection.explain import explain

    case = image_case(
        fields.method, captioner.model, captioner.tokenizer, picture.pixels, fields.caption, captioner.grid
    )
    contrasted = fields.contrast(case)
    return draw_saliency(overlay_of(case, explain(contrasted or case, fields.method, samples=200), contrasted))
