"""A text whose words are coloured by what they speak for: in the terminal, on a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from rich.style import Style
from rich.text import Text

from translucid.inspection.html import document

FOR, AGAINST = (37, 99, 235), (220, 80, 20)
"""Red, green and blue of what speaks for something and against it; told apart by people who see no red or green."""


@dataclass(frozen=True)
class HighlightedText:
    """Words, and how strongly each speaks for something (above 0) or against it (below)."""

    words: list[str]
    values: list[float]

    def shares(self) -> list[float]:
        """Return the values by the largest of them, -1 to 1."""
        largest = max(map(abs, self.values), default=0.0) or 1.0
        return [value / largest for value in self.values]

    def text(self) -> Text:
        """Return it for the terminal: blue speaks for, orange against, and the strongest are bold."""
        text = Text()
        for place, (word, share) in enumerate(zip(self.words, self.shares(), strict=True)):
            red, green, blue = FOR if share > 0 else AGAINST
            style = Style(color=f"rgb({red},{green},{blue})", bold=abs(share) > 0.5) if abs(share) > 0.15 else Style()
            text.append(" " if place else "").append(word, style)
        return text

    def html(self) -> str:
        """Return it for a page: the stronger, the deeper the colour behind a word, and the figure where one points."""
        return " ".join(
            f"<span title='{value:+.3f}' style='background:rgba({','.join(map(str, FOR if share > 0 else AGAINST))},"
            f"{0.75 * abs(share):.2f})'>{escape(word)}</span>"
            for word, value, share in zip(self.words, self.values, self.shares(), strict=True)
        )


def coloured_page(title: str, heading: str, parts: Mapping[str, HighlightedText], notes: Sequence[str] = ()) -> str:
    """Return a page of one file that needs no network: coloured texts under their names, and notes below."""
    style = (
        "body { margin: 2rem auto; padding: 0 1rem; max-width: 45rem; font: 1rem/1.9 var(--sans); }\n"
        "body { color: var(--ink); background: var(--paper); }\n"
        "span { border-radius: .2em; padding: .1em .05em; }\nsmall { opacity: .75; }\n"
    )
    sections = "".join(f"<h2>{escape(name)}</h2>\n<p>{part.html()}</p>\n" for name, part in parts.items())
    told = "".join(f"<p><small>{escape(note)}</small></p>\n" for note in notes)
    return document(title, style, f"<main>\n<h1>{escape(heading)}</h1>\n{sections}{told}</main>\n")
