"""`evaluate`, `look`, `models`, `data`, and the command itself."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from inspect import signature
from types import SimpleNamespace

import pytest
import torch
from rich.console import Console

from tests.probes.forked import Forked
from translucid.cli.main import _hold_closed_streams, main
from translucid.engines.tuning import find_fastest
from translucid.ground.errors import UserError
from translucid.runs.configuration import resolve
from translucid.training.post_training import tune_trained

from ..conftest import SHAPE


def test_evaluate_json_is_pure_and_complete(call, small_run, corpus):
    started = time.perf_counter()
    done = call("evaluate", small_run, "--test", corpus / "test.tsv", "--by-length", "--json", "--beam", "1")
    found = json.loads(done.out)
    assert 0 < found["seconds"] < time.perf_counter() - started
    assert {"BLEU", "chrF", "TER", "sentences", "by_length", "beam"} <= found.keys()
    assert found["sentences"] == 20
    assert found["engine"] == "ctranslate2, float32, all pieces"
    assert found["BLEU"]["signature"].startswith("nrefs:1|")
    assert sum(row["sentences"] for row in found["by_length"]) == 20


def test_evaluate_for_people_shows_signatures_and_lengths(call, small_run, corpus):
    done = call("evaluate", small_run, "--test", corpus / "test.tsv", "--by-length", "--samples", "2")
    assert "tok:13a" in done.out.replace("\n", "")
    assert "a second) by ctranslate2, float32, all pieces" in done.out
    assert "source words" in done.out
    assert re.search(r"^ +1-5 +\d+ +\d+\.\d +\d+\.\d +\d+\.\d\d$", done.out, flags=re.MULTILINE)
    assert done.out.count("hypothesis") == 2


def test_evaluate_says_how_the_model_finds_the_references(call, small_run, corpus):
    record = json.loads(call("evaluate", small_run, "--test", corpus / "test.tsv", "--beam", "1", "--json").out)
    assert record["perplexity"] > 1
    assert 0 <= record["token_accuracy"] <= 1
    assert record["tokens"] > 20
    assert f"perplexity {record['perplexity']:.2f}" in call("evaluate", small_run, "--test", corpus / "test.tsv").out
    quiet = call("evaluate", small_run, "--test", corpus / "test.tsv", "--no-perplexity", "--json").out
    assert "perplexity" not in json.loads(quiet)


def test_evaluate_claims_no_perplexity_where_all_pairs_are_too_long(call, small_run, tmp_path):
    (tmp_path / "long.tsv").write_text("I sing " * 300 + "\tCanto\n")
    options = "evaluate", small_run, "--test", tmp_path / "long.tsv", "--beam", "1"
    record = json.loads(call(*options, "--json").out)
    assert (record["perplexity"], record["tokens"], record["pairs_too_long_for_perplexity"]) == (None, 0, 1)
    assert "no perplexity: all pairs are too long" in call(*options).out


@pytest.mark.parametrize(("count", "shown"), [(3, 3), (7, 7), (13, 13), (20, 20), (60, 20), (0, 0)])
def test_as_many_samples_are_shown_as_were_asked_for(call, small_run, corpus, count, shown):
    done = call("evaluate", small_run, "--test", corpus / "test.tsv", "--beam", "1", "--samples", count)
    assert done.out.count("hypothesis") == shown


def test_a_second_reference_counts(call, small_run, corpus, tmp_path):
    def bleu(*options):
        return json.loads(call("evaluate", small_run, "--test", corpus / "test.tsv", "--json", *options).out)["BLEU"]

    written = tmp_path / "hypotheses.txt"
    bleu("--hypotheses", written)
    assert written.read_text().count("\n") == 20
    assert bleu("--reference", written)["value"] == pytest.approx(100)
    (tmp_path / "short.txt").write_text("one\n")
    done = call("evaluate", small_run, "--test", corpus / "test.tsv", "--reference", tmp_path / "short.txt")
    assert done.code == 2
    assert "1 references" in done.err


def test_look_shows_words_of_both_sides(call, small_run):
    done = call("look", small_run, "I like soccer")
    assert done.code == 0
    assert "soccer" in done.out
    assert "%" in done.out


def test_models_lists_presets_and_keys(call):
    assert {"tiny", "small", "base"} <= set(call("models").out.split())
    keys = call("models", "--keys").out
    for key in ("model.width", "data.tokenizer.vocabulary", "training.max_minutes", "decoding.beam"):
        assert key in keys


def test_stats_warns_of_a_leak(call, corpus):
    done = call("data", "stats", "--train", corpus / "train.tsv", "--test", corpus / "train.tsv", "--json")
    found = json.loads(done.out)
    assert found["train"]["pairs"] == found["overlap"][0]["pairs"] == 300
    assert "warning" in done.err
    clean = call("data", "stats", "--train", corpus / "train.tsv", "--test", corpus / "test.tsv")
    assert "warning" not in clean.err
    assert "300" in clean.out


def test_phrasebook_writes_passages_as_documents(call, tmp_path):
    file = tmp_path / "passages.jsonl"
    assert call("data", "phrasebook", file, "--discourse", "--count", "6", "--split", "test").code == 0
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert len({row["document"] for row in rows}) == sum("contrast" in row for row in rows) == 6
    assert rows[-1]["antecedent"][0][0] < sum(row["document"] == rows[-1]["document"] for row in rows) - 1


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["x.tsv", "--discourse"], "has no place for antecedents"),
        (["x.jsonl", "--discourse", "--max-words", "9"], "for single sentences"),
        (["x.jsonl", "--discourse", "--count", "3"], "even number"),
    ],
)
def test_phrasebook_refuses_passages(call, tmp_path, arguments, reason):
    done = call("data", "phrasebook", tmp_path / arguments[0], *arguments[1:])
    assert done.code == 2 and reason in done.err


def test_phrasebook_writes_pairs_with_alignments(call, tmp_path):
    file = tmp_path / "pairs.jsonl"
    assert call("data", "phrasebook", file, "--count", "7", "--min-words", "5", "--max-words", "9").code == 0
    records = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(records) == 7
    assert all(5 <= len(record["source"].split()) <= 9 for record in records)
    assert all("-" in record["alignment"] for record in records)
    assert call("data", "phrasebook", file).code == 2


@pytest.mark.parametrize("count", [0, -5])
def test_phrasebook_writes_one_pair_or_more(call, tmp_path, count):
    assert call("data", "phrasebook", tmp_path / "pairs.tsv", "--count", count).code == 2
    assert not list(tmp_path.iterdir())


def test_an_unknown_command_names_the_nearest(call):
    done = call("tranlsate", "runs/demo")
    assert done.code == 2
    assert "translate" in done.err


def test_version(call):
    from translucid import __version__

    assert call("--version") == (0, f"translucid {__version__}\n", "")


def _without(streams, words):
    """Run our command in a process whose streams with these numbers are closed, as Python finds them when it starts."""
    for number in streams:
        os.close(number)
        setattr(sys, ("stdin", "stdout", "stderr")[number], None)
    main(words)


@pytest.mark.parametrize(
    ("closed", "command", "said"),
    [
        (0, ["translate", "RUN"], "standard input is closed"),
        (0, ["translate", "RUN", "--input", "-"], "standard input is closed"),
        (1, ["--version"], "standard output is closed"),
        (1, ["models"], "standard output is closed"),
        (1, ["translate", "RUN", "I sing"], "standard output is closed"),
    ],
)
def test_a_closed_stream_is_one_clear_line(small_run, closed, command, said):
    words = [str(small_run) if word == "RUN" else word for word in command]
    process = Forked(_without, [closed], words, errors_apart=True)
    _, error = process.communicate()
    assert process.returncode == 2
    assert error.count("\n") == 1 and said in error


def _hold(streams):
    """Return whether a file gets the number of one of the streams, which are closed and then held."""
    for number in streams:
        os.close(number)
    _hold_closed_streams()
    return tempfile.TemporaryFile().fileno() < 3


def test_no_file_takes_the_place_of_a_closed_stream(small_run, tmp_path):
    out = tmp_path / "out.txt"
    command = f"{sys.executable} -m translucid translate {small_run} 'I sing' --output {out} <&- 2>&-"
    assert subprocess.run(command, shell=True, check=False).returncode == 0
    assert out.read_text().count("\n") == 1
    assert Forked(_hold, [0, 1, 2]).wait() == 0


def test_help_needs_no_library_of_models():
    code = (
        "import sys\nfrom translucid.cli.main import run\nassert run(['train', '--help']) == 0\n"
        "assert not {'torch', 'numpy', 'matplotlib', 'yaml', 'ctranslate2', 'rapidfuzz'} & sys.modules.keys()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "--resume" in done.stdout


def test_engines_are_chosen_and_models_exported(call, small_run, corpus, tmp_path):
    texts = ["I like soccer.", "She reads a book."]
    by_engine = [
        call("translate", small_run, *texts, "--engine", name).out for name in ("torch", "ctranslate2", "auto")
    ]
    assert len(set(by_engine)) == 1
    assert call("translate", small_run, *texts, "--engine", "abacus").code == 2
    done = call("export", small_run, tmp_path / "out", "--quantization", "int8")
    assert done.code == 0
    assert {"model.bin", "tokenizer.model"} <= {file.name for file in (tmp_path / "out").iterdir()}
    assert call("export", small_run, tmp_path / "out").code == 2
    done = call("export", small_run, tmp_path / "out2", "--quantization", "int8", "--check", corpus / "test.tsv")
    assert "by CTranslate2 with int8" in done.err


def test_an_export_is_checked_whatever_its_weights_are_and_refused_before_the_work(
    call, small_run, corpus, tmp_path, monkeypatch
):
    done = call("export", small_run, tmp_path / "out", "--check", corpus / "test.tsv")
    assert done.code == 0
    assert "by CTranslate2 with float32, greedy, on 20 pairs" in done.err
    for wrong in (tmp_path / "out", tmp_path / "nowhere" / "out"):
        done = call("export", small_run, wrong, "--check", "nowhere.tsv")
        assert done.code == 2
        assert str(wrong) in done.err
    monkeypatch.setattr("translucid.engines.trials.ALLOWED", -1.0)
    done = call("export", small_run, tmp_path / "other", "--check", corpus / "test.tsv")
    assert done.code == 2
    assert "float32 costs" in done.err
    assert not (tmp_path / "other").exists()


@pytest.fixture
def asked(monkeypatch):
    """What a search for the fastest way was asked for, with what it takes for itself where nothing is said."""
    own, calls = signature(find_fastest), []

    def spy(*arguments, **named):
        bound = own.bind(*arguments, **named)
        bound.apply_defaults()
        del bound.arguments["console"]
        calls.append({name: None if value == [] else value for name, value in bound.arguments.items()})
        raise UserError("enough")

    # What validation sentences measure has tests of its own (tests/api/test_validation_fitting.py).
    monkeypatch.setattr("translucid.api.validation_fitting.fit_validation_scores", lambda *arguments, **named: None)
    monkeypatch.setattr("translucid.engines.tuning.find_fastest", spy)
    monkeypatch.setattr("translucid.training.post_training.find_fastest", spy)
    return calls


def test_tune_asks_for_what_the_end_of_a_training_asks_for(call, asked, tmp_path):
    run = SimpleNamespace(path=tmp_path, configuration=resolve)
    progress, workers = SimpleNamespace(best_score=20.0), SimpleNamespace(leads=True)
    trained = SimpleNamespace(run=run, progress=progress, over=True, workers=workers, device=torch.device("cpu"))
    trained.validator = SimpleNamespace(comparable=lambda score: score)
    (tmp_path / "config.yaml").touch()
    tune_trained(trained, Console(quiet=True))
    assert call("tune", tmp_path).code == 2
    usual = {"train": None, "valid": None, "allow": 0.2, "shortlists": False, "pairs": 50_000, "sentences": 1000}
    assert asked == [{"run": tmp_path, "source": None, "target": None} | usual] * 2


def test_tune_asks_for_what_it_is_told(call, asked, tmp_path):
    (tmp_path / "config.yaml").touch()
    files = ["--train", "a.tsv", "--train", "b.en", "--train", "b.de", "--valid", "c.tsv"]
    call("tune", tmp_path, *files, "--allow", "0.5", "--shortlists", "--pairs", "7", "--sentences", "9")
    told = {"train": ["a.tsv", "b.{en,de}"], "valid": ["c.tsv"], "allow": 0.5}
    told |= {"source": None, "target": None}
    assert asked == [{"run": tmp_path, **told, "shortlists": True, "pairs": 7, "sentences": 9}]


def test_tuning_is_remembered(call, small_run, corpus, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(small_run, run)
    files = ["--train", corpus / "train.tsv", "--valid", corpus / "test.tsv"]
    for options, considered in ([], 2), (["--shortlists"], 4):
        done = call("tune", run, *files, "--allow", "100", "--sentences", 4, *options)
        assert done.code == 0, done.err
        assert (done.out.count("ctranslate2"), done.out.count("torch")) == (2 * considered, considered)
        assert "← chosen" in done.out
        found = json.loads((run / "tuned.json").read_text())["considered"]
        assert (run / "shortlist.tsv").exists() == (found != "all pieces")
    assert call("translate", run, "I like soccer.").code == 0
    (run / "config.yaml").write_text((run / "config.yaml").read_text().replace(str(corpus), "/nowhere"))
    assert call("tune", run).code == 2


@pytest.mark.parametrize("name", ["o[/b]", "o[bold]x", "o\x1b[2J"])
def test_a_name_is_neither_markup_nor_a_command(call, corpus, tmp_path, name):
    run = tmp_path / name
    files = ["--train", corpus / "train.tsv", "--valid", corpus / "test.tsv"]
    done = call("train", *files, "--out", run, "--no-tune", "--set", *SHAPE, "training.max_steps=2")
    assert done.code == 0, done.err
    shown = str(run).replace("\x1b", r"\x1b")
    assert shown in done.err.replace("\n", "")
    saved = call("look", run, "I sing", "--save", run / "x.json")
    assert saved.code == 0, saved.err
    exported = call("export", run, run / "out")
    stats = call("data", "stats", "--train", corpus / "train.tsv", run / "x.tsv")
    assert (exported.code, stats.code) == (0, 2)
    for said in (saved.out, exported.err, stats.err):
        assert shown in said.replace("\n", "")
        assert "\x1b" not in said
