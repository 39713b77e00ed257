"""Image captioning: `Captioner.load(run).caption(image)`, and captions with the attention of each word on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bitext.reading import read_at_most, reading
from translucid.api.loaded_model import LoadedModel
from translucid.captions.image_encoder import ImageEncoder
from translucid.captions.image_files import MAX_BYTES
from translucid.captions.image_store import BATCH_SIZE
from translucid.captions.options import CaptioningShape
from translucid.captions.pixels import Picture, pixels, read_image
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.decoding.decoding_options import DecodingOptions
from translucid.decoding.hypothesis import Hypothesis, NBest, distinct_texts
from translucid.decoding.search import device_of, evaluating, search
from translucid.ground.iteration import batched
from translucid.inspection.lens import DecoderLens, Lens, read_lens, reading_layer, state_points
from translucid.kernels.upload import upload
from translucid.runs.configuration import Configuration, checked

if TYPE_CHECKING:
    from PIL.Image import Image

    from translucid.captions.saliency_overlay import AttentionResult
    from translucid.decoding.trace import BeamTrace
    from translucid.models.protocol import Maps, Model, SequenceModel


ROWS = 256
"""The number of images in a batch, times the hypotheses for each."""
WINDOW = 256
"""The number of images that are captioned together; it bounds the memory of a long job."""


class Captioner(LoadedModel):
    """A trained image captioning model, its tokenizer and its settings."""

    model: SequenceModel
    reads = "images"

    def __init__(self, model: Model, tokenizer: Tokenizer, configuration: Configuration, device: torch.device) -> None:
        """Use a loaded model; `Captioner.load` loads one."""
        assert isinstance(configuration.model, CaptioningShape)
        super().__init__(model, tokenizer, configuration, device)
        self.size = configuration.model.image_encoder.size
        """The side of the square, in pixels, to which every image is scaled."""
        self.grid = configuration.model.grid
        self._word_starts = torch.tensor(tokenizer.target_word_starts(), device=device)

    def picture(self, image: str | Path | bytes | Image, name: str = "image") -> Picture:
        """Read an image and scale it for the model.

        Args:
            image: a file, the content of a file, or an image of Pillow.
            name: the name of the image for messages, if it is not a file.

        Raises:
            UserError: the image can't be read, or is too large.
        """
        if isinstance(image, str | Path):
            name = str(image)
            with reading(name):
                image = read_at_most(Path(image), MAX_BYTES)
        pillow_image = read_image(image, name, size=self.size) if isinstance(image, bytes) else image.convert("RGB")
        return Picture(name, pixels(pillow_image, self.size))

    def caption(
        self, image: str | Path | bytes | Image | Picture, options: DecodingOptions | None = None, **changes: Any
    ) -> Caption:
        """Write a caption for an image.

        Args:
            image: a file, the content of a file, an image of Pillow, or a result of `picture`.
            options: how to search; the run's own settings by default.
            changes: single options by name, such as `beam=5` or `nbest=3`.

        Raises:
            UserError: the image can't be read, or an option has a wrong name or value.
        """
        if changes:
            settings = options or self.configuration.decoding
            options = checked(DecodingOptions, {**settings.model_dump(), **changes})
        if not isinstance(image, Picture):
            image = self.picture(image)
        return next(self.stream([image], options))

    def stream(
        self,
        pictures: Iterable[Picture],
        options: DecodingOptions | None = None,
        *,
        first: int = 0,
        on_done: Callable[[int], None] | None = None,
    ) -> Iterator[Caption]:
        """Write captions for any number of images, in order, with memory that does not grow with their number.

        Args:
            pictures: the images.
            options: how to search; the run's own settings by default.
            first: the number of the first image, on which sampling depends together with the seed.
            on_done: called with the number of finished images after each batch.
        """
        options = options or self.configuration.decoding
        for window in batched(pictures, WINDOW):
            encoded: list[Picture] = []
            for batch in batched(window, BATCH_SIZE):
                encoded += self.seen(batch)
            nbest_lists = decode_images(
                self.model,
                (picture.source for picture in encoded),
                options,
                word_starts=self._word_starts,
                on_batch=on_done,
                numbers=range(first, first + len(window)),
            )
            first += len(window)
            nbest_lists = self._distinct(encoded, nbest_lists, options)
            for picture, hypotheses in zip(encoded, nbest_lists, strict=True):
                yield Caption(picture, self._alternatives(hypotheses), self)

    def _alternatives(self, hypotheses: Iterable[Hypothesis]) -> list[AlternativeCaption]:
        """Return hypotheses with their texts."""
        return [AlternativeCaption(self.tokenizer.decode(hypothesis.tokens), hypothesis) for hypothesis in hypotheses]

    def _distinct(
        self, pictures: Sequence[Picture], nbest_lists: Sequence[list[Hypothesis]], options: DecodingOptions
    ) -> list[list[Hypothesis]]:
        """Return the n-best lists of pictures without repeated captions."""

        def text_of(number: int, hypothesis: Hypothesis) -> str:
            return self.tokenizer.decode(hypothesis.tokens)

        def search(numbers: list[int], wider_options: DecodingOptions) -> list[list[Hypothesis]]:
            sources = (pictures[number].source for number in numbers)
            return decode_images(self.model, sources, wider_options, word_starts=self._word_starts)

        return distinct_texts(nbest_lists, options, text_of, search)

    def seen(self, pictures: Sequence[Picture]) -> list[Picture]:
        """Return pictures with the grids of the image encoder, so that it need not encode them again."""
        image_encoder = self.model.source_embedding
        assert isinstance(image_encoder, ImageEncoder)
        encoded, missing = list(pictures), [i for i, picture in enumerate(pictures) if picture.grid is None]
        if missing:
            grids = image_encoder.grids(np.stack([pictures[i].pixels for i in missing]))
            for i, grid in zip(missing, grids, strict=True):
                encoded[i] = pictures[i]._replace(grid=grid)
        return encoded

    def look(self, picture: Picture, tokens: Sequence[int], *, contributions: bool = False) -> AttentionResult:
        """Return the attention of given tokens about an image, by forced decoding; see `caption_attention`."""
        from translucid.captions.saliency_overlay import caption_attention

        return caption_attention(self.model, self.tokenizer, picture, tokens, self.grid, self.device, contributions)

    def inspect(self, picture: Picture, text: str, *, contributions: bool = False) -> AttentionResult:
        """Return the attention of a given caption of an image, by forced decoding; see `caption_attention`."""
        return self.look(picture, self.tokenizer.encode_target([text])[0], contributions=contributions)

    def continued(
        self, picture: Picture, words: str, count: int = 1, options: DecodingOptions | None = None
    ) -> list[AlternativeCaption]:
        """Return captions that begin with given words and go on with each of the `count` most probable pieces."""
        from translucid.decoding.search import continuations

        source = self.source(picture)
        prefix = self.tokenizer.encode_target([words])[0] if words else []
        settings = options or self.configuration.decoding
        hypotheses = continuations(self.model, source, prefix, count, settings, self._word_starts)
        return self._alternatives(hypotheses)

    def trace(self, picture: Picture, beam: int) -> BeamTrace:
        """Caption an image and return the tree of its beam search."""
        from translucid.decoding.search import search
        from translucid.decoding.trace import BeamTrace

        options = self.configuration.decoding.model_copy(update={"beam": beam, "nbest": 1, "sample": False})
        trace = BeamTrace()
        ((best,),) = search(self.model, self.source(picture), options, self._word_starts, trace=trace)
        trace.finish(best.with_end, self.tokenizer.target_pieces)
        return trace

    def source(self, picture: Picture) -> torch.Tensor:
        """Return the model's input for one image [1, ..]."""
        return torch.from_numpy(np.ascontiguousarray(picture.source))[None].to(self.device)

    def lens(self, picture: Picture, text: str | None = None) -> Lens:
        """Return what each decoder layer predicts for each word of a caption, by default of the model's own.

        Raises:
            UserError: the model is no Transformer.
        """
        if text is None:
            tokens = self.caption(picture).nbest[0].hypothesis.tokens
        else:
            (tokens,) = self.tokenizer.encode_target([text])
        return read_lens(self.model, self.tokenizer, self.source(picture), [*tokens, self.model.eos])

    def decoder_lens(self, picture: Picture, options: DecodingOptions | None = None) -> DecoderLens:
        """Return the captions that the decoder writes from each layer of the encoder; `options` as for `caption`.

        Raises:
            UserError: the model is no Transformer.
        """
        layers = list(state_points(self.model, "encoder"))
        captions = []
        for layer in layers:
            with reading_layer(self.model, layer):
                captions.append(self.caption(picture, options).text)
        return DecoderLens(picture.name, layers, captions)

    def can_look(self) -> bool:
        """Whether the model has attention."""
        return self.configuration.model.has_cross_attention


