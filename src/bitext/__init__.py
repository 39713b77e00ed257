"""Bitext: documents, translation memories and bilingual files, without a translator.

It imports nothing of Translucid (docs/bitext.md). Each name is imported when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bitext.documents.document import Document, NearMatch, Segment, Target
    from bitext.documents.kinds import KINDS, read_document
    from bitext.documents.tagged_text import Mark, Side, TaggedText
    from bitext.errors import UserError
    from bitext.memory.match import Entry, Match
    from bitext.memory.translation_memory import TranslationMemory
    from bitext.pair import Pair
    from bitext.protected_spans import PlaceholderSyntax, fixed_parts, lost_and_invented
    from bitext.readers.po import read_po
    from bitext.readers.tmx import read_tmx
    from bitext.readers.xliff import read_xliff

__all__ = [
    "KINDS",
    "Document",
    "Entry",
    "Mark",
    "Match",
    "NearMatch",
    "Pair",
    "PlaceholderSyntax",
    "Segment",
    "Side",
    "TaggedText",
    "Target",
    "TranslationMemory",
    "UserError",
    "fixed_parts",
    "lost_and_invented",
    "read_document",
    "read_po",
    "read_tmx",
    "read_xliff",
]

_MODULES = {
    "KINDS": "documents.kinds",
    "Document": "documents.document",
    "Entry": "memory.match",
    "Mark": "documents.tagged_text",
    "Match": "memory.match",
    "NearMatch": "documents.document",
    "Pair": "pair",
    "PlaceholderSyntax": "protected_spans",
    "Segment": "documents.document",
    "Side": "documents.tagged_text",
    "TaggedText": "documents.tagged_text",
    "Target": "documents.document",
    "TranslationMemory": "memory.translation_memory",
    "UserError": "errors",
    "fixed_parts": "protected_spans",
    "lost_and_invented": "protected_spans",
    "read_document": "documents.kinds",
    "read_po": "readers.po",
    "read_tmx": "readers.tmx",
    "read_xliff": "readers.xliff",
}


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    if name in _MODULES:
        return getattr(import_module(f"bitext.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'bitext' has no attribute {name!r}")
