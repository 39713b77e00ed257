"""What the installation without PyTorch does: `make test-runtime` runs this in an environment of its own."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zipfile
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import deepl
import libretranslatepy
import pytest

pytestmark = pytest.mark.skipif(find_spec("torch") is not None, reason="make test-runtime runs this without PyTorch")

W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
DOCUMENT = (
    f'<w:document {W}><w:body><w:p><w:r><w:t xml:space="preserve">We like </w:t></w:r><w:r><w:rPr><w:b/></w:rPr>'
    '<w:t>the beach</w:t></w:r><w:r><w:t xml:space="preserve"> and soccer.</w:t></w:r></w:p>'
    "<w:p><w:r><w:t>She is happy.</w:t></w:r></w:p></w:body></w:document>"
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
NO_CONFIDENCE = "reads attention, which needs PyTorch: translations have no confidence"


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


def checked_output(*arguments):
    result = command(*arguments)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_texts_and_alignments_are_those_of_pytorch(prepared):
    expected = json.loads((prepared / "expected.json").read_text())
    lines = checked_output("translate", prepared / "run", "--beam", 1, "--alignments", *expected).splitlines()
    for line, right in zip(lines, expected.values(), strict=True):
        links = " ".join(f"{source}-{target}" for source, target in right["alignment"])
        assert line == f"{right['text']}\t{links}"


@pytest.fixture(scope="module")
def document(prepared):
    """A .docx with bold words in its first paragraph."""
    file = prepared / "in.docx"
    with zipfile.ZipFile(file, "w") as packed:
        packed.writestr("[Content_Types].xml", TYPES)
        packed.writestr("_rels/.rels", RELATIONSHIPS)
        packed.writestr("word/document.xml", DOCUMENT)
    return file


def paragraphs(file):
    """Return the text of each paragraph of a .docx, its bold words in asterisks."""
    with zipfile.ZipFile(file) as packed:
        xml = packed.read("word/document.xml").decode()
    xml = re.sub(r"<w:rPr><w:b/>.*?</w:rPr>(<w:t[^>]*>)([^<]*)", r"\1*\2*", xml)
    return [re.sub("<[^>]+>", "", paragraph) for paragraph in xml.split("</w:p>")[:-1]]


def test_a_document_with_tags_terms_and_a_memory(prepared, document):
    terms, memory, target = prepared / "terms.tsv", prepared / "memory.tsv", prepared / "out.docx"
    terms.write_text("soccer\tbalompié\n")
    memory.write_text("She is happy.\tElla está contenta.\n")
    checked_output("translate", prepared / "run", document, "--output", target, "--terms", terms, "--memory", memory)
    first, second = paragraphs(target)
    assert re.search(r"\*[^*]+\*", first) and first.count("*") == 2 and "beach" not in first
    assert "balompié" in first
    assert second == "Ella está contenta."


@pytest.fixture(scope="module")
def by_attention(prepared):
    """The run, in the opposite direction, with a confidence that was fitted to features of the attention."""
    folder = prepared / "by-attention"
    shutil.copytree(prepared / "run", folder)
    shutil.copy(prepared / "attention-confidence.json", folder / "confidence.json")
    config = (folder / "config.yaml").read_text()
    config = config.replace("source_language: en", "source_language: es")
    config = config.replace("target_language: es", "target_language: en")
    (folder / "config.yaml").write_text(config)
    return folder


@pytest.fixture(scope="module")
def ssru(prepared):
    """A run with a decoder that CTranslate2 does not have."""
    folder = prepared / "ssru"
    shutil.copytree(prepared / "run", folder)
    config = (folder / "config.yaml").read_text()
    (folder / "config.yaml").write_text(config.replace("  decoder: self-attention\n", "  decoder: ssru\n"))
    return folder


def test_token_scores_and_confidence_from_them_are_those_of_pytorch(prepared):
    expected = json.loads((prepared / "expected.json").read_text())
    options = ["--beam", 1, "--format", "jsonl-tokens"]
    lines = checked_output("translate", prepared / "run", *options, *expected).splitlines()
    for line, right in zip(lines, expected.values(), strict=True):
        record = json.loads(line)
        assert record["confidence"] == pytest.approx(right["confidence"], abs=1e-3)
        (tokens,) = record["token_log_probabilities"]
        assert [piece for piece, _ in tokens] == [piece for piece, _ in right["tokens"]]
        right_scores = [score for _, score in right["tokens"]]
        assert [score for _, score in tokens] == pytest.approx(right_scores, abs=1e-3)


def test_without_confidence_from_attention_features_translate_says_so(by_attention):
    result = command("translate", by_attention, "--format", "jsonl", "Me gusta.")
    assert result.returncode == 0 and "confidence" not in json.loads(result.stdout)
    assert NO_CONFIDENCE in result.stderr


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (["translate", "RUN", "--temperature", "1", "She is happy."], "sampling"),
        (["translate", "RUN", "--engine", "torch", "She is happy."], "the engine torch"),
        (["align", "RUN", "--pairs", "TEST", "--statistics"], "--statistics"),
        (["align", "RUN", "--pairs", "TEST", "--method", "contributions"], "--method contributions"),
        (["align", "SSRU", "--pairs", "TEST"], "which CTranslate2 does not support"),
        (["translate", "SPANISH", "--rerank-with", "RUN", "Me gusta."], "ranking with a model of the other direction"),
        (["translate", "RUN", "--ensemble", "RUN", "She is happy."], "the engine torch"),
        (["look", "RUN", "She is happy."], ""),
        (["train", "--train", "train.tsv", "--out", "other"], ""),
        (["demo"], ""),
        (["evaluate", "RUN", "--test", "TEST"], ""),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_commands_that_need_pytorch_say_so_in_one_line(prepared, by_attention, ssru, arguments, what):
    names = {"RUN": prepared / "run", "SPANISH": by_attention, "SSRU": ssru}
    names |= {"TEST": prepared / "test.tsv", "train.tsv": prepared / "train.tsv"}
    result = command(*[names.get(argument, argument) for argument in arguments])
    assert result.returncode == 2 and not result.stdout
    (line,) = result.stderr.splitlines()
    assert line.startswith("error: ") and what in line
    assert "needs the package PyTorch. Install it with pip install" in line and "torch" in line


@pytest.fixture(scope="module")
def server(prepared, by_attention):
    """The address of a server with both runs, and the file of its messages."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    runs, log = [str(prepared / "run"), str(by_attention)], prepared / "server.log"
    arguments = [sys.executable, "-m", "translucid", "serve", *runs, "--port", str(port)]
    with log.open("w") as messages, subprocess.Popen(arguments, stderr=messages) as process:
        for _ in range(300):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5).close()
                break
            except OSError:
                time.sleep(0.2)
        yield SimpleNamespace(address=f"http://127.0.0.1:{port}", log=log)
        process.terminate()


