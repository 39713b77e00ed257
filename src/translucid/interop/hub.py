"""Download a model from the Hugging Face Hub: weights in safetensors and the files of its tokenizer, nothing else."""

from __future__ import annotations

import re
from pathlib import Path

from translucid.ground.errors import UserError, missing_package

FAIRSEQ = "sentencepiece.bpe.model"
"""The file name of the SentencePiece model of M2M100 and NLLB."""
_PREFIX = "hf:"
_NAME = re.compile(r"hf:(?P<repository>[\w.-]+/[\w.-]+)(@(?P<revision>[\w./-]+))?", re.ASCII)
_FILES = (
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "vocab.json",
    "target_vocab.json",
    "source.spm",
    "target.spm",
    FAIRSEQ,
    "model.safetensors",
    "model.safetensors.index.json",
    "model-[0-9]*-of-[0-9]*.safetensors",
)
"""The files that an import reads. Pickled weights are not among them, and code never is."""


def is_on_hub(name: Path) -> bool:
    """Return whether this names a model on the Hub, `hf:owner/name`, and not a folder or a file."""
    return name.as_posix().startswith(_PREFIX) and not name.exists()


def download(name: Path) -> Path:
    """Return the folder of a model in the cache of `huggingface_hub`, after downloading what is missing from it.

    Variables of `huggingface_hub` apply: HF_HOME (the cache), HF_TOKEN, HF_ENDPOINT, HF_HUB_OFFLINE.

    Args:
        name: `hf:owner/name`, or `hf:owner/name@revision` for a branch, a tag or a commit.

    Raises:
        UserError: `huggingface_hub` is missing, the Hub can't be reached, has no such model or revision, refuses it,
            or has it without safetensors.
    """
    match = _NAME.fullmatch(name.as_posix())
    if not match:
        raise UserError("is not of the form hf:owner/name or hf:owner/name@revision", file=name.as_posix())
    try:
        from huggingface_hub import errors, snapshot_download
        from huggingface_hub.utils.tqdm import disable_progress_bars
    except ImportError:
        raise missing_package("hf:owner/name", "huggingface_hub", "hub") from None
    repository, revision = match["repository"], match["revision"]
    disable_progress_bars()  # the command shows its own
    try:
        folder = Path(snapshot_download(repository, revision=revision, allow_patterns=[*_FILES]))
    except errors.GatedRepoError as error:
        fix = "Accept its conditions on its page, and set HF_TOKEN."
        raise UserError("may be downloaded only by users who accepted its conditions", file=name, fix=fix) from error
    except errors.RevisionNotFoundError as error:
        raise UserError(f"has no revision {revision!r}", file=name, fix="Give a branch, a tag or a commit.") from error
    except errors.RepositoryNotFoundError as error:
        fix = "Check the name; a private model needs HF_TOKEN."
        raise UserError("is not on the Hub", file=name, fix=fix) from error
    except errors.HFValidationError as error:
        raise UserError("is not a name of a model", file=name, fix="Check the name.") from error
    except Exception as error:  # no connection, offline mode, a full disk …: its HTTP client depends on the version
        fix = "Check the connection, or download the model elsewhere and give its folder."
        raise UserError(f"can't be downloaded ({_reason(error)})", file=name, fix=fix) from error
    if not any(folder.glob("*.safetensors")):
        fix = (
            f"Give a revision that has them, such as {_PREFIX}{repository}@refs/pr/1, or a folder that you downloaded."
        )
        raise UserError("has no safetensors, and pickled weights are not downloaded", file=name, fix=fix)
    return folder


def _reason(error: BaseException) -> str:
    """Return the first line about an error's first cause, which says more than the errors raised because of it."""
    while error.__cause__ is not None:
        error = error.__cause__
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
