"""The weights of a Transformer as NumPy arrays: what an installation without PyTorch reads of a run."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from translucid.models.model_options import TransformerOptions
from translucid.runs.tensor_file import load_arrays, read_header, refuse_misfits, refuse_other_options

if TYPE_CHECKING:
    from translucid.data.tokenizing.tokenizer import Tokenizer
    from translucid.runs.adapters import Adapter
    from translucid.runs.configuration import Configuration
    from translucid.runs.run_folder import RunFolder

Floats = NDArray[np.float32]


class TransformerWeights(NamedTuple):
    """The weights of a Transformer and its table of positions."""

    options: TransformerOptions
    arrays: dict[str, Floats]
    """The weights by the names of PyTorch's `state_dict`, shared ones under each of their names."""
    positions: tuple[Floats, Floats]
    """The position encodings of source and target, [rows, D] each; zeros for a model without."""

    @classmethod
    def of_run(
        cls,
        run: RunFolder,
        configuration: Configuration,
        tokenizer: Tokenizer,
        adapter: Adapter | None,
        rows: int,
    ) -> TransformerWeights:
        """Read the weights of a run with NumPy.

        Args:
            run: the run folder.
            configuration: its configuration; the model must be a Transformer that `CTranslate2` supports.
            tokenizer: its tokenizer.
            adapter: low-rank differences to add, if any.
            rows: the number of positions.

        Raises:
            UserError: the model is damaged, or does not fit the configuration.
        """
        options = configuration.model
        assert isinstance(options, TransformerOptions)
        saved_shapes, facts = read_header(run.model_file)
        # Before memory is allocated, because a configuration may ask for ten thousand layers.
        shapes = dict(weight_shapes(options, tokenizer.source_size, tokenizer.target_size))
        refuse_misfits(shapes, saved_shapes, run.model_file)
        refuse_other_options(facts.get("model"), options, run.config_file)
        arrays, _ = load_arrays(run.model_file)
        if adapter:
            for name, (up, down) in adapter.arrays().items():
                arrays[name] = arrays[name] + adapter.scale * (up @ down)
        if options.share_embeddings:
            arrays["target_embedding.tokens.weight"] = arrays["source_embedding.tokens.weight"]
        if options.tie_output:
            arrays["output.weight"] = arrays["target_embedding.tokens.weight"]
        return cls(options, arrays, _positions(options, arrays, rows))


def weight_shapes(options: TransformerOptions, sources: int, targets: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield the name and the shape of each weight in the file of a Transformer; shared ones have their first name.

    `sources` and `targets` are the sizes of the vocabularies.
    """
    width = options.width
    sides = {"encoder": options.encoder_layers, "decoder": options.decoder_layers}
    yield "source_embedding.tokens.weight", (sources, width)
    if not options.share_embeddings:
        yield "target_embedding.tokens.weight", (targets, width)
    if not options.tie_output:
        yield "output.weight", (targets, width)
    yield "output.bias", (targets,)
    if options.positions == "learned":
        yield "source_embedding.positions.table", (options.max_length, width)
        yield "target_embedding.positions.table", (options.max_length, width)
    for side, count in sides.items():
        if options.has_final_norm:
            yield f"{side}_norm.weight", (width,)
            yield f"{side}_norm.bias", (width,)
        for layer in range(count):
            yield from _block_shapes(options, f"{side}.{layer}", cross=side == "decoder")


def _block_shapes(options: TransformerOptions, block: str, *, cross: bool) -> Iterator[tuple[str, tuple[int, ...]]]:
    width, inner = options.width, options.feed_forward
    attentions = ("self_attention", "cross_attention") if cross else ("self_attention",)
    linear = {"feed_forward.inner": (inner, width), "feed_forward.outer": (width, inner)}
    for attention in attentions:
        linear |= {f"{attention}.query": (width, width), f"{attention}.key_value": (2 * width, width)}
        linear |= {f"{attention}.output": (width, width)}
    for name, shape in linear.items():
        yield f"{block}.{name}.weight", shape
        yield f"{block}.{name}.bias", shape[:1]
    for index in range(len(attentions) + 1):
        yield f"{block}.residuals.{index}.norm.weight", (width,)
        yield f"{block}.residuals.{index}.norm.bias", (width,)


def _positions(options: TransformerOptions, arrays: dict[str, Floats], rows: int) -> tuple[Floats, Floats]:
    if options.positions == "learned":
        tables = arrays["source_embedding.positions.table"], arrays["target_embedding.positions.table"]
        return tables[0][:rows], tables[1][:rows]
    if options.positions == "none":
        table = np.zeros((rows, options.width), np.float32)
    else:
        table = sinusoids(options, rows)
    return table, table


def sinusoids(options: TransformerOptions, rows: int) -> Floats:
    """Return the sinusoidal positions [rows, D] of `layers.positions`, where the equation is."""
    width, kind = options.width, options.positions
    exponent = 2 / max(width - 2, 2) if kind == "sinusoidal-tensor2tensor" else 2 / width
    pairs = (width + 1) // 2  # an odd D has a last sine without its cosine
    position = np.arange(options.first_position, options.first_position + rows, dtype=np.float64)[:, None]
    angle = position * np.exp(np.arange(pairs) * (-math.log(10000.0) * exponent))
    waves = np.stack([np.sin(angle), np.cos(angle)], -1)  # [rows, pairs, 2]
    if kind != "sinusoidal":
        waves = waves.transpose(0, 2, 1)
    return waves.reshape(rows, -1)[:, :width].astype(np.float32)
