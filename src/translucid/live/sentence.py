"""One sentence that is translated while it is heard, and where it ends.

Whether a sentence ends is decided by the words read so far, so it does not depend on the parts in which they arrive.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import exp
from typing import Any, NamedTuple

import numpy as np

from bitext.words import SourceWord, stands_alone, text_of, words_of
from translucid.data.sentences import split_sentences
from translucid.data.text_pipeline import Piece, TextPipeline, translatable
from translucid.data.tokenizing.pieces import MATCH, SPACE, TERM
from translucid.ground.special import SPECIAL
from translucid.live.continuation import Continuation, Continuations, ProposedPiece
from translucid.live.policies import Evidence, Floats, Policy, Proposal

SPAN = 200
"""The most characters of a placeholder or a tag that is awaited."""
_BEGUN = re.compile(r"(?:<[A-Za-z/!?%][^<>]*|\{[^{}]*)\Z")
"""The beginning of a placeholder such as `{{ name }}`, or of a tag."""
_NEXT = " A"
"""A space and a word that could begin the next sentence."""


class Reading(NamedTuple):
    """The words heard so far, as the model reads them."""

    piece: Piece
    lead: str
    """The text before the piece that is copied, with the space after it."""
    tail: str
    """The text after the piece that is copied, with the space before it."""
    ids: list[int]
    """The input of the model."""
    start: int
    """The position of the sentence's first piece in the input."""
    pieces: list[str]
    """The source pieces, without the end token."""
    words: list[int]
    """The word of each piece, from 0."""

    def row(self, piece: ProposedPiece) -> Floats:
        """Return the attention [S] of a proposed piece over the source pieces; empty without attention."""
        return piece.row[self.start : self.start + len(self.pieces)]

    def by_word(self, row: Floats, heard: int) -> Floats:
        """Return a row over source pieces as one over the words [heard]."""
        by_word = np.zeros(heard, np.float32)
        np.add.at(by_word, self.words[: len(row)], row)
        return by_word

    def to_json(self) -> dict[str, Any]:
        """Return the pieces and their words as plain values."""
        return {"pieces": self.pieces, "words": self.words}


class Attended(NamedTuple):
    """A target piece, and its attention over the source pieces heard when it was written or refused."""

    piece: str
    row: Floats
    """[S]."""

    def to_json(self) -> dict[str, Any]:
        """Return the piece and its row as plain values."""
        return {"piece": self.piece, "row": plain(self.row)}


@dataclass(frozen=True)
class Written:
    """A word that was written, or a sign that was added to the word before it."""

    words: tuple[int, ...]
    """The numbers of the target words that it is a part of, from 0: one, or several without spaces between them."""
    text: str
    """What was written, without the space before it."""
    heard: int
    """The number of source words that had been heard."""
    probability: float
    """The product of the probabilities of its pieces, given the words heard."""
    row: Floats
    """[heard] its attention over the source words: the mean over its pieces of the sums over each word's pieces."""
    pieces: tuple[Attended, ...]

    def to_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "words": list(self.words),
            "text": self.text,
            "heard": self.heard,
            "probability": round(self.probability, 4),
            "row": plain(self.row),
            "pieces": [piece.to_json() for piece in self.pieces],
        }


@dataclass(frozen=True)
class Refused:
    """A piece that was proposed and not written yet, which ended a decision."""

    word: int
    """The number of the target word that it belongs to, from 0."""
    text: str
    """The pieces of the word up to this one, as text; empty if the model proposed to end the sentence."""
    heard: int
    row: Floats
    """[heard] its attention over the source words."""
    piece: Attended
    evidence: Evidence
    """The numbers that decided; see the policies. Empty for the end token, which always waits for the source's."""

    def to_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "word": self.word,
            "text": self.text,
            "heard": self.heard,
            "row": plain(self.row),
            "piece": self.piece.to_json(),
            "evidence": dict(self.evidence),
        }


def plain(row: Floats) -> list[float]:
    """Return numbers with nine digits, which float32 numbers can be restored from."""
    return [float(f"{number:.9g}") for number in row.tolist()]


def delays_of(parts: Iterable[Written], heard: Iterable[int]) -> list[int]:
    """Return for each target word the number of source words that had been heard when its last part was written.

    Args:
        parts: the parts of a sentence, in order.
        heard: that number for each of them; no more are taken.
    """
    delays: dict[int, int] = {}
    for part, number in zip(parts, heard, strict=False):
        delays.update(dict.fromkeys(part.words, number))
    return list(delays.values())


