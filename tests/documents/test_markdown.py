"""Markdown as a document."""

import re
from textwrap import indent

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from bitext.documents.document import Target, read_document
from bitext.documents.tagged_text import Side, TaggedText
from tests.documents.changing import ENGLISH_SPANISH, all_changed, installed
from translucid.ground.errors import UserError

READER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


def read(text):
    return read_document("a.md", text.encode(), ENGLISH_SPANISH)


def texts(text):
    return [segment.source.text for segment in read(text).segments]


def filled(text, *translations):
    document = read(text)
    assert len(document.segments) == len(translations), texts(text)
    targets = zip(document.segments, translations, strict=True)
    return document.filled(
        {i: Target(TaggedText(translation, segment.source.marks)) for i, (segment, translation) in enumerate(targets)}
    ).decode()


def structure(text):
    """Return the tokens of a reader and the words in lower case, without line breaks and white space."""
    tokens, words = [], ""
    for token in READER.parse(text):
        tokens.append(
            (token.type, token.tag, token.info.lower(), token.content.lower() if token.type != "inline" else "")
        )
        for child in token.children or []:
            if child.type in ("text", "softbreak", "hardbreak"):
                words += child.content
            if child.type not in ("text", "softbreak"):
                code = child.content if child.type in ("code_inline", "html_inline") else ""
                attributes = sorted((name, str(value).lower()) for name, value in child.attrs.items())
                tokens.append((child.type, child.tag, " ".join(code.split()), str(attributes)))
                words += child.content if child.type == "image" else ""
    return tokens, "".join(words.split()).lower()


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
@settings(max_examples=40, deadline=None)
def test_another_reader_sees_the_same_structure(blocks, end):
    text = "\n\n".join([*blocks, "[ref]: http://x.org"]).replace("\n", end)
    document = read(text)
    assert document.filled({}) == text.encode()
    after = document.filled(all_changed(document)).decode()
    assert structure(after) == structure(text)


_PLAIN = st.lists(
    st.sampled_from(
        ["cat", "the", "*so*", "`a b`", "[[Page]]", "[[page|here]]", ":smile:", "==lit==", "{a.b}", "{/* no */}", "é."]
    ),
    min_size=1,
    max_size=5,
).map(lambda words: " ".join(["It", *words, "is"]))


def _indented(text):
    return indent(text, "    ")


def _around(inner):
    """Return blocks in the syntax of documentation tools around inner blocks."""
    within = st.lists(inner, min_size=1, max_size=3).map("\n".join)
    lead = st.sampled_from(["!!! note", "??? tip", '???+ tip "{}"', '!!! danger "{}"', '=== "{}"', '===! "{}"'])
    return st.one_of(
        st.tuples(lead, _PLAIN, within).map(lambda of: f"{of[0].format(of[1])}\n\n{_indented(of[2])}"),
        st.tuples(_PLAIN, within).map(lambda of: f"Term\n:   {of[0]}\n\n{_indented(of[1])}"),
        st.tuples(_PLAIN, within).map(lambda of: f"-   {of[0]}\n\n{_indented(of[1])}"),
        st.tuples(_PLAIN, within).map(lambda of: f":::tip[{of[0]}]\n\n{of[1]}\n:::\n"),
    )


_TOOLS = st.recursive(
    st.one_of(
        _PLAIN.map("{}\n".format),
        st.lists(_PLAIN.map(lambda text: f"| {text.replace('|', '')}\n"), min_size=1, max_size=3).map("".join),
        _PLAIN.map("*[HTML]: {}\n".format),
        st.sampled_from(
            ["[TOC]\n", "\\newpage\n", "$$\nx\n\ny\n$$\n", "{/* no\n\nno */}\n", "```\n!!! no\n    no\n```\n"]
        ),
    ),
    _around,
    max_leaves=8,
)


@given(st.lists(_TOOLS, min_size=1, max_size=4).map("\n".join))
@settings(max_examples=40, deadline=None)
def test_what_tools_add_stays_and_all_text_is_translated(text):
    document = read(f"# One\n\n{text}\n\n# End\n")
    after = document.filled(all_changed(document)).decode()
    assert after.lower() == f"# one\n\n{text.lower()}\n\n# end\n"
    assert after.startswith("# ONE\n") and after.endswith("\n# END\n")
    assert not re.search(r"\bIt\b|\bis\b|\bthe\b", after)


@given(st.text("ab *_`[]()<>!&#-+=|~\\\n1.:{}$\"'^x/\t>", max_size=120))
@settings(max_examples=40, deadline=None)
def test_any_text_is_restored_and_accepts_translations(text):
    document = read(text)
    assert document.filled({}) == text.encode()
    document.filled(all_changed(document))


