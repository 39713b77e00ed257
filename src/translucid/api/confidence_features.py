"""What is seen of translations besides their text: for how sure they are, and word by word.

What the search has told is taken as it is. CTranslate2 tells no log-probability of single tokens: they are asked for
afterwards, as attention and passes with dropout are.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from translucid.data.text_pipeline import Piece
from translucid.decoding.hypothesis import Hypothesis
from translucid.engines.stages import SearchStages
from translucid.evaluation.confidence.estimator import Estimator
from translucid.evaluation.confidence.features import Figures, Kind, Seen
from translucid.ground.special import SPECIAL
from translucid.kernels.devices import own_random_state

if TYPE_CHECKING:
    from translucid.data.tokenizing.tokenizer import Tokenizer
    from translucid.engines.engine import TorchEngine
    from translucid.inspection.inspected import Inspected
    from translucid.models.protocol import SequenceModel

Part: TypeAlias = tuple[Piece, Hypothesis]
"""What was translated in one go, and what was found for it."""

SEED = 1
"""Of the passes with dropout; each sentence begins with it, so that its company does not matter."""


@dataclass(frozen=True)
class ConfidenceFeatures:
    """Looks again at what a search has found."""

    stages: SearchStages
    own: Callable[[], TorchEngine]
    """Gives our own search, and with it the model, when that is wanted."""

    @property
    def tokenizer(self) -> Tokenizer:
        """The model's."""
        return self.stages.pipeline.tokenizer

    def observed(self, parts: Sequence[Part], kinds: Sequence[Kind], passes: int = 0) -> list[Seen]:
        """Return what is to be seen of translations.

        Args:
            parts: what was translated.
            kinds: of features that are wanted; see `features.KINDS`.
            passes: with dropout, if those are wanted.
        """
        each: Sequence[Figures | None] = [None] * len(parts)
        dropped: Sequence[Figures | None] = each
        if "attention" in kinds:
            seen = [self.watched(part, one) for part, one in zip(parts, self._inspected(parts), strict=True)]
        else:
            if set(kinds) != {"search"}:
                each = self.token_log_probs(parts)
            seen = [self._seen(part, log_probs) for part, log_probs in zip(parts, each, strict=True)]
        if "dropout" in kinds:
            dropped = self._dropped(parts, passes)
        return [replace(one, dropped=passing) for one, passing in zip(seen, dropped, strict=True)]

    def watched(self, part: Part, inspected: Inspected) -> Seen:
        """Return what is to be seen of a translation that the model was made to write."""
        told = len(self.tokenizer.target_opening)
        attention = inspected.cross()[told:].cpu().double().numpy()
        return replace(self._seen(part, np.array(inspected.log_probs[told:], np.float64)), attention=attention)

    def _seen(self, part: Part, log_probs: Figures | None) -> Seen:
        piece, found = part
        return Seen(
            piece.text,
            self.stages.pipeline.text(piece, found.tokens),
            len(found.tokens) + 1 - len(self.tokenizer.target_opening),
            found.log_probability,
            log_probs,
            opening=len(self.tokenizer.source_opening),
        )

    def confidences(self, estimator: Estimator, texts: Sequence[Sequence[Part]]) -> list[float | None]:
        """Return the lowest confidence of the parts of each text; None where it has none."""
        seen = self.observed(list(chain.from_iterable(texts)), [estimator.kind], estimator.passes)
        values = iter(estimator(seen).tolist())
        return [min((next(values) for _ in parts), default=None) for parts in texts]

    def words(self, texts: Sequence[tuple[Sequence[Piece], Sequence[Part]]]) -> list[list[tuple[str, float]]]:
        """Return the words of each text's translation, each with its probability; see `Translator`.

        `texts`: what each was cut into, and the parts of that which were translated.
        """
        from translucid.inspection.words import word_spans

        told = len(self.tokenizer.target_opening)
        all_parts = list(chain.from_iterable(parts for _, parts in texts))
        found = zip(all_parts, self.token_log_probs(all_parts), strict=True)
        rows: list[list[tuple[str, float]]] = []
        for pieces, _ in texts:
            rows.append([])
            for piece in pieces:
                if not piece.ids:
                    rows[-1] += [(word, 1.0) for word in piece.text.split()]
                    continue
                (_, hypothesis), log_probs = next(found)
                spans = word_spans(self.tokenizer.target_pieces(hypothesis.tokens[told:]))
                for written, first, after in spans:
                    probability = float(np.exp(log_probs[first:after].sum()))
                    # A piece may stand for a placeholder of several words.
                    words = piece.masked.unmask(written).split()
                    rows[-1] += [(word, probability) for word in words]
        return rows

    def token_log_probs(self, parts: Sequence[Part]) -> list[Figures]:
        """Return the log-probability of each target token [T], the end token's last, without what names a language."""
        told = len(self.tokenizer.target_opening)
        searched = [found.token_log_probabilities for _, found in parts]
        unknown = [part for part in parts if not part[1].token_log_probabilities]
        asked = iter(self.stages.forced([(piece, [*one.tokens, SPECIAL.end]) for piece, one in unknown]))
        return [np.array(one[told:] if one else next(asked), np.float64) for one in searched]

    def tokens(self, ways: Sequence[Sequence[Hypothesis]], pieces: Sequence[Piece]) -> list[list[tuple[str, float]]]:
        """Return the target pieces of several translations of a text with their log-probabilities; see `Translator`.

        `ways`: what was found for each of the pieces that were translated.
        """
        from translucid.inspection.forced_decoding import forced_decoding

        own, told = self.own(), len(self.tokenizer.target_opening)
        searched = [piece for piece in pieces if piece.ids]
        pairs = self._pairs([part for way in ways for part in zip(searched, way, strict=True)])
        seen = iter(forced_decoding(own.model, self.tokenizer, pairs, own.device, look=False) if pairs else [])
        written = (list(zip(one.target, one.log_probs, strict=True))[told:] for one in seen)
        return [[pair for one in islice(written, len(searched)) for pair in one] for _ in ways]

    def _pairs(self, parts: Sequence[Part]) -> list[tuple[list[int], list[int]]]:
        """Return what the model has read and written."""
        read = self.stages.pipeline.read([piece for piece, _ in parts])
        return [(ids, [*found.tokens, SPECIAL.end]) for ids, (_, found) in zip(read, parts, strict=True)]

    def _inspected(self, parts: Sequence[Part]) -> list[Inspected]:
        """Let the model write the translations of the sources alone, and watch."""
        from translucid.inspection.forced_decoding import forced_decoding

        own = self.own()
        pairs = [(piece.ids, [*found.tokens, SPECIAL.end]) for piece, found in parts]
        return forced_decoding(own.model, self.tokenizer, pairs, own.device)

    def _dropped(self, parts: Sequence[Part], passes: int) -> list[Figures]:
        """Return the log-probability of each translation in each of N passes with dropout [N]."""
        import torch

        from translucid.decoding.pair_scores import pair_scores

        own, told = self.own(), len(self.tokenizer.target_opening)
        found = []
        with own_random_state(own.device):
            for pair in self._pairs(parts):
                torch.manual_seed(SEED)
                scores = pair_scores(self._dropping, [pair] * passes, own.device, told=told)
                found.append(np.array([one.log_probability for one in scores], np.float64))
        return found

    @cached_property
    def _dropping(self) -> SequenceModel:
        """The model with dropout at work; a copy, as others may translate with it meanwhile."""
        return copy.deepcopy(self.own().model).train()
