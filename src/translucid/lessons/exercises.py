"""The exercises of the lessons: a function to write for each, random arguments, and mistakes that are often made.

The right answers are the functions of `equations.py`, which tests compare with the modules of the models.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Generator, Tensor

from translucid.lessons import equations


@dataclass(frozen=True)
class Exercise:
    """A function to write."""

    right: Callable[..., Any]
    """The right answer, whose name and parameters are those of the function to write."""
    equation: str
    """The equation, in LaTeX."""
    arguments: Callable[[Generator], tuple[Any, ...]]
    """Returns random arguments. Sizes differ, so that a shape names its dimensions."""
    mistakes: Mapping[str, Callable[..., Any]]
    """Wrong answers by what is wrong with them."""

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.right.__name__


def _normal(generator: Generator, *shape: int) -> Tensor:
    return torch.randn(shape, generator=generator)


def _scores_and_mask(generator: Generator) -> tuple[Tensor, Tensor]:
    """Return scores [4, 5], and a mask with a row that is masked everywhere."""
    mask = torch.rand(4, 5, generator=generator) < 0.6
    mask[:, 0] = True
    mask[2] = False
    return _normal(generator, 4, 5), mask


def _cell(word: Tensor, h: Tensor) -> Tensor:
    return torch.tanh(0.5 * h + word)


def _search(generator: Generator) -> tuple[Any, ...]:
    """Return the arguments of a beam search over five pieces, where 0 is the end."""
    logits = 1.5 * _normal(generator, 5, 5)

    def log_probs(prefix: equations.Prefix) -> list[float]:
        row = logits[prefix[-1] if prefix else 1].clone()
        row[0] += (
            len(prefix) - 2.0 if len(prefix) < 5 else 99.0
        )  # longer translations end more often, the sixth piece is the end
        values: list[float] = row.log_softmax(-1).tolist()
        return values

    return log_probs, 0, 3, 6, lambda log_p, length: log_p / ((5 + length) / 6)


def _live(generator: Generator) -> tuple[Any, ...]:
    """Return the arguments of live translation, with words that are numbers."""
    looks = torch.rand(8, 8, 8, generator=generator)

    def continuation(x: Sequence[int], y: Sequence[int]) -> list[tuple[int, Tensor]]:
        """Return the words after y, as many as there are in x."""
        return [(10 + i, looks[len(x), i, : len(x)]) for i in range(len(y), len(x))]

    return continuation, [1, 2, 3, 4, 5], 2


def _affine(generator: Generator) -> Callable[[Tensor], Tensor]:
    """Return a function of w [3, 4] that is affine."""
    gradient, bias = _normal(generator, 3, 4), _normal(generator)
    return lambda w: (gradient * w).sum() + bias


def _beam_of_log_probabilities(log_probs: Any, end: int, K: int, longest: int, score: Any) -> Any:
    return equations.beam_search(log_probs, end, K, longest, lambda log_p, length: log_p)


def _unfinished(continuation: Any, source: Sequence[Any], f: int) -> list[Any]:
    """Return live translation that waits at the end, too."""
    words: list[Any] = []
    for heard in range(1, len(source) + 1):
        x, y = source[:heard], [word for word, _ in words]
        for word, attention in continuation(x, y):
            if int(attention.argmax()) >= len(x) - f:
                break
            words.append((word, heard))
    return words


def _patched_in_place(states: Tensor, clean_states: Tensor, word: int) -> Tensor:
    states[word] = clean_states[word]
    return states


def _halves(length: int, D: int) -> Tensor:
    pairs = equations.positions(length, D)
    return torch.cat([pairs[:, ::2], pairs[:, 1::2]], dim=-1)


def _mean_of_heads(x: Tensor, y: Tensor, W_Q: Tensor, W_K: Tensor, W_V: Tensor, W_O: Tensor) -> Tensor:
    heads = [equations.attention(x @ W_Q[i], y @ W_K[i], y @ W_V[i]) for i in range(len(W_Q))]
    return torch.stack(heads).mean(0).repeat(1, len(heads)) @ W_O


def _all_features(x: Tensor, W_e: Tensor, b_e: Tensor, W_d: Tensor, b_d: Tensor, k: int) -> tuple[Tensor, Tensor]:
    f = torch.relu(W_e @ x + b_e)
    return f, f @ W_d + b_d


def _signed_features(x: Tensor, W_e: Tensor, b_e: Tensor, W_d: Tensor, b_d: Tensor, k: int) -> tuple[Tensor, Tensor]:
    features = W_e @ x + b_e
    f = features.where(features.abs() >= features.abs().topk(k).values[-1], 0)
    return f, f @ W_d + b_d


EXERCISES = [
    Exercise(
        equations.decoder_state,
        r"h_0 = \tanh(W y_S), \quad h_t = f(h_{t-1}, w_t)",
        lambda g: (_normal(g, 4, 3), _normal(g, 5, 3), _normal(g, 3, 3), lambda h, word: _cell(word, h)),
        {
            "the decoder does not start from the encoder's last state": lambda y, words, W, f: equations.decoder_state(
                0 * y, words, W, f
            ),
            "the decoder starts from the encoder's first state, which has read one word only": (
                lambda y, words, W, f: equations.decoder_state(y[:1], words, W, f)
            ),
            "the last word is missing": lambda y, words, W, f: equations.decoder_state(y, words[:-1], W, f),
        },
    ),
    Exercise(
        equations.additive,
        r"e_i = v^T \tanh(W h + U y_i)",
        lambda g: (_normal(g, 3), _normal(g, 5, 4), _normal(g, 6, 3), _normal(g, 6, 4), _normal(g, 6)),
        {
            "tanh is missing, so that the score of each word changes by the same amount with h": (
                lambda h, y, W, U, v: (W @ h + y @ U.T) @ v
            ),
            "tanh is applied to the score, not to the hidden layer": lambda h, y, W, U, v: torch.tanh(
                (W @ h + y @ U.T) @ v
            ),
            "h does not count": lambda h, y, W, U, v: torch.tanh(y @ U.T) @ v,
            "the scores are softmaxed already: these are the weights": (
                lambda h, y, W, U, v: equations.additive(h, y, W, U, v).softmax(-1)
            ),
        },
    ),
    Exercise(
        equations.attention,
        r"\mathrm{Attention}(Q, K, V) = \mathrm{softmax}(Q K^T / \sqrt{d}) V",
        lambda g: (_normal(g, 4, 4), _normal(g, 4, 4), _normal(g, 4, 6)),
        {
            "the scores are not divided by √d": lambda Q, K, V: (Q @ K.T).softmax(-1) @ V,
            "the scores are divided by d, not by √d": lambda Q, K, V: (Q @ K.T / K.shape[1]).softmax(-1) @ V,
            "the softmax runs over the queries, not over the keys: the weights of a query do not sum to 1": (
                lambda Q, K, V: (Q @ K.T / K.shape[1] ** 0.5).softmax(0) @ V
            ),
            "queries and keys are exchanged": lambda Q, K, V: equations.attention(K, Q, V),
            "the softmax is missing": lambda Q, K, V: (Q @ K.T / K.shape[1] ** 0.5) @ V,
            "these are the weights: multiply them by the values": (
                lambda Q, K, V: (Q @ K.T / K.shape[1] ** 0.5).softmax(-1)
            ),
        },
    ),
    Exercise(
        equations.masked_weights,
        r"\alpha_{ts} = \frac{m_{ts} \exp e_{ts}}{\sum_j m_{tj} \exp e_{tj}}",
        _scores_and_mask,
        {
            "the mask is applied after the softmax, so that the other weights do not sum to 1": (
                lambda scores, m: scores.softmax(-1) * m
            ),
            "masked scores become 0, and exp(0) is 1: they still get weight": (
                lambda scores, m: (scores * m).softmax(-1)
            ),
            "a row that is masked everywhere is NaN: with all scores at −∞, the softmax is 0 / 0": (
                lambda scores, m: scores.masked_fill(~m, -torch.inf).softmax(-1)
            ),
            "the mask is inverted: it is True where a query may attend": (
                lambda scores, m: equations.masked_weights(scores, ~m)
            ),
            "a row that is masked everywhere has weights: multiply by the mask at the end": (
                lambda scores, m: scores.masked_fill(~m, torch.finfo(scores.dtype).min).softmax(-1)
            ),
        },
    ),
    Exercise(
        equations.positions,
        r"P_{p,2i} = \sin(p / 10000^{2i/D}), \quad P_{p,2i+1} = \cos(p / 10000^{2i/D})",
        lambda g: (5 + int(torch.randint(4, (), generator=g)), 8),
        {
            "all sines come first, then all cosines: they alternate": _halves,
            "the first position is 0, not 1": lambda length, D: equations.positions(length + 1, D)[1:],
            "sine and cosine are exchanged": lambda length, D: (
                equations.positions(length, D).unflatten(1, (-1, 2)).flip(-1).flatten(1)
            ),
        },
    ),
    Exercise(
        equations.multi_head,
        r"\mathrm{MultiHead} = [\mathrm{head}_1; \dots; \mathrm{head}_H] W^O, \quad "
        r"\mathrm{head}_i = \mathrm{Attention}(x W^Q_i, y W^K_i, y W^V_i)",
        lambda g: (_normal(g, 5, 6), _normal(g, 4, 6), *(_normal(g, 2, 6, 3) for _ in range(3)), _normal(g, 6, 6)),
        {
            "the heads are averaged, not concatenated": _mean_of_heads,
            "keys and values are computed from x: they come from y": (
                lambda x, y, *weights: equations.multi_head(x, x, *weights)
            ),
            "the queries are computed from y: they come from x": (
                lambda x, y, *weights: equations.multi_head(y, y, *weights)
            ),
            "W_O is missing": lambda x, y, W_Q, W_K, W_V, W_O: equations.multi_head(
                x, y, W_Q, W_K, W_V, torch.eye(len(W_O))
            ),
            "the heads are concatenated in another order": lambda x, y, W_Q, W_K, W_V, W_O: equations.multi_head(
                x, y, W_Q.flip(0), W_K.flip(0), W_V.flip(0), W_O
            ),
        },
    ),
    Exercise(
        equations.slopes,
        r"\frac{\partial \alpha_i}{\partial e_i} = \alpha_i (1 - \alpha_i), \quad \alpha = \mathrm{softmax}(K q / d^p)",
        lambda g: (_normal(g, 4), _normal(g, 5, 4), 0.5),
        {
            "these are the weights, not their slopes": lambda q, K, power: (K @ q / len(q) ** power).softmax(-1),
            "the scores are not divided by a power of d": lambda q, K, power: equations.slopes(q, K, 0),
            "the scores are multiplied by the power of d": lambda q, K, power: equations.slopes(q, K, -power),
            "the power is that of the number of keys, not of the width d": (
                lambda q, K, power: equations.slopes(q * (len(q) / len(K)) ** power, K, power)
            ),
        },
    ),
    Exercise(
        equations.beam_search,
        r"\hat y = \arg\max_y \mathrm{score}(\log p(y), |y|) \text{ among the prefixes that the beam keeps}",
        _search,
        {
            "this is greedy search: it keeps one prefix, not K": (
                lambda log_probs, end, K, longest, score: equations.beam_search(log_probs, end, 1, longest, score)
            ),
            "finished translations are compared by their log-probability, not by their score": (
                _beam_of_log_probabilities
            ),
            "the beam is one prefix too narrow": (
                lambda log_probs, end, K, longest, score: equations.beam_search(log_probs, end, K - 1, longest, score)
            ),
        },
    ),
    Exercise(
        equations.layer_prediction,
        r"p_l = \mathrm{softmax}(E \, N(h) + b)",
        lambda g: (
            _normal(g, 4),
            lambda h: torch.nn.functional.layer_norm(h, h.shape[-1:]),
            _normal(g, 6, 4),
            _normal(g, 6),
        ),
        {
            "the final norm is missing": lambda h, N, E, b: (E @ h + b).softmax(-1),
            "these are the logits: apply the softmax": lambda h, N, E, b: E @ N(h) + b,
            "the bias is missing": lambda h, N, E, b: (E @ N(h)).softmax(-1),
        },
    ),
    Exercise(
        equations.contributions,
        r"c_s = \frac{\max(0, \lVert y \rVert_1 - \lVert y - T(x_s) \rVert_1)}{\sum_j \max(0, \dots)}, \quad "
        r"y = \sum_s T(x_s)",
        lambda g: (_normal(g, 5, 4) + 0.5,),
        {
            "the norm is Euclidean: the sum of absolute values is meant": lambda terms: (lambda c: c / c.sum())(
                (terms.sum(0).norm() - (terms.sum(0) - terms).norm(dim=-1)).clamp(min=0)
            ),
            "these are the norms of the terms, not what they contribute to the sum": (
                lambda terms: terms.norm(p=1, dim=-1) / terms.norm(p=1, dim=-1).sum()
            ),
            "negative contributions are not set to 0": lambda terms: (lambda c: c / c.sum())(
                terms.sum(0).norm(p=1) - (terms.sum(0) - terms).norm(p=1, dim=-1)
            ),
            "the contributions do not sum to 1": lambda terms: (
                terms.sum(0).norm(p=1) - (terms.sum(0) - terms).norm(p=1, dim=-1)
            ).clamp(min=0),
        },
    ),
    Exercise(
        equations.multi_head_without,
        r"\sum_h g_h \, \mathrm{head}_h W^O_h, \quad g_h = 0 \text{ if head } h \text{ is off, else } 1",
        lambda g: ([_normal(g, 4, 3) for _ in range(3)], [_normal(g, 3, 5) for _ in range(3)], {1}),
        {
            "all heads are on": lambda heads, W_O, off: equations.multi_head_without(heads, W_O, set()),
            "the set names the heads that are off; here the others are off": (
                lambda heads, W_O, off: equations.multi_head_without(heads, W_O, set(range(len(heads))) - off)
            ),
            "the other heads are scaled up: a head that is off is replaced by nothing": (
                lambda heads, W_O, off: (
                    equations.multi_head_without(heads, W_O, off) * len(heads) / (len(heads) - len(off))
                )
            ),
        },
    ),
    Exercise(
        equations.patched,
        r"s'_i = \tilde s_i \text{ of CLEAN at the word, } s_i \text{ of OTHER elsewhere}",
        lambda g: (_normal(g, 4, 3), _normal(g, 4, 3), 2),
        {
            "the states of OTHER are changed in place: clone them first": _patched_in_place,
            "the roles are exchanged: the states are those of OTHER": (
                lambda states, clean_states, word: equations.patched(clean_states, states, word)
            ),
            "all states are replaced, not that of one word": lambda states, clean_states, word: clean_states.clone(),
        },
    ),
    Exercise(
        equations.with_context,
        r"[x_1; \langle sep \rangle; x]",
        lambda g: (torch.randint(9, (4,), generator=g).tolist(), 99, torch.randint(9, (5,), generator=g).tolist()),
        {
            "the separator is missing": lambda previous, separator, sentence: [*previous, *sentence],
            "the previous sentence comes first": lambda previous, separator, sentence: [
                *sentence,
                separator,
                *previous,
            ],
            "the separator ends the input, too": lambda previous, separator, sentence: [
                *previous,
                separator,
                *sentence,
                separator,
            ],
        },
    ),
    Exercise(
        equations.live_translation,
        r"\text{write } y_i \text{ if } \arg\max_s A_{i,s} < n - f \text{ of } n \text{ words heard, or all are heard}",
        _live,
        {
            "the lag is one word too short": (
                lambda continuation, source, f: equations.live_translation(continuation, source, f - 1)
            ),
            "the lag is one word too long": (
                lambda continuation, source, f: equations.live_translation(continuation, source, f + 1)
            ),
            "words still wait when the sentence has ended": _unfinished,
            "it does not wait: each word is written when it is proposed": (
                lambda continuation, source, f: equations.live_translation(continuation, source, 0)
            ),
        },
    ),
    Exercise(
        equations.transcoder,
        r"f = \mathrm{TopK}(\mathrm{relu}(W_e x + b_e)), \quad \hat y = f W_d + b_d",
        lambda g: (_normal(g, 4), _normal(g, 9, 4), _normal(g, 9), _normal(g, 9, 4), _normal(g, 4), 2),
        {
            "all positive features are kept, not the k largest": _all_features,
            "relu is missing: negative features count by their size": _signed_features,
            "the bias b_d is missing": lambda x, W_e, b_e, W_d, b_d, k: equations.transcoder(
                x, W_e, b_e, W_d, 0 * b_d, k
            ),
            "the bias b_e is missing": lambda x, W_e, b_e, W_d, b_d, k: equations.transcoder(
                x, W_e, 0 * b_e, W_d, b_d, k
            ),
        },
    ),
    Exercise(
        equations.direct_effects,
        r"\text{effect}_i = \frac{\partial \, \mathrm{logit}}{\partial w_i} \cdot w_i, \quad "
        r"\text{bias} = \mathrm{logit}(0)",
        lambda g: (_affine(g), _normal(g, 3, 4)),
        {
            "these are gradients: multiply each by what the node writes": lambda logit, w: (
                torch.autograd.functional.jacobian(logit, w).sum(-1),
                logit(0 * w),
            ),
            "the bias is the whole logit: it is the logit of zeros": lambda logit, w: (
                equations.direct_effects(logit, w)[0],
                logit(w),
            ),
            "the effects have the sign of a removal: they are what the node adds": lambda logit, w: (
                -equations.direct_effects(logit, w)[0],
                logit(0 * w),
            ),
        },
    ),
]
"""The exercises, in the order of the lessons."""
