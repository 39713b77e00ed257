"""Percentages, and translations whose numbers and placeholders are replaced."""

import pytest

from bitext.memory.match import Entry, Folded, Match, filled
from bitext.words import normalized_text


def match(text, source, target="…"):
    return Match(text, Entry(source, target))


@pytest.mark.parametrize(
    ("text", "source", "target", "percent", "translation"),
    [
        ("Save the file", "Save the file", "Guardar", 100, "Guardar"),
        ("Page 4 of 12", "Page 3 of 10", "Página 3 de 10", 99, "Página 4 de 12"),
        ("Hello %s!", "Hello {name}!", "¡Hola {name}!", 99, "¡Hola %s!"),
        ("See https://b.org/x.", "See https://a.org/.", "Véase https://a.org/.", 99, "Véase https://b.org/x."),
        ("Save the file.", "Save the file", "Guardar", 98, "Guardar"),
        ("SAVE the file", "Save the file", "Guardar", 98, "Guardar"),
        # A number that the translation does not contain can't be replaced.
        ("I have 4 cats", "I have 3 cats", "Tengo tres gatos", 97, "Tengo tres gatos"),
        ("Room 2, shelf 5", "Room 2, shelf 2", "Estante 2, sala 2", 97, "Estante 2, sala 2"),
        ("Add 4 of 5", "Add 4 of 4", "De 4, añada 4", 97, "De 4, añada 4"),
        ("Add 5 of 5", "Add 4 of 4", "De 4, añada 4", 99, "De 5, añada 5"),
        ("Below -12 at night", "Below -7 at night", "Bajo -7 de noche", 99, "Bajo -12 de noche"),
        ("Below -12 at night", "Below 7 at night", "Bajo 7 de noche", 99, "Bajo -12 de noche"),
        ("Below 12 at night", "Below −7 at night", "Bajo -7 de noche", 99, "Bajo 12 de noche"),
        ("Below -7 at night", "Below 7 at night", "Bajo siete de noche", 97, "Bajo siete de noche"),
        ("If x < 4 stop", "If x > 4 stop", "Si x > 4, pare", 97, "Si x > 4, pare"),
        ("Save 10 %", "Save 10 €", "Ahorre 10 €", 97, "Ahorre 10 €"),
        ("Pay 2.5 now", "Pay 25 now", "Pague 25 ya", 97, "Pague 25 ya"),
        ("Pay 2.5 now", "Pay 1.5 now", "Pague 1,5 ya", 99, "Pague 2,5 ya"),
        ("Use {b} and {a}", "Use {a} and {b}", "Use {b} con {a}", 99, "Use {a} con {b}"),
        ("Use {a} and {c}", "Use {a} and {a}", "Use {a} con {a}", 97, "Use {a} con {a}"),
        ("Press the key F8", "Press the key F3", "Pulse F3", 99, "Pulse F8"),
        ("Years 1999-2004", "Years 1998-2003", "Años 1998-2003", 99, "Años 1999-2004"),
        ("a b c d", "a b c x", "…", 75, "…"),
        ("a b c d e", "a b c d", "…", 80, "…"),
        ("a b", "x y", "…", 0, "…"),
        # Swapped words count like two different words.
        ("a b c d", "b a c d", "…", 50, "…"),
        # In text without spaces, characters are compared.
        ("我喜欢足球", "我喜欢篮球", "…", 80, "…"),
        ("!?", "!?!", "…", 67, "…"),
        ("Copy 5 files now", "Copy 3 files", "Copiar 3 archivos", 75, "Copiar 5 archivos"),
    ],
)
def test_percent_and_translation(text, source, target, percent, translation):
    near_match = match(text, source, target)
    assert (near_match.percent, near_match.target) == (percent, translation)


