"""Cleaning: each rule rejects what it is for and keeps the rest; usual values are learned from the corpus."""

import math
import random
import re
import tracemalloc
from statistics import NormalDist

import pytest

from bitext.pair import Pair
from translucid.corpora.phrasebook import generate
from translucid.data.cleaning import (
    RULES,
    SLACK,
    Cleaner,
    CorpusReader,
    DigestSet,
    JudgedPair,
    Profile,
    Report,
    alike_text,
    gains,
    guess_language,
    judge_by_gain,
    row,
)
from translucid.data.readers.corpus import PlacedPair
from translucid.data.statistics import digest

PROFILE = Profile(("en", "es"), (frozenset({"LATIN"}), frozenset({"LATIN"})), ratio=0.04, spread=0.16)
EXAMPLES = {
    "empty": [
        (("", "nada"), "no source"),
        ((" \t", "\u3000"), "no source and no target"),
    ],
    "too-long": [(("word " * 401, "palabra " * 200), "2,005 characters")],
    "encoding": [
        (("The boy is here.", "El niÃ±o estÃ¡ aquÃ­."), "wrong encoding: El niño está aquí."),
        (("The boy is here.", "El ni�o está aquí."), r"U\+FFFD"),
        (("The boy\x93s here.", "El niño está aquí."), r"source has U\+0093"),
        (("The boy is here.", "El ni?o está aquí."), "question mark for a letter: El ni"),
        (("She kissed him.", "Ella lo bes?."), "question mark"),
        (("He is a good boy.", "?l es un buen niño."), "question mark"),
        (("She is well today.", "Ella est? bien hoy."), "question mark"),
    ],
    "script": [
        (("You go to school, right?", "Tú vas a la escuela, ¿сierto?"), "two scripts in one word: сierto"),
        (("She is well today.", "Она сегодня здорова."), "letters of CYRILLIC"),
    ],
    "untranslated": [
        (("She is well today.", "She is well today!"), "the target is the source"),
        (("She is well today, she said", "She is well today, she dijo"), "most words"),
    ],
    "language": [
        (
            ("She will be here tomorrow morning.", "Sie wird morgen früh hier sein, sagte der Mann."),
            "target looks like de",
        ),
        (("She will be here tomorrow morning.", "The man is going to the house with his brother."), "looks like en"),
        (("Ella estará aquí mañana por la mañana.", "El hombre va a la casa con su hermano."), "source looks like es"),
    ],
    "length": [
        (("I'll take care of the bill and of all the others.", "Yo pagaré."), "-8.* deviations"),
        (("Who?", "¿Quién fue el que hizo la cancelación de los vuelos?"), "4 and 52 characters"),
    ],
    "placeholders": [
        (("Dear %s, you have mail.", "Hola, tienes correo."), "lost %s"),
        (("Dear {name}, you have mail.", "Hola {nombre}, tienes correo."), r"lost \{name\}; invented \{nombre\}"),
        (("A <b>bold</b> word.", "Una palabra <b>negrita.</i>"), "lost </b>; invented </i>"),
        (("Look at https://a.org/b.", "Mira https://a.org/c."), "lost https://a.org/b"),
    ],
    "numbers": [
        (("He has 102 books.", "Tiene 39 libros."), "102 became 39"),
        (("He has 3 books.", "Tiene 4 libros."), "3 became 4"),
    ],
}
FINE = [
    ("Did he ask why? Nobody knows.", "¿Preguntó por qué? Nadie lo sabe."),
    ("Radio", "Radio"),
    ("%s: 42", "%s: 42"),
    ("He has 1,000.5 books.", "Tiene 1.000,5 libros."),
    ("He has two books & 20 pens.", "Tiene 2 libros y veinte plumas."),
    ("A Q&amp;A with Tom.", "Preguntas & respuestas con Tom."),
    ("Dear {name}, see <b>%(where)s</b>.", "Hola {name}, mira <b>%(where)s</b>."),
    ("The letter α is Greek.", "La letra α es griega."),
    ("Go.", "Ve."),
    ("Tom lives in Москва with Mary.", "Tom vive en Москва con Mary."),
    ("Tom said Ñandú Ã la carte.", "Tom dijo ñandú à la carte."),
]


def judged(*pairs, without=(), profile=PROFILE):
    placed = [PlacedPair("a.tsv", line, Pair(*pair)) for line, pair in enumerate(pairs, 1)]
    return list(Cleaner(profile, without).judge(placed))


