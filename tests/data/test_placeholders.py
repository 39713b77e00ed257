"""Pieces that replace placeholders in texts, training pairs and vocabularies."""

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bitext.pair import Pair
from bitext.protected_spans import PLACEHOLDERS, StandIn, kept_parts, numbers
from translucid.corpora.phrasebook import generate
from translucid.data.placeholders import Masked, _words, mask, masked_pairs
from translucid.data.readers.corpus import SyntheticPair
from translucid.data.stores.encoded import EncodedCorpus
from translucid.data.text_pipeline import TextPipeline
from translucid.data.tokenizing.pieces import MATCH, TERM
from translucid.data.tokenizing.subword_dropout import VariedCorpus, bpe_dropout
from translucid.data.tokenizing.tokenizer import Tokenizer, TokenizerOptions
from translucid.ground.special import SPECIAL

PAIRS = [Pair("Tom saw 25 files at a@b.org.", "Tom vio 25 fichas en a@b.org."), Pair("I see %s.", "Veo %s.")]
TEXTS = st.text(st.sampled_from("ab %s{}<>&;@.🇪🇸👍⟦1⟧"), max_size=30)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("%s and %1$d of {n} or {{ a b }} in ${x}", ["%s", "%1$d", "{n}", "{{ a b }}", "${x}"]),
        ("<b>a</b>&nbsp;b", ["<b>", "</b>", "&nbsp;"]),
        ("see https://a.b/c?d=e, or a@b.org.", ["https://a.b/c?d=e", "a@b.org"]),
        ("👨‍👩‍👧 🇪🇸 👋🏽 3️⃣ ❤️ → ™", ["👨‍👩‍👧", "🇪🇸", "👋🏽", "3️⃣", "❤️", "→", "™"]),
        ("⟦3⟧ is no piece of ours", ["⟦3⟧"]),
        ("plain words, 25 % of them", []),
    ],
)
def test_copied_parts_are_found(text, parts):
    spans = list(kept_parts(text))
    assert [part for part, _, _ in spans] == parts
    assert all(text[first:after] == part for part, first, after in spans)


def test_numbers_outside_of_other_parts():
    assert [number for number, _, _ in numbers("{0} 3 of 1,250.5 at http://a.b/7")] == ["3", "1,250.5"]


@given(TEXTS)
def test_masked_placeholders_are_restored(text):
    masked = mask(text)
    assert masked.unmask(masked.text) == text
    assert len(masked.parts) == len({*masked.parts.values()})


def test_the_same_part_has_the_same_piece_and_too_many_stay():
    assert mask("%s {a} %s").text == "⟦1⟧ {a} ⟦1⟧".replace("{a}", "⟦2⟧")
    many = " ".join(f"{{{i}}}" for i in range(20))
    assert mask(many).text.split()[15:] == ["⟦16⟧", "{16}", "{17}", "{18}", "{19}"]


def test_a_piece_that_stands_for_nothing_is_left_out():
    assert Masked("", {"⟦1⟧": "%s"}).unmask("⟦2⟧a ⟦1⟧") == "a %s"


def test_parts_of_several_words_are_counted():
    masked = mask("(%s) {{ a b }}.")
    assert masked.sizes(masked.text.split()) == [1, 4]


def test_pairs_get_the_same_piece_for_the_same_part():
    (pair,) = masked_pairs([Pair("%s of {n}", "{n} de %s")], 0, 1)
    first, second = re.findall(r"⟦\d+⟧", pair.source)
    assert pair == Pair(f"{first} of {second}", f"{second} de {first}")


def test_placeholders_of_one_side_only_are_unchanged():
    assert list(masked_pairs([Pair("a %s <b>", "b {x} <b> <b>")], 0, 1)) == [Pair("a %s <b>", "b {x} <b> <b>")]


def test_names_and_numbers_of_some_pairs_are_hidden_whatever_the_order():
    pairs = [Pair(f"Ana has {i} cats", f"Ana tiene {i} gatos") for i in range(600)]
    masked = list(masked_pairs(pairs, 0.3, 1))
    changed = [pair for pair in masked if "⟦" in pair.source]
    assert 100 < len(changed) < 250
    assert all(sorted(re.findall("⟦.*?⟧", p.source)) == sorted(re.findall("⟦.*?⟧", p.target)) for p in changed)
    assert {*re.findall("⟦.*?⟧", " ".join(p.source for p in changed))} == {*PLACEHOLDERS}
    assert list(masked_pairs(pairs[::-1], 0.3, 1)) == masked[::-1]
    assert list(masked_pairs(pairs, 0.3, 2)) != masked
    assert list(masked_pairs(pairs, 0, 1)) == pairs


