"""The search in PyTorch: greedy search, beam search or sampling, as the options say, for any sequence model.

`TorchEngine` searches for any number of sentences in batches, `search` for the sources of one batch. The outputs of a
`RestrictedVocabulary` have only the pieces of a shortlist. `continuations` are alternatives for the next word: the most
probable tokens after a prefix, each continued to the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy, deepcopy
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Literal, Self, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from bitext.cancellation import between_steps
from translucid.data.batching import batches, padded
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.beam import beam_search
from translucid.decoding.captured import CapturedSearch
from translucid.decoding.constrained_decoding import (
    Constraint,
    Constraints,
    PhraseConstraint,
    RequiredPhrase,
    Unconstrained,
)
from translucid.decoding.decoding_options import CandidateVocabulary, DecodingOptions, SearchRequest, length_limit
from translucid.decoding.hypothesis import Hypothesis, empty_hypothesis, in_order
from translucid.decoding.length_control import LengthConstraint, LengthControl, PieceLengths
from translucid.decoding.maps import forced_log_probs
from translucid.decoding.pair_scores import pair_scores
from translucid.decoding.problem import Problem, length_penalties, rules_for
from translucid.decoding.rows import Rows
from translucid.decoding.sampling import greedy_search, sample
from translucid.decoding.shortlist import Shortlist, read_shortlist
from translucid.decoding.trace import BeamTrace
from translucid.kernels.upload import upload
from translucid.models.protocol import Memory, SequenceModel, StateT

BATCH = 8192
"""The number of source tokens in a batch, times the hypotheses for each sentence."""
BATCH_ON_GPU = 32768
"""The same on a GPU, where a step takes hardly longer for many rows than for few."""
BATCH_WITH_SHORTLIST = 16384
"""The same with shortlists by source words, where a hypothesis takes less memory."""


Precision: TypeAlias = Literal["float32", "bfloat16", "float16"]
"""The type of the weights and of the cached keys and values; log-probabilities are always float32."""


class TorchEngine:
    """The search in PyTorch, which runs every model on every device with every option."""

    name = "torch"

    def __init__(
        self,
        model: SequenceModel,
        word_starts: Tensor | None = None,
        device: torch.device | None = None,
        considered: CandidateVocabulary = "all pieces",
        shortlist: Shortlist | None = None,
        opening: Sequence[int] = (),
        lengths: Callable[[], PieceLengths] | None = None,
    ) -> None:
        """Search with a model.

        Args:
            model: any sequence model; it is in evaluation mode during a search.
            word_starts: [V] boolean, True where a piece begins a word; see `search`.
            device: the device of the model; that of its parameters by default.
            considered: the name of the candidate vocabulary.
            shortlist: lists these pieces for each sentence, unless all pieces are candidates.
            opening: target ids that every output begins with and that cost nothing, such as a language token.
            lengths: returns the lengths of the pieces, for requests with limits.
        """
        self.lengths = lengths
        self.model, self.word_starts, self.device = model, word_starts, device or device_of(model)
        self.considered, self.shortlist, self.opening = considered, shortlist, opening
        self.device_type = self.device.type
        self.rounded: SequenceModel | None = None
        """The model in a lower precision, if it searches."""
        self.captured: CapturedSearch | None = None
        """Makes the steps of most searches, if fixed shapes are faster."""

    def fast(self, precision: Precision, *, captured: bool) -> Self:
        """Return a copy of the engine that searches in another precision, and captures its steps as CUDA graphs.

        Forced decoding remains in float32.
        """
        fast = copy(self)
        if precision != "float32":
            fast.rounded = deepcopy(self.model).to(getattr(torch, precision)).eval()
        if captured:
            fast.captured = CapturedSearch(fast.rounded or self.model)
        return fast

    def opened(self, tokenizer: Tokenizer) -> Self:
        """Return a copy of the engine whose outputs begin with the target prefix of a tokenizer."""
        opened = copy(self)
        opened.opening = tokenizer.target_opening
        return opened

    def __str__(self) -> str:
        """Name the engine, the type of its weights and its candidates."""
        model = self.rounded or self.model
        precision = str(next((p.dtype for p in model.parameters()), torch.float32)).removeprefix("torch.")
        return f"{self.name}, {precision}{', captured' if self.captured else ''}, {self.considered}"

    @classmethod
    def of(cls, model: SequenceModel, tokenizer: Tokenizer, device: torch.device) -> TorchEngine:
        """Return the PyTorch engine for a model and its tokenizer."""
        starts = torch.tensor(tokenizer.target_word_starts(), device=device)
        return cls(model, starts, device, opening=tokenizer.target_opening, lengths=partial(_lengths, tokenizer))

    def restricted(self, considered: CandidateVocabulary, shortlist: Path | None, tokenizer: Tokenizer) -> TorchEngine:
        """Return an engine whose candidates are the pieces of a shortlist that `translucid tune speed` has written.

        Raises:
            UserError: the shortlist does not exist or is damaged.
        """
        if not shortlist:
            return self
        listed = read_shortlist(shortlist, tokenizer)
        return TorchEngine(self.model, self.word_starts, self.device, considered, listed, self.opening, self.lengths)

    def decode(
        self, request: SearchRequest[list[int]], constraints: Constraints | None = None
    ) -> list[list[Hypothesis]]:
        """Find outputs for sentences of any length, as an `Engine` does. An empty sentence is not searched.

        With `constraints`, the phrases that outputs must contain, a shortlist that is the same for all sentences also
        has their pieces; instead of another one, all pieces are candidates. So they are with limits of length.

        Raises:
            ValueError: a sentence does not end in the end token; or there are limits, and the engine does not know the
                lengths of pieces.
            UserError: the model's log-probabilities are not finite.
        """
        sentences, options, eos = request.sentences, request.options, self.model.eos
        for i, sentence in enumerate(sentences):
            if not sentence or sentence[-1] != eos:
                raise ValueError(f"sentence {i} does not end in the end token {eos}: {sentence[-3:]}")
        numbers = range(len(sentences)) if request.numbers is None else request.numbers
        control = None
        if request.limits is not None:
            if self.lengths is None:
                raise ValueError("limits need the lengths of pieces")
            control = LengthControl(request.limits, self.lengths())
        results = [[empty_hypothesis()] for _ in sentences]
        lengths = list(map(len, sentences))
        order = [i for i, length in enumerate(lengths) if length > 1]
        order.sort(key=lambda i: -lengths[i])  # sentences of similar length need little padding
        request.report(len(sentences) - len(order))
        with evaluating(self.model):
            for batch in batches(order, lengths, self._batch_tokens() // options.rows):
                ids = [sentences[i] for i in batch]
                batch_numbers = [numbers[i] for i in batch]
                nbest_lists = self._search(
                    ids, options, batch_numbers, constraints and constraints.of(batch), control and control.of(batch)
                )
                for i, hypotheses in zip(batch, nbest_lists, strict=True):
                    results[i] = hypotheses
                request.report(len(batch))
        return results

    def _batch_tokens(self) -> int:
        """Return the number of source tokens in a batch, padding included, times hypotheses, for the device."""
        if self.device_type == "cuda":
            return BATCH_ON_GPU
        return BATCH_WITH_SHORTLIST if self.shortlist and self.shortlist.by_source else BATCH

    def _search(
        self,
        ids: Sequence[list[int]],
        options: DecodingOptions,
        numbers: Sequence[int],
        constraints: Constraints | None,
        control: LengthControl | None,
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of each of the sentences with these ids and numbers."""
        source, listed = upload(padded(ids, self.model.pad), self.device), None
        model, prefix, word_starts, candidates = self.rounded or self.model, self.opening, self.word_starts, None
        if self.shortlist and (constraints or control):
            if not self.shortlist.by_source:
                phrases = constraints.phrases if constraints else [[]] * len(ids)
                candidates = self._listed(*map(_pieces_of, phrases))
        elif self.shortlist:
            # The output layer has only the candidates of the batch; its tokens are indices into them.
            listed, sentence_candidates = self.shortlist.of_batch(ids, self.opening)  # [n], [B, n]
            pieces = torch.from_numpy(listed)
            model = RestrictedVocabulary(model, upload(pieces, self.device))
            prefix = np.searchsorted(listed, prefix).tolist()
            if word_starts is not None:
                word_starts = word_starts[pieces.to(word_starts.device)]
            if sentence_candidates is not None:
                candidates = upload(torch.from_numpy(sentence_candidates), self.device)
        nbest_lists = search(
            model,
            source,
            options,
            word_starts,
            numbers,
            prefix=prefix,
            prefix_length=len(prefix),
            constraints=constraints,
            control=control,
            candidates=candidates,
            lengths=list(map(len, ids)),
            captured=self.captured,
        )
        if listed is None:
            return nbest_lists
        return [_with_vocabulary_ids(nbest, listed) for nbest in nbest_lists]

    @property
    def candidates(self) -> Tensor | None:
        """[1, V] boolean, the pieces of a shortlist that is the same for all sentences; None if all are candidates."""
        return self._listed([]) if self.shortlist else None

    def _listed(self, *additions: Iterable[int]) -> Tensor:
        """Return the candidates [B, V] of sentences, boolean: those of the shortlist, and the `additions` of each."""
        assert self.shortlist is not None
        candidates = torch.zeros(len(additions), self.model.output.out_features, dtype=torch.bool)
        candidates[:, [*self.shortlist.always.tolist(), *self.opening]] = True
        for row, added in zip(candidates, additions, strict=True):
            row[list(added)] = True
        return upload(candidates, self.device)

    def forced(self, pairs: Sequence[tuple[list[int], list[int]]]) -> list[list[float]]:
        """Return the log-probability of each target token after the common prefix, in nats."""
        scores = pair_scores(self.model, pairs, self.device, prefix_length=len(self.opening))
        return [score.log_probabilities for score in scores]

    def traced(self, ids: list[int], options: DecodingOptions) -> tuple[BeamTrace, Hypothesis]:
        """Return the hypotheses that a beam search considers at each step, and the best one, for one sentence."""
        trace, prefix = BeamTrace(), self.opening
        source = torch.tensor([ids], device=self.device)
        # One sentence, and its best hypothesis.
        ((best,),) = search(
            self.model,
            source,
            options,
            self.word_starts,
            prefix=prefix,
            prefix_length=len(prefix),
            trace=trace,
            candidates=self.candidates,
        )
        return trace, best


