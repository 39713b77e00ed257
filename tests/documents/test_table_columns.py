"""The columns of a table that are translated, and those for the translations."""

import pytest

from bitext.documents.document import Target, read_document
from bitext.documents.strings.table import Columns, columns, columns_of_strings
from bitext.documents.tagged_text import TaggedText
from tests.documents.changing import ENGLISH_SPANISH, all_changed
from translucid.ground.errors import UserError


def chosen_columns(*rows, languages=ENGLISH_SPANISH):
    return columns("a.csv", [row.split("|") for row in rows], languages)


@pytest.mark.parametrize(
    ("header", "row", "pairs"),
    [
        # Roles of columns, in the words of several tools.
        ("source|context|translation|author", "one|x y||z", [(0, 2)]),
        ("Source String|Notiz|Übersetzung", "one|x y|", [(0, 2)]),
        ("msgid|msgstr", "one|", [(0, 1)]),
        ("src|tgt", "one|", [(0, 1)]),
        ("Translation (es)|Source", "|one", [(1, 0)]),
        ("reference text|localized string", "one|", [(0, 1)]),
        ("original|traducción|translated text", "one||", [(0, 2)]),
        ("location|source|target|id", "x|One||", [(1, 2)]),
        ("no|source|es", "1|one|", [(1, 2)]),
        # The only empty column, unless its name indicates other content.
        ("default value|Empty|id", "one||", [(0, 1)]),
        ("default value|Empty|Also empty", "one||", [(0, 0)]),
        ("source|Empty", "one|x", [(0, 0)]),
        ("source|", "one|", [(0, 0)]),
        # Names and codes of languages, alone, in brackets, and beside other words.
        ("id|en|es", "1|One|", [(1, 2)]),
        ("en|es|fr", "one||", [(0, 1)]),
        ("en_US|pt_BR|es_419", "one||", [(0, 2)]),
        ("English (en-US)|Spanish (es)", "one|", [(0, 1)]),
        ("English (United States)|Spanish (Mexico)|Spanish (Spain)", "one||", [(0, 1)]),
        ("Text (en)|Text [es]", "one|", [(0, 1)]),
        ("foo (English)|foo (es)", "one|", [(0, 1)]),
        ("inglés|español", "one|", [(0, 1)]),
        ("title_en|title_es|body-en|body-es", "One||two three|", [(0, 1), (2, 3)]),
        ("label-en-US|label-es-MX", "one|", [(0, 1)]),
        ("en.title|es.title", "one|", [(0, 1)]),
        ("en_US title|es_MX title", "one|", [(0, 1)]),
        ("source_en|source_de|es", "one|eins|", [(0, 2)]),
        ("title_en|title_de|body", "one|eins|", [(0, 2)]),
        ("id|English", "ab|one two", [(1, 1)]),
        ("ref|en", "1|one", [(1, 1)]),
        ("no|en|x", "1|one|", [(1, 2)]),
        # The first column with text, beside one for translations.
        ("Comment|es", "one two|", [(0, 1)]),
        ("x (foo)|es", "one|", [(0, 1)]),
        ("item_eng|item_spa", "one two|", [(0, 1)]),  # within a name, three letters are rarely a code
        ("key|Note|es", "k1|one two|", [(1, 2)]),
        ("A|B|target", "12|one|", [(1, 2)]),
        ("A|B|target", "12|13|", []),
        # Usual names of columns with text.
        ("name|description|price", "Tree|A green tree|12", [(1, 1)]),
        ("text|question|foo", "one|two|three", [(0, 0), (1, 1)]),
        ("id|comment", "1|one", [(1, 1)]),
        # Columns in which a text has several words.
        ("a|b|c", "one two|12 13|three four", [(0, 0), (2, 2)]),
        ("head|other", "One|12", []),
    ],
)
def test_the_names_of_columns_choose_them(header, row, pairs):
    assert chosen_columns(header, row) == Columns(pairs, 1)


@pytest.mark.parametrize(
    ("rows", "pairs", "first_row"),
    [
        (("one two|3", "four|five six"), [(1, 1)], 1),
        (("Hello there|3.", "four|five six"), [(0, 0), (1, 1)], 0),
        (("a b c d|x", "one two|y"), [(0, 0)], 0),  # too many words for a name
        (("a b c|x", "one two|y"), [(0, 0)], 1),
        (("a" * 41 + "|x", "one two|y"), [(0, 0)], 0),
        (("a" * 40 + "|x", "one two|y"), [(0, 0)], 1),
        (("|x", "one two|y"), [(0, 0)], 0),
        (("one two",), [(0, 0)], 0),  # a single row is no header
        (("",), [], 0),
        ((), [], 0),
    ],
)
def test_a_table_may_have_no_head(rows, pairs, first_row):
    assert chosen_columns(*rows) == Columns(pairs, first_row)


