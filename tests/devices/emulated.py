"""An emulated accelerator: real CPU tensors that claim to be on `cuda:0` or `mps:0`.

Within `Emulation("cuda")` every tensor made on, or moved to, that device is a `DeviceTensor`. Values are real, so
losses and translations can be compared with those of the CPU. Three things behave as on a GPU:

- An operation on tensors of both devices raises `MixedDevicesError`, except copies, indices and CPU scalars (`[]`).
- What makes the host wait for the device is counted in `synchronisations`, by operation and source line: reading
  values, shapes that depend on values, and copies that are not `non_blocking` from pinned memory.
- Operations that would start a kernel are counted in `kernels`.

Recurrent layers have the rules of cuDNN, and MPS has no float64. There is no NCCL, no GPU memory and no asynchrony.
"""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import ExitStack
from functools import cache
from unittest.mock import patch

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._mode_utils import no_dispatch

from translucid.kernels import devices

VIEWS = """
view _unsafe_view t transpose expand slice select unsqueeze squeeze permute detach as_strided split unbind alias
_reshape_alias split_with_sizes unfold view_as lift_fresh chunk diagonal
"""
"""Operations that start no kernel."""
READS = "_local_scalar_dense nonzero equal masked_select _unique2 unique_dim bincount repeat_interleave"
"""Operations whose result, or its shape, the host has to wait for."""
INDEXING = "index", "index_put", "index_put_", "_unsafe_index", "_index_put_impl_"
"""Operations that copy indices from the CPU, and so wait, as they do if an index is boolean."""
ON_HOST = "one_hot", "_pack_padded_sequence", "_pad_packed_sequence"
"""Functions made of operations that take the device from a tensor without asking the tensor."""


class MixedDevicesError(RuntimeError):
    """An operation was given tensors of two devices."""


class DeviceTensor(torch.Tensor):
    """A tensor that claims to be on the emulated device; its values are in `host`."""

    host: Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, host):
        if Emulation.current.kind == "mps" and host.dtype == torch.float64:
            raise TypeError("MPS has no float64")
        layout = {"dtype": host.dtype, "layout": host.layout, "storage_offset": host.storage_offset()}
        made = torch.Tensor._make_wrapper_subclass(cls, host.size(), strides=host.stride(), device="cpu", **layout)
        made.__dict__["host"] = host.detach()
        return made

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        return Emulation.current.run(function, args, kwargs or {})


class Event:
    """A place in the queue of the GPU. The host waits for the GPU at the last one: nothing is known to be behind it."""

    def record(self):
        Emulation.current.last_event = self

    def synchronize(self):
        if Emulation.current.last_event is self:
            Emulation.current._wait("Event.synchronize")


class _Move(torch.autograd.Function):
    """A copy on the other device, differentiable."""

    @staticmethod
    def forward(ctx, x):
        return x.host.clone() if isinstance(x, DeviceTensor) else DeviceTensor(x.detach().clone())

    @staticmethod
    def backward(ctx, gradient):
        return _Move.forward(ctx, gradient)


