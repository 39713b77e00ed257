"""Export of models to CTranslate2."""

from __future__ import annotations

from pathlib import Path

from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.engines.ctranslate2.conventions import Quantization
from translucid.engines.ctranslate2.convert import save_ctranslate2
from translucid.ground.paths import refuse_to_lose, whole_folder
from translucid.models.protocol import SequenceModel

HOLDS = "model.bin", "a CTranslate2 model"
"""A file by which an exported folder is recognised, and the name of its kind."""


def export_ctranslate2(
    model: SequenceModel, tokenizer: Tokenizer, out: Path, quantization: Quantization, *, overwrite: bool = False
) -> None:
    """Write a folder for `ctranslate2.Translator`, with the tokenizer in it, atomically.

    Raises:
        UserError: the model is not a Transformer, or the folder exists already or can't be written.
    """
    refuse_to_lose(out, overwrite, *HOLDS)
    with whole_folder(out) as folder:
        save_ctranslate2(model, tokenizer, folder, quantization)
        tokenizer.save(folder)
