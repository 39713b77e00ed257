"""Claim 26: what retrieval in the decoder gains while a document is corrected.

    python benchmarks/claims/corrections.py --run RUN [--out docs/claims]
    python benchmarks/claims/corrections.py --run RUN --tune

Documents of TICO-19 and of LibreOffice's help are translated as a translator works: segment by segment, and the
reference of each segment is added to the memory of its document before the next one is translated. No segment sees its
own reference or a later one. BLEU of the second halves of the documents, with the memory alone (exact matches) and with
--knn, both with the PyTorch engine; the interval is from paired bootstrap resampling of documents. --tune does the same
for several values of T, R and λ₀ with other documents, every fourth one, which are not part of the claim.

Tatoeba's test set is then translated with a memory of all these documents, to see what is lost on general text.
"""

from __future__ import annotations

import argparse
import dataclasses
import gzip
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
from common import DATA, DOCS, table, write
from numpy.typing import NDArray
from sacrebleu.metrics import BLEU

from bitext.memory.translation_memory import TranslationMemory
from bitext.pair import Pair
from translucid.api.translator import Translator
from translucid.data.readers.corpus import read_pairs
from translucid.data.text_pipeline import translatable
from translucid.decoding.decoding_options import DecodingOptions
from translucid.kernels.devices import configure_process
from translucid.retrieval.engine import MIXTURE, Retrieval, RetrievalEngine
from translucid.retrieval.mixture import Mixture

Document = Sequence[Pair]
BEAM = DecodingOptions(beam=5)
SHORTEST, LONGEST = 16, 40
"""The numbers of segments of a document; the rest of a longer one is left out."""
MOST_DOCUMENTS, MOST_TUNED = 20, 6
"""The documents of each corpus that are translated, and for tuning."""
TIMED, SHORT = 3, 24
"""The documents that are translated segment by segment for the time, and the number of their segments."""
TUNED = 4
"""Every fourth document is for tuning."""
GRID = [
    (bandwidth, reach, weight) for bandwidth in (0.03, 0.05, 0.1) for reach in (0.4, 0.6, 0.9) for weight in (0.8, 0.9)
]
SAMPLES = 1000
GENERAL = 400
"""The number of sentences of Tatoeba's test set."""
COMMAND = "python benchmarks/claims/corrections.py"


def tico() -> list[Document]:
    """Return the documents of TICO-19: a `tuid` is DOCUMENT:NUMBER."""
    by_name: dict[str, list[Pair]] = {}
    with gzip.open(DATA / "tico19-eng-spa" / "all.en-es.tmx.gz") as stream:
        for unit in ElementTree.parse(stream).getroot().iter("tu"):
            source, target = ("".join(segment.itertext()) for segment in unit.iter("seg"))
            by_name.setdefault(unit.attrib["tuid"].partition(":")[0], []).append(Pair(source, target))
    return [*by_name.values()]


def libreoffice() -> list[Document]:
    """Return the documents of LibreOffice's help."""
    by_name: dict[str, list[Pair]] = {}
    with gzip.open(DATA / "libreoffice-help" / "en-es.tsv.gz", "rt", encoding="utf-8") as stream:
        for line in stream:
            source, target, name = line.rstrip("\n").split("\t")
            by_name.setdefault(name, []).append(Pair(source, target))
    return [*by_name.values()]


