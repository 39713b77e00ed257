"""Download a model from the Hugging Face Hub: weights in safetensors and the files of its tokenizer, nothing else."""

from __future__ import annotations

import re
from pathlib import Path

from translucid.ground.atomic import write_atomically
from translucid.ground.errors import UserError, missing_package

FAIRSEQ = "sentencepiece.bpe.model"
"""The file name of the SentencePiece model of M2M100 and NLLB."""
_PREFIX = "hf:"
_NAME = re.compile(
    r"hf:(?P<repository>[\w.-]{1,96}/[\w.-]{1,96})(@(?P<revision>(?!.*\.\.)\w[\w./-]{0,199}))?", re.ASCII
)
_COMMIT = re.compile(r"[0-9a-f]{40}")
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
    if not name.as_posix().startswith(_PREFIX):
        return False
    try:
        return not name.exists()
    except OSError:  # longer than the name of a file may be
        return True


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
        from huggingface_hub import errors
        from huggingface_hub.utils.tqdm import disable_progress_bars
    except ImportError:
        raise missing_package("hf:owner/name", "huggingface_hub", "hub") from None
    repository, revision = match["repository"], match["revision"]
    disable_progress_bars()  # the command shows its own
    try:
        folder = _snapshot(repository, revision or "main", name)
    except errors.GatedRepoError as error:
        fix = "Accept its conditions on its page, and set HF_TOKEN."
        raise UserError("may be downloaded only by users who accepted its conditions", file=name, fix=fix) from error
    except errors.RevisionNotFoundError as error:
        raise UserError(f"has no revision {revision!r}", file=name, fix="Give a branch, a tag or a commit.") from error
    except errors.RepositoryNotFoundError as error:
        fix = "Check the name; a private model needs HF_TOKEN."
        raise UserError("is not on the Hub", file=name, fix=fix) from error
    except UserError:
        raise
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


def _snapshot(repository: str, revision: str, name: Path) -> Path:
    """Download a revision by its commit, which becomes the name of a folder, so that it must be a checksum.

    Raises:
        UserError: the Hub states something else as the commit.
        Exception: the errors of `huggingface_hub`.
    """
    from huggingface_hub import HfApi, errors, snapshot_download

    patterns = [*_FILES]
    try:
        commit = HfApi().model_info(repository, revision=revision).sha or ""
    except (errors.RepositoryNotFoundError, errors.RevisionNotFoundError, errors.HFValidationError):
        raise
    except Exception as error:  # no connection, or offline mode: what was downloaded before is in the cache
        try:
            return Path(
                snapshot_download(repository, revision=revision, allow_patterns=patterns, local_files_only=True)
            )
        except errors.LocalEntryNotFoundError:
            raise error from None
    if not _COMMIT.fullmatch(commit):
        what = f"has a commit that is no checksum: {commit[:50]!r}"
        raise UserError(what, file=name, fix="Do not import from this server (HF_ENDPOINT).")
    folder = Path(snapshot_download(repository, revision=commit, allow_patterns=patterns))
    reference = folder.parent.parent / "refs" / revision
    if revision != commit:  # as `huggingface_hub` notes it for later use without a connection
        reference.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(reference, commit.encode())
    return folder


def _reason(error: BaseException) -> str:
    """Return the first line about an error's first cause, which says more than the errors raised because of it."""
    while error.__cause__ is not None:
        error = error.__cause__
    return (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
