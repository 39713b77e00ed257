"""The attempts of a placeholder strategy: the texts for the model, and the use of its last answer."""

import pytest

from bitext.documents.placeholders import PlaceholderStrategy, lost_and_invented_doubts
from bitext.documents.tagged_text import TaggedText
from bitext.protected_spans import PlaceholderSyntax


def attempts(source, answers, *, pieces=False):
    """Return the level and text of each attempt, the translation and its doubts."""
    strategy = PlaceholderStrategy.first(TaggedText(source, syntax=PlaceholderSyntax.message), pieces=pieces)
    requests = []
    for answer in answers:
        requests.append(f"{strategy.level} {strategy.text}")
        following = strategy.after(answer)
        if following is None:
            return requests, strategy.target(answer, []).full_text, strategy.doubts
        strategy = following
    return [*requests, f"{strategy.level} {strategy.text}"], None, []


@pytest.mark.parametrize(
    ("source", "answers", "requests", "translation", "doubts"),
    [
        (
            "a %s b {n} c",
            ["x", "x", "x", "x y z"],
            ["0 a %s b {n} c", "1 a Tom b 47 c", "2 a 47 b Tom c", "3 a  b  c"],
            "x %s y {n} z",
            ["placed: %s {n}"],
        ),
        (
            "12,500 of %s",
            ["x", "x Tom", "y", "47 Tom", "5"],
            ["0 12,500 of %s", "1 12,500 of Tom", "1 47 of Tom", "2 47 of 58", "3 of"],
            "12,500 5 %s",
            ["placed: 12,500 %s"],
        ),
        ("%s%s x", ["y", "Tom y"], ["0 %s%s x", "1 Tom x"], "%s%s y", []),
        ("a@b.org!x", ["y", "Tom y"], ["0 a@b.org!x", "1 Tom!x"], "a@b.org y", []),
        ("a{b}c", ["x", "p Tom q"], ["0 a{b}c", "1 a Tom c"], "p{b}q", []),
        ("a v{b} c", ["x {b}", "x Tom"], ["0 a v{b} c", "1 a Tom c"], "x v{b}", []),
        ("a v%s.", ["x v%s."], ["0 a v%s."], "x v%s.", []),
        ("a {b}px", ["x {b} px"], ["0 a {b}px"], "x {b} px", []),
        ("a {b}px", ["x {b}", "x Tom"], ["0 a {b}px", "1 a Tom"], "x {b}px", []),
        ("{n}x a", ["{n} b", "47 b"], ["0 {n}x a", "1 47 a"], "{n}x b", []),
        ("a {b}x{c}", ["x {b} {c}", "x Tom"], ["0 a {b}x{c}", "1 a Tom"], "x {b}x{c}", []),
        ("{a}m{b} c", ["{a} {b}", "Tom Max"], ["0 {a}m{b} c", "1 Tom Max c"], "{a}m{b}", []),
        ("a SP%d", ["%d", "%d", "x", "x"], ["0 a SP%d", "1 a 47", "2 a Tom", "3 a"], "x SP%d", ["placed: SP%d"]),
        ("\\n{b} it's{c}", ["\\n{b} x {c}"], ["0 \\n{b} it's{c}"], "\\n{b} x {c}", []),
        ("{b}c {b} d", ["x", "Tom x Tom y"], ["0 {b}c {b} d", "1 Tom c Tom d"], "{b} x {b} y", []),
        ("<b>{a}</b> c", ["x", "Tom x"], ["0 {a} c", "0 Tom c"], "<b>{a}</b> x", []),
        ("a {x}😀 b", ["y", "y Tom"], ["0 a {x}😀 b", "1 a Tom b"], "y {x}😀", []),
        (
            "a %d {n} {x}",
            ["y", "y", "Tom Max 47"],
            ["0 a %d {n} {x}", "1 a 47 58 Tom", "2 a Tom Max 47"],
            "%d {n} {x}",
            [],
        ),
        ("10 %s", ["x 10 %s"], ["0 10 %s"], "x 10 %s", []),
        ("See <a>[4]</a>", ["x", "y"], ["0 See [4]", "0 See"], "y <a>[4]</a>", ["placed: [4]"]),
        ("{{#a}}X{{/a}}", ["{{/a}}y{{#a}}", "z"], ["0 {{#a}}X{{/a}}", "1 X"], "{{#a}}z{{/a}}", []),
        ("{{a}}X{{/a}}", ["y", "z"], ["0 {{a}}X{{/a}}", "1 Tom X", "2 47 X"], None, []),
        (
            "I have <b>3</b> cats and <i>{n}</i>",
            ["I", "x", "y 3 {n}"],
            ["0 I have 3 cats and {n}", "0 I have 47 cats and 58", "0 I have cats and", "1 I have cats and"],
            None,
            [],
        ),
        ("a {b} c", ["y", "y Tom Tom", "y 47"], ["0 a {b} c", "1 a Tom c", "2 a 47 c"], "y {b}", []),
        ("_File %s", ["x %s"], ["0 File %s"], "_x %s", []),
        ("a\u200e %s", ["x %s"], ["0 a %s"], "x\u200e %s", []),
        (
            "H<sub>2</sub>O <b>12</b> a",
            ["x", "y", "z"],
            ["0 H2O 12 a", "0 Tom 47 a", "0 a"],
            "H<sub>2</sub>O <b>12</b> z",
            ["placed: 12 H2O"],
        ),
        ("<i>12</i> <b>12</b> a", ["12 x 12"], ["0 12 12 a"], "<i>12</i> x <b>12</b>", []),
        ("a <b>12 </b>b", ["x 12 y"], ["0 a 12 b"], "x <b>12 </b>y", []),
        ("a<b> 12</b> b", ["x 12 y"], ["0 a 12 b"], "x<b> 12</b> y", []),
        ("<b> 12 </b>", ["12"], ["0 12"], "<b> 12 </b>", []),
    ],
)
def test_attempts(source, answers, requests, translation, doubts):
    assert attempts(source, answers) == (requests, translation, doubts)


