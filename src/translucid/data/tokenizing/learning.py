"""A vocabulary learned from text by SentencePiece (Kudo and Richardson 2018)."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sentencepiece

from translucid.data.tokenizing.normalisation import ADAPTIVE, BASE, QUIET, Characters, described, normaliser_without
from translucid.data.tokenizing.pieces import sanitised
from translucid.data.tokenizing.tokenizer_options import TokenizerOptions
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL, TAG

# Sums of floats depend on the number of threads; with a fixed number, all machines learn the same unigram model.
_LEARNING_THREADS = 8
_TOO_LARGE = re.compile(r"too high.*<= (\d+)")
"""SentencePiece's message that the vocabulary is too large for the text, with the largest possible size."""
_TOO_SMALL = re.compile(r"smaller than required_chars.*vs (\d+)")
"""SentencePiece's message that the vocabulary is too small for all characters, with the smallest possible size."""


@dataclass(frozen=True)
class Learning:
    """The learning of a vocabulary for one side of a corpus, or for both, with arguments of `Tokenizer.learn`."""

    text_name: str
    """The name of the text in messages."""
    options: TokenizerOptions
    reserved: Sequence[str]
    flexible: bool
    tell: Callable[[str], None]

    def model(self, texts: Sequence[str], *, tagged: bool) -> bytes:
        """Return a SentencePiece model.

        Raises:
            UserError: there is no text, or the vocabulary is larger or smaller than the text allows.
        """
        size, rule = self.options.vocabulary, self._normalisation(texts)
        try:
            return self._trained(texts, size, rule, tagged)
        except RuntimeError as error:
            possible_size = _possible_size(str(error))
            if not self.flexible or possible_size is None:
                raise _user_error(str(error), size, self.text_name) from error
        reason = "too small for its single characters"
        if possible_size < size:
            reason = "larger than it supports"
        self.tell(f"{self.text_name} gets a vocabulary of {possible_size:,}: the preset's, {size:,}, is {reason}")
        try:
            return self._trained(texts, possible_size, rule, tagged)
        except RuntimeError as error:
            raise _user_error(str(error), possible_size, self.text_name) from error

    def _trained(self, texts: Sequence[str], size: int, rule: Mapping[str, Any], tagged: bool) -> bytes:
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=map(sanitised, texts),
            model_writer=model,
            model_type=self.options.kind,
            vocab_size=size,
            character_coverage=self.options.coverage,
            pad_id=SPECIAL.pad,
            unk_id=SPECIAL.unknown,
            bos_id=SPECIAL.start,
            eos_id=SPECIAL.end,
            unk_surface="⁇",
            control_symbols=[*([TAG] if tagged else []), *self.options.languages.values()],
            user_defined_symbols=list(self.reserved),
            max_sentence_length=1 << 16,
            num_threads=_LEARNING_THREADS,
            minloglevel=QUIET,
            **rule,
        )
        return model.getvalue()

    def _normalisation(self, texts: Sequence[str]) -> dict[str, Any]:
        """Return SentencePiece's arguments for the normalisation, and tell the user what it changes."""
        characters, rule = Characters(), self.options.normalisation
        for text in texts:
            characters.add(text)
        if changed := characters.changed(rule):
            advice = "" if rule == ADAPTIVE else "; data.tokenizer.normalisation=adaptive keeps what is often there"
            self.tell(f"normalisation ({rule}) changes characters of {self.text_name}: {described(changed)}{advice}")
        if rule != ADAPTIVE:
            return {"normalization_rule_name": rule}
        preserved = characters.preserved()
        if not preserved:
            return {"normalization_rule_name": BASE}
        counts = {character: characters.counts[character] for character in preserved}
        self.tell(f"normalisation ({rule}) leaves alone in {self.text_name}: {described(counts)}")
        return {"normalizer": normaliser_without(preserved)}


def _possible_size(message: str) -> int | None:
    """Return the size that SentencePiece's error message says to be possible, None if it names none."""
    match = _TOO_LARGE.search(message) or _TOO_SMALL.search(message)
    return int(match[1]) if match else None


def _user_error(message: str, vocabulary: int, text_name: str) -> Exception:
    """Return the error that explains SentencePiece's error message to the user."""
    if "sentences_.empty()" in message:
        return UserError(f"there is nothing to learn a vocabulary from: {text_name} is empty", fix="Check data.train.")
    if match := _TOO_LARGE.search(message):
        reason = f"larger than {text_name} supports, at most {match[1]}"
        fix = f"Set data.tokenizer.vocabulary={match[1]} or less."
    elif match := _TOO_SMALL.search(message):
        reason = f"smaller than {text_name} needs for its single characters, at least {match[1]}"
        fix = f"Set data.tokenizer.vocabulary={match[1]} or more, or a lower data.tokenizer.coverage."
    else:
        return RuntimeError(f"SentencePiece failed: {message}")
    return UserError(f"a vocabulary of {vocabulary} is {reason}", fix=fix)
