"""What units mean, against an exhaustive search over units, signs and thresholds."""

import json
from random import Random

import numpy as np
import pytest
import torch

from tests.inspection.conftest import untrained  # noqa: F401 - a fixture
from translucid import Translator, UserError
from translucid.attention.points import recording
from translucid.circuits.labels import (
    LabeledPair,
    Meanings,
    groups_of,
    measure_labels,
    read_labeled,
)
from translucid.decoding.maps import forced_features
from translucid.evaluation.thresholds import best_thresholds
from translucid.ground.console import Console


def f1(predicted, positive) -> float:
    true = sum(p and q for p, q in zip(predicted, positive, strict=True))
    return 2 * true / (sum(predicted) + sum(positive))


@pytest.mark.parametrize("seed", range(4))
def test_the_best_thresholds_are_those_of_an_exhaustive_search(seed):
    random = np.random.default_rng(seed)
    values = random.normal(size=(6, 40)).astype(np.float32)
    values[1] = np.maximum(values[1], 0)  # a sparse feature
    values[2] = values[2].round()  # ties
    values[3] = 0
    values[4] = -np.abs(values[4])
    values[5, ::2] = -0.0
    values[5, 1::2] = 0.0
    positive = random.random((3, 40)) < [[0.1], [0.5], [0.9]]
    scores, thresholds = best_thresholds(values, positive)
    for i, unit in enumerate(values):
        for c, expected in enumerate(positive):
            best = max(f1(unit >= threshold, expected) for threshold in unit)
            assert scores[c, i] == pytest.approx(best, abs=1e-6)
            assert f1(unit >= thresholds[c, i], expected) == pytest.approx(best, abs=1e-6)


@pytest.fixture
def pairs() -> list[LabeledPair]:
    random = Random(4)
    source, target = ["I", "like", "soccer.", "She", "reads", "book."], ["Me", "gusta", "el", "Ella", "lee", "libro."]
    labeled = []
    for _ in range(40):
        sides = random.choices(source, k=5), random.choices(target, k=4)
        labels = []
        for words in sides:
            side = []
            for word in words:
                label = {"part of speech": random.choice(["noun", "verb"])}
                if word[0] in "sSlL":
                    label |= {"sense": f"{word[0].lower()}: {random.choice('ab')}"}
                side.append(label)
            labels.append(side)
        labeled.append(LabeledPair(" ".join(sides[0]), " ".join(sides[1]), *labels))
    return labeled


def test_units_are_the_best_of_an_exhaustive_search(run, dictionary, pairs):
    """The search reads each pair alone, and tries each unit, sign and value as a threshold."""
    translator = Translator.load(run, "cpu", "torch")
    meanings = measure_labels(translator, dictionary, pairs, console=Console(stderr=True), min_positives=5)
    values, words = _read_alone(translator, dictionary, pairs)
    assert {row.site for row in meanings.rows} == {"source", "read", "written"}
    senses = 0
    for row in meanings.rows:
        universe = [
            (number, label[row.label], unit_values)
            for number, label, unit_values in zip(*words[row.site], values[row.site], strict=True)
            if row.label in label and (row.label != "sense" or label["sense"][0] == row.value[0])
        ]
        senses += row.label == "sense"
        halves = [[entry for entry in universe if entry[0] % 2 == half] for half in (0, 1)]
        expected = [np.array([value == row.value for _, value, _ in half]) for half in halves]
        assert row.positives == expected[1].sum() and row.words == len(halves[1])
        assert row.always == pytest.approx(f1(np.ones(row.words, bool), expected[1]))
        for kind in ("feature", "neuron", "channel"):
            unit = row.units[kind]
            matrices = [np.stack([by_kind[kind] for _, _, by_kind in half]) for half in halves]
            signs = (1, -1) if kind == "channel" else (1,)
            best = 0.0
            for i in range(matrices[0].shape[1]):
                for sign in signs:
                    column = sign * matrices[0][:, i]
                    best = max(best, *(f1(column >= threshold, expected[0]) for threshold in column))
            column = _column(unit.name, matrices[0].shape[1], kind)
            chosen = unit.sign * matrices[0][:, column] >= unit.threshold - 1e-5
            assert f1(chosen, expected[0]) == pytest.approx(best, abs=1e-6), row
            other = f1(unit.sign * matrices[1][:, column] >= unit.threshold - 1e-5, expected[1])
            assert unit.f1 == pytest.approx(other, abs=0.02)
            count = {"feature": 64, "neuron": 32, "channel": 32 if row.site == "source" else 64}[kind]
            assert unit.candidates == count
        assert 0 <= row.units["probe"].f1 <= 1
    assert senses


def _column(name: str, units: int, kind: str) -> int:
    if kind != "channel":
        return int(name.rpartition(".")[2])
    attention, _, number = name.partition(".head.")
    head, _, channel = number.partition(".channel.")
    return int(head) * 8 + int(channel) + (16 if attention.endswith("cross") else 0)


