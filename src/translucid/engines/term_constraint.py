"""Terminology constraints: constrained beam search for the terms that a search has left out.

A model that is forced to write a word which it would not choose often writes its own word too, breaks off and
starts again, or forgets the rest. So the result of a constrained search competes with the free translation in which the
target of a term replaces the words that the attention links to it (`Draft`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, TypeVar

from bitext.words import capitalized, folded, linked_words, unspaced, words_without_signs
from translucid.data.text_pipeline import EncodedPair, Piece
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.decoding_options import DecodingOptions, SearchRequest, length_penalty
from translucid.decoding.hypothesis import Hypothesis, in_order
from translucid.evaluation.quality_checks import restarted
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL
from translucid.inspection.word_weights import Floats, WordWeights
from translucid.inspection.words import word_spans
from translucid.kernels.machine import has_pytorch
from translucid.terminology.glossary import TermsMode
from translucid.terminology.matching import Match, Occurrence, TermList, TermUse, terms_in
from translucid.terminology.term_forms import TermForms

if TYPE_CHECKING:
    from translucid.decoding.search import TorchEngine
    from translucid.engines.choosing import Engine


MISSING, WRONG = 10, 4
"""The weights of a missing term and of a wrong word, relative to one word too many or too few."""
SLACK = 1
"""Words that a translation may have more than the free one, as another verb needs a preposition."""
PREFIX = 3
"""Letters that a truncated word shares with the word of a term, at least, unless it is a shorter prefix of it."""
SHORT = 3
"""The length of words, in letters, that may be linked to a part of a term by chance, such as articles."""
_ASKING = frozenset("?!¿¡？！؟")
"""Punctuation whose position depends on the language."""

Span = tuple[int, int]


@dataclass(frozen=True)
class Draft:
    """A free translation that lacks some of the terms of its source."""

    text: str
    matches: Sequence[Match]
    """The terms in the source."""
    linked: Sequence[Sequence[Span]]
    """The words of the text that are linked to each match."""
    missing: Sequence[int]
    """The numbers of the matches that are missing."""

    @cached_property
    def spans(self) -> dict[int, list[Span]]:
        """The words that each missing match replaces, then others to delete; without matches that have none."""
        spans: dict[int, list[Span]] = {}
        used: set[Span] = set()
        for number in self.missing:
            unused = [span for span in _cores(self.text, self.linked[number]) if span not in used]
            if unused:
                spans[number] = _runs(self.text, unused)
                used.update(unused)
        return spans

    @property
    def replaced(self) -> list[str]:
        """The words, casefolded, that terms replace."""
        words: list[str] = []
        for start, end in chain.from_iterable(self.spans.values()):
            words += folded(words_without_signs(self.text[start:end]))
        return words

    def with_terms(self, targets: Sequence[str]) -> str | None:
        """Return the text with a target in the place of each missing match; None if one of them has no words."""
        edits: list[tuple[int, int, str]] = []
        for number, target in zip(self.missing, targets, strict=True):
            if number not in self.spans:
                return None
            main_span, *extra_spans = self.spans[number]
            original = self.text[slice(*main_span)]
            if original[:1].isupper() and not self.matches[number].exact:
                target = capitalized(target)
            edits.append((*main_span, target))
            # Short words stay: an article may be linked to the term by chance.
            for start, end in extra_spans:
                if end - start > SHORT:
                    edits.append((len(self.text[:start].rstrip()), end, ""))
        text = self.text
        # From the end, so that the offsets before an edit stay valid.
        for start, end, replacement in sorted(edits, reverse=True):
            text = text[:start] + replacement + text[end:]
        return " ".join(text.split())


def term_alone(source: str, matches: Sequence[Match]) -> str | None:
    """Return the translation of a source that consists of one term, such as a label; None for any other source.

    Punctuation and a capital at the beginning are those of the source. A question or exclamation is left to the model,
    and so is an inflected term, whose target may have to be inflected, too.
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
        target = capitalized(target)
    return f"{before}{target}{after}".strip()


def _cores(text: str, spans: Sequence[Span]) -> Iterator[Span]:
    """Yield the distinct spans in order, without punctuation at their ends; none in a script without spaces."""
    for start, end in sorted(set(spans)):
        letters = words_without_signs(text[start:end])
        if letters and not unspaced(text[start:end]):
            yield start + letters[0].start, start + letters[-1].end


