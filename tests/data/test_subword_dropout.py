"""Segmentations that vary with the seed, and with nothing else."""

import hashlib
import math
import random
from collections import Counter

import numpy as np
import pytest

from bitext.pair import Pair
from tests.probes.forked import Forked
from translucid.data.readers.corpus import SyntheticPair
from translucid.data.stores.encoded import EncodedCorpus
from translucid.data.tokenizing.subword_dropout import VariedCorpus, bpe_dropout, words_of
from translucid.data.tokenizing.tokenizer import Tokenizer, TokenizerOptions

PAIRS = [
    Pair("the lowest tower of the town", "la torre más baja de la ciudad"),
    Pair("", "nada"),
    Pair("lower and lower,  slower and slower", "más y más bajo, más y más lento"),
] * 8
RANK = {"lo": 0, "low": 1, "er": 2, "▁low": 3}


def learn(kind="bpe"):
    return Tokenizer.learn(PAIRS, TokenizerOptions(kind=kind, vocabulary=36 if kind == "unigram" else 60), seed=1)


def test_merges_go_by_rank():
    assert bpe_dropout("▁lower", RANK, 0.0, random.Random(1)) == ["▁low", "er"]
    assert bpe_dropout("▁xyz", RANK, 0.0, random.Random(1)) == ["▁", "x", "y", "z"]


def test_each_merge_is_left_out_with_its_probability():
    generator = random.Random(1)
    segmentations = [bpe_dropout("lo", RANK, 0.3, generator) for _ in range(4000)]
    assert sum(len(pieces) == 2 for pieces in segmentations) / 4000 == pytest.approx(0.3, abs=0.03)


def test_without_dropout_it_is_the_segmentation_of_sentencepiece(real_data):
    from itertools import islice

    from translucid.data.readers.corpus import read_pairs

    pairs = list(islice(read_pairs(real_data / "tatoeba-eng-spa" / "train.tsv"), 2000))
    tokenizer = Tokenizer.learn(pairs, TokenizerOptions(vocabulary=2000), seed=1)
    segmenter = tokenizer.source_segmenter
    rank = segmenter.ranks()
    for pair in pairs:
        words = words_of(segmenter.normalize(pair.source))
        ids = [segmenter.number(piece) for word in words for piece in bpe_dropout(word, rank, 0.0, random.Random(1))]
        assert ids == tokenizer.encode_source([pair.source])[0]


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_the_text_stays_and_the_pieces_become_more_and_smaller(kind):
    tokenizer = learn(kind)
    plain = EncodedCorpus.encode(PAIRS, tokenizer, max_tokens=999)
    sizes = [len(plain.target_ids)]
    for dropout in (0.1, 0.5):
        sampled = VariedCorpus(PAIRS, tokenizer, dropout, 1).draw([1, 0])
        assert len(sampled) == len(PAIRS)
        for i in range(len(PAIRS)):
            assert sampled.target(i)[-1] == sampled.source(i)[-1] == 3
            assert tokenizer.decode(sampled.target(i)) == tokenizer.decode(plain.target(i))
        sizes.append(len(sampled.target_ids))
    assert sizes[0] < sizes[1] < sizes[2]


def test_epochs_differ_and_the_seed_decides():
    def ids(seed, epoch):
        sampled = VariedCorpus(PAIRS, learn(), 0.3, seed).draw([seed, epoch])
        return np.concatenate([sampled.source_ids, sampled.target_ids]).tolist()

    assert ids(1, 0) == ids(1, 0)
    assert len({tuple(ids(seed, epoch)) for seed, epoch in ((1, 0), (1, 1), (2, 0))}) == 3


def _draw(folder):
    """Print a digest of what is sampled with the tokenizer of a folder."""
    sampled = VariedCorpus(PAIRS, Tokenizer.load(folder), 0.3, 1).draw([1, 5])
    print(hashlib.sha256(sampled.source_ids.tobytes() + sampled.target_ids.tobytes()).hexdigest())


