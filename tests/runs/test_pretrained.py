"""Translators that begin with language models: what is carried over, what is new, what is refused."""

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
    """Pairs, the text of each side, and a language model of each kind, of both sides and of one."""
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
def begun(folder, tmp_path):
    """begun(*options) makes a translator of one update at rate 1e-12: as it begins."""

    def calling(*options, settings=()):
        out = tmp_path / "run"
        pairs = ["--train", folder / "pairs.tsv", "--valid", folder / "pairs.tsv"]
        still = ["training.learning_rate=1e-12", "training.max_steps=1", "training.averaging=0"]
        few = [*SHORT, "training.validate_sentences=2", *settings]
        command("train", *options, *pairs, "--out", out, "--overwrite", "--no-tune", "--set", *still, *few)
        return RunFolder(out)

    return calling


def loaded(run_folder):
    tokenizer = run_folder.tokenizer()
    return run_folder.load_sequence_model(run_folder.configuration(), tokenizer).eval(), tokenizer


@pytest.mark.parametrize(
    ("preset", "model"), [("lm-transformer", "tiny"), ("lm-lstm", "rnn-luong-general"), ("lm-transformer", None)]
)
def test_a_decoder_begins_as_the_model_of_language_that_it_was(begun, folder, preset, model):
    run_folder = folder / f"{preset}-both"
    chosen = ["--model", model] if model else []
    ours, tokenizer = loaded(begun(*chosen, "--init-encoder", run_folder, "--init-decoder", run_folder))
    language, theirs = loaded(RunFolder(run_folder))
    assert tokenizer.fingerprint == theirs.fingerprint and tokenizer.joint
    texts = torch.tensor([[2, 9, 17, 30, 12], [2, 40, 8, 21, 9]])
    source = torch.tensor([[11, 20, 3], [13, 3, 0]])
    with torch.inference_mode():
        expected = language.read_on(texts, language.begin(2, torch.device("cpu")))[0].features
        found = ours.features(ours.encode(source), texts)
        if preset == "lm-lstm":
            # The decoder's first state is not that of a text's beginning: the source has been read.
            state = ours.start(ours.encode(source))
            cells = tuple(torch.zeros_like(part) for part in state.cells)
            hidden, _ = ours.decoder.recurrence(ours.target_embedding(texts), cells)
            assert torch.allclose(hidden, expected, atol=1e-5)
            assert torch.allclose(ours.decoder.combine.weight, torch.eye(16, 32).roll(16, 1), atol=1e-6)
        else:
            assert torch.allclose(found, expected, atol=1e-5)
            assert torch.allclose(ours.output.bias, language.output.bias, atol=1e-6)


def test_an_encoder_begins_with_the_layers_of_its_model_of_language(begun, folder):
    given, _ = load_tensors(folder / "lm-transformer-both" / "model.safetensors")
    found, _ = load_tensors(begun("--model", "tiny", "--init-encoder", folder / "lm-transformer-both").model_file)
    for name, tensor in given.items():
        if name.startswith(("decoder.", "decoder_norm.")):
            assert torch.allclose(found[name.replace("decoder", "encoder", 1)], tensor, atol=1e-6), name
    assert torch.allclose(found["source_embedding.tokens.weight"], given["embedding.tokens.weight"], atol=1e-6)


def test_two_models_of_language_bring_two_vocabularies(begun, folder):
    english, spanish = folder / "lm-transformer-en", folder / "lm-transformer-es"
    ours, tokenizer = loaded(begun("--init-encoder", english, "--init-decoder", spanish))
    assert not tokenizer.joint and not ours.options.share_embeddings
    of_english, of_spanish = RunFolder(english).tokenizer(), RunFolder(spanish).tokenizer()
    assert tokenizer.encode_source(["the house"]) == of_english.encode_target(["the house"])
    assert tokenizer.encode_target(["la casa"]) == of_spanish.encode_target(["la casa"])
    given, _ = load_tensors(spanish / "model.safetensors")
    assert torch.allclose(ours.target_embedding.tokens.weight, given["embedding.tokens.weight"], atol=1e-6)


