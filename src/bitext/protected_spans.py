"""Protected spans: the parts of a text that a translation must not change, in one table for all kinds of text.

`TABLE` has a row for each kind of span, such as placeholders that a program fills in, tags, addresses and code. Each
row says in which texts it holds. Unambiguous spans (`{name}`, `%s`, `<b>`, an address) hold in any text. Forms that
prose may contain with another meaning (`%1`, `:name`, `[name]`) hold only where a flag of the message or the type of
the file says so. The same patterns mask a source and check its translation. Users add patterns (`data.protected`).
Numbers, which languages write differently, are compared by their digits, or as a whole if signs join them.

A model reads a `StandIn` in place of a span that it would spoil: in segments of documents
(`documents/placeholders.py`), and in Translucid as a piece of the vocabulary or as a name of a term list.

Every pattern takes linear time: each repetition is possessive or bounded, and stops at a character that may begin
another match.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from typing import NamedTuple, TypeAlias

from bitext.user_patterns import bounded_pattern

Part: TypeAlias = tuple[str, int, int]
"""A part of a text, with the offsets of its first character and of the character after it."""

PLACEHOLDERS = tuple(f"⟦{number}⟧" for number in range(1, 17))
"""The pieces of a vocabulary that stand for protected parts while a text is translated."""
_LATIN_OR_DIGIT = "[A-Za-z\u00c0-\u024f\\d]"


class Edit(NamedTuple):
    """The replacement of a range of characters."""

    start: int
    end: int
    """The end of the range, exclusive; the same as `start` for an insertion."""
    new: str


def splice(text: str, edits: Iterable[Edit]) -> str:
    """Apply edits, given in any order, to a text.

    >>> splice("one two three", [Edit(4, 7, "2"), Edit(0, 3, "1")])
    '1 2 three'

    Raises:
        ValueError: two edits overlap.
    """
    parts, end = [], 0
    for edit in sorted(edits, key=lambda edit: (edit.start, edit.end)):
        if edit.start < end or edit.end < edit.start:
            raise ValueError(f"characters {edit.start} to {edit.end} are replaced twice")
        parts += [text[end : edit.start], edit.new]
        end = edit.end
    return "".join([*parts, text[end:]])


@dataclass(frozen=True, slots=True)
class StandIn:
    """A word that a model reads in place of a part of a text: a piece, a number, a name or a noun."""

    word: str
    source: str
    """The part in the source."""
    target: str
    """The part in the translation, which differs for a term that has a translation."""
    is_term: bool = False
    """Whether it may be written with a capital or without, and no letter of any script may touch it."""
    touches: tuple[bool, bool] = (False, False)
    """Whether letters touch the part on the left and on the right; the text for the model has spaces there."""

    def found_in(self, text: str) -> Iterator[Part]:
        """Yield where a text has the word; letters may touch a piece, and a number, as in `47kg`."""
        word = re.escape(self.word)
        if self.is_term:
            first = re.escape(self.word[:1])
            word = rf"(?<![^\W_])(?i:{first}){word.removeprefix(first)}(?![^\W_])"
        elif self.word.isdigit():
            word = rf"(?<!\d)(?<!\d[.,]){word}(?!\d|[.,]\d)"
        elif self.word not in PLACEHOLDERS:
            word = f"(?<!{_LATIN_OR_DIGIT}){word}(?!{_LATIN_OR_DIGIT})"
        return ((match[0], *match.span()) for match in re.finditer(word, text))

    def count(self, text: str) -> int:
        """Return how often a text has the word."""
        return sum(1 for _ in self.found_in(text))


def restored(text: str, stand_ins: Iterable[StandIn]) -> str:
    """Return a translation with the parts in place of their stand-ins."""
    edits: list[Edit] = []
    for stand_in in stand_ins:
        for _, start, end in stand_in.found_in(text):
            edits.append(Edit(start, end, stand_in.target))
    return splice(text, edits)


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


@dataclass(frozen=True, slots=True)
class ExtendedSyntax:
    """A syntax with the patterns of a user (`data.protected`)."""

    base: PlaceholderSyntax
    patterns: tuple[str, ...]


Syntax: TypeAlias = PlaceholderSyntax | ExtendedSyntax
"""What a text may have besides words."""


def base_of(syntax: Syntax) -> PlaceholderSyntax:
    """Return a syntax without the patterns of a user."""
    return syntax.base if isinstance(syntax, ExtendedSyntax) else syntax


def with_patterns(syntax: Syntax, patterns: Sequence[str]) -> Syntax:
    """Return a syntax with the patterns of a user instead of those that it has."""
    return ExtendedSyntax(base_of(syntax), tuple(patterns)) if patterns else base_of(syntax)


class ProtectedSpan(NamedTuple):
    """A row of the table: a kind of span that a translation must not change."""

    name: str
    pattern: str
    """A regular expression without numbered groups."""
    examples: tuple[str, ...]
    """Spans of this kind, on which the tests of all formats run."""
    syntaxes: frozenset[PlaceholderSyntax]
    """The texts in which it holds."""
    is_exact: bool = True
    """Whether every translation keeps it, so that corpora are checked for it. People do translate hashtags and paths,
    so for these, only our own translations are checked."""


_S = PlaceholderSyntax
_ANY = frozenset(PlaceholderSyntax)
_STRINGS = _ANY - {_S.prose}
"""Everything but prose: the strings of a program."""
_PERCENT = frozenset({_S.prose, _S.message, _S.boost, _S.tilde})
"""Texts with the placeholders of `printf` that can hardly be anything else."""

_NO_LETTER = "(?![A-Za-z\u00c0-\u024f])"
_NO_PERCENTAGE = "(?<!\\d)(?<!\\d[ \u00a0\u202f])"
"""After a number, `%` is a percent sign."""
_LENGTH = "(?:hh|ll|[hlLqjzt])"
_CONVERSIONS = "diouxXeEfFgGaAcCsSpnrb@"
_NUMBER_OF_FORMAT = r"(?:\d++|\*(?:\d++\$)?)"
UNITS = (
    "px|pt|r?em|v[hw]|[ds]p|h|m|s|ms|mins?|secs?|hrs?|[kmc]?g|[kcm]?m|ft|lbs?|oz|[kKMGT]?i?B|[kmgt]b|[kMG]?Hz"
    "|fps|[dp]pi"
)
"""Symbols of units that directly follow their number: `%dpx`, `10kg`."""
_FORMAT = r"[-+#0]*+\d*+(?:\.\d++)?"

_SCHEME = "(?:https?|s?ftp|file|wss?|git|ssh|s3|[a-z][a-z0-9+.-]{1,15})://"
_IN_ADDRESS = "(?:\\{\\{[^{}\\n]*+\\}\\}|[^\\s\x00<>\"'`«»“”„。，、；：！？（）「」『』【】《》])"
_ADDRESS = (
    rf"(?P<address>(?<![A-Za-z0-9]){_SCHEME}{_IN_ADDRESS}+|www\.{_IN_ADDRESS}+"
    rf"|(?<!\w)(?:mailto:{_IN_ADDRESS}+|(?:tel|sms):\+?\d[\d().-]*+)"
    r"|(?<![\w.+-])[\w.+-]++@[\w-]++(?:\.[\w-]++)+)"
)
STYLE_OR_SCRIPT = (
    # An element ends before the next one begins, so that the search takes linear time.
    r"(?i:<style\b[^<>]*>[^<]*+(?:<(?!/?style\b)[^<]*+)*</style\s*+>)"
    r"|(?i:<script\b[^<>]*>[^<]*+(?:<(?!/?script\b)[^<]*+)*</script\s*+>)"
)
"""A pattern of the two HTML elements whose contents are not text."""
# Arrows, symbols, pictographs and flags.
_SIGN = "[\U0001f000-\U0001faff\u2190-\u21ff\u2300-\u23ff\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff\u00a9\u00ae\u2122]"
# A keycap such as 1️⃣, or signs with variation selectors (U+FE0E, U+FE0F), joiners (U+200D) and skin tones.
_EMOJI = f"(?:[0-9#*]\ufe0f?\u20e3|{_SIGN}[\ufe0e\ufe0f]?(?:\u200d{_SIGN}[\ufe0e\ufe0f]?|[\U0001f3fb-\U0001f3ff])*)+"

BBCODES = (
    "b|i|u|s|url|img|quote|code|size|colou?r|font|list|li|center|left|right|justify|email|youtube|spoiler|table|tr|td"
    "|th|hr|br|su[bp]|h[1-6]|strike|indent|p"
)
"""The names of BBCode's tags that are usual without a value."""
_WORDS_IN_BRACKETS = (
    "optional|none|default|required|unknown|empty|deleted|removed|sic|untitled|draft|new|beta|yes|no|on|off|disabled"
    "|enabled|hidden|edited|archived|online|offline|anonymous|missing|more|and|or|all|any|other|example|experimental"
    "|deprecated|music|applause|laughter|inaudible|noise|silence"
)
"""Words that stand in square brackets without being placeholders."""
_MODIFIER = (
    "(?:(?i:ctrl|control|alt|altgr|shift|meta|cmd|command|option|opt|win|windows|super|fn)|Strg|Umschalt|Maj|Mayús"
    "|[⌘⌥⇧⌃])"
)
_KEY = (
    "(?:F(?:1\\d|2[0-4]|[1-9])|Enter|Return|Esc(?:ape)?|Tab|Space(?:bar)?|Backspace|Del(?:ete)?|Ins(?:ert)?|Home|End"
    "|Page ?(?:Up|Down)|Pg(?:Up|Dn|Down)|Up|Down|Left|Right|Plus|Minus|Click|[A-Za-z0-9](?!\\w)"
    "|[^\\s\\w()\\[\\]{}<>\"'])"
)
SHORTCUT = rf"(?<![\w+-])(?:{_MODIFIER}(?:\s?\+\s?|-|(?<=[⌘⌥⇧⌃]))){{1,4}}{_KEY}|\bF(?:1\d|2[0-4]|[1-9])\b"
"""A pattern of shortcuts of the keyboard, such as `Ctrl+S`."""
_EXTENSIONS = (
    "txt|md|rst|conf|cfg|ini|json|ya?ml|toml|xml|html?|css|js|ts|py|rb|rs|c|h|cpp|java|sh|bat|ps1|exe|dll|zip"
    "|tar|gz|xz|bz2|7z|rar|iso|png|jpe?g|gif|svg|webp|ico|pdf|docx?|xlsx?|pptx?|od[tsp]|csv|tsv|sqlite|db|log|lock"
    "|mp[34]|mkv|avi|wav|ogg|flac|srt|vtt|ttf|woff2?|po|mo|env|bak|tmp|deb|rpm|apk|jar"
)
SHORTCUT_OF_GTK = r"(?:<(?:Control|Ctrl|Ctl|Primary|Shift|Alt|Meta|Super|Hyper|Release|Mod[1-5])>){1,5}\w++"
"""A pattern of shortcuts as GTK writes them: `<Control>s`."""


