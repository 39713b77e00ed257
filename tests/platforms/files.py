"""File rules of other systems: reserved names, open files that can't be moved, text in a code page."""

# ruff: noqa: PTH100, PTH110, PTH112, PTH115, PTH118, PTH119, PTH208
# These functions stand in for those of `os`, which `pathlib` calls.

from __future__ import annotations

import builtins
import errno
import io
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import PureWindowsPath
from typing import Any, NoReturn, Self
from unittest.mock import patch

_real_open = io.open
_real = {name: getattr(os, name) for name in ("open", "replace", "rename", "unlink", "mkdir", "truncate")}
_real_temporary_file = tempfile.NamedTemporaryFile
_RESERVED_CHARACTERS = set('<>:"|?*\\') | {chr(code) for code in range(32)}


class FileRules:
    """Refuses what another system refuses, and records it, because our code may catch the error."""

    def __init__(self, encoding: str, newline: str, *, holds_open_files: bool) -> None:
        """Prepare the rules, which apply within the context only.

        Args:
            encoding: the default encoding of text files.
            newline: the default line end of text files.
            holds_open_files: whether all rules of Windows apply, not only that names must differ in more than case.
        """
        self.encoding, self.newline, self.windows = encoding, newline, holds_open_files
        self.refused: list[str] = []
        """The operation, file name and reason of each refusal."""
        self._patches: list[Any] = []
        self._temporary_files: set[str] = set()

    def __enter__(self) -> Self:
        """Start refusing operations."""
        functions: dict[str, Callable[..., Any]] = {"open": self.open_descriptor, "mkdir": self.mkdir}
        if self.windows:
            functions |= {"replace": self.replace, "rename": self.rename, "truncate": self.truncate}
            functions |= {"unlink": self.unlink, "remove": self.unlink}
        self._patches = [patch.object(os, name, function) for name, function in functions.items()]
        self._patches += [patch.object(module, "open", self.open) for module in (builtins, io)]
        if self.windows:
            # Windows has neither descriptors of folders nor files without a name.
            self._patches.append(patch.object(shutil, "_use_fd_functions", False))
            for name in ("NamedTemporaryFile", "TemporaryFile"):
                self._patches.append(patch.object(tempfile, name, self.temporary_file))
        for patcher in self._patches:
            patcher.start()
        return self

    def __exit__(self, *error: object) -> None:
        """Stop refusing operations."""
        for patcher in reversed(self._patches):
            patcher.stop()

    def open(
        self,
        file: Any,
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
        *rest: Any,
        **kwargs: Any,
    ) -> Any:
        """Open a file; the default encoding of text is the code page."""
        if "b" not in mode and encoding in (None, "locale"):
            encoding = self.encoding
        if "b" not in mode and newline is None and set(mode) & set("wxa+"):
            newline = self.newline
        if not isinstance(file, int):
            self._refuse_to_open(os.fsdecode(file), mode)
        return _real_open(file, mode, buffering, encoding, errors, newline, *rest, **kwargs)

    def _refuse_to_open(self, path: str, mode: str) -> None:
        if path.startswith("/proc/"):
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", path)
        if path in self._temporary_files and os.path.exists(path):
            self._refuse("open", path, "it is open, and removed when it is closed")
        if set(mode) & set("wxa"):
            self._refuse_name(path)
        if self.windows and "w" in mode:
            self._refuse_in_use("empty", path, ["maps"])

    def open_descriptor(self, path: Any, flags: int, *rest: Any, **kwargs: Any) -> int:
        if self.windows and os.path.isdir(path):
            self._refuse("open", path, "it is a folder")
        if flags & os.O_CREAT:
            self._refuse_name(path)
        return _real["open"](path, flags, *rest, **kwargs)

    def mkdir(self, path: Any, *rest: Any, **kwargs: Any) -> None:
        self._refuse_name(path)
        _real["mkdir"](path, *rest, **kwargs)

    def replace(self, source: Any, target: Any, **kwargs: Any) -> None:
        self._refuse_in_use("move", source)
        if os.path.isdir(target):
            self._refuse("replace", target, "it is a folder")
        if os.path.exists(target):
            self._refuse_in_use("replace", target)
        self._refuse_name(target, source)
        _real["replace"](source, target, **kwargs)

    def rename(self, source: Any, target: Any, **kwargs: Any) -> None:
        self._refuse_in_use("move", source)
        if os.path.exists(target):
            self._refuse("rename to", target, "it is there", errno.EEXIST)
        self._refuse_name(target, source)
        _real["rename"](source, target, **kwargs)

    def unlink(self, path: Any, **kwargs: Any) -> None:
        self._refuse_in_use("remove", path)
        _real["unlink"](path, **kwargs)

    def truncate(self, path: Any, length: int) -> None:
        self._refuse_in_use("cut", path, ["maps"])
        _real["truncate"](path, length)

    def temporary_file(self, *rest: Any, delete: bool = True, **kwargs: Any) -> Any:
        file = _real_temporary_file(*rest, delete=delete, **kwargs)
        if delete:
            self._temporary_files.add(file.name)
        return file

    def _refuse_in_use(self, operation: str, path: Any, kinds: list[str] | None = None) -> None:
        if use := _use(path, kinds or ["fd", "maps"]):
            self._refuse(operation, path, use)

    def _refuse_name(self, path: Any, source: Any = "") -> None:
        """Refuse a reserved name, or one that differs only in case from that of another file.

        `source`: the existing file that would get the name, if any.
        """
        path = os.fsdecode(path)
        folder, name = os.path.split(os.path.abspath(path))
        reserved = PureWindowsPath(name).is_reserved() or set(name) & _RESERVED_CHARACTERS or name.endswith((" ", "."))
        if self.windows and reserved:
            self._refuse("create", path, "the name is reserved", errno.EINVAL)
        if os.path.exists(path) or not os.path.isdir(folder):
            return
        for existing in os.listdir(folder):
            if existing.casefold() == name.casefold() and existing not in (name, os.path.basename(os.fsdecode(source))):
                self._refuse("create", path, f"it is the same file as {existing}", errno.EEXIST)

    def _refuse(self, operation: str, path: Any, why: str, number: int = errno.EACCES) -> NoReturn:
        self.refused.append(f"{operation} {os.fsdecode(path)}: {why}")
        raise OSError(number, f"The process cannot access the file: {why}", os.fsdecode(path))


def _use(path: Any, kinds: list[str]) -> str | None:
    """Describe how this process uses a file, or a file in a folder: open or mapped into memory; None if unused."""
    folder, name = os.path.split(os.path.abspath(os.fsdecode(path)))
    real = os.path.join(os.path.realpath(folder), name)
    for kind, used in _used_files(real, kinds):
        if used == real or used.startswith(real + os.sep):
            return f"{used} is {kind}"
    return None


def _used_files(real: str, kinds: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the use and the path of files in use; among mapped files, at least those whose path contains `real`."""
    if "fd" in kinds:
        for number in os.listdir("/proc/self/fd"):
            with suppress(FileNotFoundError):  # the descriptor of this list
                yield "open", os.readlink(f"/proc/self/fd/{number}")
    with _real_open("/proc/self/maps") as file:
        maps = file.read()
    if real in maps:  # rarely true, so the thousands of lines are usually not parsed
        for line in maps.splitlines():
            columns = line.split(maxsplit=5)  # addresses, rights, offset, device, inode, path
            if len(columns) == 6:
                yield "mapped", columns[5]
