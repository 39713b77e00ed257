"""An engine that heeds terms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, TypeAlias

from translucid.data.terms.marking import Marking, marked
from translucid.data.terms.matching import Match, TermList, TermUse
from translucid.data.tokenizer import Tokenizer
from translucid.decoding.decoding_options import DecodingOptions
from translucid.decoding.hypothesis import Hypothesis
from translucid.engines.term_forms import TermForms
from translucid.evaluation.alignment_error import AlignmentOptions
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL

if TYPE_CHECKING:
    from translucid.engines.engine import Engine, TorchEngine

TermsMode: TypeAlias = Literal["auto", "annotate", "constrain"]
"""Point terms out to a model that was trained with them, force them with a constrained search, or first the one and
then, where a term is still missing, the other."""
NARROWEST = 5
"""Beam of a constrained search, at least."""


class HeedingEngine:
    """Searches with another engine, and once more with constraints where a term is missing.

    What the other engine finds is kept where it has all terms: nothing that has them is likelier.
    """

    def __init__(
        self,
        engine: Engine,
        own: Callable[[], TorchEngine],
        terms: TermList,
        tokenizer: Tokenizer,
        longest: int,
        mode: TermsMode = "auto",
        alignment: AlignmentOptions | None = None,
    ) -> None:
        """Put one together.

        Args:
            engine: any.
            own: gives our own search, which is the one that knows constraints.
            terms: to be heeded.
            tokenizer: the model's.
            longest: source tokens, end token included, that the model takes; see `Translator.longest`.
            mode: how terms are heeded.
            alignment: how the model's attention tells which word became which; none if it has no attention.

        Raises:
            UserError: the model was not trained with terms, and they are to be pointed out to it.
        """
        if mode == "annotate" and not tokenizer.marks_terms:
            fix = "Train it with data.terms, or leave the constrained search to see to them."
            raise UserError("the model was not trained with terms that are pointed out to it", fix=fix)
        self.engine, self.own, self.terms, self.tokenizer = engine, own, terms, tokenizer
        self.longest, self.mode, self.alignment = longest, mode, alignment
        self.name, self.device_type = engine.name, engine.device_type
        self._forms = TermForms(tokenizer, terms.forms_of)

    def opened(self, tokenizer: Tokenizer) -> HeedingEngine:
        """See `Engine`."""
        engine, given = self.engine.opened(tokenizer), (self.terms, tokenizer, self.longest, self.mode, self.alignment)
        return HeedingEngine(engine, lambda: self.own().opened(tokenizer), *given)

    def __str__(self) -> str:
        """Say what searches."""
        return f"{self.engine}, heeding {self.terms.count:,} terms"

    def matches(self, ids: Sequence[int]) -> list[Match]:
        """Return the terms in a sentence of source ids."""
        return self.terms.matches(self.tokenizer.decode_source(ids))

    def uses(self, ids: Sequence[int], tokens: Sequence[int]) -> list[TermUse]:
        """Return what became of the terms of source ids in a translation's tokens."""
        matches = self.matches(ids)
        return self.terms.uses(matches, self.tokenizer.decode(tokens)) if matches else []

    def decode(
        self,
        sentences: Sequence[list[int]],
        options: DecodingOptions,
        on_batch: Callable[[int], None] | None = None,
        numbers: Sequence[int] | None = None,
    ) -> list[list[Hypothesis]]:
        """See `Engine`.

        Raises:
            UserError: sampling is asked for of a model that is not pointed to terms.
        """
        from translucid.decoding.constraints import Constraints

        annotates = self.tokenizer.marks_terms and self.mode != "constrain"
        if options.sample and not annotates:
            raise UserError("a constrained search draws nothing at random", fix="Leave out sampling, or the terms.")
        matches = [self.matches(ids) for ids in sentences]
        given = [self._annotated(*one) for one in zip(sentences, matches, strict=True)] if annotates else [*sentences]
        found = self.engine.decode(given, options, on_batch, numbers)
        if options.sample or self.mode == "annotate":
            return found
        uses = [self.terms.uses(each, self._text(nbest)) for each, nbest in zip(matches, found, strict=True)]
        lacking = [i for i, each in enumerate(uses) if any(use.outcome == "missing" for use in each)]
        said = self._said(
            [sentences[i] for i in lacking], [found[i][0] for i in lacking], [matches[i] for i in lacking]
        )
        wanted = {}
        for i, tokens in zip(lacking, said, strict=True):
            rows = zip(matches[i], uses[i], tokens, strict=True)
            asked = [(m, t if use.outcome == "missing" else []) for m, use, t in rows if use.outcome != "inflected"]
            if phrases := self._forms.wanted([m for m, _ in asked], [t for _, t in asked]):
                wanted[i] = phrases
        if wanted:
            constraints = Constraints([*wanted.values()], self._forms.edges)
            wide = options.model_copy(update={"beam": max(options.beam, NARROWEST)})
            again = self.own().decode([given[i] for i in wanted], wide, constraints=constraints)
            for i, nbest in zip(wanted, again, strict=True):
                if _missing(self.terms.uses(matches[i], self._text(nbest))) < _missing(uses[i]):
                    found[i] = nbest
        return found

    def _text(self, nbest: Sequence[Hypothesis]) -> str:
        return self.tokenizer.decode(nbest[0].tokens)

    def forced(self, pairs: Sequence[tuple[list[int], list[int]]]) -> list[list[float]]:
        """See `Engine`."""
        return self.engine.forced(pairs)

    def _said(
        self, sentences: Sequence[list[int]], found: Sequence[Hypothesis], matches: Sequence[Sequence[Match]]
    ) -> list[list[list[int]]]:
        """Return for each term of each sentence the tokens with which begin the words that were said for it.

        Attention tells: of a source word, the target word that has the greatest share of what looks at it.
        """
        if self.alignment is None or not sentences:
            return [[[] for _ in each] for each in matches]
        from translucid.inspection.alignment import source_shares
        from translucid.inspection.watching import watch

        own = self.own()
        pairs = [(ids, [*one.tokens, SPECIAL.end]) for ids, one in zip(sentences, found, strict=True)]
        said: list[list[list[int]]] = []
        for ids, each, (_, tokens), seen in zip(
            sentences, matches, pairs, watch(own.model, self.tokenizer, pairs, own.device), strict=True
        ):
            shares = source_shares(seen.words(seen.cross(self.alignment.layer, shift=self.alignment.shift)))
            starts = [first for _, first, _ in seen.target_spans]
            text = self.tokenizer.decode_source(ids)
            said.append([])
            for match in each:
                before = len(text[: match.start].split()) - (not text[: match.start][-1:].isspace() and match.start > 0)
                words = range(before, min(before + len(match.text.split()), shares.size(1)))
                said[-1].append([tokens[starts[int(shares[:, word].argmax())]] for word in words if len(shares)])
        return said

    def _annotated(self, ids: list[int], matches: Sequence[Match]) -> list[int]:
        """Return a sentence with its terms pointed out, as far as the model can read them and takes the length."""
        if not matches or SPECIAL.unknown in ids:
            return ids
        text = self.tokenizer.decode_source(ids)
        markings = [Marking(match.start, match.end, match.targets[0]) for match in matches]
        (longer,) = self.tokenizer.encode_source([marked(text, markings)])
        return ids if SPECIAL.unknown in longer or len(longer) >= self.longest else [*longer, SPECIAL.end]


def _missing(uses: Sequence[TermUse]) -> int:
    return sum(use.outcome == "missing" for use in uses)
