"""Install a wheel or an sdist into an empty environment, then train, translate, export and serve with it.

    python tests/packaging/smoke.py dist/translucid-0.1.0-py3-none-any.whl

It needs only Python and runs on Linux, macOS and Windows. pip's variables apply, such as PIP_CONSTRAINT.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
import venv
from pathlib import Path

EXTRAS = "train,serve"
SETTINGS = [
    *("data.source_language=en", "data.target_language=es"),
    *("model.width=32", "model.heads=2", "model.feed_forward=64", "data.tokenizer.vocabulary=300"),
    *("training.max_steps=20", "training.validate_every=10", "training.validate_sentences=4"),
    *("decoding.max_length_ratio=1", "decoding.max_length_extra=4"),
]
PATIENCE = 300
"""Seconds until the server has to answer."""


def install(package: Path, folder: Path) -> str:
    """Return the path of the command `translucid` in a new environment."""
    venv.create(folder, with_pip=True)
    programs = folder / ("Scripts" if os.name == "nt" else "bin")
    python = shutil.which("python", path=str(programs))
    subprocess.run([python, "-m", "pip", "install", f"{package.resolve()}[{EXTRAS}]"], check=True)
    return shutil.which("translucid", path=str(programs))


def check_commands(translucid: str) -> None:
    """Train a tiny model, and use it from the command line, in the current folder."""

    def call(*arguments: str) -> str:
        print("translucid", *arguments, flush=True)
        return subprocess.run([translucid, *arguments], check=True, stdout=subprocess.PIPE, encoding="utf-8").stdout

    for split, count in (("train", "300"), ("valid", "8")):
        call("data", "phrasebook", f"{split}.tsv", "--count", count, "--split", split)
    call("train", "--train", "train.tsv", "--valid", "valid.tsv", "--out", "run", "--set", *SETTINGS)
    assert call("translate", "run", "The house is big").count("\n") == 1
    Path("page.html").write_text("<p>The <b>house</b> is big.</p>\n", encoding="utf-8")
    call("translate", "run", "page.html", "--output", "page.es.html")
    assert Path("page.es.html").read_text(encoding="utf-8").count("<b>") == 1
    assert "BLEU" in call("evaluate", "run", "--test", "valid.tsv")
    call("look", "run", "The house is big", "--save", "map.svg")
    assert "<svg" in Path("map.svg").read_text(encoding="utf-8")
    python = str(Path(translucid).with_name("python"))
    subprocess.run([python, "-c", "from bitext import KINDS, read_document"], check=True)
    call("export", "run", "exported", "--to", "ctranslate2")
    assert Path("exported", "model.bin").stat().st_size > 0


def check_server(translucid: str) -> None:
    """Serve the run of `check_commands`, and request the page and a translation."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    server = subprocess.Popen([translucid, "serve", "run", "--port", str(port)])
    try:
        until = time.monotonic() + PATIENCE
        while not answers(f"{address}/health"):
            assert server.poll() is None and time.monotonic() < until, "the server does not answer"
            time.sleep(0.5)
        with urllib.request.urlopen(address, timeout=60) as response:
            assert b"<html" in response.read()
        form = urllib.parse.urlencode({"q": "The house is big", "source": "en", "target": "es"}).encode()
        with urllib.request.urlopen(f"{address}/translate", form, timeout=60) as response:
            assert "translatedText" in json.load(response)
    finally:
        server.terminate()
        server.wait(60)


def answers(address: str) -> bool:
    try:
        with urllib.request.urlopen(address, timeout=5) as response:
            return response.status == 200
    except OSError:
        return False


def main() -> None:
    package = Path(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="smoke-", ignore_cleanup_errors=True) as folder:
        translucid = install(package, Path(folder) / "environment")
        os.chdir(folder)
        check_commands(translucid)
        check_server(translucid)
        os.chdir(tempfile.gettempdir())  # Windows can't remove the current folder
    print(f"{package.name} works on Python {sys.version.split()[0]}, {sys.platform}")


if __name__ == "__main__":
    main()
