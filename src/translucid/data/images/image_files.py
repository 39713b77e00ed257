"""Pictures by name, in folders and tar files; what is asked for never comes from outside of them."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from translucid.ground.errors import UserError
from translucid.ground.reading import digest, read_at_most, refuse_strange

MAX_BYTES = 32 * 1024 * 1024
"""Of a picture, at most."""
ENDINGS = (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp")
"""Of the names that are looked at; large letters do as well."""
_OTHER_ENDINGS = (".tif", ".tiff", ".heic", ".heif", ".avif", ".jxl", ".jp2", ".svg", ".psd", ".ico", ".ppm", ".pgm")
"""File endings of images that are not supported; an existing file with one of them gets an error of its own."""
_MAX_HEADER = 16 * 1024
"""Bytes of what a tar file says of one of its files: a name has 4,096 at most. To look through more takes tarfile
long, by the square of their number in some versions."""
_PACKED = (b"\x1f\x8b", b"BZh", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"PK\x03\x04")
"""How what is compressed begins: gzip, bzip2, xz, zstandard, zip."""


class _Place(NamedTuple):
    """Where a picture is."""

    root: Path
    """The folder or tar file."""
    start: int | None = None
    """Its first byte in the tar file; None in a folder."""
    size: int = 0
    """Bytes, in a tar file."""


class _State(NamedTuple):
    """What changes if a tar file does."""

    size: int
    changed: int


class ImageFiles:
    """Pictures by name. Several threads and processes may read at once: nothing is kept open."""

    def __init__(self, roots: Sequence[Path]) -> None:
        """See `open`."""
        self._roots = list(roots)
        self._places: dict[str, _Place] = {}
        self._left_out: dict[str, str] = {}
        """Why a name that is there is not read."""
        self._other_kinds: set[str] = set()
        """Names in tar files that end in one of `_OTHER_ENDINGS`."""
        self._states: dict[Path, _State] = {}
        """Of each tar file when it was opened."""

    @classmethod
    def open(cls, paths: Sequence[Path]) -> ImageFiles:
        """Look through folders, with the folders in them, and tar files.

        A name is as in a tar file, `train/000001.png`, also in a folder. Links to folders are not followed; what begins
        with a dot, and what does not end in one of `ENDINGS`, is not looked at.

        Raises:
            UserError: one is missing, is neither, is compressed, sparse, truncated or damaged, or has no pictures, or
                two pictures have the same name.
        """
        if not paths:
            raise UserError("no pictures were given", fix="Give folders or tar files of pictures.")
        files = cls(paths)
        for root in paths:
            before = len(files._places)
            files._look_through(root)
            if len(files._places) == before:
                fix = f"Pictures end in {', '.join(ENDINGS)}."
                raise UserError("has no pictures", file=root, fix=fix)
        return files

    def __contains__(self, name: object) -> bool:
        """Whether there is a picture of that name."""
        return name in self._places

    def names(self) -> list[str]:
        """Return all names: those of a tar file in its order, those of a folder sorted."""
        return list(self._places)

    def read(self, name: str) -> bytes:
        """Return the content of a picture's file.

        Raises:
            UserError: there is none of that name, it is left out, it is too large, or its tar file has changed.
        """
        place = self._places.get(name)
        if place is None:
            raise self._missing(name)
        if place.start is None:
            file = place.root / name
            refuse_strange(file, place.root)
            try:
                return read_at_most(file, MAX_BYTES)
            except OSError as error:
                raise _unreadable(file, error) from error
        if place.size > MAX_BYTES:
            what = f"{name} has {place.size:,} bytes, more than {MAX_BYTES:,}"
            raise UserError(what, file=place.root, fix="Save it smaller.")
        return self._part_of_tar(place.root, place.start, place.size)

    def refuse_missing(self, names: Iterable[str]) -> None:
        """Check, before any work, that there is a picture of each of these names.

        Raises:
            UserError: of one there is none.
        """
        for name in names:
            if name not in self._places:
                raise self._missing(name)

    def digest(self) -> str:
        """Return a fingerprint of all content: of each tar file, and of each picture in a folder with its name.

        Where the folders and tar files lie, and in which order they were given, does not matter.
        """
        in_tars = [digest(root) for root in self._states]
        in_folders = [
            f"{digest(place.root / name)} {name}" for name, place in self._places.items() if place.start is None
        ]
        lines = "".join(f"{line}\n" for line in sorted([*in_tars, *in_folders]))
        return hashlib.sha256(lines.encode("utf-8", "surrogateescape")).hexdigest()

    def _look_through(self, root: Path) -> None:
        try:
            if root.is_dir():
                for name in _names_in_folder(root):
                    self._add_from_folder(name, root)
            elif root.is_file():
                self._add_from_tar(root)
            elif root.exists():
                raise UserError("is neither a folder nor a file", file=root, fix="Give a folder or a tar file.")
            else:
                raise UserError("is not there", file=root, fix="Give a folder or a tar file of pictures.")
        except OSError as error:
            raise _unreadable(root, error) from error

    def _add_from_folder(self, name: str, root: Path) -> None:
        file = root / name
        if not file.is_file():
            self._left_out[name] = f"is not a file in {root}"
        elif file.is_symlink() and not file.resolve().is_relative_to(root.resolve()):
            self._left_out[name] = f"is a link that leads out of {root}"
        else:
            self._add(name, _Place(root))

    def _add_from_tar(self, root: Path) -> None:
        with _Headers(root.open("rb", buffering=0)) as stream:
            beginning = stream.read(6)
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
            if stream.read(512) != bytes(512):  # tarfile itself stops at a damaged member as it stops at the end
                raise UserError("is a tar file without its end", file=root, fix="Fetch it or write it again.")

    def _add_member(self, member: tarfile.TarInfo, root: Path) -> None:
        path = PurePosixPath(member.name)  # without a ./ at its beginning
        name = str(path)
        if not _is_picture(path):
            if path.suffix.lower() in _OTHER_ENDINGS and member.isreg():
                self._other_kinds.add(name)
            return
        if member.issparse():
            raise UserError(f"holds {name} as a sparse file", file=root, fix="Write it again without --sparse.")
        if path.is_absolute() or ".." in path.parts:
            self._left_out[name] = f"has a name in {root} that leads out of it"
        elif not member.isreg():
            self._left_out[name] = f"is a link or a device in {root}, not a file"
        else:
            self._add(name, _Place(root, member.offset_data, member.size))

    def _add(self, name: str, place: _Place) -> None:
        other = self._places.setdefault(name, place)
        if other is not place:
            what = f"the picture {name} is in {other.root} and again in {place.root}"
            raise UserError(what, fix="Leave one of them out, or rename it.")

    def _missing(self, name: str) -> UserError:
        if why := self._left_out.get(name):
            return UserError(f"the picture {name} {why}", fix="Put the file itself there.")
        if self._is_of_other_kind(name):
            what = f"the picture {name} is there, but {PurePosixPath(name).suffix} files are not read"
            return UserError(what, fix=f"Convert it; pictures end in {', '.join(ENDINGS)}.")
        where = ", ".join(map(str, self._roots))
        fix = f"Names are as {next(iter(self._places))}." if self._places else ""
        return UserError(f"there is no picture {name} in {where}", fix=fix)

    def _is_of_other_kind(self, name: str) -> bool:
        path = PurePosixPath(name)
        if name in self._other_kinds:
            return True
        if path.suffix.lower() not in _OTHER_ENDINGS or path.is_absolute() or ".." in path.parts:
            return False
        return any((root / name).is_file() for root in self._roots)

    def _part_of_tar(self, root: Path, start: int, size: int) -> bytes:
        try:
            with root.open("rb") as stream:
                same = _state(stream.fileno()) == self._states[root]
                stream.seek(start)
                content = stream.read(size)
        except OSError as error:
            raise _unreadable(root, error) from error
        if not same or len(content) != size:
            raise UserError("has changed since it was opened", file=root, fix="Start again.")
        return content


class _Headers(io.BufferedReader):
    """A tar file to read headers from, none of them large: one may say that it has more bytes than there is memory."""

    def read(self, size: int | None = -1, /) -> bytes:
        """Return so many bytes.

        Raises:
            tarfile.ReadError: that is too many.
        """
        if size is None or not 0 <= size <= _MAX_HEADER:
            raise tarfile.ReadError(f"a header has more than {_MAX_HEADER:,} bytes")
        return super().read(size)


def _members(archive: tarfile.TarFile) -> Iterator[tarfile.TarInfo]:
    """Yield what a tar file holds without keeping it, and not forever: a negative size would lead back."""
    before = 0
    while member := archive.next():
        if archive.offset <= before:
            raise tarfile.ReadError(f"{member.name} ends before it begins")
        before = archive.offset
        yield member
        archive.members.clear()  # type: ignore[attr-defined]


def _names_in_folder(root: Path) -> Iterator[str]:
    def stop(error: OSError) -> None:
        raise error

    found = []
    for folder, inner, files in os.walk(root, onerror=stop):
        inner[:] = [name for name in inner if not name.startswith(".")]
        here = Path(folder).relative_to(root)
        found += [path.as_posix() for path in (here / file for file in files) if _is_picture(PurePosixPath(path))]
    yield from sorted(found)


def _is_picture(path: PurePosixPath) -> bool:
    """Whether a name is of a picture; macOS lays `._1.jpg`, which is none, beside each `1.jpg`."""
    return path.suffix.lower() in ENDINGS and not any(part.startswith(".") and part != ".." for part in path.parts)


def _state(descriptor: int) -> _State:
    facts = os.fstat(descriptor)
    return _State(facts.st_size, facts.st_mtime_ns)


def _unreadable(file: Path, error: OSError) -> UserError:
    return UserError(f"can't be read ({error.strerror})", file=file, fix="Check the path.")
