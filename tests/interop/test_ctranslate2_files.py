"""CTranslate2's `model.bin`, written byte by byte: what is read from it, and what is refused."""

import re
import struct

import numpy as np
import pytest

from translucid.engines.ctranslate2.conventions import block_names
from translucid.ground.errors import UserError
from translucid.interop import ctranslate2
from translucid.interop.ctranslate2 import Variables, joined_arrays, read_model_file
from translucid.layers.positions import sinusoidal_positions

NUMBERS = {"float32": 0, "int8": 1, "int16": 2, "int32": 3, "float16": 4, "uint16": 5}


def packed_text(name):
    return struct.pack("<H", len(name) + 1) + name.encode() + b"\0"


def packed_variable(name, array, version=6):
    shape = struct.pack(f"<B{array.ndim}I", array.ndim, *array.shape)
    content = array.tobytes()
    kind = struct.pack("<BI", NUMBERS[array.dtype.name], len(content))
    if version < 4:  # the bytes of a number, and how many there are
        kind = struct.pack("<BI", array.itemsize, array.size)
    return packed_text(name) + shape + kind + content


def model_bin(variables, aliases=(), version=6, revision=7, name="TransformerSpec"):
    """Return the content of a file with these variables, and with aliases as pairs (alias, name)."""
    parts = [struct.pack("<I", version), packed_text(name), struct.pack("<II", revision, len(variables))]
    parts += [packed_variable(name, np.asarray(array), version) for name, array in variables.items()]
    if version >= 3:
        parts.append(struct.pack("<I", len(aliases)))
        parts += [packed_text(alias) + packed_text(name) for alias, name in aliases]
    return b"".join(parts)


ARRAYS = {
    "a": np.arange(6, dtype=np.float32).reshape(2, 3),
    "b": np.array(7, np.int8),
    "c": np.arange(8, dtype=np.int16).reshape(2, 2, 2),
    "c_scale": np.array(3, np.float32),
    "d": np.array([1.5], np.float16),
    "e": np.array([1, 2], np.int32),
    "f": np.array([0x3FC0, 0xC000], np.uint16),
}


def test_all_arrays_are_read_and_aliases_share_them(tmp_path):
    file = tmp_path / "model.bin"
    file.write_bytes(model_bin(ARRAYS, [("g", "a"), ("h", "c")], revision=5))
    model = read_model_file(file)
    assert (model.specification, model.revision) == ("TransformerSpec", 5)
    assert [*model.variables] == [*ARRAYS, "g", "h", "h_scale"]
    for name, array in model.variables.items():
        expected = ARRAYS[{"g": "a", "h": "c", "h_scale": "c_scale"}.get(name, name)]
        assert array.dtype == expected.dtype and array.shape == expected.shape
        np.testing.assert_array_equal(array, expected)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (model_bin(ARRAYS)[:-5], "is damaged: it is cut short. Get the file again."),
        (model_bin(ARRAYS) + b"12", "is damaged: it has 2 bytes too many"),
        (model_bin({}, version=7), "is a model.bin of the format 7, or none. Convert it again with CTranslate2 3.0"),
        (model_bin({}, [("x", "a")]), "it has no 'a' for 'x', or both"),
        (model_bin(ARRAYS, [("a", "b")]), "it has no 'b' for 'a', or both"),
        (model_bin({}).replace(b"Spec\0", b"Spec."), "it has a name without an end"),
        (model_bin({}).replace(b"Spec\0", b"Spe\xff\0"), "it has a name that is not UTF-8"),
        (model_bin({"a": np.zeros((1, 1, 1, 1), np.int8)}), "it has a variable of 4 dimensions"),
        (model_bin({"a": np.zeros((2, 0), np.int8)}), "has a variable whose size is not that of its type and dimen"),
        (model_bin({"a": ARRAYS["b"]}).replace(b"\1\1\0\0\0\7", b"\6\1\0\0\0\7"), "has a variable whose size is not"),
        (model_bin({"a": ARRAYS["b"]}).replace(b"\1\1\0\0\0\7", b"\1\2\0\0\0\7"), "has a variable whose size is not"),
        (
            model_bin({"a": ARRAYS["b"], "z": ARRAYS["b"]}).replace(packed_text("z"), packed_text("a")),
            "is damaged: it has 'a' twice",
        ),
    ],
)
def test_a_damaged_file_is_described(tmp_path, content, message):
    (tmp_path / "model.bin").write_bytes(content)
    with pytest.raises(UserError, match=re.escape(message)):
        read_model_file(tmp_path / "model.bin")