def test_a_pair_without_such_words_gets_pieces_at_its_ends():
    masked = list(masked_pairs([Pair(f"see {'x' * i}", f"ver {'x' * i}") for i in range(100)], 0.99, 1))
    changed = [pair for pair in masked if "⟦" in pair.source]
    assert 10 < len(changed) < 50
    assert all(re.fullmatch(r"⟦\d+⟧ see x*|see x* ⟦\d+⟧", pair.source) for pair in changed)


def test_synthetic_pairs_stay_synthetic():
    (pair,) = masked_pairs([SyntheticPair("%s", "a %s")], 0, 1)
    assert isinstance(pair, SyntheticPair)


@pytest.fixture(scope="module", params=["bpe", "unigram"])
def tokenizer(request):
    pairs = [Pair(p.source, p.target) for p in generate(300, max_words=8)] + PAIRS
    return Tokenizer.learn(pairs, TokenizerOptions(kind=request.param, vocabulary=200), seed=1, reserved=PLACEHOLDERS)


def test_a_piece_is_one_token(tokenizer):
    (ids,) = tokenizer.encode_source(["see (⟦3⟧)."])
    assert tokenizer.source_pieces(ids).count("⟦3⟧") == 1 and SPECIAL.unknown not in ids[-3:-2]
    assert tokenizer.decode_source(tokenizer.encode_source(["⟦1⟧ see ⟦16⟧⟦2⟧"])[0]) == "⟦1⟧ see ⟦16⟧⟦2⟧"
    assert tokenizer.has_placeholders
    assert not Tokenizer.learn(PAIRS * 20, TokenizerOptions(vocabulary=60), seed=1).has_placeholders


def test_pieces_do_not_hide_the_kind_of_a_vocabulary(tokenizer):
    kind = "bpe" if tokenizer.source_segmenter.is_bpe else "unigram"
    options = TokenizerOptions(kind=kind, vocabulary=200)
    pairs = [Pair(p.source, p.target) for p in generate(300, max_words=8)] + PAIRS
    assert Tokenizer.learn(pairs, options, seed=1, reserved=PLACEHOLDERS).models == tokenizer.models


def test_subword_dropout_cuts_no_piece(tokenizer):
    assert bpe_dropout("▁a⟦12⟧b", {}, 0, random.Random(1), ["⟦12⟧"]) == ["▁", "a", "⟦12⟧", "b"]
    pairs = [Pair("⟦2⟧ see ⟦16⟧.", "Veo ⟦16⟧ ⟦2⟧")] * 4
    sampled = VariedCorpus(pairs, tokenizer, 0.5, 1).draw([1])
    for i in range(4):
        assert tokenizer.decode_source(sampled.source(i)) == pairs[0].source
        assert tokenizer.decode(sampled.target(i)) == pairs[0].target


def test_encoded_pairs_have_pieces(tokenizer):
    corpus = EncodedCorpus.encode(masked_pairs(PAIRS, 0, 1), tokenizer, max_tokens=50)
    for i in range(2):
        source, target = tokenizer.decode_source(corpus.source(i)), tokenizer.decode(corpus.target(i))
        assert re.findall("⟦.*?⟧", source) == re.findall("⟦.*?⟧", target) != []


def test_long_texts_with_placeholders_are_split_and_restored(tokenizer):
    text = "I see %s. " * 2 + "Tom saw {{ a b }} files " * 8
    pieces = TextPipeline(tokenizer, 30, "en").pieces([text.strip()], split=True)[0]
    assert len(pieces) > 3
    assert " ".join(piece.text for piece in pieces) == text.strip()
    assert all(len(piece.ids) <= 30 and "⟦" not in piece.text for piece in pieces)
    assert all(piece.masked.unmask(piece.masked.text) == piece.text for piece in pieces)


