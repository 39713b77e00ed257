"""`translucid translate --memory`: exact matches are used, the rest is translated, near matches are reported."""

import json

import pytest

from bitext.documents.tagged_text import Mark, Side, TaggedText
from bitext.memory.translation_memory import Recall
from translucid import Translator
from translucid.api.segment_translator import SegmentTranslator
from translucid.memory.opening import open_memory

PAIRS = "I like soccer.\tMe encanta.\nShe works here on page 3.\tTrabaja en la página 3.\n"


@pytest.fixture
def memory(tmp_path):
    file = tmp_path / "memory.tsv"
    file.write_text(PAIRS)
    return file


def test_exact_matches_are_used_and_the_rest_is_translated(call, small_run, memory):
    lines = b"She works.\n I like  soccer.\n\nI like soccer\n"
    without_memory = call("translate", small_run, stdin=lines).out.split("\n")
    result = call("translate", small_run, "--memory", memory, stdin=lines)
    assert result.code == 0
    assert result.out.split("\n") == [without_memory[0], "Me encanta.", "", without_memory[3], ""]


def test_near_matches_are_used_if_asked_for(call, small_run, memory):
    texts = "I like soccer", "She works here on page 14."
    result = call("translate", small_run, "--memory", f"{memory}:98", *texts)
    assert result.out == "Me encanta.\nTrabaja en la página 14.\n"
    assert call("translate", small_run, "--memory", memory, *texts).out != result.out


def test_jsonl_contains_the_matches(call, small_run, memory):
    texts = "I like soccer.", "She works there on page 3.", "Nothing like it"
    options = "--memory", memory, "--format", "jsonl", "--alignments"
    exact, near, unmatched = map(json.loads, call("translate", small_run, *options, *texts).out.splitlines())
    assert (exact["translation"], exact["origin"], exact["matches"][0]["percent"]) == ("Me encanta.", "memory", 100)
    assert exact["alignment"] and "score" not in exact
    assert (near["origin"], near["matches"][0]["percent"]) == ("model", 83)
    assert near["matches"][0]["target"] == "Trabaja en la página 3."
    assert near["matches"][0]["differing"] == [["there", "here"]]
    assert (unmatched["origin"], unmatched["matches"]) == ("model", [])
    assert exact["warnings"] == []


def test_a_term_that_the_memory_does_not_use_is_a_warning(call, small_run, memory, tmp_path):
    terms, document = tmp_path / "terms.tsv", tmp_path / "a.txt"
    terms.write_text("soccer\tpelota\n")
    document.write_text("I like soccer.\n")
    options = "--memory", memory, "--terms", terms
    result = call("translate", small_run, *options, "--format", "jsonl", "I like soccer.")
    record = json.loads(result.out)
    assert (record["translation"], record["warnings"]) == ("Me encanta.", ["term not used: soccer (pelota)"])
    for output in (result, call("translate", small_run, *options, document)):
        assert "term not used" in output.err


def test_several_processes_and_wrapped_lines(call, small_run, memory, forked_workers, tmp_path):
    (tmp_path / "in.txt").write_text("I like\nsoccer.\n\nShe works.\n")
    result = call(
        "translate", small_run, "--memory", memory, "--lines", "wrapped", "--input", tmp_path / "in.txt", "--workers", 2
    )
    assert result.code == 0 and "".join(result.out.split("\n\n")[0].split()) == "Meencanta."


def test_documents(call, small_run, memory, tmp_path):
    (tmp_path / "a.txt").write_text("  I like soccer.\n\tShe works here on page 5.\n")
    options = "--memory", f"{memory}:99"
    result = call("translate", small_run, tmp_path / "a.txt", *options)
    assert result.out == "  Me encanta.\n\tTrabaja en la página 5.\n"


def test_near_matches_stand_in_documents_that_have_a_place_for_them(call, small_run, memory, tmp_path):
    sources = "I like soccer.", "She works there on page 3.", "A cat."
    units = "".join(f"<trans-unit><source>{text}</source></trans-unit>" for text in sources)
    head = '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file source-language="en"><body>'
    (tmp_path / "a.xlf").write_text(f"{head}{units}</body></file></xliff>")
    result = call("translate", small_run, tmp_path / "a.xlf", "--memory", memory)
    assert result.out.count("<alt-trans") == 1 and result.out.count('state-qualifier="exact-match"') == 1
    near = "<source>She works here on page 3.</source><target>Trabaja en la página 3.</target></alt-trans>"
    assert f'match-quality="83%" origin="translucid">{near}' in result.out


def test_other_documents_do_not_look_for_near_matches(call, small_run, memory, tmp_path, monkeypatch):
    monkeypatch.setattr(Recall, "suggestions", lambda self, text: pytest.fail("looked for"))
    (tmp_path / "a.txt").write_text("I like soccer.\nShe works there on page 3.\n")
    result = call("translate", small_run, tmp_path / "a.txt", "--memory", memory)
    assert result.out.startswith("Me encanta.\n")


def test_marks_stay_in_what_is_remembered(small_run, memory):
    translator = Translator.load(small_run, "cpu", "torch")
    marks = Mark(0, "<b>", Side.opens, 0), Mark(14, "</b>", Side.closes, 0)
    with open_memory(memory) as translation_memory:
        segments = SegmentTranslator(translator, recall=Recall(translation_memory))
        broken = TaggedText("I likesoccer.", (Mark(6, "<br/>"),))
        bold, plain, parted = segments.stream([TaggedText("I like soccer.", marks), TaggedText("She works."), broken])
    assert bold.origin == "memory" and plain.origin == "model"
    assert parted.origin == "memory" and [mark.raw for mark in parted.marked.marks] == ["<br/>"]
    assert bold.marked.text == "Me encanta." and {mark.raw for mark in bold.marked.marks} == {"<b>", "</b>"}


def test_an_interrupted_job_starts_over_with_another_memory(small_run, memory):
    from translucid.jobs.job import TranslationJob
    from translucid.runs.run_folder import RunFolder

    options = RunFolder(small_run).configuration().decoding
    job = TranslationJob(small_run, options, memory=memory)
    before = job.identity("cpu")
    assert before == job.identity("cpu") != TranslationJob(small_run, options).identity("cpu")
    memory.write_text(PAIRS + "new\tnuevo\n")
    assert before != job.identity("cpu")


def test_wrong_options_are_one_clear_line(call, small_run, tmp_path):
    result = call("translate", small_run, "--memory", "old.tmx:60", "x")
    assert result.code == 2 and "--memory old.tmx:60: 60 % is no match. Give old.tmx:70 to :100." in result.err
    result = call("translate", small_run, "--memory", tmp_path / "missing.tmx", "x")
    assert result.code == 2 and "missing.tmx: can't be read" in result.err and not result.out