class Emulation(TorchFunctionMode):
    """Within it there is one device of this kind, `cuda` or `mps`."""

    current: Emulation

    def __init__(self, kind):
        super().__init__()
        self.kind, self.device = kind, torch.device(kind, 0)
        self.synchronisations, self.kernels = Counter(), Counter()
        self.views, self.reads, self.stack = set(VIEWS.split()), set(READS.split()), ExitStack()

    def __enter__(self):
        Emulation.current = self
        for target, name, value in _patches(self):
            self.stack.enter_context(patch.object(target, name, value))
        super().__enter__()
        return self

    def __exit__(self, *error):
        super().__exit__(*error)
        self.stack.close()

    def forget(self):
        """Begin counting anew."""
        self.synchronisations.clear()
        self.kernels.clear()

    def __torch_function__(self, function, types, args=(), kwargs=None):
        """What is asked of tensors and of PyTorch, before autograd."""
        kwargs = dict(kwargs or {})
        name = getattr(function, "__name__", "")
        first = args[0] if args else None
        if name in ("to", "cpu", "cuda", "mps") and isinstance(first, Tensor):
            return self._move(name, first, list(args[1:]), kwargs)
        if kwargs.get("device") is not None and self._is_ours(kwargs["device"]):
            return self._make(function, name, args, kwargs | {"device": "cpu"})
        if not isinstance(first, DeviceTensor):
            return function(*args, **kwargs)
        if name == "__get__":
            return self._attribute(function, first)
        if name in ("numpy", "__array__"):
            raise TypeError(f"a tensor on {self.kind} has no NumPy array; move it to the CPU first")
        if name == "tolist":
            self._wait("tolist")
            return first.host.tolist()
        if name in ON_HOST:
            return self._run_on_host(function, name, args)
        if name in ("lstm", "gru") and self.kind == "cuda":
            _refuse_as_cudnn(args)
        return function(*args, **kwargs)

    def _attribute(self, function, tensor):
        answers = {"device": self.device, "is_cuda": self.kind == "cuda", "is_mps": self.kind == "mps", "is_cpu": False}
        name = function.__self__.__name__
        if name == "data":
            return tensor.detach()
        return answers[name] if name in answers else function(tensor)

    def _move(self, name, tensor, args, kwargs):
        """Make the move ourselves, and leave what remains (a dtype) to PyTorch."""
        if name != "to":
            args = [name]
        elif args and isinstance(args[0], Tensor):
            args = [self.device if isinstance(args[0], DeviceTensor) else "cpu", args[0].dtype]
        kwargs.pop("copy", None)
        device, dtype, non_blocking, _ = torch._C._nn._parse_to(*args, **kwargs)
        on_device = isinstance(tensor, DeviceTensor)
        if device is not None and self._is_ours(device) is not on_device:
            if not (non_blocking and (on_device or tensor.is_pinned())):
                self._wait("to(cpu)" if on_device else "to(device) of memory that is not pinned")
            tensor = _Move.apply(tensor)
        return tensor if dtype is None else tensor.to(dtype)

    def _make(self, function, name, args, kwargs):
        """Call a factory whose tensor is to be on the device."""
        made = function(*[_host(arg, [], []) for arg in args], **kwargs)
        self.kernels[name] += 1
        if name in ("tensor", "as_tensor", "asarray"):  # which copy data of the host
            self._wait(f"{name} of memory that is not pinned")
        return DeviceTensor(made).requires_grad_(made.requires_grad)

    def _run_on_host(self, function, name, args):
        if name == "_pack_padded_sequence" and isinstance(args[1], DeviceTensor):
            raise MixedDevicesError("lengths of packed sequences are wanted on the CPU")
        if name == "one_hot" and args[1:] in ((), (-1,)):  # the number of classes has to be read
            self._wait("one_hot")
        self.kernels[name] += 1
        made = function(_Move.apply(args[0]), *args[1:])
        return (_Move.apply(made[0]), *made[1:]) if isinstance(made, tuple) else _Move.apply(made)

    def _is_ours(self, device):
        return isinstance(device, int) or torch.device(device).type == self.kind

    def run(self, function, args, kwargs):
        """Run an operation, after autograd, on the hosts of its tensors, by the rules of the device."""
        name, in_place, returns = _facts(function)
        ours: list[DeviceTensor] = []
        others: list[Tensor] = []
        hosts = [_host(arg, ours, others) for arg in args]
        named = {key: _host(arg, ours, others) for key, arg in kwargs.items()}
        self._refuse_mixed(name, args, ours, others)
        self._count(name, args, others)
        result = function(*hosts, **named)
        if torch.Tag.inplace_view in function.tags:  # it gives the tensor another shape
            with no_dispatch():
                function(*args, **kwargs)
        if in_place:  # what came is given back
            return args[0] if returns else None
        return kwargs["out"] if "out" in kwargs else _on_device(result)

    def _refuse_mixed(self, name, args, ours, others):
        allowed = name in ("copy_", "_to_copy") or (name in INDEXING and isinstance(args[0], DeviceTensor))
        if name in INDEXING and len(args) > 2 and args[2].dim() > 0:
            allowed = allowed and isinstance(args[2], DeviceTensor)
        arrays = [tuple(tensor.shape) for tensor in others if tensor.dim() > 0]
        if ours and arrays and not allowed:
            raise MixedDevicesError(f"{name} of tensors on {self.kind} and of {arrays} on the CPU at {_place()}")

    def _count(self, name, args, others):
        indices = [i for i in args[1] if i is not None] if name in INDEXING else []
        if name in self.reads or any(i.dtype == torch.bool or not isinstance(i, DeviceTensor) for i in indices):
            self._wait(name)
        if name == "copy_" and others:
            self._wait("copy_ between the devices")
        if name not in self.views:
            self.kernels[name] += 1

    def _wait(self, name):
        self.synchronisations[f"{name} at {_place()}"] += 1


