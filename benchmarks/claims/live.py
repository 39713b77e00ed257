"""Claim 23: live translation by attention, against wait-k, local agreement and whole sentences.

    python benchmarks/claims/live.py RUN [RUN ...] [--processes 2] [--tests NAME ...] [--sentences 100] [--quick]

Each sentence of the test sets in the languages of the runs is translated word by word, by each policy at several lags:
BLEU and chrF, and the lagging in source words. Runs of one language that were trained with `training.prefixes` are
compared with those that were not; several runs of a kind are its seeds. Test sets come from the folder
TRANSLUCID_DATA; those that it lacks are left out. Results are cached in runs/claims/live, so that an interrupted
command continues.

At equal lagging, a policy is represented by its smallest lag at which it lags at least as much as AlignAtt: it never
has less time. The p-values are those of paired bootstrap resampling between these two.

--quick takes the first 20 sentences and two lags of each policy; its figures mean nothing and are written beside the
results. So are those with --tests or --sentences, which take some of the tests, or their first sentences.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cached_property
from itertools import compress
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import matplotlib.pyplot as plt
import torch
from common import DATA, DOCS, table, write
from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.significance import PairedTest
from shared_continuations import run_together, share_continuations

from bitext.languages import usual_code
from bitext.pair import Pair
from bitext.words import words_of
from translucid.api.fitting.alignment_fitting import choose_alignment
from translucid.api.translator import Translator
from translucid.data.readers.corpus import CorpusName, read_pairs, sources_of, targets_of
from translucid.data.seen_sentences import SeenSentences
from translucid.decoding.decoding_options import DecodingOptions
from translucid.ground.atomic import write_atomically
from translucid.ground.console import Console
from translucid.ground.errors import UserError
from translucid.live.delays import Latency, latency, mean_latency
from translucid.live.session import LiveSession
from translucid.runs.run_folder import RunFolder

COMMAND = "python benchmarks/claims/live.py RUN ..."
CHUNK = 100
"""The number of sentences whose results are in one file."""
WORDS = range(12, 31)
"""The source words of the sentences for which the goal is set."""
MOST_LAGGING = 4.0
"""The goal: at most this much lagging, in words, and a loss of at most 1 BLEU."""
SIGNS = ".!?…"


class Setting(NamedTuple):
    """A policy and its lag."""

    policy: str
    lag: int


LAGS = {
    "alignatt": (1, 2, 3, 4, 6),
    "edatt": (1, 2, 4),
    "wait-k": (1, 2, 3, 4, 5, 7),
    "agreement": (1, 2, 3),
    "whole": (0,),
}
SETTINGS = [Setting(policy, lag) for policy, lags in LAGS.items() for lag in lags]
WHOLE = Setting("whole", 0)
NAMES = {"alignatt": "AlignAtt", "edatt": "EDAtt", "wait-k": "wait-k", "agreement": "local agreement"}


class Test(NamedTuple):
    """A test set."""

    name: str
    corpus: str
    """Its name in the folder of corpora."""
    unseen: bool = False
    """Whether only sentences of `WORDS` words are measured that are not in the training text."""
    lowercase: bool = False
    """Whether case is ignored, as its text has none."""


TESTS = {
    ("en", "de"): [
        Test("Multi30k 2016", "multi30k-raw/test_2016_flickr.{en,de}.gz"),
        Test("Multi30k 2017", "multi30k-raw/test_2017_flickr.{en,de}.gz"),
        Test("Multi30k COCO", "multi30k-raw/test_2017_mscoco.{en,de}.gz"),
        Test("Multi30k 2018", "multi30k-raw/test_2018_flickr.{en,de}.gz"),
        Test("talks", "nmt_iwslt/talks.{en,de}", lowercase=True),
    ],
    ("en", "es"): [
        Test("Tatoeba", "official/tatoeba-test-v2021-08-07.eng-spa.tsv.gz", unseen=True),
        Test("FLORES", "official/flores200.devtest.{eng_Latn,spa_Latn}.gz"),
        Test("phrasebook", "phrasebook/test.tsv"),
    ],
}
Outputs = dict[Setting, list[tuple[str, list[int]]]]
"""For each setting, the output of each sentence and the delays of its words."""


class Measured:
    """The outputs of a run for the sentences of a test set."""

    def __init__(self, test: Test, pairs: Sequence[Pair], outputs: Outputs) -> None:
        self.test, self.pairs, self.outputs = test, pairs, outputs

    def of_goal(self) -> Measured:
        """Return those for sentences of `WORDS` words."""
        kept = [len(words_of(pair.source)) in WORDS for pair in self.pairs]
        outputs = {setting: list(compress(rows, kept)) for setting, rows in self.outputs.items()}
        return Measured(self.test, list(compress(self.pairs, kept)), outputs)

    def texts(self, setting: Setting) -> list[str]:
        """Return the outputs of a setting."""
        return [text for text, _ in self.outputs[setting]]

    @cached_property
    def references(self) -> list[str]:
        """The references."""
        return targets_of(self.pairs)

    @cached_property
    def scores(self) -> dict[Setting, tuple[float, float]]:
        """BLEU and chrF of each setting."""
        bleu, chrf = self._metrics()
        scores = {}
        for setting in self.outputs:
            texts, references = self.texts(setting), [self.references]
            scores[setting] = bleu.corpus_score(texts, references).score, chrf.corpus_score(texts, references).score
        return scores

    @cached_property
    def latencies(self) -> dict[Setting, Latency]:
        """The mean latencies of each setting."""
        means = {}
        for setting, rows in self.outputs.items():
            latencies = []
            for pair, (_, delays) in zip(self.pairs, rows, strict=True):
                words, reference = len(words_of(pair.source)), len(words_of(pair.target))
                latencies.append(latency(delays, words, reference))
            mean, _ = mean_latency(latencies)
            means[setting] = mean or Latency(0.0, 0.0, 0.0)
        return means

    def empty(self, setting: Setting) -> int:
        """Return the number of empty outputs, which have no latency."""
        return sum(not delays for _, delays in self.outputs[setting])

    def p_value(self, setting: Setting, other: Setting) -> float:
        """Return the p-value of the difference in BLEU of two settings by paired bootstrap resampling."""
        if self.texts(setting) == self.texts(other):
            return 1.0  # sacreBLEU counts differences above the observed one, none of which is above 0
        bleu, _ = self._metrics()
        systems = [("A", self.texts(setting)), ("B", self.texts(other))]
        _, scores = PairedTest(systems, {"BLEU": bleu}, [self.references], "bs")()  # type: ignore[arg-type]
        return float(scores["BLEU"][1].p_value)

    def _metrics(self) -> tuple[BLEU, CHRF]:
        return BLEU(lowercase=self.test.lowercase), CHRF(lowercase=self.test.lowercase)


def translate(translator: Translator, sources: Sequence[str], settings: Sequence[Setting]) -> Outputs:
    """Translate sources word by word by each setting, all sources together. Settings share what the model proposes."""

    async def outputs_of(source: str, sessions: Sequence[LiveSession]) -> list[tuple[str, list[int]]]:
        outputs = []
        for session in sessions:
            await session.reading(source)
            await session.finishing()
            outputs.append((session.text, session.delays))
        return outputs

    coroutines = []
    for source in sources:
        with share_continuations():
            sessions = [translator.live(policy=setting.policy, lag=setting.lag) for setting in settings]
        coroutines.append(outputs_of(source, sessions))
    rows = run_together(coroutines)
    return {setting: list(outputs) for setting, outputs in zip(settings, zip(*rows, strict=True), strict=True)}


_translator: Translator
"""The translator of a process of the pool."""


def _load(run: Path) -> None:
    global _translator
    torch.set_num_threads(1)
    _translator = Translator.load(run, "cpu", "torch")


def _translate_chunk(sources: list[str], settings: list[Setting], origin: dict[str, Any], file: Path) -> float:
    """Translate some sources, and write their outputs and what they are of; return the seconds of the processor."""
    start = time.process_time()
    outputs = translate(_translator, sources, settings)
    seconds = time.process_time() - start
    rows = [[*setting, outputs[setting]] for setting in settings]
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, json.dumps({**origin, "sources": sources, "seconds": seconds, "outputs": rows}).encode())
    return seconds


def measure(
    run: Path, test: Test, pairs: Sequence[Pair], settings: Sequence[Setting], folder: Path, pool: ProcessPoolExecutor
) -> Measured:
    """Translate a test set by a run, as far as that has not been done."""
    futures, files, origin = [], [], origin_of(run)
    for start in range(0, len(pairs), CHUNK):
        file = folder / run.name / test.name / f"{start}.json"
        sources = sources_of(pairs[start : start + CHUNK])
        files.append(file)
        if not file.exists() or not _is_of(json.loads(file.read_text()), sources, settings, origin):
            futures.append(pool.submit(_translate_chunk, sources, list(settings), origin, file))
    seconds = sum(future.result() for future in futures)
    if futures:
        print(f"{run.name}, {test.name}: {seconds:.0f} s of the processor, {len(settings)} settings", flush=True)
    outputs: Outputs = {setting: [] for setting in settings}
    for file in files:
        for policy, lag, rows in json.loads(file.read_text())["outputs"]:
            if (policy, lag) in outputs:
                outputs[Setting(policy, lag)] += rows
    return Measured(test, pairs, outputs)


def origin_of(run: Path) -> dict[str, Any]:
    """Return what the outputs of a run depend on: its model, and what it reads live."""
    folder = RunFolder(run)
    configuration = folder.configuration()
    live = {"live": configuration.live.model_dump(), "alignment": configuration.alignment.model_dump()}
    return {"model": folder.model_digest(), **live}


def _is_of(record: dict[str, Any], sources: list[str], settings: Sequence[Setting], origin: dict[str, Any]) -> bool:
    stored = {(policy, lag) for policy, lag, _ in record["outputs"]}
    is_same_run = all(record.get(name) == value for name, value in origin.items())
    return is_same_run and record["sources"] == sources and stored >= {*settings}


def choose(run: Path) -> list[str]:
    """Let a run of an older version choose its attention and thresholds; return them as a row."""
    configuration = RunFolder(run).configuration()
    if configuration.live.attention is None:
        choose_alignment(run, console=Console(stderr=True), device="cpu")
        configuration = RunFolder(run).configuration()
    live = configuration.live
    return [run.name, live.attention or "that of word alignments", " ".join(f"{alpha:.2f}" for alpha in live.alpha)]


class Group(NamedTuple):
    """Runs that differ only in their seeds."""

    languages: tuple[str | None, str | None]
    prefixes: float
    """The share of cut training pairs, `training.prefixes`."""

    @property
    def name(self) -> str:
        """What the pairs of the training were."""
        return f"{self.prefixes:.0%} prefixes" if self.prefixes else "whole sentences"


def grouped(runs: Sequence[Path]) -> dict[Group, list[Path]]:
    """Return runs by group, those trained on whole sentences first."""
    groups = defaultdict[Group, list[Path]](list)
    for run in runs:
        configuration = RunFolder(run).configuration()
        source, target = (code and usual_code(code) for code in configuration.data.languages)
        groups[Group((source, target), configuration.training.prefixes)].append(run)
    return dict(sorted(groups.items(), key=lambda item: (str(item[0].languages), item[0].prefixes)))


def test_pairs(test: Test, run: Path, sentences: int | None) -> list[Pair]:
    """Return the pairs of a test set, or none if it is absent."""
    name = CorpusName.parse(str(DATA / test.corpus))
    try:
        pairs = list(read_pairs(name.files))
    except UserError:  # there is no such file
        return []
    if test.unseen:
        index = SeenSentences.of_runs([run])
        assert index is not None
        is_unseen = [sides.none for sides in index.look_up(pairs).sides]
        pairs = [pair for pair in compress(pairs, is_unseen) if len(words_of(pair.source)) in WORDS]
    return pairs[:sentences]


def invented(translator: Translator, pairs: Sequence[Pair]) -> tuple[float, float]:
    """Return how often greedy translations of the first half of a source end it, and how many of their words differ.

    Of the words that follow the longest common beginning with the translation of the whole source, the share of all.
    Only sources whose half does not itself end with a sign.
    """
    halves, wholes = [], []
    for pair in pairs:
        words = pair.source.split()
        half = " ".join(words[: len(words) // 2])
        if len(words) >= 2 and half[-1] not in SIGNS + ",":
            halves.append(half)
            wholes.append(pair.source)
    options = DecodingOptions(beam=1)
    ends = differing = total = 0
    outputs = [result.text for result in translator.translate([*halves, *wholes], options, split=False)]
    for half, whole in zip(outputs[: len(halves)], outputs[len(halves) :], strict=True):
        ends += half.endswith(tuple(SIGNS))
        words, whole_words = half.split(), whole.split()
        common = next((i for i, pair in enumerate(zip(words, whole_words, strict=False)) if pair[0] != pair[1]), None)
        common = min(len(words), len(whole_words)) if common is None else common
        differing += len(words) - common
        total += len(words)
    return ends / max(len(halves), 1), differing / max(total, 1)


def at_goal(measured: Measured) -> Setting:
    """Return AlignAtt's largest lag with at most `MOST_LAGGING` words of lagging; the smallest if none is."""
    settings = [setting for setting in measured.outputs if setting.policy == "alignatt"]
    fitting = [setting for setting in settings if measured.latencies[setting].laal <= MOST_LAGGING]
    return max(fitting, default=min(settings))


