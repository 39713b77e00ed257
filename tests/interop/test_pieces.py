"""Conversion of vocabularies into our order and back: small ones, compared completely."""

import gzip
import json
import re
from importlib import import_module
from pathlib import Path

import pytest
import torch

from translucid.ground.errors import UserError
from translucid.ground.special import SPECIAL
from translucid.interop import huggingface, pieces
from translucid.interop.ctranslate2 import read_pieces, vocabulary_of
from translucid.interop.huggingface_export import M2M100, Rows, fairseq_rows, marian_rows, original_size
from translucid.interop.imported import Keys
from translucid.interop.marian import read_vocabulary
from translucid.interop.pieces import (
    NEVER,
    Vocabulary,
    adapted_models,
    languages_in,
    missing_pieces,
    model_of,
    pieces_of,
    rewritten,
    vocabulary_weights,
)

PROTO = import_module("sentencepiece.sentencepiece_model_pb2").ModelProto
NORMAL, UNKNOWN, CONTROL, DEFINED, UNUSED, BYTE = range(1, 7)
OURS = ["<pad>", "<unk>", "<s>", "</s>"]


def sentencepiece_model(*entries):
    """Build a SentencePiece model of these pieces; each comes with its score and type."""
    model = PROTO()
    for piece, score, kind in entries:
        model.pieces.add(piece=piece, score=score, type=kind)
    model.normalizer_spec.name = "nmt_nfkc"
    model.denormalizer_spec.name = "other"
    model.trainer_spec.model_prefix = "theirs"
    return model


def entries_of(model):
    return [(piece.piece, piece.score, piece.type) for piece in model.pieces]


IDS = {"</s>": 0, "<unk>": 1, "b": 4, "a": 3, "<pad>": 6, "<s>": 5}


@pytest.mark.parametrize(
    ("special", "names", "rows", "can_output"),
    [
        # Marian: the decoder starts with padding; another piece spelled like a special token loses its name.
        ({"pad": 6, "start": 6}, ["<row 2>", "a", "b", "<row 5>"], [None, 1, 6, 0, 2, 3, 4, 5], [False, True, True]),
        # Fairseq: the decoder starts with the end token.
        ({"pad": 6, "start": 0}, ["<row 2>", "a", "b", "<row 5>"], [6, 1, 0, 0, 2, 3, 4, 5], [True, True, False]),
        ({"pad": None, "start": None}, ["<row 2>", "a", "b", "<row 5>", "<row 6>"], [None, 1, None, 0], [False, True]),
        ({"pad": 6, "start": 5}, ["<row 2>", "a", "b"], [6, 1, 5, 0, 2, 3, 4], [True, True, True]),
    ],
)
def test_a_vocabulary_in_our_order(special, names, rows, can_output):
    vocabulary = Vocabulary.of(IDS, 7, unknown=1, end=0, **special)
    assert vocabulary.names == [*OURS, *names]
    assert vocabulary.rows == [*rows, *range(2, 7)][: len(vocabulary.names)]
    if special["start"] is None:
        assert vocabulary.can_output == [False, True, False, True, *[True] * 5]
    else:
        assert vocabulary.can_output == [*can_output, True, *[True] * len(names)]


def test_rows_that_do_not_exist_are_refused(monkeypatch):
    def make_vocabulary(ids, size, **changes):
        special = {"pad": 1, "unknown": 2, "start": 1, "end": 0}
        return Vocabulary.of(ids, size, **special | changes)

    assert make_vocabulary({"a": 3}, 4).names == [*OURS, "a"]
    for ids, size, changes in (
        ({}, 3, {}),
        ({}, (1 << 21) + 1, {}),
        ({"a": 4}, 4, {}),
        ({"a": -1}, 4, {}),
        ({}, 4, {"pad": 4}),
        ({}, 4, {"start": -1}),
    ):
        with pytest.raises(UserError, match=f"the vocabulary does not fit embeddings of {size:,} rows"):
            make_vocabulary(ids, size, **changes)
    monkeypatch.setattr(pieces, "_MAX_ROWS", 5)
    assert len(make_vocabulary({}, 5).names) == 6


