"""The noisy channel: candidates ranked by how well the source can be told from them, too.

    score(y) = log p(y | x) + a log p(x | y) + b |y|

p(x | y) is a model of the other direction, |y| the number of tokens, end token counted (Li et al. 2016, arXiv
1510.03055, section 4.3; Yee et al. 2019, arXiv 1908.05731, section 2). A search for y alone prefers short and common
translations; what leaves out half of the source gives a bad account of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress, islice
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from translucid.data.text_pipeline import Piece, TextPipeline
from translucid.decoding.decoding_options import DecodingOptions
from translucid.decoding.hypothesis import Hypothesis
from translucid.engines.ranking import in_order
from translucid.ground.errors import UserError
from translucid.kernels.devices import choose_device
from translucid.runs.configuration import Configuration
from translucid.runs.run_folder import RunFolder

if TYPE_CHECKING:
    import torch

    from translucid.models.protocol import SequenceModel


class ChannelWeights(NamedTuple):
    """What the parts of the score weigh, log p(y | x) being 1."""

    reverse: float = 0.75
    """a, of log p(x | y)."""
    length: float = 0.75
    """b, of each token."""

    def score(self, hypothesis: Hypothesis, log_prob: float) -> float:
        """Return the score of a hypothesis y, given log p(x | y)."""
        return hypothesis.log_probability + self.reverse * log_prob + self.length * (len(hypothesis.tokens) + 1)


WEIGHTS = ChannelWeights()
"""If none are given."""
UNREAD = -1e6
"""In nats, of what is too long for the other model."""


@dataclass(frozen=True)
class NoisyChannel:
    """Ranks the hypotheses of a beam with a model of the other direction."""

    needs_beam: ClassVar[bool] = True
    pipeline: TextPipeline
    """Of the model whose hypotheses are ranked."""
    model: SequenceModel
    """Of the other direction, in evaluation mode."""
    reverse: TextPipeline
    """Of that model."""
    device: torch.device
    """Where it is."""
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
            run: its folder.
            configuration: of the run whose hypotheses are ranked.
            pipeline: of that run.
            device: auto, cpu, cuda, cuda:1 or mps.
            weights: of the parts of the score.

        Raises:
            UserError: it is damaged, no translator, or translates in the same direction, as far as can be told.
        """
        folder = RunFolder(run)
        theirs = folder.configuration()
        theirs.refuse_other_reader("text", run)
        source, target = configuration.data.languages
        if theirs.data.tokenizer.languages:
            theirs = theirs.between(target, source)
        elif source and target and theirs.data.languages == (source, target):
            fix = f"Give one from {target} to {source}."
            raise UserError(f"translates from {source} to {target} itself", file=run, fix=fix)
        own = folder.tokenizer().between(*theirs.data.languages, theirs.data.tokenizer)
        chosen = choose_device(device)
        model = folder.load_sequence_model(theirs, own).to(chosen)
        reverse = TextPipeline(own, theirs.longest, theirs.data.languages[0])
        return cls(pipeline, model, reverse, chosen, weights)

    def __str__(self) -> str:
        """Say what it is."""
        return f"a noisy channel (weights {self.weights.reverse:g} and {self.weights.length:g})"

    def widened(self, options: DecodingOptions) -> DecodingOptions:
        """See `Ranking`; all that the beam finds are candidates."""
        return options.model_copy(update={"nbest": options.beam})

    def __call__(
        self, pieces: Sequence[Piece], found: Sequence[list[Hypothesis]], options: DecodingOptions
    ) -> list[list[Hypothesis]]:
        """See `Ranking`. A candidate that the other model can't read comes last."""
        ranked = []
        for nbest, log_probs in zip(found, self.reverse_log_probs(pieces, found), strict=True):
            scores = map(self.weights.score, nbest, log_probs)
            scored = (one.scored(score, "noisy channel") for one, score in zip(nbest, scores, strict=True))
            ranked.append(in_order([*scored]))
        return ranked

    def reverse_log_probs(self, pieces: Sequence[Piece], found: Sequence[list[Hypothesis]]) -> list[list[float]]:
        """Return log p(x | y) of each hypothesis, in nats; of one that can't be read, less than any other has.

        Both are the texts themselves, which the other model reads as its own run does.
        """
        from translucid.decoding.pair_scores import pair_scores

        texts = []
        for piece, nbest in zip(pieces, found, strict=True):
            texts += [(self.pipeline.text(piece, one.tokens), piece.text) for one in nbest]
        pairs = self.reverse.pairs(texts)
        readable = [pair.longest <= self.reverse.longest for pair in pairs]
        kept = [pair.ids for pair in compress(pairs, readable)]
        told = len(self.reverse.tokenizer.target_opening)
        scores = iter(pair_scores(self.model, kept, self.device, told=told))
        values = iter([next(scores).log_probability if fits else UNREAD for fits in readable])
        return [list(islice(values, len(nbest))) for nbest in found]
