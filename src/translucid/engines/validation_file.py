"""The file in the run folder with the scores of the run on its validation sentences."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, ValidationError

from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.engines.confidence_file import Languages
from translucid.evaluation.familiarity import ValidationScores
from translucid.ground.atomic import write_atomically
from translucid.ground.errors import UserError
from translucid.ground.reading import read_at_most
from translucid.runs.run_folder import VALIDATION, RunFolder

LARGEST = 1 << 24
"""The largest size of the file, in bytes: room for two million words."""


class ValidationFile(BaseModel):
    """The validation scores, and the model that they belong to."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str
    """The fingerprint of the model's file."""
    tokenizer: str
    """The fingerprint of the tokenizer."""
    languages: Languages | None = None
    """The languages of the sentences, for a multilingual model."""
    scores: ValidationScores


def load_validation_scores(run: RunFolder, tokenizer: Tokenizer, languages: Languages) -> ValidationScores | None:
    """Read the validation scores of a run; None without any, or if they belong to another model or other languages.

    Raises:
        UserError: the file is damaged.
    """
    file = run.path / VALIDATION
    if not file.exists():
        return None
    try:
        content = ValidationFile.model_validate_json(read_at_most(file, LARGEST))
        content.scores.known()  # raises ValueError if its words are damaged
    except (ValidationError, ValueError, OSError) as error:
        raise UserError("can't be read", file=file, fix="Delete it, or run translucid tune again.") from error
    if (content.model, content.tokenizer) != (run.model_digest(), tokenizer.fingerprint):
        return None
    return content.scores if content.languages in (None, languages) else None


def save_validation_scores(
    run: RunFolder, tokenizer: Tokenizer, languages: Languages | None, scores: ValidationScores
) -> None:
    """Save validation scores; `languages`: those of the sentences, for a multilingual model."""
    content = ValidationFile(
        model=run.model_digest(), tokenizer=tokenizer.fingerprint, languages=languages, scores=scores
    )
    write_atomically(run.path / VALIDATION, (content.model_dump_json() + "\n").encode())
