"""The API of captioners: captions of images, the attention of each word, and continuations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from fastapi import Request
from fastapi.responses import Response

from bitext.cancellation import between_steps
from translucid.captions.image_cases import image_case, saliency_record
from translucid.captions.kinds import PACKAGES
from translucid.captions.saliency_overlay import AttentionResult
from translucid.decoding.decoding_options import length_penalty
from translucid.inspection.inspected import plain, rounded_probability
from translucid.serving.edge.failures import ApiError
from translucid.serving.edge.rendering import rendered
from translucid.serving.requests import (
    Bodies,
    ContrastFields,
    Handlers,
    choice_field,
    content_type,
    contrast_fields,
    flag_field,
    form_of,
    method_field,
    number_field,
    text_field,
)
from translucid.serving.routes.inspection import CHOICES, MAX_INSPECTED, beam_of, beam_tree, first_word, pdf_response
from translucid.serving.server_options import ServerOptions

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from translucid.captions.captioner import AlternativeCaption, Captioner
    from translucid.captions.pixels import Picture
    from translucid.decoding.decoding_options import DecodingOptions

IMAGE_VIEWS = ("map", "heads", "beam", "why")
"""The figures of an image: saliency by one map, by all heads, the beam search tree, saliency by an explanation."""
BEAM = 10
"""The widest beam of a request, unless the run itself has a wider one."""


class CaptionRequest(NamedTuple):
    """The fields of a request about an image."""

    options: DecodingOptions
    prefix: str
    """The words with which the caption begins."""
    continuations: int
    """The number of continuations of the prefix."""
    caption: str
    """A caption to inspect in place of the model's own."""
    maps: bool
    """Whether the attention of each layer and head is included."""
    tree: bool
    """Whether the tree of the beam search is included."""
    method: str
    """The method of an explanation; "" for none."""
    contrasted: ContrastFields
    """The word that is contrasted with another one."""


class CaptionRoutes(Handlers):
    """The handler; `routing.py` binds it to its path."""

    async def caption(self, request: Request) -> Response:
        """Write a caption for an image, and return the attention of each word over the image.

        The image is a form's `file`, or the whole body. It is never written to a disk.
        """
        self.context.catalog.other("images")  # refuse before megabytes are read
        fields, image = await read_image(request, self.context.bodies, self.context.options)
        task = self.context.task(request, fields)
        served = self.context.catalog.other("images", text_field(fields, "model", "") or None)
        caption_request = self._parsed(fields, served.model.configuration.decoding)

        def answer() -> Response:
            picture = served.model.picture(image, "image")
            between_steps()
            (encoded,) = served.model.seen([picture])
            between_steps()
            return rendered({"model": served.name, **_answer(served.model, encoded, caption_request)})

        return await task.run(answer)

    async def picture(self, request: Request) -> Response:
        """Draw a figure of an image and its caption."""
        self.context.catalog.other("images")  # refuse before megabytes are read
        fields, image = await read_image(request, self.context.bodies, self.context.options)
        task = self.context.task(request, fields)
        captioner = self.context.catalog.other("images", text_field(fields, "model", "") or None).model
        caption = text_field(fields, "caption").strip()
        view = choice_field(fields, "view", IMAGE_VIEWS)
        if not caption or len(caption) > MAX_INSPECTED:
            raise ApiError(400, f"Invalid request: there is no caption, or it has over {MAX_INSPECTED} characters")
        map_indices: dict[str, int] = {}
        for name in ("layer", "head"):
            if name in fields:
                map_indices[name] = number_field(fields, name, 0, 999)
        method = method_field(fields, "method", "erasure", further=PACKAGES)
        contrasted = contrast_fields(fields, method)

        def figure() -> Figure:
            if view == "why":
                return _draw_explanation(captioner, captioner.picture(image, "image"), caption, method, contrasted)
            return _draw_caption(captioner, captioner.picture(image, "image"), caption, view, map_indices)

        return await pdf_response(task, figure)

    def _parsed(self, fields: dict[str, Any], decoding: DecodingOptions) -> CaptionRequest:
        """Parse the fields of a request; `decoding`: the decoding options of the run.

        Raises:
            ApiError: 400, a field is invalid or out of range.
        """
        nbest = number_field(fields, "nbest", 1, self.context.options.alternatives + 1, minimum=1)
        beam = number_field(fields, "beam", decoding.beam, max(BEAM, decoding.beam), minimum=1)
        continuations = number_field(fields, "ways", 0, CHOICES)
        prefix, caption = text_field(fields, "prefix", "").strip(), text_field(fields, "caption", "").strip()
        if max(len(prefix), len(caption)) > MAX_INSPECTED:
            raise ApiError(400, f"Invalid request: prefix or caption exceeds the limit of {MAX_INSPECTED} characters")
        options = decoding.model_copy(update={"nbest": nbest, "beam": max(beam, nbest)})
        maps, tree = flag_field(fields, "maps"), flag_field(fields, "tree")
        method = method_field(fields, "explain", further=PACKAGES)
        contrasted = contrast_fields(fields, method)
        return CaptionRequest(options, prefix, continuations, caption, maps, tree, method, contrasted)


