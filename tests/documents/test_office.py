"""Word and PowerPoint documents, created and checked with python-docx and python-pptx."""

import base64
from dataclasses import replace
from io import BytesIO
from xml.etree import ElementTree
from zipfile import ZipFile

import docx
import pptx
import pytest
from docx.oxml import parse_xml
from docx.oxml.ns import nsdecls
from pptx.chart.data import CategoryChartData
from pptx.enum.chart import XL_CHART_TYPE
from pptx.enum.lang import MSO_LANGUAGE_ID
from pptx.util import Inches

from bitext.documents.document import Target, read_document
from bitext.documents.tagged_text import Side, TaggedText
from tests.documents.changing import ENGLISH_SPANISH, all_changed
from tests.probes.packed import packed, types
from translucid.ground.errors import UserError

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"


def saved(document):
    out = BytesIO()
    document.save(out)
    return out.getvalue()


def read(content, name="a.docx", languages=(None, None)):
    return read_document(name, content, languages)


def filled(document, name="a.docx"):
    return BytesIO(document.filled(all_changed(document)))


def of_word(inside, **members):
    """Return a document with one paragraph of this XML."""
    body = f'<w:document xmlns:w="{W}" xmlns:r="r"><w:body><w:p>{inside}</w:p></w:body></w:document>'
    kind = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    return packed({"[Content_Types].xml": types({"word/document.xml": kind}), "word/document.xml": body, **members})


def paragraph(content):
    """Return the XML of the paragraph."""
    text = ZipFile(BytesIO(content)).read("word/document.xml").decode()
    return text[text.index("<w:p>") + 5 : text.rindex("</w:p>")]


def run(text, properties="", space=""):
    return f"<w:r>{properties}<w:t{space}>{text}</w:t></w:r>"


BOLD = "<w:rPr><w:b/></w:rPr>"
SPACE = ' xml:space="preserve"'


@pytest.mark.parametrize(
    "before",
    [run("A cat sleeps."), f'<w:hyperlink r:id="r1">{run("A cat")}</w:hyperlink>{run(" sleeps.", space=SPACE)}'],
)
def test_a_sentence_ends_at_a_line_break_whatever_stands_before_it(before):
    document = read(of_word(f"{before}<w:r><w:br/></w:r>{run('It eats.')}"))
    assert [segment.source.text for segment in document.segments] == ["A cat sleeps.", "It eats."]


def test_formatting_goes_with_its_words_and_all_parts_are_found():
    document = docx.Document()
    body_paragraph = document.add_paragraph("A cat ")
    body_paragraph.add_run("sleeps").bold = True
    body_paragraph.add_run(" here.")
    document.add_paragraph("An item", style="List Bullet")
    document.add_table(1, 2).cell(0, 1).text = "A cell"
    document.sections[0].header.paragraphs[0].text = "A header"
    document.sections[0].footer.paragraphs[0].text = "A footer"
    document.add_comment(body_paragraph.runs, text="A comment")
    word_document = read(saved(document))
    places = {segment.source.text: segment.place for segment in word_document.segments}
    assert places == {
        "A cat sleeps here.": "paragraph 1",
        "An item": "paragraph 2",
        "A cell": "paragraph 4",
        "A header": "header 1, paragraph 1",
        "A footer": "footer 1, paragraph 1",
        "A comment": "comments, paragraph 1",
    }
    marks = word_document.segments[0].source.marks
    moved = tuple(replace(mark, offset=offset) for mark, offset in zip(marks, (0, 6), strict=True))
    target = Target(TaggedText("Duerme aquí un gato.", moved))
    after = docx.Document(BytesIO(word_document.filled({**all_changed(word_document), 0: target})))
    assert [(text_run.text, text_run.bold) for text_run in after.paragraphs[0].runs if text_run.text] == [
        ("Duerme", True),
        (" aquí un gato.", None),
    ]
    assert after.paragraphs[1].style.name == "List Bullet"
    assert after.tables[0].cell(0, 1).text == "A CELL"
    assert after.sections[0].header.paragraphs[0].text == "A HEADER"
    assert [comment.text for comment in after.comments] == ["A COMMENT"]