def _row(
    name: str,
    pattern: str,
    *examples: str,
    syntaxes: Iterable[PlaceholderSyntax] = _ANY,
    is_exact: bool = True,
) -> ProtectedSpan:
    return ProtectedSpan(name, pattern, examples, frozenset(syntaxes), is_exact)


TABLE: tuple[ProtectedSpan, ...] = (
    # Codes in brackets and shortcuts come first, because an address or a tag may be in them.
    _row(
        "bracketed tag",
        r"\[/?[A-Za-z][\w-]*+(?:=[^\]\[\n]{1,300}|(?:\s++[\w-]++=(?:\"[^\"\]\n]*+\"|'[^'\]\n]*+'|[^\s\"'\]\[]++))++\s*+/?)\]"
        r"|\[/[A-Za-z][\w-]*+\]",
        '[gallery id="5"]',
        "[url=https://example.org]",
        is_exact=False,
    ),
    _row(
        "name in brackets",
        rf"\[(?!(?:{_WORDS_IN_BRACKETS})\])[a-z]\w*+(?:[.-]\w++)*\]|\[[A-Z][A-Z0-9]*+_\w*+\]",
        "[player]",
        "[USER_NAME]",
        syntaxes=_STRINGS,
        is_exact=False,
    ),
    _row("shortcut of GTK", SHORTCUT_OF_GTK, "<Control>s", is_exact=False),
    _row(
        "shortcut",
        SHORTCUT,
        "Ctrl+Shift+N",
        "Alt+F4",
        "⌘C",
        "F5",
        is_exact=False,
    ),
    _row("address", _ADDRESS, "https://example.org/a?b=1", "me@example.org"),
    _row(
        "tag",
        rf"{STYLE_OR_SCRIPT}|<<[\w .-]{{1,60}}>>|</?[A-Za-z0-9][^<>]*>|<!--(?:(?!<!--).)*?-->|<!(?i:doctype)\b[^<>]*+>"
        r"|&#?\w+;",
        "<br/>",
        "&nbsp;",
        "<<name>>",
    ),
    _row("format of Boost", r"%\d++%|%\|[^|\n]*+\|", "%1%", "%|2$s|", syntaxes=[_S.boost]),
    _row("format of Lisp", r"~[\d,'#v:@]*+[A-Za-z%&~$*?(){}\[\];^|_<>/]", "~a", "~%", syntaxes=[_S.tilde]),
    _row("template", r"\{\{\{[^{}]*+\}\}\}|\{\{[^{}]*+\}\}", "{{ name }}", "{{#if x}}", "{{{name}}}"),
    _row("template block", r"\{%[^{}%]*+(?:%(?!\})[^{}%]*+)*%\}|\{[#/:@^!>][^{}\n]*+\}", "{% if x %}", "{/if}"),
    _row("interpolation", r"[%$#]\{[^{}\n]*+\}", "${name}", "%{name}", "#{name}"),
    _row(
        "field in braces",
        r"\{[^{}\s]*+\}"
        r"|\{\s*+[\w.$\[\]-]++\s*+(?:,\s*+(?:number|date|time|spellout|ordinal|duration|list)\b[^{}]*+)?\}"
        r"|\{\s*+\d++\s*+(?:,\s*+-?\d++\s*+)?:[^{}\n]*+\}|\{[\w.]++:(?!\s)[^{}\n]*+\}",
        "{name}",
        "{0}",
        "{ name }",
        "{price:,.2f}",
        "{0:dd MMM yyyy}",
    ),
    _row(
        "name with dollar",
        r"\$t\([^()\n]*+\)|\$[A-Za-z_]\w*+(?:\$(?!\w))?",
        "$t(key)",
        "$HOME",
        "$NAME$",
    ),
    _row("argument with dollar", r"\$[1-9](?![\d.,]*+\d|\w)", "$1", syntaxes=_STRINGS, is_exact=False),
    _row(
        "code in a template",
        r"<%[^<%]*+(?:%(?!>)[^<%]*+)*%>|<\?(?:php\b|=)[^<?]*+(?:\?(?!>)[^<?]*+)*\?>",
        "<%= name %>",
        "<?= $x ?>",
    ),
    _row("name with underscores", r"(?<![^\W_])__[^\W_]++(?:[_.-][^\W_]++)*__(?![^\W_])", "__name__"),
    _row("name in double brackets", r"\[\[\s*+[\w.:-]++\s*+\]\]", "[[name]]"),
    _row("linked message", r"@(?:\.[a-z]++)?:(?:\([^()\s]*+\)|[\w-]++(?:\.[\w-]++)*)", "@:key", "@.lower:key"),
    _row("name between at signs", r"(?<![\w@])@[A-Z][A-Z0-9_]*+@(?!\w)", "@PACKAGE@"),
    _row(
        "name between number signs",
        r"(?<![\w#&])#[A-Za-z]\w{0,40}#(?![\w#])",
        "#name#",
        "#n#",
        syntaxes=_STRINGS,
        is_exact=False,
    ),
    _row(
        "named format",
        rf"%\([^()\n]*+\){_FORMAT}[hlL]?[diouxXeEfFgGcrsa]|%<\w++>{_FORMAT}[A-Za-z]|%(?:\d++\$)?#@\w++@",
        "%(name)s",
        "%<rate>.2f",
        "%#@count@",
        syntaxes=_PERCENT | {_S.printf},
    ),
    _row(
        "format of Go",
        r"%[-+# 0]*+\[\d{1,2}\](?:[-+# 0]*+\d*+(?:\.\d*+)?)[A-Za-z]",
        "%[1]s",
        syntaxes=_PERCENT | {_S.printf},
    ),
    _row(
        "name between percent signs",
        rf"%%\w++%%|{_NO_PERCENTAGE}%[A-Za-z_]\w++(?:[.-]\w++)*%(?![\w%])",
        "%name%",
        "%%title%%",
        syntaxes=_PERCENT,
    ),
    _row(
        "format",
        rf"%\d++\$[-+#0,' ]*+{_NUMBER_OF_FORMAT}?(?:\.{_NUMBER_OF_FORMAT})?{_LENGTH}?"
        rf"(?:[tT][A-Za-z]|[{_CONVERSIONS}])"  # %1$s, %1$tY
        rf"|%0?\d*+\.\d++{_LENGTH}?[diouxXeEfFgGs]|%0\d[diuxX]|%ll[diuxX]"  # %.2f, %02d, %lld, even before a letter
        rf"|%[-+#0,']*+{_NUMBER_OF_FORMAT}?(?:\.{_NUMBER_OF_FORMAT})?{_LENGTH}?[sdiufFeEgGxXoc@]{_NO_LETTER}"
        rf"|{_NO_PERCENTAGE}%[tT]?[A-Za-z]{_NO_LETTER}"  # %n, %tY, %B
        rf"|{_NO_PERCENTAGE}%[sd](?=(?:{UNITS}|x|k|th|st|nd|rd)\b|[A-Z])"  # %dpx, %sMB
        r"|%%",
        "%s",
        "%1$s",
        "%.2f",
        "%@",
        "%n",
        syntaxes=_PERCENT,
    ),
    _row(
        "format of printf",
        rf"%%|%(?:\d++\$)?[-+#0,' ]*+{_NUMBER_OF_FORMAT}?(?:\.{_NUMBER_OF_FORMAT}?)?{_LENGTH}?[{_CONVERSIONS}]",
        "%d",
        "%5.1f",
        syntaxes=[_S.printf],
    ),
    _row("format of Qt", rf"%%|%L?(?:\d{{1,2}}|n{_NO_LETTER})", "%1", "%L2", "%n", syntaxes=[_S.numbered]),
    _row(
        "format of Pascal",
        r"%(?:\d++:)?-?\d*+(?:\.\d++)?[dDuUeEfFgGnNmMpPsSxX]|%%",
        "%0:s",
        "%d",
        syntaxes=[_S.pascal],
    ),
    _row(
        "word with a percent sign or a colon",
        rf"{_NO_PERCENTAGE}%[A-Za-z_]\w*+"
        r"|(?<![^\s(\[{\"'«“‘>|]):[A-Za-z_]\w++(?::[A-Za-z_]\w++)*:?",
        "%dogs",
        ":name",
        syntaxes=[_S.message],
    ),
    _row("piece of the vocabulary", r"⟦[0-9]+⟧|\[X[0-9]+X\]", "[X12X]", is_exact=False),  # the second is Weblate's
    _row("emoji", _EMOJI, "👋🏽", "©", is_exact=False),
    _row(
        "name of an emoji", r"(?<![\w:]):(?=[a-z0-9_+-]*[a-z])[a-z0-9_+-]{1,40}:(?![\w:])", ":blobcat:", is_exact=False
    ),
    _row("code", r"(?<![\w`])`{1,2}(?![\s`])[^`\n]{0,200}(?<!\s)`{1,2}(?![\w`])", "`soccer_ball`", is_exact=False),
    _row(
        "color code of a game",
        r"§[0-9a-fk-or]|\|c[0-9a-fA-F]{8}|(?<=\w)\|r\b|\^[0-9](?=[A-Za-z])",
        "§a",
        "|cff00ff00",
        syntaxes=_STRINGS,
        is_exact=False,
    ),
    _row("code of RPG Maker", r"\\[A-Za-z]{1,3}\[[^\[\]\n]{0,20}\]", r"\C[2]", is_exact=False),
    _row("break of SubStation", r"\\[Nh](?![a-z\[:\\])", r"\N", r"\h", is_exact=False),
    _row(
        "substitution",
        r"(?<![\w|])\|[A-Za-z][\w.-]{0,40}\|(?:__?)?(?![\w|])",
        "|name|",
        syntaxes=_STRINGS,
        is_exact=False,
    ),
    _row(
        "pattern of file names",
        r"(?<![\w*])\*(?:\.[\w*]{1,20}){1,3}(?:[;, ]\s?\*(?:\.[\w*]{1,20}){1,3}){0,40}|\(\*\)",
        "*.house",
        "*.png *.jpg",
        is_exact=False,
    ),
    _row(
        "path",
        r"(?<![\w/.:~<-])(?:~|\.{1,2})?/[\w.+~-]++(?:/[\w.+~*-]++)++/?|(?<![\w/.:~<-])(?:~|\.{1,2})/[\w.+~-]++/?"
        r"|(?<!\w)[A-Za-z]:\\[\w.+~$%-]++(?:\\[\w.+~$%-]++)*+\\?|(?<![\w\\])\\\\[\w.-]++\\[\w.$-]++(?:\\[\w.$-]++)*+"
        rf"|(?<![\w/.:@-])[\w-]++(?:/[\w-]++)*+\.(?:{_EXTENSIONS})(?![\w-]|\.\w)",
        "/etc/house.conf",
        r"C:\Windows\house.ini",
        "house.conf",
        is_exact=False,
    ),
    _row(
        "switch",
        r"(?<![\w-])--[A-Za-z][\w-]*+(?:=(?:\"[^\"\n]{0,80}\"|[^\s\"'`<>]{0,80}\w))?",
        "--beach",
        "--size=big",
        syntaxes=_STRINGS,
        is_exact=False,
    ),
    _row(
        "mention",
        r"(?<![\w@./`&])@[A-Za-z_][\w-]{0,60}(?:\.[\w-]{1,60}){0,4}(?:@[\w-]{1,60}(?:\.[\w-]{1,60}){1,4})?",
        "@beach",
        "@beach@m.example",
        is_exact=False,
    ),
    _row("hashtag", r"(?<![\w&#/`])#(?=\w*[^\W\d])\w{2,80}(?!#)", "#house", is_exact=False),
)
"""All kinds of protected spans. The first row that matches at a character wins."""


