"""Small pictures of every kind that is read, and pictures with absurd headers."""

from __future__ import annotations

import io
import random
import struct
import zlib
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from PIL import Image

ODD = [0, 1, 2, 127, 255, 10_000, 65_535, 1 << 24, 0x7FFF_FFFF, 0xFFFF_FFFF]
"""Absurd values for the fields of a header."""
ORIENTATION = 0x0112


@cache
def valid() -> tuple[tuple[str, bytes], ...]:
    """Return pictures with a name for each."""
    return tuple(_made())


def _made() -> Iterator[tuple[str, bytes]]:
    grain = np.random.default_rng(1).integers(0, 256, (24, 36, 4), np.uint8)
    plain = Image.fromarray(grain, "RGBA")
    frames = [Image.fromarray(np.roll(grain, shift, 0)[..., :3], "RGB") for shift in range(3)]
    modes = {
        "JPEG": ["RGB", "L", "CMYK", "YCbCr"],
        "PNG": ["RGB", "L", "P", "RGBA", "LA", "1", "I;16"],
        "WEBP": ["RGB", "RGBA"],
        "GIF": ["RGB", "L", "P"],
        "BMP": ["RGB", "L", "P", "1", "RGBA"],
    }
    for kind, several in modes.items():
        for mode in several:
            deep = Image.fromarray(grain[..., 0].astype(np.uint16) * 257)
            picture = deep if mode == "I;16" else plain.convert("RGB").convert(mode) if mode != "RGBA" else plain
            yield f"{kind} {mode}", _saved(picture, kind)
    for kind in ("GIF", "PNG", "WEBP"):
        yield f"{kind} animated", _saved(frames[0], kind, save_all=True, append_images=frames[1:])
    yield "JPEG progressive", _saved(frames[0], "JPEG", progressive=True)
    yield "PNG transparent", _saved(plain.convert("P"), "PNG", transparency=3)
    yield "WEBP lossless", _saved(frames[0], "WEBP", lossless=True)
    yield "JPEG of several", _saved(frames[0], "MPO", save_all=True, append_images=frames[1:])
    for orientation in (3, 6, 8, 77):
        exif = Image.Exif()
        exif[ORIENTATION] = orientation
        yield f"JPEG held {orientation}", _saved(frames[0], "JPEG", exif=exif)


def _saved(picture: Image.Image, kind: str, **options: Any) -> bytes:
    file = io.BytesIO()
    picture.save(file, kind, **options)
    return file.getvalue()


def absurd(content: bytes, chance: random.Random) -> bytes:
    """Return a picture with an absurd header that readers still accept as a picture."""
    if content.startswith(b"\x89PNG"):
        return chance.choice([_png_header, _stuffed])(content, chance)
    if content.startswith(b"\xff\xd8"):
        offset = next((i for i in range(len(content) - 9) if content[i] == 255 and content[i + 1] in (0xC0, 0xC2)), 0)
        return _written(content, offset + chance.choice([2, 5, 7]), 2, "big", chance)
    if content.startswith(b"GIF"):
        return _written(
            content, chance.choice([6, 8, 10, content.index(b",") + chance.choice([1, 5, 7])]), 2, "little", chance
        )
    if content.startswith(b"BM"):
        return _written(content, chance.choice([2, 10, 14, 18, 22, 26, 28, 30, 34, 46]), 4, "little", chance)
    return _written(content, chance.choice([4, 16, 20, 24, 27, 26, 28]), chance.choice([2, 3, 4]), "little", chance)


def _written(content: bytes, offset: int, size: int, order: Any, chance: random.Random) -> bytes:
    number = chance.choice(ODD) % (1 << 8 * size)
    return content[:offset] + number.to_bytes(size, order) + content[offset + size :]


def _png_header(content: bytes, chance: random.Random) -> bytes:
    """Write other numbers with a valid checksum."""
    header = bytearray(content[16:29])
    for _ in range(chance.choice([1, 2])):
        if chance.random() < 0.6:
            header[:8] = struct.pack(">II", chance.choice(ODD), chance.choice(ODD))
        else:
            header[chance.randrange(8, 13)] = chance.choice([0, 1, 2, 3, 4, 6, 8, 16, 255])
    return content[:8] + chunk(b"IHDR", bytes(header)) + content[33:]


def _stuffed(content: bytes, chance: random.Random) -> bytes:
    """Insert a chunk before the pixels that is far too large when decompressed, or meaningless."""
    bomb = zlib.compress(bytes(30_000_000), 1)
    odd = chance.choice(
        [
            chunk(b"iCCP", b"x\0\0" + bomb),
            chunk(b"zTXt", b"x\0\0" + bomb),
            chunk(b"iTXt", b"x\0\1\0\0\0" + bomb),
            chunk(b"tEXt", b"x" * 1000) * 1000,
            chunk(b"tRNS", chance.randbytes(chance.choice([0, 1, 3, 600]))),
            chunk(b"PLTE", chance.randbytes(chance.choice([0, 1, 3, 900]))),
            chunk(b"acTL", struct.pack(">II", chance.choice(ODD), 0)),
            chunk(b"eXIf", chance.randbytes(40)),
            chunk(b"IDAT", bomb),
            chunk(b"IHDR", content[16:29]) * 2,
        ]
    )
    return content[:33] + odd + content[33:]


def chunk(kind: bytes, content: bytes) -> bytes:
    """Return a part of a PNG file."""
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
