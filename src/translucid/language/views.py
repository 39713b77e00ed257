"""Text classifiers in `evaluate`, `look` and `explain`, their colored words, and language models in `evaluate`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np
from rich.style import Style
from rich.text import Text

from bitext.pair import Pair
from translucid.cli.evaluate import EvaluationRequest
from translucid.cli.explain import Explanation, Output
from translucid.cli.look import View
from translucid.cli.printing import print_json, print_scores
from translucid.data.filtering import Skipped
from translucid.data.readers.corpus import sources_of
from translucid.data.readers.texts import keep_texts, read_texts
from translucid.decoding.hypothesis import percent
from translucid.ground.console import Console, progress_bar, table_of
from translucid.ground.errors import UserError
from translucid.inspection.explain import compare_with_random, explain, record
from translucid.inspection.rendering.html import document
from translucid.inspection.rendering.saving import save_view
from translucid.language.generator import Generator
from translucid.language.label_case import LabelCase, contrast_labels
from translucid.language.text_classifier import Classified, ClassifierScores, TextClassifier, classification_scores
from translucid.runs.run_folder import RunFolder

KINDS = (".html", ".json")
"""The formats in which `look` and `explain` save a label."""


def evaluate_texts(asked: EvaluationRequest) -> None:
    """Score a language model on texts.

    Raises:
        UserError: there are no texts.
    """
    run, configuration, test, _, translation, _, report = asked
    texts = sources_of(keep_texts(read_texts(*test), Skipped("text")))
    if not texts:
        raise UserError("holds no texts", file=test[0], fix="Check the file.")
    generator = Generator.open(RunFolder(run), configuration, translation.device)
    with Console(stderr=True).status("reading the texts"):
        scores = generator.evaluate(texts)
    print_scores(scores, as_json=report.as_json)


def evaluate_labels(asked: EvaluationRequest) -> None:
    """Classify a test set and score the labels.

    Raises:
        UserError: there are no texts, or one has a label that the model does not know.
    """
    run, _, test, _, translation, _, report = asked
    texts = [text for text in read_texts(*test) if text.source.strip()]
    if not texts:
        raise UserError("holds no texts", file=test[0], fix="Check the file.")
    classifier = TextClassifier.load(run, *(translation.ensemble or []), device=translation.device)
    for text in texts:
        if text.target not in classifier.labels:
            labels = ", ".join(classifier.labels)[:100]
            what = f"label {text.target!r} is not among {labels}: {text.source[:60]!r}"
            raise UserError(what, file=test[0], fix="Each text needs one of them.")
    with progress_bar(Console(stderr=True), "classifying", len(texts)) as advance:
        classified = list(classifier.stream(sources_of(texts), advance))
    truth = np.array([classifier.labels.index(text.target) for text in texts])
    probabilities = np.array([list(classification.probabilities.values()) for classification in classified])
    scores = classification_scores(probabilities, truth, classifier.labels)
    report.save([f"{classification.label}\t{classification.probability:.6f}" for classification in classified])
    if report.as_json:
        print_json(scores.to_json())
        return
    _show_scores(scores, classifier.labels)
    _show_errors(texts, classified, report.samples)


def _show_scores(scores: ClassifierScores, labels: Sequence[str]) -> None:
    console = Console()
    console.print(Text.assemble("accuracy ", (f"{100 * scores.accuracy:.2f} %", "bold")))
    console.print(f"macro F1 {100 * scores.macro_f1:.2f}; cross-entropy {scores.cross_entropy:.3f} nats a text")
    console.print(f"expected calibration error {scores.calibration_error:.3f}\n")
    columns = ["precision", "recall", "F1", "texts", *(f"found {label}" for label in labels)]
    table = table_of("label", figures=columns)
    for (name, label), row in zip(scores.labels.items(), scores.confusion, strict=True):
        shares = [f"{100 * value:.1f}" for value in (label.precision, label.recall, label.f1)]
        table.add_row(Text(name, "bold"), *shares, f"{label.texts:,}", *(f"{count:,}" for count in row))
    console.print(table)


def _show_errors(texts: Sequence[Pair], classified: Sequence[Classified], limit: int) -> None:
    """Print wrongly classified texts, the most confident errors first."""
    console = Console()
    errors = []
    for text, prediction in zip(texts, classified, strict=True):
        if prediction.label != text.target:
            errors.append((text, prediction))
    errors.sort(key=lambda error: -error[1].probability)
    for text, prediction in errors[:limit]:
        console.print(f"\n{text.target}, taken for {prediction.label} ({percent(prediction.probability)})")
        console.print(Text(text.source))


def look_at_text(run: Path, text: str | None, view: View, save: Path | None) -> None:
    """Show how the probability of a label changes as the words of a text are read.

    Raises:
        UserError: there are no words, or the file to save has another ending than `KINDS`.
    """
    classifier = TextClassifier.load(run, device=view.device)
    _refuse_kind(save)
    prediction, case = _classified(classifier, text, view.target)
    after = case.unfolding().tolist()
    order = range(len(after))
    if case.backwards:
        order = order[::-1]
    # Before the first word, all labels are equally probable.
    previous = 1 / len(classifier.labels)
    steps = [0.0] * len(after)
    # A step is the change of the probability by one word, in the order of reading.
    for position in order:
        steps[position], previous = after[position] - previous, after[position]
    words, label = HighlightedText(case.source_words, steps), case.target_words[0]
    heading = f"{label} {percent(prediction.probabilities[label])}"
    direction = "from the last word to the first" if case.backwards else "word by word"
    note = f"Read {direction}: a word is blue where the probability of {label} rises with it, orange where it falls."
    _print_words(heading, words)
    Console().print(Text(note, "dim"))
    if save:
        content = {"label": label, "probabilities": prediction.probabilities, "words": case.source_words}
        content["probability_after"] = [round(value, 5) for value in after]
        save_view(save, lambda: colored_page(heading, {"as it was read": words}, [note]), content)
        Console().print(f"\nsaved: {save}", soft_wrap=True)


def explain_label(run: Path, text: str, options: Explanation, output: Output) -> None:
    """Show which words speak for a label, and test whether they do.

    Raises:
        UserError: there are no words, or the file to save has another ending than `KINDS`.
    """
    classifier = TextClassifier.load(run, device=options.device)
    save, method, k = output.save, options.method, options.k or 1
    _refuse_kind(save)
    prediction, case = _classified(classifier, text, options.target)
    label = target_label = case.target_words[0]
    heading, quantity = f"{label} {percent(prediction.probabilities[label])}", f"log-probability of {label}"
    contrasted = None
    if options.instead_of is not None:
        contrasted = contrast_labels(case, options.instead_of)
        target_label, quantity = contrasted.label, "log-odds"
        heading = f"{heading}; {target_label}: log-odds {contrasted.log_odds:+.2f} nats"
    explanation = explain(contrasted or case, method, samples=options.samples)
    scores = compare_with_random(contrasted or case, explanation, k)
    content = {"probabilities": prediction.probabilities, **record(explanation, scores, contrasted)}
    words = HighlightedText(case.source_words, explanation.importance[0].tolist())
    lines = []
    if explanation.fit:
        lines.append(f"LIME's local fit: R² {explanation.fit[0]:.2f}")
    for name, score in scores.items():
        lines.append(
            f"{quantity} lost, in nats, with the {k} most important words "
            f"({name}): left out {score.comprehensiveness:.2f}, alone {score.sufficiency:.2f}"
        )
    if save:
        title = f"words that speak for {target_label} ({method})"
        save_view(save, lambda: colored_page(heading, {title: words}, lines), content)
    if output.as_json:
        print(json.dumps(content, ensure_ascii=False))
        return
    _print_words(heading, words)
    console = Console()
    strongest_words = sorted(zip(words.words, words.values, strict=True), key=lambda pair: -abs(pair[1]))[:10]
    console.print("\n" + ", ".join(f"{word} {value:+.2f}" for word, value in strongest_words), highlight=False)
    for line in lines:
        console.print(Text(line, "dim"))
    if save:
        console.print(f"\nsaved: {save}", soft_wrap=True)


def _print_words(heading: str, words: HighlightedText) -> None:
    console = Console()
    console.print(Text(heading, "bold"))
    console.print(words.text())


def _refuse_kind(save: Path | None) -> None:
    """Check, before any work, that the ending of a file is one of `KINDS`."""
    if save and save.suffix.lower() not in KINDS:
        raise UserError("is of no kind that a classified text is saved as", file=save, fix=f"End it in {KINDS}.")


def _classified(classifier: TextClassifier, text: str | None, target: str | None) -> tuple[Classified, LabelCase]:
    """Return the label of a text, and the text with the label to explain: the target, or else the model's label."""
    if not text:
        raise UserError("there are no words to look at", fix="Give a text with words in it.")
    member, prediction = classifier.members[0], classifier.classify(text)
    # An ensemble is explained by its first model.
    (ids,) = member.ids([text])
    label = prediction.label if target is None else target
    return prediction, LabelCase(member.model, member.tokenizer, ids, label, text)


