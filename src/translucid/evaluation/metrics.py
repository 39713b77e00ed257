"""BLEU, chrF, chrF++ and TER with their signatures, computed by sacreBLEU (Post 2018, arXiv 1804.08771).

`Criterion` is the metric that decides between translations: BLEU, or chrF where BLEU can't distinguish them.
`pairwise_chrf` scores all pairs of some texts and counts the n-grams of each text once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice, zip_longest
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from bitext.languages import script_of
from translucid.data.statistics import script
from translucid.ground.errors import UserError, nearest

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric
    from sacrebleu.metrics.bleu import BLEU


DEFAULT = "13a"
"""sacreBLEU's tokenizer for languages with spaces between words."""
CHARACTERS = "char"
"""sacreBLEU's tokenizer that makes each character a word."""
_BY_SCRIPT = {
    **dict.fromkeys(("Hans", "Hant", "Hani"), "zh"),
    **dict.fromkeys(("Jpan", "Hrkt", "Hira", "Kana"), "ja-mecab"),
    **dict.fromkeys(("Kore", "Hang"), "ko-mecab"),
    **dict.fromkeys(("Thai", "Laoo", "Khmr", "Mymr", "Tibt"), CHARACTERS),
}
"""Tokenizers of scripts (ISO 15924) whose words `13a` does not find, so that good translations would have 0 BLEU."""
_LETTERS = {
    **dict.fromkeys(("CJK", "BOPOMOFO"), "Hani"),
    **dict.fromkeys(("HIRAGANA", "KATAKANA"), "Jpan"),
    "HANGUL": "Kore",
    "THAI": "Thai",
    "LAO": "Laoo",
    "KHMER": "Khmr",
    "MYANMAR": "Mymr",
    "TIBETAN": "Tibt",
}
"""The script of a text by the script of its letters, as `data.statistics.script` names it."""
_KANA = 0.1
"""The share of kana among the letters from which a text with Chinese characters is Japanese."""
_SAMPLE = 1000
"""The maximum number of references from which the script is detected."""
_EXTRAS = {"ja-mecab": "ja", "ko-mecab": "ko"}
"""The extras of the package sacreBLEU that tokenizers need."""

ReferenceSets: TypeAlias = Sequence[Sequence[str | None]]
"""Sets of references with one reference per sentence, or None."""
NGRAM = 4
"""The length of BLEU's longest n-grams; without a match of that length, BLEU is 0 however good a translation is."""
METRICS = ("BLEU", "chrF", "chrF++", "TER")
"""The names of the metrics that `metrics` returns."""
SHARE = 0.1
"""The minimum share of sentences with a reference of that many words, so that BLEU is meaningful."""
MEANINGFUL = {"BLEU": 1.0, "chrF": 10.0}
"""The scores from which a difference is meaningful; below them, hardly any word is correct."""


@dataclass(frozen=True)
class CorpusScore:
    """The score of one metric."""

    name: str
    """`BLEU`, `chrF`, `chrF++` or `TER`."""
    value: float
    """The score, 0 to 100; TER, an error rate, is best at 0 and may exceed 100."""
    signature: str
    """sacreBLEU's record of all settings that affect the score."""


def corpus_scores(
    hypotheses: Sequence[str],
    references: ReferenceSets,
    *,
    tokenize: str | None = None,
    language: str | None = None,
    lowercase: bool = False,
) -> list[CorpusScore]:
    """Score translations against one or more references.

    Args:
        hypotheses: one translation per sentence.
        references: sets of references with one reference per sentence, or None.
        tokenize: sacreBLEU's tokenizer for BLEU, `none` for tokenized text; `bleu_tokenizer` chooses it if not given.
        language: the code of the language of the translations, if it is known.
        lowercase: whether all metrics ignore case.

    Raises:
        TypeError: an argument is a text instead of a list.
        UserError: there is nothing to score, sets have unequal lengths, or the tokenizer is unknown or not installed.
    """
    _check(hypotheses, references)
    scorers = metrics(tokenize=tokenize or bleu_tokenizer(language, references), lowercase=lowercase)
    return [_corpus_score(metric, hypotheses, references) for metric in scorers]


