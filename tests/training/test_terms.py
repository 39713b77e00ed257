"""Training with `data.terms`: annotated terms, exact resumption, and refused settings."""

from itertools import chain

import pytest
import torch

from bitext.pair import Pair
from translucid.api.translator import Translator
from translucid.cli.main import run
from translucid.corpora.phrasebook import generate
from translucid.ground.errors import UserError
from translucid.runs.configuration import resolve, resumed
from translucid.runs.corpus_files import Corpora
from translucid.runs.run_folder import RunFolder
from translucid.runs.tensor_file import load_tensors

TERMS = ["data.terms=0.5", "data.source_language=en", "data.target_language=es"]


@pytest.fixture(scope="module")
def pairs():
    return [Pair(phrase.source, phrase.target) for phrase in generate(120, max_words=8)]


@pytest.fixture(scope="module")
def terms_run(train, pairs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "told"
    train(folder, *TERMS, "training.max_steps=4", data=Corpora.of(pairs[:100], pairs[100:]))
    return folder


def test_runs_trained_with_terms_read_marked_terms(terms_run, monkeypatch):
    translator = Translator.load(terms_run)
    annotated = translator.with_terms([("soccer", "fútbol")], mode="annotate")
    inputs = []
    engine = type(annotated.engine)
    decode = engine.decode

    def recorded(self, request):
        inputs.extend(request.sentences)
        return decode(self, request)

    monkeypatch.setattr(engine, "decode", recorded)
    annotated.translate(["I like soccer.", "She sings."])
    marks = translator.tokenizer.encode_source(["\ue0f0\ue0f1\ue0f2"])[0][-3:]
    assert sum(piece in marks for piece in chain.from_iterable(inputs)) == 3


def test_a_resumed_training_gives_the_same_weights(train, pairs, tmp_path):
    corpora = Corpora.of(pairs[:100], pairs[100:103])
    settings = [*TERMS, "data.subword_dropout=0.1", "training.validate_every=3"]
    train(tmp_path / "whole", *settings, "training.max_steps=6", data=corpora)
    train(tmp_path / "parts", *settings, "training.max_steps=3", data=corpora)
    train(tmp_path / "parts", *settings, "training.max_steps=6", data=corpora, resume=True)
    uninterrupted, resumed = (load_tensors(tmp_path / name / "model.safetensors")[0] for name in ("whole", "parts"))
    assert RunFolder(tmp_path / "whole").tokenizer().marks_terms
    assert all(torch.equal(tensor, resumed[name]) for name, tensor in uninterrupted.items())


def test_the_share_of_terms_can_not_change(train, pairs, tmp_path):
    corpora = Corpora.of(pairs[:100], pairs[100:103])
    train(tmp_path / "run", *TERMS, "training.max_steps=1", data=corpora)
    with pytest.raises(UserError, match=r"data\.terms can't change"):
        resumed(RunFolder(tmp_path / "run").configuration(), ["data.terms=0.3"], {})


def test_a_run_that_begins_from_another_gets_the_pieces(small_run, corpus, tmp_path, capfd):
    files = ["--train", corpus / "train.tsv", "--valid", corpus / "test.tsv", "--out", tmp_path / "run"]
    command = ["train", "--init-from", small_run, *files, "--no-tune", "--set", *TERMS, "training.max_steps=2"]
    assert run([str(argument) for argument in command]) == 0
    before, after = RunFolder(small_run).tokenizer(), RunFolder(tmp_path / "run").tokenizer()
    assert after.marks_terms and after.source_size == before.source_size + 3
    constrained = Translator.load(tmp_path / "run").with_terms([("soccer", "fútbol")])
    assert constrained.translate("I like soccer.").terms[0].outcome != "missing"
    command = [*command[:5], *command[5:7], "--out", tmp_path / "adapter", *command[9:], "training.adapter_rank=2"]
    assert run([str(argument) for argument in command]) == 2
    assert "can't get any" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (["data.terms=0.5", "data.source_language=en"], "names no language"),
        (["data.terms=0.5", "data.target_language=ja"], "no dictionary of the language ja"),
    ],
)
def test_missing_requirements_are_reported_before_any_work(settings, message, train, pairs, tmp_path):
    with pytest.raises(UserError, match=message):
        train(tmp_path / "run", *settings, data=Corpora.of(pairs[:100], pairs[100:110]))
    assert not (tmp_path / "run").exists()


def test_two_vocabularies_are_refused():
    with pytest.raises(UserError, match=r"data\.terms needs one vocabulary"):
        resolve(assignments=[*TERMS, "data.tokenizer.joint=false"])
