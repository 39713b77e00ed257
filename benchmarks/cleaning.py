"""How much added noise `translucid data clean` detects, and how much of the rest it rejects.

    python -m benchmarks.cleaning --data ../shared/data

For every 90 lines of Tatoeba (English-Spanish) and Multi30k (English-German), 10 lines of noise are added, two of each
kind, sampled with a seed:

- `copied`: the target is the source.
- `wrong language`: the target is the source-language side of another pair, or Romanian, Estonian (MLQE), Spanish or
  German text of about the same number of words.
- `mojibake`: the UTF-8 of a target with non-ASCII letters, decoded as Latin-1, once or twice, or as Windows-1252; its
  Latin-1 decoded as UTF-8; or a question mark for each such letter.
- `numbers, placeholders`: a digit of the target is changed if there is a number; otherwise the source has a
  placeholder, a tag or an address that the target lacks.
- `repeated`: a duplicate of another pair, unchanged or with different case and punctuation.

--forward RUN --backward RUN adds a trial on Tatoeba's test pairs, which those models were not trained on, with noise
that only a model can detect, 5 of every 100 lines each:

- `misaligned`: the target of another pair.
- `truncated`: the first half of the words of a target with four or more.

A rejected original pair counts as an error, even if it is noise of the corpus itself.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from bitext.pair import Pair
from translucid.cli.data import surprise_of
from translucid.data.cleaning import Cleaner, CorpusReader, CrossEntropy, judge_by_gain
from translucid.data.readers.corpus import read_pairs

SHARE, SHARE_OF_TWO = 0.02, 0.05
"""The share of lines of each kind of noise."""
SEED = 1
PARTS = ["%s", "{name}", "%(count)d", "${HOME}", "<b>", "{{ user }}", "https://example.com/a?b=1", "%1$s"]
FIVE = ("copied", "wrong language", "mojibake", "numbers, placeholders", "repeated")

Plant = Callable[[Pair, random.Random], Pair | None]
"""Turns a pair into noise, or returns None if the pair is unsuitable."""


def copied(pair: Pair, chance: random.Random) -> Pair:
    return Pair(pair.source, pair.source)


def mojibake(pair: Pair, chance: random.Random) -> Pair | None:
    if pair.target.isascii():
        return None
    broken = chance.choice(
        [
            lambda text: text.encode().decode("latin-1"),
            lambda text: text.encode().decode("cp1252", "replace"),
            lambda text: text.encode().decode("latin-1").encode().decode("latin-1"),
            lambda text: text.encode("latin-1", "replace").decode("utf-8", "replace"),
            lambda text: text.encode("ascii", "replace").decode(),
        ]
    )
    return Pair(pair.source, broken(pair.target))


def changed(pair: Pair, chance: random.Random) -> Pair:
    digits = [i for i, letter in enumerate(pair.target) if letter in "0123456789"]
    if digits and any(map(str.isdigit, pair.source)):
        i = chance.choice(digits)
        digit = chance.choice([candidate for candidate in "123456789" if candidate != pair.target[i]])
        return Pair(pair.source, pair.target[:i] + digit + pair.target[i + 1 :])
    words = pair.source.split(" ")
    words.insert(chance.randrange(len(words) + 1), chance.choice(PARTS))
    return Pair(" ".join(words), pair.target)


def repeated(pair: Pair, chance: random.Random) -> Pair:
    change = chance.choice([str, str.upper, lambda text: f"«{text}»", lambda text: text.rstrip(".!?") + " ..."])
    return Pair(*map(change, pair))


def truncated(pair: Pair, chance: random.Random) -> Pair | None:
    words = pair.target.split()
    return Pair(pair.source, " ".join(words[: len(words) // 2])) if len(words) >= 4 else None


def from_texts(texts: Sequence[Sequence[str]]) -> Plant:
    """Return a function that takes a target from one of several languages, cut to the source's number of words."""

    def plant(pair: Pair, chance: random.Random) -> Pair:
        words = chance.choice(chance.choice(texts)).split()
        return Pair(pair.source, " ".join(words[: max(3, len(pair.source.split()))]))

    return plant


def from_others(pairs: Sequence[Pair]) -> Plant:
    """Return a function that takes the target of another pair."""

    def plant(pair: Pair, chance: random.Random) -> Pair | None:
        candidate = chance.choice(pairs)
        return Pair(pair.source, candidate.target) if candidate.target != pair.target else None

    return plant


