"""The optimizers: Adam, NAdam, or Muon for the matrices within the layers and Adam for all other weights.

Muon (Jordan et al. 2024) is momentum whose directions are made orthogonal. NAdam (Dozat 2016) and Muon can skip an
update without a decision on the host, as PyTorch lets Adam.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.adam import adam

from translucid.ground.errors import UserError
from translucid.models.protocol import Model
from translucid.runs.training_options import TrainingOptions
from translucid.training.weights import trainable

ADAM: dict[str, Any] = {"betas": (0.9, 0.98), "eps": 1e-9}
"""As in arXiv 1706.03762, section 5.3."""


class Optimizer:
    """One optimizer or two, each for some parameters of a model."""

    def __init__(
        self, options: TrainingOptions, model: Model, parameters: Sequence[nn.Parameter], *, bfloat16: bool
    ) -> None:
        """Create the optimizers.

        Args:
            options: the choice of optimizers, and their settings.
            model: the model.
            parameters: the trainable weights of the model; checkpoints name moments by the index in this list.
            bfloat16: whether Muon may compute its products in bfloat16.

        Raises:
            UserError: the options treat layers differently, and the model does not define an order of its layers.
        """
        self.parameters = parameters
        rate = options.learning_rate
        muon_ids = set(map(id, inner_matrices(model))) if options.optimizer == "muon" else set()
        groups: list[dict[str, Any]] = []
        matrices: list[dict[str, Any]] = []
        for share, layer in _rate_shares(model, options.layer_decay, parameters):
            muon_weights = [parameter for parameter in layer if id(parameter) in muon_ids]
            other_weights = [parameter for parameter in layer if id(parameter) not in muon_ids]
            # PyTorch rejects optimizers without parameters, so leave out empty groups.
            if muon_weights:
                matrices.append({"params": muon_weights, "share": share})
            if other_weights:
                groups.append({"params": other_weights, "share": share})
        self.skips_on_device = all(parameter.device.type == "cuda" for parameter in parameters)
        """Whether `step` can skip an update by itself, so that the host need not wait for the loss."""
        self.optimizers: list[Adam | NAdam | Muon] = []
        if matrices:
            self.optimizers.append(Muon(matrices, lr=rate, bfloat16=bfloat16))
        if options.optimizer == "nadam":
            self.optimizers.append(NAdam(groups, lr=rate, capturable=self.skips_on_device, **ADAM))
        elif groups:
            self.optimizers.append(Adam(groups, lr=rate))

    def step(self, rate: float | Tensor, finite: Tensor | None = None) -> None:
        """Update the weights with this learning rate, and clear the gradients.

        Args:
            rate: the learning rate; a tensor [] on the device if the update is captured.
            finite: boolean [] on the device; if it is False, weights and moments stay unchanged.
        """
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate * group["share"]
            optimizer.step(finite)
        self.zero_grad()

    def zero_grad(self) -> None:
        """Clear the gradients."""
        for optimizer in self.optimizers:
            optimizer.zero_grad(set_to_none=True)

    def moments(self) -> dict[int, dict[str, Tensor]]:
        """Return the state of each parameter that has one, such as its moments, by the parameter's index."""
        states = {}
        for index, parameter in enumerate(self.parameters):
            for optimizer in self.optimizers:
                state = optimizer.state.get(parameter)
                if state:
                    states[index] = state
        return states

    def restore(self, moments: dict[int, dict[str, Tensor]]) -> None:
        """Restore the states that `moments` returned."""
        indices = {id(parameter): index for index, parameter in enumerate(self.parameters)}
        for optimizer in self.optimizers:
            # `NAdam` reads the scalars of each weight on the host unless it is capturable.
            on_host = isinstance(optimizer, NAdam) and not optimizer.defaults["capturable"]
            for parameter in chain.from_iterable(group["params"] for group in optimizer.param_groups):
                state = moments.get(indices[id(parameter)], {})
                for name, tensor in state.items():
                    stays = on_host and not tensor.dim()
                    optimizer.state[parameter][name] = tensor if stays else tensor.to(parameter.device)


