"""Translations with a largest number of characters: how many fit, and BLEU and chrF against other ways.

    python benchmarks/length_limits.py RUN TEST.tsv [--sentences 300] [--shares 0.8 0.9 1.0]

The limit of each sentence is a share of the length of its reference. Four systems translate:

- free: without a limit;
- cut: the same, cut off at the limit;
- n-best: the best of 10 hypotheses that fits, or else the shortest;
- max_length: the length-controlled search, `Translator.translate(max_length=...)`.

BLEU and chrF are of all sentences, whether they fit or not.
"""

import argparse
import time
from pathlib import Path

import sacrebleu

from bitext.words import count_characters
from translucid import Translator
from translucid.data.document_context import Source

HEAD = "| system | within | BLEU | chrF | CPU seconds |\n| - | -: | -: | -: | -: |"
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("run")
parser.add_argument("test")
parser.add_argument("--sentences", type=int, default=300)
parser.add_argument("--shares", type=float, nargs="+", default=[0.8, 0.9, 1.0])
parser.add_argument("--candidates", type=int, default=10)


def report(name: str, outputs: list[str], limits: list[int], references: list[str], seconds: float) -> None:
    """Print the results of one system."""
    fits = [count_characters(text) <= limit for text, limit in zip(outputs, limits, strict=True)]
    bleu, chrf = sacrebleu.corpus_bleu(outputs, [references]), sacrebleu.corpus_chrf(outputs, [references])
    print(
        f"| {name} | {100 * sum(fits) / len(fits):.1f} | {bleu.score:.1f} | {chrf.score:.1f} | {seconds:.0f} |",
        flush=True,
    )


def chosen(alternatives: list[str], limit: int) -> str:
    """Return the best alternative that fits, or the shortest."""
    fitting = [text for text in alternatives if count_characters(text) <= limit]
    return fitting[0] if fitting else min(alternatives, key=count_characters)


def main() -> None:
    """Translate with all systems."""
    arguments = parser.parse_args()
    lines = Path(arguments.test).read_text(encoding="utf-8").splitlines()[: arguments.sentences]
    rows = [line.split("\t")[:2] for line in lines]
    sources, references = [row[0] for row in rows], [row[1] for row in rows]
    translator = Translator.load(arguments.run)
    start = time.process_time()
    free = [translation.text for translation in translator.translate(sources)]
    free_seconds = time.process_time() - start
    wide = translator.translate(sources, beam=arguments.candidates, nbest=arguments.candidates)
    for share in arguments.shares:
        limits = [max(int(share * count_characters(reference)), 1) for reference in references]
        print(f"\nlimit: {share:.0%} of the reference\n\n{HEAD}")
        report("free", free, limits, references, free_seconds)
        report(
            "cut", [text[:limit] for text, limit in zip(free, limits, strict=True)], limits, references, free_seconds
        )
        nbest = [chosen(translation.alternatives, limit) for translation, limit in zip(wide, limits, strict=True)]
        report("n-best", nbest, limits, references, 0)
        start = time.process_time()
        texts = [Source(source, (), limit) for source, limit in zip(sources, limits, strict=True)]
        ours = [translation.text for translation in translator.stream(texts)]
        report("max_length", ours, limits, references, time.process_time() - start)
        both = [i for i, limit in enumerate(limits) if count_characters(ours[i]) <= limit < count_characters(free[i])]
        print(f"\nof the {len(both)} that are made to fit:")
        some = [limits[i] for i in both], [references[i] for i in both]
        report("cut", [free[i][: limits[i]] for i in both], *some, 0)
        report("max_length", [ours[i] for i in both], *some, 0)


if __name__ == "__main__":
    main()
