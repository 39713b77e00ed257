"""The API for what a model computes inside: the predictions of its layers."""

from __future__ import annotations

from fastapi import Request
from fastapi.responses import Response

from translucid.api.page_details import layers_details
from translucid.serving.edge.rendering import rendered
from translucid.serving.queue.request_context import Handlers
from translucid.serving.routes.inspection import read_pair


class LayerRoutes(Handlers):
    """The handlers; `routing.py` binds them to their paths."""

    async def layers(self, request: Request) -> Response:
        """Return what each layer of the decoder predicts for each word of a translation, and each encoder layer."""
        asked, target = await read_pair(self.context, request)
        translator = asked.served.translator
        return await asked.task.run(lambda: rendered(layers_details(translator, asked.text, target)))
