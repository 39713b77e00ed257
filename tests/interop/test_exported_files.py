"""Every file of an export but the weights, as a whole: others read them."""

import json

import numpy as np
import pytest
import torch
import yaml
from safetensors.torch import load_file

from tests.interop.test_huggingface_export import SMALL, made
from tests.probes.foreign import many_languages_folder, marian_file
from translucid import __version__
from translucid.api.translator import Translator
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL
from translucid.interop.huggingface import from_huggingface
from translucid.interop.huggingface_card import model_card
from translucid.interop.huggingface_export import export_huggingface
from translucid.interop.huggingface_rows import M2M100
from translucid.interop.importing import import_model
from translucid.interop.marian_export import export_marian, save_marian
from translucid.layers.positions import sinusoidal_positions
from translucid.models.build import build_model
from translucid.models.language_options import BiLSTMLanguageOptions
from translucid.models.model_options import TransformerOptions
from translucid.runs.configuration import validated
from translucid.runs.run_folder import RunFolder


def read(file):
    return json.loads(file.read_text(encoding="utf-8"))


SHAPE = {
    "is_encoder_decoder": True,
    "d_model": 16,
    "encoder_layers": 2,
    "encoder_attention_heads": 2,
    "encoder_ffn_dim": 24,
    "encoder_layerdrop": 0.0,
    "decoder_layers": 1,
    "decoder_attention_heads": 2,
    "decoder_ffn_dim": 24,
    "decoder_layerdrop": 0.0,
    "attention_dropout": 0.0,
    "activation_dropout": 0.0,
    "bos_token_id": None,
    "torch_dtype": "float32",
}
SEARCH = {"num_beams": 5, "length_penalty": 0.6, "no_repeat_ngram_size": 0}


def decoding(configuration):
    options = configuration.decoding
    return {
        "num_beams": options.beam,
        "length_penalty": options.length_penalty,
        "no_repeat_ngram_size": options.no_repeat_ngram,
    }


def test_a_marian_model_of_two_vocabularies(tmp_path):
    changes = {"norm": "post", "share_embeddings": False, "nonlinearity": "gelu", "tie_output": False, "dropout": 0.25}
    model, tokenizer, configuration = made(changes, joint=False, source_language="en", target_language="es")
    out = tmp_path / "out"
    assert export_huggingface(model, tokenizer, configuration, out) == "MarianMTModel"
    special = {"pad_token_id": 0, "eos_token_id": 3, "decoder_start_token_id": 2, "forced_eos_token_id": 3}
    assert read(out / "config.json") == SHAPE | special | {
        "architectures": ["MarianMTModel"],
        "model_type": "marian",
        "vocab_size": tokenizer.source_size,
        "decoder_vocab_size": tokenizer.target_size,
        "share_encoder_decoder_embeddings": False,
        "activation_function": "gelu",
        "dropout": 0.25,
        "scale_embedding": True,
        "tie_word_embeddings": False,
        "max_position_embeddings": 512,
    }
    assert read(out / "generation_config.json") == decoding(configuration) | special | {
        "max_length": 512,
        "bad_words_ids": [[0], [1], [2]],
    }
    assert read(out / "tokenizer_config.json") == {
        "tokenizer_class": "MarianTokenizer",
        "source_lang": "en",
        "target_lang": "es",
        "separate_vocabs": True,
        "model_max_length": 512,
        "clean_up_tokenization_spaces": False,
        "pad_token": "<pad>",
        "unk_token": "<unk>",
        "eos_token": "</s>",
    }
    assert not any("positions" in name for name in load_file(out / "model.safetensors"))
    assert [*read(out / "vocab.json")] == tokenizer.source_pieces(range(tokenizer.source_size))
    assert [*read(out / "target_vocab.json")] == tokenizer.target_vocabulary
    files = {"README.md", "config.json", "generation_config.json", "model.safetensors", "source.spm", "target.spm"}
    assert {file.name for file in out.iterdir()} == files | {
        "target_vocab.json",
        "tokenizer_config.json",
        "vocab.json",
    }
    assert (out / "config.json").read_text().startswith('{\n  "architectures"')
    with pytest.raises(UserError, match="is there already"):
        export_huggingface(model, tokenizer, configuration, out)
    export_huggingface(model, tokenizer, configuration, out, overwrite=True)


