"""Commands with files of several directions, and with a run for two directions."""

import json

import pytest

from tests.cli.named_options import unknown_options


@pytest.fixture
def multilingual_file(corpus):
    return f"{corpus}/test.tsv:en-es"


def test_evaluate_has_a_line_for_each_direction(call, multilingual_run, multilingual_file, tmp_path):
    files = ["--hypotheses", tmp_path / "out.txt", "--samples", "1"]
    result = call("evaluate", multilingual_run, "--test", multilingual_file, *files)
    assert result.code == 0
    rows = {row.split()[0]: row.split() for row in result.out.splitlines() if row.strip()}
    assert rows["en-es"][1] == rows["es-en"][1] == "20" and "mean" in rows
    assert len((tmp_path / "out.txt").read_text().splitlines()) == 40 and "reference" in result.out


def test_evaluate_of_one_direction_is_that_of_its_line(call, multilingual_run, multilingual_file):
    report = json.loads(call("evaluate", multilingual_run, "--test", multilingual_file, "--json").out)
    languages = ["--source-language", "es", "--target-language", "en"]
    single = json.loads(call("evaluate", multilingual_run, "--test", multilingual_file, *languages, "--json").out)
    line = report["directions"]["es-en"]
    assert line["chrF"] == single["chrF"] and line["perplexity"] == single["perplexity"]
    other = report["directions"]["en-es"]
    assert line["perplexity"] != other["perplexity"] and not other["zero_shot"]
    assert report["mean"]["chrF"] == pytest.approx((line["chrF"]["value"] + other["chrF"]["value"]) / 2)
    assert report["languages"] == ["en", "es"] and 0 <= other["references_off_target"] <= 0.3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--by-length"], "--by-length is for a single direction"),
        (["--reference", "README.md"], "--reference is for a single direction"),
        (["--target-language", "fr"], "has no pairs from any language to fr"),
    ],
)
def test_settings_that_several_directions_can_not_have_are_named(
    call, multilingual_run, multilingual_file, arguments, message
):
    result = call("evaluate", multilingual_run, "--test", multilingual_file, *arguments)
    assert result.code == 2 and message in result.err and result.err.count("\n") <= 3


def test_translate_needs_the_target_language(call, multilingual_run):
    result = call("translate", multilingual_run, "I like soccer.")
    assert result.code == 2 and "Give --target-language, one of en, es." in result.err
    assert call("translate", multilingual_run, "I like soccer.", "--target-language", "es").code == 0


def test_statistics_of_several_languages_are_apart(call, corpus, tmp_path):
    files = ["--train", f"{corpus}/train.tsv:en-es", f"{corpus}/test.tsv:en-fr", "--test", f"{corpus}/test.tsv:en-es"]
    record = json.loads(call("data", "stats", *files, "--json").out)
    assert record["train en-es"]["pairs"] == 300 and record["train en-fr"]["pairs"] == 20
    # A pair that other languages have in their training files is no leak of translations.
    (overlap,) = record["overlap"]
    assert overlap["split"] == "test en-es" and not overlap["pairs"]
    assert set(json.loads(call("data", "stats", *files[:2], "--json").out)) == {"train", "overlap", "advised"}


def test_clean_takes_the_languages_from_the_name(call, corpus, tmp_path):
    out = ["--out", tmp_path / "clean.tsv"]
    assert "en to es" in call("data", "clean", f"{corpus}/test.tsv:en-es", *out).err
    result = call("data", "clean", f"{corpus}/test.tsv:en-es", f"{corpus}/train.tsv:en-fr", *out, "--overwrite")
    assert result.code == 2 and "several pairs of languages: en-es, en-fr" in result.err


def test_training_names_settings_where_it_lacks_an_option(call, multilingual_run, corpus, tmp_path):
    files = ["--train", corpus / "train.tsv", "--valid", corpus / "test.tsv", "--out", tmp_path / "out"]
    result = call("train", "--init-from", multilingual_run, *files)
    assert result.code == 2 and "needs the target language. Give --set data.target_language=CODE, one of" in result.err
    assert "--target-language" not in result.err


@pytest.mark.parametrize(
    ("arguments", "message", "unknown"),
    [
        (["train"], "error: none. Give --target-language.", ["--target-language"]),
        (["translate"], "error: none. Give --target-language.", []),
        (["translate"], "error: none. Train one with train --init-from.", []),
        (["translate"], "error: none. See translucid memory add --source-language.", []),
        (["translate"], "error: none. See translucid memory add --init-from.", ["--init-from"]),
        (["memory", "add"], "warning: none; --relearn takes all", ["--relearn"]),
        (["data", "stats"], "error: none. --json shows it.", []),
        (["translate"], "a line of progress with --strange", []),
    ],
)
def test_options_that_a_command_lacks_are_found(arguments, message, unknown):
    """As the fixture `call` checks for each message of each test."""
    found = unknown_options(arguments, message)
    assert [item.split()[0] for item in found] == unknown
