"""The time from reading a word to writing, in live translation, by the number of words of the sentence heard so far.

    OMP_NUM_THREADS=1 python benchmarks/live_speed.py RUN [RUN ...] --text FILE [--processor] [--together 1 8 16]

FILE is a corpus whose sources have the run's language. Their words, without the signs that end sentences, follow each
other in sentences of 80 words, so that the time of short and of long sentences comes from the same text. `read` is
timed for each word, whether it writes or not: milliseconds of one core, median and 95th percentile.

With --processor, the time is that of the processor, which other programs on the machine change less. With --together,
the sources are read as they are by this many sessions, whose words wait at the same time, as on a server: milliseconds
of processor time for a word, from text to text.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import torch

from translucid.api.translator import Translator
from translucid.data.readers.corpus import CorpusName, read_pairs
from translucid.evaluation.system_table import markdown_table
from translucid.ground.joint_steps import Running, compute_steps
from translucid.live import POLICIES

LENGTH = 80
"""The number of words of a sentence."""
HEARD = [(1, 5), (6, 10), (11, 20), (21, 30), (31, 40), (51, 60), (71, 80)]
"""The numbers of words heard that share a row."""
LINES = 64
"""The number of sources that several sessions read."""
SIGNS = ".!?…:;"


def sentences(file: Path, count: int) -> Iterator[list[str]]:
    """Yield up to `count` sentences of `LENGTH` words of a corpus."""
    sources = (pair.source for pair in read_pairs(CorpusName.parse(str(file)).files))
    words = (word.strip(SIGNS) for word in chain.from_iterable(map(str.split, sources)))
    kept = filter(None, words)
    for _ in range(count):
        sentence = list(islice(kept, LENGTH))
        if len(sentence) < LENGTH:
            return
        yield sentence


def timed(
    translator: Translator, texts: Sequence[Sequence[str]], policy: str, lag: int, clock: Callable[[], float]
) -> list[list[float]]:
    """Return for each number of words heard, from 1, the seconds of reading that word in each text."""
    seconds: list[list[float]] = [[] for _ in range(LENGTH)]
    for words in texts:
        session = translator.live(policy=policy, lag=lag)
        for number, word in enumerate(words):
            start = clock()
            session.read(word + " ")
            seconds[number].append(clock() - start)
        if len(session.sentences) > 1:
            raise SystemExit(f"the model reads {' '.join(words[:5])} … as several sentences")
    return seconds


def together(translator: Translator, lines: Sequence[str], policy: str, lag: int, sessions: int) -> float:
    """Return the processor seconds of a word if several sessions read one each at a time."""
    queues = []
    for number in range(sessions):
        first = number * len(lines) // sessions
        queues.append(
            [(line.split(), translator.live(policy=policy, lag=lag)) for line in [*lines[first:], *lines[:first]]]
        )
    start, count = time.process_time(), 0
    for line in range(max(1, len(lines) // sessions)):
        current = [queue[line] for queue in queues]
        for position in range(max(len(words) for words, _ in current)):
            waiting = []
            for words, session in current:
                if position < len(words):
                    waiting.append(Running(spoken(session, words, position)))
                    waiting[-1].go_on()
                    count += 1
            while waiting := [running for running in waiting if running.step]:
                compute_steps(waiting)
    return (time.process_time() - start) / count


async def spoken(session: Any, words: Sequence[str], position: int) -> None:
    """Read one word of a line, the last one with its end."""
    await session.reading(words[position] + " ")
    if position == len(words) - 1:
        await session.finishing()


def main() -> None:
    """Print a table for each run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--text", type=Path, required=True, help="a corpus, such as test.tsv")
    parser.add_argument("--sentences", type=int, default=20)
    parser.add_argument("--policy", choices=POLICIES, default="alignatt")
    parser.add_argument("--lag", type=int, default=2)
    parser.add_argument("--processor", action="store_true", help="time of the processor")
    parser.add_argument("--together", type=int, nargs="+", help="numbers of sessions that read at the same time")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.together:
        lines = [pair.source for pair in islice(read_pairs(CorpusName.parse(str(arguments.text)).files), LINES)]
        for run in arguments.runs:
            translator = Translator.load(run, "cpu", "torch")
            together(translator, lines[:4], arguments.policy, arguments.lag, 2)  # warm-up
            for count in arguments.together:
                seconds = together(translator, lines, arguments.policy, arguments.lag, count)
                print(f"{run}, {count} sessions: {1000 * seconds:.1f} ms of processor time for a word", flush=True)
        return
    clock = time.process_time if arguments.processor else time.perf_counter
    texts = list(sentences(arguments.text, arguments.sentences))
    for run in arguments.runs:
        translator = Translator.load(run, "cpu", "torch")
        timed(translator, texts[:1], arguments.policy, arguments.lag, clock)  # warm-up
        seconds = timed(translator, texts, arguments.policy, arguments.lag, clock)
        rows = []
        for first, last in HEARD:
            times = list(chain.from_iterable(seconds[first - 1 : last]))
            p95 = quantiles(times, n=20)[-1]
            rows.append([f"{first} to {last}", f"{1000 * median(times):.1f}", f"{1000 * p95:.1f}"])
        parameters = sum(weight.numel() for weight in translator.model.parameters())
        kind = "processor" if arguments.processor else "wall"
        print(
            f"{run}: {parameters / 1e6:.1f} million parameters, {arguments.policy}, lag {arguments.lag}, {kind} time\n"
        )
        print(markdown_table(["words heard", "median, ms", "p95, ms"], rows))


if __name__ == "__main__":
    main()
