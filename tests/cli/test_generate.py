"""`translucid generate`, and what other commands do with a language model."""

import json
import math

import pytest

from translucid.cli.main import run as command
from translucid.corpora.phrasebook import generate
from translucid.language.generator import Generator

SMALL = [
    *("model.width=16", "data.tokenizer.vocabulary=200", "training.batch_tokens=600", "training.max_epochs=null"),
    *("training.max_steps=20", "training.validate_every=10", "decoding.max_length_extra=8"),
]


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    folder = tmp_path_factory.mktemp("texts")
    for split, count in (("train", 200), ("valid", 20)):
        lines = [p.target for p in generate(count, split=split, max_words=8)]
        (folder / f"{split}.txt").write_text("\n".join(lines), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def language(texts):
    files = ["--train", texts / "train.txt", "--valid", texts / "valid.txt", "--out", texts / "run"]
    assert command([str(a) for a in ["train", "--model", "lm-lstm", *files, "--set", *SMALL, "model.hidden=20"]]) == 0
    return texts / "run"


@pytest.mark.parametrize("preset", ["lm-lstm", "lm-transformer"])
def test_every_preset_trains_resumes_writes_and_is_measured(call, texts, tmp_path, preset):
    run = tmp_path / "run"
    short = {"lm-transformer": ["model.context=16", "training.window=16"], "lm-lstm": ["model.hidden=24"]}[preset]
    files = ["--train", texts / "train.txt", "--valid", texts / "valid.txt"]
    assert call("train", "--model", preset, *files, "--out", run, "--set", *SMALL, *short).code == 0
    result = call("train", "--resume", "--out", run, "--set", "training.max_steps=24")
    assert result.code == 0 and "resumed at step 20" in result.err
    generated = call("generate", run, "me gusta", "--temperature", 9, "--max-tokens", 60, "--format", "jsonl")
    record = json.loads(generated.out)
    generator = Generator.load(run)
    tokens = generator.tokenizer.encode_target(["me gusta"])[0]
    assert len(tokens) + len(record["tokens"]) > 20  # longer than the window
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    best = min(row["perplexity_word"] for row in rows if row["kind"] == "validation")
    report = json.loads(call("evaluate", run, texts / "valid.txt", "--json").out)
    assert report["perplexity_word"] == pytest.approx(best, rel=1e-4)
    assert call("translate", run, "x").err == f"error: {run}: is a language model. Use translucid generate.\n"


def test_a_line_for_a_prompt_in_order_from_arguments_files_and_standard_input(call, language, tmp_path):
    prompts = ["me gusta", "", "el\tmar"]
    (tmp_path / "in.txt").write_text("\n".join(prompts) + "\n")
    from_arguments = call("generate", language, *prompts, "--beam", 1)
    from_stdin = call("generate", language, "--beam", 1, stdin="\n".join(prompts).encode())
    from_file = call(
        "generate", language, "--beam", 1, "--input", tmp_path / "in.txt", "--output", tmp_path / "out.txt"
    )
    assert from_arguments.code == from_stdin.code == from_file.code == 0, from_arguments.err
    assert from_arguments.out == from_stdin.out == (tmp_path / "out.txt").read_text()
    lines = from_arguments.out.split("\n")
    assert len(lines) == 4 and lines[0].startswith("me gusta") and lines[2].startswith("el\tmar")
    generator = Generator.load(language)
    assert lines[:3] == [generator.generate(prompt, beam=1).text for prompt in prompts]


def test_sampling_is_the_runs_own_way_and_the_seed_decides(call, language):
    samples = [call("generate", language, "me", "me", "--seed", seed).out for seed in (1, 1, 2)]
    assert samples[0] == samples[1] != samples[2]
    assert samples[0].split("\n")[0] != samples[0].split("\n")[1]
    greedy = call("generate", language, "me", "--temperature", "1e-6", "--seed", 9).out
    assert greedy == call("generate", language, "me", "--beam", 1).out
    assert greedy == call("generate", language, "me", "--top-k", 1).out
    assert greedy == call("generate", language, "me", "--top-p", "1e-9").out
    # An option of sampling prevails over a beam, as in `translate`.
    assert greedy == call("generate", language, "me", "--top-k", 1, "--beam", 3).out
    several = call("generate", language, "me", "--nbest", 4).out
    assert several.count("\t") == 3


def test_jsonl_tells_of_each_piece(call, language):
    result = call("generate", language, "me", "--format", "jsonl", "--top-candidates", 3, "--beam", 2, "--nbest", 2)
    record = json.loads(result.out)
    assert record["prompt"] == "me" and record["text"].startswith("me")
    assert sum(value for _, value in record["tokens"]) == pytest.approx(record["log_probability"], abs=1e-4)
    assert record["ended"] == (record["tokens"][-1][0] == "</s>")
    assert len(record["considered"]) == len(record["tokens"])
    for step, (piece, value) in zip(record["considered"], record["tokens"], strict=True):
        assert len(step) == 3 and step[0][1] >= value - 1e-5
        for name, log_probability in step:
            assert name != piece or log_probability == pytest.approx(value, abs=1e-5)
    assert record["alternatives"][0] == record["text"] and len(record["log_probabilities"]) == 2


def test_at_most_so_many_tokens(call, language):
    for limit in (1, 3):
        result = call("generate", language, "me", "--format", "jsonl", "--max-tokens", limit, "--temperature", 50)
        assert 1 <= len(json.loads(result.out)["tokens"]) <= limit


@pytest.mark.parametrize(("options", "message"), [
    (["x", "--input", "y"], "both a text and --input"),
    (["x", "--top-candidates", "2"], "--top-candidates has no place in plain text"),
    (["x", "--no-sample"], "The option --no-sample is now --beam 1"),
    (["x", "--temperature", "-1"], "temperature"),
    (["x", "--max-tokens", "0"], "max-tokens"),
    (["--input", "book.docx"], "is a document by its ending"),
    (["--input", "none.txt"], "can't be read"),
    (["x", "--output", "no/such/folder"], "no such folder"),
])  # fmt: skip
def test_invalid_options_are_one_line(call, language, options, message):
    result = call("generate", language, *options)
    assert (result.code, result.out) == (2, "")
    assert message in result.err and result.err.count("\n") == 1


def test_bytes_that_are_no_text_still_give_a_line(call, language):
    result = call("generate", language, "--beam", 1, stdin=b"me\n\xff\xfe gusta\nel\n")
    assert result.code == 2 and result.out.count("\n") == 3
    assert "line 2: not UTF-8" in result.err


def test_a_killed_job_resumes(call, language, tmp_path, monkeypatch):
    from translucid.language.jobs import GenerateJob

    monkeypatch.setattr(GenerateJob, "window", 2)
    (tmp_path / "in.txt").write_text("".join(f"me gusta {i}\n" for i in range(7)))
    arguments = ["generate", language, "--input", tmp_path / "in.txt", "--seed", 3, "--output"]
    assert call(*arguments, tmp_path / "whole.txt").code == 0
    work, windows = GenerateJob.work, []

    def interrupted(self, generator, window):
        if len(windows) == 2:
            raise KeyboardInterrupt
        windows.append(window)
        return work(self, generator, window)

    monkeypatch.setattr(GenerateJob, "work", interrupted)
    stopped = call(*arguments, tmp_path / "out.txt")
    assert stopped.code == 130 and "stopped after line 4" in stopped.err
    monkeypatch.setattr(GenerateJob, "work", work)
    assert "continued after line 4" in call(*arguments, tmp_path / "out.txt").err
    assert (tmp_path / "out.txt").read_text() == (tmp_path / "whole.txt").read_text()


def test_other_commands_refuse_a_language_model_in_one_line(call, language, corpus, tmp_path):
    commands = [
        ("translate", language, "x"),
        ("caption", language, "x.png"),
        ("look", language, "x"),
        ("explain", language, "x"),
        ("export", language, "--to", "ctranslate2", tmp_path / "out"),
        ("tune", "speed", language),
        ("align", language, "--pairs", corpus / "test.tsv"),
        ("draw", "attention", language, "x", "--out", tmp_path / "x.png"),
        ("draw", "beam", language, "x", "--out", tmp_path / "x.png"),
        ("draw", "mask", language, "x", "--out", tmp_path / "x.png"),
    ]
    for arguments in commands:
        result = call(*arguments)
        assert (result.code, result.out) == (2, ""), arguments
        assert f"{language}: is a language model. Use translucid generate." in result.err, arguments
        assert result.err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_translator_is_refused(call, small_run):
    result = call("generate", small_run, "x")
    assert (result.code, result.out) == (2, "")
    assert result.err == f"error: {small_run}: translates text. Use translucid translate.\n"


def test_evaluate_has_the_figures_of_validation(call, language, texts):
    result = call("evaluate", language, texts / "valid.txt", "--json")
    assert result.code == 0, result.err
    report = json.loads(result.out)
    rows = [json.loads(line) for line in (language / "metrics.jsonl").read_text().splitlines()]
    best = min((row for row in rows if row["kind"] == "validation"), key=lambda row: row["perplexity_word"])
    for name, key in (
        ("perplexity_word", "perplexity_word"),
        ("perplexity", "perplexity"),
        ("token_accuracy", "accuracy"),
    ):
        assert report[name] == pytest.approx(best[key], rel=1e-4)
    lines = (texts / "valid.txt").read_text().splitlines()
    assert report["texts"] == 20
    assert report["words"] == sum(len(line.split()) + 1 for line in lines)
    assert report["characters"] == sum(len(line) + 1 for line in lines)
    nats = report["tokens"] * math.log(report["perplexity"])
    assert report["bits_per_character"] == pytest.approx(nats / math.log(2) / report["characters"])
    printed = call("evaluate", language, "--test", texts / "valid.txt")
    assert "perplexity a word" in printed.out and "20 texts" in printed.out


@pytest.mark.parametrize("option", [["--beam", "3"], ["--by-length"], ["--samples", "2"], ["--gold", "x"]])
def test_evaluate_refuses_what_is_for_others(call, language, texts, option):
    result = call("evaluate", language, texts / "valid.txt", *option)
    assert result.code == 2 and f"{option[0]} is for models that write about a source" in result.err


def test_evaluate_of_nothing_is_one_line(call, language, tmp_path):
    (tmp_path / "blank.txt").write_text("\n \n")
    assert "holds no texts" in call("evaluate", language, tmp_path / "blank.txt").err
    assert "nothing to test on" in call("evaluate", language).err


def test_its_curves_can_be_drawn(call, language, tmp_path):
    assert call("draw", "curves", language, "--out", tmp_path / "curves.svg").code == 0
