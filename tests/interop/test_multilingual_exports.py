"""Multilingual runs in other toolkits: the language piece before the source works there, too."""

import pytest
import torch
import yaml

from tests.probes.foreign import many_languages_folder
from translucid.api.translator import Translator
from translucid.cli.main import run as run_command
from translucid.engines.target_pieces import pieces_file
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL
from translucid.interop.importing import import_model
from translucid.runs.configuration import resolve
from translucid.runs.run_folder import RunFolder, _with_learned
from translucid.runs.tensor_file import load_tensors

TEXTS = ["I like soccer.", "Ana has two cats.", "We go to the beach."]
LANGUAGES = ["en", "es"]
GREEDY = {"beam": 1, "max_length_ratio": 1, "max_length_extra": 4}


def export_run(run, out, to, *options):
    assert run_command(["export", str(run), str(out), "--to", to, *options]) == 0
    return out


def greedy_translations(run, language):
    """Return a run's greedy translations by our own search."""
    translator = Translator.load(run, "cpu", "torch", target=language)
    return [translation.text for translation in translator.translate(TEXTS, split=False, **GREEDY)]


@pytest.mark.parametrize("language", LANGUAGES)
def test_transformers_recognizes_the_language_in_the_text(multilingual_run, tmp_path, language):
    from transformers import MarianMTModel, MarianTokenizer

    folder = export_run(multilingual_run, tmp_path / "out", "huggingface")
    model, tokenizer = MarianMTModel.from_pretrained(folder).eval(), MarianTokenizer.from_pretrained(folder)
    assert tokenizer.supported_language_codes == [">>en<<", ">>es<<"]
    ours = Translator.load(multilingual_run, "cpu", "torch", target=language)
    for text in TEXTS:
        ids = tokenizer(f">>{language}<< {text}", return_tensors="pt").input_ids
        (piece,) = ours.pipeline.pieces([text], split=False)[0]
        assert tokenizer.convert_ids_to_tokens(ids[0]) == ours.tokenizer.source_pieces(piece.ids)
        with torch.inference_mode():
            logits = model(ids, decoder_input_ids=torch.tensor([[model.config.decoder_start_token_id]])).logits[0, 0]
            expected = ours.model(torch.tensor([piece.ids]), torch.tensor([[2]]))[0, 0]
        rows = tokenizer.convert_tokens_to_ids(ours.tokenizer.target_pieces(range(4, 50)))
        torch.testing.assert_close(logits[rows], expected[4:50], atol=1e-4, rtol=0)


@pytest.mark.parametrize("to", ["ctranslate2", "huggingface"])
def test_exported_runs_are_imported_again(multilingual_run, tmp_path, to):
    options = ["--target-language", "es"] if to == "ctranslate2" else []
    import_model(export_run(multilingual_run, tmp_path / "out", to, *options), tmp_path / "run")
    for language in LANGUAGES:
        assert greedy_translations(tmp_path / "run", language) == greedy_translations(multilingual_run, language)


def test_the_fast_engine_reads_the_language(multilingual_run):
    fast = Translator.load(multilingual_run, "cpu", "ctranslate2", target="es")
    for language in LANGUAGES:
        translations = fast.between(None, language).translate(TEXTS, split=False, **GREEDY)
        assert [translation.text for translation in translations] == greedy_translations(multilingual_run, language)


def test_onnx_reads_it_before_the_source(multilingual_run, corpus, tmp_path):
    pytest.importorskip("onnxruntime")
    check = ["--target-language", "es", "--check", f"{corpus}/test.tsv:en-es"]
    export_run(multilingual_run, tmp_path / "out", "onnx", *check)


def test_an_export_of_one_language_needs_its_name(multilingual_run, tmp_path, capsys):
    assert run_command(["export", str(multilingual_run), str(tmp_path / "out"), "--to", "ctranslate2"]) == 2
    assert "--target-language, one of en, es" in capsys.readouterr().err
    # Formats for a single direction are refused before a language is asked for.
    for to in ("marian", "firefox", "web"):
        for languages in ([], ["--source-language", "en", "--target-language", "es"]):
            assert run_command(["export", str(multilingual_run), str(tmp_path / "out"), "--to", to, *languages]) == 2
            assert f"is multilingual, and a folder of --to {to} has no" in capsys.readouterr().err