@pytest.mark.parametrize(
    ("rule", "pair", "message"), [(rule, *example) for rule, examples in EXAMPLES.items() for example in examples]
)
def test_each_rule_rejects_its_cases_and_can_be_left_out(rule, pair, message):
    (judgement,) = judged(pair)
    assert judgement.rule == rule, judgement
    assert re.search(message, judgement.what), judgement
    (unchecked,) = judged(pair, without=[rule])
    assert unchecked.rule != rule


@pytest.mark.parametrize("pair", FINE)
def test_good_pairs_are_kept(pair):
    (judgement,) = judged(pair)
    assert not judgement.rule, judgement


def test_duplicates_are_rejected_from_the_second_on_and_the_near_ones_by_another_rule():
    pairs = [
        ("She is well today.", "Ella está bien hoy."),
        ("She is well today.", " Ella está bien hoy."),
        ("SHE is well, today!", "ella está bien hoy"),
        ("She is well today.", "Hoy está bien."),
        ("She is well today %s.", "Ella está bien hoy %s."),
        ("She has 21 books.", "Ella tiene 21 libros."),
        ("She has 22 books.", "Ella tiene 22 libros."),
    ]
    rules = ["", "duplicate", "near-duplicate", "", "", "", ""]
    assert [judgement.rule for judgement in judged(*pairs)] == rules
    assert [judgement.rule for judgement in judged(*pairs, without=["near-duplicate"])] == ["", "duplicate", *[""] * 5]
    assert [judgement.rule for judgement in judged(*pairs, without=["duplicate", "near-duplicate"])] == [""] * 7
    assert alike_text(Pair("Ｆｕｌｌ!", "¿Qué?")) == "full\tqué"


def test_without_a_known_language_its_rule_rests():
    pair = ("She will be here tomorrow morning.", "Sie wird morgen früh hier sein, sagte der Mann.")
    for languages in ((None, None), ("en", "tlh"), ("en", "de")):
        profile = Profile(languages, PROFILE.scripts, 0.1, 0.3)
        assert not judged(pair, profile=profile)[0].rule, languages


def test_the_spread_of_lengths_is_their_standard_deviation():
    usual = NormalDist(0.1, 0.2)
    lengths = [round(100 * math.exp(usual.inv_cdf((number + 0.5) / 400))) - SLACK for number in range(400)]
    profile = Profile.of([Pair("x" * (100 - SLACK), "y" * length) for length in lengths], ("en", "es"))
    assert (profile.ratio, profile.spread) == pytest.approx((0.1, 0.2), abs=0.01)


