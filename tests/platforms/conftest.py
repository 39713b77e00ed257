"""A workspace in which commands run on an emulated system, in this process."""

import io
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.platforms.emulated import Emulation, MacOS, Windows
from translucid.cli import main
from translucid.corpora.phrasebook import generate


@dataclass
class Workspace:
    """A folder of corpora and runs."""

    folder: Path
    system: type[Emulation]
    log: str = ""
    """The standard error of the last command."""
    runs: dict[str, Path] = field(default_factory=dict)

    def call(self, *arguments: object, stdin: bytes = b"") -> str:
        """Run a command, which must succeed without a refused file operation; return its standard output."""
        emulation = self.system()
        streams = [io.TextIOWrapper(io.BytesIO(content), encoding=emulation.encoding) for content in (stdin, b"", b"")]
        _, out, err = streams
        with pytest.MonkeyPatch.context() as patched:
            for name, stream in zip(("stdin", "stdout", "stderr"), streams, strict=True):
                patched.setattr(sys, name, stream)
            patched.setenv("XDG_CACHE_HOME", str(self.folder / "cache"))
            patched.chdir(self.folder)
            with emulation:
                main._write_utf8()
                code = main.run([str(argument) for argument in arguments])
            out.flush()
            err.flush()
        self.log = err.buffer.getvalue().decode()
        # On this system, filelock removes a lock file while it is open; on Windows it would close it first.
        refused = [line for line in emulation.files.refused if not line.endswith(".lock is open")]
        assert (code, refused) == (0, []), self.log
        return out.buffer.getvalue().decode()

    def train(self, name: str, *arguments: object, settings: list[str]) -> Path:
        """Train a run once for all tests; return its folder."""
        if name not in self.runs:
            self.call("train", *arguments, "--out", name, "--set", *settings)
            self.runs[name] = self.folder / name
        return self.runs[name]

    @property
    def translator(self) -> Path:
        files = "--train", "train.tsv", "--valid", "valid.tsv"
        return self.train("translator", *files, settings=[*SMALL, "training.max_steps=4"])

    @property
    def language_model(self) -> Path:
        files = "--model", "lm-lstm", "--train", "train.txt", "--valid", "valid.txt"
        settings = ["model.width=16", "model.hidden=16", "training.window=10", "training.max_steps=2"]
        return self.train("language-model", *files, settings=[*settings, *TINY])


TINY = [
    *("data.tokenizer.vocabulary=200", "training.batch_tokens=200", "training.validate_every=2"),
    *("training.validate_sentences=2", "training.log_every=1"),
]
SMALL = [
    *("model.width=16", "model.heads=2", "model.feed_forward=32", "model.encoder_layers=1", "model.decoder_layers=1"),
    *TINY,
]


@pytest.fixture(scope="session")
def on_windows(tmp_path_factory):
    return make_workspace(tmp_path_factory.mktemp("windows"), Windows)


@pytest.fixture(scope="session")
def on_macos(tmp_path_factory):
    return make_workspace(tmp_path_factory.mktemp("macos"), MacOS)


@pytest.fixture(scope="session", params=["on_windows", "on_macos"])
def workspace(request):
    """A workspace on each of the systems, for commands that write runs, many files or to standard output."""
    return request.getfixturevalue(request.param)


def _length_label(text: str) -> str:
    return "long" if len(text) > 22 else "short"


def make_workspace(folder: Path, system: type[Emulation]) -> Workspace:
    if not os.path.exists("/proc/self/maps"):  # noqa: PTH110
        pytest.skip("the emulation needs Linux, to know which files are open")
    for split, count in (("train", 100), ("valid", 4)):
        pairs = list(generate(count, split=split, max_words=6))
        texts = {
            f"{split}.tsv": [f"{pair.source}\t{pair.target}" for pair in pairs],
            f"{split}.txt": [pair.source for pair in pairs],
            f"{split}-labels.tsv": [f"{pair.source}\t{_length_label(pair.source)}" for pair in pairs],
        }
        for name, lines in texts.items():
            (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    (folder / "text.txt").write_bytes("The house is big.\n¡Привет, José!\n\n".encode())
    (folder / "text.md").write_bytes("# The house\n\nThe house is *big*. €5\n".encode())
    (folder / "terms.tsv").write_bytes(b"house\tcasa\n")
    return Workspace(folder, system)