def _runs(text: str, spans: Sequence[Span]) -> list[Span]:
    """Join spans with nothing but white space or a short word between them, and return the longest first."""
    runs: list[Span] = []
    for start, end in spans:
        if runs and len(text[runs[-1][1] : start].strip()) <= SHORT:
            runs[-1] = runs[-1][0], end
        else:
            runs.append((start, end))
    return sorted(runs, key=lambda run: run[0] - run[1])


def faults(draft: Draft, terms: TermList, source: str, text: str) -> int:
    """Return a penalty for the faults of a translation relative to the free one.

    It counts missing terms; words that terms should have replaced; repeated parts of terms, and repeated runs of words;
    and the number of words below that of the free translation, or more than `SLACK` above it.

    Args:
        draft: the free translation.
        terms: the term list.
        source: the source of both translations.
        text: the translation.
    """
    occurrences = terms.occurrences(draft.matches, text)
    words = Counter(_words_outside(text, occurrences))
    replaced = Counter(draft.replaced)
    draft_occurrences = terms.occurrences(draft.matches, draft.text)
    expected = Counter(_words_outside(draft.text, draft_occurrences)) - replaced
    added, missing = words - expected, expected - words
    unreplaced = sum((added & replaced).values())
    term_words: set[str] = set()
    for match in draft.matches:
        for target in match.targets:
            term_words.update(folded(words_without_signs(target)))
    term_parts = sum(count for word, count in added.items() if _is_part(word, term_words))
    surplus = added.total() - missing.total()
    difference = max(-surplus, surplus - SLACK, 0)
    wrong = unreplaced + term_parts + bool(restarted(source, text))
    return MISSING * occurrences.count(None) + WRONG * wrong + difference


def _words_outside(text: str, occurrences: Sequence[Occurrence | None]) -> list[str]:
    """Return the words of a text, casefolded, that belong to none of the occurrences of terms."""
    in_terms: set[int] = set()
    for occurrence in occurrences:
        if occurrence:
            in_terms.update(range(occurrence.start, occurrence.end))
    return folded(word for word in words_without_signs(text) if word.start not in in_terms)


def _is_part(word: str, term_words: set[str]) -> bool:
    """Whether a word is a word of a term, or seems to be a truncated one."""
    if len(word) > SHORT and word in term_words:
        return True
    prefix = word[:PREFIX]
    return any(term_word != word and term_word.startswith(prefix) for term_word in term_words)


Key = TypeVar("Key")

NARROWEST = 5
"""The least beam size of a constrained search."""
OTHER_FORMS = 3
"""The largest number of inflected forms of a target that are tried in the free translation."""
ALMOST = 0.3
"""The least attention of a noun relative to that of the article before it."""


class LinkedWord(NamedTuple):
    """A word of a translation that the attention links to a word of a term."""

    token: int
    """The id of its first token."""
    span: tuple[int, int] | None
    """The position of its characters in the translation; None if it does not occur there."""


Links: TypeAlias = list[list[LinkedWord]]
"""The words that are linked to each term of a sentence."""

Candidate: TypeAlias = tuple[Draft, Hypothesis]
"""A translation with terms, and the free translation with which its faults are counted."""


class RankedCandidate(NamedTuple):
    """A translation with terms, and what is wrong with it."""

    missing: int
    """The number of terms that it lacks."""
    faults: int
    hypothesis: Hypothesis


Attention: TypeAlias = Callable[[Sequence[EncodedPair]], list[WordWeights]]
"""Returns the attention between the words of pairs."""


@dataclass(frozen=True)
class FreeTranslation:
    """A sentence and its translation by a search without constraints."""

    number: int
    source: str
    """The source text, masked, without annotations."""
    ids: list[int]
    """The source ids."""
    input_ids: list[int]
    """The source ids that the model reads: the same, or with annotations."""
    hypothesis: Hypothesis
    """The free translation."""
    text: str
    """The text of the free translation."""
    matches: Sequence[Match]
    """The terms in the source."""
    uses: Sequence[TermUse]
    """The use of each of these terms in the free translation."""

    @property
    def missing(self) -> list[int]:
        """The numbers of the matches that are missing."""
        return [number for number, use in enumerate(self.uses) if use.outcome == "missing"]