def _corpus_score(metric: Metric, hypotheses: Sequence[str], references: ReferenceSets) -> CorpusScore:
    score = metric.corpus_score(hypotheses, references)  # type: ignore[arg-type]
    return CorpusScore(plain_name(score.name), score.score, str(metric.get_signature()))


def metrics(*, tokenize: str = DEFAULT, lowercase: bool = False) -> list[Metric]:
    """Return sacreBLEU's BLEU, chrF, chrF++ (Popović 2017, with words and pairs of words) and TER.

    Arguments as for `corpus_scores`.

    Raises:
        UserError: the tokenizer is unknown or not installed.
    """
    from sacrebleu.metrics.chrf import CHRF
    from sacrebleu.metrics.ter import TER

    # TER counts edits of words: without this, a sentence of Chinese or Japanese would be a single word.
    unspaced = tokenize in ("zh", "ja-mecab")
    return [
        # `force` suppresses sacreBLEU's warning of tokenized text, which a user of `none` expects.
        bleu_metric(tokenize, lowercase=lowercase, force=tokenize == "none"),
        CHRF(lowercase=lowercase),
        CHRF(lowercase=lowercase, word_order=2),
        TER(case_sensitive=not lowercase, normalized=unspaced, asian_support=unspaced),
    ]


def bleu_metric(tokenize: str, *, lowercase: bool = False, force: bool = True) -> BLEU:
    """Return sacreBLEU's BLEU; `force` suppresses the warning of tokenized text.

    Raises:
        UserError: there is no such tokenizer, it is not installed, or its model can't be downloaded.
    """
    from sacrebleu.metrics.bleu import BLEU

    if tokenize not in BLEU.TOKENIZERS:
        raise UserError(f"sacreBLEU has no tokenizer {tokenize!r}", fix=nearest(tokenize, BLEU.TOKENIZERS))
    try:
        return BLEU(tokenize=tokenize, lowercase=lowercase, force=force)
    except (Exception, SystemExit) as error:  # sacreBLEU exits the process if a download fails
        alternative = f'Or give `tokenize="{CHARACTERS}"`, which needs nothing.'
        if extra := _EXTRAS.get(tokenize):
            what = f"sacreBLEU's tokenizer {tokenize} needs packages that are not installed"
            raise UserError(what, fix=f'Run: pip install "sacrebleu[{extra}]". {alternative}') from error
        reason = str(getattr(error, "reason", error)) or type(error).__name__
        what = f"sacreBLEU's tokenizer {tokenize} needs a model that it downloads, which failed ({reason})"
        raise UserError(what, fix=f"Try again with a network. {alternative}") from error


def bleu_tokenizer(language: str | None, references: Iterable[Sequence[str | None]] = ()) -> str:
    """Return sacreBLEU's tokenizer for a language: `zh`, `ja-mecab` or `ko-mecab`, `char` or `13a`.

    `char` is for scripts without spaces that sacreBLEU has no tokenizer for, such as Thai, and for Japanese and Korean
    if their packages are not installed.

    Args:
        language: the code of the language, if it is known.
        references: sets of references, from which the script is detected if the code does not determine it.
    """
    script_code = script_of(language) if language else ""
    name = _BY_SCRIPT.get(script_code or _script_of(references), DEFAULT)
    return name if name not in _EXTRAS or _installed(name) else CHARACTERS


# Tokenizers load dictionaries.
@lru_cache
def _installed(name: str) -> bool:
    try:
        bleu_metric(name)
    except UserError:
        return False
    return True


def _script_of(references: Iterable[Sequence[str | None]]) -> str:
    """Return the script of most letters, if `13a` is not for it."""
    letters: Counter[str] = Counter()
    for text in islice(chain.from_iterable(references), _SAMPLE):
        for letter in text or "":
            if kind := script(letter):
                letters[_LETTERS.get(kind, "")] += 1
    if not letters:
        return ""
    # Japanese mixes kana with Chinese characters.
    if letters["Jpan"] >= _KANA * (letters["Jpan"] + letters["Hani"]):
        letters["Jpan"] += letters.pop("Hani", 0)
    return max(letters, key=letters.__getitem__)


