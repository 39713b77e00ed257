"""The forms of plurals that a language has: as gettext counts them, and as CLDR names them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from decimal import Decimal
from gettext import c2py
from typing import NamedTuple

from translucid.data.languages import usual_code

_RULE = re.compile(r"nplurals\s*=\s*(\d{1,2})\s*;\s*plural\s*=\s*([^;]+)")
_TRIED = 200
"""Numbers that are tried to see what a form is for."""
_MILLIONS = 1_000_000, 2_000_000, 3_000_000
"""Tried where none of those takes a form, as in `un millón de`."""
_FRACTIONS = Decimal("0.5"), Decimal("1.5"), Decimal("2.5")
"""Likewise, as in Russian."""
ORDER = ("zero", "one", "two", "few", "many", "other")
"""The names of forms, as they usually follow each other."""


class PluralForms(NamedTuple):
    """A rule: how many forms there are, and which one a number takes."""

    nplurals: int
    expression: str
    """In C, with `n`."""
    numbers: tuple[tuple[int, ...], ...]
    """The first numbers that take each form."""

    @classmethod
    def of(cls, rule: str) -> PluralForms | None:
        """Read `nplurals=2; plural=(n != 1);`; none if it says nothing.

        Raises:
            ValueError: it can't be understood.
        """
        match = _RULE.search(rule)
        if not match:
            return None
        form: Callable[[int], int] = c2py(match[2].strip())
        found: list[list[int]] = [[] for _ in range(int(match[1]))]
        for number in range(_TRIED):
            try:
                index = form(number)
            except ZeroDivisionError as error:
                raise ValueError(f"it divides by zero for {number}") from error
            if not 0 <= index < len(found):
                raise ValueError(f"there is no form {index}")
            found[index].append(number)
        return cls(len(found), match[2].strip(), tuple(map(tuple, found)))

    @classmethod
    def of_language(cls, code: str | None) -> PluralForms:
        """Return the rule of a language; that of English if it is not known."""
        from babel.messages.plurals import get_plural

        usual = (usual_code(code) if code else None) or "en"
        rule = cls.of(str(get_plural(usual.replace("-", "_"))))
        assert rule
        return rule

    @property
    def rule(self) -> str:
        """As a header says it."""
        return f"nplurals={self.nplurals}; plural={self.expression};"

    def examples(self, form: int) -> str:
        """Return a few of the numbers that take a form.

        >>> PluralForms.of("nplurals=2; plural=n != 1;").examples(1)
        '0, 2, 3 …'
        """
        numbers = self.numbers[form]
        return ", ".join(map(str, numbers[:3])) + (" …" if len(numbers) > 3 else "")


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


def examples_of(code: str | None, form: str) -> list[int | Decimal]:
    """Return a few of the numbers that take a form of CLDR's.

    >>> examples_of("ru", "few"), examples_of("ar", "two"), examples_of("es", "many")
    ([2, 3, 4], [2], [1000000, 2000000, 3000000])
    """
    from babel import Locale

    usual = usual_code(code) if code else None
    rule = Locale.parse(usual, sep="-").plural_form if usual else lambda number: "other"
    tried: list[Iterable[int | Decimal]] = [range(_TRIED), _MILLIONS, _FRACTIONS]
    found = ([number for number in numbers if rule(number) == form] for numbers in tried)
    return next(filter(None, found), [])[:3]
