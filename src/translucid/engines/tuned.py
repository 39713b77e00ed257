"""The file in the run folder with the fastest way to translate on this machine, as `translucid tune speed` found it."""

from __future__ import annotations

from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bitext.languages import Languages
from bitext.reading import read_at_most
from translucid.data.readers.corpus import read_lines
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.decoding_options import CandidateVocabulary
from translucid.ground.atomic import write_atomically
from translucid.ground.errors import UserError
from translucid.runs.run_folder import TUNING_FILES

FILE, SHORTLIST = TUNING_FILES


class ResultFile(BaseModel):
    """A JSON file in the run folder with a result of `translucid tune` or `translucid distill`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @classmethod
    def read(cls, file: Path, max_bytes: int = 1 << 16, function: str = "translucid tune speed") -> Self | None:
        """Read a file of at most `max_bytes` bytes; None without one.

        Raises:
            UserError: the file is damaged; this function or command writes it again.
        """
        if not file.exists():
            return None
        try:
            return cls.model_validate_json(read_at_most(file, max_bytes))
        except (ValidationError, OSError) as error:
            raise UserError("can't be read", file=file, fix=f"Delete it, or run {function} again.") from error

    def write(self, file: Path, indent: int | None = 2) -> None:
        """Write the file atomically."""
        write_atomically(file, (self.model_dump_json(indent=indent) + "\n").encode())


class GpuSearch(BaseModel):
    """The fastest search in PyTorch on a CUDA GPU."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    precision: Literal["float32", "bfloat16", "float16"] = "float32"
    """The type of the weights and of cached keys and values."""
    captured: bool = False
    """Whether each step is captured as a CUDA graph."""

    def __str__(self) -> str:
        return f"{self.precision}, captured" if self.captured else self.precision


class Tuned(ResultFile):
    """The fastest way to translate with a run."""

    engine: Literal["torch", "ctranslate2", "onnx"] = "ctranslate2"
    """The engine that searches."""
    quantization: Literal["float32", "int8"] = "float32"
    """The type of the weights in CTranslate2; elsewhere they are always float32."""
    considered: CandidateVocabulary = "all pieces"
    """The target pieces that are candidates."""
    languages: Languages | None = None
    """The languages for which a shortlist was learned, for a multilingual model; others consider all pieces."""

    gpu: GpuSearch | None = None
    """The fastest search on a GPU, if that was tried; all other settings are for a CPU."""

    pieces: Path | None = Field(None, exclude=True)
    """The file of the pieces of the target language, in a zero-shot direction."""

    difference: float | None = None
    """The difference between a fast engine and the model, in nats a token, if that is why it is not used."""

    def __str__(self) -> str:
        return f"{self.engine}, {self.gpu or self.quantization}, {self.considered}"

    def shortlist(self, run: Path) -> Path | None:
        """Return the file of the candidates; None if all pieces are."""
        if self.pieces:
            return self.pieces
        return None if self.considered == "all pieces" else run / SHORTLIST


def load_tuned(run: Path) -> Tuned | None:
    """Read the result of `translucid tune speed` for a run; None without one.

    Raises:
        UserError: the file is damaged.
    """
    return Tuned.read(run / FILE)


def save_tuned(run: Path, tuned: Tuned, shortlist: str | None) -> None:
    """Save the result of `translucid tune speed` together with its shortlist, if it has one."""
    if shortlist:
        write_atomically(run / SHORTLIST, shortlist.encode())
    tuned.write(run / FILE)
    # Last, so that an interruption never leaves a result whose shortlist is missing.
    if not shortlist:
        (run / SHORTLIST).unlink(missing_ok=True)


def listed_sources(file: Path, tokenizer: Tokenizer) -> frozenset[int]:
    """Return the source ids for which a shortlist has any piece but the source piece itself.

    A shortlist that is the same for all sources counts for all of them.
    """
    pieces = tokenizer.source_pieces(range(tokenizer.source_size))
    ids = {piece: number for number, piece in enumerate(pieces)}
    listed_pieces = set()
    for line in read_lines(file):
        source, *targets = line.split("\t")
        if source and targets != [source]:
            listed_pieces.add(source)
    if not listed_pieces:
        return frozenset(ids.values())
    return frozenset(map(ids.__getitem__, listed_pieces & ids.keys()))
