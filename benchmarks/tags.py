"""How often tags and placeholders are in the right position in translations, and how often they are lost or doubled.

    python benchmarks/tags.py placing runs/demo               # tags in gold-aligned pairs of the phrasebook
    python benchmarks/tags.py segments RUN test.tsv           # tags and placeholders in real sentences
    python benchmarks/tags.py copying runs/demo               # placeholders in place of the phrasebook's names

Prints tables for docs/tag-results.md.
"""

from __future__ import annotations

import argparse
import re
import time
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor

from bitext.documents.tag_projection import Links, Vector, WordLinks, project_tags, words_of
from bitext.documents.tagged_text import Mark, Side, TaggedText
from translucid.api.segment_translator import SegmentTranslator
from translucid.api.translator import Translator
from translucid.corpora.phrasebook import generate
from translucid.corpora.phrasebook.text import Phrase
from translucid.data.readers.corpus import read_pairs
from translucid.data.text_pipeline import EncodedPair
from translucid.decoding.maps import forced_features
from translucid.evaluation.alignment_error import Gold, alignment_score
from translucid.inspection.alignment import (
    learn_alignment,
    link_pieces,
    read_alignment,
    weights_of,
)
from translucid.inspection.explain import Case
from translucid.inspection.forced_decoding import forced_decoding
from translucid.inspection.word_weights import Floats, link, source_shares

COUNT = 1000
TAUGHT = 100, 200, 500, 2000
"""Numbers of pairs whose gold links an alignment layer is trained on."""
TRIES = 3
"""The number of elements inserted into each pair, one at a time."""
LONGEST = 4
"""The maximum number of words in an element."""
KINDS = (
    *("%s", "%d", "{name}", "{{ user.name }}", "${total}", "%(count)d", "https://example.org/a?b=1&c=2"),
    *("me@example.org", "&nbsp;", "😀", "1,250 km", "<b>", "<br/>", "_"),
)
"""Marks and placeholders inserted into sentences."""
_NAMES = re.compile(r"\b(?:Ana|Marta|Elena|Irene|Carlos|Pedro|Luis)\b")
_MARKS = re.compile(
    r"%\(count\)d|%[sd]|\{\{ user\.name \}\}|\$\{total\}|\{name\}|https://\S+=2|me@example\.org|&nbsp;|😀|1,250"
    r"|</?b>|<br/>|_|⟦\d+⟧"
)
NAME = re.compile(r"\b(?:Tom|Mary|Boston|John|\d{2,})\b")


