"""Terms found in sentence pairs, for a person to accept.

Words are linked by the lexicon of IBM model 1 in both directions (`mining.Lexicon`). A candidate is a phrase of at most
four words with a translation whose links stay between the two, as in phrase-based translation (Koehn et al. 2003,
N03-1017, section 4.1), and neither begins nor ends with one of the most frequent words. Candidates are ordered by their
C-value (Frantzi et al. 2000, section 2.2), log2(1 + words) * (count - mean count of the longer candidates around it),
times the share of their occurrences with the translation: words of the general language have many. General text, if
there is any, shows which words are frequent everywhere.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import log2
from typing import NamedTuple, TypeAlias

from bitext.pair import Pair
from bitext.words import Word, folded
from translucid.terminology.glossary import fault_of
from translucid.terminology.mining import Lexicon, content

LONGEST_TERM = 4
"""The largest number of words of a candidate."""
LONGEST_TARGET = 6
MOST_CANDIDATES = 2_000_000
"""The number of different phrases that are counted; beyond it, the rarest so far are forgotten."""
LONGEST_EXAMPLE = 200
"""The largest number of characters of an example, if there is a shorter one."""

_PUNCTUATION = re.compile(r"[.,;:!?()«»\"]")

Phrase: TypeAlias = tuple[str, ...]
"""The words of a phrase in lower case."""
Key: TypeAlias = tuple[Phrase, Phrase]
"""A phrase and its translation."""


class Candidate(NamedTuple):
    """A term with one of its translations."""

    source: str
    target: str
    occurrences: int
    """How often the source has this translation."""
    share: float
    """The count in relation to all occurrences of the source."""
    example: Pair
    value: float
    """The C-value of the source, times the share, and the keyness if there is general text."""


@dataclass
class _Found:
    """The occurrences of a phrase with one translation."""

    count: int = 0
    forms: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How both are written within sentences; at the beginning of one, capitals say nothing."""
    example: Pair | None = None

    def add(self, source: str, target: str, pair: Pair) -> None:
        self.count += 1
        if len(self.forms) < 20 or (source, target) in self.forms:
            self.forms[source, target] += 1
        length = abs(len(pair.source) - LONGEST_EXAMPLE / 3)  # neither fragments nor long sentences
        if self.example is None or length < abs(len(self.example.source) - LONGEST_EXAMPLE / 3):
            self.example = pair


def extracted(
    pairs: Callable[[], Iterable[Pair]],
    *,
    least: int,
    least_share: float,
    known: Callable[[str, str], bool] = lambda source, target: False,
    general: Iterable[Pair] = (),
    advance: Callable[[int], None] = lambda count: None,
) -> list[Candidate]:
    """Return candidates for terms, the likeliest first.

    Args:
        pairs: returns the sentence pairs; it is called twice.
        least: the smallest number of occurrences of a term with a translation.
        least_share: the smallest share of the occurrences of a term that have the translation.
        known: whether a term list has a term with this translation.
        general: pairs of the general language; terms that are not more frequent than there come last.
        advance: called with the number of pairs that have been read since the last call.
    """
    lexicon = Lexicon.learn(pairs())
    found: dict[Key, _Found] = {}
    occurrences: Counter[Phrase] = Counter()
    total = forgotten = 0
    for pair in pairs():
        source, target = content(pair.source), content(pair.target)
        source_words, target_words = tuple(folded(source)), tuple(folded(target))
        total += len(source)
        for start, end in _spans(source, pair.source):
            if lexicon.common.isdisjoint((source_words[start], source_words[end - 1])):
                occurrences[source_words[start:end]] += 1
        for (start, end), (first, last) in _phrases(source, target, pair, lexicon):
            key = source_words[start:end], target_words[first:last]
            forms = _form(pair.source, source[start:end], start), _form(pair.target, target[first:last], first)
            found.setdefault(key, _Found()).add(*forms, pair)
        if max(len(found), len(occurrences)) > MOST_CANDIDATES:
            forgotten += 1  # so that at some time enough are forgotten
            found = {key: phrase for key, phrase in found.items() if phrase.count > forgotten}
            occurrences = Counter({words: count for words, count in occurrences.items() if count > forgotten})
        advance(1)
    frequent = {key: phrase for key, phrase in found.items() if phrase.count >= least}
    counts = {key[0]: occurrences[key[0]] for key in frequent}
    values = _values(counts)
    for words, keyness in _keyness(counts, total, general).items():
        values[words] *= keyness
    candidates = []
    for (source_key, _), phrase in frequent.items():
        share = phrase.count / max(occurrences[source_key], phrase.count)
        # The form that is most frequent; of equally frequent ones, the one with fewer capitals.
        (source_form, target_form), _ = min(phrase.forms.items(), key=lambda item: (-item[1], _capitals(item[0])))
        is_new = not known(source_form, target_form)
        if share >= least_share and values[source_key] > 0 and is_new and not fault_of(source_form, target_form):
            assert phrase.example
            candidates.append(
                Candidate(source_form, target_form, phrase.count, share, phrase.example, share * values[source_key])
            )
    return sorted(candidates, key=lambda row: (-row.value, row.source, -row.occurrences, row.target))


