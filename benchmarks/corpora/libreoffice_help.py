"""Parallel documents in 34 languages: LibreOffice's help (MPL-2.0), aligned by the ids of its paragraphs.

    python -m benchmarks.corpora.libreoffice_help help en-es en-de en-fr de-es
    python -m benchmarks.corpora.libreoffice_help help en-pt_BR --packages debs    # with libreoffice-help-*.deb

The help of each language comes from Debian's package `libreoffice-help-LANGUAGE`, which `apt-get download` fetches
(without installing it, and without root); on other systems, give a folder with these files by --packages. For each pair
of languages there are, in help/en-es for instance:

- `train.tsv`, `dev.tsv`, `test.tsv`: all paragraphs in their order, with the columns source, target and document, for
  models with document context;
- `train.clean.tsv`: the training pairs that are left by the rules of `translucid data clean`, each once, for models of
  single sentences;
- `pages/`: the HTML files of the test documents in both languages.

A twentieth of the documents is for test, another for development, by a hash of the document's name: they are the same
documents in every language, so that a model of several pairs has seen no test document in any of them. Paragraphs that
also occur in other documents stay there only in the test set: training has no paragraph of which either side occurs in
the development or test documents of its languages, and development none of the test documents.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import lzma
import re
import subprocess
import tarfile
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from bitext.pair import Pair
from translucid.data import Cleaner
from translucid.data.cleaning import Profile
from translucid.data.readers.corpus import PlacedPair
from translucid.ground.atomic import write_output
from translucid.ground.console import Console
from translucid.ground.errors import UserError

PART_OF_TWENTY = {0: "test", 1: "dev"}
"""What the documents with these remainders of their hash are for; all others are for training."""
PARAGRAPH = re.compile(r"[a-z]+_id[\w.-]+")
"""The id of a translated paragraph; other elements with an id belong to the page around it."""
IDENTIFIED = {"h1", "h2", "h3", "h4", "h5", "h6", "p", "pre"}
AR_MAGIC, AR_HEADER = b"!<arch>\n", 60
HELP = re.compile(r"(?:\./)?usr/share/libreoffice/help/[^/]+/(text/.+\.html)")


class Page(NamedTuple):
    """One document of the help in one language."""

    html: bytes
    paragraphs: dict[str, str]
    """The text of each paragraph by its id, in order."""


class Row(NamedTuple):
    """A paragraph in two languages."""

    pair: Pair
    document: str


class _Paragraphs(HTMLParser):
    """Collects the text of each element with the id of a paragraph."""

    def __init__(self) -> None:
        super().__init__()
        self.found: dict[str, str] = {}
        self._id = ""
        self._text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        name = dict(attrs).get("id") or ""
        if tag in IDENTIFIED and PARAGRAPH.fullmatch(name):
            self._id, self._text = name, []
        elif tag == "br":
            self._text.append(" ")

    def handle_endtag(self, tag: str) -> None:
        if self._id and tag in IDENTIFIED:
            text = " ".join("".join(self._text).split())
            if text:
                self.found.setdefault(self._id, text)
            self._id = ""

    def handle_data(self, data: str) -> None:
        if self._id:
            self._text.append(data)


def paragraphs(html: str) -> dict[str, str]:
    """Return the text of each paragraph of a page by its id."""
    parser = _Paragraphs()
    parser.feed(html)
    parser.close()
    return parser.found


def data_of(package: Path) -> bytes:
    """Return the tar archive with the files of a .deb, which is an `ar` archive of three members (deb(5)).

    Raises:
        UserError: the file is no .deb, or is compressed with something other than xz.
    """
    content = package.read_bytes()
    if not content.startswith(AR_MAGIC):
        raise UserError("is no Debian package", file=str(package), fix="Download it again.")
    position = len(AR_MAGIC)
    while position + AR_HEADER <= len(content):
        header = content[position : position + AR_HEADER]
        name, size = header[:16].decode("ascii", "replace").strip(" /"), int(header[48:58])
        position += AR_HEADER
        if name == "data.tar.xz":
            return lzma.decompress(content[position : position + size])
        position += size + size % 2
    raise UserError("has no data.tar.xz", file=str(package), fix="Use a package of Debian.")


def pages(package: Path) -> dict[str, Page]:
    """Return the pages of a package by their names, as text/swriter/main0000.html."""
    found = {}
    with tarfile.open(fileobj=io.BytesIO(data_of(package))) as archive:
        for member in archive:
            name = HELP.fullmatch(member.name)
            file = archive.extractfile(member) if name else None
            if name and file:
                html = file.read()
                found[name[1]] = Page(html, paragraphs(html.decode("utf-8")))
    if not found:
        raise UserError("holds no pages of the help", file=str(package))
    return found


def package_name(language: str) -> str:
    """Return the name of Debian's package: libreoffice-help-en-us for en, libreoffice-help-pt-br for pt_BR."""
    code = "en-us" if language == "en" else language.lower().replace("_", "-")
    return f"libreoffice-help-{code}"