def layer_groups(model: Model, parameters: Sequence[nn.Parameter]) -> list[list[nn.Parameter]]:
    """Return the `parameters` that training updates by layer, from the bottom up.

    Raises:
        UserError: the model does not define an order of its layers.
    """
    try:
        groups = model.layer_groups()
    except NotImplementedError as error:
        what = "training.layer_decay and training.unfreeze are for language models and classifiers"
        raise UserError(what, fix="Leave them out.") from error
    trained = set(map(id, parameters))
    trained_groups = []
    for group in groups:
        trained_groups.append([parameter for parameter in group if id(parameter) in trained])
    return trained_groups


def _rate_shares(
    model: Model, decay: float, parameters: Sequence[nn.Parameter]
) -> Iterator[tuple[float, Sequence[nn.Parameter]]]:
    """Yield the factor of each layer's learning rate, decay^-(layers above it), and the weights of the layer.

    These are the discriminative learning rates of Howard and Ruder 2018 (arXiv 1801.06146).
    """
    if decay == 1:
        yield 1.0, parameters
        return
    groups = layer_groups(model, parameters)
    for layers_above, group in zip(reversed(range(len(groups))), groups, strict=True):
        yield decay**-layers_above, group


def inner_matrices(model: Model) -> list[nn.Parameter]:
    """Return the matrices between two states of a model: all except embeddings and the output projection.

    They include the kernels of convolutions, except those that read pixels.
    """
    output = getattr(model, "output", None)
    outer_ids = {id(module.weight) for module in model.modules() if isinstance(module, nn.Embedding)}
    if output is not None:
        outer_ids.add(id(output.weight))
    convolutions = [module.weight for module in model.modules() if isinstance(module, nn.Conv2d)]
    # Kernels with 3 input channels, the colors, read pixels.
    kernel_ids = {id(kernel) for kernel in convolutions if kernel.size(1) > 3}
    matrices = [weight for weight in trainable(model) if weight.ndim == 2 or id(weight) in kernel_ids]
    return [matrix for matrix in matrices if id(matrix) not in outer_ids]


MOMENTUM = 0.95
COEFFICIENTS = 3.4445, -4.775, 2.0315
"""The coefficients of x, x^3 and x^5: five rounds map every singular value in 0.002 .. 1 to 0.68 .. 1.21."""
ROUNDS = 5


class _EagerOptimizer(torch.optim.Optimizer):
    """PyTorch's base class without the decorators of two methods.

    They exclude a method from `torch.compile`, and for this import the compiler, which takes longer than reading
    100,000 pairs.
    """

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of weights; options that it does not have are the defaults."""
        self.param_groups.append({**self.defaults, **param_group})

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients."""
        for group in self.param_groups:
            for weight in group["params"]:
                weight.grad = None


class Adam(_EagerOptimizer):
    """The fused kernel of `torch.optim.Adam` (Kingma and Ba 2015, arXiv 1412.6980, algorithm 1)."""

    def __init__(self, groups: Iterable[dict[str, Any]], lr: float) -> None:
        """Optimize groups of weights with the learning rate `lr`."""
        super().__init__(groups, {"lr": lr, **ADAM})

    @torch.no_grad()
    def step(self, finite: Tensor | None = None) -> None:  # type: ignore[override]
        """Update the weights; if `finite` [] is given and False, weights and moments stay unchanged."""
        found_inf = None if finite is None else (~finite).float()
        for group in self.param_groups:
            weights = [weight for weight in group["params"] if weight.grad is not None]
            states = list(map(self._moments, weights))
            adam(
                weights,
                [weight.grad for weight in weights],
                [state["exp_avg"] for state in states],
                [state["exp_avg_sq"] for state in states],
                [],
                [state["step"] for state in states],
                fused=True,
                found_inf=found_inf,
                amsgrad=False,
                beta1=group["betas"][0],
                beta2=group["betas"][1],
                lr=group["lr"],
                weight_decay=0.0,
                eps=group["eps"],
                maximize=False,
            )

    def _moments(self, weight: Tensor) -> dict[str, Tensor]:
        state: dict[str, Tensor] = self.state[weight]
        if not state:
            state["step"] = torch.zeros((), dtype=torch.float32, device=weight.device)
            state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(weight), torch.zeros_like(weight)
        return state


