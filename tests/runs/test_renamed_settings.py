"""Run folders of earlier versions, whose settings had other names, load and resume."""

import yaml

from translucid.runs.configuration import resolve
from translucid.runs.fixed_settings import fixed_settings
from translucid.runs.run_folder import RunFolder
from translucid.runs.settings import RENAMED, with_current_names, with_original_names


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
