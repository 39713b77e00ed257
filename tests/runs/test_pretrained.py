"""Translators initialized from language models: copied weights, new weights and refused combinations."""

import pytest
import torch

from tests.conftest import SHORT
from translucid.cli.main import run
from translucid.corpora.phrasebook import generate
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.errors import UserError
from translucid.runs.initialization import Pretrained
from translucid.runs.run_folder import RunFolder
from translucid.runs.tensor_file import load_tensors

STEPS = ["training.max_steps=3", "training.validate_every=3", "training.log_every=1", "training.batch_tokens=160"]
VOCABULARY = "data.tokenizer.vocabulary=150"
SHAPES = {
    "lm-transformer": [*("model.width=16", "model.heads=2", "model.feed_forward=24", "model.layers=2")],
    "lm-lstm": ["model.width=16", "model.hidden=16", "model.layers=2"],
    "lm-bilstm": ["model.width=12", "model.hidden=10", "model.layers=2"],
}
WINDOW = ["training.window=10", "model.context=10"]


def command(*words):
    assert run([str(word) for word in words]) == 0


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with pairs, the text of each side, and language models of both sides and of one side."""
    folder = tmp_path_factory.mktemp("pretrained")
    phrases = list(generate(120, split="train", max_words=6))
    (folder / "pairs.tsv").write_text("".join(f"{p.source}\t{p.target}\n" for p in phrases), encoding="utf-8")
    (folder / "en.txt").write_text("".join(f"{p.source}\n" for p in phrases), encoding="utf-8")
    (folder / "es.txt").write_text("".join(f"{p.target}\n" for p in phrases), encoding="utf-8")
    for preset, shape in SHAPES.items():
        window = WINDOW if preset == "lm-transformer" else WINDOW[:1]
        sides = {"both": ["en.txt", "es.txt"]} | ({"en": ["en.txt"], "es": ["es.txt"]} if "trans" in preset else {})
        for name, files in sides.items():
            texts = [folder / file for file in files]
            settings = ["--set", *shape, *window, *STEPS, VOCABULARY]
            command("train", "--model", preset, "--train", *texts, "--out", folder / f"{preset}-{name}", *settings)
    return folder


@pytest.fixture
def initialized_run(folder, tmp_path):
    """Return a function that trains a translator for one update at rate 1e-12, so that it keeps its initial weights."""

    def train(*options, settings=()):
        out = tmp_path / "run"
        pairs = ["--train", folder / "pairs.tsv", "--valid", folder / "pairs.tsv"]
        unchanged = ["training.learning_rate=1e-12", "training.max_steps=1", "training.averaging=0"]
        small = [*SHORT, "training.validate_sentences=2", *settings]
        command("train", *options, *pairs, "--out", out, "--overwrite", "--no-tune", "--set", *unchanged, *small)
        return RunFolder(out)

    return train


def halves(encoder, decoder=None):
    return ["--init-from", f"encoder={encoder}", "--init-from", f"decoder={decoder or encoder}"]


def load_model(run_folder):
    tokenizer = run_folder.tokenizer()
    return run_folder.load_sequence_model(run_folder.configuration(), tokenizer).eval(), tokenizer


@pytest.mark.parametrize(
    ("preset", "model"), [("lm-transformer", "tiny"), ("lm-lstm", "rnn-luong-general"), ("lm-transformer", None)]
)
def test_a_decoder_starts_as_its_language_model(initialized_run, folder, preset, model):
    run_folder = folder / f"{preset}-both"
    model_arguments = ["--model", model] if model else []
    translator, tokenizer = load_model(initialized_run(*model_arguments, *halves(run_folder)))
    language_model, language_tokenizer = load_model(RunFolder(run_folder))
    assert tokenizer.fingerprint == language_tokenizer.fingerprint and tokenizer.joint
    texts = torch.tensor([[2, 9, 17, 30, 12], [2, 40, 8, 21, 9]])
    source = torch.tensor([[11, 20, 3], [13, 3, 0]])
    with torch.inference_mode():
        expected = language_model.read_on(texts, language_model.begin(2, torch.device("cpu")))[0].features
        features = translator.features(translator.encode(source), texts)
        if preset == "lm-lstm":
            # The decoder's initial state depends on the source, unlike that of a language model.
            state = translator.start(translator.encode(source))
            cells = tuple(torch.zeros_like(part) for part in state.cells)
            hidden, _ = translator.decoder.recurrence(translator.target_embedding(texts), cells)
            assert torch.allclose(hidden, expected, atol=1e-5)
            assert torch.allclose(translator.decoder.combine.weight, torch.eye(16, 32).roll(16, 1), atol=1e-6)
        else:
            assert torch.allclose(features, expected, atol=1e-5)
            assert torch.allclose(translator.output.bias, language_model.output.bias, atol=1e-6)


def test_an_encoder_begins_with_the_layers_of_its_model_of_language(initialized_run, folder):
    language_tensors, _ = load_tensors(folder / "lm-transformer-both" / "model.safetensors")
    translator_tensors, _ = load_tensors(
        initialized_run("--model", "tiny", "--init-from", f"encoder={folder}/lm-transformer-both").model_file
    )
    for name, tensor in language_tensors.items():
        if name.startswith(("decoder.", "decoder_norm.")):
            assert torch.allclose(translator_tensors[name.replace("decoder", "encoder", 1)], tensor, atol=1e-6), name
    assert torch.allclose(
        translator_tensors["source_embedding.tokens.weight"], language_tensors["embedding.tokens.weight"], atol=1e-6
    )


def test_two_models_of_language_bring_two_vocabularies(initialized_run, folder):
    english, spanish = folder / "lm-transformer-en", folder / "lm-transformer-es"
    translator, tokenizer = load_model(initialized_run(*halves(english, spanish)))
    assert not tokenizer.joint and not translator.options.share_embeddings
    english_tokenizer, spanish_tokenizer = RunFolder(english).tokenizer(), RunFolder(spanish).tokenizer()
    assert tokenizer.encode_source(["the house"]) == english_tokenizer.encode_target(["the house"])
    assert tokenizer.encode_target(["la casa"]) == spanish_tokenizer.encode_target(["la casa"])
    language_tensors, _ = load_tensors(spanish / "model.safetensors")
    assert torch.allclose(
        translator.target_embedding.tokens.weight, language_tensors["embedding.tokens.weight"], atol=1e-6
    )


def test_the_vocabulary_of_a_side_that_begins_anew_is_learned(initialized_run, folder):
    spanish = folder / "lm-transformer-es"
    _, tokenizer = load_model(initialized_run("--model", "tiny", "--init-from", f"decoder={spanish}"))
    assert not tokenizer.joint and tokenizer.tag is None
    assert tokenizer.encode_target(["la casa"]) == RunFolder(spanish).tokenizer().encode_target(["la casa"])
    assert tokenizer.encode_source(["the house"]) != tokenizer.encode_target(["the house"])


def test_elmo_gives_features_to_the_encoder_and_is_frozen(initialized_run, folder):
    elmo, joint = folder / "lm-bilstm-both", folder / "lm-transformer-both"
    options = ["--elmo", elmo, *halves(joint)]
    run_folder = initialized_run(
        *options, settings=["training.learning_rate=0.01", "training.warmup=1", "training.max_steps=3"]
    )
    translator_tensors, _ = load_tensors(run_folder.model_file)
    elmo_tensors, _ = load_tensors(elmo / "model.safetensors")
    for name, tensor in elmo_tensors.items():
        assert torch.equal(translator_tensors[f"source_embedding.language.{name}"], tensor), name
    assert translator_tensors["source_embedding.projection.weight"].abs().max() > 0
    assert translator_tensors["source_embedding.mix.s"].abs().max() > 0
    learning = ["training.learning_rate=0.01", "training.warmup=1", "training.max_steps=4"]
    translator_tensors, _ = load_tensors(
        initialized_run(*options, settings=["model.elmo_tuned=true", *learning]).model_file
    )
    name = "directions.0.layers.0.w"
    assert not torch.equal(translator_tensors[f"source_embedding.language.{name}"], elmo_tensors[name])


def test_a_tokenizer_of_two_others(folder):
    english, spanish = (RunFolder(folder / f"lm-transformer-{side}").tokenizer() for side in ("en", "es"))
    assert Tokenizer.paired(english, english).joint
    combined = Tokenizer.paired(english, spanish)
    assert combined.source_pieces(range(9)) == english.target_pieces(range(9))
    assert combined.target_pieces(range(9)) == spanish.target_pieces(range(9))
    recombined = Tokenizer.paired(combined, combined)
    assert recombined.fingerprint == combined.fingerprint


@pytest.mark.parametrize(
    ("encoder", "decoder", "elmo", "preset", "message"),
    [
        ("lm-bilstm-both", None, None, None, "can't initialize half of a translator"),
        (None, None, "lm-lstm-both", None, "does not read from both ends"),
        ("lm-lstm-both", "lm-transformer-both", None, None, "model.kind=transformer"),
        ("lm-lstm-both", None, None, "tiny", "tiny is none"),
        ("lm-transformer-en", None, "lm-bilstm-both", None, "another vocabulary"),
    ],
)
def test_incompatible_runs_are_refused_in_one_line(folder, encoder, decoder, elmo, preset, message):
    runs = [name and RunFolder(folder / name) for name in (encoder, decoder, elmo)]
    with pytest.raises(UserError, match=message) as refused:
        Pretrained(*runs).settings(preset)
    assert "\n" not in str(refused.value) and str(folder) in str(refused.value)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--init-from", "a", "--init-from", "b"], "--init-from has two runs for the model"),
        (["--init-from", "decoder=a", "--init-from", "decoder=b"], "--init-from has two runs for the decoder"),
        (["--init-from", "a", "--init-from", "decoder=b"], "--init-from already says what all of the model"),
        (["--init-from", "a", "--elmo", "b"], "--init-from already says what all of the model"),
    ],
)
def test_two_runs_for_a_part_are_refused(folder, tmp_path, monkeypatch, capfd, options, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").symlink_to(folder / "lm-transformer-both")
    (tmp_path / "b").symlink_to(folder / "lm-bilstm-both")
    assert run(["train", *options, "--train", str(folder / "pairs.tsv"), "--out", "run"]) == 2
    assert message in capfd.readouterr().err


def test_a_run_resumes_without_the_runs_that_initialized_it(initialized_run, folder, tmp_path, capfd):
    joint = folder / "lm-transformer-both"
    run_folder = initialized_run("--model", "tiny", *halves(joint))
    assert run(["train", "--resume", "--out", str(run_folder.path), "--no-tune", "--set", "training.max_steps=2"]) == 0
    changed_setting = f"training.init_encoder={folder / 'lm-transformer-en'}"
    assert run(["train", "--resume", "--out", str(run_folder.path), "--set", changed_setting]) == 2
    assert "training.init_encoder can't change" in capfd.readouterr().err