def test_the_vocabulary_of_a_side_that_begins_anew_is_learned(begun, folder):
    spanish = folder / "lm-transformer-es"
    _, tokenizer = loaded(begun("--model", "tiny", "--init-decoder", spanish))
    assert not tokenizer.joint and tokenizer.tag is None
    assert tokenizer.encode_target(["la casa"]) == RunFolder(spanish).tokenizer().encode_target(["la casa"])
    assert tokenizer.encode_source(["the house"]) != tokenizer.encode_target(["the house"])


def test_elmo_tells_the_encoder_of_its_source_and_stays_as_it_is(begun, folder):
    told, joint = folder / "lm-bilstm-both", folder / "lm-transformer-both"
    options = ["--elmo", told, "--init-encoder", joint, "--init-decoder", joint]
    run_folder = begun(*options, settings=["training.learning_rate=0.01", "training.warmup=1", "training.max_steps=3"])
    found, _ = load_tensors(run_folder.model_file)
    given, _ = load_tensors(told / "model.safetensors")
    for name, tensor in given.items():
        assert torch.equal(found[f"source_embedding.language.{name}"], tensor), name
    assert found["source_embedding.projection.weight"].abs().max() > 0
    assert found["source_embedding.mix.s"].abs().max() > 0
    learning = ["training.learning_rate=0.01", "training.warmup=1", "training.max_steps=4"]
    found, _ = load_tensors(begun(*options, settings=["model.elmo_tuned=true", *learning]).model_file)
    name = "directions.0.layers.0.w"
    assert not torch.equal(found[f"source_embedding.language.{name}"], given[name])


def test_a_tokenizer_of_two_others(folder):
    english, spanish = (RunFolder(folder / f"lm-transformer-{side}").tokenizer() for side in ("en", "es"))
    assert Tokenizer.paired(english, english).joint
    both = Tokenizer.paired(english, spanish)
    assert both.source_pieces(range(9)) == english.target_pieces(range(9))
    assert both.target_pieces(range(9)) == spanish.target_pieces(range(9))
    again = Tokenizer.paired(both, both)
    assert again.fingerprint == both.fingerprint


@pytest.mark.parametrize(
    ("encoder", "decoder", "elmo", "preset", "said"),
    [
        ("lm-bilstm-both", None, None, None, "no half of a translator begins"),
        (None, None, "lm-lstm-both", None, "does not read from both ends"),
        ("lm-lstm-both", "lm-transformer-both", None, None, "model.kind=transformer"),
        ("lm-lstm-both", None, None, "tiny", "tiny is none"),
        ("lm-transformer-en", None, "lm-bilstm-both", None, "another vocabulary"),
    ],
)
def test_what_does_not_go_together_is_refused_in_a_line(folder, encoder, decoder, elmo, preset, said):
    runs = (RunFolder(folder / name) if name else None for name in (encoder, decoder, elmo))
    with pytest.raises(UserError, match=said) as refused:
        Pretrained(*runs).settings(preset)
    assert "\n" not in str(refused.value) and str(folder) in str(refused.value)


def test_a_run_that_began_with_others_goes_on_without_them(begun, folder, tmp_path, capfd):
    joint = folder / "lm-transformer-both"
    run_folder = begun("--model", "tiny", "--init-encoder", joint, "--init-decoder", joint)
    assert run(["train", "--resume", "--out", str(run_folder.path), "--no-tune", "--set", "training.max_steps=2"]) == 0
    other = f"training.init_encoder={folder / 'lm-transformer-en'}"
    assert run(["train", "--resume", "--out", str(run_folder.path), "--set", other]) == 2
    assert "training.init_encoder can't change" in capfd.readouterr().err
