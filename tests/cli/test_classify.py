"""Train a classifier that starts from a language model, evaluate it and explain its labels, with commands only."""

import json
import random
import signal

import numpy as np
import pytest
import torch

from translucid import TextClassifier
from translucid.cli.main import run
from translucid.runs.run_folder import RunFolder
from translucid.runs.tensor_file import load_tensors
from translucid.training.trainer import Trainer

GOOD, BAD = ["good", "fine", "lovely", "warm"], ["bad", "awful", "dull", "cold"]
REST = ["the", "film", "was", "and", "its", "end", "house", "really", "quite", "so"]
LANGUAGE = [
    *("model.width=16", "model.hidden=24", "data.tokenizer.vocabulary=90", "training.batch_tokens=320"),
    *("training.window=20", "training.max_steps=30", "training.validate_every=15", "training.averaging=0.9"),
]
LEARNING = [
    *("training.batch_tokens=128", "training.validate_every=20", "training.max_epochs=10"),
    *("training.averaging=0.9", "training.learning_rate=0.03", "training.layer_decay=1.3"),
]


def text_of(generator, words):
    mixed = [*generator.choices(REST, k=generator.randint(2, 7)), *generator.choices(words, k=generator.randint(1, 2))]
    generator.shuffle(mixed)
    return " ".join(mixed)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with texts.txt, which has no labels, and train.jsonl and test.jsonl, which have them."""
    folder, generator = tmp_path_factory.mktemp("moods"), random.Random(1)
    plain = [text_of(generator, generator.choice([GOOD, BAD])) for _ in range(400)]
    (folder / "texts.txt").write_text("".join(f"{text}\n" for text in plain))
    for name, count in (("train", 240), ("test", 40)):
        rows = [
            {"text": text_of(generator, words), "label": label}
            for _ in range(count // 2)
            for words, label in ((GOOD, "good"), (BAD, "bad"))
        ]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def classifier_options(folder, language, out, *settings):
    """Return the options to train a classifier that starts from a language model."""
    files = ("--train", folder / "train.jsonl", "--valid", folder / "test.jsonl", "--out", out)
    return ("--model", "classifier", "--init-from", language, *files, "--set", *LEARNING, *settings)


def train(*arguments):
    assert run([str(argument) for argument in ("train", *arguments)]) == 0


@pytest.fixture(scope="module")
def language(folder):
    train("--model", "lm-lstm", "--train", folder / "texts.txt", "--out", folder / "language", "--set", *LANGUAGE)
    return folder / "language"


@pytest.fixture(scope="module")
def mood(folder, language):
    train(*classifier_options(folder, language, folder / "mood"))
    return folder / "mood"


def test_a_classifier_learns_the_words_of_each_label(call, mood, folder):
    result = call("evaluate", mood, "--test", folder / "test.jsonl", "--json")
    assert result.code == 0
    assert json.loads(result.out)["accuracy"] > 0.9
    printed = call("evaluate", mood, "--test", folder / "test.jsonl", "--samples", 1)
    assert printed.code == 0
    assert "accuracy" in printed.out
    assert "found bad" in printed.out


def test_a_classifier_starts_with_the_weights_of_the_language_model(folder, language, tmp_path):
    files = ("--train", folder / "train.jsonl", "--valid", folder / "test.jsonl", "--out", tmp_path / "run")
    limits = ("training.max_steps=1", "training.learning_rate=1e-12", "training.averaging=0")
    train("--model", "classifier", "--init-from", language, *files, "--set", *limits)
    before, after = load_tensors(language / "model.safetensors")[0], load_tensors(tmp_path / "run/model.safetensors")[0]
    for name, tensor in before.items():
        torch.testing.assert_close(after[f"language.{name}"], tensor, atol=1e-6, rtol=0)
    classifier_run, language_run = RunFolder(tmp_path / "run"), RunFolder(language)
    assert classifier_run.tokenizer().fingerprint == language_run.tokenizer().fingerprint
    assert classifier_run.configuration().model.labels == ["bad", "good"]
    assert classifier_run.configuration().model.language == language_run.configuration().model


def test_a_recipe_can_start_with_a_language_model(folder, language, tmp_path):
    files = ("--train", folder / "train.jsonl", "--valid", folder / "test.jsonl", "--out", tmp_path / "run")
    train("imdb", "--init-from", language, *files, "--set", "training.max_steps=1")
    options = RunFolder(tmp_path / "run").configuration().model
    assert (options.dropout, options.language.weight_dropout) == (0.4, 0.2)  # from the recipe
    assert options.language.width == 16  # from the language model


def test_one_line_for_each_text(call, mood):
    result = call("classify", mood, stdin=b"the film was good and lovely\n\nawful and so dull\n")
    assert result.code == 0
    first, second, third, last = result.out.split("\n")
    assert first.startswith("good\t0.")
    assert second == last == ""
    assert third.startswith("bad\t")
    record = json.loads(call("classify", mood, "its end was awful", "--format", "jsonl").out)
    assert record["label"] == "bad"
    assert sum(record["probabilities"].values()) == pytest.approx(1, abs=1e-5)


def test_lines_that_are_not_utf8_are_reported_and_the_others_get_labels(call, mood):
    result = call("classify", mood, stdin=b"good\n\xff\xfe\nbad\n")
    assert result.code == 2
    assert [bool(line) for line in result.out.split("\n")] == [True, False, True, False]
    assert "line 2" in result.err


def test_several_runs_are_averaged(mood, folder, language, tmp_path):
    train(*classifier_options(folder, language, tmp_path / "other", "training.seed=2", "training.max_epochs=2"))
    first, second = TextClassifier.load(mood), TextClassifier.load(tmp_path / "other")
    ensemble = TextClassifier.load(mood, tmp_path / "other")
    text = "the film was quite good"
    single_probabilities = [first.classify(text).probabilities["good"], second.classify(text).probabilities["good"]]
    assert ensemble.classify(text).probabilities["good"] == pytest.approx(np.mean(single_probabilities))
    assert single_probabilities[0] != single_probabilities[1]


def test_a_model_that_reads_backwards(call, folder, tmp_path):
    settings = [*LANGUAGE, "model.backwards=true"]
    train("--model", "lm-lstm", "--train", folder / "texts.txt", "--out", tmp_path / "language", "--set", *settings)
    train(*classifier_options(folder, tmp_path / "language", tmp_path / "mood"))
    member = TextClassifier.load(tmp_path / "mood").members[0]
    (ids,) = member.ids(["the film was good"])
    assert member.tokenizer.target_pieces(ids[1:-1][::-1])[0] == "▁the"
    report = json.loads(call("evaluate", tmp_path / "mood", "--test", folder / "test.jsonl", "--json").out)
    assert report["accuracy"] > 0.9
    explanation = json.loads(call("explain", tmp_path / "mood", "the film was really awful and so", "--json").out)
    assert explanation["source"] == ["the", "film", "was", "really", "awful", "and", "so"]
    assert explanation["target"] == ["bad"]
    assert np.argmax(explanation["importance"][0]) == 4


@pytest.mark.parametrize("method", ["erasure", "lime", "gradients"])
def test_the_word_that_decides_is_named(call, mood, method):
    for package in ("sklearn", "captum"):
        pytest.importorskip(package)
    records = {}
    for word, label in (("good", "good"), ("awful", "bad")):
        result = call("explain", mood, f"the film was {word} and so", "--method", method, "--json")
        assert result.code == 0
        records[word] = json.loads(result.out)
        assert records[word]["target"] == [label]
    # A word decides only if the sentence without it (for gradients, the baseline) has the other label. Which label that
    # is depends on the processor.
    word = max(records, key=lambda word: max(records[word]["importance"][0]))
    record = records[word]
    assert record["source"][int(np.argmax(record["importance"][0]))] == word
    faithfulness = record["faithfulness"]
    assert faithfulness[method]["comprehensiveness"] > faithfulness["random"]["comprehensiveness"]


def test_a_label_is_contrasted_with_another(call, mood):
    """For two labels, the importance is that of log p(a) - log p(b): what one gains by a word, the other loses."""
    arguments = ["explain", mood, "the film was awful and so", "--json", "--target"]
    good, bad = (json.loads(call(*arguments, label).out)["importance"][0] for label in ("good", "bad"))
    record = json.loads(call(*arguments, "bad", "--instead-of", "good").out)
    np.testing.assert_allclose(record["importance"][0], np.subtract(bad, good), atol=1e-4)
    assert record["contrast"]["instead_of"] == "good"
    for wrong, message in (
        (["bad"], "is the label itself"),
        (["soso"], "no label"),
        (["good", "--word", "0"], "--word is for"),
    ):
        failure = call(*arguments, "bad", "--instead-of", *wrong)
        assert (failure.code, failure.err.count("\n")) == (2, 1) and message in failure.err


def test_gradients_add_up_to_what_the_label_gains(mood):
    pytest.importorskip("captum")
    from translucid.inspection.explain import integrated_gradients
    from translucid.language.label_case import LabelCase

    member = TextClassifier.load(mood).members[0]
    (ids,) = member.ids(["the film was awful and so"])
    case = LabelCase(member.model, member.tokenizer, ids, "bad")
    baseline, source = case.interpolation_path()
    with torch.no_grad():
        gained = (case.embedded_log_probs(source, 0, 1) - case.embedded_log_probs(baseline, 0, 1)).item()
    assert integrated_gradients(case, steps=200).sum().item() == pytest.approx(gained, abs=0.05)


def test_looking_shows_where_the_judgement_moves(call, mood, tmp_path):
    assert call("look", mood, "the film was awful and so", "--save", tmp_path / "seen.json").code == 0
    record = json.loads((tmp_path / "seen.json").read_text())
    assert record["label"] == "bad"
    assert record["words"] == ["the", "film", "was", "awful", "and", "so"]
    member = TextClassifier.load(mood).members[0]
    # Each value is the probability of the text up to this word.
    for length, probability in enumerate(record["probability_after"], 1):
        (ids,) = member.ids([" ".join(record["words"][:length])])
        with torch.inference_mode():
            expected = member.model(torch.tensor([ids[:-1]]))[0].softmax(-1)[0]
        assert probability == pytest.approx(expected.item(), abs=1e-3)
    printed = call("look", mood, "the film was awful and so", "--save", tmp_path / "seen.html")
    assert "awful" in printed.out
    page = (tmp_path / "seen.html").read_text()
    assert ">awful</span>" in page
    assert "http" not in page


def test_a_text_can_not_end_the_page(call, mood, tmp_path):
    assert call("explain", mood, "<script>alert(1)</script> bad", "--save", tmp_path / "why.html").code == 0
    assert "<script" not in (tmp_path / "why.html").read_text()


def test_a_resumed_training_gives_the_same_weights(folder, language, tmp_path):
    settings = ("training.cooldown=0", "training.max_epochs=4")
    train(*classifier_options(folder, language, tmp_path / "whole", *settings))
    update = Trainer._update
    count = 0  # updates; the 17th is in an epoch in which some layers are still frozen

    def interrupted(self, *arguments):
        nonlocal count
        count += 1
        if count == 17:
            signal.raise_signal(signal.SIGINT)
        return update(self, *arguments)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Trainer, "_update", interrupted)
        command = ("train", *classifier_options(folder, language, tmp_path / "part", *settings))
        assert run([str(argument) for argument in command]) == 130
    assert count == 17
    train("--resume", "--out", tmp_path / "part")
    for name in ("model.safetensors", "state/checkpoint.safetensors"):
        uninterrupted, resumed = (load_tensors(tmp_path / kind / name)[0] for kind in ("whole", "part"))
        assert uninterrupted.keys() == resumed.keys()
        assert all(torch.equal(uninterrupted[key], resumed[key]) for key in uninterrupted)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("".join(f'{{"text": "good {i}"}}\n' for i in range(200)), "no label"),
        ("".join(f'{{"text": "good {i}", "label": "x"}}\n' for i in range(200)), "all texts have the label 'x'"),
        ("".join(f"good {i}\n" for i in range(200)), "no label"),
        ("good\n" * 200, "200 lines are too much alike to hold some out"),
        ('{"text": 7, "label": "x"}\n', "text must be a string"),
    ],
)
def test_texts_without_labels_teach_nothing(call, tmp_path, lines, message):
    file = tmp_path / ("plain.txt" if lines.startswith("good") else "some.jsonl")
    file.write_text(lines)
    result = call("train", "--model", "classifier", "--train", file, "--out", tmp_path / "run")
    assert result.code == 2
    assert message in result.err
    assert not (tmp_path / "run" / "config.yaml").exists()


def test_incompatible_options_are_one_line(call, mood, language, small_run, folder, tmp_path):
    cases = [
        (("classify", language, "good"), "is a language model"),
        (("classify", small_run, "good"), "translates text"),
        (("translate", mood, "good"), "classifies texts"),
        (("caption", mood, "x.png"), "classifies texts"),
        (("explain", mood, "good", "--target", "soso"), "there is no label 'soso'"),
        (("explain", mood, "good", "--method", "attention"), "a classifier has no attention"),
        (("look", mood, "good", "--layer", 1), "--layer is for translations"),
        (("look", mood, " "), "there are no words"),
        (("evaluate", mood, "--test", folder / "test.jsonl", "--beam", 3), "--beam is for translations"),
        (("evaluate", small_run, "--test", folder / "test.jsonl", "--ensemble", mood), "has no source or no target"),
        (("train", "--model", "classifier", "--init-from", small_run, "--train", folder / "train.jsonl", "--out",
          tmp_path / "x"), "which can't initialize a classifier"),
        (("train", "--model", "tiny", "--init-from", language, "--train", folder / "train.jsonl",
          "--out", tmp_path / "y"), "holds a model of the kind language-lstm"),
    ]  # fmt: skip
    for arguments, message in cases:
        result = call(*arguments)
        assert result.code == 2, arguments
        assert message in result.err
        assert result.err.count("\n") == 1, result.err


def test_a_translator_is_fine_tuned(call, corpus, small_run, tmp_path):
    files = ("--train", corpus / "train.tsv", "--valid", corpus / "test.tsv", "--out", tmp_path / "run", "--no-tune")
    limits = ("training.max_steps=1", "training.learning_rate=1e-12", "training.averaging=0")
    train("--init-from", small_run, *files, "--set", *limits)
    before, after = (load_tensors(run / "model.safetensors")[0] for run in (small_run, tmp_path / "run"))
    assert before.keys() == after.keys()
    assert all(torch.allclose(before[name], after[name], atol=1e-6) for name in before)


def test_a_classifier_on_a_bidirectional_model(call, folder, tmp_path):
    settings = [*LANGUAGE, "model.hidden=20"]
    train("--model", "lm-bilstm", "--train", folder / "texts.txt", "--out", tmp_path / "language", "--set", *settings)
    train(*classifier_options(folder, tmp_path / "language", tmp_path / "mood"))
    report = json.loads(call("evaluate", tmp_path / "mood", "--test", folder / "test.jsonl", "--json").out)
    assert report["accuracy"] > 0.9
    for method in ("erasure", "gradients"):
        explanation = json.loads(
            call("explain", tmp_path / "mood", "the film was good", "--method", method, "--json").out
        )
        assert max(zip(explanation["importance"][0], explanation["source"], strict=True))[1] == "good"
    failure = call("look", tmp_path / "mood", "the film was good")
    assert failure.code == 2 and "from both ends" in failure.err


def test_more_of_a_text_is_read_than_in_training(folder, language, tmp_path):
    train(*classifier_options(folder, language, tmp_path / "mood", "data.max_tokens=8", "training.max_epochs=1"))
    classifier = TextClassifier.load(tmp_path / "mood")
    (ids,) = classifier.members[0].ids(["the film was good and its end was lovely " * 9])
    assert 80 < len(ids) < 1024
    (ids,) = classifier.members[0].ids(["the film was good and its end was lovely " * 900])
    assert len(ids) == 1024
    probabilities = [classifier.classify(text).probability for text in ("awful " + "the film " * 9, "the film " * 9)]
    assert probabilities[0] != probabilities[1]


@pytest.mark.parametrize("label", ["Good", "good ", "other"])
def test_a_label_that_validation_alone_has_is_refused(call, folder, tmp_path, label):
    (tmp_path / "valid.jsonl").write_text(json.dumps({"text": "a fine thing", "label": label}) + "\n")
    files = ["--train", folder / "train.jsonl", "--valid", tmp_path / "valid.jsonl"]
    result = call("train", "--model", "classifier", *files, "--out", tmp_path / "run", "--set", *LEARNING)
    assert result.code == 2 and "valid.jsonl" in result.err
    assert f"the label {label!r} is not among those to train on" in result.err.replace("\n", " ")
    assert not (tmp_path / "run").exists()


def test_labels_that_differ_in_case_or_spaces_alone_are_warned_of(call, folder, tmp_path):
    rows = [json.dumps({"text": f"text {i}", "label": ("x", "X ", "y")[i % 3]}) for i in range(60)]
    (tmp_path / "train.jsonl").write_text("\n".join(rows) + "\n")
    files = ["--train", tmp_path / "train.jsonl", "--valid", tmp_path / "train.jsonl"]
    limits = ["data.tokenizer.vocabulary=40", "training.max_steps=1", "model.language.width=8"]
    result = call("train", "--model", "classifier", *files, "--out", tmp_path / "run", "--set", *limits)
    assert result.code == 0, result.err
    assert "warning: the labels 'X ' and 'x' differ in case or spaces alone" in result.err
