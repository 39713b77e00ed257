"""Training with `data.context`: learning from the previous sentence, and exact resumption."""

import pytest
import torch

from bitext.pair import Pair
from tests.probes.passages import CONTEXT, LEARNING, corpora, documents
from translucid.data.tokenizing.pieces import SEPARATOR
from translucid.ground.errors import UserError
from translucid.runs.configuration import resolve
from translucid.runs.corpus_files import Corpora, read_corpora
from translucid.runs.run_folder import RunFolder
from translucid.runs.tensor_file import load_tensors


@pytest.fixture(scope="module")
def passages():
    return corpora()


def test_a_model_learns_to_use_the_previous_sentence(train, passages, tmp_path):
    train(tmp_path / "run", *CONTEXT, *LEARNING, data=passages)
    run = RunFolder(tmp_path / "run")
    assert run.tokenizer().reserves([SEPARATOR])
    *_, last = [row for row in run.metrics() if "accuracy" in row]
    assert last["accuracy"] > 0.99, "without the previous sentence, two of three colors are wrong"


def test_a_resumed_training_gives_the_same_weights(train, passages, tmp_path):
    settings = [*CONTEXT, "data.subword_dropout=0.1", "training.validate_every=3"]
    train(tmp_path / "whole", *settings, "training.max_steps=6", data=passages)
    train(tmp_path / "parts", *settings, "training.max_steps=4", data=passages)
    train(tmp_path / "parts", *settings, "training.max_steps=6", data=passages, resume=True)
    uninterrupted, resumed = (load_tensors(tmp_path / name / "model.safetensors")[0] for name in ("whole", "parts"))
    assert all(torch.equal(tensor, resumed[name]) for name, tensor in uninterrupted.items())
    with pytest.raises(UserError, match=r"data.context can't change in a resumed run, from 1 to 2"):
        train(tmp_path / "parts", *settings, "data.context=2", data=passages, resume=True)


def test_fine_tuning_adds_the_separator(train, passages, tmp_path):
    train(tmp_path / "run", "data.tokenizer.vocabulary=50", "training.max_steps=1", data=passages)
    begin_from = f"training.begin_from={tmp_path / 'run'}"
    train(tmp_path / "tuned", begin_from, "data.context=1", "training.max_steps=1", data=passages)
    before, after = RunFolder(tmp_path / "run").tokenizer(), RunFolder(tmp_path / "tuned").tokenizer()
    assert after.reserves([SEPARATOR]) and after.source_size == before.source_size + 1
    adapter = ["training.adapter_rank=2", "data.context=1", begin_from]
    with pytest.raises(UserError, match=r"lacks the pieces of data\.context, and can't get any"):
        train(tmp_path / "adapted", *adapter, data=passages)


def test_pairs_without_documents_are_refused(train, tmp_path):
    pairs = [Pair(*pair) for pair in documents(30)]
    with pytest.raises(UserError, match="no training pair has a sentence before it in its document"):
        train(tmp_path / "run", *CONTEXT, data=Corpora.of(pairs, pairs[:2]))


def test_documents_are_not_torn_apart_for_validation(tmp_path):
    (tmp_path / "c.tsv").write_text("1\t1\n2\t2\n")
    configuration = resolve(assignments=["data.context=1", f"data.train=[{tmp_path / 'c.tsv'}]"])
    with pytest.raises(UserError, match=r"data\.context needs validation files"):
        read_corpora(configuration.data, 1)


@pytest.mark.parametrize(
    ("preset", "settings", "message"),
    [
        ("lm-lstm", [], "data.context is for sentence pairs, not for running text"),
        ("caption-soft", [], "data.context is for sentence pairs, not for images with captions"),
    ],
)
def test_only_translators_accept_it(preset, settings, message):
    with pytest.raises(UserError, match=message):
        resolve(preset=preset, assignments=["data.context=1", *settings])
