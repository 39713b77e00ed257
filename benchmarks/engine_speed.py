"""Time of the engines that can run a model: our own search, ONNX Runtime and CTranslate2.

    python benchmarks/engine_speed.py RUN PAIRS [--sentences 200] [--beam 5] [--rounds 5]

One thread. The engines run in turn; times are CPU times a sentence, ratios are medians over the rounds.
"""

import argparse
import os
import statistics
import time
from itertools import islice
from pathlib import Path

import torch

from translucid.api.translator import Translator
from translucid.data.readers.corpus import read_pairs, sources_of
from translucid.decoding.decoding_options import DecodingOptions, SearchRequest
from translucid.decoding.search import TorchEngine
from translucid.engines.choosing import Engine
from translucid.engines.ctranslate2.conventions import is_supported
from translucid.engines.ctranslate2.searching import CTranslate2Engine
from translucid.engines.onnx.searching import OnnxEngine


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("pairs", type=Path, help="sentence pairs")
    parser.add_argument("--sentences", type=int, default=200)
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    translator = Translator.load(arguments.run, "cpu", "torch")
    tokenizer, model = translator.tokenizer, translator.model
    ours = TorchEngine.of(model, tokenizer, torch.device("cpu"))
    engines: dict[str, Engine] = {"torch": ours, "onnx": OnnxEngine.of(ours, tokenizer, threads=1)}
    if is_supported(model.options):
        for weights in ("float32", "int8"):
            engines[f"ctranslate2, {weights}"] = CTranslate2Engine.of(ours, tokenizer, quantization=weights, threads=1)
    texts = sources_of(islice(read_pairs(arguments.pairs), arguments.sentences))
    sources = [[*ids, model.eos] for ids in tokenizer.encode_source(texts)]
    options = DecodingOptions(beam=arguments.beam)
    for name, size in (("one sentence at a time", 1), ("all sentences at once", len(sources))):
        times: dict[str, list[float]] = {engine: [] for engine in engines}
        outputs: dict[str, list[list[int]]] = {}
        for _ in range(1 + arguments.rounds):
            for engine_name, engine in engines.items():
                started, nbest_lists = time.process_time(), []
                for first in range(0, len(sources), size):
                    nbest_lists += engine.decode(SearchRequest(sources[first : first + size], options))
                times[engine_name].append(1000 * (time.process_time() - started) / len(sources))
                outputs[engine_name] = [nbest[0].tokens for nbest in nbest_lists]
        print(f"\n| {name} | ms | speed | identical |\n| --- | ---: | ---: | ---: |")
        for engine_name, rounds in times.items():
            ratio = statistics.median(map(lambda a, b: a / b, times["torch"][1:], rounds[1:]))
            same = sum(map(list.__eq__, outputs[engine_name], outputs["torch"])) / len(sources)
            print(f"| {engine_name} | {statistics.median(rounds[1:]):.1f} | {ratio:.2f} | {same:.1%} |")
    print(f"\nload {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