def package_of(language: str, folder: Path, *, download: bool) -> Path:
    """Return the package of a language, which is downloaded if it may be and is missing."""
    name = package_name(language)
    pattern = f"{name}_*.deb"
    if download and not any(folder.glob(pattern)):
        folder.mkdir(parents=True, exist_ok=True)
        try:
            subprocess.run(["apt-get", "-q", "download", name], cwd=folder, check=True, capture_output=True, text=True)
        except FileNotFoundError:
            raise UserError(
                "this system has no apt-get",
                fix=f"Download {name} from packages.debian.org and give its folder with --packages.",
            ) from None
        except subprocess.CalledProcessError as error:
            raise UserError(f"apt-get cannot download {name}: {error.stderr.strip()}") from None
    found = sorted(folder.glob(pattern))
    if not found:
        raise UserError(f"holds no {pattern}", file=str(folder))
    return found[-1]


def part_of(document: str) -> str:
    """Return what a document is for: train, dev or test."""
    remainder = int.from_bytes(hashlib.sha256(document.encode()).digest()[:8], "big") % 20
    return PART_OF_TWENTY.get(remainder, "train")


def rows(source: dict[str, Page], target: dict[str, Page]) -> Iterator[Row]:
    """Yield the paragraphs that two languages share, document by document, without those that nobody translated."""
    for document in sorted(source.keys() & target.keys()):
        translated = target[document].paragraphs
        for name, text in source[document].paragraphs.items():
            if name in translated and translated[name] != text:
                yield Row(Pair(text, translated[name]), document)


def plain(text: str) -> str:
    """Return a text without differences of case and spaces."""
    return " ".join(text.casefold().split())


def held_out_texts(languages: Iterable[dict[str, Page]], parts: Iterable[str]) -> set[str]:
    """Return all paragraphs, in any of the languages, of the documents of some parts."""
    texts = set()
    for documents in languages:
        for document, page in documents.items():
            if part_of(document) in parts:
                texts.update(map(plain, page.paragraphs.values()))
    return texts


def split(found: Iterable[Row], test_texts: set[str], dev_texts: set[str]) -> tuple[dict[str, list[Row]], int]:
    """Return the rows of each part, and the number of rows left out because another part holds them."""
    parts: dict[str, list[Row]] = {"train": [], "dev": [], "test": []}
    hidden = {"train": test_texts | dev_texts, "dev": test_texts, "test": set[str]()}
    left_out = 0
    for row in found:
        part = part_of(row.document)
        if any(plain(text) in hidden[part] for text in row.pair):
            left_out += 1
        else:
            parts[part].append(row)
    return parts, left_out


def cleaned(train: list[Row], languages: tuple[str, str]) -> list[Pair]:
    """Return the training pairs that the rules for corpora keep, each once."""
    cleaner = Cleaner(Profile.of([row.pair for row in train], languages))
    judged = cleaner.judge(PlacedPair(row.document, 0, row.pair) for row in train)
    return [pair.pair for pair in judged if not pair.rule]


def write_rows(file: Path, parts: list[Row]) -> None:
    """Write rows with their documents."""
    lines = [f"{row.pair.source}\t{row.pair.target}\t{row.document}\n" for row in parts]
    write_lines(file, ["source\ttarget\tdocument\n", *lines])


def write_lines(file: Path, lines: Iterable[str]) -> None:
    """Write a file, which is there only when it is complete."""
    write_output(file, "".join(lines).encode())


def write_pages(folder: Path, languages: dict[str, dict[str, Page]]) -> None:
    """Write the HTML files of the test documents that all of the languages have."""
    shared = set.intersection(*(set(documents) for documents in languages.values()))
    for language, documents in languages.items():
        for document in sorted(shared):
            if part_of(document) == "test":
                file = folder / language / PurePosixPath(document).relative_to("text")
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(documents[document].html)


def main() -> None:
    """Write the parts of each pair of languages, and print their sizes."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("directions", nargs="+", metavar="en-es", help="languages, as in Debian's packages: en-pt_BR")
    parser.add_argument("--packages", type=Path, help="the folder with the .deb files; nothing is downloaded then")
    arguments = parser.parse_args()
    console = Console(stderr=True)
    directions = [tuple(direction.split("-")) for direction in arguments.directions]
    if any(len(direction) != 2 for direction in directions):
        parser.error("write each pair of languages as en-es")
    folder = arguments.packages or arguments.out / "packages"
    help_in: dict[str, dict[str, Page]] = {}
    for language in sorted(set(chain.from_iterable(directions))):
        package = package_of(language, folder, download=arguments.packages is None)
        help_in[language] = pages(package)
        console.print(f"{package.name}: {len(help_in[language]):,} pages")
    test_texts = held_out_texts(help_in.values(), ["test"])
    dev_texts = held_out_texts(help_in.values(), ["dev"])
    for source, target in directions:
        parts, left_out = split(rows(help_in[source], help_in[target]), test_texts, dev_texts)
        out = arguments.out / f"{source}-{target}"
        out.mkdir(parents=True, exist_ok=True)
        for part, part_rows in parts.items():
            write_rows(out / f"{part}.tsv", part_rows)
        kept = cleaned(parts["train"], (source, target))
        write_lines(out / "train.clean.tsv", [f"{pair.source}\t{pair.target}\n" for pair in kept])
        write_pages(out / "pages", {source: help_in[source], target: help_in[target]})
        sizes = ", ".join(f"{len(part_rows):,} {part}" for part, part_rows in parts.items())
        console.print(
            f"{out}: {sizes} paragraphs; {left_out:,} left out that held-out documents contain; "
            f"{len(kept):,} different pairs for training"
        )


if __name__ == "__main__":
    try:
        main()
    except UserError as error:
        raise SystemExit(f"error: {error}") from None