@torch.inference_mode()
def search(
    model: SequenceModel,
    source: Tensor,
    options: DecodingOptions,
    word_starts: Tensor | None = None,
    indices: Sequence[int] | None = None,
    *,
    prefix: Sequence[int] = (),
    prefix_length: int = 0,
    trace: BeamTrace | None = None,
    constraints: Constraints | None = None,
    control: LengthControl | None = None,
    candidates: Tensor | None = None,
    lengths: Sequence[int] = (),
    captured: CapturedSearch | None = None,
) -> list[list[Hypothesis]]:
    """Find outputs for a batch of sources. The outputs of a source do not depend on the others in the batch.

    Args:
        model: the model, in evaluation mode, or in training mode for dropout.
        source: the input of `model.encode`: ids [B, S] for a translator, or what else its model reads.
        options: the options of the search.
        word_starts: [V] boolean, True where a piece begins a word, for `options.max_loops`.
        indices: the number of each source; sampling depends on it and on the seed only. 0, 1, … by default.
        prefix: ids that every output begins with, without the end token; the search begins after them.
        prefix_length: the number of tokens of the prefix that the model does not choose, and that cost nothing.
        trace: records the hypotheses that the search of one source considers. With a trace, beam search with a beam of
            1 replaces greedy search, and finds the same.
        constraints: the phrases that outputs must contain, for a beam search; an output may lack one only if no other
            is found.
        control: the limits of the lengths of outputs, for a beam search. A source whose outputs do not fit has none.
        candidates: [B, V] boolean, the only tokens that have a probability for each source; all by default.
        lengths: the number of tokens of each source, if it is known.
        captured: makes the steps of searches that it supports.

    Returns:
        For each source up to `options.nbest` different hypotheses, at least one, the best first.

    Raises:
        UserError: the model's log-probabilities are not finite.
        ValueError: a trace of several sources, or of sampling; or constraints without a beam search.
    """
    if trace is not None and (len(source) != 1 or options.sample):
        raise ValueError("a trace is of one source and a beam search")
    if (constraints or control) and options.sample:
        raise ValueError("sampling applies no constraints")
    if not len(source):
        return []
    problem = prepare(model, source, options, word_starts, prefix, prefix_length, lengths, candidates)
    is_plain = not (options.sample or constraints or control or trace)
    if captured is not None and is_plain and captured.supports(problem):
        return captured.search(problem, options)
    if options.sample:
        finished = sample(problem, options, range(len(source)) if indices is None else indices)
    elif options.beam == 1 and not constraints and not control and trace is None:
        finished = greedy_search(problem)
    else:
        constrain: Callable[[Rows], Constraint] = Unconstrained
        if constraints:
            constrain = partial(PhraseConstraint.begin, constraints, model.bos, model.eos)
        if control:
            constrain = partial(LengthConstraint, control, constrain, prefix_length)
        finished = beam_search(problem, options.beam, options.nbest, trace, constrain)
    best = finished.best(options.nbest)
    if control:
        return [in_order(problem.rescored(hypotheses)) for hypotheses in best]
    if constraints:
        for i, phrases in enumerate(constraints.phrases):
            if phrases:
                best[i] = problem.rescored(best[i])
    return best


