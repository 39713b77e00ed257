"""Untrusted pictures: valid ones are read upright and in RGB, others are refused with one line, at no cost."""

import io
import struct
import subprocess
import sys
import threading
import warnings
import zlib
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from PIL import Image

from translucid.captions.pixels import MAX_BYTES, MAX_PIXELS, Picture, pixels, read_image
from translucid.ground.errors import UserError

RED, WHITE = (255, 0, 0), (255, 255, 255)


def saved(image, kind="PNG", **options):
    stream = io.BytesIO()
    image.save(stream, kind, **options)
    return stream.getvalue()


def half_red(mode="RGB", size=(40, 20)):
    """Return a picture that is red on the left and white on the right."""
    image = Image.new("RGB", size, WHITE)
    image.paste(RED, (0, 0, size[0] // 2, size[1]))
    return image.convert(mode)


def chunk(kind, content):
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def png(width, height, depth=8, color=2, *chunks):
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, color, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + b"".join(chunks) + chunk(b"IEND", b"")


def bmp(width, height):
    header = struct.pack("<IiiHHIIiiII", 40, width, height, 1, 24, 0, 0, 0, 0, 0, 0)
    return b"BM" + struct.pack("<IHHI", 54 + 12, 0, 0, 54) + header + bytes(12)


def gif(width, height):
    return b"GIF89a" + struct.pack("<HHBBB", width, height, 0, 0, 0) + b"\x2c" + bytes(9) + b"\x02\x00\x3b"


def webp(width, height):
    """Return a small animation whose header says that it is large."""
    frames = [Image.new("RGB", (8, 8), color) for color in ("red", "blue")]
    data = saved(frames[0], "WEBP", save_all=True, append_images=frames[1:])
    assert data[12:16] == b"VP8X"
    return data[:24] + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little") + data[30:]


def jpeg_of(width, height):
    """Return a small JPEG whose header says that it is large."""
    data = saved(Image.new("RGB", (8, 8)), "JPEG")
    offset = data.index(b"\xff\xc0") + 5
    return data[:offset] + struct.pack(">HH", height, width) + data[offset + 4 :]


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "GIF", "BMP"])
def test_each_kind_comes_out_as_it_was(kind):
    options = {"lossless": True} if kind == "WEBP" else {"quality": 100, "subsampling": 0} if kind == "JPEG" else {}
    image = read_image(saved(half_red(), kind, **options), "x")
    assert (image.mode, image.size) == ("RGB", (40, 20))
    assert np.abs(np.asarray(image, int) - np.asarray(half_red(), int)).max() <= 3


def test_of_an_animation_the_first_frame_is_read():
    frames = [Image.new("RGB", (8, 8), color) for color in ("red", "blue", "green")]
    for kind, options in (("GIF", {}), ("WEBP", {"lossless": True}), ("PNG", {})):
        data = saved(frames[0], kind, save_all=True, append_images=frames[1:], **options)
        assert read_image(data, "x").getpixel((4, 4)) == RED


def test_gray_of_8_and_of_16_bits():
    gray = np.arange(256, dtype=np.uint8).reshape(16, 16)
    expected = np.repeat(gray[..., None], 3, 2)
    assert np.array_equal(np.asarray(read_image(saved(Image.fromarray(gray)), "x")), expected)
    deep = read_image(saved(Image.fromarray(gray.astype(np.uint16) * 257)), "x")
    assert np.array_equal(np.asarray(deep), expected)
    between = read_image(saved(Image.fromarray(np.array([[128, 129, 385, 386, 65535]], np.uint16))), "x")
    assert np.asarray(between)[0, :, 0].tolist() == [0, 1, 1, 2, 255]
    assert read_image(saved(half_red("1")), "x").getpixel((39, 0)) == WHITE


