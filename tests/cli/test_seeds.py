"""`translucid train --seeds`: a run for each seed, and the table that summarizes them."""

import pytest
import torch

from translucid.runs.tensor_file import load_tensors

from ..conftest import SHAPE

LIMITS = ["training.max_steps=4", "training.validate_every=2"]


def test_several_seeds_are_runs_that_a_table_sums_up(call, corpus, tmp_path, monkeypatch):
    files = ["train", "--train", corpus / "train.tsv", "--valid", corpus / "test.tsv", "--no-tune"]
    settings = ["--set", *SHAPE, *LIMITS]
    result = call(*files, "--seeds", 1, 2, "--out", tmp_path / "all", *settings)
    assert result.code == 0, result.err
    assert f"compare the runs with translucid compare {tmp_path / 'all'}" in result.err
    # A run after another one has the same weights as a single run.
    assert call(*files, "--out", tmp_path / "alone", *settings, "training.seed=2").code == 0
    models = [tmp_path / name / "model.safetensors" for name in ("all/seed-1", "all/seed-2", "alone")]
    first, second, alone = (load_tensors(model)[0] for model in models)
    assert all(torch.equal(second[name], alone[name]) for name in alone)
    assert not all(torch.equal(first[name], alone[name]) for name in alone)
    table = call("compare", tmp_path / "all", "--names", "All", "--test", corpus / "test.tsv").out
    assert "All (2 seeds)" in table and "over the seeds" in table and "source words" not in table
    # Commands for one run take the first seed, and say so.
    result = call("translate", tmp_path / "all", "I like soccer")
    assert result.code == 0 and f"2 seeds; this is {tmp_path / 'all' / 'seed-1'}" in result.err
    assert result.out == call("translate", tmp_path / "all/seed-1", "I like soccer").out
    assert "--seeds names seeds" not in result.err
    # Seed 3 is new, the others are complete.
    result = call(*files, "--resume", "--seeds", 1, 2, 3, "--out", tmp_path / "all", *settings)
    assert result.code == 0 and (tmp_path / "all" / "seed-3" / "model.safetensors").exists()
    result = call(*files, "--resume", "--seeds", 3, "--out", tmp_path / "all", *settings)
    assert result.code == 0 and "--seeds names seeds, not their number: this is one run, with seed 3" in result.err
    result = call(*files, "--seeds", 4, 3, "--out", tmp_path / "all", *settings)
    assert (
        result.code == 2 and "seed-3: holds a run already" in result.err and not (tmp_path / "all" / "seed-4").exists()
    )

    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("translucid.cli.train._train", interrupted)
    result = call(*files, "--seeds", 4, 5, "--out", tmp_path / "all", *settings)
    assert result.code == 130 and "run 1 of 2" in result.err and "run 2" not in result.err
    assert "repeat the command with --resume" in result.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--seeds", "1", "1"], "--seeds names a seed twice"),
        (["--seeds", "1", "--set", "training.seed=2"], "--seeds and training.seed do not go together"),
        (["--seeds", "1", "--train", "-"], "--seeds reads its files for each seed"),
        (["--seeds", "1", "--mix", "-=0.5"], "--seeds reads its files for each seed"),
    ],
)
def test_seeds_that_do_not_fit(call, tmp_path, arguments, message):
    result = call("train", *arguments, "--out", tmp_path / "run")
    assert result.code == 2 and message in result.err
    assert not (tmp_path / "run").exists()
