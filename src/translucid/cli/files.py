"""Corpus files as they come from a shell."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from translucid.data.documents import refuse_as_pairs
from translucid.errors import UserError

ENDINGS = (".tsv", ".jsonl")


def pair_up(files: Sequence[str]) -> list[str]:
    """Put a Moses pair together again that the shell has spread: `x.en x.de`, from `x.{en,de}`, is one corpus."""
    corpora: list[str] = []
    waiting: tuple[str, str, str] | None = None
    for file in files:
        refuse_as_pairs(file)
        gz = ".gz" if file.endswith(".gz") else ""
        plain = file.removesuffix(".gz")
        if plain.endswith((*ENDINGS, "}")) or not Path(plain).suffix:
            corpora.append(file)
            continue
        stem, language = plain.rsplit(".", 1)
        if waiting is None:
            waiting = stem, language, gz
        elif waiting[0] == stem and waiting[2] == gz:
            corpora.append(f"{stem}.{{{waiting[1]},{language}}}{gz}")
            waiting = None
        else:
            break
    if waiting is not None:
        stem, language, gz = waiting
        raise UserError(
            "is one side of a corpus, its partner is missing",
            file=f"{stem}.{language}{gz}",
            fix=f"Give both sides, as {stem}.{{{language},xx}}{gz}, or a .tsv or .jsonl file.",
        )
    return corpora


def refuse_to_replace(file: Path | None, overwrite: bool) -> None:
    """Check, before any work, that an output file is not there yet or may be replaced.

    Raises:
        UserError: it is there.
    """
    if file and file.exists() and not overwrite:
        raise UserError("is there already", file=file, fix="Replace it with --overwrite.")
