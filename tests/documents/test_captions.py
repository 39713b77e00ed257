"""Speaker turns of captions, and the distribution of a text over captions and lines."""

import pytest

from bitext.documents.document import Target, read_document
from bitext.documents.subtitles.cues import ends_sentence, in_lines, split, turns
from bitext.documents.tagged_text import TaggedText
from tests.documents.changing import ENGLISH_SPANISH, all_changed
from translucid.ground.errors import UserError


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # Speakers.
        ("- One.\n- <i>Two.</i>", ["- One.\n|speech -", "- <i>Two.</i>|speech -"]),
        ("One\n- two", ["One\n- two|speech"]),
        ("{\\p1}m 0 0 l 100 0{\\p0}", []),
        ("One.\n- two", ["One.\n|speech", "- two|speech -"]),
        ("One\n- Two", ["One\n|speech", "- Two|speech -"]),
        ("- One\n- two", ["- One\n|speech -", "- two|speech -"]),
        ("- One! - two - Three", ["- One! - two - Three|speech -"]),
        ("- One. -Two", ["- One. |speech -", "-Two|speech -"]),
        ("One. - Two", ["One. - Two|speech"]),
        ("--- a", ["--- a|speech --"]),
        (">> A\n>> B", [">> A\n|speech >>", ">> B|speech >>"]),
        ("&gt;&gt; a\n&gt;&gt;&gt; b", ["&gt;&gt; a\n|speech &gt;&gt;", "&gt;&gt;&gt; b|speech &gt;&gt;&gt;"]),
        ("<v Ann>a <v.x Bob>b", ["<v Ann>a |speech", "<v.x Bob>b|speech"]),
        ("<voice>a", ["<voice>a|speech"]),
        # Songs.
        ("♪ a\nb ♪\nc", ["♪ a\n|song ♪", "b ♪\n|song ♪", "c|speech"]),
        ("# a b #\nc", ["# a b #\n|song # #", "c|speech"]),
        ("# a #\nc", ["# a #\n|song # #", "c|speech"]),
        ("# #\nc", ["# #\nc|speech"]),
        ("#hash\nb", ["#hash\nb|speech"]),
        ("# a\nb #", ["# a\nb #|speech"]),
        ("a ♪\nb", ["a ♪\n|song ♪", "b|speech"]),
        ("a\n♪ b\nc\nd ♪\ne", ["a\n|speech", "♪ b\n|song ♪", "c\n|song", "d ♪\n|song ♪", "e|speech"]),
        ("a ♪ b", ["a ♪ b|speech"]),
        ("♪♪", ["♪♪|song ♪♪"]),
        ("♪ #x # y ♪", ["♪ #x # y ♪|song ♪ # ♪"]),
        # Sounds.
        ("[a]\n[b] c", ["[a]|sound [ ]", "\n|speech", "[b]|sound [ ]", " c|speech"]),
        ("[a] (b) C", ["[a]|sound [ ]", " (b)|sound ( )", " C|speech"]),
        ("(a) b", ["(a) b|speech"]),
        ("(a) B", ["(a)|sound ( )", " B|speech"]),
        ("(a)\nb", ["(a)|sound ( )", "\nb|speech"]),
        ("[a] b", ["[a]|sound [ ]", " b|speech"]),
        ("a. [b]", ["a. |speech", "[b]|sound [ ]", "|speech"]),
        ("a [b]", ["a [b]|speech"]),
        ("a? (b)\nC", ["a? |speech", "(b)|sound ( )", "\nC|speech"]),
        ("[12] a", ["[12] a|speech"]),
        ("- (a) b", ["- (a) b|speech -"]),
        ("- [Ann] One", ["- [Ann]|sound - [ ]", " One|speech"]),
        ("[A]: b", ["[A]|sound [ ]", ": b|speech"]),
        ("[a\nb]\nc", ["[a\nb]|sound [ ]", "\nc|speech"]),
        ("(a (b)) c", ["(a (b)) c|speech"]),
        ("<i>[a]</i> b", ["<i>[a]|sound [ ]", "</i> b|speech"]),
        # Tags do not count.
        ("<i>- A</i>\n<b>- B</b>", ["<i>- A</i>\n|speech -", "<b>- B</b>|speech -"]),
        ("{\\an8}♪ a ♪\n<i>b</i>", ["{\\an8}♪ a ♪\n|song ♪ ♪", "<i>b</i>|speech"]),
        ("", []),
        ("\n <i></i>\n", []),
    ],
)
def test_turns(text, expected):
    result = []
    for turn in turns(text):
        signs = [text[start:end] for start, end in turn.signs]
        assert turn.speaker is (bool(signs) and signs[0][0] in "->&")
        result.append(f"{text[turn.start : turn.end]}|{' '.join([turn.kind, *signs])}")
    assert result == expected


