"""The sentences that a teacher translates: the sources of pairs, with references, and text of the source language."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from bitext.pair import Pair
from bitext.readers.lines import BadLine, one_space
from bitext.words import normalized_text
from translucid.data.cleaning.cleaner import DigestSet
from translucid.data.cleaning.rules import guess_language, known_language
from translucid.data.filtering import Skipped
from translucid.data.readers.corpus import read_lines
from translucid.data.readers.texts import read_texts
from translucid.data.sentences import split_sentences
from translucid.data.statistics import digest, digest_pair
from translucid.distillation.filtering import PAIRS, TEXT, Counts, as_json, summary_of
from translucid.distillation.request import Request
from translucid.ground.atomic import output
from translucid.ground.errors import UserError
from translucid.runs.corpus_files import Corpora, pairs_of, read_corpora

UNREADABLE = "unreadable"
LANGUAGE_SAMPLE = 1000
"""The number of sentences whose language is guessed."""


def write_sources(request: Request, synthetic: Path | None, file: Path, valid: Path, test: Path) -> Counts:
    """Write the sentences to translate, as lines `source TAB reference`, and the validation and test pairs.

    The reference of a sentence from monolingual text is empty. Sources of validation and test pairs are left out, and
    so are pairs that repeat others, and texts that repeat other sources.

    Args:
        request: the files.
        synthetic: the pairs of back-translated text, if there are any.
        file: the file to write, and those of validation and test pairs.
        valid: the file of validation pairs.
        test: the file of test pairs, which is written if there are any.

    Raises:
        UserError: a file can't be read, or nothing is left to translate.
    """
    data = request.data.model_copy(update={"synthetic": [str(synthetic)] if synthetic else []})
    corpora = read_corpora(data, request.configuration.training.seed, needs_training_text=bool(request.pairs))
    write_pairs(valid, corpora.valid)
    test_pairs = list(pairs_of(data, *request.test))
    if test_pairs:
        write_pairs(test, test_pairs)
    held_out = {normalized_text(pair.source) for pair in (*corpora.valid, *test_pairs)}
    counts = {PAIRS: Skipped(), TEXT: Skipped()}
    texts = counts[TEXT]
    seen = DigestSet()
    with output(file) as stream:
        for pair in _pairs(request, corpora, held_out, seen, counts[PAIRS]):
            stream.write(f"{pair.source}\t{pair.target}\n".encode())
        for sentence in sentences(request.text, data.languages[0], texts):
            if normalized_text(sentence) in held_out:
                texts.add("held out")
            elif not seen.add(digest(sentence)):
                texts.add("duplicate")
            else:
                stream.write(f"{sentence}\t\n".encode())
    if not counts[PAIRS].kept and not texts.kept:
        name = next(iter((*request.pairs, *request.text)), None)
        reasons = summary_of(as_json(counts))
        raise UserError(f"nothing is left to translate ({reasons})", file=name, fix="Check the files.")
    _refuse_other_direction(request, file)
    return counts


def _refuse_other_direction(request: Request, file: Path) -> None:
    """Check that the first sentences to translate are not in the target language.

    Raises:
        UserError: they are.
    """
    source, target = map(known_language, request.configuration.data.languages)
    sample = [line.partition("\t")[0] for line in islice(read_lines(file), LANGUAGE_SAMPLE)]
    if source and target and source != target and guess_language(sample) == target:
        name = next(iter((*request.pairs, *request.text)), None)
        what = f"looks like {target} first, and the teacher translates from {source} to {target}"
        raise UserError(what, file=name, fix="Exchange the sides, or give a teacher of the other direction.")


def _pairs(request: Request, corpora: Corpora, held_out: set[str], seen: DigestSet, skipped: Skipped) -> Iterator[Pair]:
    """Yield the different pairs that pass the filter, as cells of a table; their sources become `seen`."""
    assert corpora.bad
    corpora.bad.count = 0  # the pairs to hold out were chosen in a first pass over the files
    pairs = DigestSet()
    for text in corpora.filtered(request.data.filter, skipped):
        pair = Pair(*map(one_space, text))
        if normalized_text(pair.source) in held_out:
            skipped.add("held out")
        elif not pairs.add(digest_pair(pair)):
            skipped.add("duplicate")
        else:
            seen.add(digest(pair.source))
            yield pair
    if corpora.bad.count:
        skipped.reasons[UNREADABLE] += corpora.bad.count


def sentences(files: Iterable[str], language: str | None, skipped: Skipped) -> Iterator[str]:
    """Yield the sentences of files of text, as cells of a table; count them, and lines that can't be read."""

    def count_bad(bad: BadLine) -> None:
        skipped.reasons[UNREADABLE] += 1

    for text in read_texts(*files, on_bad=count_bad):
        if not text.source.strip():
            skipped.reasons["empty"] += 1
            continue
        for sentence, _ in split_sentences(text.source, language):
            if cell := one_space(sentence):
                skipped.kept += 1
                yield cell


def write_pairs(file: Path, pairs: Iterable[Pair]) -> None:
    """Write pairs as lines `source TAB target`, atomically."""
    with output(file) as stream:
        for pair in pairs:
            stream.write(f"{one_space(pair.source)}\t{one_space(pair.target)}\n".encode())
