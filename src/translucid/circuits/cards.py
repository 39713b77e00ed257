"""Cards: what is known of a feature.

- Its strongest contexts, with the token at which it is active, and the words that the attention links to it.
- What a feature of the decoder writes directly to the logits: W_U N(w_i), minus the mean over the vocabulary. w_i is
  its row of W_d, and N are the norms after it without their deviations: minus the mean, times the gain. It passes no
  other sublayer. A feature of the encoder is read by the cross-attention, whose effect is not linear in it, so its card
  shows only the words of the translation that are linked to its contexts.
- Its label, if `labels.py` has measured one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from rich.text import Text
from torch import Tensor

from translucid.api.translator import Translator
from translucid.circuits.contexts import Context, Contexts, contexts_of
from translucid.circuits.dictionary import Dictionary, FeatureName
from translucid.circuits.kinds import PAGE
from translucid.circuits.labels import Meaning, Meanings
from translucid.data.text_pipeline import EncodedPair
from translucid.ground.console import Console, table_of
from translucid.inspection.rendering.html import scripted_page, web_file
from translucid.inspection.words import span_words
from translucid.layers.residual import Residual
from translucid.models.transformer import BlockStacks, DecoderBlock

if TYPE_CHECKING:
    from rich.console import RenderableType

    from translucid.inspection.word_weights import WordWeights

PIECES = 8
"""The number of pieces that a card shows as promoted, and as suppressed."""
SITES = {"source": "", "read": ", of the word read", "written": ", of the word written"}
AROUND = 6
"""The number of words that are shown before and after the marked ones."""
WORDS = 6
"""The number of linked words."""
_FRAME = """body { margin: 2rem auto; padding: 0 1rem; max-width: 60rem; background: var(--background); }
main h1 { font-size: var(--large); }
"""


class Effect(NamedTuple):
    """What a feature adds to the logit of a piece for each unit of its value, at a deviation of 1."""

    token: str
    effect: float


class CardContext(NamedTuple):
    """A context in words; the end token stands in it only if it is marked."""

    value: float
    token: str
    """The piece at which the feature is active."""
    source: list[str]
    target: list[str]
    source_marked: list[int]
    """The source word at which a feature of the encoder is active, or those linked to the target word."""
    target_marked: list[int]


class LinkedWord(NamedTuple):
    """A word of the other side that is linked to contexts."""

    word: str
    contexts: int
    """The number of contexts."""


@dataclass(frozen=True)
class Card:
    """What is known of a feature."""

    name: str
    share: float
    """The share of source tokens, or of target tokens, at which it is active."""
    largest: float
    """Its largest value."""
    meaning: Meaning | None
    contexts: Sequence[CardContext]
    promotes: Sequence[Effect]
    suppresses: Sequence[Effect]
    words: Sequence[LinkedWord]
    """Source words of a feature of the decoder, target words of one of the encoder, with the number of contexts."""

    @property
    def label(self) -> str:
        """Its label with the F1; empty without one."""
        if self.meaning is None:
            return ""
        f1, site = self.meaning.units["feature"].f1, SITES[self.meaning.site]
        return f"{self.meaning.label}: {self.meaning.value}{site} (F1 {f1:.2f}, always {self.meaning.always:.2f})"

    @property
    def is_of_encoder(self) -> bool:
        """Whether it is a feature of the encoder."""
        return self.name.startswith("encoder")

    @property
    def facts(self) -> str:
        """How often it is active, and its largest value."""
        if not self.contexts:
            return "never active in the text"
        side = "source" if self.is_of_encoder else "target"
        return f"active at {100 * self.share:.2g} % of the {side} tokens, at most {self.largest:.3g}"

    def to_json(self) -> dict[str, Any]:
        """Return the card as plain values."""
        meaning = None
        if self.meaning is not None:
            meaning = {name: getattr(self.meaning, name) for name in ("label", "value", "site", "always", "words")}
            meaning["f1"] = self.meaning.units["feature"].f1
        names = ("name", "share", "largest", "label", "facts", "linked")
        record: dict[str, Any] = {key: getattr(self, key) for key in names}
        for key in ("contexts", "promotes", "suppresses", "words"):
            record[key] = [item._asdict() for item in getattr(self, key)]
        return {**record, "meaning": meaning, "label": self.label, "facts": self.facts, "linked": self.linked}

    def render(self) -> list[RenderableType]:
        """Return the card for the terminal."""
        parts: list[RenderableType] = [Text.assemble((self.name, "bold"), f"  {self.facts}")]
        if self.label:
            parts.append(Text(self.label, "green"))
        for title, effects in (("promotes", self.promotes), ("suppresses", self.suppresses)):
            if effects:
                listed = "  ".join(f"{effect.token} {effect.effect:+.2f}" for effect in effects)
                parts.append(Text.assemble((f"{title}: ", "bold"), listed))
        if self.words:
            listed = "  ".join(f"{word.word} {word.contexts}" for word in self.words)
            parts.append(Text.assemble((f"{self.linked}: ", "bold"), listed))
        table = table_of("source", "target", figures=("value",), overflow="fold")
        for context in self.contexts:
            strong, weak = "bold reverse", "underline"
            source = _marked(context.source, context.source_marked, strong if self.is_of_encoder else weak)
            target = _marked(context.target, context.target_marked, weak if self.is_of_encoder else strong)
            table.add_row(source, target, f"{context.value:.2f}")
        return [*parts, table] if self.contexts else parts

    @property
    def linked(self) -> str:
        """What the linked words are."""
        return "translated as" if self.is_of_encoder else "comes from"


def _window(words: Sequence[str], marked: Sequence[int]) -> list[tuple[str, bool]]:
    """Return the words around the marked ones, and whether each is marked; `…` stands for those that are left out."""
    start = max(0, min(marked, default=0) - AROUND)
    stop = max(marked, default=AROUND) + AROUND + 1
    shown = [(words[i], i in marked) for i in range(start, min(stop, len(words)))]
    return [*[("…", False)] * (start > 0), *shown, *[("…", False)] * (stop < len(words))]


def _marked(words: Sequence[str], marked: Sequence[int], style: str) -> Text:
    text = Text()
    for word, is_marked in _window(words, marked):
        text.append(" " if text else "").append(word, style if is_marked else "")
    return text


def card_of(
    translator: Translator,
    dictionary: Dictionary,
    name: str,
    *,
    contexts: Contexts | None = None,
    meanings: Meanings | None = None,
    console: Console | None = None,
) -> Card:
    """Return the card of a feature.

    Args:
        translator: a translator with the PyTorch engine.
        dictionary: its dictionary.
        name: the name of the feature, such as `decoder.1.feature.412`.
        contexts: the contexts of its run, if they have been read.
        meanings: its labels, if they have been read.
        console: shows the progress if the contexts have to be found.

    Raises:
        UserError: there is no such feature, or its contexts can't be found.
    """
    feature = dictionary.parse_feature(name)
    contexts = contexts or contexts_of(translator, dictionary, console=console or Console(stderr=True))
    meanings = meanings or Meanings.load(translator.loaded.folder, dictionary)
    strongest = contexts.of(feature)
    in_words = _in_words(translator, feature, strongest)
    words: Counter[str] = Counter()
    is_of_encoder = feature.sublayer.startswith("encoder")
    for context in in_words:
        side, marked = context.source, context.source_marked
        if is_of_encoder:
            side, marked = context.target, context.target_marked
        words.update(side[i].strip(".,?!¿¡").lower() for i in marked)
    promotes, suppresses = direct_effects(translator, dictionary, feature)
    return Card(
        str(feature),
        contexts.share(feature),
        strongest[0].value if strongest else 0.0,
        meanings.features.get(str(feature)) if meanings else None,
        in_words,
        promotes,
        suppresses,
        [LinkedWord(*entry) for entry in words.most_common(WORDS)],
    )


def _in_words(translator: Translator, feature: FeatureName, contexts: Sequence[Context]) -> list[CardContext]:
    """Return contexts in words, with the words that the attention links to the marked one."""
    if not contexts:
        return []
    options = translator.configuration.alignment
    if options.method == "contributions":  # they take seconds for long pairs
        options = options.model_copy(update={"method": "weights", "layer": None})
    pairs = [EncodedPair(context.source, context.target) for context in contexts]
    linked = translator.inspector.word_weights(pairs, options)
    is_of_encoder = feature.sublayer.startswith("encoder")
    tokenizer, in_words = translator.tokenizer, []
    for context, weights in zip(contexts, linked, strict=True):
        source, target = span_words(weights.source), span_words(weights.target)
        marked = _word_at(weights.source if is_of_encoder else weights.target, context.position)
        pieces = tokenizer.source_pieces(context.source) if is_of_encoder else tokenizer.target_pieces(context.target)
        if marked is None:
            # The end token, or a language token.
            shown = source if is_of_encoder else target
            shown.append(pieces[context.position])
            marked, others = len(shown) - 1, []
        else:
            others = _linked_words(weights, marked, is_source=is_of_encoder)
        source_marked, target_marked = ([marked], others) if is_of_encoder else (others, [marked])
        piece = pieces[context.position]
        in_words.append(CardContext(round(context.value, 4), piece, source, target, source_marked, target_marked))
    return in_words


def _word_at(spans: Sequence[tuple[str, int, int]], position: int) -> int | None:
    return next((i for i, (_, start, end) in enumerate(spans) if start <= position < end), None)


def _linked_words(weights: WordWeights, word: int, *, is_source: bool) -> list[int]:
    """Return the source word with the largest weight of a target word, or the target words whose largest it is."""
    if not weights.weights.size:
        return []
    largest = weights.weights.argmax(1)
    if is_source:
        return [int(i) for i in (largest == word).nonzero()[0]]
    return [int(largest[word])]


@torch.no_grad()
def direct_effects(
    translator: Translator, dictionary: Dictionary, feature: FeatureName
) -> tuple[list[Effect], list[Effect]]:
    """Return the pieces that a feature of the decoder promotes and suppresses most; none for one of the encoder."""
    model = translator.model
    stack, _, layer = feature.sublayer.partition(".")
    if stack != "decoder" or not isinstance(model, BlockStacks):
        return [], []
    direction = dictionary.transcoders[feature.sublayer].decoder_weight[feature.number].to(translator.device)
    for norm in _norms_after(model, int(layer)):
        direction = (direction - direction.mean()) * norm.weight
    logits: Tensor = model.output.weight @ direction
    logits = (logits - logits.mean()).cpu()
    listed = []
    for sign in (1, -1):
        top = (sign * logits).topk(min(PIECES, len(logits)))
        pieces = translator.tokenizer.target_pieces(top.indices.tolist())
        effects = [
            Effect(piece, round(sign * value, 4)) for piece, value in zip(pieces, top.values.tolist(), strict=True)
        ]
        listed.append(effects)
    return listed[0], listed[1]


def _norms_after(model: BlockStacks, layer: int) -> list[torch.nn.LayerNorm]:
    """Return the norms that the output of a feed-forward sublayer of the decoder passes on the residual path."""
    norms: list[torch.nn.Module] = []
    for number, block in enumerate(model.decoder):
        assert isinstance(block, DecoderBlock)
        residuals = [residual for residual in block.residuals if isinstance(residual, Residual) and not residual.pre]
        if number >= layer:
            norms += [residual.norm for residual in (residuals[-1:] if number == layer else residuals)]
    norms.append(model.decoder_norm)
    return [norm for norm in norms if isinstance(norm, torch.nn.LayerNorm)]


def card_page(card: Card) -> str:
    """Return a card as a page in one file, which needs no network."""
    style = web_file("inspector.css") + (PAGE / "features.css").read_text(encoding="utf-8") + _FRAME
    head = f"<h1>{escape(card.name)}</h1>\n"
    return scripted_page(card.name, style, head, card.to_json(), PAGE / "feature_card.js", "fillCard")
