"""docs/reliability.md, written from what was found."""

import os
import platform
import re
from typing import Any

import torch

from translucid.training.display import clock

PAGE = """# Nothing lost: what was done to it, and what came of it

Written by `make reliability`, which does all of this again in {time} ({machine}).
A short form of each trial is in `make test`. What a stranger's files can and can't do is in [security.md](security.md).

## Trials

| trial | figures | failures |
| --- | --- | --- |
{rows}

A killed training is compared with one that was not: weights, averaged weights, optimiser, random states, place in the
data and every row of `metrics.jsonl` must be the same, bit for bit, but for the time they took. A damaged file must
either be found, with one line that names it and says what to do, or be made good, with the same end; a best model that
was damaged is replaced at the next validation, and that is said. What can't be found is a number in `config.yaml` that
became another possible one: that is what an edit looks like (of model, data and seed it is found all the same).

What a user is told in these trials:

{messages}

## Corpora larger than memory

{large}

`translucid train` of two phrasebook sentences a pair, the preset `demo`, a vocabulary learned from 200,000 pairs. The
first run reads the text three times (to hold out validation pairs, to learn the vocabulary, and to encode it, on all
cores) and makes one update; the second, with `--resume`, reads it once, for its checksum, and makes 20. Mapped files
count as resident memory as long as the system has no better use for it; private memory is what the process itself
holds, and it does not grow with the corpus: the text is streamed, token ids are mapped files in `state/corpus/`, an
epoch's order is a keyed permutation that takes no memory, planned a million pairs at a time. Only subword dropout needs
the text itself in memory.

    python -m benchmarks.reliability.large --pairs 1000000 5000000 20000000

## Several processes

{scaling}

The preset `small` on the phrasebook. The batch is shared, so the loss curve is that of one process (tested to 1e-4),
and each process collates and computes only its own rows. On two cores of one machine there is little to win; the point
is that the same command runs on several machines. A process that dies ends the job;
`torchrun --standalone --max-restarts 3 ... train --resume ...` starts it again from the last checkpoint. With
`training.sharded=true` each process holds a part of the weights only (tested with two: half of them in each).

    python -m benchmarks.reliability.scaling

## The same result again

- On a CPU the same seed, files, versions, machine and number of threads give the same weights bit for bit, whether the
  training was interrupted or not, and whatever number of processes encoded the corpus.
- Another number of threads, or another processor, adds the same numbers in another order: the same curve, not the same
  bits. The same holds for another number of training processes. Processors with instructions for bfloat16 train with
  products rounded to it, others do not: `training.precision=float32` has all of them work alike.
- On GPUs some of PyTorch's operations add in no fixed order (the backward pass of the embedding, some attention
  kernels). `training.deterministic=true` has only those used that do, at a price in speed; where there is none, PyTorch
  says which operation it is.
- Translations do not depend on what else is in the batch beyond the last digits of a score; `--workers` and Ray give
  the same bytes as one process.
"""


def machine() -> str:
    """Say where this runs."""
    versions = f"Python {platform.python_version()}, PyTorch {torch.__version__}"
    return f"{os.cpu_count()} cores, {platform.system()}, {versions}"


def page(record: dict[str, dict[str, Any]]) -> str:
    """Return the page's text, from what each part has found."""
    found = [finding for part in record.values() for finding in part["findings"]]
    rows = []
    for one in found:
        figures = ", ".join(_figure(what, value) for what, value in one["figures"].items())
        rows.append(f"| {one['trial']} | {figures} | {len(one['failures'])} |")
    told = (message.replace("error: ", "") for one in found for message in one["messages"])
    messages = sorted({re.sub(r"(\.yaml):\d+", r"\1:LINE", message) for message in told})
    return PAGE.format(
        machine="; ".join(sorted({part["machine"] for part in record.values()})),
        time=clock(sum(part["seconds"] for part in record.values())),
        rows="\n".join(rows),
        messages="\n".join(f"- `{line}`" for line in messages),
        **{name: record.get(name, {}).get("table") or "(not measured yet)" for name in ("large", "scaling")},
    )


def _figure(what: str, value: int | float | str) -> str:
    return f"{value:,} {what}" if isinstance(value, int | float) else f"{what}: {value}"
