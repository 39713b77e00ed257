"""Values that only programs read: colours, file names, date patterns, time zones, style sheets, formulas."""

from __future__ import annotations

import re
from functools import cache

LONGEST_CODE = 200
"""The largest number of characters of a name, an address and the like."""
_CODE = re.compile(
    r"\#[0-9a-fA-F]{3,8}"  # colours
    r"|(?:rgba?|hsla?|url|var|calc|(?:linear|radial)-gradient)\([^\n]*\)"
    r"|(?:\.{0,2}/|~/|[A-Za-z]:\\)\S*|[\w.-]+(?:/[\w.-]+){2,}/?|[\w-]+/[\w-]+\.\w+|(?:application|text|image)/[\w.+-]+"
    r"|[a-z][a-z0-9]*[A-Z]\w*(?:\(\))?|[\w-]+(?:\.[\w-]+)+(?:\(\))?"  # camelCase, dotted names, files
    r"|\w*_\w+|--?[a-z][\w-]*|@[\w/-]+"  # names, switches
    r"|[a-z]{2,3}-(?:[A-Z]{2}|\d{3}|(?:Hans|Hant|Latn|Cyrl|Arab|Deva|Guru)(?:-[A-Z]{2})?)"  # languages
    r"|\{?[0-9a-fA-F]{8}(?:-?[0-9a-fA-F]{4,12}){1,4}\}?"  # identifiers
    # Versions, dates, sizes; but "2nd", "80s", "5pm" and "3-day" are words.
    r"|v\d[\w.:+-]*|(?!\d+(?:st|nd|rd|th|s|[ap]m)\Z)\d[\w.:+]*|\d[\d.:+-]*(?:T[\d:.+-]*Z?)?|\d[\d.]*\.\d[\w.:+-]*"
    r"|(?:UTC|GMT)(?:[+-]\d{1,2}(?::?\d\d)?)?"
)
_ICON = re.compile(
    r"(?:(?:fa[srlbdt]?|fa-(?:solid|regular|brands)|mdi|bi|bx|pi|ti|ri|glyphicon|icon|material-icons) )?"
    r"(?:fa|mdi|bi|bx[sl]?|pi|ti|ri|glyphicon|icon|ion|el-icon|uil|la[srb]?|codicon|octicon|lucide|heroicons?)"
    r"(?:-[a-z0-9]++)+(?: (?:fa|mdi|icon|bx)-[a-z0-9-]++)*"
)
"""Names of icons in fonts and collections of them."""
_DATA = re.compile(r"data:[\w/+.;=-]{0,100},")
_PATH_OF_SVG = re.compile(r"[Mm]\s*-?[\d.][\d\s.,eE+MmZzLlHhVvCcSsQqTtAa-]*+")
_ACCESS_KEY = re.compile(
    r"(?:^|[._-]|(?<=[a-z]))(?:access|hot|shortcut|command|mnemonic)[_-]?keys?$|(?:^|[._-])(?:shortcut|accelerator|hotkey"
    r"|keybinding|mnemonic|KeyboardAccelerators)$",
    re.IGNORECASE,
)
"""Keys of strings that are keys of the keyboard."""
_LAYOUT = re.compile(
    r"\.(?:AccessKey|FlowDirection|ReadingDirection|RightToLeft|(?:Horizontal|Vertical|Text|Content|Check|Image)\w*?Align\w*"
    r"|Font(?:Family|Size|Weight|Style|Stretch)?|Foreground|Background|(?:Fore|Back|Border)(?:Color|Brush)"
    r"|(?:Min|Max)?(?:Width|Height)|(?:Client|Minimum|Maximum)Size|Margin|Padding|Orientation|(?:Image|Uri)Source|Glyph"
    r"|NavigateUri|ImeMode|AutoSize\w*|ShortcutKeys|TextWrapping|TextTrimming)$"
)
"""Properties of elements that decide how a program looks or works, in .NET's keys `element.Property`."""
_VALUE_KEY = re.compile(
    r"(?:^|[._-])(?:icon|iconName|glyph|class|className|cssClass|style|type|align|direction|dir|position|color|theme"
    r"|fontFamily|variant|route|slug|rel|method|component|layout)$",
    re.IGNORECASE,
)
"""Keys whose values, if they are words in lower case without spaces, are for the program."""
_LOWER = re.compile(r"[a-z][a-z0-9-]*")
_KEY_OF_LANGUAGE = re.compile(r"(?:^|[^a-z])(?:lang|language|locale|lng|hreflang)(?:[_-]?code)?$", re.IGNORECASE)
_LANGUAGE = re.compile(r"[a-z]{2}(?:[-_][A-Za-z]{2,4})?")
_FORMULA = re.compile(r"=\s*[-+]?(?:[A-Za-z_.]+\(|\$?[A-Za-z]{1,3}\$?\d|\d|'[^']*'!|\"|\()")
_ZONE = re.compile(r"[A-Z][A-Za-z]+/[\w/+-]+")
_PATTERN = re.compile(r"(?:[GyYuMLdDEeacbBHhKkmsSAzZOvVXxQqwW]|[\s/.,:;()\[\]年月日時分秒-]|'[^']*'|T)+")
_FIELD = re.compile(r"[A-Za-z]+")
_SAME_LETTERS = re.compile(r"([A-Za-z])\1*")
_LETTERS_OF_PATTERN = "yYMdDEHhms"
_PROPERTY = re.compile(
    r"\s*(?:--[\w-]+|(?:-(?:webkit|moz|ms)-)?(?:color|background|fonts?|margin|padding|border|display|width|height"
    r"|min|max|top|left|right|bottom|position|text|line|letter|word|opacity|float|clear|overflow|cursor|z-index"
    r"|transform|transition|animation|flex|grid|gap|align|justify|white-space|visibility|vertical-align|list-style"
    r"|box|outline|fill|stroke)(?:-[a-z]+)*)\s*:\s*\S"
)
_RULES = re.compile(r"(?:[^{}]*+\{[^{}]*+\}\s*+)+")
_BODY = re.compile(r"\{([^{}]*+)\}")
_SCRIPT = re.compile(
    r"javascript:|(?:async\s+)?function\b\s*[\w$]*\s*\(|(?:var|let|const)\s+[\w$]+\s*=|\([\w$, ]*\)\s*=>"
    r"|[\w$]+(?:\.[\w$]+)+\s*=[^=]"
)
_CALL = re.compile(r"[\w$]+(?:\.[\w$]+)*\(")


