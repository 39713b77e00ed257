"""Requests and responses of the API for its OpenAPI page; `incoming.py` validates the real requests."""

from __future__ import annotations

from typing import Any

TEXT: dict[str, Any] = {"type": "string"}


def _error(name: str) -> dict[str, Any]:
    """Describe an error response: an object with a message under this name."""
    schema = {"type": "object", "properties": {name: TEXT}, "required": [name]}
    return {"description": "What is wrong.", "content": {"application/json": {"schema": schema}}}


ERRORS: dict[int | str, dict[str, Any]] = dict.fromkeys((400, 403, 408, 413, 415, 421, 429, 503), _error("error"))
LIST: dict[str, Any] = {"type": "array", "items": TEXT}
MANY: dict[str, Any] = {"oneOf": [TEXT, {"type": "array", "items": TEXT}]}


def body(required: list[str], **properties: Any) -> dict[str, Any]:
    """Describe a body that may be JSON or a form."""
    media = {"schema": {"type": "object", "properties": {**properties, "api_key": TEXT}, "required": required}}
    kinds = ("application/json", "application/x-www-form-urlencoded", "multipart/form-data")
    return {"requestBody": {"required": True, "content": dict.fromkeys(kinds, media)}}


def _form_with_file(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {"file": {**TEXT, "format": "binary"}, **properties},
        "required": required,
    }
    return {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema}}}}


