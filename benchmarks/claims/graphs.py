"""Claim 25: do the features of an attribution graph decide a word? Ablations in minimal pairs of the phrasebook.

    translucid features runs/demo --text runs/demo/phrasebook/train.tsv
    translucid features runs/demo-2 --text runs/demo/phrasebook/train.tsv
    python benchmarks/claims/graphs.py runs/demo runs/demo-2

A pair is a test sentence CLEAN, whose translation has the word A, and the same sentence with a small change, OTHER,
whose translation has B in its place. The change is in the gender or the number of a noun, a negation, or the sense of
"play" (tocar, jugar). Sentences with "they", whose antecedent decides on the gender of an adjective, are rare; they are
built from the phrasebook's words. The graph is that of A instead of B in CLEAN.

Half of the pairs, by a hash of the sentence without the changed word, choose: by which figure the five strongest
features of a graph are ranked, and which five features are ablated for each kind, wherever they are active. The others
measure.

--quick uses 10 pairs; its page is written beside the first run.
"""

from __future__ import annotations

import argparse
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import islice, product
from pathlib import Path
from random import Random
from statistics import fmean
from typing import NamedTuple

import torch
from common import DOCS, table, write
from gender import pairs_of as gender_pairs
from rich.console import Console
from rich.progress import track

from translucid.api.translator import Translator
from translucid.circuits.dictionary import Dictionary
from translucid.circuits.faithfulness import Outcome, most_active, others, outcomes
from translucid.circuits.graph import AttributionGraph, GraphNode, ask
from translucid.circuits.linear import HeldModel
from translucid.circuits.minimal_pairs import MinimalPair, graph_of
from translucid.circuits.nodes import Node, Parts
from translucid.corpora.phrasebook import generate
from translucid.corpora.phrasebook.lexicon import NOUNS
from translucid.corpora.phrasebook.text import Phrase
from translucid.ground.errors import UserError
from translucid.inspection.patching import ENCODER

MARKS = ".,;:!?¡¿"
PLURALS = {"el": "los", "la": "las", "los": "el", "las": "la"}
PRESENT = {"toco": "juego", "tocas": "juegas", "toca": "juega", "tocamos": "jugamos", "tocan": "juegan"}
OTHER_FORMS = {"tocar": "jugar", "tocaré": "jugaré", "tocaremos": "jugaremos", "tocarán": "jugarán", "toqué": "jugué"}
PLAY = PRESENT | OTHER_FORMS
PLAY |= {jugar: tocar for tocar, jugar in PLAY.items()}
ANTECEDENTS = (("boys", "girls"), ("men", "women"), ("brothers", "sisters"), ("sons", "daughters"))
STATES = {"tired": "cansad", "sick": "enferm", "busy": "ocupad"}
HINDERED = ("can't watch movies", "can't go to the beach", "would like to buy a hat", "want to read books")
RANKINGS: dict[str, Callable[[GraphNode], float]] = {
    "effect through all paths": lambda node: node.total,
    "direct effect": lambda node: node.effect,
    "influence": lambda node: node.influence,
}
SIZES = (5, 10, 20)
"""How many of the strongest features of a graph are ablated."""


def of_gender(phrase: Phrase) -> MinimalPair | None:
    """Change the gender of a noun, as in claim 17."""
    opposite = {"el": "la", "la": "el", "El": "La", "La": "El"}
    for pair in gender_pairs(phrase, Random(phrase.source)):
        target = " ".join([*pair.prefix, pair.article])
        words = pair.article, opposite[pair.article]
        return MinimalPair(pair.clean, pair.other, words, "gender", target, len(pair.prefix))
    return None


