"""The corpus of LibreOffice's help, built from packages that the test writes."""

import io
import lzma
import tarfile

import pytest

from benchmarks.corpora.libreoffice_help import main, part_of

DOCUMENTS = [f"text/swriter/{number}.html" for number in range(60)]
BY_PART = {part_of(name): name for name in DOCUMENTS}


def page(paragraphs):
    body = "".join(f'<p id="par_id{name}" class="paragraph">{text}</p>\n' for name, text in paragraphs.items())
    return f'<html><body><p id="bm_module">Help</p><h1 id="hd_id1">Title</h1>{body}</body></html>'


def deb(pages, language):
    """Return a package of the form of Debian's."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        for name, html in pages.items():
            member = tarfile.TarInfo(f"./usr/share/libreoffice/help/{language}/{name}")
            member.size = len(html.encode())
            archive.addfile(member, io.BytesIO(html.encode()))
    members = {"debian-binary": b"2.0", "data.tar.xz": lzma.compress(data.getvalue())}
    package = b"!<arch>\n"
    for name, content in members.items():
        package += f"{name:<16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n".encode()
        package += content + b"\n" * (len(content) % 2)
    return package


@pytest.fixture
def build(tmp_path, monkeypatch):
    """Build the corpus from pages in English and Spanish."""

    def run(english, spanish):
        for name, language, pages in (("en-us", "en-US", english), ("es", "es", spanish)):
            (tmp_path / f"libreoffice-help-{name}_1_all.deb").write_bytes(deb(pages, language))
        monkeypatch.setattr("sys.argv", ["", str(tmp_path / "out"), "en-es", "--packages", str(tmp_path)])
        main()
        out = tmp_path / "out" / "en-es"
        rows = {part: (out / f"{part}.tsv").read_text().splitlines()[1:] for part in ("train", "dev", "test")}
        return rows, out

    return run


def test_a_text_of_the_test_documents_is_in_no_training_document(build):
    english = {
        BY_PART["train"]: page({"1": "Click <b>Open</b>,<br/>then go.", "2": "Same text.", "3": "LibreOffice"}),
        BY_PART["dev"]: page({"1": "A menu.", "2": "same  TEXT."}),
        BY_PART["test"]: page({"9": "Same text."}),
    }
    spanish = {
        BY_PART["train"]: page({"1": "Pulse <b>Abrir</b> y siga.", "2": "El texto.", "3": "LibreOffice"}),
        BY_PART["dev"]: page({"2": "Texto.", "1": "Un menú."}),
        BY_PART["test"]: page({"9": "Mismo texto."}),
    }
    rows, out = build(english, spanish)
    assert rows == {
        "train": [f"Click Open, then go.\tPulse Abrir y siga.\t{BY_PART['train']}"],  # and no untranslated text
        "dev": [f"A menu.\tUn menú.\t{BY_PART['dev']}"],
        "test": [f"Same text.\tMismo texto.\t{BY_PART['test']}"],
    }
    assert (out / "train.clean.tsv").read_text() == "Click Open, then go.\tPulse Abrir y siga.\n"
    kept = [file.relative_to(out / "pages").as_posix() for file in out.rglob("*.html")]
    name = BY_PART["test"].removeprefix("text/")
    assert sorted(kept) == [f"en/{name}", f"es/{name}"]


def test_a_file_that_is_no_package_is_named(tmp_path, monkeypatch):
    (tmp_path / "libreoffice-help-es_1_all.deb").write_bytes(b"<html>not found</html>")
    monkeypatch.setattr("sys.argv", ["", str(tmp_path / "out"), "es-de", "--packages", str(tmp_path)])
    with pytest.raises(Exception, match="libreoffice-help-de"):
        main()
    (tmp_path / "libreoffice-help-de_1_all.deb").write_bytes(b"<html>not found</html>")
    with pytest.raises(Exception, match="is no Debian package"):
        main()
