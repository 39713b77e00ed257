"""docs/reliability.md, written from what was found."""

import json
import os
import platform
from pathlib import Path
from typing import Any

import torch

from translucid.kernels.machine import avx512, bfloat16, processor
from translucid.training.display import clock

DOCS = Path(__file__).resolve().parents[2] / "docs"
RECORD = DOCS / "reliability.json"

PAGE = """# Nothing lost: what was done to it, and what came of it

Written by `make reliability`, which does all of this again in {time} ({machine}).
A short form of each trial is in `make test`. What a stranger's files can and can't do is in [security.md](security.md).

## Trials

| trial | figures | failures |
| --- | --- | --- |
{rows}
{notes}
{attacks}

A killed training must end with the same weights, optimiser, random states and metrics, bit for bit, as one that was
not. A damaged file must be found, with one line that says what to do, or be made good. A number in `config.yaml` that
became another possible one looks like an edit; only of model, data and seed is it found.

What a user is told in these trials stands in [reliability.json](reliability.json), under `messages`. Whether the
tests would see a mistake: [mutation.md](mutation.md).

## Corpora larger than memory

{large}

`translucid train`, the preset `demo`: the first run reads the text three times and makes one update, the second, with
`--resume`, reads it once and makes 20. Private memory is what the process itself holds; it does not grow with the
corpus, unless subword dropout wants the text itself.

    python -m benchmarks.reliability.large --pairs 1000000 5000000 20000000

## Several processes

{scaling}

The preset `small` on the phrasebook. The loss curve is that of one process (tested to 1e-4); on two cores of one
machine there is little speed to win. A process that dies ends the job; `--max-restarts` with `--resume` goes on.

    python -m benchmarks.reliability.scaling

## The same result again

| what | is the same again |
| --- | --- |
| weights, on a CPU | bit for bit, with the same seed, files, versions, machine and threads, interrupted or not |
| with other threads, processes or processors | the curve; on some, `training.precision=float32` is needed for it |
| weights, on a GPU | with `training.deterministic=true`, slower, as far as PyTorch can |
| translations | whatever else is in the batch, with `--workers` or Ray, but for the last digits of a score |
"""


ATTACK = "attack: "
ASKED = "/translate", "/look"
ATTACKS = """\
A server under attack, by `--engine`: what 95 of 100 answers to four honest clients take at most, in quiet and under
attack. More than twice as long is a failure, and memory that does not come back is one. Failures: {failures}. A second
after the attackers have left it uses at most {rest} % of a core.

{table}"""


def attack_section(attacks: list[dict[str, Any]]) -> str:
    """Return what honest clients of a server waited for meanwhile, an attack a row, for each engine."""
    if not attacks:
        return "(not measured yet)"
    measured: dict[str, dict[str, list[str]]] = {}
    for one in attacks:
        attack, _, engine = one["trial"].removeprefix(ATTACK).partition(", --engine ")
        measured.setdefault(attack, {})[engine] = [str(one["figures"].get(kind, "–")) for kind in ASKED]
    engines = list(dict.fromkeys(engine for by_engine in measured.values() for engine in by_engine))
    heads = [f"{engine}: {kind}" for engine in engines for kind in ASKED]
    rows = []
    for attack, by_engine in measured.items():
        cells = [cell for engine in engines for cell in by_engine.get(engine, ["–"] * len(ASKED))]
        rows.append(f"| {attack} | {' | '.join(cells)} |")
    table = "\n".join([f"| attack | {' | '.join(heads)} |", f"| --- |{' --- |' * len(heads)}", *rows])
    rest = max(int(str(one["figures"]["processor a second later"]).rstrip("%")) for one in attacks)
    return ATTACKS.format(table=table, rest=rest, failures=sum(len(one["failures"]) for one in attacks))


def machine() -> str:
    """Say where this runs."""
    versions = f"Python {platform.python_version()}, PyTorch {torch.__version__}"
    has = " with bfloat16" if bfloat16() else " with AVX-512" if avx512() else ""
    return f"{os.cpu_count()} cores of {processor()}{has}, {platform.system()}, {versions}"


def write_page() -> None:
    """Write the page from what the record holds."""
    (DOCS / "reliability.md").write_text(page(json.loads(RECORD.read_text(encoding="utf-8"))), encoding="utf-8")


def page(record: dict[str, dict[str, Any]]) -> str:
    """Return the page's text, from what each part has found."""
    found = [finding for part in record.values() for finding in part["findings"]]
    attacks = [one for one in found if one["trial"].startswith(ATTACK)]
    rows = []
    for one in found:
        figures = ", ".join(_figure(what, value) for what, value in one["figures"].items())
        if one not in attacks:
            rows.append(f"| {one['trial']} | {figures} | {len(one['failures'])} |")
    return PAGE.format(
        machine="; ".join(sorted({part["machine"] for part in record.values()})),
        time=clock(sum(part["seconds"] for part in record.values())),
        rows="\n".join(rows),
        notes="".join(f"\n{part['note']}\n" for part in record.values() if "note" in part),
        attacks=attack_section(attacks),
        **{name: record.get(name, {}).get("table") or "(not measured yet)" for name in ("large", "scaling")},
    )


def _figure(what: str, value: int | float | str) -> str:
    return f"{value:,} {what}" if isinstance(value, int | float) else f"{what}: {value}"
