"""Train a small run and record the results with PyTorch, which `make test-runtime` compares.

python -m tests.runtime.prepare FOLDER
"""

import json
import sys
from pathlib import Path

from translucid import Translator
from translucid.api.fitting.confidence_fitting import fit_confidence
from translucid.cli.main import run
from translucid.corpora.phrasebook import generate
from translucid.ground.console import Console

TEXTS = ["I like soccer.", "The teacher reads a book.", "She is happy.", "We like the beach and soccer."]
SHAPE = ["model.width=32", "model.feed_forward=64", "model.heads=4", "data.tokenizer.vocabulary=400"]


def prepare(folder: Path) -> None:
    """Write `run`, `attention-confidence.json` and `expected.json` into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, count in (("train", 3000), ("test", 50)):
        pairs = generate(count, split=name)
        (folder / f"{name}.tsv").write_text("".join(f"{pair.source}\t{pair.target}\n" for pair in pairs))
    files = ["--train", str(folder / "train.tsv"), "--valid", str(folder / "test.tsv"), "--out", str(folder / "run")]
    limits = ["training.max_steps=300", "training.validate_every=300", "data.source_language=en"]
    code = run(["train", "--model", "demo", *files, "--no-tune", "--set", *SHAPE, *limits, "data.target_language=es"])
    assert code == 0
    # With this threshold, about half of the small model's translations count as good.
    fit = {"valid": [str(folder / "train.tsv")], "threshold": 12.0, "sentences": 200, "console": Console(quiet=True)}
    fit_confidence(folder / "run", kind="attention", **fit)
    (folder / "run" / "confidence.json").rename(folder / "attention-confidence.json")
    fit_confidence(folder / "run", kind="tokens", **fit)
    translator = Translator.load(folder / "run", engine="torch")
    expected = {}
    for translation in translator.translate(TEXTS, beam=1):
        expected[translation.source] = {
            "text": translation.text,
            "alignment": translation.alignment,
            "confidence": translation.confidence,
            "tokens": translation.token_log_probabilities[0],
        }
    (folder / "expected.json").write_text(json.dumps(expected))


if __name__ == "__main__":
    prepare(Path(sys.argv[1]))
