"""Toolkits with their own commands, measured by their logs.

    python train_tools.py opennmt|eole|joeynmt SIZE SECONDS

Each trains on the same text with its own trainer and is stopped after a number of seconds of logged updates. The first
lines are warm-up. Tokens are those that the toolkit counts (target tokens and the end token); the clock is ours.
"""

import re
import shutil
import sys
import time

from common import SIZES, WORK, peak_mib, report
from tools import TOOLS, Settings, running


def main() -> None:
    name, size, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    run = WORK / "tools" / f"{name}-{size}"
    shutil.rmtree(run, ignore_errors=True)
    run.mkdir(parents=True)
    line, pattern, tokens_of = TOOLS[name](Settings(run, SIZES[size], every=5 if size == "tiny" else 2, training={}))
    measurements: list[tuple[float, int, float]] = []
    with (run / "log.txt").open("w") as log, running(line) as output:
        for text in output:
            log.write(text)
            now = time.perf_counter()
            if match := re.search(pattern, text):
                measurements.append((now, *tokens_of(match, now - measurements[-1][0] if measurements else 0.0)))
            if len(measurements) > 4 and now - measurements[1][0] > seconds:
                break
    if len(measurements) < 4:
        sys.exit(f"{name} logged {len(measurements)} lines; see {run}/log.txt")
    elapsed = measurements[-1][0] - measurements[1][0]
    tokens = sum(count for _, _, count in measurements[2:])
    report(
        tokens_per_second=tokens / elapsed,
        updates=measurements[-1][1] - measurements[1][1],
        peak_mib=peak_mib(children=True),
    )


if __name__ == "__main__":
    main()
