"""Annotations of terms in the source, for models that have learned to apply them.

The dictionary form of the translation is inserted after a word, and the model writes the form that the sentence needs
(Dinu et al. 2019, arXiv 1906.01105, "append"; Bergmanis and Pinnis 2021, arXiv 2101.10035). Three reserved pieces of
the vocabulary mark the start of the word, the start of its translation, and its end.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from translucid.data.linked_pairs import Edit, with_edits
from translucid.data.tokenizing.reserved import TERM
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.special import SPECIAL
from translucid.terminology.matching import TermList, terms_in


class Marking(NamedTuple):
    """The annotation of a span of the source."""

    start: int
    end: int
    target: str
    replacement: str | None = None
    """A word that replaces the source word, if any."""


def marked(source: str, markings: Iterable[Marking]) -> str:
    """Return a source with annotations, which are given from left to right and do not overlap.

    The first mark is inserted before the space before the word, so that the pieces of all other words do not change.
    """
    return with_edits(source, marking_edits(source, markings))


def marking_edits(source: str, markings: Iterable[Marking]) -> list[Edit]:
    """Return the edits of `marked`."""
    edits, last_end = [], 0
    for start, end, target, replacement in markings:
        has_space = source[:start].endswith(" ") and start > last_end
        mark_offset = start - 1 if has_space else start
        edits.append(Edit(mark_offset, mark_offset, TERM.source))
        edits.append(Edit(start, end, f"{replacement or source[start:end]}{TERM.target} {target}{TERM.end}"))
        last_end = end
    return edits


@dataclass(frozen=True)
class TermAnnotation:
    """The step of the text pipeline that annotates terms."""

    terms: TermList
    tokenizer: Tokenizer

    def apply(self, text: str, model_text: str) -> str:
        """Return the text with its terms annotated.

        Return `model_text` instead if an earlier step changed it, or the vocabulary lacks a translation.
        """
        matches = terms_in(self.terms, text)
        if not matches or model_text != text:
            return model_text
        annotated = marked(text, [Marking(match.start, match.end, match.targets[0]) for match in matches])
        (ids,) = self.tokenizer.encode_source([annotated])
        return model_text if SPECIAL.unknown in ids else annotated
