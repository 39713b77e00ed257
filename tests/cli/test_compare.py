"""`translucid compare`: runs and files of translations on one test set."""

import json

import pytest


def test_a_run_equals_its_own_translations(call, small_run, corpus, tmp_path):
    texts = tmp_path / "texts.txt"
    assert call("evaluate", small_run, "--test", corpus / "test.tsv", "--hypotheses", texts, "--beam", 1).code == 0
    result = call("compare", small_run, texts, "--test", corpus / "test.tsv", "--beam", 1, "--json")
    assert result.code == 0
    report = json.loads(result.out)
    assert report["equal"] == report["sentences"] == 20
    assert report["apart"] == []
    for row in report["metrics"]:
        assert row["difference"] == 0
        assert row["tested"] is None


def test_the_report_for_people(call, corpus, tmp_path):
    targets = [line.split("\t")[1] for line in (corpus / "test.tsv").read_text(encoding="utf-8").splitlines()]
    (tmp_path / "right.txt").write_text("".join(f"{text}\n" for text in targets), encoding="utf-8")
    (tmp_path / "empty.txt").write_text("\n" * len(targets))
    files = tmp_path / "empty.txt", tmp_path / "right.txt", "--test", corpus / "test.tsv"
    result = call("compare", *files, "--frequencies", corpus / "train.tsv", "--samples", 1)
    assert result.code == 0
    for part in ("+100.00", "p (bootstrap)", "p (randomization)", "source words", "word's frequency", "10-99"):
        assert part in result.out
    assert f"B          {targets[0]}" in result.out
    assert result.out.count("source     ") == 1
    (tmp_path / "text.txt").write_text("El\n" * 7)
    report = json.loads(
        call("compare", *files, "--frequencies", tmp_path / "text.txt", "--json", "--no-significance").out
    )
    assert {row["times"] for row in report["by_frequency"]} <= {"0", "5-9"}
    assert all(row["tested"] is None for row in report["metrics"])


def test_incompatible_systems_are_refused(call, small_run, corpus, tmp_path):
    (tmp_path / "short.txt").write_text("una\n")
    result = call("compare", small_run, tmp_path / "short.txt", "--test", corpus / "test.tsv")
    assert result.code == 2
    assert "has 1 lines, the test set 20 sentences" in result.err
    # Errors in options are reported first: a run translates for minutes.
    short = tmp_path / "short.txt"
    result = call("compare", short, short, "--test", corpus / "test.tsv", "--tokenize", "strange")
    assert result.code == 2
    assert "sacreBLEU has no tokenizer 'strange'" in result.err
    assert call("compare", tmp_path / "none", small_run, "--test", corpus / "test.tsv").code == 2
    for arguments, message in (
        ([short], "is the only system"),
        ([short] * 3 + ["--samples", 5], "--samples is for two systems without --format"),
        ([short] * 2 + ["--frequencies", short, "--format", "latex"], "--frequencies is for two systems"),
        ([short] * 2 + ["--json", "--format", "markdown"], "--json and --format do not go together"),
    ):
        result = call("compare", *arguments, "--test", corpus / "test.tsv")
        assert result.code == 2 and message in result.err


def test_several_systems_are_a_table(call, corpus, tmp_path):
    targets = [line.split("\t")[1] for line in (corpus / "test.tsv").read_text(encoding="utf-8").splitlines()]
    for name, texts in (("right", targets), ("empty", [""] * len(targets)), ("again", targets)):
        (tmp_path / name).write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    files = tmp_path / "right", tmp_path / "empty", tmp_path / "again", "--test", corpus / "test.tsv"
    result = call("compare", *files, "--format", "markdown")
    assert result.code == 0
    header, rule, *rows = result.out.splitlines()[:5]
    assert header == "| system | BLEU | p | chrF | p | chrF++ | p | TER | p |"
    assert rule == "| --- " + 8 * "| ---: " + "|"
    cells = [row.strip("| ").split(" | ") for row in rows]
    assert [cell[0].rpartition("/")[2] for cell in cells] == ["right", "empty", "again"]
    assert cells[1][1:3] == ["0.00 ± 0.00", "0.0010"]
    assert cells[2][1:3] == ["100.00 ± 0.00", ""]  # equal to the first, hence not tested
    report = json.loads(call("compare", *files, "--json", "--no-significance").out)
    assert [system["scores"]["BLEU"]["value"] for system in report["systems"]] == pytest.approx([100, 0, 100])


def test_systems_have_names_of_their_own(call, corpus, tmp_path):
    (tmp_path / "a").write_text("una\n" * 20)
    files = tmp_path / "a", tmp_path / "a", "--test", corpus / "test.tsv"
    assert call("compare", *files, "--names", "Base", "Deep").out.startswith("A  Base\nB  Deep\n")
    latex = call("compare", *files, "--names", "Base", "Deep & wide", "--format", "latex").out
    assert "\nBase & " in latex and "\nDeep \\& wide & " in latex
    result = call("compare", *files, "--names", "Base")
    assert result.code == 2 and "--names has 1 names for 2 systems" in result.err


def test_multilingual_runs_are_compared_in_each_direction(call, multilingual_run, corpus, tmp_path):
    test = "--test", f"{corpus / 'test.tsv'}:en-es"
    hypotheses = tmp_path / "hypotheses.txt"
    report = json.loads(call("evaluate", multilingual_run, *test, "--hypotheses", hypotheses, "--json").out)
    assert len(report["directions"]) > 1
    arguments = "compare", multilingual_run, hypotheses, "--names", "run", "file", *test
    record = json.loads(call(*arguments, "--json", "--no-significance").out)
    assert record["directions"].keys() == report["directions"].keys()
    for direction, table in record["directions"].items():
        for system in table["systems"]:
            expected = report["directions"][direction]["chrF"]["value"]
            assert system["scores"]["chrF"]["value"] == pytest.approx(expected)
    markdown = call(*arguments, "--format", "markdown").out
    assert "| chrF | sentences | run | file |" in markdown and "mean of 2 trained" in markdown
    result = call(*arguments, "--reference", hypotheses)
    assert result.code == 2 and "--reference is for a single direction" in result.err
    one = call(*arguments, "--source-language", "en", "--target-language", "es", "--no-significance")
    assert one.code == 2 and "has 40 lines, the test set 20 sentences" in one.err
