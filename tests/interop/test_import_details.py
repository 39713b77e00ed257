"""Imports of models that differ from the usual ones in one detail."""

import json
import re

import numpy as np
import pytest
import torch

from tests.probes.foreign import many_languages_folder, marian_file, marian_folder
from translucid.ground.errors import UserError
from translucid.interop import huggingface, marian
from translucid.interop.huggingface import from_huggingface
from translucid.interop.imported import Keys
from translucid.interop.marian import from_marian
from translucid.interop.pieces import NEVER


def change_json(file, remove=(), **values):
    content = json.loads(file.read_text()) | values
    for key in remove:
        del content[key]
    file.write_text(json.dumps(content))


@pytest.fixture
def nllb(tmp_path):
    many_languages_folder(tmp_path / "nllb", nllb=True)
    return tmp_path / "nllb"


def assert_same_import(imported, expected):
    assert imported.settings == expected.settings and imported.tokenizer.fingerprint == expected.tokenizer.fingerprint
    assert imported.tensors.keys() == expected.tensors.keys()
    assert all(torch.equal(tensor, expected.tensors[name]) for name, tensor in imported.tensors.items())


def test_pieces_without_an_embedding_are_left_out(nllb):
    size = json.loads((nllb / "config.json").read_text())["vocab_size"]
    before = from_huggingface(nllb)
    assert [*before.settings["data"]["tokenizer"]["languages"]] == ["eng_Latn", "spa_Latn"]
    configuration = json.loads((nllb / "tokenizer_config.json").read_text())
    configuration["added_tokens_decoder"] |= {
        str(size): {"content": "fra_Latn"},
        str(size - 1): {"content": "deu_Latn"},
    }
    (nllb / "tokenizer_config.json").write_text(json.dumps(configuration))
    imported = from_huggingface(nllb)
    assert [*imported.settings["data"]["tokenizer"]["languages"]] == ["eng_Latn", "spa_Latn", "deu_Latn"]
    assert len(imported.tokenizer.target_vocabulary) == len(before.tokenizer.target_vocabulary)


def test_what_a_configuration_does_not_say_is_as_usual(nllb):
    expected = from_huggingface(nllb)
    change_json(nllb / "config.json", ["pad_token_id", "eos_token_id", "decoder_start_token_id"])
    assert_same_import(from_huggingface(nllb), expected)
    change_json(nllb / "config.json", ["max_position_embeddings"], num_beams=0)
    imported = from_huggingface(nllb)
    assert (imported.settings["data"]["max_tokens"], imported.settings["decoding"]["beam"]) == (512, 1)
    assert expected.settings["decoding"]["beam"] == 5 and expected.settings["data"]["max_tokens"] == 600


def test_a_start_token_of_fairseq_is_never_written_and_is_no_missing_embedding(nllb):
    bias = from_huggingface(nllb).tensors["output.bias"]
    assert bias.tolist() == [0.0, 0.0, NEVER] + [0.0] * (len(bias) - 3)
    change_json(nllb / "config.json", decoder_start_token_id=0)
    imported = from_huggingface(nllb)
    assert imported.tensors["output.bias"].tolist()[:5] == [0.0, 0.0, NEVER, 0.0, 0.0]
    assert imported.settings["model"]["zero_start"] is False


def test_a_model_without_languages_is_refused(nllb):
    (nllb / "tokenizer_config.json").unlink()
    with pytest.raises(UserError, match=r"names no languages. It needs tokenizer_config\.json or tokenizer\.json\."):
        from_huggingface(nllb)


def test_a_configuration_has_at_most_a_megabyte(nllb):
    file = nllb / "config.json"
    file.write_text(file.read_text().ljust(1 << 20))
    from_huggingface(nllb)
    file.write_text(file.read_text() + " ")
    with pytest.raises(UserError, match="more than 1,048,576"):
        from_huggingface(nllb)


