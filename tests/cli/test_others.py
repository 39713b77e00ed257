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
from sacrebleu.metrics.chrf import CHRF

from tests.probes.forked import Forked
from translucid.cli.main import _hold_closed_streams, main
from translucid.engines.tuning import find_fastest
from translucid.ground.errors import UserError
from translucid.runs.configuration import resolve
from translucid.training.post_training import tune_trained

from ..conftest import SHAPE


def test_evaluate_json_is_pure_and_complete(call, small_run, corpus):
    started = time.perf_counter()
    result = call("evaluate", small_run, "--test", corpus / "test.tsv", "--by-length", "--json", "--beam", "1")
    report = json.loads(result.out)
    assert 0 < report["seconds"] < time.perf_counter() - started
    assert {"BLEU", "chrF", "TER", "sentences", "by_length", "beam"} <= report.keys()
    assert report["sentences"] == 20
    assert report["lines"] == "sentences"
    assert report["engine"] == "ctranslate2, float32, all pieces"
    assert report["BLEU"]["signature"].startswith("nrefs:1|")
    assert sum(row["sentences"] for row in report["by_length"]) == 20


def test_test_sets_of_sacrebleu_are_scored_with_all_references_in_their_own_direction(
    call, small_run, tmp_path, monkeypatch
):
    monkeypatch.setenv("SACREBLEU", str(tmp_path))
    columns = {"src": ["I sing.", "She works."], "ref-0": ["Canto.", "Trabaja."], "ref-1": ["Yo canto.", ""]}
    (tmp_path / "wmt17/ms").mkdir(parents=True)
    for field, lines in columns.items():
        (tmp_path / f"wmt17/ms/wmt17_ms.zh-en.{field}").write_text("".join(f"{line}\n" for line in lines))
    (tmp_path / "wmt17/ms/wmt17_ms.zh-en.ref-2").write_text("Canto yo.\n\n")
    run, name = tmp_path / "run", "sacrebleu:wmt17/ms/zh-en"
    shutil.copytree(small_run, run)
    configuration = (run / "config.yaml").read_text()

    def set_languages(source, target):
        changed = re.sub("source_language: .*", f"source_language: {source}", configuration)
        (run / "config.yaml").write_text(re.sub("target_language: .*", f"target_language: {target}", changed))

    set_languages("zh", "en")
    result = call("evaluate", run, "--test", name, "--beam", 1, "--json", "--hypotheses", tmp_path / "out")
    record = json.loads(result.out)
    outputs = (tmp_path / "out").read_text().splitlines()
    references = [["Canto.", "Trabaja."], ["Yo canto.", None], ["Canto yo.", None]]
    assert record["chrF++"]["value"] == CHRF(word_order=2).corpus_score(outputs, references).score
    assert "nrefs:var" in record["BLEU"]["signature"] and "nw:2" in record["chrF++"]["signature"]
    compared = json.loads(
        call("compare", run, tmp_path / "out", "--test", name, "--json", "--no-significance", "--beam", 1).out
    )
    assert (compared["metrics"][2]["name"], compared["metrics"][2]["a"]) == ("chrF++", record["chrF++"]["value"])
    set_languages("en", "zh")
    refused = call("evaluate", run, "--test", name)
    assert refused.code == 2 and refused.err.startswith(f"error: {name}: has no pairs from en to zh. Give a test set")
    assert refused.err.endswith("with en-zh in its name.\n")


def test_evaluate_translates_lines_as_translate_does(call, small_run, tmp_path):
    (tmp_path / "test.tsv").write_text("I like soccer. She works.\tMe gusta el fútbol. Ella trabaja.\n")
    command = ["evaluate", small_run, "--test", tmp_path / "test.tsv", "--no-perplexity", "--overwrite", "--hypotheses"]
    outputs = set()
    for options, lines in ([], "sentences"), (["--lines", "whole"], "whole"):
        result = call(*command, tmp_path / "out.txt", *options)
        assert result.code == 0 and f"\nlines: {lines}\n" in result.out, result.err
        outputs.add((tmp_path / "out.txt").read_text())
        translated = call("translate", small_run, "I like soccer. She works.", *options)
        assert (tmp_path / "out.txt").read_text() == translated.out
        compared = ["compare", small_run, tmp_path / "out.txt", *command[2:4], "--json", "--no-significance", *options]
        assert json.loads(call(*compared).out)["equal"] == 1
    assert len(outputs) == 2


def test_evaluate_for_people_shows_signatures_and_lengths(call, small_run, corpus):
    result = call("evaluate", small_run, "--test", corpus / "test.tsv", "--by-length", "--samples", "2")
    assert "tok:13a" in result.out.replace("\n", "")
    assert "a second) by ctranslate2, float32, all pieces" in result.out
    assert "source words" in result.out
    assert re.search(r"^ +1-5 +\d+ +\d+\.\d +\d+\.\d +\d+\.\d\d$", result.out, flags=re.MULTILINE)
    assert result.out.count("hypothesis") == 2


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


