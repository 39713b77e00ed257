"""Documents of the XML formats, drawn by chance: texts with tags in them, in files as programs write them."""

import re
import zipfile
from io import BytesIO
from itertools import count
from random import Random
from xml.sax.saxutils import escape

WORDS = [
    "cat",
    "The",
    "R&D",
    "é",
    "a<b",
    "über",
    "日本",
    "🙂",
    "don't",
    '"so"',
    "one",
    "%s",
    "{name}",
    "1,000",
    "end.",
    "]]>",
]
XLIFF = 'xmlns="urn:oasis:names:tc:xliff:document:{}"'
DECLARATION = '<?xml version="1.0" encoding="UTF-8"?>'


def text(chance: Random) -> str:
    """Return some words as they stand in XML, a letter among them."""
    words = [chance.choice(WORDS) for _ in range(chance.randrange(4))] + ["word"]
    chance.shuffle(words)
    return chance.choice(["", " "]) + escape(" ".join(words)) + chance.choice(["", " "])


def tagged(chance: Random, tags, depth: int = 0) -> str:
    """Return texts with tags; `tags` are functions of what is in one, which may leave it out."""
    parts = [text(chance)]
    for _ in range(chance.choice([0, 1, 1, 2])):
        inside = tagged(chance, tags, depth + 1) if depth < 3 else text(chance)
        parts += [chance.choice(tags)(inside), chance.choice(["", text(chance)])]
    return "".join(parts)


def xliff_1(chance: Random) -> bytes:
    """XLIFF 1.2: units with and without a target, cut into segments, not to be translated."""
    ids = count(1)

    def bx_ex(inside):
        number = next(ids)
        return f'<bx id="{number}" rid="r{number}"/>{inside}<ex id="e{number}" rid="r{number}"/>'

    def bpt_ept(inside):
        number = next(ids)
        return f'<bpt id="{number}">&lt;b></bpt>{inside}<ept id="{number}">&lt;/b></ept>'

    tags = [
        lambda inside: f'<g id="{next(ids)}" ctype="bold">{inside}</g>',
        lambda inside: f'<mrk mtype="term">{inside}</mrk>',
        lambda inside: f'<mrk mtype="protected">fixed {next(ids)}</mrk>',
        lambda inside: f'<x id="{next(ids)}"/>',
        lambda inside: f"<ph id='{next(ids)}'>&lt;br/></ph>",
        bx_ex,
        bpt_ept,
    ]

    def unit(number):
        source = tagged(chance, tags)
        kind = chance.choice(["plain", "plain", "new", "done", "no", "cut"])
        attributes = ' translate="no"' if kind == "no" else ""
        rest = {"new": f'\n <target state="new">{source}</target>', "done": '\n <target state="final">hecho</target>'}
        if kind == "cut":
            parts = [tagged(chance, tags) for _ in range(2)]
            source = " ".join(parts)
            marks = " ".join(f'<mrk mtype="seg" mid="{i}">{part}</mrk>' for i, part in enumerate(parts))
            rest["cut"] = f"<seg-source>{marks}</seg-source>"
        note = chance.choice(["", "<note>Mind it</note>"])
        return (
            f'<trans-unit id="{number}"{attributes}>\n <source>{source}</source>{rest.get(kind, "")}{note}</trans-unit>'
        )

    units = "\n".join(unit(number) for number in range(8))
    header = (
        f'<xliff version="1.2" {XLIFF.format("1.2")}><file source-language="en" original="a" datatype="html"><body>'
    )
    return _ended(chance, f"{DECLARATION}\n{header}{units}</body></file></xliff>\n")


def xliff_2(chance: Random) -> bytes:
    """XLIFF 2: units of several segments, spans that begin and end apart."""
    ids = count(1)

    def sc_ec(inside):
        number = next(ids)
        return f'<sc id="{number}"/>{inside}<ec startRef="{number}"/>'

    tags = [
        lambda inside: f'<pc id="{next(ids)}">{inside}</pc>',
        lambda inside: f'<mrk id="m{next(ids)}" type="term">{inside}</mrk>',
        lambda inside: f'<mrk id="m{next(ids)}" translate="no">fixed</mrk>',
        lambda inside: f'<ph id="{next(ids)}"/>',
        lambda inside: '<cp hex="001A"/>',
        sc_ec,
    ]

    def segment():
        target = chance.choice(["", "<target>hecho</target>"])
        return f"<segment>\n  <source>{tagged(chance, tags)}</source>{target}</segment>"

    def unit(number):
        notes = chance.choice(["", "<notes><note>Mind it</note></notes>"])
        ignorable = "<ignorable><source> </source></ignorable>"
        segments = ignorable.join(segment() for _ in range(chance.randrange(1, 3)))
        return f'<unit id="u{number}">{notes}{segments}</unit>'

    units = "\n".join(unit(number) for number in range(8))
    return _ended(
        chance,
        f'<xliff version="2.1" srcLang="en" trgLang="de" {XLIFF.format("2.0")}><file id="f">{units}</file></xliff>',
    )


