"""The limits of each cleaning rule, and what rules and profiles are computed from."""

import math

import pytest

from bitext.pair import Pair
from translucid.data import cleaning
from translucid.data.cleaning import (
    Cleaner,
    CorpusReader,
    JudgedPair,
    Profile,
    Report,
    alike_text,
    column,
    gains,
    guess_language,
    judge_by_gain,
    known_language,
    log_ratio,
    row,
    rules,
)
from translucid.data.filtering import Filter, reservoir_sample
from translucid.data.readers.corpus import PlacedPair
from translucid.ground.errors import UserError

LATIN = frozenset({"LATIN"})


def rule(name, *, languages=("en", "es"), scripts=(LATIN, LATIN), ratio=0.0, spread=math.inf, **limits):
    return rules(Profile(languages, scripts, ratio, spread), Filter(**limits))[name]


@pytest.mark.parametrize(
    ("letters", "right", "best", "other", "expected"),
    [
        (5, 1, 1, 1000, ""),
        (6, 1, 1000, 10, ""),
        (6, 1, 1000, 10.1, "es"),
        (14, 1, 1000, 10, ""),
        (14, 1, 1000, 10.1, "es"),
        (15, 1, 30, 3, ""),
        (15, 1, 30, 3.1, "es"),
        (15, 1, 30.1, 3, "de"),
        (29, 1, 30, 3, ""),
        (29, 1, 30.1, 3.1, "de"),
        (30, 1, 6, 3, ""),
        (30, 1, 6.1, 3, "de"),
        (30, 2, 12, 6, ""),
    ],
)
def test_how_much_more_probable_another_language_must_be(monkeypatch, letters, right, best, other, expected):
    probabilities = {"en": right, "fr": 0.5, "es": other, "de": best}
    monkeypatch.setattr(cleaning, "language_probabilities", lambda text: probabilities)
    message = f"source looks like {expected}, not like en" if expected else ""
    assert rule("language")(Pair(f"1 {'x' * letters}.", "")) == message
    swapped = Pair("", "x " * letters)
    assert rule("language", languages=("es", "en"))(swapped) == message.replace("source", "target")
    unknown = [(None, "en"), ("en", "en"), ("tlh", None)]
    assert not any(rule("language", languages=codes)(Pair("x" * letters, "")) for codes in unknown)
    without_other = rule("language", languages=("en_US", None))(Pair("x" * letters, ""))
    assert without_other == (message if expected == "de" else "")


def test_a_language_is_recognized_in_the_words_of_one_side_alone(monkeypatch):
    texts = []
    monkeypatch.setattr(cleaning, "language_probabilities", lambda text: texts.append(text) or {"en": 1, "es": 1})
    shared = "Berlin"
    assert not rule("language")(Pair(f"{shared} is large {{name}} {'x' * 3000}", "BERLIN es muy grande"))
    assert texts[-2].split() == ["is", "large", "x" * (2000 - len(" is large   "))]
    assert texts[-1].split() == ["es", "muy", "grande"]


@pytest.mark.parametrize(
    ("source", "target", "spread", "expected"),
    [
        (95, 151, 0.1, ""),
        (95, 152, 0.1, "+4.5 deviations from the usual ratio of lengths"),
        (152, 95, 0.1, "-4.5 deviations from the usual ratio of lengths"),
        (151, 95, 0.1, ""),
        (95, 120, 0.0, ""),
        (95, 121, 0.0, "+4.6 deviations from the usual ratio of lengths"),
        (10, 70, 1.0, ""),
        (10, 71, 1.0, "10 and 71 characters"),
    ],
)
def test_how_far_lengths_may_deviate(source, target, spread, expected):
    pair = Pair(f"{'x' * source}", "y" * target)
    assert rule("length", spread=spread)(pair) == expected
    assert log_ratio(Pair("x" * source, f" {'y' * target} ")) == math.log((target + 5) / (source + 5))


