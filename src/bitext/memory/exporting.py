"""Export of a memory for other programs: TMX 1.4b, or source TAB target."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import BinaryIO
from xml.sax.saxutils import escape, quoteattr

from bitext.languages import Languages
from bitext.memory.folding import UNWRITABLE
from bitext.memory.match import Entry
from bitext.memory.translation_memory import PROGRESS_STEP, TranslationMemory


def write_tsv(memory: TranslationMemory, stream: BinaryIO, advance: Callable[[int], None]) -> None:
    """Write a line for each entry; its texts have neither tabs nor line ends."""
    for entry in _counted(memory, advance):
        stream.write(f"{_clean(entry.source)}\t{_clean(entry.target)}\n".encode())


def write_tmx(
    memory: TranslationMemory,
    stream: BinaryIO,
    languages: tuple[str, str],
    advance: Callable[[int], None],
    version: str,
) -> None:
    """Write a unit for each entry, with its author and date.

    Args:
        memory: the memory.
        stream: the stream to write to.
        languages: the codes of the source and the target language.
        advance: receives the number of entries written since the last call.
        version: the version of the program, for the header.
    """
    source, target = map(quoteattr, languages)
    stream.write(
        '<?xml version="1.0" encoding="UTF-8"?>\n<tmx version="1.4">\n<header creationtool="translucid" '
        f'creationtoolversion="{version}" segtype="sentence" o-tmf="translucid" adminlang="en" '
        f'srclang={source} datatype="plaintext"/>\n<body>\n'.encode()
    )
    for entry in _counted(memory, advance):
        when = datetime.fromtimestamp(entry.when, UTC).strftime("%Y%m%dT%H%M%SZ")
        who = f" changeid={quoteattr(_clean(entry.who))}" if entry.who else ""
        stream.write(
            f'<tu changedate="{when}"{who}>'
            f"<tuv xml:lang={source}><seg>{escape(_clean(entry.source))}</seg></tuv>"
            f"<tuv xml:lang={target}><seg>{escape(_clean(entry.target))}</seg></tuv></tu>\n".encode()
        )
    stream.write(b"</body>\n</tmx>\n")


def export_languages(memory: TranslationMemory, languages: Languages) -> Languages:
    """Return language codes, completed by those of the memory."""
    recorded = memory.languages
    return languages[0] or recorded[0], languages[1] or recorded[1]


def _counted(memory: TranslationMemory, advance: Callable[[int], None]) -> Iterator[Entry]:
    """Yield the entries of a memory, and report progress."""
    for number, entry in enumerate(memory.entries(), 1):
        yield entry
        if number % PROGRESS_STEP == 0:
            advance(PROGRESS_STEP)


def _clean(text: str) -> str:
    """Replace characters that XML 1.0 forbids, which a memory of an older version may contain."""
    return UNWRITABLE.sub("\ufffd", text)
