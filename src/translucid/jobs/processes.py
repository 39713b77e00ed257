"""Worker processes on this machine, each with a share of its cores or with a GPU."""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing import connection, get_context, parent_process, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from threading import Thread
from typing import Any

from translucid.ground.errors import UserError
from translucid.jobs.job import Done, Executor, LineJob, Worker
from translucid.jobs.windows import Window
from translucid.kernels.devices import configure_process, device_of_worker
from translucid.kernels.machine import cores


@contextmanager
def processes(job: LineJob, count: int) -> Iterator[Executor]:
    """Start worker processes, and end them in any case.

    Raises:
        UserError: a worker can't do the job, or died while it loaded the run.
    """
    workers: list[_Process] = []
    try:
        threads = max(1, cores() // count)
        for i in range(count):
            workers.append(_Process(replace(job, device=device_of_worker(job.device, i)), threads))
        # A worker sends the kind of its device when the model is loaded.
        (device,) = {worker.receive() for worker in workers}
        yield _InOrder(workers, device)
    finally:
        for worker in workers:
            worker.process.kill()
        for worker in workers:
            worker.process.join()
            worker.pipe.close()


class _Process:
    """A worker process, which has one window at a time."""

    def __init__(self, job: LineJob, threads: int) -> None:
        self.pipe, worker_end = get_context("spawn").Pipe()
        self.process: SpawnProcess = get_context("spawn").Process(
            target=_work, args=(job, threads, worker_end), daemon=True
        )
        with _no_ctrl_c():
            self.process.start()
        worker_end.close()  # else the pipe would not end with the process
        self.number: int | None = None
        """The number of the window that it has."""

    def send(self, number: int, window: Window) -> None:
        self.number = number
        try:
            self.pipe.send(window)
        except OSError as error:
            raise self._death() from error

    def answer(self) -> Done:
        self.number = None
        return self.receive()

    def receive(self) -> Any:
        """Wait for the next object that the process sends."""
        try:
            answer = self.pipe.recv()
        except (EOFError, OSError) as error:
            raise self._death() from error
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _death(self) -> UserError:
        self.process.join(5)
        code = self.process.exitcode or 0
        # `exitcode` is negative after a signal.
        ending = f"was killed ({signal.Signals(-code).name})" if code < 0 else f"has ended with exit code {code}"
        fix = "If memory has run out, take fewer `workers`; the same command continues from what is written."
        return UserError(f"a worker process {ending}", fix=fix)


class _InOrder:
    """Gives windows to idle workers, and yields the results in order."""

    def __init__(self, workers: list[_Process], device: str) -> None:
        self.workers, self.device = workers, device

    def __call__(self, windows: Iterable[Window]) -> Iterator[tuple[Window, Done]]:
        """Process windows; at most two per worker are in memory, including finished ones that wait for their turn."""
        incoming = enumerate(windows)
        pending: dict[int, Window] = {}
        done: dict[int, Done] = {}
        while True:
            for worker in self.workers:
                if worker.number is None and len(pending) < 2 * len(self.workers) and (item := next(incoming, None)):
                    number, pending[number] = item
                    worker.send(number, pending[number])
            if not pending:
                return
            # `wait` returns as soon as any worker has answered.
            busy = {worker.pipe: worker for worker in self.workers if worker.number is not None}
            for pipe in connection.wait(list(busy)):
                worker = busy[pipe]  # type: ignore[index]
                window_number, answer = worker.number, worker.answer()
                assert window_number is not None
                done[window_number] = answer
            while pending and (next_number := next(iter(pending))) in done:
                yield pending.pop(next_number), done.pop(next_number)


def _work(job: LineJob, threads: int, pipe: Connection[Any, Any]) -> None:
    """Process windows in a worker process until the parent closes the pipe."""
    Thread(target=_end_with_parent, daemon=True).start()
    try:
        os.environ["OMP_NUM_THREADS"] = str(threads)  # PyTorch's, should it be loaded
        configure_process()
        worker = Worker(job, threads)
        pipe.send(worker.device)
        while True:
            pipe.send(worker.work(pipe.recv()))
    except (EOFError, ConnectionError):
        return
    except Exception as error:
        error.add_note(traceback.format_exc())
        pipe.send(error)


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent
    parent.join()
    os._exit(1)


@contextmanager
def _no_ctrl_c() -> Iterator[None]:
    """Start processes that ignore Ctrl-C; their parent, which receives it, ends them."""
    if not hasattr(signal, "pthread_sigmask"):  # on Windows, where multiprocessing has no resource tracker either
        yield
        return
    # multiprocessing starts this helper process with the first worker, and lifts the block when it does.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
