"""The time from reading a word to writing, in live translation, by the number of words of the sentence heard so far.

    OMP_NUM_THREADS=1 python benchmarks/live_speed.py RUN [RUN ...] --text FILE [--processor]

FILE is a corpus whose sources have the run's language. Their words, without the signs that end sentences, follow each
other in sentences of 80 words, so that the time of short and of long sentences comes from the same text. `read` is
timed for each word, whether it writes or not: milliseconds of one core, median and 95th percentile.

With --processor, the time is that of the processor, which other programs on the machine change less.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from statistics import median, quantiles

import torch

from translucid.api.translator import Translator
from translucid.data.readers.corpus import CorpusName, read_pairs
from translucid.evaluation.system_table import markdown_table
from translucid.live import POLICIES

LENGTH = 80
"""The number of words of a sentence."""
HEARD = [(1, 5), (6, 10), (11, 20), (21, 30), (31, 40), (51, 60), (71, 80)]
"""The numbers of words heard that share a row."""
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


def main() -> None:
    """Print a table for each run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--text", type=Path, required=True, help="a corpus, such as test.tsv")
    parser.add_argument("--sentences", type=int, default=20)
    parser.add_argument("--policy", choices=POLICIES, default="alignatt")
    parser.add_argument("--lag", type=int, default=2)
    parser.add_argument("--processor", action="store_true", help="time of the processor")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
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
