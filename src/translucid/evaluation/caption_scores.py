"""BLEU and CIDEr-D as papers of image captioning report them, and sacreBLEU's BLEU with its signature."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from translucid.data.words import spaced
from translucid.evaluation.cider import cider_d
from translucid.evaluation.metrics import CorpusScore, corpus_bleu, reference_sets
from translucid.ground.errors import UserError

_CLITICS = ("n't", "'s", "'re", "'ve", "'ll", "'d", "'m")
_JOINED = re.compile(rf"(?<=\w)(?:{'|'.join(_CLITICS)})\b|(?<=\bcan)not\b")
_PUNCTUATION = re.compile(
    r"""[;!?()\[\]{}"“”„«»…¿¡–—、。，！？；：]  # which divide words
    | \.{2,} | -{2,} | `+ | ''
    | (?<!\d)[,:] | [,:](?!\d)                 # but not 1,000 and 10:30
    """,
    re.VERBOSE,
)


@dataclass(frozen=True)
class CaptionScores:
    """Scores of a test set."""

    bleu: tuple[float, float, float, float]
    """BLEU-1 to BLEU-4, 0 to 100, on `papers_tokens`: the geometric mean of the precisions up to that length."""
    cider: float
    """CIDEr-D, 0 to 10, on `papers_tokens`; papers often print it multiplied by a hundred."""
    sacrebleu: CorpusScore
    """BLEU with sacreBLEU's tokens, and its signature."""

    def to_json(self) -> dict[str, object]:
        """Return the scores by name."""
        record: dict[str, object] = {f"bleu_{n}": value for n, value in enumerate(self.bleu, 1)}
        record["cider_d"] = self.cider
        record["sacrebleu"] = {"value": self.sacrebleu.value, "signature": self.sacrebleu.signature}
        return record


def papers_tokens(text: str) -> list[str]:
    """Return the words of a caption as the papers count them: in lower case, without punctuation.

    `'s`, `n't` and the like are words of their own, as in the Penn Treebank. Hyphens, apostrophes and full stops within
    a word, commas and colons between digits, and signs such as & and $ are kept. The papers use the Stanford tokenizer,
    which needs Java; its output is the same on 99.9 % of the captions of Flickr8k (it keeps the full stop of `mr.`, and
    writes -lrb- for a bracket). In scripts without spaces, such as Chinese, each character is a word.
    """
    apart = _JOINED.sub(r" \g<0>", spaced(text.lower().replace("’", "'").replace("‘", "'")))
    words = []
    for word in _PUNCTUATION.sub(" ", apart).split():
        word = word.strip(".,:-")
        if word not in _CLITICS:  # whose apostrophe is part of the word
            word = word.strip(".,:-'")
        if word:
            words.append(word)
    return words


def caption_scores(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], language: str | None = None
) -> CaptionScores:
    """Score captions against one or more references of each image.

    Args:
        hypotheses: one caption per image.
        references: the references of each image; not sets of references, as `corpus_scores` takes them.
        language: the code of their language, if it is known.

    Raises:
        UserError: there is nothing to score, the number of captions differs from that of images, or an image has no
            reference.
    """
    if not hypotheses:
        raise UserError("there are no captions to score", fix="Give captions and references.")
    found = list(map(papers_tokens, hypotheses))
    wanted = [list(map(papers_tokens, of_image)) for of_image in references]
    cider = cider_d(found, wanted)  # raises an error if the numbers differ
    joined_references = [list(map(" ".join, of_image)) for of_image in wanted]
    bleu = _papers_bleu(list(map(" ".join, found)), joined_references)
    sacrebleu = corpus_bleu(hypotheses, reference_sets(references), language=language)
    return CaptionScores(bleu, sum(cider) / len(cider), sacrebleu)


def _papers_bleu(found: Sequence[str], wanted: Sequence[Sequence[str]]) -> tuple[float, float, float, float]:
    """Return BLEU-1 to BLEU-4 without smoothing, with the closest reference length (Papineni et al. 2002)."""
    from sacrebleu.metrics.bleu import BLEU

    # The corpus is counted once, up to 4-grams, for all four scores.
    counted = BLEU(tokenize="none", force=True).corpus_score(found, reference_sets(wanted))  # type: ignore[arg-type]

    # sacreBLEU computes BLEU from counts and lengths, of which BLEU-n needs the first n.
    def up_to(n: int) -> float:
        counts, totals = list(counted.counts[:n]), list(counted.totals[:n])
        score: float = BLEU.compute_bleu(
            counts, totals, counted.sys_len, counted.ref_len, smooth_method="none", max_ngram_order=n
        ).score
        return score

    return up_to(1), up_to(2), up_to(3), up_to(4)
