"""The recurrent encoder-decoder as a `SequenceModel`."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from translucid.kernels.dropout import Dropout
from translucid.layers.embedding import Embedding, output_projection, token_embeddings
from translucid.layers.positions import NoPositions
from translucid.models.language.bilstm import with_elmo
from translucid.models.model_options import RecurrentOptions
from translucid.models.protocol import Maps
from translucid.models.recurrent.bahdanau import BahdanauDecoder
from translucid.models.recurrent.encoder import RecurrentEncoder, RecurrentMemory
from translucid.models.recurrent.luong import LuongDecoder
from translucid.models.recurrent.plain import PlainDecoder
from translucid.models.recurrent.state import RecurrentDecoding


class RecurrentModel(RecurrentDecoding):
    """Embeddings, an encoder, a decoder with or without attention, and an output projection.

    Its one attention map, if it has attention, is `decoder.0.cross` [B, 1, T, S].
    """

    decoder: PlainDecoder | BahdanauDecoder | LuongDecoder

    def __init__(self, source_vocabulary: int, target_vocabulary: int, options: RecurrentOptions) -> None:
        """Build a model with fresh weights.

        Raises:
            ValueError: the options share embeddings between two different vocabularies.
        """
        super().__init__()
        o = self.options = options
        source, target = token_embeddings(source_vocabulary, target_vocabulary, o.width, shared=o.share_embeddings)
        self.source_embedding = with_elmo(Embedding(source, NoPositions(), o.dropout), o)
        self.target_embedding = Embedding(target, NoPositions(), o.dropout)
        self.encoder = RecurrentEncoder(o)
        self.decoder = _decoder(o)
        self.dropout = Dropout(o.dropout)
        self.output = output_projection(target, tied=o.tie_output)

    def encode(self, source: Tensor, maps: Maps | None = None, lengths: Sequence[int] = ()) -> RecurrentMemory:
        """Read a batch of sources with these lengths, which save counting tokens on a GPU."""
        return self.encoder(self.source_embedding(source), self.source_mask(source), lengths)

    def read(self, embedded: Tensor, mask: Tensor, maps: Maps | None = None) -> RecurrentMemory:
        """Read embedded sources [B, S, D] into states [B, S, D]."""
        return self.encoder(embedded, mask)


def _decoder(options: RecurrentOptions) -> PlainDecoder | BahdanauDecoder | LuongDecoder:
    if options.attention == "none":
        return PlainDecoder(options)
    if options.attention == "bahdanau":
        return BahdanauDecoder(options)
    return LuongDecoder(options)
