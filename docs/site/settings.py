"""Every setting, preset and recipe as pages."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

from translucid.cli.flags import with_flags
from translucid.runs.keys import Key, keys
from translucid.runs.presets import all_presets, recipes


def write(staged: Path) -> None:
    """Write settings.md and presets.md."""
    lines = [
        "# Settings",
        "",
        "All keys of `--set KEY=VALUE` and of YAML files, as `translucid models --keys` lists them.",
        "",
    ]
    for heading, group in groupby(keys(), key=_heading):
        found = list(group)
        lines += [f"## {heading}", "", "| key | default | values | |", "| --- | --- | --- | --- |"]
        for key in found:
            cells = f"`{key.name}`", f"`{key.default}`", _cell(key.allowed), _cell(key.description)
            lines.append(f"| {' | '.join(cells)} |")
        lines.append("")
    (staged / "settings.md").write_text("\n".join(lines), encoding="utf-8")
    lines = ["# Presets and recipes", "", "| `--model` | for |", "| --- | --- |"]
    lines += [f"| `{name}` | {_cell(with_flags(preset.purpose))} |" for name, preset in all_presets().items()]
    lines += ["", "Use a recipe by its name: `translucid train NAME --train ...`.", ""]
    for name, file in recipes().items():
        text = file.read_text(encoding="utf-8")
        lines += [f"## {name}", "", "```yaml", text.rstrip(), "```", ""]
    (staged / "presets.md").write_text("\n".join(lines), encoding="utf-8")


def _heading(key: Key) -> str:
    return key.choice or ".".join(key.name.split(".")[:-1]) or key.name


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())
