"""Translations with a largest number of characters: candidates, their choice, and translators of all kinds."""

from itertools import product
from random import Random

import pytest

from bitext.words import count_characters
from tests.growth import assert_linear
from translucid import Translator, UserError
from translucid.cli.main import run
from translucid.data.document_context import Source
from translucid.data.placeholders import Masked
from translucid.data.text_pipeline import Piece
from translucid.decoding import length_control
from translucid.decoding.hypothesis import Hypothesis
from translucid.engines import length_limits, stages
from translucid.engines.length_limits import length_warnings, search_limits, within


class Words:
    """A pipeline whose token ids are lengths of words."""

    def text(self, piece, tokens):
        return "é" * tokens[0]


def hypotheses(*rows):
    return [Hypothesis([length], score, score) for length, score in rows]


def test_characters_are_grapheme_clusters():
    texts = {"": 0, "a\r\nb": 3, "e\u0301": 1, "🇪🇸🇩🇪": 2, "👨‍👩‍👧 ok": 4, "한국": 2, "नमस्ते": 3}
    assert {text: count_characters(text) for text in texts} == texts
    assert_linear(lambda n: lambda: count_characters("e\u0301" * n), 2000, 20_000)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("count", [1, 3])
def test_the_best_combinations_that_fit_are_those_of_all(seed, count):
    random = Random(seed)
    pieces = [Piece("x", [4, 3], " "), Piece("http://x.org", [], " "), *[Piece("x", [4, 3], "") for _ in range(2)]]
    nbest_lists = [
        hypotheses(*((random.randint(1, 9), -random.random()) for _ in range(random.randint(1, 5)))) for _ in range(3)
    ]
    copied = len(" http://x.org ")
    limit = copied + random.randint(6, 20)
    by_score = sorted(product(*nbest_lists), key=lambda row: -sum(one.score for one in row))
    fits = [row for row in by_score if copied + sum(one.tokens[0] for one in row) <= limit]
    shortest = min(by_score, key=lambda row: sum(one.tokens[0] for one in row))
    found = within(pieces, nbest_lists, limit, count, Words())
    expected = fits[:count] or [shortest]
    assert [sum(one.score for one in row) for row in found] == pytest.approx(
        [sum(one.score for one in row) for row in expected]
    )
    assert all(copied + sum(one.tokens[0] for one in row) <= limit for row in found) == bool(fits)


def test_choosing_grows_linearly_with_the_pieces():
    nbest = hypotheses(*((length, -1 / length) for length in range(1, 6)))

    def choose(count):
        return lambda: within([Piece("x", [4, 3], "")] * count, [nbest] * count, 60, 1, Words())

    assert_linear(choose, 10, 100)


def test_placeholders_count_as_what_they_stand_for():
    piece = Piece("Dear %(name)s", [4, 3], "", masked=Masked("Dear ⟦1⟧", {"⟦1⟧": "%(name)s"}))
    assert {limit.characters for limit in search_limits(piece, 20)} == {15, None}
    assert length_warnings("Guardar", 7) == [] == length_warnings("Guardar", None)


def test_the_lengths_of_pieces_add_up_to_those_of_texts(small_run):
    tokenizer, random = Translator.load(small_run).tokenizer, Random(1)
    characters, spaces = tokenizer.target_lengths
    for _ in range(300):
        ids = [random.randrange(4, tokenizer.target_size) for _ in range(random.randint(1, 9))]
        assert sum(characters[i] for i in ids) - spaces[ids[0]] == count_characters(tokenizer.decode(ids))


TEXTS = ["I like soccer", "She works at the hospital", "", "I like soccer. She likes it. Do you like sports?"]


@pytest.fixture
def _any_candidate(monkeypatch):
    """The model of `small_run` is barely trained, so that all that it writes is improbable."""
    monkeypatch.setattr(length_control, "LEAST", 1e-9)
    monkeypatch.setattr(stages, "MAX_DROP", 1e9)


