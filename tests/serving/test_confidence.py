"""Confidence of translations over HTTP."""

import shutil

import pytest

from translucid import Translator
from translucid.api.fitting.confidence_fitting import fit_confidence
from translucid.corpora.phrasebook import generate
from translucid.ground.console import Console


@pytest.fixture(scope="module")
def confident_run(run, tmp_path_factory):
    """The run with a fitted confidence model."""
    base = tmp_path_factory.mktemp("sure")
    pairs, run_folder = base / "pairs.tsv", base / "tiny"
    lines = [f"{p.source}\t{p.target}\n" for p in generate(150, split="test", max_words=8)]
    pairs.write_text("".join(lines), encoding="utf-8")
    shutil.copytree(run, run_folder)
    with pytest.MonkeyPatch.context() as patch:
        chrf = "translucid.api.fitting.confidence_fitting.sentence_chrf"
        patch.setattr(chrf, lambda texts, references: [10.0 * (len(text) % 10) for text in references])
        fit_confidence(run_folder, console=Console(quiet=True), valid=[str(pairs)])
    return run_folder


def translate(client, **fields):
    response = client.post("/translate", json={"source": "en", "target": "es", **fields})
    assert response.status_code == 200, response.text
    return response.json()


def test_confidence_comes_if_asked_for(serve, confident_run):
    client = serve(str(confident_run))
    text = "I like soccer.\nShe works at the hospital."
    assert "confidence" not in translate(client, q=text)
    translator = Translator.load(confident_run, "cpu")
    expected = [translator.translate(line).confidence for line in text.splitlines()]
    assert translate(client, q=text, confidence=True)["confidence"] == pytest.approx(min(expected), abs=1e-3)
    several = translate(client, q=[*text.splitlines(), ""], confidence=True, alternatives=1)
    assert several["confidence"] == [pytest.approx(confidence, abs=1e-3) for confidence in expected] + [None]
    assert len(several["alternatives"]) == 3


def test_a_form_asks_for_it_too_and_nonsense_is_refused(serve, confident_run):
    client = serve(str(confident_run))
    fields = {"q": "I like soccer.", "source": "en", "target": "es"}
    assert 0 < client.post("/translate", data={**fields, "confidence": "true"}).json()["confidence"] < 1
    assert "confidence" not in client.post("/translate", data={**fields, "confidence": "false"}).json()
    response = client.post("/translate", json={**fields, "confidence": "perhaps"})
    assert response.status_code == 400 and "confidence" in response.json()["error"]


def test_a_run_that_can_not_tell_says_null(serve):
    assert translate(serve(), q="I like soccer.", confidence=True)["confidence"] is None
