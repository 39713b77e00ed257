"""Zip files, such as Office documents and e-books: other members keep their bytes, flags and times.

Untrusted files are safe to read (docs/security.md): the unpacked size is limited, and no name leads out of the file.
"""

from __future__ import annotations

import re
import struct
import unicodedata
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from io import BytesIO
from operator import attrgetter
from typing import Any, NamedTuple
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from bitext.documents.document import LARGEST, LONGEST_PLACE, Document, SegmentList, Target, completed, shortened
from bitext.documents.xml.xml_file import SlottedXml, XmlFile
from bitext.errors import UserError

MOST_MEMBERS = 10_000
LARGEST_RATIO = 200
"""The largest compression ratio of a member of more than `SMALL` bytes: a zip bomb has thousands."""
SMALL = 1 << 20
_LOCAL = struct.Struct("<4s5H3L2H")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_END = struct.Struct("<4s4H2LH")
_SIZES_FOLLOW, _ENCRYPTED, _UTF8 = 0x8, 0x1 | 0x40 | 0x2000, 0x800
"""The flags of a member: its sizes are after its data; it or its name is encrypted; its name is UTF-8."""
_UNSAFE = re.compile(r"\A[A-Za-z]:|(?:\A|/)\.\.(?:/|\Z)|[\0-\x1f]")
_COMPOUND_FILE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
"""The first bytes of files of Word, Excel and PowerPoint before 2007, and of newer ones with a password."""
_FIX = "Save it again with the program that it is from."


class _Record(NamedTuple):
    """A member and its offsets in the file."""

    info: ZipInfo
    name: str
    start: int
    data: int
    """The start of the packed data."""
    end: int
    """The start of the next member, or of the directory."""
    entry: tuple[Any, ...]
    """The fields of its entry in the directory."""
    texts: bytes
    """The texts of that entry: the name, extra fields and a comment."""


