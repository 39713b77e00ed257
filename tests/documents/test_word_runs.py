"""Word paragraphs with all kinds of runs: their tagged texts and the exact runs of the translation."""

import re

import pytest

from bitext.documents.document import Target
from tests.documents.changing import all_changed, changed
from tests.documents.test_office import BOLD, SPACE, of_word, paragraph, read, run

ITALIC = "<w:rPr><w:i/></w:rPr>"
BREAK, TAB = "<w:r><w:br/></w:r>", "<w:r><w:tab/></w:r>"


def char(kind):
    return f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>'


def code(text):
    return f"<w:r><w:instrText>{text}</w:instrText></w:r>"


def field(inside, *codes):
    return f"{char('begin')}{''.join(map(code, codes))}{char('separate')}{inside}{char('end')}"


def shouted(inside):
    return re.sub(r"(<w:t[^>]*>)([^<]*)", lambda text: text[1] + text[2].upper(), inside)


def spaced(text, properties=""):
    return run(text, properties, SPACE)


BEGIN = char("begin")
PAGE = field(run("3"), " PAGEREF _1 ")
NOTE = '<w:r><w:footnoteReference w:id="1"/></w:r>'
BOOKMARK = '<w:bookmarkStart w:id="1"/>'


@pytest.mark.parametrize(
    ("inside", "wholes", "after"),
    [
        # The properties of most letters count as plain, even if they are last; in a tie, those of the first.
        (
            spaced("One ", BOLD) + run("twenty"),
            [f"<w:r>{BOLD}One </w:r>twenty"],
            spaced("ONE ", BOLD) + run("TWENTY"),
        ),
        (run("One", BOLD) + run("two"), ["One<w:r>two</w:r>"], run("ONE", BOLD) + run("TWO")),
        (run("One", BOLD) + run("four"), [f"<w:r>{BOLD}One</w:r>four"], run("ONE", BOLD) + run("FOUR")),
        # Spaces have the properties of the preceding text; at the beginning, the plain ones.
        (
            run("Six", BOLD) + spaced(" ") + run("sheep", ITALIC) + spaced(" ", BOLD) + run("here too"),
            [f"<w:r>{BOLD}Six </w:r><w:r>{ITALIC}sheep </w:r>here too"],
            spaced("SIX ", BOLD) + spaced("SHEEP ", ITALIC) + run("HERE TOO"),
        ),
        # A tab or a break has the properties of its run; a bookmark has none and ends the group.
        (
            run("Say ten times", ITALIC)
            + f"<w:r>{BOLD}<w:t>One</w:t><w:br/><w:t>two</w:t></w:r>{BOOKMARK}{run('six', BOLD)}",
            [f"Say ten times<w:r>{BOLD}One <w:r>{BOLD}<w:br/></w:r>two</w:r>{BOOKMARK}<w:r>{BOLD}six</w:r>"],
            run("SAY TEN TIMES", ITALIC)
            + run("ONE", BOLD)
            + f"<w:r>{BOLD}<w:br/></w:r>{run('TWO', BOLD)}{BOOKMARK}{run('SIX', BOLD)}",
        ),
        # A single mark in a group needs no pair around it; marks at the ends are not part of the text.
        (
            run("One") + f"<w:r>{BOLD}<w:footnoteReference/></w:r>" + spaced(" two") + NOTE,
            [f"One<w:r>{BOLD}<w:footnoteReference/></w:r> two"],
            run("ONE") + f"<w:r>{BOLD}<w:footnoteReference/></w:r>" + spaced(" TWO") + NOTE,
        ),
        # A break in a link does not separate lines; one after it does if a sentence ended in the link.
        (
            f"<w:hyperlink>{run('One.')}{BREAK}{run('Two.')}</w:hyperlink>{BREAK}{run('Six')}",
            [f"One.{BREAK}Two.", "Six"],
            f"<w:hyperlink>{run('ONE.')}{BREAK}{run('TWO.')}</w:hyperlink>{BREAK}{run('SIX')}",
        ),
        # After a tab, each break separates lines, and so does a break without words before it.
        (
            run("Name") + TAB + run("Ann") + BREAK + run("Lee") + BREAK + run("too") + BREAK + BREAK + run("Six"),
            ["Name", "Ann", f"Lee {BREAK}too {BREAK}{BREAK}Six"],
            run("NAME") + TAB + run("ANN") + BREAK + run("LEE") + BREAK + run("TOO") + BREAK * 2 + run("SIX"),
        ),
        # White space between the elements is no text.
        (
            f"\n {spaced('One ')}\n <w:r>\n {BOLD}\n <w:t>two</w:t>\n <w:br/>\n <w:t>six</w:t>\n</w:r>\n"
            f"<w:hyperlink>\n {spaced(' ten')}\n {PAGE}\n</w:hyperlink>\n",
            [f"One <w:r>{BOLD}two <w:r>{BOLD}<w:br/></w:r>six</w:r><w:hyperlink> ten{PAGE}</w:hyperlink>"],
            f"\n {spaced('ONE ')}{run('TWO', BOLD)}<w:r>{BOLD}<w:br/></w:r>{run('SIX', BOLD)}"
            f"<w:hyperlink>{spaced(' TEN')}{PAGE}</w:hyperlink>\n",
        ),
        (BREAK + run("One"), ["One"], BREAK + run("ONE")),
        *[
            (f"<w:{name}>{run('One')}</w:{name}>{spaced(' two')}", [f"<w:{name}>One</w:{name}> two"], None)
            for name in ("ins", "moveTo", "dir", "bdo", "hyperlink")
        ],
        *[
            (
                f"{run('One')}<w:{name}><w:r><w:delText>no</w:delText></w:r></w:{name}>{spaced(' two')}",
                [f"One<w:{name}><w:r><w:delText>no</w:delText></w:r></w:{name}> two"],
                None,
            )
            for name in ("moveFrom", "del", "oMath")
        ],
        (f"<w:hyperlink/>{run('One')}<w:ins></w:ins>", ["One"], f"<w:hyperlink/>{run('ONE')}<w:ins></w:ins>"),
        (
            run("One") + "<w:r><w:cr/></w:r>" + run("two"),
            ["One <w:r><w:cr/></w:r>two"],
            run("ONE") + "<w:r><w:cr/></w:r>" + run("TWO"),
        ),
        # The space before a break stays if the source has it.
        (f"{spaced('One ')}{BREAK}{run('two')}", [f"One {BREAK}two"], f"{spaced('ONE ')}{BREAK}{run('TWO')}"),
        (run("One") + "<w:r><w:ptab/></w:r>" + run("two"), ["One", "two"], None),
        ("<w:r><w:t>On</w:t><w:lastRenderedPageBreak/><w:t>e</w:t></w:r>", ["One"], run("ONE")),
        (run("One", "<w:rPr><w:noProof/></w:rPr>") + spaced(" two"), ["One two"], run("ONE TWO")),
        (
            run("One", "<w:rPr><w:b/><w:noProof/></w:rPr>") + spaced(" two", BOLD),
            ["One two"],
            run("ONE TWO", BOLD),
        ),
    ],
)
def test_runs(inside, wholes, after):
    document = read(of_word(inside))
    assert [segment.source.full_text for segment in document.segments] == wholes
    assert paragraph(document.filled(all_changed(document))) == (after or shouted(inside))
    assert document.filled({}) == of_word(inside)


