"""Settings before validation: read safely from files, renamed, merged, and assigned one by one."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from bitext.reading import read_at_most
from translucid.ground.errors import UserError

_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 100
Settings = dict[str, Any]
"""A dictionary of values and of groups, which are dictionaries too."""
LONGEST = 1 << 20
"""The maximum size in bytes of a file of settings; even a run with ten thousand training files needs fewer."""
DEEPEST = 20
"""The maximum depth of nested groups; ours need four."""
RENAMED = {
    "data.tokenizer.normalisation": "data.tokenizer.normalization",
    "data.tokenizer.told": "data.tokenizer.language_pieces",
    "model.eye": "model.image_encoder",
    "training.stay_like": "training.distillation_weight",
    "training.stay_near": "training.l2_sp",
    "training.may_forget": "training.max_regression",
    "training.quantised_weights": "training.quantized_weights",
}
"""The current name of each former name, in the same group, so that existing run folders load and resume."""
RENAMED_VALUES = {
    "data.tokenizer.language_pieces": {"target in the source": "source-side", "each on its own side": "both-sides"},
}
"""The current value of each former value, by the current name of the setting."""


def without_none(settings: Mapping[str, Any]) -> Settings:
    """Return settings without those that are None, which change nothing."""
    return {name: value for name, value in settings.items() if value is not None}


def read_settings(file: Path) -> Settings:
    """Read a YAML file of settings.

    Raises:
        UserError: there is no such file, or it is not YAML with keys and values.
    """
    try:
        settings = parse_yaml(read_at_most(file, LONGEST).decode("utf-8"))
    except OSError as error:
        raise UserError(f"can't be read ({error.strerror})", file=file, fix="Check the path.") from error
    except UnicodeDecodeError as error:
        raise UserError("is not UTF-8 text", file=file, fix="A configuration is a YAML file.") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else None
        problem = getattr(error, "problem", None) or "it can't be parsed"
        raise UserError(f"not valid YAML: {problem}", file=file, line=line, fix="Check indents and colons.") from error
    if not isinstance(settings, dict):
        fix = "Write keys and values, such as `training: {max_steps: 1000}`."
        raise UserError("holds no settings", file=file, fix=fix)
    return settings


def nested(key: str, value: Any) -> Settings:
    """Return a value as nested groups: `nested("a.b", 1)` is `{"a": {"b": 1}}`."""
    for part in reversed(key.split(".")):
        value = {part: value}
    return value


def flat(settings: Settings, prefix: str = "") -> Settings:
    """Return the values of nested groups by their dotted keys.

    >>> flat({"a": {"b": {"c": 1}, "d": 2}})
    {'a.b.c': 1, 'a.d': 2}
    """
    values: Settings = {}
    for name, value in settings.items():
        if isinstance(value, dict):
            values |= flat(value, f"{prefix}{name}.")
        else:
            values[f"{prefix}{name}"] = value
    return values


def assigned(settings: Settings, assignments: Iterable[str], overrides: Mapping[str, Any]) -> Settings:
    """Return settings with assignments, and then overrides, applied to them.

    Args:
        settings: the settings to change.
        assignments: strings `key=value` with the value in YAML.
        overrides: values by dotted key, such as `data.train`.

    Raises:
        UserError: an assignment has no value, or its value is not YAML.
    """
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        if not equals:
            raise UserError(f"`settings` {assignment!r} has no value", fix="Write `key=value`.")
        try:
            settings = merged(settings, nested(key.strip(), parse_yaml(value)))
        except yaml.YAMLError as error:
            raise UserError(f"`settings` {assignment!r}: the value is not YAML", fix="Put it into quotes.") from error
    for key, value in overrides.items():
        settings = merged(settings, nested(key, value))
    return settings


def merged(base: Settings, changes: Settings) -> Settings:
    """Return `base` with the values of `changes` in place of its own, group by group."""
    result = dict(base)
    for key, value in changes.items():
        base_value = result.get(key)
        if isinstance(base_value, dict) and isinstance(value, dict):
            value = merged(base_value, value)
        result[key] = value
    return result


class _Loader(yaml.SafeLoader):
    """A loader without aliases: ten lines, each with ten aliases of the line before, would be ten billion values."""

    depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            problem, mark = "aliases (*name) are not known here", self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=mark)
        self.depth += 1
        if self.depth > DEEPEST:
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.MarkedYAMLError(problem="it is nested too deeply", problem_mark=mark)
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def construct_object(self, node: Any, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (ValueError, LookupError, AttributeError, TypeError, OverflowError) as error:
            # Examples are 2001-99-99, which looks like a date, and a number of 5,000 digits.
            problem = "a value is not of the kind that it looks like"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark) from error


def parse_yaml(text: str) -> Any:
    """Return the value of a YAML text.

    Raises:
        yaml.YAMLError: it is not YAML, is nested too deeply, has aliases, or has a value that can't be read.
    """
    try:
        return yaml.load(text, _Loader)
    except RecursionError as error:
        raise yaml.MarkedYAMLError(problem="it is nested too deeply") from error


def with_current_names(settings: Settings) -> Settings:
    """Return the settings of a run folder under their current names."""
    for former, current in RENAMED.items():
        settings = _renamed(settings, former, current, RENAMED_VALUES.get(current, {}))
    return settings


def with_original_names(settings: Settings) -> Settings:
    """Return settings under their former names, also by dotted key, because checkpoints contain hashes of those."""
    for former, current in RENAMED.items():
        former_values = {value: former_value for former_value, value in RENAMED_VALUES.get(current, {}).items()}
        settings = _renamed(settings, current, former, former_values)
    return settings


def _renamed(settings: Settings, before: str, after: str, values: Mapping[str, str]) -> Settings:
    """Return settings with one of them renamed, whether it is in its group or has a dotted key.

    Args:
        settings: all settings, or those of a group.
        before: the dotted key to replace.
        after: the dotted key that replaces it, in the same group.
        values: the new value of each value that changes.
    """
    result = dict(settings)
    if before in result:
        value = result.pop(before)
        result[after] = values.get(value, value) if isinstance(value, str) else value
    group, _, name = before.partition(".")
    nested_settings = result.get(group)
    if name and isinstance(nested_settings, dict):
        result[group] = _renamed(nested_settings, name, after.partition(".")[2], values)
    return result


def short_repr(value: Any) -> str:
    """Return a value in Python's notation, without the middle if it is long."""
    try:
        return _SHORT.repr(value)
    except ValueError:  # Python writes no number of more than 4,300 digits
        return "such a long number"