@pytest.mark.parametrize(
    ("inside", "text", "after"),
    [
        (run("One ", space=SPACE) + run("cat"), "One cat", run("ONE CAT")),
        (run("One ") + run("cat"), "Onecat", run("ONECAT")),
        (run("all", BOLD), "all", run("ALL", BOLD)),
        (run("One") + run(" ", BOLD, SPACE) + run("cat"), "One cat", run("ONE CAT")),
        (run("a") + '<w:proofErr w:type="spellStart"/>' + run("b"), "ab", run("AB")),
        (run("a", '<w:rPr><w:lang w:val="en"/></w:rPr>') + run("b"), "ab", run("AB")),
        ("<w:r><w:t>a</w:t><w:softHyphen/><w:t>b</w:t><w:noBreakHyphen/><w:t>c</w:t></w:r>", "ab-c", run("AB-C")),
        ("<w:r><w:tab/><w:t>a</w:t></w:r>", "a", "<w:r><w:tab/></w:r>" + run("A")),
        ("<w:r><w:t>a</w:t><w:br/><w:t>b</w:t></w:r>", "a b", run("A") + "<w:r><w:br/></w:r>" + run("B")),
        (f"<w:sdt><w:sdtPr/><w:sdtContent>{run('a')}</w:sdtContent></w:sdt>", "a", None),
        (f"<w:smartTag><w:smartTagPr/>{run('a')}</w:smartTag>", "a", None),
        (f'<w:ins w:id="1">{run("a")}</w:ins><w:del w:id="2"><w:r><w:delText>b</w:delText></w:r></w:del>', "a", None),
        (f'<w:hyperlink r:id="r1">{run("a", BOLD)}</w:hyperlink>', "a", None),
        (run("a &amp; &lt;b&gt;"), "a & <b>", run("A &amp; <b>".replace("<", "&lt;").replace(">", "&gt;"))),
    ],
)
def test_a_paragraph_is_read_and_written(inside, text, after):
    content = of_word(inside)
    document = read(content)
    assert [segment.source.text for segment in document.segments] == [text]
    result = paragraph(document.filled(all_changed(document)))
    expected = inside.replace(f">{text}<", f">{text.upper()}<") if after is None else after
    assert result == expected.replace("&LT;b&GT;", "&lt;b&gt;")


def fields(code):
    char = '<w:r><w:fldChar w:fldCharType="{}"/></w:r>'
    return (
        f"{char.format('begin')}<w:r><w:instrText>{code}</w:instrText></w:r>"
        f"{char.format('separate')}{run('Site')}{char.format('end')}"
    )


def test_what_a_field_shows_is_translated_only_if_somebody_wrote_it():
    content = of_word(run("See ", space=SPACE) + fields(" HYPERLINK x ") + run(" on ", space=SPACE) + fields(" PAGE "))
    document = read(content)
    (segment,) = document.segments
    assert segment.source.text == "See Site on"
    assert [mark.side for mark in segment.source.marks] == [Side.opens, Side.closes]
    after = paragraph(document.filled(all_changed(document)))
    assert run("SITE") in after and fields(" PAGE ") in after
    assert after.count("fldChar ") == 6 and after.count("instrText>") == 4


def test_a_field_of_several_paragraphs_stays_around_its_texts():
    begin = '<w:r><w:fldChar w:fldCharType="begin"/></w:r><w:r><w:instrText>TOC</w:instrText></w:r>'
    document = read(of_word(begin + run("Chapter")))
    assert [segment.source.text for segment in document.segments] == ["Chapter"]
    assert paragraph(document.filled(all_changed(document))) == begin + run("CHAPTER")


def test_a_control_that_shows_bound_data_stays():
    bound = f"<w:sdt><w:sdtPr><w:dataBinding/></w:sdtPr><w:sdtContent>{run('a')}</w:sdtContent></w:sdt>"
    assert not read(of_word(bound)).segments


def test_lines_and_cells_of_a_paragraph_are_segments_of_their_own():
    tab, line = "<w:r><w:tab/></w:r>", "<w:r><w:br/></w:r>"
    inside = (
        run("Name") + tab + run("Mary", BOLD) + line + run("She sings.") + line + run("Always") + line + run("well")
    )
    document = read(of_word(inside))
    assert [segment.source.text for segment in document.segments] == ["Name", "Mary", "She sings.", "Always well"]
    partly_filled = paragraph(document.filled({1: Target(TaggedText("María"))}))
    assert partly_filled == inside.replace("Mary", "María").replace("Always", "Always ").replace(
        "<w:t>Always", f"<w:t{SPACE}>Always"
    )


