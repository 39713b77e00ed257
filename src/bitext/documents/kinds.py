"""The kinds of documents; the ending of the file name determines the kind."""

from __future__ import annotations

from importlib import import_module
from pathlib import PurePath
from typing import NamedTuple, cast

from bitext.documents.document import Document
from bitext.documents.limits import LARGEST, MOST_PARTS, TooManyParts, limit_work
from bitext.errors import UserError
from bitext.languages import Languages


class Kind(NamedTuple):
    """A kind of document."""

    name: str
    """The usual name of the format."""
    endings: tuple[str, ...]
    media: str
    """The media type (MIME type)."""
    module: str
    """The module below `bitext.documents` whose `read(name, content, languages)` parses a document."""
    near_matches: bool = False
    """Whether the format can hold near matches of a translation memory."""
    packed: bool = False
    """Whether a document is a zip file."""

    def read(self, name: str, content: bytes, languages: Languages) -> Document:
        """Parse a document; the arguments are those of `read_document`."""
        if len(content) > LARGEST:
            raise UserError(f"has more than {LARGEST >> 20} MiB", file=name, fix="Split it.")
        # Each command loads only the parsers that it needs: some import large libraries.
        module = import_module(f"bitext.documents.{self.module}")
        try:
            with limit_work(name, len(content)):
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
    Kind("Excel", (".xlsx",), f"{_OFFICE}.spreadsheetml.sheet", "office.xlsx", packed=True),
    Kind("OpenDocument text", (".odt",), "application/vnd.oasis.opendocument.text", "office.opendocument", packed=True),
    Kind(
        "OpenDocument spreadsheet",
        (".ods",),
        "application/vnd.oasis.opendocument.spreadsheet",
        "office.opendocument",
        packed=True,
    ),
    Kind("EPUB", (".epub",), "application/epub+zip", "markup.epub", packed=True),
    Kind("JSON strings", (".json", ".arb"), "application/json", "strings.json_strings"),
    Kind("YAML strings", (".yaml", ".yml"), "application/yaml", "strings.yaml_strings"),
    Kind("Android strings", (".xml",), "application/xml", "strings.android"),
    Kind(".NET resources", (".resx", ".resw"), "application/xml", "strings.resx"),
    Kind("iOS strings", (".strings",), "text/plain", "strings.ios"),
    Kind("Apple string catalogs", (".xcstrings",), "application/json", "strings.xcstrings"),
    Kind("Qt translations", (".ts",), "application/x-linguist", "strings.qt"),
    Kind("Fluent", (".ftl",), "text/plain", "strings.fluent"),
    Kind("Java properties", (".properties",), "text/x-java-properties", "strings.properties"),
    Kind("table", (".csv", ".tsv"), "text/csv", "strings.table"),
)


_BY_ENDING: dict[str, Kind] = {}
for _kind in KINDS:
    _BY_ENDING.update(dict.fromkeys(_kind.endings, _kind))
ENDINGS = frozenset(_BY_ENDING)
"""The endings of all kinds."""

PDF_FIX = "Translate the file that it was exported from; or open it in Word, save it as .docx, and translate that."
"""The advice on PDF files, which cannot be translated."""
_SAVE_AS = {
    ".docx": ".doc .docm .dot .dotm .dotx .pages .rtf .wpd .wps",
    ".xlsx": ".fods .numbers .ots .xls .xlsb .xlsm .xlt .xltm .xltx",
    ".pptx": ".key .odp .pot .potm .potx .pps .ppsm .ppsx .ppt .pptm",
    ".odt": ".fodt .ott .sxw",
    ".epub": ".azw .azw3 .fb2 .mobi",
    ".srt": ".ass .dfxp .sbv .ssa .sub .ttml",
}
"""The endings of files that their programs can save as a supported kind, by the ending of that kind."""
_FIXES = {".pdf": PDF_FIX}
for _ending, _others in _SAVE_AS.items():
    for _other in set(_others.split()) - ENDINGS:
        _FIXES[_other] = f"Save it as {_ending}, and translate that."


def kind_of(name: str) -> Kind | None:
    """Return the kind of document with this file name; None if no kind has its ending."""
    return _BY_ENDING.get(PurePath(name).suffix.lower())


def read_document(name: str, content: bytes, languages: Languages = (None, None)) -> Document:
    """Parse a document.

    Args:
        name: the file name; its ending determines the kind.
        content: the bytes of the file.
        languages: the source and the target language.

    Raises:
        UserError: the kind is unknown, or the document is invalid or harmful.
    """
    kind = kind_of(name)
    if kind is None:
        raise not_translated(name)
    return kind.read(name, content, languages)


def unknown_kind(name: str) -> str:
    """Return the message of the server for a file of a kind that cannot be translated, without a final period."""
    message = f"{name[:50]!r} is of no kind that is translated here"
    fix = _FIXES.get(PurePath(name).suffix.lower())
    return f"{message}. {fix}" if fix else message


def not_translated(name: str) -> UserError:
    """Return the error for a file of a kind that cannot be translated."""
    what = "is not a document that can be translated"
    ending = PurePath(name).suffix.lower()
    if ending == ".pdf":
        what = "is a PDF, which stores positions of letters instead of paragraphs, so it cannot be translated in place"
    fix = _FIXES.get(ending)
    if fix is None:
        endings = " ".join(_BY_ENDING)
        fix = f"Supported: {endings}. Pass plain text on standard input or as an argument."
    return UserError(what, file=name, fix=fix)
