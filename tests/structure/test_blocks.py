"""Every Python block in the README and the docs runs, on barely trained models.

tests/interop/test_onnx.py tests the block that needs neither this package nor PyTorch.
"""

import contextlib
import io
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from tests.conftest import IMAGE_ENCODER, SHAPE
from tests.probes.foreign import many_languages_folder, marian_folder
from translucid import Translator
from translucid.cli.main import run
from translucid.distillation import report

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(text):
    matches = re.findall(r"^```python\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    return [block for block in matches if "sys.argv" not in block]


def called(*arguments):
    assert run([str(argument) for argument in arguments]) == 0


def trained(corpus, out, *settings):
    limits = ["training.max_steps=2", "training.validate_every=2", "model.encoder_layers=2", "model.decoder_layers=2"]
    called("train", "--train", corpus / "train.tsv", "--out", out, "--no-tune", "--set", *SHAPE, *limits, *settings)


@pytest.fixture(scope="module")
def demo(corpus, tmp_path_factory):
    """A translator with two layers on each side."""
    out = tmp_path_factory.mktemp("blocks") / "demo"
    trained(corpus, out, "data.source_language=en", "data.target_language=es")
    return out


def a_page(corpus):
    Path("page.html").write_text("<p>Good <b>morning</b>.</p>")


def a_memory(corpus):
    Path("old.tsv").write_text("Save the page\tGuarde la página\n")
    called("memory", "add", "mine.memory", "old.tsv", "--source-language", "en", "--target-language", "es")


def terms(corpus):
    Path("terms.tsv").write_text("house\tvivienda\nTranslucid\n")


def many_languages(corpus):
    many_languages_folder(Path("theirs"), end=2.0, codes=("en", "es", "fr"))
    called("import", "theirs", "runs/m2m")


def runs_to_pivot_through(corpus):
    for source, target in (("es", "en"), ("en", "fr")):
        run = Path(f"runs/{source}-{target}")
        shutil.copytree("runs/demo", run)
        settings = (run / "config.yaml").read_text()
        settings = settings.replace("target_language: es", f"target_language: {target}")
        (run / "config.yaml").write_text(settings.replace("source_language: en", f"source_language: {source}"))
    many_languages_folder(Path("theirs"), end=2.0, codes=("en", "es", "fr"))
    called("import", "theirs", "runs/many")


def for_transformers(corpus):
    called("export", "runs/demo", "demo-hf", "--to", "huggingface")


def context(corpus):
    limits = ["training.max_steps=1", "training.validate_every=1", "data.context=2"]
    files = ["--train", corpus / "train.tsv", "--valid", corpus / "test.tsv"]
    called("train", *files, "--out", "runs/context", "--no-tune", "--set", *SHAPE, *limits)


def adapters(corpus):
    limits = ["training.max_steps=1", "training.validate_every=1", "training.adapter_rank=2"]
    called(
        *("train", "--init-from", "runs/es", "--train", corpus / "train.tsv", "--out", "runs/legal-lora", "--no-tune"),
        *("--set", *limits),
    )
    Path("runs/es/adapters").mkdir()
    shutil.copy("runs/legal-lora/adapter.safetensors", "runs/es/adapters/mine.safetensors")


def an_opus_model(corpus):
    marian_folder(Path("opus-mt-en-de"), end=2.0, encoder_layers=3)


def captioner(corpus):
    called("data", "scenes", "scenes", "--count", "40")
    limits = ["training.max_steps=1", "training.validate_every=1", "training.batch_tokens=128"]
    called(
        *("train", "--model", "caption-soft", "--train", "scenes/train.tsv", "--images", "scenes/images.tar"),
        *("--out", "runs/eyes", "--set"),
        *(*IMAGE_ENCODER, *limits),
    )
    Image.new("RGB", (64, 48), "red").save("photograph.jpg")


def dictionary(corpus):
    files = ["--text", corpus / "train.tsv", "--valid", corpus / "test.tsv", "--sentences", 2]
    called("features", "runs/demo", *files, "--updates", 2)


PREPARED: dict[str, Callable[[Path], None]] = {
    "documents.md": a_page,
    "memory.md": a_memory,
    "terminology.md": terms,
    "context.md": context,
    "importing.md": many_languages,
    "multilingual.md": runs_to_pivot_through,
    "export.md": for_transformers,
    "fine-tuning.md": adapters,
    "captions.md": captioner,
    "interventions.md": an_opus_model,
    "circuits.md": dictionary,
}
"""Functions that make the files and models of a page before its blocks run."""


SHORTER = {
    '"training.max_steps": 20': '"training.max_steps": 2',
    "measure(sentences=100, rounds=1, seconds=0.1)": "measure(sentences=4, rounds=1, seconds=0.01)",
}
"""Parts of blocks that are replaced to save time."""


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page.read_text())], ids=lambda page: page.name)
def test_python_blocks_of_a_page_run(page, demo, corpus, tmp_path, monkeypatch):
    for name in ("demo", "en-es", "es"):
        shutil.copytree(demo, tmp_path / "runs" / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(report, "FEWEST_TOGETHER", 4)
    monkeypatch.setattr(report, "FEWEST_ALONE", 1)
    PREPARED.get(page.name, lambda corpus: None)(corpus)
    names = {"Translator": Translator}
    if "translator = " not in "".join(blocks(page.read_text())):
        names["translator"] = Translator.load("runs/demo")
    with contextlib.redirect_stdout(io.StringIO()):
        for block in blocks(page.read_text()):
            for written, shorter in SHORTER.items():
                block = block.replace(written, shorter)
            exec(compile(block, page.name, "exec"), names)


def test_a_failing_block_is_detected():
    (block,) = blocks("a\n\n```python\nno_such_name\n```\n\n```\nno Python\n```\n")
    with pytest.raises(NameError):
        exec(block, {})