def test_weights_are_put_into_our_order():
    vocabulary = Vocabulary.of({"</s>": 0, "<unk>": 1, "a": 2, "<pad>": 3}, 4, pad=3, unknown=1, start=3, end=0)
    vocabulary.add_unknown(["x"])
    assert vocabulary.names == [*OURS, "a", "x"] and vocabulary.rows == [None, 1, 3, 0, 2, 1]
    assert vocabulary.can_output == [False, True, True, True, True, False]
    matrix = torch.tensor([[0.5, 1.0], [1.5, 2.0], [2.5, 3.0], [3.5, 4.0]])
    matrices = {"source": matrix, "target": 10 * matrix, "output": 100 * matrix}
    rows = [[0, 0], [1.5, 2], [3.5, 4], [0.5, 1], [2.5, 3], [1.5, 2]]
    bias = torch.tensor([0.25, 0.5, 0.75, 1.0])
    weights = vocabulary_weights(vocabulary, vocabulary, matrices, bias)
    assert [*weights] == [
        "source_embedding.tokens.weight",
        "target_embedding.tokens.weight",
        "output.weight",
        "output.bias",
    ]
    for factor, tensor in zip((1, 10, 100), weights.values(), strict=False):
        assert torch.equal(tensor, factor * torch.tensor(rows))
    assert weights["output.bias"].tolist() == [NEVER, 0.5, 1.0, 0.25, 0.75, NEVER]
    assert vocabulary.bias(None).tolist() == [NEVER, 0, 0, 0, 0, NEVER]
    assert torch.tensor(NEVER).exp() < 1e-40


def test_languages_are_found_by_their_spelling():
    names = [">>pt_br<<", "__es__", "spa_Latn", "__toolong__", "__E__", ">><<", "spa_latn", "x__es__", ">>a b<<", "a"]
    assert languages_in(names) == {"pt_br": ">>pt_br<<", "es": "__es__", "spa_Latn": "spa_Latn"}
    assert languages_in(names, "marian") == {"pt_br": ">>pt_br<<"}
    assert languages_in(names, "m2m", "nllb") == {"es": "__es__", "spa_Latn": "spa_Latn"}


THEIR_PIECES = [
    ("<unk>", 0.0, UNKNOWN),
    ("<s>", 0.0, CONTROL),
    ("a", -1.5, NORMAL),
    ("▁b", -2.5, DEFINED),
    ("<0x41>", -3.0, BYTE),
    ("c", -4.5, UNUSED),
    ("a", -1.0, NORMAL),
]


def test_a_sentencepiece_model_gets_our_ids():
    model = sentencepiece_model(*THEIR_PIECES)
    assert missing_pieces(model, ["▁b"]) == ["a", "<0x41>"]
    converted = PROTO.FromString(rewritten(model, [*OURS, ">>es<<", "▁b", "é", "two", "c", "<s>x"], [">>es<<"]))
    assert entries_of(converted) == [
        ("<pad>", 0.0, CONTROL),
        ("<unk>", 0.0, UNKNOWN),
        ("<s>", 0.0, CONTROL),
        ("</s>", 0.0, CONTROL),
        (">>es<<", -14.5, CONTROL),
        ("▁b", -2.5, DEFINED),
        ("é", -14.5, NORMAL),
        ("two", -14.5, UNUSED),
        ("c", -4.5, UNUSED),
        ("<s>x", -14.5, UNUSED),
    ]
    spec = converted.trainer_spec
    assert (spec.pad_id, spec.unk_id, spec.bos_id, spec.eos_id) == (0, 1, 2, 3)
    assert [spec.pad_piece, spec.unk_piece, spec.bos_piece, spec.eos_piece] == OURS
    assert (spec.unk_surface, spec.vocab_size, spec.model_prefix) == ("⁇", 10, "theirs")
    assert (converted.normalizer_spec.name, converted.denormalizer_spec.name) == ("nmt_nfkc", "other")
    model.ClearField("denormalizer_spec")
    assert not PROTO.FromString(rewritten(model, [*OURS], [])).HasField("denormalizer_spec")


