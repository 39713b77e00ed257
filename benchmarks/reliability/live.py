"""Live translation under attack: honest sessions get the words of one alone, `/health` answers, and no session is left.

python -m benchmarks.reliability --only siege
"""

import asyncio
import contextlib
import json
import random
import socket
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import websockets

from benchmarks.reliability.siege import Server, ask, serving
from tests.probes.common import Finding
from translucid.corpora.phrasebook import generate
from translucid.serving.live_sessions import SHARE

START = {"source": "en", "target": "es", "policy": "alignatt", "lag": 2}
HEALTHY_SECONDS = 1.0
"""The maximum time until `/health` answers."""
UNREAD_SECONDS = 300.0
"""The time within which a client that reads nothing is disconnected: 20 seconds after all buffers are full."""
ENDED_SECONDS = 60.0
"""The time within which sessions of closed connections have ended."""
OTHERS = "127.0.0.2", "127.0.0.3", "127.0.0.4"
"""The addresses of attackers, each of which counts as a client of its own."""


def connect(server: Server, host: str = "127.0.0.1", **options: Any) -> websockets.connect:
    address = server.address.replace("http", "ws", 1) + "/live"
    return websockets.connect(address, local_addr=(host, 0), open_timeout=60, close_timeout=1, **options)


async def said(client: websockets.ClientConnection, **message: Any) -> dict[str, Any]:
    await client.send(json.dumps(message))
    answer: dict[str, Any] = json.loads(await asyncio.wait_for(client.recv(), 120))
    return answer


async def translated(server: Server, line: str, draw: random.Random | None = None) -> str:
    """Translate a line by a session of its own; with `draw`, in random parts."""
    async with connect(server) as client:
        await said(client, **START)
        text, written = line, ""
        while text and draw:
            size = draw.randint(1, 12)
            written += (await said(client, text=text[:size])).get("text", " an error")
            text = text[size:]
        return written + (await said(client, text=text, finish=True)).get("text", " an error")


async def speak(server: Server, expected: dict[str, str], draw: random.Random, finding: Finding) -> None:
    """Translate a line in random parts, as an honest client."""
    line = draw.choice(list(expected))
    written = await translated(server, line, draw)
    finding.figures["honest sentences"] = int(finding.figures.get("honest sentences", 0)) + 1
    if written != expected[line]:
        finding.fail(f"{line!r}: {written!r} instead of {expected[line]!r}")


async def drop(server: Server, expected: dict[str, str], draw: random.Random, finding: Finding) -> None:
    """Send a few messages, and disconnect without a word."""
    async with connect(server, draw.choice(OTHERS)) as client:
        await client.send(json.dumps({**START, "record": True}))
        for _ in range(draw.randint(0, 5)):
            await client.send(json.dumps({"text": draw.choice(list(expected)) + " ", "finish": draw.random() < 0.3}))
        await asyncio.sleep(draw.random() / 10)
        client.transport.abort()


async def flood(server: Server, expected: dict[str, str], draw: random.Random, finding: Finding) -> None:
    """Begin more sessions than a client may have, and send too much and nonsense."""
    async with contextlib.AsyncExitStack() as stack:
        clients = await asyncio.gather(
            *(stack.enter_async_context(connect(server, draw.choice(OTHERS))) for _ in range(SHARE))
        )
        for client in clients:
            message = draw.choice([START, {"text": "early"}, [], {**START, "lag": -1}, {**START, "beam": 10**9}])
            await client.send(json.dumps(message))
            await client.send(json.dumps({"text": "many words " * draw.choice([1, 10, 100_000])}))


async def grow(server: Server, expected: dict[str, str], draw: random.Random, finding: Finding) -> None:
    """Send growing texts under one name as several clients, whose texts differ."""

    def growing(line: str) -> str:
        words = line.split()
        for count in range(1, len(words)):
            ask(server, "/translate", {"q": " ".join(words[:count]), "session": name})
        return str(
            json.loads(ask(server, "/translate", {"q": line, "session": name, "finish": True})[1]).get("translatedText")
        )

    name = f"stage-{draw.randint(0, 10**9)}"
    line = draw.choice(list(expected))
    stranger = asyncio.to_thread(stranger_grows, server, name, draw.choice(list(expected)))
    written, _ = await asyncio.gather(asyncio.to_thread(growing, line), stranger)
    if written.strip() != expected[line].strip():
        finding.fail(f"growing {line!r}: {written!r} instead of {expected[line]!r}")


