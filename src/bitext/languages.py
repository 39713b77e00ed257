"""Language codes: what a model calls `spa_Latn` or `cmn_Hans` is `es` or `zh-Hans` in most programs (BCP 47)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from functools import lru_cache
from typing import Literal, NamedTuple, TypeAlias

Languages: TypeAlias = tuple[str | None, str | None]
"""The codes of the source and the target language, None where they are unknown."""

BOTH_SCRIPTS = "zh"
"""The language whose codes name the script even if it is the usual one, as LibreTranslate's clients expect."""

LONGEST = 20
"""The most characters of a language code."""

_RIGHT_TO_LEFT = frozenset(
    ["Adlm", "Arab", "Aran", "Hebr", "Mand", "Mend", "Nkoo", "Rohg", "Samr", "Syrc", "Thaa", "Yezi"]
)
"""The scripts of living languages that are written from right to left."""
_FLORES = re.compile(r"[a-z]{3}_[A-Z][a-z]{3}")


class Tag(NamedTuple):
    """The parts of a language code, as babel and the Unicode consortium (CLDR) define them."""

    language: str
    script: str
    """The script that the code names; empty if it names none."""
    region: str
    """The region that the code names; empty if it names none."""
    usual_script: str
    """The script that the language, in this region, is usually written in."""

    @classmethod
    def of(cls, code: str) -> Tag | None:
        """Return the parts of a code, or None if its language is unknown."""
        from babel import Locale
        from babel.core import get_global

        language_part, *other_subtags = code.replace("-", "_").split("_")
        language = language_part.lower()
        # An alias may contain a script: `sh` is `sr_Latn`.
        language, _, script = get_global("language_aliases").get(language, language).partition("_")
        region = ""
        for subtag in other_subtags:
            is_script = len(subtag) == 4 and subtag.isalpha()
            # A region is two letters, such as `BR`, or three digits, such as `419` for Latin America.
            is_region = (len(subtag) == 2 and subtag.isalpha()) or (len(subtag) == 3 and subtag.isdecimal())
            if is_script and not script:
                script = subtag.title()
            elif is_region and not region:
                region = subtag.upper()
            else:
                return None
        if not language_part.isascii() or language not in Locale("en").languages:
            return None
        # Values are such as `zh_Hant_TW`: language, script, region.
        likely = get_global("likely_subtags")
        likely_tag = likely.get(f"{language}_{region}") or likely.get(language) or "__"
        return cls(language, script, region, likely_tag.split("_")[1])

    @property
    def written_script(self) -> str:
        """The script that texts in the language are written in."""
        return self.script or self.usual_script


def _tag(code: str) -> Tag | None:
    # Longer strings, which a client may send, must not fill the cache.
    return _cached_tag(code) if len(code) <= LONGEST else None


_cached_tag = lru_cache(2000)(Tag.of)


def usual_code(code: str) -> str | None:
    """Return a code as most programs write it, such as `es`, `pt-BR` or `zh-Hant`; None if the language is unknown.

    >>> [usual_code(code) for code in ("spa_Latn", "zho_Hans", "arb_Arab", "kas_Deva", "pt_br", "nonsense")]
    ['es', 'zh-Hans', 'ar', 'ks-Deva', 'pt-BR', None]
    """
    tag = _tag(code)
    if tag is None:
        return None
    is_usual = tag.script == tag.usual_script and tag.language != BOTH_SCRIPTS
    script = "" if is_usual else tag.script
    return "-".join(filter(None, (tag.language, script, tag.region)))


def english_name(code: str) -> str:
    """Return the English name of a language, or the code if the language is unknown.

    >>> [english_name(code) for code in ("spa_Latn", "pt_BR", "zho_Hant", "nonsense")]
    ['Spanish', 'Portuguese (Brazil)', 'Chinese (Traditional)', 'nonsense']
    """
    from babel import Locale

    tag = _tag(code)
    if tag is None:
        return code
    english = Locale("en")
    details = [english.territories.get(tag.region, tag.region)] if tag.region else []
    if tag.script and (tag.script != tag.usual_script or tag.language == BOTH_SCRIPTS):
        details.insert(0, english.scripts.get(tag.script, tag.script).removesuffix(" Han"))
    name = str(english.languages[tag.language])
    return f"{name} ({', '.join(details)})" if details else name


