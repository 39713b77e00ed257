"""Recurrent encoder-decoders: without attention, with that of Bahdanau et al. 2015, or with that of Luong et al. 2015.

Read `RecurrentEncoder`, then `BahdanauDecoder` or `LuongDecoder` next to its paper (arXiv 1409.0473, section 3.1 and
appendix A.2; arXiv 1508.04025). `RecurrentModel` combines encoder and decoder.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from translucid.attention.attend import attend
from translucid.attention.local import PredictiveWindow
from translucid.attention.points import Point
from translucid.attention.scores import Concat, Dot, General, Score
from translucid.kernels.dropout import Dropout
from translucid.kernels.linear import Linear
from translucid.layers.embedding import Embedding, output_projection, token_embeddings
from translucid.layers.positions import NoPositions
from translucid.layers.recurrent import Cells, Recurrence
from translucid.models.model_options import RecurrentOptions
from translucid.models.protocol import Memory, SequenceModel
from translucid.models.user_code import load_score

CROSS = "decoder.0.cross"
"""The name of the attention and its map, the weights [N, 1, T, S]."""
OUTPUT = "decoder.0.output"
"""The name of the point of the hidden states [N, T, D] of the last layer. Replacing one changes what is computed from
it at its own position; the recurrence continues from the original state."""


@dataclass(frozen=True)
class RecurrentMemory(Memory):
    """Encoder outputs y [B, S, D], the mask [B, S], and the first states of the decoder."""

    first: Cells
    """The decoder's first states, each [L, B, D]."""

    def select(self, rows: Tensor) -> RecurrentMemory:
        """Return the memory of the sentences `rows` [N]."""
        first = tuple(part.index_select(1, rows) for part in self.first)
        return RecurrentMemory(self.states.index_select(0, rows), self.mask.index_select(0, rows), first)

    def joined(self, others: Sequence[RecurrentMemory]) -> RecurrentMemory:
        """Return the memory of these sentences, followed by those of others."""
        memory = super().joined(others)
        parts = zip(self.first, *(other.first for other in others), strict=True)
        return RecurrentMemory(memory.states, memory.mask, tuple(torch.cat(part, 1) for part in parts))


@dataclass(frozen=True)
class RecurrentState:
    """The recurrent states, and the parts that stay the same for a sentence."""

    cells: Cells
    """The recurrent states of all layers, each [L, N, D]."""
    memory: Tensor
    """[N, S, D], the encoder's outputs: the values of the attention."""
    keys: Tensor
    """[N, S, D], the keys of the alignment score, computed from the encoder's outputs."""
    mask: Tensor
    """[N, 1, S], True where the decoder may attend."""
    sentence: Tensor
    """[N], the index of the sentence that a row belongs to."""
    feed: Tensor | None = None
    """[N, D], the attentional state of the step before, with input feeding."""
    length: int = 0
    """t, the number of tokens so far."""

    def select(self, rows: Tensor) -> RecurrentState:
        """Return the state of the hypotheses `rows` [N], which may repeat, reorder or drop them."""
        feed = self.feed
        if feed is not None:
            feed = feed.index_select(0, rows)
        cells = tuple(part.index_select(1, rows) for part in self.cells)
        sentence = self.sentence.index_select(0, rows)
        # If a beam was only reordered, every row keeps its memory, which need not be copied. On a GPU, the host would
        # wait for this comparison longer than the copy takes.
        if sentence.device.type == "cpu" and torch.equal(sentence, self.sentence):
            return replace(self, cells=cells, feed=feed)
        memory = keys = self.memory.index_select(0, rows)
        if self.keys is not self.memory:  # a dot product compares with the encoder's outputs themselves
            keys = self.keys.index_select(0, rows)
        mask = self.mask.index_select(0, rows)
        return RecurrentState(cells, memory, keys, mask, sentence, feed, self.length)

    def after(self, words: int, cells: Cells, feed: Tensor | None = None) -> RecurrentState:
        """Return the state after this number of words, with new recurrent states."""
        return replace(self, cells=cells, feed=feed, length=self.length + words)