@dataclass(eq=False)
class LiveSentence:
    """A sentence that is read word by word, and its translation so far."""

    pipeline: TextPipeline
    continuations: Continuations
    policy: Policy
    before: tuple[tuple[int, ...], ...] = ()
    """The ids of the sentences before it that the model reads, if it has document context."""
    words: list[SourceWord] = field(default_factory=list)
    """The source words heard."""
    text: str = ""
    """What is written."""
    written: list[Written] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    readings: dict[int, Reading] = field(default_factory=dict)
    """What the model read at each decision, by the number of words heard."""
    ended: bool = False
    tokens: list[int] = field(default_factory=list)
    """The target ids that are written, without those that every target begins with."""
    _hypothesis: list[int] = field(default_factory=list)
    """The target ids that were written and proposed at the last decision."""
    _hypotheses: list[list[int]] = field(default_factory=list)
    """Those of whole hypotheses for the prefixes before, the latest last."""

    @property
    def target(self) -> list[str]:
        """The target words."""
        return [word.text for word in words_of(self.text)]

    @property
    def delays(self) -> list[int]:
        """For each target word, the number of source words that had been heard when the last part of it was written."""
        return delays_of(self.written, (part.heard for part in self.written))

    @property
    def source_ids(self) -> tuple[int, ...]:
        """The ids of the source without the end token, which the model may read before the next sentences."""
        ids: list[int] = []
        for piece in translatable(self.pipeline.sentence(text_of(self.words))):
            ids += piece.ids[:-1]
        return tuple(ids)

    def fits(self, word: SourceWord) -> bool:
        """Return whether the model can read one more word in one piece."""
        return len(translatable(self.pipeline.sentence(text_of([*self.words, word])))) <= 1

    async def hear(self, word: SourceWord) -> None:
        """Read a word, and write what the policy allows."""
        self.words.append(word)
        await self._continue()

    async def end(self, *words: SourceWord) -> None:
        """Read the last words, and write the rest."""
        self.words += words
        self.ended = True
        await self._continue()

    def to_json(self) -> dict[str, Any]:
        """Return the sentence, its translation and all decisions as plain values; see docs/live.md."""
        return {
            "source": [word.text for word in self.words],
            "target": self.target,
            "text": self.text,
            "delays": self.delays,
            "ended": self.ended,
            "written": [part.to_json() for part in self.written],
            "refused": [refused.to_json() for refused in self.refused],
            "heard": {str(heard): reading.to_json() for heard, reading in self.readings.items()},
        }

    async def _continue(self) -> None:
        """Let the model propose pieces, and write them until the policy refuses one."""
        if self.policy.reads == "nothing" and not self.ended:
            return
        reading = self.read()
        if reading is None:
            if self.ended:
                self._copy()
            return
        draft = []
        if self._hypothesis[: len(self.tokens)] == self.tokens:
            draft = [token for token in self._hypothesis[len(self.tokens) :] if token != SPECIAL.end]
        proposals = self.continuations.after(reading.ids, self.tokens, draft)
        earlier = self._hypotheses
        if self.policy.reads == "hypotheses" and not self.ended:
            await proposals.finish()
            self._hypotheses = [*earlier, proposals.target[:-1]][-self.policy.lag :]
        await self._write_proposals(reading, proposals, earlier)
        self._hypothesis = proposals.target

    async def _write_proposals(
        self, reading: Reading, proposals: Continuation, earlier: Sequence[Sequence[int]]
    ) -> None:
        """Write the pieces that the model proposes until the policy refuses one.

        `earlier` are the hypotheses for the prefixes before this one.
        """
        vocabulary, pending = self.continuations.vocabulary, list[ProposedPiece]()
        while True:
            proposal = await proposals.next()
            is_end = proposal.token == SPECIAL.end
            if pending and not is_end and vocabulary.begins[proposal.token]:
                self._write(reading, pending)
                pending = []
            if not self.ended and self._refuses(reading, pending, proposal, earlier):
                return
            if is_end:
                break
            pending.append(proposal)
            if vocabulary.alone[proposal.token]:
                self._write(reading, pending)
                pending = []
        self._write(reading, pending, reading.tail)

    def _refuses(
        self,
        reading: Reading,
        pending: Sequence[ProposedPiece],
        piece: ProposedPiece,
        earlier: Sequence[Sequence[int]],
    ) -> bool:
        """Return whether a piece waits, after pieces of its word that do not, and record it."""
        row, heard = reading.row(piece), len(self.words)
        continues = self.tokens and not self.continuations.vocabulary.begins[(*pending, piece)[0].token]
        word = len(self.target) - bool(continues)
        tokens = [*self.tokens, *(before.token for before in pending), piece.token]
        proposal = Proposal(row, reading.words, heard, word, tokens, earlier)
        is_end = piece.token == SPECIAL.end
        if not is_end and self.policy.writes(proposal):
            return False
        evidence: Evidence = {}
        text = ""
        if not is_end:
            evidence = self.policy.evidence(proposal)
            text = self.pipeline.text(reading.piece, tokens[len(self.tokens) :])
        (name,) = self.pipeline.tokenizer.target_labels([piece.token])
        attended = Attended(name, row)
        self.refused.append(Refused(word, text, heard, reading.by_word(row, heard), attended, evidence))
        return True

    def _write(self, reading: Reading, pieces: Sequence[ProposedPiece], tail: str = "") -> None:
        """Write the pieces of a word, and a tail that is copied."""
        self.tokens += [piece.token for piece in pieces]
        whole = reading.lead + self.pipeline.text(reading.piece, self.tokens)
        if not whole.startswith(self.text):  # what is written stays, even if its spelling were another one now
            separator = ""
            if pieces and self.text and self.continuations.vocabulary.begins[pieces[0].token]:
                separator = " "
            new_text = self.pipeline.text(reading.piece, [piece.token for piece in pieces])
            whole = self.text + separator + new_text
        names = self.pipeline.tokenizer.target_labels([piece.token for piece in pieces])
        attended = []
        for name, piece in zip(names, pieces, strict=True):
            attended.append(Attended(name, reading.row(piece)))
        self._add(whole + tail, exp(sum(piece.log_prob for piece in pieces)), attended, reading)

    def _copy(self) -> None:
        """Write the source, which has nothing to translate."""
        self._add(self.text or text_of(self.words), 1.0, [], None)

    def _add(self, text: str, probability: float, pieces: Sequence[Attended], reading: Reading | None) -> None:
        """Continue the text to another one, and record what is new."""
        new_text = text[len(self.text) :]
        if not new_text.strip():
            return
        indent = len(new_text) - len(new_text.lstrip())
        _, first = words_of_pieces([self.text, new_text[: indent + 1]])
        _, last = words_of_pieces([self.text, new_text])
        self.text = text
        heard = len(self.words)
        row = np.zeros(heard, np.float32)
        if reading is not None and pieces:
            row = np.mean([reading.by_word(piece.row, heard) for piece in pieces], axis=0)
        self.written.append(
            Written(tuple(range(first, last + 1)), new_text.strip(), heard, probability, row, tuple(pieces))
        )

    def read(self) -> Reading | None:
        """Return what the model reads; None if it has nothing to translate, or too much for one piece."""
        pieces = self.pipeline.sentence(text_of(self.words))
        if len(translatable(pieces)) != 1:
            return None
        index = next(i for i, piece in enumerate(pieces) if piece.ids)
        piece = replace(pieces[index], before=self.before)
        lead = "".join(copied.text + copied.after for copied in pieces[:index])
        tail = piece.after + "".join(copied.text + copied.after for copied in pieces[index + 1 :])
        ids = self.pipeline.with_additions(piece) if self.pipeline.steps else piece.ids
        context = self.pipeline.context_ids(piece, len(ids))
        tokenizer = self.pipeline.tokenizer
        opening = len(tokenizer.source_opening)
        labels = piece.masked.unmask_pieces(tokenizer.source_labels(ids, piece.masked.text or None))[opening:-1]
        if MATCH in labels:  # like the end token, the translation of a near match is no part of what was heard
            labels = labels[: labels.index(MATCH)]
        start = len(context) + opening
        words = _words_heard(lead, labels, len(self.words))
        reading = Reading(piece, lead, tail.rstrip(), [*context, *ids], start, labels, words)
        self.readings[len(self.words)] = reading
        return reading