def _joined(syntax: PlaceholderSyntax, *, exact: bool = False, without: Sequence[str] = ()) -> str:
    """Return the patterns of the rows that hold in a text as one; `without`: names of rows to leave out."""
    rows = [row for row in TABLE if syntax in row.syntaxes and row.name not in without]
    return "|".join(row.pattern for row in rows if row.is_exact or not exact)


FORMATS = {syntax: _joined(syntax, exact=True, without=("address", "tag")) for syntax in _S}
"""Regular expressions of the placeholders of each syntax, which may also be in tags and addresses."""
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


_PROSE = PlaceholderSyntax.prose
# A text without a match has no such part: a fast test, before the slow patterns are tried.
_MAY_HAVE_FIXED = re.compile(r"[%{<@$&\[_:~\d]|www\.")
_MAY_HAVE_KEPT = re.compile(rf"{_MAY_HAVE_FIXED.pattern}|[`\\§|^*/#+⟦\u20e3]|\w-\w|--|\.\w|{_SIGN}")
_SIMPLE_NUMBER = r"\d++(?:[.,]\d++)*"
_DASH = "[-\u2010-\u2015\u2212]"
_GAP = "[ \u00a0\u202f]"
_NUMBER = re.compile(
    # Telephone numbers, and other groups of digits.
    rf"\+\d{{1,3}}(?:(?:{_GAP}|[.\-/])?\(?\d{{1,4}}\)?){{2,6}}(?!\d)"
    rf"|\(\d{{2,5}}\)(?:{_GAP}|-)?\d{{2,4}}(?:(?:{_GAP}|-)\d{{2,4}}){{1,3}}(?!\d)"
    rf"|(?<![\d.,])\d{{1,3}}(?:{_GAP}\d{{3}})+(?:[.,]\d++)?(?![\d.,]*+\d|{_GAP}\d)"
    rf"|(?<!\d)\d{{2,4}}(?:{_GAP}\d{{2,4}}){{2,5}}(?![\d.,]*+\d)"
    rf"|(?<!\w)[A-Z]{{2}}\d{{2}}(?:{_GAP}?[A-Z0-9]{{4}}){{3,7}}(?:{_GAP}?[A-Z0-9]{{1,3}})?(?!\w)"  # bank accounts
    # Feet and inches, degrees and minutes, pairs of coordinates.
    r"|\d++[′'’]\s?\d++(?:\.\d++)?(?:[″\"”]|'')?(?:\s?[NSEWO](?!\w))?"
    r"|\d++(?:[.,]\d++)?\s?°\s?(?:\d++(?:[.,]\d++)?[′'’]\s?(?:\d++(?:[.,]\d++)?(?:[″\"”]|''))?\s?)?[NSEWO](?!\w)"
    rf"|(?:(?<!\w){_DASH})?\d{{1,3}}\.\d{{4,}},\s?{_DASH}?\d{{1,3}}\.\d{{4,}}"
    # Hexadecimal numbers, addresses of devices and networks, universal identifiers.
    r"|(?<!\w)0x[0-9a-fA-F]++(?!\w)|(?<![\w:])(?:[0-9a-fA-F]{1,4}:){3,7}[0-9a-fA-F]{1,4}(?![\w:])"
    r"|(?<!\w)[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}(?!\w)"
    # Versions.
    r"|(?<!\w)[vV]?\d++(?:\.\d++)+(?:[-+.]?(?:alpha|beta|rc|dev|pre|post|snapshot|SNAPSHOT|a|b)[.-]?\d*+(?!\w))"
    r"|(?<!\w)[vV]\d++(?:\.\d++)*"
    # Times, dates, ranges, sizes, norms, fractions, ISBN: numbers that signs join. A time zone or X may follow.
    rf"|(?:(?<![\w.,)\]%])[-−+±])?{_SIMPLE_NUMBER}"
    rf"(?:(?:[:/×·*^=]|{_GAP}?×{_GAP}?|[xT](?=\d)|{_DASH}){_SIMPLE_NUMBER})*(?:(?<=:\d\d)Z(?!\w)|(?<=\d)-X(?!\w))?"
)
"""A number, with everything that belongs to it."""
_SIMPLE = re.compile(_SIMPLE_NUMBER)
_GROUPED = re.compile(rf"[-−+±]?(?:\d++|\d{{1,3}}(?:(?:[.,]|{_GAP})\d{{3}})+)(?:[.,]\d++)?")
"""A number that languages write with other separators."""
_SAME_SIGNS = str.maketrans(
    dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-")
    | dict.fromkeys("×*", "x")
    | dict.fromkeys("’′", "'")
    | dict.fromkeys("”″", '"')
    | dict.fromkeys(" \u00a0\u202f")
)
"""Signs that mean the same in numbers; white space is left out."""
_END_OF_SENTENCE = ".,;:!?'\"»"
_BRACKETS = {")": "(", "]": "[", "}": "{"}
_OPENING = frozenset(_BRACKETS.values())
_BLOCK = re.compile(r"\{\{\s*(?:[#/^!>]|else\b)|\{[#/:@]|\{%|<%(?!=)|<\?php")
"""The start, middle or end of a template block, which no word can stand in for."""
_CODE = re.compile(
    rf"\[/|\[(?:{BBCODES})[\]=]|\[[\w-]+[ =]|§.\Z|\|[cr]|\^\d\Z|\\[CcIiGgSsFf]\[|\\[Nnh]\Z|:[\w+-]+:\Z|[(*]"
)
"""Tags in square brackets, codes of games and of subtitles, names of emoji, and patterns of file names."""
_START_OF_ADDRESS = re.compile(r"[\w.+-]++@|[a-z][a-z0-9+.-]*://|www\.|mailto:|tel:|sms:")
PART_MARK = "\x00"
"""The character that replaces a recognized part of a text; it keeps its neighbors from forming another part."""
MAX_IN_WORDS = 100
"""The most different parts that are searched for within words."""
SHORTEST_NUMBER = 2
"""Digits of a number that a translation must keep: shorter numbers are often spelled out, as `3 cats`: `tres gatos`."""


