"""Every command of the tutorial and the README runs, in order and as written there.

The tests make the files and models that the pages name, end trainings after a few updates, stop servers as soon as they
respond, and leave out `make` commands.
"""

import contextlib
import gzip
import io
import json
import re
import shlex
import shutil
import socket
import threading
import time
import urllib.request
import zipfile
from functools import partialmethod
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.cli.conftest import Outcome
from tests.conftest import SHORT
from tests.probes.foreign import marian_folder
from translucid import Translator
from translucid.captions import demonstration as caption_demonstration
from translucid.cli.main import run
from translucid.corpora.phrasebook import generate
from translucid.distillation import report as measuring
from translucid.distillation.report import Report
from translucid.jobs import processes
from translucid.lessons import demonstration
from translucid.runs.configuration import resolve

ROOT = Path(__file__).resolve().parents[2]
TUTORIAL, README = ROOT / "docs" / "tutorial.md", ROOT / "README.md"
LIMITS = ["training.max_steps=2", "training.validate_every=2", "training.validate_sentences=4", *SHORT]
SMALL = ["model.width=32", "model.heads=2", "model.feed_forward=64"]
SMALL_LANGUAGE = ["model.width=32", "model.hidden=32"]
"""Sizes for trainings that name no model, and for trainings of a language model, so that each step takes seconds."""
SERVERS = ("serve", "learn")
PATIENCE = 120.0
"""Wall-clock seconds within which a server has to respond."""


