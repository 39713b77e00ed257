"""Files for reviewers: what comes back is the document with its corrections, whatever a reviewer did to the file."""

import io
import random
import zipfile
from dataclasses import replace

import docx
import pytest
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls
from lxml import etree

from bitext import TaggedText, Target, UserError, read_document
from bitext.documents.shown_tags import SHOWN_TAG, shown
from bitext.review.review import Review, Row, corrected, review_of, translations_of, without_tags
from bitext.review.review_file import read_review, written_review
from bitext.review.xliff_file import DocumentForReview
from tests.growth import assert_linear
from tests.probes.hostile.damage import damaged

LANGUAGES = ("en", "es")
PAGE = """<html lang="en"><p title="A tip">I <b>sing</b> now, <a href="x.html">see <i>this</i></a>.<br>Done &amp; done.
</p><p>ends\N{NO-BREAK SPACE}soon ⟨x⟩</p><p lang="fr">oui</p><p>Two <b>more</b></p></html>""".encode()
FORMATS = ("r.xlf", "r.docx")
PO = b"""msgid ""
msgstr "Content-Type: text/plain; charset=UTF-8\\n"

msgid "I <b>sing</b> %s"
msgstr "Yo <b>canto</b> %s"

#, fuzzy
msgid "Save <i>all</i>\\nnow"
msgstr "Guardar <i>todo</i>\\nya"

msgid "Bye"
msgstr ""
"""


def page():
    return read_document("a.html", PAGE, LANGUAGES)


def in_capitals(document):
    """Return translations whose tags are as those of the source."""
    return {i: Target(TaggedText(s.source.text.upper(), s.source.marks)) for i, s in enumerate(document.segments)}


def sent(name, document, targets=None, document_name="a.html"):
    return written_review(name, review_of(document_name, document, targets or {}, LANGUAGES))


def edited(content, change):
    """Return a Word document after a change by `change(table, rows)`."""
    document = docx.Document(io.BytesIO(content))
    (table,) = document.tables
    change(table, {row.cells[0].text: row for row in table.rows})
    stream = io.BytesIO()
    document.save(stream)
    return stream.getvalue()


def write(row, text, column=2):
    paragraph = row.cells[column].paragraphs[0]
    for run in paragraph.runs[1:]:
        paragraph._p.remove(run._r)
    (paragraph.runs[0] if paragraph.runs else paragraph.add_run()).text = text


@pytest.mark.parametrize("name", FORMATS)
def test_a_review_without_corrections_is_the_translated_document(name):
    document = page()
    targets = in_capitals(document)
    review = read_review(name, sent(name, document, targets))
    assert (review.document, review.languages, [*review.problems]) == ("a.html", LANGUAGES, [])
    assert [row.number for row in review.rows] == [1, 2, 3, 4]
    assert [row.source for row in review.rows] == [shown(s.source, s.source) for s in document.segments]
    assert review.rows[1].machine == "I ⟨1⟩SING⟨/1⟩ NOW, ⟨2⟩SEE ⟨3⟩THIS⟨/3⟩⟨/2⟩. ⟨4/⟩DONE & DONE."
    result = corrected(document, review, "Ana")
    assert not result.problems and not any(correction.is_changed for correction in result.corrections)
    assert document.filled(result.targets) == document.filled(targets)
    assert len(result.corrections) == (4 if name.endswith(".docx") else 0)  # a row of a table was read by the reviewer


def test_the_table_survives_editing_sorting_and_deleting():
    document = page()

    def change(table, rows):
        assert [cell.text for cell in table.rows[0].cells] == ["No.", "Source (en)", "Translation (es)", "Comment"]
        write(rows["4"], "⟨1⟩Más⟨/1⟩ dos")
        write(rows["4"], "better", column=3)
        write(rows["1"], "Un\nconsejo ")  # a line end that the source does not have
        table._tbl.remove(rows["3"]._tr)
        for number in "21":
            table._tbl.append(rows[number]._tr)

    targets = in_capitals(document)
    targets[1] = replace(targets[1], confidence=0.5)  # the table says so in the column of comments
    review = read_review("r.docx", edited(sent("r.docx", document, targets), change))
    assert [row.number for row in review.rows] == [4, 2, 1, 3]
    result = corrected(document, review, "Ana")
    assert not result.problems
    written = document.filled(result.targets).decode()
    assert "<b>Más</b> dos" in written and 'title="Un consejo"' in written
    assert "ENDS\N{NO-BREAK SPACE}SOON" in written  # the row that is gone keeps the machine's text
    assert [review.rows[0].comment, review.rows[1].comment] == ["better", ""]
    assert review.rows[1].notes == ("The confidence is 50%.",)
    changed = {correction.pair.target for correction in result.corrections if correction.is_changed}
    assert changed == {"Más dos", "Un consejo"} and len(result.corrections) == 3


