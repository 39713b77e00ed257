"""The one entrance: greedy search, beam search or sampling, as the options say, over any model of the protocol."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from translucid.decoding.beam import beam_search
from translucid.decoding.constrained_beam import Constraint, Unconstrained
from translucid.decoding.constraints import Constraints, Phrases, Steering
from translucid.decoding.decoding_options import DecodingOptions
from translucid.decoding.greedy import greedy_search
from translucid.decoding.hypothesis import Hypothesis
from translucid.decoding.limits import length_limit
from translucid.decoding.problem import Problem, length_penalties
from translucid.decoding.rows import Rows
from translucid.decoding.rules import rules_for
from translucid.decoding.sampling import sample
from translucid.decoding.trace import BeamTrace
from translucid.kernels.transfer import upload
from translucid.models.protocol import SequenceModel


@torch.inference_mode()
def search(
    model: SequenceModel,
    source: Tensor,
    options: DecodingOptions,
    word_starts: Tensor | None = None,
    indices: Sequence[int] | None = None,
    *,
    prefix: Sequence[int] = (),
    told: int = 0,
    trace: BeamTrace | None = None,
    constraints: Constraints | None = None,
    candidates: Tensor | None = None,
    lengths: Sequence[int] = (),
) -> list[list[Hypothesis]]:
    """Find outputs for a batch of sources. What a source gives does not depend on the others in the batch.

    Args:
        model: in evaluation mode, or dropout is at work.
        source: what `model.encode` takes: ids [B, S] for a translator, B grids for a captioner.
        options: how to search.
        word_starts: [V] boolean, True where a piece begins a word; `options.max_loops` needs it and is off without.
        indices: a number for each source; sampling draws the same for the same number and seed. 0, 1, .. if not given.
        prefix: ids that every output begins with, end token not among them; the search begins after them.
        told: the first so many of them are no choice of the model's and cost nothing.
        trace: notes what the search of one source considered on its way. A beam of 1 is then searched as any other
            beam, which finds what greedy search finds.
        constraints: what each output has to have, for a beam search; it has less only where nothing else is found.
        candidates: [B, V] boolean, the only tokens that have a probability for each source; all if not given.
        lengths: of sources of ids their tokens, if they are known.

    Returns:
        For each source up to `options.nbest` different hypotheses, best first, at least one.

    Raises:
        UserError: the model's output is not a number.
        ValueError: a trace of several sources, or of sampling; or constraints without a beam search.
    """
    if trace is not None and (len(source) != 1 or options.sample):
        raise ValueError("a trace is of one source and a beam search")
    if constraints and options.sample:
        raise ValueError("sampling applies no constraints")
    if not len(source):
        return []
    problem = replace(prepare(model, source, options, word_starts, prefix, told, lengths), candidates=candidates)
    if options.sample:
        finished = sample(problem, options, range(len(source)) if indices is None else indices)
    elif options.beam == 1 and not constraints and trace is None:
        finished = greedy_search(problem)
    else:
        constrain = _phrases(constraints, problem) if constraints else Unconstrained
        finished = beam_search(problem, options.beam, options.nbest, trace, constrain)
    best = finished.best(options.nbest)
    if constraints:  # by which it may have been searched at other prices
        for i in (i for i, wanted in enumerate(constraints.wanted) if wanted):
            best[i] = problem.judged(best[i])
    return best


def _phrases(constraints: Constraints, problem: Problem) -> Callable[[Rows], Constraint]:
    """Return what lets a beam search find outputs that have phrases."""
    model = problem.model
    return partial(Phrases, Steering.by(constraints, model.bos, model.eos, problem.limits.device))


def prepare(
    model: SequenceModel,
    source: Tensor,
    options: DecodingOptions,
    word_starts: Tensor | None = None,
    prefix: Sequence[int] = (),
    told: int = 0,
    lengths: Sequence[int] = (),
) -> Problem:
    """Let the model read the sources, and lay down limits, penalties and rules; arguments as for `search`."""
    memory = model.encode(source, lengths=lengths)
    device = memory.mask.device
    sizes = lengths or memory.mask.sum(1).tolist()  # in tokens, or in cells
    without_end = [max(size - 1, 0) for size in sizes]
    limits = [max(length_limit(length, options, model.max_length), len(prefix) + 1) for length in without_end]
    if model.max_length:  # for the start token and the output together
        limits = [min(limit, model.max_length - 1) for limit in limits]
    never = [model.special.pad, model.special.start, model.special.unknown]
    return Problem(
        model=model,
        memory=memory,
        limits=upload(torch.tensor(limits), device),
        penalties=length_penalties(max(limits) + 1, options.length_penalty, device),
        rules=rules_for(options, never, model.eos, word_starts, device, prefix, told),
    )