def test_a_file_larger_than_memory_and_a_link_elsewhere_are_refused(tmp_path, monkeypatch):
    file = tmp_path / "model.bin"
    file.write_bytes(model_bin({}))
    sizes = []
    monkeypatch.setattr("translucid.interop.ctranslate2.refuse_more_than_memory", lambda size, file: sizes.append(size))
    assert read_model_file(file).variables == {} and sizes == [len(model_bin({}))]
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "model.bin").symlink_to(file)
    with pytest.raises(UserError, match="is a link that leads out of its folder"):
        read_model_file(tmp_path / "folder" / "model.bin")


def variables_of(tmp_path, **arrays):
    return Variables({name: np.array(array) for name, array in arrays.items()}, tmp_path / "model.bin")


def test_arrays_are_divided_by_their_scales(tmp_path):
    rows = np.array([[2, 4], [6, 9]], np.int8)
    variables = variables_of(
        tmp_path,
        a=rows,
        a_scale=np.array([2, 3], np.float32),
        b=rows.astype(np.int16),
        b_scale=np.float32(4),
        c=np.array([0x3FC0, 0xC000], np.uint16),
        d=np.array([1.5, -2], np.float16),
        e=np.int8(7),
    )
    np.testing.assert_array_equal(variables.array("a", 2), [[1, 2], [2, 3]])
    np.testing.assert_array_equal(variables.array("b", 2), [[0.5, 1], [1.5, 2.25]])
    np.testing.assert_array_equal(variables.array("c", 1), [1.5, -2])
    np.testing.assert_array_equal(variables.array("d", 1), [1.5, -2])
    assert variables.array("d", 1).dtype == variables.bias("d", 2).dtype == np.float32
    np.testing.assert_array_equal(variables.bias("d", 2), [1.5, -2])
    assert variables.bias("none", 3).tolist() == [0, 0, 0] and variables.bias("none", 3).dtype == np.float32
    assert (variables.scalar("e"), variables.scalar("none", 4), variables.is_flag("e")) == (7, 4, True)
    assert variables.has("e") and not variables.has("none") and not variables.is_flag("d")
    variables.refuse_unused()


@pytest.mark.parametrize(
    ("arrays", "read", "message"),
    [
        ({}, lambda v: v.array("a", 2), "has no a. Is it a translator?"),
        ({}, lambda v: v.scalar("a"), "has no a. Is it a translator?"),
        ({"a": np.ones(2, np.float32)}, lambda v: v.array("a", 2), "a has 1 dimensions, not 2"),
        ({"a": np.ones(2, np.int8)}, lambda v: v.array("a", 1), "a has no scale. Get the file again."),
        (
            {"a": np.ones(2, np.int8), "a_scale": np.ones(2)},
            lambda v: v.array("a", 1),
            "a has no scale. Get the file again.",
        ),
        (
            {"a": np.ones((3, 2), np.int8), "a_scale": np.ones(2, np.float32)},
            lambda v: v.array("a", 2),
            "a has no scale. Get the file again.",
        ),
        (
            {"a": np.ones(2, np.int8), "a_scale": np.float32(0)},
            lambda v: v.array("a", 1),
            "a has weights that are no numbers. Get the file again.",
        ),
        (
            {"a": np.array([1, np.inf], np.float32)},
            lambda v: v.array("a", 1),
            "a has weights that are no numbers. Get the file again.",
        ),
        ({"a": np.ones(2, np.float32)}, lambda v: v.scalar("a"), "a is not a number. Get the file again."),
        ({"a": np.float32("nan")}, lambda v: v.scalar("a"), "a is not a number. Get the file again."),
        (
            {"x/multi_query_attention": np.int8(1)},
            lambda v: v.refuse_unused(),
            "has x/multi_query_attention, which is not supported. Models of other kinds can be imported.",
        ),
        ({"b": np.int8(0)}, lambda v: v.refuse_unused(), "has b, which is not supported."),
    ],
)
def test_arrays_that_are_missing_or_damaged_are_named(tmp_path, arrays, read, message):
    with pytest.raises(UserError, match=re.escape(message)):
        read(variables_of(tmp_path, **arrays))