class ZipContainer:
    """A zip file in memory."""

    def __init__(self, name: str, content: bytes) -> None:
        """Read the directory of the file; no member is unpacked yet.

        Raises:
            UserError: the file is damaged or harmful.
        """
        self.name, self.content = name, content
        if content.startswith(_COMPOUND_FILE):
            fix = "Save it again in today's format, without a password."
            raise UserError("is in a format before 2007, or has a password", file=name, fix=fix)
        try:
            with ZipFile(BytesIO(content)) as archive:
                infos = archive.infolist()
                self._directory = archive.start_dir
        except (BadZipFile, NotImplementedError, ValueError, struct.error, OSError) as error:
            raise self.error("is damaged, or no file of this kind") from error
        if not infos:
            raise self.error("holds no files")
        if len(infos) > MOST_MEMBERS:
            raise self.error(f"has more than {MOST_MEMBERS:,} files in it")
        for info in infos:
            self._check(info)
        self.names = list(map(_name, infos))
        """The names of the members, in the form of `member_name`."""
        self._spellings = {name.casefold(): name for name in self.names}
        if len(self._spellings) < len(self.names):
            raise self.error("has two files of the same name in it")
        self._records = self._located(infos)
        self._unpacked = 0

    def error(self, what: str, member: str = "") -> UserError:
        """Return the error for an invalid file or member."""
        return UserError(what, file=self.display_name(member) if member else self.name, fix=_FIX)

    def display_name(self, member: str) -> str:
        """Return the name of a member for messages."""
        return f"{self.name}/{member}"

    def find(self, name: str) -> str | None:
        """Return the name of a member as the file spells it, in whatever case it is given; None if it is missing."""
        return self._spellings.get(member_name(name).casefold())

    def read(self, member: str) -> bytes:
        """Unpack a member.

        Raises:
            UserError: the member is missing or damaged, or the unpacked content becomes too large.
        """
        record = self._records.get(member_name(member))
        if record is None:
            raise self.error("is not in it", member)
        info = record.info
        self._unpacked += info.file_size
        if self._unpacked > LARGEST:
            raise self.error(f"holds more than {LARGEST >> 20} MiB of text")
        data = self.content[record.data : record.data + info.compress_size]
        if info.compress_type == ZIP_DEFLATED:
            decompressor = zlib.decompressobj(-zlib.MAX_WBITS)
            try:
                data = decompressor.decompress(data, info.file_size + 1)
            except zlib.error as error:
                raise self.error("is damaged", member) from error
        if len(data) != info.file_size or zlib.crc32(data) != info.CRC:
            raise self.error("is damaged", member)
        return data

    def xml(self, member: str) -> SlottedXml:
        """Return a member that is XML, as a document without segments; the errors are those of `read`."""
        return SlottedXml(XmlFile(self.display_name(member), self.read(member)))

    def filled(self, contents: Mapping[str, bytes]) -> bytes:
        """Return the file with new contents of some members; without any, the bytes are the same."""
        out, offsets, compressed, position = BytesIO(), dict[str, int](), dict[str, bytes](), 0
        for record in sorted(self._records.values(), key=attrgetter("start")):
            member = record.name
            out.write(self.content[position : record.start])
            offsets[member], position = out.tell(), record.end
            if member in contents:
                compressed[member] = self._compressed(record, contents[member])
                out.write(self._local(record, contents[member], compressed[member]))
            else:
                out.write(self.content[record.start : record.end])
        directory = out.tell()
        for member, record in self._records.items():
            entry = list(record.entry)
            entry[16] = offsets[member]
            if member in compressed:
                entry[3] &= ~_SIZES_FOLLOW
                entry[7:10] = zlib.crc32(contents[member]), len(compressed[member]), len(contents[member])
            out.write(_CENTRAL.pack(*entry) + record.texts)
        end = list(_END.unpack_from(self.content, self._end))
        end[5:7] = out.tell() - directory, directory
        out.write(_END.pack(*end) + self.content[self._end + _END.size :])
        return out.getvalue()

    def _check(self, info: ZipInfo) -> None:
        name = _name(info)
        if _UNSAFE.search(name) or not name:
            raise self.error("has a file in it whose name leads out of it", name)
        if info.flag_bits & _ENCRYPTED:
            raise self.error("is encrypted", name)
        if info.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
            raise self.error("is packed in a way that can't be read", name)
        if info.file_size > max(SMALL, LARGEST_RATIO * info.compress_size):
            raise self.error("is packed far too well to be harmless", name)

    def _located(self, infos: list[ZipInfo]) -> dict[str, _Record]:
        """Return the members by their names.

        The standard library tolerates members that overlap, or a directory that contradicts them. Such a file could
        not be written again byte for byte.

        Raises:
            UserError: the offsets of the file are wrong, or its members overlap.
        """
        starts = sorted(map(attrgetter("header_offset"), infos))
        ends: dict[int, int] = {}
        for start, end in zip(starts, [*starts[1:], self._directory], strict=True):
            ends.setdefault(start, end)  # If two members have the same offset, the first one has no room.
        records = {}
        position = self._directory
        for info in infos:
            name, start = _name(info), info.header_offset
            entry = _CENTRAL.unpack_from(self.content, position)
            texts = position + _CENTRAL.size
            position = texts + entry[10] + entry[11] + entry[12]
            if entry[16] != start:
                raise self.error("is a zip file of a kind that can't be read")
            try:
                local = _LOCAL.unpack_from(self.content, start)
            except struct.error as error:
                raise self.error("is damaged", name) from error
            data = start + _LOCAL.size + local[9] + local[10]
            if local[0] != b"PK\3\4" or data + info.compress_size > ends[start]:
                raise self.error("is damaged", name)
            records[name] = _Record(info, name, start, data, ends[start], entry, self.content[texts:position])
        if self.content[position : position + 4] != b"PK\5\6" or len(self.content) < position + _END.size:
            raise self.error("is a zip file of a kind that can't be read")
        self._end = position
        return records

    def _compressed(self, record: _Record, content: bytes) -> bytes:
        if record.info.compress_type == ZIP_STORED:
            return content
        compressor = zlib.compressobj(wbits=-zlib.MAX_WBITS)
        return compressor.compress(content) + compressor.flush()

    def _local(self, record: _Record, content: bytes, compressed: bytes) -> bytes:
        """Return a member with new content: its header with the new sizes, and the packed data."""
        header = list(_LOCAL.unpack_from(self.content, record.start))
        header[2] &= ~_SIZES_FOLLOW
        header[6:9] = zlib.crc32(content), len(compressed), len(content)
        after_name = record.start + _LOCAL.size + header[9]
        extra = _without_sizes(self.content[after_name : record.data])
        header[10] = len(extra)
        return _LOCAL.pack(*header) + self.content[record.start + _LOCAL.size : after_name] + extra + compressed


