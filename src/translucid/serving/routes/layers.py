"""The API for what a model computes inside: the predictions of its layers, and what its states carry."""

from __future__ import annotations

from typing import Any, NamedTuple

from fastapi import Request
from fastapi.responses import Response

from translucid.api.page_details import layers_details
from translucid.api.patching import contrasting_sentence
from translucid.api.translator import Translator
from translucid.inspection.patching import Patching
from translucid.serving.edge.failures import ApiError
from translucid.serving.edge.incoming import MAX_WORD_LENGTH, are_texts, text_field
from translucid.serving.edge.rendering import rendered
from translucid.serving.queue.request_context import Handlers
from translucid.serving.routes.inspection import read_pair
from translucid.serving.routes.sentence_inspector import MAX_INSPECTED


class PatchFields(NamedTuple):
    """The fields of a request for activation patching."""

    other: str
    """The sentence OTHER, "" for one that the model offers; `q` is CLEAN."""
    words: tuple[str, str] | None
    """A word of the translation of CLEAN, and one in its place; None: the first difference of both translations."""

    def of(self, translator: Translator, source: str, target: str) -> Patching:
        """Patch OTHER by the states of `source`, whose translation is `target`."""
        other = self.other or contrasting_sentence(translator, source, target)
        return translator.patch(source, other, self.words, target=target)


def patch_fields(fields: dict[str, Any]) -> PatchFields:
    """Return the fields `other` and `words`.

    Raises:
        ApiError: 400, a field is invalid.
    """
    other = text_field(fields, "other", "", max_length=MAX_INSPECTED)
    words = fields.get("words")
    if words is None:
        return PatchFields(other, None)
    if not isinstance(words, list) or not are_texts(words) or len(words) != 2 or max(map(len, words)) > MAX_WORD_LENGTH:
        raise ApiError(400, f"Invalid request: words are not two texts of up to {MAX_WORD_LENGTH} characters")
    return PatchFields(other, (words[0].strip(), words[1].strip()))


class LayerRoutes(Handlers):
    """The handlers; `routing.py` binds them to their paths."""

    async def layers(self, request: Request) -> Response:
        """Return what each layer of the decoder predicts for each word of a translation, and each encoder layer."""
        text_request, target = await read_pair(self.context, request)
        translator = text_request.served.translator
        return await text_request.task.run(lambda: rendered(layers_details(translator, text_request.text, target)))

    async def patch(self, request: Request) -> Response:
        """Return how much of the difference between two sentences the state of each layer at each word carries."""
        text_request, target = await read_pair(self.context, request)
        translator, patch_request = text_request.served.translator, patch_fields(text_request.fields)

        def answer() -> Response:
            patching = patch_request.of(translator, text_request.text, target)
            translations = [target, translator.translate(patching.other, split=False).text]
            return rendered(patching.to_json() | {"translations": translations})

        return await text_request.task.run(answer)
