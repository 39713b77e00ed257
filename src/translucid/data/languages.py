"""Codes of languages: what a model calls `spa_Latn` or `cmn_Hans`, others call `es` and `zh-Hans` (BCP 47)."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from typing import NamedTuple, TypeAlias

Languages: TypeAlias = tuple[str | None, str | None]
"""Codes of the source and of the target language, as far as they are known."""

BOTH_SCRIPTS = "zh"
"""The language whose script is always said where it is known, as LibreTranslate's clients do."""

LONGEST = 20
"""Characters of a code, at most."""


class Tag(NamedTuple):
    """The parts of a code, as babel, and with it the Unicode consortium (CLDR), knows them."""

    language: str
    script: str
    """As given; empty if not."""
    region: str
    usual: str
    """The script that the language is written in unless another one is given."""

    @classmethod
    def of(cls, code: str) -> Tag | None:
        """Take a code apart; none if it is of no language that is known."""
        from babel import Locale
        from babel.core import get_global

        first, *more = code.replace("-", "_").split("_")
        language = first.lower()
        language, _, script = get_global("language_aliases").get(language, language).partition("_")
        region = ""
        for part in more:
            if len(part) == 4 and part.isalpha() and not script:
                script = part.title()
            elif not region and (len(part), part.isalpha(), part.isdecimal()) in ((2, True, False), (3, False, True)):
                region = part.upper()
            else:
                return None
        if not first.isascii() or language not in Locale("en").languages:
            return None
        likely = get_global("likely_subtags")
        usual = likely.get(f"{language}_{region}") or likely.get(language) or "__"
        return cls(language, script, region, usual.split("_")[1])


def _tag(code: str) -> Tag | None:
    return _remembered(code) if len(code) <= LONGEST else None


@lru_cache(2000)
def _remembered(code: str) -> Tag | None:
    return Tag.of(code)


def usual_code(code: str) -> str | None:
    """Return a code as most programs write it, such as `es`, `pt-BR` or `zh-Hant`; none if it is of no known language.

    >>> [usual_code(code) for code in ("spa_Latn", "zho_Hans", "arb_Arab", "kas_Deva", "pt_br", "nonsense")]
    ['es', 'zh-Hans', 'ar', 'ks-Deva', 'pt-BR', None]
    """
    if (tag := _tag(code)) is None:
        return None
    script = "" if tag.script == tag.usual and tag.language != BOTH_SCRIPTS else tag.script
    return "-".join(filter(None, (tag.language, script, tag.region)))


def code_with_region(code: str) -> str | None:
    """Return a code as office programs write it, with the likeliest region if none is said; none if it is not known.

    >>> [code_with_region(code) for code in ("spa_Latn", "pt_BR", "zho_Hant", "eo", "nonsense")]
    ['es-ES', 'pt-BR', 'zh-TW', 'eo-001', None]
    """
    from babel.core import get_global

    if (tag := _tag(code)) is None:
        return None
    likely = get_global("likely_subtags")
    script = f"{tag.language}_{tag.script}"
    region = tag.region or (likely.get(script) or likely.get(tag.language) or "").rpartition("_")[2]
    return f"{tag.language}-{region}" if region else tag.language


def script_of(code: str) -> str:
    """Return the script that a language is written in, as in ISO 15924; empty if it is not known.

    >>> script_of("ja"), script_of("zho_Hant")
    ('Jpan', 'Hant')
    """
    tag = _tag(code)
    return tag.script or tag.usual if tag else ""


def find_code(code: str, known: Collection[str]) -> str | None:
    """Return the one of a model's own codes that is meant by a code, which may be the usual one; none if none is.

    >>> [find_code(code, ["spa_Latn", "zho_Hans"]) for code in ("spa_Latn", "es", "zh", "zh-Hant")]
    ['spa_Latn', 'spa_Latn', 'zho_Hans', None]
    """
    if code in known:
        return code
    if (wanted := _tag(code)) is None:
        return None
    tags = [(one, tag) for one in known if (tag := _tag(one))]
    spelled = usual_code(code)
    same = [one for one, _ in tags if usual_code(one) == spelled]
    script = wanted.script or wanted.usual
    alike = [
        one
        for one, tag in tags
        if tag.language == wanted.language and (tag.script or tag.usual) == script and tag.region in ("", wanted.region)
    ]
    return next(iter([*same, *alike]), None)


def short_code(code: str) -> str:
    """Return the language alone, as identifiers of languages and splitters of sentences know it: `es` of `spa_Latn`."""
    first = code.encode("ascii", "replace").decode().replace("_", "-").split("-")[0].lower()
    if len(first) < 3:  # no need to look it up
        return first
    tag = _tag(first)
    return tag.language if tag else first


def parts(code: str) -> list[str]:
    """Return the parts of a code in lower case: the language, then its script or region."""
    return code.lower().replace("_", "-").split("-")


def same_language(one: str, other: str) -> bool:
    """Whether two codes can be of one language: one that names no region stands for all of them.

    >>> same_language("en", "en_US"), same_language("zh-CN", "zh-TW")
    (True, False)
    """
    a, b = parts(one), parts(other)
    return a == b or (a[0] == b[0] and 1 in (len(a), len(b)))
