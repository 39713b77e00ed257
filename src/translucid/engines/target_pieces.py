"""The pieces of each target language of a multilingual model: the candidates in zero-shot directions.

In a direction without training pairs, models often write another of their languages (Zhang et al. 2020, arXiv
2004.11867, section 3.3), at times in the middle of a sentence. Without the pieces of the other languages, they can't.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bitext.languages import Languages
from bitext.protected_spans import PLACEHOLDERS
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.shortlist import listed, read_shortlist
from translucid.ground.atomic import write_atomically
from translucid.runs.data_options import DataOptions
from translucid.runs.run_folder import TARGET_PIECES, RunFolder

if TYPE_CHECKING:
    from translucid.data.stores.encoded import EncodedCorpus

LEAST_SHARE = 0.01
"""A piece belongs to a language if its share of the text is at least this part of its share in any other language.

Names and foreign words bring nearly every frequent piece of English into the text of other languages.
"""
EXPORTED = "translucid.json"
"""The file of an exported model with what a run has learned about languages, for an import."""
AT_ONCE = 1 << 22
"""The number of ids that are counted at a time."""


def pieces_file(run: RunFolder, languages: Languages, options: DataOptions) -> Path | None:
    """Return the file with the candidates of a zero-shot direction; None for other directions."""
    if not options.is_zero_shot(languages):
        return None
    file = _file(run, languages[1])
    return file if file.exists() else None


def save_target_pieces(
    run: RunFolder,
    corpus: EncodedCorpus,
    sizes: Sequence[int],
    targets: Sequence[str | None],
    tokenizer: Tokenizer,
    initial_run: RunFolder | None = None,
) -> None:
    """Write the pieces of each target language into a run folder; pieces that the files already list stay.

    A language gets no file if the initial run has it without one, as an imported run: a few pairs of a fine-tuning have
    only some of its pieces.

    Args:
        run: the run folder.
        corpus: the training pairs of all directions, one direction after the other.
        sizes: the number of pairs of each direction.
        targets: the target language of each direction.
        tokenizer: the tokenizer of the run.
        initial_run: the run from which this one was initialized, if any and if it still exists.
    """
    unknown = set()
    if initial_run and initial_run.exists:
        learned_before = initial_run.configuration().data.tokenizer.languages
        unknown = {language for language in learned_before if not _file(run, language).exists()}
    counts: dict[str | None, NDArray[np.int64]] = {}
    first_pair = 0
    for size, language in zip(sizes, targets, strict=True):
        begin, end = corpus.target_offsets[[first_pair, first_pair + size]]
        language_counts = counts.setdefault(language, np.zeros(tokenizer.target_size, np.int64))
        for start in range(begin, end, AT_ONCE):
            language_counts += np.bincount(
                corpus.target_ids[start : min(start + AT_ONCE, end)], minlength=len(language_counts)
            )
        first_pair += size
    for language, ids in language_pieces(counts, tokenizer).items():
        if language in unknown:
            continue
        file = _file(run, language)
        file.parent.mkdir(exist_ok=True)
        if file.exists():
            ids = np.union1d(ids, read_shortlist(file, tokenizer).always)
        write_atomically(file, f"\t{listed(ids.tolist(), tokenizer.target_vocabulary)}\n".encode())


def language_pieces(
    counts: Mapping[str | None, NDArray[np.int64]], tokenizer: Tokenizer
) -> dict[str | None, NDArray[np.int64]]:
    """Return the ids of the pieces of each language, given how often its text has each piece.

    Single characters that do not begin a word belong to all languages, so that every name can be spelled.
    """
    shares = {language: count / max(count.sum(), 1) for language, count in counts.items()}
    always = np.zeros(tokenizer.target_size, bool)
    for number, piece in enumerate(tokenizer.target_vocabulary):
        always[number] = len(piece) == 1 or piece in PLACEHOLDERS
    ids = {}
    for language, share in shares.items():
        largest = np.maximum.reduce([other for name, other in shares.items() if name != language] or [share])
        ids[language] = np.flatnonzero(always | ((share > 0) & (share >= LEAST_SHARE * largest)))
    return ids


def copy_target_pieces(initial_run: RunFolder, run: RunFolder) -> None:
    """Copy the files of the initial run to a run that starts from it; files that the run already has stay."""
    for file in initial_run.path.glob(f"{TARGET_PIECES}/*.tsv"):
        target = run.path / file.relative_to(initial_run.path)
        if not target.exists():
            target.parent.mkdir(exist_ok=True)
            write_atomically(target, file.read_bytes())


def exported_languages(run: RunFolder, options: DataOptions) -> dict[str, bytes]:
    """Return the file of an exported model with the directions and target pieces of a multilingual run, by its name."""
    if not options.tokenizer.languages:
        return {}
    pieces = {}
    for language in options.tokenizer.languages:
        file = _file(run, language)
        if file.exists():
            pieces[language] = file.read_text("utf-8").strip("\t\n")
    content = {"learned": options.learned, "target_pieces": pieces}
    return {EXPORTED: json.dumps(content, ensure_ascii=False).encode()}


def import_target_pieces(run: RunFolder, pieces: Mapping[str, Any], tokenizer: Tokenizer) -> None:
    """Write the target pieces of an exported model into a run folder, without those that the tokenizer lacks.

    Args:
        run: the run folder.
        pieces: the pieces of each language, separated by spaces; values of other kinds are ignored.
        tokenizer: the tokenizer of the run.
    """
    known = set(tokenizer.target_vocabulary)
    for language, names in pieces.items():
        if isinstance(names, str):
            file = _file(run, language)
            file.parent.mkdir(exist_ok=True)
            line = " ".join(name for name in names.split(" ") if name in known)
            write_atomically(file, f"\t{line}\n".encode())


def _file(run: RunFolder, language: str | None) -> Path:
    return run.path / TARGET_PIECES / f"{language or 'und'}.tsv"