def test_the_settings_of_a_marian_model(tmp_path):
    marian_folder(tmp_path / "one", languages=("es", "pt"))
    imported = from_huggingface(tmp_path / "one")
    assert imported.kind == "MarianMT" and imported.settings["decoding"] == {"beam": 5}
    tokenizer = {"joint": False, "shared_ids": True, "language_pieces": "source-side"}
    languages = {"languages": {"es": ">>es<<", "pt": ">>pt<<"}, "vocabulary": len(imported.tokenizer.target_vocabulary)}
    assert imported.settings["data"] == {"tokenizer": tokenizer | languages, "max_tokens": 600}
    model = imported.settings["model"]
    assert (model["zero_start"], model["share_embeddings"], model["tie_output"]) == (True, True, True)
    expected = imported
    change_json(tmp_path / "one" / "config.json", ["decoder_start_token_id"])
    assert_same_import(from_huggingface(tmp_path / "one"), expected)
    change_json(tmp_path / "one" / "config.json", ["pad_token_id"])
    with pytest.raises(UserError, match="pad_token_id is None, not a whole number"):
        from_huggingface(tmp_path / "one")


def test_embeddings_are_those_that_transformers_uses(tmp_path):
    shared, encoder, decoder, output = (torch.full((2, 2), float(i)) for i in range(4))
    names = ["model.shared.weight", "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"]
    all_tensors = dict(zip([*names, "lm_head.weight"], (shared, encoder, decoder, output), strict=True))

    def choose(*missing, shared, tied):
        tensors = {name: tensor for name, tensor in all_tensors.items() if name not in missing}
        embeddings = huggingface._embeddings(tensors, shared=shared, tied=tied, folder=tmp_path)
        assert [*embeddings] == ["source", "target", "output"]
        return [int(tensor[0, 0]) for tensor in embeddings.values()]

    assert choose(shared=True, tied=True) == [0, 0, 0]
    assert choose(shared=False, tied=True) == [1, 2, 2]
    assert choose(shared=False, tied=False) == [1, 2, 3]
    assert choose("lm_head.weight", shared=False, tied=False) == [1, 2, 2]
    assert choose(names[1], names[2], "lm_head.weight", shared=False, tied=False) == [0, 0, 0]
    assert choose(names[0], shared=True, tied=True) == [1, 2, 2]
    all_tensors["lm_head.weight"] = torch.ones(2)
    assert choose(shared=False, tied=False) == [1, 2, 2]
    message = re.escape(f"has no weights {names[1]}. Is the folder complete?")
    with pytest.raises(UserError, match=message):
        choose(names[0], names[1], shared=False, tied=True)


def test_a_block_with_a_missing_bias_is_refused(tmp_path):
    from safetensors.torch import load_file, save_file

    marian_folder(tmp_path / "one")
    file = tmp_path / "one" / "model.safetensors"
    tensors = load_file(file)
    del tensors["model.decoder.layers.0.encoder_attn.v_proj.bias"]
    save_file(tensors, file)
    message = r"one: has no weights model\.decoder\.layers\.0\.encoder_attn\.v_proj\.bias\. Is the folder complete"
    with pytest.raises(UserError, match=message):
        from_huggingface(tmp_path / "one")


def weights_of(tmp_path, **arrays):
    return marian._Weights(arrays, tmp_path / "model.npz")


def test_arrays_of_marian_become_tensors(tmp_path):
    weights = weights_of(tmp_path, a=np.array([[1.5, 2]], np.float16), b=np.array([1, 2]))
    assert "a" in weights and "c" not in weights
    assert weights.get("a").dtype == torch.float32 and weights.get("a").tolist() == [[1.5, 2]]
    with pytest.raises(UserError, match=r"has weights b of the type int64. Give float32 weights\."):
        weights.get("b")
    with pytest.raises(UserError, match=r"has no weights c. Is this model of a kind that we have?"):
        weights.get("c")
    for name in ("x_scale", "x_scale_pre"):
        arrays = {name: np.array([[1.0, 2]]), name.replace("scale", "bias"): np.array([[3.0, 4]])}
        weight, bias = weights_of(tmp_path, **{key.replace("x", "x_ln"): array for key, array in arrays.items()}).layer(
            "x_ln"
        )
        assert (weight.tolist(), bias.tolist()) == ([1, 2], [3, 4])


