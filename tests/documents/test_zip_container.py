"""Zip files: replacing members, and rejecting harmful files."""

import struct
import zipfile
from io import BytesIO
from random import Random

import pytest

from bitext.documents.zip_container import MOST_MEMBERS, SMALL, ZipContainer
from tests.probes.packed import packed
from translucid.ground.errors import UserError

MEMBERS = {"mimetype": "a/b", "a.xml": "<a/>" * 50, "b/c.bin": bytes(range(256)), "d.xml": "<d/>"}


@pytest.mark.parametrize("seed", range(30))
def test_what_does_not_change_keeps_its_bytes_flags_and_times(seed):
    content = packed(MEMBERS, Random(seed))
    replacements = {"a.xml": b"<new/>" * 30, "d.xml": b""}
    assert ZipContainer("a.zip", content).filled({}) == content
    filled = ZipContainer("a.zip", content).filled(replacements)
    before, after = zipfile.ZipFile(BytesIO(content)), zipfile.ZipFile(BytesIO(filled))
    assert after.testzip() is None
    assert (after.namelist(), after.comment) == (before.namelist(), before.comment)
    for info_before, info_after in zip(before.infolist(), after.infolist(), strict=True):
        for attribute in ("date_time", "compress_type", "external_attr", "create_system", "filename"):
            assert getattr(info_before, attribute) == getattr(info_after, attribute)
        assert after.read(info_after) == replacements.get(info_before.filename, before.read(info_before))
        if info_before.filename not in replacements:
            assert info_before.flag_bits == info_after.flag_bits
            raw = [
                archive[info.header_offset :][: 30 + len(info.filename) + info.compress_size]
                for archive, info in ((content, info_before), (filled, info_after))
            ]
            assert raw[0] == raw[1]
    assert ZipContainer("a.zip", filled).read("a.xml") == replacements["a.xml"]


def test_members_whose_sizes_follow_them_are_replaced():
    out = BytesIO()

    class Pipe:
        write, flush = out.write, out.flush

    with zipfile.ZipFile(Pipe(), "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in MEMBERS.items():
            archive.writestr(name, content)
    assert zipfile.ZipFile(out).infolist()[0].flag_bits & 8
    content = ZipContainer("a.zip", out.getvalue()).filled({"a.xml": b"<new/>"})
    filled = zipfile.ZipFile(BytesIO(content))
    replaced, unchanged = filled.getinfo("a.xml"), filled.getinfo("d.xml")
    assert (replaced.flag_bits & 8, unchanged.flag_bits & 8) == (0, 8)
    assert content[replaced.header_offset + 6] & 8 == 0  # the local header agrees
    assert filled.testzip() is None and filled.read("a.xml") == b"<new/>" and filled.read("d.xml") == b"<d/>"


def with_name(name, old_name=b"d.xml"):
    content = packed(MEMBERS, Random(1))
    return content.replace(old_name, name)


def with_flag(flag):
    content = bytearray(packed(MEMBERS, Random(1)))
    offset = content.index(b"PK\1\2") + 8
    content[offset : offset + 2] = struct.pack("<H", flag)
    return bytes(content)


def overlapping():
    """Return a zip file with two members that share their bytes."""
    content = bytearray(packed({"a.xml": "a" * 100, "b.xml": "b" * 100}, Random(1)))
    first = content.index(b"PK\1\2")
    second = content.index(b"PK\1\2", first + 4)
    content[second + 42 : second + 46] = content[first + 42 : first + 46]
    return bytes(content)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is damaged, or no file of this kind"),
        (b"PK\3\4 and so on", "is damaged, or no file of this kind"),
        (with_name(b"a/..\\"), "whose name leads out of it"),
        (with_name(b"../xm"), "whose name leads out of it"),
        (with_name(b"a/../", b"d.xml"), "whose name leads out of it"),
        (with_name(b"..\\xm"), "whose name leads out of it"),
        (with_name(b"C:xml"), "whose name leads out of it"),
        (with_name(b"A.XML"), "has two files of the same name"),
        (with_flag(1), "is encrypted"),
        (with_flag(0x41), "is encrypted"),
        (packed({"a": b"\0" * (2 * SMALL), "b": ""}, Random(1)), "far too well"),
        (packed({f"{i}": "" for i in range(MOST_MEMBERS + 1)}, Random(1)), "has more than 10,000 files"),
        (overlapping(), "is damaged"),
        (b"#!/bin/sh\n" + packed(MEMBERS, Random(1)), "of a kind that can't be read"),
        (packed(MEMBERS, Random(1))[:-40], "is damaged, or no file of this kind"),
    ],
)
def test_harmful_and_broken_files_are_refused(content, message):
    with pytest.raises(UserError, match=rf"^a.zip(/.*)?: .*{message}"):
        ZipContainer("a.zip", content)


def test_damage_is_found_when_a_member_is_unpacked():
    content = bytearray(packed(MEMBERS, Random(1)))
    content[content.index(b"a.xml") + 10] ^= 255
    file = ZipContainer("a.zip", bytes(content))
    with pytest.raises(UserError, match=r"^a.zip/a.xml: is damaged"):
        file.read("a.xml")
    with pytest.raises(UserError, match=r"^a.zip/x: is not in it"):
        file.read("x")


def test_a_size_that_is_not_the_true_one_unpacks_no_more_than_it_says():
    content = bytearray(packed({"a.xml": "a" * 5000}, Random(1)))
    offset = content.index(b"PK\1\2") + 24
    content[offset : offset + 4] = struct.pack("<L", 100)
    with pytest.raises(UserError, match="is damaged"):
        ZipContainer("a.zip", bytes(content)).read("a.xml")


def test_what_is_unpacked_has_a_limit(monkeypatch):
    monkeypatch.setattr("bitext.documents.zip_container.LARGEST", 300)
    file = ZipContainer("a.zip", packed({"a": "a" * 200, "b": "b" * 200}, Random(1)))
    file.read("a")
    with pytest.raises(UserError, match="of text"):
        file.read("b")
