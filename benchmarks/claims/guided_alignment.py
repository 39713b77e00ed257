"""Claim 19: guided alignment, which trains an attention head on word links.

    python benchmarks/claims/guided_alignment.py [--french TRAIN DEV --links gold.jsonl.gz] [--quick]

Models with the settings of the demo are trained on the phrasebook without links, with the links of our statistical
aligner, and with gold links. Guided alignment trains the first head of the last decoder layer and, for comparison, of
the last layer but one. Runs are cached in runs/claims/guided (fifteen minutes each on one thread of a busy machine).

With `--french`, models with three decoder layers are trained on English-French pairs for 4,000 updates, with and
without statistical links, and tested on pairs of another domain that people have linked (`--links`). A GPU is used if
there is one.

--quick trains for 60 updates; its figures mean nothing and are written beside the runs.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from common import DOCS, scored, table, train_once, translations, write

from bitext.pair import Pair
from translucid.api.translator import Translator
from translucid.corpora.phrasebook import generate
from translucid.corpora.phrasebook.generation import Split
from translucid.data.linked_pairs import LinkedPair
from translucid.data.readers.corpus import read_pairs
from translucid.evaluation.alignment_error import AlignmentOptions, AlignmentScore, Gold, alignment_score, read_gold
from translucid.inspection.alignment import candidates, choose
from translucid.inspection.statistical_alignment import statistical_links
from translucid.lessons.demonstration import SIZES
from translucid.runs.configuration import resolve
from translucid.runs.run_folder import RunFolder

WEIGHT = 0.1
COMMAND = "python benchmarks/claims/guided_alignment.py"
FRENCH = [
    *("model.encoder_layers=3", "model.decoder_layers=3", "model.dropout=0.1", "data.tokenizer.vocabulary=4000"),
    *("data.source_language=en", "data.target_language=fr", "training.max_steps=4000", "training.validate_every=500"),
    *("training.batch_tokens=4096", "training.validate_sentences=500"),
]


class Tested(NamedTuple):
    """Pairs with gold links, and the pairs on which BLEU is measured."""

    pairs: Sequence[Pair]
    gold: Sequence[Gold]
    translated: Sequence[Pair]


class Row(NamedTuple):
    """A row of a table."""

    method: str
    score: AlignmentScore
    bleu: str = ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--french", nargs=2, metavar=("TRAIN", "DEV"), help="English-French pairs")
    parser.add_argument("--links", type=Path, help="English-French pairs with gold links, as .jsonl")
    parser.add_argument("--runs", type=Path, default=Path("runs/claims/guided"))
    parser.add_argument("--quick", action="store_true", help="60 updates, figures not written to docs")
    arguments = parser.parse_args()
    runs = arguments.runs / "quick" if arguments.quick else arguments.runs
    sections = [phrasebook(runs, quick=arguments.quick)]
    if arguments.french:
        sections.append(hansards(runs, arguments.french, arguments.links, quick=arguments.quick))
    write("19-guided-alignment.md", page(sections), runs if arguments.quick else DOCS)


def phrasebook(runs: Path, *, quick: bool) -> str:
    """Train and score the models of the phrasebook; return the table."""
    gold_links = linked_phrases(SIZES["train"], "train")
    plain = [Pair(*pair) for pair in gold_links]
    valid = linked_phrases(SIZES["valid"], "valid")
    test = linked_phrases(600, "test")[100:]
    tested = Tested(test, [Gold(pair.links, pair.links) for pair in test], test)
    settings = ["training.max_steps=60"] if quick else []
    rows = []
    for name, train, layer in (
        ("no links", plain, None),
        ("statistical links", plain, 0),
        ("statistical links", plain, 1),
        ("gold links", gold_links, 0),
        ("gold links", gold_links, 1),
    ):
        rows += trained(runs, name, train, valid, layer, settings, tested)
    rows.append(statistics(tested, plain))
    return f"## Phrasebook, 2 decoder layers: {len(test)} test pairs\n\n{table_of(rows)}"


def hansards(runs: Path, files: Sequence[str], links: Path, *, quick: bool) -> str:
    """Train models on Tatoeba and score them on the Hansards; return the table."""
    plain, valid = (list(read_pairs(file)) for file in files)
    pairs = list(read_pairs(links))
    tested = Tested(pairs[100:], read_gold(links, pairs)[100:], valid[-500:])
    settings = [*FRENCH, "training.max_steps=60"] if quick else FRENCH
    rows = []
    for name, layer in (("no links", None), ("statistical links", 1), ("statistical links", 2)):
        rows += trained(runs, f"French, {name}", plain, valid[:500], layer, settings, tested)
    rows.append(statistics(tested, plain))
    return f"## Tatoeba, 3 decoder layers, 4,000 updates; {len(tested.pairs)} pairs of the Hansards\n\n{table_of(rows)}"


def linked_phrases(count: int, split: Split) -> list[LinkedPair]:
    """Return phrasebook pairs with their gold links."""
    return [LinkedPair.of(Pair(p.source, p.target), p.alignment) for p in generate(count, split=split)]


def trained(
    runs: Path,
    name: str,
    train: Sequence[Pair],
    valid: Sequence[Pair],
    layer: int | None,
    settings: Sequence[str],
    tested: Tested,
) -> list[Row]:
    """Train a model, with guided alignment of `layer` unless that is None; return the rows of `readings`."""
    if layer is None:
        configuration = resolve(preset="demo", assignments=settings)
        run = train_once(runs / name.replace(" ", "-"), configuration, train, valid)
    else:
        guided = [*settings, f"training.guided_alignment={WEIGHT}", f"training.guided_layer={layer}"]
        configuration = resolve(preset="demo", assignments=guided)
        run = train_once(runs / f"{name.replace(' ', '-')}-{layer}", configuration, train, valid)
        name = f"{name}, layer {layer}"
    return readings(run, name, layer, tested)


def readings(run: RunFolder, name: str, layer: int | None, tested: Tested) -> list[Row]:
    """Return a row for the trained head, if any, and one for the best reading of whole layers by gold links."""
    inspected = Translator.load(run.path, "cpu", "torch").inspector.inspect(tested.pairs)
    bleu, half, _ = scored(translations(run, tested.translated, beam=5), tested.translated)
    rows = []
    best, score = next(iter(choose(inspected, tested.gold).items()))
    if layer is not None:
        head = AlignmentOptions(learned=False, layer=layer, head=0)
        (head_score,) = choose(inspected, tested.gold, [head]).values()
        rows.append(Row(f"**{name}**: the taught head", head_score, f"{bleu:.1f} ± {half:.1f}"))
        bleu_of_best = ""
    else:
        bleu_of_best = f"{bleu:.1f} ± {half:.1f}"
    assert best in candidates(inspected[0])
    where = "all layers" if best.layer is None else f"layer {best.layer}"
    time = "fed" if best.shift else "predicted"
    rows.append(Row(f"{name}: the best of whole layers by gold links ({where}, {time})", score, bleu_of_best))
    return rows


def statistics(tested: Tested, train: Sequence[Pair]) -> Row:
    """Return the row of our statistical aligner, which learns from the training pairs and the test pairs."""
    links = statistical_links([*tested.pairs, *train], len(tested.pairs))
    score = alignment_score([sorted(link.possible) for link in links], tested.gold)
    return Row("our statistical links, all training pairs", score)


def table_of(rows: Sequence[Row]) -> str:
    """Return the table, lowest error rate first."""
    lines = []
    for method, score, bleu in sorted(rows, key=lambda row: row.score.error_rate):
        lines.append([method, f"{score.error_rate:.3f}", f"{score.precision:.3f}", f"{score.recall:.3f}", bleu])
    return table(["method", "AER", "precision", "recall", "BLEU"], lines)


def page(sections: Sequence[str]) -> str:
    """Return the page of claim 19."""
    return f"""# Claim 19: a head that is trained on word links

Alignment error rates (AER) and BLEU of models with guided alignment (Garg et al. 2019, weight {WEIGHT}) and without.
Head 0 of one decoder layer learns the links of the training pairs: gold links, or those of our statistical aligner.
All rows use both sides. *Whole layers* are the mean of all heads. Layers are counted from 0. BLEU is for a beam of 5,
with its 95 % bootstrap interval, and for one seed.

{chr(10).join(sections)}
To reproduce: `{COMMAND}`
"""


if __name__ == "__main__":
    main()
