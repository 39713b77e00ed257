"""ONNX exports without the exporter: metadata, limits, and greedy search with a fake model."""

import json
import logging
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from bitext.pair import Pair
from translucid.decoding.decoding_options import DecodingOptions
from translucid.engines.onnx import convert
from translucid.engines.onnx.convert import positions_of, state_layout
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL
from translucid.interop import onnx_export as export
from translucid.interop.onnx_export import Exported, exported_texts, quiet
from translucid.models.build import build_model
from translucid.models.model_options import AttentionOnlyOptions, RecurrentOptions, TransformerOptions

SMALL = {"width": 8, "heads": 2, "feed_forward": 8, "encoder_layers": 1, "decoder_layers": 2}
TRANSFORMER = TransformerOptions(**SMALL)
ROWS = {0: "rows"}


def sources(axis):
    return {0: "rows", axis: "source"}


def targets(axis):
    return {0: "rows", axis: "target"}


STATES = [
    (
        TRANSFORMER,
        {
            "mask": sources(3),
            "memory.0.key": sources(2),
            "memory.0.value": sources(2),
            "memory.1.key": sources(2),
            "memory.1.value": sources(2),
        },
        {
            "past.0.key": targets(2),
            "past.0.value": targets(2),
            "past.1.key": targets(2),
            "past.1.value": targets(2),
        },
    ),
    (
        AttentionOnlyOptions(width=8, encoder_layers=1, decoder_layers=2),
        {"mask": sources(2), "memory": sources(1)},
        {"past.0": targets(1), "past.1": targets(1)},
    ),
    (
        RecurrentOptions(width=8, attention="bahdanau", cell="lstm"),
        {"mask": sources(2), "memory": sources(1), "keys": sources(1)},
        {"hidden": ROWS, "cell": ROWS},
    ),
    (
        RecurrentOptions(width=8, attention="luong-general", cell="gru", input_feeding=True),
        {"mask": sources(2), "memory": sources(1), "keys": sources(1)},
        {"hidden": ROWS, "feed": ROWS},
    ),
    (RecurrentOptions(width=8, attention="none", cell="gru"), {}, {"hidden": ROWS}),
]


@pytest.mark.parametrize(("options", "fixed", "carried"), STATES, ids=lambda value: getattr(value, "kind", ""))
def test_states_are_named_tensors_and_come_back(options, fixed, carried):
    model = build_model(options, 20, 20).eval()
    flat = state_layout(model)
    assert [*map(tuple, flat.fixed)] == [*fixed.items()] and [*map(tuple, flat.carried)] == [*carried.items()]
    assert flat.names == [*fixed, *carried] == [part.name for part in flat.specs]
    ids = torch.tensor([[4, 5, 3], [6, 3, 0]])
    with torch.no_grad():
        state = model.start(model.encode(ids))
        for token in (2, 7):
            tokens = torch.tensor([token, token])
            tensors = flat.tensors(state)
            assert len(tensors) == len(flat.specs) and {len(tensor) for tensor in tensors} == {2}
            expected, state = model.step(tokens, state)
            logits, after = model.step(tokens, flat.state(tensors))
            torch.testing.assert_close(logits, expected)
            for tensor, expected_tensor in zip(flat.tensors(after), flat.tensors(state), strict=True):
                torch.testing.assert_close(tensor, expected_tensor)


@pytest.mark.parametrize(
    ("options", "positions"),
    [
        (TRANSFORMER, 1024),
        (TransformerOptions(**SMALL, positions="learned", max_length=60), 60),
        (TransformerOptions(**SMALL, positions="none"), None),
        (STATES[2][0], None),
    ],
    ids=str,
)
def test_a_table_of_positions_limits_lengths(options, positions):
    assert positions_of(build_model(options, 20, 20)) == positions


class Tokens:
    """A tokenizer that encodes one token per letter."""

    def __init__(self, joint):
        self.joint = joint
        self.source_size, self.target_size, self.source_opening, self.target_opening = 20, 21, (7,), (8, 9)

    def encode_source(self, texts):
        return [[10] * len(text) for text in texts]

    def decode(self, tokens):
        return str(tokens)

    def save(self, folder):
        (folder / "tokenizer.model").touch()


