"""The requests of the API of captioners. They are read without PyTorch, which their handlers need."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from fastapi import Request
from fastapi.responses import Response
from pydantic import AfterValidator, BaseModel, Field, WithJsonSchema

from translucid.captions.kinds import PACKAGES
from translucid.serving.edge.failures import ApiError
from translucid.serving.requests import (
    FORM,
    METHODS,
    OPTIONAL_METHODS,
    Bodies,
    Choice,
    ContrastFields,
    Flag,
    RequestContext,
    WholeNumber,
    check_method,
    content_type,
    form_of,
    refused,
)
from translucid.serving.server_options import ServerOptions

MAX_CAPTION = 500
"""The maximum number of characters in a caption, and in its beginning."""


def _caption_part(value: str) -> str:
    value = value.strip()
    if len(value) > MAX_CAPTION:
        raise refused(f"Invalid request: prefix or caption exceeds the limit of {MAX_CAPTION} characters")
    return value


def _caption(value: str) -> str:
    value = value.strip()
    if not 0 < len(value) <= MAX_CAPTION:
        raise refused(f"Invalid request: there is no caption, or it has over {MAX_CAPTION} characters")
    return value


def _method(value: str) -> str:
    return check_method(value, PACKAGES)


_LENGTH = Field(json_schema_extra={"maxLength": MAX_CAPTION})
CaptionPart = Annotated[str, AfterValidator(_caption_part), _LENGTH]
Method = Annotated[str, AfterValidator(_method), WithJsonSchema(METHODS)]
OptionalMethod = Annotated[
    str, AfterValidator(lambda value: value and _method(value)), WithJsonSchema(OPTIONAL_METHODS)
]
MapNumber = Annotated[int, Field(ge=0, le=999, description="for a map; the average of all if not given"), WholeNumber]


class ImageFields(ContrastFields):
    """An image: a form's `file`, or the whole body, with the fields in the query."""

    content_types: ClassVar = (FORM, *(f"image/{kind}" for kind in ("jpeg", "png", "webp", "gif", "bmp")))

    file: Annotated[bytes, WithJsonSchema({"type": "string", "format": "binary"})]
    model: str = Field("", description="a name from /models; the first captioner if not given")

    @classmethod
    def admit(cls, request: Request, context: RequestContext) -> None:
        """Refuse requests before megabytes are read, if there is no captioner."""
        context.catalog.other("images")

    @classmethod
    async def values_of(cls, request: Request, context: RequestContext) -> dict[str, Any]:
        """Return the values of the fields by name, and the image."""
        fields, image = await read_image(request, context.bodies, context.options)
        return {**fields, "file": image}


Weights = Annotated[
    list[list[float]],
    Field(description="the attention [rows][columns], which sums to 1; missing if the model has no attention"),
]


class CaptionWord(BaseModel):
    """A word of a caption."""

    word: str
    probability: float
    pieces: int
    weights: Weights = []


class AlternativeCaption(BaseModel):
    """Another caption."""

    caption: str
    score: float


class Continuation(BaseModel):
    """A continuation of the prefix."""

    next: str
    probability: float
    caption: str


class CaptionMap(BaseModel):
    """The attention of each word."""

    name: str
    layer: int
    head: int
    weights: list[Weights]


class CaptionAnswer(BaseModel):
    """The answer about an image."""

    model: str
    caption: str
    score: float = Field(description="the log-probability after the length penalty")
    alternatives: list[AlternativeCaption]
    words: list[CaptionWord]
    grid: list[int] | None = Field(description="rows and columns of cells, which divide the whole image evenly")
    heads: int = Field(description="the number of maps: the average, each layer, each head; 0 without attention")
    size: int = Field(description="side in pixels of the square to which the model scales the image")
    ways: list[Continuation] = []
    maps: list[CaptionMap] = []
    tree: dict[str, Any] = {}
    explanation: dict[str, Any] = {}


class CaptionFields(ImageFields):
    """Write a caption for an image, and return the attention of each word over the image.

    The image is a form's `file`, or the whole body. It is never written to a disk.
    """

    tag: ClassVar = "images"
    answer_schema: ClassVar = CaptionAnswer

    beam: Annotated[int, Field(ge=1, json_schema_extra={"maximum": 10}), WholeNumber] | None = None
    nbest: Annotated[int, Field(ge=1), WholeNumber] = Field(
        1, description="the number of captions; others than the best are alternatives"
    )
    prefix: CaptionPart = Field("", description="words with which the caption begins")
    ways: Annotated[int, Field(ge=0, le=8), WholeNumber] = Field(
        0, description="the number of continuations of prefix to return"
    )
    caption: CaptionPart = Field("", description="inspect this caption instead of writing one")
    maps: Flag = Field(False, description="also return the attention of each layer and head")
    tree: Flag = Field(False, description="also return the tree of the beam search")
    explain: OptionalMethod = ""

    @property
    def explained_by(self) -> str:
        """The method of the explanation; "" for none."""
        return self.explain


class CaptionPictureFields(ImageFields):
    """Draw a figure of an image and its caption."""

    tag: ClassVar = "looking inside"
    answer: ClassVar = Response

    caption: Annotated[str, AfterValidator(_caption), _LENGTH]
    view: Annotated[Literal["map", "heads", "beam", "why"], Choice]
    layer: MapNumber | None = None
    head: MapNumber | None = None
    method: Method = "erasure"

    @property
    def explained_by(self) -> str:
        """The method of the explanation."""
        return self.method


async def read_image(request: Request, bodies: Bodies, options: ServerOptions) -> tuple[dict[str, Any], bytes]:
    """Return the fields of a request, and its image: a form's `file`, or the whole body, with fields in the query.

    Raises:
        ApiError: 400, there is no image; 413, it is too large; 415, the content type is neither a form nor an image.
    """
    kind, max_bytes = content_type(request), options.image_bytes
    fields: dict[str, Any] = dict(request.query_params)
    if kind == FORM:
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