FOR, AGAINST = (37, 99, 235), (220, 80, 20)
"""Blue and orange, in RGB, for positive and negative importance: the color-blind can tell them apart."""


@dataclass(frozen=True)
class HighlightedText:
    """Words with their importance: above 0 a word supports a prediction, below 0 it speaks against it."""

    words: list[str]
    values: list[float]

    def shares(self) -> list[float]:
        """Return the values divided by the largest absolute value, -1 to 1."""
        largest = max(map(abs, self.values), default=0.0) or 1.0
        return [value / largest for value in self.values]

    def text(self) -> Text:
        """Return the text for the terminal: blue supports, orange speaks against, and strong words are bold."""
        text = Text()
        for index, (word, share) in enumerate(zip(self.words, self.shares(), strict=True)):
            if index:
                text.append(" ")
            text.append(word, _style(share))
        return text

    def html(self) -> str:
        """Return the text for a page: the more important a word, the deeper its color; values are tooltips."""
        spans = []
        for word, value, share in zip(self.words, self.values, self.shares(), strict=True):
            color = ",".join(map(str, _color(share)))
            style = f"background:rgba({color},{0.75 * abs(share):.2f})"
            spans.append(f"<span title='{value:+.3f}' style='{style}'>{escape(word)}</span>")
        return " ".join(spans)


def _color(share: float) -> tuple[int, int, int]:
    return FOR if share > 0 else AGAINST


def _style(share: float) -> Style:
    if abs(share) <= 0.15:  # a terminal has no paler blue and orange for unimportant words
        return Style()
    red, green, blue = _color(share)
    return Style(color=f"rgb({red},{green},{blue})", bold=abs(share) > 0.5)


def colored_page(heading: str, texts: Mapping[str, HighlightedText], notes: Sequence[str]) -> str:
    """Return a page in one file without external resources: colored texts under their names, and notes below."""
    style = (
        "body { margin: 2rem auto; padding: 0 1rem; max-width: 45rem; font: 1rem/1.9 var(--sans); }\n"
        "body { color: var(--text); background: var(--background); }\n"
        "span { border-radius: .2em; padding: .1em .05em; }\nsmall { opacity: .75; }\n"
    )
    body = f"<main>\n<h1>{escape(heading)}</h1>\n"
    for name, text in texts.items():
        body += f"<h2>{escape(name)}</h2>\n<p>{text.html()}</p>\n"
    for note in notes:
        body += f"<p><small>{escape(note)}</small></p>\n"
    return document(heading, style, body + "</main>\n")
