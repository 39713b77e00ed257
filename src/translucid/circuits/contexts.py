"""The strongest contexts of each feature: the pairs of a text in which its values are the largest.

They are found in one pass, kept in `RUN/circuits/contexts.safetensors`, and belong to one dictionary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from translucid.api.translator import Translator
from translucid.attention.points import recording
from translucid.circuits.dictionary import INPUT, Dictionary, FeatureName, circuits_folder
from translucid.circuits.training import text_pairs
from translucid.decoding.maps import forced_features
from translucid.decoding.pair_scores import BATCH_TOKENS, paired_batches
from translucid.ground.console import Console, progress_bar
from translucid.ground.errors import UserError
from translucid.runs.run_folder import RunFolder
from translucid.runs.tensor_file import load_tensors, save_tensors

FILE = "contexts.safetensors"
CONTEXTS = 10
"""The number of contexts of a feature."""
PAIRS = 10_000
"""The largest number of pairs in which contexts are sought; they are spread over the text."""


class Context(NamedTuple):
    """A pair in which a feature is active."""

    value: float
    """The largest value of the feature in the pair."""
    position: int
    """Where it is: of a feature of the encoder a source token, of the decoder the target token that is predicted."""
    source: list[int]
    """Ids, end token included."""
    target: list[int]


@dataclass(frozen=True, eq=False)
class Contexts:
    """The strongest contexts of all features."""

    tensors: Mapping[str, Tensor]
    """`ids`: those of all pairs in a row; `ends` [2 N]: where each side of each pair ends. Of each sublayer, `values`,
    `pairs` and `positions` [F, C], the strongest first, and `shares` [F], of the positions where a feature is active.
    """
    dictionary: str
    """The fingerprint of the dictionary."""

    def of(self, feature: FeatureName) -> list[Context]:
        """Return the contexts of a feature, the strongest first; there are none if it was never active."""
        contexts, ends = [], self.tensors["ends"]
        arrays = [self.tensors[f"{feature.sublayer}.{key}"][feature.number] for key in ("values", "pairs", "positions")]
        values, pairs, positions = (array.tolist() for array in arrays)
        for value, pair, position in zip(values, pairs, positions, strict=True):
            if value <= 0:
                break
            start = int(ends[2 * pair - 1]) if pair else 0
            middle, end = int(ends[2 * pair]), int(ends[2 * pair + 1])
            source, target = self.tensors["ids"][start:middle], self.tensors["ids"][middle:end]
            contexts.append(Context(value, position, source.tolist(), target.tolist()))
        return contexts

    def share(self, feature: FeatureName) -> float:
        """Return the share of the positions of its side at which a feature is active."""
        return float(self.tensors[f"{feature.sublayer}.shares"][feature.number])

    def save(self, run: RunFolder | Path) -> None:
        """Write them into the run."""
        save_tensors(circuits_folder(run) / FILE, dict(self.tensors), {"dictionary": self.dictionary})

    @classmethod
    def load(cls, run: RunFolder | Path, dictionary: Dictionary) -> Contexts | None:
        """Read the contexts of a dictionary; None if they have not been found.

        Raises:
            UserError: the file is damaged.
        """
        file = circuits_folder(run) / FILE
        if not file.exists():
            return None
        tensors, facts = load_tensors(file)
        contexts = cls(tensors, facts.get("dictionary", ""))
        if contexts.dictionary != dictionary.digest:
            return None
        keys = {"ids", "ends"}
        for name in dictionary.sublayers:
            keys |= {f"{name}.{key}" for key in ("values", "pairs", "positions", "shares")}
        if keys != tensors.keys():
            raise UserError("is damaged or not ours", file=file, fix="Delete it: the next card makes it again.")
        return contexts


@torch.inference_mode()
def find_contexts(
    translator: Translator, dictionary: Dictionary, pairs: Sequence[tuple[str, str]], *, console: Console
) -> Contexts:
    """Find the strongest contexts in a text; each pair is read once, and is at most one context of a feature.

    Args:
        translator: a translator with the PyTorch engine.
        dictionary: its dictionary.
        pairs: sources and targets, of which at most `PAIRS` are read.
        console: shows the progress.

    Raises:
        UserError: the model can read none of the pairs.
    """
    model, device = translator.model, translator.device
    chosen = pairs[:: -(-len(pairs) // PAIRS) or 1]
    ids = translator.pipeline.short_pairs([*dict.fromkeys(chosen)])
    if not ids:
        what = "there are no pairs in which features could be active"
        raise UserError(what, fix="Give some that the model can read.")
    transcoders = dictionary.to(device).transcoders
    best = {name: _Best(transcoder.width, device) for name, transcoder in transcoders.items()}
    with progress_bar(console, "finding contexts", len(ids)) as advance:
        for batch, source, target in paired_batches(ids, model.pad, device, BATCH_TOKENS):
            with recording(model, [name + INPUT for name in transcoders]) as record:
                forced_features(model, model.encode(source), target)
            numbers = torch.tensor(batch, device=device)
            for name, transcoder in transcoders.items():
                is_token = model.source_mask(source) if name.startswith("encoder") else target != model.pad
                best[name].add(numbers, transcoder.features(record[name + INPUT]) * is_token[..., None], is_token)
            advance(len(batch))
    used = torch.cat([one.pairs[one.values > 0] for one in best.values()]).unique().tolist()
    places = torch.zeros(len(ids), dtype=torch.long)
    places[used] = torch.arange(len(used))
    flat, ends = [], []
    for pair in used:
        for side in ids[pair]:
            flat += side
            ends.append(len(flat))
    tensors = {"ids": torch.tensor(flat, dtype=torch.int32), "ends": torch.tensor(ends, dtype=torch.int32)}
    for name, one in best.items():
        tensors[f"{name}.values"] = one.values.T.float().cpu()
        tensors[f"{name}.pairs"] = places[one.pairs.T.cpu()].int()
        tensors[f"{name}.positions"] = one.positions.T.int().cpu()
        tensors[f"{name}.shares"] = (one.active / max(one.tokens, 1)).float().cpu()
    dictionary.to("cpu")
    return Contexts(tensors, dictionary.digest)


class _Best:
    """The strongest contexts of the features of a sublayer so far [C, F]."""

    def __init__(self, width: int, device: torch.device | str) -> None:
        self.values = torch.zeros(CONTEXTS, width, device=device)
        self.pairs = torch.zeros(CONTEXTS, width, dtype=torch.long, device=device)
        self.positions = torch.zeros(CONTEXTS, width, dtype=torch.long, device=device)
        self.active = torch.zeros(width, dtype=torch.long, device=device)
        self.tokens = 0

    def add(self, numbers: Tensor, f: Tensor, is_token: Tensor) -> None:
        """Add the values f [B, T, F] of pairs with these numbers [B]; they are 0 at padding."""
        self.active += (f > 0).sum((0, 1))
        self.tokens += int(is_token.sum())
        values, positions = f.max(1)  # [B, F]
        values = torch.cat([self.values, values])
        pairs = torch.cat([self.pairs, numbers[:, None].expand_as(positions)])
        positions = torch.cat([self.positions, positions])
        self.values, order = values.topk(CONTEXTS, dim=0)
        self.pairs, self.positions = pairs.gather(0, order), positions.gather(0, order)


def contexts_of(translator: Translator, dictionary: Dictionary, *, console: Console) -> Contexts:
    """Return the contexts of a run's dictionary, which are found in the text that it was learned from if necessary.

    Raises:
        UserError: they are missing, and so is the text.
    """
    folder = translator.loaded.folder
    contexts = Contexts.load(folder, dictionary)
    if contexts is None:
        files = dictionary.configuration.text
        if not files:
            what = "has no contexts of features"
            raise UserError(what, file=folder.path, fix="Find them with `learn_features`.")
        pairs = text_pairs(translator, files, console=console)
        contexts = find_contexts(translator, dictionary, pairs, console=console)
        contexts.save(folder)
    return contexts
