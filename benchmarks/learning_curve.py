"""BLEU over training minutes of a run, as a Markdown table.

python benchmarks/learning_curve.py runs/multi30k [runs/other ...]
"""

import sys
from pathlib import Path

from translucid.runs.run_folder import RunFolder


def main() -> None:
    for folder in sys.argv[1:]:
        rows = [row for row in RunFolder(Path(folder)).metrics() if row["kind"] == "validation"]
        print(f"\n{folder}\n\n| minutes | updates | loss | BLEU |\n| ---: | ---: | ---: | ---: |")
        for row in rows:
            print(f"| {row['seconds'] / 60:.1f} | {row['step']:,} | {row['loss']:.3f} | {row['bleu']:.1f} |")


if __name__ == "__main__":
    main()
