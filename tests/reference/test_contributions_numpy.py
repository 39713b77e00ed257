"""Norm-based attention, ALTI and ALTI+ in float64 NumPy, term by term from the papers."""

import numpy as np
import pytest
import torch

from tests.reference.test_recurrent_numpy import softmax, weights_of
from translucid.inspection.contributions import forced_contributions
from translucid.models.model_options import TransformerOptions
from translucid.models.transformer import Transformer

D, H, V = 8, 2, 12
EPSILON = 1e-5
SOURCE, TARGET = [5, 6, 7, 3], [8, 9, 10, 11, 3]


def model_of(norm):
    torch.manual_seed(1)
    options = TransformerOptions(width=D, heads=H, feed_forward=10, encoder_layers=2, decoder_layers=2, norm=norm)
    model = Transformer(V, V, options).double().eval()
    for name, parameter in model.named_parameters():
        # With larger biases, some rows would have no positive term.
        parameter.data.normal_(float(name.endswith("norm.weight")), std=0.4 if parameter.dim() > 1 else 0.1)
    return model


class Reference:
    """A forward pass, which keeps the terms of every attention sublayer on its way."""

    def __init__(self, model, norm):
        self.w, self.pre = weights_of(model), norm == "pre"
        self.embed = {
            "encoder": lambda ids: model.source_embedding(torch.tensor([ids]))[0].detach().numpy(),
            "decoder": lambda ids: model.target_embedding(torch.tensor([ids]))[0].detach().numpy(),
        }
        self.norms, self.head_norms, self.residual_norms, self.alti = {}, {}, {}, {}

    def layer_norm(self, name, z):
        deviation = np.sqrt(z.var() + EPSILON)
        return (z - z.mean()) / deviation * self.w[f"{name}.weight"] + self.w[f"{name}.bias"]

    def each(self, name, x):
        return np.stack([self.layer_norm(name, z) for z in x])

    def linear(self, name, x):
        return x @ self.w[f"{name}.weight"].T + self.w[f"{name}.bias"]

    def attention_sublayer(self, attention, norm, point, x, memory, causal=False):
        """Return y; `memory` is None for self-attention."""
        read = self.each(norm, x) if self.pre else x
        inputs = read if memory is None else memory
        d = D // H
        query = self.linear(f"{attention}.query", read)
        key, value = np.split(self.linear(f"{attention}.key_value", inputs), 2, axis=1)
        matrix, bias = self.w[f"{attention}.output.weight"], self.w[f"{attention}.output.bias"]
        T, S = len(x), len(inputs)
        by_head = np.zeros((H, T, S, D))
        for h in range(H):
            part = slice(h * d, (h + 1) * d)
            for t in range(T):
                visible = t + 1 if causal else S
                alpha = softmax(key[:visible, part] @ query[t, part] / np.sqrt(d))
                for s in range(visible):
                    by_head[h, t, s] = alpha[s] * (matrix[:, part] @ value[s, part])
        terms = by_head.sum(0)
        self.head_norms[point], self.norms[point] = (np.linalg.norm(z, axis=-1) for z in (by_head, terms))
        total = x + terms.sum(1) + bias
        if memory is None:
            for t in range(T):
                terms[t, t] += x[t]
        else:
            terms = np.concatenate([terms, x[:, None]], 1)
        y = total if self.pre else self.each(norm, total)
        shares = np.zeros(terms.shape[:2])
        for t in range(T):
            if not self.pre:
                deviation = np.sqrt(total[t].var() + EPSILON)
                for s in range(terms.shape[1]):
                    terms[t, s] = (terms[t, s] - terms[t, s].mean()) / deviation * self.w[f"{norm}.weight"]
            for s in range(terms.shape[1]):
                shares[t, s] = max(0, np.abs(y[t]).sum() - np.abs(y[t] - terms[t, s]).sum())
        self.residual_norms[point] = np.linalg.norm(terms, axis=-1)
        self.alti[point] = shares / shares.sum(1, keepdims=True)
        return y

    def feed_forward(self, name, norm, x):
        def inner(z):
            return self.linear(f"{name}.outer", np.maximum(0, self.linear(f"{name}.inner", z)))

        return x + inner(self.each(norm, x)) if self.pre else self.each(norm, x + inner(x))

    def run(self):
        x = self.embed["encoder"](SOURCE)
        encoder = np.eye(len(SOURCE))
        for i in range(2):
            name = f"encoder.{i}"
            x = self.attention_sublayer(f"{name}.self_attention", f"{name}.residuals.0.norm", f"{name}.self", x, None)
            encoder = self.alti[f"{name}.self"] @ encoder
            x = self.feed_forward(f"{name}.feed_forward", f"{name}.residuals.1.norm", x)
        memory = self.each("encoder_norm", x) if self.pre else x
        x = self.embed["decoder"]([2, *TARGET[:-1]])
        rows = np.concatenate([np.zeros((len(TARGET), len(SOURCE))), np.eye(len(TARGET))], 1)
        for i in range(2):
            name = f"decoder.{i}"
            norms = [f"{name}.residuals.{j}.norm" for j in range(3)]
            x = self.attention_sublayer(f"{name}.self_attention", norms[0], f"{name}.self", x, None, causal=True)
            x = self.attention_sublayer(f"{name}.cross_attention", norms[1], f"{name}.cross", x, memory)
            x = self.feed_forward(f"{name}.feed_forward", norms[2], x)
            cross, residual = self.alti[f"{name}.cross"][:, :-1], self.alti[f"{name}.cross"][:, -1:]
            rows = residual * (self.alti[f"{name}.self"] @ rows)
            rows[:, : len(SOURCE)] += cross @ encoder
        features = self.each("decoder_norm", x) if self.pre else x
        return features, rows


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_every_contribution_is_that_of_the_papers(norm):
    model = model_of(norm)
    reference = Reference(model, norm)
    features, rows = reference.run()
    # The sentence has padding and a longer one beside it.
    source = torch.tensor([[*SOURCE, 0, 0], [7, 8, 9, 10, 11, 3]])
    target = torch.tensor([[*TARGET, 0], [5, 6, 7, 8, 9, 3]])
    batch = forced_contributions(model, source, target)
    sentence = batch.of_sentence(0, slice(len(SOURCE)), len(TARGET))
    fed = torch.tensor([[2, *TARGET[:-1]]])
    model_features = model.features(model.encode(torch.tensor([SOURCE])), fed)[0].detach().numpy()
    np.testing.assert_allclose(model_features, features, atol=1e-10)  # the reference computes the same model
    assert list(sentence.norms) == list(reference.norms)
    for name in reference.norms:
        for kind in ("head_norms", "norms", "residual_norms"):
            values = getattr(sentence, kind)[name]
            np.testing.assert_allclose(values, getattr(reference, kind)[name], atol=1e-6, err_msg=f"{kind} {name}")
        np.testing.assert_allclose(sentence.sublayers[name], reference.alti[name], atol=1e-6, err_msg=name)
    np.testing.assert_allclose(torch.cat([sentence.source, sentence.prefix], 1), rows, atol=1e-6)
    np.testing.assert_allclose(sentence.source_contribution, rows[:, : len(SOURCE)].sum(1), atol=1e-6)
    np.testing.assert_allclose(rows.sum(1), 1)
