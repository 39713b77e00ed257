"""Tokenizers of imported models with a piece for each language, and how pieces are shown."""

import io
import pickle

import pytest
import sentencepiece

from bitext.pair import Pair
from translucid.data.tokenizing.pieces import sanitized
from translucid.data.tokenizing.tokenizer import LARGEST, Tokenizer, TokenizerOptions
from translucid.ground.errors import UserError

TEXTS = ["the cat sees the dog", "a dog sees a cat", "cats and dogs", "the sea"] * 3
EACH_SIDE = "both-sides"


def train(**options):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS),
        model_writer=model,
        vocab_size=34,
        model_type="bpe",
        pad_id=0,
        unk_id=1,
        bos_id=2,
        eos_id=3,
        minloglevel=3,
        **options,
    )
    return model.getvalue()


@pytest.fixture(scope="module")
def model():
    return train(control_symbols=["<en>", "<es>", "<fr>"])


@pytest.fixture(scope="module")
def plain(model):
    return Tokenizer(model)


LANGUAGES = {"eng_Latn": "<en>", "spa_Latn": "<es>", "fra_Latn": "<fr>", "odd": "▁the"}


def options(**settings):
    return TokenizerOptions(languages=LANGUAGES, **settings)


def test_the_target_language_stands_in_the_source(plain):
    (ids,) = plain.encode_source(["the cat"])
    tokenizer = plain.between(None, "spa_Latn", options())
    assert tokenizer.encode_source(["the cat", ""]) == [[5, *ids], [5]]
    assert tokenizer.encode_target(["the cat"]) == [ids]
    assert (plain.source_opening, plain.encode_source(["the cat"])) == ((), [ids])
    assert tokenizer.decode_source([5, *ids]) == "the cat"
    unpickled = pickle.loads(pickle.dumps(tokenizer))
    assert unpickled.encode_source(["the cat"]) == [[5, *ids]] and unpickled.encode_target(["the cat"]) == [ids]
    assert plain.between("x", None, TokenizerOptions()) is plain


def test_each_language_stands_on_its_own_side(plain):
    (ids,) = plain.encode_source(["the cat"])
    tokenizer = plain.between("eng_Latn", "spa_Latn", options(language_pieces=EACH_SIDE))
    assert (tokenizer.encode_source(["the cat"]), tokenizer.encode_target(["the cat"])) == ([[4, *ids]], [[5, *ids]])
    unpickled = pickle.loads(pickle.dumps(tokenizer))
    assert (unpickled.encode_source([""]), unpickled.encode_target([""])) == ([[4]], [[5]])
    other_direction = tokenizer.between(None, "fra_Latn", options())
    assert (other_direction.encode_source([""]), other_direction.encode_target([""])) == ([[6]], [[]])


@pytest.mark.parametrize(
    ("source", "target", "language_pieces", "message"),
    [
        ("eng_Latn", None, None, "needs the target language. Give `target`, one of eng_Latn"),
        ("eng_Latn", "xx", None, "does not have the target language 'xx'"),
        (None, "eng_Latn", EACH_SIDE, "needs the source language. Give `source`"),
        ("eng_Latn", None, EACH_SIDE, "needs the target language"),
        ("eng_Latn", "odd", None, "names '▁the', which the tokenizer does not have for a language"),
    ],
)
def test_a_language_must_be_known(plain, source, target, language_pieces, message):
    with pytest.raises(UserError, match=message):
        plain.between(source, target, options(language_pieces=language_pieces) if language_pieces else options())


@pytest.mark.parametrize(("count", "is_truncated"), [(20, False), (21, True)])
def test_twenty_languages_are_listed(plain, count, is_truncated):
    languages = {f"l{number:02}": "<en>" for number in range(count)}
    with pytest.raises(UserError) as caught:
        plain.between(None, None, TokenizerOptions(languages=languages))
    names = ", ".join(sorted(languages)[:20]) + (", …" if is_truncated else "")
    assert str(caught.value).endswith(f"one of {names}.")


def test_unknown_pieces_are_shown_as_they_are_in_the_text(plain):
    text = "the жцж cat z"
    (ids,) = plain.encode_source([text])
    assert 1 in ids
    vocabulary_pieces = plain.source_pieces(ids)
    assert "<unk>" in vocabulary_pieces and "".join(plain.source_pieces(ids, text)) == "▁the▁жцж▁cat▁z"
    text_pieces = plain.target_pieces(ids, text)
    for opening in ([], [4], [4, 5], [2, 4, 5], [2, 4, 5, 6]):
        names = plain.source_pieces(opening)
        assert plain.source_pieces([*opening, *ids], text) == [*names, *text_pieces]
        assert plain.source_pieces([*opening, *ids, 3], text) == [*names, *text_pieces, "</s>"]
        assert plain.source_pieces([*opening, *ids[:3], 3], text) == [*names, *text_pieces[:3], "</s>"]
    longer = [2, 4, 5, 6, 7]
    assert plain.source_pieces([*longer, *ids], text) == [*plain.source_pieces(longer), *vocabulary_pieces]
    assert plain.source_pieces(ids, "another text") == vocabulary_pieces
    assert plain.source_pieces([], text) == []
    assert sanitized("a▁b\ud800") == "a_b?"