@pytest.mark.parametrize(("joint", "longest", "accepted"), [(True, 50, 50), (False, 2000, 1024)])
def test_what_describes_an_exported_model(tmp_path, monkeypatch, joint, longest, accepted):
    model = build_model(TRANSFORMER, 20, 20)
    quantized = []

    class Graphs:
        def __init__(self, model):
            self.layout = state_layout(model)

        def save_encoder(self, file):
            file.touch()

        save_decoder = save_encoder

    monkeypatch.setattr(export, "refuse_without_packages", lambda what: None)
    monkeypatch.setattr(convert, "TranslatorGraphs", Graphs)
    monkeypatch.setattr(export, "_quantize", lambda file: quantized.append(file.name))
    tokenizer, out = Tokens(joint), tmp_path / "out"
    checked_files = []

    def check(folder):
        checked_files.append(sorted(file.name for file in folder.iterdir()))

    arguments = {"longest": longest, "languages": ("en", "es")}
    export.export_onnx(model, tokenizer, out, "int8" if joint else "float32", **arguments, check=check)
    assert quantized == (["encoder.onnx", "decoder.onnx"] if joint else [])
    assert checked_files == [["decoder.onnx", "encoder.onnx", "model.json", "tokenizer.model"]]
    metadata = json.loads((out / "model.json").read_text())
    parts = [*STATES[0][1], *STATES[0][2]]
    files = ("tokenizer.model", "tokenizer.model") if joint else ("source.model", "target.model")
    options = metadata.pop("model")
    assert options["kind"] == "transformer" and options["width"] == 8 and not {"dropout", "elmo"} & {*options}
    assert metadata == {
        "format": "translucid-onnx",
        "version": 1,
        "weights": "int8" if joint else "float32",
        "source": {
            "language": "en",
            "tokenizer": files[0],
            "vocabulary": 20,
            "opening": [7],
            "longest": accepted,
        },
        "target": {"language": "es", "tokenizer": files[1], "vocabulary": 21, "opening": [8, 9], "longest": 1024},
        "special": {"pad": 0, "unknown": 1, "start": 2, "end": 3},
        "never": [0, 1, 2],
        "encoder": {"file": "encoder.onnx", "inputs": ["ids"], "outputs": parts},
        "decoder": {
            "file": "decoder.onnx",
            "inputs": ["tokens", *parts],
            "outputs": ["logits", *(f"after.{name}" for name in STATES[0][2])],
        },
        "carried": {name: f"after.{name}" for name in STATES[0][2]},
    }
    with pytest.raises(UserError, match="is there already"):
        export.export_onnx(model, tokenizer, out, "float32", **arguments)
    export.export_onnx(model, tokenizer, out, "float32", **arguments, overwrite=True)


@pytest.mark.parametrize(("weights", "fits"), [(500_000_000, True), (500_000_001, False)])
def test_a_graph_has_at_most_two_gigabytes(tmp_path, monkeypatch, weights, fits):
    class FitsError(Exception):
        """Raised instead of writing graphs: the model was accepted."""

    class Graphs:
        def __init__(self, model):
            pass

        def save_encoder(self, file):
            raise FitsError

    monkeypatch.setattr(export, "refuse_without_packages", lambda what: None)
    monkeypatch.setattr(convert, "TranslatorGraphs", Graphs)
    model = SimpleNamespace(parameters=lambda: [SimpleNamespace(numel=lambda: weights)])
    message = r"out: the model's weights take 2\.0 GB, a file of ONNX holds 2 GB\. Use `export_ctranslate2`"
    with pytest.raises(FitsError if fits else UserError, match=None if fits else message):
        export.export_onnx(model, Tokens(True), tmp_path / "out", "float32", longest=9)
    assert [*tmp_path.iterdir()] == []