def is_flores_code(code: str) -> bool:
    """Whether a code is an ISO 639-3 code with a script, such as `spa_Latn`, as in FLORES-200 and NLLB."""
    return _FLORES.fullmatch(code) is not None


def code_with_region(code: str) -> str | None:
    """Return a code as office programs write it, with the likeliest region if it names none; None if it is unknown.

    >>> [code_with_region(code) for code in ("spa_Latn", "pt_BR", "zho_Hant", "eo", "nonsense")]
    ['es-ES', 'pt-BR', 'zh-TW', 'eo-001', None]
    """
    from babel.core import get_global

    tag = _tag(code)
    if tag is None:
        return None
    likely = get_global("likely_subtags")
    full = likely.get(f"{tag.language}_{tag.script}") or likely.get(tag.language) or ""
    region = tag.region or full.rpartition("_")[2]
    return f"{tag.language}-{region}" if region else tag.language


def script_of(code: str) -> str:
    """Return the ISO 15924 code of the script that a language is written in; empty if it is unknown.

    >>> script_of("ja"), script_of("zho_Hant")
    ('Jpan', 'Hant')
    """
    tag = _tag(code)
    return tag.written_script if tag else ""


def new_direction(languages: Languages) -> Literal["ltr", "rtl"] | None:
    """Return the writing direction of a translation; None if it is that of the source, or unknown.

    An unknown source may have the other direction: whatever states the opposite of the result must change.

    >>> [new_direction(languages) for languages in (("en", "he"), ("ar", "es"), ("ar", "fa"), (None, "es"))]
    ['rtl', 'ltr', None, 'ltr']
    """
    source, target = languages
    if target is None or not script_of(target):
        return None
    goes_left = script_of(target) in _RIGHT_TO_LEFT
    if source is not None and (script_of(source) in _RIGHT_TO_LEFT) == goes_left:
        return None
    return "rtl" if goes_left else "ltr"


def find_code(code: str, codes: Collection[str]) -> str | None:
    """Return which of a model's language codes a code stands for, or None.

    The code may be the model's or the usual one. A code with the same spelling is preferred to one of the same language
    and script that names no region.

    >>> [find_code(code, ["spa_Latn", "zho_Hans"]) for code in ("spa_Latn", "es", "zh", "zh-Hant")]
    ['spa_Latn', 'spa_Latn', 'zho_Hans', None]
    """
    if code in codes:
        return code
    requested = _tag(code)
    if requested is None:
        return None
    usual = usual_code(code)
    compatible = None
    for candidate in codes:
        tag = _tag(candidate)
        if tag is None:
            continue
        if usual_code(candidate) == usual:
            return candidate
        same_text = (tag.language, tag.written_script) == (requested.language, requested.written_script)
        if compatible is None and same_text and tag.region in ("", requested.region):
            compatible = candidate
    return compatible


def short_code(code: str) -> str:
    """Return the language without script and region, as language identification expects it: `es` for `spa_Latn`."""
    language = code.encode("ascii", "replace").decode().replace("_", "-").split("-")[0].lower()
    if len(language) < 3:  # no need to look it up
        return language
    tag = _tag(language)
    return tag.language if tag else language


def subtags(code: str) -> list[str]:
    """Return the parts of a code in lower case: the language, then its script or region."""
    return code.lower().replace("_", "-").split("-")


def same_language(first: str, second: str) -> bool:
    """Whether two codes may mean the same language; a code without a region stands for all regions.

    >>> same_language("en", "en_US"), same_language("eng", "en"), same_language("zh-CN", "zh-TW")
    (True, True, False)
    """
    if first.lower() == second.lower():
        return True
    a, b = (subtags(usual_code(code) or code) for code in (first, second))
    return a == b or (a[0] == b[0] and 1 in (len(a), len(b)))


def matching_code(language: str, codes: Iterable[str]) -> str | None:
    """Return the code that equals a language's or, if there is none, the first one of the same language."""
    compatible = None
    for code in codes:
        if code.lower() == language.lower():
            return code
        if compatible is None and same_language(code, language):
            compatible = code
    return compatible
