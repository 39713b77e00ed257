"""The file in the run folder with the confidence estimator that `translucid tune --confidence` has fitted."""

from __future__ import annotations

from typing import TypeAlias

from pydantic import BaseModel, ConfigDict, ValidationError

from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.evaluation.confidence.estimator import Estimator
from translucid.ground.atomic import write_atomically
from translucid.ground.errors import UserError
from translucid.ground.reading import read_at_most
from translucid.runs.run_folder import CONFIDENCE, RunFolder

Languages: TypeAlias = tuple[str | None, str | None]
"""The codes of the source and target language, where known."""
LARGEST = 1 << 16
"""The largest size of the file, in bytes."""


class ConfidenceFile(BaseModel):
    """A confidence estimator, and the model whose translations it was fitted to."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str
    """The fingerprint of the model's file."""
    tokenizer: str
    """The fingerprint of the tokenizer."""
    languages: Languages | None = None
    """The languages of the translations, for a multilingual model."""
    estimator: Estimator


def load_confidence(run: RunFolder, tokenizer: Tokenizer, languages: Languages) -> tuple[Estimator | None, str]:
    """Read the estimator of a run; without one, None and the reason why a file is ignored, or "".

    Raises:
        UserError: the file is damaged.
    """
    file = run.path / CONFIDENCE
    if not file.exists():
        return None, ""
    try:
        content = ConfidenceFile.model_validate_json(read_at_most(file, LARGEST))
        whole = content.estimator.whole()
    except (ValidationError, OSError):
        whole = False
    if not whole:
        raise UserError("can't be read", file=file, fix="Delete it, or run translucid tune --confidence again.")
    again = f"{file} was fitted to %s and is ignored; run translucid tune --confidence again"
    if (content.model, content.tokenizer) != (run.model_digest(), tokenizer.fingerprint):
        return None, again % "another model"
    if content.languages and content.languages != languages:
        return None, again % f"translations from {content.languages[0]} to {content.languages[1]}"
    return content.estimator, ""


def confidence_note(run: RunFolder, languages: Languages) -> str:
    """Return the reason why the estimator of a run is ignored; "" if it is used or there is none."""
    if not (run.path / CONFIDENCE).exists():
        return ""
    _, reason = load_confidence(run, run.tokenizer(), languages)
    return reason


def save_confidence(run: RunFolder, tokenizer: Tokenizer, languages: Languages | None, estimator: Estimator) -> None:
    """Save an estimator in the run folder."""
    marks = {"model": run.model_digest(), "tokenizer": tokenizer.fingerprint, "languages": languages}
    content = ConfidenceFile(**marks, estimator=estimator).model_dump_json(indent=2)
    write_atomically(run.path / CONFIDENCE, (content + "\n").encode())
