"""Cues from words with times."""

import re
from itertools import pairwise

import pysubs2
from hypothesis import given, settings
from hypothesis import strategies as st

from bitext import Cue, CueLimits, CueMaker, TimedText, cue_text, timed_words
from bitext.documents.subtitles.cue_maker import MOST_DELAY, header

_WORDS = st.sampled_from(
    [
        "a",
        "cat",
        "walked,",
        "home.",
        "Mr.",
        "incomprehensibilities",
        "我",
        "爱",
        "。",
        "「好」",
        "x" * 60,
        "e\u0301",
        "สวัสดี",
    ]
)
_SPACES = st.sampled_from([" ", " ", " ", "", "\n"])
_TIMED = st.lists(st.tuples(st.floats(0, 3), st.tuples(_SPACES, _WORDS).map("".join)), max_size=80)


def made(pieces, limits=None):
    """Return the cues of pieces, each with the seconds since the one before."""
    maker, time, cues = CueMaker(limits), 0.0, []
    for seconds, text in pieces:
        time += seconds
        cues += maker.add(time, text)
    return cues + maker.finish()


def spoken(text, seconds):
    return [(seconds, f" {word}") for word in text.split()]


def width(text):
    """Count as the documentation says, for the characters of these tests."""
    return sum(2 if "\u3000" <= c <= "\u9fff" else 1 for c in re.sub("[\u0301\u0e31\u0e35-\u0e37]", "", text))


@settings(max_examples=150, deadline=None)
@given(_TIMED, st.sampled_from([CueLimits(), CueLimits(20, 30.0), CueLimits(42, 5.0)]))
def test_every_limit_is_kept(pieces, limits):
    cues = made(pieces, limits)
    assert "".join("".join(cue.lines) for cue in cues).replace(" ", "") == "".join(
        "".join(t.split()) for _, t in pieces
    )
    for cue in cues:
        assert len(cue.lines) <= 2
        assert 0.999 <= cue.ends - cue.begins <= 7.001
        for line in cue.lines:
            assert width(line) <= limits.line_length or (" " not in line and len(line) > limits.line_length)
    assert all(before.ends <= after.begins for before, after in pairwise(cues))


@settings(max_examples=100, deadline=None)
@given(_TIMED.filter(lambda pieces: sum(seconds for seconds, _ in pieces) < 1000), st.data())
def test_cues_do_not_depend_on_how_the_text_comes(pieces, data):
    """Words may come in parts of any size, and the passing of time may be told, or not."""
    maker, time, cues = CueMaker(), 0.0, []
    for seconds, text in pieces:
        time += seconds
        if text[0].isspace():  # what follows without a space may be the rest of a word, for which nobody waits
            cues += maker.advance(data.draw(st.floats(max(0, time - 1), time)))
        cut = data.draw(st.integers(0, len(text)))
        cues += maker.add(time, text[:cut])
        cues += maker.add(time, text[cut:])
    assert cues + maker.finish() == made(pieces)


def test_cues_that_can_be_checked_by_hand():
    text = "So we went to the market, where my sister bought apples and pears and also a very large melon."
    first, second = made(spoken(text, 0.4))
    # "large" would be the 81st to the 86th character; the comma is in the first half, so the cue ends at the last word.
    assert first == Cue(
        0.4, 6.8, ("So we went to the market, where my sister", "bought apples and pears and also a very")
    )
    assert second == Cue(7.2, 8.2, ("large melon.",))


def test_a_cue_ends_with_a_sentence_or_at_a_comma_and_not_at_an_abbreviation():
    cues = made(spoken("I have never seen Mr. Smith. He lives far away.", 0.1))
    assert [cue.lines for cue in cues] == [("I have never seen Mr. Smith.",), ("He lives far away.",)]
    text = "When the long and very tiring working day was over, they all went to the small bar around the corner."
    cues = made(spoken(text, 0.1))
    assert cues[0].lines == ("When the long and very", "tiring working day was over,")


