"""An emulated accelerator: real CPU tensors that claim to be on `cuda:0` or `mps:0`.

Within `Emulation("cuda")` every tensor made on, or moved to, that device is a `DeviceTensor`. Values are real, so
losses and translations can be compared with those of the CPU. Three things behave as on a GPU:

- An operation on tensors of both devices raises `MixedDevicesError`, except copies, indices and CPU scalars (`[]`).
- What makes the host wait for the device is counted in `synchronizations`, by operation and source line: reading
  values, shapes that depend on values, and copies that are not `non_blocking` from pinned memory.
- Operations that would start a kernel are counted in `kernels`.

Recurrent layers have the rules of cuDNN, and MPS has no float64. There is no NCCL, no GPU memory and no asynchrony.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from contextlib import ExitStack, contextmanager, nullcontext
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
"""Operations for whose result, or its shape, the host has to wait."""
INDEXING = "index", "index_put", "index_put_", "_unsafe_index", "_index_put_impl_"
"""Operations that wait if an index is boolean or has to be copied from the CPU."""
ON_HOST = "one_hot", "_pack_padded_sequence", "_pad_packed_sequence"
"""Composite functions that read the device of a tensor internally; they run on the CPU values."""


class MixedDevicesError(RuntimeError):
    """An operation has tensors on two devices."""


class DeviceTensor(torch.Tensor):
    """A tensor that claims to be on the emulated device; its values are in `host`."""

    host: Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, host):
        if Emulation.current.kind == "mps" and host.dtype == torch.float64:
            raise TypeError("MPS has no float64")
        layout = {"dtype": host.dtype, "layout": host.layout, "storage_offset": host.storage_offset()}
        tensor = torch.Tensor._make_wrapper_subclass(cls, host.size(), strides=host.stride(), device="cpu", **layout)
        tensor.__dict__["host"] = host.detach()
        return tensor

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        return Emulation.current.run(function, args, kwargs or {})


class Event:
    """An event in the queue of the GPU. Waiting for the last one is a synchronization, as it empties the queue."""

    def __init__(self, enable_timing=False):
        self.enable_timing, self.seconds = enable_timing, 0.0

    def record(self):
        Emulation.current.last_event, self.seconds = self, time.perf_counter()

    def elapsed_time(self, end):
        assert self.enable_timing and end.enable_timing
        return 1000 * (end.seconds - self.seconds)

    def synchronize(self):
        if Emulation.current.last_event is self:
            Emulation.current._wait("Event.synchronize")


class Stream:
    """A queue of the GPU."""

    def __init__(self, *device):
        pass

    def wait_stream(self, stream):
        """Do nothing, as operations compute at once."""


class Graph:
    """A CUDA graph: the operations within `torch.cuda.graph`. They compute at once, so the first `replay` does not."""

    def __init__(self):
        self.operations, self.replays = [], 0

    @contextmanager
    def captured(self, **options):
        Emulation.current.graph = self
        yield
        Emulation.current.graph = None

    def pool(self):
        """Return nothing, as graphs share no memory here."""

    def record(self, function, args, kwargs, result):
        if torch.Tag.inplace_view not in getattr(function, "tags", ()):
            self.operations.append((function, args, kwargs, result))

    @torch.no_grad()
    def replay(self):
        Emulation.current.kernels["graph"] += 1
        self.replays += 1
        for function, args, kwargs, result in self.operations if self.replays > 1 else ():
            self._write(result, function(*args, **kwargs))

    def _write(self, recorded, result):
        """Write results into the memory that later operations read, unless they are there: in place, or views."""
        if isinstance(recorded, Tensor):
            if recorded.data_ptr() != result.data_ptr():
                recorded.copy_(result)
        elif type(recorded) in (list, tuple):
            for parts in zip(recorded, result, strict=True):
                self._write(*parts)


class _Move(torch.autograd.Function):
    """A differentiable copy to the other device."""

    @staticmethod
    def forward(ctx, x):
        return x.host.clone() if isinstance(x, DeviceTensor) else DeviceTensor(x.detach().clone())

    @staticmethod
    def backward(ctx, gradient):
        return _Move.forward(ctx, gradient)


class Emulation(TorchFunctionMode):
    """A context with one device of this kind, `cuda` or `mps`."""

    current: Emulation

    def __init__(self, kind):
        super().__init__()
        self.kind, self.device = kind, torch.device(kind, 0)
        self.synchronizations, self.kernels = Counter(), Counter()
        self.views, self.reads, self.stack = set(VIEWS.split()), set(READS.split()), ExitStack()
        self.graph: Graph | None = None

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
        """Reset the counters."""
        self.synchronizations.clear()
        self.kernels.clear()

    def __torch_function__(self, function, types, args=(), kwargs=None):
        """Intercept tensor methods and PyTorch functions, before autograd."""
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
        """Move the tensor between the devices; PyTorch converts the dtype."""
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
            assert not self.graph, "a CUDA graph would copy from, or to, memory of the host that is free then"
            tensor = _Move.apply(tensor)
        return tensor if dtype is None else tensor.to(dtype)

    def _make(self, function, name, args, kwargs):
        """Call a factory whose tensor is to be on the device."""
        hosts = [_host(arg, [], []) for arg in args]
        tensor = function(*hosts, **kwargs)
        self.kernels[name] += 1
        if self.graph:
            self.graph.record(function, hosts, kwargs, tensor)
        if name in ("tensor", "as_tensor", "asarray"):  # these copy data from the host
            self._wait(f"{name} of memory that is not pinned")
        return DeviceTensor(tensor).requires_grad_(tensor.requires_grad)

    def _run_on_host(self, function, name, args):
        if name == "_pack_padded_sequence" and isinstance(args[1], DeviceTensor):
            raise MixedDevicesError("lengths of packed sequences are wanted on the CPU")
        if name == "one_hot" and args[1:] in ((), (-1,)):  # reads the number of classes
            self._wait("one_hot")
        self.kernels[name] += 1
        result = function(_Move.apply(args[0]), *args[1:])
        return (_Move.apply(result[0]), *result[1:]) if isinstance(result, tuple) else _Move.apply(result)

    def _is_ours(self, device):
        return isinstance(device, int) or torch.device(device).type == self.kind

    def run(self, function, args, kwargs):
        """Run an operation, after autograd, on the CPU values of its tensors, by the rules of the device."""
        name, in_place, returns = _facts(function)
        device_tensors: list[DeviceTensor] = []
        cpu_tensors: list[Tensor] = []
        hosts = [_host(arg, device_tensors, cpu_tensors) for arg in args]
        named = {key: _host(arg, device_tensors, cpu_tensors) for key, arg in kwargs.items()}
        self._refuse_mixed(name, args, device_tensors, cpu_tensors)
        self._count(name, args, cpu_tensors)
        result = function(*hosts, **named)
        if self.graph:
            self.graph.record(function, hosts, named, result)
        if torch.Tag.inplace_view in function.tags:  # the wrapper changes its shape, too
            with no_dispatch():
                function(*args, **kwargs)
        if in_place:  # return the changed argument
            return args[0] if returns else None
        return kwargs["out"] if "out" in kwargs else _on_device(result)

    def _refuse_mixed(self, name, args, device_tensors, cpu_tensors):
        allowed = name in ("copy_", "_to_copy") or (name in INDEXING and isinstance(args[0], DeviceTensor))
        if name in INDEXING and len(args) > 2 and args[2].dim() > 0:
            allowed = allowed and isinstance(args[2], DeviceTensor)
        # The backward pass of `unbind` makes zeros for outputs without gradient, on the device that PyTorch sees.
        allowed = allowed or (name == "stack" and torch._C._current_autograd_node() is not None)
        arrays = [tuple(tensor.shape) for tensor in cpu_tensors if tensor.dim() > 0]
        if device_tensors and arrays and not allowed:
            raise MixedDevicesError(f"{name} of tensors on {self.kind} and of {arrays} on the CPU at {_source_line()}")

    def _count(self, name, args, cpu_tensors):
        indices = [i for i in args[1] if i is not None] if name in INDEXING else []
        if name in self.reads or any(i.dtype == torch.bool or not isinstance(i, DeviceTensor) for i in indices):
            self._wait(name)
        if name == "copy_" and cpu_tensors and not (args[2:] == (True,) and args[1].is_pinned()):
            self._wait("copy_ between the devices")
        if name not in self.views:
            self.kernels[name] += 1

    def _wait(self, name):
        assert not self.graph, f"a CUDA graph can't wait: {name} at {_source_line()}"
        self.synchronizations[f"{name} at {_source_line()}"] += 1


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
    """Return the name of an operation, whether it works in place, and whether it returns anything."""
    schema = function._schema
    alias = schema.arguments[0].alias_info if schema.arguments else None
    in_place = alias is not None and alias.is_write
    return schema.name.split("::")[1], in_place, bool(schema.returns)


def _host(x, device_tensors, cpu_tensors):
    """Return the CPU values of an argument; append its tensors to the list of their device."""
    if isinstance(x, Tensor):
        on_device = isinstance(x, DeviceTensor)
        (device_tensors if on_device else cpu_tensors).append(x)
        return x.host if on_device else x
    return [_host(part, device_tensors, cpu_tensors) for part in x] if type(x) in (list, tuple) else x


def _on_device(x):
    """Return a result as tensors on the device."""
    if isinstance(x, Tensor):
        return DeviceTensor(x)
    return type(x)(map(_on_device, x)) if type(x) in (list, tuple) else x


def _source_line():
    """Return the calling line of the package, such as `training/trainer.py:195`."""
    frame = sys._getframe(1)
    while frame:
        _, inside, name = frame.f_code.co_filename.replace("\\", "/").partition("/src/translucid/")
        if inside:
            return f"{name}:{frame.f_lineno}"
        frame = frame.f_back
    return "PyTorch"


def _patches(emulation):
    """Yield patches of what PyTorch reports about devices: (module or class, name, value)."""
    is_cuda = emulation.kind == "cuda"
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
    yield sys.modules[torch.optim.Optimizer.__module__], "_group_tensors_by_device_and_dtype", grouped
    yield Tensor, "pin_memory", pinned
    yield Tensor, "is_pinned", lambda tensor: getattr(tensor, "pinned_here", False)
    yield torch.__future__, "get_swap_module_params_on_conversion", lambda: True  # a moved module keeps its parameters
    yield torch._C, "_InferenceMode", lambda mode: torch.set_grad_enabled(not mode)  # not for tensors of a subclass
    for name in ("autocast", "is_autocast_enabled", "get_autocast_dtype"):
        yield torch, name, on_cpu(getattr(torch, name))
    yield torch.cuda, "Event", Event
    yield torch.cuda, "CUDAGraph", Graph
    yield torch.cuda, "graph", Graph.captured
    for name in ("Stream", "current_stream"):
        yield torch.cuda, name, Stream
    yield torch.cuda, "stream", nullcontext
    yield torch.backends.mps, "is_available", lambda: not is_cuda
    yield torch.accelerator, "is_available", lambda: False  # PyTorch for CUDA would ask the driver
    yield devices, "_no_gpu", lambda: False
    answers = {
        "is_available": is_cuda,
        "is_initialized": is_cuda,
        "device_count": int(is_cuda),
        "is_bf16_supported": is_cuda,
    }
    answers |= {"get_device_name": "Emulated", "mem_get_info": (70 << 30, 80 << 30)}
    answers |= {"get_device_capability": (9, 0)} | dict.fromkeys(["set_device", "synchronize", "set_sync_debug_mode"])
    for name, answer in answers.items():
        yield torch.cuda, name, lambda *args, answer=answer, **kwargs: answer
    for module in (torch.cuda, torch.mps):
        yield module, "get_rng_state", lambda *device: torch.zeros(16, dtype=torch.uint8)
        yield module, "set_rng_state", lambda *state: None
