"""`translucid score`: one answer for each pair, in order."""

import gzip
import json
import math

import pytest

from translucid import Translator, UserError


def rows(out):
    return [json.loads(line) for line in out.splitlines()]


def test_each_pair_has_its_line_and_all_together_the_perplexity_of_evaluate(call, small_run, corpus):
    result = call("score", small_run, corpus / "test.tsv")
    scores = [tuple(map(float, line.split("\t"))) for line in result.out.splitlines()]
    assert result.code == 0
    assert len(scores) == 20
    report = json.loads(call("evaluate", small_run, "--test", corpus / "test.tsv", "--json", "--beam", 1).out)
    assert f"{report['tokens']:,} tokens" in result.err
    assert f"perplexity {report['perplexity']:.2f}" in result.err
    tokens = [-log_probability / math.log(perplexity) for log_probability, perplexity in scores]
    assert round(sum(tokens)) == report["tokens"]
    assert math.exp(-sum(log_probability for log_probability, _ in scores) / report["tokens"]) == pytest.approx(
        report["perplexity"], rel=1e-4
    )


def test_tokens_stand_beside_their_log_probabilities(call, small_run, tmp_path):
    (tmp_path / "pairs.tsv").write_text("She works.\tElla trabaja.\n", encoding="utf-8")
    (row,) = rows(call("score", small_run, tmp_path / "pairs.tsv", "--tokens", "--format", "jsonl").out)
    pieces, values = zip(*row["token_log_probabilities"], strict=True)
    assert "".join(pieces).replace("▁", " ").strip() == "Ella trabaja.</s>"
    assert sum(values) == pytest.approx(row["log_probability"], abs=1e-5)
    assert len(pieces) == row["tokens"]
    text = call("score", small_run, tmp_path / "pairs.tsv", "--tokens").out.rstrip("\n").split("\t")[2].split(" ")
    assert tuple(text[::2]) == pieces
    assert list(map(float, text[1::2])) == pytest.approx(values, abs=1e-4)


def test_a_bad_line_loses_no_other(call, small_run, tmp_path, monkeypatch):
    monkeypatch.setattr("translucid.jobs.scoring_pairs.WINDOW", 3)
    good = b"She works.\tElla trabaja.\n"
    content = good + b"alone\n\n" + good + b"ca\xf1a\tx\n" + b"I sing " * 2000 + b"\tCanto.\n" + good + b"\xff\n"
    (tmp_path / "pairs.tsv.gz").write_bytes(gzip.compress(content))
    result = call("score", small_run, tmp_path / "pairs.tsv.gz", "--format", "jsonl")
    assert result.code == 2
    assert "3 lines" in result.err
    records = rows(result.out)
    assert [row["problem"] is None for row in records] == [True, False, False, True, False, False, True, False]
    assert len({row["log_probability"] for row in records}) == 2
    assert [row["problem"] for row in records[1:3]] == [
        f"{tmp_path}/pairs.tsv.gz:2: there is one column only",
        "there is no source",
    ]
    assert "more than the model takes" in records[5]["problem"]
    lines = call("score", small_run, tmp_path / "pairs.tsv.gz").out.split("\n")
    assert [bool(line) for line in lines] == [True, False, False, True, False, False, True, False, False]


def test_a_line_that_is_bad_on_both_sides_is_one_and_a_missing_end_loses_nothing_before(call, small_run, tmp_path):
    (tmp_path / "t.en").write_bytes(b"She works.\n\xff\nI sing.\nI sing.\n")
    (tmp_path / "t.es").write_bytes(b"Ella trabaja.\n\xff\nCanto.\n")
    result = call("score", small_run, f"{tmp_path}/t.{{en,es}}", "--format", "jsonl")
    assert result.code == 2
    assert "4 lines" in result.err
    assert [row["target"] for row in rows(result.out)] == ["Ella trabaja.", None, "Canto."]


def test_in_python_one_pair_or_many(small_run):
    translator = Translator.load(small_run)
    score = translator.inspector.score("She works.", "Ella trabaja.")
    scores = translator.inspector.score(["I sing.", "She works."], ["Canto.", "Ella trabaja."])
    assert scores[1].tokens == score.tokens
    assert scores[1].log_probability == pytest.approx(score.log_probability, abs=1e-4)
    assert score.log_probability < 0 < score.perplexity
    with pytest.raises(UserError, match="pair 2: there is no source"):
        translator.inspector.score(["I sing.", " "], ["Canto.", "x"])
    with pytest.raises(ValueError, match="1 sources and 0 targets"):
        translator.inspector.score(["I sing."], [])
