"""The plural forms of a language, as CLDR names them."""

from __future__ import annotations

from translucid.data.languages import usual_code

ORDER = ("zero", "one", "two", "few", "many", "other")


def categories(code: str | None) -> tuple[str, ...] | None:
    """Return the names of a language's plural forms, in their usual order; none if they are not known.

    >>> categories("eng_Latn"), categories("ru"), categories("ja")
    (('one', 'other'), ('one', 'few', 'many', 'other'), ('other',))
    """
    from babel import Locale, UnknownLocaleError

    if not code or (usual := usual_code(code)) is None:
        return None
    try:
        tags = Locale.parse(usual, sep="-").plural_form.tags | {"other"}
    except (ValueError, UnknownLocaleError):
        return None
    return tuple(name for name in ORDER if name in tags)
