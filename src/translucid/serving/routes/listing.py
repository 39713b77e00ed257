"""The API that lists the models and their examples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi.responses import JSONResponse

from translucid.serving.catalogue import NamedModel
from translucid.serving.language_pairs import PivotPairs
from translucid.serving.queue.request_context import Handlers


class ListingRoutes(Handlers):
    """The handlers; `routing.py` binds them to their paths."""

    async def models(self) -> JSONResponse:
        """List the models by name."""
        catalogue = self.context.catalogue
        rows: list[dict[str, Any]] = []
        for pairs in catalogue:
            languages = {"sources": list(pairs.sources), "targets": list(pairs.targets)}
            pivot = {"pivot": pairs.pivot} if isinstance(pairs, PivotPairs) else {}
            rows.append({"name": pairs.name, "reads": "text"} | languages | pivot)
        other_models: dict[str, Sequence[NamedModel[Any]]] = {
            "images": catalogue.captioners,
            "texts": catalogue.classifiers,
        }
        other_models["prompts"] = catalogue.generators
        for reads, models in other_models.items():
            rows += [{"name": served.name, "reads": reads} for served in models]
        return JSONResponse(rows)

    async def examples(self) -> JSONResponse:
        """List example sentences for each translator by its name, in the first of its source languages."""
        return JSONResponse({pairs.name: list(pairs.examples) for pairs in self.context.catalogue})