def test_our_sentencepiece_model_gets_the_usual_ids():
    model = sentencepiece_model(*[(name, 0.0, CONTROL) for name in OURS], ("a", -1.5, NORMAL), ("b", -2.5, DEFINED))
    converted = PROTO.FromString(model_of(model, ["<unk>", "<s>", "</s>", "b", "a"]))
    assert entries_of(converted) == [
        ("<unk>", 0.0, UNKNOWN),
        ("<s>", 0.0, CONTROL),
        ("</s>", 0.0, CONTROL),
        ("b", -2.5, DEFINED),
        ("a", -1.5, NORMAL),
    ]
    spec = converted.trainer_spec
    assert (spec.unk_id, spec.bos_id, spec.eos_id, spec.pad_id, spec.vocab_size) == (0, 1, 2, -1, 5)


def test_pieces_that_only_sentencepiece_has_are_added_to_each_vocabulary():
    vocabularies = [
        Vocabulary.of({"</s>": 0, "<unk>": 1, ">>es<<": 2, "x": 3}, 4, pad=None, unknown=1, start=None, end=0)
    ] * 2
    models, languages = adapted_models(
        [sentencepiece_model(*THEIR_PIECES[:3]), sentencepiece_model(*THEIR_PIECES[:5])], vocabularies
    )
    assert languages == {"es": ">>es<<"}
    assert vocabularies[0].names == [*OURS, ">>es<<", "x", "a", "▁b", "<0x41>"]
    for model, own_pieces in zip(models, (("a",), ("a", "▁b", "<0x41>")), strict=True):
        converted = PROTO.FromString(model)
        assert [piece.piece for piece in converted.pieces] == vocabularies[0].names
        assert [piece.piece for piece in converted.pieces if piece.score > -5 and piece.score < 0] == [*own_pieces]


def test_what_is_no_sentencepiece_model_is_refused():
    for content, message in ((b"nothing", "is not a SentencePiece model, or is damaged"), (b"", "without pieces")):
        with pytest.raises(UserError, match=f"a.spm: .*{message}"):
            pieces_of(content, Path("a.spm"))


def test_the_rows_that_an_import_has_added_are_not_kept():
    embeddings = torch.tensor([[0.0], [1.0], [2.0], [3.0], [4.0], [1.0], [5.0], [1.0], [1.0]])
    bias = torch.tensor([0.0, 0, 0, 0, 0, NEVER, 0, NEVER, NEVER])
    assert original_size(embeddings, bias) == 7 == original_size(embeddings)
    bias[8] = 0
    assert original_size(embeddings, bias) == 9
    embeddings[4] = 1
    assert original_size(embeddings[:6]) == 4


def test_the_orders_of_marian_and_fairseq():
    names = [*OURS, "a", "b"]
    assert marian_rows(names, as_opus=False) == Rows([0, 1, 2, 3, 4, 5], names, pad=0, start=2, end=3)
    opus = marian_rows(names, as_opus=True)
    assert opus == Rows([3, 1, 4, 5, 2], ["</s>", "<unk>", "a", "b", "<pad>"], pad=4, start=4, end=0)
    assert opus.vocabulary == {"</s>": 0, "<unk>": 1, "a": 2, "b": 3, "<pad>": 4}
    assert (opus.ids.index(SPECIAL.start), opus.ids.index(5)) == (4, 3)
    names = [*OURS, "<row 9>", "spa_Latn", "a", "<row 0>", "eng_Latn", "b"]
    languages = ["eng_Latn", "spa_Latn"]
    expected_names = ["<s>", "<pad>", "</s>", "<unk>", "a", "b", "spa_Latn", "eng_Latn", "<row 9>"]
    assert fairseq_rows(names, languages, same_start=True) == Rows([7, 0, 3, 1, 6, 9, 5, 8, 4], expected_names, 1, 2, 2)
    expected = Rows([2, 0, 3, 1, 6, 9, 5, 8, 4, 7], [*expected_names, "<row 0>"], pad=1, start=0, end=2)
    assert fairseq_rows(names, languages, same_start=False) == expected
    names.remove("<row 0>")
    assert fairseq_rows(names, languages, same_start=True).ids[0] == SPECIAL.pad
    m2m = [f"__{code}__" for code in M2M100]
    assert len(M2M100) == 100 and fairseq_rows([*OURS, "a", *m2m], m2m, same_start=True).names[5:] == m2m
    with pytest.raises(UserError, match="the model knows 99 languages, and M2M100's tokenizer knows other ones"):
        fairseq_rows([*OURS, "a", *m2m[1:]], m2m[1:], same_start=True)
    with pytest.raises(UserError, match="knows 100 languages"):
        fairseq_rows([*OURS, "a", *m2m[::-1]], m2m, same_start=True)