def test_text_boxes_are_translated_in_their_paragraph():
    box = f"<w:r><w:pict><w:txbxContent><w:p>{run('Inside')}</w:p></w:txbxContent></w:pict></w:r>"
    content = of_word(run("Before ", space=SPACE) + box + run("after"))
    document = read(content)
    assert [segment.source.text for segment in document.segments] == ["Before after", "Inside"]
    for numbers in ((0,), (1,), (0, 1)):
        targets = {i: target for i, target in all_changed(document).items() if i in numbers}
        after = paragraph(document.filled(targets))
        ElementTree.fromstring(f'<w:p xmlns:w="{W}">{after}</w:p>')
        assert ("INSIDE" in after, "AFTER" in after) == (1 in numbers, 0 in numbers)
        assert after.lower().count("inside") == 1


def test_macros_are_found_by_kind_and_not_by_the_name_of_a_picture():
    document = read(of_word(run("A cat sleeps."), **{"word/media/macroEnabled.png": b"vbaProject"}))
    assert [segment.source.text for segment in document.segments] == ["A cat sleeps."]


def test_strict_documents_have_the_same_elements():
    content = ZipFile(BytesIO(of_word(run("a"))))
    members = {
        name: content.read(name).decode().replace(W, "http://purl.oclc.org/ooxml/wordprocessingml/main")
        for name in content.namelist()
    }
    assert [segment.source.text for segment in read(packed(members)).segments] == ["a"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (of_word(run("a"), **{"word/vbaProject.bin": ""}), "a.docx: has macros, which is refused"),
        (of_word("<w:r>"), "a.docx/word/document.xml:1: is no XML"),
        (packed({"a": ""}), r"a.docx/\[Content_Types\].xml: is not in it"),
        (packed({"[Content_Types].xml": types({})}), "a.docx: is another kind of document"),
        (
            packed({"[Content_Types].xml": types({"a": "application/vnd.ms-word.document.macroEnabled.main+xml"})}),
            "a.docx: has macros, which is refused",
        ),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1 and so on", "a.docx: is in a format before 2007, or has a password"),
        (of_word(f"<!DOCTYPE a>{run('a')}"), "a.docx/word/document.xml:1: is no XML"),
    ],
)
def test_unreadable_files_are_one_line(content, message):
    with pytest.raises(UserError, match=f"^{message}"):
        read(content)


def presentation():
    show = pptx.Presentation()
    slide = show.slides.add_slide(show.slide_layouts[1])
    slide.shapes.title.text = "A title"
    frame = slide.placeholders[1].text_frame
    frame.text = "It has "
    bold = frame.paragraphs[0].add_run()
    bold.text, bold.font.bold = "four", True
    frame.paragraphs[0].add_run().text = " legs."
    frame.add_paragraph().text = "One line:\vanother"
    slide.notes_slide.notes_text_frame.text = "A note"
    second = show.slides.add_slide(show.slide_layouts[5])
    table = second.shapes.add_table(1, 1, Inches(1), Inches(1), Inches(2), Inches(1)).table
    table.cell(0, 0).text = "A cell"
    data = CategoryChartData()
    data.categories = ["x"]
    data.add_series("s", [1])
    chart = second.shapes.add_chart(XL_CHART_TYPE.PIE, Inches(1), Inches(1), Inches(2), Inches(2), data).chart
    chart.has_title = True
    chart.chart_title.text_frame.text = "A chart"
    return show


def test_slides_tables_notes_and_charts_are_found():
    document = read(saved(presentation()), "a.pptx")
    places = {segment.source.text: segment.place for segment in document.segments}
    assert places == {
        "A title": "slide 1, paragraph 1",
        "It has four legs.": "slide 1, paragraph 2",
        "One line:": "slide 1, paragraph 3",
        "another": "slide 1, paragraph 3",
        "A cell": "slide 2, paragraph 2",
        "A note": "notes 1, paragraph 1",
        "A chart": "chart 1, paragraph 1",
    }
    after = pptx.Presentation(filled(document))
    frame = after.slides[0].placeholders[1].text_frame
    assert [(text_run.text, text_run.font.bold) for text_run in frame.paragraphs[0].runs] == [
        ("IT HAS ", None),
        ("FOUR", True),
        (" LEGS.", None),
    ]
    assert frame.paragraphs[1].text == "ONE LINE:\vANOTHER"
    assert after.slides[0].notes_slide.notes_text_frame.text == "A NOTE"
    shapes = list(after.slides[1].shapes)
    assert shapes[1].table.cell(0, 0).text == "A CELL"
    assert shapes[2].chart.chart_title.text_frame.text == "A CHART"


