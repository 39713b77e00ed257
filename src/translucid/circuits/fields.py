"""The fields of requests for features and graphs."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field, WithJsonSchema

from translucid.serving.requests import (
    MAX_WORD_POSITION,
    Contrasted,
    Fields,
    ModelName,
    WholeNumber,
    are_texts,
    refused,
)
from translucid.serving.routes.inspection_fields import LayersFields, SentenceFields

MOST = 32
"""The maximum number of features that a request changes."""
_TEXTS = {"type": "array", "items": {"type": "string"}}
_Position = Annotated[int, Field(ge=0, le=MAX_WORD_POSITION), WholeNumber]


def _names(value: Any) -> list[str]:
    if not isinstance(value, list) or not are_texts(value) or not 0 < len(value) <= MOST:
        raise refused(f"Invalid request: features is not a list of 1 to {MOST} texts")
    return value


class FeaturesFields(LayersFields):
    """Return the strongest features of each token of a sentence and its translation."""


class CardFields(Fields):
    """Return what is known of a feature: its strongest contexts, the pieces that it promotes, its label."""

    tag: ClassVar = "looking inside"
    example: ClassVar = {"feature": "decoder.1.feature.412", "source": "en", "target": "es"}

    feature: Annotated[str, Field(max_length=100)]
    source: Annotated[str, Field(description="a language code")]
    target: str
    model: ModelName = ""


class SteerFields(SentenceFields):
    """Translate a sentence with changed features."""

    example: ClassVar = {**SentenceFields.example, "features": ["decoder.1.feature.412=3x"]}

    features: Annotated[list[str], BeforeValidator(_names), WithJsonSchema(_TEXTS)] = Field(
        description="changes of features: NAME=0, NAME=2.5 or NAME=3x"
    )


class GraphFields(LayersFields):
    """Return the attribution graph of a word of a translation, with its picture as `svg`."""

    example: ClassVar = {**LayersFields.example, "word": 3}

    word: _Position = Field(description="the position of a word of the translation, from 0")
    instead_of: Contrasted = Field("", description="another word in its place")


class AblateFields(GraphFields):
    """Return what the model writes in place of a word without some features, each at one position."""

    example: ClassVar = {**GraphFields.example, "features": ["decoder.1.feature.412 @ 3"]}

    features: Annotated[list[str], BeforeValidator(_names), WithJsonSchema(_TEXTS)] = Field(
        description="NAME @ N: a feature, and the position of its token in the source or in the prefix"
    )


class ScoreFields(LayersFields):
    """Return why a head looks from a word to another: its score by pairs of parts of the query and of the key."""

    example: ClassVar = {**LayersFields.example, "head": "decoder.0.cross.head.0", "query": 1, "key": 1}

    head: Annotated[str, Field(max_length=100)]
    query: _Position = Field(description="the row of the head's map, from 0: a word of the translation, or the source")
    key: _Position = Field(description="the column of the head's map, from 0")
