"""The time of reading grows with the size of a document, not with its square, whatever is repeated in it.

Seconds of a text are compared with those of one that is doubled three times: a square would be 64 times as many.
"""

import ast
import importlib
import re
from contextlib import suppress
from pathlib import Path
from time import process_time

import pytest

import translucid
from tests.documents.growth_inputs import ELEMENTS, PLACES, TOKENS, tokens_of
from tests.growth import no_garbage_collection
from translucid.data.readers.corpus import read_pairs
from translucid.documents.document import Target
from translucid.documents.kinds import KINDS, read_document
from translucid.ground.errors import UserError
from translucid.terminology.term import read_terms

SIZES = (128, 1_024, 8_192, 65_536)
"""Characters, each number doubled three times."""
NOTHING = 0.0015
"""Seconds in which nothing can be measured."""
USUAL = 9
"""Times the seconds of the smallest text that the next seldom takes; if it does, larger ones decide."""
LINEAR = 9.5
"""Likewise of larger ones."""
MOST = 20
"""Times the seconds that are too many."""
LEAST = 0.1
"""Seconds that are too many at least."""
SUSPICIOUS = 16
"""Times the seconds of the smallest text after which a pattern is tried on larger ones: a square takes 64 times."""


@pytest.fixture(autouse=True, scope="module")
def _ready():
    """Read a document of each kind, which loads what is loaded once."""
    with no_garbage_collection():
        for name, text in PLACES.items():
            seconds_of_document(name, text("a b"))
        yield


def growth(seconds, first=0):
    """Return the seconds of texts, each eight times as long as the one before, if they grow too fast; else nothing.

    Args:
        seconds: of a number of characters.
        first: number of the smallest size.
    """
    times = [seconds(SIZES[first])]
    for number, size in enumerate(SIZES[first + 1 :], first + 1):
        times.append(seconds(size))
        if times[-1] > max(LEAST, MOST * times[-2]):
            return [round(each, 4) for each in times]
        if times[-1] < NOTHING and number > 1:
            return None
        if NOTHING < times[-1] < (USUAL if number == 1 else LINEAR) * times[-2]:
            return None
    return None


def repeated(token, characters):
    return token * (characters // len(token))


def seconds_of_document(name, content):
    """Return how long a document takes to be read and filled with its own texts."""
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


@pytest.mark.parametrize("name", ELEMENTS)
def test_time_of_reading_grows_with_the_elements(name):
    document, elements = ELEMENTS[name]

    def seconds(characters):
        return seconds_of_document(f"a{name[name.index('.') :]}", document(repeated(element, characters)))

    too_fast = {}
    for element in elements:
        if times := growth(seconds, first=1):
            too_fast[element] = times
    assert not too_fast


@pytest.mark.parametrize("ending", [".tsv", ".jsonl", ".po", ".tmx", ".xliff", ".terms"])
def test_time_of_reading_pairs_and_terms_grows_with_the_size(ending, tmp_path):
    file = tmp_path / f"a{ending}"

    def seconds(characters):
        file.write_text(repeated(token, characters), newline="")
        started = process_time()
        with suppress(UserError):
            list(read_terms(file) if ending == ".terms" else read_pairs(file, on_bad=lambda *_: None))
        return process_time() - started

    too_fast = {}
    for token in [*TOKENS, "a\tb\n", '{"source": "a", "target": "b"}\n', 'msgid "a"\nmsgstr "b"\n', '"a"\n']:
        if times := growth(seconds):
            too_fast[token] = times
    assert not too_fast


PATTERN_METHODS = ("fullmatch", "match", "search", "finditer", "findall", "sub", "split")
BOUNDED = {"documents.messages _CODE"}
"""Patterns that only see texts of a bounded length."""


def patterns():
    """Return each pattern of the package with the methods by which the source uses it."""
    package = Path(translucid.__file__).parent
    sources = {file: file.read_text() for file in package.rglob("*.py")}
    every = "\n".join(sources.values())
    found = {}
    for file, source in sources.items():
        name = ".".join(file.relative_to(package).with_suffix("").parts)
        if name == "__main__":
            continue
        module = importlib.import_module(f"translucid.{name}".removesuffix(".__init__"))
        for variable, value in vars(module).items():
            if isinstance(value, re.Pattern):
                uses = re.findall(rf"\b{variable}\.(\w+)\(", source if variable.startswith("_") else every)
                found[f"{name} {variable}"] = value, {*uses, "match"} & {*PATTERN_METHODS}
        calls = re.search(r"\bre\.[a-z]+\(", source)  # parsing all sources would take seconds
        for node in ast.walk(ast.parse(source)) if calls else ():
            if pattern := _pattern_of(node):
                found[f"{name}:{node.lineno}"] = pattern, {node.func.attr}
    return found


def _pattern_of(node):
    """Return the pattern of a call such as `re.sub("...", ...)`; none of other code, or if it is not written there."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or not node.args:
        return None
    module = node.func.value
    known = isinstance(module, ast.Name) and module.id == "re" and node.func.attr in PATTERN_METHODS
    return re.compile(node.args[0].value) if known and isinstance(node.args[0], ast.Constant) else None


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
    """Whether a text of eight times the size takes a pattern far more than eight times as long, by short texts."""
    small = min(seconds(SIZES[0]), seconds(SIZES[0]))
    return seconds(SIZES[1]) > SUSPICIOUS * small


def patterns_that_grow_too_fast(named):
    """Return the seconds of texts of all sizes by pattern and token."""
    too_fast = {}
    for name, (pattern, methods) in named.items():
        for token in TOKENS:

            def seconds(characters, pattern=pattern, methods=methods, token=token):
                return seconds_of_pattern(pattern, methods, repeated(token, characters))

            if is_suspicious(seconds) and (times := growth(seconds, first=1)):
                too_fast[name, token] = times
    return too_fast


def test_time_of_each_pattern_grows_with_the_size():
    named = {name: found for name, found in patterns().items() if name not in BOUNDED}
    assert not patterns_that_grow_too_fast(named)


def test_a_pattern_that_goes_back_and_forth_would_be_seen():
    def seconds_of(pattern, token):
        compiled = re.compile(pattern)
        return lambda characters: seconds_of_pattern(compiled, {"finditer"}, repeated(token, characters))

    for pattern, token in ((r"\s+x", " "), (r"<!--.*?-->", "<!--"), (r"\w+@", "a"), (r"(?:a|b)*c", "a")):
        assert is_suspicious(seconds_of(pattern, token)), pattern
        assert not is_suspicious(seconds_of(pattern, "-")), pattern
    assert growth(seconds_of(r"(?:a|b)*c", "a"), first=1)
