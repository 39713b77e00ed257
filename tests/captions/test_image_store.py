"""Images on disk equal those in memory, even if writing was interrupted."""

import io

import numpy as np
import pytest
from PIL import Image

from translucid.captions import image_store
from translucid.captions.image_files import ImageFiles
from translucid.captions.image_store import ImageStore
from translucid.data.stores.chunked import INDEX
from translucid.ground.errors import UserError

NAMES = [f"{number}.png" for number in range(11)]
BAD = 4, 8


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    for number, name in enumerate(NAMES):
        stream = io.BytesIO()
        Image.new("RGB", (6, 6), (number, 10 * number, 200)).save(stream, "PNG")
        (folder / name).write_bytes(b"no picture" if number in BAD else stream.getvalue())
    return ImageFiles.open([folder])


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch):
    monkeypatch.setattr(image_store, "CHUNK", 5)
    monkeypatch.setattr(image_store, "BATCH_SIZE", 2)


def expected():
    pixels = np.zeros((11, 4, 4, 3), np.uint8)
    for number in set(range(11)) - set(BAD):
        pixels[number] = number, 10 * number, 200
    return pixels


def build(folder, files, *, encoder=None, identity="this"):
    """Build a store; return the images, the numbers of images that were reported, and the errors."""
    store, counts, errors = ImageStore(folder, 4, encoder), [], []
    assert store.open(identity) is None
    store.build(NAMES, files, identity=identity, on_images=counts.append, on_bad=errors.append)
    return store.open(identity), counts, [str(error).split(":")[0] for error in errors]


def test_pixels_are_stored_in_order_and_broken_images_are_black(files, tmp_path):
    stored, counts, errors = build(tmp_path / "a", files)
    assert np.array_equal(stored.array, expected()) and stored.array.dtype == np.uint8
    assert stored.bad == {4, 8}
    assert counts == [0, 2, 2, 1, 2, 2, 1, 1]
    assert errors == ["4.png", "8.png"]
    assert stored.fingerprint.startswith("11 images, crc32 ")


def test_an_encoder_reads_a_few_images_at_a_time(files, tmp_path):
    sizes = []

    def encoder(pixels):
        sizes.append(len(pixels))
        return pixels.reshape(len(pixels), 8, 6).astype(np.float16) / 2

    stored, _, _ = build(tmp_path / "a", files, encoder=encoder)
    assert sizes == [2, 2, 1, 2, 2, 1, 1]
    assert stored.array.dtype == np.float16
    assert np.array_equal(stored.array, expected().reshape(11, 8, 6) / 2)


def test_images_are_read_in_chunks(tmp_path, monkeypatch):
    monkeypatch.undo()
    stream = io.BytesIO()
    Image.new("RGB", (1, 1)).save(stream, "PNG")
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "a.png").write_bytes(stream.getvalue())
    files, store, counts = ImageFiles.open([tmp_path / "images"]), ImageStore(tmp_path / "store", 1), []
    store.build(["a.png"] * 257, files, identity="this", on_images=counts.append)
    assert counts == [0, *[32] * 8, 1]
    _, chunks, _ = store.files.open("this")
    assert [chunk["images"] for chunk in chunks] == [256, 1]


@pytest.mark.parametrize("cut", range(4))
def test_an_interrupted_store_resumes_after_any_chunk(files, tmp_path, cut):
    complete, _, _ = build(tmp_path / "whole", files)
    build(tmp_path / "a", files)
    lines = (tmp_path / "a" / INDEX).read_text().splitlines(keepends=True)
    assert len(lines) == 1 + 3 + 1
    (tmp_path / "a" / INDEX).write_text("".join(lines[: 1 + cut]))
    resumed, counts, errors = build(tmp_path / "a", files)
    assert counts[0] == [0, 5, 10, 11][cut] and sum(counts) == 11
    assert errors == ["4.png", "8.png"][[0, 1, 2, 2][cut] :]
    assert np.array_equal(resumed.array, complete.array)
    assert (resumed.bad, resumed.fingerprint) == (complete.bad, complete.fingerprint)


def test_a_broken_image_is_an_error_unless_it_is_to_be_skipped(files, tmp_path):
    with pytest.raises(UserError, match=r"4\.png: is not a picture"):
        ImageStore(tmp_path / "a", 4).build(NAMES, files, identity="this")
    ImageStore(tmp_path / "b", 4).build(NAMES[:3], files, identity="this")
    assert ImageStore(tmp_path / "b", 4).open("this").array.shape == (3, 4, 4, 3)
