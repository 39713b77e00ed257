"""The grammar of placeholders, the parts of a text that a program fills in, for each kind of text.

Unambiguous placeholders (`{name}`, `%s`, `%(name)s`, `${x}`, `{{ x }}`, `<%= x %>`) are recognised in any text. Forms
that prose may contain with another meaning (`%1`, `:name`, `%dpx`) are placeholders only if a flag of the message or
the type of the file says so. The same patterns mask a source and check its translation.

Every pattern takes linear time: each repetition is possessive, and stops at a character that may begin another match.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

_NO_LETTER = "(?![A-Za-z\u00c0-\u024f])"
_NO_PERCENTAGE = "(?<!\\d)(?<!\\d[ \u00a0\u202f])"
"""After a number, `%` is a percent sign."""
_LENGTH = "(?:hh|ll|[hlLqjzt])"
_CONVERSIONS = "diouxXeEfFgGaAcCsSpnrb@"
_NUMBER = r"(?:\d++|\*(?:\d++\$)?)"
UNITS = (
    "px|pt|r?em|v[hw]|[ds]p|h|m|s|ms|mins?|secs?|hrs?|[kmc]?g|[kcm]?m|ft|lbs?|oz|[kKMGT]?i?B|[kmgt]b|[kMG]?Hz"
    "|fps|[dp]pi"
)
"""Symbols of units that directly follow their number: `%dpx`, `10kg`."""
_FORMAT = r"[-+#0]*+\d*+(?:\.\d++)?"

_BRACES = (
    r"\{\{\{[^{}]*+\}\}\}|\{\{[^{}]*+\}\}"  # {{{name}}}, {{ name }}, {{#if x}}
    r"|\{%[^{}%]*+(?:%(?!\})[^{}%]*+)*%\}"  # {% if x %}
    r"|\{[#/:@^!>][^{}\n]*+\}"  # {#if x}, {/if}
    r"|[%$#]\{[^{}\n]*+\}"  # ${name}, %{name}, #{name}
    r"|\{[^{}\s]*+\}"  # {name}, {0}, {}, {price:,.2f}, {name!r}
    r"|\{\s*+[\w.$\[\]-]++\s*+(?:,\s*+(?:number|date|time|spellout|ordinal|duration|list)\b[^{}]*+)?\}"  # { name }
    r"|\{\s*+\d++\s*+(?:,\s*+-?\d++\s*+)?:[^{}\n]*+\}|\{[\w.]++:(?!\s)[^{}\n]*+\}"  # {0:dd MMM yyyy}, {when:%d %B}
)
_OTHERS = (
    r"|\$t\([^()\n]*+\)|\$[A-Za-z_]\w*+(?:\$(?!\w))?"  # $t(key), $HOME, $NAME$
    r"|<%[^<%]*+(?:%(?!>)[^<%]*+)*%>|<\?(?:php\b|=)[^<?]*+(?:\?(?!>)[^<?]*+)*\?>"  # <%= name %>, <?= $name ?>
    r"|(?<![^\W_])__[^\W_]++(?:[_.-][^\W_]++)*__(?![^\W_])"  # __name__
    r"|\[\[\s*+[\w.:-]++\s*+\]\]"  # [[name]]
    r"|@(?:\.[a-z]++)?:(?:\([^()\s]*+\)|[\w-]++(?:\.[\w-]++)*)"  # @:key, @.lower:key
)
_NAMED = (
    rf"%\([^()\n]*+\){_FORMAT}[hlL]?[diouxXeEfFgGcrsa]|%<\w++>{_FORMAT}[A-Za-z]"  # %(name)s, %<name>.2f
    r"|%(?:\d++\$)?#@\w++@"  # %#@count@
)
_PRINTF = (
    rf"%\d++\$[-+#0,' ]*+{_NUMBER}?(?:\.{_NUMBER})?{_LENGTH}?(?:[tT][A-Za-z]|[{_CONVERSIONS}])"  # %1$s, %1$tY
    rf"|%0?\d*+\.\d++{_LENGTH}?[diouxXeEfFgGs]|%0\d[diuxX]|%ll[diuxX]"  # %.2f, %02d, %lld, even before a letter
    rf"|%[-+#0,']*+{_NUMBER}?(?:\.{_NUMBER})?{_LENGTH}?[sdiufFeEgGxXoc@]{_NO_LETTER}"  # %s, %-5d, %@
    rf"|{_NO_PERCENTAGE}%[tT]?[A-Za-z]{_NO_LETTER}"  # %n, %tY, %B
    rf"|{_NO_PERCENTAGE}%[sd](?=(?:{UNITS}|x|k|th|st|nd|rd)\b|[A-Z])"  # %dpx, %sMB
    r"|%%"
)
_BETWEEN_SIGNS = rf"%%\w++%%|{_NO_PERCENTAGE}%[A-Za-z_]\w++(?:[.-]\w++)*%(?![\w%])"  # %%title%%, %name%
_COMMON = f"{_BRACES}{_OTHERS}"
_PROSE = f"{_COMMON}|{_NAMED}|{_BETWEEN_SIGNS}|{_PRINTF}"


class PlaceholderSyntax(Enum):
    """The placeholders that a text may have."""

    prose = "prose"
    """Text of any kind has only placeholders that can hardly mean anything else."""
    message = "message"
    """Strings of a program also have `:name`, and `%s` next to letters, which then belong to the placeholder."""
    printf = "printf"
    """In the format strings of C's `printf` and similar functions, each percent sign begins a placeholder."""
    braces = "braces"
    """In the format strings of Python's `str.format` and similar functions, a percent sign has no special meaning."""
    numbered = "numbered"
    """Qt and KDE have `%1` and `%n`."""
    boost = "boost"
    """Boost has `%1%`."""
    tilde = "tilde"
    """Lisp and Scheme have `~a`."""
    pascal = "pascal"
    """Object Pascal has `%0:s`."""


