"""An emulated accelerator: real CPU tensors that claim to be on `cuda:0` or `mps:0`.

Within `Emulation("cuda")` every tensor made on, or moved to, that device is a `DeviceTensor`. Values are real, so
losses and translations can be compared with those of the CPU. Three things behave as on a GPU:

- An operation on tensors of both devices raises `MixedDevicesError`. Exceptions are those of CUDA: copies, indices of
  an indexing operation, and CPU scalars (`[]`) may be mixed.
- What makes the host wait for the device is counted in `synchronisations`, by operation and source line: reading
  values, shapes that depend on values, and copies that are not `non_blocking` from pinned memory.
- Operations that would start a kernel are counted in `kernels`.

Of cuDNN there is one rule, of recurrent layers; there is no NCCL, no GPU memory and no asynchrony. MPS refuses float64,
as Apple's GPUs do.
"""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import ExitStack
from functools import cache
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._mode_utils import no_dispatch
from torch.utils._pytree import tree_leaves

from tests.devices import patched

_VIEWS = """
view _unsafe_view t transpose expand slice select unsqueeze squeeze permute detach as_strided split unbind
alias _reshape_alias split_with_sizes unfold view_as lift_fresh chunk diagonal
"""
VIEWS = frozenset(_VIEWS.split())
"""Operations that start no kernel."""
_READS = """
_local_scalar_dense item nonzero equal is_nonzero masked_select unique_consecutive _unique2 unique_dim bincount
repeat_interleave
"""
READS = frozenset(_READS.split())
"""Operations whose result, or its shape, the host has to wait for."""
INDEXING = frozenset(["index", "index_put", "index_put_", "_unsafe_index", "_index_put_impl_"])
"""Operations that take indices from the CPU, and wait if one of them is boolean."""
PACKED = frozenset(["lstm", "gru", "_pad_packed_sequence", "_pack_padded_sequence_backward"])
"""Operations on packed sequences, whose sizes are on the CPU."""
COPIES = frozenset(["copy_", "_to_copy", "_copy_from"])
FACTORIES = frozenset(["tensor", "as_tensor", "asarray"])
"""Functions that copy host data to the device they are given."""


class MixedDevicesError(RuntimeError):
    """An operation was given tensors of two devices."""


class DeviceTensor(torch.Tensor):
    """A tensor that claims to be on the emulated device; its values are in `host`."""

    host: Tensor
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, host: Tensor) -> DeviceTensor:
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            host.size(),
            strides=host.stride(),
            storage_offset=host.storage_offset(),
            dtype=host.dtype,
            layout=host.layout,
            device="cpu",
        )
        made.__dict__["host"] = host.detach()
        return made

    def __repr__(self) -> str:
        return f"DeviceTensor({self.host})"

    @classmethod
    def __torch_dispatch__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return Emulation.current.run(function, args, kwargs or {})


class _Upload(torch.autograd.Function):
    """Host to device, differentiable."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return DeviceTensor(x.detach().clone())

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return _host(gradient)


class _Download(torch.autograd.Function):
    """Device to host, differentiable."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return _host(x).clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return DeviceTensor(gradient)


