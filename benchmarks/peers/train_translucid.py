"""Translucid as users run it, measured by its metrics.jsonl.

python train_translucid.py SIZE|rnn SECONDS auto|float32|bfloat16
"""

import json
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

from common import DATA, SIZES, WORK, peak_mib, report

NAME, SECONDS, PRECISION = sys.argv[1], float(sys.argv[2]), sys.argv[3]
RUN = WORK / "tools" / f"translucid-{NAME}"


def main() -> None:
    size = SIZES.get(NAME, SIZES["tiny"])
    model = {
        "width": size.width,
        "heads": size.heads,
        "feed_forward": size.feed_forward,
        "encoder_layers": size.layers,
        "decoder_layers": size.layers,
        "dropout": size.dropout,
    }
    training = {
        "batch_tokens": size.tokens,
        "precision": PRECISION,
        "max_minutes": SECONDS / 60,
        "validate_every": 1_000_000,
        "validate_sentences": 1,
        "log_every": 1,
    }
    settings = {"training": training, "data": {"tokenizer": {"vocabulary": 10000}}}
    preset = ["--model", "rnn-luong-general"] if NAME == "rnn" else []
    shutil.rmtree(RUN, ignore_errors=True)
    RUN.mkdir(parents=True)
    file = RUN / "settings.yaml"
    file.write_text(json.dumps(settings if preset else {"model": model, **settings}))
    program = Path(sys.executable).parent / "translucid"
    text = ["--train", f"{DATA}/train.{{en,de}}", "--valid", f"{DATA}/valid.{{en,de}}", "--out", str(RUN / "run")]
    subprocess.run([program, "train", str(file), *preset, *text, "--no-tune"], check=True, stdout=sys.stderr)
    rows = [json.loads(line) for line in (RUN / "run" / "metrics.jsonl").read_text().splitlines()]
    last = [row for row in rows if row["kind"] == "training"][-1]
    report(  # the speed is that of the last 50 updates
        tokens_per_second=last["tokens_per_second"],
        updates=last["step"],
        peak_mib=peak_mib(children=True),
        versions={"translucid": metadata.version("translucid"), "torch": metadata.version("torch")},
    )


if __name__ == "__main__":
    main()
