"""Warnings about sentences with words that are unknown to the model."""

import pytest

from bitext.pair import Pair
from translucid.corpora.phrasebook import generate
from translucid.data.tokenizing.tokenizer import Tokenizer, TokenizerOptions
from translucid.evaluation.out_of_domain import (
    LIMIT,
    PIECES_LIMIT,
    SHARE,
    WORDS,
    OutOfDomainCheck,
    Spread,
    ValidationScores,
    WordSet,
    measure,
)

PAIRS = [Pair(p.source, p.target) for p in generate(200, max_words=8)]


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.learn(PAIRS, TokenizerOptions(vocabulary=150), seed=1)


def scores(words=None, unknown=(0.1, 0.5), pieces=(1.0, 1.0)):
    return ValidationScores(
        sentences=100,
        log_probability=Spread(mean=-0.5, deviation=0.4),
        pieces=Spread(mean=pieces[0], deviation=pieces[1]),
        unknown=Spread(mean=unknown[0], deviation=unknown[1]) if words else None,
        words=words.encoded() if words else "",
    )


def about(out_of_domain_check, source, mean, names=()):
    (ids,) = out_of_domain_check.tokenizer.encode_source([source])
    tokens = [5, 6, 7]
    return out_of_domain_check.about(source, ids, tokens, mean * (len(tokens) + 1), names)


def test_words_are_kept_as_fingerprints_whatever_their_case():
    words = WordSet.of(["The house is near.", "¡Él, ve! <b>x</b> {count} a@b.org 12"])
    assert all(word in words for word in ("the", "HOUSE", "él", "E\u0301l", "ve", "x"))
    assert not any(word in words for word in ("houses", "count", "org", "12"))
    decoded = WordSet.decoded(words.encoded())
    assert decoded.fingerprints.tolist() == words.fingerprints.tolist()
    extended = WordSet.of(["new word"], words)
    assert "house" in extended and "word" in extended
    assert "word" not in words
    assert "a" not in WordSet.of([])


@pytest.mark.parametrize("damaged", ["AAA", "AAAA", "????", "ä"])
def test_damaged_fingerprints_are_refused(damaged):
    with pytest.raises(ValueError, match=r"base64|buffer size|ASCII"):
        WordSet.decoded(damaged)


def test_a_sentence_is_measured(tokenizer):
    words = WordSet.of(["I like the house"])
    source = "I like the zebra, {count} quaggas"
    (ids,) = tokenizer.encode_source([source])
    result = measure(tokenizer, words, source, ids, [5, 6, 7], -8.0)
    assert result.log_probability == -2
    assert result.unknown_words == ["zebra", "quaggas"]
    assert result.unknown == pytest.approx(2 + SHARE * 2 / 5)
    assert measure(tokenizer, None, source, ids, [5], -8.0).unknown == 0
    (short,) = tokenizer.encode_source(["a"])
    assert measure(tokenizer, words, "a", short, [5], -1.0).pieces == 0
    assert result.pieces > 3


def test_unknown_words_and_low_probabilities_are_added_up(tokenizer):
    words = WordSet.of(["I like the house near beach music"])
    out_of_domain_check = OutOfDomainCheck(tokenizer, scores(words))
    assert about(out_of_domain_check, "I like the house", -0.5) == []
    assert (
        about(out_of_domain_check, "I like the zebra near the beach", -0.5) == []
    )  # one unknown word of many, and a probable translation
    warnings = about(out_of_domain_check, "Zebras graze peacefully", -1.0)
    assert warnings == ["unknown words: the training text does not have Zebras, graze, peacefully"]
    assert about(out_of_domain_check, "Zebra", -1.0) == ["unknown words: the training text does not have Zebra"]
    assert about(out_of_domain_check, "Zebra", -1.0, {"zebra"}) == []
    (warning,) = about(out_of_domain_check, "Zebras graze peacefully", -9.0, {"zebras"})
    assert warning.endswith("does not have graze, peacefully")
    (unlikely,) = about(out_of_domain_check, "I like the house", -6.0)
    assert unlikely.startswith("improbable: ") and "-6.0 a token, -0.5 in validation" in unlikely
    assert about(out_of_domain_check, "12 + 5 = {x}", -9.0) == []  # nothing to translate
    unknown = "one two three four five six seven"
    assert about(out_of_domain_check, unknown, -1.0)[0].endswith("one, two, three, four, five …")


@pytest.mark.parametrize("excess", [-0.01, 0.01])
def test_the_limit_is_at_the_documented_value(tokenizer, excess):
    words = WordSet.of(["I like the house"])
    u = 1 + SHARE / 4
    unlikely = LIMIT - WORDS * (u - 0.1) / 0.5 + excess
    check = OutOfDomainCheck(tokenizer, scores(words))
    assert bool(about(check, "I like the zebra", -0.5 - 0.4 * unlikely)) == (excess > 0)


@pytest.mark.parametrize("excess", [-0.01, 0.01])
def test_pieces_replace_words_where_words_are_not_available(tokenizer, excess):
    source = "I like the zebra"
    (ids,) = tokenizer.encode_source([source])
    pieces = measure(tokenizer, None, source, ids, [5], -1.0).pieces
    unlikely = PIECES_LIMIT - (pieces - 1) + excess
    warnings = about(OutOfDomainCheck(tokenizer, scores()), source, -0.5 - 0.4 * unlikely)
    assert bool(warnings) == (excess > 0)


def test_very_easy_validation_sentences_make_no_exception_of_every_other(tokenizer):
    words = WordSet.of(["I like the house"])
    easy = scores(words, unknown=(0, 0)).model_copy(update={"log_probability": Spread(mean=-0.02, deviation=0.01)})
    assert about(OutOfDomainCheck(tokenizer, easy), "I like the house", -1.0) == []
    assert about(OutOfDomainCheck(tokenizer, easy), "the zebra quacks", -1.0)


def test_without_scores_there_is_no_warning(tokenizer):
    assert about(OutOfDomainCheck(tokenizer), "Zebras graze peacefully", -9.0) == []


def test_words_that_a_shortlist_lacks(tokenizer):
    shortlist = frozenset(tokenizer.encode_source(["I like the house"])[0])
    out_of_domain_check = OutOfDomainCheck(tokenizer, shortlist_pieces=shortlist)
    assert about(out_of_domain_check, "I like the house", -0.5) == []
    (warning,) = about(out_of_domain_check, "I like the Quagga, Quagga!", -0.5)
    assert warning == "shortlist: it has no translations of Quagga"
