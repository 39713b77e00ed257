"""A text whose words are colored by their importance: in the terminal, on a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from rich.style import Style
from rich.text import Text

from translucid.inspection.rendering.html import document

FOR, AGAINST = (37, 99, 235), (220, 80, 20)
"""Blue and orange, in RGB, for positive and negative importance: the color-blind can tell them apart."""


@dataclass(frozen=True)
class HighlightedText:
    """Words with their importance: above 0 a word supports a prediction, below 0 it speaks against it."""

    words: list[str]
    values: list[float]

    def shares(self) -> list[float]:
        """Return the values divided by the largest absolute value, -1 to 1."""
        largest = max(map(abs, self.values), default=0.0) or 1.0
        return [value / largest for value in self.values]

    def text(self) -> Text:
        """Return the text for the terminal: blue supports, orange speaks against, and strong words are bold."""
        text = Text()
        for index, (word, share) in enumerate(zip(self.words, self.shares(), strict=True)):
            if index:
                text.append(" ")
            text.append(word, _style(share))
        return text

    def html(self) -> str:
        """Return the text for a page: the more important a word, the deeper its color; values are tooltips."""
        spans = []
        for word, value, share in zip(self.words, self.values, self.shares(), strict=True):
            color = ",".join(map(str, _color(share)))
            style = f"background:rgba({color},{0.75 * abs(share):.2f})"
            spans.append(f"<span title='{value:+.3f}' style='{style}'>{escape(word)}</span>")
        return " ".join(spans)


def _color(share: float) -> tuple[int, int, int]:
    return FOR if share > 0 else AGAINST


def _style(share: float) -> Style:
    if abs(share) <= 0.15:  # a terminal has no paler blue and orange for unimportant words
        return Style()
    red, green, blue = _color(share)
    return Style(color=f"rgb({red},{green},{blue})", bold=abs(share) > 0.5)


def colored_page(heading: str, texts: Mapping[str, HighlightedText], notes: Sequence[str]) -> str:
    """Return a page in one file without external resources: colored texts under their names, and notes below."""
    style = (
        "body { margin: 2rem auto; padding: 0 1rem; max-width: 45rem; font: 1rem/1.9 var(--sans); }\n"
        "body { color: var(--text); background: var(--background); }\n"
        "span { border-radius: .2em; padding: .1em .05em; }\nsmall { opacity: .75; }\n"
    )
    body = f"<main>\n<h1>{escape(heading)}</h1>\n"
    for name, text in texts.items():
        body += f"<h2>{escape(name)}</h2>\n<p>{text.html()}</p>\n"
    for note in notes:
        body += f"<p><small>{escape(note)}</small></p>\n"
    return document(heading, style, body + "</main>\n")
