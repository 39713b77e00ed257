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

from benchmarks.mutation.mutants import SOURCES, Mutant, path_of
from benchmarks.mutation.selection import ROOT, nearest_tests, place_of, tests_of

TEST_SECONDS = 120
"""A test that runs longer than this hangs: without a change none takes half of it."""
NEEDED = (
    *("torch", "torch._dynamo", "pytest", "hypothesis", "pydantic", "rich.console", "typer", "sacrebleu", "scipy"),
    *("ctranslate2", "fastapi", "fastapi.testclient"),
)
"""Modules that tests import besides the package; mutants are forked from a process that has loaded them."""
HANGS = "Timeout ("
"""Python's message when a test times out."""
MEMORY = 24 << 30
"""The limit of the address space in bytes: a mutant that fills a list for ever then fails."""


@dataclass
class Outcome:
    """The outcome of a mutant."""

    verdict: str
    """`killed`, `timeout` or `survived`."""
    seconds: float
    output: str = ""
    """The last lines of pytest's output."""


class Bench:
    """A copy of Translucid in which one file at a time is changed."""

    def __init__(self, folder: Path) -> None:
        os.environ["OMP_NUM_THREADS"] = "1"
        self.processes = multiprocessing.get_context("forkserver")
        self.processes.set_forkserver_preload(list(NEEDED))
        self.folder, self.sources = folder, folder / "src"
        folder.mkdir()
        shutil.copytree(SOURCES, self.sources, ignore=shutil.ignore_patterns("__pycache__"))
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
        output = (self.folder / "output").read_text(errors="replace")
        last_lines = "\n".join(output.splitlines()[-5:])
        if process.exitcode == 0:
            return Outcome("survived", seconds, last_lines)
        return Outcome("timeout" if HANGS in output else "killed", seconds, last_lines)

    @contextmanager
    def changed(self, mutant: Mutant) -> Iterator[None]:
        """Write a mutant into the copy, and restore the code afterwards."""
        target = self.sources / path_of(mutant.file).relative_to(SOURCES)
        original = target.read_bytes()
        target.write_text(mutant.source, encoding="utf-8")
        try:
            yield
        finally:
            target.write_bytes(original)

    def try_out(self, mutant: Mutant, limit: float) -> Outcome:
        """Run the nearest tests on a mutant, which detect most mutants, and then the others of its package."""
        tests = tests_of(place_of(mutant.file))
        nearest = nearest_tests(mutant.file, tests)
        remaining = [test for test in tests if test not in nearest]
        seconds = 0.0
        with self.changed(mutant):
            for files in filter(None, (nearest, remaining)):
                outcome = self.test(files, limit)
                seconds += outcome.seconds
                if outcome.verdict != "survived":
                    break
        return Outcome(outcome.verdict, seconds, outcome.output)


def _tests(folder: Path, tests: Sequence[str]) -> None:
    """Run tests in this process, with the copy in place of the package, and exit as pytest does."""
    os.setsid()
    os.chdir(ROOT)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    # Mutants share compiled kernels; compiling them again would take half of the time.
    sys.pycache_prefix, sys.dont_write_bytecode = str(folder / "compiled"), False
    os.environ |= {"PYTHONPATH": str(folder / "src"), "PYTHONPYCACHEPREFIX": sys.pycache_prefix}
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(folder / "hypothesis")
    sys.path.insert(0, str(folder / "src"))
    with (folder / "output").open("w") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    import pytest

    import translucid

    assert Path(translucid.__file__).is_relative_to(folder)
    options = ["-q", "-x", "-p", "no:cacheprovider", "--hypothesis-seed=0", f"--basetemp={folder / 'tests'}"]
    options += ["-o", f"faulthandler_timeout={TEST_SECONDS}", "-o", "faulthandler_exit_on_timeout=true"]
    sys.exit(pytest.main([*options, *tests]))
