"""The two ONNX graphs of a translator, written by PyTorch's exporter."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from translucid.interop.onnx.states import StateLayout
from translucid.interop.onnx.tracing import traceable
from translucid.kernels.dispatch import reference_mode
from translucid.models.protocol import SequenceModel

OPSET = 18
"""The version of the operators, which onnxruntime supports since 1.14."""
ENCODER, DECODER = "encoder.onnx", "decoder.onnx"
IDS, TOKENS, LOGITS, AFTER = "ids", "tokens", "logits", "after."
"""Names of inputs and outputs; the decoder's next value of `past` is `after.past`."""


class _Encoder(nn.Module):
    """A graph from sources to the state before the first token."""

    def __init__(self, model: SequenceModel, layout: StateLayout[Any]) -> None:
        super().__init__()
        self.model, self.layout = model, layout

    def forward(self, ids: Tensor) -> tuple[Tensor, ...]:
        return tuple(self.layout.tensors(self.model.start(self.model.encode(ids))))


class _Decoder(nn.Module):
    """A graph from one token for each row, and a state, to the logits of the next token and the changed tensors."""

    def __init__(self, model: SequenceModel, layout: StateLayout[Any]) -> None:
        super().__init__()
        self.model, self.layout = model, layout

    def forward(self, tokens: Tensor, state: Sequence[Tensor]) -> tuple[Tensor, ...]:
        logits, next_state = self.model.step(tokens, self.layout.state(state))
        return logits, *self.layout.tensors(next_state)[len(self.layout.fixed) :]


def write_graphs(model: SequenceModel, layout: StateLayout[Any], folder: Path) -> None:
    """Write `encoder.onnx` and `decoder.onnx`: rows and lengths vary, weights are float32.

    encoder: ids [B, S] int64, padded on the right -> the state
    decoder: tokens [N] int64, the state -> logits [N, V], the tensors of the state that each step replaces
    """
    traced = traceable(model)
    encoder, decoder = _Encoder(traced, layout).eval(), _Decoder(traced, layout).eval()
    # The lengths of the examples are different, and not 1: the exporter would merge equal ones, and fix 1.
    ids = torch.full((3, 7), model.eos)
    tokens = torch.full((3,), model.bos)
    with reference_mode(), torch.inference_mode(False), quiet():
        with torch.no_grad():
            state = traced.start(traced.encode(ids))
            for _ in range(5):
                _, state = traced.step(tokens, state)
        # With gradients: without them, PyTorch decomposes its recurrent layers step by step.
        _write(encoder, (ids,), ({0: "rows", 1: "source"},), [IDS], layout.names, folder / ENCODER)
        shapes = {0: "rows"}, [spec.dynamic_axes for spec in layout.specs]
        carried = [AFTER + spec.name for spec in layout.carried]
        inputs = tokens, [tensor.contiguous() for tensor in layout.tensors(state)]
        _write(decoder, inputs, shapes, [TOKENS, *layout.names], [LOGITS, *carried], folder / DECODER)


def _write(
    graph: nn.Module,
    examples: tuple[Any, ...],
    dynamic_shapes: tuple[Any, ...],
    inputs: list[str],
    outputs: list[str],
    file: Path,
) -> None:
    """Export one graph; `dynamic_shapes`: the axes of each input whose lengths vary."""
    program = torch.onnx.export(
        graph,
        examples,
        input_names=inputs,
        output_names=outputs,
        dynamic_shapes=dynamic_shapes,
        opset_version=OPSET,
        dynamo=True,
        verbose=False,
    )
    assert program is not None
    program.save(file, include_initializers=True, keep_initializers_as_inputs=False)


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress the exporter's messages about optional packages and about its own deprecations."""
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)
