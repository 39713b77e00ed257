"""The Transformer of "Attention Is All You Need" (Vaswani et al. 2017, arXiv 1706.03762)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

import torch
from torch import Tensor, nn

from translucid.attention.multi_head import MultiHeadAttention
from translucid.attention.points import Point, any_handler
from translucid.attention.tree import KeyValue, Level, Tree
from translucid.kernels.attention import Mask, mask_of_keys, share_mask
from translucid.kernels.packing import Packing, Sentences
from translucid.layers.embedding import Embedding, output_projection, token_embeddings
from translucid.layers.feed_forward import FeedForward
from translucid.layers.positions import LearnedPositions, NoPositions, SinusoidalPositions
from translucid.layers.residual import Residual, final_norm
from translucid.layers.ssru import SSRU
from translucid.models.model_options import TransformerOptions
from translucid.models.model_shape import BlocksShape
from translucid.models.protocol import Memory, SequenceModel

Past: TypeAlias = tuple[Tensor, ...]
"""What a block of the decoder keeps of earlier positions: the keys and values of its self-attention, [N, H, t, d], or
the cell of its SSRU, [N, D]."""
PastT = TypeVar("PastT", KeyValue, Past)


class EncoderBlock(nn.Module):
    """Self-attention, then feed-forward."""

    def __init__(self, options: BlocksShape, name: str) -> None:
        """`name`: that of the block's points, such as `encoder.0`."""
        super().__init__()
        o = options
        self.self_attention = MultiHeadAttention(o.width, o.heads, f"{name}.self", o.head_width)
        self.feed_forward = FeedForward(o.width, o.feed_forward, o.nonlinearity)
        self.residuals = nn.ModuleList(Residual(o.width, o.dropout, o.norm, o.norm_epsilon) for _ in range(2))
        self.after_self = Point(f"{name}.after_self")
        self.at_feed_forward_input = Point(f"{name}.feed_forward_input")
        self.at_feed_forward, self.at_output = Point(f"{name}.feed_forward"), Point(f"{name}.output")

    def forward(self, x: Tensor, mask: Mask) -> Tensor:
        """Map the states x [B, S, D] to states [B, S, D]; `mask` [B, 1, 1, S] hides padding."""
        x = self.after_self(self.residuals[0](x, lambda x: self.self_attention(x, x, mask)))
        x = self.residuals[1](x, self._feed_forward)
        return self.at_output(x)

    def _feed_forward(self, x: Tensor) -> Tensor:
        return self.at_feed_forward(self.feed_forward(self.at_feed_forward_input(x)))


