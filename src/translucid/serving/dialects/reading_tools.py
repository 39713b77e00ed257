"""The request formats of reading tools: DeepLX, Immersive Translate's custom service, and hcfy's custom source.

Sources: the APIs as their documentation describes them (github.com/OwO-Network/DeepLX,
immersivetranslate.com/docs/services/custom, hcfy.ai/docs/services/custom-api).
"""

from __future__ import annotations

import re
import secrets
from functools import cache, partial
from typing import Any

from babel import Locale
from fastapi import Request
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool

from bitext.documents.markup.html_elements import NUMBERED_NAME
from bitext.documents.xml.xml_fragment import Elements
from bitext.languages import usual_code
from translucid.serving.catalog import AnyServed
from translucid.serving.detection import detect_sources, translate_from_any
from translucid.serving.edge.failures import ApiError
from translucid.serving.requests import Handlers, RequestTask, are_texts, choice_field, text_field, texts_field
from translucid.serving.texts import by_language, translate_html, translate_texts, translate_xml

ALTERNATIVES = 3
"""The maximum number of alternatives in an answer of DeepLX."""
HCFY_NAMES = {"中文(简体)": "zh-Hans", "中文(繁体)": "zh-Hant", "印尼语": "id"}
"""The names of languages that differ between hcfy and the Unicode consortium's data (CLDR)."""
IMMERSIVE_CODES = {"zh-Hans": "zh-CN", "zh-Hant": "zh-TW"}
"""Our codes that differ from those of Immersive Translate."""
_TAG = re.compile(rf"</?{NUMBERED_NAME}/?>")
"""A tag by which Immersive Translate replaces an element of a page, such as `<b0>`."""


class ReadingTools(Handlers):
    """The handlers; `routing.py` binds them to their paths."""

    async def deeplx(self, request: Request) -> JSONResponse:
        """Translate a text as DeepLX does, with alternatives unless it has tags."""
        fields, task = await self.context.fields(request)
        text = text_field(fields, "text", max_length=task.context.options.characters)
        target_lang, catalog = text_field(fields, "target_lang"), task.context.catalog
        source, target = catalog.usual_codes(text_field(fields, "source_lang", ""), target_lang)
        tags = choice_field(fields, "tag_handling", ("", "html", "xml"), "")

        async def translate(served: AnyServed, batch: list[str]) -> list[list[str]]:
            if tags == "html":
                results = await translate_html(task, served, batch)
            elif tags == "xml":
                results = await translate_xml(task, served, batch, Elements())
            else:
                results = await translate_texts(task, served, batch, ALTERNATIVES)
            return [result.versions for result in results]

        (code,), ((best, *alternatives),) = await translate_from_any(
            catalog, [text], source, target, translate, lambda unchanged: [unchanged]
        )
        answer: dict[str, Any] = {"code": 200, "id": secrets.randbelow(10**10), "data": best}
        answer |= {"alternatives": alternatives, "source_lang": code.upper(), "target_lang": target_lang.upper()}
        return JSONResponse(answer | {"method": "Free"})

    async def immersive(self, request: Request) -> JSONResponse:
        """Translate the paragraphs of a page for Immersive Translate."""
        fields, task = await self.context.fields(request)
        texts, _ = texts_field(fields, task.context.options, "text_list")
        translate, catalog = partial(_translate_paragraphs, task), task.context.catalog
        source, target = catalog.usual_codes(text_field(fields, "source_lang", ""), text_field(fields, "target_lang"))
        codes, translations = await translate_from_any(catalog, texts, source, target, translate, str)
        rows = []
        for code, translation in zip(codes, translations, strict=True):
            rows.append({"detected_source_lang": IMMERSIVE_CODES.get(code, code), "text": translation})
        return JSONResponse({"translations": rows})

    async def hcfy(self, request: Request) -> JSONResponse:
        """Translate a text for hcfy, line by line; its languages have Chinese names."""
        fields, task = await self.context.fields(request)
        text = text_field(fields, "text", max_length=task.context.options.characters)
        source_name, destinations = text_field(fields, "source", ""), fields.get("destination")
        if not isinstance(destinations, list) or not destinations or not are_texts(destinations):
            raise ApiError(400, "Invalid request: destination is not a list of languages")
        catalog = task.context.catalog
        source, target = catalog.usual_codes(_code_of(source_name), _code_of(destinations[0]))
        if source is None:
            ((source, _),) = await run_in_threadpool(detect_sources, [text], catalog.candidates(target))
        if source == target and len(destinations) > 1:
            _, target = catalog.usual_codes("", _code_of(destinations[1]))

        async def translate(served: AnyServed, batch: list[str]) -> list[str]:
            results = await translate_texts(task, served, batch)
            return [result.versions[0] for result in results]

        # Each line by itself: hcfy expects as many results as the text has lines.
        _, translations = await translate_from_any(catalog, text.split("\n"), source, target, translate, str)
        return JSONResponse({"text": text, "from": _name_of(source), "to": _name_of(target), "result": translations})


async def _translate_paragraphs(task: RequestTask, served: AnyServed, texts: list[str]) -> list[str]:
    """Translate texts, those with tags as HTML."""

    async def translate(kind: str, batch: list[str]) -> list[str]:
        translate_batch = translate_html if kind == "html" else translate_texts
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
