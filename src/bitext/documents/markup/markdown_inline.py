"""The constructs in a paragraph of Markdown, such as links and emphasis, with their offsets.

The rules of markdown-it-py create tokens without offsets. So each rule is wrapped here in a function that adds them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.helpers import parseLinkLabel
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from bitext.cancellation import between_steps
from bitext.documents.document import MOST_PARTS, TooManyParts, max_segments
from bitext.documents.markup.html_elements import is_inline
from bitext.errors import UserError

_Rule = Callable[[StateInline, bool], bool]


def _nested_braces(inside: str) -> str:
    """Return a pattern of braces with at most two nested pairs in them; `inside` matches text without braces."""
    innermost = rf"\{{{inside}\}}"
    middle = rf"\{{{inside}(?:{innermost}{inside})*\}}"
    return rf"\{{{inside}(?:{middle}{inside})*\}}"


_BRACES = _nested_braces(r"[^{}\n]*+")
_BRACES_OVER_LINES = _nested_braces(r"[^{}]*+")
_LOOSE = re.compile(
    r"\{%[^{%\n]*+(?:(?:\{(?!%)|%(?!\}))[^{%\n]*+)*%\}"  # templates
    r"|\{/\*[^{*]*+(?:(?:\{(?!/\*)|\*(?!/\}))[^{*]*+)*\*/\}"  # comments of MDX
    r"|%%[^%\n]*+(?:%(?!%)[^%\n]*+)*%%|(?<=\s)\^[\w-]+[ \t]*\Z"  # comments and names of blocks in Obsidian
    r"|\[\^[^\[\]\s]+\]:?|\[![\w-]+\][+-]?|\[[ xX]\](?=\s)"  # footnotes, alerts, tasks
    r"|\{[:#.][^{}\n]*\}|\{[ \t]+[#.][^{}\n]*\}|\{:?[ \t]*[\w-]+=[^{}\n]*\}"  # attributes
    r"|(?<![\w:]):[a-z+-][\w+-]*:(?![\w:])"  # emoji by their names
)
"""Constructs beside a sentence, not in it."""
_KEPT = re.compile(
    r"\{\{[^{}\n]*+(?:(?:\{(?!\{)|\}(?!\}))[^{}\n]*+)*\}\}|\{[\w:.+-]+\}`[^`\n]+`"  # templates, roles
    r"|\\\([^\\\n]*+(?:\\(?![()])[^\\\n]*+)*\\\)|\$(?![\s$])[^$\n]+(?<!\s)\$(?!\d)"  # formulas
    r"|\\[A-Za-z]+(?:\{[^{}\n]*\})+"  # TeX
    r"|!\[\[[^\[\]\n]+\]\]|\[\[[^\[\]\n|]+\]\](?![(\[:])"  # pages of a wiki
    r"|(?<!~)~(?!~)[^~\s]+~(?!~)|(?<!\^)\^(?!\^)[^^\s]+\^(?!\^)"  # subscripts, superscripts
    r"|\+\+[A-Za-z\"][\w+\" -]*\+\+|(?<![\w&#/])#[A-Za-z][\w/-]*"  # keys, tags
)
"""Constructs that act as a word and are not translated."""
_EXPRESSION = re.compile(
    rf"(?=\{{[ \t]*(?:[A-Za-z_$][\w$]*(?:\??\.[\w$]|[(\[]|[ \t]*[=+?&|])|[<`'\"(\d]))(?:{_BRACES})"
)
ANY_EXPRESSION = re.compile(_BRACES_OVER_LINES)
"""JavaScript in braces: any in MDX, but in Markdown only expressions that cannot be text."""
_JSX = re.compile(
    r"<[A-Za-z][\w.-]*(?=[\s/])(?:[^<>{}\"']++|\"[^\"]*+\"|'[^']*+'"
    rf"|(?P<braces>{_BRACES_OVER_LINES}))*>"
)
"""A tag with JavaScript in it, which HTML does not allow."""
_ELEMENT = re.compile(
    r"<(?P<closes>/?)(?P<name>[A-Za-z][\w.-]*)?(?:[^<>{}\"'/]++|/(?!>)|\"[^\"]*+\"|'[^']*+'"
    rf"|{_BRACES_OVER_LINES})*(?P<empty>/?)>|(?P<braces>{_BRACES_OVER_LINES})"
)
"""A tag of JSX, or braces."""
_WIKI_LINK = re.compile(r"(\[\[[^\[\]\n|]+\|)[^\[\]\n|]+\]\]")
_HIGHLIGHT = re.compile(
    r"(==)(?=[^\s=])[^=\n]*+(?:=(?!=)[^=\n]*+)*(?<=[^\s=])==|(\^\^)(?=[^\s^])[^^\n]*+(?:\^(?!\^)[^^\n]*+)*(?<=[^\s^])\^\^"
    r"|(?<!~)(~)(?=\d)[\d.+-]++~(?!~)|(?<!\^)(\^)(?=[\d+-])[\d.+-]++\^(?!\^)"  # raised and lowered numbers
)
_SIGNS = "{[\\$!:+=<%#^~]"
"""The first characters of all these constructs."""
TOKENS = 6
"""The largest number of block tokens in relation to the largest number of segments."""
_TITLE = re.compile(r"""\]\(\s*+(?:<[^<>\n]*+>|\S*+)\s++(?:"(.*)"|'(.*)'|\((.*)\))\s*\)\Z""", re.DOTALL)


class Construct(NamedTuple):
    """A part of a paragraph that is not words."""

    start: int
    end: int
    kind: str
    """markdown-it-py's type of token, such as `em_open` or `link_close`; else `kept` or `loose`."""
    label: tuple[int, int] | None = None
    """The span of the text of a link or an image."""
    inside: tuple[Construct, ...] = ()
    """The constructs in the text of an image."""


