"""Label the words of English–Spanish pairs by the word lists beside this file, for `translucid features --labels`.

    python benchmarks/claims/word_list_labels.py dev.tsv test.tsv > labeled.jsonl
    translucid features runs/eng-spa --labels labeled.jsonl

Only words of the lists have labels; a form with several readings has those that all of its readings share. Case and
punctuation around a word don't count.
"""

from __future__ import annotations

import argparse
import csv
import json
from pathlib import Path

from translucid.data.readers.corpus import read_pairs

PUNCTUATION = ".,;:!?¡¿\"'«»()…"
LISTS = Path(__file__).with_name("word_lists.tsv")


def word_labels(language: str) -> dict[str, dict[str, str]]:
    """Return the labels of each word of the lists of a language."""
    with LISTS.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file, delimiter="\t") if row["language"] == language]
    labels: dict[str, dict[str, str]] = {}
    for row in rows:
        for word in row["words"].lower().split():
            assert word not in labels, word
            labels[word] = dict(label.split("=") for label in row["labels"].split())
    return labels


def labels_of(text: str, known: dict[str, dict[str, str]]) -> list[dict[str, str]]:
    return [known.get(word.strip(PUNCTUATION).lower().replace("’", "'"), {}) for word in text.split()]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("files", nargs="+", help="pairs")
    english, spanish = word_labels("en"), word_labels("es")
    for pair in read_pairs(*parser.parse_args().files):
        record = {"source": pair.source, "target": pair.target}
        labels = {"source_labels": labels_of(pair.source, english), "target_labels": labels_of(pair.target, spanish)}
        print(json.dumps({**record, **labels}, ensure_ascii=False))


if __name__ == "__main__":
    main()
