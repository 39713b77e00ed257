"""Existing output paths: files are replaced, everything else stays unchanged."""

import os
import shutil
import socket
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.probes.common import Finding, output_of, train, translucid
from tests.probes.kinds import TEXT

Make = Callable[[Path], None]


def device(kind: int, major: int, minor: int) -> Make:
    """Return a function that makes a device, so that the machine's own devices are never used."""

    def make(path: Path) -> None:
        os.mknod(path, kind | 0o600, os.makedev(major, minor))

    return make


def bind(path: Path) -> None:
    """Make a socket that nobody listens on."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(path))  # its name may have a hundred characters


WRITTEN: dict[str, Make] = {
    "a file": lambda path: path.write_text("before") and None,
    "a link to a file": lambda path: path.symlink_to(path.parent / "behind"),
    "a pipe": os.mkfifo,
    "a device that swallows everything": device(stat.S_IFCHR, 1, 3),
}
"""Paths that commands write to."""
REFUSED: dict[str, Make] = {
    "a folder": Path.mkdir,
    "a socket": bind,
    "a device that is full": device(stat.S_IFCHR, 1, 7),
    "a block device": device(stat.S_IFBLK, 240, 0),
}
"""Paths that commands reject."""


def commands(run: Path, corpus: list[str]) -> Iterator[tuple[list[str], str]]:
    """Yield commands that write what a user names, without the name, and the ending that it must have."""
    pairs, words = corpus[3], "They sing"
    yield ["translate", str(run), words, "--output"], ""
    yield ["translate", str(run), "--input", pairs.replace(".tsv", ".txt"), "--workers", "2", "--output"], ""
    yield ["align", str(run), "--pairs", pairs, "--output"], ""
    yield ["evaluate", str(run), "--test", pairs, "--hypotheses"], ""
    yield ["data", "phrasebook", "--count", "9"], ".tsv"
    for ending in (".html", ".png", ".svg", ".pdf", ".json", ".npz"):
        yield ["look", str(run), words, "--save"], ending
    yield ["look", str(run), "--tsv", pairs, "--save"], ".npz"
    yield ["draw", "positions", "--out"], ".png"


def nothing_else_is_replaced(work: Path, most: int | None = None) -> Finding:
    """Let each command write to each kind of path; `most` limits the number of commands."""
    finding = Finding("output paths that are not files (link, pipe, device, socket, folder) stay unchanged")
    corpus, run = TEXT.write(work / "corpus"), work / "run"
    output = output_of(train(run, corpus, 4))
    if not (run / "model.safetensors").exists():
        finding.fail(output[-300:])
        return finding
    shutil.copy(corpus[3], corpus[3].replace(".tsv", ".txt"))
    counts = {"written to": 0, "rejected with one line": 0}
    for command, ending in list(commands(run, corpus))[:most]:
        for what, make in {**WRITTEN, **REFUSED}.items():
            folder = work / "place"
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            path = folder / f"out{ending}"
            try:
                make(path)
            except PermissionError:  # making a device requires root
                continue
            _try(finding, [*command, str(path), "--overwrite"], path, what, counts)
            finding.failures += [f"{what}: left {item.name}" for item in folder.iterdir() if item.name[0] == "."]
    finding.figures.update(counts)
    return finding


def _try(finding: Finding, command: list[str], path: Path, what: str, counts: dict[str, int]) -> None:
    """Run a command and check the path afterwards."""
    description, kind = f"{' '.join(command[:2])} to {what}", stat.S_IFMT(path.lstat().st_mode)
    read = path.parent / "read" if path.is_fifo() else path
    reader = subprocess.Popen(f"exec cat '{path}' > '{read}'", shell=True) if path.is_fifo() else None
    process = translucid(*command)
    output = output_of(process)
    if reader:
        if not path.is_fifo():  # the reader would wait for ever
            reader.kill()
        reader.wait()
    refused = what in REFUSED
    if process.returncode != (2 if refused else 0) or "Traceback" in output:
        finding.fail(f"{description}: exit code {process.returncode}: {output[-200:]}")
    if stat.S_IFMT(path.lstat().st_mode) != kind:
        finding.fail(f"{description}: was replaced")
    if read.is_file() and read.read_bytes() in (b"", b"before"):
        finding.fail(f"{description}: nothing was written")
    counts["rejected with one line" if refused else "written to"] += 1
    if refused:
        finding.record_message(output.replace(str(path), "OUT"), path)
