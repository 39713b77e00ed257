"""Claim 7: is attention an explanation? Alignment error against gold links, and faithfulness compared with LIME.

    python benchmarks/claims/explanations.py [--tatoeba tatoeba-eng-spa/] [--quick]

Alignment: on phrasebook sentences with gold links, the alignment error rate of each way to read the attention of a
Transformer and of Bahdanau's model, of the strongest word of each explanation, and of eflomal, a statistical aligner
that gets the same training pairs and the test pairs (`pip install eflomal`; left out if it is not installed).

Faithfulness: on sentences of the phrasebook, and of Tatoeba if its folder is given (with the runs `small` and
`rnn-bahdanau` of on_tatoeba.py), the fall in a target word's log-probability without the most important source word
(comprehensiveness) and with only that word (sufficiency).

Runs are cached in runs/claims/explanations. --quick trains for 60 updates and uses 10 sentences; its figures mean
nothing and are written beside the runs.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common import DOCS, mean_interval, show, table, train_once, write
from rich.console import Console
from rich.progress import track

from bitext.pair import Pair
from translucid.api.translator import Translator
from translucid.corpora.phrasebook import generate
from translucid.corpora.phrasebook.text import Phrase
from translucid.data.readers.corpus import read_pairs
from translucid.evaluation.alignment_error import AlignmentScore, Gold, alignment_score
from translucid.inspection.alignment import choose, read_alignment
from translucid.inspection.explain import Case, explain, faithfulness
from translucid.inspection.word_weights import grow_diagonal
from translucid.runs.configuration import resolve

COMMAND = "python benchmarks/claims/explanations.py --tatoeba tatoeba-eng-spa/"
METHODS = ["attention", "gradients", "lime", "erasure", "random"]
MODELS = {
    "Transformer": {"kind": "transformer", "width": 128, "heads": 4, "feed_forward": 512, "encoder_layers": 2}
    | {"decoder_layers": 2, "dropout": 0.0},
    "Bahdanau": {"kind": "recurrent", "width": 256, "dropout": 0.1, "attention": "bahdanau", "cell": "gru"},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tatoeba", type=Path, help="the folder with test.tsv")
    parser.add_argument("--tatoeba-runs", type=Path, default=Path("runs/claims/tatoeba"))
    parser.add_argument("--runs", type=Path, default=Path("runs/claims/explanations"))
    parser.add_argument("--sentences", type=int, default=100, help="sentences to explain from each corpus")
    parser.add_argument("--updates", type=int, default=1100)
    parser.add_argument("--quick", action="store_true", help="60 updates, 10 sentences, figures not written to docs")
    arguments = parser.parse_args()
    updates, count, runs, docs = arguments.updates, arguments.sentences, arguments.runs, DOCS
    if arguments.quick:
        updates, count, runs, docs = 60, 10, arguments.runs / "quick", arguments.runs / "quick"
    train, valid, test = (
        list(generate(n, split=split)) for n, split in ((60_000, "train"), (300, "valid"), (500, "test"))
    )
    phrasebook: dict[str, Translator] = {}
    turned: dict[str, Translator] = {}
    for name, model in MODELS.items():
        for direction, translators in (("", phrasebook), ("-reverse", turned)):
            Console(stderr=True).rule(name + direction)
            sides = [pairs_of(phrases, turn=bool(direction)) for phrases in (train, valid)]
            run = train_once(runs / f"{name.lower()}{direction}", configured(model, updates), *sides)
            translators[name] = Translator.load(run.path)

    rows = []
    for name, translator in phrasebook.items():
        rows += attention_rows(name, translator, turned[name], valid, test)
        rows += explanation_rows(name, translator, test[:count])
    rows += statistical_rows(train, test, runs)
    corpora = {"phrasebook": (phrasebook, [phrase.source for phrase in test[:count]])}
    if arguments.tatoeba:
        sources = [pair.source for pair in read_pairs(arguments.tatoeba / "test.tsv")]
        loaded = {
            name: arguments.tatoeba_runs / run for name, run in (("Transformer", "small"), ("Bahdanau", "rnn-bahdanau"))
        }
        tatoeba_translators = {name: Translator.load(run) for name, run in loaded.items() if run.exists()}
        corpora["Tatoeba"] = (tatoeba_translators, sources[:: max(1, len(sources) // count)][:count])
    faithful = [row for name, (models, texts) in corpora.items() for row in faithfulness_rows(name, models, texts)]
    write("7-explanations.md", page(rows, faithful, len(test), count), docs)


def configured(model: dict[str, Any], updates: int) -> Any:
    """Return the configuration of one run: that of the demo."""
    overrides = {"model": model, "training.max_steps": updates}
    training = resolve(preset="demo").training.model_dump(exclude={"max_steps"})
    return resolve(
        overrides={**{f"training.{key}": value for key, value in training.items()}, **overrides}
        | {"data.tokenizer.vocabulary": 1500}
    )


def pairs_of(phrases: Sequence[Phrase], *, turn: bool = False) -> list[Pair]:
    if turn:
        return [Pair(phrase.target, phrase.source) for phrase in phrases]
    return [Pair(phrase.source, phrase.target) for phrase in phrases]


def gold_of(phrases: Sequence[Phrase]) -> list[Gold]:
    return [Gold(frozenset(phrase.alignment), frozenset(phrase.alignment)) for phrase in phrases]


def figures(name: str, variant: str, score: AlignmentScore) -> list[str]:
    return [name, variant, *(f"{x:.3f}" for x in (score.error_rate, score.precision, score.recall, score.f1))]


def attention_rows(
    name: str, translator: Translator, turned: Translator, valid: Sequence[Phrase], test: Sequence[Phrase]
) -> list[list[str]]:
    """Score every variant of reading the attention, and the one chosen on validation data for both directions."""
    chosen = next(iter(choose(translator.inspector.inspect(pairs_of(valid)), gold_of(valid))))
    forward, backward = (
        translator.inspector.inspect(pairs_of(test)),
        turned.inspector.inspect(pairs_of(test, turn=True)),
    )
    symmetric = [read_alignment(sentence, chosen, reverse) for sentence, reverse in zip(forward, backward, strict=True)]
    rows = [
        figures(name, "attention of both directions' models, chosen variant", alignment_score(symmetric, gold_of(test)))
    ]
    for options, score in choose(forward, gold_of(test)).items():
        layer = "all layers" if options.layer is None else f"layer {options.layer}"
        sides = "both sides" if options.both else "target side"
        variant = f"attention, {layer}, {'shifted' if options.shift else 'plain'}, {sides}"
        rows.append(figures(name, variant + (" (chosen)" if options == chosen else ""), score))
    return rows


def explanation_rows(name: str, translator: Translator, test: Sequence[Phrase]) -> list[list[str]]:
    """Return the alignment scores of each explanation's strongest source words, for the reference translations."""
    rows = []
    for method in METHODS[1:]:
        links = []
        for phrase in track(test, f"{name}: {method}", console=Console(stderr=True)):
            case = Case(translator.model, translator.pipeline, phrase.source, phrase.target)
            links.append([(s, t) for t, s in enumerate(explain(case, method).importance.argmax(1).tolist())])
        rows.append(
            figures(name, f"strongest word by {method} ({len(test)} pairs)", alignment_score(links, gold_of(test)))
        )
    return rows


