"""Markdown: paragraphs, headings, list items, table cells, and the texts and titles of links and images.

Code, HTML blocks, front matter, reference definitions, directives, formulas and addresses do not change. The
translation of a paragraph of several lines is written in one line.

`markdown_blocks` divides a file into blocks. The rules of markdown-it-py find the constructs in a block, such as links
and emphasis, but create tokens without offsets. So each rule is wrapped here in a function that adds them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from html import escape, unescape
from typing import Any, NamedTuple
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.helpers import parseLinkLabel
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from bitext.cancellation import between_steps
from bitext.documents.document import MOST_PARTS, Segment, SegmentList, Target, TooManyParts, max_segments
from bitext.documents.markup.html_elements import VOID, is_inline
from bitext.documents.markup.markdown_blocks import Block, Kind, blocks
from bitext.documents.spans import BLANK_OF_HTML, Part, Span, Spans, TextFile, spanned
from bitext.documents.tagged_text import Side, TaggedText
from bitext.errors import UserError
from bitext.languages import Languages
from bitext.protected_spans import Edit

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

    `markdown`: the result of `parser`; `env`: the reference definitions of the document.
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


_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])|(&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z]\w{1,31});)")
_SPECIAL = re.compile(
    r"(https?://[^\s<`]+)"  # not escaped
    r"|\\(?=[!-/:-@\[-`{-~]|\Z)|[`\[\]]|<(?=[A-Za-z/!?])|(?<!\s)\*|\*(?!\s)|(?<![^\W_])_|_(?![^\W_])|~(?=~)"
    r"|&(?=#?\w+;)"
)
_BEGINS_BLOCK = re.compile(
    r"( *(?:\d{1,9}(?=[.)](?:\s|\Z)))?)"
    r"([.)](?<=\d.)|[-:|+=*#>][-:|+=*# ]*\Z|(?:#{1,6}|[-+*:~])(?=\s|\Z)|[>|]|!!!|\?{3}|={3}|:{3}|/{3}|\$\$|%%)"
)
"""The marker of a list item, a quote, a heading, a table or the like, and the digits or spaces before it."""
_CLOSES_HEADING = re.compile(r"(?:(?<=\s)|\A)#(?=#*\Z)")
_ANCHOR = re.compile(r"\{[^{}\n]*#[^{}\n]+\}[ \t]*\Z")
_LETTER = re.compile(r"(?<!\w)[^\W\d_]\Z")
_FENCE = re.compile(r"[ \t>]*(`{3,}|~{3,})")
_LINK = re.compile(
    r"(?:\]\([ \t]*<?|\bhref=[\"']|^[ \t>]*\[[^\[\]\n]+\]:[ \t]*<?)#(?P<anchor>[^\s<>()\[\]\"'`]+)(?=[\s>)\"']|\Z)"
)
"""A link to an anchor of the same file, in Markdown, in HTML, or the definition of a reference."""
_TAG = re.compile(r"<(/?)([A-Za-z][\w.-]*)[^<>]*?(/?)>\Z", re.DOTALL)
_JSX_TAG = re.compile(r"<()([A-Za-z][\w.-]*).*?(/?)>\Z", re.DOTALL)


class Markdown:
    """A file of Markdown."""

    def __init__(self, file: TextFile) -> None:
        """Parse the segments.

        Raises:
            UserError: lists and quotes are nested too deep.
        """
        self._file = file
        self._modules = file.name.lower().endswith(".mdx")
        self._hard_space = file.hard_space
        self._spans = Spans(file.text)
        self.segments = SegmentList(file.name)
        self._line, self._line_offset = 1, 0
        self._headings: list[tuple[int | None, TaggedText]] = []  # the number of the segment, and the source
        env: dict[str, Any] = {"modules": self._modules}
        markdown = parser()
        # All blocks first: a link may refer to a definition at the end of the file.
        found = blocks(markdown, file.name, file.text, env, modules=self._modules)
        for block in sorted(found, key=lambda block: block.offsets[0]):
            if block.kind == "expression":
                self._add_expression(block, 0, len(block.content))
                continue
            first = len(self.segments)
            self._add_block(block, constructs(markdown, block.content, env))
            if block.kind in ("heading", "underlined"):
                self._add_heading(block, first)
        self._links = list(_links(file.text)) if self._headings else []

    def filled(self, targets: Mapping[int, Target]) -> bytes:
        """Return the file with translations, each in one line, because a line end may begin another block."""
        lines = {number: replace(target, marked=target.marked.in_one_line) for number, target in targets.items()}
        return self._file.spliced(self._spans.edits(lines, self._moved_links(lines)))

    def _moved_links(self, targets: Mapping[int, Target]) -> Iterator[Edit]:
        """Yield the edits of links to headings, whose anchors are made from their text."""
        old, new = _Anchors(), _Anchors()
        moved: dict[str, str] = {}
        for number, source in self._headings:
            text = source if number is None or number not in targets else targets[number].marked
            before, after = old.add(source), new.add(text)
            if before != after:
                moved.setdefault(before, after)
        for start, end in self._links if moved else ():
            anchor = moved.get(unquote(self._file.text[start:end]))
            if anchor is not None:
                yield Edit(start, end, anchor)

    def _add_block(self, block: Block, constructs: list[Construct]) -> None:
        """Add a block, and the titles and alternative texts in it."""
        if self._modules:
            constructs = [_with_letter(block.content, construct) for construct in constructs]
        self._add(block, (0, len(block.content)), constructs, "")
        for construct in constructs:
            if self._modules and construct.kind == "kept" and block.content[construct.end - 1] == "}":
                brace = block.content.index("{", construct.start)
                self._add_expression(block._replace(kind="expression"), brace, construct.end)
            if not construct.label:
                continue
            close = construct.start
            if construct.kind == "image":
                close = construct.label[1]
                # The text of a reference such as `![text]` is also its name, which must not change.
                if block.content[construct.end - 1] != "]":
                    self._add(block, construct.label, list(construct.inside), ", image")
            if title := title_of(block.content[close : construct.end]):
                self._add(block, (close + title[0], close + title[1]), [], ", title")

    def _add_expression(self, block: Block, start: int, end: int) -> None:
        """Add the texts of the elements in an expression of MDX."""
        for bounds, inside in texts_in_expression(block.content, start, end):
            words, position = "", bounds[0]
            for construct in inside:
                words += block.content[position : construct.start]
                position = construct.end
            words += block.content[position : bounds[1]]
            if "{" not in words and "}" not in words:  # else it is nested too deep to be sure
                self._add(block, bounds, inside, "")

    def _add_heading(self, block: Block, number: int) -> None:
        """Remember a heading whose anchor is made from its text; one with `{#id}` has that anchor."""
        if _ANCHOR.search(block.content):
            return
        if number < len(self.segments):
            self._headings.append((number, self.segments[number].source))
        else:
            self._headings.append((None, TaggedText(block.content)))

    def _add(self, block: Block, bounds: tuple[int, int], constructs: list[Construct], suffix: str) -> None:
        """Add a segment; `bounds`: its range in the block."""
        parts, position = [], bounds[0]
        for construct in constructs:
            if construct.start >= position:
                parts += [Part(position, construct.start), _part(block.content, construct)]
                position = construct.end
        parts.append(Part(position, bounds[1]))
        decode = unescape if block.kind == "expression" else _decoded
        span = spanned(block.content, parts, decode, blank=BLANK_OF_HTML, folds=True)
        if not span:
            return
        marks, mark_spans = [], []
        for mark, (mark_start, mark_end) in zip(span.marked.marks, span.mark_spans, strict=True):
            if mark.raw == block.content[mark_start:mark_end]:
                mark = replace(mark, raw=self._raw(block, mark_start, mark_end))
            marks.append(mark)
            mark_spans.append(_in_file(block, mark_start, mark_end))
        start, end = _in_file(block, span.start, span.end)
        if start > self._line_offset:
            self._line += len(re.findall(r"\r\n|\n|\r", self._file.text[self._line_offset : start]))
            self._line_offset = start
        quote = self._file.text[start - 1] if suffix == ", title" else ""
        write = partial(_written, kind=block.kind, quote=quote, hard_space=self._hard_space, modules=self._modules)
        write_first = None
        if not suffix and block.kind not in ("cell", "title", "expression"):
            marker = _BEGINS_BLOCK.match(block.content[span.start : span.start + 40])
            write_first = partial(_begun, write=write, source_marker=marker and marker[2])
        marked = replace(span.marked, marks=tuple(marks))
        self._spans.add(len(self.segments), Span(start, end, marked, tuple(mark_spans)), write, write_first)
        self.segments.add(Segment(marked, f"line {self._line}{suffix}"))

    def _raw(self, block: Block, start: int, end: int) -> str:
        """Return the text to write for a mark: in one line, unless it is a line break."""
        content = block.content[start:end]
        if "\n" not in content:
            return self._file.text[slice(*_in_file(block, start, end))]
        if content.strip(" \t\n\\"):
            return content.replace("\n", " ")
        # A line break includes the beginning of the next line, such as the marker of a quote.
        return self._file.text[block.offsets[start] : block.offsets[end] if end < len(block.offsets) else None]


def _with_letter(content: str, construct: Construct) -> Construct:
    """Return an expression with the letter before it, as in `v{version}`."""
    if construct.kind != "kept" or content[construct.start] != "{":
        return construct
    letter = _LETTER.search(content, max(0, construct.start - 2), construct.start)
    return construct._replace(start=letter.start()) if letter else construct


class _Anchors:
    """The anchors of headings, as GitHub and most other programs make them; equal ones are numbered."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}

    def add(self, heading: TaggedText) -> str:
        """Return the anchor of the next heading."""
        text = ""
        for part in heading.parts:
            if isinstance(part, str):
                text += part
            elif part.raw.startswith("`"):
                text += part.raw.strip("`")
        anchor = re.sub(r"[^\w\- ]", "", text.strip().lower()).replace(" ", "-")
        count = self.counts.get(anchor, 0)
        self.counts[anchor] = count + 1
        return f"{anchor}-{count}" if count else anchor