def replaced(pairs, share=1.0, seed=1):
    """Return the pieces in the source of each pair, and check that its target has the same ones."""
    pieces = []
    for pair in masked_pairs(pairs, share, seed):
        source, target = (re.findall("⟦.*?⟧", text) for text in pair)
        assert sorted(source) == sorted(target)
        pieces.append(source)
    return pieces


def test_which_words_may_be_names():
    source = "Bo al Tom's x9 9x-Y 3.5 _Ann_ Zoë Ida"
    assert [word for word, _, _ in _words(source)] == ["Tom's", "9x-Y", "3.5", "Ann", "Zoë", "Ida"]
    assert _words("a Tom") == [("Tom", 2, 5)]
    for pair in masked_pairs(
        [Pair("Bo saw Tom", "Bo vio a Tom"), Pair("Tom Tom 7", "Tom 7"), Pair("Ann", "ann")], 1, 1
    ):
        rest = re.sub("⟦.*?⟧", "#", pair.source), re.sub("⟦.*?⟧", "#", pair.target)
        assert rest in {
            ("Bo saw #", "Bo vio a #"),
            ("Tom Tom #", "Tom #"),
            ("Ann", "ann"),
            ("# Ann", "# ann"),
            ("Ann #", "ann #"),
        }


def test_how_many_words_of_a_pair_are_replaced():
    pairs = [Pair(f"Ana Eva Ida {number}x", f"Ida Eva Ana {number}y") for number in range(1200)]
    counts = [len(pieces) for pieces in replaced(pairs)]
    assert set(counts) == {1, 2, 3}
    assert counts.count(1) / 1200 == pytest.approx(0.7, abs=0.04)
    assert counts.count(2) / 1200 == pytest.approx(0.3 * 0.7, abs=0.04)
    changed = [pieces for pieces in replaced(pairs, 0.3) if pieces]
    assert len(changed) / 1200 == pytest.approx(0.3, abs=0.04)


def test_how_often_a_piece_is_put_at_an_end():
    pairs = [Pair(f"see {'x' * number}", f"ver {'x' * number}") for number in range(1000)]
    sources = [pair.source for pair in masked_pairs(pairs, 1, 1)]
    first, last = sum(source[0] == "⟦" for source in sources), sum(source[-1] == "⟧" for source in sources)
    assert first / 1000 == pytest.approx(0.125, abs=0.035) and last / 1000 == pytest.approx(0.125, abs=0.035)
    assert list(masked_pairs([Pair("", "7")] * 9, 1, 1)) == [Pair("", "7")] * 9


def test_the_source_alone_determines_the_pieces_of_its_placeholders():
    pairs = [Pair("%s of {n} {n}", f"{number} {{n}} {{n}} %s") for number in range(5)]
    assert len({tuple(pieces) for pieces in replaced(pairs, 0)}) == 1
    assert len({tuple(pieces) for seed in range(5) for pieces in replaced(pairs[:1], 0, seed)}) > 1


def test_names_are_put_back_in_the_target_and_counted_on_both_sides():
    names = StandIn("Tom", "Mary Ann", "María Ana Sol", is_term=True), StandIn("Bob", "Aoife", "Aoife", is_term=True)
    masked = Masked("Tom ⟦1⟧ Bob", {"⟦1⟧": "a b"}, names)
    assert masked.unmask("tom y Tom, Tomás TOM bob's ⟦1⟧ ⟦2⟧.") == (
        "María Ana Sol y María Ana Sol, Tomás TOM Aoife's a b ."
    )
    assert masked.sizes(["Tom", "⟦1⟧", "Bob", "⟦2⟧"]) == [3, 2, 1, 1]
    assert masked.sizes(["Tom", "⟦1⟧", "Bob", "⟦2⟧"], in_source=True) == [2, 2, 1, 1]


def test_pieces_that_stand_for_parts_are_shown_as_those():
    masked = mask("%s </s> x")
    assert masked.unmask_pieces(["▁", "⟦1⟧", "⟦2⟧", "⟦3⟧", "▁x"]) == ["▁", "%s", "⟦2⟧", "⟦3⟧", "▁x"]
    assert masked.mask_target("x %s {a} %s </s>") == "x ⟦1⟧ {a} ⟦1⟧ ⟦2⟧"
    assert mask("x").mask_target("%s") == "%s"
    assert Masked("", {}).unmask(f"a{''.join(TERM)}{MATCH}⟦16⟧b⟦17⟧") == "ab⟦17⟧"
