"""What looks wrong is said, and what is right is not."""

import re

import pytest

from translucid.data.corpus import Pair, read_pairs
from translucid.data.phrasebook import generate
from translucid.data.tokenizer import Tokenizer, TokenizerOptions
from translucid.evaluation.doubts import Doubts


@pytest.fixture(scope="module")
def tokenizer():
    """Of phrasebook sentences and the alphabet, cased."""
    pairs = [Pair(p.source, p.target) for p in generate(2000)]
    pairs += [Pair("A B C D E F G H I J K L M N O P Q R S T U V W X Y Z", "1 2 3 4 5 6 7 8 9 0 {}")] * 5
    return Tokenizer.learn(pairs, TokenizerOptions(vocabulary=600), seed=1)


@pytest.fixture(scope="module")
def about(tokenizer):
    """What is said of a source and its translation: about("I sing", "Canto")."""
    doubts = Doubts(tokenizer, "en", "es")

    def saying(source, target, each=-0.1):
        ids, tokens = tokenizer.encode_source([source])[0], tokenizer.encode_target([target])[0]
        return doubts.about(source, ids, target, tokens, each * (len(tokens) + 1))

    return saying


@pytest.mark.parametrize(
    ("source", "target", "said"),
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
        ("She likes {name} in 1990", "Le gusta", "lost: {name} 1990"),
        ("She likes it", "Le gusta %s", "invented: %s"),
        ("The teacher reads in the garden", "The teacher reads en the garden", "copied: "),
    ],
)
def test_what_looks_wrong_is_said(about, source, target, said):
    assert [doubt for doubt in about(source, target) if doubt.startswith(said)]


def test_another_language_is_said_where_the_model_is_unsure(about):
    french = "J'aime beaucoup le football et la plage avec mes amis"
    spanish = "Me gusta mucho el fútbol y la playa con mis amigos"
    english = "I like soccer and the beach very much with my friends"
    assert "wrong language: the source looks like fr, not en" in about(french, spanish, each=-3)
    assert "wrong language: the translation looks like fr, not es" in about(english, french, each=-3)
    assert about(english, spanish, each=-3) == []


def test_lower_case_text_has_no_capitals_for_a_model(tokenizer):
    pairs = [Pair(p.source.lower(), p.target.lower()) for p in generate(500)]
    lower = Tokenizer.learn(pairs, TokenizerOptions(vocabulary=300), seed=1)
    (doubt,) = Doubts(lower, "en", "es").about("She sings", lower.encode_source(["She sings"])[0], "canta", [9], -0.2)
    assert doubt == "capitals: the model has never seen S"


def test_what_is_right_is_not_said(about):
    sound = [(p.source, p.target) for p in generate(500, split="test")]
    sound += [("no, no, no, no, no", "no, no, no, no, no"), ("I have 3 cats", "Tengo tres gatos"), ("Tom", "Tom")]
    assert [(pair, doubts) for pair in sound if (doubts := about(*pair))] == []


def test_people_are_seldom_doubted(real_data):
    """Of what people have translated, at most one in a hundred looks wrong."""
    folder = real_data / "tatoeba-eng-spa"
    if not folder.is_dir():
        pytest.skip(f"no Tatoeba in {real_data}")
    pairs = list(read_pairs(folder / "dev.tsv"))
    tokenizer = Tokenizer.learn(pairs, TokenizerOptions(vocabulary=2000), seed=1)
    doubts = Doubts(tokenizer, "en", "es")
    sources = tokenizer.encode_source([pair.source for pair in pairs])
    targets = tokenizer.encode_target([pair.target for pair in pairs])
    doubted = [
        pair
        for pair, ids, tokens in zip(pairs, sources, targets, strict=True)
        if doubts.about(pair.source, ids, pair.target, tokens, -0.2 * len(tokens))
    ]
    assert len(doubted) < 0.01 * len(pairs)


def test_every_doubt_has_a_kind(about):
    for doubt in about("I LIKE 足球 {name}. They are tired.", "{x} x x x x x"):
        assert re.match(r"[a-z ]+: .", doubt)
