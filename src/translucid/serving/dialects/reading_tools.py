"""The request formats of reading tools: DeepLX, Immersive Translate's custom service, and hcfy's custom source.

Sources: the APIs as their documentation describes them (github.com/OwO-Network/DeepLX,
immersivetranslate.com/docs/services/custom, hcfy.ai/docs/services/custom-api).
"""

from __future__ import annotations

import re
import secrets
from functools import cache, partial
from typing import Annotated, Any, ClassVar, Literal

from babel import Locale
from fastapi.responses import JSONResponse
from pydantic import BeforeValidator, Field
from starlette.concurrency import run_in_threadpool

from bitext.documents.markup.html_elements import NUMBERED_NAME
from bitext.documents.xml.xml_fragment import Elements
from bitext.languages import usual_code
from translucid.serving.catalog import AnyServed
from translucid.serving.requests import (
    Call,
    Choice,
    Fields,
    Handlers,
    LimitedText,
    RequestTask,
    TextList,
    are_texts,
    refused,
)
from translucid.serving.texts import (
    by_language,
    detect_sources,
    translate_from_any,
    translate_tagged,
    translate_texts,
)

ALTERNATIVES = 3
"""The maximum number of alternatives in an answer of DeepLX."""
HCFY_NAMES = {"中文(简体)": "zh-Hans", "中文(繁体)": "zh-Hant", "印尼语": "id"}
"""The names of languages that differ between hcfy and the Unicode consortium's data (CLDR)."""
IMMERSIVE_CODES = {"zh-Hans": "zh-CN", "zh-Hant": "zh-TW"}
"""Our codes that differ from those of Immersive Translate."""
NO_DESTINATION = "Invalid request: destination is not a list of languages"
_TAG = re.compile(rf"</?{NUMBERED_NAME}/?>")
"""A tag by which Immersive Translate replaces an element of a page, such as `<b0>`."""


_LANGUAGE = "a language code; detected if auto or not given"


class DeepLXFields(Fields):
    """A text to translate, with or without tags."""

    example: ClassVar = {"text": "I like soccer", "source_lang": "EN", "target_lang": "ES"}

    text: LimitedText
    target_lang: str = Field(description="a language code, such as ES or EN-GB")
    source_lang: str = Field("", description=_LANGUAGE)
    tag_handling: Annotated[Literal["", "html", "xml"], Choice] = ""


class ImmersiveFields(Fields):
    """Paragraphs of a page."""

    example: ClassVar = {"text_list": ["I like soccer", "The house is big"], "source_lang": "en", "target_lang": "es"}

    text_list: TextList
    source_lang: str = Field("", description=_LANGUAGE)
    target_lang: str


def _destination(value: Any) -> list[str]:
    if not isinstance(value, list) or not value or not are_texts(value):
        raise refused(NO_DESTINATION)
    return value


class HcfyFields(Fields):
    """A text, and the names of languages into which it may be translated."""

    example: ClassVar = {"text": "I like soccer", "source": "英语", "destination": ["西班牙语"]}
    messages: ClassVar = {"destination": NO_DESTINATION}

    text: LimitedText
    source: str = Field("", description="the Chinese name of a language; detected if not given")
    destination: Annotated[list[str], BeforeValidator(_destination)] = Field(
        min_length=1, description="Chinese names of languages; the second is used if the text is in the first"
    )


class ReadingTools(Handlers):
    """The handlers; `routing.py` binds them to their paths."""

    async def deeplx(self, call: Call[DeepLXFields]) -> JSONResponse:
        """Translate a text as DeepLX does, with alternatives unless it has tags."""
        fields, task, catalog = call.fields, call.task, self.context.catalog
        source, target = catalog.usual_codes(fields.source_lang, fields.target_lang)

        async def translate(served: AnyServed, batch: list[str]) -> list[list[str]]:
            if fields.tag_handling:
                elements = Elements() if fields.tag_handling == "xml" else None
                results = await translate_tagged(task, served, batch, elements)
            else:
                results = await translate_texts(task, served, batch, ALTERNATIVES)
            return [result.versions for result in results]

        ((code, _),), ((best, *alternatives),) = await translate_from_any(
            task, [fields.text], source, target, translate, lambda unchanged: [unchanged]
        )
        answer: dict[str, Any] = {"code": 200, "id": secrets.randbelow(10**10), "data": best}
        answer |= {"alternatives": alternatives, "source_lang": code.upper(), "target_lang": fields.target_lang.upper()}
        return JSONResponse(answer | {"method": "Free"})

    async def immersive(self, call: Call[ImmersiveFields]) -> JSONResponse:
        """Translate the paragraphs of a page for Immersive Translate."""
        translate, catalog = partial(_translate_paragraphs, call.task), self.context.catalog
        source, target = catalog.usual_codes(call.fields.source_lang, call.fields.target_lang)
        languages, translations = await translate_from_any(
            call.task, call.fields.text_list.texts, source, target, translate, str
        )
        rows = []
        for (code, _), translation in zip(languages, translations, strict=True):
            rows.append({"detected_source_lang": IMMERSIVE_CODES.get(code, code), "text": translation})
        return JSONResponse({"translations": rows})

    async def hcfy(self, call: Call[HcfyFields]) -> JSONResponse:
        """Translate a text for hcfy, line by line; its languages have Chinese names."""
        text, destinations, catalog = call.fields.text, call.fields.destination, self.context.catalog
        source, target = catalog.usual_codes(_code_of(call.fields.source), _code_of(destinations[0]))
        if source is None:
            ((source, _),) = await run_in_threadpool(detect_sources, [text], catalog.candidates(target))
        if source == target and len(destinations) > 1:
            _, target = catalog.usual_codes("", _code_of(destinations[1]))

        async def translate(served: AnyServed, batch: list[str]) -> list[str]:
            results = await translate_texts(call.task, served, batch)
            return [result.versions[0] for result in results]

        # Each line by itself: hcfy expects as many results as the text has lines.
        _, translations = await translate_from_any(call.task, text.split("\n"), source, target, translate, str)
        return JSONResponse({"text": text, "from": _name_of(source), "to": _name_of(target), "result": translations})


async def _translate_paragraphs(task: RequestTask, served: AnyServed, texts: list[str]) -> list[str]:
    """Translate texts, those with tags as HTML."""

    async def translate(kind: str, batch: list[str]) -> list[str]:
        translate_batch = translate_tagged if kind == "html" else translate_texts
        results = await translate_batch(task, served, batch)
        return [result.versions[0] for result in results]

    def kind_of(text: str) -> str:
        return "html" if _TAG.search(text) else "text"

    return await by_language(texts, list(map(kind_of, texts)), translate)


@cache
def _hcfy_codes() -> dict[str, str]:
    """Return language codes by their Chinese names."""
    codes: dict[str, str] = {}
    for cldr_code, name in Locale("zh").languages.items():
        if code := usual_code(cldr_code):
            codes[name] = code
    return codes | HCFY_NAMES


def _code_of(name: str) -> str:
    """Return the code of a language by its Chinese name; another text as it is."""
    return _hcfy_codes().get(name, name)


def _name_of(code: str) -> str:
    """Return the Chinese name of a language; its code if it has none."""
    # Of several names of a language, hcfy's own comes last.
    names = {code: name for name, code in _hcfy_codes().items()}
    return names.get(code, code)
