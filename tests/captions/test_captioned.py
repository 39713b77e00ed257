"""Images with their captions in batches of whole images, and their augmentation."""

import numpy as np
import pytest

from bitext.pair import Pair
from translucid.captions.dataset import Augmentation, CaptionedImages, VariedImages
from translucid.captions.image_store import StoredImages
from translucid.data.filtering import Skipped
from translucid.data.tokenizing.tokenizer import Tokenizer, TokenizerOptions

CAPTIONS = [
    Pair("b.png", "a dog runs"),
    Pair("a.png", "a red cat sleeps here"),
    Pair("b.png", "dogs"),
    Pair("broken.png", "a cat"),
    Pair("c.png", "a"),
    Pair("b.png", "a dog"),
    Pair("a.png", " ".join(["a cat and a dog"] * 6)),
]
PLACES = {"c.png": 0, "b.png": 1, "broken.png": 2, "a.png": 3}
PIXELS = np.arange(4 * 2 * 3 * 3, dtype=np.uint8).reshape(4, 2, 3, 3)


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.learn(CAPTIONS, TokenizerOptions(vocabulary=30), seed=1)


@pytest.fixture(scope="module")
def ids(tokenizer):
    """The ids of each caption, including the end token."""
    return {pair.target: [*tokenizer.encode_target([pair.target])[0], 3] for pair in CAPTIONS}


@pytest.fixture
def corpus(tokenizer, ids):
    skipped = Skipped()
    skipped.kept = len(CAPTIONS)
    stored = StoredImages(PIXELS, frozenset({2}), "")
    limit = len(ids["a red cat sleeps here"])
    corpus = CaptionedImages.encode(CAPTIONS, PLACES, stored, tokenizer, max_tokens=limit, skipped=skipped)
    assert (skipped.kept, skipped.reasons) == (5, {"of broken images": 1, "too long": 1})
    return corpus


def test_captions_are_grouped_by_image_in_the_order_of_the_file(corpus, ids):
    assert len(corpus) == 3
    assert corpus.store_indices.tolist() == [1, 3, 0]
    assert list(corpus.captions()) == [
        [ids["a dog runs"], ids["dogs"], ids["a dog"]],
        [ids["a red cat sleeps here"]],
        [ids["a"]],
    ]
    types = (
        corpus.store_indices.dtype,
        corpus.caption_offsets.dtype,
        corpus.target_ids.dtype,
        corpus.target_offsets.dtype,
    )
    assert types == (np.int64, np.int64, np.int32, np.int64)


def test_the_tokens_that_an_image_counts_in_a_batch(corpus, ids):
    longest = max(len(ids["a dog runs"]), len(ids["dogs"]), len(ids["a dog"]))
    expected = [1 * len(ids["a"]), 3 * longest]
    source, target = corpus.lengths_of(np.array([2, 0]))
    assert source.tolist() == target.tolist() == expected
    real = len(ids["a"]) + sum(map(len, (ids["a dog runs"], ids["dogs"], ids["a dog"])))
    assert corpus.target_tokens(np.array([2, 0])) == real


def test_a_batch_has_the_same_number_of_captions_for_each_image(corpus, ids):
    batch = corpus.batch(np.array([2, 0]))
    captions = [ids["a"], [], [], ids["a dog runs"], ids["dogs"], ids["a dog"]]
    longest = max(map(len, captions))
    assert batch.labels.tolist() == [caption + [0] * (longest - len(caption)) for caption in captions]
    inputs = [[2, *caption][:-1] for caption in captions]
    assert batch.targets_in.tolist() == [row + [0] * (longest - len(row)) for row in inputs]
    assert np.array_equal(batch.source.numpy(), PIXELS[[0, 1]])
    assert corpus.batch([1]).labels.tolist() == [ids["a red cat sleeps here"]]


def test_images_are_shifted_and_mirrored_pixel_by_pixel():
    generator = np.random.default_rng(1)
    images = generator.integers(0, 255, (3, 4, 5, 3), np.uint8)
    augmentation = Augmentation(np.array([[0, 0], [9, 9], [1, -2], [-1, 1]]), np.array([False, False, True, False]))
    rows = np.array([2, 0, 3])
    shifted = augmentation.apply(images, rows)
    for image, changed, row in zip(images, shifted, rows, strict=True):
        down, right = augmentation.shift[row]
        for y in range(4):
            for x in range(5):
                column = 4 - x if augmentation.mirror[row] else x
                expected = image[min(max(y - down, 0), 3), min(max(column - right, 0), 4)]
                assert changed[y, x].tolist() == expected.tolist()


@pytest.mark.parametrize(("shift", "mirror"), [(2, True), (0, False), (1, False)])
def test_the_seed_determines_the_augmentation(corpus, shift, mirror):
    images = VariedImages(corpus, shift=shift, mirror=mirror)
    generator = np.random.default_rng(np.random.SeedSequence([1, 4]))
    shifts = generator.integers(-shift, shift + 1, (3, 2))
    mirrored = generator.random(3) < 0.5 if mirror else np.zeros(3, bool)
    varied = images.draw([1, 4])
    assert varied.augmentation.shift.tolist() == shifts.tolist()
    assert varied.augmentation.mirror.tolist() == mirrored.tolist()
    rows = np.array([1, 2])
    batch = varied.batch(rows)
    assert np.array_equal(batch.source.numpy(), varied.augmentation.apply(PIXELS[[3, 0]], rows))
    assert batch.labels.tolist() == corpus.batch(rows).labels.tolist()
    assert corpus.augmentation is None


def test_half_of_the_images_are_mirrored_and_all_shifts_occur():
    captions = np.arange(2001)
    many = CaptionedImages(PIXELS, np.zeros(2000, np.int64), captions, np.full(2000, 3, np.int32), captions)
    augmentation = VariedImages(many, shift=1, mirror=True).draw([1]).augmentation
    assert augmentation.mirror.mean() == pytest.approx(0.5, abs=0.04)
    assert {tuple(shift) for shift in augmentation.shift.tolist()} == {(y, x) for y in (-1, 0, 1) for x in (-1, 0, 1)}