def planted(pairs: Sequence[Pair], kinds: dict[str, Plant], share: float) -> list[tuple[str, Pair]]:
    """Return the shuffled pairs and noise, each with its kind; "" for original pairs."""
    chance = random.Random(SEED)
    pairs = chance.sample(pairs, len(pairs))
    count = round(share * len(pairs))
    rest, noise = list(pairs), list[tuple[str, Pair]]()
    for kind, plant in kinds.items():
        count_planted = 0
        for i in range(len(rest) - 1, -1, -1):
            if count_planted == count:
                break
            if rubbish := plant(rest[i], chance):
                noise.append((kind, rubbish))
                count_planted += 1
                if kind != "repeated":
                    rest.pop(i)
    mixed = [("", pair) for pair in rest]
    for line in noise:
        mixed.insert(chance.randrange(len(mixed) + 1), line)
    return mixed


def trial(lines: Sequence[tuple[str, Pair]], models: Sequence[CrossEntropy] = ()) -> dict[str, object]:
    """Clean the lines; return the percentages detected of each kind, and rejected of the rest, by rule."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "noisy.tsv"
        file.write_text("".join(f"{pair.source}\t{pair.target}\n" for _, pair in lines))
        reading = CorpusReader([str(file)], (None, None))
        cleaner = Cleaner(reading.profile(lambda count: None))
        judgements = reading.judged(cleaner)
        if models:
            judgements = judge_by_gain(judgements, *models)
        rules = [judged.rule for judged in judgements]
    return figures([kind for kind, _ in lines], rules, [pair for _, pair in lines])


def figures(kinds: Sequence[str], rules: Sequence[str], pairs: Sequence[Pair]) -> dict[str, object]:
    planted = Counter(filter(None, kinds))
    repeated = {plain(pair) for kind, pair in zip(kinds, pairs, strict=True) if kind == "repeated"}
    remaining = Counter(
        plain(pair) for rule, pair in zip(rules, pairs, strict=True) if not rule and plain(pair) in repeated
    )
    detected, dropped = Counter[str](), Counter[str]()
    for kind, rule, pair in zip(kinds, rules, pairs, strict=True):
        if kind == "repeated":
            detected[kind] += remaining[plain(pair)] <= 1
        elif kind:
            detected[kind] += bool(rule)
        elif rule and not (plain(pair) in repeated and "duplicate" in rule):
            dropped[rule] += 1
    rest = len(kinds) - planted.total()
    return {
        "lines": len(kinds),
        "planted": planted.total(),
        "found": {kind: round(100 * detected[kind] / count, 2) for kind, count in planted.items()},
        "found of all": round(100 * detected.total() / planted.total(), 2),
        "rest": rest,
        "dropped": {rule: round(100 * count / rest, 2) for rule, count in dropped.most_common()},
        "dropped of all": round(100 * dropped.total() / rest, 2),
    }


def plain(pair: Pair) -> tuple[str, ...]:
    """Return a pair without case and punctuation: either copy of a duplicate may be rejected."""
    return tuple("".join(filter(str.isalnum, text.casefold())) for text in pair)


def mlqe(data: Path, name: str, side: str) -> list[str]:
    with gzip.open(data / "mlqe" / f"{name}.train.jsonl.gz", "rt", encoding="utf-8") as file:
        return [json.loads(line)[side] for line in file]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of the corpora")
    parser.add_argument(
        "--messages", nargs="+", default=[], help="pairs of benchmarks.corpora.po_pairs, each a corpus of its own"
    )
    parser.add_argument("--forward", type=Path, help="a run trained on Tatoeba's train.tsv")
    parser.add_argument("--backward", type=Path, help="the same with data.reverse=true")
    arguments = parser.parse_args()
    tatoeba = list(read_pairs(arguments.data / "tatoeba-eng-spa" / "train.tsv"))
    multi30k = list(read_pairs(arguments.data / "multi30k-en-de" / "train.{en,de}.gz"))
    other_languages = [mlqe(arguments.data, "ro-en", "source"), mlqe(arguments.data, "et-en", "source")]
    trials = {"Tatoeba": (tatoeba, multi30k), "Multi30k": (multi30k, tatoeba)}
    trials |= {file: (list(read_pairs(file)), multi30k) for file in arguments.messages}
    for name, (pairs, foreign) in trials.items():
        wrong = from_texts([[pair.source for pair in pairs], [pair.target for pair in foreign], *other_languages])
        plants = dict(zip(FIVE, (copied, wrong, mojibake, changed, repeated), strict=True))
        show(name, trial(planted(pairs, plants, SHARE)))
    if arguments.forward and arguments.backward:
        unseen = list(read_pairs(arguments.data / "tatoeba-eng-spa" / "test.tsv"))
        plants = {"misaligned": from_others(unseen), "truncated": truncated}
        lines = planted(unseen, plants, SHARE_OF_TWO)
        show("Tatoeba, without models", trial(lines))
        show(
            "Tatoeba, with models",
            trial(lines, [surprise_of(run, "auto") for run in (arguments.forward, arguments.backward)]),
        )


def show(name: str, results: dict[str, object]) -> None:
    print(json.dumps({"corpus": name, **results}, indent=2, ensure_ascii=False), flush=True)


if __name__ == "__main__":
    main()