def test_fairseqs_rows_begin_with_four_special_tokens():
    model = sentencepiece_model(
        ("<unk>", 0.0, UNKNOWN), ("<s>", 0.0, CONTROL), ("</s>", 0.0, CONTROL), ("a", -1.0, NORMAL), ("b", -2.0, NORMAL)
    )
    assert huggingface._fairseq_ids(model) == {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "a": 4, "b": 5}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "is not a list of pieces with their rows"),
        ('{"a": "1"}', "is not a list of pieces with their rows"),
        ('{"a": true}', "is not a list of pieces with their rows"),
        ('{"a": 1, "b": 1}', "gives two pieces the same row"),
    ],
)
def test_a_list_of_rows_is_checked(tmp_path, content, message):
    (tmp_path / "vocab.json").write_text(content)
    with pytest.raises(UserError, match=f"vocab.json: {message}. Get the folder again."):
        huggingface._ids(tmp_path / "vocab.json")


@pytest.mark.parametrize("name", ["shared_vocabulary.json", "target_vocabulary.json", "target_vocabulary.txt"])
def test_ctranslate2s_lists_are_read_by_any_name(tmp_path, name):
    content = '["a", "b c"]' if name.endswith("json") else "a\nb c\n"
    (tmp_path / name).write_text(content)
    assert read_pieces(tmp_path, "target") == ["a", "b c"]
    if name.startswith("target"):
        names = "shared_vocabulary.json nor shared_vocabulary.txt nor source_vocabulary.json nor source_vocabulary.txt"
        with pytest.raises(UserError, match=f"has no vocabulary: neither {names}. Is the folder complete"):
            read_pieces(tmp_path, "source")
    if name.endswith("txt"):
        (tmp_path / name).write_bytes(b"\xff\n")
        with pytest.raises(UserError, match=r"txt: is not UTF-8. Get the folder again."):
            read_pieces(tmp_path, "target")
        (tmp_path / name).write_text("a\n\n")
        assert read_pieces(tmp_path, "target") == ["a", ""]


def test_ctranslate2s_special_tokens_are_those_of_its_configuration(tmp_path):
    names = ["<unk>", "a", "</s>", "<s>", "<pad>", "[UNK]"]
    defaults = Keys({}, tmp_path / "config.json")
    assert vocabulary_of(names, defaults).rows[:4] == [4, 0, 3, 2]
    assert vocabulary_of(names, defaults, zero_start=True).rows[:4] == [4, 0, None, 2]
    configured = Keys({"unk_token": "[UNK]", "eos_token": "a", "decoder_start_token": "a"}, tmp_path / "config.json")
    assert vocabulary_of(names, configured).rows[:4] == [4, 5, 1, 1]
    assert vocabulary_of(names[:4], defaults).rows[:4] == [None, 0, 3, 2]
    with pytest.raises(UserError, match=r"config.json: eos_token is 'b', which is not in the vocabulary"):
        vocabulary_of(names, Keys({"eos_token": "b"}, tmp_path / "config.json"))
    # OpenNMT's padding token, and a vocabulary of its sources, which may lack the tokens of targets.
    assert vocabulary_of([*names, "<blank>"], defaults).rows[:4] == [6, 0, 3, 2]
    sources = ["<unk>", "<blank>", "a"]
    assert vocabulary_of([*sources, "b"], defaults, of_source=True, source_end=False).rows[:4] == [1, 0, None, None]
    with pytest.raises(UserError, match=r"config.json: eos_token is '</s>', which is not in the vocabulary"):
        vocabulary_of(sources, defaults, of_source=True)


