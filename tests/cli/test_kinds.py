"""The same commands with every preset of every kind."""

import pytest

from tests.conftest import SHORT
from translucid.api.translator import Translator
from translucid.evaluation.alignment_error import to_pharaoh
from translucid.runs.configuration import resolve
from translucid.runs.presets import all_presets

SMALL = [
    "model.width=16",
    "data.tokenizer.vocabulary=200",
    "training.batch_tokens=512",
    "training.validate_sentences=5",
    "training.validate_every=5",
    *SHORT,
]


KINDS = [
    name
    for name, preset in all_presets().items()
    if "kind" in preset.settings["model"] and resolve(preset=name).model.reads == "text"
]


WHOLE = "rnn-luong-feeding", "attention-only", "rnn-none"
"""Presets with which all commands are called."""


@pytest.fixture
def pairs(corpus, tmp_path):
    """A file of six pairs."""
    lines = (corpus / "test.tsv").read_text(encoding="utf-8").splitlines(keepends=True)
    (tmp_path / "test.tsv").write_text("".join(lines[:6]), encoding="utf-8")
    return tmp_path / "test.tsv"


@pytest.mark.parametrize("preset", [kind for kind in KINDS if kind not in WHOLE])
def test_trains_and_translates(call, corpus, pairs, tmp_path, preset):
    """Scores of Luong et al. are options of one model, so that the other commands do the same."""
    run, files = tmp_path / "run", ["--train", corpus / "train.tsv", "--valid", pairs]
    limits = [*SMALL, "training.max_steps=2", "training.validate_every=2"]
    result = call("train", "--model", preset, *files, "--out", run, "--no-tune", "--set", *limits)
    assert result.code == 0, result.err
    aligned = call("translate", run, "--alignments", "I like soccer")
    translation = Translator.load(run).translate("I like soccer")
    assert aligned.out == f"{translation.text}\t{to_pharaoh(translation.alignment)}\n"


@pytest.mark.parametrize("preset", WHOLE)
def test_trains_resumes_translates_evaluates_and_shows(call, corpus, pairs, tmp_path, preset):
    run = tmp_path / "run"
    files = ["--train", corpus / "train.tsv", "--valid", pairs]
    result = call(
        "train",
        "--model",
        preset,
        *files,
        "--out",
        run,
        "--set",
        *SMALL,
        "training.max_steps=3",
        "training.validate_every=3",
    )
    assert result.code == 0, result.err
    result = call("train", "--resume", "--out", run, "--set", "training.max_steps=4")
    assert result.code == 0, result.err
    assert "resumed at step 3" in result.err
    texts = ["I like soccer", "", "She likes the beach and the sea"]
    result = call("translate", run, "--beam", 3, "--nbest", 2, stdin="\n".join(texts).encode() + b"\n")
    assert result.code == 0, result.err
    assert len(result.out.split("\n")) == 4
    assert call("evaluate", run, "--test", pairs, "--beam", 2, "--json").code == 0
    tuned = call("tune", "speed", run, "--sentences", 5)
    assert tuned.code == 0, tuned.err
    assert "seen pieces" in tuned.out
    printed = call("look", run, "I like soccer")
    assert printed.code == 0, printed.err
    aligned = call("translate", run, "--alignments", "I like soccer")
    if preset == "rnn-none":
        assert "no attention" in printed.out
        assert aligned.code == 2
        assert "no attention" in aligned.err
        assert "learned from attention" in call("tune", "shortlists", run).err
        (tmp_path / "gold.txt").write_text("0-0\n" * 6)
        assert call("evaluate", run, "--test", pairs, "--gold", tmp_path / "gold.txt").code == 2
        assert call("tune", "reading", run, tmp_path / "gold.txt", "--pairs", pairs).code == 2
    else:
        translation = Translator.load(run).translate("I like soccer")
        assert aligned.out == f"{translation.text}\t{to_pharaoh(translation.alignment)}\n"


def test_a_search_does_not_depend_on_the_batch(corpus, tmp_path, call):
    run = tmp_path / "run"
    files = ["--train", corpus / "train.tsv", "--valid", corpus / "test.tsv"]
    limits = [*SMALL, "training.max_steps=3"]
    assert call("train", "--model", "rnn-luong-feeding", *files, "--out", run, "--no-tune", "--set", *limits).code == 0
    translator = Translator.load(run)
    texts = [line.split("\t")[0] for line in (corpus / "test.tsv").read_text().splitlines()[:8]]
    batched = [translation.text for translation in translator.translate(texts)]
    assert batched == [translator.translate(text).text for text in texts]
