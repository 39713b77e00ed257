"""Many clients send good, broken and too large images; each response must equal the one for the image alone.

python -m benchmarks.reliability.captions RUN [--minutes 5] [--clients 8]
"""

import contextlib
import itertools
import json
import random
import time
from collections.abc import Iterator
from functools import partial
from io import BytesIO
from pathlib import Path
from urllib.parse import urlencode

from PIL import Image

from benchmarks.reliability.mixed import again
from benchmarks.reliability.siege import Server, by_hand, serving
from benchmarks.serving_load import memory
from tests.probes.common import Finding
from tests.probes.hostile.damage import damaged
from tests.probes.hostile.pictures import absurd, valid
from translucid.captions.scenes.generation import generate
from translucid.captions.scenes.painting import paint

LARGEST = 1 << 20
"""The server's size limit for images, in bytes."""
SETTLING = 60.0
"""Seconds after which the server's memory is compared with what it is at the end."""
GROWTH = 200
"""Allowed growth in MiB: the memory of the largest image, which the process may keep for the next one."""
FIELDS: list[dict[str, object]] = [{}, {"beam": 1}, {"nbest": 3}, {"ways": 4}, {"prefix": "a large"}]
"""Query parameters of the requests."""

Request = tuple[str, bytes]
"""A request: path and body."""


def requests(seed: int = 1) -> Iterator[Request]:
    """Yield requests of every kind."""
    chance = random.Random(seed)
    for scene, fields in zip(generate(60, split="test"), itertools.cycle(FIELDS), strict=False):
        kind = chance.choice(["PNG", "JPEG", "WEBP", "GIF", "BMP"])
        path = f"/caption?{urlencode(fields)}"
        yield path, _file(paint(scene, chance.choice([40, 96])), kind)
        yield path, damaged(chance.choice(valid())[1], chance)
        yield path, absurd(chance.choice(valid())[1], chance)
    yield "/caption", _file(Image.effect_noise((900, 900), 80), "PNG")  # a good one just under the size limit
    yield "/caption", _file(Image.new("RGB", (7000, 7000), "red"), "PNG")  # just under the pixel limit
    for excess in (1, 1 << 20, 20 << 20):
        yield "/caption", bytes(LARGEST + excess)
    yield "/caption", b"no image"
    yield "/caption", b""
    yield "/caption?beam=1000", _file(Image.new("RGB", (40, 40)), "PNG")


def _file(picture: Image.Image, kind: str) -> bytes:
    file = BytesIO()
    picture.save(file, kind)
    return file.getvalue()


def send(server: Server, request: Request) -> tuple[int, object]:
    """Send an image; return the status and the message."""
    connection = server.connect()
    try:
        with contextlib.suppress(
            BrokenPipeError, ConnectionResetError
        ):  # the server may reject it before the upload ends
            connection.request("POST", *request, {"Content-Type": "image/png"})
        response = connection.getresponse()
        return response.status, json.loads(response.read())
    finally:
        connection.close()


def refused(status: int, body: object) -> bool:
    """Whether a response is a rejection with one line."""
    line = body.get("error") if isinstance(body, dict) else None
    return 400 <= status < 500 and isinstance(line, str) and line.isprintable() and len(line) > 5


def captions(run: Path, work: Path, minutes: float, clients: int = 8) -> Finding:
    """Caption each image alone, then all of them from many clients at once."""
    finding = Finding(f"good, broken and too large images from {clients} clients at once")
    all_requests = list(requests())
    with serving(run, work, "--image-bytes", str(LARGEST), languages=None) as server:
        expected = [send(server, request) for request in all_requests]
        accepted = {i for i, (status, _) in enumerate(expected) if status == 200}
        for i, (status, body) in enumerate(expected):
            if i not in accepted and not refused(status, body):
                finding.fail(f"{all_requests[i][0]} {all_requests[i][1][:40]!r}: {status} {body}")
        asking = partial(send, server)
        again(all_requests, expected, asking, clients, min(SETTLING, 60 * minutes))
        before = memory(server.pid)
        answers, wrong = again(all_requests, expected, asking, clients, 60 * minutes)
        time.sleep(4)
        after = memory(server.pid)
        if "Traceback" in (log := server.log.read_text()):
            finding.fail(log[-500:])
    if after > before + GROWTH:
        finding.fail(f"{after - before:.0f} MiB more than before")
    finding.figures = {
        "minutes": minutes,
        "captions": sum(count for i, count in answers.items() if i in accepted),
        "rejected with one line": sum(count for i, count in answers.items() if i not in accepted),
        "errors or different responses": len(wrong),
        "memory": f"{before:.0f} → {after:.0f} MiB",
    }
    finding.failures += [failure[:300] for failure in wrong[:3]]
    return finding


if __name__ == "__main__":
    by_hand(__doc__, lambda *given: [captions(*given[:-1])], minutes=5.0, clients=8)
