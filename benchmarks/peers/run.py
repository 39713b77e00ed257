"""Speed of Translucid and other toolkits on this machine, in one run.

    python benchmarks/peers/run.py multi30k-en-de/ --model runs/en-de [--rounds 3] [--only tiny translation]

Makes a virtual environment with pinned versions for each toolkit (about 6 GB in total) and prepares Multi30k
English–German with a joint vocabulary of 10,000. Then it measures all systems in turn, round after round, so that
ratios stay valid on a machine whose speed drifts. After each round it writes the medians to docs/benchmarks.md, between
the markers there, and every figure to docs/benchmarks.json. Toolkits that fail or cannot be installed are left out and
named. `--model` is a trained run of the preset tiny for the translation table; it is also translated with a version
widened to the size of base (widen.py).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
DOCS = ROOT / "docs"

TORCH = "torch==2.13.0"
ENVS = {
    "base": [TORCH, "numpy", "sentencepiece==0.2.1"],
    "translucid": ["-c", str(ROOT / "constraints.txt"), "-e", str(ROOT)],
    "hf": [TORCH, "transformers==5.23.0"],
    "ctranslate2": ["ctranslate2==4.8.5", "sentencepiece==0.2.1", "sacrebleu==2.6.0"],
    "keras": ["tensorflow-cpu==2.21.0", "keras==3.15.1"],
    "eole": [TORCH, "eole==0.6.4", "aiohttp"],
    "joeynmt": [TORCH, "joeynmt==2.3.0", "importlib_metadata", "sentencepiece<0.2.1"],
    "opennmt": [TORCH, "configargparse", "ctranslate2<5", "tensorboard", "flask", "waitress", "pyonmttok<2,>=1.37"]
    + ["pyyaml", "sacrebleu", "rapidfuzz", "pyahocorasick", "fasttext-wheel", "six", "spacy"],
}
WITHOUT_DEPENDENCIES = {"opennmt": ["OpenNMT-py==3.5.1"]}
"""OpenNMT-py requires a PyTorch that is no longer available; it runs with this one."""


TRANSLATION = {"tiny": "translation", "base": "translation of base"}
"""The translation tables, by model size."""
SENTENCES = {"tiny": 1000, "base": 200}
"""Numbers of sentences to translate."""


class Measure(NamedTuple):
    """One row of a table."""

    table: str
    name: str
    env: str
    script: str
    arguments: list[str]


def training(size: str, seconds: float) -> list[Measure]:
    """Return the rows of a training table."""
    clock = str(seconds)

    def loop(name: str, module: str, env: str) -> list[Measure]:
        return [
            Measure(size, f"{name}, plain loop, {what}", env, "train_pytorch.py", [module, size, how, clock, precision])
            for what, how, precision in (
                ("random batches", "random", "float32"),
                ("length-bucketed batches", "like length", "float32"),
                ("length-bucketed batches, autocast to bfloat16", "like length", "bfloat16"),
            )
        ]

    rows = [
        Measure(size, "**Translucid**", "translucid", "train_translucid.py", [size, clock, "auto"]),
        Measure(size, "Translucid, float32", "translucid", "train_translucid.py", [size, clock, "float32"]),
    ]
    rows += loop("HF MarianMT", "marian", "hf") + loop("`torch.nn.Transformer`", "nn-transformer", "base")
    if size == "tiny":
        for name, env in (("OpenNMT-py 3.5.1", "opennmt"), ("Eole 0.6.4", "eole"), ("JoeyNMT 2.3.0", "joeynmt")):
            rows.append(Measure(size, name, env, "train_tools.py", [env, size, clock]))
        rows.append(Measure(size, "Keras 3 textbook, TensorFlow", "keras", "train_keras.py", [size, clock]))
        rnn = "**Translucid**, `rnn-luong-general` (6.8M parameters)"
        rows.append(Measure(size, rnn, "translucid", "train_translucid.py", ["rnn", clock, "auto"]))
    return rows


def translation(work: Path, size: str) -> list[Measure]:
    """Return the rows of a translation table."""
    rows = [
        ("**Translucid** after `tune shortlists`", "translucid", "translucid", "shortlists"),
        ("**Translucid**, as `train` leaves it", "translucid", "translucid", "tuned"),
        ("**Translucid**, `--no-tune`", "translucid", "translucid", "model"),
        ("CTranslate2 4.8.5", "ctranslate2", "ctranslate2", "exported"),
    ]
    if size == "tiny":
        rows.insert(3, ("Translucid, `--engine torch`", "translucid", "torch", "model"))
        rows.append(("HF `generate`", "hf", "hf", "model"))
    table, count = TRANSLATION[size], SENTENCES[size]
    return [
        Measure(table, name, env, "translate.py", [how, str(work / size / of), str(count)])
        for name, env, how, of in rows
    ]


def prepare_tiny(work: Path, run: Path) -> None:
    """Copy a trained run, tune two copies of it and export it."""
    program, tiny = work / "envs" / "translucid" / "bin" / "translucid", work / "tiny"
    for name in ("model", "tuned", "shortlists"):
        shutil.copytree(
            run, tiny / name, ignore=shutil.ignore_patterns("state", "tuned.json", "shortlist.tsv"), dirs_exist_ok=True
        )
    pairs = ["--train", f"{work}/data/train.{{en,de}}", "--valid", f"{work}/data/valid.{{en,de}}"]
    subprocess.run([program, "tune", "speed", tiny / "tuned", *pairs], check=True)
    # For a small model, a shortlist costs a little more than tune allows by default; the table shows how much.
    subprocess.run([program, "tune", "shortlists", tiny / "shortlists", *pairs, "--allow", "0.3"], check=True)
    subprocess.run([program, "export", tiny / "model", tiny / "exported"], check=True)


def prepare_base(work: Path) -> None:
    """Make the same models, widened to the size of base."""
    python, tiny, base = work / "envs" / "translucid" / "bin" / "python", work / "tiny", work / "base"
    environment = {**os.environ, "PEERS_WORK": str(work)}
    subprocess.run([python, HERE / "widen.py", tiny / "model", base / "model"], check=True, env=environment)
    for name in ("tuned", "shortlists"):
        shutil.copytree(base / "model", base / name, dirs_exist_ok=True)
        for file in [tiny / name / "tuned.json", *(tiny / name).glob("shortlist.tsv")]:
            shutil.copy(file, base / name)  # the widened model has the same vocabulary
    subprocess.run([python.with_name("translucid"), "export", base / "model", base / "exported"], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("corpus", type=Path, help="the folder with train.lc.norm.tok.en.gz and the others")
    parser.add_argument("--model", type=Path, help="a trained run, for the translation table")
    parser.add_argument("--work", type=Path, default=Path("runs/peers"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=30, help="training seconds per toolkit and round")
    parser.add_argument("--only", nargs="*", default=["tiny", "base", *TRANSLATION.values()], help="only these tables")
    arguments = parser.parse_args()
    work = arguments.work.resolve()
    measures = [row for size in ("tiny", "base") if size in arguments.only for row in training(size, arguments.seconds)]
    if arguments.model:
        measures += [
            row for size, table in TRANSLATION.items() if table in arguments.only for row in translation(work, size)
        ]
    envs = dict.fromkeys(["base", *(row.env for row in measures)])  # in the order of the tables; a set has none
    missing = {env for env in envs if not install(work, env)}
    if not (work / "data" / "vocabulary.txt").exists():
        run(work, Measure("", "", "base", "prepare.py", [str(arguments.corpus.resolve())]))
    sizes = [size for size, table in TRANSLATION.items() if arguments.model and table in arguments.only]
    if sizes and not (work / "tiny" / "shortlists").exists():
        prepare_tiny(work, arguments.model)
    if "base" in sizes and not (work / "base" / "shortlists").exists():
        prepare_base(work)

    limits: list[dict[str, Any]] = []
    results: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    failed = {row.name for row in measures if row.env in missing}
    for number in range(1, arguments.rounds + 1):
        limits += run(work, Measure("", "limits", "base", "limits.py", []))
        for row in measures:
            if row.name in failed:
                continue
            print(f"round {number}: {row.table}: {row.name}", file=sys.stderr, flush=True)
            if result := run(work, row):
                results[row.table, row.name] += result
            else:
                failed.add(row.name)
        write(limits, {**earlier({row.table for row in measures}), **results}, sorted(failed), number)


def install(work: Path, env: str) -> bool:
    """Make a toolkit's environment; return whether it exists."""
    folder = work / "envs" / env
    marker = folder / ".done"
    if marker.exists():
        return True
    print(f"installing {env}", file=sys.stderr, flush=True)
    python = folder / "bin" / "python"
    commands = [[sys.executable, "-m", "venv", str(folder)], [str(python), "-m", "pip", "-q", "install", *ENVS[env]]]
    if env in WITHOUT_DEPENDENCIES:
        commands.append([str(python), "-m", "pip", "-q", "install", "--no-deps", *WITHOUT_DEPENDENCIES[env]])
    for command in commands:
        if subprocess.run(command, check=False).returncode:
            return False
    marker.touch()
    return True