def test_a_usual_ratio_is_no_deviation():
    assert rule("length", ratio=math.log(2), spread=0.1)(Pair("x" * 95, "y" * 195)) == ""
    assert rule("length", ratio=math.log(2), spread=0.1)(Pair("x" * 95, "y" * 95)).startswith("-6.9 ")


def test_sides_may_have_so_many_characters():
    too_long = rule("too-long", max_characters=5)
    assert [too_long(pair) for pair in (Pair("12345", "1"), Pair("1", "123456"))] == ["", "6 characters"]
    assert rule("too-long")(Pair("x" * 2001, "")) == "2,001 characters"


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("one two three four", "one two three five six", ""),
        ("one two three four", "one two three four five", "most words of the target are those of the source"),
        ("one two three four", "four three two", ""),
        ("one two three four", "four Three two one", "most words of the target are those of the source"),
        ("one two three four", "four four one one two two", ""),
        ("Radio", "radio", ""),
        ("Radio Tokyo", "RADIO, Tokyo!", "the target is the source"),
        ("%s {name} 42", "%s {name} 42", ""),
        ("<b>a</b> c", "<i>A</i> C", "the target is the source"),
    ],
)
def test_how_much_may_be_copied(source, target, expected):
    assert rule("untranslated")(Pair(source, target)) == expected


@pytest.mark.parametrize(
    ("text", "other", "expected"),
    [
        ("abcdefgh бв", "x", ""),
        ("abcdefg бвг", "x", "source has letters of CYRILLIC: бвг"),
        ("abcdefg бвг", "бвг", ""),
        ("абвгдежзийклмнопрстуфхцчшщ", "x", "source has letters of CYRILLIC: абвгдежзийклмнопрсту"),
        ("abcdefgh бa", "x", ""),
        ("abcdefgh бaa", "x", "source has letters of two scripts in one word: бaa"),
        ("abcdefgh 日aa", "x", ""),
        ("¡ªº1\u0301\u02b0 a!", "x", ""),
        ("日本語 abc", "x", "source has letters of CJK: 日本語"),
    ],
)
def test_which_scripts_are_odd(text, other, expected):
    assert rule("script")(Pair(text, other)) == expected


def test_each_side_has_its_usual_scripts():
    cyrillic = rule("script", scripts=(frozenset({"CYRILLIC"}), LATIN))
    assert cyrillic(Pair("abc", "x")) == "source has letters of LATIN: abc"
    assert cyrillic(Pair("где", "xyz где")) == ""
    assert cyrillic(Pair("где", "xyz дом")) == "target has letters of CYRILLIC: ом"


@pytest.mark.parametrize(
    ("text", "other", "expected"),
    [
        ("Este es un espa?ol muy bueno aqui.", "He is Spanish.", "es un espa?ol muy buen"),
        ("Es un espa?ol.", "Is he?", ""),
        ("He asks? Yes.", "x", ""),
        ("Really? He asks", "x", ""),
        ("Really?? he asks", "x", "Really?? he asks"),
        ("est? bien", "x", "est? bien"),
        ("lo bes?. Ya", "x", "lo bes?. Ya"),
        ("?Qué", "x", "?Qué"),
        ("what?", "x", ""),
        ("a ?", "x", ""),
        ("see https://a.org/?b=c", "x", ""),
    ],
)
def test_which_question_marks_replace_letters(text, other, expected):
    message = f"source has a question mark for a letter: {expected}" if expected else ""
    assert rule("encoding")(Pair(text, other)) == message


def test_a_repaired_text_is_shown_in_part():
    broken = "El niÃ±o estÃ¡ aquÃ­. " * 20
    reason = rule("encoding")(Pair("x", broken))
    assert reason == f"target was read in a wrong encoding: {('El niño está aquí. ' * 20)[:200]}"
    for character in "\ufffd\x00\x08\x0b\x0c\x0e\x1f\x7f\x9f\ue000\uf8ff":
        assert rule("encoding")(Pair(f"a{character}", "b")) == f"source has U+{ord(character):04X}"
    assert not any(rule("encoding")(Pair(f"a{character}b", "c")) for character in "\t\n\r \xa0")