def test_flags_without_effect_are_ignored(tmp_path):
    names = ("decoder/alignment_layer", "decoder/alignment_heads", "encoder/embeddings_merge")
    neutral = ("alibi", "alibi_use_positive_positions", "scale_alibi", "multi_query_attention")
    arrays = dict.fromkeys(names, np.int8(1)) | dict.fromkeys((f"encoder/{name}" for name in neutral), np.int8(0))
    variables_of(tmp_path, **arrays).refuse_unused()
    for name in neutral:
        with pytest.raises(UserError, match=f"has encoder/{name}, which"):
            variables_of(tmp_path, **arrays | {f"encoder/{name}": np.int8(1)}).refuse_unused()


def block_arrays(side, width=2):
    """Return the arrays of a block, each filled with different numbers."""
    shapes = {"self_attention/linear_0": 3 * width, "self_attention/linear_1": width, "ffn/linear_0": 5}
    shapes["ffn/linear_1"] = width
    norms = ["self_attention", "ffn"]
    if side == "decoder":
        shapes |= {"attention/linear_0": width, "attention/linear_1": 2 * width, "attention/linear_2": width}
        norms.append("attention")
    arrays = {}
    for name, rows in shapes.items():
        inputs = 5 if name == "ffn/linear_1" else width
        arrays[f"{name}/weight"] = len(arrays) * 10.0 + np.arange(rows)[:, None] + np.zeros(inputs)
        arrays[f"{name}/bias"] = len(arrays) * 10.0 + np.arange(rows)
    for name in norms:
        for part in ("gamma", "beta"):
            arrays[f"{name}/layer_norm/{part}"] = len(arrays) * 10.0 + np.arange(width)
    return {f"{side}/layer_1/{name}": array.astype(np.float32) for name, array in arrays.items()}


@pytest.mark.parametrize("side", ["encoder", "decoder"])
def test_the_arrays_of_a_block_get_our_names(tmp_path, side):
    arrays = block_arrays(side)
    variables = variables_of(tmp_path, **arrays)
    parameters = joined_arrays(variables, block_names(side, 1), 2)
    variables.refuse_unused()
    names = {
        "self_attention.query": ("self_attention/linear_0", slice(2)),
        "self_attention.key_value": ("self_attention/linear_0", slice(2, None)),
        "self_attention.output": ("self_attention/linear_1", slice(None)),
        "residuals.0.norm": ("self_attention/layer_norm", slice(None)),
        "feed_forward.inner": ("ffn/linear_0", slice(None)),
        "feed_forward.outer": ("ffn/linear_1", slice(None)),
    }
    if side == "decoder":
        names |= {
            "cross_attention.query": ("attention/linear_0", slice(None)),
            "cross_attention.key_value": ("attention/linear_1", slice(None)),
            "cross_attention.output": ("attention/linear_2", slice(None)),
            "residuals.1.norm": ("attention/layer_norm", slice(None)),
            "residuals.2.norm": ("ffn/layer_norm", slice(None)),
        }
    else:
        names["residuals.1.norm"] = ("ffn/layer_norm", slice(None))
    assert {*parameters} == {f"{side}.1.{name}.{part}" for name in names for part in ("weight", "bias")}
    for name, (theirs, rows) in names.items():
        parts = ("gamma", "beta") if "norm" in name else ("weight", "bias")
        for ours, part in zip(("weight", "bias"), parts, strict=True):
            expected = arrays[f"{side}/layer_1/{theirs}/{part}"][rows]
            np.testing.assert_array_equal(parameters[f"{side}.1.{name}.{ours}"], expected)


