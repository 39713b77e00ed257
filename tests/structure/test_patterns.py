"""Regular expressions mean the same in every Python that we support.

Python 3.11.0 to 3.11.4 match possessive and atomic groups, such as `(?:a|b)*+` and `(?>a|b)`, wrongly
(https://github.com/python/cpython/issues/106052), and Debian 12 has Python 3.11.2. Only a single character may be
repeated possessively (`[^<]*+`); a group is written so that it can match in one way only: `[^<]*+(?:<(?!/)[^<]*+)*`.
"""

import re
import re._constants as codes
import re._parser as parser
from importlib import import_module
from pkgutil import walk_packages

import bitext
import translucid

PACKAGES = ("data", "terminology", "evaluation", "interop", "engines", "api", "captions", "language")


CHARACTER = {codes.LITERAL, codes.NOT_LITERAL, codes.IN, codes.ANY}


def nested(argument):
    """Yield the patterns within the argument of a node."""
    if isinstance(argument, parser.SubPattern):
        yield argument
    elif isinstance(argument, (tuple, list)):
        for part in argument:
            yield from nested(part)


def has_possessive_group(pattern) -> bool:
    """Return whether a parsed pattern has a possessive or atomic group of more than a character."""
    for code, argument in pattern:
        parts = list(nested(argument))
        groups = parts if code in (codes.POSSESSIVE_REPEAT, codes.ATOMIC_GROUP) else []
        if any(len(group) != 1 or group[0][0] not in CHARACTER for group in groups):
            return True
        if any(map(has_possessive_group, parts)):
            return True
    return False


def compiled(value):
    """Yield the patterns in a value of a module: itself, or those that a container holds."""
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, dict):
        for part in value.values():
            yield from compiled(part)
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from compiled(part)


def patterns():
    """Yield every compiled pattern of these packages, with the name of its module."""
    ours = [module.name for module in walk_packages(translucid.__path__, "translucid.")]
    modules = [name for name in ours if name.split(".")[1] in PACKAGES]
    modules += [module.name for module in walk_packages(bitext.__path__, "bitext.")]
    for module in modules:
        for name, value in vars(import_module(module)).items():
            # `__builtins__` is no value of the module, and may hold itself: `_` is what an interpreter showed last.
            if name.startswith("__"):
                continue
            for pattern in compiled(value):
                yield f"{module}.{name}", pattern


def test_only_characters_are_repeated_possessively():
    checked = [*patterns()]
    assert len(checked) > 100
    wrong = {name for name, pattern in checked if has_possessive_group(parser.parse(pattern.pattern, pattern.flags))}
    assert not wrong


def test_possessive_groups_are_detected():
    for wrong in ("(?:a|bc)*+d", "(?>a*b|c)", "x(?:y(?:a|bc)*+)", "(?:%[^%]*+)*+"):
        assert has_possessive_group(parser.parse(wrong)), wrong
    for right in ("[ab]*+c", "(?:a[bc]*+)*d", "(?:a|b)*c", "\\d++"):
        assert not has_possessive_group(parser.parse(right)), right
