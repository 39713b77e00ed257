"""Run tests on a copy of Translucid that contains the mutant."""

import multiprocessing
import os
import resource
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.mutation.mutants import SOURCE, Mutant
from benchmarks.mutation.selection import ROOT, nearest_tests, place_of, tests_of

TEST_SECONDS = 120
"""A test that runs longer than this hangs: without a change none takes half of it."""
NEEDED = (
    *("torch", "torch._dynamo", "pytest", "hypothesis", "pydantic", "rich.console", "typer", "sacrebleu", "scipy"),
    *("ctranslate2", "fastapi", "fastapi.testclient"),
)
"""What tests import besides the package; each mutant is a fork of a process that has it all."""
HANGS = "Timeout ("
"""What Python writes when a test runs longer."""
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

    def test(self, tests: Sequence[str], limit: float | None = None) -> Outcome:
        """Run test files on the copy, until a test fails."""
        process = self.processes.Process(target=_tests, args=(self.folder, tests))
        started = time.monotonic()
        process.start()
        process.join(limit)
        seconds = time.monotonic() - started
        if process.is_alive():
            os.killpg(process.pid, signal.SIGKILL)
            process.join()
            return Outcome("timeout", seconds)
        output = (self.folder / "said").read_text(errors="replace")
        last_lines = "\n".join(output.splitlines()[-5:])
        if process.exitcode == 0:
            return Outcome("survived", seconds, last_lines)
        return Outcome("timeout" if HANGS in output else "killed", seconds, last_lines)

    @contextmanager
    def changed(self, mutant: Mutant) -> Iterator[None]:
        """Write a mutant into the copy, and restore the code afterwards."""
        place = self.package / mutant.file
        original = place.read_bytes()
        place.write_text(mutant.source, encoding="utf-8")
        try:
            yield
        finally:
            place.write_bytes(original)

    def try_out(self, mutant: Mutant, limit: float) -> Outcome:
        """Run the nearest tests on a mutant, which detect most mutants, and then the others of its package."""
        tests = tests_of(place_of(mutant.file))
        nearest = nearest_tests(mutant.file, tests)
        others = [test for test in tests if test not in nearest]
        seconds = 0.0
        with self.changed(mutant):
            for files in filter(None, (nearest, others)):
                outcome = self.test(files, limit)
                seconds += outcome.seconds
                if outcome.verdict != "survived":
                    break
        return Outcome(outcome.verdict, seconds, outcome.said)


def _tests(folder: Path, tests: Sequence[str]) -> None:
    """Run tests in this process, with the copy in place of the package, and exit as pytest does."""
    os.setsid()
    os.chdir(ROOT)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    # What is compiled for one mutant serves the next; half of the time would go into compiling all of it again.
    sys.pycache_prefix, sys.dont_write_bytecode = str(folder / "compiled"), False
    os.environ |= {"PYTHONPATH": str(folder / "src"), "PYTHONPYCACHEPREFIX": sys.pycache_prefix}
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(folder / "hypothesis")
    sys.path.insert(0, str(folder / "src"))
    with (folder / "said").open("w") as said:
        os.dup2(said.fileno(), 1)
        os.dup2(said.fileno(), 2)
    import pytest

    import translucid

    assert Path(translucid.__file__).is_relative_to(folder)
    options = ["-q", "-x", "-p", "no:cacheprovider", "--hypothesis-seed=0", f"--basetemp={folder / 'tests'}"]
    options += ["-o", f"faulthandler_timeout={TEST_SECONDS}", "-o", "faulthandler_exit_on_timeout=true"]
    sys.exit(pytest.main([*options, *tests]))
