"""Pictures by name, in folders and tar files; no name leads out of them."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from bitext.reading import digest, read_at_most, reading, refuse_unsafe
from translucid.ground.errors import UserError

MAX_BYTES = 32 * 1024 * 1024
"""The most bytes of a picture."""
ENDINGS = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp")
"""File endings of pictures, in lower or upper case."""
_OTHER_ENDINGS = (".tif", ".tiff", ".heic", ".heif", ".avif", ".jxl", ".jp2", ".svg", ".psd", ".ico", ".ppm", ".pgm")
"""File endings of unsupported images; an existing file with one of them gets its own error message."""
_MAX_HEADER = 16 * 1024
"""The most bytes of a member's header in a tar file; a name has 4,096 at most. For longer headers, tarfile takes long:
in some versions its time grows with the square of their length."""
_PACKED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"PK\x03\x04")
"""The first bytes of compressed files: gzip, bzip2, xz, zstandard, zip."""


class _Location(NamedTuple):
    """The location of a picture."""

    root: Path
    """The folder or tar file."""
    start: int | None = None
    """The offset of its first byte in the tar file; None in a folder."""
    size: int = 0
    """The number of bytes in the tar file."""


class ImageFiles:
    """Pictures by name. Several threads and processes may read at the same time, because no file is kept open."""

    def __init__(self, roots: Sequence[Path]) -> None:
        """Create an empty index; `open` fills it."""
        self._roots = list(roots)
        self._locations: dict[str, _Location] = {}
        self._skipped: dict[str, str] = {}
        """Existing names that are not read, with the reason."""
        self._other_kinds: set[str] = set()
        """Names in tar files that end in one of `_OTHER_ENDINGS`."""
        self._states: dict[Path, tuple[int, int]] = {}
        """The size and the time of each tar file when it was opened, which change with its content."""

    @classmethod
    def open(cls, paths: Sequence[Path]) -> ImageFiles:
        """Index the pictures of folders, including the folders in them, and of tar files.

        Names have the form that they have in a tar file, `train/000001.png`, also for folders. Links to folders are not
        followed. Names that begin with a dot or do not end in one of `ENDINGS` are ignored.

        Raises:
            UserError: a path is missing, is neither a folder nor a file, is compressed, sparse, truncated or damaged,
                or has no pictures, or two pictures have the same name.
        """
        if not paths:
            raise UserError("no pictures were given", fix="Give folders or tar files of pictures.")
        files = cls(paths)
        for root in paths:
            previous_count = len(files._locations)
            files._index(root)
            if len(files._locations) == previous_count:
                fix = f"Pictures end in {', '.join(ENDINGS)}."
                raise UserError("has no pictures", file=root, fix=fix)
        return files

    def __contains__(self, name: object) -> bool:
        return name in self._locations

    def names(self) -> list[str]:
        """Return all names: those of a tar file in the order of the file, those of a folder sorted."""
        return list(self._locations)

    def read(self, name: str) -> bytes:
        """Return the content of a picture's file.

        Raises:
            UserError: the picture is missing, ignored or too large, or its tar file has changed.
        """
        location = self._locations.get(name)
        if location is None:
            raise self._missing(name)
        if location.start is None:
            file = location.root / name
            refuse_unsafe(file, location.root)
            with reading(file):
                return read_at_most(file, MAX_BYTES)
        if location.size > MAX_BYTES:
            what = f"{name} has {location.size:,} bytes, more than {MAX_BYTES:,}"
            raise UserError(what, file=location.root, fix="Save it smaller.")
        return self._read_from_tar(location.root, location.start, location.size)

    def refuse_missing(self, names: Iterable[str]) -> None:
        """Check, before any work, that there is a picture for each name.

        Raises:
            UserError: there is none for one of them.
        """
        for name in names:
            if name not in self._locations:
                raise self._missing(name)

    def digest(self) -> str:
        """Return a fingerprint of all tar files, and of all pictures in folders with their names.

        It does not depend on the paths of the folders and tar files, nor on their order.
        """
        lines = list(map(digest, self._states))
        for name, location in self._locations.items():
            if location.start is None:
                lines.append(f"{digest(location.root / name)} {name}")
        text = "\n".join([*sorted(lines), ""])
        return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()

    def _index(self, root: Path) -> None:
        with reading(root):
            if root.is_dir():
                for name in _names_in_folder(root):
                    self._add_from_folder(name, root)
            elif root.is_file():
                self._add_from_tar(root)
            elif root.exists():
                raise UserError("is neither a folder nor a file", file=root, fix="Give a folder or a tar file.")
            else:
                raise UserError("is not there", file=root, fix="Give a folder or a tar file of pictures.")

    def _add_from_folder(self, name: str, root: Path) -> None:
        file = root / name
        if not file.is_file():
            self._skipped[name] = f"is not a file in {root}"
        elif file.is_symlink() and not file.resolve().is_relative_to(root.resolve()):
            self._skipped[name] = f"is a link that leads out of {root}"
        else:
            self._add(name, _Location(root))

    def _add_from_tar(self, root: Path) -> None:
        with _Headers(root.open("rb", buffering=0)) as stream:
            beginning = stream.read(max(map(len, _PACKED)))
            if beginning.startswith(_PACKED):
                fix = "Unpack it to a plain .tar, as with gunzip."
                raise UserError("is compressed, but pictures are read in any order", file=root, fix=fix)
            self._states[root] = _state(stream.fileno())
            stream.seek(0)
            try:
                with tarfile.open(fileobj=stream, mode="r:") as archive:
                    for member in _members(archive):
                        self._add_member(member, root)
                    stream.seek(archive.offset)
            except (tarfile.TarError, ValueError, LookupError, OverflowError, RecursionError) as error:
                fix = "Give a plain tar file; fetch it or write it again."
                raise UserError(f"is not a tar file, or truncated or damaged ({error})", file=root, fix=fix) from error
            # tarfile takes a damaged header for the end of the file; the real end is a block of zeros.
            if stream.read(512) != bytes(512):
                raise UserError("is a tar file without its end", file=root, fix="Fetch it or write it again.")

    def _add_member(self, member: tarfile.TarInfo, root: Path) -> None:
        path = PurePosixPath(member.name)  # drops a `./` at the beginning
        name = str(path)
        if not _is_picture(path):
            if path.suffix.lower() in _OTHER_ENDINGS and member.isreg():
                self._other_kinds.add(name)
            return
        if member.issparse():
            raise UserError(f"holds {name} as a sparse file", file=root, fix="Write it again without --sparse.")
        if path.is_absolute() or ".." in path.parts:
            self._skipped[name] = f"has a name in {root} that leads out of it"
        elif not member.isreg():
            self._skipped[name] = f"is a link or a device in {root}, not a file"
        else:
            self._add(name, _Location(root, member.offset_data, member.size))

    def _add(self, name: str, location: _Location) -> None:
        earlier = self._locations.setdefault(name, location)
        if earlier is not location:
            what = f"the picture {name} is in {earlier.root} and again in {location.root}"
            raise UserError(what, fix="Leave one of them out, or rename it.")

    def _missing(self, name: str) -> UserError:
        if reason := self._skipped.get(name):
            return UserError(f"the picture {name} {reason}", fix="Put the file itself there.")
        if self._is_of_other_kind(name):
            what = f"the picture {name} is there, but {PurePosixPath(name).suffix} files are not read"
            return UserError(what, fix=f"Convert it; pictures end in {', '.join(ENDINGS)}.")
        roots = ", ".join(map(str, self._roots))
        fix = f"Names are as {next(iter(self._locations))}." if self._locations else ""
        return UserError(f"there is no picture {name} in {roots}", fix=fix)

    def _is_of_other_kind(self, name: str) -> bool:
        path = PurePosixPath(name)
        if name in self._other_kinds:
            return True
        if path.suffix.lower() not in _OTHER_ENDINGS or path.is_absolute() or ".." in path.parts:
            return False
        return any((root / name).is_file() for root in self._roots)

    def _read_from_tar(self, root: Path, start: int, size: int) -> bytes:
        with reading(root), root.open("rb") as stream:
            unchanged = _state(stream.fileno()) == self._states[root]
            stream.seek(start)
            content = stream.read(size)
        if not unchanged or len(content) != size:
            raise UserError("has changed since it was opened", file=root, fix="Start again.")
        return content


class _Headers(io.BufferedReader):
    """A tar file from which headers are read. Their size is bounded, because a header may claim any number of bytes."""

    def read(self, size: int | None = -1, /) -> bytes:
        """Return `size` bytes.

        Raises:
            tarfile.ReadError: these are too many for a header.
        """
        if size is None or not 0 <= size <= _MAX_HEADER:
            raise tarfile.ReadError(f"a header has more than {_MAX_HEADER:,} bytes")
        return super().read(size)


def _members(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """Yield the members of a tar file.

    tarfile would keep all of them in memory, and read a member of negative size again and again.
    """
    previous_offset = 0
    while member := archive.next():
        if archive.offset <= previous_offset:
            raise tarfile.ReadError(f"{member.name} ends before it begins")
        previous_offset = archive.offset
        yield member
        archive.members.clear()  # type: ignore[attr-defined]


def _names_in_folder(root: Path) -> Iterator[str]:
    def stop(error: OSError) -> None:
        raise error

    names = []
    for folder, subfolders, files in os.walk(root, onerror=stop):
        # os.walk does not enter the folders that are removed from its list.
        subfolders[:] = [name for name in subfolders if not name.startswith(".")]
        relative = Path(folder).relative_to(root)
        for file in files:
            path = PurePosixPath(relative / file)
            if _is_picture(path):
                names.append(str(path))
    yield from sorted(names)


def _is_picture(path: PurePosixPath) -> bool:
    """Whether a name is that of a picture. Hidden names are not: macOS adds a file `._1.jpg` for each `1.jpg`."""
    if path.suffix.lower() not in ENDINGS:
        return False
    return not any(part.startswith(".") and part != ".." for part in path.parts)


def _state(descriptor: int) -> tuple[int, int]:
    status = os.fstat(descriptor)
    return status.st_size, status.st_mtime_ns
