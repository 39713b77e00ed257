"""The Transformer of "Attention Is All You Need" (Vaswani et al. 2017, arXiv 1706.03762)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from translucid.attention.multi_head import MultiHeadAttention
from translucid.ground.special import SPECIAL, SpecialTokens
from translucid.kernels.attention import SharedMask, share_mask
from translucid.layers.embedding import Embedding, output_projection, token_embeddings
from translucid.layers.feed_forward import FeedForward
from translucid.layers.positions import LearnedPositions, NoPositions, SinusoidalPositions
from translucid.layers.residual import Residual
from translucid.models.captioner_options import CaptioningTransformerOptions
from translucid.models.language.elmo import in_context
from translucid.models.model_options import TransformerOptions
from translucid.models.model_shape import BlocksShape
from translucid.models.protocol import Maps, Memory, SequenceModel

KeyValue = tuple[Tensor, Tensor]


class EncoderBlock(nn.Module):
    """Self-attention, then feed-forward."""

    def __init__(self, options: BlocksShape) -> None:
        super().__init__()
        o = options
        self.self_attention = MultiHeadAttention(o.width, o.heads)
        self.feed_forward = FeedForward(o.width, o.feed_forward, o.nonlinearity)
        self.residuals = nn.ModuleList(Residual(o.width, o.dropout, o.norm) for _ in range(2))

    def forward(self, x: Tensor, mask: SharedMask, maps: Maps | None, name: str) -> Tensor:
        """x [B, S, D], mask [B, 1, 1, S] -> [B, S, D]."""

        def self_attention(x: Tensor) -> Tensor:
            return _noted(self.self_attention(x, x, mask, weights=maps is not None), maps, f"{name}.self")

        x = self.residuals[0](x, self_attention)
        x = self.residuals[1](x, self.feed_forward)
        return x


class DecoderBlock(nn.Module):
    """Causal self-attention, cross-attention over the encoder's output, feed-forward."""

    def __init__(self, options: BlocksShape) -> None:
        super().__init__()
        o = options
        self.self_attention = MultiHeadAttention(o.width, o.heads)
        self.cross_attention = MultiHeadAttention(o.width, o.heads)
        self.feed_forward = FeedForward(o.width, o.feed_forward, o.nonlinearity)
        self.residuals = nn.ModuleList(Residual(o.width, o.dropout, o.norm) for _ in range(3))

    def forward(
        self,
        x: Tensor,
        memory: Tensor | KeyValue,
        mask: SharedMask,
        past: KeyValue | None = None,
        maps: Maps | None = None,
        name: str = "",
    ) -> tuple[Tensor, KeyValue]:
        """All positions x [N, T, D] of targets, or one x [N, 1, D] after those whose keys and values are `past`.

        Targets are padded on the right, so the causal mask alone keeps every real position from looking at padding.

        Args:
            x: what the block below says, of N = k B targets.
            memory: the encoder's output [B, S, D], or its keys and values [B, H, S, d], projected before.
            mask: [B, 1, 1, S], shared by all blocks.
            past: keys and values [N, H, t, d] of this block's self-attention; t may be 0.
            maps: filled with the weights of both attentions, if given.
            name: of this block there.

        Returns:
            [N, T, D], and the keys and values of all positions so far.
        """
        assert past is None or x.size(1) == 1
        weights, seen = maps is not None, past

        def self_attention(x: Tensor) -> Tensor:
            nonlocal seen
            key, value = self.self_attention.project(x)
            if past is not None:
                key, value = torch.cat([past[0], key], dim=2), torch.cat([past[1], value], dim=2)
            seen = key, value
            looked = self.self_attention.look(x, key, value, causal=past is None, weights=weights)
            return _noted(looked, maps, f"{name}.self")

        def cross_attention(x: Tensor) -> Tensor:
            key, value = self.cross_attention.project(memory) if isinstance(memory, Tensor) else memory
            shared = x.reshape(key.size(0), -1, x.size(2))  # the targets of a source one after the other
            output, looked = self.cross_attention.look(shared, key, value, mask, weights=weights)
            if looked is not None:  # [B, H, k T, S] -> [k B, H, T, S]
                looked = looked.unflatten(2, (-1, x.size(1))).transpose(1, 2).flatten(0, 1)
            return _noted((output.view_as(x), looked), maps, f"{name}.cross")

        x = self.residuals[0](x, self_attention)
        x = self.residuals[1](x, cross_attention)
        x = self.residuals[2](x, self.feed_forward)
        assert seen is not None
        return x, seen