def _words_heard(lead: str, pieces: Sequence[str], heard: int) -> list[int]:
    """Return the source word of each piece, in ascending order; translations of terms belong to their words.

    Args:
        lead: the text before the pieces.
        pieces: the source pieces, with the marks of terms and their translations.
        heard: the number of words.
    """
    texts, added = [lead], False
    for position, piece in enumerate(pieces):
        text = piece
        if piece == TERM.target:
            added = True
        if added or piece in TERM:
            text = ""
        if position == 0 and lead and not lead[-1].isspace():
            text = text.removeprefix(SPACE)
        if piece == TERM.end:
            added = False
        texts.append(text)
    numbers = words_of_pieces(texts)[1:]
    for position in range(len(pieces) - 2, -1, -1):
        if pieces[position] == TERM.source:  # the mark before a term belongs to it
            numbers[position] = numbers[position + 1]
    return [min(number, heard - 1) for number in numbers]


def within_span(text: str) -> bool:
    """Return whether a text ends within a placeholder or a tag, which may have spaces.

    >>> within_span("Dear {{ first"), within_span('see <a href="x"'), within_span("Dear {{ first }}, I <3 you")
    (True, True, False)
    """
    return _BEGUN.search(text, max(0, len(text) - SPAN)) is not None


def ends_sentence(text: str, language: str | None) -> bool:
    """Return whether a sentence may end after a text: the next word would begin another one.

    >>> ends_sentence("I met Mr.", "en"), ends_sentence("It costs 3.5", "en"), ends_sentence("I like it.", "en")
    (False, False, True)
    """
    *_, (last, _) = split_sentences(text + _NEXT, language)
    return last == _NEXT.strip()


def words_of_pieces(pieces: Sequence[str]) -> list[int]:
    """Return for each piece of a text the word in which it ends, from 0.

    >>> words_of_pieces(["▁I", "▁lik", "e", "▁我爱"])
    [0, 1, 1, 3]
    """
    numbers, count, within = [], 0, False
    for piece in pieces:
        for character in piece.replace(SPACE, " "):
            alone = stands_alone(character)
            if not character.isspace() and (alone or not within):
                count += 1
            within = not (alone or character.isspace())
        numbers.append(max(count - 1, 0))
    return numbers
