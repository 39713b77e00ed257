"""Checks of the placeholders in translations, as `msgfmt --check` does for `c-format`, `python-format` and others."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from bitext.protected_spans import FORMATS, PlaceholderSyntax, syntax_of_flags

_SIGNS = {PlaceholderSyntax.braces: "{}", PlaceholderSyntax.tilde: "~"}
"""The first character of placeholders, if it is not a percent sign."""
_FREE = {PlaceholderSyntax.numbered, PlaceholderSyntax.tilde}
"""Syntaxes in which the first character may also occur as text."""
_UNCHECKED = {"icu-format", "java-format", "sh-format"}
"""Flags whose braces may be nested, quoted or optional, which a pattern cannot check."""
_NAME = re.compile(r"%[(<](?P<name>[^()<>]*)[)>]|%\d+\$|\{(?P<field>[^{}!:]*)")


def broken_format(flags: Sequence[str], source: str, target: str, plural: bool) -> str | None:
    """Return a doubt about the placeholders of a translation; None if they are right.

    Args:
        flags: the flags of the entry.
        source: the source text.
        target: the translation.
        plural: whether the text is a plural form, which may omit the number.
    """
    syntax = syntax_of_flags(flag for flag in flags if flag not in _UNCHECKED)
    if syntax is None:
        return None
    source_arguments, target_arguments = _count_arguments(source, syntax) or Counter(), _count_arguments(target, syntax)
    if target_arguments is None:
        return "placeholders: one is broken"
    lost, invented = source_arguments - target_arguments, target_arguments - source_arguments
    # The number is the one placeholder that a plural form may omit, as in "one file".
    if invented or lost.total() > int(plural):
        problems = [f"{name} is lost" for name in lost]
        problems += [f"{name} is too much" for name in invented]
        return f"placeholders: {', '.join(problems)}"
    return None


def _count_arguments(text: str, syntax: PlaceholderSyntax) -> Counter[str] | None:
    """Count the arguments that placeholders insert; None if the text has invalid placeholders."""
    signs = _SIGNS.get(syntax, "%")
    pattern = re.compile(FORMATS[syntax], re.DOTALL)
    remainder = pattern.sub("", text).replace("{{", "").replace("}}", "")
    if syntax not in _FREE and not set(signs).isdisjoint(remainder):
        return None
    arguments: Counter[str] = Counter()
    for match in pattern.finditer(text):
        if match[0][0] in signs and (argument := _argument(match[0])):
            arguments[argument] += 1
    return arguments


def _argument(placeholder: str) -> str:
    """Return a placeholder without its position and format, such as `%s` for `%2$-5s`; "" for an escaped sign.

    >>> list(map(_argument, ("%2$-5s", "%(n)03d", "{price:.2f}", "%1", "%%", "{{")))
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
