"""BLEU, chrF and TER with their signatures; sacreBLEU (Post 2018, arXiv 1804.08771) does the counting."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice, zip_longest
from typing import TYPE_CHECKING, TypeAlias

from translucid.data.languages import script_of
from translucid.data.statistics import script
from translucid.ground.errors import UserError, nearest

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric
    from sacrebleu.metrics.bleu import BLEU

DEFAULT = "13a"
"""sacreBLEU's tokenizer for languages that put spaces between words."""
CHARACTERS = "char"
"""sacreBLEU's tokenizer that makes a word of each character."""
_BY_SCRIPT = {
    **dict.fromkeys(("Hans", "Hant", "Hani"), "zh"),
    **dict.fromkeys(("Jpan", "Hrkt", "Hira", "Kana"), "ja-mecab"),
    **dict.fromkeys(("Kore", "Hang"), "ko-mecab"),
    **dict.fromkeys(("Thai", "Laoo", "Khmr", "Mymr", "Tibt"), CHARACTERS),
}
"""Tokenizers of scripts (ISO 15924) whose words `13a` does not find: 0 BLEU for good translations, else."""
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
"""Of the letters of these scripts, as `data.statistics.script` calls them: the script of the text."""
_KANA = 0.1
"""Share of kana among the letters from which on a text with Chinese characters is Japanese."""
_SAMPLE = 1000
"""References that a language is told from, at most."""
_EXTRAS = {"ja-mecab": "ja", "ko-mecab": "ko"}
"""Extras of the package sacreBLEU, which have what a tokenizer needs."""


ReferenceSets: TypeAlias = Sequence[Sequence[str | None]]
"""Sets of references, each with one a sentence; None where a sentence has none of that set."""


@dataclass(frozen=True)
class CorpusScore:
    """One figure of one metric."""

    name: str
    """`BLEU`, `chrF` or `TER`."""
    value: float
    """0 to 100; TER, an error rate, is best at 0 and may be above 100."""
    signature: str
    """sacreBLEU's record of everything that decides the figure."""


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
        hypotheses: one translation a sentence.
        references: sets of references, each with one a sentence, or None where a sentence has none.
        tokenize: sacreBLEU's tokenizer for BLEU, `none` for text that is tokenised already; that of the language if
            not given, see `bleu_tokenizer`.
        language: code of the language of the translations, if it is known.
        lowercase: ignore case, in all three.

    Raises:
        TypeError: a text stands where a list is wanted.
        UserError: nothing to score, sets of unequal length, or a tokenizer that is unknown or not installed.
    """
    _check(hypotheses, references)
    scores = []
    for metric in metrics(tokenize=tokenize or bleu_tokenizer(language, references), lowercase=lowercase):
        found = metric.corpus_score(hypotheses, references)  # type: ignore[arg-type]
        scores.append(CorpusScore(plain_name(found.name), found.score, str(metric.get_signature())))
    return scores


def metrics(*, tokenize: str = DEFAULT, lowercase: bool = False) -> list[Metric]:
    """Return sacreBLEU's BLEU, chrF and TER; arguments as for `corpus_scores`.

    Raises:
        UserError: the tokenizer is unknown or not installed.
    """
    from sacrebleu.metrics.chrf import CHRF
    from sacrebleu.metrics.ter import TER

    # TER counts edits of words: without this, a sentence of Chinese or Japanese is one word, right or wrong as a whole.
    unspaced = tokenize in ("zh", "ja-mecab")
    return [
        # `force`: sacreBLEU warns that text looks tokenised; who says `none` knows.
        bleu_metric(tokenize, lowercase=lowercase, force=tokenize == "none"),
        CHRF(lowercase=lowercase),
        TER(case_sensitive=not lowercase, normalized=unspaced, asian_support=unspaced),
    ]


def bleu_metric(tokenize: str, *, lowercase: bool = False, force: bool = True) -> BLEU:
    """Return sacreBLEU's BLEU; `force`: no warning of text that looks tokenised.

    Raises:
        UserError: there is no such tokenizer, it is not installed, or its model can't be downloaded.
    """
    from sacrebleu.metrics.bleu import BLEU

    if tokenize not in BLEU.TOKENIZERS:
        raise UserError(f"sacreBLEU has no tokenizer {tokenize!r}", fix=nearest(tokenize, BLEU.TOKENIZERS))
    try:
        return BLEU(tokenize=tokenize, lowercase=lowercase, force=force)
    except (Exception, SystemExit) as error:  # sacreBLEU exits the process where a download fails
        instead = f"Or give --tokenize {CHARACTERS}, which needs nothing."
        if extra := _EXTRAS.get(tokenize):
            what = f"sacreBLEU's tokenizer {tokenize} needs packages that are not installed"
            raise UserError(what, fix=f'Run: pip install "sacrebleu[{extra}]". {instead}') from error
        reason = str(getattr(error, "reason", error)) or type(error).__name__
        what = f"sacreBLEU's tokenizer {tokenize} needs a model that it downloads, which failed ({reason})"
        raise UserError(what, fix=f"Try again with a network. {instead}") from error


def bleu_tokenizer(language: str | None, references: Iterable[Sequence[str | None]] = ()) -> str:
    """Return sacreBLEU's tokenizer for a language: `zh`, `ja-mecab` or `ko-mecab`, `char` or `13a`.

    `char` is for scripts without spaces that sacreBLEU has no tokenizer for, such as Thai, and for Japanese and Korean
    where the packages of theirs are not installed.

    Args:
        language: code of the language, if it is known.
        references: sets of references, which show the script if the code does not.
    """
    written = script_of(language) if language else ""
    name = _BY_SCRIPT.get(written or _script_of(references), DEFAULT)
    return name if name not in _EXTRAS or _installed(name) else CHARACTERS


@lru_cache
def _installed(name: str) -> bool:
    try:
        bleu_metric(name)
    except UserError:
        return False
    return True


def _script_of(references: Iterable[Sequence[str | None]]) -> str:
    """Return the script of most letters, if it is one that `13a` is not for."""
    letters: Counter[str] = Counter()
    for text in islice(chain.from_iterable(references), _SAMPLE):
        for letter in text or "":
            if kind := script(letter):
                letters[_LETTERS.get(kind, "")] += 1
    if not letters:
        return ""
    if letters["Jpan"] >= _KANA * (letters["Jpan"] + letters["Hani"]):
        letters["Jpan"] += letters.pop("Hani", 0)
    return max(letters, key=letters.__getitem__)


def plain_name(name: str) -> str:
    """Return a metric's name without the beta of chrF, which its signature has."""
    return name.rstrip("2")


