"""The placeholders of messages, checked as `msgfmt --check` does for `c-format`, `python-format` and the like."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache

from translucid.data.placeholder_syntax import PATTERNS, PlaceholderSyntax, syntax_of_flags

_SIGNS = {PlaceholderSyntax.braces: "{}", PlaceholderSyntax.tilde: "~"}
"""What begins a placeholder; in other syntaxes a percent sign."""
_FREE = {PlaceholderSyntax.numbered, PlaceholderSyntax.tilde}
"""Syntaxes in which the sign may stand for itself."""
_UNCHECKED = {"icu-format", "java-format", "sh-format"}
"""Their braces may stand in each other or in quotes, or are not needed."""
_NAME = re.compile(r"%[(<](?P<name>[^()<>]*)[)>]|%\d+\$|\{(?P<field>[^{}!:]*)")


def broken_format(flags: Sequence[str], source: str, target: str, plural: bool) -> str | None:
    """Return what is wrong with the placeholders of a translation, as a doubt; none if all are right.

    Args:
        flags: of the entry.
        source: what was translated.
        target: its translation.
        plural: it is a form of a plural, which may leave out the number.
    """
    syntax = syntax_of_flags(flag for flag in flags if flag not in _UNCHECKED)
    if syntax is None:
        return None
    before, after = _read(source, syntax), _read(target, syntax)
    if after is None:
        return "placeholders: one is broken"
    lost, invented = (before or Counter()) - after, after - (before or Counter())
    if invented or sum(lost.values()) > plural:
        wrong = [f"{one} is lost" for one in lost] + [f"{one} is too much" for one in invented]
        return f"placeholders: {', '.join(wrong)}"
    return None


def _read(text: str, syntax: PlaceholderSyntax) -> Counter[str] | None:
    """Count what is filled in; none if something is of no use."""
    signs = _SIGNS.get(syntax, "%")
    found = [match[0] for match in _pattern(syntax).finditer(text) if match[0][0] in signs]
    rest = _pattern(syntax).sub("", text)
    if syntax not in _FREE and any(sign in rest.replace("{{", "").replace("}}", "") for sign in signs):
        return None
    return Counter(filter(None, map(_meaning, found)))


@cache
def _pattern(syntax: PlaceholderSyntax) -> re.Pattern[str]:
    return re.compile(PATTERNS[syntax], re.DOTALL)


def _meaning(placeholder: str) -> str:
    """Return what is filled in, without how it is written: `%s` for `%2$-5s`; nothing for what stands for a sign.

    >>> [_meaning(one) for one in ("%2$-5s", "%(n)03d", "{price:.2f}", "%1", "%%", "{{")]
    ['%s', '%(n)d', '{price}', '%1', '', '']
    """
    if placeholder.startswith(("%%", "{{", "~%", "~~")):
        return ""
    name = _NAME.match(placeholder)
    if name and name["field"] is not None:
        return f"{{{name['field']}}}"
    if name and name["name"] is not None:
        return f"%({name['name']}){placeholder[-1]}"
    if placeholder[-1].isdigit() or placeholder[-1] in "%|":
        return placeholder
    return placeholder[0] + placeholder[-1]