class Muon(_EagerOptimizer):
    """W -= rate * 0.2 sqrt(max(rows, columns)) * orthogonal(G + momentum), with Nesterov's momentum.

    The factor gives the updates the length of Adam's (Liu et al. 2025, arXiv 2502.16982, section 2.2), so that one
    learning rate suits both. `torch.optim.Muon` computes the same, but always in bfloat16 and one matrix at a time. On
    a CPU without instructions for bfloat16, a step of the preset `tiny` takes one second with it, and 0.05 s here in
    float32; on a CPU with them, 0.057 s and 0.025 s, because matrices of the same shape are batched
    (docs/benchmarks.md).
    """

    def __init__(self, matrices: Iterable[Tensor] | Iterable[dict[str, Any]], lr: float, *, bfloat16: bool) -> None:
        """Optimize matrices, or groups of them, with the learning rate `lr`.

        `bfloat16`: whether to orthogonalize in bfloat16 instead of float32.
        """
        super().__init__(matrices, {"lr": lr})
        self.dtype = torch.bfloat16 if bfloat16 else torch.float32

    @torch.no_grad()
    def step(self, finite: Tensor | None = None) -> None:  # type: ignore[override]
        """Update the weights; if `finite` [] is given and False, weights and momenta stay unchanged."""
        for group in self.param_groups:
            matrices = [matrix for matrix in group["params"] if matrix.grad is not None]
            if not matrices:
                continue
            gradients = [matrix.grad for matrix in matrices]
            momenta = list(map(self._momentum, matrices))
            if finite is not None:
                # Interpolating a momentum with itself leaves it unchanged, without a decision on the host.
                pairs = zip(gradients, momenta, strict=True)
                gradients = [torch.where(finite, gradient, momentum) for gradient, momentum in pairs]
            torch._foreach_lerp_(momenta, gradients, 1 - MOMENTUM)
            by_shape = defaultdict(list)
            for matrix, direction in zip(matrices, torch._foreach_lerp(gradients, momenta, MOMENTUM), strict=True):
                # A convolution's kernel [out, in, height, width] becomes a matrix [out, in * height * width].
                weight, direction = matrix.flatten(1), direction.flatten(1)
                if weight.size(0) > weight.size(1):  # `orthogonal` needs at least as many columns as rows
                    weight, direction = weight.mT, direction.mT
                by_shape[weight.shape].append((weight, direction))
            for (_, columns), same_shape in by_shape.items():
                weights, directions = zip(*same_shape, strict=True)
                updates = orthogonal(torch.stack(directions).to(self.dtype)).to(weights[0].dtype)
                if finite is not None:
                    updates *= finite
                rate = group["lr"]
                if isinstance(rate, Tensor):
                    updates, rate = updates * rate, 1.0
                torch._foreach_add_(weights, updates.unbind(), alpha=-0.2 * math.sqrt(columns) * rate)

    def _momentum(self, matrix: Tensor) -> Tensor:
        state = self.state[matrix]
        if not state:
            state["momentum_buffer"] = torch.zeros_like(matrix)
        return state["momentum_buffer"]


def orthogonal(x: Tensor) -> Tensor:
    """Return matrices [N, m, n], m <= n, with the singular vectors of x and singular values near 1.

    This is the Newton-Schulz iteration x <- a x + b (x x^T) x + c (x x^T)^2 x.
    """
    a, b, c = COEFFICIENTS
    # The Frobenius norm is an upper bound of the largest singular value, which must be 1 at most.
    x = x / torch.linalg.matrix_norm(x, keepdim=True).clamp(min=1e-7)
    for _ in range(ROUNDS):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x


class NAdam(torch.optim.NAdam):
    """`torch.optim.NAdam`, which has no counterpart to the `found_inf` of Adam."""

    @torch.no_grad()
    def step(self, finite: Tensor | None = None) -> None:  # type: ignore[override]
        """Update the weights; if `finite` [] is given and False, weights and moments stay unchanged."""
        if finite is None:
            super().step()
            return
        weights = [weight for group in self.param_groups for weight in group["params"] if weight.grad is not None]
        tensors: list[Tensor] = list(weights)
        for weight in weights:
            if not self.state.get(weight):
                # Weights without moments have nothing to return to, so their first update is decided on the host.
                if finite:
                    super().step()
                return
            tensors += self.state[weight].values()
        copies = [tensor.clone() for tensor in tensors]
        super().step()
        for tensor, unchanged in zip(tensors, copies, strict=True):
            tensor.copy_(torch.where(finite, tensor, unchanged))
