"""Run the tests of a mutant's package on a copy of Translucid that contains the mutant."""

import multiprocessing
import os
import resource
import shutil
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.mutation.mutants import SOURCE, Mutant

ROOT = SOURCE.parents[1]
TESTS = {
    "kernels": "kernels attention layers training/test_objective.py contracts",
    "attention": "attention kernels layers models contracts reference",
    "layers": "layers contracts models attention reference",
    "models": "models contracts reference layers training/test_configuration.py decoding api/test_translator.py",
    "training": "training cli/test_train.py cli/test_kinds.py",
    "training/workers.py": "training/test_workers.py",
    "training/sharding.py": "training/test_workers.py",
    "decoding": "decoding contracts api/test_translator.py cli/test_translate.py inspection",
    "evaluation": "evaluation cli/test_others.py cli/test_translate.py training/test_trainer.py",
    "data": "data cli/test_data.py training/test_epochs.py",
    "documents": "documents cli/test_documents.py",
    "memory": "memory cli/test_memory.py",
    "engines": "engines cli/test_translate.py training/test_terms.py api/test_translator.py combinations",
    "terminology": "terminology engines cli/test_terms.py",
    "api": "api combinations cli/test_translate.py cli/test_others.py",
    "interop": "interop",
    "serving": "serving",
}
"""The tests of each room, nearest first (a mutant is over at the first that fails); two files have their own."""
LEFT_OUT = {"training": "training/test_workers.py", "serving": "serving/test_page_*.py"}
"""Tests of a room that take too long to run after each change; those of the page need a browser."""
NEEDED = (
    *("torch", "torch._dynamo", "pytest", "hypothesis", "pydantic", "rich.console", "typer", "sacrebleu", "scipy"),
    *("ctranslate2", "fastapi", "fastapi.testclient"),
)
"""What tests import besides the package; each mutant is a fork of a process that has it all."""
MEMORY = 24 << 30
"""Bytes of addresses, so that a mutant that fills lists for ever ends by itself."""


@dataclass
class Outcome:
    """The outcome of a mutant."""

    verdict: str
    """killed, timeout or survived."""
    seconds: float
    said: str = ""
    """The last lines of pytest."""


class Bench:
    """A copy of Translucid in which one file at a time is changed."""

    def __init__(self, folder: Path) -> None:
        os.environ["OMP_NUM_THREADS"] = "1"
        self.processes = multiprocessing.get_context("forkserver")
        self.processes.set_forkserver_preload(list(NEEDED))
        self.folder, self.package = folder, folder / "src" / SOURCE.name
        shutil.copytree(SOURCE, self.package, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copytree(ROOT / "recipes", folder / "recipes")

    def test(self, place: str, limit: float | None = None, file: str = "") -> Outcome:
        """Run the tests of a package or a file on the copy, until one fails.

        Tests named after the changed file run first: they detect most changes.
        """
        tests = [f"tests/{name}" for name in TESTS[place].split() if (ROOT / "tests" / name).exists()]
        stem = Path(file).stem
        nearest = [str(test.relative_to(ROOT)) for test in (ROOT / tests[0]).rglob(f"test_*{stem}*.py")] if stem else []
        tests = [*nearest, *tests]
        if place in LEFT_OUT:
            tests.append(f"--ignore-glob=*/tests/{LEFT_OUT[place]}")
        process = self.processes.Process(target=_tests, args=(self.folder, tests))
        started = time.monotonic()
        process.start()
        process.join(limit)
        seconds = time.monotonic() - started
        if process.is_alive():
            os.killpg(process.pid, signal.SIGKILL)
            process.join()
            return Outcome("timeout", seconds)
        said = "\n".join((self.folder / "said").read_text(errors="replace").splitlines()[-5:])
        return Outcome("killed" if process.exitcode else "survived", seconds, said)

    def try_out(self, mutant: Mutant, limit: float) -> Outcome:
        """Write a mutant, run the tests, and restore the code."""
        place = self.package / mutant.file
        original = place.read_bytes()
        place.write_text(mutant.source, encoding="utf-8")
        try:
            return self.test(place_of(mutant), limit, mutant.file)
        finally:
            place.write_bytes(original)


def place_of(mutant: Mutant) -> str:
    """Return the key of a mutant's tests."""
    return mutant.file if mutant.file in TESTS else mutant.room


def _tests(folder: Path, tests: list[str]) -> None:
    """Run tests in this process, with the copy in place of the package, and exit as pytest does."""
    os.setsid()
    os.chdir(ROOT)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    os.environ |= {"PYTHONPATH": str(folder / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(folder / "hypothesis")
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(folder / "src"))
    with (folder / "said").open("w") as said:
        os.dup2(said.fileno(), 1)
        os.dup2(said.fileno(), 2)
    import pytest

    import translucid

    assert Path(translucid.__file__).is_relative_to(folder)
    options = ["-q", "-x", "-p", "no:cacheprovider", "--hypothesis-seed=0", f"--basetemp={folder / 'tests'}"]
    sys.exit(pytest.main([*options, *tests]))
