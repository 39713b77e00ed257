"""The noisy channel: rank candidates also by the probability of the source given the candidate.

    score(y) = log p(y | x) + a log p(x | y) + b |y|

p(x | y) is a model of the other direction, |y| the number of tokens, end token included (Li et al. 2016, arXiv
1510.03055, section 4.3; Yee et al. 2019, arXiv 1908.05731, section 2). A search by p(y | x) alone prefers short and
common translations; given a translation without half of the source, p(x | y) is small. The weights can be tuned on a
development set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice, product, starmap
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from bitext.pair import Pair
from translucid.data.readers.corpus import sources_of
from translucid.data.text_pipeline import Piece, TextPipeline
from translucid.decoding.decoding_options import DecodingOptions, SearchRequest
from translucid.decoding.hypothesis import Hypothesis, in_order
from translucid.ground.errors import UserError
from translucid.kernels.devices import choose_device
from translucid.kernels.machine import require_pytorch
from translucid.runs.configuration import Configuration
from translucid.runs.run_folder import RunFolder

if TYPE_CHECKING:
    import torch

    from translucid.engines.stages import SearchStages
    from translucid.ground.console import Console
    from translucid.models.protocol import SequenceModel


class ChannelWeights(NamedTuple):
    """The weights of the parts of the score, relative to log p(y | x)."""

    reverse: float = 0.75
    """a, the weight of log p(x | y)."""
    length: float = 0.75
    """b, the weight of each token."""

    def score(self, hypothesis: Hypothesis, log_prob: float) -> float:
        """Return the score of a hypothesis y, given log p(x | y)."""
        return hypothesis.log_probability + self.reverse * log_prob + self.length * (len(hypothesis.tokens) + 1)


WEIGHTS = ChannelWeights()
"""The default weights."""
UNREAD = -1e6
"""The log-probability, in nats, of a pair that is too long for the other model: below that of any other pair."""


def reverse_configuration(run: Path, configuration: Configuration) -> Configuration:
    """Return the configuration of a run of the other direction, between the languages of `configuration`.

    Raises:
        UserError: it is no translator, or its languages show that it translates in the same direction.
    """
    opposite = RunFolder(run).configuration("text")
    source, target = configuration.data.languages
    if opposite.data.tokenizer.languages:
        return opposite.between(target, source)
    if source and target and opposite.data.languages == (source, target):
        fix = f"Give one from {target} to {source}."
        raise UserError(f"translates from {source} to {target} itself", file=run, fix=fix)
    return opposite


class ReverseModel(NamedTuple):
    """A model of the other direction."""

    model: SequenceModel
    """The model, in evaluation mode."""
    pipeline: TextPipeline
    """The model's text pipeline."""
    device: torch.device
    """The device of the model."""

    @classmethod
    def load(cls, run: Path, configuration: Configuration, device: str = "auto") -> ReverseModel:
        """Load the run of the direction opposite to that of a configuration.

        Raises:
            UserError: the run is damaged or no translator, its languages show that it translates in the same
                direction, or PyTorch is not installed.
        """
        require_pytorch("ranking with a model of the other direction")
        folder = RunFolder(run)
        opposite = reverse_configuration(run, configuration)
        tokenizer = folder.tokenizer().between(*opposite.data.languages, opposite.data.tokenizer)
        torch_device = choose_device(device)
        model = folder.load_sequence_model(opposite, tokenizer).to(torch_device)
        pipeline = TextPipeline(tokenizer, opposite.longest, opposite.data.languages[0])
        return cls(model, pipeline, torch_device)


