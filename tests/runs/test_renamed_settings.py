"""Run folders of earlier versions, whose settings had other names, load and resume."""

import re
from pathlib import Path

import pytest
import yaml

from translucid.ground.errors import UserError
from translucid.runs.configuration import fixed_settings, resolve
from translucid.runs.run_folder import RunFolder
from translucid.runs.settings import RENAMED, RENAMED_VALUES, with_current_names, with_original_names


def test_a_run_folder_with_old_names_loads(tmp_path):
    configuration = resolve(
        preset="caption-soft", assignments=["training.max_regression=2", "model.image_encoder.size=64"]
    )
    folder = RunFolder(tmp_path)
    folder.save_configuration(configuration)
    settings = yaml.safe_load(folder.config_file.read_text())
    for old, new in RENAMED.items():
        *groups, name = old.split(".")
        values = settings
        for group in groups:
            values = values[group]
        values[name] = values.pop(new.split(".")[-1])
    settings["data"]["tokenizer"]["told"] = "each on its own side"
    folder.config_file.write_text(yaml.safe_dump(settings))
    loaded = folder.configuration()
    assert loaded.model.image_encoder.size == 64 and loaded.training.max_regression == 2
    assert loaded.data.tokenizer.language_pieces == "both-sides"


def test_the_hash_in_a_checkpoint_does_not_change_with_the_names():
    fixed = fixed_settings(resolve(preset="caption-soft"))
    assert '"eye": {' in fixed and "image_encoder" not in fixed


def test_names_are_translated_both_ways():
    old = {"model": {"eye": {"size": 1}}, "training.stay_near": 0.5}
    assert with_original_names({"model": {"image_encoder": {"size": 1}}, "training.l2_sp": 0.5}) == old
    assert with_current_names({"training": {"stay_near": 0.5, "seed": 1}}) == {"training": {"l2_sp": 0.5, "seed": 1}}
    current = {"data": {"tokenizer": {"language_pieces": "both-sides", "joint": True}}}
    former = {"data": {"tokenizer": {"told": "each on its own side", "joint": True}}}
    assert with_original_names(current) == former and with_current_names(former) == current


@pytest.mark.parametrize("former", RENAMED)
def test_a_former_key_is_refused_with_its_current_name(former, tmp_path):
    """It is refused in an assignment and in a file; nothing else is suggested."""
    message = re.escape(f"the key {former!r} is now {RENAMED[former]!r}. docs/install.md#upgrading")
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(yaml.safe_dump({"preset": "caption-soft"}), encoding="utf-8")
    with pytest.raises(UserError, match=message):
        resolve(preset="caption-soft", assignments=[f"{former}=1"])
    settings = 1
    for part in reversed(former.split(".")):
        settings = {part: settings}
    recipe.write_text(yaml.safe_dump({"preset": "caption-soft", **settings}), encoding="utf-8")
    with pytest.raises(UserError, match=f"recipe.yaml.*{message}"):
        resolve(recipe)


def test_a_former_value_is_refused_with_its_current_one():
    for key, values in RENAMED_VALUES.items():
        for former, current in values.items():
            with pytest.raises(UserError, match=f"{former!r} is now {current!r}"):
                resolve(preset="tiny", assignments=[f"{key}={former}"])


def test_all_former_names_are_documented():
    page = (Path(__file__).parents[2] / "docs/install.md").read_text(encoding="utf-8")
    upgrading = page.split("## Upgrading")[1].split("\n## ")[0]
    for former, current in RENAMED.items():
        assert f"`{former}`" in upgrading and f"`{current}`" in upgrading
    assert {*re.findall(r"setting `([^`]+)`", upgrading)} == {*RENAMED}