def of_number(phrase: Phrase) -> MinimalPair | None:
    """Change the number of a noun with an article that is not at the beginning."""
    source, target = phrase.source.split(), phrase.target.split()
    numbers = {noun.singular: noun.plural for noun in NOUNS.values()}
    numbers |= {noun.plural: noun.singular for noun in NOUNS.values()}
    for t, article in enumerate(target):
        linked = [s for s, k in phrase.alignment if k == t]
        if article not in PLURALS or t == 0 or len(linked) != 1 or source[linked[0]] != "the" or linked[0] < 2:
            continue
        position = linked[0] + 1
        word = source[position] if position < len(source) else ""
        stem = word.strip(MARKS)
        if stem in numbers and numbers[stem] != stem:
            other = " ".join([*source[:position], word.replace(stem, numbers[stem]), *source[position + 1 :]])
            return MinimalPair(phrase.source, other, (article, PLURALS[article]), "number", phrase.target, t)
    return None


def of_negation(phrase: Phrase) -> MinimalPair | None:
    """Leave out "don't"; half of the pairs begin with the positive sentence."""
    source, target = phrase.source.split(), phrase.target.split()
    if source[1:2] != ["don't"] or target[:1] != ["No"] or "or" in source:
        return None
    positive = " ".join([source[0], *source[2:]])
    after = target[1][0].upper() + target[1][1:]
    if _hash(phrase.source) % 2:
        return MinimalPair(phrase.source, positive, ("No", after), "negation", phrase.target, 0)
    return MinimalPair(positive, phrase.source, (after, "No"), "negation", " ".join([after, *target[2:]]), 0)


def of_sense(phrase: Phrase) -> MinimalPair | None:
    """Put a sport in place of an instrument, or the other way round."""
    pattern = r"\bplay(?:s|ing|ed)? (the (?:piano|guitar|violin)|soccer|tennis|baseball|basketball)"
    match = re.search(pattern, phrase.source)
    target = phrase.target.split()
    positions = [t for t, word in enumerate(target) if word.strip(MARKS).lower() in PLAY]
    if match is None or len(positions) != 1:
        return None
    word = target[positions[0]].strip(MARKS)
    replaced = "soccer" if match[1].startswith("the ") else "the piano"
    other = phrase.source[: match.start(1)] + replaced + phrase.source[match.end(1) :]
    counterpart = PLAY[word.lower()]
    counterpart = counterpart.capitalize() if word[0].isupper() else counterpart
    return MinimalPair(phrase.source, other, (word, counterpart), "sense", phrase.target, positions[0])