def test_an_archive_without_a_readable_configuration_is_no_model(tmp_path):
    file = tmp_path / "model.npz"
    with pytest.raises(UserError, match=r"has no special:model.yml: it is no model of Marian"):
        marian._configuration({}, file)
    text = np.frombuffer(b"a: 1\0b: [", np.int8)
    assert marian._configuration({"special:model.yml": text}, file).values == {"a": 1}
    for content in (b"a: [", b"a: 1\nb"):
        with pytest.raises(UserError, match=r"has a special:model.yml that is not YAML"):
            marian._configuration({"special:model.yml": np.frombuffer(content, np.int8)}, file)


@pytest.mark.parametrize(
    ("ties", "shared", "tied"),
    [("all", True, True), ("src", True, False), ("target", False, True), ("none", False, False)],
)
def test_marians_matrices_are_put_into_our_order(tmp_path, ties, shared, tied):
    """Rows of `</s>` and `<unk>`: the first two in Marian, the fourth and the second here."""
    marian_file(tmp_path, ties=ties)
    imported, arrays = from_marian(tmp_path), np.load(tmp_path / "model.npz")
    size = len(arrays["decoder_ff_logit_out_b"][0])
    matrices = {
        "source_embedding.tokens": arrays["Wemb" if shared else "encoder_Wemb"],
        "target_embedding.tokens": arrays["Wemb" if shared else "decoder_Wemb"],
    }
    matrices["output"] = matrices["target_embedding.tokens"] if tied else arrays["decoder_ff_logit_out_W"].T
    for name, matrix in matrices.items():
        ours = imported.tensors[f"{name}.weight"].numpy()
        np.testing.assert_array_equal(ours[1], matrix[1])
        np.testing.assert_array_equal(ours[3], matrix[0])
        np.testing.assert_array_equal(ours[4 : size + 2], matrix[2:])
        assert not ours[[0, 2]].any()
        np.testing.assert_array_equal(ours[size + 2 :], np.tile(matrix[1], (len(ours) - size - 2, 1)))
    bias, theirs = imported.tensors["output.bias"].numpy(), arrays["decoder_ff_logit_out_b"][0]
    np.testing.assert_array_equal(bias[[1, 3]], theirs[[1, 0]])
    np.testing.assert_array_equal(bias[4 : size + 2], theirs[2:])
    assert (bias[[0, 2]] == NEVER).all() and (bias[size + 2 :] == NEVER).all() and len(bias) > size + 2
    weight = imported.tensors["decoder.1.self_attention.key_value.weight"].numpy()
    halves = [arrays[f"decoder_l2_self_W{part}"].T for part in "kv"]
    np.testing.assert_array_equal(weight, np.concatenate(halves))
    assert all(tensor.is_contiguous() for tensor in imported.tensors.values())


def test_a_model_without_an_output_bias_and_with_another_size_of_embeddings(tmp_path):
    marian_file(tmp_path, ties="none")
    arrays = dict(np.load(tmp_path / "model.npz"))
    output = arrays.pop("decoder_ff_logit_out_W")
    arrays["decoder_ff_logit_out_Wt"] = output.T
    del arrays["decoder_ff_logit_out_b"]
    np.savez(tmp_path / "model.npz", **arrays)
    imported = from_marian(tmp_path)
    assert {*imported.tensors["output.bias"].tolist()} == {0.0, NEVER}
    np.testing.assert_array_equal(imported.tensors["output.weight"][3], output.T[0])
    arrays["decoder_Wemb"] = arrays["decoder_Wemb"][:-1]
    np.savez(tmp_path / "model.npz", **arrays)
    rows = len(arrays["decoder_Wemb"])
    with pytest.raises(UserError, match=re.escape(f"has embeddings [{rows}, 16] for {rows + 1} pieces")):
        from_marian(tmp_path)


def test_a_vocabulary_of_marian_needs_an_end_and_an_unknown_piece(tmp_path):
    for ids in ({"<unk>": 0}, {"</s>": 0}, {}):
        with pytest.raises(UserError, match=r"v\.yml: has no <unk> or no </s>. Is this the model's vocabulary"):
            marian._vocabulary(ids, 4, tmp_path / "v.yml")
    vocabulary = marian._vocabulary({"<unk>": 0, "</s>": 1, "a": 2, "b": 3}, 4, tmp_path)
    assert vocabulary.rows == [None, 0, None, 1, 2, 3]
    assert Keys({}, tmp_path).values == {}
