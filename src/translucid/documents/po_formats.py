"""The placeholders of messages, checked as `msgfmt --check` does for `c-format`, `python-format` and the like."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence

_PERCENT = re.compile(
    r"%(?:\((?P<name>[^()]*)\)|\d++\$)?+[-+ #0']*+(?:\*|\d++)?+(?:\.(?:\*|\d++))?+(?:hh|h|ll|l|L|q|j|z|t)?"
    r"(?P<kind>[A-Za-z@%])"
)
_BRACES = re.compile(r"\{\{|\}\}|\{([^{}!:]*+)[^{}]*+\}")


def broken_format(flags: Sequence[str], source: str, target: str, plural: bool) -> str | None:
    """Return what is wrong with the placeholders of a translation, as a doubt; none if all are right.

    Args:
        flags: of the entry.
        source: what was translated.
        target: its translation.
        plural: it is a form of a plural, which may leave out the number.
    """
    for flag, read in _READERS.items():
        if flag in flags:
            before, after = read(source), read(target)
            if after is None:
                return "placeholders: one is broken"
            lost, invented = (before or Counter()) - after, after - (before or Counter())
            if invented or sum(lost.values()) > plural:
                wrong = [f"{one} is lost" for one in lost] + [f"{one} is too much" for one in invented]
                return f"placeholders: {', '.join(wrong)}"
    return None


def _percent(text: str) -> Counter[str] | None:
    """Count what begins with a percent sign; none if one is of no use."""
    rest = _PERCENT.sub("", text)
    found = [match for match in _PERCENT.finditer(text) if match["kind"] != "%"]
    if "%" in rest:
        return None
    return Counter(f"%({m['name']}){m['kind']}" if m["name"] is not None else f"%{m['kind']}" for m in found)


def _braces(text: str) -> Counter[str] | None:
    rest = _BRACES.sub("", text)
    if "{" in rest or "}" in rest:
        return None
    return Counter(f"{{{match[1]}}}" for match in _BRACES.finditer(text) if match[1] is not None)


_READERS: dict[str, Callable[[str], Counter[str] | None]] = {
    **dict.fromkeys(["c-format", "objc-format", "python-format", "php-format", "perl-format", "tcl-format"], _percent),
    **dict.fromkeys(["python-brace-format", "perl-brace-format", "csharp-format"], _braces),
}
