"""Many people speak at once to a running server: how long a word takes, and whether all get what one alone gets.

    translucid serve runs/eng-spa &
    python -m benchmarks.live_load lines.txt [--sessions 50] [--rate 3] [--seconds 120]

Each session sends one line after another over a WebSocket, a word at a time, at this rate. The sessions begin at
different times. The time of a word is that from when it was to be sent until the answer to it, so that a server that
falls behind shows in it. First every line is translated by one session alone; each later output must equal that one.
With --pid, the processor time of the server for each word is read from /proc, which other programs change less.
"""

import argparse
import asyncio
import json
import os
import time
from pathlib import Path
from typing import Any

import websockets

from benchmarks.serving_load import memory, report

START = {"policy": "alignatt", "lag": 2}


async def said(socket: websockets.ClientConnection, **message: Any) -> dict[str, Any]:
    """Send a message, and return the answer."""
    await socket.send(json.dumps(message))
    answer: dict[str, Any] = json.loads(await socket.recv())
    if "error" in answer:
        raise RuntimeError(answer["error"])
    return answer


async def translated(socket: websockets.ClientConnection, line: str) -> str:
    """Return the translation of a line that is sent at once."""
    return (await said(socket, text=line, finish=True))["text"].strip()


async def speak(
    address: str, start: dict[str, Any], lines: list[str], *, delay: float, rate: float, seconds: float
) -> tuple[list[float], dict[str, str]]:
    """Send lines word by word; return the seconds of each word, and the translations of the lines."""
    times: list[float] = []
    translations: dict[str, str] = {}
    async with websockets.connect(address) as socket:
        await said(socket, **start)
        due = time.perf_counter() + delay
        end = due + seconds
        for line in lines:
            written = ""
            words = line.split()
            for number, word in enumerate(words, 1):
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
                answer = await said(socket, text=word + " ", finish=number == len(words))
                times.append(time.perf_counter() - due)
                written += answer["text"]
                due += 1 / rate
            translations[line] = written.strip()
            if due > end:
                break
    return times, translations


def processor_seconds(pid: int | None) -> float:
    """Return the processor time that a process has used."""
    if pid is None:
        return float("nan")
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def load(arguments: argparse.Namespace) -> None:
    address = arguments.address.replace("http", "ws", 1) + "/live"
    start = {**START, "source": arguments.source, "target": arguments.target, "lag": arguments.lag}
    lines = [
        line for line in arguments.lines.read_text(encoding="utf-8").split("\n")[: arguments.texts] if line.strip()
    ]
    expected: dict[str, str] = {}
    async with websockets.connect(address) as socket:
        await said(socket, **start)
        for line in lines:
            expected[line] = await translated(socket, line)
    before, worked = memory(arguments.pid), processor_seconds(arguments.pid)
    began = time.perf_counter()
    speakers = []
    for number in range(arguments.sessions):
        first = number * len(lines) // arguments.sessions
        rotated = [*lines[first:], *lines[:first]]
        delay = number / arguments.sessions / arguments.rate
        options = {"delay": delay, "rate": arguments.rate, "seconds": arguments.seconds}
        speakers.append(speak(address, start, rotated, **options))
    results = await asyncio.gather(*speakers)
    times: list[float] = []
    wrong = 0
    for session_times, translations in results:
        times += session_times
        wrong += sum(expected[line] != text for line, text in translations.items())
    name = f"{arguments.sessions} sessions, {arguments.rate:g} words a second each"
    print(report(name, times, time.perf_counter() - began, memory(arguments.pid)))
    print(f"outputs that differ from those of one session alone: {wrong}; memory before: {before:.0f} MiB")
    worked = processor_seconds(arguments.pid) - worked
    print(f"processor time of the server: {1000 * worked / len(times):.1f} ms for each word")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("lines", type=Path, help="sentences to speak")
    parser.add_argument("--address", default="http://127.0.0.1:5000")
    parser.add_argument("--sessions", type=int, default=50)
    parser.add_argument("--rate", type=float, default=3.0, help="words a second of each session")
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--texts", type=int, default=100, help="number of distinct lines")
    parser.add_argument("--lag", type=int, default=2)
    parser.add_argument("--source", default="en")
    parser.add_argument("--target", default="es")
    parser.add_argument("--pid", type=int, help="process id of the server")
    asyncio.run(load(parser.parse_args()))


if __name__ == "__main__":
    main()
