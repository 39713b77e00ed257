"""BLEU and CIDEr-D as papers of image captioning report them, and sacreBLEU's BLEU, which says how it came about."""

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
    """Figures over a whole test set."""

    bleu: tuple[float, float, float, float]
    """BLEU-1 to BLEU-4, 0 to 100, on `papers_tokens`: the geometric mean of the precisions up to that length."""
    cider: float
    """CIDEr-D, 0 to 10, on `papers_tokens`; papers often print a hundred times that."""
    sacrebleu: CorpusScore
    """BLEU with sacreBLEU's own tokens, and its signature."""

    def to_json(self) -> dict[str, object]:
        """Return the figures by name."""
        numbered = {f"bleu_{n}": value for n, value in enumerate(self.bleu, 1)}
        own = {"value": self.sacrebleu.value, "signature": self.sacrebleu.signature}
        return {**numbered, "cider_d": self.cider, "sacrebleu": own}


def papers_tokens(text: str) -> list[str]:
    """Return the words of a caption as the papers count them: in small letters, without punctuation.

    `'s`, `n't` and the like are words of their own, as in the Penn Treebank. Hyphens, apostrophes and full stops within
    a word, and commas and colons between digits, stay; so do signs such as & and $. The papers take the Stanford
    tokenizer, which needs Java; on 99.9 % of the captions of Flickr8k it comes to the same (it keeps the full stop of
    `mr.`, and writes -lrb- for a bracket). Of scripts without spaces, such as Chinese, each character is a word.
    """
    apart = _JOINED.sub(r" \g<0>", spaced(text.lower().replace("’", "'").replace("‘", "'")))
    words = _PUNCTUATION.sub(" ", apart).split()
    stripped = (word.strip(".,:-") for word in words)
    bare = (word if word in _CLITICS else word.strip(".,:-'") for word in stripped)
    return [word for word in bare if word]


def caption_scores(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], language: str | None = None
) -> CaptionScores:
    """Score captions against one reference or more of each image.

    Args:
        hypotheses: one caption an image.
        references: of each image its references, as many as there are; not sets of references, as `corpus_scores` has.
        language: code of theirs, if it is known.

    Raises:
        UserError: there is nothing to score, there are more or fewer captions than images, or one has no reference.
    """
    if not hypotheses:
        raise UserError("there are no captions to score", fix="Give captions and references.")
    found = [papers_tokens(text) for text in hypotheses]
    wanted = [[papers_tokens(text) for text in of_image] for of_image in references]
    cider = cider_d(found, wanted)  # refuses what does not fit together
    bleu = _papers_bleu([" ".join(words) for words in found], [[" ".join(words) for words in one] for one in wanted])
    return CaptionScores(
        bleu, sum(cider) / len(cider), corpus_bleu(hypotheses, reference_sets(references), language=language)
    )


def _papers_bleu(found: Sequence[str], wanted: Sequence[Sequence[str]]) -> tuple[float, float, float, float]:
    """Return BLEU-1 to BLEU-4, without smoothing, with the closest length of a reference (Papineni et al. 2002)."""
    from sacrebleu.metrics.bleu import BLEU

    counted = BLEU(tokenize="none", force=True).corpus_score(found, reference_sets(wanted))  # type: ignore[arg-type]

    def up_to(n: int) -> float:
        counts, totals = list(counted.counts[:n]), list(counted.totals[:n])
        score: float = BLEU.compute_bleu(
            counts, totals, counted.sys_len, counted.ref_len, smooth_method="none", max_ngram_order=n
        ).score
        return score

    return up_to(1), up_to(2), up_to(3), up_to(4)
