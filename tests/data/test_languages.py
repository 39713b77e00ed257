"""Codes of languages."""

import pytest

from translucid.data.languages import find_code, short_code, usual_code

NLLB = ["ace_Arab", "ace_Latn", "arb_Arab", "arb_Latn", "eng_Latn", "kas_Deva", "spa_Latn", "zho_Hans", "zho_Hant"]


@pytest.mark.parametrize(
    ("code", "usual"),
    [
        ("en", "en"),
        ("spa_Latn", "es"),
        ("zho_Hans", "zh-Hans"),
        ("cmn_Hant", "zh-Hant"),
        ("zh", "zh"),
        ("arb_Arab", "ar"),
        ("arb_Latn", "ar-Latn"),
        ("srp_Cyrl", "sr"),
        ("srp_Latn", "sr-Latn"),
        ("ace_Latn", "ace"),
        ("zsm_Latn", "ms"),
        ("pt_br", "pt-BR"),
        ("ES-419", "es-419"),
        ("ns", None),
        ("en_nonsense", None),
        ("", None),
        ("é", None),
        ("x" * 10_000, None),
    ],
)
def test_the_usual_code(code, usual):
    assert usual_code(code) == usual
    assert usual is None or usual_code(usual) == usual


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("spa_Latn", "spa_Latn"),
        ("es", "spa_Latn"),
        ("es-MX", "spa_Latn"),
        ("zh", "zho_Hans"),
        ("zh-TW", "zho_Hant"),
        ("ar", "arb_Arab"),
        ("ar-Latn", "arb_Latn"),
        ("ace", "ace_Latn"),
        ("ks", None),
        ("fr", None),
        ("nonsense", None),
    ],
)
def test_which_of_a_models_codes_is_meant(code, found):
    assert find_code(code, NLLB) == found


def test_a_region_is_the_one_asked_for():
    assert find_code("pt-BR", ["pt", "pt_BR"]) == "pt_BR"
    assert find_code("pt", ["pt_BR", "pt"]) == "pt"
    assert find_code("pt", ["pt_BR"]) is None


def test_the_language_alone():
    assert [short_code(code) for code in ("en", "pt-BR", "zho_Hans", "spa_Latn", "qqq", "é")] == [
        "en",
        "pt",
        "zh",
        "es",
        "qqq",
        "?",
    ]