@pytest.mark.parametrize(
    ("source", "answers", "requests", "translation"),
    [
        ("a %s b", ["x ⟦1⟧"], ["0 a ⟦1⟧ b"], "x %s"),
        (
            "a %s 12 b",
            ["x", "x", "x Tom", "47"],
            ["0 a ⟦1⟧ 12 b", "1 a Tom 12 b", "2 a 47 12 b", "3 a  12 b", "3 a   b"],
            None,
        ),
    ],
)
def test_attempts_of_a_model_that_knows_pieces(source, answers, requests, translation):
    assert attempts(source, answers, pieces=True) == (requests, translation, [])


@pytest.mark.parametrize(
    ("source", "target", "numbers", "doubts"),
    [
        ("%s %s", "%s", True, ["lost: %s"]),
        ("10 20", "10", True, ["lost: 20"]),
        ("10 20", "10", False, []),
        ("%s", "%s %d", True, ["invented: %d"]),
        ("a", "b", True, []),
        ("{a} 12", "{a} {a} 12", True, ["invented: {a}"]),
        ("{a} 12 {b}", "{c}", True, ["lost: {a} {b} 12", "invented: {c}"]),
    ],
)
def test_doubts_about_lost_and_invented_parts(source, target, numbers, doubts):
    assert lost_and_invented_doubts(TaggedText(source), TaggedText(target), numbers=numbers) == doubts


def test_numbers_for_which_no_word_is_left_are_removed():
    numbers = " ".join(f"{digit},{digit * 3}" for digit in "123456789")
    requests, translation, doubts = attempts(f"{numbers} cats", ["x", "47 58 63 72 86 94 35 29 x"])
    assert requests == [f"0 {numbers} cats", "0 47 58 63 72 86 94 35 29  cats"]
    assert (translation, doubts) == (f"{numbers} x", ["placed: 9,999"])


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("%s went home", "%s Fui a casa", "%s fui a casa"),
        ("%s They went", "%s Fueron", "%s Fueron"),
        ("%s. they went", "%s. Fueron", "%s. Fueron"),
        ("%s of it", "%s TV", "%s TV"),
        ("%s went home", "Fui %s a casa", "Fui %s a casa"),
        ("they saw %s", "Vieron %s", "Vieron %s"),
    ],
)
def test_a_word_that_continues_a_part_has_no_capital(source, target, expected):
    strategy = PlaceholderStrategy.first(TaggedText(source, syntax=PlaceholderSyntax.message))
    while strategy.level < 3:
        strategy = strategy.after("")
    assert strategy.continued(TaggedText(target)).text == expected
