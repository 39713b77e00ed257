"""What CTranslate2 gains from AVX-512 on processors where it is off by default, and from keeping freed memory.

    translucid export runs/en-de exported
    python benchmarks/ctranslate2_settings.py exported lines.txt

Each variant is a separate process, in turn, `--rounds` times. Figures are medians, in sentences per CPU second over all
threads.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

WAYS = {
    "as it comes": {},
    "AVX-512": {"CT2_FORCE_CPU_ISA": "AVX512"},
    "freed memory kept": {"KEEP": "1"},
    "both": {"CT2_FORCE_CPU_ISA": "AVX512", "KEEP": "1"},
}


def measure(model: str, text: Path, weights: str, beam: int) -> float:
    """Translate everything once, in this process."""
    import ctranslate2
    import sentencepiece

    from translucid.kernels.machine import cores, keep_freed_memory

    if os.environ.get("KEEP"):
        keep_freed_memory()
    pieces = sentencepiece.SentencePieceProcessor(model_file=f"{model}/tokenizer.model")
    sources = [[*row, "</s>"] for row in pieces.encode(text.read_text(encoding="utf-8").splitlines(), out_type=str)]
    translator = ctranslate2.Translator(model, compute_type=weights, inter_threads=cores(), intra_threads=1)
    translator.translate_batch(sources[:8], beam_size=beam)
    started = time.process_time()
    translator.translate_batch(sources, beam_size=beam, max_batch_size=64)
    return len(sources) / (time.process_time() - started) * cores()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("text", type=Path)
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--weights", help="measure these weights once, in this process, and print the figure")
    arguments = parser.parse_args()
    if arguments.weights:
        print(measure(arguments.model, arguments.text, arguments.weights, arguments.beam))
        return
    rates: dict[tuple[str, str], list[float]] = {}
    for _ in range(arguments.rounds):
        for weights in ("float32", "int8"):
            for variant, settings in WAYS.items():
                line = [sys.executable, __file__, arguments.model, str(arguments.text), "--beam", str(arguments.beam)]
                line += ["--weights", weights]
                completed = subprocess.run(line, env={**os.environ, **settings}, stdout=subprocess.PIPE, check=True)
                rates.setdefault((weights, variant), []).append(float(completed.stdout))
    print("| weights | | sentences/s | |\n| --- | --- | ---: | ---: |")
    for (weights, variant), speeds in rates.items():
        speed, usual = statistics.median(speeds), statistics.median(rates[weights, "as it comes"])
        print(f"| {weights} | {variant} | {speed:,.0f} | {speed / usual:.2f} × |")


if __name__ == "__main__":
    main()
