"""docs/mutation.md, written from what `make mutation` has found."""

import json
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[2] / "docs"
RECORD = DOCS / "mutation.json"

PAGE = """# Would the tests see it?

`make mutation` makes small wrong changes ("mutants"), one at a time: `<=` for `<`, 2 for 1, a loop that
never runs, an `if` turned round. After each it runs the tests of the room that was changed. The score is the share of
mutants that a test sees; those that no test could see are left out, and listed with the reason of each in
[equivalent.json](../benchmarks/mutation/equivalent.json). The changes come from
[cosmic-ray](https://cosmic-ray.readthedocs.io); {mutants} of some thousands were drawn (seed {seed}), as many of each
room.

| room | mutants | killed | never ended, so killed | survived | equivalent | score |
| --- | --- | --- | --- | --- | --- | --- |
{rows}

Before tests were written for what this draw brought to light, {first:.0%} of it was seen: the better guess of how other
changes would fare.

Not changed: annotations, docstrings, texts of errors, `__repr__`, defaults and bounds of settings, presets, and what
only guards the programmer (`frozen=True`, `@abstractmethod`, `*` among parameters).

What the tests do not see:

{survived}

`make mutation SAMPLE=600 SEED=2` draws more, or others; a mutant takes half a minute.
"""


def page(record: dict[str, Any]) -> str:
    """Return the page's text."""
    rows = [
        f"| {room} | {' | '.join(str(n) for name, n in counts.items() if name != 'score')} | {counts['score']:.0%} |"
        for room, counts in record["rooms"].items()
    ]
    survived = [f"- `{line}`" for line, verdict in record["verdicts"].items() if verdict == "survived"]
    every = record["rooms"]["all"]
    return PAGE.format(
        mutants=every["mutants"],
        first=record["seen_at_first"] / (every["mutants"] - every["equivalent"]),
        seed=record["seed"],
        rows="\n".join(rows),
        survived="\n".join(survived) or "- nothing of this draw",
    )


def write_page() -> None:
    """Write the page from what the record holds."""
    (DOCS / "mutation.md").write_text(page(json.loads(RECORD.read_text(encoding="utf-8"))), encoding="utf-8")
