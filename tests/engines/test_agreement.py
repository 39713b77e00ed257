"""A fast engine is used only if it computes the same log-probabilities as the model."""

import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

import translucid
from translucid import Translator, UserError
from translucid.attention import multi_head
from translucid.cli.main import run as command
from translucid.engines import agreement
from translucid.engines.agreement import TOLERANCE, largest_difference
from translucid.engines.ctranslate2.searching import CTranslate2Engine
from translucid.engines.tuned import load_tuned

equation = importlib.import_module("translucid.attention.attend")
TEXTS = ["I like soccer.", "She works at the hospital."]


@pytest.fixture
def trained(small_run, tmp_path, monkeypatch):
    """Return a copy of a run, with an empty cache of converted models."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return shutil.copytree(small_run, tmp_path / "run")


@pytest.fixture
def edited(monkeypatch):
    """Edit the attention equation: most weight goes to the end of the sentence."""

    def attend(query, key, value=None, mask=None, score=equation.scaled_dot_product, focus=None):
        position_bias = torch.arange(key.size(-2), dtype=query.dtype)
        weights = equation.masked_softmax(score(query, key) + position_bias, mask)
        return weights @ value, weights

    monkeypatch.setattr(equation, "attend", attend)
    monkeypatch.setattr(multi_head, "attend", attend)
    monkeypatch.setattr(agreement, "equations_digest", lambda: "edited")
    monkeypatch.setattr("translucid.engines.converted.equations_digest", lambda: "edited")


def test_the_engines_agree_on_a_model_as_it_is(trained):
    translator = Translator.load(trained)
    assert translator.engine.name == "ctranslate2"
    assert translator.engine.difference < 1e-3
    assert load_tuned(trained) is None


def test_an_edited_attention_is_translated_by_our_own_search(trained, edited, capsys):
    expected = Translator.load(trained, engine="torch").translate(TEXTS)
    translator = Translator.load(trained)
    assert translator.engine.name == "torch"
    assert [translation.text for translation in translator.translate(TEXTS)] == [
        translation.text for translation in expected
    ]
    stderr = capsys.readouterr().err
    assert stderr.count("\n") == 1
    assert "warning: CTranslate2 does not compute what this model computes" in stderr
    tuned = load_tuned(trained)
    assert (tuned.engine, tuned.difference > TOLERANCE) == ("torch", True)
    assert Translator.load(trained).engine.name == "torch"
    assert not capsys.readouterr().err  # the result is stored, and the warning is printed once
    with pytest.raises(UserError, match="does not compute what this model computes"):
        Translator.load(trained, engine="ctranslate2")


LOAD = """
import sys
from translucid import Translator
translator = Translator.load(sys.argv[1])
loaded = "torch" in sys.modules
if loaded:
    from translucid.kernels import attention
    attention.fast_attention = None
print(loaded, translator.engine.name, [result.score for result in translator.translate(sys.argv[2:])])
"""
"""Prints whether PyTorch was loaded, the engine, and the scores of translations, for which no fused kernel may run."""


def test_an_edit_of_the_installed_equation_counts_after_a_conversion(trained, tmp_path):
    source = Path(translucid.__file__).parents[1]
    for package in ("bitext", "translucid"):
        shutil.copytree(source / package, tmp_path / "installed" / package)
    file = tmp_path / "installed" / "translucid" / "attention" / "attend.py"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "installed")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)

    def translated():
        """Return the output and the messages of a new process, and the converted models in the cache."""
        command = [sys.executable, "-c", LOAD, str(trained), *TEXTS]
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, cwd=tmp_path)
        conversions = (tmp_path / "cache" / "translucid" / "ctranslate2").glob("[!.]*")
        return done.stdout, done.stderr, {folder.name for folder in conversions}

    original = translated()
    assert original[0].startswith("False ctranslate2") and len(original[2]) == 1
    code = file.read_text()
    assert "weights = masked_softmax(score(" in code
    file.write_text(code.replace("weights = masked_softmax(score(", "weights = masked_softmax(-3 * score("))
    output, messages, conversions = translated()
    assert output.startswith("True torch") and output.split("[")[1] != original[0].split("[")[1]
    assert "warning: CTranslate2 does not compute what this model computes" in messages
    assert len(conversions) == 2


def test_tuning_keeps_our_own_search_and_says_so(trained, edited, corpus, capsys):
    files = ["--train", str(corpus / "train.tsv"), "--valid", str(corpus / "test.tsv")]
    assert command(["tune", "speed", str(trained), *files, "--sentences", "2"]) == 0
    captured = capsys.readouterr()
    assert "our own search is used" in captured.err.replace("\n", " ")
    assert "ctranslate2" not in captured.out
    assert json.loads((trained / "tuned.json").read_text())["difference"] > TOLERANCE


@pytest.mark.parametrize("to", ["ctranslate2", "marian", "huggingface"])
def test_an_edited_model_is_not_exported_to_what_computes_otherwise(trained, edited, tmp_path, capsys, to):
    assert command(["export", str(trained), str(tmp_path / "out"), "--to", to]) == 2
    assert "does not compute what this model computes" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_an_edit_of_the_equation_reaches_what_runs_without_weights(edited):
    query, key, value = (torch.randn(1, 2, 5, 4) for _ in range(3))
    expected, _ = equation.attend(query, key, value)
    assert torch.allclose(equation.attend_fused(query, key, value), expected)


def test_edits_that_change_long_sentences_alone_are_noticed(trained, monkeypatch):
    translator = Translator.load(trained, engine="torch")
    attend_fused = equation.attend_fused

    def edited_attention(query, key, value, mask=None, *, causal=False):
        if key.size(-2) > 30:
            value = value.flip(-2)
        return attend_fused(query, key, value, mask, causal=causal)

    monkeypatch.setattr(multi_head, "attend_fused", edited_attention)
    assert CTranslate2Engine.difference_from(translator.torch_engine, translator.tokenizer) > TOLERANCE


class RecordingEngine:
    """An engine that records the lengths of forced pairs, without end tokens."""

    def forced(self, pairs):
        self.lengths = [(len(source) - 1, len(target) - 1) for source, target in pairs]
        return [[0.0] * len(target) for _, target in pairs]


@pytest.mark.parametrize(("longest", "expected"), [(99, 48), (21, 20), (2, 1)])
def test_sentences_of_one_piece_are_compared_and_none_too_long_for_the_model(trained, longest, expected):
    tokenizer = Translator.load(trained, engine="torch").tokenizer
    opening = max(len(tokenizer.source_opening), len(tokenizer.target_opening))
    first, second = RecordingEngine(), RecordingEngine()
    assert largest_difference(first.forced, second.forced, tokenizer, longest + opening) == 0
    assert first.lengths == second.lengths
    assert (first.lengths[0], first.lengths[-1]) == ((1, 1), (expected, expected))


def test_the_sentence_that_differs_most_decides(trained):
    class Doubting(RecordingEngine):
        def forced(self, pairs):
            log_probs_by_length = {4: -0.5}
            return [[log_probs_by_length.get(len(target), 0.1)] * len(target) for _, target in pairs]

    tokenizer = Translator.load(trained, engine="torch").tokenizer
    assert largest_difference(RecordingEngine().forced, Doubting().forced, tokenizer, 99) == 0.5


def test_damaged_weights_are_no_disagreement(trained):
    translator = Translator.load(trained, engine="torch")
    translator.model.output.weight.data.fill_(torch.nan)
    assert CTranslate2Engine.difference_from(translator.torch_engine, translator.tokenizer) == 0
