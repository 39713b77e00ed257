"""Write docs/reports/reliability.md from the recorded results."""

import json
import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from translucid.kernels.machine import avx512, processor
from translucid.kernels.rounding import bfloat16_is_faster
from translucid.training.records.record import clock

REPORTS = Path(__file__).resolve().parents[2] / "docs" / "reports"
RECORD = REPORTS / "reliability.json"

PAGE = """# Reliability: trials and results

`make reliability` repeats all trials and writes this page, and `--only PART` repeats some. The parts with figures took
{time} ({machine}). Parts without figures have not been run at full length: {missing}. The figures are from the version
that the table states, others from {versions}. `make test` has a short version of each trial. For protection against
hostile files see [security.md](../security.md).

## Trials

| trial | figures | failures | version |
| --- | --- | --- | --- |
{rows}
{notes}
{attacks}

After a kill, a training must end with the same weights, optimizer, random states and metrics as an uninterrupted one,
bit for bit. A damaged file must be repaired, or reported with one line that says what to do. A number in `config.yaml`
that changes to another valid one looks like an edit; it is detected only for model, data and seed.

[reliability.json](reliability.json) has the messages that users see in these trials. For the quality of the tests see
[mutation.md](mutation.md).

## Corpora larger than memory

{large}

`translucid train` with the preset `demo` reads the text three times and makes one update; with `--resume`, it reads the
text once and makes 20. Private memory is not backed by files. It does not grow with the corpus, unless subword dropout
needs the text itself.

    python -m benchmarks.reliability.large --pairs 1000000 5000000 20000000

## Several processes

{scaling}

The preset `small` on the phrasebook. The loss curve equals that of one process (tested to 1e-4). If a process dies, the
job ends; `--max-restarts` with `--resume` continues it.

    python -m benchmarks.reliability.scaling

## Reproducibility

| what | is reproducible |
| --- | --- |
| weights, on a CPU | bit for bit, with the same seed, files, versions, machine and threads, interrupted or not |
| with other threads, processes or processors | the loss curve; some processors need `training.precision=float32` |
| weights, on a GPU | with `training.deterministic=true`, slower, as far as PyTorch can guarantee it |
| translations | independent of the rest of the batch, `--workers` and Ray, except for the last digits of a score |
"""


_OTHERS = "siege", "scaling", "large"
"""The parts with tables of their own."""
ATTACK = "attack: "
ASKED = "/translate", "/look"
ATTACKS = """\
A server under attack, by `--engine`: the 95th percentile of response times of four honest clients, without and with the
attack. More than twice the time is a failure, and so is memory that is not freed. Failures: {failures}. A second after
the attackers leave, the server uses at most {rest} % of a core.

{table}"""


def attack_section(attacks: list[dict[str, Any]]) -> str:
    """Return the response times of honest clients under each attack, for each engine."""
    if not attacks:
        return "(not measured yet)"
    measured: dict[str, dict[str, list[str]]] = {}
    for entry in attacks:
        attack, _, engine = entry["trial"].removeprefix(ATTACK).partition(", --engine ")
        measured.setdefault(attack, {})[engine] = [str(entry["figures"].get(kind, "–")) for kind in ASKED]
    engines = list(dict.fromkeys(engine for by_engine in measured.values() for engine in by_engine))
    heads = [f"{engine}: {kind}" for engine in engines for kind in ASKED]
    rows = []
    for attack, by_engine in measured.items():
        cells = [cell for engine in engines for cell in by_engine.get(engine, ["–"] * len(ASKED))]
        rows.append(f"| {attack} | {' | '.join(cells)} |")
    table = "\n".join([f"| attack | {' | '.join(heads)} |", f"| --- |{' --- |' * len(heads)}", *rows])
    rest = max(int(str(entry["figures"]["CPU use a second later"]).rstrip("%")) for entry in attacks)
    return ATTACKS.format(table=table, rest=rest, failures=sum(len(entry["failures"]) for entry in attacks))


def machine() -> str:
    """Describe the machine."""
    versions = f"Python {platform.python_version()}, PyTorch {torch.__version__}"
    has = " with bfloat16" if bfloat16_is_faster(torch.device("cpu")) else " with AVX-512" if avx512() else ""
    return f"{os.cpu_count()} cores of {processor()}{has}, {platform.system()}, {versions}"


def write_page(parts: Sequence[str]) -> None:
    """Write the page from the record; `parts` are the names of all parts."""
    text = page(json.loads(RECORD.read_text(encoding="utf-8")), parts)
    (REPORTS / "reliability.md").write_text(text, encoding="utf-8")


def page(record: dict[str, dict[str, Any]], parts: Sequence[str]) -> str:
    """Return the page's text from the findings of each part; `parts` are the names of all."""
    attacks, rows = [], []
    for part in record.values():
        for finding in part["findings"]:
            if finding["trial"].startswith(ATTACK):
                attacks.append(finding)
                continue
            figures = ", ".join(_figure(what, value) for what, value in finding["figures"].items())
            rows.append(f"| {finding['trial']} | {figures} | {len(finding['failures'])} | {part['version']} |")
    return PAGE.format(
        machine="; ".join(sorted({part["machine"] for part in record.values()})),
        time=clock(sum(part["seconds"] for part in record.values())),
        missing=", ".join(f"`{part}`" for part in parts if part not in record) or "none",
        versions=", ".join(sorted({record[part]["version"] for part in _OTHERS if part in record})),
        rows="\n".join(rows),
        notes="".join(f"\n{part['note']}\n" for part in record.values() if "note" in part),
        attacks=attack_section(attacks),
        **{name: record.get(name, {}).get("table") or "(not measured yet)" for name in ("large", "scaling")},
    )


def _figure(what: str, value: int | float | str) -> str:
    return f"{value:,} {what}" if isinstance(value, int | float) else f"{what}: {value}"
