"""Tuning the weights of the noisy channel on a development set."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product, starmap
from typing import NamedTuple

from bitext.pair import Pair
from translucid.api.translator import Translator
from translucid.data.readers.corpus import sources_of
from translucid.decoding.decoding_options import DecodingOptions
from translucid.engines.noisy_channel import ChannelWeights, NoisyChannel
from translucid.evaluation.metrics import Criterion
from translucid.ground.console import Console, progress_bar
from translucid.ground.errors import UserError

REVERSE = (0.0, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5)
LENGTH = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
"""The grid of weights: all combinations of the two lists."""


class TunedWeights(NamedTuple):
    """The best weights."""

    weights: ChannelWeights
    metric: str
    """The metric of the score: BLEU, or chrF."""
    score: float
    before: float
    """The score without reranking."""


def tune_weights(
    translator: Translator, channel: NoisyChannel, tune_on: Sequence[Pair], options: DecodingOptions, console: Console
) -> TunedWeights:
    """Score a grid of weights on hypotheses that are searched once.

    Args:
        translator: the translator of the hypotheses.
        channel: the channel to tune.
        tune_on: the development set; a pair whose source is not translated in one piece is left out.
        options: the options of the search.
        console: the console for progress.

    Raises:
        UserError: there is no pair, or the translations are too bad to distinguish weights.
    """
    pieces, references = [], []
    for source_pieces, pair in zip(translator.pipeline.pieces(sources_of(tune_on), split=False), tune_on, strict=True):
        if len(source_pieces) == 1:
            pieces.append(source_pieces[0])
            references.append(pair.target)
    if not pieces:
        raise UserError("there is no pair to tune the weights on", fix="Give sentence pairs with `tune_on`.")
    wide_options = channel.widened(options)
    with progress_bar(console, "searching", len(pieces)) as advance:
        nbest_lists = translator.stages.decode(pieces, wide_options, advance)
    with console.status("tuning the weights", is_long=True):
        # Only the ranking depends on the weights: hypotheses are searched and scored once.
        reverse = channel.reverse_log_probs(pieces, nbest_lists)
        texts = []
        for piece, nbest in zip(pieces, nbest_lists, strict=True):
            texts.append([translator.pipeline.text(piece, hypothesis.tokens) for hypothesis in nbest])
        criterion = Criterion([references], translator.configuration.data.languages[1])
        before = criterion.choose_metric([candidates[0] for candidates in texts])
        if not criterion.is_meaningful(before):
            what = f"{criterion.name} {before:.2f} of the translations is too low to choose weights by"
            raise UserError(what, fix="Give pairs of the run's languages with `tune_on`.")
        metric_scores: dict[ChannelWeights, float] = {}
        for weights in starmap(ChannelWeights, product(REVERSE, LENGTH)):
            best_texts = []
            for nbest, log_probs, candidates in zip(nbest_lists, reverse, texts, strict=True):
                scores = list(map(weights.score, nbest, log_probs))
                best_texts.append(candidates[scores.index(max(scores))])
            metric_scores[weights] = criterion.score(best_texts)
    best = max(metric_scores, key=metric_scores.__getitem__)
    return TunedWeights(best, criterion.name, metric_scores[best], before)
