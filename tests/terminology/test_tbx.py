"""Termbases: reading all forms of TBX, writing them, and the command that converts them."""

import pytest

from tests.growth import assert_linear
from translucid.cli.main import run
from translucid.ground.errors import UserError
from translucid.terminology.glossary import Sense, Term, read_terms, senses, terms_of
from translucid.terminology.tbx import LeftOut, read_tbx, tbx_text

MARTIF = """<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE martif SYSTEM "TBXcoreStructV02.dtd">
<martif type="TBX" xml:lang="en-US"><martifHeader/><text><body>
{}
</body></text></martif>"""
BANK = """<termEntry id="1"><descripGrp><descrip type="subjectField">finance</descrip></descripGrp>
 <langSet xml:lang="en-US"><descripGrp><descrip type="definition">It keeps money.</descrip></descripGrp>
  <ntig><termGrp><term>bank</term><termNote type="partOfSpeech">Noun</termNote></termGrp>
   <descripGrp><descrip type="context">She  works at the <hi>bank</hi>.</descrip></descripGrp>
   <descrip type="context">The bank is closed.</descrip></ntig></langSet>
 <langSet xml:lang="es"><tig><term>caja</term></tig>
  <tig><term>banca</term><termNote type="administrativeStatus">supersededTerm-admn-sts</termNote></tig></langSet>
 <langSet xml:lang="es"><tig><term>banco</term>
   <termNote type="administrativeStatus">preferredTerm-admn-sts</termNote></tig></langSet>
 <langSet xml:lang="fr"><tig><term>banque</term></tig></langSet>
</termEntry>"""
MANY = "".join(f"<tig><term>bank {i}</term></tig>" for i in range(101))
DCT = """<tbx type="TBX-Basic" style="dct" xml:lang="en" xmlns="urn:iso:std:iso:30042:ed-2"
 xmlns:min="http://www.tbxinfo.net/ns/min" xmlns:basic="http://www.tbxinfo.net/ns/basic"><tbxHeader/><text><body>
<conceptEntry id="1"><min:subjectField>river</min:subjectField>
 <langSec xml:lang="en"><termSec><term>bank</term><min:partOfSpeech>noun</min:partOfSpeech>
  <descripGrp><basic:context>We sat on the bank.</basic:context></descripGrp></termSec></langSec>
 <langSec xml:lang="es"><termSec><term>orilla</term></termSec></langSec></conceptEntry>
<conceptEntry id="2"><langSec xml:lang="en"><termSec><term>Acme</term><min:partOfSpeech>properNoun</min:partOfSpeech>
 </termSec></langSec><langSec xml:lang="es"><termSec><term>Acme</term></termSec></langSec></conceptEntry>
</body></text></tbx>"""


@pytest.fixture
def write(tmp_path):
    def write(text, name="a.tbx"):
        file = tmp_path / name
        file.write_text(text, encoding="utf-8")
        return file

    return write


def test_version_2(write):
    left_out = LeftOut()
    file = write(MARTIF.format(BANK))
    rows = list(read_tbx(file, ("en", "es"), left_out=left_out))
    pairs = [("banco", "She works at the bank."), ("banco", "The bank is closed.")]
    pairs += [("caja", "She works at the bank."), ("caja", "The bank is closed.")]
    assert [(row.target, row.example) for row in rows] == pairs  # the preferred one first, no superseded one
    assert {(row.source, *row.attributes, row.domain) for row in rows} == {("bank", "noun", "finance")}
    assert (left_out.statuses, left_out.categories, left_out.without_language) == (1, {"definition": 1}, 0)
    assert read_terms(file, ("en", "fr"))[0] == Term("bank", "banque", "noun", False, "finance", pairs[0][1])
    assert [row.target for row in read_tbx(file, ("es", "en"))] == ["bank"] * 3  # a source may be superseded
    with pytest.raises(UserError, match=r"a\.tbx: has the languages en-US, es, fr"):
        read_terms(file)
    with pytest.raises(UserError, match="no term in en with a translation into de"):
        read_terms(file, ("en", "de"))


def test_version_3_and_inferred_languages(write):
    bank = Term("bank", "orilla", "noun", False, "river", "We sat on the bank.")
    assert read_terms(write(DCT)) == [bank, Term("Acme", "Acme", "name")]
    dca = DCT
    for name in ("subjectField", "partOfSpeech", "context"):
        for prefix in ("min", "basic"):
            dca = dca.replace(f"<{prefix}:{name}>", f'<descrip type="{name}">').replace(
                f"</{prefix}:{name}>", "</descrip>"
            )
    assert "<min" not in dca and read_terms(write(dca)) == read_terms(write(DCT))


SAMPLE = [
    Term("bank", "banco", "noun", False, "finance", "The bank is closed."),
    Term("bank", "caja", "noun", False, "finance", "The bank is closed."),
    Term("bank", "banco", "noun", False, "finance", "She works at the bank & mill."),
    Term("bank", "caja", "noun", False, "finance", "She works at the bank & mill."),
    Term("bank", "orilla", "noun", False, "", "We sat on the bank."),
    Term("Save", "Guardar <todo>", "verb", True),
    Term("Acme", "Acme", "name"),
    Term("as soon as", "en cuanto", "phrase"),
    Term("key", "llave"),
    Term("key", "clave"),
]


