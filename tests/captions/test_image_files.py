"""Pictures by name: from folders and tar files, and from nowhere else."""

import bz2
import gzip
import io
import lzma
import os
import pickle
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from translucid.captions.image_files import MAX_BYTES, ImageFiles
from translucid.ground.errors import UserError

CONTENT = {f"train/{number:06}.png": bytes([number]) * (600 + number) for number in (3, 1, 2)}


def entry(name, content=b"", **fields):
    member = tarfile.TarInfo(name)
    member.size = len(content)
    for field, value in fields.items():
        setattr(member, field, value)
    return member, content


def write_tar(path, *entries, **options):
    with tarfile.open(path, "w", **options) as archive:
        for member, content in entries:
            archive.addfile(member, io.BytesIO(content))
    return path


@pytest.fixture
def tar(tmp_path):
    return write_tar(tmp_path / "images.tar", *(entry(*item) for item in CONTENT.items()))


@pytest.fixture
def folder(tmp_path):
    for name, content in CONTENT.items():
        file = tmp_path / "images" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    return tmp_path / "images"


def test_pictures_are_read_by_name_from_tars_in_their_order_and_from_folders_sorted(tar, folder):
    for root, names in ((tar, list(CONTENT)), (folder, sorted(CONTENT))):
        files = ImageFiles.open([root])
        assert files.names() == names
        assert {name: files.read(name) for name in reversed(names)} == CONTENT
        assert "train/000001.png" in files and "train/000009.png" not in files and 1 not in files
        assert pickle.loads(pickle.dumps(files)).read("train/000002.png") == CONTENT["train/000002.png"]


def test_several_places_are_one_collection(tmp_path, tar):
    (tmp_path / "more" / "deep").mkdir(parents=True)
    for name in ("b.JPG", "a.webp", "deep/c.gif"):
        (tmp_path / "more" / name).write_bytes(name.encode())
    files = ImageFiles.open([tmp_path / "more", tar])
    assert files.names() == ["a.webp", "b.JPG", "deep/c.gif", *CONTENT]
    assert files.read("deep/c.gif") == b"deep/c.gif" and files.read("train/000003.png") == CONTENT["train/000003.png"]


def test_other_files_than_pictures_are_ignored(tmp_path):
    names = ["a.png", "b.jpeg", "c.bmp", "a.txt", "a.svg", "png", ".png", "._a.png", "__MACOSX/._b.png", ".t/a.png"]
    folder = tmp_path / "folder"
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(b"x")
    tar = write_tar(tmp_path / "x.tar", *(entry(f"./{name}", b"x") for name in names))
    for root in (folder, tar):
        assert ImageFiles.open([root]).names() == ["a.png", "b.jpeg", "c.bmp"]


def test_threads_read_from_one_tar_at_once(tar):
    files = ImageFiles.open([tar])
    names = files.names() * 200
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(files.read, names)) == [CONTENT[name] for name in names]


def test_long_names_and_names_of_any_script_are_read(tmp_path):
    names = [f"{'x' * 90}/{'y' * 90}/{'z' * 60}.png", "картинки/кошка.png"]
    for kind in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        tar = write_tar(tmp_path / "x.tar", *(entry(name, name.encode()) for name in names), format=kind)
        files = ImageFiles.open([tar])
        assert [files.read(name) for name in names] == [name.encode() for name in names]


def test_a_missing_name_is_said_with_where_it_was_looked_for(tar, folder):
    for root in (tar, folder):
        with pytest.raises(UserError, match=f"no picture 000001.png in {root}. Names are as train/00000[13].png"):
            ImageFiles.open([root]).read("000001.png")


@pytest.mark.parametrize("name", ["../secret.png", "/etc/secret.png", "train/../../secret.png", "", ".", "train"])
def test_names_can_not_leave_the_folder(tar, folder, name):
    (folder.parent / "secret.png").write_bytes(b"secret")
    for root in (tar, folder):
        files = ImageFiles.open([root])
        assert name not in files
        with pytest.raises(UserError, match="there is no picture"):
            files.read(name)


