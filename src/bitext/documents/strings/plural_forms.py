"""The plural forms of languages, by gettext's numbers and by CLDR's names."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from functools import lru_cache
from gettext import c2py
from typing import NamedTuple

from bitext.languages import usual_code

_RULE = re.compile(r"nplurals\s*=\s*(\d{1,2})\s*;\s*plural\s*=\s*([^;]+)")
_SAMPLE_SIZE = 200
"""The number of integers, from 0, whose form is computed: rules depend on the last two digits at most."""
_MILLIONS = 1_000_000, 2_000_000, 3_000_000, 4_000_000
"""Numbers for forms that no smaller number takes, as in Spanish `un millón de`."""
_FRACTIONS = Decimal("0.5"), Decimal("1.5"), Decimal("2.5"), Decimal("3.5")
"""Numbers for forms that no integer takes, as in Russian."""
ORDER = ("zero", "one", "two", "few", "many", "other")
"""CLDR's names of the forms, in their usual order."""


class PluralForms(NamedTuple):
    """A plural rule: the number of forms, and the form of each number."""

    nplurals: int
    expression: str
    """The index of the form as an expression in C with the variable `n`."""
    numbers: tuple[tuple[int, ...], ...]
    """The first numbers of each form."""

    @classmethod
    def of(cls, rule: str) -> PluralForms | None:
        """Parse `nplurals=2; plural=(n != 1);`; None if the text has no rule.

        Raises:
            ValueError: the rule is invalid.
        """
        match = _RULE.search(rule)
        if not match:
            return None
        form: Callable[[int], int] = c2py(match[2].strip())
        numbers: list[list[int]] = [[] for _ in range(int(match[1]))]
        for number in range(_SAMPLE_SIZE):
            try:
                index = form(number)
            except ZeroDivisionError as error:
                raise ValueError(f"it divides by zero for {number}") from error
            if not 0 <= index < len(numbers):
                raise ValueError(f"there is no form {index}")
            numbers[index].append(number)
        return cls(len(numbers), match[2].strip(), tuple(map(tuple, numbers)))

    @classmethod
    def of_language(cls, code: str | None) -> PluralForms:
        """Return the rule of a language; that of English if the language is unknown."""
        from babel.messages.plurals import get_plural

        usual = usual_code(code or "") or "en"
        rule = cls.of(str(get_plural(usual.replace("-", "_"))))
        assert rule
        return rule

    @property
    def rule(self) -> str:
        """The rule as in the header of a .po file."""
        return f"nplurals={self.nplurals}; plural={self.expression};"

    def examples(self, form: int) -> str:
        """Return a few numbers of a form.

        >>> PluralForms.of("nplurals=2; plural=n != 1;").examples(1)
        '0, 2, 3 …'
        """
        return _first_three(self.numbers[form])


@lru_cache(100)
def categories(code: str | None) -> dict[str, str] | None:
    """Return the plural forms of a language in their usual order, each with a few numbers; None if it is unknown.

    >>> categories("rus_Cyrl")
    {'one': '1, 21, 31 …', 'few': '2, 3, 4 …', 'many': '0, 5, 6 …', 'other': '0.5, 1.5, 2.5 …'}
    """
    from babel import Locale, UnknownLocaleError

    try:
        rule = Locale.parse(usual_code(code or "") or "", sep="-").plural_form
    except (ValueError, UnknownLocaleError):
        return None
    forms = {}
    for name in ORDER:
        if name in rule.tags or name == "other":
            forms[name] = _examples_of(rule, name)
    return forms


def _examples_of(rule: Callable[[int | Decimal], str], form: str) -> str:
    """Return a few numbers of one of CLDR's forms; "" if none is known."""
    candidates: tuple[Iterable[int | Decimal], ...] = (range(_SAMPLE_SIZE), _MILLIONS, _FRACTIONS)
    for numbers in candidates:
        if examples := [number for number in numbers if rule(number) == form]:
            return _first_three(examples)
    return ""


def place_of_form(place: str, form: object, examples: str) -> str:
    """Return the place of a plural form: that of its message, with a few numbers or, if none is known, its name."""
    return f"{place}, for {examples}" if examples else f"{place}, form {form}"


def _first_three(numbers: Sequence[int | Decimal]) -> str:
    examples = ", ".join(map(str, numbers[:3]))
    return f"{examples} …" if len(numbers) > 3 else examples