def test_a_pegasus_model_of_long_texts(tmp_path):
    model, tokenizer, configuration = made({"norm": "pre"}, max_tokens=700)
    out = tmp_path / "out"
    assert export_huggingface(model, tokenizer, configuration, out) == "PegasusForConditionalGeneration"
    config = read(out / "config.json")
    assert (config["model_type"], config["max_position_embeddings"], config["vocab_size"]) == ("pegasus", 700, 150)
    assert "decoder_vocab_size" not in config and "share_encoder_decoder_embeddings" not in config
    assert read(out / "generation_config.json")["max_length"] == 700
    weights = load_file(out / "model.safetensors")
    for side in ("encoder", "decoder"):
        table = sinusoidal_positions(700, 16, kind="sinusoidal-halves")
        assert torch.equal(weights[f"model.{side}.embed_positions.weight"], table)
    facts = read(out / "tokenizer_config.json")
    assert (facts["model_max_length"], facts["separate_vocabs"], facts["source_lang"]) == (700, False, None)
    assert not (out / "target_vocab.json").exists()
    assert (out / "source.spm").read_bytes() == (out / "target.spm").read_bytes()


@pytest.fixture(scope="module", params=["m2m", "nllb"])
def many(request, tmp_path_factory):
    """A run of M2M100's or NLLB's, and the folder that it is exported to."""
    place, nllb = tmp_path_factory.mktemp(request.param), request.param == "nllb"
    many_languages_folder(place / "theirs", nllb=nllb, codes=M2M100)
    source, target = ("eng_Latn", "spa_Latn") if nllb else ("en", "es")
    import_model(place / "theirs", place / "run", source_language=source, target_language=target)
    run = RunFolder(place / "run")
    configuration, tokenizer = run.configuration(), run.tokenizer()
    model = run.load_sequence_model(configuration, tokenizer)
    assert export_huggingface(model, tokenizer, configuration, place / "out") == "M2M100ForConditionalGeneration"
    return nllb, place / "theirs", place / "out", configuration


