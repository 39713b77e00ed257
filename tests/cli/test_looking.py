"""`look --save`, `align`, `explain`, `draw`, `evaluate --alignments`."""

import json

import pytest
import yaml

from translucid.data.phrasebook import generate
from translucid.evaluation.alignment import to_pharaoh


@pytest.fixture(scope="module")
def gold(tmp_path_factory):
    """Phrasebook sentences with gold links, as `translucid data phrasebook x.jsonl` writes them."""
    file = tmp_path_factory.mktemp("gold") / "gold.jsonl"
    rows = [{**p._asdict(), "alignment": to_pharaoh(p.alignment)} for p in generate(12, split="test", max_words=8)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


@pytest.mark.parametrize("ending", ["html", "png", "svg", "pdf", "json"])
def test_look_saves_what_it_shows(call, small_run, tmp_path, ending):
    file = tmp_path / f"maps.{ending}"
    done = call("look", small_run, "I like soccer", "--save", file)
    assert done.code == 0, done.err
    assert file.stat().st_size > 500
    assert call("look", small_run, "I like soccer", "--save", file).code == 2
    assert call("look", small_run, "I like soccer", "--save", file, "--overwrite").code == 0


def test_look_at_one_head_and_at_a_given_target(call, small_run):
    done = call("look", small_run, "I like soccer", "--layer", 0, "--head", 1, "--target", "Me gusta el fútbol")
    assert done.code == 0, done.err
    assert "fútbol" in done.out
    assert call("look", small_run, "I like soccer", "--flow").code == 0
    for wrong in (["--layer", 9], ["--head", 9], ["--save", "x.gif"]):
        done = call("look", small_run, "I like soccer", *wrong)
        assert done.code == 2
        assert len(done.err.strip().splitlines()) == 1, done.err


def test_align_given_pairs(call, small_run, gold, tmp_path):
    done = call("align", small_run, "--pairs", gold)
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert len(lines) == 12
    for line, row in zip(lines, gold.read_text().splitlines(), strict=True):
        record = json.loads(row)
        for link in line.split():
            source, target = map(int, link.split("-"))
            assert source < len(record["source"].split())
            assert target < len(record["target"].split())
    both = call("align", small_run, "--reverse", small_run, "--pairs", gold, "--output", tmp_path / "a.txt")
    assert both.code == 0, both.err
    assert len((tmp_path / "a.txt").read_text().splitlines()) == 12


def test_evaluate_finds_and_keeps_the_best_way_to_align(call, small_run, gold):
    done = call("evaluate", small_run, "--test", gold, "--alignments", gold, "--json", "--keep-best")
    assert done.code == 0, done.err
    ways = json.loads(done.out)["alignment"]
    assert [way["aer"] for way in ways] == sorted(way["aer"] for way in ways)
    kept = yaml.safe_load((small_run / "config.yaml").read_text())["alignment"]
    assert kept == {name: ways[0][name] for name in ("layer", "shift", "both")}
    shown = call("evaluate", small_run, "--test", gold, "--alignments", gold)
    assert "← this run" in shown.out


def test_gold_that_does_not_fit_is_one_clear_line(call, small_run, gold, tmp_path):
    (tmp_path / "short.txt").write_text("0-0\n")
    done = call("evaluate", small_run, "--test", gold, "--alignments", tmp_path / "short.txt")
    assert done.code == 2
    assert "1 lines for 12 sentence pairs" in done.err
    assert call("evaluate", small_run, "--test", gold, "--keep-best").code == 2


@pytest.mark.parametrize("method", ["erasure", "attention", "lime", "gradients"])
def test_explain_tests_itself(call, small_run, method):
    done = call("explain", small_run, "I like soccer", "--method", method, "--samples", 30)
    assert done.code == 0, done.err
    assert "left out" in done.out
    record = json.loads(call("explain", small_run, "I like soccer", "--method", method, "--json").out)
    assert len(record["importance"]) == len(record["target"])
    assert set(record["faithfulness"]) == {method, "random"}


def test_draw(call, small_run, tmp_path):
    for arguments in (
        ["heads", small_run, "I like soccer"],
        ["heads", small_run, "I like soccer", "--layer", 0],
        ["mask", small_run, "I like soccer"],
        ["positions", "--length", 20],
        ["beam", small_run, "I like soccer", "--beam", 3],
        ["curves", small_run],
    ):
        file = tmp_path / f"{arguments[0]}{len(arguments)}.png"
        done = call("draw", *arguments, "--out", file)
        assert done.code == 0, done.err
        assert file.read_bytes().startswith(b"\x89PNG")
    assert call("draw", "positions", "--out", file).code == 2
    assert call("draw", "mask", small_run, "", "--out", tmp_path / "n.png").code == 2
