"""The pixels of a picture, decoded from bytes of unknown origin.

Importing this module without Pillow raises a `UserError` that says what to install.
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

from translucid.captions.image_files import MAX_BYTES
from translucid.ground.errors import UserError, missing_package

try:
    from PIL import Image, UnidentifiedImageError
except ModuleNotFoundError as error:
    raise missing_package("reading pictures", error.name, "vision") from error

MAX_PIXELS = 50_000_000
"""The most pixels of a picture."""
MAX_ASPECT = 100
"""The largest ratio of the sides of a picture."""
_MAX_SCANS = 300
"""The most scans of a progressive JPEG. Each scan covers the whole picture and may have only a few bytes, so a small
file with thousands of scans would take an hour to decode."""
_FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP")
"""The formats that are opened; Pillow's other readers run programs (EPS) or are rarely used and tested."""
_KINDS = "Give a JPEG, PNG, WebP, GIF or BMP file."
_DRAFT = 2
"""A JPEG is decoded to at least this many times the size that is needed."""
_ORIENTATION = 0x0112
"""The EXIF tag of a picture's orientation."""
_TRANSPOSITIONS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
"""The transposition that turns a picture upright, by its EXIF orientation."""
_FILTERS = threading.Lock()
"""Held while the warning filters of the process are changed."""


class Picture(NamedTuple):
    """An image as a model's input."""

    name: str
    pixels: NDArray[np.uint8]
    """[size, size, 3]."""
    grid: NDArray[np.float32] | None = None
    """The features [S, F] that the image encoder has computed from the pixels, if it has."""

    @property
    def source(self) -> NDArray[Any]:
        """The model's input: the features if there are any, so that they are computed only once."""
        return self.pixels if self.grid is None else self.grid


def read_image(data: bytes, name: str, *, size: int | None = None) -> Image.Image:
    """Return a picture, upright and in RGB, on a white background; the first frame of an animation.

    Several threads may do this at the same time.

    Args:
        data: a JPEG, PNG, WebP, GIF or BMP file.
        name: the picture's name, for error messages.
        size: the size for which `pixels` will be called; a far larger JPEG is then decoded to fewer pixels, which is
            faster.

    Raises:
        UserError: the picture is empty, too large, far longer than wide, truncated, broken, or not a picture. Its size
            is read from the header, before anything is decoded.
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
            transposition = _TRANSPOSITIONS.get(_orientation(image))
            picture = _in_rgb(image)
            if transposition is not None:
                picture = picture.transpose(transposition)
            return picture
    except UserError:
        raise
    except Exception as error:  # Pillow's readers may raise anything when a file is broken
        fix = "Fetch it or save it again."
        raise UserError(f"is truncated or broken ({error})", file=name, fix=fix) from error


def pixels(image: Image.Image, size: int) -> NDArray[np.uint8]:
    """Return the pixels [size, size, 3] of the whole picture, resized to a square without cropping.

    Pillow's bicubic filter also smooths a picture that becomes smaller.
    """
    square = image.convert("RGB").resize((size, size), Image.Resampling.BICUBIC)
    return np.array(square)


def _open(data: bytes, name: str) -> Image.Image:
    """Read only the header, and refuse pictures that should not be decoded."""
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
    # 0xFF 0xDA begins a scan and never occurs within one; in a color profile or a thumbnail it may, but rarely.
    if image.format in ("JPEG", "MPO") and data.count(b"\xff\xda") > _MAX_SCANS:
        raise UserError(f"is a JPEG of more than {_MAX_SCANS} scans", file=name, fix="Save it again.")
    return image


def _too_many_pixels(name: str) -> UserError:
    return UserError(f"has more than {MAX_PIXELS:,} pixels", file=name, fix="Make it smaller.")


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Silence Pillow's warnings about broken metadata, and about pictures that are refused anyway.

    The warning filters belong to the process, so only one thread at a time may change them. Decoding takes long and
    does not warn; do it outside of this context.
    """
    with _FILTERS, warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"PIL\b")
        yield


def _orientation(image: Image.Image) -> int:
    """Return the EXIF orientation of a picture, 1 to 8; 1, upright, if its EXIF data can't be read."""
    with _without_warnings():
        try:
            orientation = image.getexif().get(_ORIENTATION)
        except Exception:  # broken metadata does not make a picture unusable
            return 1
    return orientation if isinstance(orientation, int) else 1


def _in_rgb(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I"):  # 16-bit gray: Pillow would clip it at 255 instead of scaling it
        gray = np.array(image, np.int32)
        transparent = image.info.get("transparency")
        if isinstance(transparent, int):
            gray[gray == transparent] = 65535
        scaled = (gray + 128) // 257  # 65,535 / 257 = 255, rounded to the nearest
        return Image.fromarray(scaled.clip(0, 255).astype(np.uint8)).convert("RGB")
    if not image.has_transparency_data:
        return image.convert("RGB")
    white = Image.new("RGBA", image.size, "white")
    return Image.alpha_composite(white, image.convert("RGBA")).convert("RGB")
