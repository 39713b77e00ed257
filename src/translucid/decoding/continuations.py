"""What else could come next: the likeliest tokens after a given beginning, each followed to the end."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from translucid.decoding.decoding_options import DecodingOptions
from translucid.decoding.hypothesis import Hypothesis
from translucid.decoding.search import search
from translucid.ground.cancellation import between_steps
from translucid.models.protocol import SequenceModel


@torch.inference_mode()
def continuations(
    model: SequenceModel,
    source: Tensor,
    prefix: Sequence[int],
    count: int,
    options: DecodingOptions,
    word_starts: Tensor | None = None,
    told: int = 0,
) -> list[Hypothesis]:
    """Return the outputs of one source that begin with a prefix and go on with each of the likeliest tokens.

    The likeliest comes first. Of each the rest is searched as the options say; an end token, if it is among the
    likeliest, ends the output there. `log_probability` and `token_log_probabilities` are of the whole output. There are
    fewer than `count` where the vocabulary has no more. The first `told` tokens of the prefix are no choice of the
    model's, such as the target language, and cost nothing.

    Raises:
        ValueError: there is not one source, or nothing in it, or nothing is asked for; or the prefix has a token that
            no output has before its end, or leaves no room for one more.
    """
    if len(source) != 1 or not model.source_mask(source).any():
        raise ValueError("continuations are of one source, in which there is something")
    if count < 1:
        raise ValueError(f"{count} continuations are asked for")
    never = [model.special.pad, model.special.start, model.special.unknown]
    if odd := {model.eos, *never} & set(prefix):
        raise ValueError(f"no output goes on after the tokens {sorted(odd)}")
    if model.max_length and len(prefix) + 1 >= model.max_length:
        raise ValueError(f"a prefix of {len(prefix)} tokens leaves no room: the model takes {model.max_length}")
    state = model.start(model.encode(source))
    tokens = torch.tensor([[model.bos, *prefix]], device=source.device)
    for token in tokens.unbind(1):
        between_steps()
        logits, state = model.step(token, state)
    log_probs = logits.float().log_softmax(-1)[0]
    log_probs[never] = -torch.inf
    found = []
    for token in log_probs.topk(min(count, len(log_probs) - len(never))).indices.tolist():
        if token == model.eos:
            found.append(_ended(model, source, prefix, told))
            continue
        one = options.model_copy(update={"nbest": 1, "sample": False})
        found.append(search(model, source, one, word_starts, prefix=[*prefix, token], told=told)[0][0])
    return found


def _ended(model: SequenceModel, source: Tensor, prefix: Sequence[int], told: int) -> Hypothesis:
    """The prefix itself, with its probabilities."""
    targets_in = torch.tensor([[model.bos, *prefix]], device=source.device)
    log_probs = model(source, targets_in).float().log_softmax(-1)[0]
    steps = [log_probs[t, token].item() if t >= told else 0.0 for t, token in enumerate([*prefix, model.eos])]
    return Hypothesis(list(prefix), sum(steps), sum(steps), steps)