@pytest.mark.parametrize(("count", "expected"), [(13, 13), (60, 20), (0, 0)])
def test_as_many_samples_are_shown_as_were_asked_for(call, small_run, corpus, count, expected):
    result = call("evaluate", small_run, "--test", corpus / "test.tsv", "--beam", "1", "--samples", count)
    assert result.out.count("hypothesis") == expected


def test_a_second_reference_counts(call, small_run, corpus, tmp_path):
    def bleu(*options):
        return json.loads(call("evaluate", small_run, "--test", corpus / "test.tsv", "--json", *options).out)["BLEU"]

    hypotheses_file = tmp_path / "hypotheses.txt"
    bleu("--hypotheses", hypotheses_file)
    assert hypotheses_file.read_text().count("\n") == 20
    assert bleu("--reference", hypotheses_file)["value"] == pytest.approx(100)
    (tmp_path / "short.txt").write_text("one\n")
    result = call("evaluate", small_run, "--test", corpus / "test.tsv", "--reference", tmp_path / "short.txt")
    assert result.code == 2
    assert "1 references" in result.err


def test_models_lists_presets_and_keys(call):
    assert {"tiny", "small", "base"} <= set(call("models").out.split())
    keys = call("models", "--keys").out
    for key in ("model.width", "data.tokenizer.vocabulary", "training.max_minutes", "decoding.beam"):
        assert key in keys


def test_stats_warns_of_a_leak(call, corpus):
    result = call("data", "stats", "--train", corpus / "train.tsv", "--test", corpus / "train.tsv", "--json")
    statistics = json.loads(result.out)
    assert statistics["train"]["pairs"] == statistics["overlap"][0]["pairs"] == 300
    assert "warning" in result.err
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
    result = call("data", "phrasebook", tmp_path / arguments[0], *arguments[1:])
    assert result.code == 2 and reason in result.err


def test_phrasebook_writes_pairs_with_alignments(call, tmp_path):
    file = tmp_path / "pairs.jsonl"
    assert call("data", "phrasebook", file, "--count", "7", "--min-words", "5", "--max-words", "9").code == 0
    records = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(records) == 7
    assert all(5 <= len(record["source"].split()) <= 9 for record in records)
    assert all("-" in record["alignment"] for record in records)
    assert call("data", "phrasebook", file).code == 2


def test_phrasebook_writes_labels_of_each_word(call, tmp_path):
    file = tmp_path / "labeled.jsonl"
    for arguments in ([], ["--discourse"]):
        asked = [*arguments, "--labels", "--overwrite", "--count", "4", "--split", "test"]
        assert call("data", "phrasebook", file, *asked).code == 0
        for record in map(json.loads, file.read_text().splitlines()):
            for side in ("source", "target"):
                assert len(record[f"{side}_labels"]) == len(record[side].split())
    result = call("data", "phrasebook", tmp_path / "x.tsv", "--labels")
    assert result.code == 2 and "has no place for labels" in result.err


def test_phrasebook_addresses_the_reader_formally_or_informally(call, tmp_path):
    plain, file = tmp_path / "plain.jsonl", tmp_path / "addressed.jsonl"
    for out, *asked in ((plain,), (file, "--formality")):
        assert call("data", "phrasebook", out, "--count", "60", "--max-words", "9", *asked).code == 0
    formal = {"formal": "target", "informal": "contrast"}
    rows = [(json.loads(old), json.loads(new)) for old, new in zip(plain.open(), file.open(), strict=True)]
    assert {new.get("formality") for _, new in rows} == {None, *formal}
    for old, new in rows:
        informal = {"formal": "contrast"}.get(new.get("formality"), "target")
        assert (new["source"], new[informal]) == (old["source"], old["target"])
        assert new.get("contrast") != new["target"]
    both = tmp_path / "both.jsonl"
    options = "--count", "60", "--max-words", "9", "--formality", "--both-forms"
    assert call("data", "phrasebook", both, *options).code == 0
    records = list(map(json.loads, both.open()))
    for _, new in rows:
        assert records.pop(0) == new
        if "contrast" in new:
            other = records.pop(0)
            forms = {form["formality"]: form["target"] for form in (new, other)}
            assert (other["contrast"], other["source"]) == (new["target"], new["source"])
            assert forms == {new["formality"]: new["target"], other["formality"]: new["contrast"]} and len(forms) == 2
            assert set(other) == set(new) and other["document"] == new["document"]
    assert not records
    result = call("data", "phrasebook", tmp_path / "x.jsonl", "--both-forms")
    assert result.code == 2 and "Add --formality" in result.err
    for other in ("--discourse", "--labels"):
        result = call("data", "phrasebook", tmp_path / "x.jsonl", "--formality", other)
        assert result.code == 2 and f"--formality and {other} do not go together" in result.err
    assert call("data", "phrasebook", tmp_path / "x.tsv", "--formality").code == 2