def test_members_that_lead_out_or_are_no_files_are_left_out_and_who_asks_is_told_why(tmp_path):
    tar = write_tar(
        tmp_path / "x.tar",
        entry("a.png", b"a"),
        entry("../up.png", b"x"),
        entry("in/../../up.png", b"x"),
        entry("/abs.png", b"x"),
        entry("soft.png", type=tarfile.SYMTYPE, linkname="/etc/passwd"),
        entry("hard.png", type=tarfile.LNKTYPE, linkname="a.png"),
        entry("pipe.png", type=tarfile.FIFOTYPE),
        entry("disk.png", type=tarfile.BLKTYPE),
        entry("folder.png", type=tarfile.DIRTYPE),
    )
    files = ImageFiles.open([tar])
    assert files.names() == ["a.png"]
    for name in ("../up.png", "in/../../up.png", "/abs.png"):
        with pytest.raises(UserError, match=f"the picture {name} has a name in {tar} that leads out"):
            files.read(name)
    for name in ("soft.png", "hard.png", "pipe.png", "disk.png", "folder.png"):
        with pytest.raises(UserError, match=f"the picture {name} is a link or a device in {tar}"):
            files.read(name)


def test_links_out_of_a_folder_are_left_out_and_those_within_are_read(tmp_path, folder):
    (tmp_path / "secret.png").write_bytes(b"secret")
    (tmp_path / "others").mkdir()
    (tmp_path / "others" / "o.png").write_bytes(b"secret")
    (folder / "out.png").symlink_to(tmp_path / "secret.png")
    (folder / "others").symlink_to(tmp_path / "others")
    (folder / "gone.png").symlink_to(folder / "nothing.png")
    (folder / "in.png").symlink_to(folder / "train" / "000001.png")
    os.mkfifo(folder / "pipe.png")
    files = ImageFiles.open([folder])
    assert files.names() == ["in.png", *sorted(CONTENT)]
    assert files.read("in.png") == CONTENT["train/000001.png"]
    for name, message in {"out.png": "leads out", "gone.png": "not a file", "pipe.png": "not a file"}.items():
        with pytest.raises(UserError, match=message):
            files.read(name)
    (folder / "train" / "000002.png").unlink()
    (folder / "train" / "000002.png").symlink_to(tmp_path / "secret.png")
    with pytest.raises(UserError, match="leads out of its folder"):
        files.read("train/000002.png")
    (folder / "train" / "000001.png").unlink()
    with pytest.raises(UserError, match=r"000001.png: can't be read \(No such file"):
        files.read("train/000001.png")


def test_the_same_name_twice_is_refused_naming_both(tmp_path, tar, folder):
    with pytest.raises(UserError, match=f"train/00000[1-3].png is in {tar} and again in {folder}"):
        ImageFiles.open([tar, folder])
    twice = write_tar(tmp_path / "twice.tar", entry("a.png", b"1"), entry("./a.png", b"2"))
    with pytest.raises(UserError, match=f"a.png is in {twice} and again in {twice}"):
        ImageFiles.open([twice])


def test_a_tar_without_its_end_is_refused_wherever_it_is_cut(tar):
    content = tar.read_bytes()
    members = 3 * (512 + 1024)
    assert content[members:] == bytes(len(content) - members)
    for end in (*range(1, 512, 97), *range(512, members + 1, 256), 513, 1537, members - 1):
        tar.write_bytes(content[:end])
        with pytest.raises(UserError, match=f"{tar}: is (not a tar file, or truncated|a tar file without its end)"):
            ImageFiles.open([tar])
    for damaged in (content[:1536] + b"x" * 512 + content[2048:], content[:1700] + b"x" + content[1701:]):
        tar.write_bytes(damaged)
        with pytest.raises(UserError, match=f"{tar}: is a tar file without its end"):
            ImageFiles.open([tar])


@pytest.mark.parametrize("offset", [0, 1536])
def test_a_tar_that_leads_back_to_its_beginning_is_refused(tar, offset):
    """The size is negative, in base 256: some versions of tarfile never end then."""
    content = bytearray(tar.read_bytes())
    header = content[offset : offset + 512]
    header[124:136] = (-1536 & (1 << 96) - 1).to_bytes(12, "big")
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    content[offset : offset + 512] = header
    tar.write_bytes(content)
    with pytest.raises(UserError, match=f"{tar}: is "):
        ImageFiles.open([tar])


