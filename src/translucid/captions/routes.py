"""The API of captioners: captions of images, the attention of each word, and continuations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from fastapi import Request
from fastapi.responses import Response

from bitext.cancellation import between_steps
from translucid.captions.image_cases import image_case, saliency_record
from translucid.captions.saliency_overlay import AttentionResult
from translucid.decoding.decoding_options import length_penalty
from translucid.inspection.inspected import plain, rounded_probability
from translucid.serving.edge.failures import ApiError
from translucid.serving.edge.incoming import (
    ContrastFields,
    contrast_fields,
    flag_field,
    method_field,
    number_field,
    text_field,
)
from translucid.serving.edge.rendering import rendered
from translucid.serving.queue.request_context import Handlers
from translucid.serving.routes.inspection import CHOICES, MAX_INSPECTED, beam_tree, first_word

if TYPE_CHECKING:
    from translucid.captions.captioner import AlternativeCaption, Captioner
    from translucid.captions.pixels import Picture
    from translucid.decoding.decoding_options import DecodingOptions

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
        self.context.catalog.captioner()  # refuse before megabytes are read
        fields, image, task = await self.context.image(request)
        served = self.context.catalog.captioner(text_field(fields, "model", "") or None)
        caption_request = self._parsed(fields, served.model.configuration.decoding)

        def answer() -> Response:
            picture = served.model.picture(image, "image")
            between_steps()
            (encoded,) = served.model.seen([picture])
            between_steps()
            return rendered({"model": served.name, **_answer(served.model, encoded, caption_request)})

        return await task.run(answer)

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
        method = method_field(fields, "explain", images=True)
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
