"""Sentence pairs of .po and .tmx files: translated entries with their lines; invalid and hostile content."""

import gzip
import tracemalloc

import pytest
from babel.messages.pofile import read_po as read_with_babel

from bitext.pair import Pair
from bitext.readers.lines import one_space
from translucid.cli.main import run
from translucid.data.readers.corpus import placed_pairs, read_pairs
from translucid.ground.errors import UserError

PO = r"""# Somebody's messages.
msgid ""
msgstr ""
"Content-Type: text/plain; charset=UTF-8\n"
"Plural-Forms: nplurals=3; plural=0;\n"

#. for the toolbar
#: a.py:1
msgctxt "menu"
msgid "Save"
msgstr "Guardar"
#, python-format
msgid ""
"Delete %(name)s\n"
"and \"all\"\tof it"
msgstr "Eliminar %(name)s\ny todo"

#, fuzzy
msgid "no"
msgstr "tal vez"

msgid "not yet"
msgstr ""

msgid "%d file"
msgid_plural "%d files"
msgstr[0] "%d archivo"
msgstr[1] "%d de archivos"
msgstr[2] "%d archivos"

#~ msgid "old"
#~ msgstr "viejo"
"""
PO_PAIRS = [
    (9, Pair("Save", "Guardar")),
    (13, Pair('Delete %(name)s and "all" of it', "Eliminar %(name)s y todo")),
    (25, Pair("%d file", "%d archivo")),
    (25, Pair("%d files", "%d archivos")),
]


def placed(file, **options):
    return [(line, pair) for _, line, pair in placed_pairs(file, **options)]


@pytest.mark.parametrize("gz", ["", ".gz"])
def test_translated_entries_of_a_po_file_are_read(tmp_path, gz):
    file = tmp_path / f"es.po{gz}"
    file.write_bytes(gzip.compress(PO.encode()) if gz else PO.encode())
    assert placed(file) == PO_PAIRS
    assert list(read_pairs(file)) == [pair for _, pair in PO_PAIRS]


def test_babel_reads_the_same(tmp_path):
    (tmp_path / "es.po").write_text(PO)
    expected = set()
    with (tmp_path / "es.po").open("rb") as file:
        for message in read_with_babel(file, abort_invalid=False):
            if message.id and message.string and not message.fuzzy:
                is_plural = isinstance(message.id, tuple)
                forms = zip(message.id, (message.string[0], message.string[-1]), strict=True) if is_plural else ()
                expected |= {Pair(*map(one_space, texts)) for texts in forms or [(message.id, message.string)]}
    assert set(read_pairs(tmp_path / "es.po")) == expected


def test_one_form_is_that_of_the_plural(tmp_path):
    (tmp_path / "ja.po").write_text('msgid "%d file"\nmsgid_plural "%d files"\nmsgstr[0] "%d ファイル"\n')
    assert placed(tmp_path / "ja.po") == [(1, Pair("%d files", "%d ファイル"))]


def test_a_bad_entry_is_reported_and_the_others_are_read(tmp_path):
    file = tmp_path / "es.po"
    first, last = b'msgid "a"\nmsgstr "b"\n', b'msgid "c"\nmsgstr "d"\n'
    bad_entries = (
        b'msgid "x"\nmsgstr "\xff"\n"more"\n',
        b"msgid what\nmsgnot 3\n",
        b'msgid "x"\nmsgstr[x] "y"\n',
        b'msgid "x"\nmsgid "y"\nmsgstr "z"\n',
        b'msgid "x"\nmsgstr "' + b"y" * 1_000_001 + b'"\n',
    )
    for bad in bad_entries:
        reports = []
        file.write_bytes(first + b"\n" + bad + b"\n" + last)
        assert placed(file, on_bad=reports.append) == [(1, Pair("a", "b")), (5 + bad.count(b"\n"), Pair("c", "d"))]
        assert len(reports) == 1 and reports[0].line in (4, 5), reports
        with pytest.raises(UserError, match=rf"es\.po:{reports[0].line}: "):
            list(read_pairs(file))


def tmx(units, srclang="en-US", before=""):
    header = f'<header creationtool="x" srclang="{srclang}" segtype="sentence"/>'
    return f'<?xml version="1.0"?>\n{before}<tmx version="1.4">{header}<body>\n{units}\n</body></tmx>\n'.encode()


