"""`Generator.load(run).generate(prompt)`: language models that continue and score texts.

A continuation has the probability of each of its pieces.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from html import escape
from typing import Any, NamedTuple, overload

import torch

from bitext.cancellation import between_steps
from translucid.api.loaded_model import LoadedModel
from translucid.api.translation import refuse_one_text, text_list
from translucid.data.batching import Batch
from translucid.data.stores.store import EncodedTexts
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.decoding_options import DecodingOptions
from translucid.decoding.hypothesis import Hypothesis, NBest, percent
from translucid.decoding.search import search
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL
from translucid.language.model import LanguageModel
from translucid.language.options import LanguageShape
from translucid.language.scores import TextScores, empty_source, mean_scores, readings, score_texts, stride
from translucid.models.protocol import Model
from translucid.runs.configuration import Configuration, checked
from translucid.runs.settings import without_none

WINDOW = 512
"""The number of tokens of a text that are scored at a time."""
LONGEST_PROMPT = 20_000
"""The largest number of tokens of a prompt."""

SAMPLING = ("temperature", "top_k", "top_p")
"""The options that only sampling uses."""


def generation_options(settings: DecodingOptions, options: Mapping[str, Any]) -> DecodingOptions:
    """Change settings by name: without `sample`, an option of sampling turns it on, or else `beam` turns it off.

    Options that are None do not change.

    Raises:
        UserError: an option has a wrong name or value, or two do not go together.
    """
    values, changes = settings.model_dump(), without_none(options)
    if "sample" not in changes and changes.keys() & {*SAMPLING}:
        values["sample"] = True
    elif "sample" not in changes and "beam" in changes:
        values["sample"] = False
        for name in SAMPLING:  # which are refused without sampling
            values[name] = DecodingOptions.model_fields[name].default
    return checked(DecodingOptions, {**values, **changes})


class Generator(LoadedModel):
    """A trained language model, its tokenizer and its settings."""

    model: LanguageModel[Any]
    reads = "running text"

    def __init__(self, model: Model, tokenizer: Tokenizer, configuration: Configuration, device: torch.device) -> None:
        """Use a loaded model; `Generator.load` loads one."""
        assert isinstance(model, LanguageModel) and isinstance(configuration.model, LanguageShape)
        super().__init__(model, tokenizer, configuration, device)
        self.backwards = configuration.model.backwards
        """Whether the model reads texts from their end, and so writes the text before a prompt."""
        self._step = -1 if self.backwards else 1
        self._word_starts = torch.tensor(tokenizer.target_word_starts())
        self._next_number = 0

    @overload
    def generate(
        self, prompt: str = "", options: DecodingOptions | None = None, *, max_tokens: int | None = None, **changes: Any
    ) -> Generated: ...
    @overload
    def generate(
        self,
        prompt: Iterable[str],
        options: DecodingOptions | None = None,
        *,
        max_tokens: int | None = None,
        **changes: Any,
    ) -> list[Generated]: ...
    def generate(
        self,
        prompt: str | Iterable[str] = "",
        options: DecodingOptions | None = None,
        *,
        max_tokens: int | None = None,
        **changes: Any,
    ) -> Generated | list[Generated]:
        """Continue one prompt or several; an empty prompt starts a new text.

        Args:
            prompt: one prompt, or any number of prompts, which give a list. A model that reads backwards takes the end
                of a text, and writes the text before it.
            options: how to write; the run's own settings by default.
            max_tokens: the largest number of tokens after a prompt; see `stream`.
            changes: single options by name, such as `temperature=0.7` or `nbest=3`. Each call of sampling gives new
                texts; with a `seed` it starts again.

        Raises:
            UserError: an option has a wrong name or value.
        """
        has_seed = "seed" in changes or (options is not None and "seed" in options.model_fields_set)
        if changes:
            options = generation_options(options or self.configuration.decoding, changes)
        prompts = text_list(prompt)
        # With a seed, equal calls give equal samples; without one, the numbers continue from call to call.
        first = self._next_number
        if has_seed:
            first = 0
        generated = list(self.stream(prompts, options, max_tokens=max_tokens, first=first))
        if not has_seed:
            self._next_number += len(prompts)
        if isinstance(prompt, str):
            return generated[0]
        return generated

    def stream(
        self,
        prompts: Iterable[str],
        options: DecodingOptions | None = None,
        *,
        max_tokens: int | None = None,
        first: int = 0,
        on_done: Callable[[int], None] | None = None,
    ) -> Iterator[Generated]:
        """Continue any number of prompts, in order.

        Args:
            prompts: the prompts.
            options: how to write; the run's own settings by default.
            max_tokens: the largest number of tokens after a prompt; `options.max_length_extra` by default.
            first: the number of the first prompt, on which sampling depends together with the seed.
            on_done: called with 1 after each prompt.

        Raises:
            UserError: a prompt is too long.
        """
        refuse_one_text(prompts)
        options = options or self.configuration.decoding
        max_new_tokens = max_tokens or options.max_length_extra
        for number, prompt in enumerate(prompts, first):
            prefix = self._ids(prompt)
            if len(prefix) > LONGEST_PROMPT:
                what = f"prompt {number + 1} has {len(prefix):,} tokens, more than {LONGEST_PROMPT:,}"
                raise UserError(what, fix="Give its end.")
            # The limit of a search counts the prompt, that of the user does not.
            limits = {"max_length_ratio": 0.0, "max_length_extra": len(prefix) + max_new_tokens}
            (hypotheses,) = search(
                self.model,
                empty_source(1).to(self.device),
                options.model_copy(update=limits),
                self._word_starts,
                [number],
                prefix=prefix,
            )
            nbest = [self._continuation(prompt, prefix, hypothesis, max_new_tokens) for hypothesis in hypotheses]
            yield Generated(prompt, nbest, self, self.backwards)
            if on_done:
                on_done(1)

    def score(self, text: str) -> TextScore:
        """Return the probability of a text, piece by piece."""
        encoded = EncodedTexts.encode([text], self.tokenizer, backwards=self.backwards)
        ids = torch.from_numpy(encoded.ids).long()[None].to(self.device)  # [1, T]
        length = stride(self.model, WINDOW)
        # Parts of `length` tokens, as logits of all tokens at once might not fit in memory.
        batches = map(partial(Batch, empty_source(1)), ids[:, :-1].split(length, 1), ids[:, 1:].split(length, 1))
        token_log_probs, correct = [], 0
        with torch.inference_mode():
            for features, labels in readings(self.model, batches):
                log_probs = self.model.output(features[0]).float().log_softmax(-1)
                token_log_probs += log_probs.gather(1, labels[0][:, None])[:, 0].tolist()
                correct += int((log_probs.argmax(-1) == labels[0]).sum())
        names = self.tokenizer.target_pieces(encoded.ids[1:].tolist())
        pieces = list(map(Piece, names, token_log_probs))
        return TextScore(-sum(token_log_probs), correct, len(token_log_probs), encoded.size, text=text, pieces=pieces)

    def evaluate(self, texts: Sequence[str]) -> TextScores:
        """Return the perplexity of texts, read one after the other as in validation."""
        refuse_one_text(texts)
        encoded = EncodedTexts.encode(texts, self.tokenizer, backwards=self.backwards)
        started = time.perf_counter()
        scores = mean_scores(score_texts(self.model, encoded, self.configuration.training.window, self.device))
        return replace(scores, seconds=time.perf_counter() - started)

    @torch.inference_mode()
    def considered(self, tokens: Sequence[int], first: int, count: int) -> list[list[Piece]]:
        """Return the most probable pieces at each of the tokens from number `first` on, and at the end.

        Padding, start and unknown token are never written, and so never among them.
        """
        never = [SPECIAL.pad, SPECIAL.unknown, SPECIAL.start]
        state, candidates = self.model.start(self.model.encode(empty_source(1).to(self.device))), []
        for number, token in enumerate([SPECIAL.start, *tokens]):
            between_steps()
            logits, state = self.model.step(torch.tensor([token], device=self.device), state)
            if number >= first:
                log_probs = logits[0].float().log_softmax(-1)
                log_probs[never] = -torch.inf
                best = log_probs.topk(min(count, len(log_probs) - len(never)))
                names = self.tokenizer.target_pieces(best.indices.tolist())
                candidates.append(list(map(Piece, names, best.values.tolist())))
        return candidates

    def _ids(self, text: str) -> list[int]:
        """Return the ids of a text in the order in which the model reads."""
        return self.tokenizer.encode_target([text])[0][:: self._step]

    def _text(self, ids: list[int]) -> str:
        """Return the text of ids in the order in which the model reads."""
        return self.tokenizer.decode(ids[:: self._step])

    def _continuation(
        self, prompt: str, prefix: list[int], hypothesis: Hypothesis, max_new_tokens: int
    ) -> Continuation:
        """Return a hypothesis that continues a prompt with the ids `prefix` by at most `max_new_tokens` tokens."""
        ids, prompt = hypothesis.tokens, prompt.strip()
        decoded_prompt, full_text = self._text(prefix), self._text(ids)
        # Decoding normalizes spaces and characters: the text keeps the original prompt.
        if self.backwards and full_text.endswith(decoded_prompt):
            full_text = full_text.removesuffix(decoded_prompt) + prompt
        elif not self.backwards and full_text.startswith(decoded_prompt):
            full_text = prompt + full_text.removeprefix(decoded_prompt)
        ended = len(ids) - len(prefix) < max_new_tokens
        if ended:
            ids = hypothesis.with_end
        new_ids = ids[len(prefix) :]
        log_probs = hypothesis.token_log_probabilities[len(prefix) :]
        written = list(map(Piece, self.tokenizer.target_pieces(new_ids), log_probs[: len(new_ids)]))
        return Continuation(full_text, written, ended, hypothesis)


class Piece(NamedTuple):
    """A piece of a word, with its probability."""

    text: str
    """The piece in the vocabulary, `▁` for a space."""
    log_probability: float
    """The log-probability given all pieces before it, in nats."""


@dataclass(frozen=True)
class Continuation:
    """One continuation of a prompt."""

    text: str
    """The prompt and its continuation, in reading order."""
    written: list[Piece]
    """The pieces after the prompt, in the order in which the model wrote them; the end token last, if there is one."""
    ended: bool
    """Whether the text has an end token, and was not cut off at the limit."""
    hypothesis: Hypothesis = field(repr=False)
    """The prompt and its continuation, in the order in which the model reads."""

    @property
    def score(self) -> float:
        """The value that ranks continuations: the log-probability of the whole text after the length penalty."""
        return self.hypothesis.score

    @property
    def log_probability(self) -> float:
        """The log-probability of the continuation, given the prompt, in nats."""
        return sum(piece.log_probability for piece in self.written)


@dataclass(frozen=True)
class Generated(NBest):
    """The continuations of one prompt."""

    prompt: str
    nbest: list[Continuation]
    """The continuations, the best first, at least one."""
    _generator: Generator = field(repr=False, compare=False)
    backwards: bool = False
    """Whether the model writes from the end of a text to its beginning."""

    def considered(self, count: int) -> list[list[Piece]]:
        """Return the most probable pieces at each step of the best continuation, the most probable first."""
        best = self.nbest[0]
        prompt_length = len(best.hypothesis.tokens) - (len(best.written) - best.ended)
        return self._generator.considered(best.hypothesis.tokens, prompt_length, count)[: len(best.written)]

    def _repr_html_(self) -> str:
        """Show the best continuation in a notebook, with the probability of each piece as a tooltip."""
        best = self.nbest[0]
        continuation = []
        for piece in best.written[: len(best.written) - best.ended]:
            probability = percent(math.exp(piece.log_probability))
            continuation.append(f'<b title="{probability}">{escape(piece.text.replace("▁", " "))}</b>')
        parts = [escape(self.prompt), *continuation]
        if self.backwards:
            parts = [*continuation[::-1], " ", escape(self.prompt)]
        return f"<p>{''.join(parts)}</p>"


@dataclass(frozen=True)
class TextScore(TextScores):
    """The probability of a text under a language model."""

    text: str = ""
    pieces: list[Piece] = field(default_factory=list)
    """The pieces in the order in which the model reads, the end token last."""

    @property
    def log_probability(self) -> float:
        """The log-probability of the text, in nats."""
        return -self.nats
