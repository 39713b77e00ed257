"""From texts to a model's ids and back: sentences, placeholders, parts of long texts, and additions for the model."""

import pytest

from translucid.data.placeholders import Masked, mask
from translucid.data.text_pipeline import EncodedPair, TextPipeline, translatable
from translucid.data.tokenizing.pieces import SPACE


class Words:
    """A tokenizer that gives an id to each word; `+` begins another piece of the same word, and `?` is unknown."""

    has_placeholders = True

    def __init__(self, *opening):
        self.source_opening = opening
        self.pieces = ["<pad>", "<unk>", "<s>", "</s>", "<en>"]
        self.calls = 0

    def mask(self, text, patterns=()):
        return mask(text, patterns)

    def encode_source(self, texts):
        self.calls += 1
        return [[*self.source_opening, *self._ids(text)] for text in texts]

    def encode_target(self, texts):
        return list(map(self._ids, texts))

    def _ids(self, text):
        pieces = (SPACE + " ".join(text.split())).replace("+", "\0+").replace(" ", f"\0{SPACE}").split("\0")
        for piece in pieces:
            if piece not in self.pieces:
                self.pieces.append(piece)
        ids = {piece: i for i, piece in enumerate(self.pieces)} | {f"{SPACE}?": 1}
        return [ids[piece] for piece in pieces if piece != SPACE]

    def source_pieces(self, ids):
        return [self.pieces[i] for i in ids]

    def decode(self, ids):
        return "".join(self.pieces[i] for i in ids if i > 4).replace(SPACE, " ").strip()

    decode_source = decode


@pytest.fixture
def words():
    return Words()


def described(pieces):
    """Return the text of each piece, its number of ids, the text after it, and the tokens of what was split."""
    return [(piece.text, len(piece.ids), piece.after, piece.cut) for piece in pieces]


def test_a_text_that_fits_is_one_piece(words):
    pipeline = TextPipeline(words, 4)
    fitting, blank, too_long = pipeline.pieces(["One two. Three", " \n", "one two. three four"], split=False)
    assert described(fitting) == [("One two. Three", 4, "", 0)]
    assert fitting[0].ids[-1] == 3 and words.decode(fitting[0].ids) == "One two. Three"
    assert blank == []
    assert described(too_long) == [("one two.", 3, " ", 5), ("three four", 3, "", 5)]


def test_long_texts_are_cut_into_sentences_and_these_between_words(words):
    pipeline = TextPipeline(words, 4, "en")
    (pieces,) = pipeline.pieces(["One two. Three four five six seven eight.\nNine %s."], split=False)
    assert described(pieces) == [
        ("One two.", 3, " ", 11),
        ("Three four five", 4, " ", 11),
        ("six seven eight.", 4, "\n", 11),
        ("Nine %s.", 3, "", 11),
    ]
    assert words.decode(pieces[3].ids) == "Nine ⟦1⟧."
    assert pieces[3].masked == Masked("Nine ⟦1⟧.", {"⟦1⟧": "%s"})
    assert list(pipeline.warnings([*pieces, *pieces])) == [
        "long: 11 tokens are more than the model takes (4), translated in pieces"
    ]


def test_sentences_are_translated_one_by_one_and_what_has_no_words_is_copied(words):
    pipeline = TextPipeline(words, 5, "en")
    texts = ["One %s. {n}: 42.\n\nTwo three four five. Six seven eight nine ten.", "", "7"]
    first, blank, number = pipeline.pieces(texts, split=True)
    assert words.calls == 2  # the signs at the ends of all sentences, and all sentences
    assert described(first) == [
        ("One %s.", 3, " ", 0),
        ("{n}: 42.", 0, "\n\n", 0),
        ("Two three four five.", 5, " ", 0),
        ("Six seven eight", 4, " ", 6),
        ("nine ten.", 3, "", 6),
    ]
    assert first[1].masked == Masked("{n}: 42.", {})
    assert (blank, described(number)) == ([], [("7", 0, "", 0)])
    assert described(pipeline.pieces(["7"], split=False)[0]) == [("7", 2, "", 0)]
    assert [piece.text for piece in translatable(first)] == [
        piece.text for position, piece in enumerate(first) if position != 1
    ]
    translations = [words.encode_target([text])[0] for text in ("Uno ⟦1⟧.", "Dos", "Seis", "diez.")]
    assert pipeline.join(first, translations) == "Uno %s. {n}: 42.\n\nDos Seis diez."
    assert list(pipeline.warnings(first)) == ["long: 6 tokens are more than the model takes (5), translated in pieces"]


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("? one", [("?", " "), ("one", "")]),
        ("?one?", [("?", ""), ("one", ""), ("?", "")]),
        ("? ?  one. Two ?", [("? ?", "  "), ("one.", " "), ("Two", " "), ("?", "")]),
        ("?? 5 ?", [("?? 5 ?", "")]),
        ("? !", [("? !", "")]),
        ("?%s one", [("?", ""), ("%s one", "")]),
        ("☎ one", [("☎ one", "")]),
    ],
)
def test_signs_at_the_ends_that_the_vocabulary_lacks_are_copied(words, text, pieces):
    pipeline = TextPipeline(words, 20, "en")
    (row,) = pipeline.pieces([text], split=True)
    assert [(piece.text, piece.after) for piece in row] == pieces
    assert [bool(piece.ids) for piece in row] == [any(map(str.isalpha, piece.text)) for piece in row]
    assert pipeline.join(row, [words.encode_target([piece.text])[0] for piece in translatable(row)]) == text
    assert len(pipeline.pieces([text], split=False)[0]) == 1


