"""Requests and responses of the API for its OpenAPI page; `incoming.py` validates the real requests."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
LIST: Schema = {"type": "array", "items": TEXT}
MANY: Schema = {"oneOf": [TEXT, LIST]}
_FILE: Schema = {**TEXT, "format": "binary"}
_FLAG: Schema = {"type": "boolean"}
_NUMBER: Schema = {"type": "number"}
_INTEGER: Schema = {"type": "integer"}
_METHOD: Schema = {**TEXT, "enum": ["lime", "erasure", "gradients"]}
_VIEW: Schema = {**TEXT, "enum": ["map", "heads", "beam", "why"]}
_LAYER: Schema = {**_INTEGER, "description": "for a map; the average of all if not given"}
_SOURCE: Schema = {**TEXT, "description": "a language code, or auto"}


def _text(description: str) -> Schema:
    return {**TEXT, "description": description}


def _flag(description: str) -> Schema:
    return {**_FLAG, "description": description}


def _record(required: list[str] | None = None, /, **properties: Schema) -> Schema:
    record: Schema = {"type": "object", "properties": properties}
    return record | {"required": required} if required is not None else record


def _list_of(**properties: Schema) -> Schema:
    return {"type": "array", "items": _record(**properties)}


def _query(name: str, schema: Schema, **more: Any) -> Schema:
    """Describe a parameter in the query."""
    return {"name": name, "in": "query", "schema": schema, **more}


def _error(name: str) -> Schema:
    """Describe an error response: an object with a message under this name."""
    schema = _record([name], **{name: TEXT})
    return {"description": "The error.", "content": {"application/json": {"schema": schema}}}


def body(required: list[str], **properties: Schema) -> Schema:
    """Describe a body that may be JSON or a form."""
    media = {"schema": _record(required, **(properties | {"api_key": TEXT}))}
    kinds = ("application/json", "application/x-www-form-urlencoded", "multipart/form-data")
    return {"requestBody": {"required": True, "content": dict.fromkeys(kinds, media)}}


def _form_with_file(required: list[str], **properties: Schema) -> Schema:
    media = {"schema": _record(["file", *required], file=_FILE, **properties)}
    return {"requestBody": {"required": True, "content": {"multipart/form-data": media}}}


ERRORS: dict[int | str, Schema] = dict.fromkeys((400, 403, 408, 413, 415, 421, 429, 503), _error("error"))
DEEPL_ERRORS: dict[int | str, Schema] = dict.fromkeys((*ERRORS, 404, 456), _error("message"))

TRANSLATE = body(
    ["q", "source", "target"],
    q=MANY,
    source=_SOURCE,
    target=TEXT,
    format={**TEXT, "enum": ["text", "html"]},
    alternatives={**_INTEGER, "minimum": 0},
    confidence=_flag("also return the probability that a translation is good; null if unknown"),
)
SUGGEST = body(["q", "s", "source", "target"], q=TEXT, s=TEXT, source=TEXT, target=TEXT)
DETECT = body(["q"], q=TEXT)
KEY = body([])
LOOK = body(
    ["q", "source", "target"],
    q=TEXT,
    source=_SOURCE,
    target=_text("if source is auto, another target is used if the detected language is not translated to it"),
    model=_text("a name from /models"),
    explain=_METHOD,
    translations={**LIST, "description": "inspect these instead, one for each sentence of q"},
    maps={**TEXT, "enum": ["cross", "all"], "description": "all: self-attention as well"},
)
_PREFIX: Schema = {"type": "array", "items": _INTEGER}
CONTINUE = body(["q", "source", "target", "prefix"], q=TEXT, source=TEXT, target=TEXT, model=TEXT, prefix=_PREFIX)
CLASSIFY = body(
    ["q"],
    q=TEXT,
    model=_text("a name from /models; the first classifier if not given"),
    explain=_METHOD,
    label=_text("explain this label instead of the most probable one"),
)
GENERATE = body(
    ["q"],
    q=_text("the text to continue; may be empty"),
    model=_text("a name from /models; the first language model if not given"),
    max_tokens={**_INTEGER, "minimum": 1, "maximum": 200},
    considered={**_INTEGER, "minimum": 0, "maximum": 8, "description": "most probable pieces to return at each step"},
    temperature=_NUMBER,
    top_k=_INTEGER,
    top_p=_NUMBER,
    seed=_INTEGER,
    beam={**_INTEGER, "minimum": 1, "maximum": 10, "description": "use beam search instead of sampling"},
)
BEAM = body(["q", "source", "target"], q=TEXT, source=TEXT, target=TEXT, model=TEXT)
PICTURE = body(
    ["q", "source", "target", "translation", "view"],
    q=TEXT,
    source=TEXT,
    target=TEXT,
    model=TEXT,
    translation=_text("the translation of the sentence q"),
    view=_VIEW,
    kind={**TEXT, "enum": ["cross", "encoder", "decoder", "rollout"]},
    layer=_LAYER,
    head=_LAYER,
    method=_METHOD,
)
DOCUMENT = _form_with_file(["source", "target"], source=_SOURCE, target=TEXT, model=TEXT, api_key=TEXT)
SEGMENTS = {
    "parameters": [
        _query("first", {**_INTEGER, "minimum": 0}),
        _query("count", {**_INTEGER, "minimum": 0, "maximum": 500}),
        _query("doubtful", {**_INTEGER, "minimum": 0, "maximum": 1}, description="1: only segments to check"),
    ]
}
SEGMENT = body(["text"], text=_text("the translation, with tags in place of its marks: ⟨1⟩bold⟨/1⟩"))
ACCEPT = body(
    [],
    texts={"type": "object", "additionalProperties": TEXT, "description": "translations by number of the segment"},
    rest=_flag("also accept all other translations unchanged"),
    doubtful=_flag("of the rest, also accept those that should be checked"),
)
FILE = _form_with_file(["source", "target"], source=TEXT, target=TEXT, api_key=TEXT)
_LANGUAGE_PAIR = {
    "source_lang": _text("a language code; detected if not given"),
    "target_lang": _text("a language code, such as ES or EN-GB"),
    "glossary_id": TEXT,
    "formality": {**TEXT, "enum": ["default", "prefer_more", "prefer_less"]},
}
DEEPL_TRANSLATE = body(
    ["text", "target_lang"],
    text=MANY,
    **_LANGUAGE_PAIR,
    tag_handling={**TEXT, "enum": ["xml", "html"]},
    ignore_tags={**LIST, "description": "elements that are not translated"},
    splitting_tags={**LIST, "description": "elements that separate sentences"},
    non_splitting_tags={**LIST, "description": "elements that do not separate sentences"},
    outline_detection=_flag("whether the position of text decides which elements separate sentences"),
    split_sentences={**TEXT, "enum": ["0", "1", "nonewlines"]},
    preserve_formatting=_flag("formatting is always preserved"),
    model_type=TEXT,
    context=_text("ignored"),
    show_billed_characters=_FLAG,
)
DEEPL_LANGUAGES = {"parameters": [_query("type", {**TEXT, "enum": ["source", "target"]})]}
DEEPL_DOCUMENT = _form_with_file(
    ["target_lang"], **_LANGUAGE_PAIR, filename=_text("the name of the file, if the form does not contain it")
)
DEEPL_KEY = body(["document_key"], document_key=TEXT)
_DICTIONARY: dict[str, Schema] = {
    "source_lang": TEXT,
    "target_lang": TEXT,
    "entries": _text("a term and its translation on each line"),
    "entries_format": {**TEXT, "enum": ["tsv", "csv"]},
}
_DICTIONARIES = {"type": "array", "items": _record([*_DICTIONARY], **_DICTIONARY)}
DEEPL_GLOSSARY = body(["name", *_DICTIONARY], name=TEXT, **_DICTIONARY)
DEEPL_MULTILINGUAL_GLOSSARY = body(["name", "dictionaries"], name=TEXT, dictionaries=_DICTIONARIES)
DEEPL_GLOSSARY_CHANGES = body([], name=TEXT, dictionaries=_DICTIONARIES)
DEEPL_NEW_DICTIONARY = body([*_DICTIONARY], **_DICTIONARY)
DEEPL_DICTIONARY = {
    "parameters": [_query("source_lang", TEXT, required=True), _query("target_lang", TEXT, required=True)]
}

_LINE: Schema = {"type": "array", "items": _NUMBER}
_WEIGHTS = {
    "type": "array",
    "items": _LINE,
    "description": "the attention [rows][columns], which sums to 1; missing if the model has no attention",
}
_GRID = {
    "type": "array",
    "items": _INTEGER,
    "nullable": True,
    "description": "rows and columns of cells, which divide the whole image evenly",
}
_CAPTIONED = _record(
    model=TEXT,
    caption=TEXT,
    score={**_NUMBER, "description": "the log-probability after the length penalty"},
    alternatives=_list_of(caption=TEXT, score=_NUMBER),
    words=_list_of(word=TEXT, probability=_NUMBER, pieces=_INTEGER, weights=_WEIGHTS),
    grid=_GRID,
    heads={**_INTEGER, "description": "the number of maps: the average, each layer, each head; 0 without attention"},
    size={**_INTEGER, "description": "side in pixels of the square to which the model scales the image"},
    ways=_list_of(next=TEXT, probability=_NUMBER, caption=TEXT),
    maps=_list_of(name=TEXT, layer=_INTEGER, head=_INTEGER, weights={"type": "array", "items": _WEIGHTS}),
    tree=_record(),
    explanation=_record(),
)


def _with_image(**fields: Schema) -> Schema:
    """Describe a form with an image, or an image with fields in the query."""
    kinds = ("image/jpeg", "image/png", "image/webp", "image/gif", "image/bmp")
    images = {kind: {"schema": _FILE} for kind in kinds}
    form = {"schema": _record(["file"], file=_FILE, **fields)}
    return {
        "parameters": [_query(name, schema) for name, schema in fields.items()],
        "requestBody": {"required": True, "content": {"multipart/form-data": form, **images}},
    }


CAPTION = _with_image(
    model=_text("a name from /models; the first captioner if not given"),
    beam={**_INTEGER, "minimum": 1, "maximum": 10},
    nbest={**_INTEGER, "minimum": 1, "description": "the number of captions; others than the best are alternatives"},
    prefix={**TEXT, "maxLength": 500, "description": "words with which the caption begins"},
    ways={**_INTEGER, "minimum": 0, "maximum": 8, "description": "the number of continuations of prefix to return"},
    caption={**TEXT, "maxLength": 500, "description": "inspect this caption instead of writing one"},
    maps=_flag("also return the attention of each layer and head"),
    tree=_flag("also return the tree of the beam search"),
    explain=_METHOD,
    api_key=TEXT,
) | {"responses": {"200": {"content": {"application/json": {"schema": _CAPTIONED}}}}}
CAPTION_PICTURE = _with_image(
    model=TEXT,
    caption={**TEXT, "maxLength": 500},
    view=_VIEW,
    layer=_LAYER,
    head=_LAYER,
    method=_METHOD,
    api_key=TEXT,
)