@pytest.mark.parametrize("count", [0, -5])
def test_phrasebook_writes_one_pair_or_more(call, tmp_path, count):
    assert call("data", "phrasebook", tmp_path / "pairs.tsv", "--count", count).code == 2
    assert not list(tmp_path.iterdir())


def test_an_unknown_command_names_the_nearest(call):
    result = call("tranlsate", "runs/demo")
    assert result.code == 2
    assert "translate" in result.err


def test_version(call):
    from translucid import __version__

    assert call("--version") == (0, f"translucid {__version__}\n", "")


def _run_with_closed_streams(streams, arguments):
    """Run our command with these streams closed: they are None, as when Python starts without them."""
    for number in streams:
        os.close(number)
        setattr(sys, ("stdin", "stdout", "stderr")[number], None)
    main(arguments)


@pytest.mark.parametrize(
    ("stream", "command", "message"),
    [
        (0, ["translate", "RUN"], "standard input is closed"),
        (0, ["translate", "RUN", "--input", "-"], "standard input is closed"),
        (1, ["--version"], "standard output is closed"),
        (1, ["models"], "standard output is closed"),
        (1, ["translate", "RUN", "I sing"], "standard output is closed"),
    ],
)
def test_a_closed_stream_is_one_clear_line(small_run, stream, command, message):
    names = {"RUN": str(small_run)}
    arguments = [names.get(word, word) for word in command]
    process = Forked(_run_with_closed_streams, [stream], arguments, errors_apart=True)
    _, error = process.communicate()
    assert process.returncode == 2
    assert error.count("\n") == 1 and message in error


def _file_takes_closed_stream(streams):
    """Close these streams, reserve their numbers, and return whether a new file still gets one of them."""
    for number in streams:
        os.close(number)
    _hold_closed_streams()
    return tempfile.TemporaryFile().fileno() < 3


def test_no_file_takes_the_place_of_a_closed_stream(small_run, tmp_path):
    out = tmp_path / "out.txt"
    command = ["translate", str(small_run), "I sing", "--output", str(out)]
    assert Forked(_run_with_closed_streams, [0, 2], command).wait() == 0
    assert out.read_text().count("\n") == 1
    assert Forked(_file_takes_closed_stream, [0, 1, 2]).wait() == 0


def test_help_needs_no_library_of_models():
    code = (
        "import sys\nfrom translucid.cli.main import run\nassert run(['--help']) == 0\n"
        "assert 'pydantic' not in sys.modules  # Typer loads it for a command\n"
        "assert run(['train', '--help']) == 0\n"
        "assert not {'torch', 'numpy', 'matplotlib', 'yaml', 'ctranslate2', 'rapidfuzz'} & sys.modules.keys()"
    )
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stderr
    assert "--resume" in completed.stdout


def test_engines_are_chosen_and_models_exported(call, small_run, corpus, tmp_path):
    texts = ["I like soccer.", "She reads a book."]
    by_engine = [
        call("translate", small_run, *texts, "--engine", name).out for name in ("torch", "ctranslate2", "auto")
    ]
    assert len(set(by_engine)) == 1
    assert call("translate", small_run, *texts, "--engine", "abacus").code == 2
    result = call("export", small_run, tmp_path / "out", "--quantization", "int8")
    assert result.code == 0
    assert {"model.bin", "tokenizer.model"} <= {file.name for file in (tmp_path / "out").iterdir()}
    assert call("export", small_run, tmp_path / "out").code == 2
    result = call("export", small_run, tmp_path / "out2", "--quantization", "int8", "--check", corpus / "test.tsv")
    assert "by CTranslate2 with int8" in result.err


def test_an_export_is_checked_whatever_its_weights_are_and_refused_before_the_work(
    call, small_run, corpus, tmp_path, monkeypatch
):
    result = call("export", small_run, tmp_path / "out", "--check", corpus / "test.tsv")
    assert result.code == 0
    assert "by CTranslate2 with float32, greedy, on 20 pairs" in result.err
    for wrong in (tmp_path / "out", tmp_path / "nowhere" / "out"):
        result = call("export", small_run, wrong, "--check", "nowhere.tsv")
        assert result.code == 2
        assert str(wrong) in result.err
    monkeypatch.setattr("translucid.engines.tuning.ALLOWED", -1.0)
    result = call("export", small_run, tmp_path / "other", "--check", corpus / "test.tsv")
    assert result.code == 2
    assert "float32 costs" in result.err
    assert not (tmp_path / "other").exists()


