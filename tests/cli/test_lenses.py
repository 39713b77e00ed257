"""`look --lens` and `tune lens`, and the tuned lens in the run folder."""

import json
import shutil

import numpy as np
import pytest

from translucid import Translator
from translucid.runs.tensor_file import load_tensors, save_tensors

TEXT, TARGET = "I like soccer", "Me gusta el fútbol"


@pytest.fixture(scope="module")
def tuned(small_run, corpus, tmp_path_factory):
    """A run with a tuned lens."""
    from translucid.cli.main import run

    folder = shutil.copytree(small_run, tmp_path_factory.mktemp("tuned") / "run")
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("translucid.inspection.lens.UPDATES", 20)
        assert run(["tune", "lens", str(folder), "--valid", str(corpus / "test.tsv")]) == 0
    return folder


def test_the_lens_is_used_from_then_on(tuned, small_run):
    translator, before = Translator.load(tuned), Translator.load(small_run)
    (lens,), (plain,), (logit,) = (
        translator.inspector.lens(TEXT, TARGET),
        before.inspector.lens(TEXT, TARGET),
        translator.inspector.lens(TEXT, TARGET, tuned=False),
    )
    assert (lens.tuned, plain.tuned, logit.tuned) == (True, False, False)
    assert logit.to_json() == plain.to_json()
    assert lens.log_probs[-1].tolist() == pytest.approx(plain.log_probs[-1].tolist())
    assert lens.log_probs[0].tolist() != pytest.approx(plain.log_probs[0].tolist(), abs=1e-3)


def test_a_lens_of_another_model_is_refused(call, tuned, tmp_path):
    run = shutil.copytree(tuned, tmp_path / "run")
    tensors, facts = load_tensors(run / "lens.safetensors")
    save_tensors(run / "lens.safetensors", tensors, {**facts, "model": "another"})
    result = call("look", run, TEXT, "--lens", "tuned")
    assert result.code == 2 and "belongs to another model. Delete it, or run translucid tune lens again" in result.err
    save_tensors(run / "lens.safetensors", {name: tensor[:3] for name, tensor in tensors.items()}, facts)
    assert "does not fit the model" in call("look", run, TEXT, "--lens", "tuned").err


def test_what_tune_prints(call, small_run, corpus, tmp_path, monkeypatch):
    monkeypatch.setattr("translucid.inspection.lens.UPDATES", 2)
    run = shutil.copytree(small_run, tmp_path / "run")
    result = call("tune", "lens", run, "--valid", corpus / "train.tsv", "--sentences", 40)
    assert result.code == 0, result.err
    assert "learned from 36 pairs, compared on 4 others" in result.out
    failure = call("tune", "lens", run, "--valid", corpus / "train.tsv", "--sentences", 4)
    assert failure.code == 2 and "4 pairs to learn from" in failure.err
    # A former command is refused, and the message has its present form.
    former = call("tune", run, "--lens", "--sentences", 4)
    assert former.code == 2 and f"is now translucid tune lens {run} --sentences 4" in former.err


@pytest.mark.parametrize("ending", ["html", "png", "json", "npz"])
def test_look_saves_the_layers(call, tuned, tmp_path, ending):
    file = tmp_path / f"layers.{ending}"
    result = call("look", tuned, TEXT, "--target", TARGET, "--lens", "tuned", "--save", file)
    assert result.code == 0, result.err
    assert [line.split()[0] for line in result.out.splitlines()[:6]] == ["input", *TARGET.split(), "</s>"]
    (lens,) = Translator.load(tuned).inspector.lens(TEXT, TARGET)
    if ending == "json":
        assert json.loads(file.read_text()) == [lens.to_json()]
    elif ending == "npz":
        with np.load(file) as arrays:
            np.testing.assert_allclose(arrays["0/log_probs"], lens.log_probs, rtol=1e-5)
            assert arrays["0/target"].tolist() == lens.target
    elif ending == "html":
        text = file.read_text()
        assert all(f">{word}</th>" in text for word in TARGET.split())
    assert file.stat().st_size > 500


def test_look_saves_the_translation_from_each_layer(call, small_run, tmp_path):
    file = tmp_path / "layers.json"
    result = call("look", small_run, TEXT, "--lens", "decoder", "--save", file)
    assert result.code == 0, result.err
    assert json.loads(file.read_text()) == Translator.load(small_run).inspector.decoder_lens(TEXT).to_json()


def test_options_that_do_not_go_with_a_lens(call, small_run, tmp_path):
    for option in (["--layer", 0], ["--flow"], ["--method", "norms"], ["--tsv", "x.tsv"]):
        result = call("look", small_run, TEXT, "--lens", "logit", *option)
        assert result.code == 2 and f"{option[0]} does not go with --lens" in result.err
    result = call("look", small_run, TEXT, "--lens", "decoder", "--target", TARGET)
    assert result.code == 2 and "--target does not go with --lens decoder" in result.err
    result = call("look", small_run, TEXT, "--lens", "decoder", "--save", tmp_path / "x.png")
    assert result.code == 2 and "End it in .html or .json" in result.err
    result = call("look", small_run, "12", "--lens", "logit")
    assert result.code == 2 and "nothing to see" in result.err
    result = call("look", small_run, TEXT, "--lens", "tuned")
    assert result.code == 2 and "no tuned lens" in result.err


def test_heads_that_are_off_change_what_the_layers_predict(call, tuned):
    arguments = ["look", tuned, TEXT, "--target", TARGET, "--lens", "logit"]
    complete, ablated = call(*arguments), call(*arguments, "--ablate", "decoder.0.cross.head.0")
    assert complete.code == ablated.code == 0
    assert complete.out != ablated.out
