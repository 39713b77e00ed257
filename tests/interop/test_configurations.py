"""Configurations of other toolkits: the keys that determine what a model computes, and refused values."""

import json
import os
import re
import struct

import pytest
import torch
from safetensors.torch import save_file

from translucid.ground.errors import UserError
from translucid.interop import huggingface, imported, marian
from translucid.interop.imported import Keys, model_root, read_json, read_weights

HUGGINGFACE = {
    "activation_function": "silu",
    "d_model": 24,
    "encoder_layers": 3,
    "decoder_layers": 2,
    "encoder_attention_heads": 6,
    "decoder_attention_heads": 6,
    "encoder_ffn_dim": 40,
    "decoder_ffn_dim": 40,
    "dropout": 0.3,
    "scale_embedding": True,
}


def keys_of(tmp_path, values):
    return Keys(values, tmp_path / "config.json")


def shape_of(tmp_path, kind, values):
    marian = kind != "m2m"
    return huggingface._shape(keys_of(tmp_path, values), marian=marian, pre=kind != "marian")


SHAPE = {
    "kind": "transformer",
    "width": 24,
    "heads": 6,
    "feed_forward": 40,
    "encoder_layers": 3,
    "decoder_layers": 2,
    "dropout": 0.3,
    "nonlinearity": "swish",
    "scale_embeddings": True,
}
KINDS = {
    "marian": {"norm": "post", "positions": "sinusoidal-halves", "first_position": 0},
    "pegasus": {"norm": "pre", "positions": "sinusoidal-halves", "first_position": 0},
    "m2m": {"norm": "pre", "positions": "sinusoidal-tensor2tensor", "first_position": 2},
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_options_of_a_model_follow_from_its_configuration(tmp_path, kind):
    assert shape_of(tmp_path, kind, HUGGINGFACE) == SHAPE | KINDS[kind]
    without_optional = {key: value for key, value in HUGGINGFACE.items() if value not in ("silu", 0.3, True)}
    defaults = {"nonlinearity": "relu", "dropout": 0.1, "scale_embeddings": kind == "m2m"}
    assert shape_of(tmp_path, kind, without_optional) == SHAPE | KINDS[kind] | defaults
    for value, dropout in ((1, 0.9), (-2, 0.0), (0.9, 0.9), (10**400, 0.9)):
        assert shape_of(tmp_path, kind, HUGGINGFACE | {"dropout": value})["dropout"] == dropout


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("normalize_before", None),
        ("add_final_layer_norm", None),
        ("normalize_embedding", True),
        ("add_bias_logits", True),
        ("static_position_embeddings", False),
        ("is_encoder_decoder", False),
    ],
)
def test_a_key_that_changes_the_function_is_refused(tmp_path, kind, key, value):
    supported = kind != "marian" if value is None else not value
    assert shape_of(tmp_path, kind, HUGGINGFACE | {key: supported}) == SHAPE | KINDS[kind]
    with pytest.raises(UserError, match=f"config.json: {key}={not supported} is not supported"):
        shape_of(tmp_path, kind, HUGGINGFACE | {key: not supported})


@pytest.mark.parametrize("key", ["decoder_attention_heads", "decoder_ffn_dim"])
def test_both_sides_have_the_same_numbers(tmp_path, key):
    number = HUGGINGFACE[key] + 2
    with pytest.raises(UserError, match=f'{key}="{number} unlike the encoder\'s" is not supported'):
        shape_of(tmp_path, "marian", HUGGINGFACE | {key: number})


