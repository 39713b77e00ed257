import math
import re
import struct

import pytest
import sentencepiece
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from bitext.pair import Pair
from translucid.data.tokenizing.tokenizer import Tokenizer, TokenizerOptions, _encode, _possible_size, _user_error
from translucid.ground.errors import UserError

ENGLISH = [
    "I like soccer",
    "I like the beach and also going to the sea",
    "the black dog is sleeping near the old house",
    "she does not want to go to school today",
    "where is the book that I gave you?",
    "we saw many small birds, and a fox",
]
SPANISH = [
    "me gusta el fútbol",
    "me gusta la playa y también ir al mar",
    "el perro negro duerme cerca de la casa vieja",
    "ella no quiere ir hoy a la escuela",
    "¿dónde está el libro que te di?",
    "vimos muchos pájaros pequeños, y un zorro",
]
PAIRS = [Pair(*pair) for pair in zip(ENGLISH, SPANISH, strict=True)]
LETTERS = sorted(set("".join(ENGLISH + SPANISH)) - {" "})
KINDS = pytest.mark.parametrize("kind", ["bpe", "unigram"])


def learn(seed=0, pairs=PAIRS, **options):
    return Tokenizer.learn(pairs, TokenizerOptions(**{"vocabulary": 90, **options}), seed=seed)


@pytest.fixture(scope="module")
def joint():
    return learn()


@pytest.fixture(scope="module")
def separate():
    return learn(joint=False, vocabulary=60)


def test_a_joint_vocabulary_serves_both_languages(joint):
    assert joint.joint
    assert joint.source_size == joint.target_size == 90
    assert joint.encode_source(ENGLISH) == joint.encode_target(ENGLISH)


def test_separate_vocabularies_know_one_language_each(separate):
    assert not separate.joint
    assert (separate.source_size, separate.target_size) == (60, 60)
    spanish_piece = "ú"
    unknown = 1
    assert unknown in separate.encode_source([spanish_piece])[0]
    assert unknown not in separate.encode_target([spanish_piece])[0]


def test_special_ids_are_where_every_model_expects_them(joint):
    assert joint.source_pieces(range(4)) == joint.target_pieces(range(4)) == ["<pad>", "<unk>", "<s>", "</s>"]


@KINDS
def test_known_text_is_restored_from_its_ids(kind):
    tokenizer = learn(kind=kind)
    assert [tokenizer.decode(ids) for ids in tokenizer.encode_target(SPANISH)] == SPANISH


def test_any_words_of_known_letters_are_restored(joint):
    @settings(max_examples=60)
    @given(st.lists(st.text(LETTERS, min_size=1, max_size=8), max_size=6).map(" ".join))
    def round_trip(text):
        assert joint.decode(joint.encode_target([text])[0]) == text

    round_trip()


def test_no_text_at_all_yields_padding_start_or_end(joint, separate):
    @settings(max_examples=100)
    @given(st.text() | st.lists(st.sampled_from(["<s>", "</s>", "<pad>", "<unk>", "▁", "\0", "a", " "])).map("".join))
    def ordinary(text):
        for tokenizer in (joint, separate):
            assert not {0, 2, 3} & set(tokenizer.encode_source([text])[0] + tokenizer.encode_target([text])[0])

    ordinary()


def test_special_tokens_written_in_a_text_are_ordinary_characters():
    tokenizer = learn(pairs=[*PAIRS, Pair("<s> </s> <pad> <unk>", "a < b > c / d_e")])
    for text in ("<s>", "</s>", "<pad> a", "<unk>", "a <s> b </s>"):
        assert tokenizer.decode(tokenizer.encode_target([text])[0]) == text
    assert tokenizer.decode(tokenizer.encode_target(["a▁b"])[0]) == "a_b"


@KINDS
def test_no_text_yields_the_tag_of_synthetic_pairs(kind):
    pairs = [*PAIRS, Pair("a <bt> b<bt>c", "<bt>"), Pair("a < b > c", "b t")] * 4
    for options in ({"vocabulary": 60}, {"vocabulary": 45, "joint": False}):
        tokenizer = Tokenizer.learn(pairs, TokenizerOptions(kind=kind, **options), seed=1, tagged=True)
        assert tokenizer.tag == 4 and tokenizer.source_pieces([4]) == ["<bt>"]
        assert learn(pairs=pairs, kind=kind, **options).tag is None
        for text in ("<bt>", "<bt> a", "a <bt>", "x<bt>y", "< bt >", "<\u200bbt>", "＜bt＞", "▁<bt>", "<b\0t>"):
            assert tokenizer.tag not in tokenizer.encode_source([text])[0]
        assert tokenizer.decode_source([4, *tokenizer.encode_source(["the sea"])[0]]) == "the sea"
        assert tokenizer.source_segmenter.is_bpe == (kind == "bpe")