def test_senses():
    bank, river, *others = senses(SAMPLE)
    assert bank.targets == ["banco", "caja"] and len(bank.examples) == 2 and bank.domains == ["finance"]
    assert river == Sense("bank", ["orilla"], "noun", False, [], ["We sat on the bank."])
    assert [sense.targets for sense in others][-1] == ["llave", "clave"]
    # Two groups that a later term joins.
    a, b = Term("a", "x", domain="1"), Term("a", "y", domain="2")
    assert len(senses([a, b])) == 2 and len(senses([a, b, Term("a", "x", domain="2")])) == 1
    assert_linear(
        lambda count: lambda: senses(Term("a", str(i), domain=str(i // 2)) for i in range(count)), 1000, 16000
    )


@pytest.mark.parametrize("dialect", ["dca", "dct", "martif"])
def test_what_is_written_is_read_again(dialect, write):
    text = "".join(tbx_text(senses(SAMPLE), ("en", "es"), dialect, "1"))
    assert sorted(read_terms(write(text)), key=str) == sorted(SAMPLE, key=str)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (MARTIF.format('<termEntry><langSet xml:lang="en"><tig><term>a</term>'), "is no XML"),
        ("<tmx/>", "begins with <tmx>, not with <martif> or <tbx>"),
        (MARTIF.replace("SYSTEM", "[<!ENTITY a 'b'>]><!-- ").replace("v02.dtd", "-->"), "declares entities"),
        (MARTIF.format(BANK.replace(">bank<", ">&b;<")), "refers to &b;, which is not defined"),
        (MARTIF.format(BANK.replace(">banco<", f">{'w ' * 40}<")), "more than 32 words"),
        (MARTIF.format(""), "names no languages"),
        (
            MARTIF.format(BANK.replace("</ntig>", "</ntig>" + MANY).replace("</tig>", "</tig>" + MANY)),
            "more than 10,000 pa",
        ),
    ],
)
def test_invalid_termbases_are_one_line(text, message, write, capfd):
    arguments = ["terms", "convert", str(write(text)), str(write("", "b.tsv")), "--overwrite"]
    languages = [] if "no languages" in message else ["--source-language", "en", "--target-language", "es"]
    assert run([*arguments, *languages]) == 2
    error = capfd.readouterr().err.strip()
    assert message in error and "\n" not in error


def test_the_command_converts_in_both_directions(write, tmp_path, capfd):
    list_file, base, again = tmp_path / "a.tsv", tmp_path / "b.tbx", tmp_path / "c.csv"
    languages = ["--source-language", "en", "--target-language", "es"]
    broken = BANK.replace(">caja<", ">...<").replace(">bank<", ">&b;<")
    file = write(MARTIF.format(BANK + broken))
    assert run(["terms", "convert", str(file), str(list_file), *languages, "--skip-bad"]) == 0
    error = capfd.readouterr().err
    assert "4 terms" in error and "invalid: 1" in error and "definition (1)" in error
    assert list_file.read_text(encoding="utf-8").splitlines()[:2] == [
        "source\ttarget\tpart of speech\tdomain\texample",
        "bank\tbanco\tnoun\tfinance\tShe works at the bank.",
    ]
    for source, target in ((list_file, base), (base, again)):
        assert run(["terms", "convert", str(source), str(target), *languages, "--dialect", "dct"]) == 0
    assert "<min:subjectField>finance<" in base.read_text(encoding="utf-8")
    assert sorted(read_terms(again), key=str) == sorted(read_terms(list_file), key=str)
    assert run(["terms", "convert", str(list_file), str(base), "--overwrite"]) == 2
    assert "--source-language" in capfd.readouterr().err


def test_a_list_names_further_columns(write):
    text = "Source\tTarget\tAccepted\tPOS\tDomain\tExample\tCount\n"
    text += "bank\tbanco\tx\tnoun\tfinance\tIt is closed.\t3\nbank\torilla\t\tnoun\triver\t\t2\nkey\tllave\tyes\n"
    expected = [Term("bank", "banco", "noun", False, "finance", "It is closed."), Term("key", "llave")]
    assert read_terms(write(text, "a.tsv")) == expected
    with pytest.raises(UserError, match="is no part of speech"):
        terms_of([("bank", "banco", "finance")])


def test_translations_use_a_termbase(small_run, write, capfd):
    entry = '<termEntry><langSet xml:lang="en"><tig><term>soccer</term></tig></langSet>'
    entry += '<langSet xml:lang="es"><tig><term>doctora</term></tig></langSet></termEntry>'
    file = write(MARTIF.format(entry))
    assert run(["translate", str(small_run), "I like soccer.", "--terms", str(file)]) == 0
    assert "doctora" in capfd.readouterr().out.lower()
