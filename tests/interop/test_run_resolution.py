"""A Hugging Face folder can be used in place of a run."""

import json
import os
import shutil
from pathlib import Path

import pytest
from typer.main import get_command

from tests.probes.foreign import marian_folder
from translucid.api.translator import Translator
from translucid.cli.main import app
from translucid.cli.main import run as call
from translucid.ground.errors import UserError
from translucid.interop import run_resolution
from translucid.interop.importing import import_model
from translucid.interop.run_resolution import resolve_run, seeds_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    model_folder = tmp_path_factory.mktemp("theirs") / "opus"
    marian_folder(model_folder, end=2.0)
    return model_folder


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr("translucid.ground.cache.user_cache_path", lambda name: tmp_path / name)


def test_a_folder_is_imported_once_and_translates_like_its_run(folder, tmp_path, capsys, monkeypatch):
    import_model(folder, tmp_path / "run")
    expected = Translator.load(tmp_path / "run", "cpu").translate("I like soccer").text
    capsys.readouterr()
    assert Translator.load(folder, "cpu").translate("I like soccer").text == expected
    captured = capsys.readouterr()
    assert captured.out == "" and captured.err.count("importing") == captured.err.count("\n") == 1
    monkeypatch.setattr(run_resolution, "add_to_cache", lambda *_: pytest.fail("imported again"))
    assert Translator.load(str(folder), "cpu").translate("I like soccer").text == expected
    assert capsys.readouterr().err == ""


def test_a_changed_folder_and_a_damaged_copy_are_imported_again(folder, tmp_path):
    copy = tmp_path / "mine"
    shutil.copytree(folder, copy)
    first = resolve_run(copy)
    assert resolve_run(copy) == first
    os.utime(copy / "vocab.json", (1, 1))
    second = resolve_run(copy)
    assert second != first
    (second / "model.safetensors").write_bytes(b"damaged")
    assert resolve_run(copy) == second
    assert Translator.load(copy, "cpu", "torch").model


def test_a_model_on_the_hub_is_refused_with_the_command_that_imports_it():
    line = "is a model on the Hugging Face Hub, which only `import` downloads. Run `translucid import hf:a/b@v1 runs/b`"
    with pytest.raises(UserError, match=rf"^hf:a/b@v1: {line}, and use that run\.$"):
        resolve_run("hf:a/b@v1")


def test_tuning_results_of_an_imported_folder_are_kept(folder):
    run = resolve_run(folder)
    (run / "tuned.json").write_text('{"engine": "torch"}')
    assert resolve_run(folder) == run and (run / "tuned.json").exists()
    assert Translator.load(folder, "cpu").engine.name == "torch"


def test_a_folder_of_neither_kind_is_one_line(tmp_path):
    with pytest.raises(UserError, match=r"neither a run folder, .* nor a Hugging Face folder, which"):
        resolve_run(tmp_path)
    for path in (tmp_path / "gone", tmp_path / ("x" * 5000)):
        assert resolve_run(path) == path


def test_a_name_is_that_of_a_run_in_the_folder_of_runs(small_run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(small_run, tmp_path / "runs" / "mine")
    assert resolve_run("mine") == Path("runs/mine") and resolve_run("other") == Path("other")
    assert Translator.load("mine", "cpu", "torch").run == str(Path("runs/mine"))
    assert call(["translate", "mine", "I like soccer", "--max-length-ratio", "1"]) == 0
    (tmp_path / "mine").mkdir()  # a folder of this name takes precedence
    with pytest.raises(UserError, match="mine: is neither a run folder"):
        resolve_run("mine")


def test_every_command_finds_a_run_in_the_same_way():
    missing, pending, count = [], [("translucid", get_command(app))], 0
    while pending:
        path, command = pending.pop()
        pending += [(f"{path} {name}", subcommand) for name, subcommand in getattr(command, "commands", {}).items()]
        for parameter in command.params:
            if (parameter.metavar or "").startswith("RUN"):
                count += 1
                if parameter.callback is None:
                    missing.append(f"{path} {parameter.name}")
    # These create a run, read outputs too, read a pair of languages besides, or have another form too, as RUN:SHARE.
    expected = {"translucid import out", "translucid compare a", "translucid compare b", "translucid serve runs"}
    expected |= {"translucid mcp runs"}
    expected |= {"translucid translate pivot", "translucid evaluate pivot", "translucid live pivot"}
    expected |= {"translucid distill reverse", "translucid train init_from"}
    assert count > 25 and {*missing} <= expected


def test_a_bad_folder_leaves_nothing_in_the_cache(folder, tmp_path):
    copy = tmp_path / "mine"
    shutil.copytree(folder, copy)
    (copy / "vocab.json").write_text("[")
    with pytest.raises(UserError, match="is not JSON"):
        resolve_run(copy)
    assert not [*(tmp_path / "translucid" / "imported").iterdir()]


def test_an_error_without_a_cache_names_the_solution(folder, tmp_path, monkeypatch):
    (tmp_path / "translucid").write_text("")
    with pytest.raises(UserError, match=r"can't be kept in the cache .* translucid import"):
        resolve_run(folder)


@pytest.mark.parametrize("command", [["translate"], ["look"], ["explain"], ["draw", "beam", "--out", "b.svg"]])
def test_commands_accept_a_folder(folder, tmp_path, command, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert call([*command, str(folder), "I like soccer"]) == 0
    assert "importing" in capsys.readouterr().err


def test_every_command_accepts_a_folder_beside_or_in_place_of_a_run(folder, tmp_path, capsys):
    """`compare`, `--ensemble`, `--rerank-with` and `export` accepted only runs before."""
    test = tmp_path / "test.tsv"
    test.write_text("I like soccer\tMe gusta el fútbol\nThe house\tLa casa\n" * 4, encoding="utf-8")
    short = ["--max-length-ratio", "1"]
    commands = [
        ["compare", folder, folder, "--test", test, "--no-significance", "--json", "--beam", "1"],
        ["evaluate", folder, "--ensemble", folder, "--test", test, "--json", "--beam", "1"],
        ["translate", folder, "--ensemble", folder, *short, "I like soccer"],
        ["translate", folder, "--rerank-with", folder, "--beam", "2", *short, "I like soccer"],
        ["export", folder, tmp_path / "out"],
    ]
    for command in commands:
        assert call([str(part) for part in command]) == 0, (command, capsys.readouterr().err)
        out = capsys.readouterr().out
        if command[0] == "compare":
            assert json.loads(out)["equal"] == 8 and json.loads(out)["a"] == str(folder)
    averaged = Translator.load(folder, "cpu", others=[folder])
    assert averaged.engine.name == "torch"


def test_a_folder_of_seeds_stands_for_its_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("runs/out/seed-10", "runs/out/seed-9", "runs/out/seed-x", "runs/run/seed-1", "runs/one/seed-4"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "config.yaml").touch()
    (tmp_path / "runs/out/seed-11").mkdir()  # no run yet
    (tmp_path / "runs/run/config.yaml").touch()  # a run itself, despite its seed folder
    for name in ("out", "runs/out"):
        assert seeds_of(name) == [Path("runs/out/seed-9"), Path("runs/out/seed-10")]
        assert resolve_run(name) == Path("runs/out/seed-9")
        assert f"{name} has 2 seeds; this is runs/out/seed-9" in capsys.readouterr().err
    assert seeds_of("run") == seeds_of("missing") == seeds_of(tmp_path) == []
    assert resolve_run("run") == Path("runs/run") and resolve_run("one") == Path("runs/one/seed-4")
    assert "has one seed" in capsys.readouterr().err