def test_keys_are_checked_when_they_are_read(tmp_path):
    values = {"number": 7, "text": "a", "flag": True, "share": 0.5, "none": None, "nan": float("nan"), "long": "x" * 99}
    keys = keys_of(tmp_path, values)
    file = re.escape(str(tmp_path / "config.json"))
    assert (keys.number("number"), keys.number("other", 3), keys.text("text"), keys.text("other")) == (7, 3, "a", "")
    assert (keys.text("other", "b"), keys.flag("flag", False), keys.flag("other", True)) == ("b", True, True)
    assert (keys.share("share", 0.1, 0.9), keys.share("share", 0.1, 0.25), keys.share("other", 0.1, 0.9)) == (
        0.5,
        0.25,
        0.1,
    )
    refusals = [
        (lambda: keys.number("flag"), "flag is True, not a whole number"),
        (lambda: keys.number("share"), "share is 0.5, not a whole number"),
        (lambda: keys.number("other"), "other is None, not a whole number"),
        (lambda: keys.number("long"), f"long is '{'x' * 49}, not a whole number"),
        (lambda: keys.text("number"), "number is 7, not a text"),
        (lambda: keys.text("long") and keys.text("none"), "none is None, not a text"),
        (lambda: keys.flag("number", True), "number is 7, not true or false"),
        (lambda: keys.share("flag", 0.1, 0.9), "flag is True, not a number"),
        (lambda: keys.share("text", 0.1, 0.9), "text is 'a', not a number"),
        (lambda: keys.share("nan", 0.1, 0.9), "nan is nan, not a number"),
        (lambda: keys.expect({"number": 8}), "number=7 is not supported. Models of other kinds can be imported."),
        (lambda: keys.unsupported("a", "y" * 99), f"a='{'y' * 49} is not supported."),
        (lambda: Keys([], tmp_path / "config.json"), "holds no keys and values. Is this the configuration of a model?"),
    ]
    for call, message in refusals:
        with pytest.raises(UserError, match=f"^{file}: {re.escape(message)}"):
            call()
    keys.expect({"number": 7})
    keys.expect({"none": 7})
    keys.expect({"other": 7})


def test_files_of_a_model_are_read_up_to_a_limit(tmp_path, monkeypatch):
    file = tmp_path / "a.json"
    with pytest.raises(UserError, match=r"a.json: is missing. Is the folder complete?"):
        read_json(file)
    file.write_text("[1]".ljust(64))
    assert read_json(file, 64) == [1]
    with pytest.raises(UserError, match="has 64 bytes, more than 63"):
        read_json(file, 63)
    with file.open("wb") as stream:
        stream.truncate(1 << 26)
    for size, message in ((1 << 26, "is not JSON, or is damaged"), ((1 << 26) + 1, "more than 67,108,864")):
        os.truncate(file, size)
        with pytest.raises(UserError, match=message):
            read_json(file)
    file.write_text("[" * 100_000)
    with pytest.raises(UserError, match=r"is not JSON, or is damaged. Get the folder again."):
        read_json(file)
    monkeypatch.setattr(imported, "read_at_most", lambda *_: (_ for _ in ()).throw(PermissionError(13, "denied")))
    with pytest.raises(UserError, match=r"can't be read \(denied\). Check the path."):
        read_json(file)
    assert not imported.all_are(int, [1, True]) and imported.all_are(int, [1, 2])


def test_links_may_lead_out_of_a_snapshot_of_the_hub_but_not_out_of_its_model(tmp_path):
    snapshot = tmp_path / "models--a--b" / "snapshots" / "1"
    snapshot.mkdir(parents=True)
    (tmp_path / "models--a--b" / "blobs").mkdir()
    (tmp_path / "models--a--b" / "blobs" / "x").write_text("[7]")
    (snapshot / "a.json").symlink_to(tmp_path / "models--a--b" / "blobs" / "x")
    assert read_json(snapshot / "a.json") == [7]
    assert model_root(snapshot / "a.json") == tmp_path / "models--a--b" and model_root(tmp_path / "a.json") == tmp_path
    (tmp_path / "b.json").write_text("[8]")
    (snapshot / "b.json").symlink_to(tmp_path / "b.json")
    with pytest.raises(UserError, match="is a link that leads out of its folder"):
        read_json(snapshot / "b.json")


WEIGHTS = {"a": torch.tensor([1.5]), "b": torch.tensor([2.5], dtype=torch.float16)}


