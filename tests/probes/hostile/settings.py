"""Configurations: YAML of every shape, and --set. Accepted settings are the same after writing and reading them."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any, get_args

import yaml
from hypothesis import strategies as st
from pydantic import BaseModel

from tests.probes.hostile.generating import each
from tests.probes.hostile.tally import Tally
from translucid.runs.configuration import Configuration, resolve, validated
from translucid.runs.presets import all_presets

ODD = [
    *(
        "1",
        "0",
        "-1",
        "1e3",
        "1e999",
        ".nan",
        "-.inf",
        "0x" + "f" * 300,
        "0x" + "f" * 6000,
        "9" * 5000,
        "1:" * 50 + "1",
        "0b",
        "1_0",
    ),
    *(
        "true",
        "no",
        "~",
        "''",
        "2001-99-99",
        "2001-01-01 00:00:00",
        "!!int ''",
        "!!float x",
        "!!binary é",
        "!!set {a}",
        "!!bool x",
    ),
    *(
        "!!python/object/apply:os.system [ls]",
        "!!python/name:os.system",
        "!x y",
        "&a b",
        "*a",
        "<<: *a",
        "[*a, *a]",
        "? x",
        "|\n x",
    ),
    *(
        "[]",
        "{}",
        "[1, [2, [3]]]",
        "[" * 200,
        "{a: " * 200,
        "{[1]: 2}",
        "{1: 2}",
        "'\\u0000'",
        '"\\ud800"',
        '"\\e[2J\\n"',
        "\x07",
        "\t",
    ),
    *(
        "transformer",
        "recurrent",
        "attention-only",
        "bpe",
        "luong-general",
        "bahdanau",
        *all_presets(),
        "x" * 5000,
        "0.5",
        "16",
        "1000000",
    ),
]


def _keys(options: type[BaseModel], prefix: str = "") -> list[str]:
    names = []
    for name, field in options.model_fields.items():
        kinds = [
            k
            for k in (field.annotation, *get_args(field.annotation))
            if isinstance(k, type) and issubclass(k, BaseModel)
        ]
        names += [f"{prefix}{name}", *(key for kind in kinds for key in _keys(kind, f"{prefix}{name}."))]
    return names


KEYS = _keys(Configuration)
key = st.sampled_from(KEYS) | st.sampled_from(
    ["", ".", "model..width", "a" * 3000, "x.y", "<<", "preset", "\x00", "modle.width"]
)
value = (
    st.sampled_from(ODD)
    | st.integers().map(str)
    | st.floats(allow_subnormal=False).map(str)
    | st.text(max_size=10).map(json.dumps)
)
assignment = st.tuples(key, value)
settings = st.one_of(
    st.tuples(st.lists(assignment, min_size=1, max_size=2), st.just([]), st.just([])),
    st.tuples(
        st.just([("model.width", "16")]),
        st.lists(assignment.map("=".join) | st.text(max_size=20), max_size=2),
        st.just([]),
    ),
    st.tuples(
        st.lists(assignment, max_size=1), st.just([]), st.lists(st.sampled_from(ODD) | st.text(max_size=5), max_size=2)
    ),
)


def fuzz(count: int, seed: int) -> Tally:
    """Try `count` random configurations."""
    tally = Tally("settings")
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "c.yaml"
        each(settings, count, seed, lambda case: tally.attempt(case, lambda: _resolve(file, *case)))
    return tally


def _resolve(file: Path, pairs: list[tuple[str, str]], assignments: list[str], raw: list[str]) -> None:
    file.write_text(_yaml(pairs) + "\n".join(raw), encoding="utf-8", errors="surrogatepass")
    configuration = resolve(file, None, assignments)
    assert validated(yaml.safe_load(configuration.to_yaml())) == configuration


def _yaml(pairs: list[tuple[str, str]]) -> str:
    """Write keys in groups, in YAML's flow style, values as they are."""
    groups: dict[str, Any] = {}
    for path, text in pairs:
        *parents, last = path.split(".")
        group = groups
        for parent in parents:
            inner = group.setdefault(parent, {})
            group = inner if isinstance(inner, dict) else {}
        group[last] = text

    def dump(group: Any) -> str:
        if isinstance(group, dict):
            return "{" + ", ".join(f"{json.dumps(name)}: {dump(inner)}" for name, inner in group.items()) + "}"
        return str(group)

    return "".join(f"{json.dumps(name)}: {dump(inner)}\n" for name, inner in groups.items())
