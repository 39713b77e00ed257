"""Values that only programs read are told from words."""

import pytest

from tests.growth import assert_linear
from translucid.documents.strings.codes import is_code

CODES = (
    """
#aabbcc | rgba(1, 2, 3, .5) | photo.jpg | a/b.png | yyyy/MM/dd | EEE, d MMM yyyy | h:mm a | HH:mm:ss | d 'de' MMMM
MMMM | yyyyMMdd | MM.yyyy | Asia/Tokyo | America/Argentina/Buenos_Aires | UTC | GMT+2 | zh-Hant | pt-BR | es-419
margin: 0; color: blue | .a { color: red; } b { margin: 0 } | alert('Hi'); | document.title = "x"; | javascript:go()
=SUM(A1:A9) | =B2+1 | ="a"&A1 | 12px | v2.0.1-rc1 | 2024-02-01T10:00:00Z | 0x1F | user_name | userName | --verbose
""".replace("\n", " | ")
    .strip(" |")
    .split(" | ")
)
WORDS = (
    """
Daddy | Hmm | Hmm, a | dad | Mama | add | buzz | Emma | 2nd | 1st | 80s | 5pm | 3-day | Yes/No | Asia/Pacific
OK | and/or | Note: this; | See photo.jpg now | => next | May | easy | e-mail | Save (all);
day | Color: red | no | it | on | function | return policy | Wi-Fi | Hello {name} | MM | a.m. today
""".replace("\n", " | ")
    .strip(" |")
    .split(" | ")
)


@pytest.mark.parametrize("text", CODES)
def test_codes(text):
    assert is_code(text)


@pytest.mark.parametrize("text", WORDS)
def test_words(text):
    assert not is_code(text)


def test_two_letters_are_a_language_where_the_key_says_so():
    assert is_code("en", "lang") and is_code("pt_br", "user_locale") and is_code("no", "language-code")
    assert not is_code("no", "answer") and not is_code("no", "slang") and not is_code("None", "lang")


@pytest.mark.parametrize("token", ["=", "p {", "a{color:red}", "color:red;", "f(", "a.", "'", "d ", "a/", "x-", "{"])
def test_a_long_value_takes_linear_time(token):
    assert_linear(lambda count: lambda: is_code(token * count), 2_000, 32_000)