TRACKED = """<w:p {}><w:r><w:t xml:space="preserve">Yo </w:t></w:r>
<w:del w:id="1" w:author="Eva" w:date="2026-01-01T00:00:00Z"><w:r><w:delText>digo</w:delText></w:r></w:del>
<w:ins w:id="2" w:author="Ana" w:date="2026-01-01T00:00:00Z"><w:r><w:t>canto</w:t></w:r></w:ins>
<w:moveFrom w:id="3" w:author="Ana"><w:r><w:t>fuera</w:t></w:r></w:moveFrom><w:r><w:tab/><w:t>⟨1⟩</w:t></w:r>
<w:hyperlink><w:r><w:t>ya</w:t></w:r></w:hyperlink><w:r><w:t>⟨/1⟩</w:t></w:r></w:p>"""


def test_tracked_changes_are_accepted_and_their_author_is_the_reviewer():
    document = read_document("a.html", b"<p>I sing <b>now</b>.</p><p>Bye all</p>", LANGUAGES)

    def change(table, rows):
        cell = rows["1"].cells[2]._tc
        cell.remove(cell.p_lst[0])
        cell.append(parse_xml(TRACKED.format(nsdecls("w"))))
        rows["2"]._tr.get_or_add_trPr().append(parse_xml(f'<w:del {nsdecls("w")} w:id="4" w:author="Ana"/>'))

    review = read_review("r.docx", edited(sent("r.docx", document, in_capitals(document)), change))
    first, second = review.rows
    assert (first.target, first.who, first.state) == ("Yo canto ⟨1⟩ya⟨/1⟩", "Ana", "reviewed")
    assert (second.target, second.state) == ("BYE ALL", "translated")
    ((pair, who, is_changed),) = corrected(document, review, "?").corrections
    assert (pair.target, who, is_changed) == ("Yo canto ya", "Ana", True)


@pytest.mark.parametrize(
    ("number", "column", "text", "problem"),
    [
        ("2", 2, "I ⟨1⟩SING⟨/1⟩ ⟨2⟩⟨3⟩THIS⟨/3⟩⟨/2⟩", "row 2: ⟨4/⟩ is missing. Put it where it belongs."),
        ("4", 2, "⟨1⟩⟨1⟩Dos⟨/1⟩", "row 4: ⟨1⟩ is there twice. Each stands once."),
        ("4", 2, "⟨/1⟩Dos⟨1⟩", "row 4: ⟨/1⟩ does not close what was opened last. Put it behind its beginning."),
        ("4", 2, "⟨1⟩Dos⟨/1⟩⟨7/⟩", "row 4: ⟨7/⟩ is not in the source"),
        ("4", 2, " ", "row 4: the translation is empty"),
        ("4", 1, "Too ⟨1⟩more⟨/1⟩", "row 4: the source is another one than in the document"),
        ("4", 0, "99", "row 99: the document has 4 segments"),
        ("4", 0, "1", "row 1: the number is there 2 times; none of these rows is used"),
        ("4", 0, "four", "a row without a number: 'four | Two ⟨1⟩more⟨/1⟩ | TWO ⟨1⟩MORE⟨/1⟩ | '"),
    ],
)
def test_a_problem_is_one_line_and_the_other_rows_apply(number, column, text, problem):
    document = page()
    targets = in_capitals(document)

    def change(table, rows):
        write(rows["3"], "pronto")
        write(rows[number], text, column)

    review = read_review("r.docx", edited(sent("r.docx", document, targets), change))
    result = corrected(document, review, "Ana")
    assert {*result.problems} == {problem}
    targets[2] = Target(TaggedText("pronto"))
    assert document.filled(result.targets) == document.filled(targets)


