"""Terms found in sentence pairs."""

from math import log2

import pytest

from bitext.memory.translation_memory import TranslationMemory
from bitext.pair import Pair
from translucid.cli.main import run
from translucid.terminology.extraction import extracted, tsv_of
from translucid.terminology.glossary import Term, read_terms
from translucid.terminology.mining import Lexicon

COMMON = {"the", "el", "is", "está", "we", "a", "un", "of", "de", "y", "and"}
PHRASES = [
    ("context menu", "menú contextual"),
    ("menu", "menú"),
    ("point of view", "punto de vista"),
    ("API", "API"),
    ("cell", "celda"),
]
FRAMES = ["the {} is open|el {} está abierto", "close a {} now|cierre un {} ahora", "{} and tree|{} y árbol"]


@pytest.fixture
def pairs():
    result = []
    for count, (source, target) in enumerate(PHRASES, 4):
        for index in range(count):
            frame = FRAMES[index % 3].split("|")
            result.append(Pair(*(text.format(phrase) for text, phrase in zip(frame, (source, target), strict=True))))
    # A comma is between the words: these are no phrase.
    return [*result, *([Pair("menu, cell", "menú, celda")] * 5)]


@pytest.fixture(autouse=True)
def lexicon(monkeypatch):
    """A lexicon that knows the translations, as a small corpus has no common words."""
    words = {"context": "contextual", "menu": "menú", "point": "punto", "view": "vista", "api": "api", "cell": "celda"}
    words |= {"open": "abierto", "close": "cierre", "now": "ahora", "tree": "árbol", "the": "el", "a": "un", "of": "de"}
    known = Lexicon({source: {target: 0.9} for source, target in words.items()}, COMMON)
    monkeypatch.setattr(Lexicon, "learn", lambda pairs: known)


def test_phrases_with_counts_shares_values_and_examples(pairs):
    found = {row.source: row for row in extracted(lambda: pairs, least=4, least_share=0.1)}
    counts = {"context menu": 4, "menu": 4 + 5 + 5, "point of view": 6, "API": 7, "cell": 8 + 5}
    assert {name: found[name].occurrences for name in counts} == counts
    assert found["context menu"].target == "menú contextual" and found["point of view"].target == "punto de vista"
    assert not {"of", "the", "point of", "menu cell", "context"} & found.keys()
    # C-values: "menu" is also a part of "context menu", and of "menu is" or the like, which are no candidates.
    assert found["context menu"].value == pytest.approx(log2(3) * 4)
    assert found["menu"].value == pytest.approx(log2(2) * (14 - 4))
    assert found["point of view"].value == pytest.approx(log2(4) * 6)
    assert found["menu"].share == 1 and "menu" in found["menu"].example.source


def test_a_share_and_terms_that_are_known(pairs):
    others = [Pair("the cell is open", "la pila está abierta")] * 13
    rows = {row.source: row for row in extracted(lambda: [*pairs, *others], least=4, least_share=0)}
    assert rows["cell"].share == 0.5 and rows["cell"].value == pytest.approx(
        (13 + 13) / 2
    )  # the value counts both translations
    names = {row.source for row in extracted(lambda: [*pairs, *others], least=5, least_share=0.6)}
    assert "menu" in names and not {"cell", "context menu"} & names
    rest = extracted(
        lambda: pairs, least=4, least_share=0, known=lambda source, target: (source, target) == ("API", "API")
    )
    assert "API" not in {row.source for row in rest} and "cell" in {row.source for row in rest}


def test_a_candidate_beginning_a_sentence_loses_its_capital_but_an_acronym_does_not():
    pairs = [Pair("Menu API", "Menú API"), Pair("API menu", "API menú")] * 3 + [Pair("the Cell", "el Celda")] * 6
    assert {row.source for row in extracted(lambda: pairs, least=6, least_share=0)} == {"menu", "API", "Cell"}


def test_the_command_writes_a_list_to_accept(pairs, tmp_path, capfd):
    memory, out = tmp_path / "a.memory", tmp_path / "out.tsv"
    with TranslationMemory.open(memory, write=True) as opened:
        opened.add([Pair(f"{pair.source} {i}", f"{pair.target} {i}") for i, pair in enumerate(pairs)], "Ana")
    corpus = tmp_path / "a.tsv"
    corpus.write_text("".join(f"{pair.source}\t{pair.target}\n" for pair in pairs), encoding="utf-8")
    texts = []
    for file in (memory, corpus):
        assert run(["terms", "extract", str(file), str(out), "--least", "4", "--most", "3", "--overwrite"]) == 0
        assert "3 of 9 candidates" in capfd.readouterr().err
        texts.append([line.split("\t")[:5] for line in out.read_text(encoding="utf-8").splitlines()])
    assert texts[0] == texts[1]
    assert texts[0][0] == ["source", "target", "accepted", "count", "share"]
    known = tmp_path / "known.tsv"
    known.write_text(f"{texts[0][1][0].upper()}\t{texts[0][1][1]}\n", encoding="utf-8")
    assert run(["terms", "extract", str(corpus), str(out), "--least", "4", "--known", str(known), "--overwrite"]) == 0
    rows = out.read_text(encoding="utf-8").splitlines()
    assert texts[0][1][0] not in {row.split("\t")[0] for row in rows}
    fields = rows[1].split("\t")
    fields[2] = "yes"
    out.write_text("\n".join([rows[0], "\t".join(fields), *rows[2:]]), encoding="utf-8")
    assert read_terms(out) == [Term(fields[0], fields[1], example=fields[5])]


def test_tabs_and_line_ends_of_examples_are_spaces(pairs):
    spaced = [Pair(f"{pair.source}\tx\n", pair.target) for pair in pairs]
    lines = tsv_of(extracted(lambda: spaced, least=4, least_share=0)).splitlines()
    assert len(lines) > 3 and all(len(line.split("\t")) == 7 for line in lines)


def test_general_text_and_forgotten_candidates(pairs, monkeypatch):
    rows = {row.source: row.value for row in extracted(lambda: pairs, least=4, least_share=0)}
    general = [Pair("the cell and a cell", "")] * 7 + [Pair("we", "")] * 5
    with_general = {row.source: row.value for row in extracted(lambda: pairs, least=4, least_share=0, general=general)}
    words = sum(len(pair.source.replace(",", "").split()) for pair in pairs)
    assert with_general["cell"] == pytest.approx(rows["cell"] * log2(1 + (13 / words) / ((14 + 1) / 40)))
    assert with_general["API"] == pytest.approx(rows["API"] * log2(1 + (7 / words) / ((0 + 1) / 40)))
    assert max(rows, key=rows.get) == "cell" != max(with_general, key=with_general.get)
    # Phrases that occurred once are forgotten when there are too many, such as the first "context menu" here.
    monkeypatch.setattr("translucid.terminology.extraction.MOST_CANDIDATES", 80)
    others = [Pair(f"w{i} x{i} y{i}", "open") for i in range(14)]
    for first, count in (([pairs[0], *others], 4), ([pairs[0]], 5)):
        rows = extracted(lambda first=first: [*first, *pairs], least=4, least_share=0)
        assert {row.source: row.occurrences for row in rows}["context menu"] == count