def rival(measured: Measured, setting: Setting, policy: str) -> Setting | None:
    """Return a policy's smallest lag at which it lags at least as much as a setting; None if it never does."""
    lagging = measured.latencies[setting].laal
    settings = [other for other in measured.outputs if other.policy == policy]
    return min((other for other in settings if measured.latencies[other].laal >= lagging), default=None)


def rows_at_goal(group: Group, measured: Sequence[Measured]) -> Iterator[list[str]]:
    """Yield the rows of the table for one test set: whole sentences, AlignAtt, and the other policies."""

    def cells(settings: Sequence[Setting], other: Sequence[Setting]) -> list[str]:
        """`measured` and these are of the seeds."""
        seeds = list(zip(measured, settings, strict=True))
        bleu, chrf = (fmean(seed.scores[setting][i] for seed, setting in seeds) for i in (0, 1))
        whole = fmean(seed.scores[WHOLE][0] for seed in measured)
        means = [fmean(values) for values in zip(*(seed.latencies[setting] for seed, setting in seeds), strict=True)]
        p_values = []
        for (seed, setting), compared in zip(seeds, other, strict=True):
            p_values.append("" if setting == compared else f"{seed.p_value(setting, compared):.3f}")
        lags = " / ".join(str(setting.lag) for setting in settings)
        figures = [f"{bleu:.1f}", f"{bleu - whole:+.1f}", f"{chrf:.1f}"]
        return [lags, *figures, *(f"{mean:.2f}" for mean in means), " / ".join(p_values)]

    wholes = [WHOLE] * len(measured)
    yield [f"{group.name}: whole sentence", *cells(wholes, wholes)]
    chosen = [at_goal(seed) for seed in measured]
    yield [f"{group.name}: AlignAtt", *cells(chosen, wholes)]
    for policy in ("edatt", "wait-k", "agreement"):
        rivals = [rival(seed, setting, policy) for seed, setting in zip(measured, chosen, strict=True)]
        if all(rivals):
            settings = [setting for setting in rivals if setting]
            yield [f"{group.name}: {NAMES[policy]}", *cells(settings, chosen)]


