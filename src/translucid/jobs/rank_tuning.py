"""Which weights of the noisy channel are best on a development set."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import NamedTuple

from translucid.api.translator import Translator
from translucid.data.readers.corpus import Pair
from translucid.decoding.decoding_options import DecodingOptions
from translucid.engines.noisy_channel import ChannelWeights, NoisyChannel
from translucid.evaluation.criterion import Criterion
from translucid.ground.console import Console, counting
from translucid.ground.errors import UserError

REVERSE = (0.0, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5)
LENGTH = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
"""Weights that are tried, each of one with each of the other."""


class TunedWeights(NamedTuple):
    """The best weights."""

    weights: ChannelWeights
    metric: str
    """By which they were chosen: BLEU, or chrF."""
    score: float
    before: float
    """Score of the search's own order."""


def tune_weights(
    translator: Translator, channel: NoisyChannel, pairs: Sequence[Pair], options: DecodingOptions, console: Console
) -> TunedWeights:
    """Try the weights of a grid on candidates that are searched for once.

    Args:
        translator: whose hypotheses are ranked.
        channel: whose weights are sought.
        pairs: the development set; a pair whose source is not translated in one piece is left out.
        options: of the search.
        console: where progress is shown.

    Raises:
        UserError: there is no pair, or the translations are too bad to tell which weights are better.
    """
    cut = translator.pipeline.pieces([pair.source for pair in pairs], split=False)
    kept = [(pieces[0], pair.target) for pieces, pair in zip(cut, pairs, strict=True) if len(pieces) == 1]
    if not kept:
        raise UserError("there is no pair to tune the weights on", fix="Give sentence pairs with --tune-on.")
    pieces, references = [piece for piece, _ in kept], [[target for _, target in kept]]
    wide = channel.widened(options)
    with counting(console, "searching", len(kept)) as advance:
        found = translator.stages.decode(pieces, wide, advance)
    with console.status("tuning the weights"):
        reverse = channel.reverse_log_probs(pieces, found)
        texts = [
            [translator.pipeline.text(piece, one.tokens) for one in nbest]
            for piece, nbest in zip(pieces, found, strict=True)
        ]
        criterion = Criterion(references, translator.configuration.data.languages[1])
        before = criterion.settle([nbest[0] for nbest in texts])
        if not criterion.tells(before):
            what = f"{criterion.name} {before:.2f} of the translations is too low to choose weights by"
            raise UserError(what, fix="Give pairs of the run's languages with --tune-on.")
        tried: dict[ChannelWeights, float] = {}
        for weights in (ChannelWeights(a, b) for a, b in product(REVERSE, LENGTH)):
            chosen = []
            for nbest, log_probs, written in zip(found, reverse, texts, strict=True):
                scores = list(map(weights.score, nbest, log_probs))
                chosen.append(written[scores.index(max(scores))])
            tried[weights] = criterion.score(chosen)
    best = max(tried, key=tried.__getitem__)
    return TunedWeights(best, criterion.name, tried[best], before)
