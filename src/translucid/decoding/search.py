"""`search`: greedy search, beam search or sampling, as the options say, for any sequence model."""

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
    prefix_length: int = 0,
    trace: BeamTrace | None = None,
    constraints: Constraints | None = None,
    candidates: Tensor | None = None,
    lengths: Sequence[int] = (),
) -> list[list[Hypothesis]]:
    """Find outputs for a batch of sources. The outputs of a source do not depend on the others in the batch.

    Args:
        model: the model, in evaluation mode unless dropout is wanted.
        source: the input of `model.encode`: ids [B, S] for a translator, B grids for a captioner.
        options: how to search.
        word_starts: [V] boolean, True where a piece begins a word, for `options.max_loops`.
        indices: the number of each source; sampling depends on it and on the seed only. 0, 1, … by default.
        prefix: ids that every output begins with, without the end token; the search begins after them.
        prefix_length: the number of tokens of the prefix that the model does not choose, and that cost nothing.
        trace: records the hypotheses that the search of one source considers. With a trace, beam search with a beam of
            1 replaces greedy search, and finds the same.
        constraints: the phrases that outputs must contain, for a beam search; an output may lack one only if no other
            is found.
        candidates: [B, V] boolean, the only tokens that have a probability for each source; all by default.
        lengths: the number of tokens of each source, if it is known.

    Returns:
        For each source up to `options.nbest` different hypotheses, at least one, the best first.

    Raises:
        UserError: the model's log-probabilities are not finite.
        ValueError: a trace of several sources, or of sampling; or constraints without a beam search.
    """
    if trace is not None and (len(source) != 1 or options.sample):
        raise ValueError("a trace is of one source and a beam search")
    if constraints and options.sample:
        raise ValueError("sampling applies no constraints")
    if not len(source):
        return []
    problem = replace(
        prepare(model, source, options, word_starts, prefix, prefix_length, lengths), candidates=candidates
    )
    if options.sample:
        finished = sample(problem, options, range(len(source)) if indices is None else indices)
    elif options.beam == 1 and not constraints and trace is None:
        finished = greedy_search(problem)
    else:
        constrain = _phrases(constraints, problem) if constraints else Unconstrained
        finished = beam_search(problem, options.beam, options.nbest, trace, constrain)
    best = finished.best(options.nbest)
    if constraints:
        for i, wanted in enumerate(constraints.wanted):
            if wanted:
                best[i] = problem.rescored(best[i])
    return best


def _phrases(constraints: Constraints, problem: Problem) -> Callable[[Rows], Constraint]:
    """Return a function that makes a constraint for the first rows of a beam search."""
    model = problem.model
    return partial(Phrases, Steering.by(constraints, model.bos, model.eos, problem.limits.device))


def prepare(
    model: SequenceModel,
    source: Tensor,
    options: DecodingOptions,
    word_starts: Tensor | None = None,
    prefix: Sequence[int] = (),
    prefix_length: int = 0,
    lengths: Sequence[int] = (),
) -> Problem:
    """Encode the sources, and determine limits, penalties and rules; arguments as for `search`."""
    memory = model.encode(source, lengths=lengths)
    device = memory.mask.device
    sizes = lengths or memory.mask.sum(1).tolist()  # in tokens, or in cells of an image
    limits = []
    for size in sizes:
        # The prefix and one more token must fit, whatever the options say.
        limit = max(length_limit(max(size - 1, 0), options, model.max_length), len(prefix) + 1)
        if model.max_length:  # for the start token and the output together
            limit = min(limit, model.max_length - 1)
        limits.append(limit)
    never = [model.special.pad, model.special.start, model.special.unknown]
    return Problem(
        model=model,
        memory=memory,
        limits=upload(torch.tensor(limits), device),
        penalties=length_penalties(max(limits) + 1, options.length_penalty, device),
        rules=rules_for(options, never, model.eos, word_starts, device, prefix, prefix_length),
    )