def _user_patterns(syntax: Syntax) -> str:
    """Return an alternative for the patterns of a user; "" without any."""
    if not isinstance(syntax, ExtendedSyntax):
        return ""
    return "".join(f"(?-s:{bounded_pattern(pattern)})|" for pattern in syntax.patterns)


@cache
def _pattern(syntax: Syntax, *, exact: bool) -> re.Pattern[str]:
    return re.compile(_user_patterns(syntax) + _joined(base_of(syntax), exact=exact), re.DOTALL)


def fixed_parts(text: str, syntax: Syntax = _PROSE) -> list[str]:
    """Return the placeholders, tags, web and e-mail addresses of a text, in order.

    >>> fixed_parts("Dear %s, see https://example.com/a?b=1.")
    ['%s', 'https://example.com/a?b=1']
    """
    return [part for part, _, _ in _find_fixed(text, syntax)]


def is_non_translatable(text: str, syntax: Syntax = _PROSE) -> bool:
    """Whether a text has nothing to translate: no letter outside of its protected spans.

    >>> is_non_translatable("%s: {name} (42)"), is_non_translatable("%s files")
    (True, False)
    """
    if not any(map(str.isalpha, text)):
        return bool(text.strip())
    return not any(map(str.isalpha, _replace_parts(text, kept_parts(text, syntax), " ")))