def test_ends_of_sentences():
    ends = ["a.", "a. ", 'a."', "a)", "a]", 'a)"', "a.)", "a:", "a…", "♪", "。"]
    assert list(filter(ends_sentence, [*ends, "a", "a,", 'a"', "", "(a) b", "a-", ". a"])) == ends


@pytest.mark.parametrize(
    ("text", "shares", "expected"),
    [
        ("uno dos tres", [0, 0, 0], "uno|dos|tres"),
        ("uno", [5, 5], "uno|"),
        ("uno dos", [1, 1, 1], "uno|dos|"),
        ("a b c d e f", [1, 1, 1], "a b|c d|e f"),
        ("日本語の文字", [1, 1], "日本語|の文字"),
        ("a   b", [1, 1], "a|b"),
        ("", [1, 1], "|"),
        ("  uno dos ", [1], "uno dos"),
        ("uno dos tres cuatro", [100, 1, 1], "uno dos|tres|cuatro"),
        ("uno dos tres cuatro", [1, 1, 100], "uno|dos|tres cuatro"),
        ("uno dos tres cuatro", [3, 4, 5, 6], "uno|dos|tres|cuatro"),
        ("uno, dos tres", [7, 6], "uno,|dos tres"),
        ("aa bb cc dd ee ff", [2, 1, 3], "aa bb|cc|dd ee ff"),
        ("aaaa bb c", [6, 3], "aaaa bb|c"),
        # Punctuation counts as three characters; of equal gaps, the first is chosen.
        ("aaa bbb, c", [1, 1], "aaa bbb,|c"),
        ("aaaa bbbbb, cc", [7, 7], "aaaa bbbbb,|cc"),
        ("aaaa bbbbbb, c", [1, 1], "aaaa bbbbbb,|c"),
        ("aaaaa bbbbbbb, c", [1, 1], "aaaaa|bbbbbbb, c"),
    ],
)
def test_a_text_is_split_in_proportion(text, shares, expected):
    assert "|".join(split(text, shares)) == expected


@pytest.mark.parametrize(
    ("text", "lines", "expected"),
    [
        ("x " * 20 + "xx", 1, "x " * 20 + "xx"),
        ("x " * 21 + "x", 1, "x " * 10 + "x\n" + "x " * 10 + "x"),
        ("x" * 43, 1, "x" * 43),
        ("uno dos tres", 1, "uno dos tres"),
        ("uno dos tres", 2, "uno dos\ntres"),
        ("uno dos tres cuatro", 3, "uno dos\ntres\ncuatro"),
        ("uno dos", 5, "uno\ndos"),
        ("uno", 2, "uno"),
        ("a b cccccccccccc", 2, "a b\ncccccccccccc"),
        ("aaaaaaaaaaaa b c", 2, "aaaaaaaaaaaa\nb c"),
        ("日本語文", 2, "日本\n語文"),
        (" uno dos", 2, " uno\ndos"),
        ("a b c d", 4, "a\nb\nc\nd"),
        ("aaa bb bb aaa", 2, "aaa bb\nbb aaa"),
        ("x bbbbbbbbbbbbbbbbbbb c z", 3, "x\nbbbbbbbbbbbbbbbbbbb\nc z"),
        ("aaa bbb", 2, "aaa\nbbb"),
        ("aaa b cc", 2, "aaa\nb cc"),
    ],
)
def test_a_caption_has_lines_of_about_the_same_length(text, lines, expected):
    assert in_lines(TaggedText(text), lines, "\n").text == expected


