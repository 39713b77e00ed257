"""Quality checks report suspicious translations and accept correct ones."""

import re

import pytest

from bitext.pair import Pair
from translucid.corpora.phrasebook import generate
from translucid.data.readers.corpus import read_pairs
from translucid.data.tokenizing.tokenizer import Tokenizer, TokenizerOptions
from translucid.evaluation import quality_checks as looking
from translucid.evaluation.quality_checks import QualityChecks


@pytest.fixture(scope="module")
def tokenizer():
    """Return a tokenizer of cased phrasebook sentences and the alphabet."""
    pairs = [Pair(p.source, p.target) for p in generate(2000)]
    pairs += [Pair("A B C D E F G H I J K L M N O P Q R S T U V W X Y Z", "1 2 3 4 5 6 7 8 9 0 {}")] * 5
    return Tokenizer.learn(pairs, TokenizerOptions(vocabulary=600), seed=1)


@pytest.fixture(scope="module")
def about(tokenizer):
    """Return a function that checks a source and its translation: about("I sing", "Canto")."""
    checks = QualityChecks(tokenizer, "en", "es")

    def check(source, target, log_prob=-0.1):
        ids, tokens = tokenizer.encode_source([source])[0], tokenizer.encode_target([target])[0]
        return checks.about(source, ids, target, tokens, log_prob * (len(tokens) + 1))

    return check


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("I like 足球", "Me gusta", "unknown characters: 足 球"),
        ("I like 足球", "Me gusta", "unknown script: CJK"),
        ("I LIKE SOCCER AND THE BEACH", "Me gusta el fútbol y la playa", "capitals: the model has hardly seen"),
        ("She reads a book in the garden with the teacher today", "Lee", "too short: 1 word for 11"),
        ("I like soccer", "", "too short: nothing came out"),
        ("I like soccer. They are tired. Where is the house?", "Hola.", "too short: 1 sentence for 3"),
        ("I sing", "Me gusta el fútbol y " * 4 + "la playa", "too long: 22 words for 2"),
        ("I sing in the garden", "Canto en la la la la la casa", "repeated: la la la la"),
        ("I sing in the garden", "Canto en el jarrrrrrrdín", "repeated: r"),
        ("I like Acme Cloud", "Me gusta Acme C gusta Acme Cloud", "repeated: Acme C gusta Acme Cloud"),
        ("I like Acme Cloud", "Me gusta Acme Cla Acme Cloud", "repeated: Acme Cla"),
        ("I see Ferblat", "Veo a Ferb a Ferblat", "repeated: Ferb"),
        ("The house is near", "La casa está la casa está cerca", "repeated: La casa está la casa está"),
        ("She likes {name} in 1990", "Le gusta", "lost: {name} 1990"),
        ("She likes it", "Le gusta %s", "invented: %s"),
        ("The teacher reads in the garden", "The teacher reads en the garden", "copied: "),
    ],
)
def test_suspicious_translations_are_reported(about, source, target, expected):
    assert [doubt for doubt in about(source, target) if doubt.startswith(expected)]


def test_another_language_is_said_where_the_model_is_unsure(about):
    french = "J'aime beaucoup le football et la plage avec mes amis"
    spanish = "Me gusta mucho el fútbol y la playa con mis amigos"
    english = "I like soccer and the beach very much with my friends"
    assert "wrong language: the source looks like fr, not en" in about(french, spanish, log_prob=-3)
    assert "wrong language: the translation looks like fr, not es" in about(english, french, log_prob=-3)
    assert about(english, spanish, log_prob=-3) == []


def test_lower_case_text_has_no_capitals_for_a_model(tokenizer):
    pairs = [Pair(p.source.lower(), p.target.lower()) for p in generate(500)]
    lower = Tokenizer.learn(pairs, TokenizerOptions(vocabulary=300), seed=1)
    (doubt,) = QualityChecks(lower, "en", "es").about(
        "She sings", lower.encode_source(["She sings"])[0], "canta", [9], -0.2
    )
    assert doubt == "capitals: the model has never seen S"


def test_correct_translations_are_not_reported(about):
    correct = [(p.source, p.target) for p in generate(500, split="test")]
    correct += [
        ("Four of them", "Esta bola la la la"),
        ("no, no, no, no, no", "no, no, no, no, no"),
        ("I have 3 cats", "Tengo tres gatos"),
        ("Tom", "Tom"),
    ]
    correct += [
        ("I go home at seven", "Voy a la casa a las siete"),
        ("very, very good, a very, very good cat", "muy, muy bueno, un gato muy, muy bueno"),
        ("Mary swims in the sea", "Mary nada en el mar"),
        ("He is hungry and thirsty", "Tiene hambre y tiene sed"),
        ("this boy and this girl", "este niño y este niña"),
    ]
    assert [(pair, doubts) for pair in correct if (doubts := about(*pair))] == []


def test_human_translations_are_rarely_reported(real_data):
    """Less than 1 % of human translations are reported."""
    folder = real_data / "tatoeba-eng-spa"
    if not folder.is_dir():
        pytest.skip(f"no Tatoeba in {real_data}")
    pairs = list(read_pairs(folder / "dev.tsv"))
    tokenizer = Tokenizer.learn(pairs, TokenizerOptions(vocabulary=2000), seed=1)
    checks = QualityChecks(tokenizer, "en", "es")
    sources = tokenizer.encode_source([pair.source for pair in pairs])
    targets = tokenizer.encode_target([pair.target for pair in pairs])
    reported = [
        pair
        for pair, ids, tokens in zip(pairs, sources, targets, strict=True)
        if checks.about(pair.source, ids, pair.target, tokens, -0.2 * len(tokens))
    ]
    assert len(reported) < 0.01 * len(pairs)