def statistical_rows(train: Sequence[Phrase], test: Sequence[Phrase], folder: Path) -> list[list[str]]:
    """Return rows of eflomal in both directions, joined by grow-diagonal."""
    program = shutil.which("eflomal-align") or shutil.which("eflomal-align", path=str(Path(sys.executable).parent))
    if program is None:
        return []
    sides, links = {}, {}
    for side in ("source", "target"):
        sides[side] = folder / f"eflomal.{side}"
        sides[side].write_text("".join(getattr(phrase, side) + "\n" for phrase in (*train, *test)), encoding="utf-8")
        links[side] = folder / f"eflomal.{side}.links"
    subprocess.run(
        [
            program,
            "-s",
            sides["source"],
            "-t",
            sides["target"],
            "-f",
            links["source"],
            "-r",
            links["target"],
            "--overwrite",
        ],
        check=True,
    )
    parsed = {}
    for side, file in links.items():
        parsed[side] = []
        # The training pairs come first.
        for line in file.read_text().splitlines()[-len(test) :]:
            parsed[side].append([tuple(map(int, link.split("-"))) for link in line.split()])
    joined = [grow_diagonal(first, second) for first, second in zip(parsed["source"], parsed["target"], strict=True)]  # type: ignore[arg-type]
    by_method = {"forward": parsed["source"], "backward": parsed["target"], "both, grow-diagonal": joined}
    return [figures("eflomal", variant, alignment_score(links, gold_of(test))) for variant, links in by_method.items()]  # type: ignore[arg-type]


def faithfulness_rows(corpus: str, translators: dict[str, Translator], texts: Sequence[str]) -> list[list[str]]:
    """Return a row for each explanation method on each model's own translations."""
    rows = []
    for name, translator in translators.items():
        cases = [
            Case(translator.model, translator.pipeline, text, translation.text)
            for text, translation in zip(texts, translator.translate(texts, split=False), strict=True)
            if translation.text.strip()
        ]
        for method in METHODS:
            scores = [
                faithfulness(case, explain(case, method))
                for case in track(cases, f"{corpus}, {name}: {method}", console=Console(stderr=True))
            ]
            rows.append(
                [
                    corpus,
                    name,
                    method,
                    show(*mean_interval([score.comprehensiveness for score in scores]), digits=2),
                    show(*mean_interval([score.sufficiency for score in scores]), digits=2),
                ]
            )
    return rows


def page(rows: list[list[str]], faithful: list[list[str]], test: int, count: int) -> str:
    """Return the page of claim 7."""
    return f"""# Claim 7: attention as an explanation

## Against gold alignments

{test} phrasebook test pairs with gold links. Links come from the attention at the step that predicts the target word
(plain), or at the next step, whose decoder input is that word (shifted). They come from the target side (each target
word links to its most attended source word) or from both sides (each source word also links to the target word that
attends to it most; grow-diagonal joins both). The best variant is chosen on other sentences.

{table(["model", "how", "AER", "precision", "recall", "F1"], rows)}
eflomal aligns the same training pairs together with the test pairs.

## Faithfulness

{count} sentences of each corpus, for the model's own translations. *Comprehensiveness* is the fall in nats of a target
word's log-probability without the source word that the method names as most important (high is faithful).
*Sufficiency* is the fall with only that word (low is faithful). ± is the 95 % interval over sentences.

{table(["corpus", "model", "method", "comprehensiveness", "sufficiency"], faithful)}
To reproduce: `{COMMAND}`
"""


if __name__ == "__main__":
    main()
