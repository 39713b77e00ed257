"""The dispatch between fast kernels and reference implementations.

Within `reference_mode()`, no kernel of this package runs. PyTorch's own operations compute the equation instead, in the
dtype of the inputs. Tests compare both, and benchmarks measure the gain of each kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

KERNELS = frozenset({"linear", "attention", "additive", "dropout", "loss", "lstm", "recurrence"})
"""The kernels, named after their files. `linear` stands for all products of the package, in linear layers and in the
loss: for their library and the rounding of their factors."""

_reference: ContextVar[frozenset[str]] = ContextVar("reference", default=frozenset())


@contextmanager
def reference_mode(*names: str) -> Iterator[None]:
    """Replace these kernels, or all of them by default, by their reference implementations in this thread.

    Raises:
        ValueError: there is no kernel of that name.
    """
    unknown = set(names) - KERNELS
    if unknown:
        raise ValueError(f"there is no kernel {unknown.pop()!r}, but {', '.join(sorted(KERNELS))}")
    token = _reference.set(_reference.get() | (frozenset(names) or KERNELS))
    try:
        yield
    finally:
        _reference.reset(token)


def uses_reference(name: str) -> bool:
    """Whether the reference implementation replaces this kernel now.

    While `torch.compile` traces, this is true for all kernels but attention and the loss, whose chunks save memory: the
    compiler generates kernels itself, and reading the context variable would break its graph. Code that compiles must
    check `in_reference_mode` before.
    """
    import torch  # imported here because commands without PyTorch import this package too

    if torch.compiler.is_compiling():
        return name not in ("attention", "loss")
    return name in _reference.get()


def in_reference_mode() -> bool:
    """Whether a reference implementation replaces any kernel now."""
    return bool(_reference.get())