def without_fixed(text: str, syntax: Syntax = _PROSE) -> str:
    """Return a text with a space in place of each fixed part.

    >>> without_fixed("Dear %s!")
    'Dear  !'
    """
    return _replace_parts(text, _find_fixed(text, syntax), " ")


def lost_and_invented(source: str, target: str, syntax: Syntax = _PROSE) -> tuple[list[str], list[str]]:
    """Return the parts of the source that the target lacks, and those of the target that the source lacks.

    Numbers are compared by their digits, so that 1,000.5 may become 1.000,5. Numbers of one digit may be spelled out. A
    number counts as invented only if another one is lost, because `two hundred` may become 200.
    """
    if not isinstance(syntax, ExtendedSyntax) and not any(map(_MAY_HAVE_FIXED.search, (source, target))):
        return [], []
    lost, invented = differences(Counter(fixed_parts(source, syntax)), target, syntax, signs=False)
    numbers = lost_numbers(source, target, syntax=syntax)
    if numbers:
        invented += lost_numbers(target, source, syntax=syntax)
    return lost + numbers, invented


def differences(
    expected: Counter[str], target: str, syntax: Syntax = _PROSE, *, signs: bool = True
) -> tuple[list[str], list[str]]:
    """Return the expected parts that a text lacks, and the parts that it has in addition.

    An expected part counts wherever it occurs, even next to letters.

    Args:
        expected: how often the text should have each part.
        target: the text.
        syntax: the placeholder syntax of the text.
        signs: whether emoji and other signs count as parts.
    """
    find = kept_parts if signs else _find_fixed
    parts = list(find(target, syntax))
    counts = Counter[str]()
    unexpected = []
    for part, _, _ in parts:
        name = part.replace(PART_MARK, "")
        if name in expected:
            counts[name] += 1
        else:
            unexpected.append(part)
    lost = _missing(expected, counts)
    if lost:
        # A lost part may be the beginning of a longer one that includes the letters next to it: `%s` in `%sfiles`. It
        # must be the beginning, because `{{n}}` does not contain the placeholder `{n}`.
        longest = sorted(lost, key=len, reverse=True)[:MAX_IN_WORDS]
        prefixes = tuple(longest)
        recognized = []
        for span in parts:
            if span[0].replace(PART_MARK, "") in expected or not span[0].startswith(prefixes):
                recognized.append(span)
        masked = _replace_parts(target, recognized, PART_MARK)
        in_words = re.compile("|".join(map(_escaped, longest)))
        counts.update(in_words.findall(masked))
        unexpected = [part for part in unexpected if not part.startswith(prefixes)]
        unexpected.extend(part for part, _, _ in find(in_words.sub(PART_MARK, masked), syntax))
        lost = _missing(expected, counts)
    repeated = [part for part, count in expected.items() if counts[part] > count]
    names = filter(None, [part.replace(PART_MARK, "") for part in unexpected])
    return lost, list(dict.fromkeys([*repeated, *names]))


