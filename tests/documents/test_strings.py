"""JSON, YAML, .strings, .properties and tables as documents."""

import csv
import io
import json
import re

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from bitext.documents.document import Target, read_document
from bitext.documents.strings.messages import is_language
from bitext.documents.tagged_text import TaggedText
from tests.documents.changing import ENGLISH_SPANISH, all_changed, installed, shouted
from translucid.ground.errors import UserError


def read(name, text):
    return read_document(name, text.encode() if isinstance(text, str) else text, ENGLISH_SPANISH)


def filled(name, text, *translations):
    document = read(name, text)
    assert len(document.segments) == len(translations), document.segments
    targets = {
        i: Target(TaggedText(translation, segment.source.marks))
        for i, (translation, segment) in enumerate(zip(translations, document.segments, strict=True))
    }
    return document.filled(targets).decode()


_WORD = st.sampled_from(
    [
        "cat",
        "the",
        "é",
        "“x”",
        "it's",
        'say "x"',
        "a: b",
        "# c",
        "- d",
        "%s",
        "{name}",
        "<b>e</b>",
        "<br/>",
        "\\",
        "yes",
        "a, b",
    ]
    + [  # without line breaks, which have tests of their own
        "\t",
        "😀",
        "<code>x</code>",
        "&",
        "(f)",
        "1",
        "https://x.org/a",
        "@g",
        "%(n)d",
        "*h",
        "'i'",
        "!j",
        "a/b",
        "\u2028",
    ]
)
_TEXT = st.lists(_WORD, min_size=1, max_size=8).map(" ".join)
TAG = re.compile(r"(<code>x</code>|</?b>|<br/>)")
_TREE = st.recursive(
    _TEXT | st.none() | st.integers() | st.booleans(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abcdefg"), inner, max_size=5),
    max_leaves=15,
)


def _uppercased_line(line):
    if not is_language(TAG.sub(" ", line)):
        return line
    parts = TAG.split(line)
    parts[::2] = map(shouted, parts[::2])  # the others are tags
    return "".join(parts)


def uppercased(tree):
    """Return the tree with its strings in upper case, except for tags, placeholders and lines without language."""
    if isinstance(tree, dict):
        return {key: uppercased(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [uppercased(value) for value in tree]
    if isinstance(tree, str) and is_language(tree):
        return "".join(map(_uppercased_line, re.split(r"(\t)", tree)))
    return tree


@given(_TREE, st.sampled_from([None, 2]), st.booleans())
@settings(max_examples=40, deadline=None)
def test_json_keeps_all_but_its_words(tree, indent, ascii_only):
    text = json.dumps(tree, indent=indent, ensure_ascii=ascii_only)
    document = read("a.json", text)
    assert document.filled({}) == text.encode()
    assert json.loads(document.filled(all_changed(document))) == uppercased(tree)


@given(_TREE, st.sampled_from([None, "'", '"', "|", ">"]), st.sampled_from([False, True, None]), st.booleans())
@settings(max_examples=40, deadline=None)
def test_yaml_keeps_all_but_its_words(tree, style, flow, unicode):
    text = yaml.safe_dump(tree, default_style=style, default_flow_style=flow, allow_unicode=unicode, width=40)
    document = read("a.yaml", text)
    assert document.filled({}) == text.encode()
    assert yaml.safe_load(document.filled(all_changed(document))) == uppercased(yaml.safe_load(text))


@given(
    st.lists(st.lists(_TEXT, min_size=2, max_size=2), min_size=1, max_size=8),
    st.sampled_from(",;\t|"),
    st.sampled_from([0, 1]),
)
@settings(max_examples=40, deadline=None)
def test_a_table_keeps_all_but_its_column(rows, delimiter, quoting):
    file = io.StringIO()
    writer = csv.writer(file, delimiter=delimiter, quoting=quoting)
    writer.writerows([["key", "text"], *rows])
    document = read("a.csv", file.getvalue())
    assert document.filled({}) == file.getvalue().encode()
    after = list(
        csv.reader(io.StringIO(document.filled(all_changed(document)).decode(), newline=""), delimiter=delimiter)
    )
    assert after == [["key", "text"], *([key, uppercased(value)] for key, value in rows)]


@given(st.dictionaries(st.sampled_from("abcdefg"), _TEXT, max_size=5), st.sampled_from(["utf-8", "utf-16"]))
@settings(max_examples=40, deadline=None)
def test_ios_keeps_all_but_its_words(strings, encoding):
    def text(values):
        return "".join(
            f"/* {key} */\n{json.dumps(key)} = {json.dumps(v, ensure_ascii=False)};\n" for key, v in values.items()
        )

    document = read("a.strings", text(strings).encode(encoding))
    assert document.filled({}) == text(strings).encode(encoding)
    assert document.filled(all_changed(document)).decode(encoding) == text(uppercased(strings))


@pytest.mark.parametrize(
    ("kind", "load"),
    [(".json", json.loads), (".yaml", lambda text: list(yaml.safe_load_all(text))), (".yml", yaml.safe_load)],
)
def test_real_files(kind, load):
    tested = 0
    for file in installed(kind, most=12, largest=30_000):
        content = file.read_bytes()
        try:
            before = load(content)
            document = read(file.name, content)
        except (UserError, ValueError, yaml.YAMLError):
            continue
        tested += 1
        assert document.filled({}) == content
        after = load(document.filled(all_changed(document)))
        assert json.dumps(after, default=str).lower() == json.dumps(before, default=str).lower()
    if not tested:
        pytest.skip("none is installed")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.yaml", "a: b\nc: [", "a.yaml:2: is not YAML"),
        ("a.yaml", "a: " + "{a: " * 201, "a.yaml: is nested too deep"),
        ("a.csv", 'a,text\n1,"b', "a.csv:2: has a quote that is not closed"),
        ("a.csv", 'a,text\n1,"b"c', "a.csv:2: has characters behind a closed quote"),
        ("a.csv", "k,en,fr\na,one,\n", "a.csv:1: has no column for es, but columns for other languages: fr"),
    ],
)
def test_broken_files_are_refused_in_one_line(name, text, message):
    with pytest.raises(UserError) as error:
        read(name, text)
    assert str(error.value).startswith(message)


def test_json_keeps_how_it_escapes():
    assert (
        filled("a.json", r'{"a": "x \/ y", "b": "caf\u00e9"}', "á / b", "té") == r'{"a": "\u00e1 \/ b", "b": "t\u00e9"}'
    )
    assert filled("a.json", '{"a": "one", "b": "é"}', "á", "í") == '{"a": "á", "b": "í"}'
    assert filled("a.json", r'["\u003cb\u003eone\u003c/b\u003e two"]', "uno dos").endswith(r'dos"]')
    assert "<" not in filled("a.json", r'["\u003cb\u003eone\u003c/b\u003e two"]', "uno dos")


@pytest.mark.parametrize(
    ("text", "translation", "after"),
    [
        ("a: one # note\n", "uno", "a: uno # note\n"),
        ("a: one\n", "no", 'a: "no"\n'),
        ("a: one\n", "uno: dos", 'a: "uno: dos"\n'),
        ("a: [one, 2]\n", "uno, dos", 'a: ["uno, dos", 2]\n'),
        ("a: 'one'\n", "l'uno", "a: 'l''uno'\n"),
        ("a: &x one\nb: *x\n", "uno", "a: &x uno\nb: *x\n"),
        ("a: !!str one\n", "uno", "a: !!str uno\n"),
        ("a: one\n  goes on\n", "uno", "a: uno\n"),
        ("a: |\n  one\n  two\n\nb: 1\n", "uno|dos", "a: |\n  uno\n  dos\n\nb: 1\n"),
        ("a: >-\n  one\n  two\n", "uno dos", "a: >-\n  uno dos\n"),
        ("a: >\n  one\n\n  two\n", "uno|dos", "a: >\n  uno\n\n  dos\n"),
        ("a: >\n  one\n\n\n\n  two\n\nb: 1\n", "uno|dos", "a: >\n  uno\n\n\n\n  dos\n\nb: 1\n"),
        ("a: >\n\n  one\n\n  two\n", "uno|dos", "a: >\n\n  uno\n\n  dos\n"),
        ("a: >-\r\n  one\r\n\r\n\r\n  two\r\n", "uno|dos", "a: >-\r\n  uno\r\n\r\n\r\n  dos\r\n"),
        ("a: one\n", "u\ufffen\uffffo", 'a: "u\\ufffen\\uffffo"\n'),
        ("a: |\r\n    one\r\n", "uno", "a: |\r\n    uno\r\n"),
        ("a: |2\n    one\n", "uno", 'a: "  uno\\n"\n'),
    ],
)
def test_yaml_keeps_its_styles(text, translation, after):
    assert filled("a.yaml", text, *translation.split("|")) == after


@pytest.mark.parametrize(
    ("text", "translations", "after"),
    [
        ("# note\na = one\n", ["uno"], "# note\na = uno\n"),
        ("a one\\\n   two\r\nb:x\n", ["ñ", "é"], "a \\u00F1\r\nb:\\u00E9\n"),
        ("a\\ b\\=c=one\n! x\n", ["uno"], "a\\ b\\=c=uno\n! x\n"),
        ("a=\\u0020one \\\\ \\t\n", ["uno \\"], "a=\\ uno \\\\ \\t\n"),
        ("a=It''s {0}\nb=It's one\n", ["l'uno {0}", "l'uno"], "a=l''uno {0}\nb=l'uno\n"),
        ("a=é one\n", ["ñ"], "a=ñ\n"),
        ("a=one", ["😀"], "a=\\uD83D\\uDE00"),
        ("a=\nb\n=c d", ["e f"], "a=\nb\n=e f"),
    ],
)
def test_properties(text, translations, after):
    assert read("a.properties", text).filled({}) == text.encode()
    assert filled("a.properties", text, *translations) == after


def test_properties_in_latin_1_stay_so():
    document = read("a.properties", "a=café\nb=\xff".encode("latin-1"))
    assert document.filled({}) == "a=café\nb=\xff".encode("latin-1")
    assert document.filled({0: Target(TaggedText("tés"))}) == b"a=t\\u00E9s\nb=\xff"


@pytest.mark.parametrize(
    ("text", "translations", "after"),
    [
        ("key,en,es\na,one,\nb,two,dos\nc,three\n", ["1a", "2b", "3c"], "key,en,es\na,one,1a\nb,two,2b\nc,three,3c\n"),
        ("id;English\n1;one\n2;https://x.org\n", ["uno"], "id;English\n1;uno\n2;https://x.org\n"),
        ("Source,note\none,x y\n", ["u, no"], 'Source,note\n"u, no",x y\n'),
        ("id,Title\n1,\"one\"\n", ["u\"no"], "id,Title\n1,\"u\"\"no\"\n"),
        ("id,x\n1,one two\n2,three\n", ["uno dos", "tres"], "id,x\n1,uno dos\n2,tres\n"),
        ("Here it is.\nOne more.\n", ["Aquí.", "Otra."], "Aquí.\nOtra.\n"),
        ("k,Source String,Translation,Context\na,one,,x y\n", ["u"],
         "k,Source String,Translation,Context\na,one,u,x y\n"),
        ("Type,Default content,Translated content\np,one,\n", ["u"],
         "Type,Default content,Translated content\np,one,u\n"),
        ("location,source,target,id\na,one,,\n", ["u"], "location,source,target,id\na,one,u,\n"),
        ("k,Locale,Default content,Translated content\na,es,one,\nb,fr,two,\n", ["u"],
         "k,Locale,Default content,Translated content\na,es,one,u\nb,fr,two,\n"),
        ("English (United States),Spanish (Spain),Spanish\none,,\n", ["u"],
         "English (United States),Spanish (Spain),Spanish\none,,u\n"),
        ("k,en-GB,es_MX\na,one,\n", ["u"], "k,en-GB,es_MX\na,one,u\n"),
        ("k,English(en),Spanish(es)\na,one,\n", ["u"], "k,English(en),Spanish(es)\na,one,u\n"),
        ("title_en,title_es,text_en,text_es\na,,b c,\n", ["u", "d"], "title_en,title_es,text_en,text_es\na,u,b c,d\n"),
        ("Term,Description,Spanish\none,it is,\n", ["u"], "Term,Description,Spanish\none,it is,u\n"),
        ("key,text,Zieltext\na,one two,\n", ["u"], "key,text,Zieltext\na,one two,u\n"),
        ("id,Title,Image\n1,one,\n", ["u"], "id,Title,Image\n1,u,\n"),
        ("sep=;\r\nk;en;es\r\na;one, two;\r\n", ["u; d"], "sep=;\r\nk;en;es\r\na;one, two;\"u; d\"\r\n"),
        ('"sep=\t"\nen\tes\none\t\n', ["u"], '"sep=\t"\nen\tes\none\tu\n'),
    ],
)  # fmt: skip
def test_columns_of_a_table(text, translations, after):
    assert filled("a.csv", text, *translations) == after


@pytest.mark.parametrize(
    ("text", "translation", "after"),
    [
        ("k\ten\tes\na\tone, two; three\t\n", 'u "v", w', 'k\ten\tes\na\tone, two; three\tu "v", w\n'),
        ('k\ten\tes\na\t"one" and two\t\n', '"u"\tv', 'k\ten\tes\na\t"one" and two\t"u" v\n'),
        ('k\ten\tes\na\t"one ""two"""\t\n', 'u "v"', 'k\ten\tes\na\t"one ""two"""\t"u ""v"""\n'),
        ("source\ttarget\r\none\r\n", "u", "source\ttarget\r\none\tu\r\n"),
        ('en\tes\n5" pipe\t\n', "u", 'en\tes\n5" pipe\tu\n'),
    ],
)
def test_tab_separated_tables_may_have_no_quotes(text, translation, after):
    document = read("a.tsv", text)
    (segment,) = document.segments
    assert document.filled({}) == text.encode()
    assert document.filled({0: Target(TaggedText(translation))}) == after.encode()
    assert read("a.TSV", after).segments[0].source == segment.source


@pytest.mark.parametrize(
    ("header", "language", "column"),
    [
        ("en,es-ES,es,es-MX", "es-MX", 3),
        ("en,es-ES,es,es-AR", "es-MX", 2),  # a code without a region stands for all regions
        ("en,es-ES,es,es-AR", "es", 2),
        ("en,fr,es-AR,es-ES", "es", 2),  # the first of several regions
    ],
)
def test_of_columns_that_differ_in_the_region_the_nearest_is_filled(header, language, column):
    content = f"{header}\none,,,\n".encode()
    document = read_document("a.csv", content, ("en", language))
    row = ["one", "", "", ""]
    row[column] = "uno"
    assert document.filled({0: Target(TaggedText("uno"))}) == f"{header}\n{','.join(row)}\n".encode()


def test_what_a_table_has_is_not_asked_for_again():
    assert [
        segment.existing and segment.existing.text for segment in read("a.csv", "en,es\none,\ntwo,dos\n").segments
    ] == [None, "dos"]


def test_a_column_of_keys_is_no_language():
    for header in ("id,source,target", "No,English,Indonesian"):
        content = f"{header}\nab,one two,\n".encode()
        document = read_document("a.csv", content, ("en", "id"))
        assert document.filled({0: Target(TaggedText("satu"))}) == content.replace(b",\n", b",satu\n", 1)


@pytest.mark.parametrize("name", ["a.json", "a.yaml", "a.strings", "a.properties", "a.csv", "a.md", "a.txt", "a.html"])
def test_half_a_surrogate_pair_breaks_no_file(name):
    content = {"a.json": '{"a": "one"}', "a.yaml": "a: one", "a.strings": '"a" = "one";', "a.properties": "a=one"}
    document = read(name, content.get(name, "one two\n"))
    after = document.filled({0: Target(TaggedText("u\ud800no x"))}).decode()
    assert "u\ufffdno" in after or "u\\ud800no" in after.lower()
    assert len(read(name, after).segments) == 1