def selected(documents: Sequence[Document], *, tuned: bool, most: int) -> list[Document]:
    """Return the beginnings of documents that are long enough: those for tuning, or the others."""
    long_enough = [document[:LONGEST] for document in documents if len(document) >= SHORTEST]
    chosen = [document for i, document in enumerate(long_enough) if (i % TUNED == 0) == tuned]
    return chosen[:: max(len(chosen) // most, 1)][:most]


class Replayed(RetrievalEngine):
    """An engine for the segments of a document together, each with the pairs that its memory had at its time."""

    pairs: dict[tuple[int, ...], tuple[Pair, ...]]
    """The similar pairs of each sentence, by the ids of its source."""

    def similar(self, ids: list[int]) -> tuple[Pair, ...]:
        """Return the similar pairs of a sentence."""
        return self.pairs[tuple(ids)]


@dataclass(frozen=True)
class ReplayedRetrieval(Retrieval):
    """The memory of a document at each of its segments."""

    pairs: dict[tuple[int, ...], tuple[Pair, ...]]

    def engine(self, translator: Translator) -> RetrievalEngine:
        """Return the engine for all segments."""
        engine = Replayed(translator, self.memory, self.mixture)
        engine.pairs = self.pairs
        return engine


def replay(translator: Translator, document: Document, mixtures: Sequence[Mixture | None]) -> list[list[str]]:
    """Return the translations of the second half of a document with each mixture, or without retrieval.

    The memory grows segment by segment. What each segment finds in it is looked up at its time, and all segments are
    translated together afterwards, which changes no translation.
    """
    half = len(document) // 2
    exact: list[str | None] = []
    pairs: dict[tuple[int, ...], tuple[Pair, ...]] = {}
    with memory_of(document[:half]) as memory:
        engine = translator.with_knn(memory).retrieval_engine
        for pair in document[half:]:
            match = memory.exact(pair.source)
            exact.append(match and match.target)
            if not match:
                (pieces,) = translator.pipeline.pieces([pair.source], split=True)
                for ids in translator.pipeline.inputs(translatable(pieces)):
                    # A sentence that occurs again as a part of another segment keeps what it has found first.
                    pairs.setdefault(tuple(ids), engine.similar(ids))
            memory.add([pair], "reference")
        sources = [pair.source for pair, text in zip(document[half:], exact, strict=True) if text is None]
        results = []
        for mixture in mixtures:
            system = translator
            if mixture:
                system = dataclasses.replace(translator, retrieval=ReplayedRetrieval(memory, mixture, pairs))
            translations = iter(system.translate(sources, BEAM))
            results.append([next(translations).text if text is None else text for text in exact])
    return results


@contextmanager
def memory_of(pairs: Sequence[Pair]) -> Iterator[TranslationMemory]:
    """Make a memory of some pairs."""
    with (
        tempfile.TemporaryDirectory() as folder,
        TranslationMemory.open(Path(folder) / "a.memory", write=True) as memory,
    ):
        memory.add(pairs, "reference")
        yield memory


def seconds_of(translator: Translator, document: Document, mixture: Mixture | None) -> float:
    """Return the processor time of the second half of a document, translated segment by segment."""
    half, seconds = len(document) // 2, 0.0
    with memory_of(document[:half]) as memory:
        if mixture:
            translator = translator.with_knn(memory, **dataclasses.asdict(mixture))
        for pair in document[half:]:
            start = time.process_time()
            if not memory.exact(pair.source):
                translator.translate(pair.source, BEAM)
            seconds += time.process_time() - start
            memory.add([pair], "reference")
    return seconds


def counts_of(documents: Sequence[Document], replays: Sequence[Sequence[str]]) -> NDArray[np.int64]:
    """Return the n-gram counts of BLEU of the second half of each document [documents, counts]."""
    rows = []
    for document, texts in zip(documents, replays, strict=True):
        references = [pair.target for pair in document[len(document) // 2 :]]
        rows.append(np.array(BLEU()._extract_corpus_statistics(texts, [references])).sum(0))
    return np.array(rows)


def bleu_of(counts: NDArray[np.int64]) -> float:
    """Return the BLEU of documents [n, counts]."""
    return float(BLEU()._compute_score_from_stats(counts.sum(0).tolist()).score)


def interval(plain: NDArray[np.int64], retrieving: NDArray[np.int64]) -> tuple[float, float]:
    """Return the 95 % interval of the difference by resampling documents."""
    samples = np.random.default_rng(1).integers(0, len(plain), (SAMPLES, len(plain)))
    differences = [bleu_of(retrieving[sample]) - bleu_of(plain[sample]) for sample in samples]
    low, high = np.quantile(differences, [0.025, 0.975])
    return float(low), float(high)


def tune(translator: Translator) -> None:
    """Print BLEU of the documents for tuning, for each T, R and λ₀."""
    mixtures = [None, *(Mixture(*values) for values in GRID)]
    for name, documents in (("TICO-19", tico()), ("LibreOffice's help", libreoffice())):
        chosen = selected(documents, tuned=True, most=MOST_TUNED)
        replays = [replay(translator, document, mixtures) for document in chosen]
        for mixture, texts in zip(mixtures, zip(*replays, strict=True), strict=True):
            print(f"{name}: {mixture or 'memory alone'}: {bleu_of(counts_of(chosen, texts)):.2f}", flush=True)


def claim(translator: Translator, docs: Path) -> None:
    """Write the page."""
    corpora = {
        "TICO-19": selected(tico(), tuned=False, most=MOST_DOCUMENTS),
        "LibreOffice's help": selected(libreoffice(), tuned=False, most=MOST_DOCUMENTS),
    }
    rows = []
    for name, documents in corpora.items():
        replays = [replay(translator, document, [None, MIXTURE]) for document in documents]
        plain, retrieving = zip(*replays, strict=True)
        counts = counts_of(documents, plain), counts_of(documents, retrieving)
        scores, (low, high) = list(map(bleu_of, counts)), interval(*counts)
        changed = [a != b for pair in replays for a, b in zip(*pair, strict=True)]
        timed = [document[:SHORT] for document in documents[1 : 1 + TIMED]]
        seconds = [sum(seconds_of(translator, document, option) for document in timed) for option in (None, MIXTURE)]
        rows.append(
            [
                *(name, f"{len(documents)}", f"{len(changed):,}", f"{scores[0]:.1f}", f"{scores[1]:.1f}"),
                *(f"{scores[1] - scores[0]:+.1f}", f"{low:+.1f} to {high:+.1f}", f"{np.mean(changed):.0%}"),
                f"{seconds[1] / seconds[0]:.2f}",
            ]
        )
        print(rows[-1], flush=True)
    head = ["corpus", "documents", "segments", "memory", "--knn", "difference", "95 % interval", "changed", "time"]
    write("26-corrections.md", page(translator, table(head, rows), general(translator, corpora)), docs)


def general(translator: Translator, corpora: dict[str, list[Document]]) -> str:
    """Return what a memory of all documents changes in general text."""
    pairs = list(read_pairs(DATA / "tatoeba-eng-spa" / "test.tsv"))[:GENERAL]
    sources, references = [pair.source for pair in pairs], [[pair.target for pair in pairs]]
    rows = []
    for name, documents in corpora.items():
        with memory_of([pair for document in documents for pair in document]) as memory:
            scores, seconds, texts = [], [], []
            for system in (translator, translator.with_knn(memory)):
                start = time.process_time()
                translations = system.translate(sources, BEAM)
                seconds.append(time.process_time() - start)
                texts.append([translation.text for translation in translations])
                scores.append(BLEU().corpus_score(texts[-1], references).score)
            similar = sum(any(hypothesis.retrieved for _, hypothesis in text.parts) for text in translations)
            changed = sum(a != b for a, b in zip(*texts, strict=True))
            figures = (f"{len(memory):,}", f"{similar}", f"{changed}", f"{scores[0]:.1f}", f"{scores[1]:.1f}")
            rows.append([name, *figures, f"{seconds[1] / seconds[0]:.2f}"])
    head = ["memory of", "entries", "with similar segments", "changed", "without", "--knn", "time"]
    return table(head, rows)


def page(translator: Translator, documents: str, of_general: str) -> str:
    """Return the page."""
    metric = BLEU()
    metric.corpus_score(["a"], [["a"]])
    parameters = sum(parameter.numel() for parameter in translator.model.parameters()) / 1e6
    return f"""# Claim 26: retrieval in the decoder while a document is corrected

An English-Spanish translator of {parameters:.1f} million weights that was trained on Tatoeba's pairs. Each document is
translated segment by segment, and its references are added to its memory as corrections. The table shows BLEU
({metric.get_signature()}) of the second halves of the documents with a beam of 5, for the memory alone, which only uses
exact matches, and with `--knn` (T = {MIXTURE.bandwidth:g}, R = {MIXTURE.reach:g}, λ₀ = {MIXTURE.weight:g}, chosen on
other documents). Documents of fewer than {SHORTEST} segments are left out, and the first {LONGEST} segments of longer
ones are used, of at most {MOST_DOCUMENTS} documents of each corpus. The interval is from paired
bootstrap resampling of whole documents. *changed* is the share of the segments that `--knn` translates in another way,
*time* the processor time relative to the same engine without it, segment by segment, for {TIMED} documents
of up to {SHORT} segments.

{documents}
The first {GENERAL} sentences of Tatoeba's test set with a memory of all these documents:

{of_general}
To reproduce: `{COMMAND} --run RUN`, and `--tune` for T, R and λ₀.
"""


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--tune", action="store_true")
    parser.add_argument("--out", type=Path, default=DOCS)
    arguments = parser.parse_args()
    configure_process()
    translator = Translator.load(arguments.run, "cpu", "torch")
    if arguments.tune:
        tune(translator)
    else:
        claim(translator, arguments.out)


if __name__ == "__main__":
    main()
