"""Alternatives for the next word: the most probable tokens after a prefix, each continued to the end."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from bitext.cancellation import between_steps
from translucid.decoding.decoding_options import DecodingOptions
from translucid.decoding.hypothesis import Hypothesis
from translucid.decoding.maps import forced_log_probs
from translucid.decoding.search import search
from translucid.models.protocol import SequenceModel


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
