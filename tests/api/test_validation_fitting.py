"""Scores of validation sentences are saved with a run, which then warns about unknown words wherever it translates."""

import json
import shutil
from types import SimpleNamespace

import pytest
import torch
import yaml

from bitext.documents.tagged_text import TaggedText
from translucid import Translator, UserError
from translucid.api.fitting.confidence_fitting import fit_validation_scores
from translucid.api.segment_translator import SegmentTranslator
from translucid.cli.main import run as command
from translucid.data.readers.corpus import read_pairs
from translucid.ground.console import Console
from translucid.runs.run_folder import RunFolder
from translucid.training.post_training import measure_trained

KNOWN = "unknown words: the training text does not have "
STRANGE = "Quaggas graze peacefully beside meandering brooks."
QUIET = Console(quiet=True)


@pytest.fixture(scope="module")
def measured_run(small_run, tmp_path_factory):
    """A copy of a run with scores of its validation sentences."""
    run = shutil.copytree(small_run, tmp_path_factory.mktemp("measured") / "run")
    assert fit_validation_scores(run, console=QUIET).sentences == 20
    return run


def warnings(translator, text):
    return [
        warning
        for warning in translator.translate(text, max_length_extra=3, max_length_ratio=1.0).warnings
        if KNOWN in warning
    ]


@pytest.mark.parametrize("engine", ["auto", "torch"])
def test_unknown_words_are_warned_about_by_every_engine(measured_run, corpus, engine):
    translator = Translator.load(measured_run, engine=engine)
    assert warnings(translator, STRANGE) == [f"{KNOWN}Quaggas, graze, peacefully, beside, meandering …"]
    assert warnings(translator, next(iter(read_pairs(corpus / "test.tsv"))).source) == []
    assert not warnings(
        translator.with_terms([(STRANGE[:-1].lower(), "x y z")]),
        STRANGE,
    )


def test_documents_and_jobs_report_it_with_their_lines(measured_run, tmp_path, capsys):
    translator = Translator.load(measured_run)
    options = translator.configuration.decoding.model_copy(update={"max_length_ratio": 1.0, "max_length_extra": 3})
    (target,) = SegmentTranslator(translator, options).stream([TaggedText(STRANGE)])
    assert any(KNOWN in doubt for doubt in target.doubts)
    (tmp_path / "in.txt").write_text(f"{STRANGE}\n")
    limit = ["--max-length-ratio", "0.5"]
    files = ["--input", str(tmp_path / "in.txt"), "--output", str(tmp_path / "out.jsonl"), "--format", "jsonl"]
    assert command(["translate", str(measured_run), *files, *limit]) == 0
    assert KNOWN in " ".join(json.loads((tmp_path / "out.jsonl").read_text())["warnings"])
    assert KNOWN in capsys.readouterr().err.replace("\n", " ")


def test_other_weights_an_adapter_and_an_ensemble_have_no_scores(measured_run, tmp_path):
    run = shutil.copytree(measured_run, tmp_path / "run")
    assert not warnings(Translator.load(run, others=[measured_run]), STRANGE)
    folder = RunFolder(run)
    model = folder.load_model(folder.configuration(), folder.tokenizer())
    with torch.no_grad():
        model.output.bias += 1
    content = (run / "validation-scores.json").read_bytes()
    folder.save_model(model, folder.tokenizer(), {})
    assert not (run / "validation-scores.json").exists()
    (run / "validation-scores.json").write_bytes(content)
    assert not warnings(Translator.load(run), STRANGE)


def test_a_damaged_file_is_a_line(measured_run, tmp_path):
    run = shutil.copytree(measured_run, tmp_path / "run")
    for content in ("{", (measured_run / "validation-scores.json").read_text().replace('"words":"', '"words":"A')):
        (run / "validation-scores.json").write_text(content)
        with pytest.raises(UserError, match=r"validation-scores\.json: can't be read"):
            _ = Translator.load(run).translate("I like soccer.", max_length_ratio=0.0, max_length_extra=3).warnings


