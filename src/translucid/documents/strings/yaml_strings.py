"""YAML of strings, such as Rails' locales: scalars that are language are segments, keys never are.

The style of each scalar is kept; a plain one is quoted if its translation has to be.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import partial
from typing import Any

import yaml

from translucid.data.languages import Languages
from translucid.documents.document import most_segments
from translucid.documents.splicing import TextFile
from translucid.documents.strings.messages import is_language
from translucid.documents.strings.string_document import Strings
from translucid.ground.cancellation import between_steps
from translucid.ground.errors import UserError

NODES = 4
"""Keys, values and what holds them, for each segment that a file may have."""
DEEPEST = 200
"""Lists and mappings in brackets that may stand in each other. PyYAML looks at all open ones before each token."""
_STRING = "tag:yaml.org,2002:str"
_PROPERTIES = re.compile(r"(?:[&!]\S*\s+)*")
_ESCAPED = re.compile(r"[^\t\n\r -~\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
"""What YAML does not allow as it stands, and line ends that only YAML takes for some."""


def read(name: str, content: bytes, languages: Languages) -> Strings:
    """Take a file of YAML apart.

    Raises:
        UserError: it is not YAML, or nested hundreds deep.
    """
    file = TextFile.of(name, content)
    found = Strings(file)
    try:
        nodes = list(_scalars(file.text))
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise UserError(f"is not YAML: {error.problem}", file=name, line=line) from error
    except yaml.reader.ReaderError as error:
        what = f"is not YAML: {str(error).splitlines()[0]}"
        raise UserError(what, file=name, line=file.line(error.position)) from error
    except yaml.YAMLError as error:
        raise UserError(f"is not YAML: {str(error).splitlines()[0]}", file=name) from error
    except RecursionError:
        raise UserError("is nested too deep", file=name) from None
    for node, keys, flow in sorted(nodes, key=lambda one: one[0].start_mark.index):
        if node.tag == _STRING and is_language(node.value, keys[-1] if keys else ""):
            start, end = node.start_mark.index, node.end_mark.index
            if properties := _PROPERTIES.match(file.text, start, end):
                start = properties.end()
            write = partial(_written, raw=file.text[start:end], style=node.style, flow=flow)
            found.add(start, end, node.value, write, note=".".join(keys) or None)
    return found


class _ShallowLoader(yaml.SafeLoader):
    """Refuses brackets that are nested too deep."""

    def fetch_flow_collection_start(self, TokenClass: type[yaml.Token]) -> None:  # noqa: N803  # as PyYAML names it
        if self.flow_level == DEEPEST:
            raise RecursionError
        super().fetch_flow_collection_start(TokenClass)


class _Loader(_ShallowLoader):
    """Makes nodes of a file, but not of more than can be the keys and values of its segments."""

    nodes = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        between_steps()
        self.nodes += 1
        if self.nodes > NODES * most_segments():
            raise UserError(f"has more than {most_segments():,} texts", fix="Split it.")
        return super().compose_node(parent, index)


_Found = tuple[yaml.ScalarNode, tuple[str, ...], bool]


def _scalars(text: str) -> Iterator[_Found]:
    """Yield each scalar that is a value, once, with the keys on the way to it, and whether brackets are around it."""
    seen: set[int] = set()
    for root in yaml.compose_all(text, _Loader):
        rest: list[tuple[yaml.Node, tuple[str, ...], bool]] = [(root, (), False)] if root else []
        while rest:
            node, keys, flow = rest.pop()
            if id(node) in seen:  # an alias
                continue
            seen.add(id(node))
            if isinstance(node, yaml.MappingNode):
                inside = flow or bool(node.flow_style)
                rest += [(value, (*keys, str(getattr(key, "value", ""))[:80]), inside) for key, value in node.value]
            elif isinstance(node, yaml.SequenceNode):
                rest += [(value, keys, flow or bool(node.flow_style)) for value in node.value]
            elif isinstance(node, yaml.ScalarNode):
                yield node, keys, flow


def _written(new: str, raw: str, style: str | None, flow: bool) -> str:
    """Write a scalar in the style of `raw`, which stands in the file."""
    if style in ("|", ">"):
        return _block(new, raw, folded=style == ">")
    simple = "\n" not in new and new.isprintable()
    if style == "'" and simple:
        return "'" + new.replace("'", "''") + "'"
    if style is None and simple and _means(new, flow):
        return new
    return _double(new)


def _means(plain: str, flow: bool) -> bool:
    """Whether a plain scalar says what it should."""
    try:
        node = yaml.compose(f"[{plain}]" if flow else f"key: {plain}\n", _ShallowLoader)
    except (yaml.YAMLError, RecursionError):
        return False
    if not isinstance(node, yaml.CollectionNode) or len(node.value) != 1:
        return False
    found = node.value[0] if flow else node.value[0][1]
    return isinstance(found, yaml.ScalarNode) and (found.value, found.tag, found.style) == (plain, _STRING, None)


def _double(text: str) -> str:
    return _ESCAPED.sub(_escape, json.dumps(text, ensure_ascii=False))


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def _block(new: str, raw: str, *, folded: bool) -> str:
    """Write a block scalar: `|` as it stands in lines, `>` with an empty line more than there are line ends."""
    header, end, body = re.split(r"(\r\n|\r|\n)", raw, maxsplit=1)
    tail = raw[len(raw.rstrip()) :]
    indentation = next((line[: len(line) - len(line.lstrip(" "))] for line in body.splitlines() if line.strip()), "")
    text = new.rstrip("\n")
    # One line end between lines is read as a space. Those at the beginning are read as they stand.
    lines = (re.sub(r"(?<=[^\n])\n+", r"\g<0>\n", text) if folded else text).split("\n")
    written = header + end + end.join(indentation + line if line else "" for line in lines) + tail
    return written if indentation and _means_block(written, new) else _double(new) + tail


def _means_block(block: str, text: str) -> bool:
    """Whether a block scalar says what it should; what it begins with may need a number of spaces, for example."""
    try:
        node = yaml.compose(f"key: {block}", _ShallowLoader)
    except yaml.YAMLError:
        return False
    return isinstance(node, yaml.MappingNode) and len(node.value) == 1 and node.value[0][1].value == text
