"""Private words for standard terms are not used."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

BANNED = ("models? of language", "heed", "heeds", "heeding", "heeded", "Desk", "Errand", "Workshop", "gone on with")
"""Private words that formerly stood for standard terms."""


def test_private_words_for_standard_terms_are_not_used():
    pattern = re.compile(r"\b(" + "|".join(BANNED) + r")\b")
    folders = ("src", "tests", "docs", "benchmarks", "recipes", "notebooks")
    kinds = {".py", ".md", ".yaml", ".js", ".css", ".html", ".ipynb"}
    files = [file for folder in folders for file in (ROOT / folder).rglob("*") if file.suffix in kinds]
    hits = []
    for file in [*files, ROOT / "README.md", ROOT / "CONTRIBUTING.md"]:
        if file == Path(__file__):
            continue
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
            if pattern.search(line):
                hits.append(f"{file.relative_to(ROOT)}:{number}: {line.strip()}")
    assert not hits
