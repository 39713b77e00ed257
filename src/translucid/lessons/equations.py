"""The equations of the lessons as a few lines each, which the pages show before the code of the package.

Vectors and matrices are tensors without batches, masks of padding or fast paths. Tests compare each function with the
modules that the models use.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TypeVar

import torch
from torch import Tensor, nn


def decoder_state(y: Tensor, words: Tensor, W: Tensor, f: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """Return h_t after embedded words [T, D], where y [S, D] are the encoder's states and f is a recurrent cell."""
    h = torch.tanh(W @ y[-1])
    for word in words:
        h = f(h, word)
    return h


def dot(h: Tensor, y: Tensor) -> Tensor:
    """Return the scores [S] of a state h [D] and the encoder's states y [S, D]."""
    return y @ h


def general(h: Tensor, y: Tensor, W: Tensor) -> Tensor:
    """Return the scores with a learned matrix."""
    return y @ W.T @ h


def additive(h: Tensor, y: Tensor, W: Tensor, U: Tensor, v: Tensor) -> Tensor:
    """Return the scores of a hidden layer with tanh."""
    return torch.tanh(W @ h + y @ U.T) @ v


def attention(Q: Tensor, K: Tensor, V: Tensor) -> Tensor:
    """Return the contexts [n_q, d_v] of queries [n_q, d], keys [n_k, d] and values [n_k, d_v]."""
    scores = Q @ K.T / K.shape[1] ** 0.5
    weights = scores.softmax(-1)
    return weights @ V


def target_mask(tokens: Tensor, pad: int) -> Tensor:
    """Return m [T, T], True where position t may attend to s."""
    is_word = tokens != pad
    is_past = torch.ones(len(tokens), len(tokens), dtype=torch.bool).tril()
    return is_word & is_past


def masked_weights(scores: Tensor, m: Tensor) -> Tensor:
    """Return the weights, which are 0 where m is False, also in a row that is masked everywhere."""
    lowest = torch.finfo(scores.dtype).min
    return scores.masked_fill(~m, lowest).softmax(-1) * m


def positions(length: int, D: int) -> Tensor:
    """Return P [length, D]."""
    p = torch.arange(length)[:, None]
    omega = 10000.0 ** (-torch.arange(0, D, 2) / D)
    return torch.stack([torch.sin(p * omega), torch.cos(p * omega)], dim=-1).flatten(1)


def multi_head(x: Tensor, y: Tensor, W_Q: Tensor, W_K: Tensor, W_V: Tensor, W_O: Tensor) -> Tensor:
    """Let x [T, D] attend to y [S, D]; W_Q, W_K and W_V have a matrix [D, d] for each head, W_O is [H d, D]."""
    heads = []
    for i in range(len(W_Q)):
        heads.append(attention(x @ W_Q[i], y @ W_K[i], y @ W_V[i]))
    return torch.cat(heads, dim=-1) @ W_O


def slopes(q: Tensor, K: Tensor, power: float) -> Tensor:
    """Return the slope of each weight by its own score, for scores that are divided by this power of d."""
    d = len(q)
    alpha = (K @ q / d**power).softmax(-1)
    return alpha * (1 - alpha)


Prefix = tuple[int, ...]
Word = TypeVar("Word")
"""A word, or a piece of one, in any form."""


def beam_search(
    log_probs: Callable[[Prefix], Sequence[float]], end: int, K: int, longest: int, score: Callable[[float, int], float]
) -> Prefix:
    """Return the best translation, where log_probs gives the log-probability of each piece after a prefix."""
    prefixes: dict[Prefix, float] = {(): 0.0}
    finished: dict[Prefix, float] = {}
    for _ in range(longest):
        candidates = {}
        for prefix, log_p in prefixes.items():
            for piece, piece_log_p in enumerate(log_probs(prefix)):
                candidates[(*prefix, piece)] = log_p + piece_log_p
        best = sorted(candidates, key=candidates.__getitem__, reverse=True)[: K - len(finished)]
        finished |= {w: candidates[w] for w in best if w[-1] == end}
        prefixes = {w: candidates[w] for w in best if w[-1] != end}
    return max(finished, key=lambda w: score(finished[w], len(w)))


