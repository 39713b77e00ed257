"""What stands in a paragraph of Markdown besides words, as markdown-it-py finds it, with the places of all of it.

The rules of markdown-it-py tell what they find, but not where. Each is wrapped here, so that its tokens know their
places.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.helpers import parseLinkLabel
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

_Rule = Callable[[StateInline, bool], bool]

_KEPT = re.compile(
    r"(?P<loose>\{%(?:[^{%\n]|\{(?!%)|%(?!\}))*+%\}|\[\^[^\[\]\s]+\]:?|\[![A-Z]+\]|\{[#.:][^{}\n]*\}|\[[ xX]\](?=\s))"
    # templates, footnotes, alerts, attributes, tasks; then templates, roles, formulas
    r"|\{\{(?:[^{}\n]|\{(?!\{)|\}(?!\}))*+\}\}|\{[\w:.+-]+\}`[^`\n]+`"
    r"|\\\((?:[^\\\n]|\\(?![()]))*+\\\)|\$(?![\s$])[^$\n]+(?<!\s)\$(?!\d)"
)
"""What Markdown does not know and many programs that read it do."""
_TITLE = re.compile(r"""\]\(\s*+(?:<[^<>\n]*+>|\S*+)\s++(?:"(.*)"|'(.*)'|\((.*)\))\s*\)\Z""", re.DOTALL)


class Construct(NamedTuple):
    """Something that is not words."""

    start: int
    end: int
    kind: str
    """As markdown-it-py names tokens: `em_open`, `link_close`; `kept` and `loose` for what it does not know."""
    label: tuple[int, int] | None = None
    """Of a link or an image: its text."""
    inside: tuple[Construct, ...] = ()
    """Of an image: what is in its text."""


def parser() -> MarkdownIt:
    """Return a parser of CommonMark with tables and strikethrough, whose inline tokens know their places."""
    made = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    made.inline.ruler.before("text", "kept", _kept)
    ruler = made.inline.ruler
    for name, rule in zip(ruler.get_active_rules(), ruler.getRules(""), strict=True):
        ruler.at(name, _placed(name, rule))
    made.inline.ruler2.disable("fragments_join")
    made.core.ruler.disable(["inline", "text_join"])
    return made


def _kept(state: StateInline, silent: bool) -> bool:
    match = _KEPT.match(state.src, state.pos) if state.src[state.pos] in "{[\\$" else None
    if not match:
        return False
    if not silent:
        state.push("loose" if match["loose"] else "kept", "", 0)
    state.pos = match.end()
    return True


def _placed(name: str, rule: _Rule) -> _Rule:
    def placed(state: StateInline, silent: bool) -> bool:
        start, before = state.pos, len(state.tokens)
        found = rule(state, silent)
        if found and not silent and name not in ("text", "escape", "entity"):
            _tell(name, state, start, state.tokens[before:])
        elif found and not silent and name == "escape" and state.tokens[-1:] and state.tokens[-1].type == "hardbreak":
            _tell(name, state, start, state.tokens[-1:])
        return found

    return placed


def _tell(name: str, state: StateInline, start: int, tokens: list[Token]) -> None:
    """Write into new tokens where they stand."""
    if name in ("emphasis", "strikethrough"):  # one token for each sign or two
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
    """Return what stands in a paragraph besides words, in order.

    Args:
        markdown: see `parser`.
        content: of the paragraph.
        env: has the references of the document.
    """
    tokens: list[Token] = []
    markdown.inline.parse(content, markdown, env, tokens)
    return _constructs(content, tokens)


def _constructs(content: str, tokens: list[Token]) -> list[Construct]:
    found: list[Construct] = []
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
            first, label = token.meta["label"][0], content[slice(*token.meta["label"])]
            children = _constructs(label, token.children or [])
            inside = tuple(one._replace(start=one.start + first, end=one.end + first, label=None) for one in children)
        found.append(Construct(start, end, token.meta.get("kind", token.type), token.meta.get("label"), inside))
    return sorted(found)


def title_of(raw: str) -> tuple[int, int] | None:
    """Return where the title is in the end of a link or an image, `](address "title")`; none if there is none."""
    match = _TITLE.match(raw)
    return match.span(match.lastindex) if match and match.lastindex else None