class Bundle:
    """A zip file with texts in several members, as a document."""

    def __init__(self, archive: ZipContainer) -> None:
        self.archive = archive
        self.segments = SegmentList(archive.name)
        # The name of each member, the number of its first segment, and the member as a document.
        self._members: list[tuple[str, int, Document]] = []

    def add(self, member: str, document: Document, label: str) -> None:
        """Add the segments of a member; `label`: its name for people.

        Raises:
            UserError: the file has too many segments.
        """
        label = shortened(label, LONGEST_PLACE)
        self._members.append((member, len(self.segments), document))
        self.segments.remarks += document.segments.remarks
        for segment in document.segments:
            self.segments.add(replace(segment, place=", ".join(filter(None, (label, segment.place)))))

    def filled(self, targets: Mapping[int, Target]) -> bytes:
        """Return the file with translations, which get all tags of their source, so that XML stays well-formed."""
        contents = {}
        for member, first, document in self._members:
            member_targets = {}
            for i in range(len(document.segments)):
                if target := targets.get(first + i):
                    member_targets[i] = target
            all_targets = completed(document.segments, member_targets)
            if isinstance(document, SlottedXml) and targets:
                content = document.filled(all_targets, is_translated=True)
                if member_targets or content != self.archive.read(member):
                    contents[member] = content
            elif member_targets:
                contents[member] = document.filled(all_targets)
        return self.archive.filled(contents) if contents else self.archive.content


def revision_remarks(counts: Mapping[str, int]) -> list[str]:
    """Return the remark on the tracked changes of a text, given the numbers of insertions and deletions."""
    insertions, deletions = counts.get("insertion", 0), counts.get("deletion", 0)
    if not insertions + deletions:
        return []
    remark = f"tracked changes: insertions are translated ({insertions:,}), deletions stay as they are ({deletions:,})"
    return [f"{remark}; to get a clean text, accept or reject them first"]


def member_name(name: str) -> str:
    """Return a name in the form in which members are looked up.

    Some programs write accents as separate characters; others write names as Windows does, or begin them with a slash.
    """
    return unicodedata.normalize("NFC", name).replace("\\", "/").lstrip("/")


def _name(info: ZipInfo) -> str:
    """Return the name of a member; many programs write UTF-8 without the flag for it."""
    name = info.orig_filename
    if not info.flag_bits & _UTF8:
        with suppress(UnicodeError):  # Else it is code page 437, as the standard library has read it.
            name = name.encode("cp437").decode()
    return member_name(name)


def _without_sizes(extra: bytes) -> bytes:
    """Return the extra fields of a member without those of its sizes (zip64)."""
    fields, position = b"", 0
    while position + 4 <= len(extra):
        kind, size = struct.unpack_from("<2H", extra, position)
        if kind != 1:
            fields += extra[position : position + 4 + size]
        position += 4 + size
    return fields
