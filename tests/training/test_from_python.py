"""`translucid.train`."""

import pytest
import torch

import translucid
from translucid import Translator, UserError
from translucid.runs.run_folder import RunFolder
from translucid.runs.tensor_file import load_tensors

from ..conftest import SHAPE

SETTINGS = dict(setting.split("=") for setting in SHAPE)
LIMITS = {**SETTINGS, "training.max_steps": 3}


def test_files_give_the_run_of_the_command(corpus, tmp_path):
    from translucid.cli.main import run

    files = [corpus / "train.tsv", corpus / "test.tsv"]
    run_folder = translucid.train(files[0], tmp_path / "python", valid=[files[1]], settings=LIMITS, quiet=True)
    command = ["train", "--train", files[0], "--valid", files[1], "--out", tmp_path / "command", "--no-tune", "--set"]
    assert run([str(word) for word in [*command, *SHAPE, "training.max_steps=3"]]) == 0
    # The files may differ: safetensors writes metadata in any order.
    ours, facts = load_tensors(run_folder / "model.safetensors")
    theirs, their_facts = load_tensors(tmp_path / "command" / "model.safetensors")
    assert facts == their_facts
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_pairs_are_trained_on_and_a_run_resumes(tmp_path):
    pairs = [("I like soccer", "Me gusta el fútbol"), ("I like the beach", "Me gusta la playa")] * 30
    few = {**LIMITS, "data.tokenizer.vocabulary": 40}
    folder = translucid.train(pairs, tmp_path / "run", valid=pairs[:2], settings=few, quiet=True)
    assert Translator.load(folder).translate("I like soccer").text is not None
    with pytest.raises(UserError, match="holds a run already"):
        translucid.train(pairs, folder, valid=pairs[:2], settings=few, quiet=True)
    longer = {**few, "training.max_steps": 5}
    translucid.train(pairs, folder, valid=pairs[:2], settings=longer, resume=True, quiet=True)
    assert RunFolder(folder).metrics()[-1]["step"] == 5


@pytest.mark.parametrize("model", [None, "tiny"])
def test_a_run_resumes_although_its_vocabulary_is_smaller_than_the_proposal(model, tmp_path):
    pairs = [("I like soccer", "Me gusta el fútbol"), ("I like the beach", "Me gusta la playa")] * 30
    few = {key: value for key, value in LIMITS.items() if key != "data.tokenizer.vocabulary"}
    folder = translucid.train(pairs, tmp_path / "run", valid=pairs[:2], model=model, settings=few, quiet=True)
    vocabulary = RunFolder(folder).configuration().data.tokenizer.vocabulary
    longer = {**few, "training.max_steps": 5}
    translucid.train(pairs, folder, valid=pairs[:2], model=model, settings=longer, resume=True, quiet=True)
    assert RunFolder(folder).load_state()[1]["place"]["step"] == 5
    assert RunFolder(folder).configuration().data.tokenizer.vocabulary == vocabulary < 200


def test_files_and_pairs_do_not_go_together(tmp_path):
    with pytest.raises(ValueError, match="both files or both pairs"):
        translucid.train("train.tsv", tmp_path / "run", valid=[("a", "b")])