def together(goal: dict[str, dict[Group, list[Measured]]]) -> dict[Group, list[Measured]]:
    """Return the measurements of all test sets as those of one, for the groups that have all of them."""
    joined = {}
    for group in next(iter(goal.values())):
        if all(group in groups for groups in goal.values()):
            seeds = zip(*(groups[group] for groups in goal.values()), strict=True)
            joined[group] = [_joined(parts) for parts in seeds]
    return joined


def _joined(parts: Sequence[Measured]) -> Measured:
    """Return the measurements of several test sets by one run as those of one."""
    outputs = {setting: [row for part in parts for row in part.outputs[setting]] for setting in parts[0].outputs}
    return Measured(parts[0].test, [pair for part in parts for pair in part.pairs], outputs)


def draw(results: dict[str, dict[Group, list[Measured]]], file: Path) -> None:
    """Plot BLEU and chrF against LAAL: a row of plots for each test set, a line for each policy and training."""
    figure, axes = plt.subplots(len(results), 2, figsize=(11, 3.6 * len(results)), layout="constrained", squeeze=False)
    colors = dict(zip(NAMES, plt.rcParams["axes.prop_cycle"].by_key()["color"], strict=False))
    for row, (name, groups) in zip(axes, results.items(), strict=True):
        for plot, metric, label in zip(row, (0, 1), ("BLEU", "chrF"), strict=True):
            for group, measured in groups.items():
                style = "--" if group.prefixes else "-"
                whole = fmean(seed.scores[WHOLE][metric] for seed in measured)
                plot.axhline(whole, color="gray", linestyle=style, linewidth=1)
                for policy, color in colors.items():
                    settings = sorted(setting for setting in measured[0].outputs if setting.policy == policy)
                    laal = [fmean(seed.latencies[setting].laal for seed in measured) for setting in settings]
                    scores = [fmean(seed.scores[setting][metric] for seed in measured) for setting in settings]
                    line = f"{NAMES[policy]}{', prefixes' if group.prefixes else ''}"
                    plot.plot(laal, scores, marker="o", markersize=3, color=color, linestyle=style, label=line)
            plot.axvline(MOST_LAGGING, color="gray", linestyle=":")
            plot.set(xlabel="LAAL, source words", ylabel=label, title=name)
            plot.grid(alpha=0.3)
    axes[0][0].legend(fontsize=7)
    figure.savefig(file, dpi=110)


