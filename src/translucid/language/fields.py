"""The requests of the API of text models. They are read without PyTorch, which their handlers need."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Self

from pydantic import BeforeValidator, Field, ValidationInfo, WithJsonSchema, model_validator

from translucid.serving.requests import (
    NO_EXPLANATION,
    OPTIONAL_METHODS,
    Contrasted,
    Fields,
    RequestContext,
    WholeNumber,
    refused,
)

LONGEST = 5000
"""The maximum number of characters in a text that is classified or continued."""
MAX_TOKENS = 200
"""The maximum number of tokens that are generated."""
MAX_CANDIDATES = 8
"""The maximum number of candidates that are returned at each step."""


def _real_number(value: Any, info: ValidationInfo) -> float:
    try:
        return float(value)
    except (TypeError, ValueError) as error:
        raise refused(f"Invalid request: {info.field_name} is not a number") from error


RealNumber = Annotated[float | None, BeforeValidator(_real_number)]


class TextModelFields(Fields):
    """A text for a model that does not translate."""

    tag: ClassVar = "texts"
    reads: ClassVar[str]
    """What the model reads."""

    @classmethod
    def of(cls, values: dict[str, Any], context: RequestContext) -> Self:
        """Return the fields with these values, if there is such a model."""
        context.catalog.other(cls.reads)
        return super().of(values, context)


class ClassifyFields(TextModelFields):
    """Classify a text, and return the label's probability after each word, with an explanation if requested."""

    example: ClassVar = {"q": "A warm and funny film."}
    reads: ClassVar = "texts with labels"

    q: str = Field(max_length=LONGEST)
    model: str = Field("", description="a name from /models; the first classifier if not given")
    explain: Annotated[str, WithJsonSchema(OPTIONAL_METHODS)] = ""
    instead_of: Contrasted = Field("", description="explain why the label is not this one")
    label: str = Field("", description="explain this label instead of the most probable one")

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        if self.instead_of and not self.explain:
            raise refused(NO_EXPLANATION)
        return self


class GenerateFields(TextModelFields):
    """Continue a text, and return the probability of each piece and of other candidates."""

    example: ClassVar = {"q": "The old house", "max_tokens": 20}
    reads: ClassVar = "running text"
    with_null: ClassVar = ("temperature", "top_p")

    q: str = Field("", max_length=LONGEST, description="the text to continue; may be empty")
    model: str = Field("", description="a name from /models; the first language model if not given")
    temperature: RealNumber = None
    top_p: RealNumber = None
    top_k: Annotated[int, Field(ge=0, le=1_000_000), WholeNumber] | None = None
    seed: Annotated[int, Field(ge=0, le=2**31), WholeNumber] | None = None
    beam: Annotated[int, Field(ge=0, le=10, json_schema_extra={"minimum": 1}), WholeNumber] | None = Field(
        None, description="use beam search instead of sampling"
    )
    max_tokens: Annotated[int, Field(ge=1, le=MAX_TOKENS), WholeNumber] = 50
    considered: Annotated[int, Field(ge=0, le=MAX_CANDIDATES), WholeNumber] = Field(
        0, description="most probable pieces to return at each step"
    )
