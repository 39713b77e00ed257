"""Any Unicode text in the tokenizer and sentence splitter: the number of texts stays the same, and nothing raises."""

from __future__ import annotations

from functools import cache

from hypothesis import strategies as st

from bitext.pair import Pair
from tests.probes.hostile.generating import each
from tests.probes.hostile.tally import Tally
from translucid.corpora.phrasebook import generate
from translucid.data.filtering import Filter, fault
from translucid.data.sentences import split_sentences
from translucid.data.tokenizing.tokenizer import Tokenizer, TokenizerOptions

ODD = [
    *("", " ", "\x00", "\ud800", "\udfff", "\ufeff", "\u202e", "\u200d", "\u2028", "\x85", "\x7f", "\x1b[2J", "\uffff"),
    *(
        "▁",
        "▁▁",
        "<s>",
        "</s>",
        "<pad>",
        "<unk>",
        "⁇",
        "<0x0A>",
        "\n",
        "\r",
        "\t",
        "\U0010ffff",
        "👩‍👩‍👧‍👦",
        "é",
        "e\u0301",
    ),
    *(
        "e" + "\u0301" * 300,
        "ﷺ",
        "ﬁ½①",
        "漢字かな",
        "한국어",
        "ไทย",
        "שלום",
        "मंगल",
        "x" * 3000,
        "a." * 300,
        "我。" * 300,
    ),
    *("I like soccer", 'Mr. Smith (e.g. U.S.) said: "No!"', "1,000.50", "İıſß", "A\u3000b\xa0c", "\u180e\u2060"),
]
any_text = st.lists(st.sampled_from(ODD) | st.text(st.characters(), max_size=8), max_size=8).map("".join)


@cache
def tokenizers() -> tuple[Tokenizer, ...]:
    """One of each kind, small ones."""
    pairs = [Pair(p.source, p.target) for p in generate(200, max_words=8)]
    variants = [{}, {"kind": "unigram", "joint": False}, {"normalization": "identity", "coverage": 0.98}]
    return tuple(Tokenizer.learn(pairs, TokenizerOptions(vocabulary=150, **variant), seed=1) for variant in variants)


def fuzz(count: int, seed: int) -> Tally:
    """Tokenize `count` lists of texts, and split them."""
    tally = Tally("texts")
    several = st.tuples(
        st.integers(0, len(tokenizers()) - 1), st.lists(any_text, max_size=3), st.sampled_from(["en", "zh", "x"])
    )
    each(several, count, seed, lambda case: tally.attempt(case, lambda: _through(*case)))
    return tally


def _through(number: int, texts: list[str], language: str) -> None:
    tokenizer = tokenizers()[number]
    for encode, size in (
        (tokenizer.encode_source, tokenizer.source_size),
        (tokenizer.encode_target, tokenizer.target_size),
    ):
        encoded = encode(texts)
        assert len(encoded) == len(texts)
        assert all(i == 1 or 4 <= i < size for ids in encoded for i in ids), "text became a special token"
    for ids, text in zip(tokenizer.encode_target(texts), texts, strict=True):
        tokenizer.decode(ids).encode()
        assert len(tokenizer.target_pieces(ids)) == len(ids)
        tokenizer.source_segmenter.normalize(text)
        parts = split_sentences(text, language)
        assert "".join(part + after for part, after in parts) == text, "a character is lost"
        fault(Pair(text, text), Filter())