@dataclass(frozen=True)
class TransformerState:
    """What the decoder remembers: the keys and values of each layer, never recomputed."""

    length: int
    """Tokens seen so far, t."""
    past: list[KeyValue]
    """Of each layer's self-attention, [N, H, t, d]."""
    memory: list[KeyValue]
    """Of each layer's cross-attention, [N, H, S, d]."""
    mask: Tensor
    """[N, 1, 1, S], where the source may be looked at."""
    sentence: Tensor
    """[N], the sentence that a row belongs to."""

    def select(self, rows: Tensor) -> TransformerState:
        """Reorder, repeat or drop hypotheses."""

        def pick(pairs: list[KeyValue]) -> list[KeyValue]:
            return [(key.index_select(0, rows), value.index_select(0, rows)) for key, value in pairs]

        past, sentence = pick(self.past), self.sentence.index_select(0, rows)
        # Where a beam was only reordered, each row's memory stays where it is. A GPU would have to be waited for, which
        # takes longer than to move the memory.
        if sentence.device.type == "cpu" and torch.equal(sentence, self.sentence):
            return replace(self, past=past)
        mask = self.mask.index_select(0, rows)
        return replace(self, past=past, memory=pick(self.memory), mask=mask, sentence=sentence)


class BlockStacks(SequenceModel[TransformerState]):
    """N encoder blocks and N decoder blocks; who derives from it says what is embedded, and how."""

    def __init__(
        self,
        options: TransformerOptions | CaptioningTransformerOptions,
        source_embedding: nn.Module,
        target_embedding: Embedding,
        special: SpecialTokens[int] = SPECIAL,
    ) -> None:
        """Build the blocks and the output projection with fresh weights."""
        super().__init__(special)
        o = self.options = options
        self.source_embedding, self.target_embedding = source_embedding, target_embedding
        self.encoder = nn.ModuleList(EncoderBlock(o) for _ in range(o.encoder_layers))
        self.decoder = nn.ModuleList(DecoderBlock(o) for _ in range(o.decoder_layers))
        # A stack of pre-norm blocks ends without a norm, so it gets one.
        self.encoder_norm, self.decoder_norm = (
            nn.LayerNorm(o.width) if o.norm == "pre" else nn.Identity() for _ in range(2)
        )
        self.output = output_projection(target_embedding.tokens, tied=o.tie_output)

    def read(self, embedded: Tensor, mask: Tensor, maps: Maps | None = None) -> Memory:
        """Read embedded sources [B, S, D] into states [B, S, D]."""
        x, shared = embedded, share_mask(mask[:, None, None])
        for i, block in enumerate(self.encoder):
            x = block(x, shared, maps, f"encoder.{i}")
        return Memory(self.encoder_norm(x), mask)

    def features(self, memory: Memory, targets_in: Tensor, maps: Maps | None = None) -> Tensor:
        """Return the last decoder states [B, T, D] for target ids [B, T]."""
        mask = share_mask(memory.mask[:, None, None])
        x = self.target_embedding(targets_in)
        for i, block in enumerate(self.decoder):
            x, _ = block(x, memory.states, mask, maps=maps, name=f"decoder.{i}")
        return self.decoder_norm(x)

    def start(self, memory: Memory) -> TransformerState:
        """Project the memory once for all steps to come."""
        blocks = [block for block in self.decoder if isinstance(block, DecoderBlock)]
        projected = [block.cross_attention.project(memory.states) for block in blocks]
        past = [(key[:, :, :0], value[:, :, :0]) for key, value in projected]
        mask = memory.mask[:, None, None]
        return TransformerState(0, past, projected, mask, torch.arange(mask.size(0), device=mask.device))

    def advance(self, tokens: Tensor, state: TransformerState) -> tuple[Tensor, TransformerState]:
        """Feed one token a row [N]: the last decoder states [N, D] and the state after it."""
        x, mask = self.target_embedding(tokens[:, None], state.length), share_mask(state.mask)
        past = []
        for block, seen, memory in zip(self.decoder, state.past, state.memory, strict=True):
            x, seen = block(x, memory, mask, seen)
            past.append(seen)
        return self.decoder_norm(x)[:, 0], replace(state, length=state.length + 1, past=past)


class Transformer(BlockStacks):
    """Blocks between embeddings of ids and an output projection, shared as the options say."""

    options: TransformerOptions

    def __init__(
        self,
        source_vocabulary: int,
        target_vocabulary: int,
        options: TransformerOptions,
        special: SpecialTokens[int] = SPECIAL,
    ) -> None:
        """Build a model with fresh weights.

        Raises:
            ValueError: embeddings are to be shared between two different vocabularies.
        """
        o = options
        source_tokens, target_tokens = token_embeddings(
            source_vocabulary, target_vocabulary, o.width, shared=o.share_embeddings
        )
        source, target = (
            Embedding(tokens, _positions(o), o.dropout, scaled=o.scale_embeddings, nothing=nothing)
            for tokens, nothing in ((source_tokens, None), (target_tokens, special.start if o.zero_start else None))
        )
        super().__init__(o, in_context(source, o), target, special)
        self.max_length = o.longest


def _positions(options: TransformerOptions) -> nn.Module:
    if options.positions == "learned":
        return LearnedPositions(options.max_length, options.width)
    if options.positions == "none":
        return NoPositions()
    return SinusoidalPositions(options.width, options.positions, options.first_position)


def _noted(looked: tuple[Tensor, Tensor | None], maps: Maps | None, name: str) -> Tensor:
    """Take the weights off an attention's result and file them under their name, if they were asked for."""
    output, weights = looked
    if maps is not None and weights is not None:
        maps[name] = weights
    return output
