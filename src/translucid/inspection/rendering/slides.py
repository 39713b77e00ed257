"""Slides about a translation: figures of one style, each with a question, as a page and as SVG for other programs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from translucid.attention.masks import target_mask
from translucid.decoding.hypothesis import percent
from translucid.decoding.trace import BeamTrace
from translucid.ground.special import SPELLINGS
from translucid.inspection.inspected import Inspected
from translucid.inspection.plots import (
    draw_beam,
    draw_curves,
    draw_heads,
    draw_mask,
    draw_positions,
    draw_ribbons,
    draw_words,
    rendered,
)
from translucid.inspection.rendering.captions import current_caption, described
from translucid.inspection.rendering.html import document
from translucid.inspection.rendering.message_catalogs import gettext_in
from translucid.inspection.words import WordMap
from translucid.layers.positions import sinusoidal_positions

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.text import Text

MARKER = "index.html", "a folder of slides"
"""The file by which a folder of slides is known, and what the folder is called."""
WIDTH, HEIGHT, MARGIN, TOP, BOTTOM = 1280, 720, 56, 105, 596
"""The size of a slide, and the edges of its figure, in pixels."""
SMALLEST = 17
"""The size of the smallest letters, in pixels of a slide, as far as there is room for them."""
MOST_ENLARGED = 1.5
"""How many times its size a text may get."""

_STYLE = f"""body {{ margin: 0; background: #ffffff; }}
section {{ position: relative; width: min(100vw, 100vh * {WIDTH} / {HEIGHT}); margin: 0 auto; }}
section > svg {{ display: block; width: 100%; height: auto; }}
.answer {{ position: absolute; left: 4.4%; right: 4.4%; bottom: 1%; margin: 0; color: #17572a;
  font: 600 clamp(0.6rem, 1.75vmin + 0.6vw, 3rem) / 1.3 system-ui, sans-serif; }}
@media screen {{ section:not(.shown), section:not(.answered) .answer {{ display: none; }} }}
@media print {{ @page {{ size: {WIDTH}px {HEIGHT}px; margin: 0; }} section {{ break-after: page; width: {WIDTH}px; }} }}
"""
_SCRIPT = """const slides = [...document.querySelectorAll("section")];
let current = Math.min(slides.length, Math.max(1, Number(location.hash.slice(1)) || 1)) - 1;
function show(index, answered) {
  current = index;
  slides.forEach((slide, i) => slide.classList.toggle("shown", i === current));
  slides[current].classList.toggle("answered", answered);
  history.replaceState(null, "", `#${current + 1}`);
}
function forward() {
  const answered = slides[current].classList.contains("answered");
  if (!answered) show(current, true);
  else if (current + 1 < slides.length) show(current + 1, false);
}
function back() {
  if (slides[current].classList.contains("answered")) show(current, false);
  else if (current > 0) show(current - 1, true);
}
addEventListener("keydown", (event) => {
  if (["ArrowRight", "ArrowDown", "PageDown", " ", "Enter"].includes(event.key)) forward();
  else if (["ArrowLeft", "ArrowUp", "PageUp", "Backspace"].includes(event.key)) back();
  else if (event.key === "Home") show(0, false);
  else if (event.key === "End") show(slides.length - 1, false);
  else return;
  event.preventDefault();
});
addEventListener("click", (event) => (event.clientX < innerWidth / 3 ? back() : forward()));
show(current, false);
"""


class Slide(NamedTuple):
    """A figure with a question."""

    name: str
    """The name of the file, without number and ending."""
    title: str
    question: str
    answer: str
    figure: Figure


def slides_of(
    inspected: Inspected, trace: BeamTrace, metrics: Sequence[Mapping[str, Any]], language: str = "en"
) -> Iterator[Slide]:
    """Yield slides about a translation.

    Args:
        inspected: the translation; what its model lacks, such as self-attention, has no slide.
        trace: its search.
        metrics: rows of `metrics.jsonl`; without any, there is no slide about the training.
        language: the code of the language of the texts.

    Raises:
        UserError: there is no catalog of the language.
    """
    gettext = gettext_in(language)
    for slide in _slides(inspected, trace, metrics, gettext):
        for label in _labels(slide.figure):
            label.set_text(_label_in(label.get_text(), gettext))
        yield slide


def _slides(
    inspected: Inspected, trace: BeamTrace, metrics: Sequence[Mapping[str, Any]], gettext: Callable[..., str]
) -> Iterator[Slide]:
    words = inspected.cross_words()
    heads, is_transformer = inspected.heads, "decoder.0.self" in inspected.maps
    target, source, weight = _strongest(words)
    yield Slide(
        "attention",
        gettext("Where does the model look?"),
        gettext("Which word of the source does “{target}” attend to most?", target=target),
        gettext(
            "“{source}”, with {share} of the attention, on average over all layers and heads.",
            source=source,
            share=percent(weight),
        ),
        draw_ribbons(words),
    )
    yield Slide(
        "query-key",
        gettext("Queries down, keys across"),
        gettext("Who asks, and who is asked?"),
        gettext("A row is a query: a word of the translation. A column is a key: a word of the source. Rows sum to 1."),
        _queries_and_keys(words),
    )
    if is_transformer:
        yield Slide(
            "mask",
            gettext("The decoder must not read ahead"),
            gettext("In training the decoder gets the whole translation. Which words may each word see?"),
            gettext(
                "Itself and those before it. All other scores become −∞ before the softmax, so their weights are 0."
            ),
            _mask(inspected),
        )
        yield Slide(
            "positions",
            gettext("Positions"),
            gettext("What would attention know about the order of the words without this matrix?"),
            gettext("Nothing: the context is a weighted mean of values, and a mean has no order."),
            draw_positions(sinusoidal_positions(100, 128)),
        )
    name = max(name for name in heads if name.endswith(".cross"))
    if heads[name] > 1:
        layer = int(name.split(".")[1])
        yield Slide(
            "heads",
            gettext("The heads of layer {number}", number=layer),
            gettext("Why several heads, and not one that is as wide?"),
            gettext("Each has one softmax, so one pattern. Several heads look at several words."),
            draw_heads(inspected, layer),
        )
    yield Slide(
        "beam",
        gettext("Beam search"),
        gettext("Why not take the most probable word at each step?"),
        gettext("The most probable sentence may begin with another word, and greedy search can't go back."),
        draw_beam(trace),
    )
    if metrics:
        yield Slide(
            "training",
            gettext("How it learned"),
            gettext("When would you have stopped the training?"),
            gettext("When the validation loss stops falling. The training loss does not tell: it keeps falling."),
            draw_curves({"model": metrics}),
        )


gettext_noop = str  # marks a text that `_label_in` translates
LABELS = (
    gettext_noop("attention"),
    gettext_noop("keys: the source"),
    gettext_noop("queries: the translation"),
    gettext_noop("key"),
    gettext_noop("query"),
    gettext_noop("dimension"),
    gettext_noop("dimension {number}"),
    gettext_noop("position"),
    gettext_noop("the matrix P"),
    gettext_noop("single dimensions over positions"),
    gettext_noop("position {number} over the dimensions"),
    gettext_noop("head {number}"),
    gettext_noop("step"),
    gettext_noop("kept"),
    gettext_noop("ended"),
    gettext_noop("dropped"),
    gettext_noop("loss"),
    gettext_noop("loss (nats a token)"),
    gettext_noop("model"),
    gettext_noop("training"),
    gettext_noop("validation"),
    gettext_noop("validation BLEU"),
    gettext_noop("learning rate"),
    gettext_noop("minutes"),
)
"""The labels in the figures: titles, names of axes, legends."""


def _labels(figure: Figure) -> Iterator[Text]:
    """Yield the texts of a figure that are not words of the sentences."""
    legends = list(figure.legends)
    for axes in figure.axes:
        yield from (axes.title, axes.xaxis.label, axes.yaxis.label)
        legends += filter(None, [axes.get_legend()])
    for legend in legends:
        yield from legend.get_texts()


def _label_in(text: str, gettext: Callable[..., str]) -> str:
    """Return a label, such as "decoder.1.cross, head 0", in another language."""
    parts = []
    for part in text.split(", "):
        number = re.search(r"\b\d+\b", part)
        name = part if number is None else f"{part[: number.start()]}{{number}}{part[number.end() :]}"
        parts.append(gettext(name, number=number and number[0]))
    return ", ".join(parts)


def _strongest(words: WordMap) -> tuple[str, str, float]:
    """Return the target word with the greatest weight on a source word, that word and the weight; no end tokens."""
    weights = words.weights[: len(words.target) - 1, : len(words.source) - 1]
    target, source = divmod(int(weights.argmax()), weights.size(1))
    return words.target[target], words.source[source], float(weights[target, source])


def _queries_and_keys(words: WordMap) -> Figure:
    figure = draw_words(words)
    figure.axes[0].set(xlabel="keys: the source", ylabel="queries: the translation")
    figure.axes[0].xaxis.set_label_position("bottom")
    return figure


def _mask(inspected: Inspected) -> Figure:
    from torch import arange

    pieces = [SPELLINGS.start, *inspected.target[:-1]]
    labels = [piece.replace("▁", "") or "▁" for piece in pieces]
    return draw_mask(target_mask(arange(1, len(labels) + 1)[None], 0), labels, labels)


def save_slides(slides: Iterable[Slide], folder: Path, language: str = "en") -> int:
    """Write a page with all slides and an SVG for each; return how many there are."""
    caption = current_caption()
    sections = []
    for number, slide in enumerate(slides, 1):
        svg = _svg(slide, caption.split("\n")[0])
        (folder / f"{number}-{slide.name}.svg").write_text(described(svg, caption), encoding="utf-8")
        sections.append(f'<section>{svg}<p class="answer">{escape(slide.answer)}</p></section>\n')
    gettext = gettext_in(language)
    title = gettext("Attention, step by step")
    body = f"<main>\n{''.join(sections)}</main>\n<script>\n{_SCRIPT}</script>\n"
    (folder / MARKER[0]).write_text(document(title, _STYLE, body, language), encoding="utf-8")
    return len(sections)


def _svg(slide: Slide, origin: str) -> str:
    """Return a slide as an SVG, whose texts stay texts."""
    _enlarge(slide.figure)
    figure = rendered(slide.figure, "svg").decode()
    box = re.search(r'viewBox="[^"]*"', figure)
    assert box
    content = figure[figure.index(">", box.start()) + 1 :]
    place = f'x="{MARGIN}" y="{TOP}" width="{WIDTH - 2 * MARGIN}" height="{BOTTOM - TOP}"'
    font = 'font-family="system-ui, sans-serif"'
    question_size = min(26, 2080 / len(slide.question))  # about 80 letters fill the width
    return f"""<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"
 viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(slide.title)}" {font} fill="#1c2430">
<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>
<text x="{MARGIN}" y="76" font-size="44" font-weight="700">{escape(slide.title)}</text>
<text x="{WIDTH - MARGIN}" y="40" font-size="14" text-anchor="end" fill="#56606d">{escape(origin)}</text>
<svg {place} {box[0]}>{content}
<text x="{MARGIN}" y="636" font-size="{question_size:.3g}">{escape(slide.question)}</text>
</svg>
"""


def _enlarge(figure: Figure) -> None:
    """Fill the height of the slide, and enlarge the texts that could not be read from the last row."""
    from matplotlib.text import Text

    slope = (BOTTOM - TOP) / (WIDTH - 2 * MARGIN)
    figure.set_figheight(max(figure.get_figheight(), slope * figure.get_figwidth()))
    scale = min((WIDTH - 2 * MARGIN) / figure.get_figwidth(), (BOTTOM - TOP) / figure.get_figheight()) / 72
    for text in figure.findobj(Text):
        size = float(text.get_fontsize())
        text.set_fontsize(min(max(size, SMALLEST / scale), MOST_ENLARGED * size))
