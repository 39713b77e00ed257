"""How good the model is now: loss and BLEU on sentences that it does not learn from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch

from translucid.data.batching import collate, plan_epoch
from translucid.data.corpus import Pair
from translucid.data.encoded import EncodedCorpus
from translucid.data.tokenizer import Tokenizer
from translucid.decoding.bulk import decode_sentences
from translucid.decoding.decoding_options import DecodingOptions
from translucid.evaluation.metrics import bleu
from translucid.ground.special import SPECIAL
from translucid.models.protocol import SequenceModel
from translucid.training.objective import batch_loss
from translucid.training.workers import Workers


class Sample(NamedTuple):
    """One validation sentence and what the model makes of it."""

    source: str
    reference: str
    hypothesis: str


class Validation(NamedTuple):
    """The figures of one validation."""

    loss: float
    """Cross-entropy a target token, in nats, without label smoothing."""
    perplexity: float
    accuracy: float
    """Share of target tokens ranked first, given the right ones before."""
    bleu: float
    """sacreBLEU of greedy translations of the first sentences."""
    samples: list[Sample]


class Validator:
    """Measures a model on the validation pairs; draws no random numbers, so it never changes the training."""

    def __init__(
        self, pairs: Sequence[Pair], tokenizer: Tokenizer, *, max_tokens: int, batch_tokens: int, sentences: int
    ) -> None:
        """`sentences`: how many are translated for BLEU; the loss is over all pairs of up to `max_tokens`."""
        self.corpus = EncodedCorpus.encode(pairs, tokenizer, max_tokens=max_tokens)
        self.translated = list(pairs[:sentences])
        self.tokenizer = tokenizer
        self.batch_tokens = batch_tokens
        ids = tokenizer.encode_source([pair.source for pair in self.translated])
        self.sources = [[*sentence[: max_tokens - 1], SPECIAL.end] for sentence in ids]

    @torch.inference_mode()
    def measure(self, model: SequenceModel, device: torch.device, workers: Workers | None = None) -> Validation:
        """Return the figures of a model in evaluation mode; `workers` share the work, and all get the figures."""
        workers = workers or Workers()
        plan = plan_epoch(
            self.corpus.source_lengths, self.corpus.target_lengths, batch_tokens=self.batch_tokens, seed=0, epoch=0
        )
        entropy = correct = tokens = 0.0
        for indices in workers.share(plan):
            loss = batch_loss(model, collate(self.corpus, indices).to(device))
            entropy, correct, tokens = entropy + loss.cross_entropy, correct + loss.correct, tokens + loss.tokens
        entropy, correct, tokens = workers.sum(entropy, correct, tokens)
        found = decode_sentences(model, workers.share(self.sources), DecodingOptions(beam=1), device=device)
        hypotheses = workers.interleave([self.tokenizer.decode(best[0].tokens) for best in found])
        score = bleu(hypotheses, [[pair.target for pair in self.translated]])
        samples = [Sample(*pair, text) for pair, text in zip(self.translated, hypotheses, strict=True)]
        mean = entropy / max(tokens, 1)
        return Validation(mean, math.exp(min(mean, 700)), correct / max(tokens, 1), score, samples)