def layer_prediction(h: Tensor, N: nn.Module, E: Tensor, b: Tensor) -> Tensor:
    """Return p_l [V]: what the output projection reads from the state h [D] of any layer."""
    logits: Tensor = E @ N(h) + b
    return logits.softmax(-1)


def contributions(terms: Tensor) -> Tensor:
    """Return the contributions [S] of the terms T(x_s) [S, D] to their sum y."""
    y = terms.sum(0)
    closer = y.norm(p=1) - (y - terms).norm(p=1, dim=-1)
    c = closer.clamp(min=0)
    return c / c.sum()


def multi_head_without(heads: Sequence[Tensor], W_O: Sequence[Tensor], off: Collection[int]) -> Tensor:
    """Return MultiHead for the outputs [T, d] of the heads and their parts [d, D] of the output projection."""
    total = torch.zeros(len(heads[0]), W_O[0].shape[1])
    for h, head in enumerate(heads):
        g = 0 if h in off else 1
        total += g * head @ W_O[h]
    return total


def patched(states: Tensor, clean_states: Tensor, word: int) -> Tensor:
    """Return the states [S, D] of OTHER with that of CLEAN at one word."""
    result = states.clone()
    result[word] = clean_states[word]
    return result


def carried(L_clean: float, L_other: float, L_patched: float) -> float:
    """Return the share of the difference that the patched state carries."""
    return (L_patched - L_other) / (L_clean - L_other)


def with_context(previous: Sequence[int], separator: int, sentence: Sequence[int]) -> list[int]:
    """Return what the model reads: x_1, the separator, x."""
    return [*previous, separator, *sentence]


def log_odds(log_p: Callable[[Sequence[int], str], float], source: Sequence[int], y: str, y2: str) -> float:
    """Return L for two translations y and y' of a source."""
    return log_p(source, y) - log_p(source, y2)


def live_translation(
    continuation: Callable[[Sequence[Word], Sequence[Word]], Iterable[tuple[Word, Tensor]]],
    source: Sequence[Word],
    f: int,
) -> list[tuple[Word, int]]:
    """Return the words y_i and how many words of x had been heard when each was written, with a lag of f words.

    `continuation` of x and y gives the words that the model proposes after y, each with its attention A_i [S] to x.
    """
    written: list[tuple[Word, int]] = []
    for heard in range(1, len(source) + 1):
        x, y = source[:heard], [word for word, _ in written]
        for word, attention in continuation(x, y):
            a = int(attention.argmax())
            if a >= len(x) - f and heard < len(source):
                break
            written.append((word, heard))
    return written


def transcoder(x: Tensor, W_e: Tensor, b_e: Tensor, W_d: Tensor, b_d: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the features f [F] of an input x [D], and what they write [D]; they are the rows of W_e and W_d."""
    positive = torch.relu(W_e @ x + b_e)
    smallest = positive.topk(k).values[-1]
    f = positive.where(positive >= smallest, 0)
    return f, f @ W_d + b_d


def steered(output: Tensor, f: Tensor, W_d: Tensor, i: int, factor: float) -> Tensor:
    """Return what the sublayer writes [D], its error included, when feature i is scaled."""
    return output + (factor - 1) * f[i] * W_d[i]


def held_norm(x: Tensor, sigma: Tensor, gain: Tensor, bias: Tensor) -> Tensor:
    """Return the norm of x [D] with the deviation of the sentence."""
    return (x - x.mean()) / sigma * gain + bias


def direct_effects(logit: Callable[[Tensor], Tensor], w: Tensor) -> tuple[Tensor, Tensor]:
    """Return the effects [n] of what n nodes write, w [n, D], on a logit that is affine in w, and the bias."""
    w = w.detach().requires_grad_()
    (g,) = torch.autograd.grad(logit(w), w)
    bias = logit(torch.zeros_like(w))
    return (g * w).sum(-1), bias
