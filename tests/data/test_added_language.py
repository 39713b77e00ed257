"""Pieces of an added language: other text is segmented as before, and its own has no unknown pieces."""

from collections import Counter
from itertools import pairwise

import pytest

from bitext.pair import Pair
from translucid.corpora.phrasebook import generate
from translucid.data.tokenizing.extending import MAX_LENGTH, MIN_COUNT, parts_of_new, with_language
from translucid.data.tokenizing.tokenizer import Tokenizer, TokenizerOptions
from translucid.ground.special import SPECIAL

PHRASES = list(generate(400, split="train", max_words=8))
ENGLISH = [phrase.source for phrase in PHRASES]
SPANISH = [phrase.target for phrase in PHRASES]
WITHOUT_SPANISH = str.maketrans("áéíóúüñÁÉÍÓÚ", "aeiouunAEIOU")


@pytest.fixture(scope="module", params=["bpe", "unigram"])
def tokenizer(request):
    """A tokenizer of English and its upper case, which has no letter with an accent."""
    options = TokenizerOptions(kind=request.param, vocabulary=200, languages={"xx": "<2xx>", "yy": "<2yy>"})
    return Tokenizer.learn([Pair(text, text.upper()) for text in ENGLISH], options, seed=1)


@pytest.fixture(scope="module")
def extended(tokenizer):
    return with_language(tokenizer, SPANISH, ENGLISH, 60, ["<2es>"])


def new_pieces(tokenizer, extended):
    return extended.source_pieces(range(tokenizer.source_size, extended.source_size))


def test_other_text_is_cut_as_before(tokenizer, extended):
    assert extended.encode_source(ENGLISH) == tokenizer.encode_source(ENGLISH)
    known_ids = range(tokenizer.source_size)
    assert extended.source_pieces(known_ids) == tokenizer.source_pieces(known_ids)
    if tokenizer.models[0] != extended.models[0]:
        unprotected = with_language(tokenizer, SPANISH, [], 60, ["<2es>"])
        assert unprotected.encode_source(ENGLISH) != tokenizer.encode_source(ENGLISH)


def test_text_of_the_language_has_no_unknown_pieces_and_fewer_of_them(tokenizer, extended):
    before, after = tokenizer.encode_source(SPANISH), extended.encode_source(SPANISH)
    assert any(SPECIAL.unknown in ids for ids in before)
    assert not any(SPECIAL.unknown in ids for ids in after)
    assert [extended.decode(ids) for ids in after] == SPANISH
    characters_alone = with_language(tokenizer, SPANISH, ENGLISH, 0, ["<2es>"])
    total = sum(map(len, characters_alone.encode_source(SPANISH)))
    assert sum(map(len, after)) < 0.9 * total


def test_each_piece_is_new_and_part_of_a_word(tokenizer, extended):
    new = new_pieces(tokenizer, extended)
    assert new[0] == "<2es>" and len(set(new)) == len(new)
    assert not set(new) & set(tokenizer.target_vocabulary)
    subwords = [piece for piece in new[1:] if len(piece) > 1]
    assert len(subwords) == 60
    assert all(piece.removeprefix("▁").isalpha() and len(piece) <= MAX_LENGTH for piece in subwords)


def test_the_language_piece_comes_out_of_no_text(tokenizer, extended):
    number = tokenizer.source_size
    assert number not in extended.encode_source(["<2es>"])[0]
    options = TokenizerOptions(languages={"es": "<2es>"})
    assert extended.between(None, "es", options).encode_source(["a"])[0][0] == number


def test_the_most_frequent_pair_is_merged_first(tokenizer):
    plain = with_language(tokenizer, SPANISH, [], 0, [])
    counts = Counter()
    for ids in plain.encode_source(SPANISH):
        for first, second in pairwise(plain.source_pieces(ids)):
            if second.isalpha() and (first == "▁" or first.removeprefix("▁").isalpha()):
                counts[first + second] += 1
    (piece,) = new_pieces(plain, with_language(plain, SPANISH, [], 1, []))
    assert counts[piece] == max(counts.values())


def test_a_rare_pair_makes_no_piece(tokenizer):
    texts = ["kvv"] * (MIN_COUNT - 1)
    assert new_pieces(tokenizer, with_language(tokenizer, texts, [], 9, [])) == []
    assert new_pieces(tokenizer, with_language(tokenizer, [*texts, "kvv"], [], 9, []))[-1] == "▁kvv"


def test_the_parts_of_the_new_pieces(tokenizer, extended):
    parts, _ = parts_of_new(tokenizer, extended, ["<2xx>", "<2yy>"])
    by_piece = dict(zip(new_pieces(tokenizer, extended), parts, strict=True))
    assert tokenizer.source_pieces(by_piece["<2es>"]) == ["<2xx>", "<2yy>"]
    assert by_piece["¿"] == []
    assert tokenizer.source_pieces(by_piece["ñ"]) == ["n"]
    alphabet = "".join(tokenizer.target_vocabulary)
    for piece, ids in by_piece.items():
        if len(piece) > 1 and piece != "<2es>":
            text = "".join(tokenizer.source_pieces(ids))
            known = filter(alphabet.__contains__, piece.translate(WITHOUT_SPANISH))
            assert text == "".join(known)


NEW_TEXT = ["می\u200cخواهم ۲²", "نمی\u200cدانم…"] * 20


@pytest.mark.parametrize(
    ("tokenizer", "other_texts", "kept"),
    [("bpe", ENGLISH, "\u200c²…"), ("unigram", [*ENGLISH, *["x² and ²"] * 5, "x\u200cy"], "\u200c…")],
    indirect=["tokenizer"],
)
def test_the_spelling_of_the_language_is_unchanged(tokenizer, other_texts, kept):
    said = []
    extended = with_language(tokenizer, NEW_TEXT, other_texts, 10, ["<2fa>"], said.append)
    expected = [text if "²" in kept else text.replace("²", "2") for text in NEW_TEXT]
    assert [extended.decode(ids) for ids in extended.encode_source(NEW_TEXT)] == expected
    assert ("changes characters of the new languages: ² 20 times" in said[0]) == ("²" not in kept)
    assert said[-1].startswith("normalization (adaptive) leaves alone in the new languages: ")
    assert extended.encode_source(ENGLISH) == tokenizer.encode_source(ENGLISH)
