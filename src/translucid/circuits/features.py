"""The features that are active in a translation: for each source and target token, the strongest of each sublayer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import torch

from translucid.api.translator import Translator
from translucid.circuits.dictionary import Dictionary, FeatureName
from translucid.circuits.replacement import read_states
from translucid.ground.console import table_of

if TYPE_CHECKING:
    from rich.table import Table

    from translucid.data.text_pipeline import EncodedPair

STRONGEST = 5
SHOWN = 3
"""The number of features of a token and sublayer in the terminal."""


@dataclass(frozen=True)
class TokenFeatures:
    """The features at the position of a source token, or at that from which a target token is predicted."""

    side: Literal["source", "target"]
    position: int
    """From 0, among the tokens of the side."""
    token: str
    """The piece, `▁` for a space."""
    strongest: Mapping[str, Sequence[tuple[FeatureName, float]]]
    """The strongest features of each sublayer and their values, the strongest first."""

    def to_json(self) -> dict[str, Any]:
        """Return the token and its features as plain values."""
        features = {}
        for sublayer, values in self.strongest.items():
            features[sublayer] = [{"feature": str(name), "value": round(value, 4)} for name, value in values]
        return {"side": self.side, "position": self.position, "token": self.token, "features": features}


@dataclass(frozen=True)
class TextFeatures:
    """The features of a text and its translation."""

    source: str
    target: str
    tokens: Sequence[TokenFeatures]
    """The source tokens, then the target tokens, of each piece of the text in turn."""

    def render(self) -> list[Table]:
        """Return a table for each side: tokens and their strongest features with values."""
        tables = []
        for side in ("source", "target"):
            rows = [token for token in self.tokens if token.side == side]
            table = table_of(side, *rows[0].strongest)
            for token in rows:
                cells = []
                for values in token.strongest.values():
                    cells.append("  ".join(f"{name.number} {value:.2f}" for name, value in values[:SHOWN]))
                table.add_row(token.token, *cells)
            tables.append(table)
        return tables


def features_of(
    translator: Translator,
    text: str,
    target: str | None = None,
    *,
    dictionary: Dictionary | None = None,
    strongest: int = STRONGEST,
) -> TextFeatures:
    """Return the strongest features of a text and its translation.

    Args:
        translator: a translator with the PyTorch engine.
        text: the source.
        target: a given target; the translator's own translation by default.
        dictionary: the dictionary of its run, if it has been read.
        strongest: the largest number of features of a token and sublayer.

    Raises:
        UserError: the run has no dictionary, or the text is too long for the model.
    """
    dictionary = dictionary or Dictionary.load(translator.loaded.folder)
    if target is None:
        translation = translator.translate(text)
        target, pairs = translation.text, translation.encoded
    else:
        pairs = translator.inspector.encoded([(text, target)])
    translator.inspector.refuse_too_long(pairs)
    tokens: list[TokenFeatures] = []
    for pair in pairs:
        tokens += _features_of_pair(translator, pair, dictionary, strongest)
    return TextFeatures(text, target, tokens)


@torch.inference_mode()
def _features_of_pair(
    translator: Translator, pair: EncodedPair, dictionary: Dictionary, strongest: int
) -> list[TokenFeatures]:
    tokenizer, device = translator.tokenizer, translator.device
    source, target = pair.input_ids
    transcoders = dictionary.to(device).transcoders
    ids = [torch.tensor([side], device=device) for side in (source, target)]
    states = read_states(translator.model, transcoders, *ids)
    read = int(translator.model.source_mask(ids[0]).sum())  # some models don't read the end token
    sides: dict[Literal["source", "target"], tuple[str, list[str]]] = {
        "source": ("encoder", tokenizer.source_pieces(source)[:read]),
        "target": ("decoder", tokenizer.target_pieces(target)),
    }
    tokens = []
    for side, (stack, pieces) in sides.items():
        tops = {}
        for name, transcoder in transcoders.items():
            if name.startswith(stack):
                tops[name] = transcoder.features(states.inputs[name]).topk(min(strongest, transcoder.k), dim=-1)
        for position, piece in enumerate(pieces):
            features = {}
            for name, top in tops.items():
                active = zip(top.indices[position].tolist(), top.values[position].tolist(), strict=True)
                features[name] = [(FeatureName(name, number), value) for number, value in active if value > 0]
            tokens.append(TokenFeatures(side, position, piece, features))
    return tokens
