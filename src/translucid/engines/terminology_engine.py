"""An engine that applies terminology constraints."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, TypeVar

from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.decoding_options import DecodingOptions
from translucid.decoding.hypothesis import Hypothesis
from translucid.decoding.limits import length_penalty
from translucid.engines.term_candidates import SHORT, Draft, faults
from translucid.engines.term_reader import terms_in
from translucid.evaluation.alignment_error import AlignmentOptions
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL
from translucid.terminology.marking import Marking, marked
from translucid.terminology.matching import Match, TermList, TermUse
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
    ids: list[int]
    """Of the source."""
    read: list[int]
    """What the model reads: the same, or with terms pointed out."""
    free: Hypothesis
    text: str
    """Of the free translation."""
    matches: Sequence[Match]
    uses: Sequence[TermUse]

    @property
    def missing(self) -> list[int]:
        """The numbers of the matches that are missing."""
        return [number for number, use in enumerate(self.uses) if use.outcome == "missing"]


class TerminologyEngine:
    """Searches with another engine, and once more with constraints where a term is missing.

    What the other engine finds is kept where it has all terms: nothing that has them is likelier. Otherwise what the
    constrained search finds competes with the free translation, the words of the terms replaced; see
    `term_candidates`.
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
            terms: to apply.
            tokenizer: the model's.
            longest: source tokens, end token included, that the model takes; see `Translator.longest`.
            mode: how terms are applied.
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

    def opened(self, tokenizer: Tokenizer) -> TerminologyEngine:
        """See `Engine`."""
        engine, given = self.engine.opened(tokenizer), (self.terms, tokenizer, self.longest, self.mode, self.alignment)
        return TerminologyEngine(engine, lambda: self.own().opened(tokenizer), *given)

    def __str__(self) -> str:
        """Say what searches."""
        return f"{self.engine}, constrained by {self.terms.count:,} terms"

    def matches(self, ids: Sequence[int]) -> list[Match]:
        """Return the terms in a sentence of source ids."""
        return terms_in(self.terms, self.tokenizer.decode_source(ids))

    def uses(self, ids: Sequence[int], tokens: Sequence[int]) -> list[TermUse]:
        """Return what became of the terms of source ids in a translation's tokens."""
        return self.terms.uses(self.matches(ids), self.tokenizer.decode(tokens))

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
        annotates = self.tokenizer.marks_terms and self.mode != "constrain"
        if options.sample and not annotates:
            raise UserError("a constrained search draws nothing at random", fix="Leave out sampling, or the terms.")
        matches = [self.matches(ids) for ids in sentences]
        read = [self._annotated(*one) for one in zip(sentences, matches, strict=True)] if annotates else [*sentences]
        found = self.engine.decode(read, options, on_batch, numbers)
        if options.sample or self.mode == "annotate":
            return found
        tasks: list[FreeTranslation] = []
        for number, nbest in enumerate(found):
            text = self.tokenizer.decode(nbest[0].tokens)
            task = FreeTranslation(
                number,
                sentences[number],
                read[number],
                nbest[0],
                text,
                matches[number],
                self.terms.uses(matches[number], text),
            )
            if task.missing:
                tasks.append(task)
        for task, best in zip(tasks, self._with_missing(tasks, options) if tasks else (), strict=True):
            if best:
                found[task.number] = best[: options.nbest]
        alone: dict[int, str] = {}
        for number, ids in enumerate(sentences):
            label = term_alone(self.tokenizer.decode_source(ids), matches[number]) if matches[number] else None
            if label and label != self.tokenizer.decode(found[number][0].tokens):
                alone[number] = label
        for number, hypothesis in self._scored(self.engine, dict(enumerate(read)), alone, options).items():
            found[number] = [hypothesis, *found[number]][: options.nbest]
        return found

    def forced(self, pairs: Sequence[tuple[list[int], list[int]]]) -> list[list[float]]:
        """See `Engine`."""
        return self.engine.forced(pairs)

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
                    instead.append([word.token for word in each] if use.outcome == "missing" else [])
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
        source = self.tokenizer.decode_source(task.ids)
        missing: dict[str, int] = {}
        ranked: list[tuple[int, float, Hypothesis]] = []
        for hypothesis in candidates:
            text = self.tokenizer.decode(hypothesis.tokens)
            if text not in missing:
                missing[text] = _missing(self.terms.uses(task.matches, text))
                ranked.append((faults(draft, self.terms, source, text), -hypothesis.score, hypothesis))
        fewest = min(missing.values(), default=len(task.missing))
        if fewest >= len(task.missing):
            return []
        best = [one for one, count in zip(ranked, missing.values(), strict=True) if count == fewest]
        return [hypothesis for _, _, hypothesis in sorted(best, key=lambda one: one[:2])]

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
            text = self.tokenizer.decode_source(task.ids)
            linked.append([])
            for match in task.matches:
                before = len(text[: match.start].split()) - (not text[: match.start][-1:].isspace() and match.start > 0)
                columns = range(before, min(before + len(match.text.split()), shares.size(1)))
                linked[-1].append([_translating(words, shares[:, column]) for column in columns if words])
        return linked

    def _annotated(self, ids: list[int], matches: Sequence[Match]) -> list[int]:
        """Return a sentence with its terms pointed out, as far as the model can read them and takes the length."""
        if not matches or SPECIAL.unknown in ids:
            return ids
        text = self.tokenizer.decode_source(ids)
        markings = [Marking(match.start, match.end, match.targets[0]) for match in matches]
        (longer,) = self.tokenizer.encode_source([marked(text, markings)])
        return ids if SPECIAL.unknown in longer or len(longer) >= self.longest else [*longer, SPECIAL.end]


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