def main() -> None:
    """Run the chosen benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["placing", "segments", "copying"])
    parser.add_argument("run")
    parser.add_argument("test", nargs="?")
    parser.add_argument("--count", type=int, default=COUNT)
    arguments = parser.parse_args()
    translator = Translator.load(arguments.run)
    if arguments.what == "placing":
        placing(translator, arguments.count)
    elif arguments.what == "copying":
        copying(translator, arguments.count)
    else:
        segments(translator, arguments.test, arguments.count)


def placing(translator: Translator, count: int) -> None:
    """Print the share of elements in the right position by rule and kind of links, and the cost of erasure."""
    pairs = list(generate(count, split="test"))
    options = translator.configuration.alignment
    started = time.perf_counter()
    inspected = [sentence for pair in pairs for sentence in translator.inspector.inspect([(pair.source, pair.target)])]
    inspected_at = time.perf_counter()
    erased = [_shares(erased_logits(translator, pair)).numpy() for pair in pairs]
    erased_at = time.perf_counter()
    translator.translate([pair.source for pair in pairs])
    times = [
        1000 * seconds / count
        for seconds in (inspected_at - started, erased_at - inspected_at, time.perf_counter() - erased_at)
    ]
    attention = [weights_of(sentence, options).shares for sentence in inspected]
    averaged = [(attended + matrix) / 2 for attended, matrix in zip(attention, erased, strict=True)]
    links: dict[str, list[Links]] = {
        "gold links": [_weighted(pair.alignment) for pair in pairs],
        "attention, links": [_weighted(read_alignment(sentence, options)) for sentence in inspected],
        "attention, squared shares": [weights_of(sentence, options).soft_links() for sentence in inspected],
        "erasure, squared shares": [_squared(matrix) for matrix in erased],
        "attention and erasure, squared shares": [_squared(matrix) for matrix in averaged],
    }
    rules: dict[str, Callable[..., Vector]] = {
        "from the first to the last linked word": _any,
        "fewest links broken": _fewest,
        "most of each word's links": WordLinks.weights,
    }
    print(f"| rule | {' | '.join(links)} |\n| --- |{' ---: |' * len(links)}")
    for rule, weights in rules.items():
        with patch.object(WordLinks, "weights", weights):
            scores = [score(pairs, sentence_links) for sentence_links in links.values()]
        print(f"| {rule} | {' | '.join(f'{right / total:.1%}' for right, total, _ in scores)} |")
    print(f"\n{scores[0][1]} elements on {count} pairs; {scores[0][2]} more have no run of words that is right.")
    gold = [Gold(frozenset(pair.alignment), frozenset(pair.alignment)) for pair in pairs]
    for name, shares in {"attention": attention, "erasure": erased, "attention and erasure": averaged}.items():
        rate = alignment_score([link(matrix, both=True) for matrix in shares], gold).error_rate
        print(f"{name}: alignment error rate {rate:.3f}")
    print(
        f"{times[0]:.1f} ms a pair to look, one at a time, {times[1]:.1f} ms to erase, {times[2]:.1f} ms to translate"
    )
    print(f"wrong by attention: {wrong_words(pairs, attention)}")
    print("\n| pairs with links | right | alignment error rate |\n| ---: | ---: | ---: |")
    for taught in TAUGHT:
        weights = learned(translator, pairs, taught)
        right, total, _ = score(pairs, [_squared(matrix) for matrix in weights])
        rate = alignment_score([link(matrix, both=True) for matrix in weights], gold).error_rate
        print(f"| {taught:,} | {right / total:.1%} | {rate:.3f} |")
    print(f"wrong by the last: {wrong_words(pairs, weights)}")


def learned(translator: Translator, pairs: Sequence[Phrase], count: int) -> list[Floats]:
    """Return the source shares of each pair by an alignment layer trained on `count` training pairs."""
    model, tokenizer = translator.model, translator.tokenizer
    examples = []
    for phrase in generate(count, split="train"):
        (pair,) = translator.pipeline.pairs([(phrase.source, phrase.target)])
        gold = Gold(frozenset(phrase.alignment), frozenset(phrase.alignment))
        words = len(phrase.source.split()), len(phrase.target.split())
        if example := link_pieces(tokenizer, *pair.ids, gold, words):
            examples.append(example)
    layer = learn_alignment(model, examples, translator.device)
    texts = [(pair.source, pair.target) for pair in pairs]
    ids = [EncodedPair(*pair.ids) for pair in translator.pipeline.pairs(texts)]
    forced = forced_decoding(model, tokenizer, ids, translator.device, with_attention=False, layer=layer)
    return [source_shares(example.words(example.links).between_words.numpy()) for example in forced]


def erased_logits(translator: Translator, pair: Phrase) -> Tensor:
    """Return the fall in each target word's logit when a source word is masked [target, source words].

    The mean over the vocabulary is subtracted from the logits; a word has the mean of its pieces.
    """
    model, case = translator.model, Case(translator.model, translator.pipeline, pair.source, pair.target)
    source, target = (torch.tensor([ids], device=case.device) for ids in (case.source_ids, case.target_ids))
    rows = len(case.source_words) + 1
    mask = torch.ones(rows, source.size(1), dtype=torch.bool, device=case.device)
    for row, (first, after) in enumerate(case.source_spans, 1):
        mask[row, first:after] = False
    with torch.inference_mode():
        memory = model.read(model.source_embedding(source).expand(rows, -1, -1), mask)
        logits = model.output(forced_features(model, memory, target.expand(rows, -1)))
        logits = (logits - logits.mean(-1, keepdim=True)).gather(-1, target.expand(rows, -1)[..., None])[..., 0]
    words = torch.stack([logits[:, first:after].mean(1) for first, after in case.target_spans], 1)
    return (words[:1] - words[1:]).T.cpu()


def _shares(falls: Tensor) -> Tensor:
    falls = falls.clamp(min=1e-6)
    return falls / falls.sum(0, keepdim=True)


def _squared(shares: Floats) -> Links:
    return [(s, t, weight) for t, row in enumerate((shares**2).tolist()) for s, weight in enumerate(row)]


def wrong_words(pairs: Sequence[Phrase], weights: Sequence[Floats]) -> str:
    """Return the target words whose strongest link is most often wrong, with counts."""
    wrong: Counter[str] = Counter()
    totals: Counter[str] = Counter()
    for pair, shares in zip(pairs, weights, strict=True):
        best = shares.argmax(1).tolist()
        for target, word in enumerate(pair.target.split()):
            gold_sources = {s for s, t in pair.alignment if t == target}
            totals[word.lower()] += bool(gold_sources)
            wrong[word.lower()] += bool(gold_sources) and best[target] not in gold_sources
    words = ", ".join(f"{word} {count} of {totals[word]}" for word, count in wrong.most_common(10))
    return f"{sum(wrong.values())} of {sum(totals.values())} words; {words}"


def _weighted(links: Sequence[tuple[int, int]]) -> Links:
    return [(source, target, 1.0) for source, target in links]


def _any(self: WordLinks, inside: set[int], around: Vector) -> Vector:
    is_linked = np.zeros(len(self.shares))
    for target, shares in enumerate(self.shares):
        is_linked[target] = any(share > 0.2 for source, share in shares.items() if source in inside)
    return is_linked


def _fewest(self: WordLinks, inside: set[int], around: Vector) -> Vector:
    counts = np.array([len(shares) for shares in self.shares])
    return counts * (3 * self.mass(inside) - self.linked)


def score(pairs: Sequence[Phrase], links: Sequence[Links]) -> tuple[int, int, int]:
    """Return the numbers of right elements, of inserted ones, and of those skipped because no position is right."""
    random = Random(1)
    right = total = impossible = 0
    for pair, sentence_links in zip(pairs, links, strict=True):
        for _ in range(TRIES):
            words = words_of(pair.source)
            size = random.randint(1, min(LONGEST, len(words)))
            first = random.randrange(len(words) - size + 1)
            sides = _sides(pair, set(range(first, first + size)))
            inside = [i for i, is_inside in enumerate(sides) if is_inside]
            if not inside or False in sides[inside[0] : inside[-1]]:
                impossible += 1
                continue
            marks = (
                Mark(words[first].core_start, "<b>", Side.opens, 0),
                Mark(words[first + size - 1].core_end, "</b>", Side.closes, 0),
            )
            result = project_tags(TaggedText(pair.source, marks), pair.target, sentence_links)
            start, end = (mark.offset for mark in result.marks)
            placed_sides = [start <= word.core_start and word.core_end <= end for word in words_of(result.text)]
            right += all(side in (None, placed_side) for side, placed_side in zip(sides, placed_sides, strict=True))
            total += 1
    return right, total, impossible


def _sides(pair: Phrase, inside: set[int]) -> list[bool | None]:
    """Return for each target word whether it belongs inside an element, or None if both sides are right."""
    sources: list[set[int]] = [set() for _ in pair.target.split()]
    for source, target in pair.alignment:
        sources[target].add(source)
    sides: list[bool | None] = []
    for source_words in sources:
        mixed = not source_words or (source_words & inside and source_words - inside)
        sides.append(None if mixed else source_words <= inside)
    return sides


def segments(translator: Translator, test: str, count: int) -> None:
    """Print how many marks and placeholders of each kind are lost, doubled, invented or right."""
    random = Random(1)
    sources = [pair.source for pair in read_pairs(test) if NAME.search(pair.source) and len(pair.source.split()) > 3]
    sources = list(dict.fromkeys(sources))
    print("| | segments | lost | doubled | invented | as the name or number in its place | taken out | ms each |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for kind in KINDS:
        fit = [source for source in sources if kind != "_" or not source[NAME.search(source).start()].isdigit()]
        sample_sources = random.sample(fit, min(count // len(KINDS) + 1, len(fit)))
        names = [name for source in sample_sources if (name := NAME.search(source))]
        tagged = [_with(kind, source, name) for source, name in zip(sample_sources, names, strict=True)]
        started = time.perf_counter()
        translations = list(SegmentTranslator(translator).stream(tagged))
        milliseconds = (time.perf_counter() - started) * 1000 / len(tagged)
        plain = [translation.text for translation in translator.translate(sample_sources)]
        figures: Counter[str] = Counter()
        for source, target, name, before in zip(tagged, translations, names, plain, strict=True):
            counts = [Counter(_MARKS.findall(translation.full_text)) for translation in (source, target.marked)]
            surplus = counts[1] - counts[0]
            figures["lost"] += bool(counts[0] - counts[1])
            figures["doubled"] += any(counts[0][part] for part in surplus)
            figures["invented"] += any(not counts[0][part] for part in surplus)
            figures["same"] += target.marked.full_text == before.replace(name[0], _put(kind, name[0]))
            figures["taken out"] += any(doubt.startswith("placed") for doubt in target.doubts)
        columns = [len(tagged), *(figures[name] for name in ("lost", "doubled", "invented", "same", "taken out"))]
        print(f"| `{kind}` | {' | '.join(map(str, columns))} | {milliseconds:.0f} |")


def copying(translator: Translator, count: int) -> None:
    """Print how many phrasebook sentences equal the reference after their name is replaced by a placeholder."""
    pairs = [(pair, name[0]) for pair in generate(10 * count, split="test") if (name := _NAMES.search(pair.source))]
    pairs = [(pair, name) for pair, name in pairs if pair.source.count(name) == pair.target.count(name) == 1][:count]
    print("| in the place of the name | exactly right | of plain `translate` | lost or doubled there |")
    print("| --- | ---: | ---: | ---: |")
    for part in ("Ana", "%s", "{{ user.name }}", "https://example.org/a?b=1"):
        sources = [pair.source.replace(name, part) for pair, name in pairs]
        targets = [pair.target.replace(name, part) for pair, name in pairs]
        texts = [
            translation.marked.full_text
            for translation in SegmentTranslator(translator).stream(map(TaggedText, sources))
        ]
        plain = [translation.text for translation in translator.translate(sources)]
        right = [sum(map(str.__eq__, hypotheses, targets)) / len(pairs) for hypotheses in (texts, plain)]
        print(f"| `{part}` | {right[0]:.1%} | {right[1]:.1%} | {sum(text.count(part) != 1 for text in plain)} |")
    print(f"\n{len(pairs)} sentences.")


def _put(kind: str, name: str) -> str:
    if kind == "<b>":
        return f"<b>{name}</b>"
    return {"<br/>": f"{name}<br/>", "&nbsp;": f"{name}&nbsp;", "😀": f"{name} 😀", "_": f"_{name}"}.get(kind, kind)


def _with(kind: str, source: str, name: re.Match[str]) -> TaggedText:
    """Return a sentence with a mark in place of a name or number, around it or after it."""
    before, after = source[: name.start()], source[name.end() :]
    if kind == "<b>":
        opened = Mark(name.start(), "<b>", Side.opens, 0), Mark(name.end(), "</b>", Side.closes, 0)
        return TaggedText(source, opened)
    if kind == "<br/>":
        return TaggedText(source, (Mark(name.end(), kind),))
    return TaggedText(before + _put(kind, name[0]) + after)


if __name__ == "__main__":
    main()
