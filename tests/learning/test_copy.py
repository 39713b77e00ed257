"""Small models learn to reverse sequences within seconds."""

import pytest
import torch

from translucid.data.batching import Batch
from translucid.decoding.decoding_options import DecodingOptions, SearchRequest
from translucid.decoding.search import TorchEngine
from translucid.models.build import build_model
from translucid.models.model_options import RecurrentOptions, TransformerOptions
from translucid.training.objective import batch_loss


def sentences(count, generator):
    lengths = torch.randint(2, 6, (count,), generator=generator).tolist()
    return [torch.randint(4, 14, (n,), generator=generator).tolist() for n in lengths]


def batch_of(texts):
    longest = max(map(len, texts)) + 1

    def padded(rows):
        return torch.tensor([row + [0] * (longest - len(row)) for row in rows])

    targets = [text[::-1] for text in texts]
    return Batch(
        padded([[*text, 3] for text in texts]),
        padded([[2, *text] for text in targets]),
        padded([[*text, 3] for text in targets]),
    )


MODELS = {
    "transformer": TransformerOptions(
        width=48, heads=4, feed_forward=96, encoder_layers=1, decoder_layers=1, dropout=0.0
    ),
    "bahdanau": RecurrentOptions(width=48, attention="bahdanau", cell="gru", dropout=0.0),
}


# To reverse, models have to align; copying would test nothing more.
@pytest.mark.parametrize(("name", "steps"), [("transformer", 260), ("bahdanau", 150)])
def test_a_small_model_learns_to_reverse(name, steps):
    options = MODELS[name]
    torch.manual_seed(1)
    generator = torch.Generator().manual_seed(1)
    model = build_model(options, 14, 14)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, betas=(0.9, 0.98))
    for step in range(steps):
        optimizer.param_groups[0]["lr"] = 1e-2 * min((step + 1) / 30, (steps - step) / (0.6 * steps), 1)
        batch = batch_of(sentences(48, generator))
        loss = batch_loss(model, batch)
        optimizer.zero_grad()
        (loss.smoothed / loss.tokens).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    texts = sentences(100, generator)
    results = TorchEngine(model).decode(SearchRequest([[*text, 3] for text in texts], DecodingOptions(beam=1)))
    correct = sum(nbest[0].tokens == text[::-1] for text, nbest in zip(texts, results, strict=True))
    assert correct >= 0.95 * len(texts)