def test_a_model_of_many_languages(many):
    nllb, theirs, out, configuration = many
    size = read(theirs / "config.json")["vocab_size"]
    special = {"pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2, "forced_eos_token_id": 2}
    assert read(out / "config.json") == SHAPE | special | {
        "architectures": ["M2M100ForConditionalGeneration"],
        "model_type": "m2m_100",
        "encoder_layers": 1,
        "decoder_layers": 2,
        "vocab_size": size,
        "activation_function": "relu",
        "dropout": 0.1,
        "scale_embedding": True,
        "tie_word_embeddings": True,
        "max_position_embeddings": 600,
    }
    assert read(out / "generation_config.json") == decoding(configuration) | special | {
        "max_length": 600,
        "bad_words_ids": [[1], [3]],
    }
    codes = ["eng_Latn", "spa_Latn"] if nllb else [f"__{code}__" for code in M2M100]
    first = 4 + 200 - 3  # four special tokens, and the pieces without SentencePiece's three
    rows = dict(enumerate(["<s>", "<pad>", "</s>", "<unk>"])) | dict(enumerate(codes, first))
    flags = {"lstrip": False, "normalized": False, "rstrip": False, "single_word": False, "special": True}
    wanted = {
        "tokenizer_class": "NllbTokenizer" if nllb else "M2M100Tokenizer",
        "src_lang": "eng_Latn" if nllb else "en",
        "tgt_lang": "spa_Latn" if nllb else "es",
        "bos_token": "<s>",
        "sep_token": "</s>",
        "additional_special_tokens": codes,
        "added_tokens_decoder": {str(row): {"content": name, **flags} for row, name in rows.items()},
        "model_max_length": 600,
        "clean_up_tokenization_spaces": False,
        "pad_token": "<pad>",
        "unk_token": "<unk>",
        "eos_token": "</s>",
    }
    if not nllb:
        wanted |= {"language_codes": "m2m100", "num_madeup_words": 8}
        assert read(out / "vocab.json") == read(theirs / "vocab.json")
    assert read(out / "tokenizer_config.json") == wanted
    assert (out / "vocab.json").exists() is not nllb


def card(*arguments, **more):
    return model_card("MarianMTModel", *arguments, **{"by_language": False, "made_by": "1.2"} | more)


def test_the_card_of_a_model():
    assert card(("en", "pt-BR"), {}) == (
        "---\n"
        'language: ["en", "pt-BR"]\n'
        "library_name: transformers\n"
        "pipeline_tag: translation\n"
        "tags: [translation]\n"
        "---\n"
        "\n"
        "# en to pt-BR\n"
        "\n"
        "A `MarianMTModel`, written by `translucid export --to huggingface` (1.2).\n"
        "\n"
        "```python\n"
        "from transformers import AutoModelForSeq2SeqLM, AutoTokenizer\n"
        "\n"
        'tokenizer = AutoTokenizer.from_pretrained(".")\n'
        'model = AutoModelForSeq2SeqLM.from_pretrained(".")\n'
        'batch = tokenizer(["…"], return_tensors="pt", padding=True)\n'
        "print(tokenizer.batch_decode(model.generate(**batch), skip_special_tokens=True))\n"
        "```\n"
    )


@pytest.mark.parametrize(
    ("languages", "pieces", "by_language", "lines"),
    [
        ((None, None), {}, False, ["# translation", 'tokenizer(["…"]']),
        (("en", None), {}, False, ['language: ["en"]', "# translation"]),
        ((None, "pt"), {"es": ">>es<<", "pt": ">>pt<<"}, False, ['language: ["pt", "es"]', '[">>pt<< …"]']),
        ((None, None), {"pt": ">>pt<<", "es": ">>es<<"}, False, ['["pt", "es"]', '[">>es<< …"]', "# translation"]),
        (
            ("en", "es"),
            {"es": "__es__", "en": "__en__"},
            True,
            ['from_pretrained(".", src_lang="en")', 'forced_bos_token_id=tokenizer.convert_tokens_to_ids("__es__"))'],
        ),
        ((None, None), {"es": "__es__", "en": "__en__"}, True, ['src_lang="en"', 'ids("__es__")']),
        ((None, "xx_1"), {"abcd": "__abcd__"}, False, ["# translation\n"]),
    ],
)
def test_the_card_names_the_languages_and_how_they_are_chosen(languages, pieces, by_language, lines):
    text = card(languages, pieces, by_language=by_language)
    assert all(line in text for line in lines), text
    if (not languages[0] and not pieces) or "abcd" in pieces:
        assert "language:" not in text
    assert ("forced_bos" in text) is by_language


def test_the_card_names_the_version(many):
    assert f"export --to huggingface` ({__version__})" in (many[2] / "README.md").read_text(encoding="utf-8")


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
    # All arrays are theirs, in the order of the rows of our vocabulary; their order is ours but for the added pieces.
    theirs = dict(np.load(tmp_path / "theirs" / "model.npz"))
    del theirs["special:model.yml"]
    assert {*arrays} == {*theirs}
    for name, array in theirs.items():
        found = arrays[name]
        if name == "Wemb":
            found = found[: len(array)]
        elif name == "decoder_ff_logit_out_b":
            found = found[:, : array.shape[1]]
        np.testing.assert_array_equal(found, array, err_msg=name)
    with pytest.raises(UserError, match="is there already"):
        export_marian(translator.model, translator.tokenizer, tmp_path / "out", beam=3)
    export_marian(translator.model, translator.tokenizer, tmp_path / "out", beam=4, overwrite=True)
    assert yaml.safe_load((tmp_path / "out" / "decoder.yml").read_text())["beam-size"] == 4


@pytest.mark.parametrize(
    ("share", "tie", "key"),
    [(True, True, "all"), (True, False, "src"), (False, True, ""), (False, False, None)],
)
def test_marian_is_told_which_matrices_are_one(tmp_path, share, tie, key):
    _, tokenizer, _ = made({"norm": "post", "share_embeddings": share}, joint=share)
    shape = {**SMALL, "positions": "sinusoidal-tensor2tensor", "zero_start": True}
    options = TransformerOptions(**shape, share_embeddings=share, tie_output=tie)
    model = build_model(options, tokenizer.source_size, tokenizer.target_size)
    save_marian(model, tokenizer, tmp_path)
    arrays = dict(np.load(tmp_path / "model.npz"))
    written = yaml.safe_load(arrays["special:model.yml"].tobytes().rstrip(b"\0"))
    keys = {name: written["tied-embeddings" + name] for name in ("", "-src", "-all")}
    assert keys == {name: key is not None and name == (key and f"-{key}") for name in keys}
    assert yaml.safe_load((tmp_path / "decoder.yml").read_text())["beam-size"] == 5
    names = {"Wemb"} if share else {"encoder_Wemb", "decoder_Wemb"}
    assert names <= {*arrays} and ("Wemb" in arrays) is share
    assert ("decoder_ff_logit_out_W" in arrays) is not tie
    files = {"vocab.spm"} if share else {"source.spm", "target.spm"}
    assert {file.name for file in tmp_path.glob("*.spm")} == files


def test_marian_has_neither_elmo_nor_languages(tmp_path, many):
    _, tokenizer, _ = made({"norm": "post"})
    elmo = TransformerOptions(**SMALL, elmo=BiLSTMLanguageOptions(width=8, hidden=8))
    with pytest.raises(UserError, match=r"only a Transformer can become a model of Marian. Use it as it is."):
        save_marian(build_model(elmo, 150, 150), tokenizer, tmp_path / "out")
    needed = "model.positions=sinusoidal-tensor2tensor model.first_position=0 model.scale_embeddings=true"
    plain = build_model(TransformerOptions(**SMALL), 150, 150)
    with pytest.raises(UserError, match=f"Train with --set {needed} model.zero_start=true for it."):
        save_marian(plain, tokenizer, tmp_path / "out")
    fit = {**SMALL, "positions": "sinusoidal-tensor2tensor", "zero_start": True}

    class Opening:
        source_opening, target_opening = (), (5,)

    with pytest.raises(UserError, match=r"Marian's vocabularies do not tell languages. Use --to huggingface."):
        save_marian(build_model(TransformerOptions(**fit), 150, 150), Opening(), tmp_path / "out")
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({"kind": "recurrent", "width": 16}, "a model of the kind recurrent has none like it at Hugging Face"),
        (
            {"kind": "transformer", **SMALL, "elmo": {"kind": "language-bilstm", "width": 8, "hidden": 8}},
            "Hugging Face has no translator that reads its source with ELMo",
        ),
    ],
)
def test_models_that_hugging_face_lacks_are_refused(tmp_path, model, message):
    with pytest.raises(UserError, match=message):
        export_huggingface(None, None, validated({"model": model}), tmp_path / "out")


