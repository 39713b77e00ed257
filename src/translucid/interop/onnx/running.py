"""Greedy search through onnxruntime, by which an exported model is compared to what it was made from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from translucid.data.readers.corpus import Pair
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.decoding_options import DecodingOptions
from translucid.decoding.limits import length_limit
from translucid.interop.onnx.export import FACTS

SENTENCES = 32
"""Translated together."""


class Exported:
    """A folder that `export_onnx` has written."""

    def __init__(self, folder: Path, threads: int = 0) -> None:
        """Open a folder; `threads`: that an operator works with, 0 for one each core."""
        import onnxruntime

        self.facts: dict[str, Any] = json.loads((folder / FACTS).read_text())
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        self.encoder, self.decoder = (
            onnxruntime.InferenceSession(folder / self.facts[side]["file"], options, ["CPUExecutionProvider"])
            for side in ("encoder", "decoder")
        )

    def start(self, ids: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        """Read sources ids [B, S], padded on the right: the state before the first token."""
        return dict(zip(self.facts["encoder"]["outputs"], self.encoder.run(None, {"ids": ids}), strict=True))

    def step(
        self, tokens: NDArray[np.int64], state: dict[str, NDArray[Any]]
    ) -> tuple[NDArray[np.float32], dict[str, NDArray[Any]]]:
        """Feed one token a row [N]: the logits of the next one [N, V] and the state that has seen it."""
        logits, *after = self.decoder.run(None, {"tokens": tokens, **state})
        return logits, {**state, **dict(zip(self.facts["carried"], after, strict=True))}

    def greedy(self, sentences: Sequence[list[int]], options: DecodingOptions) -> list[list[int]]:
        """Return the likeliest tokens one after the other, end token left out; of `options` the limits of length hold.

        Args:
            sentences: source ids, each ending in the end token.
            options: says how long an output may get; a loop is not looked for.
        """
        special, opening, longest = (
            self.facts["special"],
            *(self.facts["target"][key] for key in ("opening", "longest")),
        )
        limits = np.array([length_limit(len(ids) - 1, options, longest) for ids in sentences])
        limits = limits.clip(len(opening) + 1)
        source = np.full((len(sentences), max(map(len, sentences))), special["pad"])
        for row, ids in zip(source, sentences, strict=True):
            row[: len(ids)] = ids
        state, last = self.start(source), np.full(len(source), special["start"])
        outputs: list[list[int]] = [[] for _ in sentences]
        for length in range(limits.max()):
            logits, state = self.step(last, state)
            logits[:, self.facts["never"]] = -np.inf
            if length < len(opening) + options.min_length:
                logits[:, special["end"]] = -np.inf
            last = logits.argmax(-1) if length >= len(opening) else np.full(len(source), opening[length])
            for output, token, limit in zip(outputs, last.tolist(), limits, strict=True):
                if len(output) == length < limit and token != special["end"]:
                    output.append(token)
            if all(len(output) <= length for output in outputs):
                break
        return outputs


def exported_texts(folder: Path, tokenizer: Tokenizer, pairs: Sequence[Pair], end: int) -> list[str]:
    """Return greedy translations of the sources of pairs by an exported model; `end`: id of the end token."""
    exported, texts = Exported(folder), []
    sources = [[*ids, end] for ids in tokenizer.encode_source([pair.source for pair in pairs])]
    for first in range(0, len(sources), SENTENCES):
        found = exported.greedy(sources[first : first + SENTENCES], DecodingOptions(beam=1, max_loops=0))
        texts += [tokenizer.decode(tokens) for tokens in found]
    return texts
