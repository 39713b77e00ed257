"""`translucid data clean`: the kept and the rejected pairs, and the report."""

import gzip
import json

import pytest

from translucid.corpora.phrasebook import generate

BAD = ["She is well today.\tShe is well today.", "no pair", "The boy is here.\tEl niÃ±o estÃ¡ aquÃ­.", "\t"]


@pytest.fixture
def noisy(tmp_path):
    good = [f"{phrase.source}\t{phrase.target}" for phrase in generate(300, split="train", seed=1, min_words=6)]
    (tmp_path / "noisy.tsv").write_text("\n".join([*good[:100], *BAD, *good[100:], good[0]]) + "\n")
    return tmp_path / "noisy.tsv", good


def test_a_corpus_is_split_and_nothing_is_lost(call, noisy, tmp_path):
    file, good = noisy
    result = call("data", "clean", file, "--out", tmp_path / "clean.tsv", "--json")
    assert result.code == 0, result.err
    assert "en to es" in result.err
    kept_lines = (tmp_path / "clean.tsv").read_text().splitlines()
    rejected = [line.split("\t") for line in (tmp_path / "clean.rejected.tsv").read_text().splitlines()]
    assert kept_lines == list(dict.fromkeys(good))
    assert [row[2] for row in rejected[:4]] == ["untranslated", "unreadable", "encoding", "empty"]
    assert [row[4] for row in rejected[:4]] == [f"{file}:{line}" for line in range(101, 105)]
    assert {row[2] for row in rejected[4:]} == {"duplicate"} and all(len(row) == 5 for row in rejected)
    report = json.loads(result.out)
    assert report["pairs"] == len(kept_lines) + len(rejected) == 305
    assert report["kept"] == len(kept_lines)
    example = report["rules"]["encoding"]["examples"][0]
    assert example["line"] == 103 and "El niño" in example["what"]


def test_the_report_has_counts_and_examples(call, noisy, tmp_path):
    result = call("data", "clean", noisy[0], "--out", tmp_path / "clean.tsv")
    for part in ("untranslated", "0.33 %", "noisy.tsv:101", "the target is the source", "kept"):
        assert part in result.out


def test_rules_are_left_out_and_files_packed(call, noisy, tmp_path):
    out, rejected = tmp_path / "clean.tsv.gz", tmp_path / "why.tsv"
    rules = "untranslated", "encoding"
    result = call("data", "clean", noisy[0], "--out", out, "--rejected", rejected, "--without", *rules)
    assert result.code == 0, result.err
    kept_lines = gzip.decompress(out.read_bytes()).decode().splitlines()
    assert BAD[0] in kept_lines and BAD[2] in kept_lines
    assert not {row.split("\t")[2] for row in rejected.read_text().splitlines()} & set(rules)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--without", "lenght"], "Did you mean 'length'"),
        (["--forward", "runs/demo"], "asked in both directions"),
        (["--min-gain", "0.5"], "asked in both directions"),
        (["--out", "clean.txt"], "of no kind that can be written"),
        (["--out", "noisy.tsv"], "is there already"),
    ],
)
def test_invalid_options_are_reported_before_any_work(call, noisy, tmp_path, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    arguments = options if "--out" in options else ["--out", "clean.tsv", *options]
    result = call("data", "clean", noisy[0], *arguments)
    assert result.code == 2 and message in result.err
    assert [file.name for file in tmp_path.iterdir()] == ["noisy.tsv"]


def test_an_interruption_keeps_finished_lines(call, noisy, tmp_path, monkeypatch):
    from translucid.data.cleaning import Report

    add = Report.add

    def interrupted_add(self, judged):
        add(self, judged)
        if self.pairs == 50:
            raise KeyboardInterrupt

    monkeypatch.setattr(Report, "add", interrupted_add)
    result = call("data", "clean", noisy[0], "--out", tmp_path / "clean.tsv")
    assert result.code == 130 and "of the first 50 pairs alone" in result.err
    assert 0 < len((tmp_path / "clean.tsv").read_text().splitlines()) <= 50


def test_models_score_the_pairs_that_the_rules_keep(call, noisy, small_run, tmp_path):
    options = ["--forward", small_run, "--backward", small_run, "--without", "near-duplicate"]
    result = call("data", "clean", noisy[0], "--out", tmp_path / "clean.tsv", *options, "--min-gain", "1", "--json")
    assert result.code == 0, result.err
    rules = json.loads(result.out)["rules"]
    assert rules["model"]["rejected"] > 250 and rules["unreadable"]["rejected"] == 1
    result = call("data", "clean", noisy[0], "--out", tmp_path / "none.tsv", *options, "--without", "model", "--json")
    assert "model" not in json.loads(result.out)["rules"]