def _read_alone(translator, dictionary, pairs):
    """Return the values of all units [units] at each word, and its pair and labels, by site."""
    model = translator.model
    values = {"source": [], "read": [], "written": []}
    words = {site: ([], []) for site in values}
    for number, pair in enumerate(pairs):
        (encoded,) = translator.pipeline.pairs([(pair.source, pair.target)])
        source, target = encoded.ids
        names = ["encoder.0.feed_forward_input", "decoder.0.feed_forward_input"]
        names += ["encoder.0.self.heads", "decoder.0.self.heads", "decoder.0.cross.heads"]
        with torch.no_grad(), recording(model, names) as record:
            forced_features(model, model.encode(torch.tensor([source])), torch.tensor([target]))
        pieces = translator.tokenizer.source_pieces(source), translator.tokenizer.target_pieces(target)
        starts = [[i for i, piece in enumerate(side[:-1]) if piece.startswith("▁")] for side in pieces]
        for site in values:
            side = int(site != "source")
            stack = ("encoder", "decoder")[side]
            x = record[f"{stack}.0.feed_forward_input"][0]
            heads = [record[name][0] for name in names[2:] if name.startswith(stack)]
            for i, labels in enumerate(pair[2 + side]):
                first = starts[side][i]
                end = [*starts[side], len(pieces[side]) - 1][i + 1]
                position = {"source": end - 1, "read": end, "written": first}[site]
                state = x[position]
                by_kind = {
                    "feature": dictionary.transcoders[f"{stack}.0"].features(state),
                    "neuron": model.get_submodule(f"{stack}.0.feed_forward").inner(state).relu(),
                    "channel": torch.cat([channels[:, position].flatten() for channels in heads]),
                }
                values[site].append({kind: tensor.detach().numpy() for kind, tensor in by_kind.items()})
                words[site][0].append(number)
                words[site][1].append(labels)
    return values, words


def test_a_feature_that_is_active_for_one_value_has_its_label(run, dictionary):
    """A planted feature reads a direction in which the input of one word is the largest."""
    translator = Translator.load(run, "cpu", "torch")
    sentences = ["I like soccer.", "She reads a book."]
    labeled = []
    for i in range(24):
        source, target = sentences[i // 2 % 2], "Me gusta el fútbol."
        labels = [
            {"topic": "sports" if word == "soccer." else "other"} if len(word) > 4 else {} for word in source.split()
        ]
        labeled.append(LabeledPair(source, target, labels, [{}] * 4))
    states = []
    for encoded in translator.pipeline.pairs([(sentence, "Me gusta") for sentence in sentences]):
        with torch.no_grad(), recording(translator.model, ["encoder.0.feed_forward_input"]) as record:
            translator.model.encode(torch.tensor([encoded.source]))
        states.append(record["encoder.0.feed_forward_input"][0])
    soccer = len(states[0]) - 2
    is_soccer = torch.zeros(len(states[0]) + len(states[1]))
    is_soccer[soccer] = 1
    transcoder = dictionary.transcoders["encoder.0"]
    with torch.no_grad():
        transcoder.encoder_weight[7] = 1000 * torch.linalg.pinv(torch.cat(states)) @ is_soccer
        transcoder.encoder_bias[7] = 1000 * (0.01 - float(transcoder.encoder_weight[7] @ states[0][soccer]) / 1000)
    meanings = measure_labels(translator, dictionary, labeled, console=Console(stderr=True), min_positives=3)
    meaning = meanings.features["encoder.0.feature.7"]
    assert (meaning.site, meaning.label, meaning.value) == ("source", "topic", "sports")
    assert meaning.units["feature"].f1 == 1 and meaning.units["feature"].threshold > 0
    assert meaning.words == 12 * 7 / 2 and meaning.always == 2 * 6 / (42 + 6)  # all words, with a label or without
    meanings.save(run)
    assert Meanings.load(run, dictionary) == meanings
    assert meanings.render().row_count == len(meanings.rows)
    transcoder.encoder_bias[3] += 1
    dictionary.__dict__.pop("digest", None)
    assert Meanings.load(run, dictionary) is None


def test_values_that_are_rare_in_a_half_are_left_out():
    labels = [{"gender": "f"}] * 6 + [{"gender": "m"}] * 6 + [{}] * 3
    first = np.array([True, False] * 3 + [True] * 5 + [False] + [True, False, True])
    (group,) = groups_of(labels, first, 2)
    assert group.names == ["f"] and len(group.words) == 12 and group.positive.sum() == 6


@pytest.mark.parametrize(
    "line",
    [
        "{}",
        "[]",
        "no",
        '{"source": "a b", "target": "c", "source_labels": [{}], "target_labels": [{}]}',
        '{"source": "a", "target": "c", "source_labels": [3], "target_labels": [{}]}',
    ],
)
def test_lines_without_labels(tmp_path, line):
    good = {"source": "a", "target": "b", "source_labels": [{"gender": "f"}], "target_labels": [{}]}
    file = tmp_path / "x.jsonl"
    file.write_text(json.dumps(good) + "\n" + line + "\n")
    with pytest.raises(UserError, match="has no label for each word"):
        read_labeled(file)
    file.write_text(json.dumps(good) + "\n")
    assert read_labeled(file) == [LabeledPair("a", "b", [{"gender": "f"}], [{}])]
    with pytest.raises(UserError, match="can't be read"):
        read_labeled(tmp_path / "none.jsonl")