@pytest.mark.parametrize("source", ["> go \\\n>\tto it\n", "> go  \n>\tto it\n", "> go \\\n> to it\n"])
def test_a_line_break_keeps_the_sign_of_its_quote_before_a_tab(source):
    document = read(source)
    before, after = (structure(text) for text in (source, document.filled(all_changed(document)).decode()))
    assert after[0] == before[0]


def test_real_files_keep_their_structure():
    changed_structure = []
    for file in installed(".md", most=8):
        content = file.read_bytes()
        document = read_document(file.name, content, ENGLISH_SPANISH)
        assert document.filled({}) == content, file
        before, after = (structure(data.decode()) for data in (content, document.filled(all_changed(document))))
        if after[0] != before[0]:
            changed_structure.append(file)
    assert not changed_structure


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("~~~\n$$\n~~~\nyes\n\n~~~\n$$\n~~~\n", ["yes"]),
        (":::{note} no\nyes\n:::\n(target)=\n## yes {#id}\n", ["yes", "yes"]),
        ("import X from 'y';\n\nimport it from here\n", ["import it from here"]),
        ("{% if no %}\nyes\n{% endif %}\n", ["yes"]),
        (
            '!!! note "Title"\n    yes\n    ??? tip\n        ```\n        no\n        ```\n        more\n    and\n',
            ["Title", "yes", "more", "and"],
        ),
        ('- one\n\n    !!! note "Title"\n        two\n\n    three\n', ["one", "Title", "two", "three"]),
        ('=== "Tab"\n\n    ```\n    no\n    ```\n\n    - yes\n\nmore\n', ["Tab", "yes", "more"]),
        ("- !!! note\n\n      yes\n\n  more\n", ["yes", "more"]),
        ("!!! Really, this is text.\n", ["!!! Really, this is text."]),
        ("Term\n:   yes\n    it is\n\n    more\n\nOther\n: two\n", ["Term", "yes it is", "more", "Other", "two"]),
        ("| a\n|-\n| b\n", ["a", "b"]),
        ("\\newpage\n\n\\begin{align}\nx\n\\end{align}\n\n\\[\ny\n\\]\nyes\n", ["yes"]),
        ("$$ is more than money\n", ["$$ is more than money"]),
        ("See [[Page]], [[page|the page]] and ![[a.png|300]].", ["See , the page and ."]),
        ("See [[1]](x.html) here", ["See [1] here"]),
        ("A :smile: and at 10:30:45 ==is lit== or a==b", ["A  and at 10:30:45 is lit or a==b"]),
        ("Press ++ctrl+c++ now. ^a-1b\n", ["Press  now."]),
        ("> [!tip]- yes\n> more\n", ["yes more"]),
        ("# Yes {/* no */}\n\n{/*\nno\n\nno\n*/}\n\n{/* is text\n", ["Yes", "{/* is text"]),
        ("import {\n  A,\n} from 'a';\n\nyes {props.name} and {a, b}\n", ["yes  and {a, b}"]),
        ("<Tab a={{b: 1}} on={() => c}>yes</Tab> more", ["yes more"]),
        ("- [ ] yes\n- [x] more `x`\n- https://x.org\n", ["yes", "more "]),
        ("see {ref}`no <x>` or $a_b$ or {{ no }}.", ["see  or  or ."]),
        ("[![yes](a.png)](b)", ["yes"]),
    ],
)
def test_texts_that_are_translated(text, expected):
    assert texts(text) == expected


def test_mdx_has_expressions_and_modules():
    text = "export const a = {\n  b: 1,\n\n  c: 'no',\n}\n\nimport it from 'here'\n\nYes {a, b} <C d={e}/> and so\n"
    document = read_document("a.mdx", text.encode(), ENGLISH_SPANISH)
    assert [segment.source.full_text for segment in document.segments] == ["Yes {a, b} <C d={e}/> and so"]
    after = document.filled({0: Target(TaggedText("a < b {c}", document.segments[0].source.marks))}).decode()
    assert after.endswith("\n\na \\< {a, b}b<C d={e}/> \\{c}\n")


@pytest.mark.parametrize("levels", [9, 30, 99])
def test_lists_are_read_at_any_level(levels):
    text = "".join("  " * level + f"- item {level}\n" for level in range(levels)) + "\nend\n"
    assert texts(text) == [*(f"item {level}" for level in range(levels)), "end"]
    assert texts("> " * levels + "one\n\ntwo\n") == ["one", "two"]


