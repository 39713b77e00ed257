"""In every format, protected spans, line ends, blocks and numbers survive a translation."""

import json
from html import escape

import pytest

from bitext.documents.document import KINDS, Target, read_document
from bitext.documents.placeholders import PlaceholderStrategy
from bitext.documents.tagged_text import TaggedText, parts_of
from bitext.protected_spans import TABLE, PlaceholderSyntax
from tests.documents.changing import ENGLISH_SPANISH, placed_and_filled
from tests.probes.samples import PROSE, STRINGS


def _document(name, text):
    content = {**STRINGS, **PROSE}[name](text)
    return read_document(name, content if isinstance(content, bytes) else content.encode(), ENGLISH_SPANISH)


def test_each_kind_of_strings_has_a_sample():
    without = {".ftl", ".tmx", ".xlsx"}
    for kind in KINDS:
        if kind.module.startswith("strings.") or kind.module.startswith("xml."):
            assert {f"a{ending}" for ending in kind.endings} & STRINGS.keys() or set(kind.endings) & without


@pytest.mark.parametrize("name", [*STRINGS, *PROSE])
def test_each_kind_of_span_is_kept(name):
    for row in TABLE:
        for example in row.examples:
            text = f"They see {example} here."
            (segment,) = _document(name, text).segments
            source = segment.source
            is_break = name in ("a.srt", "a.vtt") and "\\h" in example  # in subtitles, a space
            if source.syntax not in row.syntaxes or is_break or (name == "a.xml" and row.name == "shortcut of GTK"):
                continue
            marked = "".join(mark.raw for mark in source.marks)
            kept = [part for part, _, _ in parts_of(source)]
            assert (
                example in kept
                or escape(example, quote=False) in marked
                or not any(map(str.isalnum, source.text.replace("They see", "").replace("here.", "")))
            ), (row.name, example, source)


@pytest.mark.parametrize("name", STRINGS)
@pytest.mark.parametrize("end", ["\n", "\n\n"])
def test_each_line_of_a_string_is_translated(name, end):
    text = f"They like soccer{end}She sings{end}They like a very long house near the sea\nand the beach."
    document = _document(name, text)
    wrapped = document.segments[2].source
    assert [segment.source.text for segment in document.segments[:2]] == ["They like soccer", "She sings"]
    assert len(document.segments) == 3 and len(wrapped.marks) == 1
    targets = {i: Target(segment.source) for i, segment in enumerate(document.segments)}
    targets[1] = Target(TaggedText("Canta"))
    filled = read_document(name, document.filled(targets), (None, None) if name == "a.ts" else ENGLISH_SPANISH)
    assert "Canta" in document.filled(targets).decode()
    assert "She sings" not in [segment.source.text for segment in filled.segments] or name in {
        "a.po",
        "a.xlf",
        "a.ts",
    } | {
        "a.xcstrings",
        "a.csv",
    }


@pytest.mark.parametrize("name", STRINGS)
@pytest.mark.parametrize(
    ("text", "sources"),
    [
        ("<p>They like <b>it</b>.</p><p>She sings.</p>", ["They like it.", "She sings."]),
        ("<ul><li>The house</li>\n<li>The beach</li></ul> more", ["The house", "The beach", "more"]),
        ("<!-- wp:list --><ul><li>She sings.</li></ul><!-- /wp:list -->", ["She sings."]),
        ("<!DOCTYPE html><html><body><h1>The house</h1>is old</body></html>", ["The house", "is old"]),
        ("One<br><br>two", ["One", "two"]),
        ("See <link>the house</link> and <1>it</1>", ["See the house and it"]),
        ("{0} no house|{1} a house|]1,Inf] %count% houses", ["no house", "a house", "%count% houses"]),
        ("a house|%count% houses", ["a house", "%count% houses"]),
        ("House files|*.house|All files (*.*)|*.*", ["House files", "All files"]),
        ("Images (*.png *.jpg);;All files (*)", ["Images", "All files"]),
        ("The house\tCtrl+H", ["The house"]),
        ("The house (Ctrl+Shift+H)", ["The house"]),
        ("Use {{ x | upper }} or a||b", ["Use {{ x | upper }} or a||b"]),
    ],
)
def test_blocks_forms_and_shortcuts_divide_a_string(name, text, sources):
    if name == "a.xml" and not text.startswith("<"):
        return  # Android has no such forms.
    document = _document(name, text)
    assert [segment.source.text.replace("<b>", "").replace("</b>", "") for segment in document.segments] == sources


