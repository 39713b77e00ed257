"""Terminology constraints: terms that the search has left out are searched for with constrained beam search."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, TypeVar

from translucid.data.text_pipeline import Piece
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.decoding_options import DecodingOptions
from translucid.decoding.hypothesis import Hypothesis
from translucid.decoding.limits import length_penalty
from translucid.engines.term_candidates import SHORT, Draft, faults
from translucid.evaluation.alignment_error import AlignmentOptions
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL
from translucid.terminology.matching import Match, TermList, TermUse, terms_in
from translucid.terminology.term_forms import TermForms

if TYPE_CHECKING:
    from torch import Tensor

    from translucid.engines.engine import Engine, TorchEngine

Key = TypeVar("Key")

TermsMode: TypeAlias = Literal["auto", "annotate", "constrain"]
"""Point terms out to a model that was trained with them, force them with a constrained search, or first the one and
then, where a term is still missing, the other."""
NARROWEST = 5
"""Beam of a constrained search, at least."""
OTHER_FORMS = 3
"""Of a word, that are tried in the place of what the free translation has, at most."""
_ASKING = frozenset("?!¿¡？！؟")
"""Signs that other languages write in other places."""
ALMOST = 0.3
"""A noun has at least this part of the attention that the article before it has."""


class LinkedWord(NamedTuple):
    """A word of a translation that the attention links to a word of a term."""

    token: int
    """Its first one."""
    span: tuple[int, int] | None
    """Its characters in the translation, if they can be told."""


Links: TypeAlias = list[list[LinkedWord]]
"""The words that are linked to each term of a sentence."""


@dataclass(frozen=True)
class FreeTranslation:
    """A sentence and its translation by a search without constraints."""

    number: int
    source: str
    """As the model reads it, but for what it is shown besides."""
    ids: list[int]
    """Of the source."""
    read: list[int]
    """What the model reads: the same, or with what it is shown besides."""
    free: Hypothesis
    text: str
    """Of the free translation."""
    matches: Sequence[Match]
    uses: Sequence[TermUse]

    @property
    def missing(self) -> list[int]:
        """The numbers of the matches that are missing."""
        return [number for number, use in enumerate(self.uses) if use.outcome == "missing"]


class TermConstraint:
    """Finds translations that have terms.

    What a search has found is kept where it has all terms: nothing that has them is likelier. Otherwise what the
    constrained search finds competes with the free translation, the words of the terms replaced; see
    `term_candidates`.
    """

    def __init__(
        self,
        own: Callable[[], TorchEngine],
        terms: TermList,
        tokenizer: Tokenizer,
        alignment: AlignmentOptions | None = None,
        *,
        pointed_out: bool = False,
    ) -> None:
        """Put one together.

        Args:
            own: gives our own search, which is the one that knows constraints.
            terms: that translations have to have.
            tokenizer: the model's.
            alignment: how the model's attention tells which word became which; none if it has no attention.
            pointed_out: whether the terms are pointed out to the model, so that sampling does without constraints.
        """
        self.pointed_out = pointed_out
        self.own, self.terms, self.tokenizer, self.alignment = own, terms, tokenizer, alignment
        self._forms = TermForms(tokenizer, terms.forms_of)

    def __str__(self) -> str:
        """Say what is asked for."""
        return f"constrained by {self.terms.count:,} terms"

    def __call__(
        self,
        pieces: Sequence[Piece],
        read: Sequence[list[int]],
        found: Sequence[list[Hypothesis]],
        options: DecodingOptions,
        engine: Engine,
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of each piece, those with terms where the free ones lack some.

        Args:
            pieces: of texts.
            read: what the model has read of each.
            found: of each, best first.
            options: of the search.
            engine: that has searched.
        """
        constrained = [*found]
        matches = [terms_in(self.terms, piece.masked.text) for piece in pieces]
        tasks = self._free_translations(pieces, read, found, matches)
        for task, best in zip(tasks, self._with_missing(tasks, options) if tasks else (), strict=True):
            if best:
                constrained[task.number] = best[: options.nbest]
        for number, label in self._labels(pieces, read, constrained, matches, options, engine).items():
            constrained[number] = below(label, constrained[number])[: options.nbest]
        return constrained

    def complete(self, piece: Piece, nbest: Sequence[Hypothesis]) -> list[Hypothesis]:
        """Return those hypotheses of a piece that lack as few of its terms as the first one."""
        matches = terms_in(self.terms, piece.masked.text)
        missing = [_missing(self.terms.uses(matches, self.tokenizer.decode(one.tokens))) for one in nbest]
        return [one for one, count in zip(nbest, missing, strict=True) if count <= missing[0]]

    def _free_translations(
        self,
        pieces: Sequence[Piece],
        read: Sequence[list[int]],
        found: Sequence[list[Hypothesis]],
        matches: Sequence[Sequence[Match]],
    ) -> list[FreeTranslation]:
        """Return the sentences whose best translation lacks a term."""
        tasks: list[FreeTranslation] = []
        for number, (piece, ids, (best, *_), there) in enumerate(zip(pieces, read, found, matches, strict=True)):
            text = self.tokenizer.decode(best.tokens)
            uses = self.terms.uses(there, text)
            task = FreeTranslation(number, piece.masked.text, piece.ids, ids, best, text, there, uses)
            if task.missing:
                tasks.append(task)
        return tasks

    def _labels(
        self,
        pieces: Sequence[Piece],
        read: Sequence[list[int]],
        found: Sequence[list[Hypothesis]],
        matches: Sequence[Sequence[Match]],
        options: DecodingOptions,
        engine: Engine,
    ) -> dict[int, Hypothesis]:
        """Return, by number, the translations of sentences that are one term and nothing else, where not found yet."""
        labels: dict[int, str] = {}
        for number, (piece, there) in enumerate(zip(pieces, matches, strict=True)):
            label = term_alone(piece.masked.text, there) if there else None
            if label and label != self.tokenizer.decode(found[number][0].tokens):
                labels[number] = label
        return self._scored(engine, dict(enumerate(read)), labels, options)

    def _with_missing(self, tasks: Sequence[FreeTranslation], options: DecodingOptions) -> list[list[Hypothesis]]:
        """Return for each sentence translations that have more of its terms than the free one, the best first."""
        linked = self._linked_words(tasks)
        drafts = list(map(_draft, tasks, linked))
        substituted = self._substituted(tasks, drafts, options)
        constrained = self._constrained(tasks, linked, options)
        found = []
        for task, draft, own, others in zip(tasks, drafts, substituted, constrained, strict=True):
            found.append(self._chosen(task, draft, [*own, *others]))
        return found

    def _constrained(
        self, tasks: Sequence[FreeTranslation], linked: Sequence[Links], options: DecodingOptions
    ) -> list[list[Hypothesis]]:
        """Return for each sentence what a search finds that is made to write the missing terms."""
        from translucid.decoding.constraints import Constraints

        wanted = {}
        for i, (task, words) in enumerate(zip(tasks, linked, strict=True)):
            # A term that is there is asked for as well, or it might get lost; its words cost what they cost.
            asked, instead = [], []
            for match, use, each in zip(task.matches, task.uses, words, strict=True):
                if use.outcome != "inflected":
                    asked.append(match)
                    tokens = [word.token for word in each]
                    instead.append(tokens if use.outcome == "missing" else [])
            if phrases := self._forms.wanted(asked, instead):
                wanted[i] = phrases
        found: list[list[Hypothesis]] = [[] for _ in tasks]
        if wanted:
            constraints = Constraints([*wanted.values()], self._forms.edges)
            wide = options.model_copy(update={"beam": max(options.beam, NARROWEST)})
            again = self.own().decode([tasks[i].read for i in wanted], wide, constraints=constraints)
            for i, nbest in zip(wanted, again, strict=True):
                found[i] = nbest
        return found

    def _substituted(
        self, tasks: Sequence[FreeTranslation], drafts: Sequence[Draft], options: DecodingOptions
    ) -> list[list[Hypothesis]]:
        """Return for each sentence its free translation with targets in the place of the words linked to its terms."""
        texts: dict[tuple[int, int], str] = {}
        for i, draft in enumerate(drafts):
            texts |= {(i, k): text for k, text in enumerate(dict.fromkeys(self._with_terms(draft)))}
        reads = {key: tasks[key[0]].read for key in texts}
        found: list[list[Hypothesis]] = [[] for _ in tasks]
        for (i, _), hypothesis in self._scored(self.own(), reads, texts, options).items():
            found[i].append(hypothesis)
        return found

    def _scored(
        self, engine: Engine, read: Mapping[Key, list[int]], texts: Mapping[Key, str], options: DecodingOptions
    ) -> dict[Key, Hypothesis]:
        """Return hypotheses of given translations, of those that the vocabulary can write.

        Args:
            engine: computes log-probabilities.
            read: what the model reads, by what `texts` goes by.
            texts: the translations.
            options: say how long ones are ranked.
        """
        if not texts:
            return {}
        encoded = dict(zip(texts, self.tokenizer.encode_target([*texts.values()]), strict=True))
        encoded = {key: tokens for key, tokens in encoded.items() if SPECIAL.unknown not in tokens}
        pairs = [(read[key], [*tokens, SPECIAL.end]) for key, tokens in encoded.items()]
        opening = [0.0] * len(self.tokenizer.target_opening)
        found: dict[Key, Hypothesis] = {}
        for (key, tokens), log_probs in zip(encoded.items(), engine.forced(pairs) if pairs else [], strict=True):
            total = min(sum(log_probs), 0.0)
            score = total / length_penalty(len(log_probs), options.length_penalty)
            found[key] = Hypothesis(tokens, total, score, [*opening, *log_probs])
        return found

    def _with_terms(self, draft: Draft) -> list[str]:
        """Return texts with the preferred targets, and with other forms of each."""
        forms = []
        for number in draft.missing:
            match = draft.matches[number]
            forms.append([*match.targets])
            if match.inflects:
                others = chain.from_iterable(map(self._forms.common, match.targets))
                forms[-1] += islice(others, OTHER_FORMS)
        preferred = [each[0] for each in forms]
        texts = [draft.with_terms(preferred)]
        for i, each in enumerate(forms):
            texts += [draft.with_terms([*preferred[:i], form, *preferred[i + 1 :]]) for form in each[1:]]
        return [text for text in texts if text]

    def _chosen(self, task: FreeTranslation, draft: Draft, candidates: Sequence[Hypothesis]) -> list[Hypothesis]:
        """Return the candidates that have as many terms as any, the best first; none if the free one has as many."""
        missing: dict[str, int] = {}
        ranked: list[tuple[int, float, Hypothesis]] = []
        for hypothesis in candidates:
            text = self.tokenizer.decode(hypothesis.tokens)
            if text not in missing:
                missing[text] = _missing(self.terms.uses(task.matches, text))
                ranked.append((faults(draft, self.terms, task.source, text), -hypothesis.score, hypothesis))
        fewest = min(missing.values(), default=len(task.missing))
        if fewest >= len(task.missing):
            return []
        best = [one for one, count in zip(ranked, missing.values(), strict=True) if count == fewest]
        first, *others = [hypothesis for _, _, hypothesis in sorted(best, key=lambda one: one[:2])]
        return below(first, others)

    def _linked_words(self, tasks: Sequence[FreeTranslation]) -> list[Links]:
        """Return for each term of each sentence the words of the free translation that are linked to it.

        Attention tells: of a source word, the target word that has the greatest share of what looks at it. An article
        may have more of it than the noun behind it.
        """
        if self.alignment is None:
            return [[[] for _ in task.matches] for task in tasks]
        from translucid.inspection.alignment import source_shares
        from translucid.inspection.forced_decoding import forced_decoding

        own = self.own()
        pairs = [(task.ids, [*task.free.tokens, SPECIAL.end]) for task in tasks]
        linked: list[Links] = []
        for task, seen in zip(tasks, forced_decoding(own.model, self.tokenizer, pairs, own.device), strict=True):
            shares = source_shares(seen.words(seen.cross(self.alignment.layer, shift=self.alignment.shift)))
            words = _words(task, [(word, first) for word, first, _ in seen.target_spans[:-1]])
            linked.append([])
            for match in task.matches:
                # Words of attention are told by white space: a term may begin within one, as behind a bracket.
                ahead = task.source[: match.start]
                before = len(ahead.split()) - (bool(ahead) and not ahead[-1].isspace())
                columns = range(before, min(before + len(match.text.split()), shares.size(1)))
                linked[-1].append([_translating(words, shares[:, column]) for column in columns if words])
        return linked


