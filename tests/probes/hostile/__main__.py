"""Try hostile inputs and print the results; exit with code 1 after any failure."""

from __future__ import annotations

import argparse
import json
import sys
import time

from tests.probes.hostile.runner import SHARES, run_all


def main() -> int:
    """Print a line for each target, and every failure."""
    parser = argparse.ArgumentParser(prog="python -m tests.probes.hostile", description=__doc__)
    parser.add_argument("--count", type=int, default=100_000, help="inputs in all (100,000 take about ten minutes)")
    parser.add_argument("--seed", type=int, default=1, help="other seeds, other inputs")
    parser.add_argument("--target", action="append", choices=list(SHARES), help="only this one; may be repeated")
    parser.add_argument("--json", action="store_true", help="print the tallies as JSON")
    arguments = parser.parse_args()
    tallies = []
    for tally, seconds in _timed(run_all(arguments.count, arguments.seed, arguments.target)):
        tallies.append(tally)
        print(f"{tally} ({seconds:.0f} s)", file=sys.stderr, flush=True)
        for failure in tally.failures[:5]:
            print(f"  FAILURE {failure}", file=sys.stderr, flush=True)
    if arguments.json:
        print(json.dumps([tally.to_json() for tally in tallies], indent=2))
    attempts, failed = sum(tally.tried for tally in tallies), sum(len(tally.failures) for tally in tallies)
    print(f"{attempts:,} hostile inputs, {failed:,} failures", file=sys.stderr)
    return 1 if failed else 0


def _timed(tallies):  # type: ignore[no-untyped-def]
    started = time.monotonic()
    for tally in tallies:
        yield tally, time.monotonic() - started
        started = time.monotonic()


if __name__ == "__main__":
    sys.exit(main())
