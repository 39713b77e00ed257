"""Train OpenNMT-py or Eole and translate with its checkpoints: `python learn_tools.py opennmt|eole MINUTES`.

The clock starts at the first line of the log that reports an update; translation follows after training.
"""

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from common import PEAK, SENTENCES, SIZES, WARMUP, WORK, pieces, report, text
from tools import TOOLS, Settings, command, running

NAME, SECONDS = sys.argv[1], 60 * float(sys.argv[2])
RUN = WORK / "tools" / f"{NAME}-learn"
SCHEDULE = {
    "decay_method": "noam",
    "learning_rate": PEAK * (WARMUP * SIZES["tiny"].width) ** 0.5,  # of which it takes 1 / sqrt(width)
    "warmup_steps": WARMUP,
    "save_checkpoint_steps": 50,
    "keep_checkpoint": -1,
}
TRANSLATE = {
    "opennmt": [command("opennmt", "onmt_translate"), "-model"],
    "eole": [command("eole", "eole"), "predict", "-model_path"],
}
"""The option before the path of a checkpoint."""


def learn() -> dict[Path, float]:
    """Train; return the checkpoints and the seconds after which they were written."""
    line, pattern, _ = TOOLS[NAME](Settings(RUN, SIZES["tiny"], every=5, training=SCHEDULE))
    first = 0.0
    checkpoints: dict[Path, float] = {}
    with (RUN / "log.txt").open("w") as log, running(line) as output:
        for line_read in output:
            log.write(line_read)
            if not re.search(pattern, line_read):
                continue
            now = time.perf_counter()
            first = first or now
            for path in RUN.glob("**/*step_*"):  # written before this update, so complete
                checkpoints.setdefault(path, now - first)
            if now - first > SECONDS:
                break
    return checkpoints


def translated(checkpoint: Path, source: Path) -> list[str]:
    """Translate greedily; return text."""
    output = RUN / "translated"
    options = [
        *("-src", str(source), "-output", str(output), "-max_length", "60"),
        *("-beam_size", "1", "-batch_size", "64", "-batch_type", "sents"),
    ]
    # OpenNMT-py has just written these pickled checkpoints itself, so loading them is safe.
    environment = {**os.environ, "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1", "CUDA_VISIBLE_DEVICES": ""}
    subprocess.run([*TRANSLATE[NAME], str(checkpoint), *options], check=True, env=environment, stdout=sys.stderr)
    return [text(line.split()) for line in output.read_text(encoding="utf-8").split("\n")[:SENTENCES]]


def main() -> None:
    shutil.rmtree(RUN, ignore_errors=True)
    RUN.mkdir(parents=True)
    checkpoints = learn()
    source = RUN / "source"
    source.write_text("".join(f"{' '.join(row)}\n" for row in pieces("valid", "en")[:SENTENCES]), encoding="utf-8")
    for path, seconds in sorted(checkpoints.items(), key=lambda item: item[1]):
        report(seconds=seconds, texts=translated(path, source))


if __name__ == "__main__":
    main()
