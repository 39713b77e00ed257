"""`import_model`: tells the kind of a folder or a file, and makes a run of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from translucid.ground.errors import UserError
from translucid.interop.ctranslate2 import MODEL, from_ctranslate2
from translucid.interop.huggingface import from_huggingface
from translucid.interop.imported import Imported
from translucid.interop.marian import from_marian
from translucid.runs.configuration import Configuration, validated
from translucid.runs.run_folder import RunFolder
from translucid.runs.staging import finish_replacing, staged
from translucid.runs.weight_loading import fill

if TYPE_CHECKING:
    from translucid.models.protocol import Model


_DAMAGE = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RuntimeError, OSError, MemoryError)
"""What Python, NumPy, PyTorch and SentencePiece raise about a file that is not what it should be."""


def import_model(
    given: Path,
    out: Path,
    *,
    source_language: str | None = None,
    target_language: str | None = None,
    overwrite: bool = False,
) -> tuple[Imported, Configuration]:
    """Make a run of a model of somebody else's.

    Args:
        given: a folder of Hugging Face or CTranslate2, an .npz file of Marian, or the folder with it.
        out: the run folder to make.
        source_language: code of the language that it reads, if not another one is asked for later.
        target_language: code of the language that it writes.
        overwrite: replace a run that is there.

    Raises:
        UserError: it is no model that we know, it is not complete or damaged, or the run can't be made.
    """
    run = RunFolder(out)
    finish_replacing(run)
    run.refuse_to_lose(overwrite)
    read = reader(given)
    try:
        found = read(given)
        languages = {"source_language": source_language, "target_language": target_language}
        found.settings["data"] |= {name: code for name, code in languages.items() if code}
        configuration, model = _built(found, given)
    except _DAMAGE as error:
        # The files of a stranger may be wrong in more ways than are foreseen; --debug shows where.
        what = f"is damaged, or of a kind that can't be imported ({type(error).__name__}: {error})"
        raise UserError(what, file=given, fix="Get the folder again.") from error
    tokenizer = found.tokenizer
    if target_language and (source_language or configuration.data.tokenizer.told == "target in the source"):
        tokenizer.between(source_language, target_language, configuration.data.tokenizer)
    with run.locked(), staged(run, overwrite=overwrite) as new:
        new.begin(configuration, tokenizer)
        new.save_model(model, tokenizer, {"imported": found.kind})
        new.add_provenance({"imported": str(given), "kind": found.kind})
        shutil.rmtree(new.path / "state")  # there is no training to go on with
    return found, configuration


def _built(found: Imported, given: Path) -> tuple[Configuration, Model]:
    """Return the configuration and the model of what was read."""
    from translucid.models.build import hollow_model, refuse_too_large

    configuration = validated(found.settings, given)
    model = hollow_model(configuration.model, found.tokenizer.source_size, found.tokenizer.target_size)
    refuse_too_large(model)
    names = {name: weight.numel() for name, weight in model.named_parameters()}
    found.parameters = sum(names.values())
    fill(model, {name: tensor for name, tensor in found.tensors.items() if name in names}, given)
    return configuration, model


def reader(given: Path) -> Callable[[Path], Imported]:
    """Return what reads a model of this kind.

    Raises:
        UserError: it is none that we know.
    """
    if not given.exists():
        raise UserError("is not there", file=given, fix="Give a folder, or an .npz file of Marian.")
    if (given / MODEL).exists():
        return from_ctranslate2
    if (given / "config.json").exists():
        return from_huggingface
    if given.suffix == ".npz" or (given.is_dir() and any(given.glob("*.npz"))):
        return from_marian
    fix = "Hugging Face's have config.json, vocabularies and weights; CTranslate2's model.bin; Marian's are .npz files."
    raise UserError("holds no model that can be imported", file=given, fix=fix)
