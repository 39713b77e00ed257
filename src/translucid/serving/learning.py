"""Learning from corrections in the background: after each few of them, a process with low priority learns an adapter.

It is `translucid memory learn` with its guard against forgetting, on all entries of the memory. The server translates
meanwhile, and uses the adapter from the next request on.
"""

from __future__ import annotations

import logging
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from translucid.ground.atomic import write_atomically
from translucid.ground.errors import UserError
from translucid.kernels.machine import lower_priority
from translucid.memory.learned_adapters import next_adapter, remove_old_adapters
from translucid.runs.run_folder import ADAPTER
from translucid.runs.tensor_file import load_arrays

LESS_PRIORITY = 10
"""What is added to the server's nice value for the process, on Linux."""

_ONE_AT_A_TIME = threading.Lock()
"""Held while a process learns: those of several memories take turns."""
_POLL_SECONDS = 0.2
"""The interval in seconds at which one that waits for its turn checks whether the server stops."""

log = logging.getLogger("translucid.serving")


def learning_command(run: Path, memory: Path, out: Path) -> list[str]:
    """Return the command that learns an adapter of a run from a memory."""
    from translucid.training import memory_updates

    settings = [f"training.{name}={value}" for name, value in memory_updates.ADAPTER.items()]
    arguments = ["memory", "learn", str(run), str(memory), "--out", str(out), "--overwrite", "--relearn"]
    return [sys.executable, "-m", "translucid", *arguments, "--device", "cpu", "--set", *settings]


class AdapterLearner:
    """Learns an adapter of a run from a memory after each few corrections."""

    def __init__(self, run: Path, memory: Path, every: int, on_learned: Callable[[Path], None]) -> None:
        """Learn in the future.

        Args:
            run: the run folder.
            memory: the file of the memory.
            every: the number of corrections after which the adapter is learned again.
            on_learned: called with the file of a new adapter, in the thread that waits for the process.
        """
        self.run, self.memory, self.every, self.on_learned = run, memory, every, on_learned
        self._corrections = 0
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._process: subprocess.Popen[str] | None = None
        self._closed = False

    def corrected(self, count: int) -> None:
        """Count corrections, and begin to learn if there are enough and nothing is being learned."""
        with self._lock:
            self._corrections += count
            is_learning = self._thread is not None and self._thread.is_alive()
            if self._closed or is_learning or self._corrections < self.every:
                return
            self._corrections = 0
            self._thread = threading.Thread(target=self._learn, name="learning")
            self._thread.start()

    def close(self) -> None:
        """End the process, and wait for its end."""
        with self._lock:
            self._closed = True
            if self._process:
                self._process.terminate()
        if self._thread:
            self._thread.join()

    def _learn(self) -> None:
        while not _ONE_AT_A_TIME.acquire(timeout=_POLL_SECONDS):
            if self._closed:
                return
        lower_priority(LESS_PRIORITY)  # of this thread, and so of the process
        out = self.memory.with_name(f"{self.memory.name}.learning")
        try:
            error = self._run(learning_command(self.run, self.memory, out))
            if error is not None:
                log.warning("nothing was learned from the corrections: %s", error)
                return
            content = out / ADAPTER
            arrays, _ = load_arrays(content)
            # The factors B of the initial adapter are 0.
            if not any(array.any() for name, array in arrays.items() if name.endswith(".up")):
                log.warning("nothing was learned from the corrections: the run would have forgotten too much")
                return
            file = next_adapter(self.memory)
            write_atomically(file, content.read_bytes())
            self.on_learned(file)
            remove_old_adapters(self.memory)
            log.warning("an adapter was learned from the corrections: %s", file)
        except (OSError, UserError) as error:
            log.warning("nothing was learned from the corrections: %s", error)
        finally:
            shutil.rmtree(out, ignore_errors=True)
            _ONE_AT_A_TIME.release()

    def _run(self, command: list[str]) -> str | None:
        """Run a command; return the last line of its messages if it fails."""
        with self._lock:
            if self._closed:
                return "the server stops"
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
            )
        _, messages = self._process.communicate()
        if self._closed:
            return "the server stops"
        if self._process.returncode == 0:
            return None
        return (messages.strip().splitlines() or [f"exit code {self._process.returncode}"])[-1]