def test_half_a_surrogate_pair_is_read_as_a_question_mark(joint):
    assert joint.encode_source(["go \ud800"]) == joint.encode_source(["go ?"])
    learn(pairs=[*PAIRS, Pair("\ud800", "a")])


def test_decoding_passes_over_padding_start_and_end(joint):
    ids = joint.encode_target(["el mar"])[0]
    assert joint.decode([2, *ids, 3, 0, 0]) == "el mar"
    assert joint.decode([]) == ""
    assert joint.decode([1]).strip() == "⁇"


def test_pieces_join_to_the_text(joint):
    ids = joint.encode_target(["el perro"])[0]
    assert "".join(joint.target_pieces(ids)) == "▁el▁perro"
    assert "".join(joint.source_pieces(joint.encode_source(["the dog"])[0])) == "▁the▁dog"


def test_word_starts_are_the_pieces_with_a_space(joint):
    starts = joint.target_word_starts()
    assert len(starts) == joint.target_size
    text = "el perro negro duerme"
    assert sum(starts[i] for i in joint.encode_target([text])[0]) == len(text.split())
    assert not any(starts[:4])


@KINDS
@pytest.mark.parametrize("joint", [True, False])
def test_learning_again_gives_the_same_tokenizer(kind, joint):
    options = {"kind": kind, "joint": joint, "vocabulary": 48}
    assert learn(**options).fingerprint == learn(**options).fingerprint
    assert learn(**options).fingerprint != learn(**{**options, "vocabulary": 49}).fingerprint


def test_a_large_corpus_is_sampled_by_the_seed():
    def letters(seed):
        tokenizer = learn(seed, pairs=iter([Pair(c, c) for c in "abcdefghijklmnopqrstuvwxyz"]), sample=3, vocabulary=11)
        return {p for p in tokenizer.source_pieces(range(4, 11)) if len(p) == 1 and p != "▁"}

    assert all(len(letters(seed)) == 3 for seed in range(3))
    assert letters(1) == letters(1)
    assert len(set.union(*map(letters, range(12)))) > 15, "all of the corpus must have a chance, not only its beginning"


def test_options_change_the_tokenizer():
    assert learn(kind="unigram").encode_source(ENGLISH) != learn(kind="bpe").encode_source(ENGLISH)
    lower = learn(normalization="nmt_nfkc_cf")
    assert lower.encode_source(["SOCCER"]) == lower.encode_source(["soccer"])
    assert learn(normalization="identity", pairs=[*PAIRS, Pair("ﬁ", "ﬁ")]).encode_source(["ﬁ"])[0][-1] != 1
    rare = [*PAIRS * 50, Pair("ß", "ß")]
    assert learn(pairs=rare).encode_source(["ß"])[0][-1] != 1
    assert learn(pairs=rare, coverage=0.99).encode_source(["ß"])[0][-1] == 1
    with pytest.raises(ValidationError):
        TokenizerOptions(kind="words")


@KINDS
@pytest.mark.parametrize("joint", [True, False])
@pytest.mark.parametrize(("vocabulary", "message"), [(8000, "larger"), (10, "smaller")])
def test_an_impossible_vocabulary_is_refused_with_one_that_works(kind, joint, vocabulary, message, capfd):
    with pytest.raises(UserError, match=message) as caught:
        learn(kind=kind, joint=joint, vocabulary=vocabulary)
    possible = int(re.search(r"data\.tokenizer\.vocabulary=(\d+)", str(caught.value))[1])
    if joint:  # With one each, the other language may still object.
        learn(kind=kind, joint=joint, vocabulary=possible)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("pairs", [[], [Pair("", "")]])
def test_nothing_to_learn_from_is_refused(pairs):
    with pytest.raises(UserError, match="empty"):
        learn(pairs=pairs)


def test_learning_is_silent(capfd):
    learn()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("which", ["joint", "separate"])
