"""`import_model`: tells the kind of a folder or a file, and makes a run of it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from translucid.ground.errors import UserError
from translucid.interop.ctranslate2 import MODEL, from_ctranslate2
from translucid.interop.huggingface import from_huggingface
from translucid.interop.imported import Imported
from translucid.interop.marian import from_marian
from translucid.runs.configuration import Configuration, validated
from translucid.runs.fitting import fill
from translucid.runs.run_folder import RunFolder
from translucid.runs.staging import finish_replacing, staged


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
    from translucid.models.build import hollow_model, refuse_too_large

    run = RunFolder(out)
    finish_replacing(run)
    run.refuse_to_lose(overwrite)
    found = reader(given)(given)
    languages = {"source_language": source_language, "target_language": target_language}
    found.settings["data"] |= {name: code for name, code in languages.items() if code}
    configuration = validated(found.settings, given)
    tokenizer = found.tokenizer
    if target_language and (source_language or configuration.data.tokenizer.told == "target in the source"):
        tokenizer.between(source_language, target_language, configuration.data.tokenizer)
    model = hollow_model(configuration.model, tokenizer.source_size, tokenizer.target_size)
    refuse_too_large(model)
    names = {name: weight.numel() for name, weight in model.named_parameters()}
    found.parameters = sum(names.values())
    fill(model, {name: tensor for name, tensor in found.tensors.items() if name in names}, given)
    with run.locked(), staged(run, overwrite=overwrite) as new:
        new.begin(configuration, tokenizer)
        new.save_model(model, tokenizer, {"imported": found.kind})
        new.add_provenance({"imported": str(given), "kind": found.kind})
        shutil.rmtree(new.path / "state")  # there is no training to go on with
    return found, configuration


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
