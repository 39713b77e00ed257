"""Weights that NumPy reads from a run equal those of PyTorch and give the same CTranslate2 model."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from bitext.pair import Pair
from translucid.corpora.phrasebook import generate
from translucid.data.tokenizing.tokenizer import Tokenizer, TokenizerOptions
from translucid.engines.ctranslate2.conventions import position_rows
from translucid.engines.ctranslate2.convert import save_ctranslate2, save_weights, weights_of
from translucid.ground.errors import UserError
from translucid.models.build import build_model
from translucid.models.model_options import TransformerOptions
from translucid.runs.run_folder import RunFolder
from translucid.runs.tensor_file import save_tensors
from translucid.runs.transformer_weights import TransformerWeights

SHAPE = {"width": 16, "heads": 2, "feed_forward": 24, "encoder_layers": 2, "decoder_layers": 1}
OPTIONS = [
    {},
    {"norm": "post", "positions": "sinusoidal-halves", "first_position": 2},
    {"positions": "sinusoidal-tensor2tensor", "scale_embeddings": False, "zero_start": True},
    {"positions": "learned", "max_length": 30, "tie_output": False, "share_embeddings": False},
    {"positions": "none", "nonlinearity": "swish"},
]


@pytest.fixture(scope="module")
def tokenizer():
    pairs = [Pair(pair.source, pair.target) for pair in generate(200, max_words=6)]
    return Tokenizer.learn(pairs, TokenizerOptions(vocabulary=150), seed=1)


@pytest.mark.parametrize("changes", OPTIONS, ids=str)
def test_numpy_reads_what_pytorch_has_and_converts_it_to_the_same_file(changes, tokenizer, tmp_path):
    options = TransformerOptions(**SHAPE, **changes)
    torch.manual_seed(1)
    model = build_model(options, tokenizer.source_size, tokenizer.target_size).eval()
    run, configuration = RunFolder(tmp_path), SimpleNamespace(model=options)
    run.save_model(model, tokenizer, {})
    weights = TransformerWeights.of_run(run, configuration, tokenizer, None, position_rows(options))
    expected = weights_of(model)
    assert weights.arrays.keys() == expected.arrays.keys()
    for name, array in weights.arrays.items():
        np.testing.assert_array_equal(array, expected.arrays[name], name)
    for table, expected_table in zip(weights.positions, expected.positions, strict=True):
        np.testing.assert_allclose(table, expected_table, rtol=0, atol=1e-7)
    for quantization in ("float32", "int8"):
        save_weights(weights._replace(positions=expected.positions), tokenizer, tmp_path / "numpy", quantization)
        save_ctranslate2(model, tokenizer, tmp_path / "torch", quantization)
        for file in (tmp_path / "torch").iterdir():
            assert (tmp_path / "numpy" / file.name).read_bytes() == file.read_bytes(), file.name


def test_an_adapter_is_added_as_pytorch_adds_it(tokenizer, tmp_path):
    options = TransformerOptions(**SHAPE)
    run = RunFolder(tmp_path)
    run.save_model(build_model(options, tokenizer.source_size, tokenizer.target_size), tokenizer, {})
    name, up, down = (
        "encoder.0.feed_forward.inner.weight",
        np.ones((24, 2), np.float32),
        np.eye(2, 16, dtype=np.float32),
    )
    adapter = SimpleNamespace(arrays=lambda: {name: (up, down)}, scale=0.5)
    configuration = SimpleNamespace(model=options)
    plain = TransformerWeights.of_run(run, configuration, tokenizer, None, 8).arrays
    adapted = TransformerWeights.of_run(run, configuration, tokenizer, adapter, 8).arrays
    difference = np.zeros((24, 16), np.float32)
    difference[:, :2] = 0.5
    np.testing.assert_allclose(adapted[name] - plain[name], difference, atol=1e-6)
    assert all(np.array_equal(adapted[key], plain[key]) for key in plain if key != name)


def test_damaged_weights_are_refused_in_one_line(tokenizer, tmp_path):
    options = TransformerOptions(**SHAPE)
    run = RunFolder(tmp_path)
    model = build_model(options, tokenizer.source_size, tokenizer.target_size)

    def read(shape=options):
        return TransformerWeights.of_run(run, SimpleNamespace(model=shape), tokenizer, None, 8)

    run.save_model(model, tokenizer, {})
    with pytest.raises(UserError, match="is missing"):
        read(TransformerOptions(**SHAPE | {"encoder_layers": 3}))
    with pytest.raises(UserError, match=r"says model\.heads=4"):
        read(TransformerOptions(**SHAPE | {"heads": 4}))
    content = bytearray(run.model_file.read_bytes())
    content[-1] ^= 1
    run.model_file.write_bytes(bytes(content))
    with pytest.raises(UserError, match="checksum"):
        read()
    model.output.bias.data[0] = float("nan")
    save_tensors(run.model_file, {name: weight.data for name, weight in model.named_parameters()}, {})
    with pytest.raises(UserError, match="not finite"):
        read()