@pytest.mark.parametrize(
    ("content", "ids"),
    [
        (b"---\na: 0\n", {"a": 0}),
        (b"a: 0\r\n\r\nb:1 \n", {"a": 0, "b": 1}),
        (b"'': 0\n'a: 1\n\": 2\n\"b: 3\nc': 4\nd\": 5\n", {"": 0, "'a": 1, '"': 2, '"b': 3, "c'": 4, 'd"': 5}),
        (b'"\\_b\\"c": 0\n', {'_b"c': 0}),
        (b'"\\x41\\\\x42": 3\n', {"A\\x42": 3}),
        (b"? a b\n: 5\n", {"a b": 5}),
        (b"a: 999999999\n", {"a": 999999999}),
    ],
)
def test_marians_lists_are_read_as_they_are_written(content, ids):
    assert read_vocabulary(content, Path("v.yml")) == ids


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a: 0\n\nb\n", "v.yml:3: is not a piece and its row"),
        (b"a: 9999999999\n", "v.yml:1: is not a piece and its row"),
        (b"a: 1\nb: 1\n", "v.yml: gives two pieces the same row"),
    ],
)
def test_other_lines_are_reported_with_their_number(content, message):
    with pytest.raises(UserError, match=re.escape(message)):
        read_vocabulary(content, Path("v.yml"))


def test_the_tokenizer_of_an_opus_model_gives_the_ids_of_transformers(real_models, real_data):
    """Both roles; a text that spells special pieces, or begins like `>>mg<<`, is a text for us and not for them."""
    from transformers import MarianTokenizer

    folder = real_models / "opus-mt-en-mg-tokenizer"
    theirs = MarianTokenizer.from_pretrained(folder)
    keys = Keys(json.loads((folder / "config.json").read_text()), folder / "config.json")
    embeddings = dict.fromkeys(("source", "target"), torch.zeros(54_688, 1))
    vocabulary, _, ours, languages = huggingface._marian_vocabularies(folder, keys, embeddings)
    assert languages == {}
    texts = [
        "",
        " ",
        "a\tb",
        "😀 👩‍👩‍👧 🇪🇸",
        "ﬁ ㎏ ① Ａｂｃ　ｄ",
        "e\u0301 é",
        "a\u00a0b\u2003c\u200bd\u00ad",
        "\ufeffBOM",
    ]
    texts += [
        "½ ² ™ … ‥ Ⅷ 𝐇𝐢",
        "中文 ひらがな 한국어 עברית",
        "x" * 20_000,
        "word " * 5_000,
        "a  b \x01 \x7f\r",
        "Hello >>mg<< there",
    ]
    for name in ("official/flores200.devtest.eng_Latn.gz", "official/flores200.devtest.spa_Latn.gz"):
        texts += gzip.decompress((real_data / name).read_bytes()).decode().split("\n")[:1000:4]
    rows = vocabulary.rows
    for side, encode in (("text", ours.encode_source), ("text_target", ours.encode_target)):
        expected = [theirs(**{side: text})["input_ids"] for text in texts]
        assert [[*(rows[number] for number in ids), 0] for ids in encode(texts)] == expected
    spelled = [">>mg<< Hello", "a </s> <pad>"]
    for ids in ours.encode_source(spelled):
        assert not {*ids} & {0, 2, 3} and vocabulary.names[ids[0]] in ("▁>", "▁a")