def test_xliff_keeps_the_machines_text_beside_the_corrected_one():
    document = page()
    content = sent("r.xlf", document, in_capitals(document))
    root = etree.fromstring(content)
    names = {"x": "urn:oasis:names:tc:xliff:document:2.0", "m": "urn:oasis:names:tc:xliff:matches:2.0"}
    assert (root.get("version"), root.get("srcLang"), root.get("trgLang")) == ("2.1", "en", "es")
    unit = root.findall(".//x:unit", names)[3]
    match = unit.find("m:matches/m:match", names)
    assert match.get("type") == "mt" and "".join(match.find("x:target", names).itertext()) == "TWO MORE"
    assert unit.find(f".//x:source/x:mrk[@id='{match.get('ref')[1:]}']", names) is not None
    code = unit.find("x:segment/x:target/x:pc", names)
    data = {item.get("id"): item.text for item in unit.findall("x:originalData/x:data", names)}
    assert (data[code.get("dataRefStart")], data[code.get("dataRefEnd")]) == ("<b>", "</b>")
    # A program of translators corrects the text, its state and adds a note.
    segment = unit.find("x:segment", names)
    segment.set("state", "final")
    code.tail = " dos"
    etree.SubElement(etree.SubElement(unit, f"{{{names['x']}}}notes"), f"{{{names['x']}}}note").text = "sure?"
    row = read_review("r.xlf", etree.tostring(root)).rows[3]
    assert (row.machine, row.target, row.state) == ("TWO ⟨1⟩MORE⟨/1⟩", "TWO ⟨1⟩MORE⟨/1⟩ dos", "final")
    assert row.comment == "sure?"


def test_xliff_with_overlapping_and_lost_tags():
    """Codes that do not nest are written as single ones; whatever a program writes of them is read."""
    tags = dict.fromkeys(["⟨1⟩", "⟨/1⟩", "⟨2⟩", "⟨/2⟩", "⟨3/⟩"], "<&>")
    row = Row(1, "⟨1⟩a⟨2⟩b⟨/1⟩c⟨/2⟩", "⟨/1⟩\ta\n⟨3/⟩", "⟨2⟩⟨x⟩ ⟨9⟩", "translated", tags=tags)
    read = read_review("a.xlf", written_review("a.xlf", Review("a.txt", LANGUAGES, [row]))).rows[0]
    assert (read.source, read.machine, read.target) == (row.source, row.machine, row.target)
    numbers = range(1, 400)
    deep = "".join(f"⟨{i}⟩" for i in numbers) + "a" + "".join(f"⟨/{i}⟩" for i in reversed(numbers))
    row = Row(1, deep, tags=dict.fromkeys(SHOWN_TAG.findall(deep), "<b>"))
    assert read_review("a.xlf", written_review("a.xlf", Review("a.txt", LANGUAGES, [row]))).rows[0].source == deep


@pytest.mark.parametrize("name", FORMATS)
def test_documents_with_translations_of_their_own(name):
    """Fuzzy translations are for review, and checked after it; tags and line ends of the translation stay."""
    document = read_document("m.po", PO, LANGUAGES)
    assert [shown(s.source, s.existing or s.draft or TaggedText("")) for s in document.segments] == [
        "Yo ⟨1⟩canto⟨/1⟩ %s",
        "Guardar ⟨1⟩todo⟨/1⟩",
        "ya",
        "",
    ]
    review = read_review(name, sent(name, document))
    rows = [replace(row, state="final") for row in review.rows]
    rows[0] = replace(rows[0], target="Hoy ⟨1⟩canto⟨/1⟩ %d")
    result = corrected(document, replace(review, rows=rows), "Ana")
    assert result.warnings == ["row 1: Missing: %s.", "row 1: Not in the source: %d."] and not result.problems
    written = document.filled(result.targets).decode()
    assert 'msgstr "Hoy <b>canto</b> %d"' in written and "fuzzy" not in written
    assert '"Guardar <i>todo</i>\\n"' in written and 'msgid "Bye"\nmsgstr ""' in written


@pytest.mark.parametrize(
    ("document", "translation"),
    [
        ('<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file original="a" datatype="x" '
         'source-language="en" target-language="es"><body><trans-unit id="1"><source>I <g id="1">sing</g> <x id="2"/>'
         '</source><target><x id="2"/>Yo <g id="1" ctype="bold">canto</g></target></trans-unit></body></file></xliff>',
         "⟨2/⟩Yo ⟨1⟩canto⟨/1⟩"),
        ('<tmx version="1.4"><header srclang="en"/><body><tu><tuv xml:lang="en"><seg>I <bpt i="1">b</bpt>sing'
         '<ept i="1">/b</ept> all</seg></tuv><tuv xml:lang="es"><seg>Yo <bpt i="7">b</bpt>canto<ept i="7">/b</ept> todo'
         "</seg></tuv></tu></body></tmx>", "Yo ⟨1⟩canto⟨/1⟩ todo"),
    ],
)  # fmt: skip
def test_existing_translations_have_the_tags_of_the_source(document, translation):
    name = "a.xlf" if "<xliff" in document else "a.tmx"
    (segment,) = read_document(name, document.encode(), LANGUAGES).segments
    assert shown(segment.source, segment.existing) == translation


