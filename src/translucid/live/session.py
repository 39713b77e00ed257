"""A session of live translation: text that arrives in parts, and the words that are written meanwhile."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pydantic import Field

from bitext.words import SourceWord, WordReader, text_of
from translucid.api.pivot_translator import PivotTranslator
from translucid.data.formality import formality_warnings
from translucid.engines.combinations import CONSTRAINED
from translucid.ground.errors import UserError
from translucid.ground.joint_steps import run
from translucid.ground.option_group import OptionGroup
from translucid.live.continuation import AttentionRows, Continuations, TargetVocabulary
from translucid.live.kinds import PolicyName
from translucid.live.policies import Floats, policy_of
from translucid.live.sentence import LiveSentence, delays_of, ends_sentence, within_span
from translucid.runs.configuration import LiveSettings, checked

if TYPE_CHECKING:
    from translucid.api.translator import Translator

ALPHA = 0.3
"""EDAtt's threshold of a run for which none was chosen."""


class LiveOptions(OptionGroup):
    """How a session decides when to write."""

    policy: PolicyName = "alignatt"
    """The policy, see `live.policies`."""
    lag: int = Field(2, ge=0, le=1000)
    """How far the translation stays behind, in source words."""
    alpha: float | None = Field(None, ge=0, le=1)
    """EDAtt waits if a piece has this much attention on the last `lag` words, or more. By default, what `tune
    alignments` has chosen for this lag, or else 0.3."""
    beam: int = Field(1, ge=1, le=100)
    """K of a beam search; 1 is greedy search."""
    attention: str | None = None
    """The attention that is read, such as `decoder.1.cross`, or `decoder.1.cross.head.3` for one head; by default, what
    `tune alignments` has chosen, or else that which the run reads word alignments from."""
    split: bool = True
    """Whether sentence ends are recognized; otherwise, a sentence ends only with the text."""
    max_words: int = Field(80, ge=1, le=10_000)
    """A sentence that has not ended after this many source words is ended."""

    def alpha_for(self, chosen: LiveSettings) -> float:
        """Return EDAtt's threshold, which the settings of a run have chosen for their own attention."""
        if self.alpha is not None:
            return self.alpha
        if chosen.alpha and self.attention in (None, chosen.attention):
            return chosen.alpha[min(max(self.lag, 1), len(chosen.alpha)) - 1]
        return ALPHA


