"""The server of LibreTranslate and this one with the same model, in turn: responses per second, times and memory.

    python -m venv other && other/bin/pip install libretranslate==1.9.6 spacy
    python -m benchmarks.libretranslate RUN lines.txt --python other/bin/python [--seconds 5] [--rounds 2]

The run has a joint vocabulary. Its model is exported to CTranslate2 with float32 weights and packed for Argos
Translate, with the run's beam. LibreTranslate downloads a model that splits texts into sentences; here spaCy's rules do
it, which need none. Everything else is as either server has it by default. The clients run on the same machine and use
the servers in turn, for each number of clients and each length of the texts.

On a busy machine, give LibreTranslate `--workers` as many as cores. By default it translates one text after another
with several threads, which wait for each other actively: if another program uses a core, a response takes a second.
"""

import argparse
import http.client
import itertools
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from translucid.runs.run_folder import RunFolder

PORTS = {"Translucid": 5061, "LibreTranslate": 5062}


class Cell(NamedTuple):
    """The responses of one server to one kind of load."""

    per_second: float
    median: float
    """The median response time in seconds."""
    p95: float


def pack(run: RunFolder, folder: Path, python: Path) -> None:
    """Write a run as an installed package of Argos Translate, and once more for the other direction.

    With fewer than two packages, LibreTranslate downloads the list of all.
    """
    source, target = run.configuration().data.languages
    folder.mkdir(parents=True)
    export = [sys.executable, "-m", "translucid", "export", str(run.path), str(folder / "model")]
    subprocess.run([*export, "--quantization", "float32"], check=True)
    settings_file = folder / "model" / "config.json"
    settings = json.loads(settings_file.read_text()) | {"add_source_eos": True}  # Argos Translate adds no end token
    settings_file.write_text(json.dumps(settings))
    (folder / "sentencepiece.model").write_bytes((run.path / "tokenizer.model").read_bytes())
    program = "import sys, spacy; spacy.blank(sys.argv[1]).to_disk(sys.argv[2])"
    subprocess.run([python, "-c", program, str(source), folder / "spacy"], check=True)
    other_folder = folder.with_name("back")
    shutil.copytree(folder, other_folder)
    for package, codes in ((folder, (source, target)), (other_folder, (target, source))):
        facts = {"package_version": "1", "argos_version": "1.5", "from_code": codes[0], "to_code": codes[1]}
        (package / "metadata.json").write_text(json.dumps(facts | {"from_name": codes[0], "to_name": codes[1]}))


