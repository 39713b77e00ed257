"""Speed and size of a run in onnxruntime, compared with our own engines.

    python benchmarks/onnx_speed.py runs/demo runs/demo/phrasebook/test.tsv [--sentences 200] [--rounds 5]

Greedy search, one sentence at a time, one thread, as for interactive use. The engines run in turn; the rate is that of
the median round. BLEU is on the same sentences.
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import torch

from translucid.api.translator import Translator
from translucid.data.readers.corpus import read_pairs, sources_of
from translucid.decoding.decoding_options import DecodingOptions, SearchRequest
from translucid.engines.choosing import Engine
from translucid.engines.ctranslate2.convert import export_ctranslate2
from translucid.engines.ctranslate2.searching import CTranslate2Engine
from translucid.evaluation.metrics import bleu
from translucid.interop.onnx_export import Exported, export_onnx
from translucid.models.transformer import Transformer

OPTIONS = DecodingOptions(beam=1, max_loops=0)
Translate = Callable[[list[int]], list[int]]


def by(engine: Engine) -> Translate:
    return lambda ids: engine.decode(SearchRequest([ids], OPTIONS))[0][0].tokens


def through(exported: Exported) -> Translate:
    return lambda ids: exported.greedy([ids], OPTIONS)[0]


def size(folder: Path) -> float:
    return sum(file.stat().st_size for file in folder.iterdir() if file.suffix in (".onnx", ".bin")) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("test", type=Path, help="sentence pairs")
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    translator = Translator.load(arguments.run, "cpu", "torch")
    model, tokenizer = translator.model, translator.tokenizer
    pairs = list(islice(read_pairs(arguments.test), arguments.sentences))
    sources = [[*ids, model.eos] for ids in tokenizer.encode_source(sources_of(pairs))]
    variants: dict[str, Translate] = {"our search, float32": by(translator.torch_engine)}
    sizes = {"our search, float32": (arguments.run / "model.safetensors").stat().st_size / 1e6}
    with tempfile.TemporaryDirectory() as name:
        for weights in ("float32", "int8"):
            if isinstance(model, Transformer):
                variants[f"CTranslate2, {weights}"] = by(
                    CTranslate2Engine.of(translator.torch_engine, tokenizer, quantization=weights, threads=1)
                )
                export_ctranslate2(model, tokenizer, Path(name) / f"ct2-{weights}", weights)
                sizes[f"CTranslate2, {weights}"] = size(Path(name) / f"ct2-{weights}")
            out, started = Path(name) / weights, time.process_time()
            export_onnx(model, tokenizer, out, weights, longest=translator.pipeline.longest)
            print(f"export with {weights}: {time.process_time() - started:.0f} s on one core")
            variants[f"onnxruntime, {weights}"] = through(Exported(out, threads=1))
            sizes[f"onnxruntime, {weights}"] = size(out)
    outputs_by_variant, rates = {}, {variant: [] for variant in variants}
    for _ in range(1 + arguments.rounds):
        for variant, translate in variants.items():
            started = time.perf_counter()
            outputs_by_variant[variant] = [translate(ids) for ids in sources]
            tokens = sum(len(output) + 1 for output in outputs_by_variant[variant])
            rates[variant].append(tokens / (time.perf_counter() - started))
    ours = outputs_by_variant["our search, float32"]
    print("\n| engine | MB | BLEU | identical sentences | tokens/s |\n| --- | ---: | ---: | ---: | ---: |")
    for variant, outputs in outputs_by_variant.items():
        quality = bleu([tokenizer.decode(tokens) for tokens in outputs], [[pair.target for pair in pairs]])
        same = sum(a == b for a, b in zip(outputs, ours, strict=True)) / len(ours)
        rate = statistics.median(rates[variant][1:])
        print(f"| {variant} | {sizes[variant]:.1f} | {quality:.1f} | {same:.1%} | {rate:,.0f} |")


if __name__ == "__main__":
    main()
