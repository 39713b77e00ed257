"""The parts of Word and PowerPoint packages: which ones are read, their order and their names."""

import re
from io import BytesIO
from random import Random
from zipfile import ZipFile

import pytest

from bitext.documents.document import Target, read_document
from bitext.documents.tagged_text import TaggedText
from tests.documents.changing import ENGLISH_SPANISH, all_changed
from tests.probes.packed import docx, packed, pptx, types, xlsx

BASE = "http://schemas.openxmlformats.org/"
NAMES = " ".join(
    f'xmlns:{prefix}="{BASE}{name}"'
    for prefix, name in (
        ("w", "wordprocessingml/2006/main"),
        ("a", "drawingml/2006/main"),
        ("p", "presentationml/2006/main"),
        ("r", "officeDocument/2006/relationships"),
        ("wp", "drawingml/2006/wordprocessingDrawing"),
    )
)
WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml"
SLIDES = "application/vnd.openxmlformats-officedocument.presentationml"


def package(*members, **files):
    """Return a package of members, each given as name, type and content."""
    content_types = types({name: kind for name, kind, _ in members} | {"word/absent.xml": f"{WORD}.footer+xml"})
    content = {name: f"<r {NAMES}>{inside}</r>" for name, _, inside in members}
    return packed({"[Content_Types].xml": content_types, **content, **files})


def word_text(text):
    return f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>"


def drawing_text(text):
    return f"<a:p><a:r><a:t>{text}</a:t></a:r></a:p>"


def test_parts_of_word_come_in_the_order_of_kinds_and_numbers():
    drawing = "application/vnd.openxmlformats-officedocument.drawingml"
    content = package(
        ("word/charts/chart2.xml", f"{drawing}.chart+xml", drawing_text("A chart") + '<p:cNvPr descr="A cat"/>'),
        (
            "word/diagrams/drawing1.xml",
            "application/vnd.ms-office.drawingml.diagramDrawing+xml",
            drawing_text("A drawing"),
        ),
        ("word/diagrams/data1.xml", f"{drawing}.diagramData+xml", drawing_text("A diagram")),
        ("word/comments.xml", f"{WORD}.comments+xml", word_text("A comment")),
        ("word/endnotes.xml", f"{WORD}.endnotes+xml", word_text("An endnote")),
        ("word/footnotes.xml", f"{WORD}.footnotes+xml", word_text("A footnote")),
        ("word/footer1.xml", f"{WORD}.footer+xml", word_text("A footer")),
        ("word/v2/header10.xml", f"{WORD}.header+xml", word_text("The tenth")),
        ("word/v2/header9.xml", f"{WORD}.header+xml", word_text("The ninth")),
        ("word/document.xml", f"{WORD}.document.main+xml", word_text("One") + word_text("12") + word_text("Two")),
        ("word/glossary.xml", f"{WORD}.document.glossary+xml", word_text("No")),
    )
    document = read_document("a.docx", content, ENGLISH_SPANISH)
    assert {segment.source.text: segment.place for segment in document.segments} == {
        "One": "paragraph 1",
        "Two": "paragraph 3",
        "The ninth": "header 1, paragraph 1",
        "The tenth": "header 2, paragraph 1",
        "A footer": "footer 1, paragraph 1",
        "A footnote": "footnotes, paragraph 1",
        "An endnote": "endnotes, paragraph 1",
        "A comment": "comments, paragraph 1",
        "A chart": "chart 1, paragraph 1",
        "A cat": "chart 1, picture 1",
        "A diagram": "diagram 1, paragraph 1",
        "A drawing": "diagram 2, paragraph 1",
    }
    after = ZipFile(BytesIO(document.filled(all_changed(document))))
    assert '<a:rPr lang="es-ES"/><a:t>A CHART<' in after.read("word/charts/chart2.xml").decode()
    assert '<w:rPr><w:lang w:val="es-ES"/></w:rPr><w:t>THE TENTH<' in after.read("word/v2/header10.xml").decode()


def presentation(*slides, relations, slide_ids, styles="", **others):
    """Return a presentation; `relations` maps identifiers to targets, `slide_ids` lists the slides shown."""
    relationships = "".join(f'<Relationship Id="{name}" Target="{target}"/>' for name, target in relations.items())
    order = "".join(f"<p:sldId {attribute}/>" for attribute in slide_ids)
    main_part = f"<p:presentation {NAMES}><p:sldIdLst>{order}</p:sldIdLst>{styles}</p:presentation>"
    return package(
        *slides,
        ("ppt/presentation.xml", f"{SLIDES}.presentation.main+xml", ""),
        **{
            "ppt/_rels/presentation.xml.rels": (
                f'<Relationships xmlns="{BASE}package/2006/relationships">{relationships}</Relationships>'
            )
        }
        if relations
        else {},
        **{"ppt/presentation.xml": main_part},
        **others,
    )


