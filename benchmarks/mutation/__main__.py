"""How many small wrong changes do the tests detect? `make mutation SAMPLE=200 SEED=1`.

    python -m benchmarks.mutation [--sample 150] [--seed 1] [--rooms decoding training] [--write] [--again]
    python -m benchmarks.mutation --since COMMIT --sample 100    # only lines that have changed

A mutant is a copy of the package with one wrong change, such as < for <=. It is killed if a test fails or times out; it
survives if all tests pass. `selection.py` decides which tests run, `behavior.py` what is never changed, and
`equivalent.json` lists the mutants that no test could kill, with reasons. --write stores the results in
docs/reports/mutation.json and docs/reports/mutation.md. With --again, only the survivors of the same sample are tried,
after new tests were written.
"""

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue

from benchmarks.mutation.mutants import ROOMS, Mutant, sample, sample_since
from benchmarks.mutation.page import RECORD, write_page
from benchmarks.mutation.selection import place_of, tests_of
from benchmarks.mutation.trial import Bench, Outcome

SEEN = ("killed", "timeout")
EQUIVALENT = Path(__file__).with_name("equivalent.json")


def reason(mutant: Mutant) -> str | None:
    """Return why no test can kill a mutant, or None."""
    for equivalent in json.loads(EQUIVALENT.read_text(encoding="utf-8")):
        if (equivalent["file"], equivalent["before"], equivalent["after"]) == (
            mutant.file,
            mutant.before,
            mutant.after,
        ):
            return equivalent["why"]
    return None


def run(mutants: list[Mutant], folder: Path, processes: int) -> dict[Mutant, Outcome]:
    """Run the tests on all mutants, several at a time, each on a copy of its own."""
    benches = SimpleQueue[Bench]()
    for i in range(processes):
        benches.put(Bench(folder / str(i)))

    def unchanged(place: str) -> float:
        bench = benches.get()
        outcome = bench.test(tests_of(place))
        benches.put(bench)
        if outcome.verdict != "survived":
            raise SystemExit(f"the tests of {place} fail without a change: {outcome.output}")
        print(f"{place}: {outcome.seconds:.0f} s unchanged", file=sys.stderr, flush=True)
        return 2 * outcome.seconds + 60

    def tried(mutant: Mutant) -> Outcome:
        bench = benches.get()
        outcome = bench.try_out(mutant, limits[place_of(mutant.file)])
        benches.put(bench)
        print(f"{outcome.verdict:10} {outcome.seconds:4.0f} s  {mutant}", file=sys.stderr, flush=True)
        return outcome

    places = sorted({place_of(mutant.file) for mutant in mutants})
    with ThreadPoolExecutor(processes) as pool:
        limits = dict(zip(places, pool.map(unchanged, places), strict=True))
        return dict(zip(mutants, pool.map(tried, mutants), strict=True))


def rooms_of(verdicts: dict[Mutant, str]) -> dict[str, dict[str, float]]:
    """Count the outcomes by package and in total; a mutant that times out counts as killed."""
    rooms = {}
    for room in [*dict.fromkeys([*ROOMS, *sorted(mutant.room for mutant in verdicts)]), "all"]:
        counts = Counter(verdict for mutant, verdict in verdicts.items() if room in (mutant.room, "all"))
        real = counts.total() - counts["equivalent"]
        if real:
            kinds = {kind: counts[kind] for kind in ("killed", "timeout", "survived", "equivalent")}
            score = sum(counts[kind] for kind in SEEN) / real
            rooms[room] = {"mutants": counts.total(), **kinds, "score": round(score, 3)}
    return rooms


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutation", description=__doc__.split("\n")[0])
    parser.add_argument("--sample", type=int, default=150, help="number of mutants, spread evenly over the packages")
    parser.add_argument("--seed", type=int, default=1, help="seed of the sample")
    parser.add_argument("--rooms", nargs="+", choices=ROOMS, default=ROOMS)
    parser.add_argument("--processes", type=int, default=2, help="mutants tried at a time; each needs a core")
    parser.add_argument("--since", metavar="COMMIT", help="only lines that have changed since, in all packages")
    parser.add_argument("--write", action="store_true", help="write the results to docs")
    parser.add_argument("--again", action="store_true", help="only the survivors recorded in docs")
    arguments = parser.parse_args()
    if arguments.since and (arguments.write or arguments.again):
        parser.error("--since prints its results, which docs do not keep")
    from benchmarks.reliability.page import machine  # not at the top: mutants reload the package
    from translucid.ground.atomic import write_atomically

    samples = json.loads(RECORD.read_text(encoding="utf-8"))
    name = f"{arguments.sample} {arguments.seed} {' '.join(arguments.rooms)}"
    previous = samples.get(name, {}) if arguments.again else {}
    before = previous.get("verdicts", {})
    if arguments.since:
        mutants = sample_since(arguments.since, arguments.sample, arguments.seed)
    else:
        mutants = sample(arguments.sample, arguments.seed, arguments.rooms)
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        remaining = [mutant for mutant in mutants if before.get(str(mutant), "survived") == "survived"]
        outcomes = run(remaining, Path(folder), arguments.processes)
    verdicts = {}
    for mutant in mutants:
        verdicts[mutant] = outcomes[mutant].verdict if mutant in outcomes else before[str(mutant)]
        if verdicts[mutant] == "survived" and reason(mutant):
            verdicts[mutant] = "equivalent"
    date = previous.get("date", time.strftime("%Y-%m-%d"))
    record = {"seed": arguments.seed, "date": date, "rooms": rooms_of(verdicts)}
    record["seen_at_first"] = previous.get("seen_at_first", sum(verdict in SEEN for verdict in verdicts.values()))
    record["verdicts"] = {str(mutant): verdict for mutant, verdict in verdicts.items()}
    record |= {"tried": len(outcomes), "seconds": round(time.monotonic() - started), "machine": machine()}
    print(json.dumps(record["rooms"], indent=1))
    if arguments.write:
        samples[name] = record
        write_atomically(RECORD, json.dumps(samples, indent=1, ensure_ascii=False).encode())
        write_page()


if __name__ == "__main__":
    main()
