"""A translator in ONNX Runtime: the encoder, and one step of the decoder for all hypotheses. Needs no PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Ints = NDArray[np.int64]
ENCODER, STEP = "encoder.onnx", "step.onnx"
"""The files of the graphs."""
MEMORY, AFTER = "memory.", "after."
"""What the names of tensors begin with that stay the same for a sentence, and of those after a step."""


class OnnxModel:
    """The two graphs that `save_onnx` has written."""

    def __init__(self, folder: Path) -> None:
        """Open a folder."""
        self.encoder, self.decoder = _session(folder / ENCODER), _session(folder / STEP)
        self.encoder_inputs = {value.name for value in self.encoder.get_inputs()}
        self.decoder_inputs = {value.name for value in self.decoder.get_inputs()}
        self.encoder_outputs = [value.name for value in self.encoder.get_outputs()]
        self.has_positions = "position" in self.decoder_inputs
        output_names = [value.name for value in self.decoder.get_outputs()]
        self.carried = [name.removeprefix(AFTER) for name in output_names if name.startswith(AFTER)]
        self.decoder_outputs = [*(AFTER + name for name in self.carried), "values", "end", "pieces"]

    def start(self, sentences: Sequence[list[int]], pad: int) -> State:
        """Encode source ids, each with the end token at its end, and return the state before the first token."""
        lengths = np.array(list(map(len, sentences)))
        ids = np.full((len(sentences), lengths.max()), pad)
        for row, sentence in zip(ids, sentences, strict=True):
            row[: len(sentence)] = sentence
        # Added to the scores of attention: -inf at padding.
        mask = np.where(ids == pad, np.float32(-np.inf), np.float32(0))  # [B, S]
        feeds = {"ids": ids, "lengths": lengths, "bias": _for_each_query(mask, ids.shape[1])}
        encoded = self.encoder.run(self.encoder_outputs, {name: feeds[name] for name in self.encoder_inputs})
        return State(self, mask, dict(zip(self.encoder_outputs, encoded, strict=True)))


class State:
    """The decoder's state for B sentences with K rows each, sentence by sentence."""

    def __init__(self, model: OnnxModel, mask: Floats, encoded: dict[str, Any]) -> None:
        """Begin with one row for each sentence, which has no token yet."""
        self.model, self.mask, self.length = model, mask, 0
        self.memory = {name: value for name, value in encoded.items() if name.startswith(MEMORY)}
        self.past = {name: value for name, value in encoded.items() if not name.startswith(MEMORY)}
        self._shape: tuple[int, int] | None = None
        self._by_shape: dict[str, Any] = {}

    def select(self, sentences: Ints) -> None:
        """Keep only some sentences; their rows follow from the next parents."""
        self.mask, self._shape = self.mask[sentences], None
        self.memory = {name: value[sentences] for name, value in self.memory.items()}

    def advance(self, tokens: Ints, parent: Ints, count: int) -> tuple[Floats, Ints, Floats]:
        """Feed one token per row.

        Args:
            tokens: [B, K].
            parent: [B, K] the row of the step before that each row extends, in 0 .. N - 1.
            count: how many of the most probable next tokens to return.

        Returns:
            Their log-probabilities [B, K, count], sorted; their ids [B, K, count], of equally probable ones the lower
            id first; and the log-probability of the end token [B, K].
        """
        if tokens.shape != self._shape:
            self._shape = rows, per_sentence = tokens.shape
            bias = _for_each_query(self.mask, per_sentence)
            feeds = {"mask": self.mask[:, None], "bias": bias, "grid": np.array([rows, per_sentence, -1])}
            self._by_shape = {name: value for name, value in feeds.items() if name in self.model.decoder_inputs}
        values = {
            "tokens": tokens.reshape(-1),
            "parent": parent.reshape(-1),
            "count": np.array([count]),
            **self._by_shape,
            **self.memory,
            **self.past,
        }
        if self.model.has_positions:
            values["position"] = np.array([self.length])
        outputs = self.model.decoder.run(self.model.decoder_outputs, values)
        *next_past, log_probs, end, pieces = outputs
        self.past = dict(zip(self.model.carried, next_past, strict=True))
        self.length += 1
        shape = (*tokens.shape, count)
        return log_probs.reshape(shape), pieces.reshape(shape), end.reshape(tokens.shape)


def _session(file: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    # The operators of a step are too small to be divided; threads search for batches of their own.
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(file, options, ["CPUExecutionProvider"])


def _for_each_query(mask: Floats, queries: int) -> Floats:
    """Repeat a mask [B, S] for each query of its sentence: [B, 1, queries, S]."""
    return np.repeat(mask[:, None, None], queries, 2)
