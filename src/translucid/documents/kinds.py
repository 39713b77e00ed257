"""Kinds of documents, told by name and content."""

from __future__ import annotations

from importlib import import_module
from pathlib import PurePath
from typing import NamedTuple, cast

from translucid.data.languages import Languages
from translucid.documents.document import LARGEST, MOST_PARTS, Document, TooManyParts
from translucid.ground.errors import UserError


class Kind(NamedTuple):
    """A kind of document."""

    name: str
    """As a person would call it."""
    endings: tuple[str, ...]
    media: str
    """Its type on the web."""
    module: str
    """Of this room; its `read(name, content, languages)` gives the document. Loaded when one is read."""
    near_matches: bool = False
    """Whether it has a place for near matches of a memory."""
    packed: bool = False
    """Whether it is a zip file."""

    def read(self, name: str, content: bytes, languages: Languages) -> Document:
        """Take a document apart; see `read_document`."""
        if len(content) > LARGEST:
            raise UserError(f"has more than {LARGEST >> 20} MiB", file=name, fix="Split it.")
        module = import_module(f"translucid.documents.{self.module}")
        try:
            return cast(Document, module.read(name, content, languages))
        except TooManyParts:
            what = f"has a text with more than {MOST_PARTS:,} tags"
            raise UserError(what, file=name, fix="Split it.") from None


_OFFICE = "application/vnd.openxmlformats-officedocument"
KINDS = (
    Kind("PO", (".po", ".pot"), "text/x-gettext-translation", "strings.po"),
    Kind("XLIFF", (".xlf", ".xliff"), "application/xliff+xml", "xml.xliff", near_matches=True),
    Kind("TMX", (".tmx",), "application/x-tmx+xml", "xml.tmx"),
    Kind("SubRip subtitles", (".srt",), "application/x-subrip", "subtitles.cues"),
    Kind("WebVTT subtitles", (".vtt",), "text/vtt", "subtitles.cues"),
    Kind("HTML", (".html", ".htm", ".xhtml"), "text/html", "markup.html"),
    Kind("Markdown", (".md", ".markdown", ".mdx"), "text/markdown", "markup.markdown"),
    Kind("text", (".txt",), "text/plain", "text"),
    Kind("Word", (".docx",), f"{_OFFICE}.wordprocessingml.document", "office.docx", packed=True),
    Kind("PowerPoint", (".pptx",), f"{_OFFICE}.presentationml.presentation", "office.pptx", packed=True),
    Kind("OpenDocument text", (".odt",), "application/vnd.oasis.opendocument.text", "office.odt", packed=True),
    Kind("EPUB", (".epub",), "application/epub+zip", "markup.epub", packed=True),
    Kind("JSON strings", (".json", ".arb"), "application/json", "strings.json_strings"),
    Kind("YAML strings", (".yaml", ".yml"), "application/yaml", "strings.yaml_strings"),
    Kind("Android strings", (".xml",), "application/xml", "strings.android"),
    Kind("iOS strings", (".strings",), "text/plain", "strings.ios"),
    Kind("Java properties", (".properties",), "text/x-java-properties", "strings.properties"),
    Kind("table", (".csv",), "text/csv", "strings.table"),
)


ENDINGS = frozenset(ending for kind in KINDS for ending in kind.endings)
"""Of all of them."""


def kind_of(name: str) -> Kind | None:
    """Return the kind of a file by its name, if it is one of a document."""
    ending = PurePath(name).suffix.lower()
    return next((kind for kind in KINDS if ending in kind.endings), None)


def read_document(name: str, content: bytes, languages: Languages = (None, None)) -> Document:
    """Take a document apart.

    Args:
        name: of the file; its ending tells the kind.
        content: of the file.
        languages: of the translation.

    Raises:
        UserError: it is of no kind that can be read, broken, or harmful.
    """
    kind = kind_of(name)
    if kind is None:
        raise not_translated(name)
    return kind.read(name, content, languages)


def not_translated(name: str) -> UserError:
    """Return the error that a file is of no kind that is translated."""
    endings = " ".join(ending for kind in KINDS for ending in kind.endings)
    fix = f"Those that can end in {endings}. If it is plain text after all, give it on standard input or as text."
    return UserError("is no document that can be translated", file=name, fix=fix)