def test_lost_parts_and_numbers_are_listed():
    reason = rule("placeholders")(Pair("%s {a} %s &amp; {b}", "{b} %s {c} &lt;"))
    assert reason == "lost %s {a}; invented {c}"
    assert rule("placeholders")(Pair("{a}", "{a} {a}")) == "invented {a}"
    assert rule("numbers")(Pair("7 and 12 of 3", "8 de 3 y 90")) == "7 12 became 8 90"
    assert rule("numbers")(Pair("7 and 12", "12")) == rule("numbers")(Pair("12", "7 y 12")) == ""


def test_the_profile_of_a_sample(monkeypatch):
    groups = []

    def probabilities(text):
        groups.append(text)
        return {"en": 0.1, "de": 0.9} if "d" in text else {"en": 0.6, "de": 0.4}

    monkeypatch.setattr(cleaning, "language_probabilities", probabilities)
    texts = [f"d{number}" for number in range(40)] + [f"e{number}" for number in range(40, 2100)]
    assert guess_language(texts) == "en" and groups == [" ".join(texts[at : at + 20]) for at in range(0, 2000, 20)]
    assert guess_language(texts[:45]) == "de"
    assert guess_language([]) is guess_language(["42", "!"]) is None
    assert [known_language(code) for code in ("DE_x", "en-US", "fr", "", None)] == ["de", "en", None, None, None]


def test_usual_scripts_have_a_twentieth_of_the_letters():
    sample = [Pair("a" * 190, "ж" * 19 + "b"), Pair("д" * 10, "α"), Pair(" ", "ω" * 19), Pair("1!", " ")]
    computed = Profile.of(sample, ("en_US", "ru"))
    assert computed == Profile(("en_US", "ru"), (frozenset({"LATIN", "CYRILLIC"}), frozenset({"CYRILLIC", "GREEK"})))
    assert computed.ratio == 0 and computed.spread == math.inf


@pytest.mark.parametrize(("count", "is_known"), [(99, False), (100, True)])
def test_a_distribution_needs_a_hundred_pairs(count, is_known):
    pairs = [Pair("x" * 95, "y" * (95 + number)) for number in range(count)] + [Pair("", "y")] * 50
    computed = Profile.of(pairs, ("en", "es"))
    if is_known:
        ratios = sorted(log_ratio(pair) for pair in pairs[:count])
        quartiles = [ratios[24] + 0.75 * (ratios[25] - ratios[24]), ratios[74] + 0.25 * (ratios[75] - ratios[74])]
        assert computed.ratio == pytest.approx((ratios[49] + ratios[50]) / 2)
        assert computed.spread == pytest.approx((quartiles[1] - quartiles[0]) / 1.349)
    else:
        assert (computed.ratio, computed.spread) == (0, math.inf)


def test_a_corpus_is_sampled_and_progress_is_reported(tmp_path, monkeypatch):
    lines = [f"{number}\tn{number}" for number in range(11_500)]
    (tmp_path / "a.tsv").write_text("\n".join(["bad", *lines]))
    samples, steps = [], []
    monkeypatch.setattr(Profile, "of", lambda sample, languages: samples.append((sample, languages)))
    corpus = CorpusReader([tmp_path / "a.tsv"], ("en", None))
    corpus.profile(steps.append)
    assert steps == [1000] * 11 and corpus.count == 11_500
    pairs = [Pair(*line.split("\t")) for line in lines]
    assert samples == [(reservoir_sample(pairs, 10_000, 1), ("en", None))]
    (tmp_path / "a.tsv").write_text("bad\n")
    with pytest.raises(UserError, match="holds no sentence pairs"):
        CorpusReader([tmp_path / "a.tsv"], (None, None)).profile(steps.append)