def _answer(captioner: Captioner, picture: Picture, request: CaptionRequest) -> dict[str, Any]:
    """Return a caption with its words and everything else that is requested."""
    alpha = request.options.length_penalty
    prefix = _ids(captioner, request.prefix, "prefix")
    caption_ids = _ids(captioner, request.caption, "caption")
    continuations: list[AlternativeCaption] = []
    if request.continuations or prefix:
        count = max(request.continuations, request.options.nbest) if prefix else request.continuations
        continuations = captioner.continued(picture, request.prefix, count, request.options)
    alternatives: Sequence[AlternativeCaption] = []
    if caption_ids:
        text, tokens = captioner.tokenizer.decode(caption_ids), caption_ids
    else:
        if prefix:
            best, *alternatives = continuations[: request.options.nbest]
        else:
            best, *alternatives = captioner.caption(picture, request.options).nbest
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
    if request.method and attention.words:
        between_steps()
        model, text = (captioner.model, captioner.tokenizer), " ".join(attention.words)
        case = image_case(request.method, *model, picture.pixels, text, captioner.grid)
        answer["explanation"] = saliency_record(case, request.method, request.contrasted.of(case))
    if request.continuations:
        answer["ways"] = [
            _continuation(captioner, caption, len(prefix)) for caption in continuations[: request.continuations]
        ]
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


async def read_image(request: Request, bodies: Bodies, options: ServerOptions) -> tuple[dict[str, Any], bytes]:
    """Return the fields of a request, and its image: a form's `file`, or the whole body, with fields in the query.

    Raises:
        ApiError: 400, there is no image; 413, it is too large; 415, the content type is neither a form nor an image.
    """
    kind, max_bytes = content_type(request), options.image_bytes
    fields: dict[str, Any] = dict(request.query_params)
    if kind == "multipart/form-data":
        form_fields, file = await form_of(request, bodies, max_bytes + 20_000)
        fields |= form_fields
        image = b"" if file is None else await file.read()
    elif kind.startswith("image/"):
        image = await bodies.read(request, max_bytes)
    else:
        description = kind[:50] or "nothing that says what it is"
        raise ApiError(415, f"Invalid request: send a form with a file, or an image as image/jpeg, not {description}")
    if not image:
        raise ApiError(400, "Invalid request: missing file parameter, an image")
    if len(image) > max_bytes:
        raise ApiError(413, f"Invalid request: more than {max_bytes} bytes")
    return fields, image


def _draw_caption(
    captioner: Captioner, picture: Picture, caption: str, view: str, map_indices: dict[str, int]
) -> Figure:
    from translucid.captions.saliency_overlay import SaliencyOverlay, draw_saliency, draw_saliency_rows, sections_of
    from translucid.inspection.plots import draw_beam

    if view == "beam":
        return draw_beam(captioner.trace(picture, beam_of(captioner)))
    attention = captioner.inspect(picture, caption)
    if view == "heads":
        return draw_saliency_rows(sections_of(attention))
    return draw_saliency(SaliencyOverlay.of(attention, map_indices.get("layer"), map_indices.get("head")))


def _draw_explanation(
    captioner: Captioner, picture: Picture, caption: str, method: str, fields: ContrastFields
) -> Figure:
    from translucid.captions.image_cases import overlay_of
    from translucid.captions.saliency_overlay import draw_saliency
    from translucid.inspection.explain import explain

    case = image_case(method, captioner.model, captioner.tokenizer, picture.pixels, caption, captioner.grid)
    contrasted = fields.of(case)
    return draw_saliency(overlay_of(case, explain(contrasted or case, method, samples=200), contrasted))