def test_pieces_of_both_sides_are_compared(plain, model):
    other = Tokenizer(train())
    joint, separate = Tokenizer.paired(plain, plain), Tokenizer.paired(plain, other)
    assert (joint.joint, separate.joint) == (True, False)
    assert separate.models == [model, *other.models] and joint.models == [model]
    assert Tokenizer.paired(separate, separate).models == separate.models
    assert Tokenizer.paired(Tokenizer(*other.models), separate).joint
    assert (
        plain.reserves(["▁the", "cat"[:1]]) and not separate.reserves(["<fr>"]) and not plain.reserves(["▁the", "⟦1⟧"])
    )
    assert plain.tag is None and not plain.marks_terms and not plain.has_placeholders
    assert plain.mask("%s").text == "%s"
    assert plain.target_vocabulary[:7] == ["<pad>", "<unk>", "<s>", "</s>", "<en>", "<es>", "<fr>"]
    assert len(plain.target_vocabulary) == 34


def test_a_tokenizer_is_recognized_by_its_fingerprint(plain, tmp_path):
    plain.save(tmp_path)
    assert Tokenizer.load(tmp_path, plain.fingerprint).models == plain.models
    with pytest.raises(UserError, match="the tokenizer is not the model's"):
        Tokenizer.load(tmp_path, "0" * 64)


def test_a_file_of_a_tokenizer_may_have_so_many_bytes(plain, tmp_path):
    with (tmp_path / "tokenizer.model").open("wb") as file:
        file.truncate((1 << 26) + 1)
    with pytest.raises(UserError, match="more than 67,108,864"):
        Tokenizer.load(tmp_path)
    assert LARGEST == 67_108_864


@pytest.mark.parametrize(("size", "is_read"), [(100, True), (101, False)])
def test_an_unknown_piece_is_written_in_so_many_characters(size, is_read):
    model = train(unk_surface="x" * size)
    if is_read:
        assert Tokenizer(model).decode([1]) == "x" * 100
    else:
        with pytest.raises(ValueError, match="writes 101 characters for an unknown piece"):
            Tokenizer(model)


@pytest.mark.parametrize(("size", "is_learned"), [(65_536, True), (65_537, False)])
def test_lines_of_a_length_are_learned_from(size, is_learned):
    line = "ab " * 21_845 + "z" * (size - 65_535)
    assert len(line) == size
    pairs = [Pair(line, "a b ab ba")] + [Pair("a b", "b a")] * 3
    tokenizer = Tokenizer.learn(pairs, TokenizerOptions(vocabulary=9 if is_learned else 8), seed=1)
    assert (1 not in tokenizer.encode_source(["z"])[0]) is is_learned


def test_a_segmenter_has_the_pieces_of_one_language(plain):
    segmenter = plain.source_segmenter
    processor = sentencepiece.SentencePieceProcessor(model_proto=plain.models[0])
    ranks = segmenter.ranks()
    assert ranks == {processor.id_to_piece(i): round(-processor.get_score(i)) for i in range(7, 34)}
    assert sorted(ranks.values()) == list(range(27)) and segmenter.is_bpe and segmenter.reserved == []
    assert segmenter.normalize("the  cat▁") == "▁the▁cat_"
    assert (segmenter.number("▁the"), segmenter.number("ж")) == (processor.piece_to_id("▁the"), 1)


def test_the_likeliest_segmentations_come_first():
    pairs = [Pair(text, "⟦1⟧ x") for text in TEXTS] * 3
    unigram_options = TokenizerOptions(kind="unigram", vocabulary=22)
    tokenizer = Tokenizer.learn(pairs, unigram_options, seed=1, reserved=["⟦1⟧", "⟦2⟧"])
    segmenter = tokenizer.source_segmenter
    assert not segmenter.is_bpe and segmenter.reserved == ["⟦1⟧", "⟦2⟧"]
    processor = sentencepiece.SentencePieceProcessor(model_proto=tokenizer.models[0])
    segmentations = segmenter.likeliest("▁cats", 5)
    assert [ids for ids, _ in segmentations] == processor.nbest_encode("cats", nbest_size=5)
    assert len(segmenter.likeliest("▁cats", 1)) == 1 < len(segmentations)
    assert [score for _, score in segmentations] == pytest.approx(
        [sum(map(processor.get_score, ids)) for ids, _ in segmentations]
    )
    reserved = processor.piece_to_id("⟦1⟧")
    assert all(reserved in ids for ids, _ in segmenter.likeliest("▁a⟦1⟧", 50))
    assert segmenter.likeliest("▁", 5) == [([processor.piece_to_id("▁")], 0.0)]
