"""What a run reads for live translation, and EDAtt's thresholds, chosen on sentence pairs.

Both policies of attention should lag alike at the same `--lag`, so that it means the same and they can be compared. For
each lag, EDAtt gets the threshold at which it writes the references with the mean delay of AlignAtt. All thresholds
share the same maps: the target is forced after each beginning of a source, so nothing is searched.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

import torch

from bitext.pair import Pair
from bitext.words import words_of
from translucid.evaluation.alignment_error import AlignmentOptions
from translucid.live.continuation import AttentionRows, Continuations, ProposedPiece, TargetVocabulary
from translucid.live.policies import AlignAtt, EDAtt, Policy, Proposal
from translucid.live.sentence import LiveSentence
from translucid.runs.configuration import LiveSettings

if TYPE_CHECKING:
    from translucid.api.translator import Translator

LAGS = range(1, 9)
"""The lags that get a threshold; larger ones have the last."""
PREFIXES = 500
"""The number of beginnings of sources that are read, at least: those of about 40 sentences."""
FEWEST = 10
"""The number of sentences with more words than a lag that its threshold is chosen on, at least."""
GRID = [number / 100 for number in range(1, 101)]


def chosen_settings(
    translator: Translator, ranked: Mapping[AlignmentOptions, object], pairs: Sequence[Pair]
) -> LiveSettings:
    """Choose the attention that decides when to write, and EDAtt's threshold for each lag.

    Args:
        translator: the translator of a run.
        ranked: ways to read word alignments, the best first. A policy looks from a target piece at the source when it
            is proposed, so only weights that are read from one side and without a shift count, if there are any.
        pairs: validation pairs.
    """
    best = next(iter(ranked))
    usable = [options for options in ranked if options.method == "weights" and not (options.shift or options.both)]
    if not best.learned:  # the run keeps no alignment layer
        usable = [options for options in usable if not options.learned]
    rows = AttentionRows.read_by(translator, usable[0] if usable else best)
    sentences = list(_forced_sentences(translator, rows, pairs))
    alpha = []
    for lag in LAGS:
        longer = [sentence for sentence in sentences if len(sentence.proposals) > lag]
        if len(longer) < FEWEST:
            break
        alpha.append(threshold(longer, lag))
    return LiveSettings(attention=rows.name or None, alpha=alpha)


class ForcedSentence(NamedTuple):
    """A reference that is proposed after each beginning of its source."""

    proposals: list[list[Proposal]]
    """For each number of source words heard, from 1, each piece of the target."""
    words: list[slice]
    """The pieces of each target word."""

    def delays(self, policy: Policy) -> list[int]:
        """Return for each target word the number of source words heard when a policy writes it."""
        delays: list[int] = []
        for heard, proposals in enumerate(self.proposals, 1):
            for word in self.words[len(delays) :]:
                if not all(map(policy.writes, proposals[word])):
                    break
                delays.append(heard)
        return delays + [len(self.proposals)] * (len(self.words) - len(delays))


def threshold(sentences: Sequence[ForcedSentence], lag: int) -> float:
    """Return the threshold at which EDAtt's mean delay is nearest to AlignAtt's with the same lag."""

    def mean_delay(policy: Policy) -> float:
        return fmean(fmean(sentence.delays(policy)) for sentence in sentences)

    expected = mean_delay(AlignAtt(lag))
    # The larger the threshold, the smaller the delay.
    index = bisect_left(GRID, -expected, key=lambda alpha: -mean_delay(EDAtt(lag, alpha)))
    around = GRID[max(index - 1, 0) : index + 1]
    return min(around, key=lambda alpha: abs(mean_delay(EDAtt(lag, alpha)) - expected))


def _forced_sentences(translator: Translator, rows: AttentionRows, pairs: Sequence[Pair]) -> Iterator[ForcedSentence]:
    """Yield the pairs until they have enough beginnings, without those that the model can't read in one piece."""
    vocabulary = TargetVocabulary.of(translator.tokenizer)
    model = Continuations(translator.torch_engine, rows, translator.configuration.decoding, vocabulary)
    count = 0
    for pair in pairs:
        if count >= PREFIXES:
            return
        (encoded,) = translator.pipeline.pairs([pair])
        words = words_of(pair.source)
        sentence = LiveSentence(translator.pipeline, model, AlignAtt(0))
        if not words or len(encoded.target) == 1 or encoded.longest > translator.pipeline.longest:
            continue
        proposals = []
        for word in words:
            sentence.words.append(word)
            if reading := sentence.read():
                pieces = _forced(model, reading.ids, encoded.target)
                heard = len(sentence.words)
                proposals.append([Proposal(reading.row(piece), reading.words, heard, 0) for piece in pieces])
        begins = [i for i, token in enumerate(encoded.target[:-1]) if not i or vocabulary.begins[token]]
        if len(proposals) == len(words):
            count += len(words)
            yield ForcedSentence(proposals, [slice(*ends) for ends in pairwise([*begins, len(encoded.target) - 1])])


def _forced(continuations: Continuations, source: Sequence[int], target: Sequence[int]) -> list[ProposedPiece]:
    """Return the pieces of a target, each with the attention with which it is predicted."""
    engine, rows = continuations.engine, continuations.rows
    tokens = [*engine.opening, *target]
    with torch.inference_mode():
        memory = engine.model.encode(torch.tensor([source], device=engine.device))
        attention = rows.of_target(engine.model, memory, tokens)
    return [ProposedPiece(token, 0.0, row) for token, row in zip(target, attention[len(engine.opening) :], strict=True)]