class TermConstraint:
    """Finds translations that contain the targets of terms.

    A hypothesis with all terms stays: none with them is more probable. Otherwise the results of a constrained search
    compete with the free translation in which targets replace the words linked to the terms.
    """

    def __init__(
        self,
        torch_engine: Callable[[], TorchEngine],
        terms: TermList,
        tokenizer: Tokenizer,
        attention: Attention | None = None,
        *,
        annotated: bool = False,
    ) -> None:
        """Constrain translations by terms.

        Args:
            torch_engine: returns the PyTorch engine, the one whose search supports constraints.
            terms: the terms that translations have to use.
            tokenizer: the model's tokenizer.
            attention: returns the attention between the words of pairs; None if the model has none.
            annotated: whether terms are annotated for the model, so that sampling needs no constraints.
        """
        self.annotated = annotated
        self.torch_engine, self.terms, self.tokenizer, self.attention = torch_engine, terms, tokenizer, attention
        self._forms = TermForms(tokenizer, terms.forms_of)

    def __str__(self) -> str:
        return f"constrained by {self.terms.count:,} terms"

    def __call__(
        self,
        pieces: Sequence[Piece],
        request: SearchRequest[list[int]],
        nbest_lists: Sequence[list[Hypothesis]],
        engine: Engine,
    ) -> list[list[Hypothesis]]:
        """Return the hypotheses of each piece, replaced by better ones where the best free one lacks a term.

        Args:
            pieces: the source pieces.
            request: what the engine has searched: the source ids that the model has read for each piece, and options.
            nbest_lists: the hypotheses of each piece, the best first.
            engine: the engine that has found them.
        """
        source_ids, options = request.sentences, request.options
        constrained = [*nbest_lists]
        sentences = []
        for number, (piece, ids, nbest) in enumerate(zip(pieces, source_ids, nbest_lists, strict=True)):
            sentences.append(self._free_translation(number, piece, ids, nbest[0]))
        tasks = [sentence for sentence in sentences if sentence.missing]
        if tasks:
            alternatives: list[list[FreeTranslation]] = []
            for task in tasks:
                others = nbest_lists[task.number][1 : options.nbest]
                alternatives.append([self._other(task, hypothesis) for hypothesis in others])
            for task, best in zip(tasks, self._with_missing(tasks, alternatives, request, engine), strict=True):
                if best:
                    constrained[task.number] = best[: options.nbest]
        labels: dict[int, str] = {}
        for sentence, nbest in zip(sentences, constrained, strict=True):
            label = term_alone(sentence.source, sentence.matches)
            if label and label != self.tokenizer.decode(nbest[0].tokens):
                labels[sentence.number] = label
        for number, best_label in self._scored(engine, dict(enumerate(source_ids)), labels, options).items():
            constrained[number] = put_first(best_label, constrained[number])[: options.nbest]
        for sentence, nbest in zip(sentences, constrained, strict=True):
            if nbest[0] is not sentence.hypothesis:
                constrained[sentence.number] = self._judged(sentence, nbest)
        return constrained

    def complete(self, piece: Piece, nbest: Sequence[Hypothesis]) -> list[Hypothesis]:
        """Return the hypotheses of a piece that lack no more terms than the first one."""
        missing = [self.missing(piece, hypothesis) for hypothesis in nbest]
        return [hypothesis for hypothesis, count in zip(nbest, missing, strict=True) if count <= missing[0]]

    def missing(self, piece: Piece, hypothesis: Hypothesis) -> int:
        """Return how many terms of a piece a hypothesis lacks."""
        return self._missing(terms_in(self.terms, piece.masked.text), self.tokenizer.decode(hypothesis.tokens))

    def _missing(self, matches: Sequence[Match], text: str) -> int:
        """Return how many terms a translation lacks."""
        return sum(use.outcome == "missing" for use in self.terms.uses(matches, text))

    def _free_translation(self, number: int, piece: Piece, ids: list[int], hypothesis: Hypothesis) -> FreeTranslation:
        source, text = piece.masked.text, self.tokenizer.decode(hypothesis.tokens)
        matches = terms_in(self.terms, source)
        uses = self.terms.uses(matches, text)
        return FreeTranslation(number, source, piece.ids, ids, hypothesis, text, matches, uses)

    def _other(self, sentence: FreeTranslation, hypothesis: Hypothesis) -> FreeTranslation:
        """Return a sentence with another of its free translations."""
        text = self.tokenizer.decode(hypothesis.tokens)
        uses = self.terms.uses(sentence.matches, text)
        return replace(sentence, hypothesis=hypothesis, text=text, uses=uses)

    def _judged(self, sentence: FreeTranslation, nbest: Sequence[Hypothesis]) -> list[Hypothesis]:
        """Return constrained hypotheses with the free one, by which they are judged, and its score for the best."""
        free, best = sentence.hypothesis, nbest[0]
        judged = []
        for hypothesis in nbest:
            log_probability = hypothesis.log_probability - best.log_probability + free.log_probability
            judged.append(
                replace(
                    hypothesis,
                    log_probability=min(log_probability, 0.0),
                    score=hypothesis.score - best.score + free.score,
                    free=free.judged,
                    forced=self._forced(sentence, hypothesis.tokens),
                )
            )
        return judged

    def _forced(self, sentence: FreeTranslation, tokens: list[int]) -> frozenset[int]:
        """Return the numbers of the tokens of words with a term that the free translation lacks."""
        text, opening = self.tokenizer.decode(tokens), len(self.tokenizer.target_opening)
        occurrences = self.terms.occurrences(sentence.matches, text)
        spans = [occurrences[number] for number in sentence.missing]
        forced: set[int] = set()
        offset = 0
        for word, first, end in word_spans(self.tokenizer.target_pieces(tokens[opening:])):
            start = text.find(word, offset)
            if start < 0:
                continue
            offset = start + len(word)
            if any(span and span.start < offset and start < span.end for span in spans):
                forced.update(range(opening + first, opening + end))
        return frozenset(forced)

    def _with_missing(
        self,
        tasks: Sequence[FreeTranslation],
        alternatives: Sequence[Sequence[FreeTranslation]],
        request: SearchRequest[list[int]],
        engine: Engine,
    ) -> list[list[Hypothesis]]:
        """Return for each sentence the translations that have more of its terms than the free one, the best first.

        Only PyTorch's search has constraints. Without it, terms only replace the words that are linked to them.

        Args:
            tasks: the sentences with their best free translations.
            alternatives: each sentence with its other free translations; with terms, they become alternatives.
            request: what has been searched.
            engine: computes log-probabilities without PyTorch.
        """
        options = request.options
        if has_pytorch():
            engine = self.torch_engine()
        linked = self._linked_words(tasks)
        drafts = list(map(_draft, tasks, linked))
        substituted = self._substituted(tasks, drafts, options, engine)
        constrained: Mapping[int, list[Hypothesis]] = defaultdict(list)
        if has_pytorch():
            constrained = self._constrained(tasks, linked, request)
        others = list(chain.from_iterable(alternatives))
        other_drafts = list(map(_draft, others, self._linked_words(others)))
        other_substituted = self._substituted(others, other_drafts, options, engine)
        numbers = iter(range(len(others)))
        best_lists = []
        for i, (task, draft) in enumerate(zip(tasks, drafts, strict=True)):
            candidates = [(draft, hypothesis) for hypothesis in (*substituted[i], *constrained[i])]
            variants = []
            for number in islice(numbers, len(alternatives[i])):
                variants += [(other_drafts[number], hypothesis) for hypothesis in other_substituted[number]]
            best_lists.append(self._select(task, candidates, variants))
        return best_lists

    def _constrained(
        self, tasks: Sequence[FreeTranslation], linked: Sequence[Links], request: SearchRequest[list[int]]
    ) -> Mapping[int, list[Hypothesis]]:
        """Return for each sentence, by number, the hypotheses of a search that is constrained to write its terms."""
        from translucid.decoding.constrained_decoding import Constraints

        phrases_by_sentence = {}
        for i, (task, words) in enumerate(zip(tasks, linked, strict=True)):
            # Terms that are present are constraints as well, as they might get lost; their words cost nothing extra.
            constrained: list[Match] = []
            replaced_tokens: list[list[int]] = []
            for match, use, target_words in zip(task.matches, task.uses, words, strict=True):
                if use.outcome != "inflected":
                    constrained.append(match)
                    replaced_tokens.append([])
                if use.outcome == "missing":
                    replaced_tokens[-1] += [word.token for word in target_words]
            if phrases := self._forms.constraints(constrained, replaced_tokens):
                phrases_by_sentence[i] = phrases
        hypotheses = defaultdict[int, list[Hypothesis]](list)
        if phrases_by_sentence:
            constraints = Constraints([*phrases_by_sentence.values()], self._forms.edges)
            options = request.options
            wide_options = options.model_copy(update={"beam": max(options.beam, NARROWEST)})
            limits = None
            if request.limits is not None:
                limits = [request.limits[tasks[i].number] for i in phrases_by_sentence]
            sentences = [tasks[i].input_ids for i in phrases_by_sentence]
            nbest_lists = self.torch_engine().decode(SearchRequest(sentences, wide_options, limits=limits), constraints)
            hypotheses.update(zip(phrases_by_sentence, nbest_lists, strict=True))
        return hypotheses

    def _substituted(
        self, tasks: Sequence[FreeTranslation], drafts: Sequence[Draft], options: DecodingOptions, engine: Engine
    ) -> Mapping[int, list[Hypothesis]]:
        """Return for each sentence, by number, its free translation with targets for the words linked to its terms."""
        texts: dict[tuple[int, int], str] = {}
        source_ids: dict[tuple[int, int], list[int]] = {}
        for i, (task, draft) in enumerate(zip(tasks, drafts, strict=True)):
            for k, text in enumerate(dict.fromkeys(self._with_terms(draft))):
                texts[i, k], source_ids[i, k] = text, task.input_ids
        hypotheses = defaultdict[int, list[Hypothesis]](list)
        for (i, _), hypothesis in self._scored(engine, source_ids, texts, options).items():
            hypotheses[i].append(hypothesis)
        return hypotheses

    def _scored(
        self, engine: Engine, source_ids: Mapping[Key, list[int]], texts: Mapping[Key, str], options: DecodingOptions
    ) -> dict[Key, Hypothesis]:
        """Score translations, and return a hypothesis for each that the vocabulary can write.

        Args:
            engine: computes the log-probabilities.
            source_ids: the source ids, by key.
            texts: the translations, by key.
            options: the options with the length penalty.
        """
        encoded: dict[Key, list[int]] = {}
        pairs = []
        for key, tokens in zip(texts, self.tokenizer.encode_target([*texts.values()]), strict=True):
            if SPECIAL.unknown not in tokens:
                encoded[key] = tokens
                pairs.append((source_ids[key], [*tokens, SPECIAL.end]))
        if not encoded:
            return {}
        opening = [0.0] * len(self.tokenizer.target_opening)
        hypotheses: dict[Key, Hypothesis] = {}
        for (key, tokens), log_probs in zip(encoded.items(), engine.forced(pairs), strict=True):
            total = min(sum(log_probs), 0.0)
            score = total / length_penalty(len(log_probs), options.length_penalty)
            hypotheses[key] = Hypothesis(tokens, total, score, [*opening, *log_probs])
        return hypotheses

    def _with_terms(self, draft: Draft) -> list[str]:
        """Return texts with the preferred targets, and with other targets or forms in the place of one of them."""
        forms, preferred = [], []
        for number in draft.missing:
            match = draft.matches[number]
            forms.append([*match.targets])
            preferred.append(match.targets[0])
            if match.inflects:
                other_forms = chain.from_iterable(map(self._forms.common, match.targets))
                forms[-1] += islice(other_forms, OTHER_FORMS)
        texts = [draft.with_terms(preferred)]
        for i, term_forms in enumerate(forms):
            for form in term_forms[1:]:
                texts.append(draft.with_terms([*preferred[:i], form, *preferred[i + 1 :]]))
        return list(filter(None, texts))

    def _select(
        self, task: FreeTranslation, candidates: Sequence[Candidate], variants: Sequence[Candidate]
    ) -> list[Hypothesis]:
        """Return the best candidate, and then others that are no worse; none if the free translation has as many terms.

        The best candidate has the most terms, then the fewest faults. Others may also be variants of it.
        """
        texts: set[str] = set()
        ranked = self._ranked(task, candidates, texts)
        if not ranked or ranked[0].missing >= len(task.missing):
            return []
        best, *others = ranked
        others += self._ranked(task, variants, texts)
        no_worse = [row.hypothesis for row in others if row.missing <= best.missing and row.faults <= best.faults]
        return put_first(best.hypothesis, no_worse)

    def _ranked(self, task: FreeTranslation, candidates: Sequence[Candidate], texts: set[str]) -> list[RankedCandidate]:
        """Return the candidates with new texts, the best first, and add these texts to `texts`."""
        ranked = []
        for draft, hypothesis in candidates:
            text = self.tokenizer.decode(hypothesis.tokens)
            if text not in texts:
                texts.add(text)
                missing = self._missing(task.matches, text)
                ranked.append(RankedCandidate(missing, faults(draft, self.terms, task.source, text), hypothesis))
        return sorted(ranked, key=lambda row: (row.missing, row.faults, -row.hypothesis.score))

    def _linked_words(self, tasks: Sequence[FreeTranslation]) -> list[Links]:
        """Return for each term of each sentence the words of the free translation that are linked to it.

        A source word is linked to the target word with the greatest share of the attention to it. An article may have
        more of it than the noun after it.
        """
        linked: list[Links] = []
        if self.attention is None:
            for task in tasks:
                linked.append([[]] * len(task.matches))
            return linked
        pairs = [EncodedPair(task.ids, task.hypothesis.with_end) for task in tasks]
        for task, weights in zip(tasks, self.attention(pairs), strict=True):
            shares = weights.shares  # [T, S]
            words = _words(task, weights.target)
            sentence_links: Links = []
            for match in task.matches:
                sentence_links.append([])
                for column in _source_words(task.source, match, shares.shape[1]):
                    if words:
                        sentence_links[-1].append(_most_linked_word(words, shares[:, column]))
            linked.append(sentence_links)
        return linked


