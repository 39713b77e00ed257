"""Small random Transformers in float64 with random transcoders."""

import torch

from translucid.circuits.dictionary import sublayers_of
from translucid.circuits.faithfulness import Question
from translucid.circuits.linear import HeldModel
from translucid.circuits.nodes import Parts
from translucid.circuits.transcoder import Transcoder
from translucid.models.model_options import TransformerOptions
from translucid.models.transformer import Transformer

V, A, B = 30, 11, 12
SOURCE, PREFIX = torch.tensor([[5, 6, 7, 8, 3]]), torch.tensor([[2, 13, 14, 15]])
SHAPES = {
    "pre-norm": {},
    "post-norm": {"norm": "post"},
    "post-final": {"norm": "post-final"},
    "tied": {"tie_output": True, "share_embeddings": True},
    "ssru": {"decoder": "ssru"},
    "learned positions": {"positions": "learned", "nonlinearity": "gelu"},
    "one layer": {"layers": 1, "norm": "post"},
    "six layers": {"layers": 6},
}


def transformer(layers=2, **options):
    """Build a Transformer in evaluation mode, none of whose weights is zero."""
    torch.manual_seed(1)
    shape = {"width": 16, "heads": 4, "feed_forward": 24, "encoder_layers": layers, "decoder_layers": layers}
    model = Transformer(V, V, TransformerOptions(**shape, **options)).eval().double()
    for parameter in model.parameters():
        parameter.data.normal_(std=0.4)
    return model


def random_transcoders(model, features=40, k=6):
    """Return a transcoder for each sublayer whose features have nothing to do with it."""
    weight = next(model.parameters())
    transcoders = {}
    for sublayer in sublayers_of(model):
        transcoder = Transcoder(model.options.width, features, k).to(weight)
        for parameter in transcoder.parameters():
            parameter.data.normal_(std=0.4)
        transcoder.normalize()
        transcoders[sublayer] = transcoder.requires_grad_(False)
    return transcoders


def question(model, other=B):
    return Question(model, SOURCE, PREFIX, (A,), other)


def parts_of(model, transcoders):
    return Parts(HeldModel(model, SOURCE, PREFIX), transcoders)


def logit_of(model, other=B, source=SOURCE, prefix=PREFIX):
    """Compute the logit with the model itself."""
    with torch.no_grad():
        return question(model, other).logit(model(source, prefix)[0, -1]).item()