def _missing(expected: Counter[str], counts: Counter[str]) -> list[str]:
    return [part for part, count in expected.items() if counts[part] < count]


def kept_parts(text: str, syntax: Syntax = _PROSE) -> Iterator[Part]:
    """Yield the parts that are copied from a text to its translation: its fixed parts, emoji and other signs.

    >>> list(kept_parts("Dear %s 👋🏽"))
    [('%s', 5, 7), ('👋🏽', 8, 10)]
    """
    if not isinstance(syntax, ExtendedSyntax) and not _MAY_HAVE_KEPT.search(text):
        return iter(())
    return _find_parts(_pattern(syntax, exact=False), text)


def numbers(text: str, syntax: Syntax = _PROSE) -> Iterator[Part]:
    """Yield the numbers of a text that are not within a kept part."""
    kept_spans = kept_parts(text, syntax)
    part = next(kept_spans, None)
    for match in _NUMBER.finditer(text):
        while part and part[2] <= match.start():
            part = next(kept_spans, None)
        if not part or match.end() <= part[1]:
            yield match[0], *match.span()


def lost_numbers(
    source: str, target: str, shortest: int = SHORTEST_NUMBER, syntax: Syntax = _PROSE, *, whole: bool = True
) -> list[str]:
    """Return the numbers of the source, of at least `shortest` digits, that are not in the target.

    Args:
        source: the source.
        target: the translation.
        shortest: the fewest digits of a number that counts.
        syntax: the syntax of placeholders in the source.
        whole: whether numbers that belong together, such as `10:30`, must stay together, and a number must not be a
            part of another. Otherwise, the digits of each must occur somewhere.
    """
    text = without_fixed(source, syntax)
    if not any(map(str.isdigit, text)):
        return []
    counts = Counter((_NUMBER if whole else _SIMPLE).findall(text))
    in_target = Counter[str]()
    if whole:
        for match in _NUMBER.finditer(target):
            in_target.update(_forms(match[0]))
    digits = _digits(target)
    lost = []
    for number, count in counts.items():
        number_digits = _digits(number)
        found = in_target[_forms(number)[0]] if whole else digits.count(number_digits)
        if len(number_digits) >= shortest and found < count:
            lost.append(number)
    return lost


