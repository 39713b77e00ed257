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
    assert run(["review", "make", "page.html", "table.docx", "--translated", "page.xlf"]) == 0
    assert "2 segments, 2 with a translation" in capsys.readouterr().err
    corrected_table("table.docx", "1", "Me encanta ⟨1⟩el fútbol⟨/1⟩.")
    corrected_table("table.docx", "2", "Está ⟨1⟩feliz.")
    arguments = ["review", "read", "page.html", "table.docx", "done.html"]
    assert run([*arguments, "--memory", "m.memory", "--who", "Ana"]) == 0
    err = capsys.readouterr().err
    assert "row 2: ⟨1⟩ is not in the source" in err and "2 segments, 1 corrected, 0 approved unchanged" in err
    before, after = (tmp_path / "es.html").read_text(), (tmp_path / "done.html").read_text()
    assert (
        after.split("</p>")[0].endswith("<p>Me encanta <b>el fútbol</b>.")
        and after.split("</p>")[1:] == before.split("</p>")[1:]
    )
    with TranslationMemory.open(tmp_path / "m.memory") as memory:
        ((source, target, who, _),) = [(e.source, e.target, e.who, e.when) for e in memory.entries()]
        assert (source, target, who) == ("I like soccer.", "Me encanta el fútbol.", "Ana")
        assert memory.languages == ("en", "es")
    assert run(["review", "compare", "table.docx", "--final", "done.html", "--out", "d.html", "--json"]) == 0
    corrected, final = json.loads(capsys.readouterr().out)
    assert (corrected["segments"], corrected["changed"], final["changed"]) == (2, 2, 1)
    assert "<ins>Me encanta" in (tmp_path / "d.html").read_text().replace("<ins>encanta", "<ins>Me encanta")
    assert run(["review", "compare", "table.docx", "--out", "d.tsv"]) == 0
    assert capsys.readouterr().out.startswith("machine -> corrected: 2 of 2 segments changed (100%)")
    assert (tmp_path / "d.tsv").read_text().splitlines()[1].split("\t")[3] == "Me encanta el fútbol."


def test_a_translated_document_needs_its_languages(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "page.html").write_text(PAGE)
    (tmp_path / "es.html").write_text("<html><p>Me gusta <b>el fútbol</b>.</p><p>Está feliz.</p></html>")
    arguments = ["review", "make", "page.html", "r.xlf", "--translated", "es.html"]
    assert run(arguments) == 2
    assert "Give --source-language and --target-language." in capsys.readouterr().err
    assert run([*arguments, "--source-language", "en", "--target-language", "es"]) == 0
    assert "<target>Me gusta <pc " in (tmp_path / "r.xlf").read_text()
    assert run([*arguments, "--source-language", "en", "--target-language", "es"]) == 2
    assert (
        run(
            [
                "review",
                "make",
                "page.html",
                "r.xlf",
                "--overwrite",
                "--source-language",
                "en",
                "--target-language",
                "es",
            ]
        )
        == 0
    )
    assert "2 segments, 0 with a translation" in capsys.readouterr().err
    assert run(["review", "read", "page.html", "r.xlf", "out.html", "--memory", "m.tsv"]) == 2
    assert run(["review", "read", "page.html", "page.html", "out.html"]) == 2
    assert "is no file for review. Supported: .docx .xlf .xliff." in capsys.readouterr().err