class AlternativeCaption(NamedTuple):
    """One caption of an image."""

    text: str
    hypothesis: Hypothesis

    @property
    def score(self) -> float:
        """The log-probability after the length penalty."""
        return self.hypothesis.score


@dataclass(frozen=True)
class Caption(NBest):
    """The caption of one image."""

    picture: Picture = field(repr=False)
    nbest: list[AlternativeCaption]
    """The captions, the best first, at least one."""
    _captioner: Captioner = field(repr=False, compare=False)

    @property
    def name(self) -> str:
        """The name of the image."""
        return self.picture.name

    @cached_property
    def looked(self) -> AttentionResult:
        """The attention of each word of the best caption, computed on demand by forced decoding."""
        return self._captioner.look(self.picture, self.nbest[0].hypothesis.tokens)

    @property
    def attention(self) -> Maps:
        """Attention weights by name, [1, H, T, S] each; S cells, one row after the other."""
        return {name: weights[None] for name, weights in self.looked.inspected.maps.items()}

    def _repr_html_(self) -> str:
        """Show the caption and the attention of each word in a notebook."""
        if not self.looked.has_attention:
            return f"<p><b>{escape(self.text)}</b></p>"
        from translucid.captions.saliency_overlay import panels

        return f"<p><b>{escape(self.text)}</b></p>{panels(self.looked)}"


def decode_images(
    model: SequenceModel,
    images: Iterable[NDArray[Any]],
    options: DecodingOptions,
    *,
    word_starts: Tensor | None = None,
    on_batch: Callable[[int], None] | None = None,
    numbers: Iterable[int] | None = None,
) -> list[list[Hypothesis]]:
    """Find captions for images: pixels [height, width, 3] uint8, or the grids [S, F] of an image encoder.

    Other arguments and results are those of `TorchEngine`.
    """
    results: list[list[Hypothesis]] = []
    remaining = iter(images)
    remaining_numbers = count() if numbers is None else iter(numbers)
    with evaluating(model):
        while batch := list(islice(remaining, max(1, ROWS // options.rows))):
            source = upload(torch.from_numpy(np.stack(batch)), device_of(model))
            results += search(model, source, options, word_starts, list(islice(remaining_numbers, len(batch))))
            if on_batch:
                on_batch(len(batch))
    return results