class DecoderBlock(nn.Module):
    """Causal self-attention or an SSRU, then cross-attention over the encoder's output, then feed-forward."""

    self_attention: MultiHeadAttention | None
    """None in a block with an SSRU."""
    ssru: SSRU | None
    """None in a block with self-attention."""

    def __init__(self, options: BlocksShape, name: str) -> None:
        """`name`: that of the block's points, such as `decoder.0`."""
        super().__init__()
        o = options
        self.self_attention = self.ssru = None
        if o.decoder == "ssru":
            self.ssru = SSRU(o.width, f"{name}.ssru")
        else:
            self.self_attention = MultiHeadAttention(o.width, o.heads, f"{name}.self", o.head_width)
        self.cross_attention = MultiHeadAttention(o.width, o.heads, f"{name}.cross", o.head_width)
        self.feed_forward = FeedForward(o.width, o.feed_forward, o.nonlinearity)
        self.residuals = nn.ModuleList(Residual(o.width, o.dropout, o.norm, o.norm_epsilon) for _ in range(3))
        self.after_self, self.after_cross = Point(f"{name}.after_self"), Point(f"{name}.after_cross")
        self.at_feed_forward_input = Point(f"{name}.feed_forward_input")
        self.at_feed_forward, self.at_output = Point(f"{name}.feed_forward"), Point(f"{name}.output")

    def start(self, states: Tensor) -> tuple[KeyValue, Past]:
        """Return the keys and values of the encoder's output [N, S, D], and the past before the first position."""
        key, value = memory = self.cross_attention.project(states)
        if self.ssru is not None:
            return memory, (self.ssru.start(states[:, 0]),)
        return memory, (key[:, :, :0], value[:, :, :0])  # no position yet: [N, H, 0, d]

    def forward(
        self,
        x: Tensor,
        memory: Tensor | KeyValue,
        mask: Mask,
        past: Past | None = None,
        first: int = 0,
        sentences: Sentences | None = None,
        level: Level | None = None,
    ) -> tuple[Tensor, Past]:
        """Compute all positions x [N, T, D] of targets, or one position x [N, 1, D] after those of `past`.

        Targets are padded on the right, so no real position depends on padding.

        Args:
            x: the output of the block below, for N = k B targets.
            memory: the encoder's output [B, S, D], or its keys and values [B, H, S, d] if they are projected already.
            mask: [B, 1, 1, S], shared by all blocks.
            past: what this block keeps of earlier positions.
            first: the position of the first row of x.
            sentences: those of a packed row of targets.
            level: that of the tokens x in their trees, whose keys and values `past` has.

        Returns:
            The output [N, T, D], and what the block keeps of all positions so far.
        """
        assert past is None or x.size(1) == 1

        def mix_positions(x: Tensor) -> Tensor:
            nonlocal past
            output, past = self._mix_positions(x, past, first, sentences, level)
            return output

        def cross_attention(x: Tensor) -> Tensor:
            key, value = self.cross_attention.project(memory) if isinstance(memory, Tensor) else memory
            # The k targets of a source attend together, so its keys need not be repeated: [k B, T, D] -> [B, k T, D].
            queries = x.reshape(key.size(0), -1, x.size(2))
            return self.cross_attention.attend_heads(queries, key, value, mask, first=first).view_as(x)

        def feed_forward(x: Tensor) -> Tensor:
            return self.at_feed_forward(self.feed_forward(self.at_feed_forward_input(x, first)), first)

        x = self.after_self(self.residuals[0](x, mix_positions), first)
        x = self.after_cross(self.residuals[1](x, cross_attention), first)
        x = self.residuals[2](x, feed_forward)
        assert past is not None
        return self.at_output(x, first), past

    def _mix_positions(
        self, x: Tensor, past: Past | None, first: int, sentences: Sentences | None, level: Level | None
    ) -> tuple[Tensor, Past]:
        """Return the output [N, T, D] of the self-attention or the SSRU, and what the block keeps."""
        if self.ssru is not None:
            output, cell = self.ssru(x, None if past is None else past[0], first, sentences)
            return output, (cell,)
        assert self.self_attention is not None
        keys_and_values = None if past is None else (past[0], past[1])
        if level is not None:
            assert keys_and_values is not None
            return self.self_attention.attend_in_tree(x, keys_and_values, level), keys_and_values
        return self.self_attention.attend_with_kv_cache(x, keys_and_values, first, sentences)


@dataclass(frozen=True)
class TransformerState:
    """The state of the decoder: what each layer keeps, which is never recomputed."""

    length: int
    """t, the number of tokens so far."""
    past: Sequence[Past]
    """The keys and values of each layer's self-attention, [N, H, t, d], or the cell of its SSRU, [N, D]."""
    memory: Sequence[KeyValue]
    """The keys and values of each layer's cross-attention, [N, H, S, d]."""
    mask: Tensor
    """[N, 1, 1, S], True where the decoder may attend."""
    sentence: Tensor
    """[N], the index of the sentence that a row belongs to."""
    tree: Tree | None = None
    """The trees of N = B K hypotheses, if their memory has room for L positions: `past` then has keys and values
    [B, H, L K, d], and `memory` and `mask` have B rows."""

    @property
    def tensors(self) -> list[Tensor]:
        """The memory of trees: tensors with a row for each of the B sentences."""
        assert self.tree is not None
        tensors = [self.mask, self.tree.ancestors]
        for key, value in self.memory:
            tensors += [key, value]
        for layer in self.past:
            tensors += [tensor.unflatten(0, (len(self.mask), -1)) if len(layer) == 1 else tensor for tensor in layer]
        return tensors

    def follow(self, after: TransformerState, rows: Tensor) -> None:
        """Continue, in the memory of this state, the hypotheses `rows` [B K] of the state after their next tokens."""
        assert self.tree is not None
        for layer, layer_after in zip(self.past, after.past, strict=True):
            if len(layer) == 1:  # cells of an SSRU are no nodes
                layer[0].copy_(layer_after[0].index_select(0, rows))
        self.tree.follow(rows)

    def select(self, rows: Tensor) -> TransformerState:
        """Return the state of the hypotheses `rows` [N], which may repeat, reorder or drop them."""
        past, sentence = _select(self.past, rows), self.sentence.index_select(0, rows)
        # If a beam was only reordered, every row keeps its memory, which need not be copied. On a GPU, the host would
        # wait for this comparison longer than the copy takes.
        if sentence.device.type == "cpu" and torch.equal(sentence, self.sentence):
            return replace(self, past=past)
        memory, mask = _select(self.memory, rows), self.mask.index_select(0, rows)
        return replace(self, past=past, memory=memory, mask=mask, sentence=sentence)


