"""All checks that need a GPU, in a few minutes: the tests, then training and search compared with others.

    make gpu
    python -m benchmarks.gpu [--device cpu --quick] [--no-tests] [--out FILE]

Markdown tables go to standard output and, with `--out`, to a file. `--quick` is a rehearsal with small models; its
figures mean nothing.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import torch

from benchmarks.gpu import decoding, training
from benchmarks.gpu.shapes import PRESETS, configuration_of
from translucid.decoding.search import Precision
from translucid.ground.errors import UserError
from translucid.kernels.attention import without_cudnn
from translucid.kernels.devices import choose_device

PRECISIONS = "bfloat16", "float32"
ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--quick", action="store_true", help="a rehearsal with small models")
    parser.add_argument("--seconds", type=float, default=6, help="training seconds per row")
    parser.add_argument("--sentences", type=int, default=1000, help="sentences per row")
    parser.add_argument("--no-tests", action="store_true", help="only measure")
    parser.add_argument("--out", type=Path, help="also write the tables to this file")
    options = parser.parse_args()
    try:
        device = choose_device(options.device)
    except UserError as error:
        sys.exit(str(error))
    failed = 0 if options.no_tests else run_tests()
    lines = ["# On a GPU", "", machine(device), ""]
    if failed:
        lines += ["**Some tests failed; see above.**", ""]
    print("\n".join(lines), flush=True)
    with without_cudnn(device):  # cuDNN would make the other toolkits several times slower, and ours never uses it
        for measure in (training_table, waiting_table, decoding_table):
            try:
                table = measure(device, options)
            except Exception as error:  # continue with the other tables
                table = [f"{measure.__name__}: {type(error).__name__}: {error}", ""]
                failed = failed or 1
            print("\n".join(table), flush=True)
            lines += table
    if options.out:
        options.out.write_text("\n".join(lines) + "\n")
    sys.exit(failed)


def run_tests() -> int:
    """Run the tests marked `cuda`, with two processes if there are two GPUs; return the exit code."""
    command = [sys.executable, "-m", "pytest", "-m", "cuda", "-rfs", "--tb=short", "-p", "no:cacheprovider"]
    return subprocess.run([*command, "tests/devices"], cwd=ROOT).returncode


def machine(device: torch.device) -> str:
    """Describe the machine."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else f"CPU, {os.cpu_count()} cores"
    return f"{name}; PyTorch {torch.__version__}, CUDA {torch.version.cuda}, Python {sys.version.split()[0]}."


def training_table(device: torch.device, options: argparse.Namespace) -> list[str]:
    """Return target tokens per second and milliseconds per update, by preset, precision and program."""
    names = list(training.BUILDERS)
    rows = ["| preset | precision | " + " | ".join(names) + " |", "| --- | --- |" + " ---: |" * len(names)]
    warm_up = 1 if options.quick else training.WARM_UP
    for preset in PRESETS:
        configuration = configuration_of(preset, quick=options.quick)
        for precision in PRECISIONS:
            cells = []
            for name in names:
                update = training.BUILDERS[name](configuration, device, precision)
                rate, milliseconds = training.speed(update, device, options.seconds, warm_up=warm_up)
                cells.append(f"{rate:,.0f} ({milliseconds:.1f} ms)")
            rows.append(f"| {preset} | {precision} | " + " | ".join(cells) + " |")
    return ["Target tokens a second in training, and milliseconds an update:", "", *rows, ""]


def waiting_table(device: torch.device, options: argparse.Namespace) -> list[str]:
    """Return the kernels, GPU time and synchronizations of an update and of a search."""
    if device.type != "cuda":
        return ["Kernels and synchronizations are counted on a GPU only.", ""]
    rows = ["| preset | what | kernels | GPU ms | synchronizations |", "| --- | --- | ---: | ---: | --- |"]
    for preset in PRESETS:
        configuration = configuration_of(preset, quick=options.quick)
        update = training.ours(configuration, device, "bfloat16")
        searches = {"search": decoding.ours(configuration, device)}
        searches["captured search"] = decoding.ours(configuration, device, "bfloat16", captured=True)
        sentences = decoding.sentences_of(configuration, min(64, options.sentences))
        actions: dict[str, Callable[[], int]] = {"update": update}
        for name, search in searches.items():
            for beam in decoding.BEAMS:
                actions[f"{name} of {decoding.LENGTH} steps, beam {beam}"] = partial(search, sentences, beam)
        for what, action in actions.items():
            for _ in range(4):  # warm up: exclude one-time loading, tuning and capturing
                action()
            waits = training.synchronizations(action)
            count, milliseconds = training.kernels(action)
            lines = ", ".join(f"{line} {times}" for line, times in waits.most_common(8))
            rows.append(f"| {preset} | {what} | {count} | {milliseconds:.1f} | {waits.total()} ({lines}) |")
    return ["What one update and one search of a batch ask of the GPU:", "", *rows, ""]


def decoding_table(device: torch.device, options: argparse.Namespace) -> list[str]:
    """Return target tokens per second of searches, by preset and beam."""
    ours: list[tuple[Precision, bool]] = [("float32", False), ("float32", True), ("bfloat16", True)]
    theirs = [(torch.float32, 256), (torch.bfloat16, 64), (torch.bfloat16, 256), (torch.bfloat16, 1024)]
    heads = [f"translucid, {precision}{', captured' * captured}" for precision, captured in ours]
    heads += [f"generate, {str(dtype).removeprefix('torch.')}, {rows:,} rows" for dtype, rows in theirs]
    rows = ["| preset | beam | " + " | ".join(heads) + " |", "| --- | ---: |" + " ---: |" * len(heads)]
    for preset in PRESETS:
        configuration = configuration_of(preset, quick=options.quick)
        sentences = decoding.sentences_of(configuration, options.sentences)
        searches = [decoding.ours(configuration, device, precision, captured=captured) for precision, captured in ours]
        searches += [decoding.theirs(configuration, device, dtype, size) for dtype, size in theirs]
        for beam in decoding.BEAMS:
            cells = [f"{decoding.speed(search, sentences, beam, device):,.0f}" for search in searches]
            rows.append(f"| {preset} | {beam} | " + " | ".join(cells) + " |")
    count = f"{options.sentences:,} sentences of {decoding.LENGTH} tokens"
    return [f"Target tokens a second in search, {count}:", "", *rows, ""]


if __name__ == "__main__":
    main()