@pytest.mark.parametrize(
    ("inside", "wholes", "after"),
    [
        # The result of a field is text only if it is a link; nested fields are kept.
        (spaced("See ") + PAGE + spaced(" and ") + PAGE + run("."), [f"See {PAGE} and {PAGE}."], None),
        (
            run("No") + field(spaced("One ") + PAGE + run("two"), " hyper", "link x"),
            [f"No{BEGIN}{code(' hyper')}{code('link x')}{char('separate')}One {PAGE}two{char('end')}"],
            None,
        ),
        (
            run("No")
            + field(run("Site"), "HYPERLINK").replace(
                "HYPERLINK</w:instrText></w:r>", f"HYPERLINK</w:instrText></w:r>{PAGE}"
            ),
            [f"No{BEGIN}{code('HYPERLINK')}{PAGE}{char('separate')}Site{char('end')}"],
            None,
        ),
        (
            run("No") + field(run("me"), "IF") + run("pe"),
            [f"No{field(run('me'), 'IF')}pe"],
            run("NO") + field(run("me"), "IF") + run("PE"),
        ),
        # Unmatched field characters of this paragraph are kept in place, and so is a field in one run.
        (char("end") + run("No") + PAGE + run("pe"), [f"No{PAGE}pe"], None),
        (
            run("No") + BEGIN + PAGE + run("pe"),
            [f"No{BEGIN}{BEGIN}{code(' PAGEREF _1 ')}{char('separate')}3{char('end')}pe"],
            None,
        ),
        (
            f'<w:r><w:t>No</w:t><w:fldChar w:fldCharType="begin"/><w:fldChar w:fldCharType="end"/></w:r>{run("pe")}',
            [f"No{BEGIN}{char('end')}pe"],
            run("NO") + BEGIN + char("end") + run("PE"),
        ),
        *[
            (run("No") + before + run("One") + after, [f"No{before}One{after}"], None)
            for before, after in (
                ("<w:sdt><w:sdtContent>", "</w:sdtContent></w:sdt>"),
                ("<w:sdt><w:sdtPr><w:x/></w:sdtPr><w:sdtContent>", "</w:sdtContent></w:sdt>"),
                ("<w:smartTag><w:smartTagPr/>", "</w:smartTag>"),
                ("<w:customXml><w:customXmlPr/>", "</w:customXml>"),
                ("<w:customXml>", "</w:customXml>"),
            )
        ],
    ],
)
def test_fields(inside, wholes, after):
    test_runs(inside, wholes, after)


@pytest.mark.parametrize(
    "fixed",
    [
        PAGE,
        BEGIN + char("end"),
        f"{BEGIN}{code('HYPERLINK')}{char('end')}",
        field("", "HYPERLINK"),
        "<w:sdt><w:sdtPr/></w:sdt>",
        f"<w:sdt><w:sdtPr><w:dataBinding/></w:sdtPr><w:sdtContent>{run('a')}</w:sdtContent></w:sdt>",
        "<w:smartTag><w:smartTagPr/></w:smartTag>",
        "<w:smartTag/>",
    ],
)
def test_a_field_without_text_is_one_mark(fixed):
    document = read(of_word(run("No") + fixed + run("pe")))
    (segment,) = document.segments
    assert [(mark.raw, mark.pair) for mark in segment.source.marks] == [(fixed, None)]
    assert paragraph(document.filled(all_changed(document))) == run("NO") + fixed + run("PE")


def test_lines_without_a_translation_keep_their_properties():
    first = run("One", BOLD) + spaced(" is a sentence.")
    document = read(of_word(first + BREAK + run("Two", BOLD) + spaced(" is one, too.")))
    last = paragraph(document.filled({1: Target(changed(document.segments[1].source))}))
    assert last == first + BREAK + run("TWO", BOLD) + spaced(" IS ONE, TOO.")
