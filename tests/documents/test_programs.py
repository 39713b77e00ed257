"""Translated files, read by their programs; skipped if these are not installed."""

import re
import shutil
import subprocess
from random import Random

import pytest

from bitext.documents.document import read_document
from tests.documents.changing import all_changed
from tests.probes.documents import MAKERS

FILES = 3


def needs(program):
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"{program} is not installed")


def translated_files(name, folder):
    """Write generated documents and their translations; return pairs of paths."""
    pairs = []
    for number in range(FILES):
        before, after = folder / f"{number}-{name}", folder / f"{number}-translated-{name}"
        before.write_bytes(MAKERS[name](Random(number)))
        document = read_document(name, before.read_bytes(), ("en", "de"))
        after.write_bytes(document.filled(all_changed(document)))
        pairs.append((before, after))
    return pairs


@needs("soffice")
def test_libreoffice_reads_the_same_cells_in_translated_workbooks(tmp_path):
    pairs = translated_files("i.xlsx", tmp_path)
    all_sheets = "csv:Text - txt - csv (StarCalc):44,34,76,1,,0,false,true,false,false,false,-1"
    profile = f"-env:UserInstallation={(tmp_path / 'profile').as_uri()}"
    command = ["soffice", profile, "--headless", "--convert-to", all_sheets, "--outdir", tmp_path]
    files = [file for pair in pairs for file in pair]
    subprocess.run([*command, *files], check=True, capture_output=True, timeout=300)
    for before, after in pairs:
        for sheet in ("S1", "S2"):
            source, target = ((tmp_path / f"{file.stem}-{sheet}.csv").read_text() for file in (before, after))
            # There may be an additional space before a line end.
            assert source != target and "".join(source.lower().split()) == "".join(target.lower().split())


@needs("lrelease")
def test_lrelease_compiles_every_translation(tmp_path):
    for before, after in translated_files("app.ts", tmp_path):
        completed = subprocess.run(["lrelease", after], check=True, capture_output=True, text=True, timeout=300)
        expected = after.read_text().count("<message") - len(
            re.findall('type="(?:vanished|obsolete)"', after.read_text())
        )
        assert re.search(rf"Generated {expected} translation\(s\)", completed.stdout), (before, completed.stdout)
        assert not completed.stderr
