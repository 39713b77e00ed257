"""gettext files in detail: their segments and the translated files."""

import pytest

from bitext.documents.document import Target, read_document
from bitext.documents.strings.plural_forms import PluralForms, categories
from bitext.documents.strings.po import broken_format, columns, quoted
from bitext.documents.tagged_text import TaggedText
from tests.documents.changing import ENGLISH_SPANISH, all_changed

HEADER = """msgid ""
msgstr ""
"Language: es\\n"
"Content-Type: text/plain; charset=UTF-8\\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\\n"

"""
PLURAL = 'msgid "one cat"\nmsgid_plural "%d cats"\n'


def read_and_fill(text, languages=ENGLISH_SPANISH):
    """Return the segments of a file as (source, place, existing translation), and the translated file."""
    document = read_document("a.po", text.encode(), languages)
    segments = [
        (segment.source.full_text, segment.place, segment.existing and segment.existing.full_text)
        for segment in document.segments
    ]
    return segments, document.filled(all_changed(document)).decode()


def test_a_file_with_every_kind_of_entry():
    text = """# translator
#. extracted
#: a.c:1
#, c-format, fuzzy
#| msgid "Old"
msgctxt "menu"
msgid "_One %d"
msgstr "Uno"

#| msgid "Old cat"
msgid "%d cat"
msgid_plural "%d cats"
msgstr[0] "gato"
msgstr[1] ""

#, icu-format
msgid "{n, plural, one {a cat} other {# cats}}"
msgstr "{n, plural, one {x} other {y}}"

#, c-format
msgid "5% of %s"
msgstr ""

# translucid: old; remark
msgid "Five"
msgstr "Cinco"

#~ msgid "gone"
#~ msgstr "x"
"""
    segments, after = read_and_fill(HEADER + text)
    assert segments == [
        ("One %d", "line 13", None),
        ("%d cat", "line 17, for 1", "gato"),
        ("%d cats", "line 17, for 0, 2, 3 …", None),
        ("a cat", "line 23", "x"),
        ("# cats", "line 23", "y"),
        ("5% of %s", "line 27", None),
        ("Five", "line 31", "Cinco"),
    ]
    expected = text.replace('"Uno"', '"_ONE %d"')
    expected = expected.replace('#| msgid "Old cat"', '#, fuzzy\n#| msgid "Old cat"')
    expected = expected.replace('[0] "gato"\nmsgstr[1] ""', '[0] "%d CAT"\nmsgstr[1] "%d CATS"')
    expected = expected.replace("#, icu", "#, fuzzy, icu").replace("{x} other {y}", "{A CAT} other {# CATS}")
    expected = expected.replace(
        '#, c-format\nmsgid "5% of %s"\nmsgstr ""',
        '# translucid: Check the placeholders: one is broken.\n#, fuzzy, c-format\nmsgid "5% of %s"\nmsgstr "5% OF %s"',
    )
    expected = expected.replace("# translucid: old; remark\n", "#, fuzzy\n").replace("Cinco", "FIVE")
    assert after == HEADER + expected


@pytest.mark.parametrize(
    ("rule", "forms", "segments", "form_count"),
    [
        ("2; plural=(n != 1)", 3, ["one cat|for 1", "%d cats|for 0, 2, 3 …"], 2),
        ("2; plural=(n != 1)", 1, ["one cat|for 1", "%d cats|for 0, 2, 3 …"], 2),
        ("1; plural=0", 1, ["%d cats|for 0, 1, 2 …"], 1),
        ("3; plural=n==1?0:n==2?1:2", 3, ["one cat|for 1", "%d cats|for 2", "%d cats|for 0, 3, 4 …"], 3),
        ("3; plural=n==1?0:1", 3, ["one cat|for 1", "%d cats|for 0, 2, 3 …", "%d cats|form 2"], 3),
        ("2; plural=n>1", 2, ["%d cats|for 0, 1", "%d cats|for 2, 3, 4 …"], 2),
    ],
)
def test_plurals_have_the_forms_of_the_header(rule, forms, segments, form_count):
    header = HEADER.replace("2; plural=(n != 1)", rule)
    found_segments, after = read_and_fill(header + PLURAL + "".join(f'msgstr[{form}] ""\n' for form in range(forms)))
    assert [f"{text}|{place.removeprefix('line 7, ')}" for text, place, _ in found_segments] == segments
    lines = [
        f'msgstr[{form}] "{segments[form].partition("|")[0].upper().replace("%D", "%d")}"' for form in range(form_count)
    ]
    assert after == f"{header}#, fuzzy\n{PLURAL}" + "\n".join(lines) + "\n"


UNSET = (
    HEADER.replace("UTF-8", "CHARSET").replace(" es", " ").replace("=2; plural=(n != 1)", "=INTEGER; plural=EXPRESSION")
)
ONE, ONE_AFTER = 'msgid "one"\nmsgstr ""\n', '#, fuzzy\nmsgid "one"\nmsgstr "ONE"\n'


