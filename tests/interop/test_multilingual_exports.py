"""A multilingual run in other toolkits: the piece of the target language in front of the source works there, too."""

import pytest
import torch

from translucid.api.translator import Translator
from translucid.cli.main import run as run_command
from translucid.interop.importing import import_model

TEXTS = ["I like soccer.", "Ana has two cats.", "We go to the beach."]
LANGUAGES = ["en", "es"]
GREEDY = {"beam": 1, "max_length_ratio": 1, "max_length_extra": 4}


def exported(run, out, to, *more):
    assert run_command(["export", str(run), str(out), "--to", to, *more]) == 0
    return out


def translated(run, language):
    """The greedy translations of a run by our own search."""
    translator = Translator.load(run, "cpu", "torch", target=language)
    return [translation.text for translation in translator.translate(TEXTS, split=False, **GREEDY)]


@pytest.mark.parametrize("language", LANGUAGES)
def test_transformers_recognises_the_language_in_the_text(multilingual_run, tmp_path, language):
    from transformers import MarianMTModel, MarianTokenizer

    folder = exported(multilingual_run, tmp_path / "out", "huggingface")
    model, tokenizer = MarianMTModel.from_pretrained(folder).eval(), MarianTokenizer.from_pretrained(folder)
    assert tokenizer.supported_language_codes == [">>en<<", ">>es<<"]
    ours = Translator.load(multilingual_run, "cpu", "torch", target=language)
    for text in TEXTS:
        ids = tokenizer(f">>{language}<< {text}", return_tensors="pt").input_ids
        (piece,) = ours.pipeline.pieces([text], split=False)[0]
        assert tokenizer.convert_ids_to_tokens(ids[0]) == ours.tokenizer.source_pieces(piece.ids)
        with torch.inference_mode():
            logits = model(ids, decoder_input_ids=torch.tensor([[model.config.decoder_start_token_id]])).logits[0, 0]
            wanted = ours.model(torch.tensor([piece.ids]), torch.tensor([[2]]))[0, 0]
        rows = tokenizer.convert_tokens_to_ids(ours.tokenizer.target_pieces(range(4, 50)))
        torch.testing.assert_close(logits[rows], wanted[4:50], atol=1e-4, rtol=0)


@pytest.mark.parametrize("to", ["ctranslate2", "huggingface"])
def test_what_is_exported_comes_back(multilingual_run, tmp_path, to):
    more = ["--target-language", "es"] if to == "ctranslate2" else []
    import_model(exported(multilingual_run, tmp_path / "out", to, *more), tmp_path / "run")
    for language in LANGUAGES:
        assert translated(tmp_path / "run", language) == translated(multilingual_run, language)


def test_the_fast_engine_reads_the_language(multilingual_run):
    fast = Translator.load(multilingual_run, "cpu", "ctranslate2", target="es")
    for language in LANGUAGES:
        translations = fast.between(None, language).translate(TEXTS, split=False, **GREEDY)
        assert [translation.text for translation in translations] == translated(multilingual_run, language)


def test_onnx_reads_it_before_the_source(multilingual_run, corpus, tmp_path):
    pytest.importorskip("onnxruntime")
    check = ["--target-language", "es", "--check", f"{corpus}/test.tsv:en-es"]
    exported(multilingual_run, tmp_path / "out", "onnx", *check)


def test_an_export_of_one_language_needs_its_name(multilingual_run, tmp_path, capsys):
    assert run_command(["export", str(multilingual_run), str(tmp_path / "out"), "--to", "ctranslate2"]) == 2
    assert "--target-language, one of en, es" in capsys.readouterr().err
