"""The pairs that a student learns from: the sentences to translate, the translations of the teacher, and the filter.

The sentences are the sources of pairs, with references, and text of the source language. The teacher's hypothesis that
is nearest to the reference is

    argmax  sim(y, reference)   over the hypotheses y of its n-best list

(Kim and Rush 2016, arXiv 1606.07947, section 3.3, sequence-level interpolation). They use a smoothed BLEU of the
sentence as the similarity; the chrF of the sentence, used here, needs no smoothing.

Pairs are removed by rules, and by the score of a reverse run: the cross-entropy of a source given its translation,

    -log p(x | y) / |x|

|x| is the number of source tokens, end token included. A translation that has lost a part of its source, or belongs to
another one, makes the source improbable (Junczys-Dowmunt 2018, W18-6478, section 3, one direction of it). Each removal
is counted by its reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import numpy as np

from bitext.languages import Languages
from bitext.pair import Pair
from bitext.readers.lines import BadLine, one_space
from bitext.words import normalized_text
from translucid.data.cleaning import SAMPLE, Cleaner, DigestSet, Profile, guess_language, known_language
from translucid.data.filtering import Skipped, reservoir_sample
from translucid.data.readers.corpus import PlacedPair, read_lines
from translucid.data.readers.texts import read_texts
from translucid.data.sentences import split_sentences
from translucid.data.statistics import digest, digest_pair
from translucid.decoding.pair_scores import score_pairs
from translucid.distillation.request import Choice, Request
from translucid.distillation.stages import Results
from translucid.engines.noisy_channel import ReverseModel
from translucid.evaluation.metrics import pairwise_chrf
from translucid.evaluation.quality_checks import repetition_in
from translucid.ground.atomic import output
from translucid.ground.errors import UserError
from translucid.jobs.job import Done, LineFunction, LineJob, TranslationJob, TranslationModels, as_lines
from translucid.jobs.windows import Window
from translucid.runs.configuration import Configuration
from translucid.runs.corpus_files import Corpora, pairs_of, read_corpora

PAIRS, TEXT = "pairs", "text"
"""The two kinds of sentences to translate: the sources of pairs, and text of one language."""
DISTILLED, REFERENCE = "distilled", "reference"
"""The two kinds of pairs of a source: with the hypothesis of the teacher, and with the reference."""
UNITS = {PAIRS: "pair", TEXT: "sentence", DISTILLED: "distilled pair", REFERENCE: "reference pair"}
"""The name of one of each kind."""
REPETITION, SCORE = "repetition", "reverse-score"
"""The reasons that `data.cleaning` does not know."""
EXCLUDED_RULES = ("near-duplicate",)
"""The rule that is not applied: pairs that differ only in punctuation teach a student punctuation."""


Counts: TypeAlias = dict[str, Skipped]
"""The numbers of pairs or sentences that were kept and skipped, by kind."""


def as_json(counts: Counts) -> Results:
    """Return the numbers as plain values."""
    by_kind = {}
    for kind, skipped in counts.items():
        by_kind[kind] = {"kept": skipped.kept, "removed": dict(skipped.reasons.most_common())}
    return by_kind


def summary_of(counts: Results) -> str:
    """Return the numbers of `as_json` as a line, without those of kinds that there are none of."""
    parts = []
    for kind, numbers in counts.items():
        reasons = numbers["left out"] if "left out" in numbers else numbers["removed"]  # of older versions
        skipped = Skipped(UNITS[kind], numbers["kept"], Counter(reasons))
        if skipped.kept or skipped.reasons:
            parts.append(skipped.summary())
    return "; ".join(parts)


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
    """Check that the first sentences to translate are not in the target language."""
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


@dataclass(frozen=True)
class TeacherJob(TranslationJob):
    """The job of writing hypotheses."""

    choose: Choice = "best"
    window: ClassVar[int] = 1024
    """The number of sentences that are translated together; an interrupted job keeps a multiple of it."""

    def work(self, models: TranslationModels, window: Window) -> Done:
        """Write `source TAB hypothesis TAB reference` for lines `source TAB reference`; a reference may be empty."""
        cells = [line.decode().split("\t") for line in window.lines]
        sources = [source for source, _ in cells]
        # The sentences have been split before, and real pairs are translated as they are.
        translations = models.translator.stream(sources, self.options, split=False, first=window.before.lines)
        lines = []
        for (source, reference), translation in zip(cells, translations, strict=True):
            hypothesis = translation.text
            if reference and self.choose == "nearest":
                hypothesis = nearest(translation.alternatives, reference)
            lines.append("\t".join((source, one_space(hypothesis), reference)))
        return Done(as_lines(lines))


def teacher_job(request: Request) -> TeacherJob:
    """Return the job of the teachers of a request.

    Raises:
        UserError: an option of the search has a wrong value.
    """
    changes: dict[str, Any] = dict(request.search)
    configuration = request.configuration
    beam = changes.get("beam") or configuration.decoding.beam
    if request.choose == "nearest":
        changes |= {"nbest": request.candidates, "beam": max(beam, request.candidates)}
    if request.choose == "sample":
        changes |= {"sample": True}
    return TeacherJob(
        request.teachers[0],
        configuration.decoding_with(changes),
        others=request.teachers[1:],
        device=request.device,
        engine=request.engine,
        split_sentences=False,
        configuration=configuration,
        risk_candidates=request.candidates if request.choose == "mbr" else 0,
        choose=request.choose,
    )


def nearest(hypotheses: Sequence[str], reference: str) -> str:
    """Return the hypothesis with the greatest sentence chrF against a reference, the first of equal ones."""
    scores = pairwise_chrf([*hypotheses, reference])[:-1, -1]
    return hypotheses[int(scores.argmax())]


def filter_by_rules(
    decoded: Path,
    files: dict[str, Path],
    languages: Languages,
    *,
    references: bool,
    advance: Callable[[int], None],
) -> Counts:
    """Divide decoded lines into distilled pairs and references, and write those that pass the rules.

    Args:
        decoded: lines `source TAB hypothesis TAB reference`, in which references may be empty.
        files: the file to write of each kind; that of references stays empty without them.
        languages: the codes of the languages, if they are known.
        references: whether to include references.
        advance: called with 1 for each pair.
    """
    cleaner = Cleaner(_profile(decoded, languages), EXCLUDED_RULES)
    cleaner.rules[REPETITION] = lambda pair: repetition_in(*pair) or ""
    counts = {DISTILLED: Skipped(), REFERENCE: Skipped()}
    with output(files[DISTILLED]) as distilled, output(files[REFERENCE]) as kept_references:
        streams = {DISTILLED: distilled, REFERENCE: kept_references}
        for judged in cleaner.judge(candidates(decoded, references=references)):
            kind = judged.file
            if judged.rule:
                counts[kind].reasons[judged.rule] += 1
            else:
                counts[kind].kept += 1
                streams[kind].write("\t".join(judged.pair).encode() + b"\n")
            advance(1)
    return counts


def candidates(decoded: Path, *, references: bool) -> Iterator[PlacedPair]:
    """Yield the pairs of decoded lines, each with its kind in place of a file; only references that differ."""
    for number, line in enumerate(read_lines(decoded), 1):
        source, hypothesis, reference = line.split("\t")
        yield PlacedPair(DISTILLED, number, Pair(source, hypothesis))
        if references and reference not in ("", hypothesis):
            yield PlacedPair(REFERENCE, number, Pair(source, reference))


def _profile(decoded: Path, languages: Languages) -> Profile:
    """Return what is usual in the pairs: in references rather than in hypotheses, which may be bad."""
    sample = reservoir_sample(_reference_pairs(decoded), SAMPLE, seed=1)
    return Profile.of(sample, languages)


def _reference_pairs(decoded: Path) -> Iterator[Pair]:
    for line in read_lines(decoded):
        source, hypothesis, reference = line.split("\t")
        yield Pair(source, reference or hypothesis)


def filter_by_scores(pairs: Path, scores: Path, share: float, file: Path, counts: Counts) -> None:
    """Write pairs without the worst `share` of them, by their cross-entropy; the first of equal ones are removed.

    Args:
        pairs: lines `source TAB target`.
        scores: a cross-entropy for each line.
        share: the share to remove, from 0 to 1.
        file: the file to write.
        counts: counts what is removed.
    """
    values = np.array(list(map(float, read_lines(scores))))
    removed = set(np.argsort(-values, kind="stable")[: int(share * len(values))].tolist())
    with output(file) as stream:
        for number, line in enumerate(read_lines(pairs)):
            if number not in removed:
                stream.write(line.encode() + b"\n")
    counts[DISTILLED].kept -= len(removed)
    counts[DISTILLED].reasons[SCORE] += len(removed)


@dataclass(frozen=True)
class ReverseScoreJob(LineJob):
    """The job of scoring pairs by a run of the reverse direction."""

    forward: Configuration | None = None
    """The configuration of the run that translates forwards."""
    window: ClassVar[int] = 4096

    def load(self, threads: int) -> LineFunction:
        """Load the run.

        Raises:
            UserError: the run is damaged, or translates in the direction of the other one.
        """
        assert self.forward
        reverse = ReverseModel.load(self.run, self.forward, self.device)
        return LineFunction(reverse.device.type, partial(self.work, reverse))

    def work(self, reverse: ReverseModel, window: Window) -> Done:
        """Write the cross-entropy of each line `source TAB target`; `inf` if the model can't read it."""
        pairs = []
        for line in window.lines:
            source, target = line.decode().split("\t")
            pairs.append(Pair(target, source))
        lines = []
        for score in score_pairs(reverse.model, reverse.pipeline, pairs, reverse.device):
            if isinstance(score, str):  # the reason why there is none
                lines.append("inf")
            else:
                lines.append(f"{-score.log_probability / len(score.tokens):.6f}")
        return Done(as_lines(lines))