def slide(number, inside):
    return f"ppt/slides/slide{number}.xml", f"{SLIDES}.slide+xml", inside


@pytest.mark.parametrize(
    ("relations", "slide_ids", "texts"),
    [
        (
            {"a": "slides/slide10.xml", "b": "/ppt/slides/slide2.xml", "c": "../ppt/./slides/slide9.xml"},
            ('r:id="c"', 'id="3"', 'r:id="x"', 'r:id="a"'),
            ["Nine", "Ten", "Two", "Eleven", "A note"],
        ),
        ({}, ('r:id="a"',), ["Two", "Nine", "Ten", "Eleven", "A note"]),
    ],
)
def test_slides_that_are_shown_come_first(relations, slide_ids, texts):
    content = presentation(
        ("ppt/notesSlides/notesSlide1.xml", f"{SLIDES}.notesSlide+xml", drawing_text("A note")),
        *(slide(number, drawing_text(text)) for number, text in ((11, "Eleven"), (10, "Ten"), (9, "Nine"), (2, "Two"))),
        relations=relations,
        slide_ids=slide_ids,
    )
    document = read_document("a.pptx", content)
    assert [segment.source.text for segment in document.segments] == texts
    places = [segment.place for segment in document.segments]
    assert places == [*(f"slide {i}, paragraph 1" for i in range(1, 5)), "notes 1, paragraph 1"]


def shape(inside, name="sp", placeholder=False):
    return f"<p:{name}>{'<p:nvPr><p:ph/></p:nvPr>' * placeholder}{inside}</p:{name}>"


def test_of_masters_and_layouts_only_what_slides_show():
    prompts = [shape(drawing_text("A prompt"), name, placeholder=True) for name in ("sp", "pic", "graphicFrame")]
    picture = '<p:cNvPr descr="A cat"/>'
    master = drawing_text("Before") + prompts[0] + drawing_text("Behind")
    layout = "".join(prompts) + picture + shape(drawing_text("Two"))
    content = presentation(
        slide(1, picture + shape(drawing_text("One"), placeholder=True)),
        ("ppt/slideMasters/slideMaster1.xml", f"{SLIDES}.slideMaster+xml", master),
        ("ppt/slideLayouts/slideLayout1.xml", f"{SLIDES}.slideLayout+xml", layout),
        relations={},
        slide_ids=(),
    )
    document = read_document("a.pptx", content)
    assert [(segment.source.text, segment.place) for segment in document.segments] == [
        ("One", "slide 1, paragraph 1"),
        ("A cat", "slide 1, picture 1"),
        ("Before", "master 1, paragraph 1"),
        ("Behind", "master 1, paragraph 3"),
        ("Two", "layout 1, paragraph 4"),
    ]


def slide_runs(*texts):
    return "".join(f"<a:r>{properties}<a:t>{text}</a:t></a:r>" for properties, text in texts)


ITALIC = '<a:rPr i="1"/>'
LINK = '<a:rPr><a:hlinkClick r:id="r1"/></a:rPr>'


