"""HTML: its text is translated, its tags stay; inline ones are put back where the alignment says.

A run is text with nothing but inline tags in it, such as the inside of a paragraph. It is translated as plain text;
each inline element then goes around the target words that are aligned to the source words it stood around.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

from bs4 import BeautifulSoup
from bs4.element import Comment, NavigableString, PageElement, PreformattedString, Tag

from translucid.ground.stopping import between_steps
from translucid.serving.failures import ApiError
from translucid.translation import Translation

_INLINE = (
    "a abbr acronym b bdi bdo big br cite data del dfn em font i img ins label mark q s small span strike strong sub "
    "sup time tt u wbr"
)
INLINE = frozenset(_INLINE.split())
"""Elements that stand inside a text."""
KEPT = frozenset(
    ["script", "style", "template", "textarea", "noscript", "code", "kbd", "samp", "var", "pre", "svg", "math"]
)
"""Elements whose text is never translated."""

Links = list[tuple[int, int]]


@dataclass
class Run:
    """Neighbouring nodes that are translated as one text."""

    nodes: list[PageElement]
    text: str
    """Words, one space between two."""
    before: str
    after: str
    """White space around it."""


def find_runs(soup: BeautifulSoup) -> list[Run]:
    """Return the runs of a document in order, those without a word left out."""
    runs: list[Run] = []
    _collect(soup, runs)
    return runs


def _collect(parent: Tag, runs: list[Run]) -> None:
    group: list[PageElement] = []

    def close() -> None:
        text = "".join(_text(node) for node in group)
        if any(character.isalnum() for character in text):
            before = text[: len(text) - len(text.lstrip())]
            after = text[len(text.rstrip()) :]
            runs.append(Run(list(group), " ".join(text.split()), before, after))
        group.clear()

    for node in list(parent.children):
        if isinstance(node, PreformattedString) or (isinstance(node, Tag) and not _inline(node)):
            close()
            if isinstance(node, Tag) and node.name not in KEPT and node.get("translate") != "no":
                _collect(node, runs)
        else:
            group.append(node)
    close()


def _inline(tag: Tag) -> bool:
    return all(one.name in INLINE and one.get("translate") != "no" for one in (tag, *tag.find_all(True)))


def _text(node: PageElement) -> str:
    if isinstance(node, Tag):
        return "".join(_text(child) for child in node.children) or (" " if node.name == "br" else "")
    return "" if isinstance(node, Comment) else str(node)


@dataclass
class _Span:
    """An inline element and the source words from `first` to before `last` in it."""

    tag: Tag
    first: int
    last: int
    children: list[_Span]


def put_back(run: Run, translation: str, links: Links) -> None:
    """Replace the nodes of a run by its translation, inline elements around the words aligned to theirs.

    Args:
        run: of the document, which is changed.
        translation: of its text.
        links: (source word, target word) by white space.
    """
    words = translation.split()
    targets: dict[int, list[int]] = {}
    for source, target in links:
        targets.setdefault(source, []).append(target)
    spans = _spans(run.nodes)
    made = _filled(spans, words, 0, len(words), targets)
    first = run.nodes[0]
    for node in made:
        first.insert_before(node)
    if made:
        made[0].insert_before(NavigableString(run.before))
        made[-1].insert_after(NavigableString(run.after))
    for node in run.nodes:
        node.extract()


def _spans(nodes: Sequence[PageElement]) -> list[_Span]:
    """Count words through the nodes, and note where each inline element begins and ends."""
    at, open_word = 0, False

    def walk(nodes: Sequence[PageElement]) -> list[_Span]:
        nonlocal at, open_word
        found = []
        for node in nodes:
            if isinstance(node, Tag):
                first = at - 1 if open_word and _text(node)[:1].strip() else at
                children = walk(list(node.children))
                if node.name == "br":
                    open_word = False
                found.append(_Span(node, first, max(at, first), children))
            elif not isinstance(node, Comment):
                text = str(node)
                count = len(text.split())
                if open_word and text[:1].strip() and count:
                    count -= 1  # goes on with the word before
                at += count
                if text:
                    open_word = bool(text[-1].strip())
        return found

    return walk(nodes)


def _filled(
    spans: Sequence[_Span], words: Sequence[str], start: int, end: int, targets: dict[int, list[int]]
) -> list[PageElement]:
    """Return the nodes for target words `start` to before `end`, with these elements among them."""
    placed = []
    for span in spans:
        ours = sorted(t for s in range(span.first, span.last) for t in targets.get(s, []) if start <= t < end)
        if span.first == span.last:  # an empty element, such as br or img: after the words before it
            before = [t for s in range(span.first) for t in targets.get(s, []) if start <= t < end]
            place = max(before) + 1 if before else start
            placed.append((place, place, span))
        elif ours:
            placed.append((ours[0], ours[-1] + 1, span))
        else:  # no word is aligned to its words: it stays, empty, so that nothing is lost
            placed.append((end, end, span))
    nodes: list[PageElement] = []
    at = start
    for first, last, span in sorted(placed, key=lambda item: (item[0], item[1])):
        first, last = max(first, at), max(last, at)
        nodes += _plain(words[at:first], bool(nodes), first < end)
        tag = copy.copy(span.tag)
        tag.clear()
        for child in _filled(span.children, words, first, last, targets):
            tag.append(child)
        nodes.append(tag)
        if start < last < end and last > first:
            nodes.append(NavigableString(" "))
        at = last
    rest = _plain(words[at:end], False, False)
    return nodes + rest


def _plain(words: Sequence[str], follows: bool, goes_on: bool) -> list[PageElement]:
    if not words:
        return []
    return [NavigableString(" ".join(words) + (" " if goes_on else ""))]


class Document:
    """HTML taken apart."""

    def __init__(self, html: str) -> None:
        """Find its runs.

        Raises:
            ApiError: 400, its elements are nested hundreds deep.
        """
        try:
            self.soup = BeautifulSoup(html, "html.parser")
            self.runs = find_runs(self.soup)
        except RecursionError:
            raise _too_deep() from None

    def filled(self, translations: Sequence[Translation]) -> str:
        """Put the translation of each run into its place, and return the HTML; once only.

        Raises:
            ApiError: 400, its elements are nested hundreds deep.
        """
        try:
            for run, found in zip(self.runs, translations, strict=True):
                between_steps()
                single = len(run.nodes) == 1 and not isinstance(run.nodes[0], Tag)
                put_back(run, found.text, [] if single else found.alignment)
            return self.soup.decode(formatter="minimal")
        except RecursionError:
            raise _too_deep() from None


def _too_deep() -> ApiError:
    return ApiError(400, "Invalid request: the HTML is nested too deep")