def plain_name(name: str) -> str:
    """Return the name of a metric without the beta of chrF2 and chrF2++."""
    return name.replace("chrF2", "chrF")


def sentence_chrf(hypotheses: Sequence[str], references: Sequence[str]) -> list[float]:
    """Return sacreBLEU's chrF of each translation against its reference, 0 to 100."""
    from sacrebleu.metrics.chrf import CHRF

    metric = CHRF()
    pairs = zip(hypotheses, references, strict=True)
    return [metric.sentence_score(text, [reference]).score for text, reference in pairs]


ORDER = 6
"""The length of the longest n-grams, in characters."""
BETA = 2.0
"""The weight of recall relative to precision."""


def pairwise_chrf(texts: Sequence[str]) -> NDArray[np.float64]:
    """Return sacreBLEU's sentence chrF, 0 to 100, of text i as translation and text j as reference, [N, N].

    chrF (Popović 2015, section 2) ignores white space, and averages precision and recall over the orders of which both
    texts have n-grams. The matches of an order are sums of min(c_i, c_j) over n-grams, and min(c_i, c_j) is the number
    of k >= 1 with c_i >= k and c_j >= k, so that products of matrices of zeros and ones compute them.
    """
    squeezed = ["".join(text.split()) for text in texts]
    count = len(squeezed)
    precision, recall, orders = np.zeros((3, count, count))
    for n in range(1, ORDER + 1):
        sizes = np.array([max(len(text) - n + 1, 0) for text in squeezed], float)
        counts = _counts(squeezed, n)
        matches = np.zeros((count, count))
        for k in range(1, int(counts.max(initial=0)) + 1):
            # Counts are small integers, which float32 represents exactly.
            present = (counts[:, (counts >= k).any(0)] >= k).astype(np.float32)
            matches += present @ present.T
        # Text i has the precision, as the translation, and text j the recall.
        both = (sizes[:, None] > 0) & (sizes > 0)
        precision += np.divide(matches, sizes[:, None], out=np.zeros_like(matches), where=both)
        recall += np.divide(matches, sizes, out=np.zeros_like(matches), where=both)
        orders += both
    precision, recall = precision / np.maximum(orders, 1), recall / np.maximum(orders, 1)
    denominator = BETA**2 * precision + recall
    numerator = (1 + BETA**2) * precision * recall
    return 100 * np.divide(numerator, denominator, out=np.zeros_like(denominator), where=denominator > 0)


def _counts(texts: Sequence[str], n: int) -> NDArray[np.int64]:
    """Return the counts of all n-grams in each text [N, n-grams]."""
    numbers: dict[str, int] = {}
    by_text = []
    for text in texts:
        grams = [text[i : i + n] for i in range(len(text) - n + 1)]
        by_text.append([numbers.setdefault(gram, len(numbers)) for gram in grams])
    counts = np.zeros((len(texts), len(numbers)), np.int64)
    for row, text_grams in zip(counts, by_text, strict=True):
        np.add.at(row, text_grams, 1)
    return counts


def reference_sets(references: Sequence[Sequence[str]]) -> list[list[str | None]]:
    """Convert lists of references of each source into sets, with None where a source has fewer than others.

    An empty string would count as a reference of no words; sacreBLEU accepts None, though its types do not say so.
    """
    return list(map(list, zip_longest(*references)))


def without_blank(references: Sequence[Sequence[str]]) -> ReferenceSets:
    """Replace blank lines, by which files mark a missing reference, by None, unless a sentence has no other."""
    if len(set(map(len, references))) != 1:  # scoring reports sets of unequal length
        return references
    sets: list[list[str | None]] = list(map(list, references))
    for i, sentence_references in enumerate(zip(*references, strict=True)):
        if any(map(str.strip, sentence_references)):
            for reference_set, text in zip(sets, sentence_references, strict=True):
                if not text.strip():
                    reference_set[i] = None
    return sets