def test_what_masters_and_layouts_show_is_found_but_not_their_prompts():
    show = presentation()
    master, layout = show.slide_master, show.slide_layouts[1]
    box = show.slides[0].shapes.add_textbox(0, 0, Inches(2), Inches(1))
    box.text_frame.text = "For us alone"
    master.shapes._spTree.append(box._element)
    group = show.slides[0].shapes.add_group_shape()
    group.shapes.add_textbox(0, 0, Inches(2), Inches(1)).text_frame.text = "Since 1990"
    layout.shapes._spTree.append(group._element)
    document = read(saved(show), "a.pptx")
    places = [(segment.source.text, segment.place.split(",")[0]) for segment in document.segments]
    assert places[-2:] == [("For us alone", "master 1"), ("Since 1990", "layout 2")]
    assert len(places) == 9
    after = pptx.Presentation(filled(document))
    prompts = [shape.text_frame.text for shape in show.slide_master.placeholders]
    assert [shape.text_frame.text for shape in after.slide_master.placeholders] == prompts
    assert any("Click" in prompt for prompt in prompts)
    assert after.slide_master.shapes[-1].text_frame.text == "FOR US ALONE"
    assert after.slide_layouts[1].shapes[-1].shapes[0].text_frame.text == "SINCE 1990"


def test_slides_come_in_the_order_of_the_show():
    show = presentation()
    slides = show.slides._sldIdLst
    slides.append(slides[0])
    document = read(saved(show), "a.pptx")
    assert [segment.source.text for segment in document.segments][:2] == ["A cell", "A title"]
    assert document.segments[0].place == "slide 1, paragraph 2"


def test_a_document_is_no_presentation():
    with pytest.raises(UserError, match=r"^a.pptx: is another kind of document than its name says"):
        read(of_word(run("a")), "a.pptx")


def spoken(attribute="val", code="es-ES"):
    return f'<w:lang w:{attribute}="{code}"/>'


@pytest.mark.parametrize(
    ("inside", "target", "after"),
    [
        (run("a", f"<w:rPr>{spoken(code='en')}</w:rPr>"), "es", run("A", f"<w:rPr>{spoken()}</w:rPr>")),
        (run("a"), "ja", run("A", f"<w:rPr>{spoken('eastAsia', 'ja-JP')}</w:rPr>")),
        (run("a", BOLD), "pt-BR", run("A", f"<w:rPr><w:b/>{spoken(code='pt-BR')}</w:rPr>")),
        # The order of the schema: this one stands behind the language.
        (run("a", "<w:rPr><w:b/><w:oMath/></w:rPr>"), "es", run("A", f"<w:rPr><w:b/>{spoken()}<w:oMath/></w:rPr>")),
        (run("a"), None, run("A")),
        (run("a"), "nonsense", run("A")),
    ],
)
def test_what_is_translated_is_of_the_language_that_it_is_in(inside, target, after):
    document = read(of_word(inside), languages=("en", target))
    assert paragraph(document.filled(all_changed(document))) == after
    assert document.filled({}) == of_word(inside)


def test_a_line_that_stays_is_of_no_other_language():
    inside = run("One.") + "<w:r><w:br/></w:r>" + run("Two.")
    document = read(of_word(inside), languages=ENGLISH_SPANISH)
    after = paragraph(document.filled({1: Target(TaggedText("Dos."))}))
    assert after == run("One.") + "<w:r><w:br/></w:r>" + run("Dos.", f"<w:rPr>{spoken()}</w:rPr>")


def test_slides_are_of_the_language_that_they_are_in():
    show = presentation()
    show.slides[0].shapes.title.text_frame.paragraphs[0].runs[0].font.language_id = MSO_LANGUAGE_ID.ENGLISH_US
    document = read(saved(show), "a.pptx", ENGLISH_SPANISH)
    after = pptx.Presentation(filled(document))
    frame = after.slides[0].placeholders[1].text_frame
    title = after.slides[0].shapes.title.text_frame
    for text_run in (*title.paragraphs[0].runs, *frame.paragraphs[0].runs):
        assert text_run.font.language_id == MSO_LANGUAGE_ID.SPANISH_MODERN_SORT  # es-ES
    assert frame.paragraphs[0].runs[1].font.bold