def test_transparent_pixels_become_white():
    black_and_clear = Image.new("RGBA", (2, 1), (0, 0, 0, 255))
    black_and_clear.putpixel((1, 0), (0, 0, 0, 0))
    half = Image.new("RGBA", (1, 1), (0, 0, 0, 128))
    palette = half_red("P")
    right = palette.getpixel((39, 0))
    assert read_image(saved(black_and_clear), "x").getpixel((1, 0)) == WHITE
    assert read_image(saved(black_and_clear), "x").getpixel((0, 0)) == (0, 0, 0)
    assert read_image(saved(black_and_clear.convert("LA")), "x").getpixel((1, 0)) == WHITE
    assert read_image(saved(half), "x").getpixel((0, 0)) == pytest.approx((127, 127, 127), abs=1)
    palette.putpalette([0, 0, 0] * 256)
    opacities = bytearray(b"\xff" * 256)
    opacities[right] = 0
    for transparency in (right, bytes(opacities)):
        image = read_image(saved(palette, transparency=transparency), "x")
        assert (image.getpixel((0, 0)), image.getpixel((39, 0))) == ((0, 0, 0), WHITE)
    clear = chunk(b"tRNS", struct.pack(">H", 7)), chunk(b"IDAT", zlib.compress(b"\0\0\7\0\0"))
    deep = read_image(png(2, 1, 16, 0, *clear), "x")
    assert (deep.getpixel((0, 0)), deep.getpixel((1, 0))) == (WHITE, (0, 0, 0))


def test_a_jpeg_in_the_colors_of_print():
    image = read_image(saved(half_red("CMYK"), "JPEG", quality=100), "x")
    assert image.getpixel((4, 4)) == pytest.approx(RED, abs=6)
    assert image.getpixel((36, 4)) == pytest.approx(WHITE, abs=6)


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
def test_pictures_are_put_upright(orientation, kind):
    """The expected pictures follow the table of EXIF 2.32, section 4.6.4."""
    corners = {"top left": RED, "top right": (0, 160, 0), "bottom left": (0, 0, 255), "bottom right": (255, 255, 0)}
    upright = Image.new("RGB", (32, 64))
    for name, color in corners.items():
        upright.paste(color, (16 * ("right" in name), 32 * ("bottom" in name), 32, 64))
    upright.paste(corners["top right"], (16, 0, 32, 32))
    upright.paste(corners["bottom left"], (0, 32, 16, 64))
    expected = np.asarray(upright)
    stored = {
        1: expected,
        2: expected[:, ::-1],
        3: expected[::-1, ::-1],
        4: expected[::-1],
        5: expected.transpose(1, 0, 2),
        6: np.rot90(expected),
        7: expected[::-1, ::-1].transpose(1, 0, 2),
        8: np.rot90(expected, -1),
    }[orientation]
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = saved(Image.fromarray(np.ascontiguousarray(stored)), kind, exif=exif, quality=100)
    assert np.abs(np.asarray(read_image(data, "x"), int)[8::16, 8::16] - expected[8::16, 8::16]).max() < 20


def test_broken_metadata_spoils_no_picture_and_nothing_is_said():
    exif = Image.Exif()
    exif[0x0112] = 6
    exif[0x010E] = "a long description of nothing at all"
    data = saved(half_red(), "JPEG", exif=exif)
    offsets = range(data.index(b"Exif"), data.index(b"nothing"))
    broken = [data[:offset] + b"\xff\x7f" + data[offset + 2 :] for offset in offsets]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sizes = {read_image(content, "x").size for content in broken}
    assert {(40, 20)} <= sizes <= {(40, 20), (20, 40)}
    assert not caught
    with warnings.catch_warnings(record=True) as caught:  # without our reader, there are warnings
        warnings.simplefilter("always")
        for content in broken:
            Image.open(io.BytesIO(content)).getexif()
    assert caught