TRANSLATE = body(
    ["q", "source", "target"],
    q=MANY,
    source={**TEXT, "description": "a language code, or auto"},
    target=TEXT,
    format={"type": "string", "enum": ["text", "html"]},
    alternatives={"type": "integer", "minimum": 0},
    confidence={"type": "boolean", "description": "also the probability that a translation is good; null if unknown"},
)
SUGGEST = body(["q", "s", "source", "target"], q=TEXT, s=TEXT, source=TEXT, target=TEXT)
DETECT = body(["q"], q=TEXT)
KEY = body([], api_key={**TEXT, "description": "a key to be tried; as a header, too"})
LOOK = body(
    ["q", "source", "target"],
    q=TEXT,
    source={**TEXT, "description": "a language code, or auto"},
    target={**TEXT, "description": "where source is auto, another one if that language is not translated to it"},
    model={**TEXT, "description": "a name from /models"},
    explain={"type": "string", "enum": ["lime", "erasure", "gradients"]},
    translations={**LIST, "description": "look at these instead, one for each sentence of q"},
    maps={"type": "string", "enum": ["cross", "all"], "description": "all: self-attention too"},
)
CONTINUE = body(
    ["q", "source", "target", "prefix"],
    q=TEXT,
    source=TEXT,
    target=TEXT,
    model=TEXT,
    prefix={"type": "array", "items": {"type": "integer"}},
)
CLASSIFY = body(
    ["q"],
    q=TEXT,
    model={**TEXT, "description": "a name from /models; the first that classifies if not given"},
    explain={"type": "string", "enum": ["lime", "erasure", "gradients"]},
    label={**TEXT, "description": "explain this one instead of the likeliest"},
)
GENERATE = body(
    ["q"],
    q={**TEXT, "description": "the text to continue; may be empty"},
    model={**TEXT, "description": "a name from /models; the first language model if not given"},
    max_tokens={"type": "integer", "minimum": 1, "maximum": 200},
    considered={"type": "integer", "minimum": 0, "maximum": 8, "description": "likeliest pieces told of at each step"},
    temperature={"type": "number"},
    top_k={"type": "integer"},
    top_p={"type": "number"},
    seed={"type": "integer"},
    beam={"type": "integer", "minimum": 1, "maximum": 10, "description": "search instead of drawing"},
)
BEAM = body(["q", "source", "target"], q=TEXT, source=TEXT, target=TEXT, model=TEXT)
PICTURE = body(
    ["q", "source", "target", "translation", "view"],
    q=TEXT,
    source=TEXT,
    target=TEXT,
    model=TEXT,
    translation={**TEXT, "description": "of the sentence q"},
    view={"type": "string", "enum": ["map", "heads", "beam", "why"]},
    kind={"type": "string", "enum": ["cross", "encoder", "decoder", "rollout"]},
    layer={"type": "integer", "description": "of a map; the average of all if not given"},
    head={"type": "integer", "description": "likewise"},
    method={"type": "string", "enum": ["lime", "erasure", "gradients"]},
)
DOCUMENT = _form_with_file(
    {"source": {**TEXT, "description": "a language code, or auto"}, "target": TEXT, "model": TEXT, "api_key": TEXT},
    ["file", "source", "target"],
)
SEGMENTS = {
    "parameters": [
        {"name": "first", "in": "query", "schema": {"type": "integer", "minimum": 0}},
        {"name": "count", "in": "query", "schema": {"type": "integer", "minimum": 0, "maximum": 500}},
        {
            "name": "doubtful",
            "in": "query",
            "schema": {"type": "integer", "minimum": 0, "maximum": 1},
            "description": "only those that want a look",
        },
    ]
}
SEGMENT = body(["text"], text={**TEXT, "description": "with what stands for its marks: ⟨1⟩bold⟨/1⟩"})
ACCEPT = body(
    [],
    texts={"type": "object", "additionalProperties": TEXT, "description": "as of a segment, by its number"},
    rest={"type": "boolean", "description": "also all other translations as they stand"},
    doubtful={"type": "boolean", "description": "of the rest, also those that want a look"},
)
FILE = _form_with_file({"source": TEXT, "target": TEXT, "api_key": TEXT}, ["file", "source", "target"])
DEEPL_ERRORS: dict[int | str, dict[str, Any]] = dict.fromkeys((*ERRORS, 404, 456), _error("message"))
_FLAG: dict[str, Any] = {"type": "boolean"}
_LANGUAGE_PAIR = {
    "source_lang": {**TEXT, "description": "a language code; found out if not given"},
    "target_lang": {**TEXT, "description": "a language code, such as ES or EN-GB"},
    "glossary_id": TEXT,
    "formality": {**TEXT, "enum": ["default", "prefer_more", "prefer_less"]},
}
DEEPL_TRANSLATE = body(
    ["text", "target_lang"],
    text=MANY,
    **_LANGUAGE_PAIR,
    tag_handling={**TEXT, "enum": ["xml", "html"]},
    ignore_tags={**LIST, "description": "elements that are not translated"},
    splitting_tags={**LIST, "description": "elements that part sentences"},
    non_splitting_tags={**LIST, "description": "elements that do not"},
    outline_detection={**_FLAG, "description": "whether elements part sentences by where the text stands"},
    split_sentences={**TEXT, "enum": ["0", "1", "nonewlines"]},
    preserve_formatting={**_FLAG, "description": "it is always preserved"},
    model_type=TEXT,
    context={**TEXT, "description": "not looked at"},
    show_billed_characters=_FLAG,
)
DEEPL_LANGUAGES = {"parameters": [{"name": "type", "in": "query", "schema": {**TEXT, "enum": ["source", "target"]}}]}
DEEPL_DOCUMENT = _form_with_file(
    {**_LANGUAGE_PAIR, "filename": {**TEXT, "description": "the name of the file, if the form does not say it"}},
    ["file", "target_lang"],
)
DEEPL_KEY = body(["document_key"], document_key=TEXT)
_DICTIONARY: dict[str, Any] = {
    "source_lang": TEXT,
    "target_lang": TEXT,
    "entries": {**TEXT, "description": "a term and its translation a line"},
    "entries_format": {**TEXT, "enum": ["tsv", "csv"]},
}
_DICTIONARIES = {"type": "array", "items": {"type": "object", "properties": _DICTIONARY, "required": [*_DICTIONARY]}}
DEEPL_GLOSSARY = body(["name", *_DICTIONARY], name=TEXT, **_DICTIONARY)
DEEPL_MULTILINGUAL_GLOSSARY = body(["name", "dictionaries"], name=TEXT, dictionaries=_DICTIONARIES)
DEEPL_GLOSSARY_CHANGES = body([], name=TEXT, dictionaries=_DICTIONARIES)
DEEPL_NEW_DICTIONARY = body([*_DICTIONARY], **_DICTIONARY)
DEEPL_DICTIONARY = {
    "parameters": [
        {"name": "source_lang", "in": "query", "required": True, "schema": TEXT},
        {"name": "target_lang", "in": "query", "required": True, "schema": TEXT},
    ]
}