PICTURE = base64.b64decode("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7")


def test_pictures_have_their_descriptions_translated_with_or_without_their_paragraph():
    document = docx.Document()
    body_paragraph = document.add_paragraph("See ")
    body_paragraph.add_run().add_picture(BytesIO(PICTURE))
    body_paragraph.add_run(" here.")
    document.add_paragraph().add_run().add_picture(BytesIO(PICTURE))
    for item, text in zip(document.inline_shapes, ("A cat & a dog", "image1.png"), strict=True):
        item._inline.docPr.set("descr", text)
    content = saved(document)
    word_document = read(content)
    assert [(item.source.text, item.place) for item in word_document.segments] == [
        ("See  here.", "paragraph 1"),
        ("A cat & a dog", "picture 1"),
    ]
    for numbers in ((0,), (1,), (0, 1)):
        targets = {i: target for i, target in all_changed(word_document).items() if i in numbers}
        after = docx.Document(BytesIO(word_document.filled(targets)))
        descriptions = [item._inline.docPr.get("descr") for item in after.inline_shapes]
        assert descriptions == ["A CAT & A DOG" if 1 in numbers else "A cat & a dog", "image1.png"]
        assert after.paragraphs[0].text == ("SEE  HERE." if 0 in numbers else "See  here.")
    assert word_document.filled({}) == content


def test_pictures_of_slides_have_theirs():
    show = pptx.Presentation()
    picture = show.slides.add_slide(show.slide_layouts[6]).shapes.add_picture(BytesIO(PICTURE), 0, 0)
    picture._element.nvPicPr.cNvPr.set("descr", 'A "large" cat')
    picture._element.nvPicPr.cNvPr.set("title", "Cats")
    document = read(saved(show), "a.pptx")
    assert [(segment.source.text, segment.place) for segment in document.segments] == [
        ("Cats", "slide 1, picture 1"),
        ('A "large" cat', "slide 1, picture 1"),
    ]
    (shape,) = pptx.Presentation(BytesIO(document.filled({1: Target(TaggedText('Un gato "grande"'))}))).slides[0].shapes
    properties = shape._element.nvPicPr.cNvPr
    assert (properties.get("descr"), properties.get("title")) == ('Un gato "grande"', "Cats")


def test_relations_and_media_keep_their_bytes():
    document = docx.Document()
    document.add_paragraph("A link")._p.append(parse_xml(f"<w:r {nsdecls('w')}><w:t>here</w:t></w:r>"))
    content = saved(document)
    before, after = ZipFile(BytesIO(content)), ZipFile(filled(read(content)))
    changed = [name for name in before.namelist() if before.read(name) != after.read(name)]
    assert changed == ["word/document.xml"]
    assert before.namelist() == after.namelist()


def test_an_initial_is_one_word_with_the_next_paragraph():
    frame = '<w:pPr><w:framePr w:dropCap="drop"/></w:pPr>'
    inside = f"{frame}{run('“T')}</w:p><w:p>{run('hey like it.')}</w:p><w:p>{run('End')}"
    document = read(of_word(inside))
    assert [segment.source.text for segment in document.segments] == ["“They like it.", "End"]
    assert document.filled({}) == of_word(inside)
    target = TaggedText("«É\u0301sta gusta.")
    after = paragraph(document.filled({0: Target(target)}))
    first = "«É\u0301"
    assert after.startswith(f"{frame}{run(first)}</w:p><w:p>{run('sta gusta.')}")
    alone = f"{frame}{run('Title')}</w:p><w:p>{run('hey')}"  # a frame with a whole text
    assert [segment.source.text for segment in read(of_word(alone)).segments] == ["Title", "hey"]


def test_tracked_changes_are_counted():
    deletion = '<w:del w:id="2"><w:r><w:delText>b</w:delText></w:r></w:del>'
    document = read(of_word(f"<w:ins>{run('a')}</w:ins>{deletion}<w:moveFrom>{run('c')}</w:moveFrom>"))
    assert document.segments.remarks == [
        "tracked changes: insertions are translated (1), deletions stay as they are (2); "
        "to get a clean text, accept or reject them first"
    ]
    assert not read(of_word(run("a"))).segments.remarks
