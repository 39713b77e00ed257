"""Training of bidirectional language models."""

import math

import pytest
import torch

from translucid.cli.main import run
from translucid.data.readers.texts import read_texts
from translucid.data.stores.store import EncodedTexts
from translucid.language.running_text import StreamValidator
from translucid.language.scores import BidirectionalStream
from translucid.runs.run_folder import RunFolder

from ..conftest import LANGUAGE

CHARACTERS = ["model.characters=true", "model.filters=[8, 8]"]


@pytest.fixture
def bilstm(language_run):
    return language_run("lm-bilstm")


def validations(folder):
    return [row for row in RunFolder(folder).metrics() if row["kind"] == "validation"]


def test_it_learns_in_both_directions(language_run):
    longer = ["training.max_steps=60", "training.validate_every=10", "training.cooldown=0.3"]
    first, *_, last = validations(language_run("lm-bilstm", *longer, "training.learning_rate=0.04"))
    for name in ("perplexity", "perplexity_word_forwards", "perplexity_word_backwards"):
        assert last[name] < 0.8 * first[name], name
    mean = (last["perplexity_word_forwards"] * last["perplexity_word_backwards"]) ** 0.5
    assert last["perplexity_word"] == pytest.approx(mean, rel=1e-4)


@torch.inference_mode()
def test_the_perplexity_of_each_direction_is_that_of_its_own_logits(bilstm, texts):
    folder = RunFolder(bilstm)
    tokenizer = folder.tokenizer()
    model = folder.load_model(folder.configuration(), tokenizer)
    lines = [text.source for text in read_texts(texts / "test.jsonl")]
    encoded = EncodedTexts.encode(lines, tokenizer)
    validation = StreamValidator(encoded, tokenizer, window=10).measure(model, torch.device("cpu"))
    stream = BidirectionalStream(encoded, 32, 10_000)
    window = stream.batch(stream.equal_windows(), 0)
    reading, _ = model.read_on(window.targets_in, model.begin(len(window.targets_in), torch.device("cpu")))
    log_p = model.output(reading.features).log_softmax(-1)
    entropy = 0.0
    for direction, name in enumerate(("forwards", "backwards")):
        labels = window.labels[:, direction]
        log_likelihood = log_p[:, direction].gather(-1, labels[..., None])[..., 0][labels != 0].sum()
        expected = math.exp(-float(log_likelihood) / encoded.size.words)
        assert validation.measures[f"perplexity_word_{name}"] == pytest.approx(expected, rel=1e-3)
        entropy -= float(log_likelihood) / 2 / math.log(2) / encoded.size.characters
    assert validation.measures["bits_per_character"] == pytest.approx(entropy, rel=1e-3)


def test_an_interrupted_training_ends_with_the_same_weights(texts, tmp_path):
    files = ["--train", texts / "train.jsonl", "--valid", texts / "test.jsonl", "--out", tmp_path / "run"]
    settings = [*LANGUAGE, *CHARACTERS, "training.cooldown=0", "training.max_steps=20"]
    start = ["train", *files, "--model", "lm-bilstm", "--set", *settings]
    uninterrupted_command = ["train", *files[:-1], tmp_path / "whole", *start[len(files) + 1 :]]
    assert run([str(a) for a in uninterrupted_command]) == 0
    assert run([str(a) for a in [*start, "training.max_steps=13"]]) == 0
    carried = [name for name in RunFolder(tmp_path / "run").load_state()[0] if "carried" in name]
    assert len(carried) == 8
    rows = RunFolder(tmp_path / "run").load_state()[0][carried[0]].size(0)
    assert rows == 160 // 10 // 2, "a batch has rows of both directions"
    resume_command = ["train", "--resume", "--out", tmp_path / "run", "--set", "training.max_steps=20"]
    assert run([str(a) for a in resume_command]) == 0
    resumed, uninterrupted = (RunFolder(tmp_path / name).load_state()[0] for name in ("run", "whole"))
    assert resumed.keys() == uninterrupted.keys()
    for name in resumed:
        assert torch.equal(resumed[name], uninterrupted[name]), name
