"""All files of an export except the weights, compared completely, because other programs read them."""

import json

import huggingface_hub
import pytest
import torch
from safetensors.torch import load_file

from tests.interop.test_huggingface_export import SMALL, make_model
from tests.probes.foreign import many_languages_folder
from translucid import __version__
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL
from translucid.interop.huggingface import from_huggingface
from translucid.interop.huggingface_export import M2M100, ModelCard, export_huggingface
from translucid.interop.importing import import_model
from translucid.layers.positions import sinusoidal_positions
from translucid.runs.configuration import validated
from translucid.runs.run_folder import RunFolder


def read_json(file):
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


def decoding_settings(configuration):
    options = configuration.decoding
    return {
        "num_beams": options.beam,
        "length_penalty": options.length_penalty,
        "no_repeat_ngram_size": options.no_repeat_ngram,
    }


def test_a_marian_model_of_two_vocabularies(tmp_path):
    changes = {"norm": "post", "share_embeddings": False, "nonlinearity": "gelu", "tie_output": False, "dropout": 0.25}
    model, tokenizer, configuration = make_model(changes, joint=False, source_language="en", target_language="es")
    out = tmp_path / "out"
    assert export_huggingface(model, tokenizer, configuration, out) == "MarianMTModel"
    special = {"pad_token_id": 0, "eos_token_id": 3, "decoder_start_token_id": 2, "forced_eos_token_id": 3}
    assert read_json(out / "config.json") == SHAPE | special | {
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
    assert read_json(out / "generation_config.json") == decoding_settings(configuration) | special | {
        "max_length": 512,
        "bad_words_ids": [[0], [1], [2]],
    }
    assert read_json(out / "tokenizer_config.json") == {
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
    assert [*read_json(out / "vocab.json")] == tokenizer.source_pieces(range(tokenizer.source_size))
    assert [*read_json(out / "target_vocab.json")] == tokenizer.target_vocabulary
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
    model, tokenizer, configuration = make_model({"norm": "pre"}, max_tokens=700)
    out = tmp_path / "out"
    assert export_huggingface(model, tokenizer, configuration, out) == "PegasusForConditionalGeneration"
    config = read_json(out / "config.json")
    assert (config["model_type"], config["max_position_embeddings"], config["vocab_size"]) == ("pegasus", 700, 150)
    assert "decoder_vocab_size" not in config and "share_encoder_decoder_embeddings" not in config
    assert read_json(out / "generation_config.json")["max_length"] == 700
    weights = load_file(out / "model.safetensors")
    for side in ("encoder", "decoder"):
        table = sinusoidal_positions(700, 16, kind="sinusoidal-halves")
        assert torch.equal(weights[f"model.{side}.embed_positions.weight"], table)
    tokenizer_config = read_json(out / "tokenizer_config.json")
    assert (
        tokenizer_config["model_max_length"],
        tokenizer_config["separate_vocabs"],
        tokenizer_config["source_lang"],
    ) == (700, False, None)
    assert not (out / "target_vocab.json").exists()
    assert (out / "source.spm").read_bytes() == (out / "target.spm").read_bytes()


@pytest.fixture(scope="module", params=["m2m", "nllb"])
def many(request, tmp_path_factory):
    """A run imported from M2M100 or NLLB, and the folder of its export."""
    folder, nllb = tmp_path_factory.mktemp(request.param), request.param == "nllb"
    many_languages_folder(folder / "theirs", nllb=nllb, codes=M2M100)
    source, target = ("eng_Latn", "spa_Latn") if nllb else ("en", "es")
    import_model(folder / "theirs", folder / "run", source_language=source, target_language=target)
    run = RunFolder(folder / "run")
    configuration, tokenizer = run.configuration(), run.tokenizer()
    model = run.load_sequence_model(configuration, tokenizer)
    assert export_huggingface(model, tokenizer, configuration, folder / "out") == "M2M100ForConditionalGeneration"
    return nllb, folder / "theirs", folder / "out", configuration


def test_a_model_of_many_languages(many):
    nllb, theirs, out, configuration = many
    size = read_json(theirs / "config.json")["vocab_size"]
    special = {"pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 2, "forced_eos_token_id": 2}
    assert read_json(out / "config.json") == SHAPE | special | {
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
    assert read_json(out / "generation_config.json") == decoding_settings(configuration) | special | {
        "max_length": 600,
        "bad_words_ids": [[1], [3]],
    }
    codes = ["eng_Latn", "spa_Latn"] if nllb else [f"__{code}__" for code in M2M100]
    first = 4 + 200 - 3  # four special tokens, and the pieces except SentencePiece's own three
    rows = dict(enumerate(["<s>", "<pad>", "</s>", "<unk>"])) | dict(enumerate(codes, first))
    flags = {"lstrip": False, "normalized": False, "rstrip": False, "single_word": False, "special": True}
    expected = {
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
        expected |= {"language_codes": "m2m100", "num_madeup_words": 8}
        assert read_json(out / "vocab.json") == read_json(theirs / "vocab.json")
    assert read_json(out / "tokenizer_config.json") == expected
    assert (out / "vocab.json").exists() is not nllb


def card_text(languages, pieces, by_language=False, **fields):
    return ModelCard("MarianMTModel", languages, pieces, by_language, **fields).text()


def test_the_card_of_a_model():
    measures = {"bleu": 20.118, "chrf.en-es": 40.0, "step": 4, "general_bleu": 9.0, "bleu.es-en": 7.5}
    files = ["/home/somebody/pairs.tsv", "more.tmx"]
    text = card_text(("en", "pt-BR"), {}, longest=1000, files=files, measures=measures)
    parsed = huggingface_hub.ModelCard(text).data  # parsed with the Hub's own reader
    assert (parsed.language, parsed.library_name, parsed.pipeline_tag) == (
        ["en", "pt-BR"],
        "transformers",
        "translation",
    )
    scores = [(result.task_name, result.metric_type, result.metric_value) for result in parsed.eval_results]
    assert scores == [("en to pt-BR", "bleu", 20.12), ("en to es", "chrf", 40.0), ("es to en", "bleu", 7.5)]
    rows = ["| en to pt-BR | BLEU | 20.12 |", "| en to es | chrF | 40.00 |", "| es to en | BLEU | 7.50 |"]
    for line in ("# en to pt-BR", "Trained on `pairs.tsv`, `more.tmx`.", "A text may have 1,000 tokens", *rows):
        assert line in text
    assert f"A `MarianMTModel`, written by `translucid export --to huggingface` ({__version__})." in text
    assert "somebody" not in text and "9.0" not in text
    minimal_card = card_text((None, None), {})
    assert "No scores are recorded" in minimal_card and "does not record what it was trained on" in minimal_card
    assert huggingface_hub.ModelCard(minimal_card).data.eval_results is None


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
    text = card_text(languages, pieces, by_language)
    assert all(line in text for line in lines), text
    if (not languages[0] and not pieces) or "abcd" in pieces:
        assert "language:" not in text
    assert ("forced_bos" in text) is by_language


def test_the_card_names_the_version(many):
    assert f"export --to huggingface` ({__version__})" in (many[2] / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({"kind": "recurrent", "width": 16}, "a model of the kind recurrent has none like it at Hugging Face"),
        (
            {"kind": "transformer", **SMALL, "elmo": {"kind": "language-bilstm", "width": 8, "hidden": 8}},
            "Hugging Face has no translator that reads its source with ELMo",
        ),
        ({"kind": "transformer", **SMALL, "decoder": "ssru"}, "Hugging Face has no translator with model.decoder=ssru"),
    ],
)
def test_models_that_hugging_face_lacks_are_refused(tmp_path, model, message):
    with pytest.raises(UserError, match=message):
        export_huggingface(None, None, validated({"model": model}), tmp_path / "out")


def test_the_settings_of_an_import(tmp_path):
    many_languages_folder(tmp_path / "m2m", max_position_embeddings=1 << 15)
    config = read_json(tmp_path / "m2m" / "config.json")
    (tmp_path / "m2m" / "config.json").write_text(json.dumps(config | {"num_beams": 20}))
    imported = from_huggingface(tmp_path / "m2m")
    assert imported.kind == "M2M100"
    assert imported.settings == {
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
                "language_pieces": "both-sides",
                "vocabulary": len(imported.tokenizer.target_vocabulary),
            },
            "max_tokens": 1 << 14,
        },
        "decoding": {"beam": 10},
    }
    assert imported.tokenizer.target_vocabulary[: len(SPECIAL)] == ["<pad>", "<unk>", "<s>", "</s>"]