@pytest.fixture(scope="module", params=["m2m", "nllb"])
def extended(request, corpus, tmp_path_factory):
    """A folder with an imported model, and the same model with an added, untrained language."""
    folder = tmp_path_factory.mktemp(request.param)
    nllb = request.param == "nllb"
    many_languages_folder(folder / "theirs", nllb=nllb, end=2.0)
    import_model(folder / "theirs", folder / "run")
    for split in ("train", "test"):
        lines = (corpus / f"{split}.tsv").read_text().replace("d", "ǥ")
        (folder / f"{split}.tsv").write_text(lines)
    languages = "eng_Latn-ita_Latn" if nllb else "en-it"
    files = ["--train", f"{folder}/train.tsv:{languages}", "--valid", f"{folder}/test.tsv:{languages}"]
    # The bias stays frozen although other parts are named.
    limits = ["training.max_steps=1", "training.learning_rate=1e-9", "training.validate_sentences=2"]
    limits.append("training.freeze=[encoder]")
    command = ["train", "added-language", "--init-from", f"{folder}/run", *files, "--out", f"{folder}/more"]
    assert run_command([*command, "--both-directions", "--set", *limits]) == 0
    return folder, nllb


def test_an_imported_model_gets_a_language(extended):
    folder, nllb = extended
    original_run, extended_run = RunFolder(folder / "run"), RunFolder(folder / "more")
    pieces = extended_run.tokenizer().target_vocabulary[original_run.tokenizer().target_size :]
    language, former_languages = ("ita_Latn", ["eng_Latn", "spa_Latn"]) if nllb else ("__it__", ["__en__", "__es__"])
    assert pieces[:2] == [language, "ǥ"] and len(pieces) > 20
    old, new = load_tensors(original_run.model_file)[0], load_tensors(extended_run.model_file)[0]
    name = "source_embedding.tokens.weight"
    size = len(old[name])
    torch.testing.assert_close(new[name][:size], old[name])
    rows = [original_run.tokenizer().source_id(piece) for piece in former_languages]
    torch.testing.assert_close(new[name][size], old[name][rows].mean(0))
    torch.testing.assert_close(new[name][size + 1], old[name][len(SPECIAL) :].mean(0))
    # M2M100 has no bias, so the new pieces have none.
    assert not new["output.bias"][size:].any()
    assert torch.equal(new["output.bias"][:size], old["output.bias"])
    for target in LANGUAGES:
        outputs = []
        for run in (original_run, extended_run):
            translator = Translator.load(run.path, "cpu", "torch", source="en", target=target)
            outputs.append([result.text for result in translator.translate(TEXTS, split=False, **GREEDY)])
        assert outputs[0] == outputs[1]


def test_an_imported_model_keeps_its_directions(extended):
    folder, nllb = extended
    english, spanish, italian = ("eng_Latn", "spa_Latn", "ita_Latn") if nllb else ("en", "es", "it")
    run = RunFolder(folder / "more")
    data = run.configuration().data
    learned = [(english, spanish), (spanish, english), (english, italian), (italian, english)]
    assert not any(map(data.is_zero_shot, learned))
    assert data.is_zero_shot((spanish, italian)) and data.is_zero_shot((italian, spanish))
    # The few pairs of a fine-tuning do not say what else is Spanish or English.
    assert pieces_file(run, (italian, spanish), data) is None and pieces_file(run, (spanish, italian), data)
    settings = yaml.safe_load(run.config_file.read_text())
    del settings["data"]["learned"]  # as in runs of earlier versions
    older = _with_learned(settings)["data"]["learned"]
    assert {spanish, english} <= {*older["*"]}


def test_token_log_probabilities_are_without_the_language_token(extended):
    folder, _ = extended
    translator = Translator.load(folder / "run", "cpu", "torch", source="en", target="es")
    translation = translator.translate(TEXTS[0], split=False, **GREEDY)
    (tokens,) = translation.token_log_probabilities
    (hypothesis,) = translation.nbest[0].hypotheses
    (opening,) = translator.tokenizer.target_opening
    assert hypothesis.with_end[0] == opening
    assert [piece for piece, _ in tokens] == translator.tokenizer.target_pieces(hypothesis.with_end[1:])
    assert sum(value for _, value in tokens) == pytest.approx(hypothesis.log_probability, abs=1e-3)


def test_an_added_language_in_an_export(extended, tmp_path, capsys):
    folder, nllb = extended
    code = run_command(["export", f"{folder}/more", str(tmp_path / "out"), "--to", "huggingface"])
    if nllb:
        import_model(tmp_path / "out", tmp_path / "back")
        assert RunFolder(tmp_path / "back").configuration().data.tokenizer.languages.keys() >= {"ita_Latn"}
    else:
        assert code == 2 and "M2M100's tokenizer" in capsys.readouterr().err


def test_the_code_of_a_new_language_of_nllb_has_a_script():
    tokenizer = {"languages": {"eng_Latn": "eng_Latn"}, "language_pieces": "both-sides"}
    files = {"data.train": ["x.tsv:en-fr"], "data.valid": ["x.tsv:en-fr"]}
    with pytest.raises(UserError, match="fr is new to the model, whose codes are such as eng_Latn: write its script"):
        resolve(overrides={**files, "data.tokenizer": tokenizer})