def run(work: Path, row: Measure) -> list[dict[str, Any]]:
    """Run a measuring script in its environment; return its results, none if it failed."""
    python = work / "envs" / row.env / "bin" / "python"
    environment = {**os.environ, "PEERS_WORK": str(work), "TOKENIZERS_PARALLELISM": "false"}
    environment |= {"KERAS_BACKEND": "tensorflow", "TF_CPP_MIN_LOG_LEVEL": "2", "CUDA_VISIBLE_DEVICES": ""}
    log = work / "logs" / f"{row.script}-{'-'.join(row.arguments).replace('/', '_')}.txt"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as file:
        completed = subprocess.run(
            [python, HERE / row.script, *row.arguments], stdout=subprocess.PIPE, stderr=file, text=True, env=environment
        )
    if completed.returncode:
        print(f"failed: {row.name}; see {log}", file=sys.stderr, flush=True)
        return []
    return reported(completed.stdout)


def reported(output: str) -> list[dict[str, Any]]:
    """Return the results that a script printed with `common.report`."""
    prefix = "RESULT "
    return [json.loads(line[len(prefix) :]) for line in output.splitlines() if line.startswith(prefix)]


def training_table(results: dict[tuple[str, str], list[dict[str, Any]]]) -> str:
    """Return the median target tokens per second for each size, and their ratio to ours."""
    rates: dict[str, dict[str, float]] = {"tiny": {}, "base": {}}
    for (table, name), rows in results.items():
        if table in rates and "random batches" not in name:  # only in the JSON
            rates[table][name] = statistics.median(row["tokens_per_second"] for row in rows)
    lines = ["| | *tiny* | relative | *base* | relative |", "| --- | ---: | ---: | ---: | ---: |"]
    for name in sorted(rates["tiny"] | rates["base"], key=lambda name: -rates["tiny"].get(name, 0)):
        cells = []
        for measured in rates.values():
            is_complete = name in measured and "**Translucid**" in measured
            ratio = measured[name] / measured["**Translucid**"] if is_complete else 0
            cells += [f"{measured[name]:,.0f}", f"{ratio:.2f}"] if is_complete else ["–", "–"]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def translation_table(results: dict[tuple[str, str], list[dict[str, Any]]]) -> str:
    """Return the median sentences per second, latency and BLEU for each size, by toolkit and weights, with beam 5."""
    measured: dict[tuple[str, str], dict[str, list[str]]] = {}
    for (table, name), rows in results.items():
        for key in dict.fromkeys(row["key"] for row in rows if table in TRANSLATION.values()):
            weights, _, beam = key.rpartition(", ")
            if beam != "beam 5":
                continue
            of_key = [row for row in rows if row["key"] == key]
            rate = statistics.median(row["sentences_per_second"] for row in of_key)
            latency = statistics.median(row["alone_ms"] for row in of_key)
            bleu = f"{of_key[0]['bleu']:.1f}" if "bleu" in of_key[0] else "–"
            measured.setdefault((name, weights), {})[table] = [f"{rate:,.0f}", f"{latency:.1f}", bleu]
    what = "sentences/s | latency, ms | BLEU"
    lines = [f"| beam 5 | weights | *tiny*: {what} | *base*: {what} |", "| --- | --- |" + " ---: |" * 6]
    for (name, weights), cells in measured.items():
        all_cells = [cell for table in TRANSLATION.values() for cell in cells.get(table, ["–"] * 3)]
        lines.append(f"| {name} | {weights} | {' | '.join(all_cells)} |")
    return "\n".join(lines)


