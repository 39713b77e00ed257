"""The preset or recipe that is chosen by the size of a corpus."""

import json
from functools import partial

import pytest

from tests.cli.conftest import call  # noqa: F401 - a fixture
from translucid import UserError
from translucid.runs import presets as preset_module
from translucid.runs import staging
from translucid.runs.corpus_files import count_pairs
from translucid.runs.presets import advice_for_size, all_presets, recipes
from translucid.runs.run_folder import RunFolder
from translucid.runs.staging import configuration_by_size, configuration_to_train


@pytest.mark.parametrize(
    ("pairs", "on_gpu", "names"),
    [
        (1, False, ["low-resource", "tiny"]),
        (9_999, True, ["low-resource", "tiny"]),
        (10_000, False, ["tiny"]),
        (50_000, True, ["tiny"]),
        (50_001, False, ["small"]),
        (1_000_000, True, ["small"]),
        (1_000_001, False, ["small"]),
        (1_000_001, True, ["base"]),
    ],
)
def test_the_size_of_a_corpus_decides(pairs, on_gpu, names):
    advice = advice_for_size(pairs, on_gpu=on_gpu)
    assert [item.name for item in advice] == names
    for item in advice:
        assert item.name in (recipes() if item.is_recipe else all_presets())


def chosen(pairs, data, *settings, on_gpu=False):
    """Return the configuration for a number of pairs, and what was said."""
    configure = partial(configuration_to_train, None, "cpu", data, assignments=settings)
    keys = {setting.partition("=")[0] for setting in settings}
    said = []
    configuration = configuration_by_size(configure(), configure, lambda most: pairs, keys, said.append, on_gpu=on_gpu)
    return configuration, said


def test_settings_of_the_user_win_and_the_choice_says_why():
    data = {"data.train": ["pairs.tsv"], "data.valid": ["dev.tsv"]}
    configuration, said = chosen(5_000, data, "model.width=64", "training.warmup=7")
    assert (configuration.preset, configuration.training.optimizer) == ("tiny", "muon")
    assert (configuration.model.width, configuration.training.warmup) == (64, 7)
    assert not configuration.vocabulary_given, "the size of a recipe is a proposal"
    message = "5,000 training pairs: the recipe low-resource (for fewer than 10,000 pairs)"
    assert said == [f"{message}; another one that you name takes its place"]
    configuration, said = chosen(1_000_001, data)
    assert configuration.preset == "small" and said[0].startswith(
        "more than 1,000,000 training pairs: the preset small"
    )


def test_a_recipe_that_does_not_fit_is_not_chosen():
    """That for few pairs splits words in several ways, which one direction only can have."""
    data = {"data.train": ["a.tsv:en-fr", "b.tsv:en-de"], "data.valid": ["c.tsv:en-fr"]}
    configuration, said = chosen(100, data)
    assert configuration.preset == "tiny" and configuration.training.optimizer != "muon"
    assert "the preset tiny" in said[0]
    with pytest.raises(UserError, match="there is no key"):
        chosen(100, data, "model.wide=3")


@pytest.mark.parametrize("setting", ["model.kind=recurrent", "model.kind=attention-only"])
def test_another_kind_of_model_has_no_preset(setting):
    configuration, said = chosen(5_000, {"data.train": ["pairs.tsv"]}, setting)
    assert configuration.preset is None and not said


def test_pairs_are_counted_as_training_reads_them(tmp_path):
    (tmp_path / "a.tsv").write_text("one\teins\n\t\ntwo\tzwei\nthree\t" + "drei " * 100 + "\n")
    (tmp_path / "b.tsv").write_text("four\tvier\n")
    data = {"data.train": [str(tmp_path / "a.tsv")], "data.synthetic": [str(tmp_path / "b.tsv")]}
    options = configuration_to_train(None, "cpu", data).data
    assert count_pairs(options, 100) == 3
    assert count_pairs(options, 2) == 2


def test_training_and_statistics_agree(call, corpus, tmp_path, monkeypatch):  # noqa: F811 - a fixture
    pairs = len((corpus / "train.tsv").read_text().splitlines())
    for few, name in ((pairs + 1, "low-resource"), (1, "tiny")):
        monkeypatch.setattr(preset_module, "FEW_PAIRS", few)
        result = call("data", "stats", "--train", corpus / "train.tsv")
        assert f"translucid train {'' if few > 1 else '--model '}{name} (for " in result.out
        stats = json.loads(call("data", "stats", "--train", corpus / "train.tsv", "--json").out)
        assert stats["advised"] == name
        out = tmp_path / name
        settings = ["model.width=16", "model.feed_forward=16", "training.max_steps=1", "training.validate_sentences=2"]
        files = ["--train", corpus / "train.tsv", "--valid", corpus / "test.tsv", "--out", out]
        result = call("train", *files, "--no-tune", "--set", *settings)
        assert result.code == 0, result.err
        assert f"{pairs:,} training pairs: the {'recipe' if few > 1 else 'preset'} {name}" in result.err
        assert (RunFolder(out).configuration().training.optimizer == "muon") == (few > 1)
    # Of the processes of torchrun, the first one says it.
    monkeypatch.setenv("RANK", "1")
    assert "training pairs:" not in call("train", *files, "--overwrite", "--no-tune", "--set", *settings).err
    monkeypatch.delenv("RANK")
    # A run that is resumed keeps its settings, whatever would be chosen now.
    monkeypatch.setattr(staging, "configuration_by_size", None)
    assert call("train", "--resume", "--out", out, "--no-tune", "--set", "training.max_steps=2").code == 0
