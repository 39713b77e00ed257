"""YAML of strings, such as the locales of Rails: scalars with text for people are segments, keys never are.

Scalars keep their style; a plain scalar is quoted if the translation requires it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import partial
from typing import Any

import yaml

from bitext.cancellation import between_steps
from bitext.documents.document import max_segments
from bitext.documents.spans import TextFile
from bitext.documents.strings.json_strings import note_of_keys
from bitext.documents.strings.messages import is_language
from bitext.documents.strings.string_document import Strings, unicode_escape
from bitext.errors import UserError
from bitext.languages import Languages

NODES = 4
"""The largest number of YAML nodes (keys, values, collections) in relation to the largest number of segments."""
DEEPEST = 200
"""The largest depth of nested brackets: before each token, PyYAML looks at all open ones."""
_STRING = "tag:yaml.org,2002:str"
_PROPERTIES = re.compile(r"(?:[&!]\S*\s+)*")
_ESCAPED = re.compile(r"[^\t\n\r -~\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
"""Characters that YAML allows only as escapes, and characters that only YAML treats as line ends."""


def read(name: str, content: bytes, languages: Languages) -> Strings:
    """Parse a file of YAML.

    Raises:
        UserError: the file is not YAML, or nested too deep.
    """
    file = TextFile.of(name, content)
    strings = Strings(file)
    for scalar, keys, flow in _sorted_scalars(name, file):
        if scalar.tag == _STRING and is_language(scalar.value, "".join(keys[-1:])):
            start, end = scalar.start_mark.index, scalar.end_mark.index
            if properties := _PROPERTIES.match(file.text, start, end):
                start = properties.end()
            write = partial(_written, raw=file.text[start:end], style=scalar.style, flow=flow)
            strings.add(start, end, scalar.value, write, note=note_of_keys(keys))
    return strings


_Scalar = tuple[yaml.ScalarNode, tuple[str, ...], bool]
"""A scalar that is a value, the keys of the mappings around it, and whether it is in brackets."""


def _sorted_scalars(name: str, file: TextFile) -> list[_Scalar]:
    """Return the scalars of a file that are values, in the order of the text; report invalid YAML."""
    try:
        return sorted(_scalars(file.text), key=lambda scalar: scalar[0].start_mark.index)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise UserError(f"is not YAML: {error.problem}", file=name, line=line) from error
    except yaml.reader.ReaderError as error:
        what = f"is not YAML: {str(error).splitlines()[0]}"
        raise UserError(what, file=name, line=file.line(error.position)) from error
    except RecursionError:
        raise UserError("is nested too deep", file=name) from None


class _ShallowLoader(yaml.SafeLoader):
    """A loader that refuses brackets that are nested too deep."""

    def fetch_flow_collection_start(self, TokenClass: type[yaml.Token]) -> None:  # noqa: N803  # as PyYAML names it
        if self.flow_level == DEEPEST:
            raise RecursionError
        super().fetch_flow_collection_start(TokenClass)


class _Loader(_ShallowLoader):
    """A loader that refuses files with more nodes than their segments may need."""

    nodes = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        between_steps()
        self.nodes += 1
        if self.nodes > NODES * max_segments():
            raise UserError(f"has more than {max_segments():,} texts", fix="Split it.")
        return super().compose_node(parent, index)


def _scalars(text: str) -> Iterator[_Scalar]:
    """Yield each scalar that is a value, once, even if aliases refer to it."""
    for root in yaml.compose_all(text, _Loader):
        # A new set for each document, because its nodes may reuse the identities of freed nodes.
        visited: set[int] = set()
        # A stack instead of a recursion, because indentation may nest nodes hundreds deep.
        stack: list[tuple[yaml.Node | None, tuple[str, ...], bool]] = [(root, (), False)]
        while stack:
            node, keys, flow = stack.pop()
            if id(node) in visited:
                continue
            visited.add(id(node))
            if isinstance(node, yaml.ScalarNode):
                yield node, keys, flow
                continue
            flow = flow or bool(getattr(node, "flow_style", False))
            # Reversed, so that an anchor is visited before its aliases.
            if isinstance(node, yaml.MappingNode):
                for key, value in reversed(node.value):
                    name = key.value[:80] if isinstance(key, yaml.ScalarNode) else "?"
                    stack.append((value, (*keys, name), flow))
            elif isinstance(node, yaml.SequenceNode):
                stack += ((value, keys, flow) for value in reversed(node.value))


def _written(value: str, raw: str, style: str | None, flow: bool) -> str:
    """Encode a scalar in the style of its source: `raw` is that source in the file."""
    if style in ("|", ">"):
        return _block(value, raw, folded=style == ">")
    simple = "\n" not in value and value.isprintable()
    if style == "'" and simple:
        return "'" + value.replace("'", "''") + "'"
    if style is None and simple and _reads_as(value, flow):
        return value
    return _double_quoted(value)


def _reads_as(plain: str, flow: bool) -> bool:
    """Whether YAML reads a text without quotes as that string, not, for example, as a number or with a comment."""
    value = _only_scalar(f"[{plain}]" if flow else f"key: {plain}\n")
    return value is not None and (value.value, value.tag, value.style) == (plain, _STRING, None)


def _only_scalar(text: str) -> yaml.ScalarNode | None:
    """Return the only value of a mapping or a list in YAML; None if it is not one scalar, or the text is not YAML."""
    try:
        node = yaml.compose(text, _ShallowLoader)
    except (yaml.YAMLError, RecursionError):
        return None
    match node:
        case yaml.MappingNode(value=[(_, yaml.ScalarNode() as scalar)]):
            return scalar
        case yaml.SequenceNode(value=[yaml.ScalarNode() as scalar]):
            return scalar
    return None


def _double_quoted(text: str) -> str:
    return _ESCAPED.sub(unicode_escape, json.dumps(text, ensure_ascii=False))


def _block(value: str, raw: str, *, folded: bool) -> str:
    """Encode a block scalar; in quotes where a block cannot represent the text."""
    header, end, body = re.split(r"(\r\n|\r|\n)", raw, maxsplit=1)
    tail = raw[len(raw.rstrip()) :]
    indentation = ""
    if first_line := next(filter(str.strip, body.splitlines()), None):
        indentation = first_line[: len(first_line) - len(first_line.lstrip(" "))]
    text = value.rstrip("\n")
    if folded:
        # One line end between lines is read as a space, so each run needs one more; at the beginning it is not.
        text = re.sub(r"(?<=[^\n])\n+", r"\g<0>\n", text)
    text = re.sub(r"(?m)^(?=[^\n])", indentation, text).replace("\n", end)  # Empty lines stay empty.
    block = header + end + text + tail
    # YAML reads some blocks differently, for example those that begin with spaces.
    if indentation and (scalar := _only_scalar(f"key: {block}")) and scalar.value == value:
        return block
    return _double_quoted(value) + tail