class RecurrentEncoder(nn.Module):
    """y_s = [forward h_s; backward h_s] (Bahdanau et al. 2015, arXiv 1409.0473, section 3.2), or one direction only."""

    def __init__(self, options: RecurrentOptions) -> None:
        super().__init__()
        o = options
        self.recurrence = Recurrence(
            o.cell, o.width, o.width, o.layers, bidirectional=o.bidirectional, dropout=o.dropout
        )
        self.first_state = o.first_state
        parts = 2 if o.cell == "lstm" else 1  # an LSTM has a hidden state and a cell
        if o.first_state == "last":
            parts = 0
        self.bridges = nn.ModuleList(Linear(o.width, o.width) for _ in range(parts))
        self.at_input, self.at_output = Point("encoder.input"), Point("encoder.output")

    def forward(self, x: Tensor, mask: Tensor, lengths: Sequence[int] = ()) -> RecurrentMemory:
        """Read embedded sources x [B, S, D] with their mask [B, S]; `lengths` are those of `SequenceModel.encode`.

        The decoder's first hidden state is tanh(W h) of the encoder's last one (section A.2.2 of the paper), for each
        layer and from both directions. The cell of an LSTM, which is unbounded, is mapped without tanh. Other papers
        take h itself (Sutskever et al. 2014, arXiv 1409.3215), or, instead of h and in all layers, the mean of the
        outputs (Sennrich et al. 2017, arXiv 1703.04357, equation 1).
        """
        lengths_on_host = torch.tensor(lengths) if lengths else mask.sum(1).cpu()
        outputs, last = self.recurrence.read(self.at_input(x), lengths_on_host)
        outputs = self.at_output(outputs)
        if self.first_state == "last":
            return RecurrentMemory(outputs, mask, last)
        if self.first_state == "mean":
            mean = outputs.sum(1) / mask.sum(1, keepdim=True)  # [B, D]; outputs are zero at padding
            last = tuple(mean.expand_as(part) for part in last)
        hidden, *cell = (bridge(part) for bridge, part in zip(self.bridges, last, strict=True))
        return RecurrentMemory(outputs, mask, (torch.tanh(hidden), *cell))


class PlainDecoder(nn.Module):
    """h_t = f(h_{t-1}, E w_{t-1}) (Sutskever et al. 2014, arXiv 1409.3215)."""

    def __init__(self, options: RecurrentOptions) -> None:
        super().__init__()
        o = options
        self.recurrence = Recurrence(o.cell, o.width, o.width, o.layers, dropout=o.dropout)
        self.at_output = Point(OUTPUT)

    def forward(self, x: Tensor, state: RecurrentState) -> tuple[Tensor, RecurrentState]:
        """Continue from `state` over embedded words x [N, T, D]; return h [N, T, D] and the state after."""
        hidden, cells = self.recurrence(x, state.cells)
        return self.at_output(hidden, state.length), state.after(x.size(1), cells)