def corpus_bleu(
    hypotheses: Sequence[str], references: Sequence[Sequence[str | None]], *, language: str | None = None
) -> CorpusScore:
    """Return BLEU with the tokenizer of the language; a set has None where a sentence has no reference."""
    _check(hypotheses, references)
    return _corpus_score(bleu_metric(bleu_tokenizer(language, references)), hypotheses, references)


def bleu(
    hypotheses: Sequence[str], references: Sequence[Sequence[str | None]], *, language: str | None = None
) -> float:
    """Return the value of `corpus_bleu`."""
    return corpus_bleu(hypotheses, references, language=language).value


def _check(hypotheses: Sequence[str], references: Sequence[Sequence[str | None]]) -> None:
    if isinstance(hypotheses, str) or any(isinstance(reference, str) for reference in references):
        raise TypeError("translations are a list, and references a list of such lists: [[reference, ...]]")
    if not hypotheses or not references:
        raise UserError("there are no sentences to score", fix="Give translations and references.")
    for number, reference in enumerate(references, 1):
        if len(reference) != len(hypotheses):
            counts = f"{len(hypotheses):,} translations but {len(reference):,} references"
            raise UserError(f"{counts} in set {number}", fix="Each sentence needs a reference in each set.")


class Criterion:
    """A score of a whole test set, the higher the better."""

    name: str
    """`BLEU` or `chrF`."""

    def __init__(
        self,
        references: ReferenceSets,
        language: str | None = None,
        *,
        tokenize: str | None = None,
        lowercase: bool = False,
    ) -> None:
        """Choose the metric for some references: BLEU, unless they are too short for it.

        Args:
            references: at least one set.
            language: the code of their language, if it is known.
            tokenize: sacreBLEU's tokenizer for BLEU; that of the language by default.
            lowercase: whether case is ignored.
        """
        from sacrebleu.metrics.chrf import CHRF

        self.references = references
        tokenize = tokenize or bleu_tokenizer(language, references)
        self._metrics: dict[str, Metric] = {
            "BLEU": bleu_metric(tokenize, lowercase=lowercase),
            "chrF": CHRF(lowercase=lowercase),
        }
        self.name = "BLEU" if long_enough(references, tokenize) else "chrF"

    def bleu(self, hypotheses: Sequence[str]) -> float:
        """Return the BLEU of translations, 0 to 100."""
        return self._score("BLEU", hypotheses)

    def scores(self, hypotheses: Sequence[str]) -> list[CorpusScore]:
        """Return BLEU and chrF of translations, with their signatures."""
        return [_corpus_score(metric, hypotheses, self.references) for metric in self._metrics.values()]

    def score(self, hypotheses: Sequence[str]) -> float:
        """Return the score of translations, 0 to 100."""
        return self._score(self.name, hypotheses)

    def _score(self, name: str, hypotheses: Sequence[str]) -> float:
        return self._metrics[name].corpus_score(hypotheses, self.references).score  # type: ignore[arg-type]

    def is_meaningful(self, score: float) -> bool:
        """Return whether a score is high enough for a difference to be meaningful."""
        return score >= MEANINGFUL[self.name]

    def choose_metric(self, hypotheses: Sequence[str]) -> float:
        """Return the score of baseline translations, after changing the metric to chrF if their BLEU is too low."""
        score = self.score(hypotheses)
        if self.name == "BLEU" and not self.is_meaningful(score):
            self.name = "chrF"
            score = self.score(hypotheses)
        return score


def long_enough(references: ReferenceSets, tokenize: str) -> bool:
    """Return whether the references are long enough for BLEU with one of sacreBLEU's tokenizers."""
    tokenizer = bleu_metric(tokenize).tokenizer
    long_references = 0
    # One long reference of a sentence is enough for BLEU to count its 4-grams.
    for row in zip(*references, strict=True):
        for text in row:
            if text is not None and len(tokenizer(text).split()) >= NGRAM:
                long_references += 1
                break
    return long_references >= SHARE * len(references[0])