@pytest.mark.usefixtures("_any_candidate")
@pytest.mark.parametrize("engine", ["torch", "ctranslate2"])
def test_translations_fit_or_say_so(small_run, engine):
    translator = Translator.load(small_run, engine=engine)
    free = translator.translate(TEXTS, beam=4)
    changed = 0
    limits = [max(int(0.8 * count_characters(translation.text)), 1) for translation in free]
    limits[0] = 100
    sources = [Source(text, (), limit) for text, limit in zip(TEXTS, limits, strict=True)]
    options = translator.configuration.decoding.model_copy(update={"beam": 4})
    together = list(translator.stream(sources, options))
    for translation, before, limit in zip(together, free, limits, strict=True):
        length = count_characters(translation.text)
        assert length_warnings(translation.text, limit) == [
            warning for warning in translation.warnings if warning.startswith("length: ")
        ]
        assert (translation.text == before.text) == (count_characters(before.text) <= limit)
        assert length <= limit or length < count_characters(before.text)
        changed += length <= limit < count_characters(before.text)
    assert changed
    (alone,) = translator.stream(sources[1:2], options)
    assert alone.text == together[1].text


@pytest.mark.usefixtures("_any_candidate")
def test_with_alternatives_terms_a_ranking_and_without_pytorch(small_run, monkeypatch):
    translator = Translator.load(small_run)
    text = "She works at the hospital"
    limit = count_characters(translator.translate(text).text) - 1
    alternatives = translator.translate(text, beam=8, nbest=4, max_length=limit)
    assert len(alternatives.nbest) > 1
    assert all(count_characters(one) <= limit for one in alternatives.alternatives)
    with_terms = translator.with_terms([("hospital", "clínica")]).translate(text, max_length=60)
    assert "clínica" in with_terms.text.lower() and count_characters(with_terms.text) <= 60
    monkeypatch.setattr(stages, "has_pytorch", lambda: False)
    found = translator.translate(text, max_length=limit)
    assert count_characters(found.text) <= limit or found.warnings


@pytest.mark.parametrize(
    ("options", "message"), [({"max_length": 0}, "is 0"), ({"max_length": 9, "sample": True}, "do not go together")]
)
def test_bad_limits_are_refused(small_run, options, message):
    with pytest.raises(UserError, match=message):
        Translator.load(small_run).translate("I like soccer", **options)


def test_the_costs_are_sorted_and_begin_without():
    assert sorted(length_limits.COSTS) == list(length_limits.COSTS) and length_limits.COSTS[0] == 0


def test_the_options_of_the_command(small_run, tmp_path, capfd):
    file = tmp_path / "a.srt"
    file.write_text("1\n00:00:01,000 --> 00:00:04,000\nI like soccer\n")

    def translated(*options):
        output = tmp_path / f"{len(list(tmp_path.iterdir()))}.srt"
        assert run(["translate", str(small_run), str(file), "--output", str(output), *options]) == 0
        return output.read_text(), capfd.readouterr().err

    assert "length" not in translated()[1]
    for options in (["--max-length", "1"], ["--reading-speed", "1"]):
        assert "length: " in translated(*options)[1]
    assert run(["translate", str(small_run), "I like soccer", "--max-length", "1"]) == 0
    assert "1 at most" in capfd.readouterr().err
    assert run(["translate", str(small_run), "I like soccer", "--line-length", "30"]) == 2
    assert run(["translate", str(small_run), "I like soccer", "--max-length", "9", "--top-k", "3"]) == 2
    errors = capfd.readouterr().err
    assert "--line-length is for a document" in errors and "--max-length and sampling" in errors
    page = tmp_path / "a.html"
    page.write_text("<p>I like soccer</p>")
    assert run(["translate", str(small_run), str(page), "--output", f"{page}.es", "--line-length", "30"]) == 2
    assert "has no subtitles for --line-length" in capfd.readouterr().err
