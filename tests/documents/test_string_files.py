"""JSON, YAML, .strings and .properties files with all constructs."""

import json

import pytest

from bitext.documents.document import read_document
from tests.documents.changing import ENGLISH_SPANISH, all_changed
from translucid.ground.errors import UserError


def read_and_fill(name, text, languages=ENGLISH_SPANISH):
    """Return the segments of a file, each as `line, note: text`, and the translated file."""
    document = read_document(name, text.encode(), languages)
    lines = []
    for segment in document.segments:
        lines.append(f"{segment.place.removeprefix('line ')}, {segment.note}: {segment.source.full_text}")
    return lines, document.filled(all_changed(document)).decode()


PROPERTIES = r"""# A note
! and more

first = One\
    two\u0021
# of the next
#   one
second : It''s {0}
key\ with\:signs	Three
lang=no
answer = no
   indented=four\tfive\nsix\x \\
! Java
a=It's '{'0'}' of {0}
b=It's {n} '{' x
c=It's here {n}
empty=
last=seven"""


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_java_properties(end):
    lines, after = read_and_fill("a.properties", PROPERTIES.replace("\n", end))
    numbers = [4, 8, 9, 11, 12, 12, 12, 14, 15, 16, 18] if end != "\r" else [1] * 11
    assert lines == [
        f"{number}, {line}"
        for number, line in zip(
            numbers,
            [
                "None: Onetwo!",
                "of the next one: It's {0}",
                "None: Three",
                "None: no",
                "None: four",
                "None: five",
                "None: sixx \\",
                "Java: It's '{'0'}' of {0}",
                "None: It's {n} '{' x",
                "None: It's here {n}",
                "None: seven",
            ],
            strict=True,
        )
    ]
    expected = (
        PROPERTIES.replace("One\\\n    two\\u0021", "ONETWO!").replace("It''s", "IT''S").replace("Three", "THREE")
    )
    expected = expected.replace("answer = no", "answer = NO").replace(r"four\tfive\nsix\x", r"FOUR\tFIVE\nSIXX")
    expected = expected.replace("It's '{'0'}' of", "IT''S '{'0'}' OF").replace("It's", "IT'S").replace(" x\n", " X\n")
    assert after == expected.replace(" here", " HERE").replace("seven", "SEVEN").replace("\n", end)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a=one\\u12\n", "a.properties:1: has a \\u without four digits"),
        ("x=y z\na=one\\\\\\u12\n", "a.properties:2: has a \\u without four digits"),
        ("x=y z\n\na=one\\\n\\u12\n", "a.properties:4: has a \\u without four digits"),
    ],
)
def test_broken_escapes_of_properties(text, message):
    with pytest.raises(UserError) as error:
        read_and_fill("a.properties", text)
    assert str(error.value).startswith(message)


def test_escaped_backslashes_and_pairs_of_escapes():
    assert read_and_fill("a.properties", r"a=one\\u12 two\ud83d\ude00") == (
        ["1, None: one\\u12 two😀"],
        r"a=ONE\\U12 TWO\uD83D\uDE00",
    )


STRINGS = """/* Of a
 button */
"a.b" = "One \\"two\\"\\n\\t\\U00e9\\u00C9\\q";
// next
key_2="Three";

"c"="4";"lang"="no";"x" ; bare = word;
/* a */ /* b */ "d" = "five";
"e" = "It is
here\\r\\\\";
// more

"f" = "so";
"""


def test_strings_of_ios():
    lines, after = read_and_fill("a.strings", STRINGS)
    assert lines == [
        '3, Of a\n button: One "two"',
        "3, Of a\n button: éÉq",
        "5, next: Three",
        "8, b: five",
        "9, None: It is",
        "9, None: here",
        "13, more: so",
    ]
    expected = STRINGS.replace(r"One \"two\"\n\t\U00e9\u00C9\q", r"ONE \"TWO\"\n\tÉÉQ").replace("Three", "THREE")
    assert after == expected.replace("five", "FIVE").replace("It is\nhere", r"IT IS\nHERE").replace("so", "SO")


@pytest.mark.parametrize(
    ("text", "line"),
    [('"a" = "b"\n"c" = "d";', 1), ('\n"a = "b";', 2), ('"a"="b c";\n/* x', 2), ('"a"=;', 1), ('"a" "b";', 1)],
)
def test_broken_strings_of_ios(text, line):
    with pytest.raises(UserError, match=rf'^a\.strings:{line}: has no entry of the form "key" = "value"; here'):
        read_and_fill("a.strings", text)


JSON = r"""{"a": {"b": ["One", {"c": "two"}, ["three", "lang", "no"]], "d": "four", "lang": "no"},
 "e": "It's <b>\u0027x\u0027</b> \u0026 \u003c",
 "f": "x \/ caf\u00e9", "g": {}, "h": [], "i": 12, "j": true, "k": "#fff", "": "five", "l": "six: {\"m\", [n]}"}"""