def below(best: Hypothesis, others: Sequence[Hypothesis]) -> list[Hypothesis]:
    """Return the chosen hypothesis, and those of the others that are not likelier, so that it stays the first."""
    return [best, *sorted((one for one in others if one.score <= best.score), key=lambda one: -one.score)]


def refuse_mode(mode: TermsMode, tokenizer: Tokenizer) -> None:
    """Check that a model can be pointed to terms if it is to be.

    Raises:
        UserError: it was not trained with terms.
    """
    if mode == "annotate" and not tokenizer.marks_terms:
        fix = "Train it with data.terms, or leave the constrained search to see to them."
        raise UserError("the model was not trained with terms that are pointed out to it", fix=fix)


def term_alone(source: str, matches: Sequence[Match]) -> str | None:
    """Return the translation of a source that is one term and nothing else, such as a label; None if it is more.

    Punctuation and a capital at the beginning are those of the source. What asks or exclaims is for the model, and so
    is a term in another form, as its target may have to have another form, too.
    """
    if len(matches) != 1:
        return None
    (match,) = matches
    before, after = source[: match.start], source[match.end :]
    same_form = any(term.source.casefold() == match.text.casefold() for term in match.terms)
    if not same_form or any(sign.isalnum() or sign in _ASKING for sign in before + after):
        return None
    target = match.targets[0]
    if match.text[:1].isupper() and not match.exact:
        target = target[:1].upper() + target[1:]
    return f"{before}{target}{after}".strip()


def _words(task: FreeTranslation, words: Sequence[tuple[str, int]]) -> list[LinkedWord]:
    """Return the words of a free translation; given are they and the numbers of their first tokens."""
    found, at = [], 0
    for word, token in words:
        start = task.text.find(word, at)
        at = max(at, start + len(word))
        found.append(LinkedWord(task.free.tokens[token], (start, start + len(word)) if start >= 0 else None))
    return found


def _translating(words: Sequence[LinkedWord], shares: Tensor) -> LinkedWord:
    """Return the word with the greatest share, but not a short one before a longer one with almost as much."""
    best = int(shares.argmax())
    behind = best + 1
    if behind < len(words) and _is_short(words[best]) and not _is_short(words[behind]):
        best = behind if shares[behind] >= ALMOST * shares[best] else best
    return words[best]


def _is_short(word: LinkedWord) -> bool:
    return word.span is not None and word.span[1] - word.span[0] <= SHORT


def _draft(task: FreeTranslation, linked: Links) -> Draft:
    spans = [[word.span for word in each if word.span] for each in linked]
    return Draft(task.text, task.matches, spans, task.missing)


def _missing(uses: Sequence[TermUse]) -> int:
    return sum(use.outcome == "missing" for use in uses)
