"""The routes of the entries of a client's translation memory; `POST /suggest` adds and changes them."""

from __future__ import annotations

from typing import Any, ClassVar

from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool

from bitext.memory.match import Match
from translucid.serving.edge.failures import ApiError
from translucid.serving.memory import NO_ENTRY, ServerMemory
from translucid.serving.requests import Call, Fields, Handlers

LONGEST_SEARCH = 200
"""The maximum number of characters of a text that is looked up."""


class EntryFields(Fields):
    """The source of an entry, and its languages."""

    example: ClassVar = {"q": "I like soccer", "source": "en", "target": "es"}
    light: ClassVar = True

    q: str
    source: str
    target: str


class MemoryEntries(Handlers):
    """The handlers; `routing.py` binds them to their paths."""

    async def entry(self, call: Call[EntryFields]) -> JSONResponse:
        """Return the entry of a text in the client's translation memory: its translation, author and date."""
        fields, memory = call.fields, self._memory(call)
        match = await run_in_threadpool(memory.entry, fields.source, fields.target, fields.q)
        return JSONResponse(_record(match))

    async def find(self, call: Call[EntryFields]) -> JSONResponse:
        """Return the newest entries of the client's memory that contain a text on either side, ignoring case.

        `complete` is false if there may be more.
        """
        fields, memory = call.fields, self._memory(call)
        if len(fields.q) > LONGEST_SEARCH:
            raise ApiError(400, f"Invalid request: a search of more than {LONGEST_SEARCH} characters (q)")
        matches, is_complete = await call.task.run(lambda: memory.concordance(fields.source, fields.target, fields.q))
        return JSONResponse({"entries": list(map(_record, matches)), "complete": is_complete})

    async def remove(self, call: Call[EntryFields]) -> JSONResponse:
        """Remove the entry of a text from the client's translation memory, if clients may change it."""
        fields, memory = call.fields, self._memory(call)
        await call.task.result(memory.remove(fields.source, fields.target, fields.q))
        return JSONResponse({"success": True})

    def _memory(self, call: Call[EntryFields]) -> ServerMemory:
        memory = self.context.memory_of(call.task.client)
        if memory is None:
            raise ApiError(404, NO_ENTRY)
        return memory


def _record(match: Match) -> dict[str, Any]:
    record = match.record()
    return {name: record[name] for name in ("source", "target", "who", "when")}