def test_json():
    lines, after = read_and_fill("a.json", JSON)
    assert lines == [
        "1, a.b: One",
        "1, a.b.c: two",
        "1, a.b: three",
        "1, a.b: lang",
        "1, a.b: no",
        "1, a.d: four",
        "2, e: It's <b>'x'</b> & <",
        "3, f: x / café",
        "3, None: five",
        '3, l: six: {"m", [n]}',
    ]
    expected = JSON
    for word in ("One", '"two"', "three", "four", "five"):
        expected = expected.replace(word, word.upper())
    expected = expected.replace('"lang", "no"', '"LANG", "NO"')
    expected = expected.replace("It's <b>\\u0027x", "IT\\u0027S <b>\\u0027X").replace(
        r"x \/ caf\u00e9", r"X \/ CAF\u00c9"
    )
    assert after == expected.replace(r"six: {\"m\", [n]}", r"SIX: {\"M\", [N]}").replace("<b>", r"\u003cb>").replace(
        "</b>", r"\u003c/b>"
    )


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ('["One", {"x": "three"}]', ["1, None: One", "1, x: three"]),
        ('"One"', ["1, None: One"]),
        ("[" * 200 + '"one"' + "]" * 200, ["1, None: one"]),
        ("[" * 201 + "]" * 201, "a.json: is nested too deep"),
        ("[" * 9000, "a.json: is nested too deep"),
        ('{"a": 1,\n "b": }', "a.json:2: is not JSON: Expecting value"),
    ],
)
def test_other_files_of_json(text, lines):
    if isinstance(lines, list):
        assert read_and_fill("a.json", text)[0] == lines
    else:
        with pytest.raises(UserError) as error:
            read_and_fill("a.json", text)
        assert str(error.value).startswith(lines)


ARB = """{"@@locale": "en", "@@x": "text here", "hi": "Hello", "@hi": {"description": "D",
 "placeholders": {"a": {"example": "it is"}}}, "bye": "Bye", "@bye": {"description": 1}, "so": "So long",
 "@so": "nothing here", "in": {"x": "inner"}, "@in": {"description": "E"}}"""


def test_an_arb():
    lines, after = read_and_fill("a.arb", ARB, ("en", "pt-BR"))
    assert lines == ["1, D: Hello", "2, bye: Bye", "2, so: So long", "3, E: inner"]
    expected = (
        ARB.replace('"en"', '"pt_BR"').replace("Hello", "HELLO").replace("Bye", "BYE").replace("So long", "SO LONG")
    )
    assert after == expected.replace("inner", "INNER")
    assert read_and_fill("a.ARB", ARB, ("en", None))[1] == after.replace("pt_BR", "en")
    assert read_and_fill("a.arb", '["One"]') == (["1, None: One"], '["ONE"]')
    assert read_and_fill("a.arb", '"One"') == (["1, None: One"], '"ONE"')
    assert read_and_fill("a.json", '{"@a": "One", "_comment": "So", "b": "two"}')[0] == ["1, b: two"]
    document = read_document("a.arb", ARB.encode(), ("en", "pt-BR"))
    assert document.filled({}).decode() == ARB


@pytest.mark.parametrize(
    ("content", "lines", "changes"),
    [
        (
            {
                "a": {
                    "message": "Hi $T$",
                    "description": "D e",
                    "placeholders": {"t": {"content": "$1", "example": "E x"}},
                }
            },
            ["D e: Hi $T$"],
            {"Hi ": "HI "},
        ),
        ({"a": {"defaultMessage": "One", "description": {"x": "so it is"}}}, ["a.defaultMessage: One"], {"One": "ONE"}),
        ({"a": {"defaultMessage": "One", "description": "D e"}}, ["D e: One"], {"One": "ONE"}),
        (
            {
                "messages": [
                    {"id": "One", "message": "One", "translation": "", "placeholders": [{"id": "It", "string": "%s"}]}
                ]
            },
            ["messages.message: One"],
            {'"translation": ""': '"translation": "ONE"'},
        ),
        ([{"id": "a", "description": "D e", "translation": "One"}], ["D e: One"], {'"One"': '"ONE"'}),
        (
            {"a": {"description": "D e", "one": "one cat", "other": "cats", "hash": "x y"}},
            ["D e: one cat", "D e: cats"],
            {"one cat": "ONE CAT", "cats": "CATS"},
        ),
        ({"a": {"string": "One", "developer_comment": "D e", "context": "c d"}}, ["D e: One"], {"One": "ONE"}),
        ({"@metadata": {"authors": ["Ana Sea"]}, "b": "Two"}, ["b: Two"], {"Two": "TWO"}),
        (
            {"b": "{{PLURAL:$1|a house|0=none|$1 houses}} so"},
            ["b: {{PLURAL:$1|a house|0=none|$1 houses}} so", "b: a house", "b: none", "b: $1 houses"],
            {"a house|0=none|$1 houses}} so": "A HOUSE|0=NONE|$1 HOUSES}} SO"},
        ),
        (
            {"form": {"message": "Message", "description": "Description", "name": "Name"}},
            ["form.message: Message", "form.description: Description", "form.name: Name"],
            {"Message": "MESSAGE", "Description": "DESCRIPTION", "Name": "NAME"},
        ),
        ({"a": {"message": "One", "title": "Two"}}, ["a.message: One", "a.title: Two"], {"One": "ONE", "Two": "TWO"}),
    ],
)
def test_what_is_about_messages_in_json_stays(content, lines, changes):
    text = json.dumps(content)
    found, after = read_and_fill("a.json", text)
    assert [line.partition(", ")[2] for line in found] == lines
    for before, new in changes.items():
        text = text.replace(before, new)
    assert after == text


