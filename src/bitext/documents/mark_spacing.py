"""The white space beside marks: which marks separate words, and where a text begins with a space."""

from __future__ import annotations

import re

from bitext.documents.stand_ins import WITHOUT_SPACES
from bitext.documents.tagged_text import KeptElement, Mark, Side

_SEPARATES_WORDS = re.compile(
    r"<(?!wbr|!--|\?)|&(?:nbsp|ensp|emsp|thinsp|#160|#xa0);|[ \t]*[\r\n]|\\[nh]\Z", re.IGNORECASE
)
_LINE_END = re.compile(r"[ \t]*(?:[\r\n]|\\[nN]\Z)")
_BREAKS_LINES = re.compile(
    r"<(?:[\w-]+:)?(?:br|hr|tab|ptab|cr|lb|pb|line-break|p|div|li|tr|td|th|ul|ol|dl|dd|dt|table|h[1-6]|blockquote)\b"
    r"|<text:s\b|&|<[^<>]*?[\s:](?:ctype|type|equiv|equiv-text|disp|id)\s*=\s*[\"'][^\"'<>]*?(?:\b(?:lb|br)\b|LINE_BREAK)"
    # Codes of other formats that XLIFF and TMX quote.
    r"|<(?:[\w-]+:)?(?:ph|it|ut)\b[^<>]*>\s*(?:&lt;|<)?/?(?:br|p|li|tab)\b"
    r"|<(?:[\w-]+:)?(?:ph|it|ut)\b[^<>]*>(?:[\r\n\t]|\\[nrt]\b|\{?\\(?:line|par|tab)\b|&#(?:10|x0?a);)"
    r"|[ \t]*[\r\n]|\\[nh]\Z",
    re.IGNORECASE,
)
"""A mark that separates words wherever it stands; others, such as anchors and images, may stand in a word."""
_STANDS_FOR_TEXT = re.compile(r"<(?:[\w-]+:)?(?:x|ph|g)\b")
CLOSING = frozenset(".,;:!?…)]}»”’%。，、；：！？）」』")
"""Characters without a space before them."""


def separates_letters(text: str, mark: Mark) -> bool:
    """Whether a single mark, such as `<br/>`, separates words between which there is no space."""
    before, after = text[mark.offset - 1 : mark.offset], text[mark.offset : mark.offset + 1]
    if _LINE_END.match(mark.raw):
        return bool(before.strip() and after.strip())
    if not before or not after.isalnum() or not separates_words(mark):
        return False
    if isinstance(mark, KeptElement):
        return (before.isalnum() or before in CLOSING) and not WITHOUT_SPACES.match(after)
    return before in CLOSING or (before.isalnum() and bool(_BREAKS_LINES.match(mark.raw)))


def separates_words(mark: Mark) -> bool:
    """Whether a mark, such as `<br/>`, separates words as a space does."""
    return mark.side is Side.alone and bool(_SEPARATES_WORDS.match(mark.raw))


def stands_for_text(mark: Mark) -> bool:
    """Whether a mark of XLIFF or TMX may stand for a text, such as a number, and not for a line end."""
    is_single = mark.side is Side.alone and bool(_STANDS_FOR_TEXT.match(mark.raw))
    return is_single and not _BREAKS_LINES.match(mark.raw)


def is_space(character: str) -> bool:
    """Whether a character is white space, or missing, as at the end of a text."""
    return not character.strip()


def wants_space(text: str) -> bool:
    """Whether a space belongs before a text that follows a mark."""
    return bool(text) and not text[0].isspace() and text[0] not in CLOSING


def outer_space(text: str) -> tuple[str, str]:
    """Return the white space at both ends of a text."""
    if not text.strip():
        return text, ""
    return text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
