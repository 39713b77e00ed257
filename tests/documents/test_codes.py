"""Values for programs are distinguished from words."""

import pytest

from bitext.documents.strings.messages import is_code
from tests.growth import assert_linear

CODES = (
    """
#fff | url(x y) | calc(1px + 2px) | linear-gradient(a) | ../a | /usr | ~/x | C:\\x | a/b/c/ | camelCase() | a.b() | a_b
-x | @a/b | en-Hans-CN | {12345678-1234-1234-1234-123456789abc} | 12345678 | v1 | 12:30 | 2024-01-31T10:00:00+01:00
1.2.3-beta | 1-2 | GMT-10:30 | =SUM( | =$A$1 | =-A1 | =1+2 | ='x y'!A1 | =(1) | = A1 | US/Eastern | yyyy | d MMM | LLLL
MM/dd | dd.MM. | mm ss | color: red; | --x: y; | -webkit-box-sizing: a; | fonts: x; | @media print { a } | function() {}
async function () {}; | let y=2; | (a, b) => {} | a.b = c; | a.go(); | go(1); | 5xm | HH:mm 'x' | var x = 1; | EEEE
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
#ff | #fffffffff | #ffg | ./a b | a/b | a b/c.png | video/html | CamelCase | a.b. | _ | a b_c | ---x | -X | @ | en-us
en-Foo | v | 3rd | 4th | 5am | 1-day | UTC+ | =Abc | =ABCD1 | Foo/Bar | yy | dd | d M | Mmm | GGGG | M/d | .dd x | . MM
aa bb | yy. | color: red; x | a { x } | a { color: red } b | @media x | -foo-color: a; | const z = 3 | a.b == c; | go(1)
go(1) x; | var x; | function x; | if (a) {} | a { color: red } b { x } | T | h 'o''clock' a | ; | { }
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


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("H", "save.AccessKey"),
        ("LeftToRight", "a.FlowDirection"),
        ("Center", "a.HorizontalAlignment"),
        ("Segoe UI", "a.FontFamily"),
        ("s", "menu.accesskey"),
        ("S", "save_shortcut_key"),
        ("home", "icon"),
        ("left", "toolbar.align"),
        ("M12 2L2 7l10 5 10-5-10-5z", ""),
        ("M 0 0 h 24 v 24 H 0 z " * 20, "path"),
        ("data:image/png;base64,iVBORw0KGgo=", ""),
        ("fa fa-home", ""),
        ("mdi-account-circle", ""),
        ("fas fa-check", ""),
    ],
)
def test_what_decides_how_a_program_works_or_looks(text, key):
    assert is_code(text, key)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("Icon", "icon"),
        ("icon", "icon"),
        ("Align left", "toolbar.align"),
        ("Keyboard shortcut", "shortcut"),
        ("left", "button"),
        ("Name", "Customer.Name"),
        ("Mr 2 and 3", ""),
        ("bi-weekly news", ""),
        ("My data: a, b", ""),
    ],
)
def test_labels_of_the_same_things_are_words(text, key):
    assert not is_code(text, key)


def test_two_letters_are_a_language_where_the_key_says_so():
    assert is_code("en", "lang") and is_code("pt_br", "user_locale") and is_code("no", "language-code")
    assert not is_code("no", "answer") and not is_code("no", "slang") and not is_code("None", "lang")


@pytest.mark.parametrize("token", ["=", "p {", "a{color:red}", "color:red;", "f(", "a.", "'", "d ", "a/", "x-", "{"])
def test_a_long_value_takes_linear_time(token):
    assert_linear(lambda count: lambda: is_code(token * count), 2_000, 32_000)


def test_a_name_has_at_most_200_characters():
    assert is_code("a_" + "b" * 198) and not is_code("a_" + "b" * 199)
    assert is_code("=SUM(" + "b" * 200) and is_code("color: red;" * 30)


@pytest.mark.parametrize(
    ("key", "codes"),
    [("lang", "en pt-br"), ("lang_code", "en pt-br"), ("languageCode", "en pt-br"), ("user.lang", "en pt-br")]
    + [("Lang", "en pt-br"), ("hreflang", "en pt-br"), ("userLang", ""), ("slang", ""), ("lang2", ""), ("langs", "")],
)
def test_keys_of_languages(key, codes):
    assert [value for value in ("en", "pt-br", "eng", "english", "e") if is_code(value, key)] == codes.split()