def prepare(
    model: SequenceModel,
    source: Tensor,
    options: DecodingOptions,
    word_starts: Tensor | None = None,
    prefix: Sequence[int] = (),
    prefix_length: int = 0,
    lengths: Sequence[int] = (),
    candidates: Tensor | None = None,
) -> Problem:
    """Encode the sources, and determine limits, penalties and rules; arguments as for `search`."""
    memory = model.encode(source, lengths=lengths)
    device = memory.mask.device
    sizes = lengths or memory.mask.sum(1).tolist()  # in tokens, or in cells of a grid
    limits = [output_limit(model, size, options, len(prefix)) for size in sizes]
    never = [model.special.pad, model.special.start, model.special.unknown]
    return Problem(
        model=model,
        memory=memory,
        limits=upload(torch.tensor(limits), device),
        penalties=length_penalties(max(limits) + 1, options.length_penalty, device),
        rules=rules_for(options, never, model.eos, word_starts, device, prefix, prefix_length),
        candidates=candidates,
    )


def output_limit(model: SequenceModel, source: int, options: DecodingOptions, prefix: int) -> int:
    """Return the maximum number of tokens of an output, without the end token, for a source of this many tokens."""
    # The prefix and one more token must fit, whatever the options say.
    limit = max(length_limit(max(source - 1, 0), options, model.max_length), prefix + 1)
    if model.max_length:  # for the start token and the output together
        limit = min(limit, model.max_length - 1)
    return limit