def parser() -> MarkdownIt:
    """Return a parser of CommonMark with tables and strikethrough, whose inline tokens have offsets."""
    markdown = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    markdown.block.ruler.before("table", "room", _check_size)
    markdown.inline.ruler.before("text", "kept", _parse_extension)
    ruler = markdown.inline.ruler
    for name, rule in zip(ruler.get_active_rules(), ruler.getRules(""), strict=True):
        ruler.at(name, _with_offsets(name, rule))
    markdown.inline.ruler2.disable("fragments_join")
    markdown.core.ruler.disable(["inline", "text_join"])
    return markdown


def _check_size(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """Stop the parsing of a document that is too large, or was cancelled; this rule never matches."""
    between_steps()
    if len(state.tokens) > TOKENS * max_segments():
        raise UserError(f"has more than {max_segments():,} texts", fix="Split it.")
    return False


def _parse_extension(state: StateInline, silent: bool) -> bool:
    """Parse the constructs of other dialects of Markdown."""
    between_steps()
    if len(state.tokens) > MOST_PARTS:
        raise TooManyParts
    sign = state.src[state.pos]
    if sign not in _SIGNS:
        return False
    if sign in "=^~]" and not silent and (closing := state.env.get("closing", {}).pop((state.src, state.pos), None)):
        kind, size = closing
        state.push(kind, "", 0)
        state.pos += size
        return True
    kind, match = _construct_at(state.src, state.pos, modules=state.env.get("modules", False))
    if match is None:
        return False
    end = match.end()
    if kind in ("wiki", "highlight") and not silent:
        # The words between both markers are parsed next; the closing marker is recognized by its offset.
        opening_end = match.end(match.lastindex or 0)
        size = 2 if kind == "wiki" else opening_end - state.pos
        state.env.setdefault("closing", {})[state.src, end - size] = f"{kind}_close", size
        kind, end = f"{kind}_open", opening_end
    if not silent:
        state.push(kind, "", 0)
    state.pos = end
    return True


def _construct_at(text: str, offset: int, *, modules: bool) -> tuple[str, re.Match[str] | None]:
    """Return the kind of the construct at an offset, and its match; None if there is none."""
    kinds = (
        ("html_inline", _JSX),
        ("wiki", _WIKI_LINK),
        ("highlight", _HIGHLIGHT),
        ("loose", _LOOSE),
        ("kept", _KEPT),
        ("kept", ANY_EXPRESSION if modules else _EXPRESSION),
    )
    for kind, pattern in kinds:
        match = pattern.match(text, offset)
        if match and (kind != "html_inline" or match["braces"]):
            return kind, match
    return "", None


def _with_offsets(name: str, rule: _Rule) -> _Rule:
    """Return a rule that adds offsets to the tokens of another rule."""

    def wrapped(state: StateInline, silent: bool) -> bool:
        start, token_count = state.pos, len(state.tokens)
        matched = rule(state, silent)
        if matched and not silent and name not in ("text", "escape", "entity"):
            _add_offsets(name, state, start, state.tokens[token_count:])
        elif matched and not silent and name == "escape" and state.tokens[-1:] and state.tokens[-1].type == "hardbreak":
            _add_offsets(name, state, start, state.tokens[-1:])
        return matched

    return wrapped


def _add_offsets(name: str, state: StateInline, start: int, tokens: list[Token]) -> None:
    """Add the offsets of new tokens to them."""
    if name in ("emphasis", "strikethrough"):  # one token for each delimiter, or for two
        end = state.pos
        for token in reversed(tokens):
            if end > start:
                token.meta["at"] = (end - len(token.content), end)
                end -= len(token.content)
    elif name == "link":
        end = parseLinkLabel(state, start, True)
        opening = next(token for token in tokens if token.type == "link_open" and "at" not in token.meta)
        opening.meta["at"] = (start, start + 1)
        tokens[-1].meta.update(at=(end, state.pos), label=(start + 1, end))
    elif name == "autolink":
        next(token for token in tokens if token.type == "link_open").meta.update(at=(start, state.pos), kind="kept")
    elif tokens:
        tokens[-1].meta["at"] = (start, state.pos)
        if name == "image":
            tokens[-1].meta["label"] = (start + 2, parseLinkLabel(state, start + 1, False))


def constructs(markdown: MarkdownIt, content: str, env: dict[str, Any]) -> list[Construct]:
    """Return the constructs in a paragraph, in order.

    Args:
        markdown: the result of `parser`.
        content: the text of the paragraph.
        env: the reference definitions of the document.
    """
    tokens: list[Token] = []
    markdown.inline.parse(content, markdown, env, tokens)
    return _constructs(content, tokens)


def _constructs(content: str, tokens: list[Token]) -> list[Construct]:
    constructs: list[Construct] = []
    for token in tokens:
        if "at" not in token.meta or token.type in ("text", "softbreak"):
            continue
        start, end = token.meta["at"]
        if token.type == "strong_open":
            start -= 1
        elif token.type == "strong_close":
            end += 1
        elif token.type == "hardbreak":
            while start and content[start - 1] == " ":
                start -= 1
            while content.startswith(" ", end):
                end += 1
        inside: tuple[Construct, ...] = ()
        if token.type == "image":
            label_start, label = token.meta["label"][0], content[slice(*token.meta["label"])]
            children = _constructs(label, token.children or [])
            inside = tuple(
                child._replace(start=child.start + label_start, end=child.end + label_start, label=None)
                for child in children
            )
        constructs.append(Construct(start, end, token.meta.get("kind", token.type), token.meta.get("label"), inside))
    return sorted(constructs)


Text = tuple[tuple[int, int], list[Construct]]
"""The bounds of a text, and the constructs in it."""


def texts_in_expression(content: str, start: int, end: int) -> Iterator[Text]:
    """Yield the texts of the elements in an expression of MDX; `start` and `end` are the offsets of its braces."""
    open_elements = 0
    text_start = 0
    inside: list[Construct] = []
    for match in _ELEMENT.finditer(content, start + 1, end - 1):
        between_steps()
        if match["braces"]:
            yield from texts_in_expression(content, *match.span())
            inside.append(Construct(*match.span(), "kept"))
            continue
        is_in_sentence = open_elements > 0 and _is_in_sentence(match["name"] or "")
        if match["closes"]:
            open_elements = max(0, open_elements - 1)
            is_in_sentence = is_in_sentence and open_elements > 0
        if is_in_sentence:
            inside.append(Construct(*match.span(), "html_inline"))
        else:
            if text_start:
                yield (text_start, match.start()), inside
            inside, text_start = [], match.end()
        if not match["closes"] and not match["empty"]:
            open_elements += 1
        if not open_elements:
            text_start = 0


def _is_in_sentence(name: str) -> bool:
    """Whether an element of JSX is a part of a sentence; components, with a capital, may be."""
    return name[:1].isupper() or is_inline(name) or name == "br"


def title_of(raw: str) -> tuple[int, int] | None:
    """Return the span of the title in the end of a link or an image, `](address "title")`, if it has one."""
    match = _TITLE.match(raw)
    return match.span(match.lastindex) if match and match.lastindex else None
