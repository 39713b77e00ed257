"""How many sentences with unknown words trigger a warning, and how many test sentences do so wrongly.

python -m benchmarks.unknown_words RUN --train train.tsv --test dev.tsv test.tsv --words imdb.jsonl.gz --foreign fr.tsv

The thresholds in evaluation/out_of_domain.py were set on similar sentences: pairs held out of the training text,
invented words, unseen words and German. The figures in docs/confidence.md are for these defaults and for French. The
words of both were sampled separately, and may overlap.
"""

from __future__ import annotations

import argparse
import random
import re
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

from translucid.api.translator import Translator
from translucid.data.readers.corpus import read_pairs
from translucid.data.readers.texts import read_texts

KINDS = "unknown words", "improbable"
"""The kinds of warnings that are counted."""
_WORD = re.compile(r"[^\W\d_]+")
_LOWER = re.compile(r"\b[a-z]{4,}\b")
_TEMPLATES = (
    *("The {} {} the {}.", "I {} the {} {}.", "{} {} {} {}.", "She wants a {} {}.", "They {} {} with {}."),
    *("A {} {} is {}.", "Do you {} the {}?", "He {} his {} {}."),
)
_PARTS = re.compile(r"\S+")
_ONSETS = _PARTS.findall("b c d f g gl gr h j k kl l m n p pl pr qu r s sk sl st t tr v w z")
_VOWELS = _PARTS.findall("a e i o u ai ea ou")
_CODAS = ["", "", "n", "r", "l", "s", "t", "mp", "x", "ck"]
_NAMES = _PARTS.findall(
    "Krzysztof Wojciechowski Agnieszka Szczepanski Venkataraman Chandrasekhar Ogunbanjo Adebayo Nakamura Hiroyuki "
    "Khachaturian Dzhugashvili Oluwaseun Nguyen Xiaoping Tadeusz Grzegorz Ramanujan"
)
FREQUENT = 150
"""The number of most frequent training words that are not replaced."""


def invented(rng: random.Random, length: int) -> str:
    """Return a pronounceable word."""
    word = ""
    while len(word) < length:
        word += rng.choice(_ONSETS) + rng.choice(_VOWELS) + rng.choice(_CODAS)
    return word[: length + 2]


def invented_sentence(rng: random.Random) -> str:
    """Return three to eight invented words."""
    words = [invented(rng, rng.randint(4, 9)) for _ in range(rng.randint(3, 8))]
    return " ".join(words).capitalize() + "."


def replaced(sentence: str, word_counts: Counter[str], make: Callable[[int], str]) -> str:
    """Return a sentence in which all but the frequent words are replaced."""
    frequent = {word for word, _ in word_counts.most_common(FREQUENT)}

    def replacement(match: re.Match[str]) -> str:
        if match[0].lower() in frequent:
            return match[0]
        word = make(max(4, len(match[0])))
        return word.capitalize() if match[0][0].isupper() else word

    return _WORD.sub(replacement, sentence)


def kinds(
    rng: random.Random,
    word_counts: Counter[str],
    sentences: list[str],
    unseen: list[str],
    foreign: list[str],
    count: int,
) -> dict[str, list[str]]:
    """Return sentences of unknown words, by kind."""
    by_kind: dict[str, list[str]] = {}
    makers = {
        "invented words for all but frequent ones": lambda length: invented(rng, length),
        "random letters for all but frequent ones": lambda length: "".join(
            rng.choices("abcdefghijklmnopqrstuvwxyz", k=length)
        ),
    }
    if unseen:
        makers["unseen words for all but frequent ones"] = lambda length: rng.choice(unseen)
    for name, make in makers.items():
        by_kind[name] = []
        while len(by_kind[name]) < count:
            sentence = rng.choice(sentences)
            changed = replaced(sentence, word_counts, make)
            if sum(a != b for a, b in zip(sentence.split(), changed.split(), strict=True)) >= 2:
                by_kind[name].append(changed)
    by_kind["invented words alone"] = [invented_sentence(rng) for _ in range(count)]
    if unseen:
        templates = (rng.choice(_TEMPLATES) for _ in range(count))
        filled = (template.format(*rng.choices(unseen, k=template.count("{}"))) for template in templates)
        by_kind["unseen words in templates"] = [text[0].upper() + text[1:] for text in filled]
        by_kind["one unseen word by itself"] = [word.capitalize() for word in rng.sample(unseen, count)]
    forms = "{} met {}.", "{} and {} live here.", "I know {} and {}.", "Where is {} {}?"
    by_kind["names of other languages"] = [rng.choice(forms).format(*rng.sample(_NAMES, 2)) for _ in range(count)]
    if foreign:
        by_kind["another language"] = rng.sample(foreign, count)
    return by_kind


def warned(translator: Translator, sentences: Iterable[str]) -> tuple[float, float]:
    """Return the shares of sentences with a warning of `KINDS`, and with any warning."""
    all_warnings = [translation.warnings for translation in translator.stream(sentences)]
    counted = 0
    for warnings in all_warnings:
        counted += any(warning.startswith(KINDS) for warning in warnings)
    return counted / len(all_warnings), sum(map(bool, all_warnings)) / len(all_warnings)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--train", type=Path, required=True, help="the training pairs of the run")
    parser.add_argument("--test", type=Path, nargs="+", required=True, help="held-out pairs of the same kind")
    parser.add_argument("--words", type=Path, help="texts from which unseen words are taken")
    parser.add_argument("--foreign", type=Path, help="pairs whose targets are in a language that the run does not read")
    parser.add_argument("--half", type=int, default=1, choices=(0, 1), help="the half of the unseen words")
    parser.add_argument("--seed", type=int, default=2)
    parser.add_argument("--count", type=int, default=300)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    word_counts = Counter(word.lower() for pair in read_pairs(options.train) for word in _WORD.findall(pair.source))
    sentences = [pair.source for file in options.test for pair in read_pairs(file)]
    unseen: list[str] = []
    if options.words:
        texts = Counter(word for text in read_texts(options.words) for word in _LOWER.findall(text.source))
        candidates = sorted(word for word, times in texts.items() if times >= 3 and word not in word_counts)
        random.Random(1).shuffle(candidates)
        unseen = candidates[options.half :: 2]
    pairs = read_pairs(options.foreign) if options.foreign else []
    foreign = [pair.target for pair in pairs if 3 <= len(pair.target.split()) <= 12]
    translator = Translator.load(options.run)
    inputs = {"test sentences": sentences} | kinds(rng, word_counts, sentences, unseen, foreign, options.count)
    print(f"| {translator.engine} | sentences | these warnings | any warning |\n| --- | --: | --: | --: |")
    for name, texts_of_kind in inputs.items():
        counted, any_ = warned(translator, texts_of_kind)
        print(f"| {name} | {len(texts_of_kind):,} | {counted:.1%} | {any_:.1%} |", flush=True)


if __name__ == "__main__":
    main()
