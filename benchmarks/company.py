"""How many translations change when each sentence is translated alone.

    python benchmarks/company.py RUN lines.txt

With one shortlist per batch, a translation depends on the other sentences of the batch.
"""

import argparse
from pathlib import Path

from translucid import Translator
from translucid.data.readers.corpus import read_lines


def main() -> None:
    """Print the number."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("text", type=Path)
    arguments = parser.parse_args()
    lines = list(read_lines(arguments.text))
    translator = Translator.load(arguments.run, "cpu")
    batched = [translation.text for translation in translator.translate(lines, split=False)]
    alone = [translator.translate(line, split=False).text for line in lines]
    different = sum(in_batch != by_itself for in_batch, by_itself in zip(batched, alone, strict=True))
    print(f"{translator.engine}: {different:,} of {len(lines):,} differ when translated alone")


if __name__ == "__main__":
    main()