@pytest.mark.parametrize(
    ("header", "languages", "after"),
    [
        ("#, fuzzy\n" + UNSET, ("en", "pt_BR"), HEADER.replace("es\\n", "pt_BR\\n").replace("!= 1", "> 1")),
        ("#, fuzzy, x\n" + UNSET, ENGLISH_SPANISH, "#, x\n" + HEADER),
        ("#, fuzzy\n" + HEADER, ENGLISH_SPANISH, "#, fuzzy\n" + HEADER),
        (HEADER, ("en", "de"), HEADER),
        ("", ENGLISH_SPANISH, ""),
        ('msgctxt "c"\nmsgid ""\nmsgstr ""\n\n', ENGLISH_SPANISH, 'msgctxt "c"\nmsgid ""\nmsgstr ""\n\n'),
        (
            'msgid ""\nmsgstr "X: y\\n"\n\n',
            ("en", "es"),
            'msgid ""\nmsgstr "X: y\\n"\n"Language: es\\n"\n"Plural-Forms: nplurals=2; plural=(n != 1);\\n"\n\n',
        ),
        (
            'msgid ""\nmsgstr "X: y\\n"\n\n',
            ("en", None),
            'msgid ""\nmsgstr "X: y\\n"\n"Plural-Forms: nplurals=2; plural=(n != 1);\\n"\n\n',
        ),
        (HEADER.replace('"Language: es', '"language: es'), ENGLISH_SPANISH, HEADER.replace('"Language', '"language')),
    ],
)
def test_the_header_is_completed(header, languages, after):
    assert read_and_fill(header + ONE, languages)[1] == after + ONE_AFTER


def test_without_translations_the_header_is_not_completed():
    assert read_document("a.po", (UNSET + ONE).encode(), ENGLISH_SPANISH).filled({}) == (UNSET + ONE).encode()


def test_the_least_confidence_and_all_doubts_are_in_the_comment():
    document = read_document("a.po", (HEADER + PLURAL + 'msgstr[0] ""\nmsgstr[1] ""\n').encode(), ENGLISH_SPANISH)
    targets = {
        0: Target(TaggedText("un gato"), "memory", 0.9, ("a: b\n c", "d: e")),
        1: Target(TaggedText("%d gatos"), "memory", 0.456, ("d: e",)),
    }
    after = document.filled(targets).decode().removeprefix(HEADER)
    assert (
        after
        == f'# translucid: The confidence is 46%. A: b c. D: e.\n{PLURAL}msgstr[0] "un gato"\nmsgstr[1] "%d gatos"\n'
    )
    fuzzy = document.filled({**targets, 1: Target(TaggedText("%d gatos"))}).decode()
    assert "\n#, fuzzy\nmsgid" in fuzzy


def test_a_file_without_line_wrapping_stays_so():
    long, wrapped = "one two " * 10 + "three", '"' + "ONE TWO " * 9 + 'ONE "\n"TWO THREE"'
    assert columns(long) == 85
    entry = f'msgid "{long}"\nmsgstr ""\n'
    assert read_and_fill(HEADER + entry)[1].endswith(f'msgstr "{long.upper()}"\n')
    entry = f'msgid ""\n"{long[:40]}"\n"{long[40:]}"\nmsgstr ""\n'
    assert read_and_fill(HEADER + entry)[1].endswith(f'msgstr ""\n{wrapped}\n')


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("a\nb", ["", "a\\n", "b"]),
        ("a\n", ["a\\n"]),
        ("a\nb\n", ["", "a\\n", "b\\n"]),
        ('\t"\\\a\b\f\v\r', [r"\t\"\\\a\b\f\v\r"]),
        ("x" * 70, ["x" * 70]),
        ("x" * 71, ["", "x" * 71]),
        ("日" * 35, ["日" * 35]),
        ("日" * 35 + "x", ["", "日" * 35 + "x"]),
        ("Ａ" * 36, ["", "Ａ" * 36]),
        ("é" * 70, ["é" * 70]),
        ("a" * 90 + " b", ["", "a" * 90 + " ", "b"]),
        ("ab " * 25 + "  c", ["", "ab " * 25 + "  ", "c"]),
        ("one-two " * 11, ["", "one-two " * 9 + "one-", "two one-two "]),
        ("ab " * 24 + "c\\n d", ["", "ab " * 24 + "c\\\\n ", "d"]),
        ("ab " * 25 + "cd", ["", "ab " * 25 + "cd"]),
        ("ab " * 25 + "cde", ["", "ab " * 25, "cde"]),
        ("", [""]),
    ],
)
def test_strings_are_wrapped_at_79_columns(text, lines):
    assert quoted(text, "msgstr") == "\n".join(f'"{line}"' for line in lines)


