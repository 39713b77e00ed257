"""All files of an export to Marian except the vocabularies, compared completely."""

import numpy as np
import pytest
import yaml

from tests.interop.test_huggingface_export import SMALL, make_model
from tests.probes.foreign import marian_file
from translucid.api.translator import Translator
from translucid.ground.errors import UserError
from translucid.interop.importing import import_model
from translucid.interop.marian_export import export_marian
from translucid.language.options import BiLSTMLanguageOptions
from translucid.models.build import build_model
from translucid.models.model_options import TransformerOptions


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_a_folder_of_marian(tmp_path, norm):
    marian_file(tmp_path / "theirs", norm=norm, activation="relu")
    import_model(tmp_path / "theirs", tmp_path / "run")
    translator = Translator.load(tmp_path / "run", "cpu", "torch")
    export_marian(translator.model, translator.tokenizer, tmp_path / "out", beam=3)
    assert yaml.safe_load((tmp_path / "out" / "decoder.yml").read_text()) == {
        "relative-paths": True,
        "models": ["model.npz"],
        "vocabs": ["source.spm", "target.spm"],
        "beam-size": 3,
        "normalize": 1.0,
        "mini-batch": 16,
        "maxi-batch": 100,
        "maxi-batch-sort": "src",
    }
    arrays = dict(np.load(tmp_path / "out" / "model.npz"))
    content = arrays.pop("special:model.yml").tobytes()
    assert content.endswith(b"\n\0")
    size = translator.tokenizer.source_size - 2
    pre = norm == "pre"
    assert yaml.safe_load(content[:-1]) == {
        "type": "transformer",
        "version": "v1.12.0",
        "dim-vocabs": [size, size],
        "dim-emb": 16,
        "dim-rnn": 16,
        "lemma-dim-emb": 0,
        "lemma-dependency": "",
        "factors-combine": "sum",
        "factors-dim-emb": 0,
        "enc-depth": 2,
        "dec-depth": 2,
        "transformer-heads": 4,
        "transformer-no-projection": False,
        "transformer-no-bias": False,
        "transformer-no-affine": False,
        "transformer-rnn-projection": False,
        "transformer-pool": False,
        "transformer-dim-ffn": 24,
        "transformer-decoder-dim-ffn": 0,
        "transformer-ffn-depth": 2,
        "transformer-decoder-ffn-depth": 0,
        "transformer-ffn-activation": "relu",
        "transformer-dim-aan": 24,
        "transformer-aan-depth": 2,
        "transformer-aan-activation": "relu",
        "transformer-aan-nogate": False,
        "transformer-decoder-autoreg": "self-attention",
        "transformer-tied-layers": [],
        "transformer-guided-alignment-layer": "last",
        "transformer-preprocess": "n" if pre else "",
        "transformer-postprocess": "da" if pre else "dan",
        "transformer-postprocess-emb": "d",
        "transformer-postprocess-top": "n" if pre else "",
        "transformer-train-position-embeddings": False,
        "transformer-depth-scaling": False,
        "tied-embeddings": False,
        "tied-embeddings-src": False,
        "tied-embeddings-all": True,
        "output-omit-bias": False,
        "layer-normalization": False,
        "bert-train-type-embeddings": True,
        "bert-type-vocab-size": 2,
        "char-conv": 0,
        "input-types": [],
        "ulr": False,
        "ulr-dim-emb": 0,
        "ulr-trainable-transformation": False,
    }
    # All arrays have their names and contents; embeddings and bias have additional rows for the added pieces.
    theirs = dict(np.load(tmp_path / "theirs" / "model.npz"))
    del theirs["special:model.yml"]
    assert {*arrays} == {*theirs}
    for name, array in theirs.items():
        exported = arrays[name]
        if name == "Wemb":
            exported = exported[: len(array)]
        elif name == "decoder_ff_logit_out_b":
            exported = exported[:, : array.shape[1]]
        np.testing.assert_array_equal(exported, array, err_msg=name)
    with pytest.raises(UserError, match="is there already"):
        export_marian(translator.model, translator.tokenizer, tmp_path / "out", beam=3)
    export_marian(translator.model, translator.tokenizer, tmp_path / "out", beam=4, overwrite=True)
    assert yaml.safe_load((tmp_path / "out" / "decoder.yml").read_text())["beam-size"] == 4


@pytest.mark.parametrize(
    ("share", "tie", "key"),
    [(True, True, "all"), (True, False, "src"), (False, True, ""), (False, False, None)],
)
def test_marian_is_told_which_matrices_are_one(tmp_path, share, tie, key):
    _, tokenizer, _ = make_model({"norm": "post", "share_embeddings": share}, joint=share)
    model_options = {**SMALL, "positions": "sinusoidal-tensor2tensor", "zero_start": True}
    options = TransformerOptions(**model_options, share_embeddings=share, tie_output=tie)
    model = build_model(options, tokenizer.source_size, tokenizer.target_size)
    export_marian(model, tokenizer, tmp_path / "out", beam=5)
    arrays = dict(np.load(tmp_path / "out" / "model.npz"))
    settings = yaml.safe_load(arrays["special:model.yml"].tobytes().rstrip(b"\0"))
    keys = {name: settings["tied-embeddings" + name] for name in ("", "-src", "-all")}
    assert keys == {name: key is not None and name == (key and f"-{key}") for name in keys}
    assert yaml.safe_load((tmp_path / "out" / "decoder.yml").read_text())["beam-size"] == 5
    names = {"Wemb"} if share else {"encoder_Wemb", "decoder_Wemb"}
    assert names <= {*arrays} and ("Wemb" in arrays) is share
    assert ("decoder_ff_logit_out_W" in arrays) is not tie
    files = {"vocab.spm"} if share else {"source.spm", "target.spm"}
    assert {file.name for file in (tmp_path / "out").glob("*.spm")} == files


def test_marian_has_neither_elmo_nor_languages(tmp_path):
    _, tokenizer, _ = make_model({"norm": "post"})
    elmo = TransformerOptions(**SMALL, elmo=BiLSTMLanguageOptions(width=8, hidden=8))
    with pytest.raises(UserError, match=r"only a Transformer can become a model of Marian. Use it as it is."):
        export_marian(build_model(elmo, 150, 150), tokenizer, tmp_path / "out", beam=5)
    required_settings = "model.positions=sinusoidal-tensor2tensor model.first_position=0 model.scale_embeddings=true"
    plain = build_model(TransformerOptions(**SMALL), 150, 150)
    with pytest.raises(UserError, match=f"Train with `settings={required_settings} model.zero_start=true` for it."):
        export_marian(plain, tokenizer, tmp_path / "out", beam=5)
    supported = {**SMALL, "positions": "sinusoidal-tensor2tensor", "zero_start": True}

    class Opening:
        source_opening, target_opening = (), (5,)

    with pytest.raises(
        UserError, match=r"Marian reads no language pieces, and this model is multilingual. Use `export_huggingface`."
    ):
        export_marian(build_model(TransformerOptions(**supported), 150, 150), Opening(), tmp_path / "out", beam=5)
    assert [*tmp_path.iterdir()] == []