YAML = """en:
  a: One
  b:
    - two
    - 'three'
    - {c: "four", d: five, e: [six]}
  lang: no
  1: seven
  f: &x eight
  g: *x
  h: !foo bar
  i: !!str nine
  j: 10
  k: |
     ten
       eleven

  l: >+
     twelve
     so


  m: |-
    - x
  n: "one\\ttwo\\u00e9\\x41"
  o: 'it''s'
  p: plain
    goes on
  ? [r, s]
  : fourteen
---
q: thirteen
"""


def test_yaml():
    lines, after = read_and_fill("a.yaml", YAML)
    assert lines == [
        "2, en.a: One",
        "4, en.b: two",
        "5, en.b: three",
        "6, en.b.c: four",
        "6, en.b.d: five",
        "6, en.b.e: six",
        "8, en.1: seven",
        "9, en.f: eight",
        "12, en.i: nine",
        "14, en.k: ten",
        "14, en.k: eleven",
        "18, en.l: twelve so",
        "23, en.m: - x",
        "25, en.n: one",
        "25, en.n: twoéA",
        "26, en.o: it's",
        "27, en.p: plain goes on",
        "30, en.?: fourteen",
        "32, q: thirteen",
    ]
    expected = YAML
    for word in ("One", "two", "three", "five", "six", "seven", "eight", "nine", "eleven"):
        expected = expected.replace(word, word.upper())
    expected = expected.replace("twelve\n     so", "TWELVE SO").replace("- x", "- X").replace("it''s", "IT''S")
    expected = (
        expected.replace("one\\tTWO\\u00e9\\x41", "ONE\\tTWOÉA")
        .replace("fourteen", "FOURTEEN")
        .replace("plain\n    goes on", "PLAIN GOES ON")
    )
    assert after == expected.replace("     ten", "     TEN").replace('"four"', '"FOUR"').replace("thirteen", "THIRTEEN")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n  - a\n b: c\n", "a.yaml:3: is not YAML: expected '<document start>'"),
        ("a: x y\nb: \x01\n", "a.yaml:2: is not YAML: unacceptable character"),
        ("a: b: c\n", "a.yaml:1: is not YAML: mapping values are not allowed here"),
        ("x: y\na: *x\n", "a.yaml:2: is not YAML: found undefined alias 'x'"),
        ("[" * 201 + "]" * 201, "a.yaml: is nested too deep"),
    ],
)
def test_other_files_than_yaml_are_refused(text, message):
    with pytest.raises(UserError) as error:
        read_and_fill("a.yaml", text)
    assert str(error.value).startswith(message)


def test_no_text_of_many_yaml_documents_is_lost():
    """The nodes of a document may have the same `id()` as those of earlier documents."""
    texts = [f"A text of {word * 3}" for word in "abcdefghijklmnopqrstuvwxyz"]
    lines, after = read_and_fill("a.yaml", "".join(f"---\nkey: {text}\nlist:\n- {text}\n" for text in texts))
    assert [line.partition(": ")[2] for line in lines] == [text for text in texts for _ in range(2)]
    assert after.count("A TEXT OF") == 52


def test_yaml_may_be_nested_deep():
    assert read_and_fill("a.yaml", "[" * 200 + "one" + "]" * 200) == (["1, None: one"], "[" * 200 + "ONE" + "]" * 200)


def test_lines_are_counted_from_the_first_and_keys_are_shortened():
    assert read_and_fill("a.strings", '\n"a"="one two";') == (["2, None: one two"], '\n"a"="ONE TWO";')
    assert read_and_fill("a.json", '\n{"a": "one"}')[0] == ["2, a: one"]
    assert read_and_fill("a.yaml", f"\n{'k' * 90}: one two\n")[0] == [f"2, {'k' * 80}: one two"]
