"""The continuation of a written target, piece by piece, with the attention with which each piece is proposed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from translucid.attention.points import WEIGHTS, Point, Record, handling_points, points_of
from translucid.data.tokenizing.pieces import SPACE
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.beam import beam_search
from translucid.decoding.decoding_options import DecodingOptions
from translucid.decoding.maps import AlignmentLayer, chosen_maps, forced_features
from translucid.decoding.problem import Problem
from translucid.decoding.rows import Rows
from translucid.decoding.search import TorchEngine, prepare
from translucid.evaluation.alignment_error import AlignmentOptions
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL
from translucid.live.policies import Floats
from translucid.live.words import stands_alone
from translucid.models.protocol import Maps, SequenceModel, State

if TYPE_CHECKING:
    from translucid.api.translator import Translator


LAYER = "alignment layer"
"""The name of the alignment layer."""


class Piece(NamedTuple):
    """A proposed target piece."""

    token: int
    log_prob: float
    row: Floats
    """[S] the attention over all positions of the input; empty without attention."""


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

    def of_tokens(self, problem: Problem, maps: Maps, features: Tensor, tokens: Sequence[int]) -> Floats:
        """Return the attention [T, S] with which the tokens of one target were proposed; [T, 0] without attention.

        Args:
            problem: the search.
            maps: the recorded weights, [1, H, T, S] each.
            features: [1, T, D] the features from which the tokens were predicted.
            tokens: the T tokens.
        """
        if self.layer is not None:
            pieces = problem.model.output.weight[torch.tensor([tokens], device=features.device)]
            links = self.layer(features, pieces, problem.memory.states, problem.memory.mask)
            return _array(links[0])
        if not maps:
            return np.zeros((len(tokens), 0), np.float32)
        heads = slice(None) if self.head is None else slice(self.head, self.head + 1)
        means = [weights[0, heads].float().mean(0) for weights in maps.values()]
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


class _Step(NamedTuple):
    """What the model computes for the next token."""

    features: Tensor
    """[1, 1, D]."""
    maps: Maps
    """The recorded weights, [1, H, 1, S] each."""


@dataclass(frozen=True)
class Continuations:
    """Continues targets by one model: greedily, or by beam search."""

    engine: TorchEngine
    rows: AttentionRows
    options: DecodingOptions
    vocabulary: TargetVocabulary

    def after(self, source: Sequence[int], written: Sequence[int], draft: Sequence[int] = ()) -> Iterator[Piece]:
        """Yield the pieces that the model proposes after those that are written, with the end token last.

        Args:
            source: the ids of the input, with its end token.
            written: the target ids that are written, without those that every target begins with.
            draft: a guess of the ids to come, such as the proposals for the words before. It saves time where it is
                right, as one pass checks all of it, and changes no result.

        Raises:
            UserError: the model's predictions are not finite.
        """
        engine, opening = self.engine, self.engine.opening
        prefix = [*opening, *written]
        with torch.inference_mode():
            problem = prepare(
                engine.model,
                torch.tensor([source], device=engine.device),
                self.options,
                engine.word_starts,
                prefix,
                len(opening),
                candidates=engine.candidates,
            )
            if written and not self.vocabulary.alone[written[-1]]:
                whole_words = WholeWords(len(prefix), self.vocabulary.continuing.to(engine.device))
                problem = replace(problem, rules=[*problem.rules, whole_words])
        if self.options.beam > 1:
            yield from self._searched(problem, prefix)
        else:
            yield from self._greedy(problem, prefix, [*draft])

    def _greedy(self, problem: Problem, prefix: Sequence[int], draft: list[int]) -> Iterator[Piece]:
        """Yield the most probable pieces after a prefix."""
        eos = problem.model.eos
        with torch.inference_mode():
            rows, _ = problem.begin()
        for forced in prefix:
            rows = _extended(rows, forced, 0.0)
        state: State | None = None
        while True:
            # A pass over everything checks the draft; when it is used up, each step computes one position.
            if state is None:
                steps, state = self._checked(problem, rows, draft)
            else:
                steps, state = self._advanced(problem, rows, state)
            for position, step in enumerate(steps):
                piece = self._chosen(problem, rows, step)
                yield piece
                if piece.token == eos:
                    return
                rows = _extended(rows, piece.token, piece.log_prob)
                if position < len(steps) - 1 and piece.token != draft[position]:
                    draft, state = [], None
                    break

    def _checked(self, problem: Problem, rows: Rows, draft: Sequence[int]) -> tuple[list[_Step], State]:
        """Return the steps after the tokens so far and after each of a draft, by one pass, and the state after all."""
        device = rows.tokens.device
        with torch.inference_mode(), self.rows.recorded() as maps:
            tokens = torch.cat([rows.tokens, torch.tensor([[*draft]], dtype=torch.int64, device=device)], 1)
            features, state = problem.model.resume(problem.memory, tokens)
        steps = []
        for position in range(rows.tokens.size(1) - 1, tokens.size(1)):
            one = slice(position, position + 1)
            weights = {name: values[..., one, :] for name, values in maps.items()}
            steps.append(_Step(features[:, one], weights))
        return steps, state

    def _advanced(self, problem: Problem, rows: Rows, state: State) -> tuple[list[_Step], State]:
        """Return the step after the tokens so far, given the state before the last one, and the state after it."""
        with torch.inference_mode(), self.rows.recorded() as maps:
            features, state = problem.model.advance(rows.last, state)
        return [_Step(features[:, None], maps)], state

    def _chosen(self, problem: Problem, rows: Rows, step: _Step) -> Piece:
        """Return the most probable piece of a step."""
        with torch.inference_mode():
            log_probs, finite = problem.log_probs(rows, problem.model.output(step.features[:, 0]))
            problem.refuse_unless(bool(finite))
            token = int(log_probs[0].argmax())
            (row,) = self.rows.of_tokens(problem, step.maps, step.features, [token])
            return Piece(token, float(log_probs[0, token]), row)

    def _searched(self, problem: Problem, prefix: Sequence[int]) -> Iterator[Piece]:
        """Yield the pieces of the best output of a beam search, with the attention of one forced pass."""
        model = problem.model
        with torch.inference_mode():
            ((best,),) = beam_search(problem, self.options.beam, 1).best(1)
            tokens = best.with_end
            with self.rows.recorded() as maps:
                features = forced_features(model, problem.memory, torch.tensor([tokens], device=self.engine.device))
            rows = self.rows.of_tokens(problem, maps, features, tokens)
        pieces = [Piece(*values) for values in zip(tokens, best.token_log_probabilities, rows, strict=True)]
        yield from pieces[len(prefix) :]


def _extended(rows: Rows, token: int, log_prob: float) -> Rows:
    device = rows.tokens.device
    return rows.extended(torch.tensor([token], device=device), torch.tensor([log_prob], device=device))