def test_layers_are_counted_up_to_a_gap(tmp_path):
    weight = np.ones((1, 1), np.float32)
    names = [f"encoder/layer_{i}/ffn/linear_0/weight" for i in (0, 1, 3)]
    variables = variables_of(tmp_path, **dict.fromkeys(names, weight))
    assert (variables.layers("encoder"), variables.layers("decoder")) == (2, 0)


WIDTH = 8


def network_arrays(pre=False, layers=(2, 1), table=None, **changes):
    """Return the arrays of a model with constant weights, this table of positions and `layers` on each side."""
    if table is None:
        table = sinusoidal_positions(300, WIDTH).numpy()
    arrays = {
        "encoder/embeddings_0/weight": np.ones((5, WIDTH), np.float32),
        "decoder/embeddings/weight": np.ones((6, WIDTH), np.float32),
        "decoder/projection/weight": np.ones((6, WIDTH), np.float32),
    }
    for side, count in zip(("encoder", "decoder"), layers, strict=True):
        arrays[f"{side}/position_encodings/encodings"] = table
        arrays |= {f"{side}/pre_norm": np.int8(pre), f"{side}/num_heads": np.int16(4), f"{side}/activation": np.int8(2)}
        arrays[f"{side}/scale_embeddings"] = np.int8(1)
        if pre:
            arrays |= {f"{side}/layer_norm/{part}": np.ones(WIDTH, np.float32) for part in ("gamma", "beta")}
        for i in range(count):
            for name, array in block_arrays(side, WIDTH).items():
                arrays[name.replace("layer_1", f"layer_{i}")] = array
    return arrays | {name.replace("__", "/"): value for name, value in changes.items()}


def read_network(tmp_path, arrays):
    variables = variables_of(tmp_path, **arrays)
    model, tensors = ctranslate2._network(variables)
    variables.refuse_unused()
    return model, tensors


def test_the_options_of_a_model_follow_from_its_arrays(tmp_path):
    expected = {
        "kind": "transformer",
        "width": WIDTH,
        "heads": 4,
        "feed_forward": 5,
        "encoder_layers": 2,
        "decoder_layers": 1,
        "norm": "post",
        "nonlinearity": "swish",
        "scale_embeddings": True,
        "zero_start": False,
        "tie_output": True,
        "positions": "sinusoidal",
        "first_position": 0,
    }
    model, arrays = read_network(tmp_path, network_arrays())
    assert model == expected
    assert arrays["output.bias"].tolist() == [0] * 6
    # Three matrices and a bias; an encoder layer has 7 matrices or norms, a decoder layer 11, each with a bias.
    assert len(arrays) == 4 + 2 * 14 + 22
    changes = {
        "decoder/start_from_zero_embedding": np.int8(1),
        "decoder/projection/bias": np.arange(6, dtype=np.float32),
        "decoder/projection/weight": np.zeros((6, WIDTH), np.float32),
    }
    for side in ("encoder", "decoder"):
        changes |= {f"{side}/activation": np.int8(0), f"{side}/scale_embeddings": np.int8(0)}
    model, arrays = read_network(tmp_path, network_arrays(pre=True, layers=(0, 2)) | changes)
    changed_options = {
        "norm": "pre",
        "encoder_layers": 0,
        "decoder_layers": 2,
        "feed_forward": 1,
        "nonlinearity": "relu",
        "scale_embeddings": False,
        "zero_start": True,
        "tie_output": False,
    }
    assert model == expected | changed_options
    assert arrays["output.bias"].tolist() == [*range(6)]
    assert {f"{side}_norm.{part}" for side in ("encoder", "decoder") for part in ("weight", "bias")} < {*arrays}


