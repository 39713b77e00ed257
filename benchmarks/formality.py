"""How often a run writes the form of address that it is asked for, and what that costs: docs/formality.md.

    translucid data phrasebook test.jsonl --formality --split test --count 2000 --max-words 16
    python benchmarks/formality.py --run RUN --test test.jsonl

The test sentences are translated without a choice, formally and informally. A translation has the form of address whose
words it has: those of one reference that the other one (`contrast`) lacks, and none of the other's. BLEU has both
references, so it does not depend on the form of address.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from pathlib import Path
from typing import Any

from sacrebleu.metrics import BLEU

from translucid import Translator
from translucid.data.formality import FORMALITIES
from translucid.kernels.devices import configure_process

MARKS = ".,?!¿¡"


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--test", type=Path, required=True)
    arguments = parser.parse_args()
    configure_process()
    rows = [json.loads(line) for line in arguments.test.read_text(encoding="utf-8").splitlines()]
    translator = Translator.load(arguments.run)
    neutral = [i for i, row in enumerate(rows) if "formality" not in row]
    addressed = [i for i, row in enumerate(rows) if "formality" in row]
    print(f"{len(addressed)} sentences address the reader, {len(neutral)} do not")
    print("| choice | formal | informal | neither | BLEU | BLEU of sentences without address | changed among these |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    plain: list[str] = []
    for formality in (None, *FORMALITIES):
        chosen = translator.with_formality(formality)
        texts = [translation.text for translation in chosen.stream([row["source"] for row in rows])]
        plain = plain or texts
        forms = Counter(form_of(texts[i], rows[i]) for i in addressed)
        shares = [f"{100 * forms[form] / len(addressed):.1f} %" for form in (*FORMALITIES, "")]
        changed = sum(texts[i] != plain[i] for i in neutral)
        figures = [f"{score(texts, rows, range(len(rows))):.1f}", f"{score(texts, rows, neutral):.1f}", str(changed)]
        print(f"| {' | '.join([formality or 'none', *shares, *figures])} |", flush=True)
        wrong = [i for i in addressed if formality and form_of(texts[i], rows[i]) != formality]
        for i in wrong[:5]:
            print(f"    {formality}: {rows[i]['source']} -> {texts[i]}")


def form_of(text: str, row: dict[str, Any]) -> str:
    """Return `formal`, `informal`, or an empty text for a translation with words of both, or of neither."""
    other = next(formality for formality in FORMALITIES if formality != row["formality"])
    references = {row["formality"]: words(row["target"]), other: words(row["contrast"])}
    written = words(text)
    signs = {
        form: references[form] - references[rival] for form, rival in zip(FORMALITIES, FORMALITIES[::-1], strict=True)
    }
    found = [form for form in FORMALITIES if signs[form] & written]
    return found[0] if len(found) == 1 else ""


def words(text: str) -> Counter[str]:
    """Return the words of a text, in lower case and without punctuation."""
    return Counter(word.strip(MARKS) for word in text.lower().split())


def score(texts: list[str], rows: list[dict[str, Any]], indices: Any) -> float:
    """Return the BLEU score of some translations, with both references of those that address the reader."""
    hypotheses = [texts[i] for i in indices]
    references = [rows[i]["target"] for i in indices]
    contrasts = [rows[i].get("contrast") or rows[i]["target"] for i in indices]
    return BLEU().corpus_score(hypotheses, [references, contrasts]).score


if __name__ == "__main__":
    main()
