"""The documentation states the server's actual limits."""

from pathlib import Path

import pytest

from translucid.live import routes
from translucid.serving import app as application
from translucid.serving import documents, live_sessions, memory
from translucid.serving import queue as fair_scheduler
from translucid.serving import requests as incoming
from translucid.serving.dialects import deepl_glossaries
from translucid.serving.edge import connections, rate_limits
from translucid.serving.routes import inspection
from translucid.serving.server_options import ServerOptions
from translucid.serving.texts import SHORT

DOCS = Path(__file__).resolve().parents[2] / "docs"
MIB = 1 << 20
NUMBERS = {1: "one", 2: "two", 4: "four", 10: "ten", 12: "twelve", 1_000_000: "a million"}
OPTIONS = ServerOptions()


def test_limits_of_live_translation():
    page = " ".join((DOCS / "live.md").read_text(encoding="utf-8").split())
    assert f"ends after {live_sessions.IDLE_SECONDS:g} seconds" in page
    assert live_sessions.CONNECTED_IDLE_SECONDS == 1800 and live_sessions.LONGEST_SECONDS == 12 * 3600
    assert f"{live_sessions.MOST}, and {live_sessions.SHARE} of a client, {routes.SOCKETS} WebSockets" in page
    batch = fair_scheduler.JOINT_BATCH
    assert f"and {live_sessions.WATCHERS} that watch a session. The words of up to {batch} sessions" in page
    assert f"reads nothing for {routes.SEND_SECONDS:g} seconds" in page


@pytest.mark.parametrize(
    "text",
    [
        f"After {NUMBERS[rate_limits.WRONG_KEYS]} wrong keys within a minute",
        f"An IPv6 /{rate_limits.IPV6_PREFIX} network counts as one client",
        f"at most {connections.MOST:,}, or what the file descriptors allow",
        f"A request's head may take {connections.HEAD_SECONDS:g} seconds, its body {incoming.SECONDS:g};",
        f"a client may take {connections.READ_SECONDS} seconds to read the response",
        f"documents {OPTIONS.file_bytes / MIB:g} MiB (`--file-bytes`), images {OPTIONS.image_bytes / MIB:g} MiB",
        f"a document over {incoming.IN_MEMORY / MIB:g} MiB goes to an unnamed file",
        f"Each {incoming.SLOWEST / 1000:g} kB adds a second",
        f"All bodies over {incoming.SMALL / 1024:g} kB together have {incoming.MAX_TOTAL_BYTES / MIB:g} MiB",
        f"requests of up to {SHORT} characters are batched",
        f"At most {fair_scheduler.PLACES} jobs may run or wait, {fair_scheduler.SHARE} per client",
        f"at most {OPTIONS.documents} running or waiting, {documents.SHARE} per client",
        f"{OPTIONS.document_segments:,} segments, of at most {documents.LONGEST_SEGMENT:,} characters and "
        f"{documents.MOST_MARKS:,} tags each",
        f"at most {documents.MAX_STORED}, with {documents.MAX_STORED_BYTES / 2**30:g} GiB of files",
        f"{deepl_glossaries.MOST}, in memory; one expires after a week without use",
        f"freed memory returns to the system within {NUMBERS[application.TIDY_SECONDS]} seconds",
        f"at most {NUMBERS[memory.WRITE_SECONDS]} seconds, in a thread of their own; at most {memory.PENDING} wait",
    ],
)
def test_limits_in_the_page_on_security(text):
    assert text in (DOCS / "security.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "text",
    [
        f"Attention is shown for texts of up to {inspection.MAX_INSPECTED} characters",
        f"each of at most {documents.LONGEST_SEGMENT:,} characters and {documents.MOST_MARKS:,} tags",
        f"| {OPTIONS.documents}, {documents.SHARE} per client |",
        f"| stored documents | {documents.MAX_STORED}, {documents.MAX_STORED_BYTES / 2**30:g} GiB of files |",
        f"accepted on the page, up to {NUMBERS[memory.MOST]} entries",
        f"in memory, up to {deepl_glossaries.SHARE} for each client. One expires after a week without use; when"
        f" {deepl_glossaries.MOST} exist",
    ],
)
def test_limits_in_the_page_on_the_server(text):
    pages = [(DOCS / name).read_text(encoding="utf-8") for name in ("serving.md", "page.md")]
    assert text in " ".join(" ".join(pages).split())
    assert deepl_glossaries.LIFETIME == 7 * 86_400


def test_limits_in_the_page_on_deployment():
    text = (DOCS / "deployment.md").read_text(encoding="utf-8")
    assert f"without the memory for {memory.PAUSE:g} seconds" in text
    assert f"running or waiting; at {fair_scheduler.PLACES}, further ones get 503" in text
    assert f"at `--queue` ({OPTIONS.queue}), further requests get 503" in text
