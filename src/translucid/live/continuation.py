"""The continuation of a written target, piece by piece, with the attention with which each piece is proposed."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, isfinite
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from bitext.words import stands_alone
from translucid.attention.points import WEIGHTS, Point, Record, handling_points, points_of
from translucid.data.batching import padded
from translucid.data.tokenizing.pieces import SPACE
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.beam import beam_search
from translucid.decoding.decoding_options import DecodingOptions
from translucid.decoding.maps import AlignmentLayer, chosen_maps, forced_features
from translucid.decoding.problem import Rule, refuse_unless_finite, rules_for
from translucid.decoding.search import TorchEngine, output_limit, prepare
from translucid.evaluation.alignment_error import AlignmentOptions
from translucid.ground.errors import UserError
from translucid.ground.joint_steps import Step
from translucid.ground.special import SPECIAL
from translucid.kernels.upload import upload
from translucid.live.policies import Floats
from translucid.models.protocol import Maps, Memory, SequenceModel, State

if TYPE_CHECKING:
    from translucid.api.translator import Translator


LAYER = "alignment layer"
"""The name of the alignment layer."""


class ProposedPiece(NamedTuple):
    """A proposed target piece."""

    token: int
    log_prob: float
    row: Floats
    """[S] the attention over all positions of the input; empty without attention."""


class ProposedPieces(NamedTuple):
    """P pieces of N targets."""

    rows: Tensor
    """[P] the target of each."""
    positions: Tensor
    """[P] the position of each among the features of its target."""
    tokens: Tensor
    """[P] the ids."""


@dataclass(frozen=True)
class AttentionRows:
    """Where the rows of attention come from: the alignment layer of a run, or layers and heads of the model."""

    points: Mapping[str, Point]
    """The points of the weights whose mean is read, by the names of the attentions."""
    head: int | None = None
    """The head that is read; the mean of all by default."""
    layer: AlignmentLayer | None = None
    """The alignment layer that is read instead."""

    @classmethod
    def of(cls, translator: Translator, name: str | None = None) -> AttentionRows:
        """Return an attention of the model by its name.

        Args:
            translator: the translator.
            name: such as `decoder.1.cross`, `decoder.1.cross.head.3` for one head, or several of them whose mean is
                read. By default, what `tune alignments` has chosen, or else what the run reads word alignments from.

        Raises:
            UserError: the model has no such attention.
        """
        inspector = translator.inspector
        if name is None:
            name = translator.configuration.live.attention
            if name is None or (name == LAYER and inspector.alignment_layer is None):
                return cls.read_by(translator, translator.configuration.alignment)
        if name == LAYER and inspector.alignment_layer is not None:
            return cls({}, layer=inspector.alignment_layer)
        names, heads = [], set()
        for part in name.split(", "):
            point, _, head = part.partition(".head.")
            count = inspector.heads.get(point, 0) if point.endswith(".cross") else 0
            if not count or (head and not (head.isdecimal() and int(head) < count)):
                crosses = [cross for cross in inspector.heads if cross.endswith(".cross")]
                fix = f"It has {', '.join(crosses) or 'no cross-attention'}; .head.0 and so on are single heads."
                raise UserError(f"the model has no attention {name!r} to the source", fix=fix)
            names.append(point)
            heads.add(head)
        if len(heads) > 1:
            raise UserError(f"{name!r} has several heads", fix="Give layers, or the same head of each.")
        (head,) = heads
        return cls(_points(translator.model, names), int(head) if head else None)

    @classmethod
    def read_by(cls, translator: Translator, options: AlignmentOptions) -> AttentionRows:
        """Return the attention of some options for word alignments: the alignment layer, or the weights of the model.

        Raises:
            UserError: the model has no such layer or head.
        """
        inspector = translator.inspector
        if not inspector.has_cross_attention:
            return cls({})
        layer = inspector.alignment_layer
        options = options.of(layer is not None)
        if options.learned:
            return cls({}, layer=layer)
        names = chosen_maps(inspector.heads, "cross", options.layer, options.head)
        return cls(_points(translator.model, names), options.head)

    @property
    def name(self) -> str:
        """What is read, such as `decoder.1.cross` or `decoder.1.cross.head.3`."""
        if self.layer is not None:
            return LAYER
        head = "" if self.head is None else f".head.{self.head}"
        return ", ".join(f"{name}{head}" for name in self.points)

    @contextmanager
    def recorded(self) -> Iterator[Maps]:
        """Record the weights, [N, H, T, S] each, within the block."""
        record = Record()
        with handling_points({point: record.handler(name) for name, point in self.points.items()}):
            yield record

    def of_target(self, model: SequenceModel, memory: Memory, tokens: Sequence[int]) -> Floats:
        """Return the attention [T, S] with which the tokens of the target of one source are proposed."""
        ids = torch.tensor(tokens, device=memory.states.device)
        with self.recorded() as maps:
            features = forced_features(model, memory, ids[None])
        positions = torch.arange(len(tokens), device=ids.device)
        return self.of_pieces(
            model, memory, maps, features, ProposedPieces(torch.zeros_like(positions), positions, ids)
        )

    def of_pieces(
        self, model: SequenceModel, memory: Memory, maps: Maps, features: Tensor, pieces: ProposedPieces
    ) -> Floats:
        """Return the attention [P, S] with which P target pieces were proposed; [P, 0] without attention.

        Args:
            model: the model.
            memory: that of the N sources.
            maps: the recorded weights, [N, H, T, S] each.
            features: [N, T, D] the features from which pieces were predicted.
            pieces: which of them.
        """
        rows, positions = pieces.rows, pieces.positions
        if self.layer is not None:
            queries = features[rows, positions][:, None]
            tokens = model.output.weight[pieces.tokens][:, None]
            return _array(self.layer(queries, tokens, memory.states[rows], memory.mask[rows])[:, 0])
        if not maps:
            return np.zeros((len(rows), 0), np.float32)
        heads = slice(None) if self.head is None else slice(self.head, self.head + 1)
        means = [weights[rows, :, positions][:, heads].float().mean(1) for weights in maps.values()]
        return _array(torch.stack(means).mean(0))


def _points(model: SequenceModel, names: Sequence[str]) -> dict[str, Point]:
    points = points_of(model)
    return {name: points[f"{name}{WEIGHTS}"] for name in names}


def _array(rows: Tensor) -> Floats:
    array: Floats = rows.float().cpu().numpy()
    return array


@dataclass(frozen=True)
class TargetVocabulary:
    """Where the pieces of a target vocabulary begin and end words."""

    begins: Sequence[bool]
    """For each id, whether its piece begins a word."""
    alone: Sequence[bool]
    """For each id, whether its last character is a word by itself, so that the word is complete."""
    continuing: Tensor
    """[n] the ids whose pieces continue a word: they begin neither a word nor with a sign."""

    @classmethod
    def of(cls, tokenizer: Tokenizer) -> TargetVocabulary:
        """Return those of a tokenizer, which are determined once."""
        if tokenizer not in _vocabularies:
            pieces = tokenizer.target_vocabulary
            begins = [piece.startswith(SPACE) or stands_alone(piece[:1]) for piece in pieces]
            alone = [stands_alone(piece[-1:]) for piece in pieces]
            continuing = []
            for number in range(len(SPECIAL), len(pieces)):
                if not begins[number] and pieces[number][:1].isalnum():
                    continuing.append(number)
            _vocabularies[tokenizer] = cls(begins, alone, torch.tensor(continuing, dtype=torch.int64))
        return _vocabularies[tokenizer]


_vocabularies: WeakKeyDictionary[Tokenizer, TargetVocabulary] = WeakKeyDictionary()


@dataclass(frozen=True)
class WholeWords:
    """After a written word, no piece continues it: the next one begins a word, or is a sign such as a comma."""

    position: int
    """The number of target pieces that are written."""
    continuing: Tensor
    """[n] the ids of the pieces that continue a word."""

    def __call__(self, history: Tensor, log_probs: Tensor) -> None:
        """Forbid these pieces as the first one that is proposed."""
        if history.size(1) == self.position:
            log_probs.index_fill_(1, self.continuing, -torch.inf)


class Continuation(Step):
    """The pieces that a model proposes after a written target, one after another, with the end token last."""

    def __init__(
        self, continuations: Continuations, source: Sequence[int], written: Sequence[int], draft: Sequence[int] = ()
    ) -> None:
        """Begin with a source and a target; see `Continuations.after`."""
        self.continuations, self.source, self.written, self.draft = continuations, source, written, [*draft]
        model = continuations.engine.model
        self.tokens = [model.bos, *continuations.engine.opening, *written]
        """The target so far, and the pieces that were proposed."""
        self.first = len(self.tokens)
        """The number of tokens that were not proposed."""
        self.memory: Memory | None = None
        self.state: State | None = None
        """The state before the last token, if it is known."""
        self._pieces: deque[ProposedPiece] = deque()

    async def next(self) -> ProposedPiece:
        """Return the next piece.

        Raises:
            UserError: the model's predictions are not finite.
        """
        if not self._pieces:
            await self
        return self._pieces.popleft()

    async def finish(self) -> None:
        """Let the model propose all pieces."""
        while self.tokens[-1] != self.continuations.engine.model.eos or not self._pieces:
            await self

    @property
    def target(self) -> list[int]:
        """The target ids that are written, and those that were proposed."""
        return [*self.written, *self.tokens[self.first :]]

    def joins(self, other: Step) -> bool:
        """Return whether both are computed by the same model with the same options."""
        return isinstance(other, Continuation) and self.continuations == other.continuations

    def compute(self, steps: Sequence[Continuation]) -> None:
        """Let the model propose the next pieces of several continuations."""
        self.continuations.compute(steps)

    def propose(self, pieces: Sequence[ProposedPiece]) -> None:
        """Add pieces, at least one."""
        self.tokens += [piece.token for piece in pieces]
        self.draft = []
        self._pieces += pieces

    def whole_words(self, vocabulary: TargetVocabulary, device: torch.device) -> list[Rule]:
        """Return the rule for the piece after the last word that is written, if the word could go on."""
        if not self.written or vocabulary.alone[self.written[-1]]:
            return []
        return [WholeWords(self.first - 1, vocabulary.continuing.to(device))]


@dataclass(frozen=True)
class Continuations:
    """Continues targets by one model: greedily, or by beam search."""

    engine: TorchEngine
    rows: AttentionRows
    options: DecodingOptions
    vocabulary: TargetVocabulary

    def after(self, source: Sequence[int], written: Sequence[int], draft: Sequence[int] = ()) -> Continuation:
        """Return the continuation of a target.

        Args:
            source: the ids of the input, with its end token.
            written: the target ids that are written, without those that every target begins with.
            draft: a guess of the ids to come, such as the proposals for the words before. It saves time where it is
                right, as one pass checks all of it, and changes no result.
        """
        return Continuation(self, source, written, draft)

    def compute(self, batch: Sequence[Continuation]) -> None:
        """Propose the next pieces of continuations, by one pass of the decoder, or by a beam search for each.

        Raises:
            UserError: the model's predictions are not finite.
        """
        with torch.inference_mode():
            if self.options.beam > 1:
                for continuation in batch:
                    continuation.propose(self._searched(continuation))
                return
            self._encode([continuation for continuation in batch if continuation.memory is None])
            memory, *others = [continuation.memory for continuation in batch if continuation.memory]
            if others:
                memory = memory.joined(others)
            # A pass over everything checks the draft. A continuation by itself then goes on step by step; for several,
            # whose lengths differ, a pass over everything costs less than a step for each.
            with self.rows.recorded() as maps:
                if len(batch) == 1:
                    features, first = self._advance(batch[0])
                else:
                    tokens = padded([[*each.tokens, *each.draft] for each in batch], self.engine.model.pad)
                    features, first = self.engine.model.features(memory, upload(tokens, self.engine.device)), 0
                    for continuation in batch:
                        continuation.state = None
            self._choose(batch, memory, maps, features, first)

    def _encode(self, batch: Sequence[Continuation]) -> None:
        """Encode the sources of continuations."""
        model, lengths = self.engine.model, [len(continuation.source) for continuation in batch]
        if not batch:
            return
        source = padded([[*continuation.source] for continuation in batch], model.pad)
        memory = model.encode(upload(source, self.engine.device), lengths=lengths)
        for number, continuation in enumerate(batch):
            continuation.memory = memory
            if len(batch) > 1:
                continuation.memory = memory.select(torch.tensor([number], device=self.engine.device))

    def _advance(self, continuation: Continuation) -> tuple[Tensor, int]:
        """Return the features after the last tokens of a continuation, and the position of the first."""
        model, device = self.engine.model, self.engine.device
        if continuation.state is not None:
            last = torch.tensor(continuation.tokens[-1:], device=device)
            features, continuation.state = model.advance(last, continuation.state)
            return features[:, None], len(continuation.tokens) - 1
        assert continuation.memory
        tokens = torch.tensor([[*continuation.tokens, *continuation.draft]], device=device)
        features, continuation.state = model.resume(continuation.memory, tokens)
        return features, 0

    def _choose(self, batch: Sequence[Continuation], memory: Memory, maps: Maps, features: Tensor, first: int) -> None:
        """Propose the most probable piece after each continuation, and those after its draft as far as that is right.

        Args:
            batch: N continuations.
            memory: that of their sources.
            maps: the recorded weights, [N, H, T, S] each.
            features: [N, T, D].
            first: the position of the first of them.
        """
        model, device = self.engine.model, features.device
        rows, positions = list[int](), list[int]()
        for row, continuation in enumerate(batch):
            for position in range(len(continuation.tokens) - 1, len(continuation.tokens) + len(continuation.draft)):
                rows.append(row)
                positions.append(position)
        at = torch.tensor([rows, positions], device=device)
        at[1] -= first
        logits = model.output(features[at[0], at[1]])
        if self.engine.candidates is not None:
            logits = logits.masked_fill(~self.engine.candidates, -torch.inf)
        log_probs = logits.float().log_softmax(-1)
        ends = log_probs[:, model.eos].tolist()
        self._forbid(batch, rows, positions, log_probs)
        limits = [output_limit(model, len(each.source), self.options, each.first - 1) for each in batch]
        tokens = log_probs.argmax(-1)
        best = log_probs.gather(1, tokens[:, None])[:, 0].tolist()
        chosen = tokens.tolist()
        for number, (row, position) in enumerate(zip(rows, positions, strict=True)):
            if best[number] == -inf or position >= limits[row]:
                chosen[number], best[number] = model.eos, ends[number]
        refuse_unless_finite(all(map(isfinite, best)))
        pieces = ProposedPieces(at[0], at[1], torch.tensor(chosen, device=device))
        attention = self.rows.of_pieces(model, memory, maps, features, pieces)
        proposed: list[list[ProposedPiece]] = [[] for _ in batch]
        for row, piece in zip(rows, map(ProposedPiece, chosen, best, attention), strict=True):
            proposed[row].append(piece)
        for continuation, row_pieces in zip(batch, proposed, strict=True):
            right = 0
            while right < len(continuation.draft) and row_pieces[right].token == continuation.draft[right]:
                right += 1
            if right < len(continuation.draft):
                continuation.state = None
            continuation.propose(row_pieces[: right + 1])

    def _forbid(
        self, batch: Sequence[Continuation], rows: Sequence[int], positions: Sequence[int], log_probs: Tensor
    ) -> None:
        """Apply the rules to the log-probabilities [P, V] after each position, in place."""
        never, *rules = self._rules
        nothing = log_probs.new_empty((len(rows), 0), dtype=torch.int64)
        never(nothing, log_probs)  # whatever the history
        for number, (row, position) in enumerate(zip(rows, positions, strict=True)):
            continuation = batch[row]
            history = [*continuation.tokens, *continuation.draft][1 : position + 1]
            for rule in [*rules, *continuation.whole_words(self.vocabulary, log_probs.device)]:
                rule(torch.tensor([history], device=log_probs.device), log_probs[number : number + 1])

    @cached_property
    def _rules(self) -> list[Rule]:
        """The rules of the options, of which the first forbids the pieces that no output has."""
        engine, special = self.engine, self.engine.model.special
        never = [special.pad, special.start, special.unknown]
        eos, opening = engine.model.eos, len(engine.opening)
        return rules_for(self.options, never, eos, engine.word_starts, engine.device, prefix_length=opening)

    def _searched(self, continuation: Continuation) -> list[ProposedPiece]:
        """Return the pieces of the best output of a beam search, with the attention of one forced pass."""
        engine, model, prefix = self.engine, self.engine.model, continuation.tokens[1:]
        problem = prepare(
            model,
            torch.tensor([continuation.source], device=engine.device),
            self.options,
            engine.word_starts,
            prefix,
            len(engine.opening),
            candidates=engine.candidates,
        )
        whole_words = continuation.whole_words(self.vocabulary, engine.device)
        problem = replace(problem, rules=[*problem.rules, *whole_words])
        ((best,),) = beam_search(problem, self.options.beam, 1).best(1)
        rows = self.rows.of_target(model, problem.memory, best.with_end)
        pieces = [
            ProposedPiece(*values) for values in zip(best.with_end, best.token_log_probabilities, rows, strict=True)
        ]
        return pieces[len(prefix) :]
