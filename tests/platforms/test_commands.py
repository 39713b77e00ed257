"""Whole commands on emulated Windows and macOS."""

import json
import socket
import threading
import time
import urllib.request

import pytest

from tests.platforms.conftest import SMALL, TINY
from translucid.captions.scenes.writing import write_corpus
from translucid.serving.edge import connections

FILES = "--train", "train.tsv", "--valid", "valid.tsv"
SCENES = {"--train": "train.tsv", "--valid": "valid.tsv", "--images": "images.tar"}


def test_data(on_windows):
    assert "train" in on_windows.call("data", "stats", "--train", "train.tsv", "--valid", "valid.tsv")
    pairs = (on_windows.folder / "train.tsv").read_bytes()
    assert "train" in on_windows.call("data", "stats", "--train", "-", stdin=pairs)
    on_windows.call("data", "clean", "train.tsv", "--out", "clean.tsv")
    assert (on_windows.folder / "clean.tsv").read_bytes().count(b"\n") > 50


def test_a_translator_is_trained_resumed_with_an_equal_corpus_in_another_file_and_replaced(workspace):
    run, corpus = workspace.train("again", *FILES, settings=[*SMALL, "training.max_steps=2"]), "train.tsv"
    content = (workspace.folder / corpus).read_bytes()
    try:
        for steps, ending in ((3, b"\r\n"), (4, b"\n")):
            (workspace.folder / corpus).write_bytes(content.replace(b"\n", ending))
            workspace.call("train", "--resume", "--out", "again", "--set", f"training.max_steps={steps}")
            assert f"step {steps} " in workspace.log
            assert sorted(folder.name for folder in (run / "state").iterdir() if folder.is_dir()) == ["corpus"]
    finally:
        (workspace.folder / corpus).write_bytes(content)
    workspace.call("train", *FILES, "--out", "again", "--overwrite", "--set", *SMALL, "training.max_steps=2")
    assert "step 2 " in workspace.log
    assert not [file.name for file in run.iterdir() if file.name.startswith(".") and file.is_dir()]


@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_translations(workspace, engine):
    run = workspace.translator
    lines = workspace.call("translate", run, "--engine", engine, stdin="The house.\n¡Olé!\n\n".encode()).split("\n")
    assert len(lines) == 4 and "\r" not in "".join(lines)
    workspace.call("translate", run, "--input", "text.txt", "--output", "out.txt", "--overwrite", "--engine", engine)
    assert (workspace.folder / "out.txt").read_bytes().count(b"\n") == 3
    assert b"\r" not in (workspace.folder / "out.txt").read_bytes()


def test_translations_by_several_processes(on_windows, forked_workers):
    (on_windows.folder / "long.txt").write_bytes(b"The house is big.\n" * 60)
    options = "--input", "long.txt", "--output", "long.out", "--workers", 2, "--beam", 1
    on_windows.call("translate", on_windows.translator, *options)
    assert (on_windows.folder / "long.out").read_bytes().count(b"\n") == 60


def test_documents_terms_and_alignments(on_windows):
    on_windows.call("translate", on_windows.translator, "--input", "text.md", "--output", "out.md")
    assert (on_windows.folder / "out.md").read_bytes().startswith(b"# ")
    aligned = on_windows.call(
        *("translate", on_windows.translator, "--input", "text.txt", "--terms", "terms.tsv", "--alignments")
    )
    assert "casa" in aligned and "\t" in aligned


def test_what_a_model_looks_at(on_windows):
    run, text = on_windows.translator, "The house is big."
    assert "▇" in on_windows.call("look", run, text)
    on_windows.call("look", run, text, "--save", "maps.html")
    assert "charset" in (on_windows.folder / "maps.html").read_text(encoding="utf-8")
    assert on_windows.call("explain", run, text)


def test_measures(on_windows):
    run = on_windows.translator
    assert "BLEU" in on_windows.call("evaluate", run, "--test", "valid.tsv")
    assert "▁" in on_windows.call("score", run, "valid.tsv", "--tokens")
    assert on_windows.call("align", run, "--pairs", "valid.tsv").count("\n") == 4


def test_tuning(on_windows):
    on_windows.call("tune", "speed", on_windows.translator, "--sentences", 2)
    assert (on_windows.translator / "tuned.json").exists()


def test_memories(on_windows):
    on_windows.call("memory", "add", "mine.memory", "train.tsv")
    source = (on_windows.folder / "train.txt").read_text(encoding="utf-8").split("\n")[0]
    assert source in on_windows.call("memory", "find", "mine.memory", source)
    options = "--input", "text.txt", "--output", "remembered.txt"
    on_windows.call("translate", on_windows.translator, *options, "--memory", "mine.memory")
    on_windows.call("translate", on_windows.translator, *options, "--overwrite", "--memory", "train.tsv")
    limits = "--set", "training.max_steps=2", "training.validate_every=2"
    on_windows.call("memory", "learn", on_windows.translator, "mine.memory", "--out", "learned", *limits)
    assert "step 2 " in on_windows.log


@pytest.mark.parametrize("kind", ["ctranslate2", "huggingface"])
def test_exchange_with_other_toolkits(on_windows, kind):
    run = on_windows.translator
    for overwrite in ([], ["--overwrite"]):  # a folder is also replaced
        on_windows.call("export", run, f"as-{kind}", "--to", kind, *overwrite)
        on_windows.call("import", f"as-{kind}", f"from-{kind}", *overwrite)
    ours, imported = (on_windows.call("translate", model, "--input", "text.txt") for model in (run, f"from-{kind}"))
    assert ours == imported


def test_images(on_windows):
    write_corpus(on_windows.folder / "scenes", 8, size=32)
    files = [f"{option}=scenes/{name}" for option, name in SCENES.items()]
    settings = ["model.width=16", "model.image_encoder.size=32", "model.image_encoder.channels=4"]
    limits = ["training.max_steps=2", "decoding.max_length_extra=5"]
    on_windows.train("captioner", "--model", "caption-soft", *files, settings=[*settings, *TINY, *limits])
    on_windows.call("train", "--resume", "--out", "captioner", "--set", "training.max_steps=3")
    on_windows.call("caption", "captioner", "scenes/images.tar", "--output", "captions.txt")
    assert (on_windows.folder / "captions.txt").exists()


def test_language_models_and_classifiers(on_windows):
    run = on_windows.language_model
    on_windows.call("train", "--resume", "--out", run, "--set", "training.max_steps=3")
    assert on_windows.call("generate", run, "the", "--max-tokens", 5)
    files = "--train", "train-labels.tsv", "--valid", "valid-labels.tsv"
    on_windows.train(
        "classifier", "--init-from", run, "--model", "classifier", *files, settings=["training.max_steps=2"]
    )
    assert on_windows.call("classify", "classifier", "the house").split("\t")[0] in ("long", "short")


def test_a_server(workspace, monkeypatch):
    responses = []
    serve = connections.Listening.run

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def ask(server):
        while not server.started:
            time.sleep(0.02)
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/translate",
            json.dumps({"q": "The house is big.", "source": "en", "target": "es"}).encode(),
            {"Content-Type": "application/json"},
        )
        try:
            responses.append(json.load(urllib.request.urlopen(request)))
        finally:
            server.should_exit = True

    def run(server, sockets):
        threading.Thread(target=ask, args=(server,)).start()
        serve(server, sockets=sockets)

    monkeypatch.setattr(connections.Listening, "run", run)
    assert workspace.translator.exists()
    workspace.call("serve", "en-es=translator", "--port", port)
    assert isinstance(responses[0]["translatedText"], str)
