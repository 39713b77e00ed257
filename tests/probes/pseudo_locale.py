"""A pseudo-language of the page: English with accents, in brackets, a third longer, written from right to left."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from playwright.sync_api import Error, Page, Response, WebSocket

from translucid.inspection.rendering.message_catalogs import (
    LOADER,
    TEMPLATE,
    Message,
    catalog_script,
    page_scripts,
    read_catalog,
)

CODE = "ar-XB"
"""CLDR's code of the mirrored pseudo-language. Browsers take the numbers and the direction of Arabic for it."""
_ACCENTS = str.maketrans("aeiouyAEIOUY", "áéíóúýÁÉÍÓÚÝ")
_WORD = re.compile(r"[A-Za-z]+")
_POINT = re.compile(r"\w+(?:\.\w+)+")
"""A named point of a model, such as a head."""
_HEADER = "Plural-Forms: nplurals=2; plural=(n != 1);\n"
NAMES = {"translucid", "json", "api", "escape", "ctrl", "alt", "enter"}
_SHOWN = """() => {
  const texts = [];
  const others = ".tree .node, code, kbd, pre, script, style, noscript, [translate=no], .page-language";
  const isOther = (part) => part.closest(`${others}, body [lang]:not([lang=""])`);
  for (const part of document.body.querySelectorAll("*")) {
    if (isOther(part) || !part.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    for (const name of ["aria-label", "title", "placeholder", "aria-valuetext"]) texts.push(part.getAttribute(name));
    for (const node of part.childNodes) if (node.nodeType === Node.TEXT_NODE) texts.push(node.nodeValue);
  }
  return [...new Set(texts.filter(Boolean))];
}"""


def pseudo(text: str) -> str:
    """Return a text in the pseudo-language, with its placeholders and tags.

    >>> pseudo("Open {count} <b>files</b>")
    '⟦Ópén {count} <b>fílés</b> ····⟧'
    """
    parts = re.split(r"(\{\w+\}|<[^>]*>)", text)
    accented = "".join(part if i % 2 else part.translate(_ACCENTS) for i, part in enumerate(parts))
    added = "·" * max(1, len("".join(parts[::2])) // 3)
    return f"⟦{accented} {' '.join(re.findall('.{1,8}', added))}⟧"  # in words, so that lines break


def pseudo_catalog(*templates: Path) -> str:
    """Return the catalog of the pseudo-language for the texts of templates as a script."""
    messages = [
        Message(one.source, one.context, one.plural, [], [pseudo(text) for text in (one.source, one.plural) if text])
        for template in templates
        for one in read_catalog(template)[1]
    ]
    return catalog_script(CODE, _HEADER, messages)


def pseudo_scripts() -> dict[str, str]:
    """Return `page_scripts` with the pseudo-language.

    If a server sends them, the browser can use its cache, which Playwright disables if it replaces responses.
    """
    offered = re.sub("{", f'{{"{CODE}": "{CODE}", ', page_scripts()[LOADER], count=1)
    return {**page_scripts(), LOADER: offered, f"languages/{CODE}.js": pseudo_catalog(TEMPLATE)}


@contextmanager
def words_sent(page: Page) -> Iterator[Callable[[], set[str]]]:
    """Yield a function that returns the words that the server has sent so far, in lower case.

    Call it after reading the texts that are compared with it. It reads the bodies itself, as a handler of Playwright's
    event could still be waiting for one that the page shows.
    """
    responses: list[Response] = []
    words: set[str] = set()

    def read() -> set[str]:
        while responses:
            response = responses.pop(0)
            if "json" in response.headers.get("content-type", ""):
                with suppress(Error):  # the page has cancelled the request, and shows nothing of it
                    words.update(words_of(response.json()))
        return words

    def note(response: Response) -> None:
        responses.append(response)

    def listen(socket: WebSocket) -> None:
        socket.on("framereceived", lambda frame: words.update(words_of(json.loads(frame))))

    page.on("response", note)
    page.on("websocket", listen)
    try:
        yield read
    finally:
        page.remove_listener("response", note)
        page.remove_listener("websocket", listen)


def words_of(value: object) -> Iterator[str]:
    """Yield the words in a response, except those in names that the page translates: of maps, tabs, states."""
    if isinstance(value, dict):
        for name, item in value.items():
            if name == "probabilities" and isinstance(item, dict):  # of the labels of texts
                yield from words_of(list(item))
            elif name not in ("maps", "tabs", "sections", "layers", "kind"):
                yield from words_of(item)
    elif isinstance(value, list):
        for item in value:
            yield from words_of(item)
    elif isinstance(value, str):
        yield from _WORD.findall(value.lower())


def shown_texts(page: Page) -> list[str]:
    """Return the texts that the page shows or names."""
    return page.evaluate(_SHOWN)


def english_texts(texts: list[str], words: set[str]) -> list[str]:
    """Return the texts with an English word: one with a plain vowel that is neither a name nor known."""
    return [text for text in texts if any(_is_english(word, words) for word in _words_in(text))]


def _words_in(text: str) -> list[str]:
    return _WORD.findall(_POINT.sub("", text))


def _is_english(word: str, known: set[str]) -> bool:
    lowered = word.lower()
    return len(word) > 1 and bool(re.search("[aeiouy]", lowered)) and lowered not in NAMES | known