def tmx(chance: Random) -> bytes:
    """TMX: units with both languages, or one."""
    ids = count(1)

    def bpt_ept(inside):
        number = next(ids)
        return f'<bpt i="{number}">&lt;b></bpt>{inside}<ept i="{number}">&lt;/b></ept>'

    tags = [
        lambda inside: f'<hi type="x{next(ids)}">{inside}</hi>',
        lambda inside: f'<ph x="{next(ids)}">&lt;br/></ph>',
        lambda inside: f'<it pos="begin" x="{next(ids)}">&lt;i></it>',
        bpt_ept,
    ]

    def unit():
        target = chance.choice(
            ["", "", '<tuv xml:lang="de-AT"><seg>hecho</seg></tuv>', '<tuv xml:lang="de-AT"><seg/></tuv>']
        )
        return f'<tu>\n  <tuv xml:lang="en-US"><seg>{tagged(chance, tags)}</seg></tuv>{target}</tu>'

    units = "\n".join(unit() for _ in range(8))
    doctype = chance.choice(["", '<!DOCTYPE tmx SYSTEM "tmx14.dtd">'])
    return _ended(chance, f'{DECLARATION}{doctype}<tmx version="1.4"><header srclang="en"/><body>{units}</body></tmx>')


def android(chance: Random) -> bytes:
    """Android strings, arrays and plurals, with escapes, tags and CDATA."""
    ids = count(1)
    tags = [
        lambda inside: f'<a href="h{next(ids)}">{inside}</a>',
        lambda inside: f"<b>{inside}</b>",
        lambda inside: f'<xliff:g id="{next(ids)}">%1$s</xliff:g>',
        lambda inside: rf"\n{inside}",
    ]

    def value():
        parts = re.split(r"(<[^>]*>)", tagged(chance, tags))
        inside = "".join(p if p[:1] == "<" else p.replace("'", r"\'").replace('"', r"\"") for p in parts)
        return chance.choice([inside, inside, f"\n    {inside}\n  ", f"<![CDATA[<i>Look</i> at {next(ids)}]]>"])

    def resource(number):
        name = f'name="n{number}"'
        return chance.choice(
            [
                lambda: f"<string {name}>{value()}</string>",
                lambda: f'<string {name} translatable="false">{value()}</string>',
                lambda: f"<string-array {name}><item>{value()}</item><item>{value()}</item></string-array>",
                lambda: (
                    f'<plurals {name}>\n <item quantity="one">{value()}</item>\n'
                    f' <item quantity="other">{value()}</item>\n</plurals>'
                ),
            ]
        )()

    resources = "\n".join(f"<!-- note {number} -->{resource(number)}" for number in range(10))
    return _ended(chance, f'{DECLARATION}<resources xmlns:xliff="{XLIFF.format("1.2")[7:-1]}">{resources}</resources>')


def docx(chance: Random) -> bytes:
    """A Word document: runs, links, fields, tracked changes, notes, text boxes, a header."""
    ids = count(1)

    def run(inside=None, properties=("", "", "<w:rPr><w:b/></w:rPr>", "<w:rPr><w:i/><w:lang w:val='en'/></w:rPr>")):
        space = ' xml:space="preserve"'
        return f"<w:r>{chance.choice(properties)}<w:t{space}>{text(chance) if inside is None else inside}</w:t></w:r>"

    def field(code):
        char = '<w:r><w:fldChar w:fldCharType="{}"/></w:r>'
        code = f"<w:r><w:instrText>{code}</w:instrText></w:r>"
        return char.format("begin") + code + char.format("separate") + run() + char.format("end")

    def box():
        return f"<w:r><w:pict><w:txbxContent><w:p>{run()}</w:p></w:txbxContent></w:pict></w:r>"

    pieces = [
        run,
        run,
        run,
        lambda: f'<w:hyperlink r:id="rId{next(ids)}">{run()}</w:hyperlink>',
        lambda: "<w:r><w:tab/></w:r>",
        lambda: "<w:r><w:t>two</w:t><w:br/><w:t>lines</w:t></w:r>",
        lambda: f'<w:bookmarkStart w:id="{(number := next(ids))}" w:name="b"/><w:bookmarkEnd w:id="{number}"/>',
        lambda: '<w:proofErr w:type="spellStart"/>',
        lambda: f'<w:ins w:id="{next(ids)}">{run()}</w:ins>',
        lambda: f'<w:del w:id="{next(ids)}"><w:r><w:delText>gone</w:delText></w:r></w:del>',
        lambda: f'<w:r><w:footnoteReference w:id="{next(ids)}"/></w:r>',
        lambda: field(" HYPERLINK 'x' "),
        lambda: field(" PAGE "),
        lambda: f"<w:sdt><w:sdtPr/><w:sdtContent>{run()}</w:sdtContent></w:sdt>",
        box,
    ]

    def paragraph():
        inside = "".join(chance.choice(pieces)() for _ in range(chance.randrange(6)))
        return f"<w:p><w:pPr/>{inside}</w:p>"

    names = (
        'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" '
        'xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"'
    )
    body = "".join(paragraph() for _ in range(10))
    office = "application/vnd.openxmlformats-officedocument.wordprocessingml"
    return packed(
        {
            "[Content_Types].xml": types(
                {"word/document.xml": f"{office}.document.main+xml", "word/header1.xml": f"{office}.header+xml"}
            ),
            "word/document.xml": f"{DECLARATION}\r\n<w:document {names}><w:body>{body}</w:body></w:document>",
            "word/header1.xml": f"{DECLARATION}<w:hdr {names}>{paragraph()}</w:hdr>",
            "word/media/image1.bin": "\0" * 100,
        },
        chance,
    )


