"""Extended vocabularies: which pieces are kept, which are new, and which words are added."""

import pytest
import sentencepiece

from bitext.pair import Pair
from bitext.protected_spans import PLACEHOLDERS
from translucid.corpora.phrasebook import generate
from translucid.data.tokenizing.extending import parts_of_new, with_reserved, with_tag, with_words
from translucid.data.tokenizing.pieces import TERM
from translucid.data.tokenizing.tokenizer import Tokenizer, TokenizerOptions

EVERYDAY = [Pair(p.source, p.target) for p in generate(400, split="train", max_words=8)]
DOMAIN = [Pair(f"Open the Wagtail viewset {i}", f"Abre la Vista Wagtail {i}") for i in range(9)]


@pytest.fixture(params=["bpe", "unigram"])
def options(request):
    return TokenizerOptions(kind=request.param, vocabulary=200)


@pytest.fixture
def tokenizer(options):
    return Tokenizer.learn(EVERYDAY, options, seed=1)


def test_words_of_the_domain_are_pieces_and_nothing_else_changes(tokenizer):
    larger = with_words(tokenizer, DOMAIN, 3, shared_ids=False)
    new = larger.source_pieces(range(tokenizer.source_size, larger.source_size))
    assert "▁Wagtail" in new and len(new) == 3
    known_ids = range(tokenizer.source_size)
    assert larger.source_pieces(known_ids) == tokenizer.source_pieces(known_ids)
    sources = [pair.source for pair in EVERYDAY]
    assert larger.encode_source(sources) == tokenizer.encode_source(sources)
    (ids,), (before,) = larger.encode_source(["the Wagtail's"]), tokenizer.encode_source(["the Wagtail's"])
    assert larger.source_pieces(ids)[1] == "▁Wagtail" and len(ids) < len(before)
    assert larger.decode_source(ids) == "the Wagtail's"


def test_only_reserved_pieces_that_are_lacking_are_added(options):
    base = Tokenizer.learn(EVERYDAY, options, seed=1, reserved=PLACEHOLDERS)
    larger = with_reserved(base, (*PLACEHOLDERS, *TERM))
    pieces = larger.source_pieces(range(larger.source_size))
    assert larger.source_size == base.source_size + len(TERM) and len(set(pieces)) == len(pieces)
    assert pieces[: base.source_size] == base.source_pieces(range(base.source_size))
    assert larger.reserves((*PLACEHOLDERS, *TERM)) and not base.reserves(TERM)


def test_the_tag_of_synthetic_pairs_follows_all_other_pieces_of_the_source(options):
    joint = Tokenizer.learn(EVERYDAY, options, seed=1)
    separate = Tokenizer.learn(EVERYDAY, options.model_copy(update={"joint": False, "vocabulary": 120}), seed=1)
    for tokenizer, shared, new in ((joint, False, (1, 1)), (separate, False, (1, 0)), (separate, True, (1, 1))):
        larger = with_tag(tokenizer, shared_ids=shared)
        assert tokenizer.tag is None and larger.tag == tokenizer.source_size
        assert (larger.source_size - tokenizer.source_size, larger.target_size - tokenizer.target_size) == new
        assert larger.encode_source(["<bt> a cat<bt>"]) == tokenizer.encode_source(["<bt> a cat<bt>"])
        sources, targets = parts_of_new(tokenizer, larger, ["<unk>"])
        assert (sources, targets) == ([[]], [[]] * new[1])


def test_their_parts_are_what_they_were_cut_into(tokenizer):
    larger = with_words(tokenizer, DOMAIN, 3, shared_ids=False)
    sources, targets = parts_of_new(tokenizer, larger)
    assert sources == targets  # the vocabulary is joint
    index = larger.source_pieces(range(tokenizer.source_size, larger.source_size)).index("▁Wagtail")
    assert "".join(tokenizer.source_pieces(sources[index])) == "▁Wagtail"


def test_a_word_that_mostly_goes_on_is_left_alone(tokenizer):
    pairs = [Pair(f"Wagtail {ending}", "a") for ending in ["Wagtailed"] * 4 + ["x"] * 60]
    assert with_words(tokenizer, pairs, 9, shared_ids=False).source_pieces([tokenizer.source_size]) == ["▁Wagtail"]
    pairs = [Pair("Wagtail Wagtailed", "a")] * 9
    larger = with_words(tokenizer, pairs, 9, shared_ids=False)
    assert larger.source_pieces(range(tokenizer.source_size, larger.source_size)) == ["▁Wagtailed"]


