"""Texts in capitals and in Title Case."""

import pytest

from bitext.pair import Pair
from bitext.protected_spans import PlaceholderSyntax
from translucid.corpora.phrasebook import generate
from translucid.data.capitals import in_lower_case, put_in_capitals, style_of
from translucid.data.text_pipeline import TextPipeline
from translucid.data.tokenizing.tokenizer import Tokenizer, TokenizerOptions

PAIRS = [Pair(p.source, p.target) for p in generate(400, max_words=8)]


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.learn(PAIRS, TokenizerOptions(vocabulary=700), seed=1)


@pytest.mark.parametrize(
    ("text", "lower"),
    [
        ("THE HOUSE AND THE TEACHER", "The house and the teacher"),
        ("THE HOUSE AND I, I'M THE TEACHER", "The house and I, I'm the teacher"),
        ("THE HOUSE AND LUIS, {COUNT} TEACHERS", "The house and Luis, {COUNT} teachers"),
        ("The House And The Teacher Of Luis", "The house and the teacher of Luis"),
        ("The House And The Teacher, OK", "The house and the teacher, OK"),
        ("The house and the teacher of Luis", None),
        ("The", None),
        ("TEACHER", None),
        ("5 %", None),
    ],
)
def test_capitals_that_the_vocabulary_hardly_has_become_lower_case(tokenizer, text, lower):
    expected = {} if lower is None else {text: (lower, "capitals" if text.isupper() else "title")}
    assert in_lower_case([text, text], tokenizer, "en") == expected
    assert in_lower_case([text], tokenizer, "tr") == {}
    assert not in_lower_case([pair.source for pair in PAIRS], tokenizer, "en")


def test_capitals_that_the_vocabulary_has_stay(tokenizer):
    capitals = [Pair(pair.source.upper(), pair.target.upper()) for pair in PAIRS]
    knows_capitals = Tokenizer.learn(capitals, TokenizerOptions(vocabulary=700), seed=1)
    assert not in_lower_case([pair.source for pair in capitals], knows_capitals, "en")


def test_the_translation_gets_the_capitals_of_the_text(tokenizer):
    pipeline = TextPipeline(tokenizer, 100, "en")
    texts = ["THE HOUSE.", "The House And The Teacher.", "The house."]
    (target,) = tokenizer.encode_target(["La casa."])
    for text, translation in zip(texts, ("LA CASA.", "La casa.", "La casa."), strict=True):
        ((piece,),) = pipeline.pieces([text], split=True)
        assert piece.text == text and piece.masked.text == text[0] + text[1:].lower()
        assert tokenizer.decode_source(piece.ids[:-1]) == piece.masked.text
        assert pipeline.join([piece], [target]) == translation
        ((unchanged,),) = pipeline.pieces([text], split=False)
        assert unchanged.masked.text == text and pipeline.text(unchanged, target) == "La casa."
    ((*parts,),) = TextPipeline(tokenizer, 12, "en").pieces(["THE HOUSE AND " * 8], split=True)
    assert len(parts) > 1 and all(part.in_capitals for part in parts)


def test_parts_that_stay_are_not_put_in_capitals():
    assert put_in_capitals("la caña %d, {n} straße", PlaceholderSyntax.prose) == "LA CAÑA %d, {n} STRASSE"
    assert style_of("A B") == "capitals" and style_of("My House") == "title" and style_of("my House") is None
