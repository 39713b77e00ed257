"""The requests of the API for inspection. They are read without PyTorch, which their handlers need."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self

from fastapi.responses import Response
from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, WithJsonSchema, model_validator

from translucid.serving.requests import (
    MAX_WORD_LENGTH,
    METHODS,
    OPTIONAL_METHODS,
    Choice,
    ContrastFields,
    Fields,
    FormalityName,
    ModelName,
    Source,
    are_texts,
    check_method,
    refused,
)

MAX_INSPECTED = 500
"""The maximum number of characters in a text that is inspected; attention maps grow with the square of its length."""
HEADS = 999
"""The maximum number of heads that are off."""


def _heads(value: Any) -> list[str]:
    if not isinstance(value, list) or not are_texts(value) or len(value) > HEADS:
        raise refused(f"Invalid request: ablate is not a list of up to {HEADS} names of heads")
    return value


def _targets(value: Any) -> list[str]:
    if not isinstance(value, list) or not are_texts(value) or not all(map(str.strip, value)):
        raise refused("Invalid request: translations is not a list of texts")
    return value


def _words(value: Any) -> tuple[str, str]:
    if not isinstance(value, list) or not are_texts(value) or len(value) != 2 or max(map(len, value)) > MAX_WORD_LENGTH:
        raise refused(f"Invalid request: words are not two texts of up to {MAX_WORD_LENGTH} characters")
    return value[0].strip(), value[1].strip()


NO_PREFIX = "Invalid request: prefix is not a list of token ids"


def _token_ids(value: Any) -> list[int]:
    # The handler, which knows the vocabulary, refuses items that are no ids.
    if not isinstance(value, list):
        raise refused(NO_PREFIX)
    return value


def _map_number(value: Any, info: ValidationInfo) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise refused(f"Invalid request: {info.field_name} is not a number")
    return value


Method = Annotated[str, AfterValidator(check_method), WithJsonSchema(METHODS)]
OptionalMethod = Annotated[
    str,
    AfterValidator(lambda value: value and check_method(value)),
    WithJsonSchema(OPTIONAL_METHODS),
]
"""A method, or an empty text."""
Heads = Annotated[
    list[str],
    BeforeValidator(_heads),
    Field(description="attention heads that are switched off, such as decoder.1.cross.head.0"),
]
MapNumber = Annotated[int, BeforeValidator(_map_number)]


class SentenceFields(Fields):
    """A text to inspect with one model."""

    tag: ClassVar = "looking inside"
    example: ClassVar = {"q": "I like soccer", "source": "en", "target": "es"}

    q: Annotated[str, Field(max_length=MAX_INSPECTED)]
    source: Source
    target: str
    model: ModelName = ""
    formality: FormalityName = ""


class BeamFields(SentenceFields):
    """Return the trees of the beam searches of the first sentences."""


class LookFields(SentenceFields, ContrastFields):
    """Translate a text and return the attention of each sentence, with an explanation if requested."""

    with_null: ClassVar = ("ablate",)

    target: str = Field(
        description="if source is auto, another target is used if the detected language is not translated to it"
    )
    explain: OptionalMethod = ""
    maps: Annotated[Literal["cross", "all", "contributions"], Choice] = Field(
        "cross", description="all: self-attention as well; contributions: norms and contributions as well"
    )
    translations: Annotated[list[str], BeforeValidator(_targets)] | None = Field(
        None, description="inspect these instead, one for each sentence of q"
    )
    ablate: Heads = Field(default_factory=list)

    @property
    def explained_by(self) -> str:
        """The method of the explanation; "" for none."""
        return self.explain


class WeightsFields(Fields):
    """Return a model as the engine of the figure *Pass* reads it: its options, vocabularies and rounded weights."""

    tag: ClassVar = "looking inside"
    example: ClassVar = {"source": "en", "target": "es"}

    source: Source
    target: str
    model: ModelName = ""
    formality: FormalityName = ""


class ContinueFields(SentenceFields):
    """Return the most probable continuations of a prefix of the translation, which is a list of token ids."""

    example: ClassVar = {**SentenceFields.example, "prefix": []}
    messages: ClassVar = {"prefix": NO_PREFIX}

    prefix: Annotated[
        list[Any], BeforeValidator(_token_ids), WithJsonSchema({"type": "array", "items": {"type": "integer"}})
    ]


class LayersFields(SentenceFields):
    """Return what each layer of the decoder predicts for each word of a translation, and each encoder layer."""

    example: ClassVar = {**SentenceFields.example, "translation": "Me gusta el fútbol"}

    translation: str = Field(description="the translation of the sentence q")

    @model_validator(mode="after")
    def _has_texts(self) -> Self:
        limit = 2 * MAX_INSPECTED
        if not self.q.strip() or not self.translation.strip() or len(self.translation) > limit:
            raise refused(f"Invalid request: there are no texts, or translation has over {limit} characters")
        return self


class PatchingFields(LayersFields):
    """The fields of activation patching."""

    other: str = Field("", max_length=MAX_INSPECTED, description="for patching: a sentence that differs from q")
    words: (
        Annotated[
            tuple[str, str],
            BeforeValidator(_words),
            WithJsonSchema({"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 2}),
        ]
        | None
    ) = Field(
        None,
        description="for patching: a word of the translation, and one in its place; by default, the first difference",
    )


class PatchFields(PatchingFields):
    """Return how much of the difference between two sentences the state of each layer at each word carries."""

    example: ClassVar = {
        "q": "The house is big.", "source": "en", "target": "es", "translation": "La casa es grande.",
        "other": "The car is big.", "words": ["La", "El"],
    }  # fmt: skip


class PictureFields(PatchingFields, ContrastFields):
    """Draw a figure of a sentence and its translation."""

    example: ClassVar = {**LayersFields.example, "view": "map"}
    answer: ClassVar = Response
    with_null: ClassVar = ("ablate",)

    view: Annotated[Literal["map", "heads", "beam", "why", "layers", "patching"], Choice]
    kind: Annotated[Literal["cross", "encoder", "decoder", "rollout", "content", "norms", "contributions"], Choice] = (
        "cross"
    )
    layer: MapNumber | None = Field(None, description="for a map; the average of all if not given")
    head: MapNumber | None = Field(None, description="for a map; the average of all if not given")
    method: Method = "erasure"
    ablate: Heads = Field(default_factory=list)
    caption: str = Field("", max_length=5 * MAX_INSPECTED, description="the subject of the file")

    @property
    def explained_by(self) -> str:
        """The method of the explanation."""
        return self.method