def test_a_rare_word_and_one_of_two_pieces_are_left_alone(tokenizer):
    assert with_words(tokenizer, DOMAIN[:2], 9, shared_ids=False).source_size == tokenizer.source_size
    known = next(p for p in tokenizer.source_pieces(range(100, 200)) if len(p) > 3 and p[1:].isalpha() and p[0] == "▁")
    pairs = [Pair(known[1:], "a")] * 9
    assert with_words(tokenizer, pairs, 9, shared_ids=False).source_size == tokenizer.source_size


def test_two_vocabularies_get_their_own_words(options):
    separate = options.model_copy(update={"joint": False, "vocabulary": 120})
    tokenizer = Tokenizer.learn(EVERYDAY, separate, seed=1)
    larger = with_words(tokenizer, DOMAIN, 1, shared_ids=False)
    assert (larger.source_size, larger.target_size) == (tokenizer.source_size + 1, tokenizer.target_size + 1)
    shared = with_words(tokenizer, DOMAIN, 9, shared_ids=True)
    new = shared.source_pieces(range(tokenizer.source_size, shared.source_size))
    assert new == shared.target_pieces(range(tokenizer.target_size, shared.target_size))
    viewset, vista = new.index("▁viewset"), new.index("▁Vista")
    assert tokenizer.source_size + viewset in shared.encode_source(["viewset"])[0]
    assert tokenizer.target_size + viewset not in shared.encode_target(["viewset"])[0]
    assert tokenizer.target_size + vista in shared.encode_target(["Vista"])[0]


def test_words_are_chosen_by_the_pieces_that_they_save(tokenizer):
    """A rarer word of many pieces saves more than a more frequent one of few."""
    short, long = "wax", "paraffinated"
    pieces = [len(ids) for ids in tokenizer.encode_source([short, long])]
    assert 2 < pieces[0] <= pieces[1] / 2
    pairs = [Pair(short, "a")] * 9 + [Pair(long, "a")] * 7
    larger = with_words(tokenizer, pairs, 1, shared_ids=False)
    assert larger.source_pieces([tokenizer.source_size]) == [f"▁{long}"]


def new_words(tokenizer, texts, count=9):
    larger = with_words(tokenizer, [Pair(text, "") for text in texts], count, shared_ids=False)
    return larger.source_pieces(range(tokenizer.source_size, larger.source_size))


def test_how_often_a_word_must_occur_and_may_go_on(tokenizer):
    assert new_words(tokenizer, ["Wagtail"] * 4) == []
    assert new_words(tokenizer, ["Wagtail"] * 5) == ["▁Wagtail"]
    assert new_words(tokenizer, ["Wagtail"] * 40 + ["Wagtails"] * 4) == ["▁Wagtail"]
    assert new_words(tokenizer, ["Wagtail"] * 39 + ["Wagtails"] * 4) == []
    assert new_words(tokenizer, ["Wagtail"] * 9 + ["Жцж"] * 9 + ["123456"] * 9) == ["▁Wagtail"]


def test_words_that_save_as_much_are_in_the_order_of_the_alphabet(tokenizer):
    by_size = {}
    for letter in "tsrnmlhgfedcba":
        (ids,) = tokenizer.encode_source([f"{letter}aoaoaoa"])
        by_size.setdefault(len(ids), []).append(f"{letter}aoaoaoa")
    third, second, first, *_ = max(by_size.values(), key=len)
    texts = [third, second, first] * 6
    assert new_words(tokenizer, texts) == [f"▁{first}", f"▁{second}", f"▁{third}"]
    assert new_words(tokenizer, texts, 2) == [f"▁{first}", f"▁{second}"]


def test_the_fewest_pieces_of_a_new_word(tokenizer):
    by_size = {}
    for pair in EVERYDAY:
        for word in pair.source.split():
            if word.isalpha():
                by_size.setdefault(len(tokenizer.encode_source([word])[0]), word)
    two, three, five = by_size[2], by_size[3], by_size[5]
    assert new_words(tokenizer, [three] * 11 + [five] * 6, 1) == [f"▁{five}"]
    assert new_words(tokenizer, [two] * 9) == [] and new_words(tokenizer, [three] * 9) == [f"▁{three}"]


def test_new_pieces_are_matched_before_all_others(tokenizer):
    larger = with_words(tokenizer, DOMAIN, 2, shared_ids=False)
    processor = sentencepiece.SentencePieceProcessor(model_proto=larger.models[0])
    scores = processor.get_score(list(range(larger.source_size)))
    lowest = min(scores[: tokenizer.source_size])
    assert scores[tokenizer.source_size :] == pytest.approx([lowest - 1, lowest - 2])
    assert not any(processor.is_unused(i) for i in range(larger.source_size))
