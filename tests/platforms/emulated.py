"""Windows and macOS, emulated in this process: missing names, rules for files, and text encodings.

Our modules see facades of `os`, `sys`, `signal`, `socket` and `platform`; other packages keep the real ones, as they
chose their implementation when they were imported. The rules for files (see `files.py`) hold for every call from
Python. Processes that are started run without the emulation.
"""

from __future__ import annotations

import builtins
import multiprocessing.context
import os
import platform
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import ModuleType
from typing import Any, ClassVar, Self
from unittest.mock import patch

from tests.platforms.files import FileRules

PACKAGE = "translucid"
_real_import = builtins.__import__


class Facade(ModuleType):
    """A module as on another system: some names are missing, some have other values, the rest is the real module."""

    def __init__(self, real: ModuleType, missing: str, **instead: Any) -> None:
        super().__init__(real.__name__)
        self.__dict__.update(_real=real, _missing=frozenset(missing.split()), **instead)

    def __getattr__(self, name: str) -> Any:
        if name in self._missing:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r} on this system")
        return getattr(self._real, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._real, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._real, name)


class Emulation:
    """A context in which another operating system is emulated."""

    missing_modules: ClassVar[str] = ""
    missing: ClassVar[dict[str, str]] = {}
    """Names that modules lack on that system, by module."""
    instead: ClassVar[dict[str, dict[str, Any]]] = {}
    """Values of names that differ on that system, by module."""
    encoding = "utf-8"
    newline = "\n"
    holds_open_files = False

    def __init__(self) -> None:
        self.files = FileRules(self.encoding, self.newline, holds_open_files=self.holds_open_files)
        self.facades = {
            module.__name__: Facade(
                module, self.missing.get(module.__name__, ""), **self.instead.get(module.__name__, {})
            )
            for module in (os, sys, signal, socket, platform)
        }
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        """Start the emulation."""
        with ExitStack() as stack:
            stack.enter_context(patch.object(builtins, "__import__", self._import))
            stack.enter_context(self._exchanged_modules())
            stack.enter_context(self.files)
            # Processes are never forked, but spawned, which imports all modules again.
            spawn = multiprocessing.context._concrete_contexts["spawn"]
            contexts = {"spawn": spawn}
            stack.enter_context(patch.object(multiprocessing.context, "_concrete_contexts", contexts))
            stack.enter_context(patch.object(multiprocessing.context._default_context, "_actual_context", spawn))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        """Restore the real system."""
        self._stack.close()

    def _import(self, name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        """Import a module; our own modules get facades, and lack some modules."""
        importer = str((globals or {}).get("__name__")).partition(".")[0]
        if level == 0 and importer == PACKAGE:
            if name.partition(".")[0] in self.missing_modules.split():
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)
            if name in self.facades:
                return self.facades[name]
        return _real_import(name, globals, locals, fromlist, level)

    @contextmanager
    def _exchanged_modules(self) -> Iterator[None]:
        """Replace the modules that our imported modules refer to by facades, and restore them at the end."""
        real = {facade._real: facade for facade in self.facades.values()}
        _exchange(real)
        try:
            yield
        finally:
            _exchange({facade: module for module, facade in real.items()})


def _exchange(modules: dict[ModuleType, ModuleType]) -> None:
    ours = [module for name, module in sys.modules.items() if name.partition(".")[0] == PACKAGE]
    for module in ours:
        for name, value in list(vars(module).items()):
            if isinstance(value, ModuleType) and value in modules:
                vars(module)[name] = modules[value]


class Windows(Emulation):
    """Windows with the code page of Western Europe."""

    missing_modules = "fcntl resource pwd grp termios tty pty syslog posix readline"
    missing: ClassVar[dict[str, str]] = {
        "os": """fork forkpty getuid geteuid getgid getegid getpgid getpgrp setsid setuid killpg nice getpriority
            setpriority PRIO_PROCESS sched_getaffinity sched_setaffinity sysconf uname mkfifo mknod chown lchown fchmod
            fchown statvfs fstatvfs getloadavg posix_spawn posix_spawnp posix_fadvise pread pwrite preadv pwritev
            sendfile wait wait3 wait4 WNOHANG WIFSIGNALED WTERMSIG O_DIRECTORY O_NOFOLLOW O_CLOEXEC O_NONBLOCK EX_OK
            openpty pathconf readv writev sync fdatasync lockf""",
        "signal": """SIGKILL SIGHUP SIGQUIT SIGPIPE SIGALRM SIGCHLD SIGUSR1 SIGUSR2 SIGTSTP SIGCONT SIGSTOP SIGWINCH
            pthread_sigmask pthread_kill SIG_BLOCK SIG_SETMASK SIG_UNBLOCK alarm setitimer siginterrupt sigwait""",
        "socket": "AF_UNIX TCP_USER_TIMEOUT SO_REUSEPORT MSG_DONTWAIT MSG_NOSIGNAL",
    }
    instead: ClassVar[dict[str, dict[str, Any]]] = {
        "os": {"name": "nt", "linesep": "\r\n"},
        "sys": {"platform": "win32"},
        "socket": {"SO_EXCLUSIVEADDRUSE": socket.SO_KEEPALIVE},  # any option that the real system accepts
        "platform": {"system": lambda: "Windows", "libc_ver": lambda: ("", "")},
    }
    encoding = "cp1252"
    newline = "\r\n"
    holds_open_files = True


class MacOS(Emulation):
    """macOS, whose file system usually ignores case in names."""

    missing: ClassVar[dict[str, str]] = {
        "os": "sched_getaffinity sched_setaffinity posix_fadvise fdatasync",
        "signal": "SIGPWR SIGRTMIN SIGRTMAX sigwaitinfo sigtimedwait",
        "socket": "TCP_USER_TIMEOUT SO_PEERCRED AF_NETLINK",
    }
    instead: ClassVar[dict[str, dict[str, Any]]] = {
        "sys": {"platform": "darwin"},
        "platform": {"system": lambda: "Darwin", "libc_ver": lambda: ("", "")},
    }
