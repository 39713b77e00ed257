"""Settings before validation: read from files, merged, and assigned one by one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from translucid.ground.errors import UserError
from translucid.ground.reading import read_at_most
from translucid.runs.safe_yaml import LONGEST, parse_yaml

Settings = dict[str, Any]
"""A dictionary of values and of groups, which are dictionaries too."""


def without_none(given: Mapping[str, Any]) -> Settings:
    """Return settings without those that are None, which change nothing."""
    return {name: value for name, value in given.items() if value is not None}


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
    settings: Settings = value
    return settings


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
            raise UserError(f"--set {assignment!r} has no value", fix="Write --set key=value.")
        try:
            settings = merged(settings, nested(key.strip(), parse_yaml(value)))
        except yaml.YAMLError as error:
            raise UserError(f"--set {assignment!r}: the value is not YAML", fix="Put it into quotes.") from error
    for key, value in overrides.items():
        settings = merged(settings, nested(key, value))
    return settings


def merged(base: Settings, over: Settings) -> Settings:
    """Return `base` with the values of `over` in place of its own, group by group."""
    result = dict(base)
    for key, value in over.items():
        inner = result.get(key)
        if isinstance(inner, dict) and isinstance(value, dict):
            value = merged(inner, value)
        result[key] = value
    return result
