"""How often a run writes the form of address that it is asked for, and what that costs: docs/formality.md.

    translucid data phrasebook test.jsonl --formality --split test --count 2000 --max-words 16
    python benchmarks/formality.py --run RUN --test test.jsonl
    python benchmarks/formality.py --run RUN --test test.tsv

The test sentences are translated without a choice, formally and informally.

With gold labels (.jsonl), a translation has the form of address whose words it has: those of one reference that the
other one (`contrast`) lacks, and none of the other's. BLEU has both references, so it does not depend on the form.

A .tsv file has none: there, the rules of `translucid.data.formality` label translations and references. The sentences
that address the reader are those whose sources may do so by the rules (*you*, *your*, imperatives). A third column is
the document; then a last column counts the documents with both forms of address.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from sacrebleu.metrics import BLEU

import translucid.api.translator
from translucid import Translator
from translucid.data.formality import FORMALITIES, address_of
from translucid.kernels.devices import configure_process

MARKS = ".,?!¿¡"
SHOWN = 5
"""The number of translations without the requested form that are shown of each table row."""


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--test", type=Path, required=True)
    parser.add_argument("--single-search", action="store_true", help="never search again for the requested form")
    parser.add_argument("--out", type=Path, help="a .jsonl file for the translations")
    arguments = parser.parse_args()
    configure_process()
    if arguments.single_search:
        translucid.api.translator.address_loss = lambda *_: 0
    translator = Translator.load(arguments.run)
    rows = read(arguments.test, translator.languages)
    neutral = [i for i, row in enumerate(rows) if not row["addresses"]]
    addressed = [i for i, row in enumerate(rows) if row["addresses"]]
    print(f"{len(addressed)} sentences address the reader, {len(neutral)} do not")
    print(
        "| choice | formal | informal | neither | BLEU | BLEU of sentences without address | changed among these | s "
        "| documents with both forms |"
    )
    print(f"|{' --- |' * 9}")
    texts: dict[str | None, list[str]] = {}
    for formality in (None, *FORMALITIES):
        chosen = translator.with_formality(formality)
        start = time.perf_counter()
        texts[formality] = [translation.text for translation in chosen.stream([row["source"] for row in rows])]
        seconds = time.perf_counter() - start
        forms = Counter(form_of(texts[formality][i], rows[i]) for i in addressed)
        shares = [f"{100 * forms[form] / len(addressed):.1f} %" for form in (*FORMALITIES, "")]
        changed = sum(texts[formality][i] != texts[None][i] for i in neutral)
        figures = [f"{score(texts[formality], rows, indices):.1f}" for indices in (range(len(rows)), neutral)]
        by_document = defaultdict[str | None, set[str]](set)
        for i in addressed:
            by_document[rows[i].get("document")].add(form_of(texts[formality][i], rows[i]))
        both = f"{sum({*FORMALITIES} <= forms for forms in by_document.values())} of {len(by_document)}"
        print(
            f"| {' | '.join([formality or 'none', *shares, *figures, str(changed), f'{seconds:.0f}', both])} |",
            flush=True,
        )
        wrong = [i for i in addressed if formality and form_of(texts[formality][i], rows[i]) != formality]
        for i in wrong[:SHOWN]:
            print(f"    {formality}: {rows[i]['source']} -> {texts[formality][i]}")
    labeled = [i for i, row in enumerate(rows) if row.get("formality")]
    as_reference = [texts[row.get("formality")][i] for i, row in enumerate(rows)]
    print(f"BLEU of {len(labeled)} sentences with a labeled reference: {score(texts[None], rows, labeled):.1f} without")
    print(f"a choice, {score(as_reference, rows, labeled):.1f} in the form of address of the reference")
    if arguments.out:
        lines = []
        for i, row in enumerate(rows):
            written = {formality or "none": texts[formality][i] for formality in texts}
            lines.append(json.dumps(row | written, ensure_ascii=False) + "\n")
        arguments.out.write_text("".join(lines), encoding="utf-8")


def read(file: Path, languages: tuple[str | None, str | None]) -> list[dict[str, Any]]:
    """Return the records of a file, with gold labels or with those of the rules."""
    lines = file.read_text(encoding="utf-8").splitlines()
    if file.suffix == ".jsonl":
        rows = map(json.loads, lines)
        return [row | {"addresses": "formality" in row} for row in rows]
    rows = []
    for line in lines:
        source, target, *others = line.split("\t")
        label = address_of(target, languages[1], source, languages[0])
        row = {"source": source, "target": target, "addresses": address_of(source, languages[0]) != "none"}
        row |= {"formality": label} if label in FORMALITIES else {}
        rows.append(row | {"languages": languages, "document": others[0] if others else None})
    return rows


def form_of(text: str, row: dict[str, Any]) -> str:
    """Return `formal`, `informal`, or an empty text for a translation with words of both, or of neither."""
    if "contrast" not in row:
        source_language, language = row["languages"]
        label = address_of(text, language, row["source"], source_language)
        return label if label in FORMALITIES else ""
    other = next(formality for formality in FORMALITIES if formality != row["formality"])
    references = {row["formality"]: words(row["target"]), other: words(row["contrast"])}
    # Words of both references, such as `necesita` in "necesitas abrigos y el médico necesita", are no signs.
    written = words(text) - (references["formal"] & references["informal"])
    found = []
    for form, rival in zip(FORMALITIES, FORMALITIES[::-1], strict=True):
        if (references[form] - references[rival]) & written:
            found.append(form)
    return found[0] if len(found) == 1 else ""


def words(text: str) -> Counter[str]:
    """Return the words of a text, in lower case and without punctuation."""
    return Counter(word.strip(MARKS) for word in text.lower().split())


def score(texts: list[str], rows: list[dict[str, Any]], indices: Any) -> float:
    """Return the BLEU score of some translations, with both references of those that address the reader."""
    if not indices:
        return math.nan
    hypotheses = [texts[i] for i in indices]
    references = [rows[i]["target"] for i in indices]
    contrasts = [rows[i].get("contrast") or rows[i]["target"] for i in indices]
    return BLEU().corpus_score(hypotheses, [references, contrasts]).score


if __name__ == "__main__":
    main()
