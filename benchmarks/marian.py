"""The same weights here and in Marian: is it the same model, and which is faster?

    python -m venv marian && marian/bin/pip install pymarian==1.12.42
    python benchmarks/marian.py RUN test.tsv --pymarian marian/bin/python [--sentences 500] [--rounds 3]

RUN must be exportable (`translucid export --to marian` says why if it is not). Marian scores the pairs and translates
their sources with two threads, greedy and with beam 5, float32 and int8 (`pymarian convert --gemm-type intgemm8`), in
the same batches (64 sentences, sorted by length). Translucid translates with CTranslate2 and two threads, float32 and
int8, as `translate` does; a student with an SSRU, which CTranslate2 can't run, with ONNX Runtime in float32. No engine
has a rule against loops. The engines run in turn; the rate is that of the best round. Loading the model and a warm-up
are not counted.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
import time
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, get_args

import torch
from sacrebleu.metrics import BLEU

from bitext.pair import Pair
from translucid.api.translator import Translator
from translucid.data.readers.corpus import read_pairs
from translucid.engines.choosing import Engine
from translucid.engines.ctranslate2.conventions import Quantization, is_supported
from translucid.engines.ctranslate2.searching import CTranslate2Engine
from translucid.engines.onnx.searching import OnnxEngine
from translucid.interop.marian_export import export_marian

THREADS = 2
MARIAN = """
import json, sys, time
from pymarian import Translator
folder, name, beam, kind = sys.argv[1:]
lines = open(name, encoding="utf-8").read().splitlines()
marian = Translator(config=f"{folder}/{kind}.yml", beam_size=int(beam), cpu_threads=2, mini_batch=64, maxi_batch=100,
    maxi_batch_sort="src", quiet=True,
    quiet_translation=True, normalize=1.0, max_length=500, max_length_factor=3)
marian.translate("\\n".join(lines[:64]))
started = time.perf_counter()
found = marian.translate("\\n".join(lines)).split("\\n")
print(json.dumps({"seconds": time.perf_counter() - started, "found": found[: len(lines)]}))
"""


def differences(translator: Translator, folder: Path, pairs: list[Pair], python: str, work: Path) -> list[float]:
    """Return the differences of log-probabilities of the same translations, in nats per sentence."""
    for name, side in (("source", [p.source for p in pairs]), ("target", [p.target for p in pairs])):
        (work / name).write_text("".join(f"{line}\n" for line in side), encoding="utf-8")
    vocabulary_names = ["vocab.spm"] * 2 if translator.tokenizer.joint else ["source.spm", "target.spm"]
    vocabularies = [str(folder / name) for name in vocabulary_names]
    command = [str(Path(python).with_name("pymarian")), "score", "-m", str(folder / "model.npz"), "-v", *vocabularies]
    command += ["-t", str(work / "source"), str(work / "target"), "--cpu-threads", "1", "--quiet"]
    marian_scores = [
        float(line) for line in subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    ]
    absolute_differences = []
    excluded = [translator.model.pad, translator.model.bos]  # Marian has no rows for them
    for pair, score in zip(pairs, marian_scores, strict=True):
        source, target = translator.pipeline.pairs([pair])[0].ids
        with torch.inference_mode():
            logits = translator.model(torch.tensor([source]), torch.tensor([[translator.model.bos, *target[:-1]]]))[0]
            logits[:, excluded] = -torch.inf
        ours = logits.log_softmax(-1)[torch.arange(len(target)), target].sum().item()
        absolute_differences.append(abs(ours - score))
    return absolute_differences


def prepare(folder: Path, python: str) -> None:
    """Convert the weights to int8, and write a configuration for each kind."""
    options = ["-f", str(folder / "model.npz"), "-t", str(folder / "model.bin"), "--gemm-type", "intgemm8"]
    subprocess.run([str(Path(python).with_name("pymarian")), "convert", *options], check=True, capture_output=True)
    configuration = (folder / "decoder.yml").read_text()
    (folder / "float32.yml").write_text(configuration)
    (folder / "int8.yml").write_text(configuration.replace("model.npz", "model.bin"))


def marian(folder: Path, lines: Path, beam: int, kind: str, python: str) -> tuple[float, list[str]]:
    command = [python, "-c", MARIAN, str(folder), str(lines), str(beam), kind]
    result: dict[str, Any] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return result["seconds"], result["found"]


def ours(translator: Translator, engine: Engine, texts: list[str], beam: int) -> tuple[float, list[str]]:
    options = translator.configuration.decoding.model_copy(update={"beam": beam, "max_loops": 0})
    configured = replace(translator, engine=engine)
    list(configured.stream(texts[:64], options, split=False))
    started = time.perf_counter()
    translations = [translation.text for translation in configured.stream(texts, options, split=False)]
    return time.perf_counter() - started, translations


def engines_of(translator: Translator) -> dict[str, Engine]:
    """Return CTranslate2 by the type of its weights, or ONNX Runtime for a student that CTranslate2 can't run."""
    torch_engine, tokenizer = translator.torch_engine, translator.tokenizer
    if not is_supported(translator.model.options):
        return {"float32": OnnxEngine.of(torch_engine, tokenizer, threads=THREADS)}
    engines: dict[str, Engine] = {}
    for kind in get_args(Quantization):
        engines[kind] = CTranslate2Engine.of(torch_engine, tokenizer, quantization=kind, threads=THREADS)
    return engines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("test", type=Path, help="sentence pairs")
    parser.add_argument("--pymarian", required=True, help="a Python that has pymarian")
    parser.add_argument("--sentences", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    torch.set_num_threads(THREADS)
    pairs = list(islice(read_pairs(arguments.test), arguments.sentences))
    texts, references = [pair.source for pair in pairs], [pair.target for pair in pairs]
    translator = Translator.load(arguments.run, "cpu", "torch")
    engines = engines_of(translator)
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        folder, lines = work / "marian", work / "lines.txt"
        export_marian(translator.model, translator.tokenizer, folder, beam=5)
        lines.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
        prepare(folder, arguments.pymarian)
        gaps = differences(translator, folder, pairs[:200], arguments.pymarian, work)
        print(f"log-probabilities of {len(gaps)} references differ by at most {max(gaps):.5f} nats\n", flush=True)
        print("| beam | weights | | sentences/s | BLEU | identical to ours in float32 |")
        print("| ---: | --- | --- | ---: | ---: | ---: |")
        for beam in (1, 5):
            best: dict[tuple[str, str], tuple[float, list[str]]] = {}
            for _ in range(arguments.rounds):
                for kind in ("float32", "int8"):
                    rounds = {(kind, "Marian 1.12.42"): marian(folder, lines, beam, kind, arguments.pymarian)}
                    if kind in engines:
                        rounds[kind, "Translucid"] = ours(translator, engines[kind], texts, beam)
                    for system, result in rounds.items():
                        best[system] = min(best.get(system, result), result)
            expected = best["float32", "Translucid"][1]
            for (kind, system), (seconds, result) in best.items():
                same = sum(ours_text == text for ours_text, text in zip(expected, result, strict=True)) / len(expected)
                score = BLEU().corpus_score(result, [references]).score
                rate = len(texts) / seconds
                print(f"| {beam} | {kind} | {system} | {rate:,.0f} | {score:.2f} | {same:.1%} |", flush=True)


if __name__ == "__main__":
    main()
