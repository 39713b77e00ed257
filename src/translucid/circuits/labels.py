"""What units mean, measured: how well one of them tells where a label has a value.

A unit is positive where its value is at least a threshold. F1 = 2 TP / (TP + FP + P) compares that with the words whose
label has the value, among all words that have the label; a sense competes with the other senses of its word only. Unit
and threshold are chosen on the even sentences, and measured on the odd ones.

The units are features, neurons, and channels of heads before W^O, of which either sign counts. Beside them are a linear
probe, ridge regression on all D numbers of the input of the best sublayer, and the F1 of *always*.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from translucid.api.translator import Translator
from translucid.attention.points import points_of, recording
from translucid.circuits.dictionary import INPUT, Dictionary, circuits_folder, sublayers_of
from translucid.decoding.maps import forced_features
from translucid.decoding.pair_scores import BATCH_TOKENS, paired_batches
from translucid.evaluation.thresholds import Flags, Values, best_thresholds, f1_score
from translucid.ground.atomic import write_atomically
from translucid.ground.console import Console, progress_bar, table_of
from translucid.ground.errors import UserError
from translucid.inspection.words import word_spans
from translucid.runs.run_folder import RunFolder

if TYPE_CHECKING:
    from rich.table import Table

FILE = "labels.json"
MIN_POSITIVES = 50
"""The smallest number of words of each half whose label has a value."""
BLOCK = 256
"""The number of units whose values are sorted at a time."""
RIDGE = 1.0
SITES = ("source", "read", "written")
"""Where the units of a word are: of a source word, at its last token; of a target word, where the decoder reads its
last token, or where it writes its first."""
KINDS = ("feature", "neuron", "channel", "probe")
HEADS = ".heads"
CLEAR_F1, CLEAR_GAIN = 0.5, 0.2
"""A feature has a label if its F1 among all words, and what it is better than *always*, are at least these."""
Labels: TypeAlias = Mapping[str, str]


class LabeledPair(NamedTuple):
    """A sentence pair, and the labels of the words of each side that white space separates."""

    source: str
    target: str
    source_labels: Sequence[Labels]
    target_labels: Sequence[Labels]


class Unit(NamedTuple):
    """A unit, how it was chosen, and how good it is."""

    name: str
    """`decoder.1.feature.412`, `decoder.1.neuron.17`, `decoder.1.cross.head.3.channel.5`; of a probe, its sublayer."""
    sign: int
    """1, or -1 if a word is positive where the negative value is at least the threshold."""
    threshold: float
    f1: float
    """On the other half."""
    candidates: int
    """The number of units among which it was chosen."""


class Meaning(NamedTuple):
    """How well the best unit of each kind tells a value of a label."""

    site: str
    label: str
    value: str
    positives: int
    """The number of words of the second half whose label has the value."""
    words: int
    """The number of words of the second half that have the label."""
    always: float
    """The F1 of *always*."""
    units: Mapping[str, Unit]
    """The best unit of each of `KINDS`."""

    def __str__(self) -> str:
        """Name the value: `topic food`, `sense play: tocar`."""
        return f"{self.label} {self.value}"


@dataclass(frozen=True)
class Meanings:
    """The labels of the features of a dictionary."""

    dictionary: str
    """The fingerprint of the dictionary."""
    rows: Sequence[Meaning]
    features: Mapping[str, Meaning]
    """What each feature with a clear label tells best among all words of a site; `units` has only itself."""

    @classmethod
    def load(cls, run: RunFolder | Path, dictionary: Dictionary) -> Meanings | None:
        """Read what was measured for the dictionary of a run; None if nothing was.

        Raises:
            UserError: the file is damaged.
        """
        file = circuits_folder(run) / FILE
        if not file.exists():
            return None
        try:
            facts = json.loads(file.read_text(encoding="utf-8"))
            rows = [_meaning(row) for row in facts["rows"]]
            features = {name: _meaning(row) for name, row in facts["features"].items()}
            meanings = cls(facts["dictionary"], rows, features)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UserError("is damaged or not ours", file=file, fix="Delete it, and measure again.") from error
        return meanings if meanings.dictionary == dictionary.digest else None

    def to_json(self) -> dict[str, Any]:
        """Return them as plain values."""
        features = {name: _plain(row) for name, row in self.features.items()}
        return {"dictionary": self.dictionary, "rows": [_plain(row) for row in self.rows], "features": features}

    def save(self, run: RunFolder | Path) -> None:
        """Write `labels.json` into the run."""
        text = json.dumps(self.to_json(), ensure_ascii=False, indent=1)
        write_atomically(circuits_folder(run) / FILE, text.encode())

    def render(self) -> Table:
        """Return a table of all values, with the F1 of the best unit of each kind."""
        table = table_of("where", "label", "value", "feature", figures=("words", "always", *KINDS), overflow="fold")
        for row in self.rows:
            scores = [f"{row.units[kind].f1:.2f}" for kind in KINDS]
            name = row.units["feature"].name
            table.add_row(row.site, row.label, row.value, name, f"{row.positives:,}", f"{row.always:.2f}", *scores)
        return table


def labels_of(meanings: Meanings | None) -> dict[str, str]:
    """Return the labels of features by their names; none if nothing was measured."""
    return {name: str(meaning) for name, meaning in meanings.features.items()} if meanings else {}


def _plain(row: Meaning) -> dict[str, Any]:
    return {**row._asdict(), "units": {kind: unit._asdict() for kind, unit in row.units.items()}}


def _meaning(row: Mapping[str, Any]) -> Meaning:
    if row["site"] not in SITES:
        raise ValueError(row["site"])
    return Meaning(**{**row, "units": {kind: Unit(**unit) for kind, unit in row["units"].items()}})


def read_labeled(file: Path) -> list[LabeledPair]:
    """Read pairs with labels, as those of the phrasebook.

    Raises:
        UserError: a line has no labels, or not one for each word.
    """
    pairs = []
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError("can't be read", file=file, fix="Give a file of JSON lines.") from error
    for number, line in enumerate(lines, 1):
        try:
            record = json.loads(line)
            source_labels = list(map(dict, record["source_labels"]))
            target_labels = list(map(dict, record["target_labels"]))
            pair = LabeledPair(record["source"], record["target"], source_labels, target_labels)
            lengths = len(pair.source.split()), len(pair.target.split())
            complete = lengths == (len(pair.source_labels), len(pair.target_labels))
        except (ValueError, KeyError, TypeError, AttributeError):
            complete = False
        if not complete:
            fix = "Give a file with labels of words, such as one of the phrasebook."
            raise UserError("has no label for each word", file=file, line=number, fix=fix)
        pairs.append(pair)
    return pairs


class Group(NamedTuple):
    """Words of a site that have a label, and its values. The words of a sense are those of one word."""

    label: str
    names: Sequence[str]
    words: NDArray[np.intp]
    """The words [n] among those of the site."""
    positive: Flags
    """[c, n], whether the label has each value."""
    first: Flags
    """[n], whether a word belongs to the half on which units are chosen."""

    def half(self, first: bool) -> tuple[NDArray[np.intp], Flags]:
        """Return the words of a half [k], and whether their label has each value [c, k]."""
        chosen = self.first if first else ~self.first
        return self.words[chosen], self.positive[:, chosen]


def groups_of(labels: Sequence[Labels], first: Flags, min_positives: int = MIN_POSITIVES) -> list[Group]:
    """Return the labels of words with those values that enough words of each half have."""
    by_group: dict[tuple[str, str], dict[str, list[int]]] = {}
    for i, word in enumerate(labels):
        for label, value in word.items():
            group = value.partition(":")[0] if label == "sense" else ""
            by_group.setdefault((label, group), {}).setdefault(value, []).append(i)
    groups = []
    for (label, _), rows_of in sorted(by_group.items()):
        words = np.array(sorted(i for rows in rows_of.values() for i in rows), np.intp)
        names = []
        for name, rows in sorted(rows_of.items()):
            in_first = int(first[rows].sum())
            if min(in_first, len(rows) - in_first) >= min_positives and len(rows) < len(words):
                names.append(name)
        if names:
            positive = np.array([np.isin(words, rows_of[name]) for name in names])
            groups.append(Group(label, names, words, positive, first[words]))
    return groups


def among_all(groups: Sequence[Group], first: Flags) -> tuple[Sequence[tuple[str, str]], Group]:
    """Return the values of all labels, and a group of all words, in which those without a label are not positive."""
    values, rows = [], []
    for group in groups:
        for name, positive in zip(group.names, group.positive, strict=True):
            values.append((group.label, name))
            row = np.zeros(len(first), bool)
            row[group.words[positive]] = True
            rows.append(row)
    words = np.arange(len(first))
    return values, Group("", [name for _, name in values], words, np.array(rows).reshape(-1, len(first)), first)


@dataclass
class SiteStates:
    """The words of a site: their labels, and what the model computes there."""

    labels: list[Labels]
    first: list[bool]
    states: dict[str, list[torch.Tensor]]
    """Rows of the points, by name: inputs of sublayers [D], and channels of heads [H d]."""
    heads: dict[str, int]
    """H by point."""

    def stacked(self, name: str) -> torch.Tensor:
        """Return all rows of a point [n, D]."""
        return torch.cat(self.states[name])


@torch.inference_mode()
def collect(
    translator: Translator, dictionary: Dictionary, pairs: Sequence[LabeledPair], console: Console
) -> dict[str, SiteStates]:
    """Return the words of all sites.

    Raises:
        UserError: no pair can be read by the model.
    """
    model, tokenizer = translator.model, translator.tokenizer
    names = [f"{name}{INPUT}" for name in dictionary.sublayers]
    names += [name for name in points_of(model) if name.endswith(HEADS)]
    sites = {site: SiteStates([], [], {}, {}) for site in SITES}
    encoded = translator.pipeline.pairs([(pair.source, pair.target) for pair in pairs])
    fitting = [i for i, pair in enumerate(encoded) if pair.longest <= translator.pipeline.longest]
    with progress_bar(console, "reading labeled pairs", len(fitting)) as advance:
        for batch, source, target in paired_batches(
            [encoded[i].ids for i in fitting], model.pad, translator.device, BATCH_TOKENS
        ):
            with recording(model, names) as record:
                forced_features(model, model.encode(source), target)
            for row, place in enumerate(batch):
                i = fitting[place]
                source_ids, target_ids = encoded[i].ids
                source_spans = _spans(tokenizer.source_pieces(source_ids), len(tokenizer.source_opening))
                target_spans = _spans(tokenizer.target_pieces(target_ids), len(tokenizer.target_opening))
                if len(source_spans) != len(pairs[i].source_labels) or len(target_spans) != len(pairs[i].target_labels):
                    continue
                positions = {
                    "source": [end - 1 for _, end in source_spans],
                    "read": [end for _, end in target_spans],  # the input of position i + 1 is target token i
                    "written": [start for start, _ in target_spans],
                }
                for site, states in sites.items():
                    states.labels += pairs[i].source_labels if site == "source" else pairs[i].target_labels
                    states.first += [i % 2 == 0] * len(positions[site])
                    stack = "encoder" if site == "source" else "decoder"
                    for name in names:
                        if name.startswith(stack):
                            tensor = record[name][row]
                            if name.endswith(HEADS):
                                states.heads[name] = len(tensor)
                                tensor = tensor.transpose(0, 1).flatten(1)  # [H, T, d] to [T, H d]
                            states.states.setdefault(name, []).append(tensor[positions[site]].float().cpu())
            advance(len(batch))
    if not sites["source"].labels:
        raise UserError("no labeled pair can be read by the model", fix="Give pairs of its languages.")
    return sites


def _spans(pieces: Sequence[str], opening: int) -> list[tuple[int, int]]:
    """Return the words of a text, without its opening and its end token."""
    return [(start, end) for _, start, end in word_spans(pieces, opening)][opening:-1]


class Block(NamedTuple):
    """Values of units [m, n] for the words of a site."""

    kind: str
    names: Sequence[str]
    sign: int
    values: Values


def blocks(site: SiteStates, translator: Translator, dictionary: Dictionary) -> Iterator[Block]:
    """Yield the values of all units of a site, `BLOCK` units at a time."""
    sublayers = sublayers_of(translator.model)
    for point in site.states:
        states = site.stacked(point)
        if point.endswith(INPUT):
            name = point.removesuffix(INPUT)
            transcoder = dictionary.transcoders[name].cpu()
            parts = [_top(transcoder.features(chunk), transcoder.k) for chunk in states.split(1024)]
            values, numbers = (torch.cat(tensors) for tensors in zip(*parts, strict=True))
            for start in range(0, transcoder.width, BLOCK):
                stop = min(start + BLOCK, transcoder.width)
                block = torch.zeros(len(states), stop - start + 1)  # the last column is for all other features
                columns = torch.where((numbers >= start) & (numbers < stop), numbers - start, stop - start)
                block.scatter_(1, columns, values)
                names = [f"{name}.feature.{i}" for i in range(start, stop)]
                yield Block("feature", names, 1, block[:, :-1].T.contiguous().numpy())
            sublayer = sublayers[name]
            with torch.inference_mode():
                neurons = sublayer.neurons(states.to(sublayer.inner.weight.device)).float().cpu()
            yield from _dense("neuron", [f"{name}.neuron.{i}" for i in range(neurons.size(1))], neurons, (1,))
        else:
            attention = point.removesuffix(HEADS)
            names = [
                f"{attention}.head.{head}.channel.{channel}"
                for head in range(site.heads[point])
                for channel in range(states.size(1) // site.heads[point])
            ]
            yield from _dense("channel", names, states, (1, -1))


def _top(f: torch.Tensor, k: int) -> tuple[torch.Tensor, torch.Tensor]:
    top = f.topk(k, dim=-1)
    return top.values, top.indices


def _dense(kind: str, names: Sequence[str], values: torch.Tensor, signs: Sequence[int]) -> Iterator[Block]:
    for start in range(0, values.size(1), BLOCK):
        columns = values[:, start : start + BLOCK].T.contiguous().numpy()
        for sign in signs:
            yield Block(kind, names[start : start + BLOCK], sign, sign * columns)


class _Best(NamedTuple):
    chosen: float
    """The F1 on the first half."""
    unit: Unit


def measure_labels(
    translator: Translator,
    dictionary: Dictionary,
    pairs: Sequence[LabeledPair],
    *,
    console: Console,
    min_positives: int = MIN_POSITIVES,
) -> Meanings:
    """Measure what the units of a translator tell about labels.

    Args:
        translator: a translator with the PyTorch engine.
        dictionary: its dictionary.
        pairs: pairs with labels.
        console: shows the progress.
        min_positives: the smallest number of words of each half.

    Raises:
        UserError: no pair can be read by the model, or no value is frequent enough.
    """
    rows: list[Meaning] = []
    features: dict[str, tuple[float, Meaning]] = {}
    for site, states in collect(translator, dictionary, pairs, console).items():
        first = np.array(states.first)
        groups = groups_of(states.labels, first, min_positives)
        values, everything = among_all(groups, first)
        best = [[dict[str, _Best]() for _ in group.names] for group in groups]
        candidates = dict.fromkeys(KINDS, 0)
        with progress_bar(console, f"units of words {site}", None) as advance:
            for block in blocks(states, translator, dictionary):
                candidates[block.kind] += len(block.names)
                for group, bests in zip(groups, best, strict=True):
                    _improve(group, block, bests)
                if block.kind == "feature" and values:
                    _label_features(site, values, everything, block, features)
                advance(len(block.names))
        for group, bests in zip(groups, best, strict=True):
            _probe(group, states, bests)
            for name, by_kind in zip(group.names, bests, strict=True):
                units = {kind: b.unit._replace(candidates=candidates[kind] or 1) for kind, b in by_kind.items()}
                rows.append(_row(site, group, name, units))
    if not rows:
        raise UserError(f"no label has {min_positives} words in each half", fix="Give more labeled pairs.")
    return Meanings(dictionary.digest, rows, {name: meaning for name, (_, meaning) in features.items()})


def _row(site: str, group: Group, name: str, units: Mapping[str, Unit]) -> Meaning:
    words, positive = group.half(first=False)
    count = int(positive[list(group.names).index(name)].sum())
    return Meaning(site, group.label, name, count, len(words), _always(count, len(words)), units)


def _always(positives: int, words: int) -> float:
    return 2 * positives / (words + positives)


def _improve(group: Group, block: Block, bests: Sequence[dict[str, _Best]]) -> None:
    """Replace the best units of a group by those of a block that are better on the first half."""
    words, positive = group.half(first=True)
    others, expected = group.half(first=False)
    f1, thresholds = best_thresholds(block.values[:, words], positive)
    for value, by_kind in enumerate(bests):
        i = int(f1[value].argmax())
        if block.kind not in by_kind or f1[value, i] > by_kind[block.kind].chosen:
            threshold = float(thresholds[value, i])
            score = f1_score(block.values[i, others] >= threshold, expected[value])
            unit = Unit(block.names[i], block.sign, threshold, score, 1)
            by_kind[block.kind] = _Best(float(f1[value, i]), unit)


def _label_features(
    site: str,
    values: Sequence[tuple[str, str]],
    everything: Group,
    block: Block,
    features: dict[str, tuple[float, Meaning]],
) -> None:
    """Label the features of a block with what each tells best among all words of a site."""
    words, positive = everything.half(first=True)
    others, expected = everything.half(first=False)
    f1, thresholds = best_thresholds(block.values[:, words], positive)
    shares = positive.mean(1)
    gains = f1 - (2 * shares / (1 + shares))[:, None]
    for i, best in enumerate(gains.argmax(0)):
        gain, name = float(gains[best, i]), block.names[i]
        if gain < CLEAR_GAIN or (name in features and features[name][0] >= gain):
            continue
        threshold, positives = float(thresholds[best, i]), int(expected[best].sum())
        score, always = f1_score(block.values[i, others] >= threshold, expected[best]), _always(positives, len(others))
        if score >= max(CLEAR_F1, always + CLEAR_GAIN):
            unit = Unit(name, block.sign, threshold, score, 1)
            label, value = values[best]
            meaning = Meaning(site, label, value, positives, len(others), always, {"feature": unit})
            features[name] = gain, meaning


def _probe(group: Group, states: SiteStates, bests: Sequence[dict[str, _Best]]) -> None:
    """Add the best linear probe of each value."""
    words, positive = group.half(first=True)
    for point in states.states:
        if not point.endswith(INPUT):
            continue
        x = np.concatenate([states.stacked(point).numpy().astype(np.float64), np.ones((len(states.labels), 1))], 1)
        known = x[words]
        weights = np.linalg.solve(known.T @ known + RIDGE * np.eye(x.shape[1]), known.T @ positive.T)
        values = (x @ weights).T.astype(np.float32)  # [c, n]
        for i in range(len(bests)):
            block = Block("probe", [point.removesuffix(INPUT)], 1, values[i : i + 1])
            _improve(group._replace(positive=group.positive[i : i + 1]), block, bests[i : i + 1])


def mean_f1(rows: Iterable[Meaning], kind: str) -> float:
    """Return the mean F1 of the best units of a kind, or of *always*."""
    scores = [row.always if kind == "always" else row.units[kind].f1 for row in rows]
    return sum(scores) / max(len(scores), 1)
