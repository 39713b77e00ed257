"""`look --lens`: what each layer of a translator or a captioner predicts."""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path
from typing import TYPE_CHECKING

from translucid.ground.console import Console
from translucid.ground.errors import UserError
from translucid.inspection import refuse_untranslated

if TYPE_CHECKING:
    from translucid.api.captioner import Captioner
    from translucid.api.translator import Translator
    from translucid.cli.look import View
    from translucid.inspection.lens import DecoderLens, Lens

_ATTENTION_FLAGS = "--layer", "--head", "--flow", "--method", "--why", "--tsv", "--language-piece"
_KINDS = ".html", ".json"
"""The formats in which the DecoderLens is saved."""


def refuse_with_lens(view: View, save: Path | None, flags: Container[str]) -> None:
    """Check, before any work, that the options can be combined with a lens; `flags` are the given ones.

    Raises:
        UserError: one does not.
    """
    for name in _ATTENTION_FLAGS:
        if name in flags:
            raise UserError(f"{name} does not go with --lens", fix="Leave it out.")
    if view.lens == "tuned" and view.ablate:
        what = "--ablate does not go with --lens tuned, which was learned with all heads"
        raise UserError(what, fix="Use --lens logit.")
    if view.lens != "decoder":
        return
    if view.target is not None:
        raise UserError("--target does not go with --lens decoder: the decoder writes freely", fix="Leave it out.")
    if save and save.suffix.lower() not in _KINDS:
        raise UserError("is no kind that translations are saved as", file=save, fix="End it in .html or .json.")


def look_at_layers(translator: Translator, text: str, view: View, save: Path | None) -> None:
    """Show what each layer of a translator predicts.

    Raises:
        UserError: the model is no Transformer, there is no tuned lens, or nothing is translated.
    """
    if view.lens == "decoder":
        _show_translations(translator.decoder_lens(text, context=view.context), save)
    else:
        lenses = translator.lens(text, view.target, tuned=view.lens == "tuned", context=view.context)
        _show_lenses(lenses, text, save)


def look_at_layers_of_captioner(captioner: Captioner, image: str | None, view: View, save: Path | None) -> None:
    """Show what each layer of a captioner predicts.

    Raises:
        UserError: the model is no Transformer, the image can't be read, or a tuned lens is requested.
    """
    from translucid.cli.images import picture_of

    if view.lens == "tuned":
        raise UserError("a tuned lens is for translators", fix="Use --lens logit.")
    picture = picture_of(captioner, image)
    if view.lens == "decoder":
        _show_translations(captioner.decoder_lens(picture), save)
    else:
        _show_lenses([captioner.lens(picture, view.target)], image or "", save)


def _show_lenses(lenses: list[Lens], source: str, save: Path | None) -> None:
    from translucid.inspection.lens_views import NOTE, save_lenses, terminal_table

    refuse_untranslated(lenses)
    console = Console()
    for lens in lenses:
        console.print(terminal_table(lens))
        console.print()
    console.print(NOTE)
    if save:
        save_lenses(lenses, save, source)
        console.print(f"\nsaved: {save}", soft_wrap=True)


def _show_translations(lens: DecoderLens, save: Path | None) -> None:
    from translucid.inspection.lens_views import save_decoder_lens, terminal_translations

    console = Console()
    console.print(terminal_translations(lens))
    if save:
        save_decoder_lens(lens, save)
        console.print(f"\nsaved: {save}", soft_wrap=True)