class Emulation(TorchFunctionMode):
    """Within it there is one device of this kind, `cuda` or `mps`."""

    current: Emulation

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind
        self.device = torch.device(kind, 0)
        self.synchronisations: Counter[str] = Counter()
        self.kernels: Counter[str] = Counter()
        self.stack = ExitStack()

    def __enter__(self) -> Emulation:
        Emulation.current = self
        for target, name, value in patched.patches(self):
            self.stack.enter_context(patch.object(target, name, value))
        super().__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        self.stack.close()

    def forget(self) -> None:
        """Begin counting anew."""
        self.synchronisations.clear()
        self.kernels.clear()

    # Functions: what is asked of tensors and of PyTorch, before autograd.

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        name = getattr(function, "__name__", str(function))
        first = args[0] if args else None
        on_device = isinstance(first, DeviceTensor)
        if name == "__get__" and on_device:
            return self._attribute(getattr(function, "__self__", None), function, first)
        if name in ("numpy", "__array__") and on_device:
            raise TypeError(f"a tensor on {self.kind} has no NumPy array; move it to the CPU first")
        if name == "tolist" and on_device:
            self._count(self.synchronisations, "tolist")
            return first.host.tolist()
        if name == "one_hot" and on_device:
            if len(args) < 2 or args[1] == -1:  # the number of classes has to be read
                self._count(self.synchronisations, "one_hot")
            return DeviceTensor(function(first.host, *args[1:], **kwargs))
        if name in ("lstm", "gru") and on_device and self.kind == "cuda":
            patched.refuse_as_cudnn(args)
        if name in ("_pack_padded_sequence", "_pad_packed_sequence") and on_device:
            return (patched.pack if name.startswith("_pack") else patched.pad)(*args)
        if name in ("to", "cpu", "cuda", "mps") and isinstance(first, Tensor):
            return self._moved(function, name, first, list(args[1:]), kwargs)
        if kwargs.get("device") is not None:
            return self._made(function, name, args, kwargs)
        return function(*args, **kwargs)

    def _attribute(self, descriptor: Any, function: Any, tensor: DeviceTensor) -> Any:
        answers = {
            "device": self.device,
            "is_cuda": self.kind == "cuda",
            "is_mps": self.kind == "mps",
            "is_cpu": False,
        }
        name = getattr(descriptor, "__name__", "")
        if name == "data":
            return tensor.detach()
        return answers[name] if name in answers else function(tensor)

    def _moved(self, function: Any, name: str, tensor: Tensor, rest: list[Any], kwargs: dict[str, Any]) -> Any:
        """`to` and its relatives: the move is ours, what remains (a dtype) is PyTorch's."""
        target: bool | None = {"cpu": False, "to": None}.get(name, True)
        if name == "to" and "device" in kwargs:
            target = self._is_ours(kwargs.pop("device"))
        elif name == "to" and rest and isinstance(rest[0], Tensor):
            other = rest.pop(0)
            target = isinstance(other, DeviceTensor)
            rest.insert(0, other.dtype)
        elif name == "to" and rest and isinstance(rest[0], (str, int, torch.device)):
            target = self._is_ours(rest.pop(0))
        blocks = not kwargs.pop("non_blocking", False)
        if target is True and not isinstance(tensor, DeviceTensor):
            self._uploaded("to(device)", waits=blocks or not getattr(tensor, "pinned_here", False))
            tensor = _Upload.apply(tensor) if tensor.requires_grad else DeviceTensor(tensor.detach().clone())
        elif target is False and isinstance(tensor, DeviceTensor):
            if blocks:
                self._count(self.synchronisations, "to(cpu)")
            tensor = _Download.apply(tensor)
        if not rest and not kwargs.keys() - {"copy"}:
            return tensor
        return tensor.type(rest[0]) if name == "to" and rest else function(tensor, *rest, **kwargs)

    def _made(self, function: Any, name: str, args: Any, kwargs: dict[str, Any]) -> Any:
        """A factory that was told where its tensor is to be."""
        ours = self._is_ours(kwargs["device"])
        if ours is None:
            return function(*args, **kwargs)
        if ours and self.kind == "mps" and kwargs.get("dtype") == torch.float64:
            raise TypeError("MPS has no float64")
        kwargs["device"] = "cpu"
        made = function(*map(_host, args), **kwargs)
        if not ours:
            return made
        self._count(self.kernels, name)
        if name in FACTORIES:
            self._uploaded(name, waits=True)
        moved = DeviceTensor(made.detach())
        moved.requires_grad_(made.requires_grad)
        return moved

    def _is_ours(self, device: Any) -> bool | None:
        """Whether a device is this one; None for one that is neither it nor the CPU."""
        kind = self.kind if isinstance(device, int) else torch.device(device).type
        return kind == self.kind if kind in (self.kind, "cpu") else None

    # Operations: what PyTorch makes of the functions, after autograd.

    def run(self, function: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """Run an operation on the hosts of its tensors, by the rules of the device."""
        name, moves_view, in_place, returns = _facts(function)
        ours: list[DeviceTensor] = []
        others: list[Tensor] = []
        hosts = [_host(arg, ours, others) for arg in args]
        named = {key: _host(arg, ours, others) for key, arg in kwargs.items()}
        self._refuse(name, args, ours, others)
        self._count_operation(name, args, others)
        result = function(*hosts, **named)
        if moves_view:
            with no_dispatch():
                function(*args, **kwargs)
            return args[0]
        if in_place:  # what came is given back
            return args[0] if returns else None
        if "out" in kwargs:
            return kwargs["out"]
        return _on_device(result, {id(tensor.host): tensor for tensor in ours})

    def _refuse(self, name: str, args: Any, ours: list[DeviceTensor], others: list[Tensor]) -> None:
        if self.kind == "mps" and any(tensor.dtype == torch.float64 for tensor in ours):
            raise TypeError(f"MPS has no float64 ({name})")
        allowed = name in COPIES or (name in (*INDEXING, *PACKED) and isinstance(args[0], DeviceTensor))
        if name in INDEXING and len(args) > 2 and args[2].dim() > 0:
            allowed = allowed and isinstance(args[2], DeviceTensor)
        arrays = [tuple(tensor.shape) for tensor in others if tensor.dim() > 0]
        if ours and arrays and not allowed:
            shapes = [tuple(tensor.shape) for tensor in ours]
            raise MixedDevicesError(f"{name} of {shapes} on {self.kind} and {arrays} on the CPU at {_place()}")

    def _count_operation(self, name: str, args: Any, others: list[Tensor]) -> None:
        boolean = name in INDEXING and any(getattr(i, "dtype", None) == torch.bool for i in tree_leaves(args[1]))
        if name in READS or boolean:
            self._count(self.synchronisations, name)
        if name == "copy_" and others:
            if isinstance(args[1], DeviceTensor):
                self._count(self.synchronisations, "copy_ to the CPU")
            else:
                self._uploaded("copy_", waits=True)
        if name not in VIEWS:
            self._count(self.kernels, name)

    def _uploaded(self, name: str, *, waits: bool) -> None:
        if waits:
            self._count(self.synchronisations, f"{name} of memory that is not pinned")

    def _count(self, counter: Counter[str], name: str) -> None:
        counter[f"{name} at {_place()}" if counter is self.synchronisations else name] += 1


@cache
def _facts(function: Any) -> tuple[str, bool, bool, bool]:
    """The name of an operation, whether it changes a view in place, changes its first argument, returns anything."""
    schema = function._schema
    alias = schema.arguments[0].alias_info if schema.arguments else None
    in_place = alias is not None and alias.is_write
    return schema.name.split("::")[1], torch.Tag.inplace_view in function.tags, in_place, bool(schema.returns)


def _host(x: Any, ours: list[DeviceTensor] | None = None, others: list[Tensor] | None = None) -> Any:
    """The values of an argument on the CPU; its tensors are noted by where they claim to be."""
    if isinstance(x, DeviceTensor):
        if ours is not None:
            ours.append(x)
        return x.host
    if isinstance(x, Tensor) and others is not None:
        others.append(x)
    return [_host(part, ours, others) for part in x] if type(x) in (list, tuple) else x


def _on_device(x: Any, known: dict[int, DeviceTensor]) -> Any:
    """A result as tensors of the device; a tensor that was an argument stays what it was."""
    if isinstance(x, Tensor):
        return known[id(x)] if id(x) in known else DeviceTensor(x)
    return type(x)(_on_device(part, known) for part in x) if type(x) in (list, tuple) else x


def _place() -> str:
    """The line of the package that asked, as `training/trainer.py:195`."""
    frame = sys._getframe(1)
    while frame:
        _, inside, name = frame.f_code.co_filename.replace("\\", "/").partition("/src/translucid/")
        if inside:
            return f"{name}:{frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]
    return "PyTorch"