def test_weights_of_products_become_int8(tmp_path, monkeypatch):
    quantization = pytest.importorskip("onnxruntime.quantization")
    calls = []

    def quantize(file, smaller, operators, **options):
        calls.append((file.name, operators, options))
        smaller.write_text("small")

    monkeypatch.setattr(quantization, "quantize_dynamic", quantize)
    (tmp_path / "a.onnx").write_text("large")
    export._quantize(tmp_path / "a.onnx")
    assert [(file.name, file.read_text()) for file in tmp_path.iterdir()] == [("a.onnx", "small")]
    options = {"per_channel": True, "reduce_range": True, "weight_type": quantization.QuantType.QInt8}
    assert calls == [("a.onnx", ["MatMul", "Gemm", "Gather"], options)]


def test_messages_of_the_exporter_are_suppressed_and_others_are_not():
    before = logging.root.manager.disable
    with quiet():
        warnings.warn("not seen", stacklevel=1)  # if it were seen, it would be an error in these tests
        assert not logging.getLogger("x").isEnabledFor(logging.WARNING)
        assert logging.getLogger("x").isEnabledFor(logging.ERROR)
    assert logging.root.manager.disable == before


class ScriptedModel(Exported):
    """A model that prefers `wanted`'s tokens, one after the other; records the tokens that it gets."""

    def __init__(self, *preferred, opening=(), longest=None):
        self.preferred, self.inputs = preferred, []
        special = dict(SPECIAL._asdict())
        target = {"opening": list(opening), "longest": longest}
        self.facts = {"special": special, "target": target, "never": [0, 1, 2]}

    def start(self, ids):
        self.source = ids.tolist()
        return {}

    def step(self, tokens, state):
        logits = np.zeros((len(tokens), 9), np.float32)
        logits[:, :3] = 9  # special tokens, which are never written, have the highest logits
        logits[:, 3] = 1
        preferred = self.preferred[min(len(self.inputs), len(self.preferred) - 1)]
        for row, token in zip(logits, preferred, strict=True):
            row[token] = 2
        self.inputs.append(tokens.tolist())
        return logits, state


def greedy(model, sentences, **options):
    defaults = {"beam": 1, "min_length": 0, "max_length_ratio": 0, "max_length_extra": 4}
    return model.greedy(sentences, DecodingOptions(**defaults | options))


def test_a_greedy_search_ends_with_the_last_sentence():
    model = ScriptedModel((5, 3), (6, 7), (3, 7))
    assert greedy(model, [[4, 4, 3], [4, 3]]) == [[5, 6], []]
    assert model.source == [[4, 4, 3], [4, 3, 0]]
    assert model.inputs == [[2, 2], [5, 3], [6, 7]]


def test_a_greedy_search_keeps_its_limits():
    assert greedy(ScriptedModel((5,)), [[4, 3]]) == [[5] * 4]
    assert greedy(ScriptedModel((5, 5)), [[4, 4, 3], [4, 3]], max_length_ratio=1, max_length_extra=1) == [
        [5] * 3,
        [5] * 2,
    ]
    assert greedy(ScriptedModel((5,), longest=3), [[4, 3]]) == [[5] * 2]
    model = ScriptedModel((5,), opening=(7, 8))
    # The tokens of the opening, and one more.
    assert greedy(model, [[4, 3]], max_length_extra=1) == [[7, 8, 5]]
    assert model.inputs == [[2], [7], [8]]


def test_a_greedy_search_writes_at_least_so_many_tokens_behind_the_opening():
    assert greedy(ScriptedModel((3,)), [[4, 3]]) == [[]]
    for shortest in (0, 1, 2):
        model = ScriptedModel((3,), opening=(7,))
        assert greedy(model, [[4, 3]], min_length=shortest) == [[7] + [4] * shortest]


def test_texts_are_translated_32_at_a_time(tmp_path, monkeypatch):
    calls = []

    class Echo:
        def __init__(self, folder):
            assert folder == tmp_path

        def greedy(self, sentences, options):
            calls.append((len(sentences), options))
            return sentences

    monkeypatch.setattr(export, "Exported", Echo)
    pairs = [Pair("a" * (1 + number), "") for number in range(70)]
    texts = exported_texts(tmp_path, Tokens(True), pairs, 3)
    assert texts == [str([10] * (1 + number) + [3]) for number in range(70)]
    options = DecodingOptions(beam=1, max_loops=0)
    assert calls == [(32, options), (32, options), (6, options)]