SRT = """\ufeff1
00:00:01,000 --> 00:00:03,500
- [Ann] Hello <i>you</i>,
and so on.
- Bye! - No.

2
00:00:04,000 --> 00:00:06,000
I went to the

3
00:00:06,100 --> 00:00:08,000  X1:40
old house and then

4
00:00:08,000 --> 00:00:09,000
I came -- back.

5
00:00:10,000 --> 00:00:12,000
♪ La la ♪
♪ one of
two ♪
three

6
00:01:00,000 --> 00:01:01,000
{\\an8}{i}Up{/i} (laughs) it is.
[door
opens]

7
01:00:00,000 --> 01:00:02,000
12

8
01:00:02,000 --> 01:00:04,000
<font color="#fff">Two &amp; <b>three</b></font>

Nine

ten.
"""
VTT = """WEBVTT Kind: captions

NOTE
one --> two
more

STYLE
::cue { x }

intro
00:01.000 --> 00:02.500 align:start
<v Bob>One &amp; <c.x>two</c>
<v.loud Ann>three <00:00:01.500>four</v>

12
00:03.000 --> 00:04.000
(laughs) five &lt; six

NOTEWORTHY
00:05.000 --> 00:06.000
seven
REGION x

00:07.000 --> 00:08.000
<ruby>eight<rt>no</rt></ruby> nine --> ten
"""


def read_and_fill(name, text):
    """Return the segments of a file as `line longest-translation text`, and the translated file."""
    document = read_document(name, text.encode(), ENGLISH_SPANISH)
    lines = []
    for segment in document.segments:
        lines.append(
            " ".join([segment.place.removeprefix("line "), str(segment.longest or ""), segment.source.full_text])
        )
    return lines, document.filled(all_changed(document)).decode()


def test_a_file_of_subrip():
    lines, after = read_and_fill("a.srt", SRT)
    assert lines == [
        "3  Ann",
        "3  Hello <i>you</i>, and so on.",
        "5  Bye!",
        "5  No.",
        "9 102 I went to the old house and then I came -- back.",
        "21  La la",
        "22  one of",
        "23  two",
        "24  three",
        "28  {i}Up{/i} (laughs) it is.",
        "29  door opens",
        "38 42 Two &amp; <b>three</b>",
        "40 42 Nine",
        "42 42 ten.",
    ]
    words = ["Ann", "Hello", "you", "and so on", "Bye", "No.", "I went to the", "old house and then", "I came", "back."]
    words += ["La la", "one of", "two", "three", "Up", "laughs", "it is", "door", "opens", "Two", "Nine", "ten."]
    expected = SRT
    for word in words:
        expected = expected.replace(word, word.upper())
    assert after == expected


def test_a_file_of_webvtt():
    lines, after = read_and_fill("a.vtt", VTT)
    assert lines == [
        "12  One & <c.x>two</c>",
        "13  three four",
        "17 21 (laughs) five < six",
        "21 21 seven REGION x",
        "25 21 <ruby>eight<rt>no</rt></ruby> nine --> ten",
    ]
    start = VTT.index("<v Bob>")
    expected = VTT[start:].replace("nine --> ten", "nine --&gt; ten")
    for word in ["One", "two", "three", "four", "laughs", "five", "six", "seven", "REGION x", "eight", "nine", "ten"]:
        expected = expected.replace(word, word.upper())
    assert after == VTT[:start] + expected


