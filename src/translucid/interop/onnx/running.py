"""Greedy search with onnxruntime, to compare an exported model with the run that it was made from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitext.pair import Pair
from translucid.data.readers.corpus import sources_of
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.decoding_options import DecodingOptions
from translucid.decoding.limits import length_limit
from translucid.interop.onnx.export import FACTS

SENTENCES = 32
"""The number of sentences that are translated together."""


class Exported:
    """A model that `export_onnx` has written."""

    def __init__(self, folder: Path, threads: int = 0) -> None:
        """Open a folder; `threads`: the number of threads of an operator, 0 for one on each core."""
        import onnxruntime

        self.facts: dict[str, Any] = json.loads((folder / FACTS).read_text())
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads

        def session(side: str) -> Any:
            return onnxruntime.InferenceSession(folder / self.facts[side]["file"], options, ["CPUExecutionProvider"])

        self.encoder, self.decoder = session("encoder"), session("decoder")

    def start(self, ids: NDArray[np.int64]) -> dict[str, NDArray[Any]]:
        """Encode source ids [B, S], padded on the right, and return the state before the first token."""
        return dict(zip(self.facts["encoder"]["outputs"], self.encoder.run(None, {"ids": ids}), strict=True))

    def step(
        self, tokens: NDArray[np.int64], state: dict[str, NDArray[Any]]
    ) -> tuple[NDArray[np.float32], dict[str, NDArray[Any]]]:
        """Return the logits [N, V] after one more token for each row [N], and the next state."""
        logits, *next_tensors = self.decoder.run(None, {"tokens": tokens, **state})
        return logits, {**state, **dict(zip(self.facts["carried"], next_tensors, strict=True))}

    def greedy(self, sentences: Sequence[list[int]], options: DecodingOptions) -> list[list[int]]:
        """Return the outputs of greedy search, without end tokens.

        Args:
            sentences: source ids, each with the end token at its end.
            options: the limits of length; other options have no effect, and no rule prevents loops.
        """
        special, target = self.facts["special"], self.facts["target"]
        opening, longest = target["opening"], target["longest"]
        limits = np.array([length_limit(len(ids) - 1, options, longest) for ids in sentences])
        limits = limits.clip(len(opening) + 1)
        source = np.full((len(sentences), max(map(len, sentences))), special["pad"])
        for row, ids in zip(source, sentences, strict=True):
            row[: len(ids)] = ids
        state, last_tokens = self.start(source), np.full(len(source), special["start"])
        outputs: list[list[int]] = [[] for _ in sentences]
        for length in range(limits.max()):
            logits, state = self.step(last_tokens, state)
            logits[:, self.facts["never"]] = -np.inf
            if length < len(opening) + options.min_length:
                logits[:, special["end"]] = -np.inf
            if length < len(opening):  # every output begins with these tokens
                last_tokens = np.full(len(source), opening[length])
            else:
                last_tokens = logits.argmax(-1)
            for output, token, limit in zip(outputs, last_tokens.tolist(), limits, strict=True):
                if len(output) == length < limit and token != special["end"]:
                    output.append(token)
            if all(len(output) <= length for output in outputs):
                break
        return outputs


def exported_texts(folder: Path, tokenizer: Tokenizer, pairs: Sequence[Pair], end: int) -> list[str]:
    """Return greedy translations of the sources of pairs by an exported model; `end`: the id of the end token."""
    exported, texts = Exported(folder), list[str]()
    encoded = tokenizer.encode_source(sources_of(pairs))
    sources = [[*ids, end] for ids in encoded]
    for start in range(0, len(sources), SENTENCES):
        hypotheses = exported.greedy(sources[start : start + SENTENCES], DecodingOptions(beam=1, max_loops=0))
        texts += map(tokenizer.decode, hypotheses)
    return texts