def stranger_grows(server: Server, name: str, line: str) -> None:
    """Send a growing text from another address under a name that is in use."""
    words = line.split()
    for count in range(1, len(words) + 1):
        connection = server.connect()
        connection.source_address = (OTHERS[0], 0)
        body = json.dumps({"source": "en", "target": "es", "q": " ".join(words[:count]), "session": name})
        connection.request("POST", "/translate", body, {"Content-Type": "application/json"})
        connection.getresponse().read()
        connection.close()


async def read_nothing(server: Server, lines: list[str]) -> bool:
    """Send texts and read no answer; return whether the server disconnects."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # so that little is received without being read
    connection.bind((OTHERS[1], 0))
    connection.connect((urlsplit(server.address).hostname, urlsplit(server.address).port))
    reader, writer = await asyncio.open_connection(sock=connection, limit=4096)
    writer.write(b"GET /live HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n")
    writer.write(b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
    await reader.readuntil(b"\r\n\r\n")
    end = time.monotonic() + UNREAD_SECONDS
    with contextlib.suppress(OSError):
        writer.write(frame({**START, "record": True}))
        while time.monotonic() < end:
            writer.write(frame({"text": " ".join(lines[:20]), "finish": True}))
            await asyncio.wait_for(writer.drain(), max(0.1, end - time.monotonic()))
            await asyncio.sleep(0.05)
        return False
    return True


def frame(message: dict[str, Any]) -> bytes:
    """Return a text message of a client (RFC 6455, section 5.2), with a mask of zeros."""
    data = json.dumps(message).encode()
    length = bytes([0x80 | len(data)]) if len(data) < 126 else bytes([0x80 | 126]) + len(data).to_bytes(2, "big")
    return b"\x81" + length + bytes(4) + data


async def watch_health(server: Server, finding: Finding) -> None:
    """Ask whether the server is healthy, until this is cancelled."""
    slowest = 0.0
    while True:
        began = time.monotonic()
        await asyncio.to_thread(healthy, server)
        slowest = max(slowest, time.monotonic() - began)
        finding.figures["slowest /health"] = f"{slowest:.2f} s"
        if time.monotonic() - began > HEALTHY_SECONDS:
            finding.fail(f"/health took {time.monotonic() - began:.1f} s")
        await asyncio.sleep(0.2)


def healthy(server: Server) -> None:
    connection = server.connect()
    connection.request("GET", "/health")
    connection.getresponse().read()
    connection.close()


ACTS: list[Callable[..., Awaitable[None]]] = [speak, speak, speak, drop, drop, flood, grow]


async def all_begin(server: Server, host: str) -> bool:
    """Return whether a client can begin as many sessions as it may have; one that was left would have a place."""
    async with contextlib.AsyncExitStack() as stack:
        for _ in range(SHARE):
            client = await stack.enter_async_context(connect(server, host))
            if "error" in await said(client, **START):
                return False
    return True


async def attack(server: Server, seconds: float, finding: Finding) -> None:
    lines = [pair.source for pair in generate(40, split="test", max_words=12)]
    expected = {line: await translated(server, line) for line in lines}
    end = time.monotonic() + seconds

    async def act(number: int) -> None:
        draw = random.Random(number)
        while time.monotonic() < end:
            step = ACTS[number % len(ACTS)]
            try:
                await step(server, expected, draw, finding)
            except (OSError, TimeoutError, websockets.WebSocketException) as error:
                if step in (speak, grow):
                    finding.fail(f"{step.__name__}: {type(error).__name__}: {error}")
            finding.figures[step.__name__] = int(finding.figures.get(step.__name__, 0)) + 1

    health = asyncio.create_task(watch_health(server, finding))
    disconnected, *_ = await asyncio.gather(read_nothing(server, lines), *map(act, range(len(ACTS))))
    if not disconnected:
        finding.fail(f"a client that read nothing was connected after {UNREAD_SECONDS:g} seconds")
    health.cancel()
    for host in ("127.0.0.1", *OTHERS):
        end = time.monotonic() + ENDED_SECONDS
        while not await all_begin(server, host):
            if time.monotonic() > end:
                finding.fail(f"sessions of {host} are left")
                break
    for line, text in expected.items():
        if await translated(server, line) != text:
            finding.fail(f"{line!r} is translated differently afterwards")


def live_attacked(run: Path, work: Path, seconds: float) -> Finding:
    """Attack `/live` of a real server."""
    finding = Finding("live translation: dropped connections, unread answers, floods, growing texts of other clients")
    with serving(run, work) as server:
        asyncio.run(attack(server, seconds, finding))
        if b"Traceback" in (log := server.log.read_bytes()):
            finding.fail(log[-500:].decode(errors="replace"))
    return finding
