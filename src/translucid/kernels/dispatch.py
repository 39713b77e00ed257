"""The one switch of all fast paths.

The rooms above this one hold equations; this one holds other ways to the same numbers. Within `plain()` none of them is
taken: what runs then is the equation, by PyTorch's own operations, in the dtype of its inputs. Tests compare the two,
and benchmarks measure what each way brings.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

KERNELS = frozenset({"linear", "attention", "additive", "dropout", "loss", "lstm"})
"""What can be made plain, each named after its file. `linear` is all products of the package: their library and the
rounding of their factors, in linear layers and in the loss."""

_plain: ContextVar[frozenset[str]] = ContextVar("plain", default=frozenset())


@contextmanager
def reference_mode(*names: str) -> Iterator[None]:
    """Within it these kernels are plain, all of them if none is named; other threads are not concerned.

    Raises:
        ValueError: there is no kernel of that name.
    """
    if unknown := set(names) - KERNELS:
        raise ValueError(f"there is no kernel {unknown.pop()!r}, but {', '.join(sorted(KERNELS))}")
    before = _plain.set(_plain.get() | (frozenset(names) or KERNELS))
    try:
        yield
    finally:
        _plain.reset(before)


def is_plain(name: str) -> bool:
    """Whether this kernel is not to be taken now.

    While `torch.compile` traces, only fused attention is taken: the compiler makes kernels of its own, and reading the
    context variable would end its graph. Who compiles has to ask for the mode before: see `in_reference_mode`.
    """
    import torch  # here, as commands without PyTorch import this package too

    if torch.compiler.is_compiling():
        return name != "attention"
    return name in _plain.get()


def in_reference_mode() -> bool:
    """Whether any kernel is not to be taken now."""
    return bool(_plain.get())
