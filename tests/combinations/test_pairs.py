"""Every option of `translate` with every other: both take effect, or one line names both."""

import json
import re
from itertools import combinations

import pytest

from tests.cli.conftest import call  # noqa: F401 - a fixture

LINES = [
    "I like soccer.",
    "Ana likes %s and {n}.",
    "",
    "She reads a book. We like soccer and the beach.",
    "Open %s now.",
]
SOCCER = 0, 3
"""Lines with a term."""
KNOWN = 4
"""The line that the memory has."""
OPTIONS = [
    *("terms", "mbr", "rerank", "ensemble", "memory", "placeholders", "adapter", "languages", "sampling"),
    *("nbest", "beam 1", "confidence", "alignments", "documents", "ablate"),
    "pivot",
]
FLAGS = {
    "mbr": "--rerank-with",
    "rerank": "--rerank-with",
    "ensemble": "--ensemble",
    "adapter": "--adapter",
    "ablate": "--ablate",
    "sampling": "--temperature",
    "nbest": "nbest",
    "beam 1": "beam",
    "confidence": "--format",
    "alignments": "--alignments",
    "documents": "a document",
}
"""Names of the options in error messages."""
REJECTED = {
    *(frozenset(pair) for pair in (("rerank", "sampling"), ("rerank", "beam 1"))),
    *(frozenset(pair) for pair in (("ensemble", "adapter"), ("nbest", "beam 1"), ("ensemble", "ablate"))),
    *(frozenset(("documents", other)) for other in ("nbest", "confidence", "alignments")),
}
NEUTRAL = {"languages", "confidence", "alignments", "placeholders", "memory", "nbest"}
"""Options that add to a row or concern some lines only, and change no other translation."""
MARKS = re.compile("[⟦⟧\ue0f0-\ue0f3]")
"""Characters that only the model reads."""


@pytest.fixture(scope="module")
def results():
    """Results of earlier calls, by their options."""
    return {}


@pytest.fixture
def translate(call, runs, files, tmp_path, results):  # noqa: F811 - a fixture
    """Translate with options by name: translate("terms", "mbr")."""
    arguments_of = {
        "terms": ["--terms", files / "terms.tsv"],
        "mbr": ["--rerank-with", "mbr:4"],
        "rerank": ["--rerank-with", runs / "reverse"],
        "ensemble": ["--ensemble", runs / "other"],
        "memory": ["--memory", files / "memory.tsv"],
        "adapter": ["--adapter", "mine"],
        "languages": ["--source-language", "en", "--target-language", "es"],
        "sampling": ["--temperature", 1, "--seed", 3],
        "nbest": ["--nbest", 3],
        "beam 1": ["--beam", 1],
        "alignments": ["--alignments"],
        "pivot": ["--pivot", runs / "first"],
        "ablate": ["--ablate", "encoder.0.self.head.1", "--ablate", "decoder.0.cross.head.0"],
    }

    def run_command(*options):
        (tmp_path / "in.txt").write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
        if {"languages", "pivot"} <= {*options}:
            arguments_of["languages"] = ["--source-language", "pt", "--target-language", "es"]
        arguments = [word for option in options for word in arguments_of.get(option, [])]
        arguments += ["--input", files / "strings.json" if "documents" in options else tmp_path / "in.txt"]
        if "documents" not in options or "confidence" in options:
            arguments += ["--format", "jsonl"]
        if options not in results:
            results[options] = call("translate", runs / "main", *arguments)
        return results[options]

    return run_command


def rows_of(result):
    assert result.code == 0, result.err
    return [json.loads(line) for line in result.out.splitlines()]


SEPARATE = {frozenset(("mbr", "rerank")), *map(frozenset, combinations(NEUTRAL, 2))}
"""Two values of one option, and options that are tried all at once."""
PAIRS = [pair for pair in combinations(OPTIONS, 2) if frozenset(pair) not in SEPARATE]


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_two_options_mean_what_each_says(translate, first, second):
    options = {first, second}
    result = translate(first, second)
    if options in REJECTED:
        message = result.err.splitlines()[-1]
        assert result.code == 2 and not result.out
        assert FLAGS[first] in message and FLAGS[second] in message
        return
    if "documents" in options:
        check_document(result)
        return
    rows = rows_of(result)
    assert [row["source"] for row in rows] == LINES
    for row in rows:
        check(row, options)
    if "sampling" not in options:
        assert all(use["outcome"] != "missing" for i in SOCCER for use in rows[i].get("terms", []))
    if "terms" in options and "pivot" not in options:  # otherwise they are terms of the pivot language
        assert [len(row.get("terms", ())) for row in rows] == [1, 0, 0, 1, 0]
    if "memory" in options:
        assert (rows[KNOWN]["origin"], rows[KNOWN]["translation"]) == ("memory", "Abre %s ahora.")
        assert [row["origin"] for row in rows[:KNOWN]] == ["model"] * KNOWN
    for option, other in ((first, second), (second, first)):
        if option in NEUTRAL and options != {"sampling", "nbest"}:
            assert translations_without(rows, option) == translations_without(rows_of(translate(other)), option)


def test_options_that_change_no_translation_do_not_change_those_of_each_other(translate):
    rows, alone = rows_of(translate(*sorted(NEUTRAL))), rows_of(translate("nbest"))
    for row in rows:
        check(row, NEUTRAL)
    assert [row["origin"] for row in rows] == [*["model"] * KNOWN, "memory"]
    assert translations_without(rows, "memory") == translations_without(alone, "memory")


def check(row, options):
    """Check what holds for any line whatever the options are."""
    versions = row.get("alternatives", [row["translation"]])
    assert versions[0] == row["translation"] and len({*versions}) == len(versions)
    if row.get("origin") == "memory":
        return
    if "nbest" in options and row["source"]:
        assert 1 < len(versions) <= 3
    assert not any(MARKS.search(text) for text in [*versions, *row["warnings"]])
    scores = row.get("scores", [row["score"]])
    assert scores == sorted(scores, reverse=True) and scores[0] == row["score"]
    if "mbr" in options:
        assert all(0 <= score <= 200 for score in scores)
    elif "rerank" not in options:
        assert all(score <= 0 for score in scores)
    confidence = row.get("confidence")
    assert confidence is None or 0 <= confidence <= 1
    assert ("pivot" in row) == ("pivot" in options)
    if options & {"ensemble", "adapter", "ablate", "pivot"}:
        assert "confidence" not in row
    words = len(row["source"].split()), len(row["translation"].split())
    assert ("alignment" in row) == ("alignments" in options)
    assert all(s < words[0] and t < words[1] for s, t in row.get("alignment", ()))


def translations_without(rows, option):
    """Return the translations, except of lines that an option concerns, such as lines in the memory."""
    excluded = {*SOCCER, KNOWN} if option == "memory" else set()
    return [row["translation"] for i, row in enumerate(rows) if i not in excluded]


def check_document(result):
    """Check that each placeholder is in its string once, in order."""
    assert result.code == 0, result.err
    strings = json.loads(result.out)
    assert list(strings) == ["first", "second", "third"]
    assert strings["second"].count("%s") == strings["second"].count("{n}") == 1
    assert strings["third"].count("%s") == 1 and not any(map(MARKS.search, strings.values()))
