"""Claim 12: where captioners look (Xu et al. 2015): soft, hard or no attention, regularization, Transformer.

    python benchmarks/claims/looking.py [--runs runs/claims/looking] [--seeds 2] [--updates 400] [--quick]

Every model trains on the same generated scenes, on the cached features of a frozen EfficientNet-lite0, with two seeds.
Measured on held-out scenes: BLEU-4, pointing accuracy, how evenly attention is spread, and the fall in a word's
log-probability without the cells that attention names, compared with those that erasure names.

--quick uses one seed, few scenes and few updates; its figures are written beside its runs.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Sequence
from math import nan
from pathlib import Path
from statistics import fmean
from typing import Any

from common import DOCS, facts, mean_interval, show, table, train_once, write

from bitext.pair import Pair
from translucid.captions.caption_scores import score_captions
from translucid.captions.captioner import Captioner
from translucid.captions.image_cases import CellCase
from translucid.captions.image_files import ImageFiles
from translucid.captions.pointing import read_gold
from translucid.captions.scenes.writing import write_corpus
from translucid.data.readers.corpus import read_pairs
from translucid.decoding.decoding_options import DecodingOptions
from translucid.ground.atomic import write_atomically
from translucid.ground.console import Console
from translucid.inspection.explain import explain, faithfulness, part_count
from translucid.runs.configuration import resolve

IMAGE_ENCODER = {"network": "efficientnet-lite0", "size": 160, "stride": 16, "frozen": True}
LSTM = {"kind": "captioner", "width": 192, "hidden": 64, "dropout": 0.1}
MODELS: dict[str, dict[str, Any]] = {
    "soft": LSTM,
    "soft, not regularized": {**LSTM, "doubly_stochastic": 0.0},
    "hard": {**LSTM, "attention": "hard"},
    "no attention": {**LSTM, "attention": "none"},
    "Transformer": {
        "kind": "captioning-transformer",
        "width": 128,
        "heads": 4,
        "feed_forward": 512,
        "encoder_layers": 0,
        "decoder_layers": 2,
        "dropout": 0.1,
    },
}
SHARE = 0.05
"""The share of the cells that are left out."""
COMMAND = "python benchmarks/claims/looking.py"


def configured(model: dict[str, Any], seed: int, updates: int, scenes: Path) -> Any:
    """Return the configuration of one run."""
    training = {
        "optimizer": "muon",
        "batch_tokens": 1200,
        "learning_rate": 0.004,
        "warmup": 60,
        "cooldown": 0.5,
        "averaging": 0.99,
        "label_smoothing": 0.0,
        "validate_every": updates,
        "validate_sentences": 100,
        "patience": None,
        "max_steps": updates,
        "seed": seed,
    }
    overrides: dict[str, Any] = {f"training.{key}": value for key, value in training.items()}
    overrides |= {f"model.{key}": value for key, value in model.items()} | {"model.image_encoder": IMAGE_ENCODER}
    overrides |= {"data.images": [str(scenes / "images.tar")], "data.tokenizer.vocabulary": 300}
    return resolve(preset="caption-transformer" if "heads" in model else "caption-soft", overrides=overrides)


def figures(run: Path, scenes: Path, pairs: Sequence[Pair], explained: int) -> dict[str, float]:
    """Score a run: caption quality, pointing accuracy and faithfulness."""
    result_file = run / "figures.json"
    if result_file.exists():
        results: dict[str, float] = json.loads(result_file.read_text())
        return results
    captioner, files = Captioner.load(run), ImageFiles.open([scenes / "images.tar"])
    gold, options = read_gold(scenes / "gold.jsonl"), DecodingOptions(beam=4, max_length_ratio=0, max_length_extra=40)
    scored = score_captions(captioner, pairs, files, options, gold=gold, console=Console(stderr=True))
    results = {"bleu": scored.evaluation.scores.bleu[3], "accuracy": 100 * scored.evaluation.forced.accuracy}  # type: ignore[union-attr]
    if captioner.can_look():
        for kind in ("object", "colour", "relation"):
            judged = scored.evaluation.pointing.get(kind)
            results[kind] = 100 * judged.overlaps if judged else nan
        spreads, falls = [], {"attention": [], "erasure": [], "random": []}  # type: ignore[var-annotated]
        for name in list(scored.texts)[:explained]:
            picture = captioner.picture(files.read(name), name)
            case = CellCase(captioner.model, captioner.tokenizer, picture.pixels, scored.texts[name], captioner.grid)
            weights = case.attention()
            spreads.append(float((weights.sum(0) - weights.sum(0).mean()).square().sum()))
            k = part_count(SHARE, len(case.source_words))
            for method, rows in falls.items():
                rows.append(faithfulness(case, explain(case, method), k).comprehensiveness)
        results["uneven"] = fmean(spreads)
        results |= {method: fmean(rows) for method, rows in falls.items()}
    write_atomically(result_file, json.dumps(results).encode())
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=Path, default=Path("runs/claims/looking"))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--updates", type=int, default=400)
    parser.add_argument("--scenes", type=int, default=4000)
    parser.add_argument("--explained", type=int, default=20, help="captions to explain")
    parser.add_argument("--only", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument(
        "--quick", action="store_true", help="one seed, 30 updates, 60 scenes, figures not written to docs"
    )
    arguments = parser.parse_args()
    runs, seeds, updates, count, explained, docs = (
        arguments.runs,
        arguments.seeds,
        arguments.updates,
        arguments.scenes,
        arguments.explained,
        DOCS,
    )
    if arguments.quick:
        runs, seeds, updates, count, explained, docs = arguments.runs / "quick", 1, 30, 60, 2, arguments.runs / "quick"
    scenes = runs / "scenes"
    if not (scenes / "images.tar").exists():
        write_corpus(scenes, count, size=int(IMAGE_ENCODER["size"]), shapes=12)  # type: ignore[call-overload]
    train, valid, test = (list(read_pairs(scenes / f"{split}.tsv")) for split in ("train", "valid", "test"))
    rows: dict[str, list[dict[str, float]]] = {name: [] for name in arguments.only}
    minutes: dict[str, float] = {}
    first_folder: Path | None = None
    for seed in range(1, seeds + 1):
        for name in arguments.only:
            folder = runs / f"{name.replace(' ', '-').replace(',', '')}-{seed}"
            Console(stderr=True).rule(folder.name)
            if first_folder and not folder.exists():  # all runs share the features of the frozen network
                shutil.copytree(first_folder / "state" / "images", folder / "state" / "images")
            run = train_once(folder, configured(MODELS[name], seed, updates, scenes), train, valid)
            first_folder = first_folder or folder
            minutes[name] = facts(run)["minutes"]
            rows[name].append(figures(folder, scenes, test, explained))
    write("12-caption-attention.md", page(rows, minutes, seeds, updates, count, explained), docs)


def page(
    rows: dict[str, list[dict[str, float]]],
    minutes: dict[str, float],
    seeds: int,
    updates: int,
    count: int,
    explained: int,
) -> str:
    """Return the page of claim 12."""

    def cells(results: list[dict[str, float]], names: Sequence[str], digits: int) -> list[str]:
        texts = []
        for name in names:
            text = ""
            if name in results[0]:  # without attention, there are only BLEU and accuracy
                text = show(*mean_interval([result[name] for result in results]), digits)
            texts.append(text)
        return texts

    quality = [
        [name, *cells(results, ("bleu", "accuracy", "object", "colour", "relation"), 1), f"{minutes[name]:.1f}"]
        for name, results in rows.items()
    ]
    reasons = [
        [name, *cells(results, ("uneven", "attention", "erasure", "random"), 2)]
        for name, results in rows.items()
        if "uneven" in results[0]
    ]
    return f"""# Claim 12: where captioners look

{count:,} training scenes of 12 shapes, the 10 x 10 grid of a frozen EfficientNet-lite0, {updates} updates, {seeds}
seeds; {len(rows)} models on the same grids. ± is the 95 % interval over seeds, which is wide for two seeds. Scores are
for held-out scenes and beam 4.

## Caption quality and pointing accuracy

*Accuracy* is the share of reference tokens that have the highest probability. *Objects*, *colours* and *relations* give
the pointing accuracy: how often the most attended cell is on the thing that the word describes, %. The minutes are for
one run.

{table(["model", "BLEU-4", "accuracy", "objects", "colours", "relations", "minutes"], quality)}
## Evenness and faithfulness

*Unevenness* is the sum over cells of (a - mean)², where a is a cell's total attention over the caption; doubly
stochastic regularization reduces it. The other columns give the fall in nats of a word's log-probability without 5 % of
the cells: those that attention names, those that erasure names (the upper bound), and random ones. {explained} captions
per run.

{table(["model", "unevenness", "attention", "erasure", "random"], reasons)}
To reproduce: `{COMMAND}`
"""


if __name__ == "__main__":
    main()