def steps(text: str) -> list[tuple[str, str]]:
    """Return the steps of a page in order: ("shell", a line) and ("python", a block)."""
    extracted: list[tuple[str, str]] = []
    for language, block in re.findall(r"^```(\w*)\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL):
        if language == "python":
            extracted.append(("python", block))
            continue
        lines = block.splitlines()
        commands = [line.split("  #")[0].strip() for line in lines if line.startswith(("translucid ", "make "))]
        assert len(commands) in (0, len(lines)), f"commands and their output in one block: {block}"
        extracted += [("shell", command) for command in commands]
    return extracted


class Reader:
    """Runs the commands and code blocks of a page, in a separate folder."""

    def __init__(self, capfd) -> None:
        self.capfd = capfd
        self.names: dict[str, object] = {}
        self.servers: list = []
        self.completed: list[str] = []

    def follow(self, page: Path) -> None:
        """Run every command and every Python block of a page."""
        for kind, step in steps(page.read_text(encoding="utf-8")):
            if kind == "python":
                with contextlib.redirect_stdout(io.StringIO()):
                    exec(compile(step, page.name, "exec"), self.names)
            elif not step.startswith("make "):
                arguments = shlex.split(step)[1:]
                if arguments[0] == "tune":
                    replace_half(Path(arguments[2]), Path(arguments[-1]))
                outcome = self.serve(arguments) if arguments[0] in SERVERS else self.call(arguments)
                assert outcome.code == 0, f"{step}\n{outcome.err}"
                assert "Traceback" not in outcome.err, f"{step}\n{outcome.err}"
                self.completed.append(step)

    def call(self, arguments: list[str]) -> Outcome:
        """Run a command, with settings that end trainings after a few updates."""
        if arguments[0] == "train":
            small = SMALL
            if "lm-lstm" in arguments:
                small = SMALL_LANGUAGE
            elif {"--model", "--init-from"} & {*arguments}:
                small = []
            # One of the trainings ends by measuring engines; the others would take half of their time for it.
            untuned = [] if {"runs/mine", "lm-lstm"} & {*arguments} else ["--no-tune"]
            arguments = [*arguments, *untuned, "--set", *LIMITS, *small]
        if arguments[0] == "distill":
            arguments = [*arguments, "--set", *LIMITS, *SMALL]
        self.capfd.readouterr()
        code = run(arguments)
        return Outcome(code, *self.capfd.readouterr())

    def serve(self, arguments: list[str]) -> Outcome:
        """Run a server until it has responded, then stop it."""
        codes: list[int] = []
        self.servers.clear()
        thread = threading.Thread(target=lambda: codes.append(run(arguments)))
        thread.start()
        end = time.monotonic() + PATIENCE
        log = ""
        while not (match := re.search(r"on (http://\S+)", log)) and thread.is_alive():
            assert time.monotonic() < end, log
            time.sleep(0.05)
            log += self.capfd.readouterr().err
        if match:
            with urllib.request.urlopen(match[1].rstrip(";"), timeout=PATIENCE) as response:
                assert response.status == 200 and b"<html" in response.read()
            for server in self.servers:
                server.shutdown() if isinstance(server, ThreadingHTTPServer) else setattr(server, "should_exit", True)
        thread.join(PATIENCE)
        assert not thread.is_alive(), "the server does not go down"
        return Outcome(codes[0], "", log)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The folder in which the tutorial is followed; the README needs its run, which `make demo` would make."""
    return tmp_path_factory.mktemp("walkthrough")


@pytest.fixture
def reader(folder, capfd, forked_workers, monkeypatch):
    from translucid.lessons import serving
    from translucid.serving.edge.connections import Listening

    monkeypatch.setattr(demonstration, "SIZES", {"train": 1200, "valid": 12, "test": 12})
    monkeypatch.setattr(demonstration, "GOLD", 12)
    monkeypatch.setattr(caption_demonstration, "SCENES", 20)
    monkeypatch.setattr(caption_demonstration, "SHOWN", 1)
    # The report on a student takes most of the time of the whole page otherwise.
    monkeypatch.setattr(Report, "measure", partialmethod(Report.measure, sentences=4, rounds=1, seconds=0.01))
    monkeypatch.setattr(measuring, "FEWEST_TOGETHER", 4)
    monkeypatch.setattr(measuring, "FEWEST_ALONE", 1)

    def small(preset, overrides):
        settings = LIMITS if preset == "caption-demo" else [*LIMITS, *SMALL]
        return resolve(preset=preset, overrides=overrides, assignments=settings)

    monkeypatch.setattr(demonstration, "resolve", small)
    start = processes.processes  # two processes are enough
    monkeypatch.setattr(processes, "processes", lambda job, count: start(job, min(count, 2)))
    reader = Reader(capfd)

    def watched(kind):
        begin = kind.__init__

        def beginning(self, *args, **kwargs):
            begin(self, *args, **kwargs)
            reader.servers.append(self)

        monkeypatch.setattr(kind, "__init__", beginning)

    watched(Listening)
    watched(serving.ThreadingHTTPServer)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    for variable in ("TRANSLUCID_PORT", "TRANSLUCID_LEARN_PORT"):  # the default port may be in use on this machine
        monkeypatch.setenv(variable, port)
    return reader


def test_the_commands_of_the_tutorial(reader, folder, monkeypatch):
    monkeypatch.chdir(folder)
    reader.follow(TUTORIAL)
    assert len(reader.completed) == 10
    assert {"beam.svg", "curves.png", "runs"} <= {path.name for path in folder.iterdir()}


def test_the_commands_of_the_readme(reader, folder, tmp_path, monkeypatch):
    if not (folder / "runs" / "demo").exists():
        monkeypatch.chdir(folder)
        assert reader.call(["demo"]).code == 0
    shutil.copytree(folder / "runs" / "demo", tmp_path / "runs" / "demo")
    monkeypatch.chdir(tmp_path)
    files_of_the_readme()
    reader.follow(README)
    assert len(reader.completed) >= 20
    assert all((tmp_path / name).exists() for name in ("out.txt", "handbook.es.docx", "es.new.po", "clean.tsv"))


def files_of_the_readme() -> None:
    """Make the files and the foreign model that the README names."""
    pairs = [(pair.source, pair.target) for pair in generate(900, max_words=9)]
    for name, first, after in (("pairs", 0, 120), ("general", 300, 500), ("dev", 600, 640), ("test", 640, 660)):
        Path(f"{name}.tsv").write_text("".join(f"{source}\t{target}\n" for source, target in pairs[first:after]))
    Path("huge.txt").write_text("".join(f"{source}\n" for source, _ in pairs[660:690]))
    Path("more.en.gz").write_bytes(gzip.compress("".join(f"{source}\n" for source, _ in pairs[720:730]).encode()))
    Path("articles.txt").write_text("".join(f"{source}\n" for source, _ in pairs[:600]))
    for name in ("eng-fra", "eng-deu", "eng-spa"):
        shutil.copy("general.tsv", f"{name}.tsv")
    for name in ("dev-fra", "dev-deu", "dev-spa", "test-fra", "test-deu"):
        shutil.copy("test.tsv", f"{name}.tsv")
    for name, first, after in (("chapters", 0, 100), ("dev", 100, 110)):
        rows = [{"source": source, "target": target, "document": "a"} for source, target in pairs[first:after]]
        Path(f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name in ("ours", "memory"):
        Path(f"{name}.tmx").write_text(tmx(pairs[700:720]))
    Path("terms.tsv").write_text("house\tvivienda\n")
    Path("es.po").write_text(
        'msgid ""\nmsgstr "Content-Type: text/plain; charset=UTF-8\\n"\n\nmsgid "I sing"\nmsgstr ""\n'
    )
    Path("docs").mkdir()
    Path("docs/page.html").write_text("<p>I sing</p>")
    with zipfile.ZipFile("handbook.docx", "w") as packed:
        for name, content in DOCX.items():
            packed.writestr(name, content)
    marian_folder(Path("opus-mt-en-es"))


def replace_half(model: Path, file: Path) -> None:
    """Replace every second reference by the model's translation: confidence is fitted to good and bad translations."""
    pairs = [line.split("\t") for line in file.read_text().splitlines()]
    translations = Translator.load(model).translate([source for source, _ in pairs])
    for pair, translation in zip(pairs[1::2], translations[1::2], strict=True):
        pair[1] = translation.text
    file.write_text("".join(f"{source}\t{target}\n" for source, target in pairs))


def tmx(pairs: list[tuple[str, str]]) -> str:
    units = "".join(
        f'<tu><tuv xml:lang="en"><seg>{source}</seg></tuv><tuv xml:lang="es"><seg>{target}</seg></tuv></tu>'
        for source, target in pairs
    )
    return f'<?xml version="1.0"?><tmx version="1.4"><header srclang="en"/><body>{units}</body></tmx>'


_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
DOCX = {
    "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types"><Default Extension="rels" '
    'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
    f'<Override PartName="/word/document.xml" ContentType="{_TYPE}"/></Types>',
    "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="r1" '
    'Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument" '
    'Target="word/document.xml"/></Relationships>',
    "word/document.xml": f'<w:document xmlns:w="{_WORD}"><w:body><w:p><w:r><w:t>I sing.</w:t></w:r></w:p></w:body>'
    "</w:document>",
}


def test_a_failing_command_is_detected(reader, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    for block in ("```\ntranslucid translate nowhere hello\n```\n", "```python\nno_such_name\n```\n"):
        page.write_text(block)
        with pytest.raises((AssertionError, NameError)):
            reader.follow(page)
    with pytest.raises(AssertionError, match="in one block"):
        steps("```\ntranslucid models\nrnn\n```\n")