class BahdanauDecoder(nn.Module):
    """Attend with the previous state, then read the last word together with the context, then predict the next word.

        alpha_i = softmax(e_i),  e_ij = v^T tanh(W s_{i-1} + U y_j)     equation 6
        c_i = sum_j alpha_ij y_j                                        equation 5
        s_i = f(s_{i-1}, [E w_{i-1}; c_i])                              section 3.1, f an LSTM or GRU
        t_i = max over pairs of U_o s_i + V_o E w_{i-1} + C_o c_i       equation 4, as the maxout layer of A.2.2

    With several layers, the state of the last layer is the query.
    """

    def __init__(self, options: RecurrentOptions) -> None:
        super().__init__()
        width = options.width
        self.score = Concat(width)
        self.recurrence = Recurrence(options.cell, 2 * width, width, options.layers, dropout=options.dropout)
        self.readout = Linear(3 * width, 2 * width)
        nn.init.xavier_uniform_(self.readout.weight)
        self.at_weights, self.at_context = Point(f"{CROSS}.weights"), Point(f"{CROSS}.output")
        self.at_output = Point(OUTPUT)

    def forward(self, x: Tensor, state: RecurrentState) -> tuple[Tensor, RecurrentState]:
        """Continue from `state` over embedded words x [N, T, D]; return t [N, T, D] and the state after."""
        cells, hidden, contexts = state.cells, [], []
        score = self.score.over(state.keys)
        # w_{i-1} [N, D]; each query needs the state that depends on the context before
        for i, word in enumerate(x.unbind(1), state.length):
            query = cells[0][-1][:, None]  # s_{i-1} of the last layer [N, 1, D]
            replacement = self.at_weights.replacement(i, single_head=True)
            context, _ = attend(query, state.keys, state.memory, state.mask, score, replacement=replacement)
            context = self.at_context(context, i)
            output, cells = self.recurrence.step(torch.cat([word, context[:, 0]], -1), cells)
            hidden.append(output)
            contexts.append(context)
        states = self.at_output(torch.stack(hidden, 1), state.length)
        inputs = torch.cat([states, x, torch.cat(contexts, 1)], -1)  # [s; E w; c] [N, T, 3 D]
        # Maxout: one matrix computes both members of each pair, [N, T, 2 D] -> [N, T, D, 2] -> [N, T, D].
        features = self.readout(inputs).unflatten(-1, (-1, 2)).amax(-1)
        return features, state.after(x.size(1), cells)


class LuongDecoder(nn.Module):
    """Read the last word, then attend with the new state, then predict the next word from both.

        h_t = f(h_{t-1}, E w_{t-1})                      f an LSTM or GRU
        a_t = softmax(score(h_t, y))                     equation 7
        c_t = sum_s a_ts y_s
        h~_t = tanh(W_c [c_t; h_t])                      equation 5, with a bias on request

    Without input feeding, no state depends on the attention, so one fused call runs the recurrence over all words, and
    all positions attend at once. With input feeding (section 3.3), the input is the word together with h~_{t-1}.
    """

    def __init__(self, options: RecurrentOptions) -> None:
        super().__init__()
        o = options
        self.score = _score(o)
        self.window = PredictiveWindow(o.width, o.window) if o.window else None
        self.feeds = o.input_feeding
        inputs = 2 * o.width if self.feeds else o.width
        self.recurrence = Recurrence(o.cell, inputs, o.width, o.layers, dropout=o.dropout)
        self.combine = Linear(2 * o.width, o.width, bias=o.combine_bias)
        nn.init.xavier_uniform_(self.combine.weight)
        self.at_weights, self.at_context = Point(f"{CROSS}.weights"), Point(f"{CROSS}.output")
        self.at_output = Point(OUTPUT)

    def forward(self, x: Tensor, state: RecurrentState) -> tuple[Tensor, RecurrentState]:
        """Continue from `state` over embedded words x [N, T, D]; return h~ [N, T, D] and the state after."""
        if self.feeds:
            return self._word_by_word(x, state)
        hidden, cells = self.recurrence(x, state.cells)
        return self._attend(hidden, state, state.length), state.after(x.size(1), cells)

    def _attend(self, hidden: Tensor, state: RecurrentState, first: int) -> Tensor:
        """Return h~ [N, T, D] of states h [N, T, D], the first of which is at the position `first`."""
        hidden = self.at_output(hidden, first)
        mask, focus = (state.mask, None) if self.window is None else self.window(hidden, state.mask)
        replacement = self.at_weights.replacement(first, single_head=True)
        context, _ = attend(hidden, state.keys, state.memory, mask, self.score, focus, replacement)
        context = self.at_context(context, first)
        return torch.tanh(self.combine(torch.cat([context, hidden], -1)))

    def _word_by_word(self, x: Tensor, state: RecurrentState) -> tuple[Tensor, RecurrentState]:
        """Do the same with input feeding, where every step needs h~ of the step before."""
        cells, feed, features = state.cells, state.feed, []
        if feed is None:  # the first word
            feed = torch.zeros_like(x[:, 0])
        for i, word in enumerate(x.unbind(1), state.length):
            hidden, cells = self.recurrence.step(torch.cat([word, feed], -1), cells)
            attentional = self._attend(hidden[:, None], state, i)
            feed = attentional[:, 0]
            features.append(attentional)
        return torch.cat(features, 1), state.after(x.size(1), cells, feed)


