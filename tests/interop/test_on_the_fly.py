"""A Hugging Face folder stands where a run does."""

import json
import os
import shutil

import pytest

from tests.probes.foreign import marian_folder
from translucid.api.translator import Translator
from translucid.cli.main import run as call
from translucid.ground.errors import UserError
from translucid.interop import on_the_fly
from translucid.interop.importing import import_model
from translucid.interop.on_the_fly import run_of


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("theirs") / "opus"
    marian_folder(place, end=2.0)
    return place


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setattr("translucid.ground.cache.user_cache_path", lambda name: tmp_path / name)


def test_it_is_imported_once_and_translates_as_its_run(folder, tmp_path, capsys, monkeypatch):
    import_model(folder, tmp_path / "run")
    wanted = Translator.load(tmp_path / "run", "cpu").translate("I like soccer").text
    capsys.readouterr()
    assert Translator.load(folder, "cpu").translate("I like soccer").text == wanted
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("importing") == said.err.count("\n") == 1
    monkeypatch.setattr(on_the_fly, "keep", lambda *_: pytest.fail("imported again"))
    assert Translator.load(str(folder), "cpu").translate("I like soccer").text == wanted
    assert capsys.readouterr().err == ""


def test_one_that_has_changed_is_imported_again_and_a_damaged_copy_too(folder, tmp_path):
    mine = tmp_path / "mine"
    shutil.copytree(folder, mine)
    first = run_of(mine)
    assert run_of(mine) == first
    os.utime(mine / "vocab.json", (1, 1))
    second = run_of(mine)
    assert second != first
    (second / "model.safetensors").write_bytes(b"damaged")
    assert run_of(mine) == second
    assert Translator.load(mine, "cpu", "torch").model


def test_what_is_found_for_it_stays(folder):
    run = run_of(folder)
    (run / "tuned.json").write_text('{"engine": "torch"}')
    assert run_of(folder) == run and (run / "tuned.json").exists()
    assert Translator.load(folder, "cpu").engine.name == "torch"


def test_a_folder_of_neither_kind_is_one_line(tmp_path):
    with pytest.raises(UserError, match=r"neither a run folder, .* nor a Hugging Face folder, which"):
        run_of(tmp_path)
    for given in (tmp_path / "gone", tmp_path / ("x" * 5000)):
        assert run_of(given) == given


def test_a_bad_one_leaves_nothing_in_the_cache(folder, tmp_path):
    mine = tmp_path / "mine"
    shutil.copytree(folder, mine)
    (mine / "vocab.json").write_text("[")
    with pytest.raises(UserError, match="is not JSON"):
        run_of(mine)
    assert not [*(tmp_path / "translucid" / "imported").iterdir()]


def test_without_a_cache_the_way_out_is_said(folder, tmp_path, monkeypatch):
    (tmp_path / "translucid").write_text("")
    with pytest.raises(UserError, match=r"can't be kept in the cache .* translucid import"):
        run_of(folder)


@pytest.mark.parametrize("command", [["translate"], ["look"], ["explain"], ["draw", "beam", "--out", "b.svg"]])
def test_commands_take_it(folder, tmp_path, command, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert call([*command, str(folder), "I like soccer"]) == 0
    assert "importing" in capsys.readouterr().err


def test_it_stands_beside_a_run_and_in_its_place_in_every_command(folder, tmp_path, capsys):
    """`compare`, `--ensemble`, `--rerank-with` and `export` took runs alone."""
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
