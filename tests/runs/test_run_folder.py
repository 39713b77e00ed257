"""Run folders that are incomplete, damaged or altered."""

from pathlib import Path

import pytest
import torch

from translucid.api.translator import Translator
from translucid.ground.errors import UserError
from translucid.layers.positions import sinusoidal_positions
from translucid.runs.run_folder import RUN_FILES, TUNING_FILES, RunFolder
from translucid.runs.staging import staged
from translucid.runs.tensor_file import load_tensors, save_tensors


def test_a_run_works_without_its_state(run):
    import shutil

    shutil.rmtree(run.path / "state")
    assert Translator.load(run.path, "cpu").translate("I like soccer").text


def test_tidying_ignores_files_that_have_disappeared(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "glob", lambda self, pattern: [tmp_path / ".gone.tmp"])
    RunFolder(tmp_path).tidy()


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("config.yaml", "is neither a run folder, which has config.yaml, nor"),
        ("model.safetensors", "resume=True"),
        ("tokenizer.model", "has no tokenizer"),
    ],
)
def test_half_a_run_says_what_is_missing(run, missing, message):
    (run.path / missing).unlink()
    with pytest.raises(UserError, match=message):
        Translator.load(run.path, "cpu")


@pytest.mark.parametrize("name", RUN_FILES)
def test_files_of_a_usual_size_are_accepted(name, tmp_path):
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(bytes(5_000))
    RunFolder(tmp_path).refuse_strange_files()


def change_tensors(run, change):
    tensors, facts = load_tensors(run.model_file)
    change(tensors)
    save_tensors(run.model_file, tensors, facts)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda tensors: tensors.pop("output.bias"), "output.bias is missing"),
        (lambda tensors: tensors.update(strange=torch.zeros(1)), "strange is unknown"),
        (lambda tensors: tensors.update({"output.bias": torch.zeros(3)}), r"output.bias is \[3\], not"),
        (
            lambda tensors: tensors.update({"output.bias": tensors["output.bias"].cfloat()}),
            "output.bias is torch.complex64",
        ),
        (lambda tensors: tensors["output.bias"][3].fill_(torch.nan), "not finite numbers: output.bias"),
        (lambda tensors: tensors["output.bias"][3].fill_(-torch.inf), "not finite numbers: output.bias"),
    ],
)
def test_weights_that_do_not_fit_are_refused(run, change, message):
    change_tensors(run, change)
    with pytest.raises(UserError, match=message):
        Translator.load(run.path, "cpu")


def test_loading_restores_the_saved_model_without_random_numbers(run):
    change_tensors(run, lambda tensors: tensors.update({"output.bias": tensors["output.bias"].half()}))
    before = torch.get_rng_state()
    model = run.load_model(run.configuration(), run.tokenizer())
    assert torch.equal(torch.get_rng_state(), before)
    saved = load_tensors(run.model_file)[0]
    loaded = dict(model.named_parameters())
    assert loaded.keys() == saved.keys()
    for name, weight in loaded.items():
        assert weight.dtype == torch.float32 and weight.requires_grad and torch.equal(weight, saved[name].float())
    assert model.output.weight is model.source_embedding.tokens.weight is model.target_embedding.tokens.weight
    assert torch.equal(model.source_embedding.positions.table, sinusoidal_positions(256, 16))


def test_a_model_does_not_change_with_its_file(run):
    model = run.load_model(run.configuration(), run.tokenizer())
    before = model.output.weight.clone()
    with run.model_file.open("r+b") as file:
        file.seek(1000)
        file.write(bytes(range(256)) * ((run.model_file.stat().st_size - 1000) // 256))
    assert torch.equal(model.output.weight, before)


@pytest.mark.parametrize(
    ("before", "after"),
    [("heads: 2", "heads: 4"), ("positions: sinusoidal", "positions: none"), ("dropout: 0.2", "dropout: 0.3")],
)
def test_a_change_that_no_shape_tells_is_noticed(run, before, after):
    text = run.config_file.read_text()
    assert before in text
    run.config_file.write_text(text.replace(before, after, 1))
    message = (
        rf"config\.yaml: says model\.{after.replace(': ', '=')}, but the weights were trained with {before.split()[1]}"
    )
    for engine in ("torch", "ctranslate2"):
        with pytest.raises(UserError, match=message):
            Translator.load(run.path, "cpu", engine).translate("I like soccer")


def test_weights_of_a_file_that_does_not_name_its_options_are_taken(run):
    tensors, facts = load_tensors(run.model_file)
    assert facts.pop("model")["heads"] == 2
    for unusual_facts in (facts, {**facts, "model": "none"}, {**facts, "model": {"width": 16, "color": "red"}}):
        save_tensors(run.model_file, tensors, unusual_facts)
        assert Translator.load(run.path, "cpu", "torch").translate("I like soccer").text


def test_tuning_results_of_other_weights_are_removed(run):
    for name in TUNING_FILES:
        (run.path / name).write_text("for the weights before")
    tokenizer = run.tokenizer()
    run.save_model(run.load_model(run.configuration(), tokenizer), tokenizer, {"step": 3})
    assert not any((run.path / name).exists() for name in TUNING_FILES)


def test_metrics_survive_a_last_line_cut_short(run):
    rows = run.metrics()
    with run.metrics_file.open("a") as file:
        file.write('{"kind": "training", "st')
    assert run.metrics() == rows
    run.forget_metrics_after(0)
    assert run.metrics() == []


def test_overwrite_removes_what_is_ours_only(run):
    (run.path / "notes.txt").write_text("mine")
    with staged(run, overwrite=True):
        pass
    assert sorted(item.name for item in run.path.iterdir()) == [".lock", "notes.txt"]