def put_first(best: Hypothesis, others: Sequence[Hypothesis]) -> list[Hypothesis]:
    """Return the chosen hypothesis and those of the others without a higher score, so that it stays the first."""
    return [best, *in_order([hypothesis for hypothesis in others if hypothesis.score <= best.score])]


def refuse_mode(mode: TermsMode, tokenizer: Tokenizer) -> None:
    """Check that terms can be annotated for a model if the mode requires it.

    Raises:
        UserError: it was not trained with terms.
    """
    if mode == "annotate" and not tokenizer.marks_terms:
        fix = "Train it with data.terms, or rely on the constrained search."
        raise UserError("the model was not trained with terms annotated in the source", fix=fix)


def _words(task: FreeTranslation, words: Sequence[tuple[str, int, int]]) -> list[LinkedWord]:
    """Return the words of a free translation, given each word, the number of its first token, and the next word's."""
    linked, offset = [], 0
    for word, token, _ in words:
        start, span = task.text.find(word, offset), None
        end = start + len(word)
        offset = max(offset, end)
        if start >= 0:
            span = start, end
        linked.append(LinkedWord(task.hypothesis.tokens[token], span))
    return linked


def _source_words(source: str, match: Match, count: int) -> range:
    """Return the numbers of the source words, of which there are `count`, that a term covers."""
    # The words of attention end at white space: a term may begin within one, such as after a bracket.
    preceding = source[: match.start]
    start = len(linked_words(preceding))
    if preceding and not preceding[-1].isspace():
        start -= 1
    return range(start, min(start + len(linked_words(match.text)), count))


def _most_linked_word(words: Sequence[LinkedWord], shares: Floats) -> LinkedWord:
    """Return the word with the greatest share [T], but not a short one before a longer one with almost as much."""
    best = int(shares.argmax())
    following = best + 1
    if following == len(words) or not _is_short(words[best]) or _is_short(words[following]):
        return words[best]
    return words[following] if shares[following] >= ALMOST * shares[best] else words[best]


def _is_short(word: LinkedWord) -> bool:
    return word.span is not None and word.span[1] - word.span[0] <= SHORT


def _draft(task: FreeTranslation, linked: Links) -> Draft:
    spans = []
    for words in linked:
        spans.append([word.span for word in words if word.span])
    return Draft(task.text, task.matches, spans, task.missing)
