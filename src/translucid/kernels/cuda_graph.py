"""Functions whose kernels are launched in one call, as a CUDA graph.

A GPU computes a small model faster than the host can launch its kernels. A CUDA graph records the kernels of a function
once, and then launches all of them. They always read and write the same memory, so callers copy the inputs there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import torch

WARM_UP = 3
"""The number of calls before the graph is captured. They create what is created once, compile kernels and choose those
of libraries, which a graph can't contain."""
ResultT = TypeVar("ResultT")


class Captured(Generic[ResultT]):
    """A function without arguments that decides nothing on the host; all calls but the first replay its kernels."""

    def __init__(
        self, function: Callable[[], ResultT], device: torch.device, memory: Captured[Any] | None = None
    ) -> None:
        """Prepare the capture on a CUDA device; on others, the function is called each time.

        `memory`: a function that is never replayed at the same time; both then share the memory of their intermediate
        results.
        """
        self._function, self._device, self._memory = function, device, memory
        self._warm_ups = 0
        self._graph: torch.cuda.CUDAGraph | None = None
        self._result: ResultT
        if device.type == "cuda":
            self._stream = torch.cuda.Stream(device)
            """The queue of the first calls and of the recording; the default queue can't be recorded."""

    @property
    def is_captured(self) -> bool:
        """Whether the graph is captured."""
        return self._graph is not None

    def __call__(self) -> ResultT:
        """Call the function or launch its graph; a graph returns the same tensors each time."""
        if self._device.type != "cuda":
            return self._function()
        if self._warm_ups < WARM_UP:
            self._warm_ups += 1
            self._stream.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(self._stream):
                result = self._function()
            torch.cuda.current_stream().wait_stream(self._stream)
            return result
        if self._graph is None:
            self._graph = torch.cuda.CUDAGraph()
            shared = self._memory._graph if self._memory else None
            pool = shared.pool() if shared else None
            # Other threads may allocate pinned memory meanwhile, for the next batches.
            with torch.cuda.graph(self._graph, pool=pool, stream=self._stream, capture_error_mode="thread_local"):
                self._result = self._function()
        self._graph.replay()
        return self._result