_NUMBER: dict[str, Any] = {"type": "number"}
_WAYS: dict[str, Any] = {"type": "integer", "minimum": 0}
_ASKED: dict[str, dict[str, Any]] = {
    "model": {**TEXT, "description": "a name from /models; the first that reads images if not given"},
    "beam": {"type": "integer", "minimum": 1, "maximum": 10},
    "nbest": {"type": "integer", "minimum": 1, "description": "captions wanted; others than the best in alternatives"},
    "prefix": {**TEXT, "maxLength": 500, "description": "words that the caption begins with"},
    "ways": {**_WAYS, "maximum": 8, "description": "the likeliest next words after prefix, so many, in ways"},
    "caption": {**TEXT, "maxLength": 500, "description": "look at this one; write none"},
    "maps": {"type": "boolean", "description": "also where each layer and head looked"},
    "tree": {"type": "boolean", "description": "also the tree of the beam search"},
    "explain": {"type": "string", "enum": ["lime", "erasure", "gradients"]},
    "api_key": TEXT,
}


def _record(**properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def _list_of(**properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": _record(**properties)}


_WEIGHTS = {
    "type": "array",
    "items": {"type": "array", "items": _NUMBER},
    "description": "where the model looked [rows][columns]; they sum to 1; not there if it has no attention",
}
_GRID = {
    "type": "array",
    "items": {"type": "integer"},
    "nullable": True,
    "description": "rows and columns of cells, which cover the whole image evenly",
}
_COUNT = {"type": "integer"}
_SIZE = {"type": "integer", "description": "side in pixels of the square that the model sees the image squeezed to"}
_CAPTIONED = _record(
    model=TEXT,
    caption=TEXT,
    score={**_NUMBER, "description": "log-probability after the length penalty"},
    alternatives=_list_of(caption=TEXT, score=_NUMBER),
    words=_list_of(word=TEXT, probability=_NUMBER, pieces=_COUNT, weights=_WEIGHTS),
    grid=_GRID,
    heads={**_COUNT, "description": "ways to look at it: all together, each layer, each head; 0 without attention"},
    size=_SIZE,
    ways=_list_of(next=TEXT, probability=_NUMBER, caption=TEXT),
    maps=_list_of(name=TEXT, layer=_COUNT, head=_COUNT, weights={"type": "array", "items": _WEIGHTS}),
    tree=_record(),
    explanation=_record(),
)


def _with_image(**asked: dict[str, Any]) -> dict[str, Any]:
    """Describe a form with an image, or an image with fields in the query."""
    kinds = ("image/jpeg", "image/png", "image/webp", "image/gif", "image/bmp")
    form = _record(file={**TEXT, "format": "binary"}, **asked) | {"required": ["file"]}
    images = {kind: {"schema": {**TEXT, "format": "binary"}} for kind in kinds}
    return {
        "parameters": [{"name": name, "in": "query", "schema": schema} for name, schema in asked.items()],
        "requestBody": {"required": True, "content": {"multipart/form-data": {"schema": form}, **images}},
    }


CAPTION = {**_with_image(**_ASKED), "responses": {"200": {"content": {"application/json": {"schema": _CAPTIONED}}}}}
CAPTION_PICTURE = _with_image(
    model=TEXT,
    caption={**TEXT, "maxLength": 500},
    view={"type": "string", "enum": ["map", "heads", "beam", "why"]},
    layer={"type": "integer", "description": "of a map; the average of all if not given"},
    head={"type": "integer", "description": "likewise"},
    method={"type": "string", "enum": ["lime", "erasure", "gradients"]},
    api_key=TEXT,
)