def page(
    results: dict[str, dict[Group, list[Measured]]],
    goal: dict[str, dict[Group, list[Measured]]],
    endings: Sequence[Sequence[str]],
    chosen: Sequence[Sequence[str]],
) -> str:
    """Return the page of claim 23."""
    head = ["", "lag", "BLEU", "to whole", "chrF", "AL", "LAAL", "AP", "p"]
    parts = []
    for name, groups in goal.items():
        count = len(next(iter(groups.values()))[0].pairs)
        rows = [row for group, measured in groups.items() for row in rows_at_goal(group, measured)]
        parts.append(f"**{name}**, {count:,} sentences\n\n{table(head, rows)}")
    every = []
    for name, groups in results.items():
        for group, measured in groups.items():
            whole = fmean(seed.scores[WHOLE][0] for seed in measured)
            losses = []
            for setting in (setting for setting in measured[0].outputs if setting.policy == "alignatt"):
                bleu = fmean(seed.scores[setting][0] for seed in measured)
                losses.append(f"{bleu:.1f} ({fmean(seed.latencies[setting].laal for seed in measured):.1f})")
            empty = sum(seed.empty(setting) for seed in measured for setting in seed.outputs)
            every.append([f"{name}, {group.name}", f"{len(measured[0].pairs):,}", f"{whole:.1f}", *losses, str(empty)])
    any_measured = next(iter(next(iter(results.values())).values()))[0]
    alignatt = [f"lag {setting.lag}" for setting in any_measured.outputs if setting.policy == "alignatt"]
    tables = "\n".join(parts)
    return f"""# Claim 23: live translation, decided by attention

Each sentence is read word by word. AL, LAAL and AP are means over sentences, in source words. Several runs are seeds:
figures are means over them, p-values are of each. *To whole* is the difference in BLEU to whole sentences of the same
model.

What each run reads, and EDAtt's thresholds for lags of 1, 2 ... words, both chosen on its validation pairs:

{table(["", "attention", "thresholds"], chosen)}
## Sentences of {WORDS.start} to {WORDS.stop - 1} words

AlignAtt has its largest lag with a LAAL of at most {MOST_LAGGING:g} words. The other policies have the smallest lag at
which they lag at least as much, so they never have less time. p: paired bootstrap resampling of BLEU, AlignAtt against
whole sentences, and the others against AlignAtt.

{tables}
## All sentences

![BLEU and chrF by LAAL](23-live.png)

AlignAtt, BLEU (LAAL):

{table(["", "sentences", "whole", *alignatt, "empty"], every)}
## Invented endings

Greedy translations of the first half of each source that has no sign at its end: how many end with a final sign, and
how many of their words follow the longest common beginning with the translation of the whole source.

{table(["", "with a final sign", "other words"], endings)}
To reproduce: `{COMMAND}`
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN")
    parser.add_argument("--processes", type=int, default=os.cpu_count())
    parser.add_argument("--tests", nargs="+", choices=[test.name for tests in TESTS.values() for test in tests])
    parser.add_argument("--sentences", type=int, help="of each test set, the first ones")
    parser.add_argument("--results", type=Path, default=Path("runs/claims/live"))
    parser.add_argument("--quick", action="store_true", help="20 sentences, two lags, figures not written to docs")
    arguments = parser.parse_args()
    settings, sentences = SETTINGS, arguments.sentences
    docs = arguments.results if sentences or arguments.tests else DOCS
    if arguments.quick:
        settings = [Setting(policy, lag) for policy, lags in LAGS.items() for lag in lags[:3:2]]
        sentences, docs = 20, arguments.results / "quick"
    results = defaultdict[str, dict[Group, list[Measured]]](dict)
    endings, chosen = [], []
    for group, runs in grouped(arguments.runs).items():
        for run in runs:
            Console(stderr=True).rule(f"{run.name}, {group.name}")
            chosen.append(choose(run))
            context = get_context("spawn")
            with ProcessPoolExecutor(arguments.processes, context, _load, (run,)) as pool:
                for test in TESTS.get(group.languages, []):  # type: ignore[call-overload]
                    is_chosen = not arguments.tests or test.name in arguments.tests
                    pairs = test_pairs(test, run, sentences) if is_chosen else []
                    if not pairs:
                        continue
                    measured = measure(run, test, pairs, settings, arguments.results, pool)
                    results[test.name].setdefault(group, []).append(measured)
                    shares = invented(Translator.load(run, "cpu"), pairs)
                    endings.append([f"{test.name}, {run.name}", *(f"{share:.1%}" for share in shares)])
    if not results:
        raise SystemExit(f"there is no test set for these runs in {DATA}")
    goal = {}
    for name, groups in results.items():
        kept = {group: [seed.of_goal() for seed in measured] for group, measured in groups.items()}
        if next(iter(kept.values()))[0].pairs:
            goal[name] = kept
    if len(goal) > 1 and (joined := together(goal)):
        goal["All of them"] = joined
    docs.mkdir(parents=True, exist_ok=True)
    draw(results, docs / "23-live.png")
    write("23-live.md", page(results, goal, endings, chosen), docs)


if __name__ == "__main__":
    main()