def sentence_chrf(hypotheses: Sequence[str], references: Sequence[str]) -> list[float]:
    """Return sacreBLEU's chrF of each translation against its reference, 0 to 100."""
    from sacrebleu.metrics.chrf import CHRF

    metric = CHRF()
    return [metric.sentence_score(text, [right]).score for text, right in zip(hypotheses, references, strict=True)]


def reference_sets(references: Sequence[Sequence[str]]) -> list[list[str | None]]:
    """Turn the references of each source into sets with one for each, None where one has fewer than others.

    An empty string would count as a reference of no words; sacreBLEU takes None, though its types do not say so.
    """
    return [list(row) for row in zip_longest(*references)]


def without_blank(references: Sequence[Sequence[str]]) -> ReferenceSets:
    """Let a blank line be no reference, as files have it where a sentence has fewer; one of each sentence stays."""
    if len({len(of_set) for of_set in references}) != 1:  # which is refused where they are scored
        return references
    sets: list[list[str | None]] = [list(of_set) for of_set in references]
    for i, of_sentence in enumerate(zip(*references, strict=True)):
        if any(text.strip() for text in of_sentence):
            for of_set in sets:
                of_set[i] = of_set[i] if (of_set[i] or "").strip() else None
    return sets


def corpus_bleu(
    hypotheses: Sequence[str], references: Sequence[Sequence[str | None]], *, language: str | None = None
) -> CorpusScore:
    """Return BLEU alone, with the tokenizer of the language; None in a set where a sentence has no such reference."""
    _check(hypotheses, references)
    metric = bleu_metric(bleu_tokenizer(language, references))
    score: float = metric.corpus_score(hypotheses, references).score  # type: ignore[arg-type]
    return CorpusScore("BLEU", score, str(metric.get_signature()))


def bleu(
    hypotheses: Sequence[str], references: Sequence[Sequence[str | None]], *, language: str | None = None
) -> float:
    """Return the figure of `corpus_bleu`."""
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