PATTERNS = {
    PlaceholderSyntax.prose: _PROSE,
    PlaceholderSyntax.message: (
        rf"{_PROSE}|{_NO_PERCENTAGE}%[A-Za-z_]\w*+|(?<![^\s(\[{{\"'«“‘>]):[A-Za-z_]\w++(?::[A-Za-z_]\w++)*:?"
    ),
    PlaceholderSyntax.printf: (
        rf"{_COMMON}|{_NAMED}|%%|%(?:\d++\$)?[-+#0,' ]*+{_NUMBER}?(?:\.{_NUMBER}?)?{_LENGTH}?[{_CONVERSIONS}]"
    ),
    PlaceholderSyntax.braces: _COMMON,
    PlaceholderSyntax.numbered: rf"{_COMMON}|%%|%L?(?:\d{{1,2}}|n{_NO_LETTER})",
    PlaceholderSyntax.boost: rf"%\d++%|%\|[^|\n]*+\||{_PROSE}",
    PlaceholderSyntax.tilde: rf"~[\d,'#v:@]*+[A-Za-z%&~$*?(){{}}\[\];^|_<>/]|{_PROSE}",
    PlaceholderSyntax.pascal: rf"%(?:\d++:)?-?\d*+(?:\.\d++)?[dDuUeEfFgGnNmMpPsSxX]|%%|{_COMMON}",
}
"""Regular expressions without groups."""
_FLAGS = {
    **dict.fromkeys(
        ["c", "objc", "python", "php", "perl", "tcl", "ruby", "awk", "lua", "javascript", "elisp", "gcc-internal"]
        + ["go", "sh-printf", "gfc-internal"],
        PlaceholderSyntax.printf,
    ),
    **dict.fromkeys(
        ["python-brace", "perl-brace", "csharp", "c++", "rust", "java", "icu", "sh"], PlaceholderSyntax.braces
    ),
    **dict.fromkeys(["qt", "qt-plural", "kde", "kde-kuit", "ycp", "smalltalk"], PlaceholderSyntax.numbered),
    "boost": PlaceholderSyntax.boost,
    **dict.fromkeys(["lisp", "scheme", "librep"], PlaceholderSyntax.tilde),
    "object-pascal": PlaceholderSyntax.pascal,
}


def syntax_of_flags(flags: Iterable[str]) -> PlaceholderSyntax | None:
    """Return the syntax that the flags of a PO entry, such as `c-format`, name; None if they name none.

    >>> syntax_of_flags(["fuzzy", "qt-format"]).name
    'numbered'
    """
    for flag in flags:
        name, _, suffix = flag.rpartition("-")
        if suffix == "format" and name in _FLAGS:
            return _FLAGS[name]
    return None