TIMES = [f"00:00:0{second},000 --> 00:00:0{second + 1},000" for second in range(9)]


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (f"1\n{TIMES[1]}\nOne\n\n2\n{TIMES[2]}\n(two)\n", ["3 21 One", "7 21 two"]),
        (f"1\n{TIMES[1]}\nOne\n\n2\n{TIMES[2]}\n(two) three\n", ["3 21 One", "7 21 (two) three"]),
        (f"1\n{TIMES[1]}\nOne\n\n2\n{TIMES[2]}\n# two\n", ["3 21 One", "7 21 # two"]),
        (f"{TIMES[1]}\nOne\n{TIMES[2]}\ntwo\n5\n{TIMES[3]}\nthree.\n", ["2 63 One two three."]),
        ("1\n0:0:1.5 --> 0:0:2.25\nOne.\n", ["3 15 One."]),
        ("0:1.5 --> 1:0:0,9\nOne.\n", ["2 75587 One."]),
        (
            f"1\n{TIMES[1]}\nOne.\n\nTwo.\n\nthree 4\n\n2\n{TIMES[3]}\nFive.\n",
            ["3 21 One.", "5 21 Two.", "7 42 three 4 Five."],
        ),
        (f"Title\n{TIMES[1]}\nOne.\n", ["3 21 One."]),
        (f"{TIMES[1]}\nOne 12\n\n\n{TIMES[2]}\n\n{TIMES[3]}\ntwo.\n", ["2 21 One 12", "8 21 two."]),
        (f"1\n{TIMES[5]}\nOne\n\n2\n{TIMES[4]}\ntwo\n", ["3 21 One", "7 21 two"]),  # they overlap by more than a second
        ("0:1 --> 0:2\n", None),
        ("x\n\n1\n" + TIMES[1] + "\nOne.\n", None),
        ("".join(f"{times}\none\n\n" for times in TIMES[1:8]), ["2 126 one one one one one one", "20 21 one"]),
    ],
)
def test_captions_are_found_by_their_times(text, lines):
    if lines is None:
        with pytest.raises(UserError, match=r"^a\.srt:1: "):
            read_and_fill("a.srt", text)
    else:
        assert read_and_fill("a.srt", text)[0] == lines


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("WEBVTTx\n", "a.vtt:1: is no WebVTT: it does not begin with WEBVTT"),
        ("\nWEBVTT\n", "a.vtt:1: is no WebVTT: it does not begin with WEBVTT"),
        ("WEBVTT\n\n00:01.000 --> x\nOne\n", "a.vtt:3: has times that can't be read"),
        ("WEBVTT\nX: 1 --> 2\n\nNOTE\nx --> y\n\nid\n00:02.000 --> 00:0\nx\n", "a.vtt:8: has times that can't be read"),
    ],
)
def test_other_files_are_refused(text, message):
    with pytest.raises(UserError) as error:
        read_and_fill("a.vtt", text)
    assert str(error.value).startswith(message)
    assert read_and_fill("a.vtt", "WEBVTT") == ([], "WEBVTT")


def rolling(times, arrow=" align:start position:0%", timed=str, blank=" \n"):
    """Return captions in which each line is shown twice more, as converters of automatic captions write them."""
    lines, text = ["one cat", "two &amp; dogs", "[Music]", "six"], ""
    for number, line in enumerate(lines):
        shown = [*lines[max(0, number - 1) : number], timed(line)]
        for start, content in ((4 * number, shown), (4 * number + 2, [line])):
            text += f"{times(start)} --> {times(start + 2)}{arrow}\n" + "\n".join(content) + f"\n{blank}\n"
    return text


def webvtt_time(seconds):
    return f"00:00:{seconds:02}.000"


def timed_words(line):
    first, _, rest = line.partition(" ")
    return f"{first}<00:00:01.500><c> {rest}</c>" if rest else line


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.vtt", "WEBVTT\n\n" + rolling(webvtt_time, timed=timed_words)),
        ("a.vtt", "WEBVTT\n\n" + rolling(webvtt_time).replace("\n", "\r\n")),
        ("a.srt", rolling(lambda seconds: webvtt_time(seconds).replace(".", ","), "", blank="").replace("&amp;", "&")),
    ],
)
def test_lines_of_rolling_captions_are_translated_once(name, text):
    document = read_document(name, text.encode(), ENGLISH_SPANISH)
    texts = [segment.source.full_text for segment in document.segments]
    assert texts == ["one cat", "two & dogs", "Music", "six"]
    assert document.filled({}) == text.encode()
    expected = text.replace("[Music", "[MUSIC")
    for word in ("one", "cat", "two", "dogs", "six"):
        expected = expected.replace(word, word.upper())
    assert document.filled(all_changed(document)).decode() == expected
    # A sentence over two lines.
    joined = text.replace("one", "One").replace("six", "six.").replace("[Music]", "and")
    segments = read_document(name, joined.encode(), ENGLISH_SPANISH).segments
    assert [segment.source.full_text for segment in segments] == ["One cat two & dogs and six."]


GROWING = [
    "one",
    "one cat",
    "one cat",
    "one cat ran",
    "one cat ran\ntwo",
    "one cat ran\ntwo dogs",
    "two dogs",
    "[Music]",
]
PARTS = [
    "uno",
    "uno dos",
    "uno dos",
    "uno dos tres",
    "uno dos tres\ntú",
    "uno dos tres\ntú y yo",
    "tú y yo",
    "[Ah]",
]


