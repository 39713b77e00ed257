"""External disturbances of a server: another program writes to its memory, clients delete or fill up, the disk is full.

python -m benchmarks.reliability.interference RUN [--seconds 10]
"""

import contextlib
import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from benchmarks.reliability.siege import Server, ask, at_once, by_hand, serving
from tests.probes.common import Finding, output_of, small_disk, translucid

HELD = 3.0
"""Seconds for which another program locks the memory, as `memory add` does with a large file."""
LONGEST = 2.0
"""Seconds that a response may take meanwhile."""


def all_trials(run: Path, work: Path, seconds: float = 10, engine: str = "auto") -> Iterator[Finding]:
    """Yield a finding for each trial."""
    for trial in (memory_is_written, deleted_while_tidied_up, glossaries_of_others, disk_is_full):
        folder = work / trial.__name__
        folder.mkdir()
        yield trial(run, folder, seconds, engine)


def memory_is_written(run: Path, work: Path, seconds: float, engine: str) -> Finding:
    """Request translations while another program locks the memory for seconds at a time."""
    finding = Finding("another program writes to the translation memory that a server uses")
    pairs, file = work / "pairs.tsv", work / "a.memory"
    pairs.write_text("I like soccer.\tMe encanta.\n", encoding="utf-8")
    output_of(translucid("memory", "add", file, pairs, "--source-language", "en", "--target-language", "es"))
    times: dict[int, list[float]] = {}

    def write() -> None:
        with contextlib.closing(sqlite3.connect(file, isolation_level=None, timeout=30)) as database:
            while time.monotonic() < end:
                database.execute("BEGIN IMMEDIATE")
                time.sleep(HELD)
                database.execute("ROLLBACK")

    def read() -> None:
        while time.monotonic() < end:
            started = time.monotonic()
            status, body = ask(server, "/translate", {"q": "<p>I like soccer.</p>", "format": "html"})
            times.setdefault(status, []).append(time.monotonic() - started)
            if status != 200 or b"Me encanta" not in body:
                finding.fail(f"{status}: {body[:200]!r}")

    def suggest() -> None:
        while time.monotonic() < end:
            status, body = ask(server, "/suggest", {"q": "You sing.", "s": "Cantas."})
            suggested[status] = suggested.get(status, 0) + 1
            if status not in (200, 503):
                finding.fail(f"suggestion: {status}: {body[:200]!r}")
            time.sleep(0.2)

    suggested: dict[int, int] = {}
    with serving(run, work, "--memory", str(file), "--suggestions", "--engine", engine) as server:
        end = time.monotonic() + seconds
        at_once([threading.Thread(target=target) for target in (write, read, read, suggest)])
    slowest = max(max(durations) for durations in times.values())
    if slowest > LONGEST:
        finding.fail(f"an answer took {slowest:.1f} s")
    finding.figures = {
        "responses": sum(map(len, times.values())),
        "suggestions accepted": suggested.get(200, 0),
        "deferred with 503": suggested.get(503, 0),
        "slowest response": f"{1000 * slowest:.0f} ms",
    }
    return finding


def deleted_while_tidied_up(run: Path, work: Path, seconds: float, engine: str) -> Finding:
    """Upload more documents than the server stores, and delete them at random moments."""
    finding = Finding("8 clients upload, read and delete documents while the server removes expired ones")
    statuses: dict[str, dict[int, int]] = {}

    def note(what: str, status: int) -> None:
        counts = statuses.setdefault(what, {})
        counts[status] = counts.get(status, 0) + 1
        if status >= 500 and status != 503:
            finding.fail(f"{what}: {status}")

    def client() -> None:
        connection = server.connect()
        while time.monotonic() < end:
            status, body = upload(connection, b"You sing.\n" * 20)
            note("uploads", status)
            if status in (200, 202):
                address = f"/documents/{json.loads(body)['id']}"
                for method, path in (("GET", address), ("GET", f"{address}/result"), ("DELETE", address)):
                    connection.request(method, path)
                    response = connection.getresponse()
                    response.read()
                    note(method, response.status)
        connection.close()

    with serving(run, work, "--engine", engine) as server:
        end = time.monotonic() + seconds
        at_once([threading.Thread(target=client) for _ in range(8)])
        status, _ = upload(server.connect(), b"You sing.\n")
        if status not in (200, 202):
            finding.fail(f"an upload afterwards: {status}")
    if "Traceback" in (work / "said").read_text(errors="replace"):
        finding.fail("the server's log has a traceback")
    uploads = statuses.get("uploads", {})
    finding.figures = {
        "uploads": sum(uploads.values()),
        "deferred with 503": uploads.get(503, 0),
        "deleted": sum(statuses.get("DELETE", {}).values()),
    }
    return finding


