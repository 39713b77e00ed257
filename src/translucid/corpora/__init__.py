"""Generated corpora: the reading of their tables, and the plurals of English nouns."""

from __future__ import annotations

import csv
from importlib.resources import files


def english_plural(singular: str) -> str:
    """Return the regular English plural."""
    if singular.endswith("y") and singular[-2] not in "aeou":
        return singular[:-1] + "ies"
    return singular + ("es" if singular.endswith(("ch", "sh", "s", "x")) else "s")


def table(name: str, package: str = "translucid.corpora") -> list[dict[str, str]]:
    """Return the rows of a table in a package, such as `phrasebook/nouns.tsv`, by the names of its columns."""
    text = (files(package) / name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines(), delimiter="\t", restval=""))