def _capitals(forms: tuple[str, str]) -> int:
    return sum(map(str.isupper, "".join(forms)))


def _form(text: str, words: Sequence[Word], index: int) -> str:
    """Return a phrase as it is written, without the capital of the first word of a sentence."""
    phrase = " ".join(text[words[0].start : words[-1].end].split())
    return phrase[:1].lower() + phrase[1:] if index == 0 and not phrase[1:2].isupper() else phrase


def _spans(words: Sequence[Word], text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of words with nothing but spaces between them."""
    for start in range(len(words)):
        for end in range(start + 1, min(start + LONGEST_TERM, len(words)) + 1):
            if end > start + 1 and text[words[end - 2].end : words[end - 1].start].strip():
                break
            yield start, end


def _phrases(
    source: Sequence[Word], target: Sequence[Word], pair: Pair, lexicon: Lexicon
) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Yield the spans of phrases and of their translations."""
    links = dict(lexicon.links(source, target))
    sources_of = {j: i for i, j in links.items()}
    target_words = folded(target)
    may_end = [len(word.text) > 2 and word.text.casefold() not in lexicon.common for word in source]
    for start, end in _spans(source, pair.source):
        linked = [links[i] for i in range(start, end) if i in links]
        if not (may_end[start] and may_end[end - 1] and start in links and end - 1 in links):
            continue
        first, last = min(linked), max(linked) + 1
        has_common_end = not lexicon.common.isdisjoint((target_words[first], target_words[last - 1]))
        # More words without links than with them are a sign of a loose translation.
        is_loose = last - first > min(LONGEST_TARGET, 2 * len(linked) + 1)
        is_closed = all(start <= sources_of.get(j, start) < end for j in range(first, last))
        translation = pair.target[target[first].start : target[last - 1].end]
        if is_closed and not (has_common_end or is_loose or _PUNCTUATION.search(translation)):
            yield (start, end), (first, last)


def _keyness(counts: dict[Phrase, int], total: int, general: Iterable[Pair]) -> dict[Phrase, float]:
    """Return log2(1 + ratio) of each phrase; the ratio is that of its relative frequencies here and in general.

    This is the "weirdness" of Ahmad et al. 1999. Without general pairs, there are none.
    """
    general_counts: Counter[Phrase] = Counter()
    general_total = 0
    for pair in general:
        words = content(pair.source)
        general_total += len(words)
        texts = tuple(folded(words))
        for start, end in _spans(words, pair.source):
            if texts[start:end] in counts:
                general_counts[texts[start:end]] += 1
    if not general_total:
        return {}
    keyness = {}
    for phrase, count in counts.items():
        ratio = (count / total) / ((general_counts[phrase] + 1) / general_total)
        keyness[phrase] = log2(1 + ratio)
    return keyness


def _values(counts: dict[Phrase, int]) -> dict[Phrase, float]:
    """Return the C-value of each phrase, given how often it occurs."""
    around: dict[Phrase, list[int]] = defaultdict(list)
    for words, count in counts.items():
        parts = {words[i:j] for i in range(len(words)) for j in range(i + 1, len(words) + 1)} - {words}
        for part in parts & counts.keys():
            around[part].append(count)
    values = {}
    for words, count in counts.items():
        longer = around[words]
        values[words] = log2(1 + len(words)) * (count - (sum(longer) / len(longer) if longer else 0))
    return values


def tsv_of(candidates: Iterable[Candidate]) -> str:
    """Return a list with a column to accept candidates in; `read_terms` reads those with something in it."""
    lines = ["source\ttarget\taccepted\tcount\tshare\texample\texample translation"]
    for row in candidates:
        example = (" ".join(side.split()) for side in (row.example.source, row.example.target))
        lines.append("\t".join([row.source, row.target, "", str(row.occurrences), f"{row.share:.0%}", *example]))
    return "\n".join(lines) + "\n"