def upload(connection, content: bytes) -> tuple[int, bytes]:  # type: ignore[no-untyped-def]
    """Upload a document."""
    fields = {"source": "en", "target": "es"}
    parts = [f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}' for name, value in fields.items()]
    parts.append('--x\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n')
    body = "\r\n".join(parts).encode() + content + b"\r\n--x--\r\n"
    connection.request("POST", "/documents", body, {"Content-Type": "multipart/form-data; boundary=x"})
    response = connection.getresponse()
    return response.status, response.read()


def glossaries_of_others(run: Path, work: Path, seconds: float, engine: str) -> Finding:
    """Let four addresses create as many glossaries as they can, and others one each."""
    finding = Finding("four addresses create glossaries up to the limit, then 20 others create one each")
    entries = "house\tcasa\n"

    def make(address: str) -> int:
        connection = server.connect()
        body = {"name": "a", "source_lang": "en", "target_lang": "es", "entries": entries, "entries_format": "tsv"}
        headers = {"Content-Type": "application/json", "X-Forwarded-For": address}
        connection.request("POST", "/v2/glossaries", json.dumps(body), headers)
        response = connection.getresponse()
        response.read()
        connection.close()
        return response.status

    with serving(run, work, "--engine", engine, "--proxies", "127.0.0.1") as server:
        statuses = [make(f"10.0.0.{number % 4}") for number in range(300)]
        other_statuses = [make(f"10.0.1.{number}") for number in range(20)]
    finding.failures += [f"the glossary of another client: {status}" for status in other_statuses if status != 201]
    finding.figures = {"created by four": statuses.count(201), "created by others": other_statuses.count(201)}
    return finding


def disk_is_full(run: Path, work: Path, seconds: float, engine: str) -> Finding:
    """Fill the disk for documents; no partial file may remain, and deleting documents must free space."""
    finding = Finding("disk for documents full in the middle of an upload")
    with small_disk(work / "disk", 3) as disk:
        if disk is None:
            finding.figures["skipped"] = "no disk can be mounted"
            return finding
        before = os.environ.get("TMPDIR")
        os.environ["TMPDIR"] = str(disk)
        try:
            with serving(run, work, "--engine", engine) as server:
                _fill(server, disk, finding)
        finally:
            os.environ.pop("TMPDIR")
            if before is not None:
                os.environ["TMPDIR"] = before
    return finding


def _fill(server: Server, disk: Path, finding: Finding) -> None:
    content = b"You sing in the garden.\n" * 30_000
    accepted, refused = [], 0
    for _ in range(12):
        status, body = upload(server.connect(), content)
        if status in (200, 202):
            accepted.append(json.loads(body)["id"])
        elif status == 503:
            refused += 1
        else:
            finding.fail(f"an upload: {status} {body[:200]!r}")
    for job in accepted:
        connection = server.connect()
        connection.request("DELETE", f"/documents/{job}")
        connection.getresponse().read()
    is_empty = wait_until(lambda: sum(file.stat().st_size for file in disk.rglob("*") if file.is_file()) == 0)
    if not is_empty:
        finding.fail("files stay: " + ", ".join(str(file.relative_to(disk)) for file in disk.rglob("*")))
    status, body = upload(server.connect(), b"You sing.\n")
    if status not in (200, 202):
        finding.fail(f"an upload afterwards: {status} {body[:200]!r}")
    finding.figures = {"uploads accepted": len(accepted), "rejected because the disk is full": refused}


def wait_until(true: Callable[[], bool], seconds: float = 10) -> bool:
    """Wait until a condition holds; return whether it does."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(OSError):
            if true():
                return True
        time.sleep(0.1)
    return False


if __name__ == "__main__":
    by_hand(__doc__, all_trials, seconds=10.0)
