"""How sure a translation is, over HTTP."""

import shutil

import pytest

from translucid import Translator
from translucid.api.confidence_fitting import fit_confidence
from translucid.corpora.phrasebook import generate
from translucid.ground.console import Console


@pytest.fixture(scope="module")
def sure(run, tmp_path_factory):
    """The run, which can tell how sure it is."""
    place = tmp_path_factory.mktemp("sure")
    pairs, folder = place / "pairs.tsv", place / "tiny"
    lines = [f"{p.source}\t{p.target}\n" for p in generate(150, split="test", max_words=8)]
    pairs.write_text("".join(lines), encoding="utf-8")
    shutil.copytree(run, folder)
    with pytest.MonkeyPatch.context() as patched:
        chrf = "translucid.api.confidence_fitting.sentence_chrf"
        patched.setattr(chrf, lambda texts, references: [10.0 * (len(text) % 10) for text in references])
        fit_confidence(folder, console=Console(quiet=True), valid=[str(pairs)])
    return folder


def answered(client, **fields):
    answer = client.post("/translate", json={"source": "en", "target": "es", **fields})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_confidence_comes_if_asked_for(serve, sure):
    client = serve(str(sure))
    text = "I like soccer.\nShe works at the hospital."
    assert "confidence" not in answered(client, q=text)
    translator = Translator.load(sure, "cpu")
    expected = [translator.translate(line).confidence for line in text.splitlines()]
    assert answered(client, q=text, confidence=True)["confidence"] == pytest.approx(min(expected), abs=1e-3)
    many = answered(client, q=[*text.splitlines(), ""], confidence=True, alternatives=1)
    assert many["confidence"] == [pytest.approx(one, abs=1e-3) for one in expected] + [None]
    assert len(many["alternatives"]) == 3


def test_a_form_asks_for_it_too_and_nonsense_is_refused(serve, sure):
    client = serve(str(sure))
    fields = {"q": "I like soccer.", "source": "en", "target": "es"}
    assert 0 < client.post("/translate", data={**fields, "confidence": "true"}).json()["confidence"] < 1
    assert "confidence" not in client.post("/translate", data={**fields, "confidence": "false"}).json()
    refused = client.post("/translate", json={**fields, "confidence": "perhaps"})
    assert refused.status_code == 400 and "confidence" in refused.json()["error"]


def test_a_run_that_can_not_tell_says_null(serve):
    assert answered(serve(), q="I like soccer.", confidence=True)["confidence"] is None
