import pytest
import sentencex
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bitext.protected_spans import is_non_translatable, lost_and_invented
from tests.growth import assert_linear
from translucid.data.sentences import _identifier, language_probabilities, split_sentences

CODES = [
    "en",
    "es",
    "de",
    "fr",
    "it",
    "da",
    "ca",
    "zh",
    "ja",
    "hi",
    "th",
    "ar",
    "ru",
    "sk",
    "pl",
    "pt-BR",
    "xx",
    "",
    None,
]
SIGNS = list('aBé漢1.!?。।…"“”()«「」\u200d\0\ud800 \n\xa0\u3000\u2028\x85')
FRAGMENTS = [*SIGNS, "  ", "\n\n", "? ", "Dr. ", "e.g. ", "p.m. ", "a@b.c", "https://a.b/c. "]


def sentences(text, language="en"):
    return [sentence for sentence, _ in split_sentences(text, language)]


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("en", "I like soccer. Do you? Yes!", ["I like soccer.", "Do you?", "Yes!"]),
        ("en", "Dr. Smith came at 5 p.m. on Jan. 5. He left.", ["Dr. Smith came at 5 p.m. on Jan. 5.", "He left."]),
        ("en", "The U.S. economy grew by 2.5 percent.", ["The U.S. economy grew by 2.5 percent."]),
        ("en", "a dog in a tree . a man .", ["a dog in a tree .", "a man ."]),
        (
            "es",
            "Hola. ¿Cómo estás? ¡Bien! El Sr. Pérez llegó.",
            ["Hola.", "¿Cómo estás?", "¡Bien!", "El Sr. Pérez llegó."],
        ),
        ("de", "Das ist z. B. ein Test. Am 3. Mai kam er.", ["Das ist z. B. ein Test.", "Am 3. Mai kam er."]),
        ("zh", "你好。今天天气很好！", ["你好。", "今天天气很好！"]),
        ("hi", "यह एक वाक्य है। यह दूसरा है।", ["यह एक वाक्य है।", "यह दूसरा है।"]),
    ],
)
def test_sentences_end_where_a_reader_would_end_them(language, text, expected):
    assert sentences(text, language) == expected


def test_each_language_has_its_own_abbreviations():
    text = "El Sr. Pérez y la Sra. López."
    assert sentences(text, "es") == sentences(text, "es-MX") == sentences(text, "ES_mx") == [text]
    assert len(sentences("Vino la Dra. López.", "es")) == 1
    assert len(sentences("Vino la Dra. López.", "en")) == 2


def test_names_with_a_dot_inside_stay_whole():
    assert len(sentences("We use Node.JS, ASP.NET and the file README.TXT daily.")) == 1


def test_the_white_space_after_each_sentence_is_kept():
    assert split_sentences("  One.   Two!\tThree?\n\nFour. ") == [
        ("  One.", "   "),
        ("Two!", "\t"),
        ("Three?", "\n\n"),
        ("Four.", " "),
    ]


@pytest.mark.parametrize("blank", ["", " ", "\n\n", "\xa0 \n"])
def test_a_blank_text_is_one_empty_sentence(blank):
    assert split_sentences(blank) == [("", blank)]


@settings(max_examples=40)
@given(st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=4), max_size=25).map("".join), st.sampled_from(CODES))
@example("A\xa0.\r\nिİ？Mr. हB́ſDr.漢ébﬁp.m. a\u3000\n.।👧", "xx")
def test_no_character_is_ever_lost(text, language):
    parts = split_sentences(text, language)
    assert "".join(sentence + space for sentence, space in parts) == text
    assert all(space.isspace() or not space for _, space in parts)
    assert all(sentence.strip() for sentence, _ in parts) or not text.strip()
    assert not any(sentence[:1].isspace() for sentence, _ in parts[1:])


def test_time_does_not_grow_with_the_square_of_a_text_without_spaces():
    assert len(split_sentences("我。" * 2_000, "zh")) == 2_000
    assert_linear(lambda count: lambda: split_sentences("我。" * count, "zh"), 2_000, 16_000)


def test_a_language_that_is_no_language_does_no_harm():
    assert len(split_sentences("One. Two.", "\ud800é\0")) == 2


@pytest.mark.parametrize(
    "part", [".", ". ", "a.", "a@", "1", "%0", "<!--", "{{", "。", " ", "\xa0", "http://", "%a@b", "&a", "(", "-"]
)
def test_long_lines_of_anything_take_time_that_grows_with_their_length(part):
    """Such lines took minutes while time grew with the square of the length."""

    def read(text):
        assert "".join(sentence + space for sentence, space in split_sentences(text, "en")) == text
        is_non_translatable(text + "%")
        lost_and_invented(text, text)

    assert_linear(lambda length: lambda: read((part * length)[:length]), 5_000, 40_000)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("One.\vTwo", [("One.", "\v"), ("Two", "")]),
        ("Hi!  ", [("Hi!", "  ")]),
        ("   . Go now. Stop.", [("   .", " "), ("Go now.", " "), ("Stop.", "")]),
        ("Go.Stop. End.", [("Go.Stop.", " "), ("End.", "")]),
        ("I see?No. Go. ok", [("I see?No.", " "), ("Go.", " "), ("ok", "")]),
        ("Hello.\xa0World is. Big", [("Hello.", "\xa0"), ("World is.", " "), ("Big", "")]),
        ("你好。好。x. Y", [("你好。", ""), ("好。x.", " "), ("Y", "")]),
        ("no end here", [("no end here", "")]),
    ],
)
def test_where_sentences_end(text, parts):
    assert split_sentences(text) == parts


def test_a_sentence_that_a_window_cuts_off_is_read_again():
    """sentencex reads 5,000 characters at a time."""
    sentence = "word " * 599 + "end."
    assert split_sentences(" ".join([sentence] * 4)) == [(sentence, " ")] * 3 + [(sentence, "")]
    endless = "word " * 2400 + "end"
    assert split_sentences(endless) == [(endless, "")]
    short = [f"Sentence number {number} is here." for number in range(500)]
    assert sentences(" ".join(short)) == short


def test_windows_have_five_thousand_characters(monkeypatch):
    sizes = []
    segment = sentencex.segment
    monkeypatch.setattr(sentencex, "segment", lambda code, text: sizes.append(len(text)) or segment(code, text))
    assert len(split_sentences("我。" * 3000, "zh")) == 3000
    assert sizes == [5000, 1002]
    assert len(split_sentences("我。" * 2500, "zh")) == 2500
    assert sizes[2:] == [5000]


def test_languages_are_identified():
    for text, code in [("The house stands on a hill near the river.", "en"), ("Das Haus steht auf einem Berg.", "de")]:
        probabilities = language_probabilities(text)
        assert len(probabilities) == 140
        assert max(probabilities, key=probabilities.__getitem__) == code
        assert probabilities[code] > 0.9 and sum(probabilities.values()) == pytest.approx(1)
    # Two codes are listed twice; the second entries have no probability.
    assert language_probabilities("Kuća stoji na brdu pored reke i čeka proleće.")["sr"] > 0.1
    assert _identifier() is _identifier()