def recorded() -> dict[str, Any]:
    """Return the contents of docs/benchmarks.json."""
    file = DOCS / "benchmarks.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def earlier(measured: set[str]) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Return the results of tables that this run does not measure."""
    known = {"tiny", "base", *TRANSLATION.values()} - measured
    keys = {key: key.partition(": ") for key in recorded()}
    return {(table, name): recorded()[key] for key, (table, _, name) in keys.items() if table in known}


def write(
    limits: list[dict[str, Any]], results: dict[tuple[str, str], list[dict[str, Any]]], failed: list[str], rounds: int
) -> None:
    """Write the tables between the markers of docs/benchmarks.md, and every single figure into docs/benchmarks.json."""
    record = recorded() | {"limits": limits} | {f"{table}: {name}": rows for (table, name), rows in results.items()}
    (DOCS / "benchmarks.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    machine = f"{platform.machine()}, {limits[0]['threads']} cores, PyTorch {limits[0]['versions']['torch']}"
    tables = {"training": training_table(results), "translating": translation_table(results)}
    page = DOCS / "benchmarks.md"
    text = page.read_text(encoding="utf-8")
    for name, table in tables.items():
        begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
        before, _, rest = text.partition(begin)
        _, _, after = rest.partition(end)
        parts = [f"Medians of {rounds} rounds on {machine}:", table]
        if failed:
            parts.append("Not measured, because it could not be installed or failed: " + ", ".join(failed) + ".")
        text = before + begin + "\n\n" + "\n\n".join(parts) + "\n\n" + end + after
    page.write_text(text, encoding="utf-8")
    print(f"written: {page}", file=sys.stderr)


if __name__ == "__main__":
    main()