@dataclass(frozen=True)
class PackedMemory(Memory):
    """The memory of a packed batch, whose sources are one row and whose targets are another."""

    packing: Packing
    """The sentences of both rows."""


class BlockStacks(SequenceModel[TransformerState]):
    """N encoder blocks and N decoder blocks; derived classes provide the embeddings."""

    options: BlocksShape
    has_layer_states = True
    has_trees = True

    def __init__(
        self,
        options: BlocksShape,
        source_embedding: nn.Module,
        target_embedding: Embedding,
    ) -> None:
        """Build the blocks and the output projection with fresh weights."""
        super().__init__()
        o = self.options = options
        self.source_embedding, self.target_embedding = source_embedding, target_embedding
        self.encoder = nn.ModuleList(EncoderBlock(o, f"encoder.{i}") for i in range(o.encoder_layers))
        self.decoder = nn.ModuleList(DecoderBlock(o, f"decoder.{i}") for i in range(o.decoder_layers))
        self.encoder_norm = final_norm(o.width, o.norm, o.norm_epsilon)
        self.decoder_norm = final_norm(o.width, o.norm, o.norm_epsilon)
        self.output = output_projection(target_embedding.tokens, tied=o.tie_output)
        self.encoder_input, self.encoder_output = Point("encoder.input"), Point("encoder.output")
        self.decoder_input, self.decoder_output = Point("decoder.input"), Point("decoder.output")

    def encode_packed(self, source: Tensor, packing: Packing) -> Memory:
        """Read the sources of a packed batch [1, S]."""
        embedded = self.source_embedding(source, sentences=packing.source)
        memory = self.read(embedded, self.source_mask(source), packing.source)
        return PackedMemory(memory.states, memory.mask, packing)

    def read(self, embedded: Tensor, mask: Tensor, sentences: Sentences | None = None) -> Memory:
        """Read embedded sources [B, S, D] into states [B, S, D]; `sentences` are those of a packed row [1, S, D]."""
        x, keys = self.encoder_input(embedded), mask_of_keys(mask, sentences, sentences)
        for block in self.encoder:
            x = block(x, keys)
        return Memory(self.encoder_output(self.encoder_norm(x)), mask)

    def features(self, memory: Memory, targets_in: Tensor) -> Tensor:
        """Return the last decoder states [N, T, D] for target ids [N, T]."""
        targets = len(targets_in) // len(memory.states)  # k per source
        if targets > 1 and any_handler():  # points have one row for each target
            memory = memory.select(torch.arange(len(targets_in), device=targets_in.device) // targets)
        source, sentences = memory.packing if isinstance(memory, PackedMemory) else (None, None)
        mask = mask_of_keys(memory.mask, sentences, source)
        x = self.decoder_input(self.target_embedding(targets_in, sentences=sentences))
        for block in self.decoder:
            x, _ = block(x, memory.states, mask, sentences=sentences)
        return self.decoder_output(self.decoder_norm(x))

    def start(self, memory: Memory) -> TransformerState:
        """Return the state before the first token; the memory is projected here, once for all steps."""
        projected, past = [], []
        for block in self.decoder:
            assert isinstance(block, DecoderBlock)
            keys_and_values, layer_past = block.start(memory.states)
            projected.append(keys_and_values)
            past.append(layer_past)
        mask = memory.mask[:, None, None]
        return TransformerState(0, past, projected, mask, torch.arange(mask.size(0), device=mask.device))

    def start_trees(self, memory: Memory, beam: int, length: int) -> TransformerState:
        """Return the state before the first tokens of trees, with room for `length` positions of `beam` hypotheses."""
        state = self.start(memory)
        past: list[Past] = []
        for layer in state.past:
            if len(layer) == 1:  # the cell of an SSRU
                past.append((layer[0].repeat_interleave(beam, 0),))
            else:
                sentences, heads, _, width = layer[0].shape
                key, value = (layer[0].new_zeros(sentences, heads, length * beam, width) for _ in range(2))
                past.append((key, value))
        tree = Tree.begin(len(memory.states), beam, length, memory.states.device)
        return replace(state, past=past, tree=tree)

    def resume(self, memory: Memory, tokens: Tensor) -> tuple[Tensor, TransformerState]:
        """Feed a prefix [N, T], all positions at once; return the features [N, T, D] and the state after it."""
        state = self.start(memory)
        x, mask = self.decoder_input(self.target_embedding(tokens)), share_mask(state.mask)
        past = []
        for block, keys_and_values in zip(self.decoder, state.memory, strict=True):
            x, new_past = block(x, keys_and_values, mask)
            past.append(new_past)
        return self.decoder_output(self.decoder_norm(x)), replace(state, length=tokens.size(1), past=past)

    def advance(self, tokens: Tensor, state: TransformerState) -> tuple[Tensor, TransformerState]:
        """Feed one token per row [N]; return the last decoder states [N, D] and the state after the token."""
        level = state.tree.grow() if state.tree else None
        x, mask = self.target_embedding(tokens[:, None], state.length, level=level), share_mask(state.mask)
        x = self.decoder_input(x, state.length)
        past = []
        for block, layer_past, memory in zip(self.decoder, state.past, state.memory, strict=True):
            x, new_past = block(x, memory, mask, layer_past, state.length, level=level)
            past.append(new_past)
        features = self.decoder_output(self.decoder_norm(x), state.length)
        return features[:, 0], replace(state, length=state.length + 1, past=past)


class Transformer(BlockStacks):
    """Blocks between embeddings of ids and an output projection; the options say which of them share weights."""

    options: TransformerOptions

    def __init__(self, source_vocabulary: int, target_vocabulary: int, options: TransformerOptions) -> None:
        """Build a model with fresh weights.

        Raises:
            ValueError: the options share embeddings between two different vocabularies.
        """
        o = options
        source_tokens, target_tokens = token_embeddings(
            source_vocabulary, target_vocabulary, o.width, shared=o.share_embeddings
        )
        zero_token = self.special.start if o.zero_start else None
        source = Embedding(source_tokens, _positions(o), o.dropout, scaled=o.scale_embeddings)
        target = Embedding(target_tokens, _positions(o), o.dropout, scaled=o.scale_embeddings, zero_token=zero_token)
        super().__init__(o, o.with_elmo(source), target)
        self.max_length = o.longest

    def source_mask(self, source: Tensor) -> Tensor:
        """Return a mask [B, S], True where there is no padding, and no end token if the model reads none."""
        mask = super().source_mask(source)
        return mask if self.options.source_end else mask & (source != self.eos)


def _positions(options: TransformerOptions) -> nn.Module:
    if options.positions == "learned":
        return LearnedPositions(options.max_length, options.width)
    if options.positions == "none":
        return NoPositions()
    return SinusoidalPositions(options.width, options.positions, options.first_position)


def _select(layers: Sequence[PastT], rows: Tensor) -> list[PastT]:
    selected = []
    for tensors in layers:
        selected.append(tuple(tensor.index_select(0, rows) for tensor in tensors))
    return selected  # type: ignore[return-value]
