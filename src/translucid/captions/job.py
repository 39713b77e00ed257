"""The job of captioning: each line of the input names an image, each line of the output is its caption."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY, dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import ClassVar

from translucid.captions.captioner import WINDOW, Caption, Captioner
from translucid.captions.image_files import ImageFiles
from translucid.captions.pixels import Picture
from translucid.decoding.decoding_options import DecodingOptions
from translucid.ground.errors import UserError
from translucid.jobs.job import Done, LineFunction, LineJob, as_lines
from translucid.jobs.windows import Window


@dataclass(frozen=True)
class CaptionJob(LineJob):
    """The job of captioning images."""

    options: DecodingOptions
    _: KW_ONLY
    columns: int = 1
    """The number of captions that are written for each image."""
    named: bool = True
    """Whether a line begins with the image's name."""

    window: ClassVar[int] = WINDOW

    def load(self, threads: int) -> LineFunction:
        """Load the captioner."""
        captioner = Captioner.load(self.run, self.device)
        return LineFunction(captioner.device.type, partial(self.work, captioner, threads))

    def work(self, captioner: Captioner, threads: int, window: Window) -> Done:
        """Caption the images that the lines of a window name; an image that can't be read has no caption."""
        names = list(map(os.fsdecode, window.lines))
        # Pillow releases the interpreter lock while it decodes.
        with ThreadPoolExecutor(threads) as pool:
            pictures = list(pool.map(partial(_picture_or_error, captioner), names))
        readable = [picture for picture in pictures if isinstance(picture, Picture)]
        captions = captioner.stream(readable, self.options, first=window.before.lines)
        lines, bad = [], []
        for i, (name, picture) in enumerate(zip(names, pictures, strict=True)):
            if isinstance(picture, UserError):
                bad.append((i, str(picture)))
                lines.append(self._refused(name, picture))
            else:
                lines.append(self._line(name, next(captions)))
        # File names may hold bytes that are not UTF-8.
        return Done(as_lines(lines, errors="surrogateescape"), bad=bad)

    def _line(self, name: str, caption: Caption) -> str:
        if self.form == "text":
            fields = caption.alternatives[: self.columns]
            if self.named:
                fields.insert(0, name)
            return "\t".join(fields)
        record: dict[str, object] = {"image": name, "caption": caption.text, "score": round(caption.score, 6)}
        if self.columns > 1:
            record["alternatives"] = caption.alternatives
            record["scores"] = [round(alternative.score, 6) for alternative in caption.nbest]
        return json.dumps(record, ensure_ascii=False)

    def _refused(self, name: str, error: UserError) -> str:
        if self.form == "text":
            return f"{name}\t"
        return json.dumps({"image": name, "caption": None, "error": str(error)}, ensure_ascii=False)


def read_image(captioner: Captioner, name: str) -> Picture:
    """Read the image that a line names: a file, or `images.tar/name` for an image in a tar.

    Raises:
        UserError: it can't be read.
    """
    stem, separator, member = name.partition(".tar/")
    tar = Path(stem + ".tar")
    if separator and tar.is_file():
        return captioner.picture(_open_tar(tar).read(member), name)._replace(name=name)
    return captioner.picture(Path(name))


def _picture_or_error(captioner: Captioner, name: str) -> Picture | UserError:
    try:
        return read_image(captioner, name)
    except UserError as error:
        return error
    except ValueError:  # there is a NUL in it: the lines are no list of names
        return UserError(f"{name[:100]!r} is no name of a file", fix="Name one image in each line.")


def image_names(paths: Sequence[Path]) -> list[str]:
    """Return the names of image files, and of all images in folders and tars.

    Raises:
        UserError: a file is missing, a folder holds no images, or a name has a tab or a line feed.
    """
    names: list[str] = []
    for path in paths:
        if path.is_dir() or (path.suffix == ".tar" and path.is_file()):
            for name in ImageFiles.open([path]).names():
                names.append(f"{path}/{name}")
        else:
            names.append(str(path))
    for name in names:
        if "\n" in name or "\t" in name:
            raise UserError("has a tab or a line feed in its name", file=name, fix="Rename it.")
    return names


# The index of a tar is read once for all images in it.
@lru_cache(maxsize=8)
def _open_tar(tar: Path) -> ImageFiles:
    return ImageFiles.open([tar])