def test_strings_of_other_widths():
    assert quoted("ab " * 40, "msgid", width=None) == '"' + "ab " * 40 + '"'
    assert quoted("a\nb", "msgid", "\r\n") == '""\r\n"a\\n"\r\n"b"'
    assert quoted("a b c d e", "msgid", width=17) == '"a b c d e"'
    assert quoted("a b c d e", "msgid", width=16) == '""\n"a b c d e"'
    assert quoted("a b c d e", "msgid", width=8) == '""\n"a b c "\n"d e"'


@pytest.mark.parametrize(
    ("flag", "source", "target", "doubt"),
    [
        ("c", "%d %s", "%s %d", None),
        ("c", "%2$s %1$d", "%1$d %2$s", None),
        ("c", "5%", "5%", "one is broken"),
        ("c", "5%", "5", None),
        ("c", "%%", "", None),
        ("c", "a", "100% b", "%b is too much"),
        ("c", "%d a %d", "%d a", "%d is lost"),
        ("c", "%d %s", "a", "%d is lost, %s is lost"),
        ("python", "%(n)03d", "%(n)d", None),
        ("python", "%(n)d", "%(n)s", "%(n)d is lost, %(n)s is too much"),
        ("python-brace", "{a:.2f} {b!r}", "{b} {a}", None),
        ("python-brace", "{{x}}", "{{y}}", None),
        ("python-brace", "a {b}", "{b", "one is broken"),
        ("python-brace", "5%", "%", None),
        ("qt", "%1", "%1 %2", "%2 is too much"),
        ("qt", "%L1 5%", "%1 %", "%L1 is lost, %1 is too much"),
        ("scheme", "~a ~%", "~a ~", None),
        ("scheme", "~a", "~s", "~a is lost, ~s is too much"),
        ("scheme", "a", "~~", None),
        ("boost", "%1% %|2$d|", "%1%", "%|2$d| is lost"),
        ("object-pascal", "%0:s", "%s", None),
        ("java", "{0}", "", None),
        ("sh", "$a", "", None),
        ("nosuch", "%s", "", None),
        ("kde", "%1 is 5%", "%1 es el 5%", None),
        ("icu", "{n, plural, other {a}}", "{n, plural, other {b}}", None),
        ("ruby", "%<n>d", "%<n>d", None),
        ("ruby", "%<n>d", "%<m>d", "%(n)d is lost, %(m)d is too much"),
    ],
)
def test_arguments_of_placeholders_are_compared(flag, source, target, doubt):
    result = broken_format(["fuzzy", f"{flag}-format"], source, target, False)
    assert result == (doubt and f"placeholders: {doubt}")


def test_a_plural_form_may_omit_one_placeholder():
    c = ["c-format"]
    assert broken_format(c, "%d", "a", True) is broken_format(c, "%d %s", "%s", True) is None
    assert broken_format(c, "%d %s", "a", True) == "placeholders: %d is lost, %s is lost"
    assert broken_format(c, "%d %d", "a", True) == "placeholders: %d is lost"
    assert broken_format(c, "%d", "%d %d", True) == "placeholders: %d is too much"


def test_rules_of_plural_forms():
    rule = PluralForms.of("nplurals = 3 ; plural = n>3 ? 1 : n==3 ;")
    assert rule is not None
    assert (rule.rule, rule.numbers[2]) == ("nplurals=3; plural=n>3 ? 1 : n==3;", ())
    assert (rule.examples(0), rule.examples(1)) == ("0, 1, 2", "3, 4, 5 …")
    above_three = PluralForms.of("nplurals=2; plural=n>3")
    assert above_three is not None and (above_three.examples(0), above_three.numbers[0]) == ("0, 1, 2 …", (0, 1, 2, 3))
    assert PluralForms.of("nplurals=2; plural=n>=199").numbers[1] == (199,)
    assert PluralForms.of("plural=n") is None
    for text in ("nplurals=1; plural=n", "nplurals=2; plural=n-1"):
        with pytest.raises(ValueError, match="there is no form"):
            PluralForms.of(text)
    with pytest.raises(ValueError, match="it divides by zero for 5"):
        PluralForms.of("nplurals=9; plural=n%(n-5)*0")


@pytest.mark.parametrize(
    ("code", "nplurals", "examples"),
    [
        ("en", 2, {"one": "1", "other": "0, 2, 3 …"}),
        ("es", 2, {"one": "1", "many": "1000000, 2000000, 3000000 …", "other": "0, 2, 3 …"}),
        ("ru", 3, {"one": "1, 21, 31 …", "few": "2, 3, 4 …", "many": "0, 5, 6 …", "other": "0.5, 1.5, 2.5 …"}),
        ("sl", 4, {"one": "1, 101", "two": "2, 102", "few": "3, 4, 103 …", "other": "0, 5, 6 …"}),
        ("ja", 1, {"other": "0, 1, 2 …"}),
        ("pt-BR", 2, {"one": "0, 1", "many": "1000000, 2000000, 3000000 …", "other": "2, 3, 4 …"}),
        (None, 2, None),
    ],
)
def test_forms_of_languages(code, nplurals, examples):
    assert PluralForms.of_language(code).nplurals == nplurals
    assert categories(code) == examples