@pytest.mark.parametrize("kind", [tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE, tarfile.XGLTYPE])
def test_a_name_that_is_said_to_be_larger_than_the_memory_is_refused(tar, kind):
    header = tarfile.TarInfo("a.png")
    header.type, header.size = kind, 1 << 60
    tar.write_bytes(header.tobuf(tarfile.GNU_FORMAT) + tar.read_bytes())
    with pytest.raises(UserError, match=f"{tar}: is not a tar file.*a header has more than 16,384 bytes"):
        ImageFiles.open([tar])


def test_a_sparse_tar_is_refused(tmp_path):
    """GNU tar writes such files with --sparse: the stored bytes are not the content of the file."""
    header = entry("a.png", b"x" * 512)[0]
    header.type = tarfile.GNUTYPE_SPARSE
    block = bytearray(header.tobuf(tarfile.GNU_FORMAT))
    block[386:410] = b"00000001000\0" + b"00000001000\0"
    block[483:495] = b"00000002000\0"
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    (tmp_path / "x.tar").write_bytes(block + b"x" * 512 + bytes(1024))
    with pytest.raises(UserError, match=r"x.tar: holds a.png as a sparse file"):
        ImageFiles.open([tmp_path / "x.tar"])


def test_other_files_than_plain_tars_are_refused(tmp_path, tar):
    (tmp_path / "x.tar.gz").write_bytes(gzip.compress(tar.read_bytes()))
    (tmp_path / "renamed.tar").write_bytes(gzip.compress(tar.read_bytes()))
    for name in ("x.tar.gz", "renamed.tar"):
        with pytest.raises(UserError, match=f"{name}: is compressed, .* gunzip"):
            ImageFiles.open([tmp_path / name])
    (tmp_path / "text.tar").write_text("hello\n" * 200)
    (tmp_path / "empty.tar").touch()
    for name in ("text.tar", "empty.tar"):
        with pytest.raises(UserError, match=f"{name}: is not a tar file"):
            ImageFiles.open([tmp_path / name])
    for path, message in (
        (tmp_path / "nowhere", "is not there"),
        (Path("/dev/null"), "neither a folder nor a file"),
        (write_tar(tmp_path / "texts.tar", entry("a.txt", b"x")), "has no pictures"),
    ):
        with pytest.raises(UserError, match=f"{path}: .*{message}"):
            ImageFiles.open([path])
    with pytest.raises(UserError, match="no pictures were given"):
        ImageFiles.open([])


def test_a_picture_that_is_too_large_is_refused_before_it_is_read(tmp_path):
    with (tmp_path / "big.png").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    (tmp_path / "small.png").write_bytes(b"x")
    tar = write_tar(tmp_path / "x.tar", entry("big.png", (tmp_path / "big.png").read_bytes()), entry("a.png", b"x"))
    for root in (tmp_path / "x.tar", tmp_path):
        with pytest.raises(UserError, match=f"{root}.*big.png.* has .*more than 33,554,432"):
            ImageFiles.open([root]).read("big.png")
    assert ImageFiles.open([tar]).read("a.png") == b"x"


def test_a_tar_that_has_changed_since_is_refused(tar):
    files = ImageFiles.open([tar])
    write_tar(tar, *(entry(name, b"other") for name in CONTENT))
    with pytest.raises(UserError, match="has changed since it was opened"):
        files.read("train/000001.png")
    tar.unlink()
    with pytest.raises(UserError, match="can't be read"):
        files.read("train/000001.png")


def test_the_fingerprint_is_of_content_and_names_not_of_places(tmp_path, tar, folder):
    digest = ImageFiles.open([tar]).digest()
    moved = tar.rename(tmp_path / "moved.tar")
    assert ImageFiles.open([moved]).digest() == digest and len(digest) == 64
    other = write_tar(tmp_path / "other.tar", entry("other.png", b"x"))
    combined = ImageFiles.open([moved, other]).digest()
    assert combined == ImageFiles.open([other, moved]).digest() != digest
    first = ImageFiles.open([folder]).digest()
    folder = folder.rename(tmp_path / "renamed")
    assert ImageFiles.open([folder]).digest() == first
    (folder / "train" / "000001.png").rename(folder / "train" / "000004.png")
    second = ImageFiles.open([folder]).digest()
    (folder / "train" / "000004.png").write_bytes(b"other")
    assert len({first, second, ImageFiles.open([folder]).digest()}) == 3