def write_parts(folder, **names):
    """Write two files of weights and their index."""
    for name, tensor in WEIGHTS.items():
        save_file({name: tensor}, folder / f"{name}.safetensors")
    index = {"weight_map": {"a": "a.safetensors", "b": "b.safetensors"} | names}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def test_weights_are_read_in_float32_from_one_file_or_from_parts(tmp_path):
    with pytest.raises(UserError, match=r"has no weights. It needs model.safetensors or pytorch_model.bin."):
        read_weights(tmp_path)
    numbers = {"positions": torch.tensor([1, 2])}  # integers are not weights

    def read_as_lists():
        weights = read_weights(tmp_path)
        assert {tensor.dtype for tensor in weights.values()} == {torch.float32}
        return {name: tensor.tolist() for name, tensor in weights.items()}

    torch.save(WEIGHTS | {"a": torch.tensor([9.0])}, tmp_path / "pytorch_model.bin")
    assert read_as_lists() == {"a": [9.0], "b": [2.5]}
    write_parts(tmp_path)  # safetensors take precedence
    assert read_as_lists() == {"a": [1.5], "b": [2.5]}
    save_file(WEIGHTS | numbers | {"a": torch.tensor([7.0])}, tmp_path / "model.safetensors")
    assert read_as_lists() == {"a": [7.0], "b": [2.5]}


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ([], "does not say in which files the weights are"),
        ({"weight_map": []}, "does not say in which files the weights are"),
        ({"weight_map": {"a": 1}}, "does not say in which files the weights are"),
        ({"weight_map": {"a": "../a.safetensors"}}, "names '../a.safetensors', which is not in this folder"),
        ({"weight_map": {"a": "gone.safetensors"}}, "gone.safetensors: is missing"),
    ],
)
def test_a_damaged_index_is_refused(tmp_path, index, message):
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(UserError, match=f"{message}. Get the file again."):
        read_weights(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"a": 1}, "holds more than weights. Use the model's safetensors."),
        ([torch.ones(1)], "holds more than weights. Use the model's safetensors."),
        ({"a": len}, "holds more than weights, or is damaged. Use the model's safetensors."),
    ],
)
def test_a_file_of_pytorch_has_weights_alone(tmp_path, content, message):
    torch.save(content, tmp_path / "pytorch_model.bin")
    with pytest.raises(UserError, match=re.escape(message)):
        read_weights(tmp_path)


def test_damaged_safetensors_are_refused_before_memory_is_allocated(tmp_path):
    file = tmp_path / "model.safetensors"
    for start, message in ((b"", "is damaged or cut short"), (struct.pack("<Q", 1 << 60), "is damaged, or not safe")):
        file.write_bytes(start)
        with pytest.raises(UserError, match=message):
            read_weights(tmp_path)


MARIAN = {
    "dim-emb": 24,
    "transformer-heads": 6,
    "transformer-dim-ffn": 40,
    "enc-depth": 3,
    "dec-depth": 2,
    "transformer-preprocess": "",
    "transformer-postprocess": "dan",
    "transformer-postprocess-top": "",
}
FRONT = {"transformer-preprocess": "n", "transformer-postprocess": "da", "transformer-postprocess-top": "n"}


def test_marians_options_follow_from_its_configuration(tmp_path):
    expected = {
        "kind": "transformer",
        "width": 24,
        "heads": 6,
        "feed_forward": 40,
        "encoder_layers": 3,
        "decoder_layers": 2,
        "norm": "post",
        "nonlinearity": "swish",
        "positions": "sinusoidal-tensor2tensor",
        "zero_start": True,
        "decoder": "self-attention",
    }
    assert marian._shape(keys_of(tmp_path, MARIAN)) == expected
    harmless = {
        "type": "transformer",
        "transformer-decoder-autoreg": "self-attention",
        "transformer-no-projection": False,
        "transformer-train-position-embeddings": False,
        "transformer-train-positions": False,
        "transformer-ffn-depth": 2,
        "lemma-dim-emb": 0,
        "transformer-postprocess-emb": "",
        "transformer-ffn-activation": "relu",
        "transformer-decoder-dim-ffn": 40,
        "transformer-decoder-ffn-depth": 2,
    }
    changes = {"norm": "pre", "nonlinearity": "relu"}
    assert marian._shape(keys_of(tmp_path, MARIAN | FRONT | harmless)) == expected | changes


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("type", "amun"),
        ("transformer-decoder-autoreg", "average-attention"),
        ("transformer-no-projection", True),
        ("transformer-train-position-embeddings", True),
        ("transformer-train-positions", True),
        ("transformer-ffn-depth", 3),
        ("lemma-dim-emb", 8),
        ("transformer-postprocess", "da"),
        ("transformer-postprocess-emb", "n"),
        ("transformer-ffn-activation", "gelu"),
        ("transformer-decoder-dim-ffn", 41),
        ("transformer-decoder-ffn-depth", 1),
    ],
)
def test_a_key_of_marian_that_changes_the_function_is_refused(tmp_path, key, value):
    with pytest.raises(UserError, match=f"config.json: {key}={value!r} is not supported"):
        marian._shape(keys_of(tmp_path, MARIAN | {key: value}))
    # Pre-norm needs a norm at the top.
    with pytest.raises(UserError, match="transformer-postprocess='da' is not supported"):
        marian._shape(keys_of(tmp_path, MARIAN | FRONT | {"transformer-postprocess-top": ""}))


