"""What `translucid tune` has found to be fastest for a run on this machine, as it is remembered in the run folder."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from translucid.data.readers.corpus import read_lines
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.decoding_options import CandidateVocabulary
from translucid.ground.atomic import write_atomically
from translucid.ground.errors import UserError
from translucid.ground.reading import read_at_most
from translucid.runs.run_folder import FOUND

FILE, SHORTLIST = FOUND


class Tuned(BaseModel):
    """What was found to be fastest."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    engine: Literal["torch", "ctranslate2"] = "ctranslate2"
    """What searches."""
    quantization: Literal["float32", "int8"] = "float32"
    """The weights of CTranslate2; ours are always float32."""
    considered: CandidateVocabulary = "all pieces"
    """The target pieces that are considered."""
    languages: tuple[str | None, str | None] | None = None
    """Those between which a shortlist was learned, if the model has many; between others, all pieces are."""

    difference: float | None = None
    """How far what CTranslate2 computes is from what the model does, if that is why it is not used; see `agreement`."""

    def __str__(self) -> str:
        """Say so in a few words."""
        return f"{self.engine}, {self.quantization}, {self.considered}"


def load_tuned(run: Path) -> Tuned | None:
    """Read what was found for a run, if anything.

    Raises:
        UserError: the file is damaged.
    """
    file = run / FILE
    if not file.exists():
        return None
    try:
        return Tuned.model_validate_json(read_at_most(file, 1 << 16))
    except (ValidationError, OSError) as error:
        raise UserError("can't be read", file=file, fix="Delete it, or run translucid tune again.") from error


def save_tuned(run: Path, tuned: Tuned, shortlist: str | None) -> None:
    """Remember it, and the shortlist that goes with it, if one does."""
    if shortlist:
        write_atomically(run / SHORTLIST, shortlist.encode())
    write_atomically(run / FILE, (tuned.model_dump_json(indent=2) + "\n").encode())
    if not shortlist:
        (run / SHORTLIST).unlink(missing_ok=True)


def listed_sources(file: Path, tokenizer: Tokenizer) -> frozenset[int]:
    """Return the source pieces for which a shortlist has anything but the piece itself.

    A shortlist for all sources has all of them.
    """
    ids = {piece: i for i, piece in enumerate(tokenizer.source_pieces(range(tokenizer.source_size)))}
    entries = [line.split("\t") for line in read_lines(file)]
    listed = {source for source, *targets in entries if source and targets != [source]}
    return frozenset(ids[piece] for piece in listed & ids.keys()) if listed else frozenset(ids.values())