def ask(server, path, fields):
    request = urllib.request.Request(server.address + path, json.dumps(fields).encode())
    request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request, timeout=60) as response:
        return json.load(response)


def test_the_client_of_libretranslate(server, prepared):
    client = libretranslatepy.LibreTranslateAPI(server.address)
    text = "We like the beach and soccer."
    assert client.translate(text, "en", "es") == checked_output("translate", prepared / "run", text).strip()
    assert {language["code"] for language in client.languages()} == {"en", "es"}
    assert client.detect("Los niños leen un libro en el jardín")[0]["language"] == "es"


def test_the_client_of_deepl(server, prepared, document, monkeypatch):
    # The client asks every five seconds whether a document is done.
    clock = SimpleNamespace(time=time.time, sleep=lambda seconds: time.sleep(0.05))
    monkeypatch.setattr(deepl.translator, "time", clock)
    client = deepl.Translator("any key", server_url=server.address)
    sides = {"source_lang": "EN", "target_lang": "ES"}
    assert (
        client.translate_text("She is happy.", **sides).text
        == checked_output("translate", prepared / "run", "She is happy.").strip()
    )
    tagged = client.translate_text("We like <b>soccer</b>.", tag_handling="html", **sides).text
    assert re.search("<b>.+</b>", tagged)
    glossary = client.create_glossary("words", "EN", "ES", {"soccer": "balompié"})
    target = prepared / "by-deepl.docx"
    client.translate_document_from_filepath(document, target, glossary=glossary, **sides)
    first, _ = paragraphs(target)
    assert first.count("*") == 2 and "balompié" in first


def test_the_server_has_confidence_from_token_features_only(server):
    fields = {"q": "She is happy.", "source": "en", "target": "es", "confidence": True}
    assert 0 < ask(server, "/translate", fields)["confidence"] < 1
    fields = {"q": "Me gusta.", "source": "es", "target": "en", "confidence": True}
    assert ask(server, "/translate", fields)["confidence"] is None
    assert server.log.read_text().count(NO_CONFIDENCE) == 1


@pytest.mark.parametrize("path", ["/look", "/beam"])
def test_the_server_has_no_inspection(server, path):
    with pytest.raises(urllib.error.HTTPError) as refused:
        ask(server, path, {"q": "She is happy.", "source": "en", "target": "es"})
    assert refused.value.code == 501 and "needs the package PyTorch" in json.load(refused.value)["error"]


def test_python_translates_and_has_confidence_of_words():
    from translucid import Translator

    folder = Path(os.environ["RUNTIME_PREPARED"]) / "run"
    translation = Translator.load(folder).translate("She is happy.")
    assert "torch" not in sys.modules and translation.text
    assert all(0 < probability <= 1 for _, probability in translation.word_probabilities)