def test_a_translated_document_gives_the_translations_of_the_original():
    document = page()
    translated = document.filled(in_capitals(document))
    targets = translations_of(document, "b.html", translated, LANGUAGES)
    assert document.filled(targets) == translated
    with pytest.raises(UserError, match=r"b\.html: has 1 texts, and the original 4"):
        translations_of(document, "b.html", b"<p>uno</p>", LANGUAGES)


def test_a_document_is_written_as_a_review():
    document = page()
    wrapped = DocumentForReview("a.html", document, LANGUAGES)
    review = read_review("a.xlf", wrapped.filled({0: Target(TaggedText("Uno"), confidence=0.5, doubts=("lost: %d",))}))
    assert [row.state for row in review.rows] == ["translated", "initial", "initial", "initial"]
    assert review.rows[0].notes == ("The confidence is 50%.", "Missing: %d.")
    second = review_of("a.html", document, {0: Target(TaggedText("Dos"), "person")}, LANGUAGES, review).rows[0]
    assert (second.machine, second.target, second.state) == ("Uno", "Dos", "reviewed")
    assert second.notes == review.rows[0].notes
    for name in FORMATS:
        unknown = written_review(name, review_of("a.html", document, {}, ("en", None)))
        assert read_review(name, unknown).languages == ("en", None)
    with pytest.raises(UserError, match=r"a\.html: has no text to review"):
        DocumentForReview("a.html", read_document("a.html", b"<hr>", LANGUAGES), LANGUAGES).filled({})


def test_tables_from_programs_that_remove_what_was_sent():
    document = page()
    content = sent("r.docx", document, in_capitals(document))
    archive, stream = zipfile.ZipFile(io.BytesIO(content)), io.BytesIO()
    with zipfile.ZipFile(stream, "w") as written:
        for name in archive.namelist():
            if not name.startswith("customXml"):
                written.writestr(name, archive.read(name))
    review = read_review("r.docx", stream.getvalue())
    assert (review.languages, review.document) == (LANGUAGES, "")
    assert [without_tags(row.target) for row in review.rows] == [s.source.text.upper() for s in document.segments]


@pytest.mark.parametrize("name", FORMATS)
def test_damaged_reviews_are_refused_in_one_line_or_read(name):
    document, chance = page(), random.Random(5)
    good = sent(name, document, in_capitals(document))
    outcomes = set()
    for _ in range(40):
        content = good
        if name.endswith(".docx") and chance.random() < 0.8:
            archive, stream = zipfile.ZipFile(io.BytesIO(good)), io.BytesIO()
            chosen = chance.choice(["word/document.xml", "customXml/item1.xml"])
            with zipfile.ZipFile(stream, "w") as written:
                for member in archive.namelist():
                    data = archive.read(member)
                    written.writestr(member, damaged(data, chance) if member == chosen else data)
            content = stream.getvalue()
        else:
            content = damaged(good, chance)
        try:
            corrected(document, read_review(name, content), "Ana")
            outcomes.add("read")
        except UserError as error:
            assert "\n" not in str(error)
            outcomes.add("refused")
    assert outcomes == {"read", "refused"}


def test_harmful_reviews_are_refused():
    entity = b'<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>'
    content = sent("r.xlf", page()).replace(b"<xliff ", entity + b"<xliff ", 1)
    with pytest.raises(UserError, match="declares entities"):
        read_review("r.xlf", content)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as bomb:
        bomb.writestr("word/document.xml", bytes(1 << 24))
    with pytest.raises(UserError, match="packed"):
        read_review("r.docx", stream.getvalue())
    other = (
        b'<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0"><file id="f"><unit id="1"/></file></xliff>'
    )
    for name, content in (("r.xlf", other), ("r.docx", docx_without_rows()), ("r.pdf", b"")):
        with pytest.raises(UserError):
            read_review(name, content)


def docx_without_rows():
    stream = io.BytesIO()
    docx.Document().save(stream)
    return stream.getvalue()


@pytest.mark.parametrize("name", FORMATS)
def test_the_time_grows_with_the_rows(name):
    def work(count):
        rows = [Row(i, "a⟨1⟩b⟨/1⟩" * 3, "x", "y ⟨2⟩ z", "translated", tags={"⟨1⟩": "<b>"}) for i in range(1, count + 1)]
        review = Review("a.txt", LANGUAGES, rows)
        return lambda: read_review(name, written_review(name, review))

    assert_linear(work, 25, 200)

    def tags(count):
        text = "".join(f"⟨{i}⟩" for i in range(1, count + 1))
        row = Row(
            1, text, text, text[::-1], "translated", tags=dict.fromkeys([f"⟨{i}⟩" for i in range(1, count + 1)], "<b>")
        )
        return lambda: read_review(name, written_review(name, Review("a.txt", LANGUAGES, [row])))

    assert_linear(tags, 100, 800)
