"""`review`: files for reviewers, what comes back, and the differences."""

import json

import docx

from bitext import TranslationMemory
from translucid.cli.main import run

PAGE = "<html><p>I like <b>soccer</b>.</p><p>She is happy.</p></html>"


def corrected_table(file, number, text):
    document = docx.Document(file)
    for row in document.tables[0].rows:
        if row.cells[0].text == number:
            row.cells[2].paragraphs[0].clear().add_run(text)
    document.save(file)


def test_a_document_is_translated_reviewed_and_compared(small_run, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "page.html").write_text(PAGE)
    assert run(["translate", str(small_run), "page.html", "--output", "page.xlf"]) == 0
    assert run(["translate", str(small_run), "page.html", "--output", "es.html"]) == 0
    languages = ["--source-language", "en", "--target-language", "es"]
    assert run(["review", "make", "page.html", "table.docx", "--translated", "page.xlf", *languages]) == 0
    assert "2 segments, 2 with a translation" in capsys.readouterr().err
    corrected_table("table.docx", "1", "Me encanta ⟨1⟩el fútbol⟨/1⟩.")
    corrected_table("table.docx", "2", "Está ⟨1⟩feliz.")
    arguments = ["review", "read", "page.html", "table.docx", "done.html"]
    assert run([*arguments, "--memory", "m.memory", "--who", "Ana"]) == 2  # a row has a problem
    err = capsys.readouterr().err
    assert "row 2: ⟨1⟩ is not in the source" in err and "2 segments, 1 corrected, 0 approved unchanged" in err
    assert "has a problem in 1 row; all others are in done.html" in err
    before, after = (tmp_path / "es.html").read_text(), (tmp_path / "done.html").read_text()
    first, *others = after.split("</p>")
    assert first.endswith("<p>Me encanta <b>el fútbol</b>.") and others == before.split("</p>")[1:]
    with TranslationMemory.open(tmp_path / "m.memory") as memory:
        (entry,) = memory.entries()
        assert (entry.source, entry.target, entry.who) == ("I like soccer.", "Me encanta el fútbol.", "Ana")
        assert memory.languages == ("en", "es")
    assert run(["review", "compare", "table.docx", "--final", "done.html", "--out", "d.html", "--json"]) == 0
    corrected, final = json.loads(capsys.readouterr().out)
    assert (corrected["segments"], corrected["changed"], final["changed"]) == (2, 2, 1)
    assert "<ins>" in (tmp_path / "d.html").read_text()
    assert run(["review", "compare", "table.docx", "--out", "d.tsv"]) == 0
    assert capsys.readouterr().out.startswith("machine -> corrected: 2 of 2 segments changed (100%)")
    assert (tmp_path / "d.tsv").read_text().splitlines()[1].split("\t")[3] == "Me encanta el fútbol."


def test_a_translated_document_is_made_into_a_review(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "page.html").write_text(PAGE)
    (tmp_path / "es.html").write_text("<html><p>Me gusta <b>el fútbol</b>.</p><p>Está feliz.</p></html>")
    arguments = ["review", "make", "page.html", "r.xlf", "--translated", "es.html"]
    assert run([*arguments, "--source-language", "en", "--target-language", "es"]) == 0
    assert 'srcLang="en" trgLang="es"' in (tmp_path / "r.xlf").read_text()
    assert "<target>Me gusta <pc " in (tmp_path / "r.xlf").read_text()
    assert run([*arguments, "--source-language", "en", "--target-language", "es"]) == 2
    assert run(["review", "make", "page.html", "r.xlf", "--overwrite"]) == 0
    assert 'srcLang="und" trgLang="und"' in (tmp_path / "r.xlf").read_text()
    assert "2 segments, 0 with a translation" in capsys.readouterr().err
    assert run(["review", "read", "page.html", "r.xlf", "out.html", "--memory", "m.tsv"]) == 2
    assert run(["review", "read", "page.html", "page.html", "out.html"]) == 2
    assert "is no file for review. Supported: .docx .xlf .xliff." in capsys.readouterr().err
