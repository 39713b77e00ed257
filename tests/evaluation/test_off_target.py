"""The share of translations in a language other than the requested one."""

import pytest

from translucid.evaluation.quality_checks import identified, off_target_rate
from translucid.evaluation.report import DirectionScore, DirectionScores, evaluate

TEXTS = {
    "en": "The weather is very nice today, and we are going to the beach.",
    "fr": "Il fait très beau aujourd'hui et nous allons à la plage.",
    "de": "Das Wetter ist heute sehr schön, und wir gehen an den Strand.",
    "es": "Hoy hace muy buen tiempo y vamos a la playa.",
}


@pytest.mark.parametrize("code", TEXTS)
def test_the_rate_is_the_share_of_other_languages(code):
    assert identified(TEXTS[code], TEXTS) == code
    assert off_target_rate(TEXTS.values(), code, TEXTS) == 0.75
    assert off_target_rate([TEXTS[code]] * 3, code, TEXTS) == 0


def test_only_the_languages_of_the_model_come_into_question():
    assert identified(TEXTS["es"], ["en", "de"]) in {"en", "de"}
    assert identified(TEXTS["es"], ["es"]) == "es"


def test_codes_may_be_those_of_the_model():
    assert off_target_rate([TEXTS["fr"], TEXTS["en"]], "fra_Latn", ["fra_Latn", "eng_Latn"]) == 0.5
    assert off_target_rate([TEXTS["es"]], "es-419", ["es-419", "en"]) == 0


def test_texts_without_letters_do_not_count():
    assert off_target_rate(["12:30", "", TEXTS["de"], TEXTS["en"]], "de", TEXTS) == 0.5
    assert off_target_rate(["…", ""], "de", TEXTS) is None


def test_a_language_that_can_not_be_identified_has_no_rate():
    assert off_target_rate([TEXTS["de"]], "tlh", ["tlh", "de"]) is None


def test_the_table_has_a_line_for_each_direction_and_their_means():
    references = ["one two three four five"] * 2
    hypotheses = ["one two three four five", "six seven eight nine ten"]
    scores = DirectionScores(
        [
            DirectionScore("en-fr", evaluate(references, references, [references]), 0.5, 0.25),
            DirectionScore("en-de", evaluate(references, hypotheses, [references]), None, None, zero_shot=True),
        ],
        ["de", "en", "fr"],
    )
    record = scores.to_json()
    bleu = record["directions"]["en-de"]["BLEU"]["value"]
    assert record["mean"]["BLEU"] == pytest.approx((100 + bleu) / 2) and record["mean"]["off_target"] == 0.5
    assert record["directions"]["en-fr"]["references_off_target"] == 0.25
    assert record["directions"]["en-de"]["zero_shot"]
    table, *_ = scores.render()
    rows = [list(map(str, column._cells)) for column in table.columns]
    assert rows[0] == ["en-fr", "en-de zero-shot", "mean"] and rows[5] == ["50.0%", "unknown", "50.0%"]