@dataclass(frozen=True)
class NoisyChannel:
    """Ranks the hypotheses of a beam with a model of the other direction."""

    needs_beam: ClassVar[bool] = True
    pipeline: TextPipeline
    """The text pipeline of the model whose hypotheses are ranked."""
    model: SequenceModel
    """The model of the other direction, in evaluation mode."""
    reverse: TextPipeline
    """The text pipeline of the model of the other direction."""
    device: torch.device
    """The device of the model of the other direction."""
    weights: ChannelWeights = WEIGHTS

    @classmethod
    def load(
        cls,
        run: Path,
        configuration: Configuration,
        pipeline: TextPipeline,
        device: str = "auto",
        weights: ChannelWeights = WEIGHTS,
    ) -> NoisyChannel:
        """Load the run of the other direction.

        Args:
            run: the folder of the run of the other direction.
            configuration: the configuration of the run whose hypotheses are ranked.
            pipeline: the text pipeline of that run.
            device: auto, cpu, cuda, cuda:1 or mps.
            weights: the weights of the parts of the score.

        Raises:
            UserError: the run is damaged or no translator, or its languages show that it translates in the same
                direction.
        """
        reverse = ReverseModel.load(run, configuration, device)
        return cls(pipeline, *reverse, weights)

    def __str__(self) -> str:
        return f"a noisy channel (weights {self.weights.reverse:g} and {self.weights.length:g})"

    def widened(self, options: DecodingOptions) -> DecodingOptions:
        """Return options by which all hypotheses in the beam become candidates."""
        return options.model_copy(update={"nbest": options.beam})

    def __call__(
        self, pieces: Sequence[Piece], nbest_lists: Sequence[list[Hypothesis]], options: DecodingOptions
    ) -> list[list[Hypothesis]]:
        """Return hypotheses ranked by the noisy channel; one that is too long for the other model comes last."""
        ranked = []
        for nbest, log_probs in zip(nbest_lists, self.reverse_log_probs(pieces, nbest_lists), strict=True):
            scored = []
            for hypothesis, log_prob in zip(nbest, log_probs, strict=True):
                scored.append(hypothesis.scored(self.weights.score(hypothesis, log_prob), "noisy channel"))
            ranked.append(in_order(scored))
        return ranked

    def reverse_log_probs(self, pieces: Sequence[Piece], nbest_lists: Sequence[list[Hypothesis]]) -> list[list[float]]:
        """Return log p(x | y) of each hypothesis, in nats; `UNREAD` for a pair that is too long for the other model.

        x and y are plain texts, which the other model's own pipeline encodes.
        """
        from translucid.decoding.pair_scores import pair_scores

        texts = []
        for piece, nbest in zip(pieces, nbest_lists, strict=True):
            for hypothesis in nbest:
                texts.append((self.pipeline.text(piece, hypothesis.tokens), piece.text))
        pairs = self.reverse.pairs(texts)
        readable = [i for i, pair in enumerate(pairs) if pair.longest <= self.reverse.longest]
        prefix_length = len(self.reverse.tokenizer.target_opening)
        scores = pair_scores(self.model, [pairs[i].ids for i in readable], self.device, prefix_length=prefix_length)
        log_probs = [UNREAD] * len(pairs)
        for i, score in zip(readable, scores, strict=True):
            log_probs[i] = score.log_probability
        remaining = iter(log_probs)
        return [list(islice(remaining, len(nbest))) for nbest in nbest_lists]


REVERSE = (0.0, 0.1, 0.2, 0.3, 0.5, 0.75, 1.0, 1.5)
LENGTH = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
"""The grid of weights: all combinations of the two lists."""


class TunedWeights(NamedTuple):
    """Weights that were chosen on pairs, or set."""

    weights: ChannelWeights
    metric: str | None = None
    """The metric of the scores, BLEU or chrF; None if the weights were set."""
    score: float = 0.0
    before: float = 0.0
    """The score without reranking."""
    pairs: int = 0
    """The number of pairs on which they were chosen."""


def tune_weights(
    stages: SearchStages,
    channel: NoisyChannel,
    pairs: Sequence[Pair],
    options: DecodingOptions,
    language: str | None,
    console: Console,
    *,
    reverse: Sequence[float] = REVERSE,
    length: Sequence[float] = LENGTH,
) -> TunedWeights:
    """Score a grid of weights on hypotheses that are searched once.

    Args:
        stages: the search for hypotheses.
        channel: the channel to tune.
        pairs: the development set; a pair whose source is not translated in one piece is left out.
        options: the options of the search.
        language: the target language, if it is known.
        console: the console for progress.
        reverse: the weights of log p(x | y) that are tried.
        length: the weights of each token that are tried, each with all the others.

    Raises:
        UserError: there is no pair, or the translations are too bad to distinguish weights.
    """
    from translucid.evaluation.metrics import Criterion
    from translucid.ground.console import progress_bar  # rich, which a translation does not need

    pieces, references = [], []
    for source_pieces, pair in zip(stages.pipeline.pieces(sources_of(pairs), split=False), pairs, strict=True):
        if len(source_pieces) == 1:
            pieces.append(source_pieces[0])
            references.append(pair.target)
    if not pieces:
        raise UserError("there is no pair to tune the weights on", fix="Give sentence pairs with `pairs`.")
    wide_options = channel.widened(options)
    with progress_bar(console, "searching", len(pieces)) as advance:
        nbest_lists = stages.decode(SearchRequest(pieces, wide_options, advance))
    with console.status("tuning the weights", is_long=True):
        # Only the ranking depends on the weights: hypotheses are searched and scored once.
        reverse_log_probs = channel.reverse_log_probs(pieces, nbest_lists)
        texts = []
        for piece, nbest in zip(pieces, nbest_lists, strict=True):
            texts.append([stages.pipeline.text(piece, hypothesis.tokens) for hypothesis in nbest])
        criterion = Criterion([references], language)
        before = criterion.choose_metric([candidates[0] for candidates in texts])
        if not criterion.is_meaningful(before):
            what = f"{criterion.name} {before:.2f} of the translations is too low to choose weights by"
            raise UserError(what, fix="Give pairs of the run's languages with `pairs`.")
        metric_scores: dict[ChannelWeights, float] = {}
        for weights in starmap(ChannelWeights, product(reverse, length)):
            best_texts = []
            for nbest, log_probs, candidates in zip(nbest_lists, reverse_log_probs, texts, strict=True):
                scores = list(map(weights.score, nbest, log_probs))
                best_texts.append(candidates[scores.index(max(scores))])
            metric_scores[weights] = criterion.score(best_texts)
    best = max(metric_scores, key=metric_scores.__getitem__)
    return TunedWeights(best, criterion.name, metric_scores[best], before, len(pairs))
