"""What `evaluate`, `look` and `explain` do with a run that classifies texts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from translucid.decoding.hypothesis import percent
from translucid.ground.console import Console
from translucid.ground.errors import UserError

if TYPE_CHECKING:
    from translucid.api.text_classifier import Classified, TextClassifier
    from translucid.evaluation.classification import ClassifierScores
    from translucid.inspection.explain.label_case import LabelCase

KINDS = (".html", ".json")
"""What is shown of a label is saved as."""


def classifier_of(run: Path, device: str = "auto") -> TextClassifier | None:
    """Load a run that classifies texts; None if it does something else.

    Raises:
        UserError: it is no run, or it is damaged.
    """
    from translucid.runs.run_folder import RunFolder

    if RunFolder(run).configuration().model.reads != "texts with labels":
        return None
    from translucid.api.text_classifier import TextClassifier

    return TextClassifier.load(run, device=device)


def evaluate_labels(
    runs: Sequence[Path], test: Sequence[str], as_json: bool, hypotheses: Path | None, samples: int, device: str
) -> None:
    """Classify a test set and score that; see `translucid evaluate --help`."""
    import numpy as np

    from translucid.api.text_classifier import TextClassifier
    from translucid.data.readers.texts import read_texts
    from translucid.evaluation.classification import classification_scores
    from translucid.ground.atomic import write_output
    from translucid.ground.console import counting

    texts = [text for text in read_texts(*test) if text.source.strip()]
    if not texts:
        raise UserError("holds no texts", file=test[0], fix="Check the file.")
    classifier = TextClassifier.load(*runs, device=device)
    strange = next((text for text in texts if text.target not in classifier.labels), None)
    if strange:
        what = f"label {strange.target!r} is not among {', '.join(classifier.labels)[:100]}: {strange.source[:60]!r}"
        raise UserError(what, file=test[0], fix="Each text needs one of them.")
    with counting(Console(stderr=True), "classifying", len(texts)) as advance:
        found = list(classifier.stream((text.source for text in texts), advance))
    truth = np.array([classifier.labels.index(text.target) for text in texts])
    probabilities = np.array([[*one.probabilities.values()] for one in found])
    scores = classification_scores(probabilities, truth, classifier.labels)
    if hypotheses:
        write_output(hypotheses, "".join(f"{one.label}\t{one.probability:.6f}\n" for one in found).encode())
    if as_json:
        print(json.dumps(scores.to_json(), ensure_ascii=False, indent=2))
        return
    console = Console()
    _show_scores(console, scores, classifier.labels)
    wrong = [(text, one) for text, one in zip(texts, found, strict=True) if one.label != text.target]
    for text, one in sorted(wrong, key=lambda pair: -pair[1].probability)[:samples]:
        console.print(f"\n{text.target}, taken for {one.label} ({percent(one.probability)})")
        console.print(Text(text.source))


def _show_scores(console: Console, scores: ClassifierScores, labels: Sequence[str]) -> None:
    console.print(Text.assemble("accuracy ", (f"{100 * scores.accuracy:.2f} %", "bold")))
    console.print(f"macro F1 {100 * scores.macro_f1:.2f}; cross-entropy {scores.cross_entropy:.3f} nats a text")
    console.print(f"expected calibration error {scores.calibration_error:.3f}\n")
    table = Table(box=None, pad_edge=False)
    for column in ("label", "precision", "recall", "F1", "texts", *(f"found {label}" for label in labels)):
        table.add_column(column, justify="left" if column == "label" else "right")
    for (name, one), row in zip(scores.labels.items(), scores.confusion, strict=True):
        shares = (f"{100 * value:.1f}" for value in (one.precision, one.recall, one.f1))
        table.add_row(Text(name, "bold"), *shares, f"{one.texts:,}", *(f"{count:,}" for count in row))
    console.print(table)


def look_at_text(classifier: TextClassifier, text: str | None, target: str | None, save: Path | None) -> None:
    """Show how the judgement of a text moves as its words are read; see `translucid look --help`."""
    from translucid.ground.atomic import write_output
    from translucid.inspection.highlighted_text import HighlightedText, coloured_page

    _refuse_kind(save)
    found, case = _judged(classifier, text, target)
    after = case.unfolding().tolist()
    start = 1 / len(classifier.labels)
    order = range(len(after))[:: -1 if case.backwards else 1]
    steps = [0.0] * len(after)
    before = start
    for place in order:
        steps[place], before = after[place] - before, after[place]
    words, label = HighlightedText(case.source_words, steps), case.target_words[0]
    heading = f"{label} {percent(found.probabilities[label])}"
    direction = "from the last word to the first" if case.backwards else "word by word"
    note = f"Read {direction}: a word is blue where the probability of {label} rises with it, orange where it falls."
    console = Console()
    console.print(Text(heading, "bold"))
    console.print(words.text())
    console.print(Text(note, "dim"))
    if save is None:
        return
    if save.suffix.lower() == ".json":
        record = {"label": label, "probabilities": found.probabilities, "words": case.source_words}
        record["probability_after"] = [round(value, 5) for value in after]
        write_output(save, json.dumps(record, ensure_ascii=False).encode())
    else:
        write_output(save, coloured_page(heading, heading, {"as it was read": words}, [note]).encode())
    console.print(f"\nsaved: {save}", soft_wrap=True)


def explain_label(
    classifier: TextClassifier,
    text: str,
    target: str | None,
    method: str,
    samples: int,
    k: int,
    as_json: bool,
    save: Path | None,
) -> None:
    """Say which words speak for a label, and test whether that is true; see `translucid explain --help`."""
    from translucid.ground.atomic import write_output
    from translucid.inspection.explain import compare_with_random, explain
    from translucid.inspection.explain.shown import record
    from translucid.inspection.highlighted_text import HighlightedText, coloured_page

    _refuse_kind(save)
    found, case = _judged(classifier, text, target)
    explanation = explain(case, method, samples=samples)
    scores = compare_with_random(case, explanation, k)
    told = {"probabilities": found.probabilities, **record(explanation, scores)}
    label = case.target_words[0]
    heading = f"{label} {percent(found.probabilities[label])}"
    words = HighlightedText(case.source_words, explanation.importance[0].tolist())
    lines = [
        f"log-probability of {label} lost, in nats, with the {k} most important words "
        f"({name}): left out {score.comprehensiveness:.2f}, alone {score.sufficiency:.2f}"
        for name, score in scores.items()
    ]
    lines = [f"LIME's local fit: R² {explanation.fit[0]:.2f}", *lines] if explanation.fit else lines
    if save:
        html = coloured_page(heading, heading, {f"words that speak for {label} ({method})": words}, lines)
        page = save.suffix.lower() == ".html"
        write_output(save, (html if page else json.dumps(told, ensure_ascii=False)).encode())
    if as_json:
        print(json.dumps(told, ensure_ascii=False))
        return
    console = Console()
    console.print(Text(heading, "bold"))
    console.print(words.text())
    strongest = sorted(zip(words.words, words.values, strict=True), key=lambda pair: -abs(pair[1]))[:10]
    console.print("\n" + ", ".join(f"{word} {value:+.2f}" for word, value in strongest), highlight=False)
    for line in lines:
        console.print(Text(line, "dim"))
    if save:
        console.print(f"\nsaved: {save}", soft_wrap=True)


def _refuse_kind(save: Path | None) -> None:
    """Check, before any work, that a file ends in one of `KINDS`.

    Raises:
        UserError: it does not.
    """
    if save and save.suffix.lower() not in KINDS:
        raise UserError("is of no kind that a classified text is saved as", file=save, fix=f"End it in {KINDS}.")


def _judged(classifier: TextClassifier, text: str | None, target: str | None) -> tuple[Classified, LabelCase]:
    from translucid.inspection.explain.label_case import LabelCase

    if not (text or "").strip():
        raise UserError("there are no words to look at", fix="Give a text with words in it.")
    assert text is not None
    judge, found = classifier.judges[0], classifier.classify(text)
    (ids,) = judge.ids([text])
    return found, LabelCase(judge.model, judge.tokenizer, ids, found.label if target is None else target, text)
