"""A corpus of scenes as files: pictures, captions, and gold boxes."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from translucid.ground.atomic import output, write_atomically
from translucid.ground.iteration import batched
from translucid.kernels.machine import processes

from .generation import SPLITS, Split, generate
from .painting import SIZE, boxes, paint
from .scene import COMMON, SHAPES, Scene

FILES = ("images.tar", *(f"{split}.tsv" for split in SPLITS), "gold.jsonl")
"""The files of a corpus."""
TRAIN_RATIO = 10
"""The number of training scenes for one scene of each other split."""
MAX_OTHER = 1000
"""The most scenes of each other split."""
MIN_PARALLEL = 500
"""The number of scenes that this process paints in the time in which other processes start."""
BATCH_SIZE = 512
"""The number of scenes that are painted at a time."""


def sizes(count: int) -> dict[Split, int]:
    """Return the number of scenes of each split, if train has `count`."""
    return dict.fromkeys(SPLITS, max(1, min(MAX_OTHER, count // TRAIN_RATIO))) | {"train": count}


def write_corpus(
    folder: Path,
    count: int,
    *,
    seed: int = 1,
    size: int = SIZE,
    shapes: int = len(SHAPES),
    on_done: Callable[[int], None] = lambda _: None,
) -> None:
    """Write scenes into a folder.

    `images.tar` holds the pictures, PNG. `train.tsv` and so on hold `picture TAB caption`, a line for each caption.
    `gold.jsonl` holds a line for each picture: its side in pixels, its ground, how each thing looks, the box of each in
    pixels (left, top, right, bottom; the last two excluded), and of each caption the words and what each is about:
    numbers of things, -1 for the ground.

    Args:
        folder: the folder, which is created if necessary.
        count: the number of training scenes; `sizes` gives the numbers of the other splits.
        seed: determines the scenes.
        size: the side of a picture in pixels.
        shapes: the number of shapes besides the hollow ones.
        on_done: called with 1 after each scene.

    Raises:
        UserError: a file can't be written, or there are too few scenes.
    """
    folder.mkdir(parents=True, exist_ok=True)
    captions: dict[Split, list[str]] = {split: [] for split in SPLITS}
    gold: list[str] = []
    with (
        _painters(sum(sizes(count).values())) as pool,
        output(folder / "images.tar") as file,
        tarfile.open(fileobj=file, mode="w") as images,
    ):
        for split, scene_count in sizes(count).items():
            scenes = generate(scene_count, split=split, seed=seed, shapes=spread_shapes(shapes))
            for number, (scene, picture) in enumerate(_painted(scenes, size, pool)):
                name = f"{split}/{number:06}.png"
                entry = tarfile.TarInfo(name)
                entry.size = len(picture)
                images.addfile(entry, io.BytesIO(picture))
                captions[split] += [f"{name}\t{caption.text}\n" for caption in scene.captions]
                gold.append(json.dumps(gold_of(name, scene, size)) + "\n")
                on_done(1)
    for split, lines in captions.items():
        write_atomically(folder / f"{split}.tsv", "".join(lines).encode())
    write_atomically(folder / "gold.jsonl", "".join(gold).encode())


@contextmanager
def _painters(scenes: int) -> Iterator[ProcessPoolExecutor | None]:
    """Yield a pool of as many processes as there are cores, or None for a few scenes."""
    if scenes < MIN_PARALLEL or processes() == 1:
        yield None
        return
    pool = ProcessPoolExecutor(processes(), get_context("spawn"))
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _painted(scenes: Iterator[Scene], size: int, pool: ProcessPoolExecutor | None) -> Iterator[tuple[Scene, bytes]]:
    """Yield scenes with their pictures, as PNG files."""
    draw = partial(_picture, size=size)
    for batch in batched(scenes, BATCH_SIZE):
        pictures = map(draw, batch) if pool is None else pool.map(draw, batch, chunksize=32)
        yield from zip(batch, pictures, strict=True)


def _picture(scene: Scene, size: int) -> bytes:
    picture = io.BytesIO()
    paint(scene, size).save(picture, "PNG", compress_level=1)  # four times as fast, and the files are as small
    return picture.getvalue()


def spread_shapes(shapes: int) -> list[str]:
    """Return `shapes` shapes, spread over the alphabet; only common ones if these are enough."""
    names = list(COMMON if shapes <= len(COMMON) else SHAPES)
    return [names[i * len(names) // shapes] for i in range(shapes)]


def gold_of(name: str, scene: Scene, size: int) -> dict[str, object]:
    """Return a line of `gold.jsonl`."""
    return {
        "image": name,
        "side": size,
        "ground": scene.ground,
        "things": [thing.look._asdict() for thing in scene.things],
        "boxes": boxes(scene, size),
        "captions": [{"words": caption.words, "about": caption.about} for caption in scene.captions],
    }
