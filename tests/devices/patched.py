"""What PyTorch is made to say and do while a device is emulated; see `emulated.py`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import Mock

import torch
from torch import Tensor, nn

from tests.devices import emulated


def _pinned(tensor: Tensor) -> Tensor:
    copy = tensor.clone()
    copy.pinned_here = True  # type: ignore[attr-defined]
    return copy


def refuse_as_cudnn(args: Any) -> None:
    """Refuse a recurrent layer in evaluation mode whose gradients are wanted, as the backward pass of cuDNN does.

    `args`: those of `torch.lstm` or `torch.gru`, of a padded batch or, with its sizes behind it, of a packed one.
    """
    packed = isinstance(args[1], Tensor) and args[1].dtype == torch.int64
    weights, training = (args[3], args[-2]) if packed else (args[2], args[-3])
    if torch.is_grad_enabled() and not training and any(weight.requires_grad for weight in weights):
        raise RuntimeError("cudnn RNN backward can only be called in training mode")


def pack(x: emulated.DeviceTensor, lengths: Tensor, batch_first: bool) -> tuple[Tensor, Tensor]:
    """What cuDNN is given: the steps of all sentences in a row. The lengths have to be on the CPU."""
    if isinstance(lengths, emulated.DeviceTensor):
        raise emulated.MixedDevicesError("lengths of packed sequences are wanted on the CPU")
    steps, rows, sizes = _cells([sum(n > t for n in lengths.tolist()) for t in range(max(lengths.tolist()))])
    return (x[rows, steps] if batch_first else x[steps, rows]), sizes


def pad(
    data: emulated.DeviceTensor, sizes: Tensor, batch_first: bool, fill: float, total: int
) -> tuple[Tensor, Tensor]:
    steps, rows, sizes = _cells(sizes.tolist())
    shape = (int(sizes[0]), max(total, len(sizes)), *data.shape[1:])
    padded = data.new_full(shape, fill).index_put((rows, steps), data)
    return (padded if batch_first else padded.transpose(0, 1)), (sizes[:, None] > torch.arange(shape[0])).sum(0)


def _cells(sizes: list[int]) -> tuple[emulated.DeviceTensor, emulated.DeviceTensor, Tensor]:
    """The steps and rows of packed cells, and how many rows each step has."""
    steps = [step for step, size in enumerate(sizes) for _ in range(size)]
    rows = [row for size in sizes for row in range(size)]
    return emulated.DeviceTensor(torch.tensor(steps)), emulated.DeviceTensor(torch.tensor(rows)), torch.tensor(sizes)


def _moved_module(emulation: emulated.Emulation, move: Callable[..., Any]) -> Callable[..., nn.Module]:
    """`nn.Module.to` that gives a module new parameters on the device; shared ones stay shared."""

    def to(module: nn.Module, *args: Any, **kwargs: Any) -> nn.Module:
        device = kwargs.get("device", args[0] if args else None)
        if not isinstance(device, (str, torch.device)) or not emulation._is_ours(device):
            return move(module, *args, **kwargs)
        moved: dict[int, nn.Parameter] = {}
        for part in module.modules():
            for name, parameter in part._parameters.items():
                if parameter is not None and not isinstance(parameter, emulated.DeviceTensor):
                    new = nn.Parameter(emulated.DeviceTensor(parameter.detach().clone()), parameter.requires_grad)
                    part._parameters[name] = moved.setdefault(id(parameter), new)
            for name, buffer in part._buffers.items():
                if buffer is not None and not isinstance(buffer, emulated.DeviceTensor):
                    part._buffers[name] = emulated.DeviceTensor(buffer.detach().clone())
            if isinstance(part, nn.RNNBase):
                part._flat_weights = [getattr(part, name) for name in part._flat_weights_names]
        return module

    return to


def patches(emulation: emulated.Emulation) -> Iterator[tuple[Any, str, Any]]:
    """What PyTorch says of its devices."""
    here = emulation.kind == "cuda"
    autocast = torch.autocast
    group = nn.utils.clip_grad._group_tensors_by_device_and_dtype

    def grouped(lists: list[list[Tensor]], *args: Any) -> dict[tuple[torch.device, torch.dtype | None], Any]:
        on_device = isinstance(lists[0][0], emulated.DeviceTensor)
        groups = group(lists, *args)
        return {(emulation.device if on_device else key[0], key[1]): tensors for key, tensors in groups.items()}

    yield nn.utils.clip_grad, "_group_tensors_by_device_and_dtype", grouped
    yield Tensor, "pin_memory", _pinned
    yield Tensor, "is_pinned", lambda tensor: getattr(tensor, "pinned_here", False)
    yield nn.Module, "to", _moved_module(emulation, nn.Module.to)
    # Tensors of a subclass can't be inference tensors.
    yield torch._C, "_InferenceMode", lambda mode: torch.set_grad_enabled(not mode)
    yield torch, "autocast", lambda kind, *args, **kwargs: autocast("cpu", *args, **kwargs)
    yield torch.backends.mps, "is_available", lambda: not here
    yield torch.mps, "get_rng_state", lambda: torch.zeros(16, dtype=torch.uint8)
    yield torch.mps, "set_rng_state", lambda state: None
    answers = {
        "is_available": here,
        "is_initialized": here,
        "Event": Mock(),
        "device_count": int(here),
        "is_bf16_supported": here,
        "get_device_name": "Emulated",
        "get_rng_state": torch.zeros(16, dtype=torch.uint8),
        "set_rng_state": None,
        "set_device": None,
        "mem_get_info": (70 << 30, 80 << 30),
    }
    for name, answer in answers.items():
        yield torch.cuda, name, lambda *args, answer=answer, **kwargs: answer