def is_code(text: str, key: str = "") -> bool:
    """Whether a string is a value for programs, not a text for people.

    Args:
        text: the string without white space around it.
        key: the key of the string in its file; `en` is a code only under a key such as `lang`.

    >>> list(filter(is_code, ("Save", "user_name", "yyyy-MM-dd", "=SUM(A1:A3)", "color: red;", "2nd")))
    ['user_name', 'yyyy-MM-dd', '=SUM(A1:A3)', 'color: red;']
    """
    if _FORMULA.match(text) or _is_style(text) or _is_script(text) or _DATA.match(text):
        return True
    if _PATH_OF_SVG.fullmatch(text) and sum(map(str.isdigit, text)) > 2:
        return True
    if len(text) > LONGEST_CODE:
        return False
    if _LANGUAGE.fullmatch(text) and _KEY_OF_LANGUAGE.search(key):
        return True
    if _LAYOUT.search(key) or (len(text) < 3 and _ACCESS_KEY.search(key)) or _ICON.fullmatch(text):
        return True
    # A button may be labelled `left`, and so may its alignment: only the key tells.
    if _LOWER.fullmatch(text) and _VALUE_KEY.search(key) and text != key.casefold():
        return True
    if _CODE.fullmatch(text) or _is_date_pattern(text):
        return True
    return bool(_ZONE.fullmatch(text)) and text in _zones()


def _is_date_pattern(text: str) -> bool:
    """Whether a text is a pattern such as `d MMM yyyy` or `HH:mm`; single words such as `Daddy` and `Hmm` are not.

    A pattern has only field letters. At least two of them are repeated; or one is, and each part is one field.
    """
    if not _PATTERN.fullmatch(text):
        return False
    # Letters in quotes and the `T` between date and time are not fields.
    letters = re.sub(r"'[^']*'", " ", text).replace("T", " ")
    parts = _FIELD.findall(letters)
    fields = [match[0] for match in _SAME_LETTERS.finditer(letters)]
    repeated = {field[0] for field in fields if len(field) > 1 and field[0] in _LETTERS_OF_PATTERN}
    if len(repeated) > 1:
        return True
    has_one_field_each = len(fields) == len(parts)
    # Four letters stand for a full name or year: `MMMM` alone is a pattern, `mm` alone could be a unit.
    if any(field[0] in "yYMEL" and len(field) == 4 for field in fields):
        return has_one_field_each
    return bool(repeated) and len(parts) > 1 and has_one_field_each and text[0] not in ".,;"


def _is_style(text: str) -> bool:
    """Whether a text is a style sheet, or declarations such as `color: red; margin: 0`."""
    if text.startswith("@media") and text.endswith("}"):
        return True
    if text.endswith("}"):
        return bool(_RULES.fullmatch(text)) and all(map(_are_declarations, _BODY.findall(text)))
    return ";" in text and _are_declarations(text)


def _are_declarations(text: str) -> bool:
    declarations = list(filter(str.strip, text.split(";")))
    return bool(declarations) and all(map(_PROPERTY.match, declarations))


def _is_script(text: str) -> bool:
    if text.startswith("javascript:"):
        return True
    return text.endswith((";", "}")) and bool(_SCRIPT.match(text) or (_CALL.match(text) and text.endswith(");")))


@cache
def _zones() -> frozenset[str]:
    """Return the names of all time zones."""
    from babel.core import get_global

    return frozenset(get_global("zone_territories")) | frozenset(get_global("zone_aliases"))
