"""`import_model`: recognize the kind of a folder or a file, and make a run from it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from translucid.decoding.shortlist import shortlist_text
from translucid.engines.ctranslate2.conventions import is_supported
from translucid.engines.target_pieces import EXPORTED, import_target_pieces
from translucid.engines.tuned import Tuned, save_tuned
from translucid.ground.errors import UserError
from translucid.interop import Kind, kind_of
from translucid.interop.ctranslate2 import from_ctranslate2
from translucid.interop.hub import download, is_on_hub
from translucid.interop.huggingface import from_huggingface
from translucid.interop.imported import Imported, all_are, read_json
from translucid.interop.marian import from_marian
from translucid.interop.pytorch import from_pytorch
from translucid.interop.recurrent import from_cn2en, from_g2p, from_romanizer
from translucid.models.build import meta_model, refuse_too_large
from translucid.models.protocol import Model
from translucid.runs.configuration import Configuration, validated
from translucid.runs.run_folder import RunFolder
from translucid.runs.staging import finish_replacing, staged
from translucid.runs.tensor_file import fill

_READERS: dict[Kind, Callable[[Path], Imported]] = {
    "ctranslate2": from_ctranslate2,
    "huggingface": from_huggingface,
    "marian": from_marian,
    "pytorch": from_pytorch,
    "romanizer": from_romanizer,
    "cn2en": from_cn2en,
    "g2p": from_g2p,
}
_DAMAGE = (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RuntimeError, OSError, MemoryError)
"""The errors that Python, NumPy, PyTorch and SentencePiece raise for damaged files."""


def import_model(
    path: Path,
    out: Path,
    *,
    source_language: str | None = None,
    target_language: str | None = None,
    tokenizer: Path | None = None,
    overwrite: bool = False,
) -> tuple[Imported, Configuration]:
    """Make a run from another toolkit's model.

    Args:
        path: a Hugging Face or CTranslate2 folder, an .npz file of Marian, a .bin file of Firefox, a description of a
            PyTorch model, or the folder with it; or `hf:owner/name` or `hf:owner/name@revision`, which is downloaded
            from the Hugging Face Hub.
        out: the run folder to make.
        source_language: the code of the source language, unless another one is requested later.
        target_language: the code of the target language.
        tokenizer: for a CTranslate2 folder without one: a SentencePiece model of both languages, or `Path("pieces")` if
            texts are already split into the model's pieces, between spaces.
        overwrite: whether to replace an existing run.

    Raises:
        UserError: the model is of an unknown kind, incomplete or damaged, can't be downloaded, or the run can't be
            written.
    """
    run = RunFolder(out)
    finish_replacing(run)
    run.refuse_overwrite(overwrite)
    folder, source = path, {"imported": str(path)}
    if is_on_hub(path):
        folder = download(path)
        source = {"imported": path.as_posix(), "commit": folder.name}
    kind = kind_of(folder)
    if tokenizer and kind != "ctranslate2":
        fix = "Leave `tokenizer` out; only CTranslate2 folders take one."
        raise UserError("needs the tokenizer in its folder", file=folder, fix=fix)
    reader: Callable[..., Imported] = _READERS[kind]
    try:
        imported = reader(folder, *([tokenizer] if tokenizer else []))
        learned, target_pieces = _exported_languages(folder, imported)
        imported.settings["data"]["learned"] = learned
        if source_language:
            imported.settings["data"]["source_language"] = source_language
        if target_language:
            imported.settings["data"]["target_language"] = target_language
        configuration, model = _built(imported, folder)
    except _DAMAGE as error:
        # Untrusted files may be damaged in more ways than we can foresee; --debug shows where.
        what = f"is damaged, or of a kind that can't be imported ({type(error).__name__}: {error})"
        raise UserError(what, file=folder, fix="Get the folder again.") from error
    imported_tokenizer = imported.tokenizer
    if target_language and (source_language or not configuration.data.tokenizer.marks_sources):
        # Checks that the model has these languages, before the run is written.
        imported_tokenizer.between(source_language, target_language, configuration.data.tokenizer)
    with run.locked(), staged(run, overwrite=overwrite) as new_run:
        new_run.begin(configuration, imported_tokenizer)
        new_run.save_model(model, imported_tokenizer, {"imported": imported.kind})
        import_target_pieces(new_run, target_pieces, imported_tokenizer)
        if imported.shortlist:
            engine: Literal["torch", "ctranslate2"] = "ctranslate2" if is_supported(configuration.model) else "torch"
            tuned = Tuned(engine=engine, considered="large shortlist")
            save_tuned(new_run.path, tuned, shortlist_text(imported.shortlist, imported_tokenizer))
        new_run.add_provenance({**source, "kind": imported.kind})
        shutil.rmtree(new_run.path / "state")  # there is no training to resume
    return imported, configuration


def _exported_languages(folder: Path, imported: Imported) -> tuple[dict[str, list[str]], dict[str, Any]]:
    """Return what our export says of the languages of a model: the learned directions and the pieces of each target.

    Both are empty for models of other toolkits.

    Raises:
        UserError: the file is damaged, or belongs to another model.
    """
    file = folder / EXPORTED
    codes = imported.settings["data"]["tokenizer"].get("languages") or {}
    if not folder.is_dir() or not file.exists() or not codes:
        return {}, {}
    content = read_json(file)
    learned = content.get("learned") if isinstance(content, dict) else None
    pieces = content.get("target_pieces") if isinstance(content, dict) else None
    if not isinstance(learned, dict) or not isinstance(pieces, dict):
        raise UserError("does not say what the model has learned", file=file, fix="Export the run again.")
    for targets in (*learned.values(), [*pieces]):
        if not isinstance(targets, list) or not all_are(str, targets) or not codes.keys() >= {*targets}:
            raise UserError("names languages that the model lacks", file=file, fix="Export the run again.")
    return learned, pieces


def _built(imported: Imported, path: Path) -> tuple[Configuration, Model]:
    """Return the configuration and the model, given the parts of a run."""
    configuration = validated(imported.settings, path)
    model = meta_model(configuration.model, imported.tokenizer.source_size, imported.tokenizer.target_size)
    refuse_too_large(model)
    names = dict(model.named_parameters())
    imported.parameters = sum(weight.numel() for weight in names.values())
    # A shared weight has one name in our model, and several in the other.
    fill(model, {name: tensor for name, tensor in imported.tensors.items() if name in names}, path)
    return configuration, model