@pytest.mark.parametrize(
    ("header", "others"),
    [
        ("en|de|fr", "de, fr"),
        ("en|de|fr|it|nl|pl|sv", "de, fr, it, nl, pl"),
        ("source|de", "de"),
        ("en|title_de|fr", "fr"),
        ("title_en|title_de|fr|body_it", "title de, fr"),
        ("id|en|de", "de"),
    ],
)
def test_the_source_is_not_overwritten_beside_other_languages(header, others):
    with pytest.raises(UserError) as error:
        chosen_columns(header, "one|two")
    message = f"a.csv:1: has no column for es, but columns for other languages: {others}. Add a column named es."
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("header", "languages", "pairs"),
    [
        ("en|es|es-MX", ("en", "es-MX"), [(0, 2)]),
        ("Deutsch|Englisch", ("de", "en"), [(0, 1)]),
        ("English|Deutsch", ("en", "de"), [(0, 1)]),
        ("English|Deutsch", ("en", "Foo"), [(0, 0)]),
        ("text|es", (None, None), [(0, 0)]),
        ("text|es", (None, "es"), [(0, 1)]),
        ("x|en|id", ("en", "id"), [(1, 2)]),
        ("id|en|x", ("en", "id"), [(1, 2)]),  # as the first column, it is a key
        ("English|Portuguese (Brazil)", ("en", "pt-BR"), [(0, 1)]),
        ("English|Portuguese (Brazil)|Portuguese (Portugal)", ("en", "pt-PT"), [(0, 2)]),
        ("English|Portuguese (Nowhere)", ("en", "pt-BR"), [(0, 1)]),
        ("English|Brazilian Portuguese", ("en", "pt-BR"), [(0, 1)]),
        ("label_zh_Hant|label_en", ("en", "zh-Hant"), [(1, 0)]),
    ],
)
def test_columns_of_other_languages(header, languages, pairs):
    cells = dict.fromkeys(("en", "label_en", "text", "English", "Deutsch"), "one two")
    row = "|".join(cells.get(name, "") for name in header.split("|"))
    assert chosen_columns(header, row, languages=languages).pairs == pairs


@pytest.mark.parametrize(
    ("header", "language"),
    [
        ("locale|source|target", 0),
        ("x|lang|text", 1),
        ("text|language code|target locale", 1),
        ("text|languages", None),
    ],
)
def test_a_column_may_name_the_language_of_each_row(header, language):
    assert chosen_columns(header, "a|b|c").language == language


@pytest.mark.parametrize(
    ("text", "after"),
    [
        (
            "locale,source,target\nes,One,\nfr,Two,\n,Three,\nxx yy,Four,\nen,Five,\nes-MX,Six,\n",
            "locale,source,target\nes,One,ONE\nfr,Two,\n,Three,THREE\nxx yy,Four,FOUR\nen,Five,FIVE\nes-MX,Six,SIX\n",
        ),
        ("text,locale\none,de\ntwo\n", "text,locale\none,de\nTWO\n"),
        (
            "id,en,es,z\n1,One\n2,two words,dos,\n3,#fff,\n4,=SUM(A1),\n5\n6,six,,\n",
            "id,en,es,z\n1,One,ONE\n2,two words,TWO WORDS,\n3,#fff,\n4,=SUM(A1),\n5\n6,six,SIX,\n",
        ),
        ("a,b\n\n1,two words\n\n", "a,b\n\n1,TWO WORDS\n\n"),
        ("text\n one two \n- item\n=A1+B\n", 'text\n" ONE TWO "\n- ITEM\n=A1+B\n'),
        ('"a""b c",d\n"x ""y""",z\n', '"a""b c",d\n"X ""Y""",z\n'),
        ("a|text|es\n1|one,two|\n", "a|text|es\n1|one,two|ONE,TWO\n"),
        ("a\ttext\n1\tone, two; three\n", "a\ttext\n1\tONE, TWO; THREE\n"),
        ("sep=|\na|text\n1|one\n", "sep=|\na|text\n1|ONE\n"),
        ('"SEP=;"\r\na;text\r\n1;one, two\r\n', '"SEP=;"\r\na;text\r\n1;ONE, TWO\r\n'),
        ("id,text\r1,one\r2,two", "id,text\r1,ONE\r2,TWO"),
        ("", ""),
        ("\n\n", "\n\n"),
    ],
)
def test_rows_and_cells(text, after):
    document = read_document("a.csv", text.encode(), ENGLISH_SPANISH)
    assert document.filled(all_changed(document)).decode() == after


def test_without_languages_each_row_is_translated():
    document = read_document("a.csv", b"locale,text\nes,one\nfr,two\n", (None, None))
    assert [(segment.source.text, segment.place) for segment in document.segments] == [
        ("one", "line 2"),
        ("two", "line 3"),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('a,b\n"x', "a.csv:2: has a quote that is not closed"),
        ('a,b\n1\n2,"y" z\n', "a.csv:3: has characters behind a closed quote"),
        ("a,b\n1,2\n3,4\n", "a.csv: has more than 6 cells. Split it."),
    ],
)
def test_broken_and_large_tables_are_refused(text, message, monkeypatch):
    monkeypatch.setattr("bitext.documents.strings.table.MOST_CELLS", 6)
    with pytest.raises(UserError) as error:
        read_document("a.csv", text.encode(), ENGLISH_SPANISH)
    assert str(error.value).startswith(message)


def test_texts_beyond_the_first_row_stay_in_their_columns():
    document = read_document("a.csv", b"c1,c2\nOne word,more\nTwo words,a,One more\n", ("en", "es"))
    assert [segment.source.text for segment in document.segments] == ["One word", "Two words", "One more"]
    assert document.filled({2: Target(TaggedText("Uno"))}) == b"c1,c2\nOne word,more\nTwo words,a,Uno\n"


@pytest.mark.parametrize(("texts", "holds_strings"), [(["12", "13"], False), (["Save", "Open"], True)])
def test_a_column_of_numbers_is_no_source_of_strings(texts, holds_strings):
    rows = [["Source", "Target"], *([text, "x"] for text in texts)]
    assert (columns_of_strings("a.xlsx", rows, ("en", "es")) is not None) == holds_strings
