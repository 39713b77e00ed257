"""Models to take away."""

from __future__ import annotations

import shutil
from pathlib import Path

from translucid.data.tokenizer import Tokenizer
from translucid.engines.ctranslate2.conventions import Quantization
from translucid.engines.ctranslate2.convert import save_ctranslate2
from translucid.ground.errors import UserError
from translucid.models.protocol import SequenceModel


def refuse_to_lose(out: Path, overwrite: bool) -> None:
    """Check, before any work, that a folder may be written.

    Raises:
        UserError: it is there and may not be replaced, or there is nowhere to put it.
    """
    if out.exists() and not overwrite:
        raise UserError("is there already", file=out, fix="Replace it with --overwrite.")
    if out.exists() and not (out / "model.bin").exists():
        raise UserError("is not a CTranslate2 model, so it is not replaced", file=out, fix="Choose another folder.")
    if not out.parent.is_dir():
        raise UserError("can't be written (there is no such folder)", file=out, fix="Check the path.")


def export_ctranslate2(
    model: SequenceModel, tokenizer: Tokenizer, out: Path, quantization: Quantization, *, overwrite: bool = False
) -> None:
    """Write a folder for `ctranslate2.Translator` with the tokenizer in it; it appears when it is whole.

    Raises:
        UserError: the model is not a Transformer, the folder is there already, or can't be written.
    """
    refuse_to_lose(out, overwrite)
    half = out.with_name(f".{out.name}.tmp")
    shutil.rmtree(half, ignore_errors=True)
    try:
        save_ctranslate2(model, tokenizer, half, quantization)
        tokenizer.save(half)
        if out.exists():
            shutil.rmtree(out)
        half.rename(out)
    except OSError as error:
        raise UserError(f"can't be written ({error.strerror})", file=out, fix="Choose another folder.") from error
    finally:
        shutil.rmtree(half, ignore_errors=True)