def of_they() -> Iterator[MinimalPair]:
    """Change the gender of the antecedent of "they", on which an adjective depends."""
    for number, (state, stem) in product(range(len(ANTECEDENTS) * len(HINDERED)), STATES.items()):
        nouns, action = ANTECEDENTS[number % 4], HINDERED[number // 4]
        joined = "because" if "can't" in action else "but"
        determiner = "The" if nouns[0] in ("boys", "men") else "My"
        masculine, feminine = (
            f"{determiner} {noun} {action}{',' * (joined == 'but')} {joined} they are {state}." for noun in nouns
        )
        if number % 2:
            yield MinimalPair(masculine, feminine, (f"{stem}os", f"{stem}as"), "they")
        else:
            yield MinimalPair(feminine, masculine, (f"{stem}as", f"{stem}os"), "they")


def minimal_pairs(count: int) -> list[MinimalPair]:
    """Return the same number of pairs of each kind."""
    each = count // 5
    pairs = list(islice(of_they(), each))
    makers = {"gender": of_gender, "number": of_number, "negation": of_negation, "sense": of_sense}
    remaining = dict.fromkeys(makers, each)
    for phrase in generate(20_000, split="test", seed=25, max_words=14):
        for kind, make in makers.items():
            pair = make(phrase) if remaining[kind] else None
            if pair:
                remaining[kind] -= 1
                pairs.append(pair)
                break
        if not any(remaining.values()):
            break
    return pairs


def _hash(text: str) -> int:
    return int.from_bytes(sha256(text.encode()).digest()[:4])


def chooses(pair: MinimalPair) -> bool:
    """Whether a pair belongs to the half that chooses: by the words that CLEAN and OTHER have in common."""
    common = [word for word in pair.clean.split() if word in pair.other.split()]
    return _hash(" ".join(common)) % 2 == 0


class Case(NamedTuple):
    """A pair with its graph."""

    pair: MinimalPair
    graph: AttributionGraph
    parts: Parts
    ablated: Callable[[Sequence[Sequence[Node]]], list[Outcome]]
    """A function from sets of features to what the model does without them."""
    right: bool
    """Whether the model writes A for CLEAN, and prefers B for OTHER after the same prefix."""


def cases_of(translator: Translator, dictionary: Dictionary, pairs: Sequence[MinimalPair], name: str) -> list[Case]:
    cases = []
    for pair in track(pairs, name, console=Console(stderr=True)):
        try:
            graph = graph_of(translator, dictionary.transcoders, pair)
        except UserError:
            continue  # the model's own translation lacks A
        word = pair.words[0] if pair.position is None else pair.position
        question = ask(translator, pair.clean, word, pair.words[1], pair.target).question
        parts = Parts(HeldModel(question.model, question.source, question.prefix), dictionary.transcoders)
        (other,) = translator.pipeline.pairs([(pair.other, pair.other)])
        source = torch.tensor([other.source])
        elsewhere, _ = outcomes(question._replace(source=source), dictionary.transcoders, [])

        def ablated(sets: Sequence[Sequence[Node]], question=question) -> list[Outcome]:
            return outcomes(question, dictionary.transcoders, sets)[1]

        written = graph.faithfulness is not None and graph.faithfulness.written
        # The antecedent of "they" is in the prefix, too, which stays.
        cases.append(Case(pair, graph, parts, ablated, written and (elsewhere < 0 or pair.kind == "they")))
    return cases


def strongest(case: Case, ranking: str, size: int) -> list[Node]:
    """Return the strongest features of a graph."""
    features = [node for node in case.graph.nodes if node.part.kind == "feature"]
    return [node.part for node in sorted(features, key=lambda node: -RANKINGS[ranking](node))[:size]]


def lost(case: Case, outcome: Outcome) -> float:
    """Return the share of the logit that is lost."""
    return (case.graph.logit - outcome.logit) / max(abs(case.graph.logit), 1e-9)


def best_ranking(cases: Sequence[Case]) -> tuple[str, dict[str, tuple[float, float]]]:
    """Return the ranking whose five strongest features change the word most often, or else take most of the logit.

    Also return both shares for each ranking.
    """
    shares = {}
    for ranking in RANKINGS:
        results = [case.ablated([strongest(case, ranking, 5)])[0] for case in cases]
        losses = [lost(case, result) for case, result in zip(cases, results, strict=True)]
        shares[ranking] = fmean(result.changed for result in results), fmean(losses)
    return max(shares, key=lambda ranking: shares[ranking]), shares


def features_of_kind(cases: Sequence[Case], kind: str) -> list[str]:
    """Return the five features with the greatest mean effect through all paths."""
    totals: dict[str, float] = defaultdict(float)
    for case in cases:
        if case.pair.kind == kind:
            for node in case.graph.nodes:
                if node.part.kind == "feature":
                    totals[node.part.name] += node.total
    return sorted(totals, key=lambda name: -totals[name])[:5]


SETS = (
    *(f"{size} strongest" for size in SIZES),
    *("random", "most active", "5 of the kind", "random instead of these", "whole graph", "all features"),
)
"""What is ablated."""


class Figures(NamedTuple):
    """Means over pairs."""

    changed: list[float]
    """The share of pairs in which the word changes, for each of `SETS`."""
    lost: list[float]
    """The share of the logit that is lost, for each of `SETS`."""
    preferred: float
    """The share of pairs in which B is preferred without the five strongest."""
    unablated: float
    """The share of errors, tokens, positions and biases in the logit, counted by magnitude."""
    freezing: float
    """How far the logit is from that which the held model predicts, as a share of the logit."""


def figures_of(cases: Sequence[Case], ranking: str, of_kind: Mapping[str, Sequence[str]]) -> Figures:
    changed, losses, rest = [], [], []
    for case in cases:
        nodes = case.parts.nodes
        top = strongest(case, ranking, 5)
        fixed = [node for node in nodes if node.name in of_kind[case.pair.kind]]
        graph = [node.part for node in case.graph.nodes if node.part.kind == "feature"]
        everything = [node for node in nodes if node.kind == "feature"]
        groups = [[strongest(case, ranking, size)] for size in SIZES]
        groups += [others(nodes, top), [most_active(nodes, top)], [fixed], others(nodes, fixed), [graph], [everything]]
        results = iter(case.ablated([nodes for group in groups for nodes in group]))
        means = []
        for group in groups:
            outcomes_of_group = list(islice(results, len(group)))
            share = fmean(outcome.changed for outcome in outcomes_of_group)
            means.append((share, fmean(lost(case, outcome) for outcome in outcomes_of_group), outcomes_of_group[0]))
        changed.append([share for share, _, _ in means])
        losses.append([loss for _, loss, _ in means])
        faithfulness, effects = case.graph.faithfulness, case.graph.by_kind
        assert faithfulness is not None
        magnitude = sum(map(abs, effects.values())) + abs(case.graph.bias)
        error = abs(faithfulness.predicted - faithfulness.top.logit) / max(abs(case.graph.logit), 1e-9)
        preferred = means[0][0] and means[0][2].logit < 0
        rest.append((preferred, 1 - abs(effects.get("feature", 0.0)) / magnitude, error))
    columns = [[fmean(column) for column in zip(*rows, strict=True)] for rows in (changed, losses, rest)]
    return Figures(columns[0], columns[1], *columns[2])


def agreement(translator: Translator, cases: Sequence[Case]) -> tuple[float, float, int]:
    """Compare the graph with patching of the encoder's states in its layers, word by word.

    Returns:
        The share of pairs in which the same source word is first, the mean correlation over the words, and the number
        of pairs.
    """
    same, correlations = [], []
    for case in cases:
        pair = case.pair
        if len(pair.clean.split()) != len(pair.other.split()):
            continue
        try:
            patching = translator.inspector.patch(pair.clean, pair.other, pair.words, target=pair.target)
        except UserError:
            continue
        part = patching.parts[0]
        assert part.kind == ENCODER
        carried = part.carried[1:].mean(0)  # the layers after the embeddings
        spans = ask(translator, pair.clean, *_word(pair), pair.target).case.inspected.source_spans
        influence = torch.zeros(len(spans), dtype=torch.float64)
        for node in case.graph.nodes:
            if node.part.side == "encoder":
                for number, (_, start, end) in enumerate(spans):
                    if start <= node.part.position < end:
                        influence[number] += node.total
        if len(carried) != len(influence):
            continue
        same.append(float(carried.argmax() == influence.argmax()))
        correlations.append(torch.corrcoef(torch.stack([carried.double(), influence]))[0, 1].item())
    return (fmean(same), fmean(correlations), len(same)) if same else (0.0, 0.0, 0)


def _word(pair: MinimalPair) -> tuple[int | str, str]:
    return (pair.words[0] if pair.position is None else pair.position), pair.words[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("runs", type=Path, nargs="+", help="runs of the demo with dictionaries and different seeds")
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--quick", action="store_true", help="10 pairs, page not written to docs")
    arguments = parser.parse_args()
    docs, count = DOCS, arguments.pairs
    if arguments.quick:
        docs, count = arguments.runs[0], 10
    pairs, sections = minimal_pairs(count), ""
    for run in arguments.runs:
        sections += section(Translator.load(run, "cpu", "torch"), Dictionary.load(run), pairs, str(run))
    write("25-graphs.md", page(pairs, sections), docs)


def percent(share: float) -> str:
    return f"{100 * share:.0f}"


def page(pairs: Sequence[MinimalPair], sections: str) -> str:
    examples = ""
    for kind in dict.fromkeys(pair.kind for pair in pairs):
        pair = next(pair for pair in pairs if pair.kind == kind)
        number = sum(pair.kind == kind for pair in pairs)
        examples += f"| {kind} | {number} | {pair.clean} | {pair.other} | {pair.words[0]} / {pair.words[1]} |\n"
    return f"""# Claim 25: do the features of an attribution graph decide a word?

The claim: without the five strongest features of its graph, the model writes another word in at least 80 % of the
pairs, without random ones in at most 10 %.

{len(pairs)} minimal pairs of the phrasebook: a test sentence CLEAN, whose translation has the word A, and the same
sentence with a small change, OTHER, whose translation has B; for *they*, sentences built from the phrasebook's words.
The [graph](../circuits.md#graphs) is that of A instead of B in CLEAN. Features are ablated in the original model,
errors stay, and everything after it is computed again; the word changes if greedy search with the same prefix writes
another one.

| kind | pairs | such as CLEAN | OTHER | A / B |
| --- | ---: | --- | --- | --- |
{examples}
Half of the pairs, by a hash of what CLEAN and OTHER have in common, choose how the features of a graph are ranked, and
five features for each kind, with the greatest mean effect. The tables show the other half, and only pairs in which the
model writes A for CLEAN and prefers B for OTHER (*they*: only the former, as the antecedent is in the prefix, too).
*Random*: as many other active features of the same positions and sublayers, mean of 20 draws. *Most active*: those with
the greatest values there. *Whole graph*: all features of the graph; *all features*: all active ones of the sentence.

{sections}To reproduce: `translucid features RUN --text TRAIN` for both runs, and
`python benchmarks/claims/graphs.py RUN RUN-2`.
"""


def section(translator: Translator, dictionary: Dictionary, pairs: Sequence[MinimalPair], name: str) -> str:
    cases = [case for case in cases_of(translator, dictionary, pairs, name) if case.right]
    choosing = [case for case in cases if chooses(case.pair)]
    measuring = [case for case in cases if not chooses(case.pair)]
    ranking, shares = best_ranking(choosing)
    kinds = list(dict.fromkeys(pair.kind for pair in pairs))
    of_kind = {kind: features_of_kind(choosing, kind) for kind in kinds}
    groups = {kind: [case for case in measuring if case.pair.kind == kind] for kind in kinds} | {"all": measuring}
    changed, losses = [], []
    for kind, group in groups.items():
        if group:
            f = figures_of(group, ranking, of_kind)
            changed.append([kind, str(len(group)), *map(percent, (*f.changed, f.preferred))])
            losses.append([kind, str(len(group)), *map(percent, (*f.lost, f.unablated, f.freezing))])
    head = ["kind", "pairs", *SETS]
    same, correlation, number = agreement(translator, measuring)
    tried = "; ".join(f"{name} {percent(a)} %, {percent(b)} %" for name, (a, b) in shares.items())
    return f"""## Seed {translator.configuration.training.seed}

{len(cases)} pairs are right, of which {len(choosing)} choose. Of the rankings (pairs in which the word changes, and
logit lost: {tried}), *{ranking}* is chosen.

Pairs in which the word changes without some features, %; *B preferred*: it is, without the five strongest.

{table([*head, "B preferred"], changed)}
The part of the logit that is lost, %:

{table([*head, "not ablated", "error of freezing"], losses)}
*Not ablated* is the part of the logit that comes from errors, tokens, positions and biases; *error of freezing*, how
far the logit without the five strongest is from the one that the held model predicts.

**Agreement with patching** ([claim 17](17-gender.md)): in {number} pairs of as many words, the source word with the
greatest effect in the graph is the one whose encoder states carry most in {percent(same)} %; the mean correlation over
words is {correlation:.2f}.

"""


if __name__ == "__main__":
    main()
