"""Untrained translators, whose outputs are deterministic."""

import pytest
import torch

from bitext.pair import Pair
from translucid.data.tokenizing.tokenizer import Tokenizer
from translucid.ground.special import SPECIAL
from translucid.models.build import build_model
from translucid.runs.configuration import resolve
from translucid.runs.run_folder import RunFolder

PAIRS = [Pair("I like soccer.", "Me gusta el fútbol."), Pair("She reads a book.", "Ella lee un libro.")]
SHAPES = {
    "transformer": {"width": 16, "heads": 2, "feed_forward": 32, "encoder_layers": 1, "decoder_layers": 1},
    "bahdanau": {"kind": "recurrent", "width": 16, "attention": "bahdanau"},
    "no attention": {"kind": "recurrent", "width": 16, "attention": "none"},
}


@pytest.fixture(scope="session")
def untrained(made_once):
    """Return a function that returns the run folder of an untrained translator of one of the `SHAPES`."""

    def write(shape):
        def fill(folder):
            torch.manual_seed(1)
            overrides = {"model": SHAPES[shape], "data.tokenizer.vocabulary": 80, "decoding.max_length_ratio": 1}
            configuration = resolve(overrides={**overrides, "decoding.max_length_extra": 6})
            tokenizer = Tokenizer.learn(PAIRS * 20, configuration.data.tokenizer, seed=1)
            run = RunFolder(folder)
            run.begin(configuration, tokenizer)
            model = build_model(configuration.model, tokenizer.source_size, tokenizer.target_size)
            for parameter in model.parameters():
                parameter.data.normal_(std=0.4)
            model.output.bias.data[SPECIAL.end] -= 10  # outputs are as long as they may be
            run.save_model(model.eval(), tokenizer, {})

        return made_once(f"untrained {shape}", fill)

    return write
