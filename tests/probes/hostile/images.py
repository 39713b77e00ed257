"""Pictures, alone and in tar files: they are read as pixels or rejected."""

from __future__ import annotations

import io
import random
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tests.probes.hostile.damage import damaged
from tests.probes.hostile.pictures import absurd, valid
from tests.probes.hostile.tally import Tally
from translucid.captions.image_files import ImageFiles
from translucid.captions.pixels import pixels, read_image

SIZES = [16, 32, 96]
"""Sizes to which pictures are scaled."""


def fuzz(count: int, seed: int) -> Tally:
    """Read `count` pictures and tar files of pictures, most of them bad."""
    tally = Tally("images")
    with tempfile.TemporaryDirectory() as name:
        for number in range(count):
            chance = random.Random(f"{seed} {number}")
            make = chance.choice([_picture, _picture, _picture, _tar])
            what, act = make(Path(name), chance)
            tally.attempt(f"seed {seed}, number {number}: {what}", act)
    return tally


def _picture(folder: Path, chance: random.Random) -> tuple[str, Callable[[], object]]:
    what, content = chance.choice(valid())
    how = chance.choice(["whole", "damaged", "damaged", "absurd", "absurd", "absurd and damaged"])
    if "absurd" in how:
        content = absurd(content, chance)
    if "damaged" in how:
        content = damaged(content, chance)
    size = chance.choice([*SIZES, None])
    return f"{what}, {how}", lambda: _read(content, size, intact=how == "whole")


def _read(content: bytes, size: int | None, *, intact: bool = False) -> None:
    """Read a picture as the commands do."""
    try:
        values = pixels(read_image(content, "picture", size=size), size or SIZES[0])
    except Exception:
        assert not intact, "a good picture is refused"
        raise
    side = size or SIZES[0]
    assert values.shape == (side, side, 3) and values.dtype == np.uint8


def _tar(folder: Path, chance: random.Random) -> tuple[str, Callable[[], object]]:
    """Return a tar file of a few pictures with damaged headers or contents."""
    file = io.BytesIO()
    kind = chance.choice([tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
    with tarfile.open(fileobj=file, mode="w", format=kind) as archive:
        for number in range(chance.choice([1, 2, 4])):
            content = chance.choice(valid())[1]
            entry = tarfile.TarInfo(chance.choice(["", "in/", "in/" * 60, "картинка"]) + f"{number}.png")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    data = bytearray(file.getvalue())
    how = chance.choice(["damaged", "its header damaged", "with another number in its header"])
    if how == "damaged":
        data[:] = damaged(bytes(data), chance)
    elif how == "its header damaged":
        data[:512] = damaged(bytes(data[:512]), chance)
    else:
        _renumber(data, chance)
    (folder / "pictures.tar").write_bytes(data)
    return f"a tar file, {how}", lambda: _read_all(folder / "pictures.tar")


def _renumber(tar: bytearray, chance: random.Random) -> None:
    """Change a field of a header and update its checksum."""
    header = tar[:512]
    offset, size = chance.choice([(0, 100), (100, 8), (124, 12), (136, 12), (156, 1), (157, 100), (257, 8), (345, 155)])
    odd = [
        b"7" * size,
        b"\xff" * size,
        b"\x80" + bytes(size - 1),
        b"../" * 60,
        b"0",
        b"1",
        b"5",
        b"L",
        b"x",
        b"S",
        b"g",
    ]
    header[offset : offset + size] = chance.choice(odd)[:size].ljust(size, b"\0")
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    tar[:512] = header


def _read_all(tar: Path) -> None:
    files = ImageFiles.open([tar])
    for name in files.names():
        assert not name.startswith("/") and ".." not in name.split("/"), "a name leads out"
        _read(files.read(name), SIZES[0])