def _links(text: str) -> Iterator[tuple[int, int]]:
    """Yield the ranges of the anchors in links within the file, except in fenced code."""
    fence, offset = "", 0
    for line in text.splitlines(keepends=True):
        if match := _FENCE.match(line):
            if not fence:
                fence = match[1]
            elif match[1].startswith(fence):
                fence = ""
        elif not fence:
            for link in _LINK.finditer(line):
                yield offset + link.start("anchor"), offset + link.end("anchor")
        offset += len(line)


def _in_file(block: Block, start: int, end: int) -> tuple[int, int]:
    return block.offsets[start], block.offsets[end - 1] + 1


def _part(content: str, construct: Construct) -> Part:
    """Return the mark for a construct."""
    start, end, kind, label, _ = construct
    raw = content[start:end]
    if kind == "html_inline":
        tag = _TAG.match(raw) or _JSX_TAG.match(raw)
        if not tag or tag[3] or tag[2].lower() in VOID:
            return Part(start, end, Side.alone, spaces=bool(tag and tag[2].lower() == "br"))
        return Part(start, end, Side.of_tag(closes=tag[1]), f"<{tag[2]}")
    name, _, side = kind.rpartition("_")
    if side == "open":
        return Part(start, end, Side.opens, name)
    if side == "close":
        rewritten = None
        # `[text]` becomes `[translation][text]`, so that it still refers to the same definition.
        if label and raw in ("]", "][]"):
            rewritten = f"][{' '.join(content[slice(*label)].split())}]"
        return Part(start, end, Side.closes, name, raw=rewritten)
    return Part(start, end, Side.alone, word=kind in ("code_inline", "kept"), spaces=kind == "hardbreak")