@pytest.mark.parametrize(
    ("inside", "wholes", "after"),
    [
        # The language and the marks of the spelling checker are not kept.
        (
            '<a:pPr lvl="1"/>'
            + slide_runs(('<a:rPr lang="en-US" dirty="0" err="1"/>', "One "), ("", "two"), ("<a:rPr></a:rPr>", " six"))
            + '<a:endParaRPr lang="en-US"/>',
            ["One two six"],
            '<a:pPr lvl="1"/>' + slide_runs(('<a:rPr lang="es-ES"/>', "ONE TWO SIX")) + '<a:endParaRPr lang="en-US"/>',
        ),
        (
            slide_runs(
                ('<a:rPr lang="en-US" i="1" smtClean="0"/>', "One"),
                (LINK, " two"),
                ('<a:rPr altLang="de"/>', " by sea"),
            ),
            [f"<a:r>{ITALIC}One</a:r><a:r>{LINK} two</a:r> by sea"],
            slide_runs(
                ('<a:rPr i="1" lang="es-ES"/>', "ONE"),
                (LINK.replace("rPr>", 'rPr lang="es-ES">', 1), " TWO"),
                ('<a:rPr lang="es-ES"/>', " BY SEA"),
            ),
        ),
        (
            slide_runs(("""<a:rPr x='">' y=">"><a:b/></a:rPr>""", "One")),
            ["One"],
            slide_runs(("""<a:rPr x='">' y=">" lang="es-ES"><a:b/></a:rPr>""", "ONE")),
        ),
        (
            slide_runs(("", "One")) + '<a:br/><a:fld type="slidenum"><a:t>1</a:t></a:fld>' + slide_runs(("", "two")),
            ['One <a:br/><a:fld type="slidenum"><a:t>1</a:t></a:fld>two'],
            slide_runs(('<a:rPr lang="es-ES"/>', "ONE"))
            + '<a:br/><a:fld type="slidenum"><a:t>1</a:t></a:fld>'
            + slide_runs(('<a:rPr lang="es-ES"/>', "TWO")),
        ),
        (
            slide_runs(("", "Yes.")) + "<a:br/>" + slide_runs(("", "12")),
            ["Yes."],
            slide_runs(('<a:rPr lang="es-ES"/>', "YES.")) + "<a:br/>" + slide_runs(("", "12")),
        ),
        ("<a:pPr/><a:endParaRPr/>", [], "<a:pPr/><a:endParaRPr/>"),
    ],
)
def test_runs_of_slides(inside, wholes, after):
    content = presentation(slide(1, f"<a:p>{inside}</a:p>"), relations={}, slide_ids=())
    document = read_document("a.pptx", content, ENGLISH_SPANISH)
    assert [segment.source.full_text for segment in document.segments] == wholes
    filled = ZipFile(BytesIO(document.filled(all_changed(document)))).read("ppt/slides/slide1.xml").decode()
    assert filled[filled.index("<a:p>") + 5 : filled.rindex("</a:p>")] == after
    assert document.filled({}) == content


def test_descriptions_are_counted_by_pictures_with_words():
    pictures = [
        '<wp:docPr id="1" descr="photo.jpg"/>',
        '<wp:docPr id="2" title="12" descr="A cat"/>',
        "<wp:docPr id='3' descr='One\n\"dog\"' title='Dogs'><a:x/></wp:docPr>",
    ]
    content = package(("word/document.xml", f"{WORD}.document.main+xml", "".join(pictures)))
    document = read_document("a.docx", content, ENGLISH_SPANISH)
    assert [(segment.source.text, segment.place) for segment in document.segments] == [
        ("A cat", "picture 1"),
        ("Dogs", "picture 2"),
        ('One "dog"', "picture 2"),
    ]
    targets = {0: Target(TaggedText("Un gato")), 2: Target(TaggedText('Un\n"perro"'))}
    filled = ZipFile(BytesIO(document.filled(targets))).read("word/document.xml").decode()
    assert (
        "".join(pictures)
        .replace("A cat", "Un gato")
        .replace("descr='One\n\"dog\"'", 'descr="Un&#10;&quot;perro&quot;"')
        in filled
    )


def with_default_types(members):
    """Give the type of the main part to all XML files, as .NET does, and add an XML file without a type of its own."""
    listed = members["[Content_Types].xml"].decode()
    main = re.search(r'<Override PartName="([^"]*)" ContentType="([^"]*\.main\+xml)"/>', listed)
    listed = listed.replace(main[0], f'<Default Extension="XML" ContentType="{main[2]}"/>')
    root = f'<Relationship Id="r" Target="{main[1]}"/>'
    root = f'<Relationships xmlns="{BASE}package/2006/relationships">{root}</Relationships>'
    return {**members, "[Content_Types].xml": listed, "_rels/.rels": root, "customXml/item1.xml": "<a/>"}


def with_names(change):
    return lambda members: {change(name): content for name, content in members.items()}


@pytest.mark.parametrize("kind", [docx, pptx, xlsx])
@pytest.mark.parametrize(
    "change",
    [
        with_default_types,
        with_names(str.upper),
        with_names(lambda name: name.replace("/", "\\")),
        with_names(lambda name: name if name.startswith("[") else f"/{name}"),
    ],
)
def test_packages_of_net_are_read(kind, change):
    original = kind(Random(3))
    archive = ZipFile(BytesIO(original))
    content = packed(change({name: archive.read(name) for name in archive.namelist()}))
    name = f"a.{kind.__name__}"
    expected, document = (read_document(name, data, ENGLISH_SPANISH) for data in (original, content))
    assert document.segments == expected.segments and document.segments
    assert document.filled({}) == content
    filled = document.filled(all_changed(document))
    assert ZipFile(BytesIO(filled)).testzip() is None
    again = read_document(name, filled, ENGLISH_SPANISH)
    assert [segment.source.text for segment in again.segments] == [
        target.marked.text for target in all_changed(document).values()
    ]