REFUSED = [
    (b"", "is empty"),
    (b"not a picture at all, but a text that is called one", "is not a picture"),
    (b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>', "is not a picture"),
    (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n%%EndComments\n(x) run\n", "is not a picture"),
    (saved(half_red(), "TIFF"), "is not a picture"),
    (saved(half_red(), "ICO"), "is not a picture"),
    (saved(half_red(), "PPM"), "is not a picture"),
    (png(100_000, 100_000), "more than 50,000,000 pixels"),
    (png(8_000, 7_000), "more than 50,000,000 pixels"),
    (png(12_000, 9_000), "more than 50,000,000 pixels"),
    (jpeg_of(60_000, 60_000), "more than 50,000,000 pixels"),
    (gif(60_000, 60_000), "more than 50,000,000 pixels"),
    (bmp(60_000, 60_000), "more than 50,000,000 pixels"),
    (webp(16_000, 16_000), "more than 50,000,000 pixels"),
    (webp(8_000, 8_000), "more than 50,000,000 pixels"),
    (png(0, 10), "is not a picture"),
    (saved(Image.new("RGB", (505, 5))), "505 x 5 pixels, one side more than 100 times the other"),
    (saved(Image.new("RGB", (5, 505))), "5 x 505 pixels, one side more than 100 times the other"),
    (saved(half_red())[:-30], "is truncated or broken"),
    (saved(half_red(size=(400, 200)), "JPEG")[:1500], "is truncated or broken"),
    (saved(half_red(size=(400, 200)), "BMP")[:1500], "is truncated or broken"),
    (saved(half_red(size=(400, 200)), "GIF")[:-300], "is truncated or broken"),
    (saved(half_red(size=(400, 200)), "WEBP")[:-30], "is truncated or broken"),
    (png(10, 10), "is truncated or broken"),
    (png(10, 10, 8, 2, chunk(b"IDAT", b"no zlib")), "is truncated or broken"),
    (png(10, 10, 8, 2, chunk(b"tEXt", b"x" * 40)[:20]), "is truncated or broken"),
    (png(10, 10, 8, 2, chunk(b"zTXt", b"a\0\0" + zlib.compress(bytes(5_000_000)))), "is truncated or broken"),
]


@pytest.mark.parametrize(
    ("data", "message"), REFUSED, ids=lambda value: value if isinstance(value, str) else f"{value[:8]!r}"
)
def test_bad_images_are_refused_in_one_line(data, message):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserError, match=f"train/1.png: .*{message}.*\\. [A-Z]") as caught:
            read_image(data, "train/1.png")
    assert "\n" not in str(caught.value) and "0x" not in str(caught.value)


COSTS = """
import pathlib, resource, sys, time, warnings
from translucid.captions.pixels import read_image
from translucid.ground.errors import UserError

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

warnings.simplefilter("ignore")
read_image(pathlib.Path(sys.argv[1]).read_bytes(), "x")  # now Pillow has its plugins
for file in sys.argv[2:]:
    data, before, started = pathlib.Path(file).read_bytes(), peak(), time.process_time()
    try:
        read_image(data, "x")
    except UserError:
        pass
    print(peak() - before, time.process_time() - started)
"""


def test_refused_images_take_no_memory_and_less_time_than_the_largest_picture(tmp_path):
    """Use a separate process: other threads of this one change its peak, and its many objects make it slow at times."""
    largest = saved(Image.new("1", (10_000, 5_000)))
    images = [saved(half_red()), *(data for data, _ in REFUSED), largest]
    files = [tmp_path / f"{number}.png" for number in range(len(images))]
    for file, data in zip(files, images, strict=True):
        file.write_bytes(data)
    completed = subprocess.run(
        [sys.executable, "-c", COSTS, *map(str, files)], capture_output=True, text=True, check=True
    )
    *refused, (_, largest_seconds) = [map(float, line.split()) for line in completed.stdout.splitlines()]
    growth, seconds = zip(*refused, strict=True)
    assert len(growth) == len(REFUSED)
    assert max(growth) < 40_000_000 / 1024
    assert max(seconds) < largest_seconds


def test_the_largest_picture_is_read_and_a_larger_one_is_not():
    assert read_image(saved(Image.new("1", (10_000, 5_000))), "x").size == (10_000, 5_000) and MAX_PIXELS == 5e7
    assert read_image(saved(Image.new("RGB", (500, 5))), "x").size == (500, 5)
    with pytest.raises(UserError, match="33,554,433 bytes, more than 33,554,432"):
        read_image(saved(half_red()).ljust(MAX_BYTES + 1, b"\0"), "x")
    assert read_image(saved(half_red()).ljust(MAX_BYTES, b"\0"), "x").size == (40, 20)


def test_a_jpeg_of_thousands_of_scans_is_refused():
    """Each scan takes as much time as a whole picture, but only a few bytes of the file."""
    data = saved(Image.new("RGB", (64, 64)), "JPEG", progressive=True)
    scans = data[data.index(b"\xff\xda") : -2]
    assert data.count(b"\xff\xda") > 3
    with pytest.raises(UserError, match="more than 300 scans"):
        read_image(data[:-2] + 100 * scans + data[-2:], "x")
    assert read_image(data, "x").size == (64, 64)


def test_all_of_a_picture_is_squeezed_into_the_square():
    image = Image.new("RGB", (300, 100), WHITE)
    image.paste(RED, (0, 0, 100, 100))
    image.paste((0, 0, 255), (200, 0, 300, 100))
    square = pixels(image, 30)
    assert square.shape == (30, 30, 3) and square.dtype == np.uint8 and square.flags.writeable
    assert square[15, [5, 15, 25]].tolist() == [[255, 0, 0], [255, 255, 255], [0, 0, 255]]
    assert pixels(Image.new("L", (10, 10), 128), 4).tolist() == [[[128] * 3] * 4] * 4


def test_squeezing_smooths():
    """Stripes of a pixel become an even gray, not stripes of another width."""
    stripes = np.zeros((64, 64, 3), np.uint8)
    stripes[:, ::2] = 255
    assert np.ptp(pixels(Image.fromarray(stripes), 16)[:, 2:-2].astype(int)) <= 2


def test_a_large_jpeg_is_decoded_smaller_if_little_is_wanted():
    rng = np.random.default_rng(1)
    soft = Image.fromarray(rng.integers(0, 256, (40, 60, 3), np.uint8)).resize((1200, 800), Image.Resampling.BICUBIC)
    data = saved(soft, "JPEG", quality=95)
    assert read_image(data, "x").size == (1200, 800)
    assert read_image(data, "x", size=90).size == (300, 200)
    assert read_image(data, "x", size=500).size == (1200, 800)
    small, full = (pixels(read_image(data, "x", size=size), 90).astype(int) for size in (90, None))
    assert np.abs(small - full).mean() < 2
    assert read_image(saved(soft), "x", size=90).size == (1200, 800)


def test_several_threads_read_at_once_and_leave_the_filters_of_warnings_as_they_were():
    exif = Image.Exif()
    exif[0x0112] = 6
    good = saved(half_red(), "JPEG", exif=exif)
    kinds = [good, good[:-200], png(100_000, 100_000), b"nothing", saved(half_red("P"))]
    start = threading.Barrier(8)

    def read(thread):
        start.wait()
        sizes = []
        for i in range(100):
            try:
                sizes.append(read_image(kinds[(i + thread) % 5], "x").size)
            except UserError:
                sizes.append(None)
        return sizes

    before, interval = list(warnings.filters), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            results = list(pool.map(read, range(8)))
    finally:
        sys.setswitchinterval(interval)
    # Each thread reads 100 images, the first thread from the first kind on, the second from the second, and so on.
    expected = [(20, 40), None, None, None, (40, 20)] * 22
    assert results == [expected[thread : thread + 100] for thread in range(8)]
    assert list(warnings.filters) == before


def test_without_pillow_one_line_says_what_to_install():
    code = "import sys; sys.modules['PIL'] = None\nimport translucid.captions.pixels"
    completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "UserError: reading pictures needs the package PIL. Install it with pip install '" in completed.stderr
    assert "'pillow" in completed.stderr


@pytest.mark.parametrize(("scans", "is_refused"), [(300, False), (301, True)])
def test_a_jpeg_may_have_so_many_scans(scans, is_refused):
    data = saved(Image.new("RGB", (8, 8)), "JPEG", progressive=True)
    last = data[data.rindex(b"\xff\xda") : -2]
    many = data[:-2] + (scans - data.count(b"\xff\xda")) * last + data[-2:]
    if is_refused:
        with pytest.raises(UserError, match="is a JPEG of more than 300 scans"):
            read_image(many, "x")
    else:
        assert read_image(many, "x").size == (8, 8)
    png_with_scans = saved(half_red()) + b"\xff\xda" * 1000
    assert read_image(png_with_scans, "x").size == (40, 20)


def test_the_orientation_may_be_nonsense():
    as_text = b"Exif\0\0II*\0" + struct.pack("<IHHHI4sI", 8, 1, 0x0112, 2, 2, b"6", 0)
    for value in (0, 9):
        exif = Image.Exif()
        exif[0x0112] = value
        for data in (exif, as_text):
            assert read_image(saved(half_red(), "PNG", exif=data), "x").size == (40, 20)


def test_the_features_of_a_picture_come_before_its_pixels():
    square, features = np.zeros((2, 2, 3), np.uint8), np.ones((4, 5), np.float32)
    assert Picture("x", square).source is square
    assert Picture("x", square, features).source is features
