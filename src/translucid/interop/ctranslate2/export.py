"""Models to take away, with a look at what 8-bit weights cost."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

import torch

from translucid.data.corpus import Pair
from translucid.data.tokenizer import Tokenizer
from translucid.decoding.engine import TorchEngine
from translucid.decoding.options import DecodingOptions
from translucid.errors import UserError
from translucid.evaluation.scores import bleu
from translucid.interop.ctranslate2.convert import POSITIONS, Quantization, save_ctranslate2
from translucid.interop.ctranslate2.engine import CTranslate2Engine
from translucid.models.protocol import SequenceModel


def export_ctranslate2(
    model: SequenceModel, tokenizer: Tokenizer, out: Path, quantization: Quantization, *, overwrite: bool = False
) -> None:
    """Write a folder for `ctranslate2.Translator` with the tokenizer in it; it appears when it is whole.

    Raises:
        UserError: the model is not a Transformer, the folder is there already, or can't be written.
    """
    if out.exists() and not overwrite:
        raise UserError("is there already", file=out, fix="Replace it with --overwrite.")
    if out.exists() and not (out / "model.bin").exists():
        raise UserError("is not a CTranslate2 model, so it is not replaced", file=out, fix="Choose another folder.")
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


def bleu_by_quantization(model: SequenceModel, tokenizer: Tokenizer, pairs: Sequence[Pair]) -> tuple[float, float]:
    """Return the greedy BLEU of float32 and of int8 weights.

    Raises:
        UserError: the model is not a Transformer.
    """
    own = TorchEngine(model, torch.tensor(tokenizer.target_word_starts()), torch.device("cpu"))
    sources = [[*ids, model.eos] for ids in tokenizer.encode_source([pair.source for pair in pairs])]
    positions = model.max_length or POSITIONS
    scores = []
    for quantization in ("float32", "int8"):
        with tempfile.TemporaryDirectory(prefix="translucid-") as folder:
            save_ctranslate2(model, tokenizer, Path(folder), quantization)
            engine = CTranslate2Engine(Path(folder), tokenizer, torch.device("cpu"), own, positions=positions)
        found = engine.decode(sources, DecodingOptions(beam=1))
        texts = [tokenizer.decode(hypotheses[0].tokens) for hypotheses in found]
        scores.append(bleu(texts, [[pair.target for pair in pairs]]))
    return scores[0], scores[1]
