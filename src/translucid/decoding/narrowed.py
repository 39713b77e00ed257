"""A model whose outputs have only the pieces of a shortlist."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from translucid.models.protocol import Memory, SequenceModel, StateT


class Narrowed(SequenceModel[StateT]):
    """A model whose outputs have only some pieces. Its target ids are indices into them."""

    def __init__(self, model: SequenceModel[StateT], pieces: Tensor) -> None:
        """Share the weights of a model; `pieces`: [n] target ids, sorted, the special ones first."""
        super().__init__()
        self.model, self.pieces = model, pieces
        self.special, self.max_length = model.special, model.max_length
        self.source_embedding = model.source_embedding
        # Without initialization, as the rows of the model's own output layer replace the weights.
        self.output = nn.utils.skip_init(type(model.output), model.output.in_features, len(pieces))
        self.output.weight = nn.Parameter(model.output.weight[pieces], requires_grad=False)
        self.output.bias = nn.Parameter(model.output.bias[pieces], requires_grad=False)
        self.train(model.training)

    def source_mask(self, source: Tensor) -> Tensor:
        """Return the model's mask of source positions."""
        return self.model.source_mask(source)

    def encode(self, source: Tensor, lengths: Sequence[int] = ()) -> Memory:
        """Encode sources as the model does."""
        return self.model.encode(source, lengths)

    def read(self, embedded: Tensor, mask: Tensor) -> Memory:
        """Encode embedded sources as the model does."""
        return self.model.read(embedded, mask)

    def features(self, memory: Memory, targets_in: Tensor) -> Tensor:
        """Return the model's features for targets that are given as indices into the pieces."""
        return self.model.features(memory, self.pieces[targets_in])

    def start(self, memory: Memory) -> StateT:
        """Return the model's first state."""
        return self.model.start(memory)

    def advance(self, tokens: Tensor, state: StateT) -> tuple[Tensor, StateT]:
        """Advance the model by tokens that are given as indices into the pieces."""
        return self.model.advance(self.pieces[tokens], state)
