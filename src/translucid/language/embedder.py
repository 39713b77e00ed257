"""Contextual word embeddings: `Embedder.load(run).embed(texts)`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, islice
from typing import Any, Literal, NamedTuple, TypeAlias, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bitext.words import find_sequence
from translucid.api.loaded_model import LoadedModel
from translucid.api.translation import refuse_one_text, text_list
from translucid.data.batching import batches, padded
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.errors import UserError
from translucid.ground.iteration import batched
from translucid.ground.special import SPECIAL
from translucid.language.lstm import Mix
from translucid.language.model import LanguageModel
from translucid.language.options import LanguageShape
from translucid.models.protocol import Model
from translucid.runs.configuration import Configuration

Layer: TypeAlias = int | Literal["mix", "all"] | Mix
"""One layer, where 0 is the embeddings; all layers; or their mean, or their sum weighted by a `Mix`."""

TOGETHER = 256
"""The number of texts that are sorted by length and encoded together."""
TOKENS = 4096
"""The number of tokens in a batch, padding included."""
_EDGES = re.compile(r"^\W+|\W+$")


class Pieces(NamedTuple):
    """The input of the model for a text."""

    ids: list[int]
    first: list[int]
    """For each word, the index of its first piece with a letter or a digit, or of its first piece if there is none."""
    last: list[int]
    """For each word, the index of its last such piece."""


class Neighbor(NamedTuple):
    """A word in a text, and its similarity to another word."""

    similarity: float
    """The cosine of the two vectors."""
    text: int
    """The number of the text, from 0."""
    place: int
    """The number of the word in the text, from 0."""
    words: list[str]
    """All words of the text."""


class Embedder(LoadedModel):
    """A trained language model that returns a contextual embedding of each word.

    Words are separated by white space. The embedding of a word is the state of the forward model after its last piece,
    next to the state of the backward model after its first: both depend on the word and on all text on their side of it
    (Peters et al. 2018, arXiv 1802.05365, section 3.2). Punctuation attached to a word does not delay its state. A
    model of one direction gives one state.
    """

    model: LanguageModel[Any]
    reads = "running text"

    def __init__(self, model: Model, tokenizer: Tokenizer, configuration: Configuration, device: torch.device) -> None:
        """Use a loaded model; `Embedder.load` loads one."""
        assert isinstance(model, LanguageModel) and isinstance(configuration.model, LanguageShape)
        super().__init__(model, tokenizer, configuration, device)
        self.backwards = [configuration.model.backwards]
        """For each direction, whether the model reads from the end."""
        if configuration.model.directions == 2:
            self.backwards = [False, True]
        self._has_letters = [any(map(str.isalnum, piece)) for piece in tokenizer.target_vocabulary]
        # One pass over an empty text shows the widths.
        self.widths = [states.size(-1) for states in self._states([Pieces([], [], [])], None)[0]]
        """The width of the vectors of each layer."""

    @overload
    def embed(self, texts: str, layers: Layer = "mix") -> NDArray[np.float32]: ...
    @overload
    def embed(self, texts: list[str], layers: Layer = "mix") -> list[NDArray[np.float32]]: ...
    def embed(self, texts: str | list[str], layers: Layer = "mix") -> NDArray[np.float32] | list[NDArray[np.float32]]:
        """Return the vectors of the words of each text [words, D], or [words, layers, D] of all layers.

        Args:
            texts: one text, which gives its vectors, or several, which give a list.
            layers: the number of a layer, `all`, or the mean of all.

        Raises:
            TypeError: the argument is not text.
            UserError: there is no such layer, or layers of different widths can't be combined.
        """
        if isinstance(texts, str):
            return self.embed([texts], layers)[0]
        texts = text_list(texts)
        self.check(layers)
        vectors: list[NDArray[np.float32]] = [np.empty(0, np.float32)] * len(texts)
        pieces = self._pieces(texts)
        lengths = [len(text.ids) + 1 for text in pieces]
        order = sorted(range(len(texts)), key=lambda number: -lengths[number])
        layer = layers if isinstance(layers, int) else None
        for batch in batches(order, lengths, TOKENS):
            states = self._states(list(map(pieces.__getitem__, batch)), layer)
            for number, text_states in zip(batch, states, strict=True):
                vectors[number] = self._combine(text_states, layers).cpu().numpy()
        return vectors

    def check(self, layers: Layer) -> None:
        """Check that there are such layers; errors as for `embed`."""
        count = len(self.widths)
        if isinstance(layers, int):
            if not 0 <= layers < count:
                raise UserError(f"there is no layer {layers}", fix=f"Choose from 0 to {count - 1}.")
        elif len(set(self.widths)) > 1:
            widths = ", ".join(map(str, self.widths))
            raise UserError(f"layers of different widths ({widths}) can't be put together", fix="Choose one of them.")

    def nearest(
        self,
        sentence: str,
        word: str,
        among: Iterable[str],
        *,
        layer: Layer = "mix",
        top: int = 10,
        same: bool = False,
        on_done: Callable[[int], None] = lambda _: None,
    ) -> list[Neighbor]:
        """Return the words of texts that are most similar to a word of a sentence, each in its context, nearest first.

        Args:
            sentence: the context of the word.
            word: one of the sentence's words, with or without attached punctuation; the first that matches.
            among: any number of texts.
            layer: see `embed`.
            top: the number of words.
            same: whether to return only occurrences of the same word.
            on_done: called with the number of texts that were read since the last call.

        Raises:
            UserError: the word is not in the sentence, or there is no such layer.
        """
        words = sentence.split()
        positions = find_sequence([word], words) or _positions(words, word)
        if not positions:
            raise UserError(f"the word {word!r} is not in the sentence", fix=f"Choose one of: {' '.join(words)}")
        refuse_one_text(among)
        if layer == "all":
            raise UserError("one vector is wanted of each word, not one of each layer", fix="Choose a layer, or mix.")
        query = _unit(self.embed([sentence], layer)[0][positions[0]])
        best: list[Neighbor] = []
        texts_read = 0
        for chunk in batched(among, TOGETHER):
            # With `same`, only texts that have the word are embedded.
            texts: dict[int, str] = {}
            for n, text in enumerate(chunk):
                if not same or _positions(text.split(), word):
                    texts[n] = text
            for n, vectors in zip(texts, self.embed([*texts.values()], layer), strict=True):
                text_words = texts[n].split()
                similarity = _unit(vectors) @ query
                candidates: Sequence[int] = range(len(text_words))
                if same:
                    candidates = _positions(text_words, word)
                for position in sorted(candidates, key=lambda position: -similarity[position])[:top]:
                    best.append(Neighbor(float(similarity[position]), texts_read + n, position, text_words))
            best = sorted(best, key=lambda neighbor: -neighbor.similarity)[:top]
            texts_read += len(chunk)
            on_done(len(chunk))
        return best

    def _pieces(self, texts: Sequence[str]) -> list[Pieces]:
        """Encode texts word by word, which gives the same pieces as the whole text."""
        words = list(map(str.split, texts))
        # One call for all words: SentencePiece encodes them in several threads.
        encoded = iter(self.tokenizer.encode_target(list(chain.from_iterable(words))))
        pieces = []
        for text_words in words:
            text = Pieces([], [], [])
            for ids in islice(encoded, len(text_words)):
                ids = ids or [SPECIAL.unknown]  # the tokenizer may skip all characters of a word
                with_letters = [index for index, piece in enumerate(ids) if self._has_letters[piece]] or range(len(ids))
                text.first.append(len(text.ids) + with_letters[0])
                text.last.append(len(text.ids) + with_letters[-1])
                text.ids.extend(ids)
            pieces.append(text)
        return pieces

    @torch.inference_mode()
    def _states(self, texts: Sequence[Pieces], layer: int | None) -> list[list[Tensor]]:
        """Return the states at the words of each text [words, D], of one layer or of each."""
        sides = []
        for backwards in self.backwards:
            step = -1 if backwards else 1
            inputs = [[SPECIAL.start, *text.ids[::step]] for text in texts]
            sides.append(padded(inputs, SPECIAL.pad))
        ids = torch.stack(sides, 1).squeeze(1)  # [B, 2, T] or [B, T]
        reading, _ = self.model.read_on(ids.to(self.device), self.model.begin(len(texts), self.device))
        layers = reading.layers
        if layer is not None:
            layers = [layers[layer]]
        if len(sides) == 1:
            layers = [states[:, None] for states in layers]
        # Each layer is [B, directions, T, D] now.
        by_text = []
        for row, text in enumerate(texts):
            positions = []
            for backwards in self.backwards:
                # After the start token, piece i of n is at i + 1, or at n - i in the backward direction.
                if backwards:
                    index = len(text.ids) - torch.tensor(text.first, dtype=torch.long)
                else:
                    index = 1 + torch.tensor(text.last, dtype=torch.long)
                positions.append(index.to(self.device))
            text_states = []
            for states in layers:
                sides = [states[row, side, index] for side, index in enumerate(positions)]
                text_states.append(torch.cat(sides, -1))
            by_text.append(text_states)
        return by_text

    @torch.inference_mode()
    def _combine(self, states: list[Tensor], layers: Layer) -> Tensor:
        """Combine the states of the layers at the words of a text [words, D]."""
        if isinstance(layers, int):
            return states[0]
        if layers == "all":
            return torch.stack(states, 1)
        if not isinstance(layers, Mix):
            layers = Mix(len(states))
        return layers.to(self.device)(states)


def bare(word: str) -> str:
    """Return a word casefolded and without punctuation at its ends; punctuation alone is unchanged."""
    return _EDGES.sub("", word).casefold() or word


def _positions(words: Sequence[str], word: str) -> list[int]:
    """Return the positions of a word among others, whatever its case and the punctuation attached to it."""
    bare_word = bare(word)
    return [i for i, candidate in enumerate(words) if bare(candidate) == bare_word]


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale vectors [.., D] to length 1."""
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)