def test_a_tokenizer_is_saved_and_loaded(which, tmp_path, request):
    tokenizer = request.getfixturevalue(which)
    tokenizer.save(tmp_path)
    names = {"joint": ["tokenizer.model"], "separate": ["source.model", "target.model"]}[which]
    assert sorted(p.name for p in tmp_path.iterdir()) == names
    loaded = Tokenizer.load(tmp_path)
    assert (loaded.joint, loaded.fingerprint) == (tokenizer.joint, tokenizer.fingerprint)
    assert loaded.encode_source(ENGLISH) == tokenizer.encode_source(ENGLISH)
    assert loaded.encode_target(SPANISH) == tokenizer.encode_target(SPANISH)


def test_saving_leaves_no_other_tokenizer_behind(joint, separate, tmp_path):
    joint.save(tmp_path)
    separate.save(tmp_path)
    assert not Tokenizer.load(tmp_path).joint
    joint.save(tmp_path)
    assert Tokenizer.load(tmp_path).joint


def test_a_failed_save_keeps_what_was_there(joint, tmp_path, monkeypatch):
    joint.save(tmp_path)

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(UserError, match="No space left"):
        learn(vocabulary=80).save(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["tokenizer.model"]
    assert Tokenizer.load(tmp_path).fingerprint == joint.fingerprint


@pytest.mark.parametrize("content", [b"", b"hello", b"\xff" * 100, b"\x00" * 50])
def test_a_damaged_tokenizer_is_refused(content, tmp_path, capfd):
    (tmp_path / "tokenizer.model").write_bytes(content)
    with pytest.raises(UserError, match=r"tokenizer\.model: .*damaged"):
        Tokenizer.load(tmp_path)
    assert capfd.readouterr() == ("", "")


def test_a_sentencepiece_model_with_other_special_ids_is_refused(tmp_path):
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(ENGLISH), model_prefix=str(tmp_path / "tokenizer"), vocab_size=48, minloglevel=3
    )
    with pytest.raises(UserError, match=r"ids \(-1, 0, 1, 2\)"):
        Tokenizer.load(tmp_path)


