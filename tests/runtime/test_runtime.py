"""What the installation without PyTorch does: `make test-runtime` runs this in an environment of its own."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(find_spec("torch") is not None, reason="make test-runtime runs this without PyTorch")

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
DOCUMENT = (
    f'<w:document {W}><w:body><w:p><w:r><w:t xml:space="preserve">We like </w:t></w:r><w:r><w:rPr><w:b/></w:rPr>'
    '<w:t>the beach</w:t></w:r><w:r><w:t xml:space="preserve"> and soccer.</w:t></w:r></w:p></w:body></w:document>'
)
TYPES = (
    f'<Types xmlns="{PACKAGE}/content-types"><Default Extension="rels" '
    'ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/word/document.xml" '
    'ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>'
)
RELATIONSHIPS = (
    f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="r1" Type="http://schemas.openxmlformats.org/'
    'officeDocument/2006/relationships/officeDocument" Target="word/document.xml"/></Relationships>'
)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """A copy of what `prepare` wrote, and a cache without converted models."""
    folder = tmp_path_factory.mktemp("runtime") / "prepared"
    shutil.copytree(os.environ["RUNTIME_PREPARED"], folder)
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
    return folder


def command(*arguments):
    process = [sys.executable, "-m", "translucid", *map(str, arguments)]
    return subprocess.run(process, capture_output=True, text=True, timeout=300)


def done(*arguments):
    result = command(*arguments)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_texts_and_alignments_are_those_of_pytorch(prepared):
    expected = json.loads((prepared / "expected.json").read_text())
    lines = done("translate", prepared / "run", "--beam", 1, "--alignments", *expected).splitlines()
    for line, right in zip(lines, expected.values(), strict=True):
        links = " ".join(f"{source}-{target}" for source, target in right["alignment"])
        assert line == f"{right['text']}\t{links}"


def test_terms_and_memory(prepared):
    terms = prepared / "terms.tsv"
    terms.write_text("soccer\tbalompié\n")
    assert "balompié" in done("translate", prepared / "run", "--terms", terms, "We like the beach and soccer.")
    memory = prepared / "memory.tsv"
    memory.write_text("She is happy.\tElla está contenta.\n")
    assert done("translate", prepared / "run", "--memory", memory, "She is happy.").strip() == "Ella está contenta."


def test_a_document_keeps_its_tags(prepared):
    source, target = prepared / "in.docx", prepared / "out.docx"
    with zipfile.ZipFile(source, "w") as packed:
        packed.writestr("[Content_Types].xml", TYPES)
        packed.writestr("_rels/.rels", RELATIONSHIPS)
        packed.writestr("word/document.xml", DOCUMENT)
    done("translate", prepared / "run", source, "--output", target)
    with zipfile.ZipFile(target) as packed:
        text = packed.read("word/document.xml").decode()
    bold = re.search(r"<w:rPr><w:b/>.*?<w:t[^>]*>([^<]+)</w:t>", text)
    assert bold and "beach" not in text and text.count("<w:b/>") == 1


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["translate", "RUN", "--sample", "She is happy."], "sampling"),
        (["translate", "RUN", "--engine", "torch", "She is happy."], "--engine torch"),
        (["look", "RUN", "She is happy."], ""),
        (["train", "--train", "train.tsv", "--out", "other"], ""),
        (["demo"], ""),
        (["evaluate", "RUN", "--test", "TEST"], ""),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_what_needs_pytorch_says_so_in_one_line(prepared, arguments, what):
    names = {"RUN": prepared / "run", "TEST": prepared / "test.tsv", "train.tsv": prepared / "train.tsv"}
    result = command(*[names.get(argument, argument) for argument in arguments])
    assert result.returncode == 2 and not result.stdout
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ") and what in line
    assert "needs the package PyTorch. Install it with pip install" in line and "torch" in line


def ask(port, path, fields):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", json.dumps(fields).encode())
    request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


@pytest.fixture(scope="module")
def port(prepared):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    arguments = [sys.executable, "-m", "translucid", "serve", str(prepared / "run"), "--port", str(port)]
    with subprocess.Popen(arguments, stderr=subprocess.DEVNULL) as server:
        for _ in range(300):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).close()
                break
            except OSError:
                time.sleep(0.2)
        yield port
        server.terminate()


def test_the_server_answers_requests_of_libretranslate_and_deepl(port, prepared):
    expected = json.loads((prepared / "expected.json").read_text())
    text = next(iter(expected))
    answer = ask(port, "/translate", {"q": [text], "source": "en", "target": "es"})
    (translated,) = answer["translatedText"]
    assert translated
    html = ask(port, "/translate", {"q": "We like <b>soccer</b>.", "source": "en", "target": "es", "format": "html"})
    assert re.search("<b>.+</b>", html["translatedText"])
    deepl = ask(port, "/v2/translate", {"text": [text], "source_lang": "EN", "target_lang": "ES"})
    assert deepl["translations"][0]["text"] == translated
    with pytest.raises(urllib.error.HTTPError) as refused:
        ask(port, "/look", {"q": text, "source": "en", "target": "es"})
    assert refused.value.code == 501 and "needs the package PyTorch" in json.load(refused.value)["error"]


def test_python_translates_and_has_confidence_of_words():
    from translucid import Translator

    folder = Path(os.environ["RUNTIME_PREPARED"]) / "run"
    translation = Translator.load(folder).translate("She is happy.")
    assert "torch" not in sys.modules and translation.text
    assert all(0 < probability <= 1 for _, probability in translation.word_probabilities)