def _score(options: RecurrentOptions) -> Score:
    if options.code:
        return load_score(options.code, options.width)
    if options.attention == "luong-general":
        return General(options.width)
    if options.attention == "luong-concat":
        return Concat(options.width)
    return Dot(scaled=options.attention == "luong-scaled-dot")


class RecurrentDecoding(SequenceModel[RecurrentState]):
    """A sequence model with a recurrent decoder; derived classes provide its parts and the encoder."""

    target_embedding: Embedding
    decoder: nn.Module
    """From embedded words [N, T, D] and a state to features [N, T, D] and the state after. If it has attention, its
    `score` computes the keys."""
    dropout: Dropout
    decoder_input: Point
    decoder_output: Point

    def features(self, memory: Memory, targets_in: Tensor) -> Tensor:
        """Return the decoder's features [N, T, D] for target ids [N, T]."""
        features, _ = self.resume(memory, targets_in)
        return features

    def read_on(self, targets_in: Tensor, state: RecurrentState) -> tuple[Tensor, RecurrentState]:
        """Continue from `state` over ids [N, T]; return the features [N, T, D] and the state after."""
        x = self.decoder_input(self.target_embedding(targets_in), state.length)
        features, state_after = self.decoder(x, state)
        return self.dropout(self.decoder_output(features, state.length)), state_after

    def start(self, memory: Memory) -> RecurrentState:
        """Return the decoder's first state; the keys of the attention are computed here, once for all steps."""
        assert isinstance(memory, RecurrentMemory)
        states = memory.states
        score = getattr(self.decoder, "score", None)
        keys = states if score is None else score.keys(states)
        source = torch.arange(states.size(0), device=states.device)  # not `len`, which would be a constant in ONNX
        return RecurrentState(memory.first, states, keys, memory.mask[:, None], source)

    def resume(self, memory: Memory, tokens: Tensor) -> tuple[Tensor, RecurrentState]:
        """Feed a prefix [N, T]; return the features [N, T, D] and the state after it."""
        return self.read_on(tokens, self.start(memory))

    def advance(self, tokens: Tensor, state: RecurrentState) -> tuple[Tensor, RecurrentState]:
        """Feed one token per row [N]; return the decoder's features [N, D] and the state after the token."""
        features, state = self.read_on(tokens[:, None], state)
        return features[:, 0], state


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
        self.source_embedding = o.with_elmo(Embedding(source, NoPositions(), o.dropout))
        self.target_embedding = Embedding(target, NoPositions(), o.dropout)
        self.encoder = RecurrentEncoder(o)
        self.decoder = _decoder(o)
        self.dropout = Dropout(o.dropout)
        self.output = output_projection(target, tied=o.tie_output)
        self.decoder_input, self.decoder_output = Point("decoder.input"), Point("decoder.output")

    def encode(self, source: Tensor, lengths: Sequence[int] = ()) -> RecurrentMemory:
        """Read a batch of sources with these lengths, which save counting tokens on a GPU."""
        return self.encoder(self.source_embedding(source), self.source_mask(source), lengths)

    def read(self, embedded: Tensor, mask: Tensor) -> RecurrentMemory:
        """Read embedded sources [B, S, D] into states [B, S, D]."""
        return self.encoder(embedded, mask)


def _decoder(options: RecurrentOptions) -> PlainDecoder | BahdanauDecoder | LuongDecoder:
    if options.attention == "none":
        return PlainDecoder(options)
    if options.attention == "bahdanau":
        return BahdanauDecoder(options)
    return LuongDecoder(options)