def device_of(model: SequenceModel) -> torch.device:
    """Return the device of the parameters of a model; the CPU if it has none."""
    return next((parameter.device for parameter in model.parameters()), torch.device("cpu"))


@contextmanager
def evaluating(model: SequenceModel) -> Iterator[None]:
    """Keep a model in evaluation mode within the block."""
    was_training = model.training
    if was_training:
        model.eval()
    try:
        yield
    finally:
        if was_training:
            model.train()


def _lengths(tokenizer: Tokenizer) -> PieceLengths:
    """Return the lengths of the pieces of the target vocabulary."""
    return PieceLengths(*map(torch.tensor, tokenizer.target_lengths))


def _pieces_of(phrases: Iterable[RequiredPhrase]) -> Iterator[int]:
    """Yield the target ids of all forms of phrases."""
    for phrase in phrases:
        for form in phrase.forms:
            yield from form.pieces


def _with_vocabulary_ids(nbest: Sequence[Hypothesis], pieces: NDArray[np.int64]) -> list[Hypothesis]:
    """Replace the tokens of hypotheses, which are indices into `pieces`, by the ids of these pieces."""
    return [replace(hypothesis, tokens=pieces[hypothesis.tokens].tolist()) for hypothesis in nbest]


@torch.inference_mode()
def continuations(
    model: SequenceModel,
    source: Tensor,
    prefix: Sequence[int],
    count: int,
    options: DecodingOptions,
    word_starts: Tensor | None = None,
    prefix_length: int = 0,
) -> list[Hypothesis]:
    """Return the outputs of one source that begin with a prefix and continue with each of the most probable tokens.

    The most probable token comes first. The rest of each output is searched as the options say; an end token among the
    most probable ones ends the output. `log_probability` and `token_log_probabilities` are those of the whole output.
    There are fewer than `count` outputs if the vocabulary has no more. The first `prefix_length` tokens of the prefix,
    such as a language token, cost nothing, since the model does not choose them.

    Raises:
        ValueError: there is not exactly one source, or it is empty, or `count` is 0; or the prefix has a token that no
            output has before its end, or leaves no room for one more.
    """
    if len(source) != 1 or not model.source_mask(source).any():
        raise ValueError("continuations need exactly one source that is not empty")
    if count < 1:
        raise ValueError(f"the number of continuations must be at least 1, not {count}")
    never = [model.special.pad, model.special.start, model.special.unknown]
    invalid = {model.eos, *never} & set(prefix)
    if invalid:
        raise ValueError(f"no output continues after the tokens {sorted(invalid)}")
    if model.max_length and len(prefix) + 1 >= model.max_length:
        raise ValueError(f"a prefix of {len(prefix)} tokens leaves no room: the model takes {model.max_length}")
    state = model.start(model.encode(source))
    tokens = torch.tensor([[model.bos, *prefix]], device=source.device)
    for token in tokens.unbind(1):
        between_steps()
        logits, state = model.step(token, state)
    log_probs = logits.float().log_softmax(-1)[0]
    log_probs[never] = -torch.inf
    hypotheses = []
    best_only = options.model_copy(update={"nbest": 1, "sample": False})
    for token in log_probs.topk(min(count, len(log_probs) - len(never))).indices.tolist():
        if token == model.eos:
            hypotheses.append(_ended(model, source, prefix, prefix_length))
            continue
        ((best,),) = search(model, source, best_only, word_starts, prefix=[*prefix, token], prefix_length=prefix_length)
        hypotheses.append(best)
    return hypotheses