class Letters:
    """A tokenizer with a piece for each letter and the given vocabulary."""

    source_opening = target_opening = ()

    def __init__(self, pieces=("ab",)):
        self.pieces, self.source_size = list(pieces), len(pieces)

    def encode_source(self, texts):
        return [[9] * len(text) for text in texts]

    def source_pieces(self, ids):
        return [self.pieces[i] for i in ids]


def kinds(source, ids, target, tokens, log_probability=0.0, tokenizer=None, languages=("en", "es")):
    """Return the kinds of doubts about a pair with these numbers of tokens."""
    doubts = QualityChecks(tokenizer or Letters(), *languages).about(
        source, [9] * ids, target, [9] * tokens, log_probability
    )
    return [doubt.split(":")[0] for doubt in doubts]


@pytest.mark.parametrize(
    ("ids", "tokens", "expected"),
    [(8, 2, "too short"), (8, 3, None), (7, 1, None), (2, 17, "too long"), (2, 16, None), (50, 17, None)],
)
def test_lengths_by_hand(ids, tokens, expected):
    """Too short: under 0.34 of 8 source tokens or more; too long: over three times as many plus 10."""
    assert kinds("word", ids, "palabra", tokens) == ([expected] if expected else [])


def test_fewer_sentences_are_too_short_only_with_fewer_tokens():
    assert kinds("One. Two.", 8, "Uno.", 5) == ["too short"]
    assert kinds("One. Two.", 8, "Uno.", 6) == []
    assert kinds("One. Two.", 8, "Uno. Dos.", 5) == []


@pytest.mark.parametrize(
    ("source", "ids", "is_reported"),
    [("ABCD", 6, True), ("ABCD", 5, False), ("ABC", 9, False), ("ABCd", 9, False)]
    + [("Abcd Efgh", 14, True), ("Abcd of Efg", 17, True), ("Abcd Efgh", 8, False), ("Abcd efgh", 14, False)],
)
def test_capitals_by_hand(source, ids, is_reported):
    """Reported: four letters or more, with at least 1.5 times as many pieces as in lower case."""
    assert kinds(source, ids, "abcd", ids) == ["capitals"] * is_reported


@pytest.mark.parametrize(
    ("source", "target", "is_reported"),
    [
        ("red green blue black", "red green blue black", True),
        ("red green blue", "red green blue", False),
        ("red green blue black", "red green blue black rosa", True),
        ("red green blue black", "red green blue black rosa gris", False),
        ("red green blue black", "Red, green, (blue) BLACK!", True),
        ("a b c d red", "a b c d red", False),
    ],
)
def test_copies_by_hand(source, target, is_reported):
    """Reported: four different words of two letters or more, with 80 % of them in the source."""
    assert ("copied" in kinds(source, 9, target, 9)) is is_reported
    assert kinds(source, 9, target, 9, languages=("en", "en")) == []


LONG_ENOUGH = "just fifteen abcd"


@pytest.mark.parametrize(
    ("text", "log_prob", "probabilities", "is_reported"),
    [
        (LONG_ENOUGH, -1.01, {"fr": 0.7, "en": 0.05, "es": 0.05}, True),
        (LONG_ENOUGH, -1.0, {"fr": 0.7, "en": 0.05, "es": 0.05}, False),
        (LONG_ENOUGH[1:], -1.01, {"fr": 0.7, "en": 0.05, "es": 0.05}, False),
        (LONG_ENOUGH, -1.01, {"fr": 0.69, "en": 0.05, "es": 0.05}, False),
        (LONG_ENOUGH, -1.01, {"fr": 0.7, "en": 0.06, "es": 0.06}, False),
        (LONG_ENOUGH, -1.01, {"fr": 0.7}, False),
    ],
)
def test_languages_by_hand(monkeypatch, text, log_prob, probabilities, is_reported):
    """Reported: 15 letters, less than -1 a token, 0.7 for another language, at most 0.05 for the expected ones."""
    monkeypatch.setattr(looking, "language_probabilities", lambda text: probabilities)
    tokens = 4
    doubts = kinds(text, 4, text.upper(), tokens, log_prob * (tokens + 1), tokenizer=Letters(["ab", "AB"]))
    assert doubts == ["wrong language"] * 2 * is_reported


def test_a_script_is_known_by_longer_pieces_or_by_many_letters():
    greek = "αβγδε"
    assert kinds(greek, 4, "abc", 4, tokenizer=Letters(["ab", "αβ"])) == []
    assert kinds(greek, 4, "abc", 4, tokenizer=Letters(["ab", *"α" * 100])) == []
    assert kinds(greek, 4, "abc", 4, tokenizer=Letters(["ab", *"α" * 99])) == ["unknown script"]
    assert kinds(greek, 4, "abc", 4, tokenizer=Letters([*"abαβ"])) == []  # a vocabulary of single characters


def test_ten_unknown_characters_are_shown(tokenizer):
    characters = "足球很好看他们喜欢海滩"
    (doubt,) = [d for d in QualityChecks(tokenizer, "en", "es")._unknown(characters, [1]) if "characters" in d]
    assert doubt == f"unknown characters: {' '.join(characters[:10])} …"
    (doubt,) = [d for d in QualityChecks(tokenizer, "en", "es")._unknown(characters[:10], [1]) if "characters" in d]
    assert doubt == f"unknown characters: {' '.join(characters[:10])}"


def test_every_doubt_has_a_kind(about):
    for doubt in about("I LIKE 足球 {name}. They are tired.", "{x} x x x x x"):
        assert re.match(r"[a-z ]+: .", doubt)
