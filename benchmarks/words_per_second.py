"""Source words a second on one core, in the shapes of Firefox's models: Translucid and Marian with 8-bit weights.

    python -m venv marian && marian/bin/pip install pymarian==1.12.42
    python -m benchmarks.words_per_second devtest.eng_Latn.gz firefox-enes/ --pymarian marian/bin/python
        [--sentences 1012] [--rounds 5] [--shapes 256/1536 512/2048] [--core 0]

The text has one sentence in each line, such as the English side of FLORES-200 devtest; its words are separated by
spaces. `firefox-enes` is a folder with Firefox's vocabulary of 32,000 pieces, `vocab.enes.spm`, and its lexical
shortlist, `lex.50.50.enes.s2t.bin`. The models have 6 encoder and 2 decoder layers, SSRU decoders, widths of 256/1536
or 512/2048, and random weights that never output the end token: each translation is as long as its source. As
CTranslate2 runs no SSRU, it runs the same shape with self-attention in the decoder, in the same batches as Marian: our
engine would search each output that reaches its limit again.

All programs run in turn on one core, greedily, each with its own batches: Marian with 64 sentences (`--batch`), sorted
by length, and without the normalization of its output (`skip-cost`). The time includes tokenization and
detokenization, not loading and a warm-up. The ratio is the median over the rounds. Translations in batches are as
long as the longest source of their batch, so there is also a ratio for the same number of output tokens.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, get_args

import numpy as np
import torch
import yaml

from benchmarks.marian import prepare
from translucid.api.translator import Translator
from translucid.data.readers.corpus import read_lines
from translucid.decoding.decoding_options import DecodingOptions
from translucid.engines.choosing import Engine
from translucid.engines.ctranslate2.conventions import Quantization
from translucid.engines.ctranslate2.searching import CTranslate2Engine
from translucid.engines.ctranslate2.searching import Task as Search
from translucid.engines.onnx.searching import OnnxEngine
from translucid.engines.tuned import load_tuned
from translucid.ground.special import SPECIAL
from translucid.interop.importing import import_model
from translucid.interop.marian import CONFIGURATION
from translucid.interop.marian_export import arrays_of, configuration_text
from translucid.models.build import build_model
from translucid.models.model_options import TransformerOptions

VOCABULARY, SHORTLIST = "vocab.enes.spm", "lex.50.50.enes.s2t.bin"
PIECES = 32_000
WIDTHS = {"256/1536": (256, 1536), "512/2048": (512, 2048)}
NEVER = -1e4
"""The bias of the end token."""
WARM_UP = 16
MARIAN = """
import json, sys, time
from pymarian import Translator
options = json.loads(sys.argv[1])
lines = open(options.pop("lines"), encoding="utf-8").read().splitlines()
marian = Translator(**options)
marian.translate("\\n".join(lines[:16]))
started = time.perf_counter()
found = marian.translate("\\n".join(lines)).split("\\n")
print(json.dumps({"seconds": time.perf_counter() - started, "found": found[: len(lines)]}))
"""


class Timed(NamedTuple):
    """One translation of the text."""

    seconds: float
    tokens: int
    """The number of output tokens."""


@dataclass(frozen=True)
class Task:
    """The text, and how Marian is run."""

    texts: list[str]
    python: str
    batch: int

    @property
    def words(self) -> int:
        """The number of source words."""
        return sum(len(text.split(" ")) for text in self.texts)


def write_model(folder: Path, firefox: Path, options: TransformerOptions, *, shortlist: bool) -> None:
    """Write a model of Marian with random weights, which never outputs the end token."""
    folder.mkdir()
    size = PIECES + len(SPECIAL) - 2  # Marian has neither padding nor start token
    torch.manual_seed(1)
    model = build_model(options, size, size)
    with torch.no_grad():
        dict(model.named_parameters())["output.bias"][SPECIAL.end] = NEVER
    configuration = np.frombuffer(configuration_text(options, [PIECES, PIECES]), np.int8)
    content = io.BytesIO()
    np.savez(content, **{**arrays_of(model), CONFIGURATION: configuration})  # type: ignore[arg-type]
    (folder / "model.npz").write_bytes(content.getvalue())
    shutil.copy(firefox / VOCABULARY, folder / "vocab.spm")
    if shortlist:
        shutil.copy(firefox / SHORTLIST, folder / SHORTLIST)
    decoder = {"relative-paths": True, "models": ["model.npz"], "vocabs": ["vocab.spm"] * 2}
    (folder / "decoder.yml").write_text(yaml.safe_dump(decoder))


def marian(folder: Path, task: Task, *, shortlist: bool, raw: bool = False) -> Timed:
    """Translate with Marian; with `raw`, its output tokens are counted."""
    lines = folder / "lines.txt"
    lines.write_text("".join(f"{text}\n" for text in task.texts), encoding="utf-8")
    options: dict[str, Any] = {"lines": str(lines), "config": str(folder / "int8.yml"), "beam_size": 1}
    options |= {"cpu_threads": 1, "mini_batch": task.batch, "maxi_batch": 100, "maxi_batch_sort": "src"}
    options |= {"quiet": True, "quiet_translation": True, "skip_cost": True, "no_spm_decode": raw}
    options |= {"max_length": 500, "max_length_factor": 1}
    if shortlist:
        options["shortlist"] = [str(folder / SHORTLIST), "false"]  # false: the file is not checked again
    command = [task.python, "-c", MARIAN, json.dumps(options)]
    completed = subprocess.run(command, capture_output=True, text=True, check=False)
    if completed.returncode:
        lines_of_error = completed.stderr.strip().splitlines()
        raise SystemExit(f"Marian failed (code {completed.returncode}): {' '.join(lines_of_error[-3:])}")
    result = json.loads(completed.stdout)
    return Timed(result["seconds"], sum(len(text.split()) for text in result["found"]))


def ours(translator: Translator, task: Task) -> Timed:
    """Translate with one of our engines."""
    length = {"beam": 1, "max_loops": 0, "max_length_ratio": 1.0, "max_length_extra": 0}
    options = translator.configuration.decoding.model_copy(update=length)
    if isinstance(translator.engine, CTranslate2Engine):
        in_batches(translator, translator.engine, task.texts[:WARM_UP], options, task.batch)
        started = time.perf_counter()
        tokens = in_batches(translator, translator.engine, task.texts, options, task.batch)
        return Timed(time.perf_counter() - started, tokens)
    list(translator.stream(task.texts[:WARM_UP], options, split=False))
    started = time.perf_counter()
    translations = list(translator.stream(task.texts, options, split=False))
    seconds = time.perf_counter() - started
    hypotheses = [hypothesis for translation in translations for hypothesis in translation.nbest[0].hypotheses]
    return Timed(seconds, sum(len(hypothesis.tokens) for hypothesis in hypotheses))


def in_batches(
    translator: Translator, engine: CTranslate2Engine, texts: Sequence[str], options: DecodingOptions, batch: int
) -> int:
    """Translate in batches of similar length, as long as their longest source; return the number of output tokens."""
    tokenizer, tokens = translator.tokenizer, 0
    sources = sorted(([*ids, SPECIAL.end] for ids in tokenizer.encode_source(texts)), key=len)
    for first in range(0, len(sources), batch):
        part = sources[first : first + batch]
        longest = len(part[-1]) - 1
        tasks = [Search(i, ids, longest) for i, ids in enumerate(part)]
        for answer in engine._start_search(tasks, longest, options):
            outputs = [engine.target[piece] for piece in answer.result().hypotheses[0]]
            tokenizer.decode(outputs)
            tokens += len(outputs)
    return tokens


def engines(run: Path, *, ssru: bool, shortlist: bool) -> dict[str, Translator]:
    """Return our translators of a run, one for each engine that can be the fastest."""
    translator = Translator.load(run, "cpu", "torch")
    tokenizer, plain = translator.tokenizer, translator.torch_engine
    tuned = load_tuned(run)
    file = tuned.shortlist(run) if tuned and shortlist else None
    considered = tuned.considered if tuned and file else "all pieces"
    found: dict[str, Engine] = {}
    if ssru:
        found["PyTorch float32"] = plain.restricted(considered, file, tokenizer)
        if not shortlist:
            for kind in get_args(Quantization):
                found[f"ONNX Runtime {kind}"] = OnnxEngine.of(plain, tokenizer, quantization=kind, threads=1)
    else:
        for kind in get_args(Quantization):
            found[f"CTranslate2 {kind}"] = CTranslate2Engine.of(
                plain, tokenizer, quantization=kind, considered=considered, shortlist=file, threads=1
            )
    return {f"Translucid, {name}": replace(translator, engine=engine) for name, engine in found.items()}


def measure(systems: Mapping[str, Callable[[], Timed]], rounds: int) -> dict[str, list[Timed]]:
    """Run all systems in turn."""
    results: dict[str, list[Timed]] = {name: [] for name in systems}
    for _ in range(rounds):
        for name, run in systems.items():
            results[name].append(run())
    return results


def compare(firefox: Path, task: Task, shape: str, work: Path, *, shortlist: bool, rounds: int) -> None:
    """Print the lines of one shape, with or without a shortlist."""
    systems: dict[str, Callable[[], Timed]] = {}
    tokens: dict[str, int] = {}
    width, inner = WIDTHS[shape]
    for decoder in ("ssru", "self-attention"):
        options = TransformerOptions(
            width=width,
            heads=8,
            feed_forward=inner,
            encoder_layers=6,
            decoder_layers=2,
            decoder=decoder,
            norm="post",
            positions="sinusoidal-tensor2tensor",
            zero_start=True,
            tie_output=True,
        )
        name = f"{width}-{decoder}-{shortlist}"
        folder, run = work / name, work / f"{name}-run"
        write_model(folder, firefox, options, shortlist=shortlist)
        import_model(folder, run)
        for system, translator in engines(run, ssru=decoder == "ssru", shortlist=shortlist).items():
            systems[f"{decoder} | {system}"] = lambda translator=translator: ours(translator, task)
        prepare(folder, task.python)
        system = f"{decoder} | Marian int8"
        tokens[system] = marian(folder, task, shortlist=shortlist, raw=True).tokens
        systems[system] = lambda folder=folder: marian(folder, task, shortlist=shortlist)
    results = measure(systems, rounds)
    baseline = results["ssru | Marian int8"]
    for system, timed in results.items():
        rates = [task.words / one.seconds for one in timed]
        length = tokens.get(system, timed[0].tokens)
        ratio = median(theirs.seconds / one.seconds for theirs, one in zip(baseline, timed, strict=True))
        by_token = ratio * length / tokens["ssru | Marian int8"]
        spread = f"{min(rates):,.0f} to {max(rates):,.0f}"
        listed = "yes" if shortlist else "no"
        row = [shape, listed, system, f"{median(rates):,.0f}", spread, f"{ratio:.2f}", f"{length:,}", f"{by_token:.2f}"]
        print(f"| {' | '.join(row)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("text", type=Path, help="sentences, one in each line")
    parser.add_argument("firefox", type=Path, help=f"the folder of {VOCABULARY} and {SHORTLIST}")
    parser.add_argument("--pymarian", required=True, help="a Python that has pymarian")
    parser.add_argument("--sentences", type=int, default=1012)
    parser.add_argument("--batch", type=int, default=64, help="sentences in a batch of Marian")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--shapes", nargs="+", choices=WIDTHS, default=[*WIDTHS])
    parser.add_argument("--core", type=int, default=0)
    arguments = parser.parse_args()
    os.sched_setaffinity(0, {arguments.core})  # Marian's processes inherit it
    torch.set_num_threads(1)
    texts = list(read_lines(arguments.text))[: arguments.sentences]
    task = Task(texts, arguments.pymarian, arguments.batch)
    print(f"{len(texts):,} sentences, {task.words:,} words\n")
    head = [
        "shape",
        "shortlist",
        "decoder",
        "",
        "words/s",
        "rounds",
        "Marian with an SSRU = 1",
        "output tokens",
        "by token",
    ]
    print(f"| {' | '.join(head)} |\n| --- | --- | --- | --- | ---: | ---: | ---: | ---: | ---: |", flush=True)
    with tempfile.TemporaryDirectory() as name:
        for shape in arguments.shapes:
            for shortlist in (False, True):
                compare(arguments.firefox, task, shape, Path(name), shortlist=shortlist, rounds=arguments.rounds)


if __name__ == "__main__":
    main()
