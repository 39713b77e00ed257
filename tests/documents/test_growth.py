"""The time to read a document grows linearly with its size, whatever token is repeated in it.

Texts are compared with texts of eight times the length: quadratic time would be 64 times as long.
"""

import ast
import importlib
import re
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from time import process_time

import pytest

import translucid
from bitext.documents.document import KINDS, Target, read_document
from tests.documents.growth_inputs import IN_TEXTS, PLACES, STRINGS, TOKENS, tokens_of
from tests.growth import no_garbage_collection
from translucid.data.readers.corpus import read_pairs
from translucid.ground.errors import UserError
from translucid.terminology.glossary import read_terms

SIZES = (128, 1_024, 8_192, 65_536)
"""Numbers of characters, each eight times the previous one."""
UNMEASURABLE = 0.0015
"""Seconds that are too short to measure."""
FIRST_RATIO = 9
"""A larger ratio of the second to the smallest text is rare; if it occurs, larger texts decide."""
LINEAR_RATIO = 9.5
"""The same ratio for larger texts."""
LARGEST_RATIO = 20
"""A ratio that is too large."""
ACCEPTED_SECONDS = 0.1
"""Times below this number of seconds are always accepted."""
SUSPICIOUS_RATIO = 16
"""A ratio from which a pattern is tested on larger texts; quadratic time has a ratio of 64."""
IRRELEVANT = ACCEPTED_SECONDS / 64**2
"""Seconds for 1,024 characters that, even if they are quadratic, are accepted for 65,536."""


@pytest.fixture(autouse=True, scope="module")
def _ready():
    """Read a document of each kind to load all modules and data before measurements."""
    with no_garbage_collection():
        for name, text in PLACES.items():
            seconds_of_document(name, text("a b"))
        yield


def growth(seconds, first=0):
    """Return the seconds of two texts, the second eight times as long as the first, if they grow too fast; else None.

    What grows too fast is measured again, as one measurement among tens of thousands is disturbed.

    Args:
        seconds: Function that measures the seconds for a number of characters.
        first: Index of the smallest size.
    """
    return _growth(seconds, first) and _growth(seconds, first)


def _growth(seconds, first):
    times = {}
    for number in range(first + 1, len(SIZES)):
        large = times[number] = seconds(SIZES[number])
        if large < UNMEASURABLE:
            if number > 1:
                return None
            continue
        small = times[number - 1] if number - 1 in times else seconds(SIZES[number - 1])
        if large > max(ACCEPTED_SECONDS, LARGEST_RATIO * small):
            return [round(value, 4) for value in (small, large)]
        if large < (FIRST_RATIO if number == 1 else LINEAR_RATIO) * small:
            return None
    return None


