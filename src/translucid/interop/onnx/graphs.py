"""The two graphs of a translator, by PyTorch's exporter."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from translucid.interop.onnx.states import Flat
from translucid.interop.onnx.tracing import followable
from translucid.kernels.dispatch import reference_mode
from translucid.models.protocol import SequenceModel

OPSET = 18
"""Of the operators, which onnxruntime has since 1.14."""
ENCODER, DECODER = "encoder.onnx", "decoder.onnx"
IDS, TOKENS, LOGITS, AFTER = "ids", "tokens", "logits", "after."
"""Names of inputs and outputs; what a decoder gives for `past` is `after.past`."""


class _Encoder(nn.Module):
    """From sources to the state before the first token."""

    def __init__(self, model: SequenceModel, flat: Flat[Any]) -> None:
        super().__init__()
        self.model, self.flat = model, flat

    def forward(self, ids: Tensor) -> tuple[Tensor, ...]:
        return tuple(self.flat.tensors(self.model.start(self.model.encode(ids))))


class _Decoder(nn.Module):
    """From one token a row, and a state, to the logits of the next token and what the state carries."""

    def __init__(self, model: SequenceModel, flat: Flat[Any]) -> None:
        super().__init__()
        self.model, self.flat = model, flat

    def forward(self, tokens: Tensor, state: Sequence[Tensor]) -> tuple[Tensor, ...]:
        logits, after = self.model.step(tokens, self.flat.state(state))
        return logits, *self.flat.tensors(after)[len(self.flat.fixed) :]


def write_graphs(model: SequenceModel, flat: Flat[Any], folder: Path) -> None:
    """Write `encoder.onnx` and `decoder.onnx`: rows and lengths vary, weights are float32.

    encoder: ids [B, S] int64, padded on the right -> the state
    decoder: tokens [N] int64, the state -> logits [N, V], what is carried on
    """
    traced = followable(model)
    encoder, decoder = (kind(traced, flat).eval() for kind in (_Encoder, _Decoder))
    names = [part.name for part in flat.parts]
    # No two lengths of the examples are equal, nor equal to 1, which an exporter takes to be fixed.
    ids = torch.full((3, 7), model.eos)
    tokens = torch.full((3,), model.bos)
    with reference_mode(), torch.inference_mode(False), quiet():
        with torch.no_grad():
            state = traced.start(traced.encode(ids))
            for _ in range(5):
                _, state = traced.step(tokens, state)
        # With gradients: without, PyTorch takes its recurrent layers apart, step by step.
        _write(encoder, (ids,), ({0: "rows", 1: "source"},), [IDS], names, folder / ENCODER)
        shapes = {0: "rows"}, [part.varying for part in flat.parts]
        carried = [AFTER + part.name for part in flat.carried]
        given = tokens, [each.contiguous() for each in flat.tensors(state)]
        _write(decoder, given, shapes, [TOKENS, *names], [LOGITS, *carried], folder / DECODER)


def _write(
    graph: nn.Module,
    examples: tuple[Any, ...],
    varying: tuple[Any, ...],
    inputs: list[str],
    outputs: list[str],
    file: Path,
) -> None:
    program = torch.onnx.export(
        graph,
        examples,
        input_names=inputs,
        output_names=outputs,
        dynamic_shapes=varying,
        opset_version=OPSET,
        dynamo=True,
        verbose=False,
    )
    assert program is not None
    program.save(file, include_initializers=True, keep_initializers_as_inputs=False)


@contextmanager
def quiet() -> Iterator[None]:
    """Within it, exporters do not tell of packages that nobody needs, nor of what they deprecate in themselves."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)
