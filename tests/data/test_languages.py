"""Language codes."""

import pytest

from bitext import languages
from bitext.languages import (
    Tag,
    code_with_region,
    find_code,
    same_language,
    script_of,
    short_code,
    subtags,
    usual_code,
)

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
    ("code", "expected"),
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
def test_which_of_a_models_codes_is_meant(code, expected):
    assert find_code(code, NLLB) == expected


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


@pytest.mark.parametrize(
    ("code", "tag", "usual", "with_region"),
    [
        ("sr_Latn", ("sr", "Latn", "", "Cyrl"), "sr-Latn", "sr-RS"),
        ("sh", ("sr", "Latn", "", "Cyrl"), "sr-Latn", "sr-RS"),
        ("iw", ("he", "", "", "Hebr"), "he", "he-IL"),
        ("zh-hk", ("zh", "", "HK", "Hant"), "zh-HK", "zh-HK"),
        ("ZHO_hant_hk", ("zh", "Hant", "HK", "Hant"), "zh-Hant-HK", "zh-HK"),
        ("zh-Hant", ("zh", "Hant", "", "Hans"), "zh-Hant", "zh-TW"),
        ("kk_Arab", ("kk", "Arab", "", "Cyrl"), "kk-Arab", "kk-CN"),
        ("en-GB-Latn", ("en", "Latn", "GB", "Latn"), "en-GB", "en-GB"),
        ("es-419", ("es", "", "419", "Latn"), "es-419", "es-419"),
        ("eo", ("eo", "", "", "Latn"), "eo", "eo-001"),
        ("tlh", ("tlh", "", "", ""), "tlh", "tlh"),
    ],
)
def test_the_parts_of_a_code(code, tag, usual, with_region):
    assert Tag.of(code) == tag
    assert (usual_code(code), code_with_region(code)) == (usual, with_region)
    assert script_of(code) == (tag[1] or tag[3])


@pytest.mark.parametrize(
    "code",
    ["en-Latn-Cyrl", "en-US-GB", "en-abc", "en-ab1", "en-12", "en-1234", "en-L4tn", "en-", "en-latin", "sh-Cyrl"]
    + ["ÉN", "enn-US", "e", "nonsense"],
)
def test_invalid_codes(code):
    assert Tag.of(code) is usual_code(code) is code_with_region(code) is None
    assert script_of(code) == ""
    assert find_code(code, ["en", "es"]) is None


def test_long_strings_are_not_remembered():
    def cache_size(code):
        languages._cached_tag.cache_clear()
        usual_code(code)
        return languages._cached_tag.cache_info().currsize

    assert (cache_size("x" * 20), cache_size("x" * 21)) == (1, 0)


def test_the_same_language_and_script_serve_without_a_region():
    assert find_code("pt-BR", ["es", "pt_PT", "pt", "pt_BR"]) == "pt_BR"
    assert find_code("pt-BR", ["?", "pt_PT", "por", "pt"]) == "por"
    assert find_code("sr-Cyrl-RS", ["sr_Latn", "sr_Cyrl_BA", "srp_Cyrl"]) == "srp_Cyrl"
    assert find_code("zh", ["zho_Hant", "zho_Hans"]) == "zho_Hans"
    assert find_code("xyz", ["ab", "xyz"]) == "xyz"


def test_codes_that_may_mean_the_same_language():
    assert subtags("zho_HANS-cn") == ["zho", "hans", "cn"]
    for first, second, expected in [
        ("en", "EN", True),
        ("en", "en_US", True),
        ("en-us", "en_US", True),
        ("en-US", "en-GB", False),
        ("zh-Hant-HK", "zh", True),
        ("zh-Hant-HK", "zh-Hant", False),
        ("en", "es", False),
        ("en-US", "es-US", False),
    ]:
        assert same_language(first, second) is same_language(second, first) is expected, (first, second)


def test_the_language_of_long_codes_is_looked_up():
    assert [short_code(code) for code in ("fra", "FRA_Latn", "sh", "srp-Latn", "zzz", "pt_BR")] == [
        *("fr", "fr", "sh", "sr", "zzz", "pt"),
    ]