@contextmanager
def served(name: str, command: Sequence[str | Path], environment: dict[str, str], log: Path) -> Iterator[int]:
    """Run a server; yield the id of its process when it answers."""
    with log.open("w") as messages:
        process = subprocess.Popen(command, env={**os.environ, **environment}, stdout=messages, stderr=messages)
    try:
        for _ in range(600):
            if process.poll() is not None:
                sys.exit(f"{name} has ended: {log.read_text()[-2000:]}")
            try:
                if request(PORTS[name], "GET", "/health") == {"status": "ok"}:
                    break
            except OSError:
                time.sleep(0.2)
        else:
            sys.exit(f"{name} does not answer: {log.read_text()[-2000:]}")
        yield process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def request(port: int, method: str, path: str, fields: dict[str, str] | None = None) -> dict[str, str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    try:
        body = json.dumps(fields) if fields else None
        connection.request(method, path, body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        content = response.read()
        if response.status != 200:
            sys.exit(f"port {port} answers {response.status}: {content[:200]!r}")
        return json.loads(content)
    finally:
        connection.close()


def translate(port: int, text: str, languages: tuple[str, str]) -> str:
    source, target = languages
    return request(port, "POST", "/translate", {"q": text, "source": source, "target": target})["translatedText"]


def load(port: int, texts: Iterator[str], clients: int, seconds: float, languages: tuple[str, str]) -> Cell:
    """Send texts from several clients for some seconds."""
    times: list[float] = []
    lock = threading.Lock()
    started = time.perf_counter()

    def client() -> None:
        while (before := time.perf_counter()) < started + seconds:
            with lock:
                text = next(texts)
            translate(port, text, languages)
            times.append(time.perf_counter() - before)

    threads = [threading.Thread(target=client) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - started
    return Cell(len(times) / took, statistics.median(times), sorted(times)[int(0.95 * len(times))])


def texts_of(lines: Sequence[str], sentences: int, seed: int) -> Iterator[str]:
    """Yield texts of some random sentences each; both servers get the same ones."""
    generator = random.Random(seed)
    while True:
        yield " ".join(generator.choices(lines, k=sentences))


def memory_mib(pid: int) -> float:
    """Return the resident memory of a process and of those that it has started."""
    status = Path(f"/proc/{pid}/status").read_text()
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024 + sum(memory_mib(int(child)) for child in children)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("lines", type=Path, help="sentences, one a line")
    parser.add_argument("--python", type=Path, required=True, help="Python with LibreTranslate and spaCy")
    parser.add_argument("--seconds", type=float, default=5, help="of each load")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument(
        "--workers", type=int, help="LibreTranslate's threads for texts, each of which then has one core"
    )
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 4, 16])
    parser.add_argument("--sentences", type=int, nargs="+", default=[1, 5, 20], help="in a text")
    arguments = parser.parse_args()
    run = RunFolder(arguments.run)
    configuration = run.configuration()
    languages = configuration.data.languages
    lines = [line for line in arguments.lines.read_text(encoding="utf-8").splitlines() if line.strip()]
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        pack(run, scratch / "packages" / "model", arguments.python)
        python = arguments.python.absolute()
        own = [sys.executable, "-m", "translucid", "serve", str(run.path), "--log-format", "off", "--port"]
        others = [python, python.with_name("libretranslate"), "--disable-web-ui", "--port"]
        environment = {f"XDG_{kind}_HOME": str(scratch / kind) for kind in ("DATA", "CONFIG", "CACHE")}
        environment |= {
            "ARGOS_PACKAGES_DIR": str(scratch / "packages"),
            "ARGOS_CHUNK_TYPE": "SPACY",
            "ARGOS_BEAM_SIZE": str(configuration.decoding.beam),
        }
        if arguments.workers:
            environment |= {"ARGOS_INTER_THREADS": str(arguments.workers), "ARGOS_INTRA_THREADS": "1"}
        for kind in ("DATA", "CONFIG", "CACHE"):
            (scratch / kind).mkdir()
        # The packages have their own rules, so that it need not download those for all languages.
        cached_rules = scratch / "CACHE" / "argos-translate" / "spacy" / "senter" / "model"
        cached_rules.parent.mkdir(parents=True)
        cached_rules.touch()
        # The conversion is over before the measurements, as in any start but the first.
        translate_once = [sys.executable, "-m", "translucid", "translate", str(run.path), lines[0]]
        subprocess.run(translate_once, check=True, env={**os.environ, "XDG_CACHE_HOME": str(scratch)})
        with (
            served("Translucid", [*own, str(PORTS["Translucid"])], {"XDG_CACHE_HOME": name}, scratch / "own.log") as a,
            served("LibreTranslate", [*others, str(PORTS["LibreTranslate"])], environment, scratch / "other.log") as b,
        ):
            compare(lines, languages, {"Translucid": a, "LibreTranslate": b}, arguments)


def compare(
    lines: Sequence[str], languages: tuple[str, str], pids: dict[str, int], arguments: argparse.Namespace
) -> None:
    """Print the figures of both servers."""
    outputs = {name: [translate(PORTS[name], line, languages) for line in lines[:50]] for name in pids}
    same = sum(map(str.__eq__, *outputs.values()))
    print(f"the same translation: {same} of {len(outputs['Translucid'])}")
    print("memory before: " + ", ".join(f"{name} {memory_mib(pid):.0f} MiB" for name, pid in pids.items()))
    print("| sentences in a text | clients | server | responses/s | median, ms | p95, ms | ratio |")
    print("| ---: | ---: | --- | ---: | ---: | ---: | ---: |")
    for sentences, clients in itertools.product(arguments.sentences, arguments.clients):
        cells: dict[str, list[Cell]] = {name: [] for name in pids}
        for number in range(arguments.rounds):
            for name in pids:
                texts = texts_of(lines, sentences, number)
                cells[name].append(load(PORTS[name], texts, clients, arguments.seconds, languages))
        means = {name: Cell(*map(statistics.mean, zip(*of_server, strict=True))) for name, of_server in cells.items()}
        ratio = means["Translucid"].per_second / means["LibreTranslate"].per_second
        for name, cell in means.items():
            times = f"{1000 * cell.median:.0f} | {1000 * cell.p95:.0f}"
            print(
                f"| {sentences} | {clients} | {name} | {cell.per_second:.1f} | {times} | {ratio:.1f} |",
                flush=True,
            )
    print("memory after: " + ", ".join(f"{name} {memory_mib(pid):.0f} MiB" for name, pid in pids.items()))
    print(f"load of the machine: {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