@pytest.mark.parametrize("kind", ["sinusoidal", "sinusoidal-halves", "sinusoidal-tensor2tensor"])
@pytest.mark.parametrize("first", [0, 1, 2])
@pytest.mark.parametrize("length", [3, 300])
def test_tables_of_positions_are_recognized_though_they_are_rounded(tmp_path, kind, first, length):
    table = sinusoidal_positions(length, WIDTH, first=first, kind=kind).numpy() + np.float32(0.009)
    model, arrays = read_network(tmp_path, network_arrays(table=table))
    assert (model["positions"], model["first_position"]) == (kind, first) and "max_length" not in model
    assert not any("positions" in name for name in arrays)


def test_other_tables_of_positions_are_learned_ones_or_none(tmp_path):
    table = sinusoidal_positions(300, WIDTH).numpy()
    for learned_table in (table + np.float32(0.011), sinusoidal_positions(300, WIDTH, first=3).numpy()):
        model, arrays = read_network(tmp_path, network_arrays(table=learned_table))
        assert model["positions"] == "learned" and model["max_length"] == 300 and "first_position" not in model
        for side in ("source", "target"):
            np.testing.assert_array_equal(arrays[f"{side}_embedding.positions.table"], learned_table)
    model, arrays = read_network(tmp_path, network_arrays(table=np.zeros((300, WIDTH), np.float32)))
    assert model["positions"] == "none" and not any("positions" in name for name in arrays)
    # Rows after the 256th are ignored, but both sides must have the same rows, and the width of the model.
    table[256:] = 9
    assert read_network(tmp_path, network_arrays(table=table))[0]["positions"] == "sinusoidal"
    table[255] = 9
    assert read_network(tmp_path, network_arrays(table=table))[0]["positions"] == "learned"
    names = [f"{side}/position_encodings/encodings" for side in ("encoder", "decoder")]
    for tables, longest in ((((30, WIDTH), (20, WIDTH)), 20), (((1, WIDTH), (9, WIDTH)), 2)):
        arrays = {name: np.ones(shape, np.float32) for name, shape in zip(names, tables, strict=True)}
        model, _ = read_network(tmp_path, network_arrays() | arrays)
        assert (model["positions"], model["max_length"]) == ("learned", longest)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"encoder/num_heads": np.int16(2)}, "has another num_heads on each side, which is not supported"),
        ({"decoder/pre_norm": np.int8(1)}, "has another pre_norm on each side"),
        ({"decoder/scale_embeddings": np.int8(0)}, "scales embeddings of one side only, which is not supported"),
        (
            {"encoder/activation": np.int8(1), "decoder/activation": np.int8(1)},
            "has the activation 1 (GELUTanh), which is not",
        ),
        ({"encoder/scale_embeddings": np.float32(2.84)}, "has the factor 2.84 at its embeddings"),
    ],
)
def test_models_of_other_kinds_are_refused(tmp_path, changes, message):
    with pytest.raises(UserError, match=re.escape(message)):
        read_network(tmp_path, network_arrays() | changes)


def test_a_factor_is_that_of_the_width_up_to_rounding(tmp_path):
    factor = {f"{side}/scale_embeddings": np.float32(WIDTH**0.5 + 0.0099) for side in ("encoder", "decoder")}
    assert read_network(tmp_path, network_arrays() | factor)[0]["scale_embeddings"] is True
    arrays = network_arrays()
    del arrays["encoder/position_encodings/encodings"]
    with pytest.raises(UserError, match="has a table of positions on one side only, which is not supported"):
        read_network(tmp_path, arrays)


@pytest.mark.parametrize(("revision", "supported"), [(7, True), (8, False)])
def test_newer_revisions_are_refused(tmp_path, revision, supported):
    (tmp_path / "model.bin").write_bytes(model_bin({}, revision=revision))
    message = "config.json: is missing" if supported else "is a 'TransformerSpec' of revision 8, which is not supported"
    with pytest.raises(UserError, match=message):
        ctranslate2.from_ctranslate2(tmp_path)
