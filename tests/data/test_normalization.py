"""Normalization reports what it changes, and keeps the characters that a text needs."""

import unicodedata
from functools import cache

import pytest
import sentencepiece

from bitext.pair import Pair
from translucid.data.tokenizing.normalization import ADAPTIVE, MIN_COUNT, Characters, described, normalizer_without
from translucid.data.tokenizing.tokenizer import Tokenizer, TokenizerOptions

PERSIAN = "من می\u200cروم و کتاب\u200cها را می\u200cخوانم"


@pytest.fixture(autouse=True, scope="module")
def _cached_normalizers():
    """Build the rules without the same characters once, as that takes a second."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            "translucid.data.tokenizing.tokenizer.normalizer_without", lambda kept: cached_normalizer("".join(kept))
        )
        yield


cached_normalizer = cache(normalizer_without)


def count_characters(*texts):
    characters = Characters()
    for text in texts:
        characters.add(text)
    return characters


def learn(targets, **options):
    """Return a tokenizer, and the messages about its training."""
    messages = []
    pairs = [Pair("I read the book and go home", text) for text in targets]
    options = TokenizerOptions(**{"vocabulary": 90, **options})
    return Tokenizer.learn(pairs, options, seed=1, tell=messages.append), messages


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (PERSIAN, "\u200c"),
        ("5 m² … 1º, 20 €", "²…º"),
        ("今天，你好！（是的）", "，！（）"),
        ("ㅋㅋ 정말", "ㅋ"),
        ("ทำ", "ำ"),
        ("ខ្ញុំ\u200bទៅ\u200bផ្ទះ", "\u200b"),
        ("שלום\u200f (a)", "\u200f"),
        ("a\u200bb\u200ec\u00a0d\u2009e", ""),  # not needed in Latin script, and spaces
        ("ﬁne ﻻ ｈｉ １２ ｶﾅ 𝐱", ""),  # other forms of the same letters
        ("Å (angstrom \u212b), e\u0301", ""),  # the same by Unicode's own rules
        ("\ufeffa \u2581 \ufffd \x07", ""),
        ("año niño «sí» – “no”", ""),  # no rule changes these
    ],
)
def test_characters_of_the_spelling_are_unchanged(text, expected):
    frequent = count_characters(*[text] * MIN_COUNT)
    assert sorted(frequent.preserved()) == sorted(expected)
    assert not {*frequent.changed(ADAPTIVE)} & {*expected} and {*expected} <= {*frequent.changed("nmt_nfkc")}
    assert count_characters(text).preserved() == []


def test_half_a_surrogate_pair_is_no_character():
    assert count_characters(*["a\ud800²"] * MIN_COUNT).preserved() == ["²"]


def test_rare_characters_are_changed_and_reported():
    rare = count_characters("5 m²", *["año"] * 100)
    assert rare.preserved() == [] and rare.changed(ADAPTIVE) == {"²": 1}
    assert described({"²": 1, "\u200c": 1200}) == "² 1 times, U+200C (zero width non-joiner) 1,200 times"
    assert described({chr(0x2460 + i): 1 for i in range(15)}).endswith("3 others")


def test_a_vocabulary_writes_what_it_has_read():
    tokenizer, messages = learn([PERSIAN] * 30)
    assert tokenizer.decode(tokenizer.encode_target([PERSIAN])[0]) == PERSIAN
    assert messages == [
        "normalization (adaptive) leaves alone in the training text: U+200C (zero width non-joiner) 90 times"
    ]
    pieces = tokenizer.target_pieces(tokenizer.encode_target([PERSIAN])[0])
    assert any("\u200c" in piece and len(piece) > 1 for piece in pieces)  # it is part of a longer piece
    reread = Tokenizer(*tokenizer.models)
    assert reread.decode(reread.encode_target([PERSIAN])[0]) == PERSIAN


def test_the_former_rule_says_what_it_changes():
    tokenizer, messages = learn([PERSIAN] * 30, normalization="nmt_nfkc")
    assert tokenizer.decode(tokenizer.encode_target([PERSIAN])[0]) == PERSIAN.replace("\u200c", " ")
    (line,) = messages
    assert "U+200C (zero width non-joiner) 90 times" in line and "normalization=adaptive" in line


def test_text_that_nothing_is_changed_in_gets_the_same_vocabulary_as_before():
    targets = [f"El niño come ¿qué? «pan» {i} €" for i in range(60)]
    (new, messages), (old, _) = learn(targets), learn(targets, normalization="nmt_nfkc")
    assert new.fingerprint == old.fingerprint and messages == []


def test_each_side_has_rules_of_its_own():
    pairs = [Pair("m² and so on … here it is", PERSIAN)] * 30
    messages = []
    options = TokenizerOptions(vocabulary=36, joint=False)
    tokenizer = Tokenizer.learn(pairs, options, seed=1, tell=messages.append)
    assert [line.rpartition(" in the ")[2].partition(":")[0] for line in messages] == ["source text", "target text"]
    assert tokenizer.decode_source(tokenizer.encode_source(["m² …"])[0]) == "m² …"


def test_all_else_is_as_sentencepiece_has_it():
    """Compare single characters, and letters with combining marks."""
    adaptive = normalizer_without("²…\u200c")
    standard = sentencepiece.SentencePieceNormalizer(rule_name="nmt_nfkc")
    characters = [chr(i) for i in range(0x20, 0x3400) if unicodedata.category(chr(i)) not in ("Cn", "Co", "Cs")]
    texts = [f"a{c}b" for c in characters if c not in "²…\u200c"]
    texts += [unicodedata.normalize("NFD", c) for c in characters if c not in "²…\u200c"]
    texts += [
        "e\u0323\u0302 e\u0302\u0323 \u1eb9\u0302 \u00ea\u0323",
        "각 \u1100\u1161\u11a8",
        "\u0928\u093c",
        "ﬁ ＡＢＣ　①",
    ]
    assert [(t, adaptive.normalize(t)) for t in texts if adaptive.normalize(t) != standard.normalize(t)] == []
    assert adaptive.normalize("m² … می\u200cروم") == "▁m²▁…▁می\u200cروم"


def test_the_limits_of_what_is_frequent_and_of_what_is_listed():
    assert count_characters(*["²"] * 9).preserved() == [] and count_characters(*["²"] * 10).preserved() == ["²"]
    assert "others" not in described({chr(0x2460 + i): 1 for i in range(12)})
    assert described({chr(0x2460 + i): 1 for i in range(13)}).endswith("⑪ 1 times, ⑫ 1 times, 1 others")
    assert described({"²": 1, "\u0378": 2, "\u3000": 3}) == (
        "² 1 times, U+0378 (unnamed) 2 times, U+3000 (ideographic space) 3 times"
    )


def test_the_first_and_the_last_of_other_forms_and_their_neighbors():
    forms = "\ufb00\ufdfc\ufe30\ufe4f\ufe70\ufefc\U0001d400\U0001d7ff０９ＡＺａｚ｡ￜ"
    neighbors = "\ufe50／：＠［｀｛｠￠"
    characters = count_characters(*[forms + neighbors] * MIN_COUNT)
    assert {*forms, *neighbors} <= {*characters.changed("nmt_nfkc")}
    assert sorted(characters.preserved()) == sorted(neighbors)


def test_the_most_frequent_characters_come_first():
    characters = count_characters(*["…²a"] * 10, *["²ﬁ"] * 5)
    assert list(characters.changed("nmt_nfkc").items()) == [("²", 15), ("…", 10), ("ﬁ", 5)]
    assert characters.preserved() == ["²", "…"]
    assert characters.changed(ADAPTIVE) == {"ﬁ": 5} and characters.changed("identity") == {}
    assert count_characters(*["A²"] * 10, "a").changed("nmt_nfkc_cf") == {"²": 10}


def test_marks_of_direction_stay_where_a_script_needs_them():
    for script, sign, is_kept in [
        *(("א", "\u200e", True), ("ا", "\u200f", True), ("ܐ", "\u061c", True), ("ހ", "\u200f", True)),
        *(("ກ", "\u200b", True), ("က", "\u200b", True), ("ཀ", "\u200b", True), ("א", "\u200b", False)),
        *(("ก", "\u200f", False), ("é", "\u200c", True)),
    ]:
        assert (sign in count_characters(*[script + sign] * MIN_COUNT).preserved()) is is_kept, (script, sign)
    assert count_characters(*["\u200b"] * MIN_COUNT, *["ก"] * 9).preserved() == []