def _forms(number: str) -> list[str]:
    """Return the forms in which a number is compared: its own, and those of the numbers that belong to it.

    >>> _forms("1.000,5"), _forms("12–15")
    (['10005'], ['12-15', '12', '15'])
    """
    unsigned = number.lstrip("+±-−")
    if _GROUPED.fullmatch(number):
        return [_digits(unsigned)]
    return [number.translate(_SAME_SIGNS), *map(_digits, _SIMPLE.findall(unsigned))]


def is_number(part: str) -> bool:
    """Whether a part of a text is a number, with or without signs around it."""
    return bool(_NUMBER.fullmatch(part))


def is_sign(part: str) -> bool:
    """Whether a part is a tag, an entity or a pictogram, which no word can stand in for."""
    if part[0] in "<&" and not part.startswith(("<%=", "<?=")):
        return True
    if part in "_&" or _BLOCK.match(part) or _CODE.match(part):
        return True
    return not any(map(str.isalnum, part.replace("⟦", "a"))) and part[0] not in "{%$#"


def is_address(part: str) -> bool:
    """Whether a part is an address, so that letters after it would become part of it."""
    return bool(_START_OF_ADDRESS.match(part))


def _digits(text: str) -> str:
    return "".join(filter(str.isdigit, text))


def _escaped(part: str) -> str:
    """Return a pattern that matches a part; `$HOME` and `:name` do not occur in `$HOMEPAGE` and `:names`."""
    has_no_end = part[0] in "$:@" and (part[-1].isalnum() or part[-1] == "_")
    return re.escape(part) + (r"(?!\w)" if has_no_end else "")