@pytest.mark.parametrize("sign", ["> ", "- "])
def test_too_deep_nesting_is_refused_with_its_line(sign):
    with pytest.raises(UserError, match=r"a\.md:3: has lists and quotes nested more than"):
        read("one\n\n" + sign * 1000 + "two\n\nthree\n")


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
        ("One\n", "1.", "1\\.\n"),
        ("One\n", "2) uno", "2\\) uno\n"),
        ("One\n", ">uno", "\\>uno\n"),
        ("One\n", "+", "\\+\n"),
        ("One\n", "+ uno", "\\+ uno\n"),
        ("One\n", "    uno", "uno\n"),
        ("One\n", "uno\n\n# dos\r- tres\u2028x", "uno # dos - tres x\n"),
        ("# One\n", "C #", "# C \\#\n"),
        ("# One\n", "C ##", "# C \\##\n"),
        ("# One\n", "C#", "# C#\n"),
        ("One\n", "===", "\\===\n"),
        ("One\n", "---", "\\---\n"),
        ("One\n", "* * *", "\\* * *\n"),
        ("One\n", "| uno", "\\| uno\n"),
        ("One\n", "!!! uno", "\\!!! uno\n"),
        ("One\n---\n", "|a|", "\\|a\\|\n---\n"),
        ("|One|\n|-|\n", "a \\| b\nc", "|a \\\\\\| b c|\n|-|\n"),
        ("- One\n", "uno\n- dos", "- uno - dos\n"),
        ("*One*: two\n", "uno: dos", "*uno: dos*\n"),
        ('!!! note "One"\n', 'a "b"', '!!! note "a ”b”"\n'),
        ("See https://x.org/a_", "ver https://x.org/_a_*b", "ver https://x.org/_a_*b"),
        ("|One|\n|-|\n", "a | b", "|a \\| b|\n|-|\n"),
        ("[One]\n\n[one]: x\n", "uno", "[uno][One]\n\n[one]: x\n"),
    ],
)
def test_written_translations(text, translation, after):
    document = read(text)
    marks = document.segments[0].source.marks

    def at_an_end(mark):
        offset = len(translation) if mark.offset else 0
        return mark.__class__(offset, mark.raw, mark.side, mark.pair)

    target = TaggedText(translation, tuple(map(at_an_end, marks)))
    assert document.filled({0: Target(target)}).decode() == after


def test_texts_and_titles_of_links_and_images():
    text = "A ![cat *x*](a.png 'It\\'s') and [b](c \"T\") d."
    assert texts(text) == ["A  and b d.", "cat x", "It's", "T"]
    document = read(text)
    targets = all_changed(document)
    targets[2] = Target(TaggedText("l'x"))
    assert document.filled(targets).decode() == "A ![CAT *X*](a.png 'l\\'x') AND [B](c \"T\") D."
    del targets[0]
    assert document.filled(targets).decode() == "A ![CAT *X*](a.png 'l\\'x') and [b](c \"T\") d."


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_texts_and_titles_may_go_on_over_lines(end):
    text = '> See ![one\n> *two*](a.png "three\n> four") and [b](c "five\n> six").\n'.replace("\n", end)
    assert texts(text) == ["See  and b.", "one two", "three four", "five six"]
    document = read(text)
    assert document.filled({}) == text.encode()
    after = document.filled(
        {1: Target(TaggedText("1 2")), 2: Target(TaggedText("3\n4")), 3: Target(TaggedText("5 6"))}
    ).decode()
    assert after == f'> See ![1 2](a.png "3 4") and [b](c "5 6").{end}'
    assert document.filled(all_changed(document)).decode() == (
        f'> SEE ![ONE *TWO*](a.png "THREE FOUR") AND [B](c "FIVE SIX").{end}'
    )


def test_what_stands_behind_a_line_break_begins_no_block():
    document = read("one  \ntwo\n")
    (source,) = (segment.source for segment in document.segments)
    (mark,) = source.marks
    for begins in ("- x", "===", "|-|-|", "3. x", "# x", "* x", "> x"):
        target = TaggedText(f"uno {begins}", (mark.__class__(3, mark.raw, mark.side, mark.pair),))
        assert structure(document.filled({0: Target(target)}).decode())[0] == structure("one  \ntwo\n")[0], begins


def test_line_breaks_keep_what_stands_before_the_next_line():
    assert filled("> - one\\\n>   two\n", "uno dos").count("\\\n>   ") == 1
    assert filled("one  \n  two\n", "uno dos").count("  \n  ") == 1


def test_signs_without_end_stay_as_they_are():
    """The time is measured in test_growth.py."""
    for text in ("[" * 1_000, "*a " * 1_000, "`" * 1_000, "![a](" * 1_000, "$a" * 1_000):
        assert read(text).filled({}) == text.encode()


def test_a_break_without_spaces_parts_two_words():
    (segment,) = read("one<br>two <img src='x'> three").segments
    assert segment.source.text == "one two  three"
    assert {mark.side for mark in segment.source.marks} == {Side.alone}