@pytest.mark.parametrize("character", "\u00ad\u200b\u2060\ufeff")
def test_characters_that_only_say_where_a_line_may_end_are_left_out(words, character):
    pipeline = TextPipeline(words, 20, "en")
    ((plain,), (marked,)) = pipeline.pieces(["one two", f"o{character}ne two"], split=True)
    assert plain.ids == marked.ids
    assert marked.text == f"o{character}ne two"
    ((unchanged,),) = pipeline.pieces([f"o{character}ne two"], split=False)
    assert unchanged.ids != plain.ids


@pytest.mark.parametrize(
    ("text", "longest", "sizes"),
    [
        ("a b c d e f g h i j", 5, [4, 3, 3]),
        ("a+b+c+d+e+f+g+h+i+j", 5, [4, 3, 3]),
        ("a+b+c d+e", 5, [3, 2]),
        ("a+b+c+d e+f g", 5, [4, 3]),
        ("a+b c+d+e+f+g+h", 5, [2, 3, 3]),
        ("a b+c+d+e+f+g+h", 5, [4, 4]),
        ("a+b c+d+e f+g+h", 5, [2, 3, 3]),
        ("a b c d", 5, [4]),
        ("a b c d e", 5, [3, 2]),
        ("a b c", 2, [1, 1, 1]),
        ("a+b+c", 2, [1, 1, 1]),
    ],
)
def test_parts_are_alike_in_length_and_end_between_words_if_possible(words, text, longest, sizes):
    (ids,) = words.encode_source([text])
    chunks = TextPipeline(words, longest).chunks(ids)
    assert [len(chunk) for chunk in chunks] == sizes
    assert [i for chunk in chunks for i in chunk] == ids


def test_each_part_begins_with_the_language(words):
    tokenizer = Words(4)
    pipeline = TextPipeline(tokenizer, 5)
    (pieces,) = pipeline.pieces(["a b c d e"], split=False)
    assert described(pieces) == [("a b c", 5, " ", 7), ("d e", 4, "", 7)]
    assert all(piece.ids[0] == 4 and piece.ids[-1] == 3 for piece in pieces)
    (pieces,) = pipeline.pieces(["a b c d e"], split=True)
    assert described(pieces) == [("a b c", 5, " ", 7), ("d e", 4, "", 7)]


def test_a_source_and_its_translation_for_forced_decoding(words):
    pipeline = TextPipeline(words, 3)
    piece = pipeline.encode("See %s and <b> now")
    assert words.decode(piece.ids) == "See ⟦1⟧ and ⟦2⟧ now" and piece.ids[-1] == 3
    assert (piece.text, piece.after, piece.cut) == ("See %s and <b> now", "", 0)
    assert pipeline.text(piece, words.encode_target(["Ve ⟦2⟧ y ⟦1⟧"])[0]) == "Ve <b> y %s"
    first, second = pipeline.pairs([("See %s", "Ve {x} %s ya"), ("a b c", "d")])
    assert words.decode(first.target) == "Ve {x} ⟦1⟧ ya" and words.decode(first.source) == "See ⟦1⟧"
    assert first.ids == (first.source, first.target) and first.source[-1] == first.target[-1] == 3
    assert (first.longest, second.longest) == (5, 4)
    assert first.masked == mask("See %s")
    assert EncodedPair([1], [1, 2], mask("")).longest == 2


class AddingStep:
    """A step that adds words to the result of the previous step, and records its arguments."""

    def __init__(self, *words):
        self.words = words
        self.calls = []

    def apply(self, text, shown):
        self.calls.append((text, shown))
        return " ".join([shown, *self.words])


def test_steps_add_to_the_input_of_the_model_what_fits(words):
    pipeline = TextPipeline(words, 6)
    pieces = pipeline.pieces(["a %s", "a b c d", "? b"], split=False)
    pieces = [piece for text_pieces in pieces for piece in text_pieces]
    assert pipeline.inputs(pieces) == [piece.ids for piece in pieces]
    first, empty, second = AddingStep("x"), AddingStep(), AddingStep("y")
    with_steps = pipeline.with_steps(first).with_steps(empty, second)
    assert with_steps.steps == (first, empty, second) and pipeline.steps == ()
    ids = with_steps.inputs(pieces)
    assert [words.decode(row) for row in ids[:2]] == ["a ⟦1⟧ x y", "a b c d x"]
    assert [row[-1] for row in ids] == [3, 3, 3]
    assert ids[2] == pieces[2].ids
    assert first.calls == [("a ⟦1⟧", "a ⟦1⟧"), ("a b c d", "a b c d")]
    assert empty.calls == second.calls == [("a ⟦1⟧", "a ⟦1⟧ x"), ("a b c d", "a b c d x")]