@pytest.fixture(scope="module")
def imported_run(small_run, tmp_path_factory):
    """A run that was imported from a Hugging Face folder, which does not describe its training text."""
    folder = tmp_path_factory.mktemp("imported")
    assert command(["export", str(small_run), str(folder / "hf"), "--to", "huggingface"]) == 0
    assert command(["import", str(folder / "hf"), str(folder / "run")]) == 0
    file = folder / "run" / "config.yaml"
    settings = yaml.safe_load(file.read_text())
    settings["decoding"] |= {"max_length_ratio": 1.0, "max_length_extra": 4}  # barely trained models do not end outputs
    file.write_text(yaml.safe_dump(settings))
    return folder / "run"


def test_an_imported_run_goes_by_the_words_of_the_pairs_that_it_is_given(imported_run, corpus, tmp_path):
    run = shutil.copytree(imported_run, tmp_path / "run")
    files = ["--train", str(corpus / "train.tsv"), "--valid", str(corpus / "test.tsv")]
    assert command(["tune", "speed", str(run), *files, "--sentences", "2"]) == 0
    translator = Translator.load(run)
    assert warnings(translator, STRANGE) == [f"{KNOWN}Quaggas, graze, peacefully, beside, meandering …"]
    assert warnings(translator, next(iter(read_pairs(corpus / "train.tsv"))).source) == []


def test_an_imported_run_goes_by_pieces_without_training_text(imported_run, corpus, tmp_path, capsys):
    run = shutil.copytree(imported_run, tmp_path / "run")
    assert command(["tune", "speed", str(run), "--valid", str(corpus / "test.tsv"), "--sentences", "2"]) == 0
    assert "seen pieces" not in capsys.readouterr().out
    scores = json.loads((run / "validation-scores.json").read_text())["scores"]
    assert (scores["unknown"], scores["words"], scores["sentences"]) == (None, "", 20)
    scores = fit_validation_scores(run, console=QUIET, valid=[str(corpus / "test.tsv")])
    assert scores.unknown is None


@pytest.mark.parametrize(("purpose", "options"), [("speed", []), ("shortlists", ["--valid"])])
def test_without_files_there_is_nothing_to_tune_an_imported_run_on(imported_run, corpus, capsys, purpose, options):
    files = [str(corpus / "test.tsv")] if options else []
    assert command(["tune", purpose, str(imported_run), *options, *files]) == 2
    error = capsys.readouterr().err.replace("\n", " ")
    assert "Give" in error and "FILES" in error and "internal" not in error


def test_too_few_sentences_measure_nothing(measured_run, tmp_path):
    run = shutil.copytree(measured_run, tmp_path / "run")
    (run / "validation-scores.json").unlink()
    (tmp_path / "few.tsv").write_text("I like soccer.\tMe gusta el fútbol.\n")
    assert fit_validation_scores(run, console=QUIET, valid=[str(tmp_path / "few.tsv")]) is None
    assert not (run / "validation-scores.json").exists()


def test_the_end_of_a_training_measures_and_tune_measures_again(measured_run, tmp_path, capsys):
    run = shutil.copytree(measured_run, tmp_path / "run")
    progress = SimpleNamespace(best_score=20.0)
    trainer = SimpleNamespace(
        run=RunFolder(run),
        progress=progress,
        finished=True,
        workers=SimpleNamespace(leads=True),
        device=torch.device("cpu"),
        validator=SimpleNamespace(comparable=lambda score: score if score >= 1 else 0.0),
    )
    for score, over, expected in ((0.1, True, False), (20.0, False, False), (20.0, True, True)):
        (run / "validation-scores.json").unlink(missing_ok=True)
        progress.best_score, trainer.finished = score, over
        measure_trained(trainer, QUIET)
        assert (run / "validation-scores.json").exists() == expected
    (run / "validation-scores.json").unlink()
    assert command(["tune", "speed", str(run), "--sentences", "2"]) == 0
    assert (run / "validation-scores.json").exists()