@pytest.mark.parametrize("name", ["a.vtt", "a.srt"])
@pytest.mark.parametrize("full_stop", ["", "."])
def test_lines_that_grow_word_by_word_are_translated_once(name, full_stop):
    """Live captions: the time of each caption stays, and shows a part of the translation."""
    head = "WEBVTT\n\n" if name == "a.vtt" else ""

    def file(shown):
        text = head
        for number, lines in enumerate(shown):
            lines = lines.replace("dogs", f"dogs{full_stop}").replace("yo", f"yo{full_stop}")
            text += f"00:00:{number:02}.000 --> 00:00:{number + 1:02}.000\n{lines}\n\n"
        return text if name == "a.vtt" else text.replace(".000", ",000")

    document = read_document(name, file(GROWING).encode(), ENGLISH_SPANISH)
    texts = [segment.source.full_text for segment in document.segments]
    assert document.filled({}).decode() == file(GROWING)
    if full_stop:
        assert texts == ["one cat ran two dogs.", "Music"]
        translations = ["uno dos tres tú y yo.", "Ah"]
        assert document.segments[0].longest == 21 * 6, "it may be read as long as it grows"
    else:
        assert texts == ["one cat ran", "two dogs", "Music"]
        translations = ["uno dos tres", "tú y yo", "Ah"]
    targets = {i: Target(TaggedText(text)) for i, text in enumerate(translations)}
    assert document.filled(targets).decode() == file(PARTS)


@pytest.mark.parametrize(
    ("shown", "texts"),
    [
        # A word that another one continues, a line that only begins alike, and scripts without spaces.
        (["I", "In all", "In all we", "In all we do"], ["I", "In all we do"]),
        (["私は", "私は猫", "私は猫です"], ["私は猫です"]),
        (["So, yes", "So, yes\nand", "so no", "so no not"], ["So, yes", "and", "so no not"]),
        (["<i>one</i>", "<i>one</i> two", "<i>one</i> two three"], ["one two three"]),
    ],
)
def test_only_whole_words_make_a_line_grow(shown, texts):
    content = "WEBVTT\n\n"
    for number, text in enumerate(shown):
        content += f"00:{number:02}.000 --> 00:{number + 1:02}.000\n{text}\n\n"
    document = read_document("a.vtt", content.encode(), ENGLISH_SPANISH)
    assert [segment.source.full_text for segment in document.segments] == texts
    assert document.filled({}) == content.encode()
    if shown[0] != "私は":
        assert document.filled(all_changed(document)).decode().casefold() == content.casefold()


@pytest.mark.parametrize(
    ("text", "translation", "after"),
    [
        ("a<00:01.000><c> b</c><00:02.000><c> c</c>", "uno", "uno<00:01.000><c></c><00:02.000><c></c>"),
        ("a<00:01.000> b", "uno dos tres", "uno dos<00:01.000> tres"),
        ("<c.x>a<00:01.000> b\nc</c>", "uno dos tres", "<c.x>uno<00:01.000> dos\ntres</c>"),
    ],
)
def test_times_of_words_stay_in_order(text, translation, after):
    document = read_document("a.vtt", f"WEBVTT\n\n00:00.000 --> 00:03.000\n{text}\n".encode(), ENGLISH_SPANISH)
    filled = document.filled({0: Target(TaggedText(translation))}).decode()
    assert filled.endswith(f"-> 00:03.000\n{after}\n")


@pytest.mark.parametrize(
    ("text", "source", "after"),
    [
        (r"Two cats\Nand a dog", "Two cats and a dog", r"TWO CATS\NAND A DOG"),
        (r"A\hcat {\i1}sat{\i0}", r"A cat {\i1}sat", r"A CAT {\i1}SAT{\i0}"),
        (r"- One.\N- Two.", "One.|Two.", r"- ONE.\N- TWO."),
        (r"C:\New and C:\home", r"C:\New and C:\home", r"C:\NEW AND C:\HOME"),
        (r"{\p1}m 0 0 l 100 0{\p0}", "", None),
        (r"{\an8\p2}m 0 0 {\b1}l 9 0 b", "", None),
        (r"{\p1}m 0 0{\p0}Cat", "Cat", r"{\p1}m 0 0{\p0}CAT"),
        (r"{\pos(1,2)}m", "m", r"{\pos(1,2)}M"),
    ],
)
def test_codes_of_substation_alpha(text, source, after):
    content = f"1\n{TIMES[0]}\n{text}\n"
    document = read_document("a.srt", content.encode(), ENGLISH_SPANISH)
    assert "|".join(segment.source.full_text for segment in document.segments) == source
    filled = document.filled(all_changed(document)).decode()
    assert filled == f"1\n{TIMES[0]}\n{after or text}\n"