def repeated(token, characters):
    return token * (characters // len(token))


def seconds_of_document(name, content):
    """Return the time to read a document and fill it with its source texts."""
    content = content if isinstance(content, bytes) else content.encode()
    started = process_time()
    with suppress(UserError):
        document = read_document(name, content, ("en", "es"))
        document.filled({})
        document.filled({i: Target(segment.source) for i, segment in enumerate(document.segments)})
    return process_time() - started


def test_each_kind_of_document_has_a_place():
    endings = {Path(name).suffix for name in PLACES}
    assert all(endings & {*kind.endings} for kind in KINDS)


@pytest.mark.parametrize("name", PLACES)
def test_time_of_reading_grows_with_the_size(name):
    def seconds(characters):
        return seconds_of_document(name, PLACES[name](repeated(token, characters)))

    too_fast = {}
    for token in tokens_of(name):
        if times := growth(seconds):
            too_fast[token] = times
    assert not too_fast


@pytest.mark.parametrize("ending", [".tsv", ".jsonl", ".po", ".tmx", ".xliff", ".terms", ".tbx"])
def test_time_of_reading_pairs_and_terms_grows_with_the_size(ending, tmp_path):
    file = tmp_path / f"a{ending}"

    def seconds(characters):
        file.write_text(repeated(token, characters), newline="")
        started = process_time()
        with suppress(UserError):
            list(read_terms(file) if ending in (".terms", ".tbx") else read_pairs(file, on_bad=lambda *_: None))
        return process_time() - started

    too_fast = {}
    for token in [
        *IN_TEXTS,
        *STRINGS,
        "a\tb\n",
        '{"source": "a", "target": "b"}\n',
        'msgid "a"\nmsgstr "b"\n',
        '"a"\n',
    ]:
        if times := growth(seconds):
            too_fast[token] = times
    assert not too_fast


PATTERN_METHODS = ("fullmatch", "match", "search", "finditer", "findall", "sub", "split")
PACKAGES = ("bitext", "translucid")


def patterns():
    """Return each pattern of our packages with the methods that the source calls on it."""
    root = Path(translucid.__file__).parents[1]
    sources = {file: file.read_text() for package in PACKAGES for file in (root / package).rglob("*.py")}
    called = re.compile(rf"\b(\w+)\.({'|'.join(PATTERN_METHODS)})\(")
    calls_in = {file: methods_by_name(called.findall(source)) for file, source in sources.items()}
    calls_anywhere = methods_by_name(call for source in sources.values() for call in called.findall(source))
    methods = defaultdict(set)
    for file, source in sources.items():
        name = ".".join(file.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
        if name.endswith("__main__"):
            continue
        for variable, value in vars(importlib.import_module(name)).items():
            if isinstance(value, re.Pattern):
                calls = calls_in[file] if variable.startswith("_") else calls_anywhere
                methods[value] |= {*calls[variable], "match"}
        is_used = "re" in calls_in[file]  # parsing all source files would take seconds
        for node in ast.walk(ast.parse(source)) if is_used else ():
            if pattern := _pattern_of(node):
                methods[pattern].add(node.func.attr)
    return methods


def methods_by_name(calls):
    """Return the methods of each variable, given pairs of a variable and a method."""
    methods = defaultdict(set)
    for variable, method in calls:
        methods[variable].add(method)
    return methods


def _pattern_of(node):
    """Return the literal pattern of a call such as `re.sub("...", ...)`, or None for other code."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or not node.args:
        return None
    module = node.func.value
    is_pattern_call = isinstance(module, ast.Name) and module.id == "re" and node.func.attr in PATTERN_METHODS
    return re.compile(node.args[0].value) if is_pattern_call and isinstance(node.args[0], ast.Constant) else None


def seconds_of_pattern(pattern, methods, text):
    text = text if isinstance(pattern.pattern, str) else text.encode()
    started = process_time()
    for method in methods:
        if method == "finditer":
            list(pattern.finditer(text))
        elif method == "sub":
            pattern.sub(text[:0], text)
        else:
            getattr(pattern, method)(text)
    return process_time() - started


def is_suspicious(seconds):
    """Return whether the time for a pattern grows far more than linearly on short texts."""
    large = seconds(SIZES[1])
    return large > IRRELEVANT and large > SUSPICIOUS_RATIO * min(seconds(SIZES[0]), seconds(SIZES[0]))


def test_time_of_each_pattern_grows_with_the_size():
    methods_by_pattern = patterns()
    assert len(methods_by_pattern) > 200
    too_fast = {}
    for pattern, methods in methods_by_pattern.items():
        for token in TOKENS:

            def seconds(characters, pattern=pattern, methods=methods, token=token):
                return seconds_of_pattern(pattern, methods, repeated(token, characters))

            if is_suspicious(seconds) and (times := growth(seconds, first=1)):
                too_fast[pattern.pattern, token] = times
    assert not too_fast


def test_a_pattern_that_goes_back_and_forth_would_be_seen():
    def seconds_of(pattern, token):
        compiled = re.compile(pattern)
        return lambda characters: seconds_of_pattern(compiled, {"finditer"}, repeated(token, characters))

    for pattern, token in ((r"\s+x", " "), (r"<!--.*?-->", "<!--"), (r"\w+@", "a"), (r"(?:a|b)*c", "a")):
        assert is_suspicious(seconds_of(pattern, token)), pattern
        harmless = seconds_of(pattern, "-")
        assert not (is_suspicious(harmless) and is_suspicious(harmless)), pattern  # one measurement may be disturbed
    assert growth(seconds_of(r"\s+x?y", " "), first=1)