def _ended(model: SequenceModel, source: Tensor, prefix: Sequence[int], prefix_length: int) -> Hypothesis:
    """Return the prefix as a whole output, with its log-probability."""
    target = torch.tensor([[*prefix, model.eos]], device=source.device)
    steps = forced_log_probs(model, model.encode(source), target)[0].tolist()
    steps[:prefix_length] = [0.0] * prefix_length
    return Hypothesis(list(prefix), sum(steps), sum(steps), steps)


class RestrictedVocabulary(SequenceModel[StateT]):
    """A model whose outputs have only some pieces. Its target ids are indices into them."""

    def __init__(self, model: SequenceModel[StateT], pieces: Tensor) -> None:
        """Share the weights of a model; `pieces`: [n] target ids, sorted, the special ones first."""
        super().__init__()
        self.model, self.pieces = model, pieces
        self.special, self.max_length = model.special, model.max_length
        self.source_embedding = model.source_embedding
        # Without initialization, as the rows of the model's own output layer replace the weights.
        self.output = nn.utils.skip_init(type(model.output), model.output.in_features, len(pieces))
        self.output.weight = nn.Parameter(model.output.weight[pieces], requires_grad=False)
        self.output.bias = nn.Parameter(model.output.bias[pieces], requires_grad=False)
        self.train(model.training)

    def source_mask(self, source: Tensor) -> Tensor:
        """Return the model's mask of source positions."""
        return self.model.source_mask(source)

    def encode(self, source: Tensor, lengths: Sequence[int] = ()) -> Memory:
        """Encode sources as the model does."""
        return self.model.encode(source, lengths)

    def read(self, embedded: Tensor, mask: Tensor) -> Memory:
        """Encode embedded sources as the model does."""
        return self.model.read(embedded, mask)

    def features(self, memory: Memory, targets_in: Tensor) -> Tensor:
        """Return the model's features for targets that are given as indices into the pieces."""
        return self.model.features(memory, self.pieces[targets_in])

    def start(self, memory: Memory) -> StateT:
        """Return the model's first state."""
        return self.model.start(memory)

    def advance(self, tokens: Tensor, state: StateT) -> tuple[Tensor, StateT]:
        """Advance the model by tokens that are given as indices into the pieces."""
        return self.model.advance(self.pieces[tokens], state)