def _decoded(raw: str) -> str:
    return _ESCAPED.sub(lambda match: match[1] or unescape(match[2]), raw)


def _begun(words: str, write: Callable[[str], str], source_marker: str | None) -> str:
    """Encode words at the beginning of a line; a block marker is escaped, unless the source begins with it."""
    marker = _BEGINS_BLOCK.match(words)
    if not marker or marker[2] == source_marker:
        return write(words)
    return f"{marker[1]}\\{marker[2]}{write(words[marker.end() :])}"


def _written(words: str, kind: Kind, quote: str, hard_space: str, modules: bool) -> str:
    """Escape the characters of words that have a meaning in Markdown; `quote`: the one around a title."""
    if quote:
        quotes = re.escape("()" if quote == "(" else quote)
        return re.sub(rf"[\\{quotes}]", r"\\\g<0>", words)
    if kind == "expression":
        return escape(words, quote=False).replace("{", "&#123;").replace("}", "&#125;").replace("\xa0", hard_space)
    words = _SPECIAL.sub(_escaped, words).replace("\xa0", hard_space)
    if modules:
        words = re.sub(r"(?<!\\)[<{]", r"\\\g<0>", words)
    if kind == "heading":
        return _CLOSES_HEADING.sub(r"\\#", words)
    if kind == "title":
        return words.replace('"', "”")  # Such a title has no escape for it.
    if kind in ("cell", "underlined"):
        return words.replace("|", "\\|")
    return words


def _escaped(match: re.Match[str]) -> str:
    if match[1]:
        return match[1]
    return "&amp;" if match[0] == "&" else f"\\{match[0]}"


def read(name: str, content: bytes, languages: Languages) -> Markdown:
    """Parse a file.

    Raises:
        UserError: the file is not UTF-8, or nested too deep.
    """
    return Markdown(TextFile.of(name, content))