def test_a_tokenizer_cut_short_is_refused(joint, tmp_path):
    joint.save(tmp_path)
    file = tmp_path / "tokenizer.model"
    content = file.read_bytes()
    for part in range(1, 10):
        file.write_bytes(content[: len(content) * part // 10])
        with pytest.raises(UserError, match="damaged"):
            Tokenizer.load(tmp_path)


@pytest.mark.parametrize("present", [None, "source.model"])
def test_a_missing_tokenizer_is_refused(separate, tmp_path, present):
    if present:
        separate.save(tmp_path)
        (tmp_path / "target.model").unlink()
    with pytest.raises(UserError, match="has no tokenizer"):
        Tokenizer.load(tmp_path)


def test_a_piece_that_is_not_utf_8_is_refused(joint, tmp_path):
    joint.save(tmp_path)
    file = tmp_path / "tokenizer.model"
    content = file.read_bytes()
    assert content.count("ñ".encode()) >= 1
    file.write_bytes(content.replace("ñ".encode(), b"\xc3\xc3", 1))
    with pytest.raises(UserError, match="pieces that are not UTF-8"):
        Tokenizer.load(tmp_path)


@pytest.mark.parametrize("score", [math.nan, math.inf])
def test_a_score_that_is_no_number_is_refused(joint, tmp_path, score):
    joint.save(tmp_path)
    file = tmp_path / "tokenizer.model"
    content = file.read_bytes()
    minus_one = struct.pack("<f", -1)
    assert content.count(b"\x15" + minus_one) == 1  # the piece that was merged second
    file.write_bytes(content.replace(b"\x15" + minus_one, b"\x15" + struct.pack("<f", score)))
    with pytest.raises(UserError, match="score is not a number"):
        Tokenizer.load(tmp_path)


def length(content):
    return bytes([len(content) & 127 | 128, len(content) >> 7])


@pytest.mark.parametrize(
    ("surface", "message"), [(b"\xff\xff\xff", "not UTF-8"), (b"x" * 1000, "writes 1,000 characters for an unknown")]
)
def test_what_is_written_for_an_unknown_piece_is_short_text(joint, tmp_path, surface, message):
    joint.save(tmp_path)
    file = tmp_path / "tokenizer.model"
    content = file.read_bytes()
    # In a protocol buffer the last value of a field counts, and messages of one kind are merged.
    field = b"\xe2\x02" + length(surface) + surface
    file.write_bytes(content + b"\x12" + length(field) + field)
    with pytest.raises(UserError, match=message):
        Tokenizer.load(tmp_path)


def test_what_a_strange_tokenizer_writes_is_one_line_without_control_characters():
    evil = "a\x1b[2J b\tc d\x92e \x9b31m f\x85g h\u2028i j\x7fk"
    pairs = [Pair(evil, evil)] * 20
    tokenizer = Tokenizer.learn(pairs, TokenizerOptions(vocabulary=40, normalization="identity"), seed=1)
    (ids,) = tokenizer.encode_target([evil])
    assert "\x1b" in "".join(tokenizer.target_pieces(ids))
    assert tokenizer.decode(ids) == tokenizer.decode_source(ids) == "a�[2J b c d�e �31m f g h i j�k"


@pytest.mark.parametrize(
    ("options", "text", "message", "size"),
    [
        (
            {"vocabulary": 8000},
            "a b c",
            "the training text gets a vocabulary of 11: the preset's, 8,000, is larger",
            11,
        ),
        ({"vocabulary": 8000, "kind": "unigram"}, "a b c", "is larger than it supports", None),
        ({"vocabulary": 6}, "a b c", "the preset's, 6, is too small for its single characters", 8),
    ],
)
def test_a_presets_vocabulary_gives_way_to_the_text(options, text, message, size):
    messages = []
    pairs = [Pair(text, text)] * 20
    tokenizer = Tokenizer.learn(pairs, TokenizerOptions(**options), seed=1, flexible=True, tell=messages.append)
    assert len(messages) == 1 and message in messages[0]
    assert size is None or tokenizer.target_size == size
    assert tokenizer.decode(tokenizer.encode_target([text])[0]) == text
    with pytest.raises(UserError, match=r"Set data\.tokenizer\.vocabulary="):
        Tokenizer.learn(pairs, TokenizerOptions(**options), seed=1)


def test_what_normalization_changes_and_which_size_is_possible_are_reported_for_each_side():
    messages = []
    pairs = [Pair("a b c", "x² y² ﬁ…")] * 12
    options = TokenizerOptions(vocabulary=8000, joint=False)
    tokenizer = Tokenizer.learn(pairs, options, seed=1, flexible=True, tell=messages.append)
    larger = "the preset's, 8,000, is larger than it supports"
    assert messages == [
        f"the source text gets a vocabulary of {tokenizer.source_size}: {larger}",
        "normalization (adaptive) changes characters of the target text: ﬁ 12 times",
        "normalization (adaptive) leaves alone in the target text: ² 24 times, … 12 times",
        f"the target text gets a vocabulary of {tokenizer.target_size}: {larger}",
    ]
    messages.clear()
    options = TokenizerOptions(vocabulary=20, normalization="nfkc")
    Tokenizer.learn(pairs, options, seed=1, flexible=True, tell=messages.append)
    assert messages[0] == (
        "normalization (nfkc) changes characters of the training text: ² 24 times, ﬁ 12 times, … 12 times; "
        "data.tokenizer.normalization=adaptive keeps what is often there"
    )


@pytest.mark.parametrize(
    ("message", "size"),
    [
        ("Vocabulary size too high (40). Please set it to a value <= 23.", 23),
        ("Vocabulary size is smaller than required_chars. 6 vs 8.", 8),
        ("Something else", None),
    ],
)
def test_the_size_in_a_message_of_sentencepiece(message, size):
    assert _possible_size(message) == size
    error = _user_error(message, 40, "the text")
    if size is None:
        assert type(error) is RuntimeError and str(error) == "SentencePiece failed: Something else"
    else:
        assert isinstance(error, UserError) and f"at {'most' if size == 23 else 'least'} {size}" in str(error)


def test_only_the_source_is_tagged():
    pairs = PAIRS * 3
    tokenizer = Tokenizer.learn(pairs, TokenizerOptions(vocabulary=45, joint=False), seed=1, tagged=True)
    assert tokenizer.source_pieces([4]) == ["<bt>"] and tokenizer.target_pieces([4]) != ["<bt>"]


def test_threads_encode_many_texts_only():
    """A call with a list starts a thread, which takes longer than encoding a few texts."""
    calls = []

    class Processor:
        def encode(self, texts, num_threads=None):
            calls.append((type(texts), num_threads))
            return [4] if isinstance(texts, str) else [[4]] * len(texts)

    assert _encode(Processor(), ["a"] * 200, 2, []) == [[4]] * 200
    assert _encode(Processor(), ["a"] * 201, 2, [5]) == [[5, 4]] * 201
    assert calls == [(str, None)] * 200 + [(list, 2)]
