"""The front door to vectors of words in their context: `Embedder.load(run).embed(texts)`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, overload

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from translucid.api.translation import given_texts, refuse_one_text
from translucid.data.batching import batches, padded
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL
from translucid.interop.run_resolution import resolve_run
from translucid.kernels.devices import choose_device
from translucid.kernels.process import tune_ours
from translucid.layers.mix import Mix
from translucid.models.language import LanguageModel
from translucid.models.language_options import LanguageShape
from translucid.runs.configuration import Configuration
from translucid.runs.run_folder import RunFolder

Layer: TypeAlias = int | Literal["mix", "all"] | Mix
"""One layer, 0 the embeddings; all beside each other; or their mean, or as a `Mix` weighs them."""

TOGETHER = 256
"""Texts that are sorted by length and read at a time."""
TOKENS = 4096
"""Tokens of a batch, padding included."""
_EDGES = re.compile(r"^\W+|\W+$")


class Pieces(NamedTuple):
    """A text as the model reads it."""

    ids: list[int]
    first: list[int]
    """Of each word, the place of its first piece with a letter or a digit; of its first piece, if there is no such."""
    last: list[int]
    """Of each word, the place of its last such piece."""


class Neighbour(NamedTuple):
    """A word in a text, and how alike it is to another one."""

    similarity: float
    """The cosine of both vectors."""
    text: int
    """The number of the text, from 0."""
    place: int
    """The number of the word in the text, from 0."""
    words: list[str]
    """All words of the text."""


class Embedder:
    """A trained language model, asked what it makes of each word where it stands.

    Words are what stands between spaces. The vector of one is the state that the forward model has after its last
    piece, beside the state that the backward model has after its first: what both know of the word and of all text on
    their side of it (Peters et al. 2018, arXiv 1802.05365, section 3.2). Marks that hang on a word are not waited for.
    A model that reads in one direction gives the one state.
    """

    def __init__(
        self, model: LanguageModel[Any], tokenizer: Tokenizer, configuration: Configuration, device: torch.device
    ) -> None:
        """`Embedder.load` is the usual way in."""
        assert isinstance(configuration.model, LanguageShape)
        self.model, self.tokenizer, self.configuration, self.device = model, tokenizer, configuration, device
        self.backwards = [False, True] if configuration.model.directions == 2 else [configuration.model.backwards]
        """Of each direction, whether it reads from the end."""
        self._spoken = [any(map(str.isalnum, piece)) for piece in tokenizer.target_vocabulary]
        self.widths = [states.size(-1) for states in self._states([Pieces([], [], [])], None)[0]]
        """Of the vectors of each layer."""

    @classmethod
    def load(cls, run: str | Path, device: str = "auto") -> Embedder:
        """Load a run folder.

        Args:
            run: a folder, a name, or a Hugging Face folder; see `resolve_run`.
            device: auto, cpu, cuda, cuda:1 or mps.

        Raises:
            UserError: it is not one, or it is damaged, or its model is no language model.
        """
        folder = RunFolder(resolve_run(run))
        configuration = folder.configuration()
        configuration.refuse_other_reader("running text", folder.path)
        tokenizer = folder.tokenizer()
        tune_ours()
        chosen = choose_device(device)
        model = folder.load_sequence_model(configuration, tokenizer).to(chosen)
        assert isinstance(model, LanguageModel)
        return cls(model, tokenizer, configuration, chosen)

    @overload
    def embed(self, texts: str, layers: Layer = "mix") -> NDArray[np.float32]: ...
    @overload
    def embed(self, texts: list[str], layers: Layer = "mix") -> list[NDArray[np.float32]]: ...
    def embed(self, texts: str | list[str], layers: Layer = "mix") -> NDArray[np.float32] | list[NDArray[np.float32]]:
        """Return of each text the vectors of its words [words, D], or [words, layers, D] of all layers.

        Args:
            texts: one, which gives its vectors, or several, which give a list.
            layers: the number of a layer, `all`, or the mean of all.

        Raises:
            TypeError: these are no texts.
            UserError: there is no such layer, or layers of different widths are to be put together.
        """
        if isinstance(texts, str):
            return self.embed([texts], layers)[0]
        texts = given_texts(texts)
        self.check(layers)
        found: list[NDArray[np.float32]] = [np.empty(0, np.float32)] * len(texts)
        pieces = self._pieces(texts)
        lengths = [len(text.ids) + 1 for text in pieces]
        order = sorted(range(len(texts)), key=lambda number: -lengths[number])
        for batch in batches(order, lengths, TOKENS):
            states = self._states([pieces[number] for number in batch], layers if isinstance(layers, int) else None)
            for number, each in zip(batch, states, strict=True):
                found[number] = self._together(each, layers).cpu().numpy()
        return found

    def check(self, layers: Layer) -> None:
        """Check that there are such layers; errors as of `embed`."""
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
    ) -> list[Neighbour]:
        """Return the words of texts that are most like a word of a sentence, each where it stands, the nearest first.

        Args:
            sentence: the word's context.
            word: one of its words, as it is written or without the marks that hang on it; the first that fits.
            among: any number of texts.
            layer: see `embed`.
            top: how many.
            same: look at the same word only.
            on_done: called with the number of texts read since.

        Raises:
            UserError: the word is not in the sentence, or there is no such layer.
        """
        words = sentence.split()
        fitting = [i for i, one in enumerate(words) if one == word] or [
            i for i, one in enumerate(words) if bare(one) == bare(word)
        ]
        if not fitting:
            raise UserError(f"the word {word!r} is not in the sentence", fix=f"Choose one of: {' '.join(words)}")
        refuse_one_text(among)
        if layer == "all":
            raise UserError("one vector is wanted of each word, not one of each layer", fix="Choose a layer, or mix.")
        query = _unit(self.embed([sentence], layer)[0][fitting[0]])
        best: list[Neighbour] = []
        coming = iter(among)
        read = 0
        while chunk := list(islice(coming, TOGETHER)):
            kept = [n for n, text in enumerate(chunk) if not same or bare(word) in map(bare, text.split())]
            for number, vectors in zip(kept, self.embed([chunk[n] for n in kept], layer), strict=True):
                of_text = chunk[number].split()
                similarity = _unit(vectors) @ query
                places = [i for i, one in enumerate(of_text) if not same or bare(one) == bare(word)]
                places = sorted(places, key=lambda place: -similarity[place])[:top]
                best += [Neighbour(float(similarity[place]), read + number, place, of_text) for place in places]
            best = sorted(best, key=lambda one: -one.similarity)[:top]
            read += len(chunk)
            on_done(len(chunk))
        return best

    def _pieces(self, texts: Sequence[str]) -> list[Pieces]:
        """Cut texts into pieces word by word, which come out as those of the whole text do."""
        words = [text.split() for text in texts]
        coming: Iterator[list[int]] = iter(self.tokenizer.encode_target([one for each in words for one in each]))
        found = []
        for each in words:
            text = Pieces([], [], [])
            for own in islice(coming, len(each)):
                own = own or [SPECIAL.unknown]  # a word of characters that the tokenizer passes over
                spoken = [place for place, piece in enumerate(own) if self._spoken[piece]] or range(len(own))
                text.first.append(len(text.ids) + spoken[0])
                text.last.append(len(text.ids) + spoken[-1])
                text.ids.extend(own)
            found.append(text)
        return found

    @torch.inference_mode()
    def _states(self, texts: Sequence[Pieces], layer: int | None) -> list[list[Tensor]]:
        """Return of each text the states at its words [words, D] of one layer, or of each."""
        sides = [
            padded([[SPECIAL.start, *(text.ids[::-1] if back else text.ids)] for text in texts], SPECIAL.pad)
            for back in self.backwards
        ]
        ids = torch.stack(sides, 1) if len(sides) == 2 else sides[0]
        reading, _ = self.model.read_on(ids.to(self.device), self.model.begin(len(texts), self.device))
        layers = reading.layers if layer is None else [reading.layers[layer]]
        layers = [one if len(sides) == 2 else one[:, None] for one in layers]  # [B, directions, T, D]
        found = []
        for row, text in enumerate(texts):
            # The start token stands before both, so that piece i comes at i + 1, or at n - i from the end.
            back = torch.tensor([len(text.ids) - place for place in text.first], dtype=torch.long, device=self.device)
            forth = torch.tensor([1 + place for place in text.last], dtype=torch.long, device=self.device)
            places = [back if one else forth for one in self.backwards]
            found.append([torch.cat([one[row, way, at] for way, at in enumerate(places)], -1) for one in layers])
        return found

    @torch.inference_mode()
    def _together(self, states: list[Tensor], layers: Layer) -> Tensor:
        if isinstance(layers, int):
            return states[0]
        if layers == "all":
            return torch.stack(states, 1)
        mix = layers if isinstance(layers, Mix) else Mix(len(states))
        mixed: Tensor = mix.to(self.device)(states)
        return mixed


def bare(word: str) -> str:
    """Return a word without marks at its ends, in small letters; of marks alone, as it is."""
    return _EDGES.sub("", word).casefold() or word


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return vectors [.., D] of length 1."""
    unit: NDArray[np.float32] = vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)
    return unit
