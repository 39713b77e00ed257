"""Captions: what a model writes about an image, where it looked for each word, how else it could go on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from fastapi import APIRouter, Request
from fastapi.responses import Response

from translucid.decoding.limits import length_penalty
from translucid.ground.cancellation import between_steps
from translucid.inspection.attention_result import AttentionResult
from translucid.inspection.explain.image_case import image_case
from translucid.inspection.explain.shown import why_lit_record
from translucid.inspection.records import beam_record
from translucid.inspection.words import word_spans
from translucid.serving import schemas
from translucid.serving.edge.failures import ApiError
from translucid.serving.edge.incoming import flag_field, method_field, number_field, text_field
from translucid.serving.edge.rendering import rendered
from translucid.serving.queue.request_context import RequestContext
from translucid.serving.routes.inspection import CHOICES, LOOKED, WIDEST

if TYPE_CHECKING:
    from translucid.api.caption import AlternativeCaption
    from translucid.api.captioner import Captioner
    from translucid.data.images.pixels import Picture
    from translucid.decoding.decoding_options import DecodingOptions

BEAM = 10
"""That may be asked for, if the run itself has no wider one."""


class Wanted(NamedTuple):
    """What is asked about an image."""

    options: DecodingOptions
    prefix: str
    """Words that the caption begins with."""
    ways: int
    """Ways to go on after them."""
    caption: str
    """One to look at, so that none is to be written."""
    maps: bool
    """Whether each layer and head is wanted too."""
    tree: bool
    """Whether the tree of the beam search is."""
    method: str
    """To explain it by, if it is to be explained."""


@dataclass(frozen=True)
class CaptionRoutes:
    """The handler; `routes` binds it to its path."""

    context: RequestContext

    def routes(self) -> APIRouter:
        """Return the routes."""
        routes = APIRouter(tags=["images"], responses=schemas.ERRORS)
        routes.post("/caption", openapi_extra=schemas.CAPTION)(self.caption)
        return routes

    async def caption(self, request: Request) -> Response:
        """Write a caption for an image, and return for each word where in the image the model looked.

        The image is a form's `file`, or the whole body. It is never written to a disk.
        """
        self.context.catalogue.captioner()  # before megabytes are read
        fields, image, task = await self.context.image(request)
        served = self.context.catalogue.captioner(text_field(fields, "model", "") or None)
        wanted = self._wanted(fields, served.model.configuration.decoding)

        def answer() -> Response:
            picture = served.model.picture(image, "image")
            between_steps()
            (seen,) = served.model.seen([picture])
            between_steps()
            return rendered({"model": served.name, **_answer(served.model, seen, wanted)})

        return await task.result(request, self.context.worker_pool.submit(task, answer))

    def _wanted(self, fields: dict[str, Any], own: DecodingOptions) -> Wanted:
        """Read what is asked; `own` is how the run itself searches.

        Raises:
            ApiError: 400, something is too much, or something else.
        """
        nbest = number_field(fields, "nbest", 1, self.context.options.alternatives + 1, least=1)
        beam = number_field(fields, "beam", own.beam, max(BEAM, own.beam), least=1)
        ways = number_field(fields, "ways", 0, CHOICES)
        prefix, caption = (text_field(fields, name, "").strip() for name in ("prefix", "caption"))
        if max(len(prefix), len(caption)) > LOOKED:
            raise ApiError(400, f"Invalid request: prefix or caption exceeds the limit of {LOOKED} characters")
        options = own.model_copy(update={"nbest": nbest, "beam": max(beam, nbest)})
        maps, tree = flag_field(fields, "maps"), flag_field(fields, "tree")
        method = method_field(fields, "explain", images=True)
        return Wanted(options, prefix, ways, caption, maps, tree, method)


def _answer(captioner: Captioner, picture: Picture, wanted: Wanted) -> dict[str, Any]:
    """Return a caption with its words and all else that is wanted."""
    alpha = wanted.options.length_penalty
    prefix = _ids(captioner, wanted.prefix, "prefix")
    given = _ids(captioner, wanted.caption, "caption")
    ways: list[AlternativeCaption] = []
    if wanted.ways or prefix:
        count = max(wanted.ways, wanted.options.nbest if prefix else 1)
        ways = captioner.continued(picture, wanted.prefix, count, wanted.options)
    if given:
        found = []
    elif prefix:
        found = ways[: wanted.options.nbest]
    else:
        found = captioner.caption(picture, wanted.options).nbest
    between_steps()
    looked = captioner.look(picture, found[0].hypothesis.tokens if found else given)
    answer = {
        "caption": found[0].text if found else captioner.tokenizer.decode(given),
        "score": _score(looked.inspected.log_probs, alpha),
        "alternatives": [
            {"caption": one.text, "score": _score(one.hypothesis.token_log_probabilities, alpha)} for one in found[1:]
        ],
        "words": _words(looked),
        "grid": list(looked.grid) if looked.looks else None,
        "heads": len(looked.ways()) if looked.looks else 0,
        "size": captioner.size,
    }
    if wanted.maps:
        answer["maps"] = _maps(looked)
    if wanted.tree:
        between_steps()
        answer["tree"] = _tree(captioner, picture)
    if wanted.method and looked.words:
        between_steps()
        model, text = (captioner.model, captioner.tokenizer), " ".join(looked.words)
        case = image_case(wanted.method, *model, picture.pixels, text, captioner.grid)
        answer["explanation"] = why_lit_record(case, wanted.method)
    if wanted.ways:
        answer["ways"] = [_way(captioner, one, len(prefix)) for one in ways[: wanted.ways]]
    return answer


def _ids(captioner: Captioner, text: str, name: str) -> list[int]:
    """Return the tokens of words that the model is to write.

    Raises:
        ApiError: 400, it can't.
    """
    ids = captioner.tokenizer.encode_target([text])[0] if text else []
    if captioner.model.special.unknown in ids:
        raise ApiError(400, f"Invalid request: {name} has characters that this model does not know")
    return ids


def _words(looked: AttentionResult) -> list[dict[str, Any]]:
    """Return each word with its probability, and where the model looked for it."""
    rows: list[dict[str, Any]] = [
        {"word": word, "probability": _probability(log_prob), "pieces": after - first}
        for (word, first, after), log_prob in zip(looked.inspected.target_spans, looked.log_probs, strict=False)
    ]
    if looked.looks:
        for row, weights in zip(rows, _rounded(looked), strict=True):
            row["weights"] = weights
    return rows


def _maps(looked: AttentionResult) -> list[dict[str, Any]]:
    """Return where the model looked for each word with all layers and heads, with each layer, with each head."""
    ways = looked.ways().items() if looked.looks else ()
    return [
        {"name": name, "layer": layer, "head": head, "weights": _rounded(looked, layer, head)}
        for name, (layer, head) in ways
    ]


def _rounded(looked: AttentionResult, layer: int | None = None, head: int | None = None) -> list[list[list[float]]]:
    weights = looked.weights(layer, head).tolist()
    return [[[round(weight, 4) for weight in line] for line in word] for word in weights]


def _tree(captioner: Captioner, picture: Picture) -> dict[str, Any]:
    """Return the tree of the beam search, see `beam_record`; of the run's own beam if that is not too wide."""
    options = captioner.configuration.decoding
    beam = min(options.beam, WIDEST)
    record = beam_record(captioner.trace(picture, beam), beam, captioner.tokenizer, options.length_penalty)
    return record | {"own": options.beam}


def _way(captioner: Captioner, one: AlternativeCaption, begun: int) -> dict[str, Any]:
    """Return a way to go on after so many tokens."""
    pieces = captioner.tokenizer.target_pieces(one.hypothesis.tokens)
    after = word_spans(pieces[begun:])
    probability = _probability(one.hypothesis.token_log_probabilities[begun])
    return {"next": after[0][0] if after else "", "probability": probability, "caption": one.text}


def _probability(log_prob: float) -> float:
    return round(min(1.0, math.exp(log_prob)), 6)


def _score(log_probs: Sequence[float], alpha: float) -> float:
    """Return the log-probability after the length penalty, of tokens with the end token."""
    return round(sum(log_probs) / length_penalty(len(log_probs), alpha), 4)