def _replace_parts(text: str, parts: Iterable[Part], replacement: str) -> str:
    """Return a text with a replacement in place of each of its parts."""
    return splice(text, [Edit(start, end, replacement) for _, start, end in parts])


def _find_fixed(text: str, syntax: Syntax) -> Iterator[Part]:
    """Yield the fixed parts of a text."""
    if not isinstance(syntax, ExtendedSyntax) and not _MAY_HAVE_FIXED.search(text):
        return iter(())
    return _find_parts(_pattern(syntax, exact=True), text)


def _find_parts(pattern: re.Pattern[str], text: str) -> Iterator[Part]:
    for match in pattern.finditer(text):
        part = match[0]
        if match["address"]:
            part = part[: _end_of_address(part)]
        yield part, match.start(), match.start() + len(part)


def _end_of_address(address: str) -> int:
    """Return where an address ends: before the punctuation of the sentence, and before brackets that it did not open.

    >>> [a[: _end_of_address(a)] for a in ("https://a.b/C_(d)).", "https://a.b/{id}?", "https://a.b]the")]
    ['https://a.b/C_(d)', 'https://a.b/{id}', 'https://a.b']
    """
    end = len(address)
    opened = Counter[str]()
    for i, character in enumerate(address):
        if character in _OPENING:
            opened[character] += 1
        elif character in _BRACKETS:
            opened[_BRACKETS[character]] -= 1
            if opened[_BRACKETS[character]] < 0:
                end = i
                break
    while end and address[end - 1] in _END_OF_SENTENCE:
        end -= 1
    return end