class LiveSession:
    """Translates text while it arrives. What is written never changes, and does not depend on the parts of the text.

    Sessions are independent of each other, and share the model of their translator.
    """

    def __init__(self, translator: Translator, options: LiveOptions) -> None:
        """Begin a session; see `Translator.live`.

        Raises:
            UserError: the translator has something that live translation can't use.
        """
        self.translator, self.options = translator, options
        self.alpha = options.alpha_for(translator.configuration.live)
        """EDAtt's threshold."""
        self.policy = policy_of(options.policy, options.lag, self.alpha)
        self.sentences: list[LiveSentence] = []
        """The sentences so far; the last one may not have ended."""
        self.messages: list[str] = []
        """What a user should know: a sentence was ended by the limit, or has the other form of address."""
        self._continuations = continuations(translator, options)
        self._reader = WordReader()
        self._text = ""
        self._appended = 0  # characters of the last sentence that the text has
        self._forgotten = 0  # source words of sentences that were forgotten
        self._context: list[tuple[int, ...]] = []  # the ids of the last sentences that were forgotten

    @property
    def text(self) -> str:
        """Everything that is written."""
        return self._text

    @property
    def heard(self) -> int:
        """The number of source words read."""
        return self._forgotten + sum(len(sentence.words) for sentence in self.sentences)

    @property
    def delays(self) -> list[int]:
        """For each target word, the number of source words of the session that were read before it was written."""
        delays, before = [], self._forgotten
        for sentence in self.sentences:
            delays += [before + delay for delay in sentence.delays]
            before += len(sentence.words)
        return delays

    @property
    def attention(self) -> list[Floats]:
        """For each part that was written, its attention over the words of its sentence heard then."""
        rows = []
        for sentence in self.sentences:
            rows += [part.row for part in sentence.written]
        return rows

    @property
    def record(self) -> dict[str, Any]:
        """The session as plain values, with the attention of each decision; see docs/live.md."""
        source, target = self.translator.languages
        return {
            "model": self.translator.run,
            "languages": [source, target],
            "policy": self.options.policy,
            "lag": self.options.lag,
            "alpha": self.alpha,
            "attention": self._continuations.rows.name,
            "sentences": [sentence.to_json() for sentence in self.sentences],
        }

    def read(self, text: str) -> str:
        """Read the next part of the text; return what is written, to be appended to what was written before.

        A word is read when another one or white space follows it.
        """
        return run(self.reading(text))

    def finish(self) -> str:
        """Read the end of the text; return the rest of the translation. The next text begins another sentence."""
        return run(self.finishing())

    async def reading(self, text: str) -> str:
        """Do the same as `read`, and wait for steps that are computed with those of other sessions."""
        before = len(self._text)
        for word in self._reader.read(text):
            await self._hear(word)
        return self._text[before:]

    async def finishing(self) -> str:
        """Do the same as `finish`, with such steps."""
        before = len(self._text)
        for word in self._reader.rest():
            await self._hear(word)
        await self._end()
        return self._text[before:]

    def forget(self) -> None:
        """Forget the words, delays and attention of sentences that have ended, so that memory does not grow.

        What follows does not change by it.
        """
        for sentence in self.sentences:
            if sentence.ended:
                self._forgotten += len(sentence.words)
                if context := self.translator.context:
                    self._context = [*self._context, sentence.source_ids][-context.max_sentences :]
        self.sentences = [sentence for sentence in self.sentences if not sentence.ended]
        self.messages.clear()

    async def _hear(self, word: SourceWord) -> None:
        sentence = self._sentence()
        if sentence.words and (len(sentence.words) >= self.options.max_words or not sentence.fits(word)):
            self.messages.append(f"a sentence had no end after {len(sentence.words)} words, and was ended there")
            await self._end()
            sentence = self._sentence()
        text = text_of([*sentence.words, word])
        if self.translator.tokenizer.has_placeholders and within_span(text):
            sentence.words.append(word)  # what stands in for it is known when it is complete
        elif self.options.split and ends_sentence(text, self.translator.languages[0]):
            await self._end(word)
        else:
            await sentence.hear(word)
            self._append(sentence)

    def _sentence(self) -> LiveSentence:
        """Return the sentence that is being read."""
        if not self.sentences or self.sentences[-1].ended:
            before: tuple[tuple[int, ...], ...] = ()
            if context := self.translator.context:
                remembered = [sentence.source_ids for sentence in self.sentences[-context.max_sentences :]]
                before = tuple([*self._context, *remembered][-context.max_sentences :])
            sentence = LiveSentence(self.translator.pipeline, self._continuations, self.policy, before)
            self.sentences.append(sentence)
        return self.sentences[-1]

    async def _end(self, *words: SourceWord) -> None:
        """End the sentence that is being read, if there is one."""
        if words or (self.sentences and not self.sentences[-1].ended):
            sentence = self._sentence()
            await sentence.end(*words)
            self._append(sentence)
            translator = self.translator
            source = text_of(sentence.words)
            self.messages += formality_warnings(translator.formality, translator.languages, source, sentence.text)

    def _append(self, sentence: LiveSentence) -> None:
        """Append to the text what a sentence has written since the last time."""
        new_text = sentence.text[self._appended :]
        if new_text and not self._appended and self._text and sentence.words[0].spaced:
            self._text += " "
        self._text += new_text
        self._appended = len(sentence.text)
        if sentence.ended:
            self._appended = 0