def _refuse_as_cudnn(args):
    """Refuse, for a recurrent layer, autocast and gradients in evaluation mode, as cuDNN does."""
    packed = isinstance(args[1], Tensor) and args[1].dtype == torch.int64
    weights, training = (args[3], args[-2]) if packed else (args[2], args[-3])
    if torch.is_grad_enabled() and not training and any(weight.requires_grad for weight in weights):
        raise RuntimeError("cudnn RNN backward can only be called in training mode")
    if torch.is_autocast_enabled("cpu"):
        raise RuntimeError("autocast would let a recurrent layer compute in float16")


@cache
def _facts(function):
    """The name of an operation, whether it changes its first argument, and whether it returns anything."""
    schema = function._schema
    alias = schema.arguments[0].alias_info if schema.arguments else None
    in_place = alias is not None and alias.is_write
    return schema.name.split("::")[1], in_place, bool(schema.returns)


def _host(x, ours, others):
    """The values of an argument on the CPU; its tensors are noted by where they claim to be."""
    if isinstance(x, Tensor):
        on_device = isinstance(x, DeviceTensor)
        (ours if on_device else others).append(x)
        return x.host if on_device else x
    return [_host(part, ours, others) for part in x] if type(x) in (list, tuple) else x


def _on_device(x):
    """A result as tensors of the device."""
    if isinstance(x, Tensor):
        return DeviceTensor(x)
    return type(x)(map(_on_device, x)) if type(x) in (list, tuple) else x


def _place():
    """The line of the package that asked, as `training/trainer.py:195`."""
    frame = sys._getframe(1)
    while frame:
        _, inside, name = frame.f_code.co_filename.replace("\\", "/").partition("/src/translucid/")
        if inside:
            return f"{name}:{frame.f_lineno}"
        frame = frame.f_back
    return "PyTorch"


def _patches(emulation):
    """What PyTorch says of its devices: (module or class, name, value)."""
    here = emulation.kind == "cuda"
    group = nn.utils.clip_grad._group_tensors_by_device_and_dtype

    def grouped(lists, *args):
        return {(lists[0][0].device, dtype): tensors for (_, dtype), tensors in group(lists, *args).items()}

    def on_cpu(function):
        return lambda kind="cpu", *args, **kwargs: function("cpu", *args, **kwargs)

    def pinned(tensor):
        copy = tensor.clone()
        copy.pinned_here = True
        return copy

    yield nn.utils.clip_grad, "_group_tensors_by_device_and_dtype", grouped
    yield Tensor, "pin_memory", pinned
    yield Tensor, "is_pinned", lambda tensor: getattr(tensor, "pinned_here", False)
    yield torch.__future__, "get_swap_module_params_on_conversion", lambda: True  # a moved module keeps its parameters
    yield torch._C, "_InferenceMode", lambda mode: torch.set_grad_enabled(not mode)  # not for tensors of a subclass
    for name in ("autocast", "is_autocast_enabled", "get_autocast_dtype"):
        yield torch, name, on_cpu(getattr(torch, name))
    yield torch.cuda, "Event", Event
    yield torch.backends.mps, "is_available", lambda: not here
    yield torch.accelerator, "is_available", lambda: False  # PyTorch for CUDA would ask the driver
    yield devices, "_no_gpu", lambda: False
    answers = {"is_available": here, "is_initialized": here, "device_count": int(here), "is_bf16_supported": here}
    answers |= {"get_device_name": "Emulated", "mem_get_info": (70 << 30, 80 << 30)}
    answers |= {"get_device_capability": (9, 0)} | dict.fromkeys(["set_device", "synchronize", "set_sync_debug_mode"])
    for name, answer in answers.items():
        yield torch.cuda, name, lambda *args, answer=answer, **kwargs: answer
    for module in (torch.cuda, torch.mps):
        yield module, "get_rng_state", lambda *device: torch.zeros(16, dtype=torch.uint8)
        yield module, "set_rng_state", lambda *state: None
