"""`translucid translate --memory FILE --knn`, and the table of `look --memory`."""

import json
import sys

import pytest

from bitext.memory.translation_memory import TranslationMemory
from bitext.pair import Pair
from tests.inspection.conftest import untrained  # noqa: F401 - a fixture
from translucid.api.translator import Translator

PAIRS = [Pair("I like a book.", "Me gusta el libro."), Pair("She reads a book.", "Ella lee el fútbol.")]
SOURCE, UNRELATED = "She reads a soccer book.", "Xyz qqq"


@pytest.fixture
def memory(tmp_path):
    with TranslationMemory.open(tmp_path / "my.memory", write=True) as memory:
        memory.add(PAIRS, "Ana")
        yield memory


def test_the_command_shows_which_segment_decided_a_word(call, untrained, memory, tmp_path, monkeypatch):  # noqa: F811
    run, options = untrained("transformer"), ["--memory", memory.file]
    source = "She reads a  book"  # not quite the same segment
    for name in [name for name in sys.modules if name.startswith("translucid.retrieval.")]:
        monkeypatch.delitem(sys.modules, name)
    plain = call("translate", run, *options, source)
    assert plain.code == 0 and "translucid.retrieval.engine" not in sys.modules
    record = json.loads(call("translate", run, *options, "--knn", "--format", "jsonl", source).out)
    assert record["retrieved"][0]["target"] == PAIRS[1].target and record["translation"] != plain.out.strip()
    table = call("look", run, "--memory", memory.file, source)
    assert PAIRS[1].target in " ".join(table.out.split()) and "changed" in table.out
    document, terms = tmp_path / "a.html", tmp_path / "terms.tsv"
    document.write_text(f"<p>She <b>reads</b> a book {{count}}</p><p>{UNRELATED}</p>")
    terms.write_text("book\tgusta\n")
    result = call("translate", run, *options, "--knn", "--terms", terms, document)
    assert result.code == 0 and result.out.count("<b>") == 1 and "gusta" in result.out and "{count}" in result.out
    assert result.out != call("translate", run, *options, "--terms", terms, document).out


def test_evaluate_scores_what_translate_writes_and_counts_the_sources_of_the_memory(call, untrained, memory, tmp_path):  # noqa: F811
    run, test, written = untrained("transformer"), tmp_path / "test.tsv", tmp_path / "written"
    test.write_text(f"{PAIRS[0].source}\t{PAIRS[0].target}\n{SOURCE}\t{PAIRS[1].target}\n{UNRELATED}\tX\n")
    options = ["--test", test, "--hypotheses", written, "--lines", "whole"]
    result = call("evaluate", run, *options, "--memory", memory.file)
    assert result.code == 0 and "1 of 3 sources are in the memory" in " ".join(result.err.split())
    translator = Translator.load(run, "cpu").with_knn(memory.file)
    expected = [translator.translate(text).text for text in (PAIRS[0].source, SOURCE, UNRELATED)]
    assert written.read_text().splitlines() == expected
    assert call("evaluate", run, *options, "--overwrite").code == 0
    assert written.read_text().splitlines() != expected


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--knn"], "--knn is for --memory"),
        (["--knn", "--memory", "MEMORY", "--engine", "ctranslate2"], "--knn and --engine ctranslate2 do not go"),
        (["--knn", "--memory", "MEMORY", "--pivot", "RUN"], "--knn and --pivot do not go"),
    ],
)
def test_options_that_do_not_go_together(call, untrained, memory, options, message):  # noqa: F811
    run = untrained("transformer")
    replaced = [{"MEMORY": str(memory.file), "RUN": str(run)}.get(option, option) for option in options]
    result = call("translate", run, *replaced, SOURCE)
    assert result.code == 2 and message in result.err
