"""Candidate vocabularies: links of pieces, computed from the attention by hand, and their shortlists."""

import numpy as np
import pytest
import torch

from bitext.pair import Pair
from translucid.data.tokenizing.tokenizer import Tokenizer, TokenizerOptions
from translucid.decoding.maps import cross_attention
from translucid.engines import tuning as piece_links
from translucid.engines.tuning import PieceLinks, learn_links, seen_pieces
from translucid.models.build import build_model
from translucid.models.model_options import TransformerOptions


class Pieces:
    """A tokenizer with these pieces on both sides, after the special tokens."""

    def __init__(self, source, target):
        special = ["<pad>", "<unk>", "<s>", "</s>"]
        self.source, self.target_vocabulary = [*special, *source], [*special, *target]
        self.source_size, self.target_size = len(self.source), len(self.target_vocabulary)

    def source_pieces(self, ids):
        return [self.source[i] for i in ids]

    def target_pieces(self, ids):
        return [self.target_vocabulary[i] for i in ids]

    def encode_target(self, texts):
        return [list(map(self.target_vocabulary.index, text.split())) for text in texts]


SOURCE = ["__en__", "the", "cat", "12", "a\tb", "dog", "sits"]
TARGET = ["__es__", "el", "gato", "12", "c\nd", "perro", "negro", "casa", "a\tb"]


def links_of(tokenizer, weights, frequency):
    """Return links with a weight for each pair of a source and a target piece."""
    by_key = {}
    for (source, target), weight in weights.items():
        key = tokenizer.source.index(source) * tokenizer.target_size + tokenizer.target_vocabulary.index(target)
        by_key[key] = weight
    counts = np.array([float(frequency.get(piece, 0)) for piece in tokenizer.target_vocabulary])
    keys = sorted(by_key)
    return PieceLinks(np.array(keys), np.array([by_key[key] for key in keys]), counts)


WEIGHTS = {
    ("cat", "negro"): 1.0,
    ("cat", "perro"): 2.0,
    ("cat", "gato"): 3.0,
    ("cat", "el"): 9.0,
    ("12", "casa"): 1.0,
    ("dog", "</s>"): 1.0,
    ("dog", "12"): 0.5,
    ("a\tb", "casa"): 1.0,
    ("<unk>", "casa"): 1.0,
    ("__en__", "__es__"): 1.0,
}
FREQUENCY = {"</s>": 9, "el": 8, "c\nd": 7, "casa": 2, "gato": 2}


@pytest.mark.parametrize(
    ("each", "always", "languages", "lines"),
    [
        (
            2,
            3,
            (),
            ["\tel", "__en__\t__es__", "cat\tgato perro", "12\tcasa 12", "dog\t12"],
        ),
        (
            1,
            2,
            ["__es__"],
            # The language is a candidate for each source, so the lists by source do not repeat it.
            ["\t__es__ el", "cat\tgato", "12\tcasa 12", "dog\t12"],
        ),
        (
            9,
            0,
            (),
            ["\t", "__en__\t__es__", "cat\tel gato perro negro", "12\tcasa 12", "dog\t12"],
        ),
    ],
)
def test_a_shortlist_has_the_frequent_pieces_and_the_strongest_links_of_each_source(each, always, languages, lines):
    tokenizer = Pieces(SOURCE, TARGET)
    links = links_of(tokenizer, WEIGHTS, FREQUENCY)
    assert links.shortlist(tokenizer, each, always, languages) == "\n".join(lines) + "\n"


def test_seen_pieces_are_listed_in_order_with_those_of_languages(monkeypatch):
    monkeypatch.setattr(piece_links, "TEXTS", 2)
    tokenizer, progress = Pieces([], TARGET), []
    texts = ["perro el", "perro", "<unk> gato"]
    assert seen_pieces(tokenizer, texts, progress.append, ["__es__"]) == "\t__es__ el gato perro\n"
    assert progress == [2, 1]
    assert seen_pieces(tokenizer, []) == "\t\n"


def test_linked_pieces_are_those_with_enough_attention_added_up_over_all_pairs(monkeypatch):
    """The result equals that of a loop over single pairs, whatever the batch sizes."""
    torch.manual_seed(1)
    options = TransformerOptions(
        width=16, heads=2, feed_forward=16, encoder_layers=1, decoder_layers=2, share_embeddings=False
    )
    model = build_model(options, 30, 20).eval()
    for parameter in model.parameters():
        parameter.data += 0.3 * torch.randn_like(parameter)
    generator = np.random.default_rng(1)
    pairs = []
    for length in (1, 5, 9, 3, 14):
        source, target = generator.integers(4, 30, length).tolist(), generator.integers(4, 20, length + 1).tolist()
        pairs.append(([*source, 3], [*target, 3]))
    weights, frequency = {}, np.zeros(20)
    for source, target in pairs:
        (attention,) = cross_attention(model, torch.tensor([source]), torch.tensor([target])).numpy()
        for t, target_piece in enumerate(target):
            frequency[target_piece] += 1
            for s, source_piece in enumerate(source):
                if attention[t, s] >= 0.1:
                    weights[source_piece * 20 + target_piece] = (
                        weights.get(source_piece * 20 + target_piece, 0.0) + attention[t, s]
                    )
    expected = dict(sorted(weights.items()))
    for group_size, batch in ((512, 4096), (2, 12)):
        monkeypatch.setattr(piece_links, "TOGETHER", group_size)
        monkeypatch.setattr(piece_links, "BATCH", batch)
        progress = []
        links = learn_links(model, pairs, torch.device("cpu"), progress.append)
        assert progress == ([5] if group_size == 512 else [2, 2, 1])
        assert links.keys.tolist() == [*expected]
        np.testing.assert_allclose(links.weights, [*expected.values()], rtol=1e-5)
        assert links.frequency.tolist() == frequency.tolist()
    # Not all pairs of pieces are linked, and some are linked twice.
    assert len(expected) < sum(len(source) * len(target) for source, target in pairs)


def test_white_space_other_than_a_blank_does_not_break_a_line():
    """Pieces with a no-break space are kept; blanks, tabs and line breaks would be read as separators."""
    tokenizer = Pieces(["a"], ["\u00a0!", "x y", "x\ry", "z"])
    assert seen_pieces(tokenizer, [], None, ["\u00a0!", "x y", "x\ry", "z"]) == "\t\u00a0! z\n"


def test_the_pieces_of_a_real_tokenizer_are_those_of_its_texts():
    pairs = [Pair("a cat", "un gato"), Pair("a dog", "un perro")] * 5
    tokenizer = Tokenizer.learn(pairs, TokenizerOptions(vocabulary=22), seed=1)
    listed = seen_pieces(tokenizer, ["un gato"]).strip().split()
    assert {*listed} == {*tokenizer.target_pieces(tokenizer.encode_target(["un gato"])[0])}
