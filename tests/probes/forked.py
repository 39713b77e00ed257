"""Our command in a separate process that can be killed, forked to avoid the slow import of PyTorch.

Each test session has one server process, which has imported everything and computes nothing; commands are forked from
it. On platforms that can't fork, Python starts each process from scratch, which takes longer.
"""

import multiprocessing
import os
import pkgutil
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import forkserver
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
_FORKING = sys.platform == "linux"  # macOS libraries must not be forked after loading
_context = multiprocessing.get_context("forkserver" if _FORKING else "spawn")
if _FORKING:
    _context.set_forkserver_preload(["tests.probes.loaded"])


class Forked:
    """A process with the methods of `subprocess.Popen` that tests need; standard input is empty."""

    def __init__(
        self,
        function: Callable[..., Any],
        *arguments: Any,
        environment: dict[str, str] | None = None,
        log: Path | None = None,
        errors_apart: bool = False,
        own_group: bool = False,
        file_size: int | None = None,
    ) -> None:
        """Call a function in another process.

        Args:
            function: a function of a module, which returns the exit code.
            arguments: arguments of the function.
            environment: variables that are added to the environment of this process.
            log: a file that gets standard output and standard error; without it, `communicate` returns them.
            errors_apart: whether standard error is returned separately.
            own_group: whether the process leads a process group, like one that is started in a terminal.
            file_size: the maximum size of a file in bytes.
        """
        self.returncode: int | None = None
        self._folder = tempfile.TemporaryDirectory()
        folder = Path(self._folder.name)
        self._out = log or folder / "out"
        self._err = folder / "err" if errors_apart else self._out
        for file in (self._out, self._err):
            file.write_bytes(b"")
        full_environment = {**os.environ, "OMP_NUM_THREADS": "1", **(environment or {})}
        setup = (str(Path.cwd()), str(self._out), str(self._err), own_group, file_size)
        self._process = _context.Process(target=_call, args=(full_environment, *setup, function, arguments))
        _start(self._process)
        assert self._process.pid is not None
        self.pid = self._process.pid

    def poll(self) -> int | None:
        """Return the exit code if the process has ended."""
        self.returncode = self._process.exitcode
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end; return the exit code."""
        self._process.join(timeout)
        if self.poll() is None:
            raise subprocess.TimeoutExpired("a forked process", timeout or 0)
        assert self.returncode is not None
        return self.returncode

    def kill(self) -> None:
        """Kill the process, unless it has ended."""
        self.send_signal(signal.SIGKILL)

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the process has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """Wait for the end; return what was written to standard output and to standard error."""
        self.wait(timeout)
        out, err = self._out.read_text(encoding="utf-8"), self._err.read_text(encoding="utf-8")
        return out, err if self._err != self._out else ""


def _start(process: BaseProcess) -> None:
    """Start a process; before the first one, start the server."""
    with _environment_of_the_server():
        process.start()


@contextmanager
def _environment_of_the_server() -> Iterator[None]:
    """Set the environment in which the server starts: it gets one thread and finds `tests.probes`."""
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    before = dict(os.environ)
    os.environ.update(OMP_NUM_THREADS="1", PYTHONPATH=path)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def running_context() -> BaseContext:
    """Return the `multiprocessing` context that forks processes from the server, and ensure that the server runs."""
    if _FORKING:
        with _environment_of_the_server():
            forkserver.ensure_running()
    return _context


class ProcessGroup:
    """Processes that train one model, as torchrun starts them on one machine."""

    def __init__(self, processes: Sequence[Forked]) -> None:
        self.processes = processes

    def kill(self) -> None:
        """Kill the processes that have not ended."""
        for process in self.processes:
            process.kill()

    @property
    def returncode(self) -> int | None:
        """The exit code of the first process that failed; 0 if all succeeded, None if one is still running."""
        codes = [process.poll() for process in self.processes]
        return next((code for code in codes if code), None if None in codes else 0)

    def communicate(self, timeout: float = 240) -> tuple[str, str]:
        """Wait for the end; return the output of all. If a process fails, kill the others, as torchrun does."""
        deadline = time.monotonic() + timeout
        while self.returncode is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired("forked processes", timeout)
            time.sleep(0.01)
        if self.returncode:
            self.kill()
        outputs = [process.communicate()[0] for process in self.processes]
        return "".join(outputs), ""


def forked(*words: str | Path, replaced: dict[str, Any] | None = None, **options: Any) -> Forked:
    """Start our command with these words.

    Args:
        words: arguments of the command.
        replaced: values of constants in that process, by their names, such as `translucid.jobs.windows.WINDOW`.
        options: options of `Forked`.
    """
    return Forked(_command, [str(word) for word in words], replaced or {}, **options)


def killed_at(method: tuple[type, str], *words: str | Path) -> Forked:
    """Start our command, which exits with code 9 when it first calls `method`."""
    return Forked(_dying_command, method, [str(word) for word in words])


def start_group(count: int, function: Callable[..., Any], *arguments: Any) -> ProcessGroup:
    """Call a function in several processes, in the environment that torchrun would give them."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shared = {"WORLD_SIZE": str(count), "LOCAL_WORLD_SIZE": str(count)}
    shared |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    environments = [{**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(count)]
    return ProcessGroup([Forked(function, *arguments, environment=environment) for environment in environments])


def script_group(script: Path, count: int = 2) -> ProcessGroup:
    """Run a Python script in several processes."""
    return start_group(count, _script, str(script))


def forked_group(*words: str | Path, count: int = 2, replaced: dict[str, Any] | None = None) -> ProcessGroup:
    """Start our command in several processes that train one model.

    This does without torchrun, which would import PyTorch once more. `replaced`: as for `forked`.
    """
    return start_group(count, _command, [str(word) for word in words], replaced or {})


def forked_torchrun(*words: str | Path, count: int, restarts: int) -> Forked:
    """Start our command under torchrun, whose agent forks the processes too, and restarts all if one dies."""
    environment = {"COLUMNS": "1000"}
    return Forked(_torchrun, [str(word) for word in words], count, restarts, environment=environment)


def _torchrun(words: list[str], count: int, restarts: int) -> None:
    from torch.distributed.launcher.api import elastic_launch
    from torch.distributed.run import config_from_args, parse_args

    meeting = ["--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0"]  # as with --standalone
    processes = [f"--nproc-per-node={count}", f"--max-restarts={restarts}", "--start-method=fork"]
    config, _, _ = config_from_args(parse_args([*meeting, *processes, "--module", "translucid"]))
    elastic_launch(config, _worker)(words)


def _worker(words: list[str]) -> None:
    """Run our command as a process of torchrun, which takes a process for successful if this function returns."""
    from translucid.cli.main import run

    code = run(words)
    if code:
        sys.exit(code)


def _command(words: list[str], replaced: dict[str, Any]) -> None:
    for name, value in replaced.items():
        where, _, constant = name.rpartition(".")
        owner = pkgutil.resolve_name(where)  # a module or a class
        assert hasattr(owner, constant)
        setattr(owner, constant, value)
    from translucid.cli.main import main

    main(words)


def _dying_command(method: tuple[type, str], words: list[str]) -> None:
    setattr(*method, _die)
    _command(words, {})


def _die(*arguments: Any, **more: Any) -> None:
    os._exit(9)


def _script(file: str) -> None:
    runpy.run_path(file, run_name="__main__")


def _call(
    environment: dict[str, str],
    folder: str,
    out: str,
    err: str,
    own_group: bool,
    file_size: int | None,
    function: Callable[..., Any],
    arguments: Sequence[Any],
) -> None:
    """Set up this process as a shell would start it, and call the function."""
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    # If the test suite was started in the background, it ignores Ctrl-C, and its children would inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if own_group:
        os.setsid()
    if file_size:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (file_size, file_size))
    for number, file in ((1, out), (2, err)):
        target = os.open(file, os.O_WRONLY | os.O_APPEND)
        os.dup2(target, number)
        os.close(target)
    sys.exit(function(*arguments))
