"""The fields of requests for live translation, and what clients get."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from fastapi import Request
from fastapi.responses import HTMLResponse, Response, StreamingResponse
from pydantic import BaseModel, Field

from translucid.live.kinds import PolicyName
from translucid.serving.requests import (
    Choice,
    Fields,
    Flag,
    FormalityName,
    LimitedText,
    ModelName,
    RequestContext,
    WholeNumber,
)

BEAM = 10
"""The widest beam of a session on a server."""
SessionName = Annotated[str, Field(description="the name of a session")]


class LiveMessage(BaseModel):
    """What is written."""

    text: str = Field(description="to be appended to what was written before")
    delays: list[int] = Field(description="for each new word, the number of source words that were read before it")
    finished: bool = Field(description="whether the text has ended, so that everything is written")
    messages: list[str] = Field(
        [], description="such as that a sentence was ended by the limit of its length, or has the other form of address"
    )
    record: dict[str, Any] = Field({}, description="the attention of each decision, if requested; see docs/live.md")


class LiveName(BaseModel):
    """A session that has begun."""

    session: str


class LiveFields(Fields):
    """Begin a session of live translation, and return its name.

    A session that gets no text for 60 seconds ends; over a WebSocket, after half an hour.
    """

    tag: ClassVar = "live translation"
    example: ClassVar = {"source": "en", "target": "es", "policy": "alignatt", "lag": 2}
    answer_schema: ClassVar = LiveName

    source: Annotated[str, Field(description="a language code")]
    target: str
    policy: Annotated[PolicyName, Choice] = "alignatt"
    lag: Annotated[int, Field(ge=0, le=1000), WholeNumber] = Field(2, description="in source words")
    beam: Annotated[int, Field(ge=1, le=BEAM), WholeNumber] = 1
    attention: str = Field("", max_length=200, description="the attention that decides, such as decoder.1.cross")
    record: Flag = Field(False, description="return the attention of each decision, too")
    model: ModelName = ""
    formality: FormalityName = ""
    session: str = Field("", pattern=r"^[\w.-]{0,64}$", description="a name of your choice; a random one by default")

    @property
    def options(self) -> dict[str, Any]:
        """The options of `Translator.live`."""
        options = {"policy": self.policy, "lag": self.lag, "beam": self.beam}
        return {**options, "attention": self.attention} if self.attention else options


class _OfSession(Fields):
    """The fields of a request for a session, whose name is in the path."""

    tag: ClassVar = "live translation"
    light: ClassVar = True

    session: SessionName

    @classmethod
    async def values_of(cls, request: Request, context: RequestContext) -> dict[str, Any]:
        """Return the fields with the name."""
        return {**await super().values_of(request, context), **request.path_params}


class PartFields(_OfSession):
    """Send the next part of the text of a session, and return what is written.

    A part may have any length, and may end within a word. After the last one, another text may follow.
    """

    example: ClassVar = {"text": "I like soccer and also ", "finish": False}
    answer_schema: ClassVar = LiveMessage

    text: LimitedText = ""
    finish: Flag = Field(False, description="whether it is the last part, so that the rest is written")


class EventFields(_OfSession):
    """Watch a session: what is written, as server-sent events.

    The first event has the end of what was written before. The client and the key must be those of the session.
    """

    answer: ClassVar[type[Response]] = StreamingResponse


class OverlayFields(Fields):
    """The page that shows the last two lines of a session, for streaming software: `/live?overlay&session=NAME`."""

    tag: ClassVar = "live translation"
    light: ClassVar = True
    answer: ClassVar[type[Response]] = HTMLResponse

    overlay: Annotated[Literal["", "css", "js"], Choice] | None = Field(
        None,
        description="empty for the page, or one of its files; without it, the answer leads to the translator's page",
    )

    @classmethod
    def client_of(cls, request: Request, values: dict[str, Any], context: RequestContext) -> str:
        """Count nothing: this is a page, whose connection has the key."""
        return ""
