"""What `translucid tune --confidence` has fitted to a run's translations, as it is remembered in the run folder."""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

from pydantic import BaseModel, ConfigDict, ValidationError

from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.evaluation.confidence.estimator import Estimator
from translucid.ground.atomic import write_atomically
from translucid.ground.errors import UserError
from translucid.ground.reading import digest, read_at_most
from translucid.runs.run_folder import CONFIDENCE, RunFolder

Languages: TypeAlias = tuple[str | None, str | None]
"""Codes of source and target, if known."""
LARGEST = 1 << 16
"""Bytes of the file, at most."""


class ConfidenceFile(BaseModel):
    """An estimator, and whose translations it is about."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    model: str
    """Fingerprint of the model's file."""
    tokenizer: str
    """Fingerprint of its tokenizer."""
    languages: Languages | None = None
    """Between which it translates, if the model has many."""
    estimator: Estimator


def load_confidence(run: RunFolder, tokenizer: Tokenizer, languages: Languages) -> tuple[Estimator | None, str]:
    """Read what was fitted for a run, if anything; or say why it does not hold.

    Raises:
        UserError: the file is damaged.
    """
    file = run.path / CONFIDENCE
    if not file.exists():
        return None, ""
    try:
        found = ConfidenceFile.model_validate_json(read_at_most(file, LARGEST))
        whole = found.estimator.whole()
    except (ValidationError, OSError):
        whole = False
    if not whole:
        raise UserError("can't be read", file=file, fix="Delete it, or run translucid tune --confidence again.")
    again = f"{file} was fitted to %s and is ignored; run translucid tune --confidence again"
    if (found.model, found.tokenizer) != (run.model_digest(), tokenizer.fingerprint):
        return None, again % "another model"
    if found.languages and found.languages != languages:
        return None, again % f"translations from {found.languages[0]} to {found.languages[1]}"
    return found.estimator, ""


def confidence_note(run: RunFolder, languages: Languages) -> str:
    """Return why what was fitted for a run does not hold, if something was and does not."""
    return load_confidence(run, run.tokenizer(), languages)[1] if (run.path / CONFIDENCE).exists() else ""


def confidence_mark(run: Path) -> str | None:
    """Return a fingerprint of what was fitted for a run, if something was."""
    file = run / CONFIDENCE
    return digest(file) if file.exists() else None


def save_confidence(run: RunFolder, tokenizer: Tokenizer, languages: Languages | None, estimator: Estimator) -> None:
    """Remember it."""
    marks = {"model": run.model_digest(), "tokenizer": tokenizer.fingerprint, "languages": languages}
    content = ConfidenceFile(**marks, estimator=estimator).model_dump_json(indent=2)
    write_atomically(run.path / CONFIDENCE, (content + "\n").encode())
