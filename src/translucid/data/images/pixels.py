"""From the bytes of a picture, which a stranger may have made, to its pixels.

Importing this without Pillow raises the `UserError` that says what to install.
"""

from __future__ import annotations

import io
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from translucid.data.images.image_files import MAX_BYTES
from translucid.ground.errors import UserError, missing_package

try:
    from PIL import Image, UnidentifiedImageError
except ModuleNotFoundError as error:
    raise missing_package("reading pictures", error.name, "vision") from error

MAX_PIXELS = 50_000_000
"""Of a picture, at most."""
MAX_ASPECT = 100
"""How many times as long as the other one a side may be."""
_MAX_SCANS = 300
"""Of a progressive JPEG: each goes over the whole picture and may take a few bytes only, so a small file of thousands
of them would keep the processor busy for an hour."""
_FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP")
"""All that is ever opened; other readers of Pillow's run programs (EPS) or are seldom used and little tried."""
_KINDS = "Give a JPEG, PNG, WebP, GIF or BMP file."
_DRAFT = 2
"""Times the size that is wanted, at least, that a JPEG is decoded to."""
_ORIENTATION = 0x0112
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
"""What puts a picture upright, by its EXIF orientation."""
_FILTERS = threading.Lock()


class Picture(NamedTuple):
    """An image as a model reads it."""

    name: str
    pixels: NDArray[np.uint8]
    """[size, size, 3]."""
    grid: NDArray[np.float32] | None = None
    """[S, F], what the model's network makes of them, if it has looked already."""

    @property
    def source(self) -> NDArray[Any]:
        """What the model reads: the grid if there is one, so that the network looks at each image once."""
        return self.pixels if self.grid is None else self.grid


def read_image(data: bytes, name: str, *, size: int | None = None) -> Image.Image:
    """Return a picture upright and in RGB; what is transparent is laid over white. Of an animation, the first frame.

    Several threads may do this at once.

    Args:
        data: a JPEG, PNG, WebP, GIF or BMP file.
        name: stands in the errors.
        size: what `pixels` will be asked for; a JPEG that is far larger is then decoded smaller, which is faster.

    Raises:
        UserError: it is empty, too large, much longer than wide, truncated, broken, or no picture. How large it is, is
            read in its header, before anything is decoded.
    """
    if not data:
        raise UserError("is empty", file=name, fix=_KINDS)
    if len(data) > MAX_BYTES:
        raise UserError(f"has {len(data):,} bytes, more than {MAX_BYTES:,}", file=name, fix="Save it smaller.")
    try:
        with _open(data, name) as image:
            if size is not None:
                image.draft(None, (_DRAFT * size, _DRAFT * size))
            image.load()
            upright = _TURNS.get(_orientation(image))
            plain = _in_rgb(image)
            return plain if upright is None else plain.transpose(upright)
    except UserError:
        raise
    except Exception as error:  # a reader of Pillow's may raise anything when a file is broken
        fix = "Fetch it or save it again."
        raise UserError(f"is truncated or broken ({error})", file=name, fix=fix) from error


def pixels(image: Image.Image, size: int) -> NDArray[np.uint8]:
    """Return a picture squeezed to a square, [size, size, 3]: all of it, nothing is cut off.

    It is bicubic, and smoothed where it is made smaller.
    """
    square = image.convert("RGB").resize((size, size), Image.Resampling.BICUBIC)
    return np.array(square)


def _open(data: bytes, name: str) -> Image.Image:
    """Read the header only, and refuse what is not worth decoding."""
    try:
        with _without_warnings():
            image = Image.open(io.BytesIO(data), formats=_FORMATS)
    except UnidentifiedImageError as error:
        raise UserError("is not a picture that can be read", file=name, fix=_KINDS) from error
    except Image.DecompressionBombError as error:
        raise _too_many_pixels(name) from error
    short, long = sorted(image.size)
    if short * long > MAX_PIXELS:
        raise _too_many_pixels(name)
    if long > MAX_ASPECT * short:
        what = f"has {image.width:,} x {image.height:,} pixels, one side more than {MAX_ASPECT} times the other"
        raise UserError(what, file=name, fix="Cut it to what is to be seen.")
    # Within a scan, 0xFF is never followed by 0xDA; in a profile or a thumbnail it may be, but not often.
    if image.format in ("JPEG", "MPO") and data.count(b"\xff\xda") > _MAX_SCANS:
        raise UserError(f"is a JPEG of more than {_MAX_SCANS} scans", file=name, fix="Save it again.")
    return image


def _too_many_pixels(name: str) -> UserError:
    return UserError(f"has more than {MAX_PIXELS:,} pixels", file=name, fix="Make it smaller.")


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Within it, Pillow does not warn: of metadata that is broken, of pictures that are refused anyway.

    The filters of warnings belong to the process, so only one thread at a time changes them; decoding, which takes
    long and does not warn, is done outside.
    """
    with _FILTERS, warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"PIL\b")
        yield


def _orientation(image: Image.Image) -> int:
    """Return how a picture was held, 1 to 8; 1, upright, if its EXIF data can't be read."""
    with _without_warnings():
        try:
            held = image.getexif().get(_ORIENTATION)
            return held if isinstance(held, int) else 1
        except Exception:  # a picture is not refused for what is written beside it
            return 1


def _in_rgb(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I"):  # 16-bit grey, which Pillow would cut off at 255
        grey = np.array(image, np.int32)
        if isinstance(clear := image.info.get("transparency"), int):
            grey[grey == clear] = 65535
        return Image.fromarray(((grey + 128) // 257).clip(0, 255).astype(np.uint8)).convert("RGB")
    if not image.has_transparency_data:
        return image.convert("RGB")
    white = Image.new("RGBA", image.size, "white")
    return Image.alpha_composite(white, image.convert("RGBA")).convert("RGB")
