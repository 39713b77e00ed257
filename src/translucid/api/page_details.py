"""What pages and notebooks show of a translation besides its attention, as plain values."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from translucid.api.lenses import layers_record
from translucid.ground.errors import UserError

if TYPE_CHECKING:
    from translucid.api.translator import Translator


def page_details(
    translator: Translator, source: str, target: str, before: Sequence[Sequence[int]] = ()
) -> dict[str, Any]:
    """Return those details of a sentence and its translation that apply to the model, as `html.page` takes them.

    `before` are the sentences before it, for a run with document context (`Piece.before`).
    """
    details: dict[str, Any] = {}
    with suppress(UserError):  # recurrent models have no layers that a lens applies to
        details["layers"] = layers_details(translator, source, target, before)
    return details


def layers_details(
    translator: Translator, source: str, target: str, before: Sequence[Sequence[int]] = ()
) -> dict[str, Any]:
    """Return the predictions of each layer for a sentence and its translation.

    Raises:
        UserError: the model is no Transformer, or a text is too long.
    """
    record = layers_record(translator, source, target, before)
    (lens,) = record["pieces"]
    return {**lens, "encoder": record["encoder"]}