def tu(**texts):
    variants = (f'<tuv xml:lang="{code.replace("_", "-")}"><seg>{text}</seg></tuv>' for code, text in texts.items())
    return f"<tu>\n{''.join(variants)}</tu>\n"


@pytest.mark.parametrize("gz", ["", ".gz"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_the_units_of_a_memory_are_read_from_its_source_language_to_the_other(tmp_path, gz, encoding):
    file = tmp_path / f"m.tmx{gz}"
    units = tu(es_ES="Gol &amp; ñ", en_US="Goal &amp; n") + tu(EN="no Spanish") + tu(en_GB="a\n  b", es_ES="c")
    content = tmx(units, "en", '<!DOCTYPE tmx SYSTEM "tmx14.dtd">').decode().encode(encoding)
    file.write_bytes(gzip.compress(content) if gz else content)
    assert placed(file) == [(3, Pair("Goal & n", "Gol & ñ")), (7, Pair("a b", "c"))]


def test_of_many_languages_two_are_chosen(tmp_path):
    file = tmp_path / "m.tmx"
    file.write_bytes(tmx(tu(en="one", pt_BR="um", de="eins") + tu(en="two", pt_PT="dois", pt_BR="dois!")))
    with pytest.raises(UserError, match=r"m\.tmx:3: holds en, pt-BR, de: .*as in m\.tmx:en-pt-BR\.$"):
        list(read_pairs(file))
    assert list(read_pairs(file, languages=("de", "en"))) == [Pair("eins", "one")]
    assert list(read_pairs(file, languages=("en", "pt"))) == [Pair("one", "um"), Pair("two", "dois")]
    assert list(read_pairs(file, languages=("en", "pt-br"))) == [Pair("one", "um"), Pair("two", "dois!")]
    assert list(read_pairs(file, languages=(None, "de"))) == [Pair("one", "eins")]
    with pytest.raises(UserError, match=r"no unit in en and fr; it holds en, pt-BR, de, pt-PT"):
        list(read_pairs(file, languages=("en", "fr")))
    file.write_bytes(tmx(tu(en="one", de="eins"), "*all*"))
    with pytest.raises(UserError, match="which of them is the source"):
        list(read_pairs(file))
    assert list(read_pairs(file, languages=("de", None))) == [Pair("eins", "one")]
    file.write_bytes(tmx(tu(en="one"), "*all*"))
    with pytest.raises(UserError, match="has no unit in"):
        list(read_pairs(file))
    file.write_bytes(tmx(tu(en="one", en_US="uno"), "*all*"))
    with pytest.raises(UserError, match="which of them is the source"):
        list(read_pairs(file))


def test_of_two_variants_in_one_language_the_first_is_read(tmp_path):
    unit = tu(en="one", es="uno").replace("</tu>", '<tuv xml:lang="es"><seg>una</seg></tuv></tu>')
    (tmp_path / "m.tmx").write_bytes(tmx(unit))
    assert list(read_pairs(tmp_path / "m.tmx")) == [Pair("one", "uno")]


INLINE = [
    ('Click <bpt i="1">&lt;b&gt;</bpt>here<ept i="1">&lt;/b&gt;</ept>.', "Click here."),
    ("Dear <ph>%s</ph>, <ph>{name}</ph>!", "Dear %s, {name}!"),
    ("one<ph>&lt;br/&gt;</ph>two <x/> three<it pos='begin'>\\b</it>.", "one two three."),
    ("<hi>bold</hi> and <g id='1'>green <mrk>red</mrk></g>", "bold and green red"),
    ("file<ph>&lt;img alt='<sub>a picture</sub>'&gt;</ph>", "file"),
]


@pytest.mark.parametrize(("inline", "plain"), INLINE)
def test_inline_codes_are_left_out_and_placeholders_stay(tmp_path, inline, plain):
    (tmp_path / "m.tmx").write_bytes(tmx(tu(en=inline, es=inline)))
    assert list(read_pairs(tmp_path / "m.tmx")) == [Pair(plain, plain)]


BAD_UNITS = [
    ("<tu><tuv><seg>a</seg></tuv></tu>", "without a language"),
    ("<tu><tuv xml:lang='en'/></tu>", "without a <seg>"),
    ("<tu><tuv xml:lang='en'><seg>a&nbsp;b</seg></tuv></tu>", "&nbsp;"),
]


@pytest.mark.parametrize(("bad", "message"), BAD_UNITS)
def test_a_bad_unit_is_reported_and_the_others_are_read(tmp_path, bad, message):
    file, reports = tmp_path / "m.tmx", []
    good = tu(en="a", es="b")
    file.write_bytes(tmx(good + "\n" + bad + good, before='<!DOCTYPE tmx SYSTEM "tmx14.dtd">'))
    assert list(read_pairs(file, on_bad=reports.append)) == [Pair("a", "b")] * 2
    assert [report.line for report in reports] == [6] and message in reports[0].what
    with pytest.raises(UserError, match=r"m\.tmx:6: "):
        list(read_pairs(file))


LAUGHS = (
    '<!DOCTYPE tmx [<!ENTITY a "ha">'
    + "".join(f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefghi", "bcdefghij", strict=True))
    + "]>"
)
HOSTILE = {
    "laughs": (tmx(tu(en="&j;", es="x"), before=LAUGHS), "declares entities"),
    "outside": (
        tmx(tu(en="&e;", es="x"), before='<!DOCTYPE tmx [<!ENTITY e SYSTEM "/etc/passwd">]>'),
        "declares entit",
    ),
    "deep": (tmx("<a>" * 100_000), "nested more than 200 levels deep"),
    "another root": (b"<html><body/></html>", "begins with <html>"),
    "cut": (tmx(tu(en="a", es="b"))[:-20], r":\d: is no XML"),
    "no XML": (b"source\ttarget\n", ":1: is no XML"),
    "utf-7": (b'<?xml version="1.0" encoding="utf-7"?><tmx/>', "encoding"),
    "many parts": (tmx(f"<tu>{'<prop>x</prop>' * 100_001}</tu>"), "200,000 elements and texts in one unit"),
    "a long unit": (tmx(f"<tu><prop>{'x y' * 4_000_000}</prop></tu>"), "unit, tag or comment of more than 10,000,000"),
    "a long tag": (tmx(f"<tu a='{'x' * 11_000_000}'/>"), "unit, tag or comment of more than 10,000,000 bytes"),
    "nothing": (b"", "is empty"),
    "no units": (tmx(""), "has no unit in en-US and another language"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_and_broken_memories_are_one_clear_line(tmp_path, name):
    content, message = HOSTILE[name]
    (tmp_path / "m.tmx").write_bytes(content)
    with pytest.raises(UserError, match=message) as caught:
        list(read_pairs(tmp_path / "m.tmx", on_bad=lambda bad: None))
    assert str(caught.value).startswith(str(tmp_path / "m.tmx")) and "\n" not in str(caught.value)


def test_a_large_memory_is_read_in_little_memory(tmp_path):
    """Each additional unit takes at most 40 bytes."""

    def content(count):
        yield b'<tmx version="1.4"><header srclang="en"/><body>'
        for number in range(count):
            yield tu(en=f"the number {number}", es=f"el número {number}" + " x" * 100).encode()
        yield b"</body></tmx>"

    def peak(count):
        with gzip.open(tmp_path / "m.tmx.gz", "wb", compresslevel=1) as file:
            file.writelines(content(count))
        tracemalloc.start()
        assert sum(1 for _ in read_pairs(tmp_path / "m.tmx.gz")) == count
        peak_bytes = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak_bytes

    few, many = peak(500), peak(1_500)
    assert many < 2_000_000
    assert many - few < 40 * 1_000


def tuv(code, text="", attribute="xml:lang"):
    return f'<tuv {attribute}="{code}">{text and f"<seg>{text}</seg>"}</tuv>'


@pytest.mark.parametrize(
    ("languages", "units", "pairs"),
    [
        # The unit's own source language takes precedence over that of the header.
        ((None, None), f"<tu srclang='es'>{tuv('en', 'a')}{tuv('es', 'b')}</tu>", [("b", "a")]),
        ((None, None), f"<tu>{tuv('EN', 'a', 'lang')}{tuv('es', 'b', 'lang')}</tu>", [("a", "b")]),
        ((None, None), f"<tu>{tuv('en-GB', 'a')}{tuv('es-ES', 'b')}{tuv('es-MX', 'c')}</tu>", None),
        ((None, None), f"<tu>{tuv('en', 'a')}{tuv('es', 'b')}{tuv('es-MX', 'c')}</tu>", [("a", "b")]),
        (
            (None, "es-MX"),
            f"<tu>{tuv('en', 'a')}{tuv('fr', 'x')}{tuv('es', 'b')}{tuv('es-MX', 'c')}</tu>",
            [("a", "b")],
        ),
        (("en", "en-US"), f"<tu>{tuv('en-US', 'b')}{tuv('en', 'a')}</tu>", [("a", "b")]),
        (("en", "en"), f"<tu>{tuv('en-US', 'a')}{tuv('en-GB', 'b')}</tu>", [("a", "b")]),
        (
            ("en", "es"),
            f"<tu>{tuv('en', 'a')}</tu><tu>{tuv('es', 'b')}</tu><tu>{tuv('en', 'a')}{tuv('es', 'b')}</tu>",
            [("a", "b")],
        ),
        ((None, None), f"<tu>{tuv('fr', 'x')}{tuv('es', 'b')}</tu><tu>{tuv('en', 'a')}{tuv('fr', 'x')}</tu>", None),
        (("fr", None), f"<tu>{tuv('fr', 'x')}{tuv('es', 'b')}</tu>", [("x", "b")]),
    ],
)
def test_which_texts_of_a_unit_are_its_pair(tmp_path, languages, units, pairs):
    (tmp_path / "m.tmx").write_bytes(tmx(units, "en"))
    if pairs is None:
        with pytest.raises(UserError, match="which of them is the source, and which the target"):
            list(read_pairs(tmp_path / "m.tmx", languages=languages))
    else:
        assert list(read_pairs(tmp_path / "m.tmx", languages=languages)) == pairs


def test_languages_are_remembered_up_to_a_number(tmp_path, monkeypatch):
    monkeypatch.setattr("bitext.readers.tmx.MAX_LANGUAGES", 2)
    units = tu(en="a", es="b") + tu(en="c", fr="d") + tu(en="e", es="f")
    (tmp_path / "m.tmx").write_bytes(tmx(units, "en"))
    assert list(read_pairs(tmp_path / "m.tmx")) == [("a", "b"), ("e", "f")]
    monkeypatch.setattr("bitext.readers.tmx.MAX_LANGUAGES", 3)
    with pytest.raises(UserError, match=r":5: holds en, es, fr: "):
        list(read_pairs(tmp_path / "m.tmx"))


@pytest.mark.parametrize(("others", "is_read"), [(98, True), (99, False)])
def test_a_hundred_languages_are_remembered(tmp_path, others, is_read):
    units = "".join(tu(**{f"x{number}": "x"}) for number in range(others)) + tu(en="a") + tu(en="b", es="c")
    (tmp_path / "m.tmx").write_bytes(tmx(units, "en"))
    pairs = read_pairs(tmp_path / "m.tmx", languages=(None, "es"))
    if is_read:
        assert list(pairs) == [("b", "c")]
    else:
        with pytest.raises(UserError, match="has no unit in en and es"):
            list(pairs)


def test_codes_within_words_and_placeholders_within_codes(tmp_path):
    inline = "a<ph/>b<x/> c<bpt>%s</bpt>d<ept>&lt;%s&gt;</ept>e<it>&amp;x;</it>f<ut> {n} </ut><hi>g<ph/></hi>"
    (tmp_path / "m.tmx").write_bytes(tmx(tu(en=inline, es="x")))
    assert list(read_pairs(tmp_path / "m.tmx")) == [("a b c%sde f{n}g", "x")]


def test_a_memory_is_trained_from(tmp_path):
    units = "".join(tu(en=f"the {noun} is {word}", xx=f"{noun} {word}") for noun in ("cat", "dog") for word in "abcdef")
    (tmp_path / "m.tmx").write_bytes(tmx(units * 5))
    files = ["--train", tmp_path / "m.tmx", "--valid", tmp_path / "m.tmx", "--out", tmp_path / "run"]
    settings = ["--set", "data.tokenizer.vocabulary=30", "model.width=16", "model.heads=2", "training.max_steps=1"]
    assert run(["train", *map(str, files), "--no-tune", *settings]) == 0
    settings = ["data.source_language=en", "data.target_language=de"]
    assert run(["train", *map(str, files), "--no-tune", "--overwrite", "--set", *settings]) == 2