@pytest.mark.parametrize("packed", [False, True])
def test_a_picture_of_a_kind_that_is_not_read_is_not_said_to_be_missing(tmp_path, packed):
    (tmp_path / "in").mkdir()
    for name in ("a.png", "scan.tif", "photo.HEIC"):
        (tmp_path / "in" / name).write_bytes(b"x")
    root = tmp_path / "in"
    if packed:
        root = tmp_path / "all.tar"
        with tarfile.open(root, "w") as archive:
            archive.add(tmp_path / "in", ".")
    files = ImageFiles.open([root])
    for name, kind in (("scan.tif", ".tif"), ("photo.HEIC", ".HEIC")):
        with pytest.raises(UserError, match=f"the picture {name} is there, but {kind} files are not read"):
            files.refuse_missing(["a.png", name])
    with pytest.raises(UserError, match=r"there is no picture other\.tif"):
        files.refuse_missing(["other.tif"])


def test_compressed_files_are_recognized_by_their_first_bytes(tmp_path, tar):
    content = tar.read_bytes()
    zstandard, zipped = b"\x28\xb5\x2f\xfd" + content, b"PK\x03\x04" + content
    for packed in (gzip.compress(content), bz2.compress(content), lzma.compress(content), zstandard, zipped):
        (tmp_path / "x.tar").write_bytes(packed)
        with pytest.raises(UserError, match="is compressed, but pictures are read in any order"):
            ImageFiles.open([tmp_path / "x.tar"])
    other = entry("BZ.png", b"x")
    assert ImageFiles.open([write_tar(tmp_path / "x.tar", other)]).names() == ["BZ.png"]


@pytest.mark.parametrize(("size", "is_read"), [(16_384, True), (16_385, False)])
def test_a_header_may_have_so_many_bytes(tmp_path, size, is_read):
    member, content = entry("a.png", b"x")
    member.pax_headers = {"comment": "x" * (size - len("16384 comment=\n"))}
    tar = write_tar(tmp_path / "x.tar", (member, content), format=tarfile.PAX_FORMAT)
    if is_read:
        assert ImageFiles.open([tar]).read("a.png") == b"x"
    else:
        with pytest.raises(UserError, match="a header has more than 16,384 bytes"):
            ImageFiles.open([tar])


def test_a_picture_of_the_largest_size_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr("translucid.captions.image_files.MAX_BYTES", 4)
    (tmp_path / "in").mkdir()
    for name, content in (("a.png", b"1234"), ("b.png", b"12345")):
        (tmp_path / "in" / name).write_bytes(content)
    tar = write_tar(tmp_path / "x.tar", entry("a.png", b"1234"), entry("b.png", b"12345"))
    for root in (tar, tmp_path / "in"):
        files = ImageFiles.open([root])
        assert files.read("a.png") == b"1234"
        with pytest.raises(UserError, match="more than 4"):
            files.read("b.png")


def test_pictures_of_other_kinds_outside_of_the_folders_are_not_looked_for(tmp_path, folder):
    (tmp_path / "secret.tif").write_bytes(b"x")
    (folder / "scans").mkdir()
    (folder / "scans" / "s.tif").write_bytes(b"x")
    (folder / "folder.tif").mkdir()
    files = ImageFiles.open([folder])
    with pytest.raises(UserError, match=r"the picture scans/s\.tif is there, but .tif files are not read"):
        files.read("scans/s.tif")
    for name in ("../secret.tif", str(tmp_path / "secret.tif"), "folder.tif", "other.tif", "scans/s.txt"):
        with pytest.raises(UserError, match="there is no picture"):
            files.read(name)
    tar = write_tar(
        tmp_path / "x.tar", entry("a.png", b"x"), entry("l.tif", type=tarfile.SYMTYPE), entry("s.tif", b"x")
    )
    for name, message in (
        ("l.tif", "there is no picture l.tif in"),
        ("s.tif", "is there, but .tif files are not read"),
    ):
        with pytest.raises(UserError, match=message):
            ImageFiles.open([tar]).read(name)
