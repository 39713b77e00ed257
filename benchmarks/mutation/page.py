"""Write docs/reports/mutation.md from the results of `make mutation`."""

import json
from pathlib import Path
from typing import Any

REPORTS = Path(__file__).resolve().parents[2] / "docs" / "reports"
RECORD = REPORTS / "mutation.json"

PAGE = """# Mutation testing

`make mutation` makes small wrong changes ("mutants"), one at a time: `<=` for `<`, 2 for 1, a loop that never runs, a
negated `if`. After each it runs the tests that are named after the changed file or import it, then the others of its
package, except those that need a browser. The score is the share of mutants that a test detects, without those that no
test could detect; [equivalent.json](../../benchmarks/mutation/equivalent.json) lists these with reasons.
[cosmic-ray](https://cosmic-ray.readthedocs.io) generates the changes. Each sample has the same number for each of its
packages.

These are never changed: annotations, docstrings, error messages, `__repr__`, defaults and bounds of settings, presets,
and what only protects the programmer (`frozen=True`, `@abstractmethod`, `*` among parameters).

`make mutation SAMPLE=600 SEED=2` draws a larger or different sample. A mutant takes half a minute.
{samples}"""
SAMPLE = """
## {mutants} mutants of {packages}

Drawn on {date} (`python -m benchmarks.mutation --sample {mutants} --seed {seed} --rooms {packages}`):

| package | mutants | killed | timed out, counted as killed | survived | equivalent | score |
| --- | --- | --- | --- | --- | --- | --- |
{rows}

Before tests were written for the survivors, the score was {first:.0%}. That is the better estimate for other changes.
Surviving mutants:

{survived}
"""


def page(samples: dict[str, dict[str, Any]]) -> str:
    """Return the page's text."""
    return PAGE.format(samples="".join(map(_sample, samples.values())))


def _sample(record: dict[str, Any]) -> str:
    rows = []
    for room, counts in record["rooms"].items():
        columns = [str(count) for name, count in counts.items() if name != "score"]
        rows.append(f"| {room} | {' | '.join(columns)} | {counts['score']:.0%} |")
    survived = [f"- `{line}`" for line, verdict in record["verdicts"].items() if verdict == "survived"]
    totals = record["rooms"]["all"]
    return SAMPLE.format(
        mutants=totals["mutants"],
        packages=" ".join(room for room in record["rooms"] if room != "all"),
        date=record["date"],
        first=record["seen_at_first"] / (totals["mutants"] - totals["equivalent"]),
        seed=record["seed"],
        rows="\n".join(rows),
        survived="\n".join(survived) or "- none in this sample",
    )


def write_page() -> None:
    """Write the page from the records."""
    (REPORTS / "mutation.md").write_text(page(json.loads(RECORD.read_text(encoding="utf-8"))), encoding="utf-8")