def test_bad_lines_stand_among_the_pairs_also_at_the_end(tmp_path):
    (tmp_path / "a.tsv").write_text("bad\na\tb\nworse\nworst\n")
    cleaner = Cleaner(Profile(("en", "es"), (LATIN, LATIN)))
    judgements = list(CorpusReader([tmp_path / "a.tsv"], (None, None)).judged(cleaner))
    assert [(judgement.line, judgement.pair, judgement.rule) for judgement in judgements] == [
        (1, ("bad", ""), "unreadable"),
        (2, ("a", "b"), ""),
        (3, ("worse", ""), "unreadable"),
        (4, ("worst", ""), "unreadable"),
    ]


def test_counts_and_examples_of_a_report():
    pairs = [Pair(" A, b! {x}", "c"), Pair("a B {x}", " c?"), Pair("a b y", "c"), Pair("a b y", "c")]
    cleaner = Cleaner(Profile((None, None), (LATIN, LATIN)), ["placeholders", "unknown"], Filter(max_characters=10))
    placed = [PlacedPair("f", line, pair) for line, pair in enumerate([*pairs, Pair("x" * 11, "y")], 1)]
    judgements = list(cleaner.judge(placed))
    assert [judgement.rule for judgement in judgements] == ["", "near-duplicate", "", "duplicate", "too-long"]
    assert alike_text(pairs[0]) == "a b {x}\tc"
    report = Report()
    for judgement in [*judgements, *[JudgedPair("f", line, Pair("p", "q"), "empty", "why") for line in range(6, 11)]]:
        report.add(judgement)
    figures = report.to_json()
    assert {name: figures[name] for name in ("pairs", "kept", "rejected")} == {"pairs": 10, "kept": 2, "rejected": 8}
    assert list(figures["rules"]) == ["empty", "too-long", "duplicate", "near-duplicate"]
    assert figures["rules"]["empty"] == {
        "rejected": 5,
        "examples": [{"source": "p", "target": "q", "what": "why", "file": "f", "line": line} for line in (6, 7, 8)],
    }
    assert column("a\tb\r\nc") == "a b  c"
    assert row(judgements[4]) == f"{'x' * 11}\ty\ttoo-long\t11 characters\tf:5\n"


def test_pairs_are_scored_in_windows():
    sizes = []

    def surprise(pairs):
        sizes.append(len(pairs))
        return [1.0] * len(pairs)

    candidates = [JudgedPair("f", line, Pair(str(line), "y")) for line in range(2052)]
    candidates[1] = candidates[1]._replace(rule="empty")
    judgements = list(judge_by_gain(candidates, surprise, surprise))
    assert sizes == [2047] * 4 + [4] * 4
    assert [judgement.line for judgement in judgements] == list(range(2052))
    assert {judgement.rule for judgement in judgements[2:]} == {"model"} and judgements[1].rule == "empty"


def test_gains_compare_sums_of_both_directions(monkeypatch):
    pairs = [Pair("a", "b"), Pair("c", "d"), Pair("e", "f")]
    # Each pair is compared with the sides of the next one, the third with those of the first.
    scores = {("a", "b"): 0.1, ("b", "a"): 0.2, ("c", "b"): 0.25, ("d", "a"): 0.35}
    scores |= {("c", "d"): 1.0, ("d", "c"): 0.5, ("e", "d"): 1.0, ("f", "c"): 1.0}
    scores |= dict.fromkeys([("e", "f"), ("f", "e"), ("a", "f"), ("b", "e")], 0.0)

    def score(pairs):
        return [scores[pair] for pair in pairs]

    assert gains(pairs, score, score) == pytest.approx([0.5, 0.25, 1.0])
    judgements = list(judge_by_gain([JudgedPair("f", 1, pair) for pair in pairs], score, score, 0.3))
    assert [judgement.what for judgement in judgements] == ["", "the sides explain 25 % of each other", ""]
    for too_long in list(scores)[:4]:
        monkeypatch.setitem(scores, too_long, None)
        assert gains(pairs, score, score)[:2] == [None, pytest.approx(0.25)]
        monkeypatch.undo()
