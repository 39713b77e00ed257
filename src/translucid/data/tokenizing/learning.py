"""A vocabulary learned from text by SentencePiece (Kudo and Richardson 2018)."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import sentencepiece

from translucid.data.tokenizing.normalisation import ADAPTIVE, BASE, QUIET, Characters, described, normaliser_without
from translucid.data.tokenizing.pieces import as_read
from translucid.data.tokenizing.tokenizer_options import TokenizerOptions
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL, TAG

# Sums of floats depend on the number of threads: a fixed number gives every machine the same unigram model.
_LEARNING_THREADS = 8


class Learning:
    """How the vocabulary of one side, or of both, is learned."""

    def __init__(
        self,
        where: str,
        options: TokenizerOptions,
        reserved: Sequence[str],
        flexible: bool,
        tell: Callable[[str], None],
    ) -> None:
        """`where`: what the text is called in messages; the others are those of `Tokenizer.learn`."""
        self.where, self.options, self.reserved = where, options, reserved
        self.flexible, self.tell = flexible, tell

    def model(self, texts: Sequence[str], *, tagged: bool) -> bytes:
        """Return a SentencePiece model.

        Raises:
            UserError: there is no text, or the vocabulary is larger or smaller than the text allows.
        """
        size, rule = self.options.vocabulary, self._normalisation(texts)
        try:
            return self._trained(texts, size, rule, tagged)
        except RuntimeError as error:
            other = _possible_size(str(error))
            if not self.flexible or other is None:
                raise _explained(str(error), size, self.where) from error
        what = "larger than it supports" if other < size else "too small for its single characters"
        self.tell(f"{self.where} gets a vocabulary of {other:,}: the preset's, {size:,}, is {what}")
        try:
            return self._trained(texts, other, rule, tagged)
        except RuntimeError as error:
            raise _explained(str(error), other, self.where) from error

    def _trained(self, texts: Sequence[str], size: int, rule: Mapping[str, Any], tagged: bool) -> bytes:
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=map(as_read, texts),
            model_writer=model,
            model_type=self.options.kind,
            vocab_size=size,
            character_coverage=self.options.coverage,
            pad_id=SPECIAL.pad,
            unk_id=SPECIAL.unknown,
            bos_id=SPECIAL.start,
            eos_id=SPECIAL.end,
            unk_surface="⁇",
            control_symbols=[TAG] if tagged else [],
            user_defined_symbols=list(self.reserved),
            max_sentence_length=1 << 16,
            num_threads=_LEARNING_THREADS,
            minloglevel=QUIET,
            **rule,
        )
        return model.getvalue()

    def _normalisation(self, texts: Sequence[str]) -> dict[str, Any]:
        """Return what SentencePiece is to know of the normalisation, and tell what that changes."""
        seen, rule = Characters(), self.options.normalisation
        for text in texts:
            seen.add(text)
        if changed := seen.changed(rule):
            keeps = "" if rule == ADAPTIVE else "; data.tokenizer.normalisation=adaptive keeps what is often there"
            self.tell(f"normalisation ({rule}) changes characters of {self.where}: {described(changed)}{keeps}")
        if rule != ADAPTIVE:
            return {"normalization_rule_name": rule}
        kept = seen.kept()
        if not kept:
            return {"normalization_rule_name": BASE}
        counts = {character: seen.counts[character] for character in kept}
        self.tell(f"normalisation ({rule}) leaves alone in {self.where}: {described(counts)}")
        return {"normalizer": normaliser_without(kept)}


def _possible_size(message: str) -> int | None:
    """Return the size that SentencePiece's message says to be possible, if it says one."""
    found = re.search(r"too high.*<= (\d+)", message) or re.search(r"smaller than required_chars.*vs (\d+)", message)
    return int(found[1]) if found else None


def _explained(message: str, vocabulary: int, where: str) -> Exception:
    """Return what SentencePiece's message means for the user."""
    if "sentences_.empty()" in message:
        return UserError(f"there is nothing to learn a vocabulary from: {where} is empty", fix="Check data.train.")
    if found := re.search(r"too high.*<= (\d+)", message):
        what, fix = "larger than {} supports, at most {}", f"Set data.tokenizer.vocabulary={found[1]} or less."
    elif found := re.search(r"smaller than required_chars.*vs (\d+)", message):
        what = "smaller than {} needs for its single characters, at least {}"
        fix = f"Set data.tokenizer.vocabulary={found[1]} or more, or a lower data.tokenizer.coverage."
    else:
        return RuntimeError(f"SentencePiece failed: {message}")
    return UserError(f"a vocabulary of {vocabulary} is {what.format(where, found[1])}", fix=fix)