def test_the_settings_of_an_import(tmp_path):
    many_languages_folder(tmp_path / "m2m", max_position_embeddings=1 << 15)
    config = read(tmp_path / "m2m" / "config.json")
    (tmp_path / "m2m" / "config.json").write_text(json.dumps(config | {"num_beams": 20}))
    found = from_huggingface(tmp_path / "m2m")
    assert found.kind == "M2M100"
    assert found.settings == {
        "model": {
            "kind": "transformer",
            "width": 16,
            "heads": 2,
            "feed_forward": 24,
            "encoder_layers": 1,
            "decoder_layers": 2,
            "dropout": 0.1,
            "norm": "pre",
            "nonlinearity": "relu",
            "positions": "sinusoidal-tensor2tensor",
            "first_position": 2,
            "scale_embeddings": True,
            "zero_start": False,
            "share_embeddings": True,
            "tie_output": True,
        },
        "data": {
            "tokenizer": {
                "joint": True,
                "shared_ids": False,
                "languages": {"en": "__en__", "es": "__es__"},
                "told": "each on its own side",
                "vocabulary": len(found.tokenizer.target_vocabulary),
            },
            "max_tokens": 1 << 14,
        },
        "decoding": {"beam": 10},
    }
    assert found.tokenizer.target_vocabulary[: len(SPECIAL)] == ["<pad>", "<unk>", "<s>", "</s>"]