def test_lines_are_balanced_and_end_at_punctuation():
    text = " Nobody knew the answer, so she wrote it on the blackboard"
    assert made([(0, text)])[0].lines == ("Nobody knew the answer,", "so she wrote it on the blackboard")
    assert made([(0, text.replace(",", ""))])[0].lines == (
        "Nobody knew the answer so she",
        "wrote it on the blackboard",
    )


def test_times_of_cues():
    # 17 characters take a second; a pause of two seconds ends the cue, which stays as long as it takes to read it.
    cues = made([(1, " " + "a" * 34), (3, " b"), (0.5, " c")])
    assert cues == [Cue(1.0, 3.0, ("a" * 34,)), Cue(4.0, 5.0, ("b c",))]
    # A cue that is still being read delays the next one, but by seven seconds at most.
    first, second = made([(0, " " + "a" * 34 + "."), (0.5, " " + "b" * 34)])
    assert (first.ends, second.begins, second.ends) == (2.059, 2.059, 4.059)
    # Ten seconds of text at 105 characters a second: late sentences share cues, which are shown for a second.
    fast = made((0.2, f" {'w' * 20}.") for _ in range(50))
    assert len(fast) == 4 + 23 and [len(cue.lines) for cue in fast[3:5]] == [1, 2]
    assert fast[5].begins - 0.2 * 7 < MOST_DELAY
    assert {round(cue.ends - cue.begins, 3) for cue in fast[6:-1]} == {1.0}


def test_a_cue_is_returned_as_soon_as_nothing_can_change_it():
    maker = CueMaker()
    assert maker.add(0.0, " One two three") == []
    assert maker.advance(1.9) == []
    assert maker.advance(2.0) == [Cue(0.0, 1.0, ("One two three",))]
    assert maker.advance(60.0) == maker.finish() == []


def test_scripts_without_spaces():
    (cue,) = made([(0, character) for character in "他说「我们明天去北京」，然后我们坐火车回家看父母和朋友。"])
    assert cue.lines == ("他说「我们明天去北京」，", "然后我们坐火车回家看父母和朋友。")


def test_files_are_read_by_another_program(tmp_path):
    cues = [Cue(0.0, 3599.9999, ("a < b & c --> d", "zwei")), Cue(36000.5, 36002.0, ("drei",))]
    for web, ending in ((True, "vtt"), (False, "srt")):
        file = tmp_path / f"a.{ending}"
        texts = [cue_text(cue, number, web=web) for number, cue in enumerate(cues, 1)]
        file.write_text(header(web=web) + "".join(texts), encoding="utf-8")
        events = pysubs2.load(str(file)).events
        assert [(event.start, event.end) for event in events] == [(0, 3_600_000), (36_000_500, 36_002_000)]
        words = [word.text for word in timed_words(file.name, file.read_bytes())]
        assert words == ["a", "<", "b", "&", "c", "-->" if web else "→", "d", "zwei", "drei"]


def test_words_of_a_file_have_the_times_at_which_they_have_been_said():
    text = (
        "WEBVTT\n\n00:01.000 --> 00:03.000\n<i>- [door opens]\n- Hello, you!</i>\n\n00:03.000 --> 00:04.000\n♪ la ♪\n"
    )
    assert list(timed_words("a.vtt", text.encode())) == [
        TimedText(2.091, "Hello,"),
        TimedText(3.0, "you!"),
        TimedText(4.0, "la"),
    ]
    rolling = "WEBVTT\n\n"
    lines = ["we are here", "to say", "that all is well", "and so on"]
    for i in range(1, len(lines)):
        rolling += f"00:0{i}.000 --> 00:0{i + 1}.000\n{lines[i - 1]}\n{lines[i]}\n\n"
    assert [word.text for word in timed_words("a.vtt", rolling.encode())] == " ".join(lines).split()