def continuations(translator: Translator, options: LiveOptions) -> Continuations:
    """Return what continues targets by the model of a translator.

    Raises:
        UserError: the translator has something that live translation can't use.
    """
    engine_name = translator.loaded.engine_name
    if engine_name not in ("auto", "torch"):
        fix = 'Leave the engine to the program, or choose `engine="torch"`.'
        raise UserError(f'`engine="{engine_name}"` returns no attention for live translation', fix=fix)
    if translator.ranking is not None:
        raise UserError("live translation ranks no hypotheses", fix="Leave `ranking` out.")
    if any(not constraint.annotated for constraint in translator.stages.constraints):
        fix = "Let the terms be annotated, for a run that was trained with data.terms."
        raise UserError(f"live translation can't use {CONSTRAINED}, which need the whole sentence", fix=fix)
    decoding = translator.configuration.decoding.model_copy(update={"beam": options.beam, "nbest": 1, "sample": False})
    rows = AttentionRows.of(translator, options.attention)
    return Continuations(translator.torch_engine, rows, decoding, TargetVocabulary.of(translator.tokenizer))


class PivotSession:
    """Two sessions, the second of which reads what the first one writes, word by word."""

    def __init__(self, first: LiveSession, second: LiveSession) -> None:
        """Begin with two sessions; see `PivotTranslator.live`."""
        self.first, self.second = first, second
        self._heard: list[int] = []  # by part that the second session has written, the source words read until then

    @property
    def text(self) -> str:
        """Everything that is written."""
        return self.second.text

    @property
    def heard(self) -> int:
        """The number of source words read."""
        return self.first.heard

    @property
    def sentences(self) -> list[LiveSentence]:
        """The sentences of the second session."""
        return self.second.sentences

    @property
    def messages(self) -> list[str]:
        """What a user should know, of both steps."""
        return [*self.first.messages, *self.second.messages]

    @property
    def delays(self) -> list[int]:
        """For each target word, the number of source words that were read before it was written."""
        delays: list[int] = []
        heard = iter(self._heard)
        for sentence in self.second.sentences:
            delays += delays_of(sentence.written, heard)
        return delays

    @property
    def record(self) -> dict[str, Any]:
        """The record of the second session, with that of the first one under `pivot`; see docs/live.md."""
        return {**self.second.record, "pivot": self.first.record}

    def read(self, text: str) -> str:
        """Read the next part of the text, as `LiveSession.read` does."""
        return run(self.reading(text))

    def finish(self) -> str:
        """Read the end of the text, as `LiveSession.finish` does."""
        return run(self.finishing())

    async def reading(self, text: str) -> str:
        """Read the next part of the text, as `LiveSession.reading` does."""
        written = ""
        for character in text:  # completes one word at most, so that what the second session writes has one delay
            written += await self._passed(await self.first.reading(character))
        return written

    async def finishing(self) -> str:
        """Read the end of the text, as `LiveSession.finishing` does."""
        written = await self._passed(await self.first.finishing())
        return written + self._noted(await self.second.finishing())

    def forget(self) -> None:
        """Forget sentences that have ended, as `LiveSession.forget` does."""
        self.first.forget()
        self.second.forget()
        parts = sum(len(sentence.written) for sentence in self.second.sentences)
        self._heard = self._heard[len(self._heard) - parts :]

    async def _passed(self, text: str) -> str:
        """Pass what the first session has written to the second one, and end its sentence with that of the first."""
        written = await self.second.reading(text)
        if text and self.first.sentences[-1].ended:
            written += await self.second.finishing()
        return self._noted(written)

    def _noted(self, written: str) -> str:
        parts = sum(len(sentence.written) for sentence in self.second.sentences)
        self._heard += [self.heard] * (parts - len(self._heard))
        return written


def live(
    translator: Translator | PivotTranslator, policy: str, options: Mapping[str, Any]
) -> LiveSession | PivotSession:
    """Begin a session; see `Translator.live`."""
    checked_options = checked(LiveOptions, {"policy": policy, **options})
    if isinstance(translator, PivotTranslator):
        first, second = translator.first, translator.second
        return PivotSession(LiveSession(first, checked_options), LiveSession(second, checked_options))
    return LiveSession(translator, checked_options)