def test_a_divided_string_keeps_everything_else():
    lines, filled = placed_and_filled(
        "a.json", json.dumps({"a": "<p>It <b>is</b>.</p>\n<p>Two\tF5</p>", "b": "{0} a|[2,*] b"})
    )
    assert [line.partition(": ")[2] for line in lines] == ["It <b>is</b>.", "Two", "a", "b"]
    assert json.loads(filled) == {"a": "<p>IT <b>IS</b>.</p>\n<p>TWO\tF5</p>", "b": "{0} A|[2,*] B"}


@pytest.mark.parametrize(
    ("comment", "text", "sources", "marks"),
    [
        (
            "",
            "See :ref:`the beach <the-beach>` and ``x_y``.",
            ["See the beach and ."],
            [":ref:`", " <the-beach>`", "``x_y``"],
        ),
        ("", "See `the house <https://a.org/b>`_ (:doc:`house`) [1]_ |name|", None, ["`", " <https://a.org/b>`_"]),
        (
            "#: a.rst:3",
            "They like *old* houses and **beaches**::",
            ["They like old houses and beaches"],
            ["*", "*", "**", "**"],
        ),
        (
            "",
            "B<--beach> opens I<house>, E<lt> and F</etc/x>.",
            [" opens house,  and ."],
            ["B<--beach>", "I<", ">", "E<lt>"],
        ),
        (
            "#: man/a.1:3",
            "See B<house>(1) or B<I<the> beach>",
            ["See  or the beach"],
            ["B<house>(1)", "B<", "I<", ">", ">"],
        ),
        (
            "#, md-text",
            'See [the *old* house](https://a.org "x") `y`',
            ["See the old house "],
            ["[", "*", "*", '](https://a.org "x")'],
        ),
        (
            "#: en/a.txt:3",
            "See linkgit:git-log[1], link:a.html[the *old* house] and <<b,the beach>>",
            ["See , the old house and the beach"],
            ["linkgit:git-log[1]", "link:a.html[", "*", "*", "]", "<<b,", ">>"],
        ),
        (
            "#: a.adoc:3",
            "The `house` has _two_ {doors}, kbd:[Ctrl+F] or +x+",
            ["The  has two ,  or "],
            ["`house`", "_", "_", "{doors}", "kbd:[Ctrl+F]", "+x+"],
        ),
        (
            "#: a.texi:3",
            "The @code{a{b}} opens @emph{the @file{house}}@dots{}, a@@b (@pxref{Beach, , b}).",
            ["The  opens the , ab ()."],
            ["@code{a{b}}", "@emph{", "@file{house}", "}", "@dots{}", "@@", "@pxref{Beach, , b}"],
        ),
        (
            "",
            "The \\emph{old \\texttt{house}} in~\\ref{a} has 5\\% of {\\bf rooms} \\ldots and $x$",
            None,
            ["\\emph{", "\\texttt{house}", "}", "\\ref{a}"],
        ),
    ],
)
def test_the_markup_of_documentation(comment, text, sources, marks):
    header = 'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\n'
    content = f'{header}{comment}\nmsgid {json.dumps(text, ensure_ascii=False)}\nmsgstr ""\n'
    (segment,) = read_document("a.po", content.encode(), ENGLISH_SPANISH).segments
    assert sources is None or [segment.source.text] == sources
    assert [mark.raw for mark in segment.source.marks][: len(marks)] == marks


def test_a_number_is_one_stand_in():
    source = TaggedText("She sings at 10:30.", syntax=PlaceholderSyntax.prose)
    strategy = PlaceholderStrategy.first(source).after("Canta a las 1030.")
    (stand_in,) = strategy.stand_ins
    assert strategy.after(f"Canta a las {stand_in.word}.") is None
    assert strategy.target(f"Canta a las {stand_in.word}.", []).text == "Canta a las 10:30."