def test_usual_values_are_learned_from_most_of_the_corpus():
    good = [Pair(phrase.source, phrase.target) for phrase in generate(1500, split="train", seed=1)]
    profile = Profile.of([*good, *[Pair("Он сегодня здоров.", "x" * 500)] * 40], (None, None))
    assert profile.languages == ("en", "es")
    assert profile.scripts == (frozenset({"LATIN"}), frozenset({"LATIN"}))
    ratios = sorted((len(pair.target) + 5) / (len(pair.source) + 5) for pair in good)
    assert 0.98 < 2.718281828**profile.ratio / ratios[len(ratios) // 2] < 1.05
    assert 0.05 < profile.spread < 0.4
    assert Profile.of(good[:50], ("pt", None)).languages == ("pt", "es")
    assert Profile.of(good[:50], (None, None)).spread == float("inf")
    assert guess_language(["42", "%"]) is None


def test_digests_are_a_set_in_little_memory():
    chance = random.Random(1)
    digests = [chance.randrange(1 << 64) for _ in range(20_000)] + [0, 1, (1 << 64) - 1]
    digest_set, known = DigestSet(), set()
    for value in digests + digests[::-1]:
        assert digest_set.add(value) == ((value or 1) not in known)
        known.add(value or 1)
    assert len(digest_set) == len(known)
    tracemalloc.start()
    large = DigestSet()
    for number in range(25_000):
        large.add(digest(str(number)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(large) == 25_000 and peak < 875_000


def test_nothing_is_lost_and_what_is_no_pair_stands_in_its_place(tmp_path):
    lines = [b"She is well.\tElla est\xc3\xa1 bien.", b"one column", b"\xff\tx", b"\tnada", b"Go.\tVe."]
    (tmp_path / "a.tsv").write_bytes(b"\n".join(lines) + b"\n")
    reader = CorpusReader([str(tmp_path / "a.tsv")], (None, None))
    judgements = list(reader.judged(Cleaner(reader.profile(lambda count: None))))
    assert reader.count == 3
    rules = [(1, ""), (2, "unreadable"), (3, "unreadable"), (4, "empty"), (5, "")]
    assert [(judgement.line, judgement.rule) for judgement in judgements] == rules
    report = Report()
    for judgement in judgements:
        report.add(judgement)
    assert (report.pairs, report.kept, report.rejected) == (5, 2, {"unreadable": 2, "empty": 1})
    assert list(report.to_json()["rules"]) == ["unreadable", "empty"]
    location = f"{tmp_path / 'a.tsv'}:2"
    assert row(judgements[1]) == f"one column\t\tunreadable\tthere is one column only\t{location}\n"


def test_every_rule_has_a_name():
    names = Cleaner(PROFILE).rules.keys()
    assert list(names) == [name for name in RULES if name in names]
    assert set(EXAMPLES) < set(names)


def surprise_of(table):
    """Return a function that looks up surprises in a table by (source, target), with 10 nats as default."""
    return lambda pairs: [table.get(tuple(pair), 10.0) for pair in pairs]


def test_the_gain_compares_a_pair_with_another_ones_sides():
    pairs = [Pair("one", "uno"), Pair("two", "x"), Pair("three", "tres"), Pair("four", "cuatro")]
    forward = surprise_of({("one", "uno"): 2.0, ("four", "cuatro"): None, ("one", "tres"): 16.0})
    backward = surprise_of({("uno", "one"): 3.0, ("tres", "three"): 4.0, ("uno", "three"): 12.0})
    # The other pair is two places away: f(uno|three) = 10 and b(one|tres) = 10; f(tres|one) = 16 and b(three|uno) = 12.
    assert gains(pairs, forward, backward) == [1 - 5 / 20, 0.0, 1 - 14 / 28, None]
    judged = [JudgedPair("a.tsv", 1, pairs[0]), JudgedPair("a.tsv", 2, Pair("", "b"), "empty", "no source")]
    judged += [JudgedPair("a.tsv", line, pair) for line, pair in enumerate(pairs[1:], 3)]
    judgements = list(judge_by_gain(judged, forward, backward, 0.5))
    assert [(judgement.line, judgement.rule) for judgement in judgements] == [
        (1, ""),
        (2, "empty"),
        (3, "model"),
        (4, ""),
        (5, ""),
    ]
    assert judgements[2].what == "the sides explain 0 % of each other"
    assert [row.rule for row in judge_by_gain(judged, forward, backward, 0.51)] == ["", "empty", "model", "model", ""]
    # The default minimum lies below both.
    assert [row.rule for row in judge_by_gain(judged, forward, backward)] == ["", "empty", "model", "", ""]
    assert list(judge_by_gain(judged[:1], forward, backward)) == judged[:1]


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("Broken link", "Enlace roto"),
        ("Open file", "Abrir archivo"),
        ("Search results", "Resultados"),
        ("Error message", "Mensaje de error"),
        ("template parameter", "parámetro de plantilla"),
    ],
)
def test_a_button_has_too_few_letters_to_be_of_another_language(source, target):
    (judgement,) = judged(Pair(source, target), profile=Profile(("en", "es"), PROFILE.scripts))
    assert judgement.rule == "", judgement.what


def test_a_file_whose_name_is_no_utf8_is_cleaned(tmp_path):
    judgement = JudgedPair("b\udce9d.tsv", 3, Pair("a", ""), "empty", "no target")
    assert row(judgement).encode().endswith(b"b?d.tsv:3\n")
    report = Report()
    report.add(judgement)
    assert report.to_json()["rules"]["empty"]["examples"][0]["file"] == "b?d.tsv"


def test_no_sentence_of_an_excluded_pair_is_kept():
    excluded = [Pair("She is well.", "Ella está bien."), Pair("Come in.", "Entra.")]
    pairs = [("She is well.", "Elle va bien."), ("Komm rein.", "Come in. "), ("He is well.", "Er ist gesund.")]
    cleaner = Cleaner(PROFILE, ["language"], excluded=excluded)
    judged = list(cleaner.judge(PlacedPair("x", 1, Pair(*pair)) for pair in pairs))
    assert [(j.rule, j.what) for j in judged[:2]] == [
        ("excluded", "the source is in an excluded file"),
        ("excluded", "the target is in an excluded file"),
    ]
    assert judged[2].rule == ""
