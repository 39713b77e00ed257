"""Kill a server while a client corrects its translations: every correction that it has confirmed stays, and applies.

python -m tests.probes.killed_server runs/demo [--kills 100]
"""

import argparse
import json
import random
import socket
import sqlite3
import tempfile
import threading
import time
import urllib.error
import urllib.request
from contextlib import closing
from pathlib import Path

from bitext.memory.translation_memory import TranslationMemory
from tests.probes.common import Finding, translucid
from translucid.corpora.phrasebook import generate

SENTENCES = 30
"""The number of sentences that are corrected again and again, so that entries are both added and changed."""
LATEST = 0.6
"""The latest time of a kill, in seconds after the first answer of the server."""
START = 120.0
"""The maximum number of seconds until this answer."""


def kills(work: Path, run: Path, count: int, *, seed: int = 0) -> Finding:
    """Kill a server with `--memory --suggestions --knn` this many times, and start it again each time."""
    finding = Finding("server with --knn killed (SIGKILL) while a client corrects translations, then started again")
    work.mkdir(parents=True, exist_ok=True)
    file, moments = work / "mine.memory", random.Random(seed)
    sources = sorted({pair.source for pair in generate(SENTENCES, max_words=8)})
    confirmed: dict[str, str] = {}
    corrections = changes = pending = 0
    for _ in range(count):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        options = ["--memory", str(file), "--suggestions", "--knn", "--engine", "torch", "--log-format", "off"]
        process = translucid("serve", f"en-es={run}", "--port", str(port), *options, log=work / "said")
        address = f"http://127.0.0.1:{port}"
        if not _answers(address):
            finding.fail(f"it does not start: {(work / 'said').read_text()[-500:]}")
            process.kill()
            process.wait()
            return finding
        if confirmed:
            _check_use(finding, address, *moments.choice(list(confirmed.items())))
        killer = threading.Timer(moments.uniform(0, LATEST), process.kill)
        killer.start()
        unconfirmed = None
        while True:
            source, target = moments.choice(sources), f"Prefiero {''.join(moments.choices('aeiklmnorst', k=8))}."
            unconfirmed = (source, target)
            try:
                answer = _post(address, "suggest", q=source, s=target)
            except OSError:
                break
            if answer != {"success": True}:
                finding.fail(f"suggestion: {answer}")
            changes += source in confirmed
            confirmed[source], unconfirmed = target, None
            corrections += 1
        process.wait()
        killer.join()
        pending += _check_file(finding, file, confirmed, unconfirmed)
    finding.figures = {
        "kills": count,
        "corrections confirmed": corrections,
        "of entries that were there": changes,
        "written, not confirmed": pending,
    }
    return finding


def _check_file(finding: Finding, file: Path, confirmed: dict[str, str], unconfirmed: tuple[str, str] | None) -> bool:
    """Check that the memory has what was confirmed, and perhaps the correction whose answer the kill prevented."""
    was_written = False
    with TranslationMemory.open(file, write=True) as memory:
        found = {entry.source: entry.target for entry in memory.entries()}
        if unconfirmed and found.get(unconfirmed[0]) == unconfirmed[1]:
            was_written = True
            confirmed[unconfirmed[0]] = unconfirmed[1]
        if found != confirmed:
            lost = [source for source, target in confirmed.items() if found.get(source) != target]
            finding.fail(f"{len(lost)} lost, {len(found.keys() - confirmed.keys())} invented: {lost[:3]}")
        for source, target in confirmed.items():
            if target not in [match.entry.target for match in memory.matches(source, 100)]:
                finding.fail(f"the index lacks {source!r}")
    with closing(sqlite3.connect(file)) as database:
        state = database.execute("PRAGMA integrity_check").fetchone()[0]
    if state != "ok":
        finding.fail(f"damaged: {state}")
    return was_written


def _check_use(finding: Finding, address: str, source: str, target: str) -> None:
    """Check that the server uses an entry that an earlier one has confirmed, as it is and in the decoder."""
    if (answer := _post(address, "translate", q=source))["translatedText"] != target:
        finding.fail(f"{source!r} is not used: {answer}")
    # Whether such a correction, of random letters, changes a similar sentence depends on the model.
    if "retrieved" not in (answer := _post(address, "translate", q=f"{source.rstrip('.?!')} today.")):
        finding.fail(f"a sentence like {source!r} is not translated: {answer}")


def _answers(address: str) -> bool:
    end = time.monotonic() + START
    while time.monotonic() < end:
        try:
            with urllib.request.urlopen(f"{address}/health", timeout=10) as answer:
                return answer.status == 200
        except OSError:
            time.sleep(0.05)
    return False


def _post(address: str, path: str, **fields: str) -> dict[str, object]:
    body = json.dumps({"source": "en", "target": "es", **fields}).encode()
    request = urllib.request.Request(f"{address}/{path}", body, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())
    except urllib.error.HTTPError as error:  # it is an OSError, too
        return json.loads(error.read())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("--kills", type=int, default=100)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        finding = kills(Path(work), arguments.run, arguments.kills)
    print(finding.trial, json.dumps(finding.figures), *finding.failures, sep="\n    ")


if __name__ == "__main__":
    main()
