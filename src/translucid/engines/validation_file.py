"""What a run's own validation sentences measure, as it is kept in the run folder."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.engines.confidence_file import Languages
from translucid.evaluation.familiarity import ValidationScores
from translucid.ground.atomic import write_atomically
from translucid.ground.errors import UserError
from translucid.ground.reading import digest, read_at_most
from translucid.runs.run_folder import VALIDATION, RunFolder

LARGEST = 1 << 24
"""Bytes of the file, at most: those of two million words."""


class ValidationFile(BaseModel):
    """The scores, and whose they are."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    model: str
    """Fingerprint of the model's file."""
    tokenizer: str
    """Fingerprint of its tokenizer."""
    languages: Languages | None = None
    """Between which it translates, if the model has many."""
    scores: ValidationScores


def load_validation_scores(run: RunFolder, tokenizer: Tokenizer, languages: Languages) -> ValidationScores | None:
    """Read what was measured of a run; None if nothing was, or of another model or other languages.

    Raises:
        UserError: the file is damaged.
    """
    file = run.path / VALIDATION
    if not file.exists():
        return None
    try:
        found = ValidationFile.model_validate_json(read_at_most(file, LARGEST))
        found.scores.known()
    except (ValidationError, ValueError, OSError) as error:
        raise UserError("can't be read", file=file, fix="Delete it, or run translucid tune again.") from error
    if (found.model, found.tokenizer) != (run.model_digest(), tokenizer.fingerprint):
        return None
    return found.scores if found.languages in (None, languages) else None


def save_validation_scores(
    run: RunFolder, tokenizer: Tokenizer, languages: Languages | None, scores: ValidationScores
) -> None:
    """Keep them; `languages`: between which the model translated, if it has many."""
    content = ValidationFile(
        model=run.model_digest(), tokenizer=tokenizer.fingerprint, languages=languages, scores=scores
    )
    write_atomically(run.path / VALIDATION, (content.model_dump_json() + "\n").encode())


def validation_mark(run: Path) -> str | None:
    """Return a fingerprint of what was measured of a run, if something was."""
    file = run / VALIDATION
    return digest(file) if file.exists() else None