def test_another_process_samples_the_same(tmp_path):
    learn().save(tmp_path)
    output, _ = Forked(_draw, tmp_path).communicate()
    sampled = VariedCorpus(PAIRS, learn(), 0.3, 1).draw([1, 5])
    assert output.strip() == hashlib.sha256(sampled.source_ids.tobytes() + sampled.target_ids.tobytes()).hexdigest()


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_synthetic_sources_get_their_tag_and_no_others_in_any_pieces(kind):
    pairs = [
        Pair("<bt> b", "a"),
        *PAIRS[:3],
        *(SyntheticPair(*pair) for pair in PAIRS[:3]),
        PAIRS[0],
        SyntheticPair("<bt>", "a"),
    ]
    options = TokenizerOptions(kind=kind, vocabulary=36 if kind == "unigram" else 60)
    tokenizer = Tokenizer.learn(PAIRS * 2, options, seed=1, tagged=True)
    plain = [Pair(*pair) for pair in pairs]
    for untagged, tagged in (
        (EncodedCorpus.encode(plain, tokenizer, max_tokens=99), EncodedCorpus.encode(pairs, tokenizer, max_tokens=99)),
        *(
            (VariedCorpus(plain, tokenizer, 0.3, 1).draw([seed]), VariedCorpus(pairs, tokenizer, 0.3, 1).draw([seed]))
            for seed in range(4)
        ),
    ):
        for i, pair in enumerate(pairs):
            prefix = [tokenizer.tag] if isinstance(pair, SyntheticPair) else []
            assert tagged.source(i).tolist() == [*prefix, *untagged.source(i).tolist()]
            assert tagged.target(i).tolist() == untagged.target(i).tolist()
            assert tokenizer.tag not in untagged.source(i)


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
def test_samples_equal_those_of_a_loop_over_words(kind):
    """The pools are sampled word by word in the order of the text; an epoch picks one segmentation for each word."""
    pairs = [*PAIRS, SyntheticPair("the town", "lowerlowerlowerlowerlower"), Pair("lower", "más " * 40 + "tal")]
    options = TokenizerOptions(kind=kind, vocabulary=38)
    tokenizer = Tokenizer.learn(PAIRS * 2, options, seed=1, tagged=True)
    generator, epoch = random.Random(7), np.random.default_rng(np.random.SeedSequence([1, 2]))
    expected = []
    sides = []
    for side, segmenter in enumerate((tokenizer.source_segmenter, tokenizer.target_segmenter)):
        texts = [words_of(segmenter.normalize(pair[side])) for pair in pairs]
        counts = Counter(word for words in texts for word in words)
        pools = {}
        for word, count in counts.items():
            size = min(max(count, 4), 32)
            if kind == "bpe":
                segmentations = [
                    bpe_dropout(word, segmenter.ranks(), 0.3, generator, segmenter.reserved) for _ in range(size)
                ]
                pools[word] = [list(map(segmenter.number, pieces)) for pieces in segmentations]
            else:
                candidates = segmenter.likeliest(word, 64)
                weights = [math.exp(-0.2 * math.log10(0.3) * (score - candidates[0][1])) for _, score in candidates]
                pools[word] = [ids for ids, _ in generator.choices(candidates, weights, k=size)]
        sides.append((texts, pools))
    for side, (texts, pools) in enumerate(sides):
        sizes = np.array([len(pools[word]) for words in texts for word in words])
        picks = iter(epoch.integers(sizes).tolist())
        rows = []
        for pair, words in zip(pairs, texts, strict=True):
            ids = [number for word in words for number in pools[word][next(picks)]]
            is_tagged = side == 0 and isinstance(pair, SyntheticPair)
            rows.append([*([tokenizer.tag] if is_tagged else []), *ids, 3])
        expected.append(rows)
    sampled = VariedCorpus(pairs, tokenizer, 0.3, 7).draw([1, 2])
    assert [sampled.source(i).tolist() for i in range(len(pairs))] == expected[0]
    assert [sampled.target(i).tolist() for i in range(len(pairs))] == expected[1]
    assert max(map(len, sides[1][1].values())) == 32 and min(map(len, sides[1][1].values())) == 4