@pytest.fixture
def tuning_calls(monkeypatch):
    """The arguments of each search for the fastest engine, defaults included."""
    search_signature, calls = signature(find_fastest), []

    def spy(*arguments, **options):
        bound = search_signature.bind(*arguments, **options)
        bound.apply_defaults()
        del bound.arguments["console"]
        # Without files, the command passes empty lists, and training leaves the default None.
        for name, value in bound.arguments.items():
            if value == []:
                bound.arguments[name] = None
        calls.append(bound.arguments)
        raise UserError("enough")

    # Fitting validation scores has its own tests (tests/api/test_validation_fitting.py).
    monkeypatch.setattr(
        "translucid.api.fitting.confidence_fitting.fit_validation_scores", lambda *arguments, **options: None
    )
    monkeypatch.setattr("translucid.engines.tuning.find_fastest", spy)
    monkeypatch.setattr("translucid.training.post_training.find_fastest", spy)
    return calls


def test_tune_has_the_defaults_of_the_end_of_a_training(call, tuning_calls, tmp_path):
    run = SimpleNamespace(path=tmp_path, configuration=resolve)
    progress, workers = SimpleNamespace(best_score=20.0), SimpleNamespace(leads=True)
    trained = SimpleNamespace(run=run, progress=progress, finished=True, workers=workers, device=torch.device("cpu"))
    trained.validator = SimpleNamespace(comparable=lambda score: score)
    (tmp_path / "config.yaml").touch()
    tune_trained(trained, Console(quiet=True))
    assert call("tune", "speed", tmp_path).code == 2
    usual = {
        "device": "cpu",
        "train": None,
        "valid": None,
        "allow": 0.2,
        "shortlists": False,
        "pairs": 50_000,
        "sentences": 1000,
    }
    assert tuning_calls == [{"run": tmp_path, "source": None, "target": None} | usual] * 2


def test_tune_passes_its_options_on(call, tuning_calls, tmp_path):
    (tmp_path / "config.yaml").touch()
    files = ["--train", "a.tsv", "--train", "b.en", "--train", "b.de", "--valid", "c.tsv"]
    call("tune", "shortlists", tmp_path, *files, "--allow", "0.5", "--pairs", "7", "--sentences", "9")
    expected = {"train": ["a.tsv", "b.{en,de}"], "valid": ["c.tsv"], "allow": 0.5}
    expected |= {"source": None, "target": None, "device": "cpu"}
    assert tuning_calls == [{"run": tmp_path, **expected, "shortlists": True, "pairs": 7, "sentences": 9}]


def test_tuning_is_remembered(call, small_run, corpus, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(small_run, run)
    few = tmp_path / "few.tsv"
    few.write_text("".join((corpus / "train.tsv").read_text(encoding="utf-8").splitlines(keepends=True)[:30]))
    files = ["--train", few, "--valid", corpus / "test.tsv"]
    for purpose, count in ("speed", 2), ("shortlists", 4):
        result = call("tune", purpose, run, *files, "--allow", "100", "--sentences", 2)
        assert result.code == 0, result.err
        assert (result.out.count("ctranslate2"), result.out.count("torch")) == (2 * count, count)
        assert "← chosen" in result.out
        candidates = json.loads((run / "tuned.json").read_text())["considered"]
        assert (run / "shortlist.tsv").exists() == (candidates != "all pieces")
    assert call("translate", run, "I like soccer.").code == 0
    (run / "config.yaml").write_text((run / "config.yaml").read_text().replace(str(corpus), "/nowhere"))
    assert call("tune", "speed", run).code == 2


def test_a_name_is_neither_markup_nor_a_command(call, corpus, tmp_path):
    run = tmp_path / "o[bold]x\x1b[2J[/b]"
    files = ["--train", corpus / "train.tsv", "--valid", corpus / "test.tsv"]
    result = call("train", *files, "--out", run, "--no-tune", "--set", *SHAPE, "training.max_steps=2")
    assert result.code == 0, result.err
    printed_name = str(run).replace("\x1b", r"\x1b")
    assert printed_name in result.err.replace("\n", "")
    saved = call("look", run, "I sing", "--save", run / "x.json")
    assert saved.code == 0, saved.err
    exported = call("export", run, run / "out")
    stats = call("data", "stats", "--train", corpus / "train.tsv", run / "x.tsv")
    assert (exported.code, stats.code) == (0, 2)
    for output in (saved.out, exported.err, stats.err):
        assert printed_name in output.replace("\n", "")
        assert "\x1b" not in output