def pptx(chance: Random) -> bytes:
    """Slides, with notes."""
    ids = count(1)

    def run():
        link = f'<a:rPr lang="en-US"><a:hlinkClick r:id="rId{next(ids)}"/></a:rPr>'
        properties = chance.choice(["", '<a:rPr lang="en-US" dirty="0"/>', '<a:rPr b="1" err="1"/>', link])
        return f"<a:r>{properties}<a:t>{text(chance)}</a:t></a:r>"

    pieces = [run, run, lambda: "<a:br/>", lambda: '<a:fld id="{1}" type="slidenum"><a:t>1</a:t></a:fld>']

    def paragraph():
        inside = "".join(chance.choice(pieces)() for _ in range(chance.randrange(6)))
        return f"<a:p><a:pPr/>{inside}{chance.choice(['', '<a:endParaRPr/>'])}</a:p>"

    base = "http://schemas.openxmlformats.org/"
    names = (
        f'xmlns:p="{base}presentationml/2006/main" xmlns:a="{base}drawingml/2006/main" '
        f'xmlns:r="{base}officeDocument/2006/relationships"'
    )
    office = "application/vnd.openxmlformats-officedocument.presentationml"
    slides = {f"ppt/slides/slide{number}.xml": f"{office}.slide+xml" for number in (1, 2, 10)}
    relations = "".join(f'<Relationship Id="r{i}" Target="{name[4:]}"/>' for i, name in enumerate(slides))
    shown = "".join(f'<p:sldId r:id="r{i}"/>' for i in (2, 0, 1))
    return packed(
        {
            "[Content_Types].xml": types({"ppt/presentation.xml": f"{office}.presentation.main+xml", **slides}),
            "ppt/presentation.xml": f"<p:presentation {names}><p:sldIdLst>{shown}</p:sldIdLst></p:presentation>",
            "ppt/_rels/presentation.xml.rels": (
                f'<Relationships xmlns="{base}package/2006/relationships">{relations}</Relationships>'
            ),
            **{
                name: f"<p:sld {names}><p:txBody>{''.join(paragraph() for _ in range(4))}</p:txBody></p:sld>"
                for name in slides
            },
        },
        chance,
    )


def odt(chance: Random) -> bytes:
    """A text of OpenDocument: spans, links, notes, breaks, deleted text."""
    ids = count(1)

    def note(inside):
        return (
            f'<text:note text:id="f{next(ids)}"><text:note-citation>1</text:note-citation>'
            f"<text:note-body><text:p>{text(chance)}</text:p></text:note-body></text:note>"
        )

    tags = [
        lambda inside: f'<text:span text:style-name="T{chance.choice("12")}">{inside}</text:span>',
        lambda inside: f'<text:a xlink:href="h{next(ids)}">{inside}</text:a>',
        lambda inside: f'<text:bookmark text:name="b{next(ids)}"/>',
        lambda inside: '<text:s text:c="2"/>',
        lambda inside: "<text:line-break/>",
        lambda inside: "<text:soft-page-break/>",
        note,
    ]
    oasis = "urn:oasis:names:tc:opendocument:xmlns:{}:1.0"
    names = " ".join(f'xmlns:{name}="{oasis.format(name)}"' for name in ("office", "text", "style"))
    names += ' xmlns:xlink="http://www.w3.org/1999/xlink" xmlns:officeooo="http://openoffice.org/2009/office"'
    styles = (
        '<style:style style:name="T1" style:family="text"><style:text-properties officeooo:rsid="1"/></style:style>'
        '<style:style style:name="T2" style:family="text"><style:text-properties style:x="bold"/></style:style>'
    )
    deleted = "<text:tracked-changes><text:p>gone</text:p></text:tracked-changes>"
    body = deleted + "".join(f"<text:p>{tagged(chance, tags)}</text:p>" for _ in range(8))
    return packed(
        {
            "mimetype": "application/vnd.oasis.opendocument.text",
            "META-INF/manifest.xml": "<manifest/>",
            "content.xml": (
                f"{DECLARATION}<office:document-content {names}><office:automatic-styles>{styles}"
                f"</office:automatic-styles><office:body>{body}</office:body></office:document-content>"
            ),
            "styles.xml": f"<office:document-styles {names}><text:p>The header</text:p></office:document-styles>",
        },
        chance,
    )