@pytest.mark.parametrize("minus", "-\u2010\u2011\u2012–−－﹣")
def test_a_minus_is_a_sign_however_it_is_written(minus):
    for other in ("-", minus):
        assert (
            match(f"Below {minus}7 at night", f"Below {other}8 at night", "Bajo –8 grados").target == "Bajo –7 grados"
        )
    for text, source, target in ((f"{minus}7", "8", "siete"), ("7", f"{minus}7", "menos siete")):
        assert match(f"Below {text} at night", f"Below {source} at night", f"Bajo {target}").percent == 97
    assert match(f"Below {minus}7 °C", "Below 7 °C", "Bajo 7 °C").target == f"Bajo {minus}7 °C"
    assert match(f"Below 9 {minus} 7 x", "Below 9, 7 x", "Bajo 9, 7 x").percent == 97
    assert match(f"Below 9 {minus} 7 x", "Below 9 - 7 x", "Bajo 9 - 7 x").percent >= 98


@pytest.mark.parametrize(
    ("sign", "other"),
    [("'", '"'), ("′", "″"), ("’", "”"), ("'", ""), ("″", ""), ("℃", "℉"), ("°", ""), ("‰", "%")],
)
def test_a_sign_that_changes_a_number_is_not_punctuation(sign, other):
    for first, second in ((sign, other), (other, sign)):
        near_match = match(f"It has 6{first} x 5", f"It has 6{second} x 5", f"Tiene 6{second} x 5")
        assert near_match.percent == 97 and not near_match.has_right_numbers
        assert match(f"It has 6{first}5 x", f"It has 6{second}5 x").percent <= 97
    for operator in "/:—":
        assert match(f"It has 6 {operator} 9 x", "It has 6, 9 x").percent == 97
    # The same sign in another character changes nothing.
    assert match("Size 6' x", "Size 6′ x", "Talla 6′ x").percent == 98


def test_differing_words_stand_beside_each_other():
    near_match = match("I like red apples a lot", "I like green pears")
    assert near_match.differing == [("red apples a lot", "green pears")] or near_match.differing == [
        ("red apples", "green pears"),
        ("a lot", ""),
    ]
    assert match("the cat sat", "a cat sat down").differing == [("the", "a"), ("", "down")]
    assert not match("the cat", "the cat").differing


@pytest.mark.parametrize(
    ("target", "changes", "expected"),
    [
        ("Cuesta 1.250,50 €", [("1,250.50", "3,000.75")], "Cuesta 3.000,75 €"),
        ("Cuesta 1250 €", [("1,250", "3,000.75")], None),
        ("De 3 a 3", [("3", "4"), ("3", "5")], None),
        ("Vaya a https://a.org/1", [("https://a.org/1", "https://b.org/22.5")], "Vaya a https://b.org/22.5"),
        ("Cuesta 5 €", [("5", "1,250.50")], None),
        ("De 3 a 3", [("3", "4")], "De 4 a 4"),
        ("De 3 a 5", [("3", "5"), ("5", "3")], "De 5 a 3"),
        ("De 31 a 5", [("3", "4")], None),
        ("{a} y {b}", [("{a}", "{b}"), ("{b}", "{a}")], "{b} y {a}"),
        ("nada", [("3", "3")], "nada"),
    ],
)
def test_filling(target, changes, expected):
    assert filled(target, changes) == expected


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("Don't PANIC, (see p. 42)!", ["don't", "panic", "see", "p", "0"]),
        ("%s of {n} <b>files</b>", ["\0", "of", "\0", "\0", "files", "\0"]),
        ("สวัสดี ok", [*"สวัสดี", "ok"]),
        ("…", ["…"]),
        ("", []),
    ],
)
def test_folded_words_of_a_text(text, folded):
    words = Folded(text)
    assert [token.folded for token in words.tokens] == folded
    assert len(words.key) == len(folded)


def test_pairs_are_of_neighbors_and_of_both_ends():
    assert len(Folded("a b c").pairs) == 4
    assert len(Folded("a a a a").pairs) == 3
    assert len(Folded("a b c").pairs & Folded("x b c").pairs) == 2
    assert not Folded("a b").pairs & Folded("b a").pairs
    assert len(set(Folded("the the the").key)) == 1


def test_spaces_and_half_surrogates():
    assert normalized_text(" a\u00a0 b\n") == "a b"
    assert normalized_text("\ud800") == "?"
