"""Markdown as a document."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tests.documents.changing import ENGLISH_SPANISH, all_changed, installed
from translucid.documents.document import Target
from translucid.documents.kinds import read_document
from translucid.documents.marked import Marked

READER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def read(text):
    return read_document("a.md", text.encode(), ENGLISH_SPANISH)


def texts(text):
    return [segment.source.text for segment in read(text).segments]


def filled(text, *translations):
    document = read(text)
    assert len(document.segments) == len(translations), texts(text)
    targets = zip(document.segments, translations, strict=True)
    return document.filled({i: Target(Marked(new, one.source.marks)) for i, (one, new) in enumerate(targets)}).decode()


def structure(text):
    """Return what a reader finds, in lower case: its tokens, with neither the lines of a paragraph nor white space."""
    found, words = [], ""
    for token in READER.parse(text):
        found.append(
            (token.type, token.tag, token.info.lower(), token.content.lower() if token.type != "inline" else "")
        )
        for child in token.children or []:
            if child.type in ("text", "softbreak", "hardbreak"):
                words += child.content
            if child.type not in ("text", "softbreak"):
                code = child.content if child.type in ("code_inline", "html_inline") else ""
                attributes = sorted((name, str(value).lower()) for name, value in child.attrs.items())
                found.append((child.type, child.tag, " ".join(code.split()), str(attributes)))
                words += child.content if child.type == "image" else ""
    return found, "".join(words.split()).lower()


_WORD = st.sampled_from(
    [
        "cat",
        "the",
        "é",
        "*so*",
        "**big *x* y**",
        "`a | b`",
        "``a ` b``",
        "[text](http://x.org/a_b)",
        '[a *b*](<c d> "A title")',
    ]
    + [
        "![alt *x*](i.png 'it')",
        "[Ref]",
        "[some][ref]",
        "[ref][]",
        "<b>bold</b>",
        "<br>",
        "\\*",
        "&amp;",
        "&copy;",
        "a_b",
        "5 * 3",
    ]
    + [
        "https://x.org/_a_",
        "<https://x.org>",
        "~~gone~~",
        "{name}",
        "%s",
        "a < b",
        "- x",
        "1. y",
        "# z",
        "$x_1$",
        "~",
        "_so_",
        "a\\|b",
    ]
    + ["[^1]", "snake_", "(c)", "\\\\", "!"]
)
_LINE = st.lists(_WORD, min_size=1, max_size=8).map(" ".join)
_TEXT = st.lists(_LINE, min_size=1, max_size=3).flatmap(
    lambda lines: st.sampled_from(["\n", "  \n", "\\\n"]).map(lambda end: end.join(lines))
)
_BLOCK = st.one_of(
    _TEXT,
    _LINE.map("# {}".format),
    _LINE.map("## {} ##".format),
    _LINE.map("{}\n===".format),
    _TEXT.map(lambda text: "> " + text.replace("\n", "\n> ")),
    _TEXT.map(lambda text: "> - " + text.replace("\n", "\n>   ")),
    st.lists(_TEXT, min_size=1, max_size=3).map(
        lambda items: "\n".join("- " + item.replace("\n", "\n  ") for item in items)
    ),
    st.lists(_LINE, min_size=2, max_size=2).map(
        lambda cells: "| a b | c |\n|---|---|\n| " + " | ".join(re.sub(r"(?<!\\)\|", r"\\|", c) for c in cells) + " |"
    ),
    st.sampled_from(
        ["```py\nx = 1\n```", "    code here", "<div>\nhtml here\n</div>", "---", "***", "[ref]: http://r 'A ref'"]
    ),
)


@given(st.lists(_BLOCK, min_size=1, max_size=8), st.sampled_from(["\n", "\r\n"]))
@settings(max_examples=300, deadline=None)
def test_another_reader_sees_the_same_structure(blocks, end):
    text = "\n\n".join([*blocks, "[ref]: http://x.org"]).replace("\n", end)
    document = read(text)
    assert document.filled({}) == text.encode()
    after = document.filled(all_changed(document)).decode()
    assert structure(after) == structure(text)


@given(st.text("ab *_`[]()<>!&#-+=|~\\\n1.:{}$\"'^x/\t>", max_size=120))
@settings(max_examples=500, deadline=None)
def test_any_text_comes_out_as_it_was_and_takes_translations(text):
    document = read(text)
    assert document.filled({}) == text.encode()
    document.filled(all_changed(document))


@pytest.mark.parametrize("file", installed(".md", most=60), ids=lambda file: file.name)
def test_real_files_keep_their_structure(file):
    content = file.read_bytes()
    document = read_document(file.name, content, ENGLISH_SPANISH)
    assert document.filled({}) == content
    before, after = (structure(data.decode()) for data in (content, document.filled(all_changed(document))))
    assert after[0] == before[0]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("---\ntitle: no\n---\n\nyes\n", ["yes"]),
        ("+++\ntitle = 'no'\n+++\nyes\n", ["yes"]),
        ("```\nno\n```\n\n    no\n\n<div>\nno\n</div>\n", []),
        ("~~~\n$$\n~~~\nyes\n\n~~~\n$$\n~~~\n", ["yes"]),
        ("$$\nx y\n$$\nyes", ["yes"]),
        (":::{note} no\nyes\n:::\n(target)=\n## yes {#id}\n", ["yes", "yes"]),
        ("import X from 'y';\n\nimport it from here\n", ["import it from here"]),
        ("{% if no %}\nyes\n{% endif %}\n", ["yes"]),
        ("!!! note no\n    code\n", []),
        ("> [!NOTE]\n> yes\n> more\n", ["yes more"]),
        ("- [ ] yes\n- [x] more `x`\n- https://x.org\n", ["yes", "more "]),
        ("[ref]: http://x 'no'\n\n[^1]: yes it is\n", ["yes it is"]),
        ("see {ref}`no <x>` or $a_b$ or {{ no }}.", ["see  or  or ."]),
        ("[![yes](a.png)](b)", ["yes"]),
        ("| a | b \\| c |\n|-|-|\n| | `x` |\n", ["a", "b | c"]),
    ],
)
def test_what_is_translated(text, found):
    assert texts(text) == found


@pytest.mark.parametrize(
    ("text", "translation", "after"),
    [
        ("One\ntwo\n", "uno dos", "uno dos\n"),
        ("# One #\n", "uno", "# uno #\n"),
        ("> One\n> two\n", "uno dos", "> uno dos\n"),
        ("One\n", "1. uno", "1\\. uno\n"),
        ("One \\\\\n[^1]\n", "uno \\", "uno \\\\\n[^1]\n"),
        ("One\n", "- uno", "\\- uno\n"),
        ("One\n", "*uno* [x] <b> `y` a_b _c &amp; 5 * 3", "\\*uno\\* \\[x\\] \\<b> \\`y\\` a_b \\_c &amp;amp; 5 * 3\n"),
        ("See https://x.org/a_", "ver https://x.org/_a_*b", "ver https://x.org/_a_*b"),
        ("|One|\n|-|\n", "a | b", "|a \\| b|\n|-|\n"),
        ("[One]\n\n[one]: x\n", "uno", "[uno][One]\n\n[one]: x\n"),
    ],
)
def test_what_is_written(text, translation, after):
    document = read(text)
    marks = document.segments[0].source.marks
    at_ends = tuple(
        mark.__class__(len(translation) if mark.at else 0, mark.raw, mark.side, mark.pair) for mark in marks
    )
    assert document.filled({0: Target(Marked(translation, at_ends))}).decode() == after


def test_texts_and_titles_of_links_and_images():
    text = "A ![cat *x*](a.png 'It\\'s') and [b](c \"T\") d."
    assert texts(text) == ["A  and b d.", "cat x", "It's", "T"]
    document = read(text)
    targets = all_changed(document)
    targets[2] = Target(Marked("l'x"))
    assert document.filled(targets).decode() == "A ![CAT *X*](a.png 'l\\'x') AND [B](c \"T\") D."
    del targets[0]
    assert document.filled(targets).decode() == "A ![CAT *X*](a.png 'l\\'x') and [b](c \"T\") d."


def test_line_breaks_keep_what_stands_before_the_next_line():
    assert filled("> - one\\\n>   two\n", "uno dos").count("\\\n>   ") == 1
    assert filled("one  \n  two\n", "uno dos").count("  \n  ") == 1


def test_nothing_takes_long():
    for text in ("[" * 20_000, "*a " * 20_000, "`" * 20_000, "![a](" * 5_000, "> " * 5_000 + "a", "$a" * 20_000):
        assert read(text).filled({}) == text.encode()