def epub(chance: Random) -> bytes:
    """A book of two pages with both kinds of tables of contents."""
    tags = [
        lambda inside: f"<b>{inside}</b>",
        lambda inside: f'<a href="b.xhtml">{inside}</a>',
        lambda inside: "<br/>",
        lambda inside: "<code>fixed</code>",
    ]
    head = '<html xmlns="http://www.w3.org/1999/xhtml"><head><title>A title</title></head><body>'
    page = lambda: head + "".join(f"<p>{tagged(chance, tags)}</p>" for _ in range(5)) + "</body></html>"  # noqa: E731
    items = (
        '<item id="n" href="nav.xhtml" media-type="application/xhtml+xml"/>'
        '<item id="b" href="text/b%20b.xhtml" media-type="application/xhtml+xml"/>'
        '<item id="a" href="text/a.xhtml" media-type="application/xhtml+xml"/>'
        '<item id="c" href="toc.ncx" media-type="application/x-dtbncx+xml"/>'
    )
    return packed(
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": (
                '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles><rootfile '
                'full-path="OEBPS/book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
            ),
            "OEBPS/book.opf": (
                f'<package xmlns="http://www.idpf.org/2007/opf"><manifest>{items}</manifest>'
                '<spine><itemref idref="a"/><itemref idref="b"/></spine></package>'
            ),
            "OEBPS/nav.xhtml": (
                f'{head}<nav><ol><li><a href="text/a.xhtml">Chapter one</a></li></ol></nav></body></html>'
            ),
            "OEBPS/text/a.xhtml": page(),
            "OEBPS/text/b b.xhtml": page(),
            "OEBPS/toc.ncx": (
                f'{DECLARATION}<!DOCTYPE ncx PUBLIC "-//NISO//DTD ncx 2005-1//EN" '
                '"http://www.daisy.org/z3986/2005/ncx-2005-1.dtd">'
                '<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/"><navLabel><text>Chapter one</text></navLabel></ncx>'
            ),
        },
        chance,
    )


MAKERS = {
    "a.xlf": xliff_1,
    "b.xliff": xliff_2,
    "c.tmx": tmx,
    "strings.xml": android,
    "d.docx": docx,
    "e.pptx": pptx,
    "f.odt": odt,
    "g.epub": epub,
}
"""By the name that a file of each kind could have."""


def types(parts) -> str:
    """Return the list of what an Office document holds."""
    listed = "".join(f'<Override PartName="/{name}" ContentType="{kind}"/>' for name, kind in parts.items())
    return f'<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">{listed}</Types>'


def packed(members, chance: Random | None = None) -> bytes:
    """Return a zip file of some members, as one of many programs could have made it."""
    chance = chance or Random(0)
    out = BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        if chance.random() < 0.3:
            archive.comment = b"a comment"
        for name, content in members.items():
            info = zipfile.ZipInfo(name, (1980 + chance.randrange(40), 2, 3, 4, 5, 6))
            stored = name == "mimetype" or chance.random() < 0.2
            info.compress_type = zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED
            info.external_attr = chance.randrange(1 << 16) << 16
            with archive.open(info, "w", force_zip64=not stored and chance.random() < 0.1) as member:
                member.write(content.encode() if isinstance(content, str) else content)
    return out.getvalue()


def _ended(chance: Random, content: str) -> bytes:
    """Return a file in one of several encodings, with one of two kinds of line ends."""
    content = content.replace("\n", chance.choice(["\n", "\n", "\r\n"]))
    if content.startswith("<?xml") and chance.random() < 0.2:
        return content.replace("UTF-8", "UTF-16", 1).encode("utf-16")
    return content.encode("utf-8-sig" if chance.random() < 0.2 else "utf-8")