def test_layers_have_these_names_and_may_share_weights(tmp_path):
    names = [*marian.layers(1, [2], pre=False)]
    assert names == [
        ("encoder.0.self_attention.query", ["encoder_l1_self_{}q"]),
        ("encoder.0.self_attention.key_value", ["encoder_l1_self_{}k", "encoder_l1_self_{}v"]),
        ("encoder.0.self_attention.output", ["encoder_l1_self_{}o"]),
        ("encoder.0.residuals.0.norm", ["encoder_l1_self_Wo_ln"]),
        ("encoder.0.feed_forward.inner", ["encoder_l1_ffn_{}1"]),
        ("encoder.0.feed_forward.outer", ["encoder_l1_ffn_{}2"]),
        ("encoder.0.residuals.1.norm", ["encoder_l1_ffn_ffn_ln"]),
        ("decoder.0.self_attention.query", ["decoder_l2_self_{}q"]),
        ("decoder.0.self_attention.key_value", ["decoder_l2_self_{}k", "decoder_l2_self_{}v"]),
        ("decoder.0.self_attention.output", ["decoder_l2_self_{}o"]),
        ("decoder.0.residuals.0.norm", ["decoder_l2_self_Wo_ln"]),
        ("decoder.0.cross_attention.query", ["decoder_l2_context_{}q"]),
        ("decoder.0.cross_attention.key_value", ["decoder_l2_context_{}k", "decoder_l2_context_{}v"]),
        ("decoder.0.cross_attention.output", ["decoder_l2_context_{}o"]),
        ("decoder.0.residuals.1.norm", ["decoder_l2_context_Wo_ln"]),
        ("decoder.0.feed_forward.inner", ["decoder_l2_ffn_{}1"]),
        ("decoder.0.feed_forward.outer", ["decoder_l2_ffn_{}2"]),
        ("decoder.0.residuals.2.norm", ["decoder_l2_ffn_ffn_ln"]),
    ]
    tops = [("encoder_norm", ["encoder_top_ln"]), ("decoder_norm", ["decoder_top_ln"])]
    assert [*marian.layers(1, [2], pre=True)] == [*names, *tops]

    def layer_numbers(**values):
        return marian._decoder_layers(keys_of(tmp_path, values))

    assert (
        layer_numbers(**{"dec-depth": 2}) == [1, 2] == layer_numbers(**{"dec-depth": 2, "transformer-tied-layers": []})
    )
    assert layer_numbers(**{"dec-depth": 2, "transformer-tied-layers": [2, 2]}) == [2, 2]
    assert layer_numbers(**{"dec-depth": 256}) == [*range(1, 257)]
    for depth, tied_layers in (
        (257, None),
        (2, [1]),
        (2, [1, 3]),
        (2, [0, 1]),
        (2, [1, True]),
        (2, "12"),
        (2, {1: 2, 2: 1}),
    ):
        with pytest.raises(UserError, match="transformer-tied-layers="):
            layer_numbers(**{"dec-depth": depth, "transformer-tied-layers": tied_layers})


def test_both_vocabularies_have_a_size(tmp_path):
    assert marian._sizes(keys_of(tmp_path, {"dim-vocabs": [7, 8]})) == [7, 8]
    for sizes in (None, 7, [7], [7, 8, 9], [7, "8"], [7, True]):
        with pytest.raises(UserError, match="dim-vocabs="):
            marian._sizes(keys_of(tmp_path, {"dim-vocabs": sizes}))
